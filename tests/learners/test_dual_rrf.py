"""DualSGD and RRF: against oracles, their limiting cases, and to the bit across chunks and saves."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse

from kernelstream import KernelClassifier
from kernelstream.kernels import Gaussian, Laplacian, Linear
from kernelstream.learners import FOGD, RRF, DualSGD
from kernelstream.rows import as_rows
from kernelstream.sketches.fourier import frequencies, spectral_draws
from oracles import kernels as oracle_kernels
from oracles.base import KernelLearner
from oracles.loss_learners import slopes
from oracles.losses import LOSSES
from oracles.nolana import RRF as OracleRRF
from oracles.nolana import DualSGD as OracleDualSGD

KERNEL = Gaussian(gamma=0.7)
TASKS = {"binary": (1, False), "classes": (3, False), "regression": (1, True)}
WEIGHT = np.tile([1.0, 0.5, 0.0, 2.0], 100)


def stream(task, n=400, width=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width))
    X[np.abs(X) < 0.2] = 0
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


def pairs_of(task):
    return [
        (task, loss) for loss in ("hinge", "logistic", "squared") if task != "regression" or loss == "squared"
    ]


class WeightedDualSGD(OracleDualSGD):
    """Where the slope has no bound, a row of weight w > 1 takes the step w / (lam t + w curvature)."""

    def learn(self, x, y, f, w):
        if self.delay > 0 and w > 1:  # the model divides by lam (t + delay), delay = curvature / lam
            t = self.t + 1
            w *= (t + self.delay) / (t + w * self.delay)
        super().learn(x, y, f, w)


CASES = [case for task in TASKS for case in pairs_of(task)]

# ---- DualSGD ----


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("task", "loss"), CASES)
@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_dualsgd_follows_the_oracle(kernel, task, loss, sparse):
    made, expected_kernel = {
        "gaussian": (Gaussian(gamma=0.7), oracle_kernels.gaussian(0.7)),
        "laplacian": (Laplacian(gamma=0.5), oracle_kernels.laplacian(0.5)),
    }[kernel]
    X, y = stream(task, 120, seed=1)  # seed 0 has two weights that are equal but for rounding
    outputs, regression = TASKS[task]
    W = frequencies(made, 3, 10, 5)
    expected = WeightedDualSGD(
        kernel=expected_kernel,
        W=W,
        outputs=outputs,
        budget=15,
        k=4,
        lam=0.1,
        delay=10.0 if loss == "squared" else 0.0,
        loss=LOSSES[loss],
        regression=regression,
    )
    learner = started(
        DualSGD(15, n_components=20, neighbours=4, lam=0.1, loss=loss, kernel=made, seed=5), task
    )
    rows = scipy.sparse.csr_array(X) if sparse else X
    scores = learner.run(as_rows(rows), y, WEIGHT[:120])
    np.testing.assert_allclose(scores, expected.run(X, y, WEIGHT[:120]), rtol=1e-7, atol=1e-8)
    state = learner.state()
    np.testing.assert_allclose(state["points"], expected.points)
    np.testing.assert_allclose(state["weights"], expected.a, atol=1e-8)
    np.testing.assert_allclose(state["gram"], made(state["points"]), atol=1e-12)
    assert learner.n_points == 15


class Pegasos(KernelLearner):
    """Kernel gradient descent with the step 1 / (lam t), no budget."""

    t = 0

    def learn(self, x, y, f, w):
        self.t += 1
        g = slopes(LOSSES["hinge"], f, y)
        self.a = self.a * (1 - 1 / self.t)
        if np.any(g != 0):
            self.append(x, -w * g / (0.01 * self.t))


@pytest.mark.parametrize("task", ["binary", "classes"])
def test_dualsgd_within_its_budget_is_kernel_gradient_descent(task):
    X, y = stream(task, 150)
    learner = started(DualSGD(150, n_components=20, lam=0.01, kernel=KERNEL), task)
    expected = Pegasos(kernel=oracle_kernels.gaussian(0.7), outputs=TASKS[task][0])
    np.testing.assert_allclose(learner.run(as_rows(X), y), expected.run(X, y), rtol=1e-9, atol=1e-9)
    assert not learner.state()["map_weights"].any()


def test_merging_with_all_neighbours_is_the_exact_projection():
    X, y = stream("binary", 60)
    learner = started(DualSGD(20, n_components=50, neighbours=20, lam=0.01, kernel=KERNEL), "binary")
    for t in range(60):
        before = learner.state()
        f = learner.run(as_rows(X[t : t + 1]), y[t : t + 1])
        after = learner.state()
        if len(before["points"]) < 20 or y[t] * f[0, 0] >= 1:
            continue
        points = np.vstack([before["points"], X[t]])
        a = np.append(before["weights"][:, 0], y[t])
        kept = after["points"]
        # of all functions over the points kept, the one closest to the function before, in the norm of the
        # kernel
        best = np.linalg.solve(KERNEL(kept), KERNEL(kept, points) @ a)
        np.testing.assert_allclose(after["weights"][:, 0], best, atol=1e-6)
    assert learner.state()["map_weights"].any()


def test_what_is_merged_keeps_the_function_if_the_features_are_many():
    X, y = stream("binary", 200)
    big = started(DualSGD(200, lam=0.01, kernel=KERNEL), "binary")
    big.run(as_rows(X), y)
    scores = big.score(as_rows(X))
    gaps = []
    for n in (100, 10_000):
        small = started(DualSGD(30, n_components=n, neighbours=5, lam=0.01, kernel=KERNEL), "binary")
        small.run(as_rows(X), y)
        gaps.append(np.abs(small.score(as_rows(X)) - scores).mean() / np.abs(scores).mean())
    assert gaps[1] < 0.35 * gaps[0]


def test_equal_points_are_merged_without_trouble():
    learner = started(DualSGD(5, n_components=20, neighbours=5, lam=0.01, kernel=KERNEL), "regression")
    X, y = np.tile([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], (100, 1)), np.tile([1.0, -1.0], 100)
    assert np.isfinite(learner.run(as_rows(X), y)).all()
    np.testing.assert_allclose(learner.score(as_rows(X[:2]))[:, 0], [1, -1], atol=0.2)


@pytest.mark.parametrize("neighbours", [10, 50])
def test_dualsgd_merges_as_well_in_single_precision(neighbours):
    """Shares of nearly dependent points would make weights that float32 cannot hold."""
    X = np.random.default_rng(1).normal(size=(4000, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    wrong = {}
    for dtype in (np.float64, np.float32):
        learner = DualSGD(50, n_components=20, neighbours=neighbours, kernel=Gaussian(gamma=0.1)).start(
            3, dtype=dtype
        )
        wrong[dtype] = np.mean((learner.run(as_rows(X, dtype), y)[:, 0] > 0) != (y > 0))
    assert wrong[np.float32] < wrong[np.float64] + 0.01


@pytest.mark.parametrize("loss", ["squared", "squared_hinge"])
@pytest.mark.parametrize("weight", [3.0, 10.0, 1e6])
def test_dualsgd_bears_large_sample_weights(loss, weight):
    X, y = stream("binary", 1000)
    learner = started(DualSGD(50, n_components=50, loss=loss, kernel=KERNEL), "binary")
    scores = learner.run(as_rows(X), y, np.full(1000, weight))
    assert np.abs(scores).max() < 20
    ones, none = (started(DualSGD(50, loss=loss, kernel=KERNEL), "binary") for _ in range(2))
    np.testing.assert_array_equal(
        ones.run(as_rows(X), y, np.ones(1000)), none.run(as_rows(X), y)
    )  # weight 1 is no weight
    one = started(DualSGD(50, loss="squared", kernel=KERNEL, lam=0.1), "binary")
    one.run(as_rows(X[:1]), y[:1], np.array([weight]))
    # the minimum of lam t / 2 |f|^2 + w (f(x) - y)^2 / 2 from f = 0, and never beyond the target
    np.testing.assert_allclose(one.score(as_rows(X[:1]))[0, 0], y[0] * weight / (0.1 + weight))


# ---- RRF ----


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("task", "loss"), CASES)
def test_rrf_follows_the_oracle_of_finite_differences(task, loss, sparse):
    X, y = stream(task, 100)
    outputs, regression = TASKS[task]
    expected = OracleRRF(
        e=spectral_draws(KERNEL, 3, 15, 3),
        g=np.full(3, np.sqrt(1.4)),
        outputs=outputs,
        eta=0.3,
        eta_g=0.05,
        lam=0.01,
        loss=LOSSES[loss],
        regression=regression,
    )
    learner = started(RRF(30, eta=0.3, scale_step=0.05, lam=0.01, loss=loss, kernel=KERNEL, seed=3), task)
    rows = scipy.sparse.csr_array(X) if sparse else X
    scores = learner.run(as_rows(rows), y, WEIGHT[:100])
    np.testing.assert_allclose(scores, expected.run(X, y, WEIGHT[:100]), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(learner.bandwidths, np.exp(-expected.log_g), rtol=1e-6)
    assert np.abs(learner.bandwidths * np.sqrt(1.4) - 1).max() > 0.01


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("task", TASKS)
def test_rrf_without_bandwidth_steps_is_fogd(task, dtype):
    X, y = stream(task)
    fogd = started(FOGD(60, eta=0.3, lam=0.01, seed=2), task, dtype=dtype)
    rrf = started(RRF(60, eta=0.3, lam=0.01, seed=2, scale_step=0.0), task, dtype=dtype)
    tolerance = 1e-9 if dtype == np.float64 else 1e-3
    np.testing.assert_allclose(rrf.run(as_rows(X, dtype), y), fogd.run(as_rows(X, dtype), y), atol=tolerance)


def test_rrf_finds_out_which_inputs_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4))
    y = np.where(np.sin(3 * X[:, 0]) > 0, 1.0, -1.0)
    wrong = {}
    for step in (0.0, 0.02):
        learner = RRF(200, eta=0.5, scale_step=step, loss="logistic").start(4)
        scores = learner.run(as_rows(X), y)[:, 0]
        wrong[step] = np.mean((scores[10_000:] > 0) != (y[10_000:] > 0))
    assert learner.bandwidths[0] < 0.5 * learner.bandwidths[1:].min()
    assert wrong[0.02] < 0.5 * wrong[0.0]


# ---- both ----

LEARNERS = {
    "dual": lambda: DualSGD(20, n_components=30, neighbours=4, lam=0.05, loss="logistic"),
    "rrf": lambda: RRF(30, scale_step=0.05, loss="logistic"),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", LEARNERS)
def test_chunks_saves_and_pickles_change_no_bit(name, dtype, sparse):
    X, y = stream("classes")
    rows = scipy.sparse.csr_array(X) if sparse else X

    def make():
        return started(LEARNERS[name](), "classes", dtype=dtype)

    whole = make()
    expected = whole.run(as_rows(rows, dtype), y, WEIGHT)
    for chunk in (1, 17, 64):
        learner = make()
        parts = []
        for i in range(0, len(y), chunk):
            s = slice(i, i + chunk)
            parts.append(learner.run(as_rows(rows[s], dtype), y[s], WEIGHT[s]))
            learner.score(as_rows(rows[:40], dtype))
            learner = make().restore(learner.state()) if chunk == 17 else pickle.loads(pickle.dumps(learner))
        np.testing.assert_array_equal(np.concatenate(parts), expected)
        for key, array in whole.state().items():
            np.testing.assert_array_equal(learner.state()[key], array, err_msg=key)


@pytest.mark.parametrize("name", LEARNERS)
def test_memory_is_constant_for_ever(name):
    rng = np.random.default_rng(0)
    learner = LEARNERS[name]().start(2)
    sizes = set()
    for _ in range(20):
        X = rng.normal(size=(5000, 2))
        assert np.isfinite(learner.run(as_rows(X), np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0))).all()
        sizes.add(learner.nbytes)
    assert len(sizes) == 1


@pytest.mark.parametrize("name", LEARNERS)
def test_new_features_and_new_classes(name):
    X, y = stream("classes", 300)
    wide = np.pad(X, ((0, 0), (0, 1)))
    wide[150:, 3] = np.sin(np.arange(150))
    learner = LEARNERS[name]().set_params(kernel=KERNEL)
    whole = started(pickle.loads(pickle.dumps(learner)), "classes", width=4)
    grown = started(learner, "classes")
    expected = whole.run(as_rows(wide), y)
    first = grown.run(as_rows(X[:150]), y[:150])
    grown.widen(4)
    second = grown.run(as_rows(wide[150:]), y[150:])
    np.testing.assert_allclose(np.concatenate([first, second]), expected, atol=1e-12)
    found = KernelClassifier(LEARNERS[name]()).partial_fit(X, y.astype(int))
    assert list(found.classes_) == [0, 1, 2]
    assert np.mean(found.predict(X) == y) > 0.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DualSGD(0), "budget must be"),
        (lambda: DualSGD(n_components=3), "n_components must be even"),
        (lambda: DualSGD(neighbours=-1), "neighbours must be"),
        (lambda: DualSGD(lam=0), "lam must be a finite number > 0"),
        (lambda: DualSGD(kernel=Linear()), "DualSGD needs a kernel with random frequencies"),
        (lambda: RRF(n_components=3), "n_components must be even"),
        (lambda: RRF(scale_step=-1), "scale_step must be"),
        (lambda: RRF(kernel=Laplacian()), "RRF learns the bandwidths of a Gaussian kernel"),
        (lambda: RRF(eta=2, lam=1), "eta \\* lam must be below 1"),
    ],
)
def test_wrong_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()
