"""OKS-SIL, OKL-GD, OKS, Proj-KA and kernel alignment, against their oracles and their limit cases."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import minimize

from kernelstream import CapacityError, KernelClassifier, KernelRegressor
from kernelstream.alignment import CANDIDATES, kernel_alignment, select_bandwidth
from kernelstream.kernels import Gaussian, Laplacian
from kernelstream.learners import KOGD, OKLGD, OKS, OKSSIL, Projectron, ProjKA
from kernelstream.learners.oks import BANDWIDTHS
from kernelstream.rows import as_rows
from oracles import oks as oracle
from oracles.kernels import gaussian
from oracles.losses import make_losses

WIDE = (2.0**-12, 2.0**12)
SIL: dict[str, Any] = {
    "budget": 12,
    "eta": 0.3,
    "rho": 0.5,
    "rho_decay": 0.0,
    "nu": 0.4,
    "samples": 3,
    "gamma": 0.5,
    "seed": 7,
}


def stream(task: str = "binary", n: int = 150, d: int = 4, seed: int = 0) -> tuple[Any, Any]:
    """Rows with some zeros, and targets as learners see them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.8)
    signal = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    if task == "regression":
        return X, signal
    if task == "classes":
        return X, np.digitize(signal, [-0.3, 0.3]).astype(float)
    return X, np.where(signal > 0, 1.0, -1.0)


def start(learner: Any, X: Any, task: str, dtype: Any = np.float64) -> Any:
    return learner.start(
        X.shape[1], 3 if task == "classes" else 1, regression=task == "regression", dtype=dtype
    )


def default_loss(task: str) -> Any:
    return make_losses()["squared" if task == "regression" else "hinge"]


def sil_oracle(learner: OKSSIL, d: int, task: str, loss: Any = None) -> oracle.OKSSIL:
    return oracle.OKSSIL(
        outputs=3 if task == "classes" else 1,
        budget=learner.budget,
        eta=learner.eta,
        rho=learner.rho,
        decay=learner.rho_decay,
        nu=learner.nu,
        s=learner.samples,
        gamma=np.full(d if learner.anisotropic else 1, learner.gamma),
        interval=learner._interval(),
        loss=default_loss(task) if loss is None else loss,
        seed=learner.seed,
        regression=task == "regression",
    )


# ---- the oracles' own mathematics ----


@pytest.mark.parametrize("gamma", [np.array([0.7]), np.array([0.7, 0.1, 1.3, 0.4])])
def test_kernel_gradient_is_the_finite_difference(gamma: Any) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        x, z = rng.normal(size=(2, 4))
        exact = oracle.gradient(gamma, x, z)
        for e in range(len(gamma)):
            h = np.zeros(len(gamma))
            h[e] = 1e-6
            difference = (oracle.value(gamma + h, x, z) - oracle.value(gamma - h, x, z)) / 2e-6
            assert exact[e] == pytest.approx(difference, abs=1e-9)


# ---- OKS-SIL ----


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("anisotropic", [False, True])
@pytest.mark.parametrize("task", ["binary", "classes", "regression"])
def test_okssil_follows_the_oracle(task: str, anisotropic: bool, sparse: bool) -> None:
    X, y = stream(task)
    w = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0], len(X))
    learner = start(OKSSIL(**SIL, anisotropic=anisotropic), X, task)
    slow = sil_oracle(learner, X.shape[1], task)
    scores = learner.run(as_rows(scipy.sparse.csr_matrix(X) if sparse else X), y, w)
    np.testing.assert_allclose(scores, slow.run(X, y, w), atol=1e-9)
    state = learner.state()
    np.testing.assert_allclose(state["points"], slow.points, atol=0)
    np.testing.assert_allclose(state["weights"], slow.w, atol=1e-9)
    np.testing.assert_allclose(learner.gamma_, slow.gamma if anisotropic else slow.gamma[0], rtol=1e-9)
    assert min(slow.replaced, slow.compensated) > 3
    assert np.all(slow.gamma != 0.5)
    Z = np.random.default_rng(3).normal(size=(20, X.shape[1]))
    np.testing.assert_allclose(learner.score(as_rows(Z)), slow.score(Z), atol=1e-9)


@pytest.mark.parametrize("anisotropic", [False, True])
@pytest.mark.parametrize("task", ["binary", "classes", "regression"])
def test_okssil_with_steps_in_log_gamma(task: str, anisotropic: bool) -> None:
    X, y = stream(task)
    options = {key: SIL[key] for key in SIL if key not in ("rho", "rho_decay")} | {"scale_step": 2.0}
    learner = start(OKSSIL(**options, anisotropic=anisotropic), X, task)
    slow = oracle.OKSSIL(
        outputs=3 if task == "classes" else 1, budget=12, eta=0.3, rho=2.0, decay=0.5, nu=0.4, s=3,
        gamma=np.full(X.shape[1] if anisotropic else 1, 0.5), interval=(0.5 * 2.0**-12, 0.5 * 2.0**12),
        logarithm=True, loss=default_loss(task), seed=7, regression=task == "regression",
    )  # fmt: skip
    np.testing.assert_allclose(learner.run(as_rows(X), y), slow.run(X, y), atol=1e-9)
    np.testing.assert_allclose(learner.gamma_, slow.gamma if anisotropic else slow.gamma[0], rtol=1e-9)
    assert np.all(slow.gamma != 0.5)


def test_oklgd_with_steps_in_log_gamma() -> None:
    X, y = stream()
    learner = start(OKLGD(eta=0.3, scale_step=3.0, gamma=0.5), X, "binary")
    slow = oracle.OKLGD(
        outputs=1,
        eta=0.3,
        rho=3.0,
        decay=0.5,
        gamma=0.5,
        interval=WIDE,
        logarithm=True,
        loss=default_loss("binary"),
    )
    np.testing.assert_allclose(learner.run(as_rows(X), y), slow.run(X, y), atol=1e-9)
    assert learner.gamma_ == pytest.approx(slow.gamma) != 0.5


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
@pytest.mark.parametrize(
    "make", [OKSSIL, lambda: OKSSIL(anisotropic=True), OKLGD], ids=["OKSSIL", "anisotropic", "OKLGD"]
)
def test_the_unit_of_the_features_changes_no_bit(make: Any, unit: float) -> None:
    X, y = stream(n=400)
    scores = [start(make(), X, "binary").run(as_rows(X * factor), y)[2:] for factor in (1.0, unit)]
    np.testing.assert_array_equal(*scores)  # from the third row on: two rows are needed for a median distance
    papers = [start(OKSSIL(rho=1.0), X, "binary").run(as_rows(X * factor), y) for factor in (1.0, unit)]
    assert not np.array_equal(*papers)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "squared"])
def test_okssil_with_other_losses(loss: str) -> None:
    X, y = stream()
    learner = start(OKSSIL(**SIL, loss=loss), X, "binary")
    slow = sil_oracle(learner, X.shape[1], "binary", make_losses()[loss])
    np.testing.assert_allclose(learner.run(as_rows(X), y), slow.run(X, y), atol=1e-8)


@pytest.mark.parametrize("decay", [0.5, 1.0])
def test_okssil_with_a_falling_kernel_step(decay: float) -> None:
    X, y = stream()
    learner = start(OKSSIL(**SIL | {"rho_decay": decay, "rho": 2.0}), X, "binary")
    slow = sil_oracle(learner, X.shape[1], "binary")
    np.testing.assert_allclose(learner.run(as_rows(X), y), slow.run(X, y), atol=1e-9)


@pytest.mark.parametrize("anisotropic", [False, True])
def test_okssil_in_single_precision(anisotropic: bool) -> None:
    X, y = stream(n=60)
    X = X.astype(np.float32)
    learner = start(OKSSIL(**SIL, anisotropic=anisotropic), X, "binary", np.float32)
    slow = sil_oracle(learner, X.shape[1], "binary")
    np.testing.assert_allclose(learner.run(as_rows(X), y), slow.run(X, y), atol=1e-4)


@pytest.mark.parametrize("anisotropic", [False, True])
@pytest.mark.parametrize("task", ["binary", "classes", "regression"])
def test_kernel_step_of_okssil_is_the_gradient_of_its_loss(task: str, anisotropic: bool) -> None:
    """By central differences of l(f^w(x_t)), f^w read from the learner's own state after each round."""
    X, y = stream(task, n=60)
    rho = 1e-3
    learner = start(OKSSIL(**SIL | {"rho": rho}, anisotropic=anisotropic), X, task)
    loss = default_loss(task)
    checked = 0
    for t in range(len(X)):
        before, old = np.atleast_1d(learner.gamma_), learner.state()
        learner.run(as_rows(X[t : t + 1]), y[t : t + 1])
        state = learner.state()
        if len(old["points"]) == len(state["points"]) and np.array_equal(old["points"], state["points"]):
            assert np.array_equal(
                before, np.atleast_1d(learner.gamma_)
            )  # the buffer stayed: so does the kernel
            continue

        def sketched_loss(gamma: Any, t: int = t, state: Any = state) -> float:
            k = np.array([oracle.value(gamma, X[t], z) for z in state["points"]])
            f = k @ state["weights"]
            targets = oracle.column_targets(y[t], len(f))
            return sum(loss.value(float(a), float(b)) for a, b in zip(f, targets, strict=True))

        for e in range(len(before)):
            h = np.zeros(len(before))
            h[e] = 1e-6
            difference = (sketched_loss(before + h) - sketched_loss(before - h)) / 2e-6
            assert (before - np.atleast_1d(learner.gamma_))[e] / rho == pytest.approx(difference, abs=1e-6)
            checked += difference != 0
    assert checked > 10


def full_buffer(samples: int, nu: float, n: int = 15, **more: Any) -> tuple[OKSSIL, Any]:
    """A learner whose buffer is just full, its kernel fixed, and rows to go on with."""
    X, y = stream(n=200)
    learner = start(
        OKSSIL(**SIL | {"budget": n, "samples": samples, "nu": nu, "rho": 0.0} | more), X, "binary"
    )
    t = 0
    while learner.n_points < n:
        learner.run(as_rows(X[t : t + 1]), y[t : t + 1])
        t += 1
    return learner, (X[t:], y[t:])


@pytest.mark.parametrize("duplicates", [False, True])
def test_compensation_with_all_points_sampled_is_the_exact_projection(duplicates: bool) -> None:
    """s = B: the step goes to its projection on the span of the buffer, also with repeated points in it."""
    learner, (X, y) = full_buffer(samples=15, nu=np.inf)
    if duplicates:
        state = learner.state()
        state["points"][5:10] = state["points"][:5]
        learner.restore(state)
    moved = 0
    for t in range(40):
        before = learner.state()
        f = learner.run(as_rows(X[t : t + 1]), y[t : t + 1])[0, 0]
        after = learner.state()
        K = gaussian(0.5)(before["points"], before["points"])
        step = -learner.eta * make_losses()["hinge"].slope(f, y[t])
        least_squares = np.linalg.lstsq(
            K, gaussian(0.5)(before["points"], X[t : t + 1])[:, 0] * step, rcond=1e-10
        )[0]
        np.testing.assert_allclose((after["weights"] - before["weights"])[:, 0], least_squares, atol=1e-6)
        # what is left of the step is orthogonal to every stored point
        left = step * gaussian(0.5)(before["points"], X[t : t + 1]) - K @ (
            after["weights"] - before["weights"]
        )
        assert np.abs(left).max() < 1e-8
        moved += step != 0
    assert moved > 10


@pytest.mark.parametrize("samples", [1, 2, 3, 6])
def test_rld_residual_against_brute_force(samples: int) -> None:
    """Just below the brute-force residual nu lets the point in, just above it does not."""
    base, (X, y) = full_buffer(samples=samples, nu=0.5)
    state = base.state()
    seen = []
    for t in range(25):
        slow = sil_oracle(base, X.shape[1], "binary")
        slow.points, slow.w = list(state["points"]), list(state["weights"])
        slots, _, _ = slow.rld(X[t])
        near = np.array(state["points"])[slots]
        K, psi = gaussian(0.5)(near, near), gaussian(0.5)(near, X[t : t + 1])[:, 0]

        def distance(a: Any, K: Any = K, psi: Any = psi) -> float:
            return float(1 - 2 * a @ psi + a @ K @ a)

        delta = minimize(distance, np.zeros(samples), tol=1e-14).fun
        for nu, enters in ((delta - 1e-6, True), (delta + 1e-6, False)):
            learner = OKSSIL(**base.get_params(deep=False) | {"nu": max(nu, 0.0)}).restore(state)
            f = learner.score(as_rows(X[t : t + 1]))[0, 0]
            learner.run(as_rows(X[t : t + 1]), y[t : t + 1])
            if y[t] * f < 1:
                entered = not np.array_equal(learner.state()["points"], state["points"])
                assert entered == enters
                seen.append(entered)
    assert len(seen) > 10


def test_sampling_is_in_proportion_to_the_kernel() -> None:
    """Over seeds, the first slot to be compensated (s = 1) follows k(x, x_j) / sum."""
    base, (X, _) = full_buffer(samples=1, nu=np.inf, n=6)
    state = base.state()
    k = gaussian(0.5)(state["points"], X[:1])[:, 0]
    counts = np.zeros(6)
    trials = 3000
    y = -np.sign(base.score(as_rows(X[:1])))[:, 0]  # a mistake, so that there is a step
    for seed in range(trials):
        learner = OKSSIL(**base.get_params(deep=False) | {"seed": seed}).start(X.shape[1])
        learner.restore(state | {"random": learner.state()["random"]})
        learner.run(as_rows(X[:1]), y)
        counts += (learner.state()["weights"] != state["weights"])[:, 0]
    assert counts.sum() == trials
    p = k / k.sum()
    assert np.all(np.abs(counts / trials - p) < 4.5 * np.sqrt(p * (1 - p) / trials))


@pytest.mark.parametrize("anisotropic", [False, True])
@pytest.mark.parametrize("interval", [(0.4, 0.6), (0.5, 0.5), WIDE])
def test_gamma_stays_in_its_interval(interval: tuple[float, float], anisotropic: bool) -> None:
    X, y = stream(n=300)
    learner = start(OKSSIL(**SIL | {"rho": 50.0}, interval=interval, anisotropic=anisotropic), X, "binary")
    seen = []
    for t in range(len(X)):
        learner.run(as_rows(X[t : t + 1]), y[t : t + 1])
        seen.append(np.copy(learner.gamma_))
    assert np.min(seen) >= interval[0]
    assert np.max(seen) <= interval[1]
    if interval == (0.4, 0.6):  # and it does reach the ends
        assert np.min(seen) == 0.4
        assert np.max(seen) == 0.6


def test_okssil_never_replaces_with_a_large_nu() -> None:
    learner, (X, y) = full_buffer(samples=3, nu=1.0, rho=1.0)
    points, gamma = learner.state()["points"], learner.gamma_
    learner.run(as_rows(X), y)
    assert np.array_equal(points, learner.state()["points"])
    assert learner.gamma_ == gamma


@pytest.mark.parametrize("task", ["binary", "classes", "regression"])
def test_okssil_with_room_and_a_fixed_kernel_is_kogd(task: str) -> None:
    X, y = stream(task)
    learner = start(OKSSIL(**SIL | {"rho": 0.0, "budget": 200}), X, task)
    kogd = start(KOGD(eta=0.3, kernel=Gaussian(gamma=0.5)), X, task)
    assert np.array_equal(learner.run(as_rows(X), y), kogd.run(as_rows(X), y))


def test_equal_gammas_predict_as_one() -> None:
    X, y = stream()
    one = start(OKSSIL(**SIL | {"rho": 0.0}), X, "binary").run(as_rows(X), y)
    each = start(OKSSIL(**SIL | {"rho": 0.0}, anisotropic=True), X, "binary").run(as_rows(X), y)
    np.testing.assert_allclose(one, each, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("anisotropic", [False, True])
def test_the_kernel_of_okssil_is_called_as_any(anisotropic: bool, dtype: Any) -> None:
    X, y = stream(n=60)
    X = X.astype(dtype)
    learner = start(OKSSIL(**SIL, anisotropic=anisotropic), X, "binary", dtype)
    learner.run(as_rows(X), y)
    gamma = np.broadcast_to(learner.gamma_, 4)
    expected = np.array([[oracle.value(gamma, x, z) for z in X[:7]] for x in X])
    kernel = pickle.loads(pickle.dumps(learner.kernel_))
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    for storage in (np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csr_array, scipy.sparse.csc_array):
        for made in (kernel(storage(X), X[:7]), kernel(X, storage(X[:7])), kernel(storage(X))[:, :7]):
            np.testing.assert_allclose(made, expected, atol=tolerance)
            assert made.dtype == dtype
    state = learner.state()
    f = kernel(X, state["points"]) @ state["weights"]
    np.testing.assert_allclose(learner.score(as_rows(X)), f, atol=10 * tolerance)


def test_anisotropic_scales_find_the_features_that_matter() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (6000, 6))
    y = np.where(np.sin(3 * X[:, 0]) * np.sin(3 * X[:, 1]) > 0, 1.0, -1.0)
    learner = start(OKSSIL(budget=150, rho=0.05, rho_decay=0.0, gamma=1.0, anisotropic=True), X, "binary")
    learner.run(as_rows(X), y)
    assert learner.gamma_[:2].min() > 1.5 * learner.gamma_[2:].max()


# ---- OKL-GD ----


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("task", ["binary", "classes", "regression"])
def test_oklgd_follows_the_oracle(task: str, sparse: bool) -> None:
    X, y = stream(task)
    w = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0], len(X))
    learner = start(OKLGD(eta=0.3, rho=0.8, rho_decay=0.0, gamma=0.5), X, task)
    slow = oracle.OKLGD(
        outputs=3 if task == "classes" else 1,
        eta=0.3,
        rho=0.8,
        decay=0.0,
        gamma=0.5,
        interval=WIDE,
        loss=default_loss(task),
        regression=task == "regression",
    )
    scores = learner.run(as_rows(scipy.sparse.csr_matrix(X) if sparse else X), y, w)
    np.testing.assert_allclose(scores, slow.run(X, y, w), atol=1e-9)
    gammas = [float(c[2][0]) for c in slow.centres]
    np.testing.assert_allclose(learner.state()["point_gammas"], gammas, rtol=1e-9)
    assert learner.gamma_ == pytest.approx(slow.gamma)
    assert len(set(gammas)) > 20


def test_kernel_step_of_oklgd_is_the_gradient_of_its_loss() -> None:
    """The scale moves by -rho times the derivative of the loss in the scale of the newest centre alone."""
    X, y = stream("regression", n=40)
    learner = start(OKLGD(eta=0.3, rho=1e-3, rho_decay=0.0, gamma=0.5), X, "regression")
    for t in range(len(X)):
        before, old = learner.state(), learner.gamma_
        learner.run(as_rows(X[t : t + 1]), y[t : t + 1])
        if t == 0:
            continue

        def loss(gamma: float, t: int = t, before: Any = before) -> float:
            gammas = np.append(before["point_gammas"][:-1], gamma)
            k = np.exp(-gammas * ((before["points"] - X[t]) ** 2).sum(axis=1))
            return 0.5 * float(k @ before["weights"][:, 0] - y[t]) ** 2

        difference = (loss(old + 1e-6) - loss(old - 1e-6)) / 2e-6
        assert (old - learner.gamma_) / 1e-3 == pytest.approx(difference, abs=1e-6)
        np.testing.assert_array_equal(learner.state()["point_gammas"][:-1], before["point_gammas"])


def test_oklgd_with_a_fixed_kernel_is_kogd() -> None:
    X, y = stream()
    fixed = start(OKLGD(eta=0.3, rho=0.0, gamma=0.5), X, "binary")
    kogd = start(KOGD(eta=0.3, kernel=Gaussian(gamma=0.5)), X, "binary")
    assert np.array_equal(fixed.run(as_rows(X), y), kogd.run(as_rows(X), y))


# ---- OKS ----


@pytest.mark.parametrize("rate", [None, 0.05])
@pytest.mark.parametrize("task", ["binary", "classes", "regression"])
def test_oks_follows_the_oracle(task: str, rate: float | None) -> None:
    X, y = stream(task, n=200)
    w = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0], len(X))
    sigmas = [0.3, 1.0, 3.0]
    learner = start(OKS(sigmas, eta=0.1, rate=rate, seed=5), X, task)
    slow = oracle.OKS(
        outputs=3 if task == "classes" else 1,
        gammas=[1 / (2 * s * s) for s in sigmas],
        eta=0.1,
        delta=0.2,
        rate=rate,
        loss=default_loss(task),
        seed=5,
        regression=task == "regression",
        limit=1.0 if task == "regression" else None,
    )
    np.testing.assert_allclose(learner.run(as_rows(X), y, w), slow.run(X, y, w), atol=1e-8)
    np.testing.assert_allclose(learner.probabilities_, slow.probabilities(), rtol=1e-8)
    assert learner.kernel_.bandwidth == sigmas[slow.drawn()]
    assert all(len(expert) > 5 for expert in slow.experts)
    np.testing.assert_allclose(learner.score(as_rows(X[:9])), slow.score(X[:9]), atol=1e-8)


@pytest.mark.parametrize(("loss", "limit"), [("squared", 1.0), ("squared_hinge", 0.5)])
@pytest.mark.parametrize("task", ["binary", "classes"])
def test_the_step_of_oks_has_a_limit_where_the_slope_has_none(task: str, loss: str, limit: float) -> None:
    """25 candidates: eta / p is 5 to 25, so that nearly every step is at the limit; eta 0.02: some are."""
    X, y = stream(task, n=300)
    w = np.random.default_rng(2).choice([0.0, 0.5, 1.0, 2.0], len(X))
    for eta in (0.2, 0.02):
        learner = start(OKS(eta=eta, loss=loss, seed=5), X, task)
        slow = oracle.OKS(
            outputs=3 if task == "classes" else 1,
            gammas=[1 / (2 * s * s) for s in BANDWIDTHS],
            eta=eta,
            delta=0.2,
            rate=None,
            loss=make_losses()[loss],
            seed=5,
            limit=limit,
        )
        np.testing.assert_allclose(learner.run(as_rows(X), y, w), slow.run(X, y, w), atol=1e-7)
        np.testing.assert_allclose(learner.probabilities_, slow.probabilities(), rtol=1e-6)


def test_oks_as_it_comes_does_not_diverge() -> None:
    X = np.random.default_rng(0).uniform(-5, 5, (3000, 1))
    model = KernelRegressor(OKS()).fit(X, np.sin(X[:, 0]))
    learner = start(OKS(), X, "regression")
    assert np.abs(learner.run(as_rows(X), np.sin(X[:, 0]))).max() < 10
    assert np.abs(model.predict(X)).max() < 10
    labels = np.where(np.sin(X[:, 0]) > 0, 1.0, -1.0)
    scores = start(OKS(loss="squared_hinge"), X, "binary").run(as_rows(X), labels)
    assert np.abs(scores).max() < 10


@pytest.mark.parametrize("task", ["binary", "classes", "regression"])
def test_oks_with_one_candidate_is_kogd(task: str) -> None:
    X, y = stream(task)
    one = start(OKS([1.0], eta=0.3), X, task)
    kogd = start(KOGD(eta=0.3, kernel=Gaussian(bandwidth=1.0)), X, task)
    assert np.array_equal(one.run(as_rows(X), y), kogd.run(as_rows(X), y))


def test_oks_draws_each_candidate_with_its_probability() -> None:
    """With rate 0 every candidate has 1/N; the draws of a long stream show it."""
    X, y = stream(n=3000, d=2)
    learner = start(OKS([0.5, 1.0, 2.0, 4.0], rate=0.0, loss="squared"), X, "binary")
    learner.run(as_rows(X), y)
    counts = np.bincount(learner.state()["owners"], minlength=4)
    assert counts.sum() == 3000
    assert np.all(np.abs(counts - 750) < 4.5 * np.sqrt(3000 * 3 / 16))


def test_oks_prefers_the_better_kernel() -> None:
    X, y = stream(n=2000, d=2)
    learner = start(OKS([0.01, 1.0], eta=0.1, rate=0.01), X, "binary")
    learner.run(as_rows(X), y)
    assert learner.probabilities_[1] > 0.85
    assert learner.probabilities_.min() >= 0.1  # delta / N


def test_predicting_uses_up_no_draw_of_oks() -> None:
    X, y = stream()
    asked, left_alone = (start(OKS([0.3, 1.0, 3.0], seed=1), X, "binary") for _ in range(2))
    for t in range(len(X)):
        row = as_rows(X[t : t + 1])
        predicted = asked.score(row)
        assert np.array_equal(asked.run(row, y[t : t + 1]), predicted)
        assert np.array_equal(left_alone.run(row, y[t : t + 1]), predicted)


# ---- growth ----


@pytest.mark.parametrize("grows", ["OKLGD", "OKS"])
def test_growing_learners_stop_and_name_the_bounded_one(grows: str) -> None:
    learner: Any = OKLGD(gamma=0.5, loss="squared", max_size=70)
    if grows == "OKS":
        learner = OKS([0.5, 1.0], loss="squared", max_size=70)
    X, y = stream(n=100)
    start(learner, X, "binary").run(as_rows(X[:70]), y[:70])
    assert learner.n_points == 70
    state = learner.state()
    with pytest.raises(CapacityError, match=r"row 0 needs one more.*OKSSIL"):
        learner.run(as_rows(X[70:]), y[70:])
    for name, array in learner.state().items():
        np.testing.assert_array_equal(array, state[name])


# ---- alignment ----


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("columns", [1, 3])
def test_alignment_is_its_definition(centered: bool, columns: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    K = gaussian(0.6)(X, X)
    Y = rng.choice([-1.0, 1.0], (40, columns))
    expected = oracle.alignment(K, Y, centered)
    assert kernel_alignment(K, Y, centered=centered) == pytest.approx(expected, abs=1e-12)
    if columns == 1 and not centered:
        y = Y[:, 0]
        assert expected == pytest.approx(y @ K @ y / (40 * np.linalg.norm(K)), abs=1e-12)


def centred_by_definition(X: Any, y: Any, gamma: float) -> float:
    """The centred alignment from K - 1 1^T, which H takes to the same H K H and which keeps all digits."""
    less_one = np.expm1(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    return oracle.alignment(less_one, y[:, None], True)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-5])
def test_centred_alignment_of_rows_close_together(scale: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sign(X[:, 0] * X[:, 1] + 0.5 * X[:, 2])
    X = X * scale
    for sigma in (0.5, 2.0, 8.0):
        made = kernel_alignment(Gaussian(bandwidth=sigma)(X), y, centered=True)
        # kernel values have an error of 1e-16, next to deviations from 1 of scale^2 / sigma^2
        assert made == pytest.approx(
            centred_by_definition(X, y, 1 / (2 * sigma**2)), rel=1e-13 + 1e-15 * sigma**2 / scale**2
        )


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-5])
def test_centred_choice_among_wide_bandwidths(scale: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sign(X[:, 0] * X[:, 1] + 0.5 * X[:, 2])
    X = X * scale
    scores = [centred_by_definition(X, y, 1 / (2 * s * s)) for s in CANDIDATES]
    chosen = select_bandwidth(X, y, centered=True)
    assert scores[CANDIDATES.index(chosen)] == pytest.approx(max(scores), rel=1e-12)


def test_equal_entries_have_no_centred_alignment() -> None:
    y = np.array([1.0, 1.0, -1.0])
    assert kernel_alignment(np.full((3, 3), 0.1), y, centered=True) == 0
    assert kernel_alignment(np.eye(3), np.full(3, 0.1), centered=True) == 0


@pytest.mark.parametrize("kernel", [Gaussian, Laplacian])
def test_without_alignment_the_median_bandwidth_decides(kernel: Any) -> None:
    X = np.random.default_rng(0).normal(size=(90, 3)) * 20
    median = kernel().settle(X).bandwidth
    nearest = min(CANDIDATES, key=lambda s: abs(np.log(s / median)))
    assert nearest not in (CANDIDATES[0], CANDIDATES[-1])
    for y in (np.ones(90), np.full(90, 0.1)):
        assert select_bandwidth(X, y, kernel=kernel, centered=True) == nearest
    assert select_bandwidth(np.ones((9, 2)), np.arange(9) % 2, kernel=kernel, centered=True) == 1.0


def test_centred_projka_on_one_class_so_far() -> None:
    X, _ = stream(n=40)
    learner = start(ProjKA(budget=5, warmup=100, centered=True), X, "binary")
    learner.run(as_rows(X), np.ones(40))
    median = Gaussian().settle(X[:32]).bandwidth
    nearest = min(BANDWIDTHS, key=lambda s: abs(np.log(s / median)))
    assert learner.kernel_.options() == Gaussian(bandwidth=nearest).options()


def test_centred_alignment_of_what_is_centred_is_the_plain_one() -> None:
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(30, 5))
    Z -= Z.mean(axis=0)
    y = np.repeat([-1.0, 1.0], 15)
    K = Z @ Z.T
    assert kernel_alignment(K, y, centered=True) == pytest.approx(kernel_alignment(K, y), abs=1e-12)


def test_alignment_of_the_targets_themselves_is_one() -> None:
    y = np.array([1.0, -1.0, -1.0, 1.0, 1.0])
    for centered in (False, True):
        assert kernel_alignment(np.outer(y, y), y, centered=centered) == pytest.approx(1.0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian, Laplacian])
@pytest.mark.parametrize("centered", [False, True])
def test_bandwidth_is_the_best_aligned(kernel: Any, centered: bool, sparse: bool) -> None:
    X, y = stream(n=600)  # more than one block
    scores = [kernel_alignment(kernel(bandwidth=s)(X), y, centered=centered) for s in CANDIDATES]
    rows = scipy.sparse.csr_matrix(X) if sparse else X
    assert select_bandwidth(rows, y, kernel=kernel, centered=centered) == CANDIDATES[int(np.argmax(scores))]
    assert (
        select_bandwidth(rows, y > 0, kernel=kernel, centered=centered) == CANDIDATES[int(np.argmax(scores))]
    )
    thinned = np.linspace(0, 599, 100).round().astype(int)
    assert select_bandwidth(rows, y, kernel=kernel, centered=centered, max_rows=100) == select_bandwidth(
        X[thinned], y[thinned], kernel=kernel, centered=centered
    )


def test_candidates_are_the_papers() -> None:
    np.testing.assert_allclose(BANDWIDTHS, sorted(2.0 ** (-(i + 1) / 2) for i in range(-12, 13)))
    np.testing.assert_allclose(CANDIDATES, 2.0 ** np.linspace(-5, 7, 25))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kernel_alignment(np.eye(3), [1, -1]), "K must be 2 x 2"),
        (lambda: select_bandwidth(np.eye(3), [1, -1]), "X has 3 rows and y has 2"),
        (lambda: select_bandwidth(np.eye(2), [1, -1], candidates=[]), "at least one bandwidth"),
        (lambda: select_bandwidth(np.eye(2), [1, -1], candidates=[0.0]), "each candidate"),
        (lambda: select_bandwidth(np.eye(2), [1, -1], candidates=[1e200]), "each candidate must be .* <= 1e"),
        (lambda: select_bandwidth([[0.0], [np.nan]], [1, -1]), "X has NaN at row 1, column 0"),
        (lambda: select_bandwidth(np.eye(2), [1, np.nan]), "y has nan at row 1, column 0"),
        (lambda: select_bandwidth(np.eye(2), [[1, 1], [1, np.inf]]), "y has inf at row 1, column 1"),
        (lambda: kernel_alignment(np.eye(2), [np.nan, 1]), "y has nan at row 0"),
        (lambda: OKS([1.0, 1e-200]), "each of bandwidths must be a finite number >= 1e-150"),
        (lambda: ProjKA(bandwidths=[1e200]), "each of bandwidths must be a finite number >= 1e-150"),
        (lambda: OKSSIL(interval=(1e-310, 1.0)), "low end of interval"),
        (lambda: OKSSIL(interval=(1.0, 1e305)), "high end of interval"),
        (lambda: OKSSIL(samples=0), "samples"),
        (lambda: OKSSIL(budget=2, samples=3), "samples"),
        (lambda: OKSSIL(gamma=0.1, interval=(0.2, 0.3)), "gamma"),
        (lambda: OKSSIL(interval=(0.3, 0.2)), "high end of interval"),
        (lambda: OKSSIL(interval=0.3), "interval must be a pair"),
        (lambda: OKSSIL(rho=-1), "rho"),
        (lambda: OKSSIL(nu=-1), "nu"),
        (lambda: OKSSIL(eta=0), "eta"),
        (lambda: OKLGD(rho_decay=2), "rho_decay"),
        (lambda: OKS([]), "at least one candidate"),
        (lambda: OKS(delta=0.0), "delta"),
        (lambda: OKS(rate=-1.0), "rate"),
        (lambda: ProjKA(warmup=1), "warmup"),
        (lambda: ProjKA(eta=-1.0), "eta"),
        (lambda: ProjKA().start(2, regression=True), "cannot do regression"),
    ],
)
def test_wrong_settings_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# ---- Proj-KA ----


@pytest.mark.parametrize("task", ["binary", "classes"])
def test_projka_is_projectron_with_the_chosen_kernel_after_warm_up(task: str) -> None:
    X, y = stream(task, n=500)
    learner = start(ProjKA(budget=30, warmup=100), X, task)
    scores = learner.run(as_rows(X), y)
    columns = y if task == "binary" else np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    sigma = select_bandwidth(X[:100], columns[:100], candidates=BANDWIDTHS)
    U = np.sqrt(31 / np.log(31)) / 4
    projectron = start(Projectron(budget=30, eta=1 / (4 * U), kernel=Gaussian(bandwidth=sigma)), X, task)
    assert learner.kernel_.options() == Gaussian(bandwidth=sigma).options()
    assert np.array_equal(projectron.run(as_rows(X), y)[100:], scores[100:])
    assert not np.array_equal(
        scores[:100], np.zeros_like(scores[:100])
    )  # a provisional model predicts meanwhile


def test_projka_provisional_models() -> None:
    """Until 100 rows, the model is Projectron over the last 2^k rows' choice."""
    X, y = stream(n=100)
    learner = start(ProjKA(budget=30, warmup=100), X, "binary")
    scores = learner.run(as_rows(X[:40]), y[:40])
    sigma = select_bandwidth(X[:32], y[:32], candidates=BANDWIDTHS)
    assert learner.kernel_.options() == Gaussian(bandwidth=sigma).options()
    projectron = start(Projectron(budget=30, eta=learner.eta_, kernel=Gaussian(bandwidth=sigma)), X, "binary")
    assert np.array_equal(projectron.run(as_rows(X[:40]), y[:40])[32:], scores[32:])


# ---- what all learners promise ----

LEARNERS: dict[str, Any] = {
    "sil": lambda: OKSSIL(**SIL),
    "sil-median": lambda: OKSSIL(budget=12, nu=0.4),
    "sil-anisotropic": lambda: OKSSIL(**SIL, anisotropic=True),
    "sil-anisotropic-median": lambda: OKSSIL(budget=12, nu=0.4, rho=3.0, anisotropic=True),
    "oklgd": lambda: OKLGD(gamma=0.5, rho_decay=0.0),
    "oklgd-median": lambda: OKLGD(),
    "oks": lambda: OKS([0.3, 1.0, 3.0], seed=3),
    "projka": lambda: ProjKA(budget=12, warmup=100),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("task", ["binary", "classes", "regression"])
@pytest.mark.parametrize("name", LEARNERS)
def test_chunks_saving_and_predicting_change_nothing(name: str, task: str, dtype: Any) -> None:
    if name == "projka" and task == "regression":
        pytest.skip("a classifier")
    X, y = stream(task, n=260)
    X = X.astype(dtype)
    whole = start(LEARNERS[name](), X, task, dtype)
    expected = whole.run(as_rows(X), y)
    chunked = start(LEARNERS[name](), X, task, dtype)
    got, at = [], 0
    for size in [1, 1, 3, 10, 1, 30, 17, 64, 5, 128]:
        part = slice(at, at + size)
        got.append(chunked.run(as_rows(X[part]), y[part]))
        chunked.score(as_rows(X[:5]))
        chunked = pickle.loads(pickle.dumps(chunked))
        at += size
    assert at == 260
    assert np.array_equal(np.vstack(got), expected)
    one, other = whole.state(), chunked.state()
    assert one.keys() == other.keys()
    for key in one:
        assert np.array_equal(one[key], other[key]), key


@pytest.mark.parametrize("name", LEARNERS)
def test_rows_of_weight_zero_are_not_learnt(name: str) -> None:
    X, y = stream(n=260)
    w = np.ones(260)
    w[::3] = 0
    all_rows = start(LEARNERS[name](), X, "binary")
    all_rows.run(as_rows(X), y, w)
    learnt = start(LEARNERS[name](), X, "binary")
    learnt.run(as_rows(X[w > 0]), y[w > 0])
    one, other = all_rows.state(), learnt.state()
    for key in one:
        assert np.array_equal(one[key], other[key]), key


@pytest.mark.parametrize("name", LEARNERS)
def test_features_that_come_later(name: str) -> None:
    """As if they had been there from the start, always zero."""
    X, y = stream(n=300)
    X[:100, 3] = 0
    from_start = start(LEARNERS[name](), X, "binary")
    expected = from_start.run(as_rows(X), y)
    later = start(LEARNERS[name](), X[:, :3], "binary")
    first = later.run(as_rows(X[:100, :3]), y[:100])
    later.widen(4)
    got = np.vstack([first, later.run(as_rows(X[100:]), y[100:])])
    # (until two rows have set a bandwidth it is that of the width)
    np.testing.assert_allclose(got[2:], expected[2:], atol=1e-9)


@pytest.mark.parametrize("name", LEARNERS)
def test_classes_that_come_later(name: str) -> None:
    X, y = stream("classes", n=300)
    model = KernelClassifier(LEARNERS[name]())
    y = np.where(np.arange(300) < 60, np.minimum(y, 1), y)
    model.partial_fit(X, y)
    assert model.classes_.tolist() == [0.0, 1.0, 2.0]
    assert model.decision_function(X).shape == (300, 3)


@pytest.mark.parametrize("name", [n for n in LEARNERS if LEARNERS[n]().bounded])
def test_memory_is_constant(name: str) -> None:
    X, y = stream(n=100_000, d=3, seed=4)
    learner = start(LEARNERS[name](), X, "binary")
    learner.run(as_rows(X[:1000]), y[:1000])
    size = learner.nbytes
    for at in range(1000, 100_000, 9900):
        learner.run(as_rows(X[at : at + 9900]), y[at : at + 9900])
        assert learner.nbytes == size
    assert learner.n_points <= 12
    assert sum(a.nbytes for a in learner.state().values()) < 2 * size


@pytest.mark.parametrize("name", LEARNERS)
def test_a_row_of_zeros_and_repeated_rows(name: str) -> None:
    X = np.zeros((80, 3))
    X[::2] = 1.0
    y = np.where(np.arange(80) % 3 == 0, 1.0, -1.0)
    assert np.isfinite(start(LEARNERS[name](), X, "binary").run(as_rows(X), y)).all()
    assert np.isfinite(start(LEARNERS[name](), X, "binary").run(as_rows(scipy.sparse.csr_matrix(X)), y)).all()
