"""Every learner's scores are those of its oracle in tests/oracles, number by number.

Learners make discrete decisions (is the margin <= 0, which point goes?). Where a decision hangs on a tie,
rounding alone decides and two right implementations part. Streams of continuous data have no ties and are
compared to the last row. Streams with duplicates may have some: they are compared up to the first row at
which the oracle itself answers differently when every number of the input is moved by a rounding error
(`settled_rows`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import event, given, settings
from hypothesis import strategies as st

from kernelstream import CapacityError, Gaussian, Laplacian, Linear, Polynomial, learners
from kernelstream.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Squared, SquaredHinge
from kernelstream.rows import as_rows
from oracles import kernels as oracle_kernels
from oracles import learners as oracles
from oracles.losses import make_losses


def rational(X, Y):
    """A kernel that the core does not have."""
    return 1.0 / (1.0 + ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2))


KERNELS = {
    "gaussian": (Gaussian(gamma=0.3), oracle_kernels.gaussian(0.3)),
    "laplacian": (Laplacian(gamma=0.2), oracle_kernels.laplacian(0.2)),
    "polynomial": (
        Polynomial(degree=2, gamma=0.3, coef0=0.5),
        oracle_kernels.polynomial(0.3, 0.5, 2),
    ),
    "linear": (Linear(), oracle_kernels.linear()),
    "callable": (rational, rational),
}

EPSILON, DELTA = 0.2, 0.7
ORACLE_LOSSES = make_losses(epsilon=EPSILON, delta=DELTA)
CLASSIFICATION = {
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
    "logistic": Logistic(),
    "squared": Squared(),
}
REGRESSION = {
    "squared": Squared(),
    "epsilon_insensitive": EpsilonInsensitive(EPSILON),
    "huber": Huber(DELTA),
}
LOSSES = CLASSIFICATION | REGRESSION

STEP = {"eta": 0.3, "lam": 0.05}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("KernelPerceptron", {}),
    ("RBP", {"budget": 7, "seed": 5}),
    ("Forgetron", {"budget": 7}),
    ("Projectron", {"budget": 7, "eta": 0.0}),
    ("Projectron", {"budget": 7, "eta": 0.6}),
    ("ProjectronPP", {"budget": 7, "eta": 0.6}),
    *[
        (name, {"variant": variant, "C": 0.4, "epsilon": 0.1})
        for name in ("KernelPA", "LinearPA")
        for variant in ("PA", "PA-I", "PA-II")
    ],
    ("BPAS", {"budget": 7, "C": 0.4}),
    ("BPAS", {"budget": 7, "C": 50.0}),
    *[("KOGD", STEP | {"loss": loss}) for loss in LOSSES],
    *[("TruncatedKOGD", STEP | {"budget": 7, "loss": loss}) for loss in LOSSES],
    *[
        ("BOGD", STEP | {"budget": 7, "removal": removal, "clip": clip, "loss": loss, "seed": 9})
        for removal, clip, loss in [
            ("uniform", 1.0, "hinge"),
            ("uniform", np.inf, "logistic"),
            ("uniform", 0.5, "squared"),
            ("nonuniform", 1.0, "hinge"),
            ("nonuniform", np.inf, "squared_hinge"),
            ("nonuniform", 0.5, "huber"),
            ("smallest", 1.0, "logistic"),
            ("smallest", 1.0, "squared_hinge"),
            ("smallest", 1.0, "squared"),
        ]
    ],
    *[("FOGD", STEP | {"n_components": 26, "loss": loss, "seed": 2}) for loss in LOSSES],
    *[("NOGD", STEP | {"budget": 9, "rank": 4, "loss": loss}) for loss in LOSSES],
]
OUTPUTS = {"binary": 1, "three": 3, "five": 5, "regression": 1}


def tasks_of(name, options):
    """What a learner with these options can do."""
    regression = (
        getattr(learners, name).regression
        and options.get("loss", "squared") not in CLASSIFICATION.keys() - REGRESSION
    )
    classification = options.get("loss", "squared") not in REGRESSION.keys() - CLASSIFICATION
    return ["binary", "three", "five"] * classification + ["regression"] * regression


def label(value):
    return ",".join(str(v) for v in value.values()) or "-" if isinstance(value, dict) else None


each_variant = pytest.mark.parametrize(("name", "options"), VARIANTS, ids=label)
each_case = pytest.mark.parametrize(
    ("name", "options", "task"), [(n, o, t) for n, o in VARIANTS for t in tasks_of(n, o)], ids=label
)


def start(name, options, kernel, task, width, dtype=np.float64):
    options = dict(options)
    if "loss" in options:
        options["loss"] = LOSSES[options["loss"]]
    if name != "LinearPA":
        options["kernel"] = KERNELS[kernel][0]
    learner = getattr(learners, name)(**options)
    return learner.start(width, OUTPUTS[task], regression=task == "regression", dtype=dtype)


def oracle(name, options, kernel, task, started):
    options = {k: v for k, v in options.items() if k not in ("n_components",)}
    if "loss" in options:
        options["loss"] = ORACLE_LOSSES[options["loss"]]
    if name == "FOGD":
        options["W"] = started.frequencies()
        del options["seed"]
    elif name != "LinearPA":
        options["kernel"] = KERNELS[kernel][1]
    return getattr(oracles, name)(**options, outputs=OUTPUTS[task], regression=task == "regression")


def stream(task, n=50, d=5, seed=0, density=1.0):
    """Rows, targets and weights (some zero) with something to learn in them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if density < 1:
        X *= rng.random((n, d)) < density
    signal = X[:, 0] + X[:, 1 % d] ** 2 + 0.3 * rng.normal(size=n) - 1
    if task == "regression":
        y = signal
    elif task == "binary":
        y = np.where(signal > 0, 1.0, -1.0)
    else:
        edges = np.quantile(signal, np.linspace(0, 1, OUTPUTS[task] + 1)[1:-1])
        y = np.digitize(signal, edges).astype(float)
    w = rng.uniform(0.2, 2.0, n) * (rng.random(n) > 0.15)
    return X, y, w


def rows_of(X, storage, dtype=np.float64):
    return as_rows(scipy.sparse.csr_array(X) if storage == "csr" else X, dtype)


def settled_rows(make, X, y, w, move):
    """How many rows the oracle answers alike when the input moves by `move` (relative), and its scores."""
    want = make().run(X, y, w)
    rng = np.random.default_rng(1)
    scale = max(1.0, np.abs(want).max(initial=0))
    good = len(X)
    for _ in range(4):
        moved = make().run(X * (1 + move * rng.uniform(-1, 1, X.shape)), y, w)
        apart = np.flatnonzero(np.abs(moved - want).max(axis=1, initial=0) > 1e5 * move * scale)
        # a score, or the difference of two, that is zero but for rounding: its sign decides and means nothing
        others = [np.roll(moved, k, axis=1) for k in range(moved.shape[1])]
        others[0] = np.zeros_like(moved)
        small = [(moved != o) & (np.abs(moved - o) < 30 * move * scale) for o in others]
        ties = np.flatnonzero(np.any(small, axis=(0, 2)))
        good = min([good, *apart, *(ties + 1)])
    return good, want


# ---- continuous data: every row, tightly ----


@pytest.mark.parametrize("storage", ["dense", "csr"])
@each_case
def test_scores_are_the_oracles(name, options, task, storage):
    X, y, w = stream(task, density=0.6 if storage == "csr" else 1.0)
    learner = start(name, options, "gaussian", task, X.shape[1])
    reference = oracle(name, options, "gaussian", task, learner)
    for weights in (None, w):  # the second time with weights, on the model of the first
        want = reference.run(X, y, weights)
        got = learner.run(rows_of(X, storage), y, weights)
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9)
    X_new, _, _ = stream(task, n=20, seed=1)
    np.testing.assert_allclose(learner.score(as_rows(X_new)), reference.score(X_new), rtol=1e-8, atol=1e-9)
    assert np.abs(want).max() > 0.01


def kernels_of(name):
    """LinearPA has no kernel; FOGD takes shift-invariant ones only."""
    return {"LinearPA": [], "FOGD": ["gaussian", "laplacian"]}.get(name, sorted(KERNELS))


@pytest.mark.parametrize(
    ("name", "options", "kernel"),
    [(n, o, k) for n, o in VARIANTS for k in kernels_of(n) if k != "gaussian"],
    ids=label,
)
def test_every_kernel(name, options, kernel):
    if name.startswith("KOGD") or name == "TruncatedKOGD":
        options = options | {"eta": 0.02}  # unbounded kernels: a larger step diverges
    for task in tasks_of(name, options):
        for storage in ("dense", "csr"):
            X, y, w = stream(task, n=40, density=0.7, seed=3)
            learner = start(name, options, kernel, task, X.shape[1])
            want = oracle(name, options, kernel, task, learner).run(X, y, w)
            got = learner.run(rows_of(X, storage), y, w)
            # unbounded kernels and steps of 0.3 amplify: errors are measured against the largest score so far
            scale = np.maximum.accumulate(np.abs(want).max(axis=1, keepdims=True))
            assert (np.abs(got - want) <= 1e-8 * (scale + 0.1)).all(), (task, storage)


@each_case
def test_single_precision(name, options, task):
    for storage in ("dense", "csr"):
        X, y, w = stream(task, density=0.7, seed=7)
        X = X.astype(np.float32).astype(float)
        learner = start(name, options, "gaussian", task, X.shape[1], np.float32)
        good, want = settled_rows(lambda: oracle(name, options, "gaussian", task, learner), X, y, w, 1e-7)  # noqa: B023
        got = learner.run(rows_of(X, storage, np.float32), y, w)
        assert learner.dtype == np.float32
        assert all(
            a.dtype == np.float32
            for n, a in learner.state().items()
            if n in ("points", "weights", "map_weights")
        )
        assert good > 30
        np.testing.assert_allclose(got[:good], want[:good], rtol=2e-4, atol=2e-4)


# ---- any shapes, duplicates, constant rows, budgets above and below the stream ----


@st.composite
def streams(draw, task):
    n, d = draw(st.integers(1, 30)), draw(st.integers(1, 19))
    X, y, w = stream(
        task, n, d, seed=draw(st.integers(0, 2**16)), density=draw(st.sampled_from([0.3, 0.8, 1.0]))
    )
    if task not in (
        "binary",
        "regression",
    ):  # quantiles of few rows may leave classes out: fine, but mix them
        y = np.random.default_rng(n).permutation(y)
    for _ in range(draw(st.integers(0, 4))):  # duplicates, with the same label or another
        i, j = draw(st.integers(0, n - 1)), draw(st.integers(0, n - 1))
        X[i] = X[j]
    for _ in range(draw(st.integers(0, 2))):  # constant rows, zero included
        X[draw(st.integers(0, n - 1))] = draw(st.sampled_from([0.0, 1.0, -0.5]))
    return X, y, w if draw(st.booleans()) else None


@settings(max_examples=12, derandomize=True)
@given(data=st.data())
@each_variant
def test_any_stream(name, options, data):
    task = data.draw(st.sampled_from(tasks_of(name, options)))
    kernel = data.draw(st.sampled_from(kernels_of(name) or ["linear"]))
    if "budget" in options:
        budget = data.draw(st.sampled_from([2, 3, 8, 9, 17, 50]))
        options = options | {"budget": budget}
        if "rank" in options:
            options["rank"] = data.draw(st.integers(1, budget))
    X, y, w = data.draw(streams(task))
    storage = data.draw(st.sampled_from(["dense", "csr"]))
    learner = start(name, options, kernel, task, X.shape[1])
    good, want = settled_rows(lambda: oracle(name, options, kernel, task, learner), X, y, w, 1e-13)
    event("no tie" if good == len(X) else "tie")
    got = learner.run(rows_of(X, storage), y, w)
    # Projectron accepts points down to delta^2 = 1e-10 k_tt, so K may have a condition of 1e10 and more, of which
    # the oracle's solve and the core's running inverse each lose their part
    tolerance = 1e-4 if name.startswith("Projectron") else 1e-7
    scale = max(1.0, np.abs(want).max(initial=0))
    np.testing.assert_allclose(got[:good], want[:good], rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", ["RBP", "Forgetron", "Projectron", "BPAS", "TruncatedKOGD", "NOGD"])
def test_budget_of_one(name):
    options: dict[str, Any] = {"budget": 1}
    if name in ("TruncatedKOGD", "NOGD"):
        options |= STEP | {"loss": "hinge"} | ({"rank": 1} if name == "NOGD" else {})
    options |= {"RBP": {"seed": 0}, "BPAS": {"C": 1.0}, "Projectron": {"eta": 0.1}}.get(name, {})
    X, y, w = stream("three")
    learner = start(name, options, "gaussian", "three", X.shape[1])
    want = oracle(name, options, "gaussian", "three", learner).run(X, y, w)
    np.testing.assert_allclose(learner.run(as_rows(X), y, w), want, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("budget", [4, 60])
@pytest.mark.parametrize("task", ["binary", "three"])
def test_margin_steps_of_projectron_pp(task, budget):
    """Two columns, so that stored points nearly span the rest: every term of the step takes its turn."""
    X, y, w = stream(task, n=120, d=2, seed=5)
    learner = start("ProjectronPP", {"budget": budget, "eta": 0.5}, "gaussian", task, 2)
    reference = oracle("ProjectronPP", {"budget": budget, "eta": 0.5}, "gaussian", task, learner)
    want = reference.run(X, y, w)
    np.testing.assert_allclose(learner.run(as_rows(X), y, w), want, rtol=1e-7, atol=1e-8)
    assert (len(reference.points) == budget) == (budget == 4)
    without = oracle("Projectron", {"budget": budget, "eta": 0.5}, "gaussian", task, learner).run(X, y, w)
    assert np.abs(want - without).max() > 0.1


# ---- classes that arrive late ----


def mixed(reference, mix):
    """The oracle, its outputs f replaced by f @ mix."""
    for what in ("a", "weights"):
        if getattr(reference, what, None) is not None:
            setattr(reference, what, getattr(reference, what) @ mix)
    reference.outputs = mix.shape[1]
    return reference


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
@pytest.mark.parametrize(("name", "options"), [v for v in VARIANTS if "three" in tasks_of(*v)], ids=label)
def test_classes_that_arrive_late(name, options, order):
    """One, two, then three classes: the columns of docs/conventions.md, mixed by hand in the oracle."""
    from kernelstream import KernelClassifier

    X, _, _ = stream("three", n=61, d=4, seed=11)
    rng = np.random.default_rng(4)
    y = np.concatenate(
        [[order[0]] * 5, rng.permuted(np.repeat(order[:2], 10)), rng.permuted(np.repeat(order, 12))]
    )
    second = int(np.argmax(y != order[0]))
    third = int(np.argmax(y == order[2]))

    model = KernelClassifier(start(name, options, "gaussian", "binary", 4))
    model.partial_fit(X, y)

    started = start(name, options, "gaussian", "binary", 4)
    reference = oracle(name, options, "gaussian", "binary", started)
    reference.run(X[:second], np.ones(second))
    if order[0] < order[1]:
        mixed(reference, np.array([[-1.0]]))
    reference.run(X[second:third], np.where(y[second:third] == max(order[:2]), 1.0, -1.0))
    share = started.pair_share
    mix = np.zeros((1, 3))
    mix[0, min(order[:2])], mix[0, max(order[:2])] = -share, share
    mixed(reference, mix)
    reference.run(X[third:], y[third:].astype(float))
    np.testing.assert_allclose(model.decision_function(X), reference.score(X), rtol=1e-8, atol=1e-9)


# ---- limits ----


@pytest.mark.parametrize(
    ("name", "options"),
    [("KernelPerceptron", {}), ("KernelPA", {"variant": "PA"}), ("KOGD", STEP | {"loss": "hinge"})],
)
def test_the_rows_before_a_full_store_are_learnt(name, options):
    X, y, _ = stream("binary")
    learner = start(name, options | {"max_size": 9}, "gaussian", "binary", 5)
    with pytest.raises(CapacityError, match="max_size=9") as error:
        learner.run(as_rows(X), y)
    row = int(str(error.value).split("row ")[1].split()[0])
    reference = oracle(name, options, "gaussian", "binary", learner)
    reference.run(X[:row], y[:row])
    assert len(reference.points) == 9
    np.testing.assert_allclose(learner.score(as_rows(X)), reference.score(X), rtol=1e-8, atol=1e-9)


def test_every_oracle_is_used():
    assert {name for name, _ in VARIANTS} == set(oracles.__all__) <= set(learners.registered(plugins=False))
