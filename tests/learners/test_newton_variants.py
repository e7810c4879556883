"""KONS and its sketches: losses without curvature, several classes, the weighted matrix, the Newton decrement."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from kernelstream import KernelClassifier, Polynomial, load
from kernelstream.learners import KONS, ProsNKons, SketchedKONS
from kernelstream.learners.kons import curvature_constant
from kernelstream.rows import as_rows
from oracles import kons as oracle
from oracles.rng import Splitmix

POLY, GAMMA, COEF0 = Polynomial(degree=2, gamma=0.7, coef0=0.4), 0.7, 0.4


def stream(n, *, seed=0, regression=False, classes=False):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, 3))
    f = X[:, 0] * X[:, 1] - 0.5 * X[:, 2] + 0.3 * r.normal(size=n)
    if classes:
        return X, np.digitize(f, [-0.4, 0.4]).astype(float)
    return X, f if regression else np.where(f > 0, 1.0, -1.0)


def run(learner, X, y, *, regression=False, outputs=1):
    learner = clone(learner).start(X.shape[1], outputs, regression=regression)
    return learner, learner.run(as_rows(X), y)


def largest_slope(loss, C, y):
    """Assumption 1's L, on a grid."""
    return max(abs(oracle.slope(loss, f, y)) for f in np.linspace(-C, C, 2001))


@pytest.mark.parametrize("dimension", [None, 4.0])
@pytest.mark.parametrize(
    ("loss", "regression"),
    [
        ("hinge", False),
        ("epsilon_insensitive", True),
        ("huber", True),
        ("squared", True),
        ("squared_hinge", False),
    ],
)
def test_the_step_of_theorem_1_without_curvature(loss, regression, dimension):
    """eta_t = sqrt(d / (L^2 C^2 t)) in explicit features; curved losses take it when d is given."""
    if dimension is None and loss.startswith("squared"):
        return
    X, y = stream(200, regression=regression)
    C, alpha = 0.8, 0.3
    Phi = oracle.quadratic_features(X, GAMMA, COEF0)
    rounds = iter(range(1, 1000))
    d = 1.0 if dimension is None else dimension
    ons = oracle.OnlineNewtonStep(
        Phi.shape[1],
        C=C,
        alpha=alpha,
        loss=loss,
        sigma=lambda t: np.sqrt(d / next(rounds)) / (largest_slope(loss, C, t) * C),
    )
    expected = [ons.round(z, t) for z, t in zip(Phi, y, strict=True)]
    _, scores = run(
        KONS(C, alpha=alpha, loss=loss, kernel=POLY, dimension=dimension), X, y, regression=regression
    )
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-7, rtol=0)
    assert ons.clipped > 3


def test_theorem_1_beats_gradient_descents_bound_on_a_line():
    """Regret of the hinge loss against the best scorer in hindsight, from a grid: below the bound of Theorem 1."""
    X, y = stream(400, seed=4)
    C = 1.0
    _learner, scores = run(KONS(C, alpha=1.0, loss="hinge", kernel=POLY), X, y)
    suffered = np.maximum(0, 1 - y * scores[:, 0]).sum()
    Phi = oracle.quadratic_features(X, GAMMA, COEF0)
    w = np.linalg.lstsq(Phi, y, rcond=None)[0]
    best = min(np.maximum(0, 1 - y * np.clip(s * (Phi @ w), -C, C)).sum() for s in np.linspace(0, 4, 41))
    eigenvalues = np.linalg.eigvalsh(Phi @ Phi.T)
    effective = (eigenvalues / (eigenvalues + 1)).sum()
    assert suffered - best < 16 * w @ w + 4 * C * np.sqrt(400) * effective * np.log(2 * 400)


# ---- several classes ----


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_kons_of_several_classes_is_one_against_the_rest(loss):
    X, y = stream(150, classes=True)
    learner = KONS(0.8, alpha=0.3, loss=loss, kernel=POLY)
    whole, scores = run(learner, X, y, outputs=3)
    for c in range(3):
        _one, alone = run(learner, X, np.where(y == c, 1.0, -1.0))
        np.testing.assert_allclose(scores[:, c], alone[:, 0], atol=1e-9)
    # points are stored once
    assert whole.n_points <= len(X)
    assert len(whole.state()["weights"]) == whole.n_points


def test_sketched_kons_of_several_classes_has_one_coin():
    """In explicit features: KORS sees sqrt(sum_c eta_c g_c^2) phi, and all classes keep or drop the round together."""
    X, y = stream(150, classes=True)
    C, alpha, beta, eps, gamma, seed = 0.8, 0.3, 1.5, 0.5, 0.1, 4
    Phi = oracle.quadratic_features(X, GAMMA, COEF0)
    draws, kept, p = Splitmix(seed), [], []
    ons = [
        oracle.OnlineNewtonStep(
            Phi.shape[1],
            C=C,
            alpha=alpha,
            loss="squared",
            sigma=lambda t: curvature_constant("squared", C, t),
        )
        for _ in range(3)
    ]
    expected = np.zeros((len(X), 3))
    for t, z in enumerate(Phi):
        targets = [1.0 if y[t] == c else -1.0 for c in range(3)]
        total = sum(
            curvature_constant("squared", C, target) * oracle.slope("squared", o.predict(z), target) ** 2
            for o, target in zip(ons, targets, strict=True)
        )
        phi = np.sqrt(total) * z
        tau = oracle.leverage(np.array(kept) / np.sqrt(p)[:, None] if kept else Phi[:0], phi, alpha, eps)
        chance, u = min(beta * tau, 1.0), draws.uniform()
        if u < chance:
            kept.append(phi)
            p.append(chance)
        expected[t] = [
            o.round(z, target, coin=u < max(chance, gamma)) for o, target in zip(ons, targets, strict=True)
        ]
    sketched = SketchedKONS(C, alpha=alpha, beta=beta, eps=eps, gamma=gamma, kernel=POLY, seed=seed)
    _, scores = run(sketched, X, y, outputs=3)
    np.testing.assert_allclose(scores, expected, atol=1e-7)
    assert 5 < len(kept) < 145


@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_prosnkons_of_several_classes_is_one_against_the_rest(loss, restart):
    """The dictionary does not see targets, so it is the same for each class."""
    X, y = stream(200, classes=True)
    learner = ProsNKons(0.8, alpha=0.3, loss=loss, kernel=POLY, max_size=8, restart=restart)
    whole, scores = run(learner, X, y, outputs=3)
    for c in range(3):
        one, alone = run(learner, X, np.where(y == c, 1.0, -1.0))
        np.testing.assert_allclose(scores[:, c], alone[:, 0], atol=1e-8)
        assert one.n_points == whole.n_points


@pytest.mark.parametrize(
    "learner", [KONS(), SketchedKONS(), ProsNKons(max_size=40, restart=False), KONS(loss="hinge")], ids=str
)
def test_a_class_that_appears_late(learner, tmp_path):
    X, y = stream(160, classes=True)
    X[120:] += 3
    y[:120], y[120:] = y[:120] % 2, 2
    model = KernelClassifier(learner).partial_fit(X[:120], y[:120])
    model.partial_fit(X[120:], y[120:])
    assert model.score(X[120:], y[120:]) > 0.8
    assert model.score(X[:120], y[:120]) > 0.5
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert np.array_equal(
        again.partial_fit(X, y).decision_function(X), model.partial_fit(X, y).decision_function(X)
    )


# ---- Section 6: the weighted matrix, the Newton decrement ----


def test_the_weighted_matrix_in_explicit_features():
    """A_t = A_{t-1} + z_t / p_t eta_t g_t g_t^T with the coins of KORS."""
    X, y = stream(200, seed=2)
    C, alpha, beta, eps, gamma, seed = 0.8, 0.3, 1.5, 0.5, 0.1, 4
    sigma = curvature_constant("squared", C)
    Phi = oracle.quadratic_features(X, GAMMA, COEF0)
    ons = oracle.OnlineNewtonStep(Phi.shape[1], C=C, alpha=alpha, loss="squared", sigma=lambda t: sigma)
    draws, kept, p, expected = Splitmix(seed), [], [], []
    for z, target in zip(Phi, y, strict=True):
        phi = np.sqrt(sigma) * oracle.slope("squared", ons.predict(z), target) * z
        tau = oracle.leverage(np.array(kept) / np.sqrt(p)[:, None] if kept else Phi[:0], phi, alpha, eps)
        chance, u = min(beta * tau, 1.0), draws.uniform()
        if u < chance:
            kept.append(phi)
            p.append(chance)
        least = max(chance, gamma)
        expected.append(ons.round(z, target, coin=(u < least) / least))
    sketched = SketchedKONS(
        C, alpha=alpha, beta=beta, eps=eps, gamma=gamma, kernel=POLY, seed=seed, weighted=True
    )
    learner, scores = run(sketched, X, y)
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-7)
    assert 5 < learner.n_newton < 195


def test_the_weighted_matrix_is_right_in_the_mean():
    """Over many seeds, at gradients that do not depend on the coins (the first rounds of C = 1e-9, where scores are zero)."""
    X, y = stream(12, seed=2)
    Phi = oracle.quadratic_features(X, GAMMA, COEF0)
    settings = {"alpha": 5.0, "beta": 0.4, "gamma": 0.2, "kernel": POLY, "weighted": True}
    mean, exact = np.zeros(12), run(KONS(1e-9, alpha=5.0, kernel=POLY), X, y)[0].state()["newton_scales"]
    for seed in range(400):
        state = run(SketchedKONS(1e-9, seed=seed, **settings), X, y)[0].state()
        for slot, scale in zip(state["newton_slots"], state["newton_scales"], strict=True):
            mean[slot] += scale**2 / 400
    np.testing.assert_allclose(mean, exact**2, rtol=0.5)
    assert abs(np.log(mean / exact**2)).mean() < 0.15
    assert Phi.shape[0] == 12


def test_rounds_with_a_small_newton_decrement_are_passed_over():
    """In explicit features: eta g^T A_t^-1 g <= least leaves u and A as they are, unless the score is clipped."""
    X, y = stream(300, seed=6)
    C, alpha, least = 0.8, 0.3, 0.05
    sigma = curvature_constant("squared", C)
    Phi = oracle.quadratic_features(X, GAMMA, COEF0)
    ons = oracle.OnlineNewtonStep(Phi.shape[1], C=C, alpha=alpha, loss="squared", sigma=lambda t: sigma)
    expected, passed = [], 0
    for z, target in zip(Phi, y, strict=True):
        f, h = oracle.clip(float(z @ ons.u()), C)
        g = oracle.slope("squared", f, target) * z
        decrement = sigma * g @ np.linalg.solve(ons.A + sigma * np.outer(g, g), g)
        if h == 0 and decrement <= least:
            expected.append(f)
            passed += 1
        else:
            expected.append(ons.round(z, target))
    learner, scores = run(KONS(C, alpha=alpha, kernel=POLY, least_decrement=least), X, y)
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-7)
    assert 50 < passed < 290
    assert learner.n_points == 300 - passed


def test_parameters():
    with pytest.raises(ValueError, match="not both"):
        KONS(eta=1.0, dimension=2.0)
    for wrong in ({"dimension": 0}, {"least_decrement": 2}, {"least_decrement": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            KONS(**wrong)
