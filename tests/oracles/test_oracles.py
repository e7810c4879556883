"""Sanity tests of the oracles themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from . import kernels
from .base import Learner
from .kernels import Array, Kernel, gaussian, laplacian, linear, polynomial
from .learners import (
    BOGD,
    BPAS,
    FOGD,
    KOGD,
    NOGD,
    RBP,
    Forgetron,
    KernelPA,
    KernelPerceptron,
    LinearPA,
    Projectron,
    ProjectronPP,
    TruncatedKOGD,
)
from .losses import LOSSES, make_losses
from .margin_learners import forgetron_damage, largest_phi
from .rng import INCREMENT, Splitmix, mix

K = gaussian(0.7)
OGD: dict[str, Any] = {"eta": 0.3, "lam": 0.05}


def stream(n: int = 60, seed: int = 0, d: int = 3) -> tuple[Array, Array]:
    """Noisy two-class rows, targets -1 and +1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y


# Losses, kernels, draws


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_loss_slope_and_curvature_are_finite_differences(name: str) -> None:
    loss = make_losses(epsilon=0.25, delta=0.6)[name]
    h = 1e-5
    for y in (-1.0, 1.0):
        for f in (-2.83, -1.31, -0.77, -0.21, 0.13, 0.52, 0.91, 1.37, 3.19):
            slope = (loss.value(f + h, y) - loss.value(f - h, y)) / (2 * h)
            curvature = (loss.slope(f + h, y) - loss.slope(f - h, y)) / (2 * h)
            assert loss.slope(f, y) == pytest.approx(slope, abs=1e-8)
            assert loss.curvature(f, y) == pytest.approx(curvature, abs=1e-8)


def test_losses_at_their_kinks() -> None:
    losses = make_losses(epsilon=0.25, delta=0.5)
    assert losses["hinge"].slope(1.0, 1.0) == 0.0
    assert losses["squared_hinge"].curvature(1.0, 1.0) == 0.0
    assert losses["epsilon_insensitive"].slope(0.25, 0.0) == 0.0
    assert losses["huber"].curvature(0.5, 0.0) == 1.0
    assert losses["logistic"].slope(2000.0, 1.0) == 0.0
    assert losses["logistic"].value(-2000.0, 1.0) == 2000.0


@pytest.mark.parametrize(
    ("kernel", "gradient"),
    [
        (gaussian, kernels.gaussian_gradient_gamma(0.4)),
        (laplacian, kernels.laplacian_gradient_gamma(0.4)),
        (lambda v: polynomial(v, 0.3, 3), kernels.polynomial_gradient_gamma(0.4, 0.3, 3)),
        (lambda v: polynomial(0.3, v, 3), kernels.polynomial_gradient_coef0(0.3, 0.4, 3)),
        (lambda v: polynomial(v, 0.3, 1), kernels.polynomial_gradient_gamma(0.4, 0.3, 1)),
        (lambda v: polynomial(0.3, v, 1), kernels.polynomial_gradient_coef0(0.3, 0.4, 1)),
    ],
)
def test_kernel_gradients_are_finite_differences(kernel: Callable[[float], Kernel], gradient: Kernel) -> None:
    X, _ = stream(5)
    Y, _ = stream(4, seed=1)
    h = 1e-5
    numeric = (kernel(0.4 + h)(X, Y) - kernel(0.4 - h)(X, Y)) / (2 * h)
    np.testing.assert_allclose(gradient(X, Y), numeric, rtol=1e-7, atol=1e-9)


def test_kernels_by_hand() -> None:
    X, Y = np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])
    assert gaussian(0.1)(X, Y)[0, 0] == pytest.approx(math.exp(-1.3))
    assert laplacian(0.1)(X, Y)[0, 0] == pytest.approx(math.exp(-0.5))
    assert polynomial(2.0, 1.0, 3)(X, Y)[0, 0] == pytest.approx(27.0)
    assert linear()(X, Y)[0, 0] == pytest.approx(1.0)


def test_splitmix_is_the_published_generator() -> None:
    # The first outputs of splitmix64 from the state 1234567 are the published test vector.
    assert mix(1234567 + INCREMENT) == 6457827717110365317
    assert mix(1234567 + 2 * INCREMENT) == 3203168211198807973
    assert Splitmix(1234567).s == 6457827717110365317
    rng = Splitmix(3)
    draws = [rng.uniform() for _ in range(20000)]
    assert min(draws) >= 0.0
    assert max(draws) < 1.0
    assert np.mean(draws) == pytest.approx(0.5, abs=0.01)
    slots = [rng.slot(5) for _ in range(20000)]
    np.testing.assert_allclose(np.bincount(slots, minlength=5) / 20000, 0.2, atol=0.015)


# Budgets that are never reached


@pytest.mark.parametrize(
    ("budgeted", "unbudgeted"),
    [
        (RBP(kernel=K, outputs=1, budget=99, seed=1), KernelPerceptron(kernel=K, outputs=1)),
        (Forgetron(kernel=K, outputs=1, budget=99), KernelPerceptron(kernel=K, outputs=1)),
        (Projectron(kernel=K, outputs=1, budget=99, eta=0.0), KernelPerceptron(kernel=K, outputs=1)),
        (BPAS(kernel=K, outputs=1, budget=99, C=0.6), KernelPA(kernel=K, outputs=1, variant="PA-I", C=0.6)),
    ],
)
def test_unreached_budget_of_margin_learners(budgeted: Learner, unbudgeted: Learner) -> None:
    X, y = stream()
    w = np.tile([1.0, 0.5, 0.0, 2.0], 15)
    np.testing.assert_array_equal(budgeted.run(X, y, w), unbudgeted.run(X, y, w))
    np.testing.assert_array_equal(budgeted.a, unbudgeted.a)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("removal", ["uniform", "nonuniform", "smallest"])
def test_unreached_budget_of_loss_learners(loss: str, removal: str) -> None:
    X, y = stream()
    common: dict[str, Any] = {"kernel": K, "outputs": 1, "loss": LOSSES[loss], **OGD}
    expected = KOGD(**common).run(X, y)
    for learner in (
        TruncatedKOGD(budget=99, **common),
        BOGD(budget=99, removal=removal, clip=1.0, seed=0, **common),
        NOGD(budget=99, rank=20, **common),
    ):
        np.testing.assert_array_equal(learner.run(X, y), expected)


def test_max_size_is_an_error() -> None:
    X, y = stream()
    with pytest.raises(RuntimeError):
        KernelPerceptron(kernel=K, outputs=1, max_size=3).run(X, y)


# One column or two


MARGIN_LEARNERS = [
    lambda o: KernelPerceptron(kernel=K, outputs=o),
    lambda o: RBP(kernel=K, outputs=o, budget=7, seed=4),
    lambda o: Forgetron(kernel=K, outputs=o, budget=7),
    lambda o: Projectron(kernel=K, outputs=o, budget=7, eta=0.3),
    lambda o: ProjectronPP(kernel=K, outputs=o, budget=12, eta=0.5),
    lambda o: KernelPA(kernel=K, outputs=o, variant="PA"),
    lambda o: KernelPA(kernel=K, outputs=o, variant="PA-I", C=0.4),
    lambda o: KernelPA(kernel=K, outputs=o, variant="PA-II", C=0.4),
    lambda o: LinearPA(outputs=o, variant="PA-I", C=0.4),
    lambda o: BPAS(kernel=K, outputs=o, budget=7, C=0.4),
]
LOSS = LOSSES["hinge"]
LOSS_LEARNERS = [
    lambda o: KOGD(kernel=K, outputs=o, loss=LOSS, **OGD),
    lambda o: TruncatedKOGD(kernel=K, outputs=o, budget=7, loss=LOSS, **OGD),
    lambda o: BOGD(kernel=K, outputs=o, budget=7, removal="uniform", clip=1.5, loss=LOSS, seed=3, **OGD),
    lambda o: BOGD(kernel=K, outputs=o, budget=7, removal="nonuniform", clip=1.5, loss=LOSS, seed=3, **OGD),
    lambda o: BOGD(kernel=K, outputs=o, budget=7, removal="smallest", clip=1.5, loss=LOSS, seed=3, **OGD),
    lambda o: FOGD(W=np.random.default_rng(5).normal(size=(3, 8)), outputs=o, loss=LOSS, **OGD),
    lambda o: NOGD(kernel=K, outputs=o, budget=9, rank=5, loss=LOSS, **OGD),
]


@pytest.mark.parametrize("make", MARGIN_LEARNERS)
def test_two_columns_of_margin_learners_are_half_the_one_column(make: Callable[[int], Learner]) -> None:
    X, y = stream()
    w = np.tile([1.0, 0.5, 0.0, 2.0], 15)
    f = make(1).run(X, y, w)
    pair = make(2).run(X, (y > 0).astype(float), w)
    np.testing.assert_allclose(pair, np.hstack([-f / 2, f / 2]), atol=1e-9)


@pytest.mark.parametrize("make", LOSS_LEARNERS)
def test_two_columns_of_loss_learners_are_opposite(make: Callable[[int], Learner]) -> None:
    X, y = stream()
    w = np.tile([1.0, 0.5, 0.0, 2.0], 15)
    f = make(1).run(X, y, w)
    pair = make(2).run(X, (y > 0).astype(float), w)
    np.testing.assert_allclose(pair, np.hstack([-f, f]), atol=1e-9)


@pytest.mark.parametrize("make", MARGIN_LEARNERS + LOSS_LEARNERS)
def test_three_classes_keep_the_shape_and_learn(make: Callable[[int], Learner]) -> None:
    X, _ = stream()
    y = np.argmax(X, axis=1).astype(float)
    learner = make(3)
    f = learner.run(X, y)
    assert f.shape == (60, 3)
    assert np.all(np.isfinite(f))
    new, _ = stream(400, seed=7)
    assert np.mean(np.argmax(learner.score(new), axis=1) == np.argmax(new, axis=1)) > 0.45  # chance: 1/3
    assert len(getattr(learner, "points", [])) == len(getattr(learner, "a", []))
    assert len(getattr(learner, "points", [])) <= getattr(learner, "budget", 60)


@pytest.mark.parametrize("make", MARGIN_LEARNERS + LOSS_LEARNERS)
def test_rows_of_weight_zero_are_scored_and_not_learnt(make: Callable[[int], Learner]) -> None:
    X, y = stream()
    w = np.tile([1.0, 0.0, 1.0], 20)
    f = make(1).run(X, y, w)
    np.testing.assert_array_equal(f[w > 0], make(1).run(X[w > 0], y[w > 0]))


# Forgetron


def test_phi_is_the_largest_feasible() -> None:
    rng = np.random.default_rng(0)
    grid = np.linspace(0.0, 1.0, 20001)
    for _ in range(300):
        M = int(rng.integers(1, 40))
        Q = float(rng.uniform(0.0, 15 / 32 * (M - 1)))
        s = float(rng.uniform(0.01, 3.0))
        mu = float(rng.normal() * 3)
        phi = largest_phi(s, mu, Q, M)
        assert 0 < phi <= 1
        assert forgetron_damage(s, mu, phi) + Q <= 15 / 32 * M
        larger = grid[grid > phi + 1e-9]
        assert np.all(forgetron_damage(s, mu, larger) + Q > 15 / 32 * M)
        # The closed form of docs/conventions.md.
        A, Bq, Cq = s**2 - 2 * s * mu, 2 * s, Q - 15 / 32 * M
        closed = 1.0 if A + Bq + Cq <= 0 else -2 * Cq / (Bq + math.sqrt(Bq**2 - 4 * A * Cq))
        assert phi == pytest.approx(closed, rel=1e-12)


def test_forgetron_keeps_its_invariant_and_drops_the_oldest() -> None:
    X, y = stream(120)
    learner = Forgetron(kernel=K, outputs=1, budget=6)
    learner.run(X, y)
    assert len(learner.history) > 10
    assert len(learner.history) + 6 == learner.M
    assert learner.Q <= 15 / 32 * learner.M
    assert any(phi < 1 for *_, phi in learner.history)
    assert sorted(learner.born) == list(range(learner.M - 6, learner.M))


# Projectron


def quadratic_features(X: Array, gamma: float, coef0: float) -> Array:
    """The explicit map of (gamma x.y + coef0)^2: all products of (sqrt(gamma) x, sqrt(coef0))."""
    Z = np.hstack([math.sqrt(gamma) * X, np.full((len(X), 1), math.sqrt(coef0))])
    return np.array([np.outer(z, z).ravel() for z in Z])


def test_projection_is_least_squares_in_feature_space() -> None:
    X, _ = stream(6)
    learner = Projectron(kernel=polynomial(0.5, 1.0, 2), outputs=1, budget=9, eta=0.1)
    for x in X[:5]:
        learner.append(x, np.array([1.0]))
    F = quadratic_features(X, 0.5, 1.0)
    expected, *_ = np.linalg.lstsq(F[:5].T, F[5], rcond=None)
    k, d, delta2 = learner.project(X[5])
    np.testing.assert_allclose(d, expected, rtol=1e-8)
    residual = F[5] - F[:5].T @ expected
    assert delta2 == pytest.approx(residual @ residual, rel=1e-8)
    assert k @ d == pytest.approx(np.sum((F[:5].T @ expected) ** 2), rel=1e-8)


def test_projectron_never_stores_a_duplicate() -> None:
    X, y = stream(20)
    X, y = np.repeat(X, 3, axis=0), np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    learner = Projectron(kernel=K, outputs=1, budget=99, eta=0.0)
    learner.run(X, y)
    assert len({tuple(x) for x in learner.points}) == len(learner.points)


def test_projectron_pp_margin_step_never_overshoots_and_never_adds() -> None:
    X, y = stream(150)
    learner = ProjectronPP(kernel=K, outputs=1, budget=15, eta=0.8)
    steps = 0
    for x, target in zip(X, y, strict=True):
        before, size = learner.a.copy(), len(learner.points)
        m = target * learner.run(x[np.newaxis], np.array([target]))[0, 0]
        if 0 < m < 1:
            after = target * learner.score(x[np.newaxis])[0, 0]
            assert len(learner.points) == size
            assert m - 1e-12 <= after <= 1 + 1e-9
            steps += not np.array_equal(before, learner.a)
        elif m >= 1:
            np.testing.assert_array_equal(before, learner.a)
    assert steps > 5


# Passive-aggressive


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
def test_pa_step_solves_its_problem(variant: str, regression: bool) -> None:
    """Minimise |w - w_t|^2 / 2 + C xi (or C xi^2), the loss at most xi, numerically."""
    rng = np.random.default_rng(2)
    epsilon = 0.1
    for C in (0.05, 5.0):
        w0, x = rng.normal(size=3), rng.normal(size=3)
        y = 2.5 if regression else -1.0
        if not regression and y * (w0 @ x) > 1:
            w0 = -w0
        learner = LinearPA(outputs=1, variant=variant, C=C, epsilon=epsilon, regression=regression)
        learner.weights = w0[:, np.newaxis].copy()
        learner.run(x[np.newaxis], np.array([y]))

        def objective(v: Array, w0: Array = w0, C: float = C) -> float:
            xi = {"PA": 0.0, "PA-I": v[3], "PA-II": v[3] ** 2}[variant]
            return float(np.sum((v[:3] - w0) ** 2) / 2 + C * xi)

        def slack(v: Array, x: Array = x, y: float = y) -> Array:
            xi = 0.0 if variant == "PA" else v[3]
            f = v[:3] @ x
            if regression:
                return np.array([xi + epsilon - (f - y), xi + epsilon - (y - f), v[3]])
            return np.array([xi - 1 + y * f, v[3]])

        best = minimize(
            objective,
            np.append(w0, 5.0),
            method="SLSQP",
            constraints={"type": "ineq", "fun": slack},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        # SLSQP may stop for lack of digits rather than by ftol: the comparison itself decides.
        assert np.all(slack(best.x) > -1e-7)
        np.testing.assert_allclose(learner.weights[:, 0], best.x[:3], atol=1e-5)


@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_linear_pa_is_kernel_pa(variant: str, outputs: int) -> None:
    X, y = stream()
    y = y if outputs == 1 else np.argmax(X, axis=1).astype(float)
    w = np.tile([1.0, 0.5, 0.0, 2.0], 15)
    a = LinearPA(outputs=outputs, variant=variant, C=0.3).run(X, y, w)
    b = KernelPA(kernel=linear(), outputs=outputs, variant=variant, C=0.3).run(X, y, w)
    np.testing.assert_allclose(a, b, atol=1e-8)


def bpas_objective(
    a_t: float, a_r: float, k_r: float, k_rr: float, k_tt: float, f: float, y: float, C: float
) -> float:
    """|a_t phi_t - a_r phi_r|^2 / 2 + C hinge of the new model at x_t."""
    distance = a_t**2 * k_tt - 2 * a_t * a_r * k_r + a_r**2 * k_rr
    new_f = f + a_t * k_tt - a_r * k_r
    return 0.5 * distance + C * max(0.0, 1 - y * new_f)


@pytest.mark.parametrize("C", [0.05, 0.4, 20.0])
@pytest.mark.parametrize("kernel", [K, polynomial(0.5, 1.0, 2)])
def test_bpas_step_solves_its_problem(C: float, kernel: Kernel) -> None:
    """Brute force over the dropped slot r and the new weight a_t."""
    X, y = stream(40)
    learner = BPAS(kernel=kernel, outputs=1, budget=5, C=C)
    checked = 0
    for x, target in zip(X, y, strict=True):
        points, a = list(learner.points), learner.a[:, 0].copy()
        f = float(learner.run(x[np.newaxis], np.array([target]))[0, 0])
        if len(points) < 5 or target * f >= 1:
            continue
        checked += 1
        fixed, best = [], []
        for r in range(5):
            k_r, k_rr = learner.k(points[r], x), learner.k(points[r], points[r])
            fixed.append((float(a[r]), k_r, k_rr, learner.k(x, x), f, float(target), C))
            best.append(
                minimize_scalar(
                    bpas_objective,
                    args=fixed[r],
                    bounds=(-30, 30),
                    method="bounded",
                    options={"xatol": 1e-10},
                )
            )
        r = int(np.argmin([b.fun for b in best]))
        np.testing.assert_array_equal(learner.points[r], x)
        assert learner.a[r, 0] == pytest.approx(best[r].x, abs=1e-5)
        assert bpas_objective(learner.a[r, 0], *fixed[r]) <= best[r].fun + 1e-12
    assert checked > 10


# Gradient descent


def test_kogd_is_gradient_descent_in_feature_space() -> None:
    X, y = stream()
    F = quadratic_features(X, 0.5, 1.0)
    loss, theta = LOSSES["logistic"], np.zeros(F.shape[1])
    expected = []
    for phi, target in zip(F, y, strict=True):
        f = float(theta @ phi)
        expected.append(f)
        theta = (1 - 0.1 * 0.05) * theta - 0.1 * loss.slope(f, target) * phi
    f = KOGD(kernel=polynomial(0.5, 1.0, 2), outputs=1, eta=0.1, lam=0.05, loss=loss).run(X, y)
    np.testing.assert_allclose(f[:, 0], expected, atol=1e-9)


@pytest.mark.parametrize("removal", ["uniform", "nonuniform"])
def test_bogd_removal_is_unbiased(removal: str) -> None:
    """The mean over the dropped slot of the rescaled model is the model (no clipping)."""
    X, y = stream(5)
    learner = BOGD(
        kernel=K, outputs=1, budget=5, removal=removal, clip=math.inf, loss=LOSSES["squared"], seed=0, **OGD
    )
    learner.run(X, y)
    p, a = learner.probabilities(), learner.a.copy()
    assert np.sum(p) == pytest.approx(1.0)
    assert np.all(p >= 0)
    mean = np.zeros_like(a)
    for j in range(5):
        learner.a = a.copy()
        learner.draw = lambda j=j: j
        learner.insert(X[0], np.zeros(1))
        mean += p[j] * learner.a
        learner.points[j] = X[j]
    np.testing.assert_allclose(mean, a, atol=1e-12)


def test_bogd_draws_follow_its_probabilities() -> None:
    X, y = stream(4)
    learner = BOGD(
        kernel=K, outputs=1, budget=4, removal="nonuniform", clip=1.0, loss=LOSSES["squared"], seed=0, **OGD
    )
    learner.run(X, y)
    learner.a = np.array([[3.0], [-1.0], [0.5], [0.0]])
    counts = np.bincount([learner.draw() for _ in range(5000)], minlength=4)
    np.testing.assert_allclose(counts / 5000, learner.probabilities(), atol=0.03)


def test_nogd_starts_from_the_kernel_model() -> None:
    X, y = stream(8)
    common: dict[str, Any] = {"kernel": K, "outputs": 1, "loss": LOSSES["logistic"], **OGD}
    nogd, kogd = NOGD(budget=8, rank=8, **common), KOGD(**common)
    nogd.run(X, y)
    kogd.run(X, y)
    assert nogd.weights is not None
    new, _ = stream(10, seed=9)
    np.testing.assert_allclose(nogd.score(new), kogd.score(new), atol=1e-8)
    features = np.array([nogd.features(x) for x in X])
    np.testing.assert_allclose(features @ features.T, K(X, X), atol=1e-8)


def test_nogd_ignores_null_directions() -> None:
    X, y = stream(4)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    nogd = NOGD(kernel=K, outputs=1, budget=8, rank=8, loss=LOSSES["squared"], **OGD)
    nogd.run(X, y)
    assert nogd.weights is not None
    assert np.count_nonzero(nogd.weights) == 4
    features = np.array([nogd.features(x) for x in X])
    np.testing.assert_allclose(features @ features.T, K(X, X), atol=1e-8)


def test_fourier_features_approach_the_gaussian_kernel() -> None:
    X, _ = stream(5)
    W = np.random.default_rng(1).normal(size=(3, 20000)) * math.sqrt(2 * 0.7)
    fogd = FOGD(W=W, outputs=1, loss=LOSSES["squared"], **OGD)
    Z = np.array([fogd.features(x) for x in X])
    np.testing.assert_allclose(Z @ Z.T, K(X, X), atol=0.03)


def test_regression_learns() -> None:
    X, _ = stream(150)
    y = np.sin(X[:, 0])
    common: dict[str, Any] = {"kernel": K, "outputs": 1, "regression": True}
    for learner in (
        KernelPA(variant="PA-II", C=1.0, epsilon=0.05, **common),
        KOGD(loss=LOSSES["squared"], eta=0.3, lam=0.0, **common),
        NOGD(loss=LOSSES["huber"], budget=30, rank=20, eta=0.3, lam=0.0, **common),
    ):
        f = learner.run(X, y)
        assert np.mean((f[75:, 0] - y[75:]) ** 2) < 0.5 * np.var(y)
