"""Regret, measured: logarithmic for second-order learners with the squared loss, sqrt(T) for first-order
ones.

Regret is against the best fixed function in hindsight, of norm at most RADIUS: the least-squares solution in
an explicit feature space.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from kernelstream import Gaussian, Polynomial
from kernelstream.learners import FOGD, KOGD, KONS, NOGD, ProsNKons, SketchedKONS
from kernelstream.rows import as_rows

QUADRATIC = Polynomial(degree=2, gamma=1.0, coef0=1.0)
C, RADIUS = 2.0, 2.0
HORIZONS = [200, 400, 800, 1600]


def features(X):
    """The six dimensions of (x.y + 1)^2 in the plane."""
    a, b = X.T
    return np.column_stack([np.ones(len(X)), 2**0.5 * a, 2**0.5 * b, 2**0.5 * a * b, a**2, b**2])


def stationary(T, seed):
    r = np.random.default_rng(seed)
    X = r.uniform(-1, 1, (T, 2))
    return X, 0.6 * X[:, 0] * X[:, 1] - 0.5 * X[:, 0] ** 2 + 0.3 * X[:, 1] + r.uniform(-0.5, 0.5, T)


def best_in_hindsight(Z, y):
    """Least squares with |w| <= RADIUS: ridge regression with the multiplier that makes it so."""
    w = np.linalg.lstsq(Z, y, rcond=None)[0]
    if np.linalg.norm(w) <= RADIUS:
        return w

    def ridge(lam):
        return np.linalg.solve(Z.T @ Z + lam * np.eye(Z.shape[1]), Z.T @ y)

    return ridge(brentq(lambda lam: np.linalg.norm(ridge(lam)) - RADIUS, 1e-9, len(y)))


def regret(scores, Z, y):
    best = Z @ best_in_hindsight(Z, y)
    assert np.abs(best).max() <= C  # the comparator is in the paper's class S
    return float(np.sum((scores - y) ** 2 - (best - y) ** 2) / 2)


def run(learner, X, y):
    return learner.start(X.shape[1], regression=True).run(as_rows(X), y)[:, 0]


def mean_regrets(make, horizons, seeds=4, one_run=False, space=None):
    """Mean over seeds of the regret at each horizon; `one_run` reads all of them off the longest run."""
    found = np.zeros(len(horizons))
    for seed in range(seeds):
        X, y = stationary(horizons[-1], seed)
        learner = make(horizons[-1])
        scores = run(learner, X, y)
        for i, T in enumerate(horizons):
            if not one_run:
                learner = make(T)
                scores = run(learner, X[:T], y[:T])
            found[i] += regret(scores[:T], (space or features_in_plane)(learner, X[:T]), y[:T]) / seeds
    return found


def power(horizons, regrets):
    """The exponent p of the fit R = c T^p."""
    return np.polyfit(np.log(horizons), np.log(regrets), 1)[0]


def assert_logarithmic(horizons, regrets):
    """R = a + b log T fits; horizons are multiplied by one factor, and each time R grows by about as much."""
    logs = np.log(horizons)
    b, a = np.polyfit(logs, regrets, 1)
    assert b > 0
    assert np.abs(a + b * logs - regrets).max() < 0.06 * regrets[-1]
    steps = np.diff(
        regrets
    )  # for sqrt(T) the last would be sqrt(T_last / T_2) times the first, 2 or more here
    assert steps[-1] < 1.5 * steps[0]
    assert power(horizons, regrets) < 0.4


def test_kons_is_logarithmic():
    regrets = mean_regrets(lambda T: KONS(C, kernel=QUADRATIC), HORIZONS, one_run=True)
    assert_logarithmic(HORIZONS, regrets)


@pytest.mark.parametrize("restart", [False, True])
def test_prosnkons_is_logarithmic_in_bounded_memory(restart):
    """Once the dictionary is full there are no restarts."""
    horizons = [5000, 20_000, 80_000, 320_000]
    regrets = mean_regrets(
        lambda T: ProsNKons(C, kernel=QUADRATIC, max_size=20, restart=restart),
        horizons,
        seeds=2,
        one_run=True,
    )
    assert_logarithmic(horizons, regrets)


def features_in_plane(learner, X):
    return features(X)


def fourier(angles):
    return np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(angles.shape[1])


FIRST_ORDER = {
    "KOGD": (lambda T: KOGD(eta=T**-0.5, loss="squared", kernel=QUADRATIC), features_in_plane),
    "NOGD": (
        lambda T: NOGD(20, rank=6, eta=T**-0.5, loss="squared", kernel=QUADRATIC),
        features_in_plane,
    ),
    "FOGD": (
        lambda T: FOGD(20, eta=T**-0.5, loss="squared", kernel=Gaussian(gamma=0.5)),
        lambda learner, X: fourier(X @ learner.frequencies()),
    ),
}


@pytest.mark.parametrize("name", FIRST_ORDER)
def test_first_order_ones_are_sqrt_or_slower(name):
    make, space = FIRST_ORDER[name]
    # Fourier features have many directions of little variance, which small steps learn late: longer runs.
    horizons = [400, 1600, 6400] if name != "FOGD" else [6400, 25_600, 102_400, 409_600]
    regrets = mean_regrets(make, horizons, seeds=2, space=space)
    assert (regrets > 0).all()
    assert power(horizons, regrets) < 0.6


# ---- the paper's Section 6: one point, targets C and -C in turn; 0 is the best function ----


def one_point(T):
    return np.full((T, 2), 0.5), np.where(np.arange(T) % 2 == 0, C, -C)


def counter_example(learner, horizons):
    X, y = one_point(horizons[-1])
    scores = run(learner, X, y)
    gained = np.cumsum((scores - y) ** 2 - y**2) / 2
    return gained[np.array(horizons) - 1]


def test_counter_example_kons_is_logarithmic_while_it_grows():
    learner = KONS(C, kernel=QUADRATIC)
    regrets = counter_example(learner, HORIZONS)
    assert_logarithmic(HORIZONS, regrets)
    assert np.diff(regrets)[-1] < 1.05 * np.diff(regrets)[0]
    # A has rank one, and yet it stores it all.
    assert learner.n_points == len(learner.state()["newton_slots"]) == HORIZONS[-1]
    half = KONS(C, kernel=QUADRATIC).start(2, regression=True)
    half.run(as_rows(one_point(800)[0]), one_point(800)[1])
    assert learner.nbytes > 3 * half.nbytes


def test_counter_example_sketching_trades_memory_for_regret():
    """Unweighted gradients with small coins: less in A, more regret, as the paper says of dictionaries."""
    exact = counter_example(KONS(C, kernel=QUADRATIC), [1600])[0]
    found, kept = [], []
    for gamma in (0.3, 0.03, 0.0):
        learner = SketchedKONS(C, gamma=gamma, beta=1.0, kernel=QUADRATIC)
        found.append(counter_example(learner, [1600])[0])
        kept.append(learner.n_newton)
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] < 30
    assert exact < found[0] < found[1] < found[2]


def test_counter_example_a_projected_gradient_needs_no_memory():
    """A dictionary of gradients cannot do it, one of points to project on can: CON-KONS has KONS's regret."""
    learner = ProsNKons(C, kernel=QUADRATIC, restart=False)
    bounded = counter_example(learner, HORIZONS)
    np.testing.assert_allclose(bounded, counter_example(KONS(C, kernel=QUADRATIC), HORIZONS), rtol=0.02)
    assert learner.n_points < 30
    assert len(learner.state()["inverse"]) == 1
