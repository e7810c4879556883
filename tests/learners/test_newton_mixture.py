"""NewtonMixture against its oracle, its closed forms, and what its documentation promises."""

from __future__ import annotations

import math
import pickle
import re

import numpy as np
import pytest
import scipy.sparse
from scipy.signal import lfilter
from scipy.special import expit

import kernelstream
from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.learners import NewtonMixture
from kernelstream.rows import as_rows
from newton_streams import (
    DOCUMENT,
    LINEAR_KEEP,
    OUTPUTS,
    ROOT,
    covariance,
    each_task,
    levels,
    scores,
    started,
    stream,
    targets,
    weights,
)
from oracles.newton_mixture import Aggregate
from oracles.newton_mixture import NewtonMixture as Oracle

# ---- the oracle ----


@pytest.mark.parametrize("form", ["dense", "sparse single weighted", "wide", "wide sparse weighted"])
@each_task
def test_scores_are_the_oracles(task, form):
    """Every round through warm-up, restart and loss of coverage."""
    d, budget = (40, 10) if "wide" in form else (3, 12)
    X, y = stream(task, d=d)
    if "sparse" in form:
        X[np.random.default_rng(2).random(X.shape) < 0.6] = 0
    X = X.astype(np.float32 if "single" in form else np.float64)
    w = weights(len(y)) if "weighted" in form else None
    oracle = Oracle(width=d, outputs=OUTPUTS[task], budget=budget, regression=task == "regression")
    want = oracle.run(X, y, w)
    learner = started(task, d, budget, X.dtype)
    rows = as_rows(scipy.sparse.csr_array(X) if "sparse" in form else X)
    np.testing.assert_allclose(learner.run(rows, y, w), want, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(learner.score(rows)[-20:], oracle.score(X[-20:]), rtol=1e-7, atol=1e-7)
    assert np.ptp(want[100:]) > 1
    if form == "dense":
        assert {what for _, what in oracle.events} == {"restart", "uncovered"}


@each_task
def test_scores_with_all_rows_as_landmarks_are_the_oracles(task):
    """Up to so many rows as there are landmarks a rebuild takes the landmarks' kernel for that of the rows."""
    X, y = stream(task, 90)
    oracle = Oracle(width=3, outputs=OUTPUTS[task], budget=40, regression=task == "regression")
    np.testing.assert_allclose(scores(task, X, y, 40), oracle.run(X, y), rtol=1e-7, atol=1e-7)
    assert np.ptp(oracle.local.relevance) > 0.1


def test_extreme_weights_are_the_oracles():
    """Beyond what the arithmetic bears a weight counts as the largest or smallest that it does."""
    X, y = stream("two", 150)
    for task in OUTPUTS:
        w = 10.0 ** np.random.default_rng(3).uniform(-12, 3.5, size=len(y))
        w[[20, 90]] = 1e30, 1e-310
        y = targets(task, X[:, 0])
        oracle = Oracle(width=3, outputs=OUTPUTS[task], budget=8, regression=task == "regression")
        np.testing.assert_allclose(scores(task, X, y, 8, w), oracle.run(X, y, w), rtol=1e-5, atol=1e-5)


def blocks(task, n=400, d=3, seed=0):
    """Rows that are held for some rounds, and labels that change with them, but hardly before."""
    rng = np.random.default_rng(seed)
    numbers = np.repeat(np.arange(n), rng.integers(1, 9, n))[:n]
    y = (numbers + (rng.random(n) < 0.02)) % (2 if task == "two" else 3)
    return rng.normal(size=(n, d))[numbers], 2.0 * y - 1 if task == "two" else y.astype(float)


@pytest.mark.parametrize("form", ["dense", "single", "sparse", "very wide"])
@pytest.mark.parametrize("task", ["two", "three"])
def test_labels_of_rows_that_are_copies_are_counted_apart(task, form):
    X, y = blocks(task, d=5000 if form == "very wide" else 3)
    X[:, 3:-1] = 0
    X[::10, 1] += 0.01  # nearly a copy is none
    dtype = np.float32 if form == "single" else np.float64
    X = X.astype(dtype)
    rows = scipy.sparse.csr_array(X) if form in ("sparse", "very wide") else X
    learner = started(task, X.shape[1], dtype=dtype)
    made = learner.run(as_rows(rows, dtype), y)
    copy = (X[1:] == X[:-1]).all(axis=1)
    before = (y[:-1] > 0).astype(int) if task == "two" else y[:-1].astype(int)
    state = learner.state()
    for name, stays in (("repeats", True), ("changes", False)):
        for prefix, which in (("labels_", ~copy), ("labels_copy_", copy)):
            want = np.zeros(len(state["labels_repeats"]))
            for i in np.flatnonzero(which):
                want[before[i]] = 0.998 * want[before[i]] + ((y[i + 1] == y[i]) == stays)
            np.testing.assert_allclose(state[prefix + name], want, rtol=1e-12, err_msg=prefix + name)
            assert want.sum() > 0
    if form != "very wide":
        oracle = Oracle(width=3, outputs=OUTPUTS[task], budget=12, regression=False)
        np.testing.assert_allclose(made, oracle.run(X.astype(float), y), rtol=1e-7, atol=1e-7)


def test_a_label_that_ends_with_its_row_is_foreseen():
    """Soon: counted together with the others, copies of the row before hide this from the labels expert for thousands of rows."""
    X, y = blocks("two", n=1500)
    wrong = (scores("two", X, y, budget=50)[:, 0] > 0) != (y > 0)
    copy = np.r_[False, (X[1:] == X[:-1]).all(axis=1)]
    assert wrong[750:][copy[750:]].mean() < 0.06  # one label in fifty is wrong, and then so seems the next
    assert wrong[750:][~copy[750:]].mean() < 0.1  # with another row comes the other class


@pytest.mark.parametrize("ordered", [True, False])
def test_jumps_and_wild_targets_are_the_oracles(ordered):
    """Targets that stay where an outlier was, targets that come back, and wild ones among the first rows."""
    X, y = levels(230)
    y[[2, 9, 11, 150, 155, 190]] *= [1e6, -1e4, 1e3, 1e3, -1e3, 1e3]
    oracle = Oracle(width=3, outputs=1, budget=12, regression=True, ordered=ordered)
    learner = started("regression", 3)
    want = oracle.run(X, y)
    got = learner.run(as_rows(X), y) if ordered else learner.learn_set(as_rows(X), y)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    state = learner.state()
    np.testing.assert_allclose(state["labels_repeats"], oracle.stayed, rtol=1e-12)
    np.testing.assert_allclose(state["labels_changes"], oracle.came_back, rtol=1e-12)
    assert not ordered or (oracle.stayed > 2 and oracle.came_back > 2)


# ---- the recent expert sees half of the landmarks ----

LANDMARKS, SEEN = 40, 24  # half of them, in whole lines of eight


def unseen(learner):
    """The weights, covariance and pending vectors of the recent expert's other landmarks."""
    state = learner.state()
    others = slice(SEEN, LANDMARKS)
    covariance = state["recent_covariance"].copy()
    np.fill_diagonal(covariance, 0)
    assert state["recent_weights"][:SEEN].all()
    return [state["recent_weights"][others], covariance[others], state["recent_pending"][:, others]]


@each_task
def test_recent_sees_half_of_the_landmarks(task):
    """Among the first rows and after rebuilds, from a state, with one more feature, in a set that becomes a stream."""
    X, y = stream(task)
    learner = started(task, 3, LANDMARKS)
    for part in np.array_split(np.arange(len(y)), 7):
        learner.run(as_rows(X[part]), y[part])
        assert not any(array.any() for array in unseen(learner))
    assert any(event.rebuilt == "recent" for event in learner.events)
    learner = NewtonMixture(LANDMARKS).restore(learner.state())
    learner.run(as_rows(X), y)
    assert not any(array.any() for array in unseen(learner))
    learner.widen(4)
    learner.run(as_rows(np.column_stack([X, X[:, 0]])), y)
    assert not any(array.any() for array in unseen(learner))
    learner = started(task, 3, LANDMARKS)
    learner.learn_set(as_rows(X), y)
    learner.run(as_rows(X[:50]), y[:50])
    assert not any(array.any() for array in unseen(learner))


def test_merged_and_with_a_new_class_recent_sees_half_of_the_landmarks():
    X, y = stream("three", 600)
    base = KernelClassifier(NewtonMixture(LANDMARKS)).partial_fit(X[:300], y[:300])
    parts = [kernelstream.branch(base).partial_fit(X[i::2], y[i::2]) for i in (300, 301)]
    merged = kernelstream.merge(parts, base=base)
    merged.partial_fit(X, np.where(X[:, 2] > 1, 3.0, y))
    assert not any(array.any() for array in unseen(merged.learner_))


def test_the_landmarks_that_recent_sees_are_spaced_evenly():
    X, y = stream("two", 500, change=10**6)
    learner = started("two", 3, LANDMARKS)
    learner.run(as_rows(X), y)  # last rebuilt after 160 rows
    state = learner.state()
    scaled = soft_clip((X[:160] - state["recent_centre"]) * state["recent_scale"])
    chosen = [int(np.argmin(np.abs(scaled - point).sum(axis=1))) for point in state["recent_landmarks"]]
    want = np.linspace(0, 159, LANDMARKS).astype(int)
    assert chosen == [*want[::2], *want[1::2]]


@each_task
def test_a_recent_expert_that_learnt_with_all_landmarks_goes_on_with_them(task):
    """One of an older model file: until its memory is rebuilt."""
    X, y = stream(task, change=400)
    learner = started(task, 3, LANDMARKS)
    learner.run(as_rows(X[:300]), y[:300])
    state = learner.state()
    state["recent_weights"][LANDMARKS - 1] = 0.1
    older = NewtonMixture(LANDMARKS).restore(state)
    older.run(as_rows(X[300:350]), y[300:350])
    assert all(array.any() for array in unseen(older))
    older.run(as_rows(X[350:]), y[350:])
    assert any(event.rebuilt == "recent" for event in older.events)
    assert not any(array.any() for array in unseen(older))


# ---- sets of rows ----


@pytest.mark.parametrize("d", [3, 40])
@each_task
def test_a_set_and_then_a_stream_are_the_oracles(task, d):
    """What follows the order takes no part in a set, and begins with the rows kept when a stream follows."""
    X, y = stream(task, 260, d=d, change=120)
    w = weights(len(y))
    oracle = Oracle(width=d, outputs=OUTPUTS[task], budget=10, regression=task == "regression", ordered=False)
    oracle.run(X[:150], y[:150], w[:150])
    learner = started(task, d, 10)
    learner.learn_set(as_rows(X[:150]), y[:150], w[:150])
    np.testing.assert_allclose(learner.score(X), oracle.score(X), rtol=1e-7, atol=1e-7)
    assert learner.state()["ordered"] == 0
    loaded = NewtonMixture(10).restore(learner.state())
    oracle.learn_stream()
    want = oracle.run(X[150:], y[150:], w[150:])
    for other in (learner, loaded):
        got = other.run(as_rows(X[150:]), y[150:], w[150:])
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
        assert other.state()["ordered"] == 1


@each_task
def test_the_order_of_a_set_says_nothing(task):
    """Rows sorted by target, learnt as a set in that order: the last ones do not rule the forecast."""
    X, y = stream(task, 400, change=400)
    shuffled = np.random.default_rng(0).permutation(400)
    Xt, yt = stream(task, 300, seed=7, change=300)
    model = KernelRegressor if task == "regression" else KernelClassifier
    scores = [model().fit(X[order], y[order]).score(Xt, yt) for order in (np.argsort(y), shuffled)]
    assert min(scores) > 0.9
    assert abs(scores[0] - scores[1]) < 0.03
    turned = model(shuffle=False).fit(X[shuffled], y[shuffled])
    assert turned.learner_.state()["ordered"] == 1


@pytest.mark.parametrize("wider", [5, 60])
def test_numbers_keep_their_names_when_rows_become_wider(wider):
    """Whether or not there is a local memory afterwards."""
    X, y = stream("regression", 200)
    learner = started("regression", 3)
    learner.run(as_rows(X), 1e3 + y)
    before = learner.state()
    learner.widen(wider)
    after = learner.state()
    for name in ("target_centre", "target_spread", "learnt", "ordered"):
        assert before[name] == after[name], name
    assert ("local_rows" in after) == (wider == 5)
    if wider == 5:  # the new features were always 0
        np.testing.assert_array_equal(after["local_rows"], np.pad(before["local_rows"], ((0, 0), (0, 2))))
        for name in ("local_targets", "local_weights", "local_residuals", "kept_residuals", "local_shares"):
            np.testing.assert_array_equal(after[name], before[name])
        np.testing.assert_array_equal(after["local_relevance"][:3], before["local_relevance"])


# ---- symmetry ----


@pytest.mark.parametrize("d", [3, 30])
@each_task
def test_covariances_are_symmetric_to_the_bit(task, d):
    """So that no asymmetry can grow, however long the stream is."""
    X, y = stream(task, 1000, d=d)
    learner = started(task, d, 9)
    for part in np.split(np.arange(len(y)), 4):
        learner.run(as_rows(X[part]), y[part], weights(len(part)))
        state = learner.state()
        stacks = state["stack_covariances"].reshape(2, 7, 7)
        covariances = [array for name, array in state.items() if name.endswith("_covariance")]
        assert len(covariances) == (4 if d == 3 else 3)
        for P in [*covariances, *stacks, state["window_kernel"]]:
            assert (P == P.T).all()
            assert (np.diagonal(P) >= 0).all()


def test_what_is_above_the_diagonal_of_the_whitening_is_zero():
    """The core multiplies only with what is below."""
    X, y = stream("two", 300)
    learner = started("two", 3)
    learner.run(as_rows(X), y)
    state = learner.state()
    for memory in ("lasting", "recent"):
        whitening = state[f"{memory}_whitening"]
        assert (whitening == np.tril(whitening)).all()
        assert (np.diagonal(whitening) > 0).all()


def test_stacks_know_what_their_weights_sum_to():
    """A priori: which expert is right is open, that they are right together is known to a deviation of a half."""
    state = started("three", 3).state()
    for name, alone in (
        ("", [0.5] * 6 + [0.005]),  # labels begin with a hundredth of a share
        ("local_", [0.5, 0.15, 0.15] + [0.05] * 3),
    ):
        n = len(alone)
        for P in state[f"{name}stack_covariances"].reshape(2, n, n):
            np.testing.assert_allclose(P.sum(), 1 / (1 / sum(alone) + 1 / 0.25), rtol=1e-12)
            for i, j in ((n - 3, n - 2), (1, 2)):  # two of the same prior
                np.testing.assert_allclose(P[i, i] + P[j, j] - 2 * P[i, j], alone[i] + alone[j], rtol=1e-12)


# ---- blocks ----


@pytest.mark.parametrize("d", [3, 30])
@each_task
def test_pieces_give_the_same_bits(task, d):
    """Pieces of any length, saved and restored in between, across rebuilds and beyond the rows kept."""
    X, y = stream(task, d=d)
    X[np.random.default_rng(2).random(X.shape) < 0.3] = 0
    w = weights(len(y))
    for make in (as_rows, lambda X: as_rows(scipy.sparse.csr_array(X))):
        rows = make(X)
        whole = started(task, d, 9)
        want = whole.run(rows, y, w)
        for sizes in ([1], [5], [16], [17, 1, 3], [100, 7]):
            part, got, at = started(task, d, 9), [], 0
            while at < len(y):
                stop = min(len(y), at + sizes[len(got) % len(sizes)])
                got.append(part.run(rows.part(at, stop), y[at:stop], w[at:stop]))
                if sizes != [1]:
                    part = NewtonMixture(9).restore(part.state())
                if len(got) % 5 == 0:
                    part = pickle.loads(pickle.dumps(part))
                    part.score(rows.part(0, 30))  # leaves no trace
                at = stop
            assert np.concatenate(got).tobytes() == want.tobytes()
            for name, array in whole.state().items():
                assert array.tobytes() == part.state()[name].tobytes(), name


# ---- closed forms ----


def soft_clip(z):
    return z / (1 + np.abs(z) / 4)


def kernel(state, memory, A, B):
    return np.exp(-state[f"{memory}_gamma"] * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def scaled(state, memory, X):
    return soft_clip((X - state[f"{memory}_centre"]) * state[f"{memory}_scale"])


def moved(state, memory, X):
    """As the landmarks are stored: 0 stays 0."""
    return scaled(state, memory, X) - scaled(state, memory, np.zeros_like(X))


def features(state, memory, X):
    phi = kernel(state, memory, moved(state, memory, X), state[f"{memory}_landmarks"])
    phi = phi @ state[f"{memory}_whitening"].T
    return np.hstack([phi, np.ones((len(X), 1)), scaled(state, memory, X)])


def relative(w, first):
    """Weights as the experts count them: over sum w^2 / sum w of the last ones; the first rows were learnt again after the last
    rebuild."""
    sums = lfilter([1.0], [1.0, -0.999], np.stack([w, w**2]))
    ratio = np.divide(*sums)
    past = np.cumsum(w > 0) <= first
    ratio[past] = ratio[past][-1]
    return w * ratio


@pytest.mark.parametrize("n", [300, 4003])
@each_task
def test_squared_loss_is_ridge_regression(task, n):
    """Solved in one go over all rows; linear, which forgets what a stream was, on a set."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 4))
    y, w = targets(task, X[:, 0] + 0.5 * rng.normal(size=n)), weights(n)
    learner, of_set = started(task, 4), started(task, 4)
    learner.run(as_rows(X), y, w)
    of_set.learn_set(as_rows(X), y, w)
    state = learner.state()
    for name in ("linear_weights", "linear_covariance", "linear_pending", "linear_coefficients"):
        state[name] = of_set.state()[name]
    assert state["lasting_age"] == state["learnt"] == np.count_nonzero(w)  # no restart
    kept = w > 0  # time stands still while weights are 0
    X, y, w = X[kept], y[kept], relative(w[kept], first=48)
    regression = task == "regression"
    Y = (y[:, None] - state["target_centre"]) / state["target_spread"] if regression else y[:, None]
    Y = np.where(np.arange(3) == Y, 1.0, -1.0) if task == "three" else Y
    spread = 3.0 if regression else 10.0
    for name, columns, prior in (
        ("least_squares", slice(None), [*[1.0 if regression else 10.0] * 12, 1.0, *[spread / 4] * 4]),
        ("linear", slice(12, None), [1.0, *[30 / 4] * 4]),
        ("lasting", slice(None), [*[30.0] * 12, 1.0, *[90 / 4] * 4]),
    ):
        if name != "least_squares" and not regression:
            continue
        F = features(state, "lasting", X)[:, columns]
        H = F.T @ (w[:, None] * F) + np.diag(1 / np.array(prior))
        want = np.linalg.solve(H, F.T @ (w[:, None] * Y))
        np.testing.assert_allclose(state[f"{name}_weights"], want, rtol=1e-7, atol=1e-8)
        ordered = np.array([name != "linear"])
        got = covariance({**state, "ordered": ordered}, name)
        np.testing.assert_allclose(got, np.linalg.inv(H), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["lasting", "linear"])
def test_the_logistic_step_is_implicit(name):
    """The residual of the step is that after the step: W' = W + w P x (y - logistic(x.W'))."""
    X, y = stream("two", 200, change=120)
    w = 10.0 ** np.random.default_rng(5).uniform(-2, 2, size=len(y))
    learner = started("two", 3)
    for i in range(len(y)):
        before = learner.state()
        learner.run(as_rows(X[i : i + 1]), y[i : i + 1], w[i : i + 1])
        after = learner.state()
        rebuilt = (before["lasting_landmarks"] != after["lasting_landmarks"]).any()
        if i > 1 and not rebuilt:
            x = features(before, "lasting", X[i : i + 1])[0, 0 if name == "lasting" else 12 :]
            residual = (y[i] > 0) - expit(x @ after[f"{name}_weights"][:, 0])
            weight = w[i] * after["weight_sum"] / after["weight_squares"]
            W, P = before[f"{name}_weights"][:, 0], covariance(before, name)
            if name == "linear":  # forgets, towards its prior
                W, P, pending = LINEAR_KEEP**0.5 * W, LINEAR_KEEP * P, int(before["pending"][0])
                prior = np.array([1.0, *[30 / before["lasting_varying"][0]] * 3])
                P += (1 - LINEAR_KEEP ** (pending + 1)) * np.diag(prior)
            want = W + weight * residual * (P @ x)
            np.testing.assert_allclose(after[f"{name}_weights"][:, 0], want, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("repeats", [False, True])
def test_the_window_is_kernel_ridge_regression_on_the_last_rows(repeats):
    """After thousands of updates of the inverse, some just before it is made anew."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(5000, 2))
    if repeats:
        X = X[rng.integers(0, 5, size=len(X))]
    y, w = targets("three", X[:, 0]), rng.choice([1.0, 0.1, 30.0], size=len(X))
    learner, at = started("three", 2, 60), 0
    renewed = 0
    for n in (1000, 2047, 3071, 4095, 5000):
        learner.run(as_rows(X[at:n]), y[at:n], w[at:n])
        at = n
        state = learner.state()
        first = int(state["window_next"][0])
        order = (first + np.arange(50)) % 50
        Z = moved(state, "recent", X[n - 50 : n])
        np.testing.assert_allclose(state["window_points"][order], Z, atol=1e-12)
        K = kernel(state, "recent", Z, Z) + np.diag(0.1 / relative(w, 240)[n - 50 : n])
        got = state["window_inverse"][np.ix_(order, order)]
        np.testing.assert_allclose(got, np.linalg.inv(K), rtol=1e-7, atol=1e-7)
        want = np.where(np.arange(3) == y[n - 50 : n, None], 1.0, -1.0)
        np.testing.assert_array_equal(state["window_targets"][order], want)
        renewed = max(renewed, int(state["window_rounds"][0]))
    assert renewed > 1024


@pytest.mark.parametrize("sequence", ["random", "adversarial", "good experts in turn"])
def test_fixed_share_keeps_its_bound(sequence):
    """Against the best single candidate, and the best sequence that switches now and then."""
    rng = np.random.default_rng(7)
    rounds, K = 3000, 7
    aggregate = Aggregate(5, regression=False)
    ours, theirs = 0.0, []
    for t in range(rounds):
        logits = rng.normal(size=(5, 3)) * 3
        if sequence == "adversarial":
            y = int(np.argmin(aggregate.forecast(logits)))
        else:
            y = int(rng.integers(3))
        if sequence == "good experts in turn":
            logits[t // 500 % 5, y] += 8
        ours -= math.log(aggregate.forecast(logits)[y] + aggregate.LEAST_LIKELIHOOD)
        theirs.append(aggregate.losses(logits, y))
        aggregate.learn(logits, y, y, 1.0, t + 1)
    losses, least = np.array(theirs), aggregate.start_shares.min()
    assert ours <= losses.sum(axis=0).min() - math.log(least) + aggregate.SHARED * rounds
    for length in (100, 500):  # the best candidate of each stretch, in turn
        stretches = losses.reshape(-1, length, K).sum(axis=1)
        switches = np.count_nonzero(np.diff(stretches.argmin(axis=1)))
        price = -math.log(least) - switches * math.log(least * aggregate.SHARED) + aggregate.SHARED * rounds
        assert ours <= stretches.min(axis=1).sum() + price


# ---- the documentation ----


def test_the_table_of_the_documentation_names_what_is_there():
    """Each file, symbol and constant is in the code, and the state's names are all of them and no others."""
    table = [line.split("|")[1:-1] for line in DOCUMENT.read_text().splitlines() if line.count("|") == 6][2:]
    named = set()
    for _, file, symbols, constants, state in table:
        folders = [
            ("core" if name.endswith("hpp") else "kernelstream", name)
            for name in re.findall(r"`(.+?)`", file)
        ]
        source = "".join((ROOT / "src" / folder / name).read_text() for folder, name in folders)
        python = (ROOT / "src/kernelstream/learners/newton_mixture.py").read_text()
        mixture = (ROOT / "src/core/mixture.hpp").read_text()
        for symbol in re.findall(r"`(.+?)`", symbols):
            last = re.split(r"::|\.", symbol)[-1]
            assert re.search(rf"\b{last}\b", mixture if symbol.startswith("Mixture::") else source), symbol
        for constant in re.findall(r"`(.+?)`", constants):
            assert re.search(rf"\b{constant}\b", source + python), constant
        names = [
            name for name in re.findall(r"`(.+?)`", state) if "calibration." not in name
        ]  # the estimator's
        # "lasting_weights and so on": of all Newton experts; "recent_...": as for the lasting memory
        for one in names:
            named.add(one)
            if "recent_..." in names and one.startswith("lasting_"):
                named.add(one.replace("lasting_", "recent_"))
            if "and so on" in state and one.startswith("lasting_"):
                named |= {one.replace("lasting", expert) for expert in ("least_squares", "recent", "linear")}
    states = started("two", 3).state().keys() | started("two", 40).state().keys()
    assert named - {"recent_...", "learner.state()"} == states - {"shape"}
