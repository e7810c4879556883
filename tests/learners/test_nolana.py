"""NOLANA and AdaptiveNystrom against an oracle, NOGD and one another; chunks and saves to the bit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse

from kernelstream import KernelClassifier
from kernelstream.kernels import Gaussian, Laplacian, Polynomial
from kernelstream.learners import NOGD, NOLANA
from kernelstream.rows import as_rows
from kernelstream.sketches import AdaptiveNystrom
from kernelstream.sketches.eigenpairs import rank_one_eigenpairs, rank_two_eigenpairs
from kernelstream.sketches.landmarks import Landmarks, carry_over
from kernelstream.sketches.nystrom import top_eigenpairs
from oracles import kernels as oracle_kernels
from oracles.losses import LOSSES
from oracles.nolana import NOLANA as OracleNOLANA

KERNEL = Gaussian(gamma=0.7)
TASKS = {"binary": (1, False), "classes": (3, False), "regression": (1, True)}


def stream(task, n=400, width=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width))
    margin = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    y = {
        "binary": np.where(margin > 0, 1.0, -1.0),
        "classes": np.digitize(margin, [-0.5, 0.5]) * 1.0,
        "regression": margin,
    }
    return X, y[task]


def started(learner, task, width=3, dtype=np.float64):
    outputs, regression = TASKS[task]
    return learner.start(width, outputs, regression=regression, dtype=dtype)


def ran(learner, X, y, chunk=None, weight=None, dtype=np.float64):
    chunk = chunk or X.shape[0]
    parts = []
    for i in range(0, X.shape[0], chunk):
        s = slice(i, i + chunk)
        parts.append(learner.run(as_rows(X[s], dtype), y[s], None if weight is None else weight[s]))
    return np.concatenate(parts)


def same_state(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


# ---- NOGD is the case of landmarks that never move ----


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", [None, KERNEL, Polynomial(degree=2)])
@pytest.mark.parametrize("task", TASKS)
def test_infinite_epsilon_is_nogd_to_the_bit(task, kernel, dtype):
    X, y = stream(task, 700)
    common = {"budget": 40, "rank": 20, "eta": 0.05, "lam": 0.01, "kernel": kernel}
    nogd = started(NOGD(**common), task, dtype=dtype)
    nolana = started(NOLANA(**common, epsilon=np.inf), task, dtype=dtype)
    np.testing.assert_array_equal(ran(nolana, X, y, 150, dtype=dtype), ran(nogd, X, y, dtype=dtype))
    assert nolana.nbytes == nogd.nbytes
    assert nolana.n_moves == 0
    same_state(nolana.state(), nogd.state())


def test_finite_epsilon_is_not_nogd():
    X, y = stream("binary")
    common = {"budget": 40, "rank": 20, "kernel": KERNEL}
    nolana = started(NOLANA(**common, epsilon=0.5), "binary")
    nogd = started(NOGD(**common), "binary")
    assert np.abs(ran(nolana, X, y) - ran(nogd, X, y)).max() > 1e-3
    assert nolana.n_moves > 10


# ---- Section 4.2 and Algorithm 1, literally ----


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "polynomial", "callable"])
def test_follows_the_oracle(kernel, epsilon, sparse):
    made, oracle_kernel = {
        "gaussian": (Gaussian(gamma=0.7), oracle_kernels.gaussian(0.7)),
        "laplacian": (Laplacian(gamma=0.4), oracle_kernels.laplacian(0.4)),
        "polynomial": (Polynomial(degree=2, gamma=0.5), oracle_kernels.polynomial(0.5, 1.0, 2)),
        "callable": (
            lambda A, B: np.exp(-0.7 * ((A[:, None] - B[None]) ** 2).sum(2)),
            oracle_kernels.gaussian(0.7),
        ),
    }[kernel]
    X, y = stream("binary", 120)
    X[np.abs(X) < 0.3] = 0
    common = {"budget": 12, "rank": 6, "epsilon": epsilon, "eta": 0.1, "lam": 0.02, "theta": 0.01}
    expected = OracleNOLANA(kernel=oracle_kernel, outputs=1, loss=LOSSES["hinge"], **common)
    nolana = started(NOLANA(**common, kernel=made, solver="scratch"), "binary")
    rows = scipy.sparse.csr_array(X) if sparse else X
    np.testing.assert_allclose(ran(nolana, rows, y), expected.run(X, y), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(nolana.state()["points"], expected.points, atol=1e-12)
    np.testing.assert_array_equal(nolana.state()["counts"], expected.N)
    assert nolana.n_moves > 20


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared", "squared_hinge"])
@pytest.mark.parametrize("task", TASKS)
def test_follows_the_oracle_on_every_task(task, loss):
    if task == "regression" and loss != "squared":
        pytest.skip("a loss for classes")
    outputs, regression = TASKS[task]
    X, y = stream(task, 120)
    weight = np.tile([1.0, 0.5, 0.0, 2.0], 30)
    common = {"budget": 12, "rank": 6, "epsilon": 0.3, "eta": 0.1, "lam": 0.02, "theta": 0.01}
    expected = OracleNOLANA(
        kernel=oracle_kernels.gaussian(0.7),
        outputs=outputs,
        regression=regression,
        loss=LOSSES[loss],
        **common,
    )
    nolana = started(NOLANA(**common, kernel=KERNEL, loss=loss, solver="scratch"), task)
    np.testing.assert_allclose(
        ran(nolana, X, y, weight=weight), expected.run(X, y, weight), rtol=1e-7, atol=1e-8
    )
    assert nolana.n_moves > 10


def test_carrying_over_is_the_least_squares_solution():
    rng = np.random.default_rng(0)
    goal, F = rng.normal(size=(30, 2)), rng.normal(size=(30, 8))
    for theta in (0.0, 0.3):
        stacked = np.vstack([F, np.sqrt(theta) * np.eye(8)])
        expected = np.linalg.lstsq(stacked, np.vstack([goal, np.zeros((8, 2))]), rcond=None)[0]
        np.testing.assert_allclose(carry_over(goal, F, theta), expected, atol=1e-12)
        F0 = F.copy()
        F0[:, 3] = 0  # a direction that was dropped: the smallest solution has nothing there
        expected = np.linalg.lstsq(
            np.vstack([F0, np.sqrt(theta) * np.eye(8)]), np.vstack([goal, np.zeros((8, 2))]), rcond=None
        )[0]
        np.testing.assert_allclose(carry_over(goal, F0, theta), expected, atol=1e-12)


def test_a_move_keeps_the_model_where_it_can():
    X, y = stream("binary", 300)
    nolana = started(NOLANA(budget=60, rank=60, epsilon=np.inf, kernel=KERNEL), "binary")
    ran(nolana, X, y)
    moving = NOLANA(budget=60, rank=60, epsilon=0.4, theta=0.0, kernel=KERNEL, solver="scratch")
    moving = started(moving, "binary")
    state = nolana.state()
    moving.restore(state)
    moving._landmarks_of(state["points"])
    moving._map(state["points"], state["matrix"], state["map_weights"])
    before, point = moving.score(as_rows(X)), np.array([[2.5, 2.5, 2.5]])
    moving._run_map(as_rows(point), 0, np.array([1.0]), np.zeros(1), np.zeros((1, 1)), 0)
    np.testing.assert_array_equal(moving.score(as_rows(X)), before)  # weight 0 moves nothing
    moving._run_map(
        as_rows(point), 0, moving.score(as_rows(point))[0], np.array([1e-12]), np.zeros((1, 1)), 0
    )
    assert moving.n_moves == 1
    landmarks = as_rows(moving.state()["points"])
    nolana_at = nolana.score(landmarks)
    np.testing.assert_allclose(moving.score(landmarks), nolana_at, atol=1e-5)


# ---- the solvers ----


@pytest.mark.parametrize("kind", ["plain", "repeated", "orthogonal", "tiny", "zero"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rank_one_modification(kind, sign):
    rng = np.random.default_rng(1)
    n = 25
    V = np.linalg.qr(rng.normal(size=(n, n)))[0]
    values = np.sort(rng.normal(size=n))
    if kind == "repeated":
        values = np.sort(np.repeat(values[:5], 5))
    v = rng.normal(size=n)
    if kind == "orthogonal":
        v -= V[:, :10] @ (V[:, :10].T @ v)
    v *= {"tiny": 1e-9, "zero": 0.0}.get(kind, 1.0)
    matrix = (V * values) @ V.T + sign * np.outer(v, v)
    new, U = rank_one_eigenpairs(values, V, v, sign)
    assert np.all(np.diff(new) >= 0)
    np.testing.assert_allclose(U.T @ U, np.eye(n), atol=1e-12)
    np.testing.assert_allclose((U * new) @ U.T, matrix, atol=1e-12)


def test_rank_two_modification_is_equation_9():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(20, 20))
    E = A @ A.T
    column = E[:, 4] + rng.normal(size=20)
    moved = E.copy()
    moved[4] = moved[:, 4] = column
    b = column - E[:, 4]
    b[4] /= 2
    np.testing.assert_allclose(E + np.outer(np.eye(20)[4], b) + np.outer(b, np.eye(20)[4]), moved, atol=1e-12)
    values, vectors = rank_two_eigenpairs(*top_eigenpairs(E, 20), 4, b)
    assert np.all(np.diff(values) <= 0)
    np.testing.assert_allclose((vectors * values) @ vectors.T, moved, atol=1e-11)


@pytest.mark.parametrize("solver", ["scratch", "rank2", "warm"])
@pytest.mark.parametrize("gamma", [0.01, 0.3, 30.0])
def test_solvers_keep_the_eigenpairs_of_the_moved_landmarks(solver, gamma):
    rng = np.random.default_rng(0)
    kernel = Gaussian(gamma=gamma)
    landmarks = Landmarks(kernel, rng.normal(size=(40, 3)), 15, solver, 60)
    points = landmarks.points.copy()
    counts = np.ones(40)
    for _ in range(150):
        q, x = int(rng.integers(40)), rng.normal(size=3)
        cross = landmarks.move(q, x, np.eye(40))
        before = points.copy()
        points[q] = (counts[q] * points[q] + x) / (counts[q] + 1)
        counts[q] += 1
        np.testing.assert_allclose(cross, kernel(points, before), atol=1e-12)
    np.testing.assert_allclose(landmarks.points, points, atol=1e-12)
    np.testing.assert_allclose(landmarks.gram, kernel(points), atol=1e-12)
    exact = top_eigenpairs(kernel(points), 40)[0]
    tolerance = (
        5e-3 if solver == "warm" and gamma == 30.0 else 1e-11
    )  # eigenvalues all close to one: nothing to iterate towards
    np.testing.assert_allclose(landmarks.values[:15], exact[:15], atol=tolerance * exact[0])
    np.testing.assert_allclose(
        landmarks.vectors.T @ landmarks.vectors, np.eye(landmarks.vectors.shape[1]), atol=1e-11
    )


@pytest.mark.parametrize("kernel", [KERNEL, Polynomial(degree=2)])  # the polynomial's diagonal changes too
def test_rank2_is_not_scratch_in_disguise(monkeypatch, kernel):
    import kernelstream.sketches.landmarks as adaptive

    rng = np.random.default_rng(0)
    landmarks = Landmarks(kernel, rng.normal(size=(40, 3)), 15, "rank2", 2)
    monkeypatch.setattr(adaptive, "top_eigenpairs", None)  # nothing is decomposed anew
    for _ in range(300):
        landmarks.move(int(rng.integers(40)), rng.normal(size=3), np.eye(40))
    # but rounding that has added up is noticed
    landmarks.values = landmarks.values * (1 + 1e-9)
    with pytest.raises(TypeError):
        landmarks.move(0, np.zeros(3), np.eye(40))


@pytest.mark.parametrize(("rank", "solver"), [(10, "warm"), (11, "complement")])
def test_auto_takes_the_faster_solver(rank, solver):
    X, y = stream("binary", 200)
    common = {"budget": 20, "rank": rank, "epsilon": 0.3, "kernel": KERNEL}
    auto = started(NOLANA(**common), "binary")
    named = started(NOLANA(**common, solver=solver), "binary")
    np.testing.assert_array_equal(ran(auto, X[:100], y[:100]), ran(named, X[:100], y[:100]))
    auto = started(NOLANA(**common), "binary").restore(auto.state())
    np.testing.assert_array_equal(ran(auto, X[100:], y[100:]), ran(named, X[100:], y[100:]))
    assert auto.n_moves > 20


@pytest.mark.parametrize("task", TASKS)
def test_solvers_agree(task):
    X, y = stream(task, 300)
    X = X[:, :1]  # eigenvalues fall fast over one input, so that subspace iteration converges
    common = {"budget": 30, "rank": 6, "epsilon": 0.01, "theta": 1e-3, "eta": 0.05, "kernel": KERNEL}
    scores = {}
    for name, solver, p in [
        ("scratch", "scratch", 1),
        ("rank2", "rank2", 1),
        ("warm", "warm", 60),
        ("warm 2", "warm", 2),
    ]:
        learner = started(NOLANA(**common, solver=solver, iterations=p), task, width=1)
        scores[name] = ran(learner, X, y)
        assert learner.n_moves > 20
    np.testing.assert_allclose(scores["rank2"], scores["scratch"], atol=1e-8)
    np.testing.assert_allclose(scores["warm"], scores["scratch"], atol=1e-8)
    assert 0 < np.abs(scores["warm 2"] - scores["scratch"]).max() < 0.1  # p = 2 approximates


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("rank", [24, 27, 30])
def test_complement_follows_scratch(task, rank):
    """Up to a rotation of the features, which no prediction shows; the closer the more it iterates."""
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(30, 9)), 8, axis=0) + 0.3 * rng.normal(size=(240, 9))
    X = X[rng.permutation(240)]
    y = {"binary": np.where(X[:, 0] > 0, 1.0, -1.0), "regression": X[:, 0]}.get(
        task, np.digitize(X[:, 0], [-0.5, 0.5]) * 1.0
    )
    common = {"budget": 30, "rank": rank, "epsilon": 1.0, "eta": 0.1, "kernel": Gaussian(gamma=0.1)}
    scores = {}
    for solver, p in [("scratch", 1), ("complement", 2), ("complement", 400)]:
        learner = started(NOLANA(**common, solver=solver, iterations=p), task, width=9)
        scores[solver, p] = ran(learner, X, y)
        assert learner.n_moves > 50
        assert solver == "scratch" or learner._adapted.inverses.size
    want = scores["scratch", 1]
    np.testing.assert_allclose(scores["complement", 400], want, atol=1e-8)
    assert np.abs(scores["complement", 2] - want).max() < 0.3 * np.abs(want).max()


def test_complement_is_scratch_where_directions_nearly_depend():
    X, y = stream("binary", 300)
    common = {"budget": 30, "rank": 24, "epsilon": 0.01, "kernel": Gaussian(gamma=0.01)}
    scores = []
    for solver in ("scratch", "complement"):
        learner = started(NOLANA(**common, solver=solver), "binary")
        scores.append(ran(learner, X, y))
        assert not learner._adapted.inverses.size
    np.testing.assert_array_equal(*scores)


def test_a_state_of_before_there_was_complement_goes_on_as_it_did():
    X, y = stream("binary", 300)
    common = {"budget": 20, "rank": 16, "epsilon": 0.3, "kernel": KERNEL}
    old = started(NOLANA(**common, solver="scratch"), "binary")
    ran(old, X[:200], y[:200])
    loaded = started(NOLANA(**common), "binary").restore(old.state())
    np.testing.assert_array_equal(ran(loaded, X[200:], y[200:]), ran(old, X[200:], y[200:]))
    same_state(loaded.state(), old.state())


@pytest.mark.parametrize("theta", [0.0, 1e-3])
def test_a_state_of_before_there_were_inverses_goes_on_to_rounding(theta):
    """They are then made anew from E, where the state had them as many moves left them."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 9))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    common = {"budget": 30, "rank": 24, "epsilon": 1.0, "theta": theta, "kernel": Gaussian(gamma=0.1)}
    kept = started(NOLANA(**common), "binary", width=9)
    ran(kept, X[:200], y[:200])
    state = kept.state()
    inverses = state.pop("inverses")
    assert inverses.shape == (2 if theta else 1, 30, 30)
    loaded = started(NOLANA(**common), "binary", width=9).restore(state)
    np.testing.assert_allclose(
        loaded.state()["inverses"], inverses, rtol=0, atol=1e-9 * np.abs(inverses).max()
    )
    moves = kept.n_moves
    np.testing.assert_allclose(ran(loaded, X[200:], y[200:]), ran(kept, X[200:], y[200:]), rtol=0, atol=1e-9)
    assert loaded.n_moves == kept.n_moves > moves + 20


# ---- state ----


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("solver", ["scratch", "rank2", "warm", "complement"])
def test_chunks_saves_and_pickles_change_no_bit(solver, dtype, sparse):
    X, y = stream("classes", 420)
    X[np.abs(X) < 0.3] = 0
    rows = scipy.sparse.csr_array(X) if sparse else X
    weight = np.tile([1.0, 0.5, 0.0, 2.0], 105)

    def make():
        return started(
            NOLANA(budget=30, rank=12, epsilon=0.3, solver=solver, loss="logistic"), "classes", dtype=dtype
        )

    whole = make()
    expected = ran(whole, rows, y, weight=weight, dtype=dtype)
    assert whole.n_moves > 30
    for chunk in (1, 17, 64):
        learner = make()
        parts = []
        for i in range(0, len(y), chunk):
            s = slice(i, i + chunk)
            parts.append(learner.run(as_rows(rows[s], dtype), y[s], weight[s]))
            learner.score(as_rows(rows[:40], dtype))  # predicting changes nothing
            if chunk == 17:
                learner = make().restore(learner.state())
            elif i % 128 == 0:
                learner = pickle.loads(pickle.dumps(learner))
        np.testing.assert_array_equal(np.concatenate(parts), expected)
        same_state(learner.state(), whole.state())


def test_state_is_not_shared():
    X, y = stream("binary")
    learner = started(NOLANA(budget=30, rank=12, epsilon=0.3, kernel=KERNEL), "binary")
    ran(learner, X[:200], y[:200])
    state = learner.state()
    kept = {name: array.copy() for name, array in state.items()}
    other = NOLANA(budget=30, rank=12, epsilon=0.3, kernel=KERNEL).restore(state)
    ran(learner, X[200:], y[200:])
    ran(other, X[200:], y[200:])
    same_state(state, kept)
    same_state(other.state(), learner.state())


def test_memory_is_constant_for_ever():
    rng = np.random.default_rng(0)
    learner = NOLANA(budget=20, rank=10, epsilon=3.0, solver="scratch").start(2)
    sizes = set()
    for i in range(20):
        X = rng.normal(size=(5000, 2)) + i / 5  # it drifts, so landmarks go on moving
        learner.run(as_rows(X), np.sign(X[:, 0] - i / 5))
        sizes.add(learner.nbytes)
    assert len(sizes) == 1
    assert learner.n_moves > 100


def test_new_features_and_new_classes():
    X, y = stream("classes", 300)
    options = {"budget": 30, "rank": 12, "epsilon": 0.3, "kernel": KERNEL}
    padded = KernelClassifier(NOLANA(**options)).partial_fit(np.pad(X, ((0, 0), (0, 1))), y.astype(int))
    grown = started(NOLANA(**options), "classes")
    ran(grown, X[:150], y[:150])
    grown.widen(4)
    scores = ran(grown, np.pad(X[150:], ((0, 0), (0, 1))), y[150:])
    whole = started(NOLANA(**options), "classes", width=4)
    np.testing.assert_array_equal(scores, ran(whole, np.pad(X, ((0, 0), (0, 1))), y)[150:])
    assert list(padded.classes_) == [0, 1, 2]  # found row by row
    assert np.isfinite(padded.decision_function(np.pad(X, ((0, 0), (0, 1))))).all()


# ---- epsilon="auto" ----


def test_auto_epsilon_starts_from_a_quantile_of_nearest_distances():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(50, 3))
    squares = ((points[:, None] - points[None]) ** 2).sum(2)
    np.fill_diagonal(squares, np.inf)
    start = Landmarks(KERNEL, points, 10).threshold("auto")[0]
    assert start == pytest.approx(np.quantile(squares.min(axis=1), 0.9))
    assert (
        Landmarks(KERNEL, np.concatenate([points, points[:10]]), 10).threshold("auto")[0] > 0
    )  # copies do not count
    assert Landmarks(KERNEL, np.zeros((5, 3)), 2).threshold("auto")[0] == 1.0
    assert Landmarks(KERNEL, points, 10).threshold(0.3) == (0.3, 0.0, 1.0, 1.0)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_auto_epsilon_moves_a_tenth_whatever_comes(scale):
    X, y = stream("regression", 4000)
    X[500:] *= scale
    learner = started(NOLANA(budget=40, rank=10, kernel=KERNEL, solver="scratch"), "regression")
    ran(learner, X[:2000], y[:2000])
    before = learner.n_moves
    ran(learner, X[2000:], y[2000:])
    assert 150 < learner.n_moves - before < 250
    squares = ((X[2000:, None] - learner.state()["points"][None]) ** 2).sum(2).min(axis=1)
    assert 0.8 < np.mean(squares < learner.epsilon_) < 0.97


def test_auto_epsilon_recovers_from_rows_that_equal_landmarks():
    X, y = stream("regression", 500)
    learner = started(NOLANA(budget=20, rank=5, kernel=KERNEL), "regression")
    ran(learner, X[:20], y[:20])
    start, landmarks = learner.epsilon_, learner.state()["points"]
    ran(learner, np.tile(landmarks, (300, 1)), np.zeros(6000))
    assert learner.n_moves == 0  # no row is away from the landmarks: the share of a tenth cannot be kept
    assert learner.epsilon_ == 1e-4 * start
    ran(learner, X[20:420], y[20:420])
    assert 200 < learner.n_moves < 300
    assert learner.epsilon_ > 0.3 * start


def test_equal_rows_are_no_trouble():
    learner = started(NOLANA(budget=5, rank=4, epsilon=0.0), "regression")
    X, y = np.ones((300, 3)), np.arange(300.0) % 2
    assert np.isfinite(ran(learner, X, y)).all()
    auto = started(NOLANA(budget=5, rank=4), "regression")
    ran(auto, X, y)
    assert auto.n_moves == 0
    ran(auto, X + 2, y)
    assert auto.n_moves > 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": "often"}, "epsilon must be a number >= 0 or 'auto'"),
        ({"solver": "svd"}, "solver must be one of 'auto', 'scratch', 'rank2', 'warm', 'complement'"),
        ({"iterations": 0}, "iterations must be"),
        ({"theta": -1}, "theta must be"),
        ({"rank": 201}, "rank must be a whole number >= 1 and <= 200"),
    ],
)
def test_wrong_parameters(wrong, message):
    with pytest.raises(ValueError, match=message):
        NOLANA(**wrong)


def corner_first(n=3000):
    """A stream whose first rows show only one corner of the inputs."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(150, 2)) * 0.2 + 3, rng.uniform(-4, 4, size=(n, 2))])
    return X, np.where(np.sin(X[:, 0]) > 0, 1.0, -1.0)


def test_adapting_helps_when_the_stream_starts_in_a_corner():
    X, y = corner_first()
    wrong = {}
    for epsilon in (np.inf, "auto"):
        learner = NOLANA(budget=60, rank=40, epsilon=epsilon, kernel=Gaussian(gamma=0.5)).start(2)
        wrong[epsilon] = np.mean((ran(learner, X, y)[1000:, 0] > 0) != (y[1000:] > 0))
    assert wrong["auto"] < 0.6 * wrong[np.inf]


# ---- the sketch alone ----


def test_sketch_follows_online_k_means():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    m, epsilon = 20, 0.4
    points, counts, moves = X[:m].copy(), np.ones(m), 0
    for x in X[m:]:
        squares = ((points - x) ** 2).sum(axis=1)
        q = int(np.argmin(squares))
        if squares[q] >= epsilon:
            points[q] = (counts[q] * points[q] + x) / (counts[q] + 1)
            counts[q] += 1
            moves += 1
    for solver in ("scratch", "rank2", "warm"):
        sketch = AdaptiveNystrom(m, epsilon=epsilon, solver=solver, kernel=KERNEL).fit(X)
        np.testing.assert_allclose(sketch.landmarks_, points, atol=1e-12)
        np.testing.assert_array_equal(sketch.counts_, counts)
        assert sketch.n_moves_ == moves > 20
    E = KERNEL(points)
    exact = KERNEL(X, points) @ np.linalg.pinv(E, hermitian=True) @ KERNEL(points, X)
    full = AdaptiveNystrom(m, rank=m, epsilon=epsilon, solver="scratch", kernel=KERNEL).fit(X)
    np.testing.assert_allclose(full.approximate(X), exact, atol=1e-7)


@pytest.mark.parametrize("solver", ["scratch", "rank2", "warm"])
def test_sketch_in_chunks_pickled_and_sparse(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[np.abs(X) < 0.3] = 0
    whole = AdaptiveNystrom(20, epsilon=0.3, solver=solver, kernel=KERNEL).fit(X)
    parts = AdaptiveNystrom(20, epsilon=0.3, solver=solver, kernel=KERNEL)
    for i in range(0, 200, 7):
        parts = pickle.loads(pickle.dumps(parts.partial_fit(X[i : i + 7])))
    np.testing.assert_array_equal(parts.transform(X), whole.transform(X))
    sparse = AdaptiveNystrom(20, epsilon=0.3, solver=solver, kernel=KERNEL).fit(scipy.sparse.csr_array(X))
    np.testing.assert_allclose(sparse.transform(scipy.sparse.csr_array(X)), whole.transform(X), atol=1e-6)
    assert whole.transform(X).shape == (200, 16)
    assert len(whole.get_feature_names_out()) == 16


def test_sketch_approximates_better_than_its_first_landmarks():
    X, _ = corner_first()
    kernel = Gaussian(gamma=0.5)
    errors = {
        e: AdaptiveNystrom(40, epsilon=e, kernel=kernel).fit(X).relative_error(X[-500:])
        for e in (np.inf, "auto")
    }
    assert errors["auto"] < 0.7 * errors[np.inf]


def test_sketch_says_when_there_is_no_map_yet():
    sketch = AdaptiveNystrom(20).fit(np.eye(5))
    with pytest.raises(ValueError, match="n_landmarks=20 rows make a map: 15 more"):
        sketch.transform(np.eye(5))
