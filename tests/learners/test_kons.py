"""KONS, Sketched-KONS, PROS-N-KONS and KRLS against their definitions."""

from __future__ import annotations

import contextlib
import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.multiclass import OneVsRestClassifier

from kernelstream import (
    CapacityError,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    Polynomial,
    ScoreOverflowError,
)
from kernelstream.learners import KONS, KRLS, ProsNKons, SketchedKONS
from kernelstream.learners.kons import curvature_constant
from kernelstream.rows import as_rows
from oracles import kons as oracle
from oracles.rng import Splitmix

LOSSES = ["squared", "logistic", "squared_hinge"]
POLY, GAMMA, COEF0 = Polynomial(degree=2, gamma=0.7, coef0=0.4), 0.7, 0.4


def stream(n: int, *, seed: int = 0, width: int = 3, regression: bool = False):
    r = np.random.default_rng(seed)
    X = r.normal(size=(n, width))
    f = X[:, 0] * X[:, 1] - 0.5 * X[:, 2] + 0.3 * r.normal(size=n)
    return X, f if regression else np.where(f > 0, 1.0, -1.0)


def run(learner, X, y, weights=None, *, regression=False, dtype=np.float64, outputs=1):
    learner = clone(learner).start(X.shape[1], outputs, regression=regression, dtype=dtype)
    return learner, learner.run(as_rows(X, dtype), y, weights)


# ---- the curvature constant ----


@pytest.mark.parametrize(
    ("loss", "target"),
    [
        ("squared", 0.0),
        ("squared", 0.4),
        ("squared", -1.0),
        ("squared", 5.0),
        ("logistic", 1),
        ("squared_hinge", 1),
    ],
)
@pytest.mark.parametrize("C", [0.3, 0.9, 1.0, 1.7, 4.0])
def test_curvature_constant_is_the_largest(loss, target, C):
    """Targets within [-C, C] and beyond."""
    found, sigma = oracle.curvature(loss, C, target), curvature_constant(loss, C, target)
    assert found >= sigma * (1 - 1e-6), "Assumption 2 fails"
    assert found <= sigma * 1.05, "a larger constant would do"
    assert curvature_constant(loss, C, -target) == sigma


# ---- KONS is the online Newton step ----


def explicit(X, y, loss, C, alpha, weights=None, coins=None):
    Phi = oracle.quadratic_features(X, GAMMA, COEF0)
    ons = oracle.OnlineNewtonStep(
        Phi.shape[1], C=C, alpha=alpha, loss=loss, sigma=lambda t: curvature_constant(loss, C, t)
    )
    f = np.zeros(len(X))
    for t in range(len(X)):
        v = 1.0 if weights is None else weights[t]
        if v == 0:
            f[t] = ons.predict(Phi[t])
        else:
            f[t] = ons.round(Phi[t], y[t], v, True if coins is None else coins[t])
    return f, ons, Phi


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("C", "alpha", "clips"), [(0.4, 0.01, True), (0.4, 1.0, True), (1.1, 0.1, True), (10.0, 100.0, False)]
)
def test_kons_is_the_online_newton_step(loss, C, alpha, clips):
    X, y = stream(300)
    expected, ons, Phi = explicit(X, y, loss, C, alpha)
    learner, scores = run(KONS(C, alpha=alpha, loss=loss, kernel=POLY), X, y)
    assert (ons.clipped > 0) == clips
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-8, rtol=0)
    after = np.array([ons.predict(z) for z in Phi[:20]])
    np.testing.assert_allclose(learner.score(as_rows(X[:20]))[:, 0], after, atol=1e-8, rtol=0)


def test_zero_slopes_with_and_without_clipping():
    """Squared hinge beyond the margin: no slope. With C > 1 rounds are idle, or with h != 0 project only."""
    X, y = stream(300, seed=3)
    y[:] = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    X *= 1.5
    expected, ons, _ = explicit(X, y, "squared_hinge", 1.2, 0.001)
    learner, scores = run(KONS(1.2, alpha=0.001, loss="squared_hinge", kernel=POLY), X, y)
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-8, rtol=0)
    only_projected = sum(
        s == 0 for s in (oracle.slope("squared_hinge", f, t) for f, t in zip(expected, y, strict=True))
    )
    assert only_projected > 20
    assert ons.clipped > 20
    gradients = len(learner.state()["newton_slots"])
    assert (
        gradients < learner.n_points < len(X)
    )  # projections are stored without a row in A, idle rounds not at all


@pytest.mark.parametrize("loss", LOSSES)
def test_sample_weights_scale_the_loss(loss):
    X, y = stream(150, seed=5)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], len(X))
    expected, _, _ = explicit(X, y, loss, 0.8, 0.1, weights)
    _, scores = run(KONS(0.8, alpha=0.1, loss=loss, kernel=POLY), X, y, weights)
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-8, rtol=0)


def test_regression_beyond_C():
    X, y = stream(200, seed=6, regression=True)
    assert np.abs(y).max() > 2
    expected, ons, _ = explicit(X, y, "squared", 1.0, 0.1)
    _, scores = run(KONS(1.0, alpha=0.1, kernel=POLY), X, y, regression=True)
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-8, rtol=0)
    assert ons.clipped > 0


@pytest.mark.parametrize("C", [0.4, 5.0])
def test_corrected_lemma_2_is_the_same(C):
    X, y = stream(60, seed=1)
    lemma = oracle.LemmaKONS(
        oracle.fast_gaussian(0.3), C=C, alpha=0.5, loss="logistic", sigma=curvature_constant("logistic", C)
    )
    expected = [lemma.round(x, t) for x, t in zip(X, y, strict=True)]
    _, scores = run(KONS(C, alpha=0.5, loss="logistic", kernel=Gaussian(gamma=0.3)), X, y)
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-8, rtol=0)


def test_repeated_points_stay_sound():
    X, y = np.ones((2000, 2)), np.tile([1.0, -1.0], 1000)
    expected, _, _ = explicit(X[:300], y[:300], "squared", 1.0, 1.0)
    _, scores = run(KONS(1.0, kernel=POLY), X, y)
    np.testing.assert_allclose(scores[:300, 0], expected, atol=1e-8)
    assert np.abs(scores[1000:]).max() < 0.05


@pytest.mark.parametrize("make", [KONS, SketchedKONS])
@pytest.mark.parametrize("sparse", [False, True])
def test_float32_rows_are_measured_in_double(make, sparse):
    """Coefficients are of order 1 / alpha: kernel values rounded to single precision made them grow to 7e55."""
    X, y = stream(1500)
    X = X.astype(np.float32)
    learner = make(1.0, alpha=1e-6, kernel=Gaussian(gamma=0.2))
    _, double = run(learner, X.astype(np.float64), y)
    single, scores = run(learner, scipy.sparse.csr_array(X) if sparse else X, y, dtype=np.float32)
    assert (np.sign(scores[750:, 0]) != y[750:]).mean() < 0.35
    assert np.abs(single.state()["weights"]).max() < 1e8
    if not sparse:  # which sums distances otherwise
        np.testing.assert_array_equal(scores, double)
    assert single.state()["points"].dtype == np.float32


# ---- Sketched-KONS ----


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("forced", [{"gamma": 1.0}, {"gamma": 0.0, "beta": 1e12}])
def test_sketched_with_every_coin_is_kons(loss, forced):
    X, y = stream(200, seed=2)
    _, exact = run(KONS(0.6, alpha=0.3, loss=loss, kernel=POLY), X, y)
    _, sketched = run(SketchedKONS(0.6, alpha=0.3, loss=loss, kernel=POLY, **forced), X, y)
    np.testing.assert_array_equal(sketched, exact)


@pytest.mark.parametrize("gamma", [0.0, 0.3])
def test_sketched_is_the_newton_step_with_the_coins_of_kors(gamma):
    X, y = stream(250, seed=4)
    C, alpha, beta, eps, seed = 0.6, 0.3, 0.5, 0.5, 7
    sigma = curvature_constant("logistic", C)
    Phi = oracle.quadratic_features(X, GAMMA, COEF0)
    ons = oracle.OnlineNewtonStep(Phi.shape[1], C=C, alpha=alpha, loss="logistic", sigma=lambda t: sigma)
    draws, dictionary, expected, coins = Splitmix(seed), [], [], 0
    for z, t in zip(Phi, y, strict=True):
        f = ons.predict(z)
        bar = oracle.slope("logistic", f, t) * np.sqrt(sigma) * z
        p = min(beta * oracle.leverage(np.array(dictionary).reshape(-1, len(z)), bar, alpha, eps), 1.0)
        u = draws.uniform()
        if u < p:
            dictionary.append(bar / np.sqrt(p))
        coins += u < max(p, gamma)
        expected.append(ons.round(z, t, 1.0, u < max(p, gamma)))
    learner, scores = run(
        SketchedKONS(
            C, gamma=gamma, beta=beta, eps=eps, alpha=alpha, loss="logistic", kernel=POLY, seed=seed
        ),
        X,
        y,
    )
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-8, rtol=0)
    assert learner.n_newton == coins < len(X)
    assert len(learner.state()["dictionary_slots"]) == len(dictionary)
    assert set(learner.state()["dictionary_slots"]) <= set(learner.state()["newton_slots"])


@pytest.mark.parametrize("learner", [KONS(max_size=20), SketchedKONS(max_size=20)])
def test_growing_ones_stop_at_max_size(learner):
    X, y = stream(50)
    model = KernelClassifier(learner.set_params(kernel=POLY))
    with pytest.raises(CapacityError, match=r"max_size=20.*row 20 .*ProsNKons"):
        model.partial_fit(X, y, classes=[-1, 1])
    model.partial_fit(X[:20], y[:20], classes=[-1, 1])
    assert model.learner_.n_points == 20
    assert np.isfinite(model.decision_function(X)).all()


# ---- PROS-N-KONS ----


def nystrom(points, X, kernel):
    values, vectors = np.linalg.eigh(kernel(points, points))
    good = values > 1e-10 * values[-1]
    return kernel(X, points) @ vectors[:, good] / np.sqrt(values[good])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.5, 20.0])
def test_prosnkons_with_a_frozen_dictionary_is_ons_on_nystrom_features(loss, C):
    """A dictionary of max_size points (beta huge: the first rows) that never grows again."""
    X, y = stream(400, seed=8)
    m, kernel = 12, Gaussian(gamma=0.2)
    _, scores = run(ProsNKons(C, alpha=0.2, beta=1e9, max_size=m, loss=loss, kernel=kernel), X, y)
    Z = nystrom(X[:m], X, kernel)
    ons = oracle.OnlineNewtonStep(
        Z.shape[1], C=C, alpha=0.2, loss=loss, sigma=lambda t: curvature_constant(loss, C, t)
    )
    # rounds before m belong to smaller dictionaries
    expected = [ons.round(z, t) for z, t in zip(Z[m:], y[m:], strict=True)]
    np.testing.assert_allclose(scores[m:, 0], expected, atol=1e-8, rtol=0)
    assert ons.clipped > 0 or C > 1


@pytest.mark.parametrize("restart", [True, False])
def test_prosnkons_with_a_growing_dictionary(restart):
    """Every round by hand: ONS in the span of the dictionary as KORS leaves it, in explicit features."""
    X, y = stream(200, seed=9)
    C, alpha, gamma, beta, eps = 0.8, 0.3, 0.5, 0.7, 0.5
    Phi = oracle.quadratic_features(X, GAMMA, COEF0)
    kept, _, _ = oracle.kors(Phi, alpha=gamma, beta=beta, eps=eps, seed=5)
    D = Phi.shape[1]

    def fresh():
        return oracle.OnlineNewtonStep(
            D, C=C, alpha=alpha, loss="squared", sigma=lambda t: curvature_constant("squared", C, t)
        )

    ons = fresh()
    project, expected = np.zeros((D, D)), []
    for t in range(len(X)):
        z = project @ Phi[t]
        expected.append(ons.round(z, y[t]) if np.abs(z).sum() > 1e-9 else 0.0)
        if t in kept:
            span = Phi[[i for i in kept if i <= t]]
            project = np.linalg.pinv(span, rcond=1e-8) @ span
            if restart:
                ons = fresh()
    learner, scores = run(
        ProsNKons(C, alpha=alpha, gamma=gamma, beta=beta, eps=eps, kernel=POLY, restart=restart, seed=5), X, y
    )
    assert learner.n_points == len(kept) < 60
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-7, rtol=0)


def test_inverse_does_not_drift():
    X, y = stream(20_000, seed=10)
    kernel = Gaussian(gamma=0.2)
    learner, scores = run(ProsNKons(1.0, alpha=0.1, beta=1e9, max_size=20, kernel=kernel), X, y)
    Z = nystrom(X[:20], X[20:], kernel)
    g = scores[20:, 0] - y[20:]
    A = 0.1 * np.eye(Z.shape[1]) + (0.25 * g[:, None] ** 2 * Z).T @ Z
    eigenvalues = np.linalg.eigvalsh(learner.state()["inverse"])
    np.testing.assert_allclose(eigenvalues, np.sort(1 / np.linalg.eigvalsh(A)), rtol=1e-8)


@pytest.mark.parametrize("name", ["inverse", "P"])
def test_an_inverse_that_is_not_positive_stops_learning(name):
    X, y = stream(60, seed=10)
    learner = KRLS(0.01, max_size=9) if name == "P" else ProsNKons(1.0, alpha=0.1, beta=1e9, max_size=9)
    learner, _ = run(learner.set_params(kernel=Gaussian(gamma=0.2)), X[:40], y[:40])
    state = learner.state()
    state[name] = -100 * np.eye(len(state[name]))
    learner.restore(state)
    with pytest.raises(ScoreOverflowError, match=r"row 0\b"):
        learner.run(as_rows(X[40:]), y[40:])
    np.testing.assert_array_equal(learner.state()["weights"], state["weights"])


# ---- KRLS ----


@pytest.mark.parametrize("nu", [0.0, 0.05, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_krls_is_least_squares_on_its_dictionary(nu, weighted):
    X, y = stream(150, seed=11, regression=True)
    weights = np.random.default_rng(1).uniform(0.2, 3, len(X)) if weighted else None
    slow = oracle.KRLS(oracle.fast_gaussian(0.5), nu=nu, max_size=40)
    expected = [
        slow.round(x, np.array([t]), 1.0 if weights is None else weights[i])[0]
        for i, (x, t) in enumerate(zip(X, y, strict=True))
    ]
    learner, scores = run(KRLS(nu, kernel=Gaussian(gamma=0.5), max_size=40), X, y, weights, regression=True)
    assert learner.n_points == len(slow.points) == (40 if nu < 0.4 else 1 if nu >= 1 else learner.n_points)
    np.testing.assert_allclose(scores[:, 0], expected, atol=1e-7)


def test_krls_with_nu_zero_is_kernel_least_squares():
    """In the 10-dimensional space of the quadratic kernel: ordinary least squares on explicit features."""
    X, y = stream(400, seed=12, regression=True)
    learner, _ = run(KRLS(0.0, kernel=POLY), X, y, regression=True)
    assert learner.n_points == 10
    Phi = oracle.quadratic_features(X, GAMMA, COEF0)
    best = Phi @ np.linalg.lstsq(Phi, y, rcond=None)[0]
    np.testing.assert_allclose(learner.score(as_rows(X))[:, 0], best, atol=1e-8)


def test_krls_shares_its_dictionary_among_classes():
    X, _ = stream(200, seed=13)
    labels = np.argmax(X, axis=1)
    learner, scores = run(KRLS(0.05, kernel=Gaussian(gamma=0.3)), X, labels.astype(float), outputs=3)
    for c in range(3):
        single, one = run(KRLS(0.05, kernel=Gaussian(gamma=0.3)), X, np.where(labels == c, 1.0, -1.0))
        np.testing.assert_allclose(scores[:, c], one[:, 0], atol=1e-10)
        assert single.n_points == learner.n_points
    assert (scores[100:].argmax(axis=1) == labels[100:]).mean() > 0.8


# ---- what all of them do ----

ALL = {
    "KONS": KONS(0.8, alpha=0.1, loss="logistic", max_size=600),
    "SketchedKONS": SketchedKONS(0.8, alpha=0.1, max_size=600, seed=1),
    "ProsNKons": ProsNKons(1.0, alpha=0.1, max_size=30, beta=0.5, seed=2),
    "CON-KONS": ProsNKons(1.0, alpha=0.1, max_size=30, beta=0.5, seed=2, restart=False),
    "KRLS": KRLS(0.05, max_size=30),
}


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype
        np.testing.assert_array_equal(a[name], b[name])


@pytest.mark.parametrize("kernel", [None, Gaussian(gamma=0.3)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ALL)
def test_chunks_state_and_pickle_to_the_bit(name, dtype, kernel):
    learner = clone(ALL[name]).set_params(kernel=kernel)
    X, y = stream(400, seed=14)
    X = X.astype(dtype)
    weights = np.random.default_rng(2).choice([0.0, 1.0, 2.0], len(X))
    whole, scores = run(learner, X, y, weights, dtype=dtype)
    pieces = clone(learner).start(3, dtype=dtype)
    got, at = [], 0
    for size in [1, 1, 0, 2, 60, 7, 129, 200]:
        part = slice(at, at + size)
        untouched = pieces.score(as_rows(X[part], dtype))
        got.append(pieces.run(as_rows(X[part], dtype), y[part], weights[part]))
        if size == 1:
            np.testing.assert_array_equal(untouched, got[-1])
        at += size
        if size != 7:
            pieces = pickle.loads(pickle.dumps(pieces))
        else:
            pieces = clone(learner).restore(pieces.state())
    np.testing.assert_array_equal(np.vstack(got), scores)
    same(pieces.state(), whole.state())


@pytest.mark.parametrize("name", ALL)
def test_csr_and_float32_agree_with_dense_float64(name):
    learner = clone(ALL[name]).set_params(kernel=Gaussian(gamma=0.3))
    X, y = stream(250, seed=15)
    X[np.random.default_rng(3).random(X.shape) < 0.3] = 0
    _, dense = run(learner, X, y)
    _, sparse = run(learner, scipy.sparse.csr_array(X), y)
    np.testing.assert_allclose(sparse, dense, atol=1e-8)
    _, single = run(learner, X.astype(np.float32), y, dtype=np.float32)
    assert np.abs(single - dense).mean() < 2e-3


@pytest.mark.parametrize("name", ["ProsNKons", "CON-KONS", "KRLS"])
def test_bounded_ones_stop_growing(name):
    learner = clone(ALL[name]).set_params(kernel=Gaussian(gamma=2.0), max_size=25)
    learner.start(3)
    X, y = stream(6000, seed=16)
    learner.run(as_rows(X[:2000]), y[:2000])
    assert learner.n_points == 25
    size, points = learner.nbytes, learner.state()["points"]
    learner.run(as_rows(X[2000:]), y[2000:])
    assert learner.nbytes == size
    np.testing.assert_array_equal(learner.state()["points"], points)


@pytest.mark.parametrize("name", ALL)
def test_learns(name):
    size = 1000 if name != "ProsNKons" else 2000  # restarts take their time
    X, y = stream(size, seed=17)
    model = KernelClassifier(
        clone(ALL[name]).set_params(max_size=1000 if name in ("KONS", "SketchedKONS") else 30)
    )
    before = model.predict_then_learn(X, y.astype(int), classes=[-1, 1])
    assert (before != y)[size // 2 :].mean() < 0.22
    X, y = stream(size, seed=18, regression=True)
    if name != "KRLS":
        model.learner.set_params(C=3.0, alpha=1.0, loss="squared")
    predicted = KernelRegressor(model.learner).predict_then_learn(X, y)
    assert np.mean((predicted - y)[size // 2 :] ** 2) < 0.6 * np.var(y)


@pytest.mark.parametrize("name", ALL)
def test_classes_and_features_that_appear_later(name):
    X, y = stream(120, seed=19)
    model = KernelClassifier(clone(ALL[name]).set_params(kernel=Gaussian(gamma=0.3)))
    model.partial_fit(X[:1], y[:1])
    model.partial_fit(X[1:], y[1:])
    told = KernelClassifier(clone(ALL[name]).set_params(kernel=Gaussian(gamma=0.3))).partial_fit(
        X, y, classes=[-1, 1]
    )
    np.testing.assert_allclose(model.decision_function(X), told.decision_function(X), atol=1e-12)
    before = told.learner_.score(as_rows(X))
    told.learner_.widen(5)
    np.testing.assert_allclose(told.learner_.score(as_rows(np.pad(X, ((0, 0), (0, 2))))), before, atol=1e-12)


@pytest.mark.parametrize("learner", [KONS(), SketchedKONS(), ProsNKons()])
def test_three_classes(learner):
    X, _ = stream(300)
    labels = np.argmax(X, axis=1)
    one = KernelClassifier(
        learner, shuffle=False
    )  # an order in which ProsNKons does not begin anew at the end
    assert one.fit(X, labels).score(X, labels) > 0.6
    assert OneVsRestClassifier(one).fit(X, labels).score(X, labels) > 0.6


@pytest.mark.parametrize("make", [KONS, SketchedKONS, ProsNKons])
def test_bad_parameters(make):
    for wrong in ({"C": 0}, {"alpha": 0}, {"eta": -1}, {"max_size": 0}, {"loss": "none"}):
        with pytest.raises(ValueError, match=r"must be"):
            make(**wrong)
    with pytest.raises(ValueError, match="not for regression"):
        make(loss="logistic").start(2, regression=True)
    with pytest.raises(ValueError, match="nu must be"):
        KRLS(-1)
    if make is not KONS:
        for wrong in ({"eps": 0}, {"eps": 2}, {"beta": 0}, {"gamma": -1}):
            with pytest.raises(ValueError, match="must be"):
                make(**wrong)


def test_probabilities_with_the_logistic_loss():
    X, y = stream(200, seed=20)
    p = KernelClassifier(ProsNKons(3.0, loss="logistic")).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)


@pytest.mark.parametrize("name", ALL)
def test_callable_kernels(name):
    X, y = stream(120, seed=21)
    _, compiled = run(clone(ALL[name]).set_params(kernel=POLY), X, y)
    _, called = run(clone(ALL[name]).set_params(kernel=lambda A, B: (0.7 * A @ B.T + 0.4) ** 2), X, y)
    np.testing.assert_allclose(called, compiled, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("scale", [1e-160, 1e80, 1e155])
def test_huge_values_are_refused_and_leave_the_model_sound(name, scale):
    """A kernel value beyond the range of floats is an error naming the row; the rows before stay learnt."""
    X, y = stream(80, seed=22)
    learner = clone(ALL[name]).set_params(kernel=POLY).start(3)
    learner.run(as_rows(X[:40]), y[:40])
    before = learner.score(as_rows(X))
    if scale > 1e100:
        with pytest.raises(ScoreOverflowError, match=r"row 0\b"):
            learner.run(as_rows(X[40:] * scale), y[40:])
        np.testing.assert_array_equal(learner.score(as_rows(X)), before)
    else:
        with contextlib.suppress(ScoreOverflowError):
            assert np.isfinite(learner.run(as_rows(X[40:] * scale), y[40:])).all()
    assert np.isfinite(learner.score(as_rows(X))).all()
    fresh = clone(learner).start(3)
    with contextlib.suppress(ScoreOverflowError):
        assert np.isfinite(fresh.run(as_rows(X * scale), y)).all()
    assert np.isfinite(fresh.score(as_rows(X))).all()
