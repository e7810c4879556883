"""What is done in one trial of the KONS paper: a learner's regret on a stream, or the dictionary KORS makes of it.

All streams are seen through kernels with k(x, x) <= 1 whose features can be written down: the comparator, the dimensions and the
bounds are computed from them, to rounding.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from kernelstream.kernels import Gaussian, Polynomial
from kernelstream.learners import KOGD, KONS, NOGD, Learner, ProsNKons, SketchedKONS
from kernelstream.rows import as_rows
from kernelstream.sketches import RidgeLeverageSampler
from kernelstream_reproduce.trials import Outcome, Procedure, Trial

__all__ = ["PROCEDURES"]

Array = NDArray[Any]

C = 2.0
"""Bound of scores and targets, and of the comparator's norm: with k(x, x) <= 1 its values are within [-C, C] then."""
RIDGE = 1.0
"""Ridge of the dictionaries."""
SIGMA = 1 / (4 * C**2)
"""The curvature of (f - y)^2 / 2 for scores and targets within [-C, C]; its slope is at most L = 2 C, so sigma L^2 = 1."""
EPS = 0.5
DELTA = 0.1
NORM, NOISE = 1.5, 0.5  # of the true function, so that |y| <= C

QUADRATIC = Polynomial(degree=2, gamma=0.25, coef0=0.5)
GAUSSIAN = Gaussian(gamma=2.0)
KERNELS = {"quadratic": QUADRATIC, "gaussian": GAUSSIAN, "one-point": GAUSSIAN}


def features(data: str, X: Array) -> Array:
    """The features of a stream's kernel: six of the quadratic one, the Taylor series of the Gaussian one on [-1, 1].

    >>> X = np.random.default_rng(0).uniform(-1, 1, (50, 1))
    >>> Z = features("gaussian", X)
    >>> bool(np.abs(Z @ Z.T - GAUSSIAN(X, X)).max() < 1e-14)
    True
    """
    if data == "quadratic":
        g, c = QUADRATIC.gamma, QUADRATIC.coef0
        a, b = X.T
        line, cross = math.sqrt(2 * g * c), math.sqrt(2) * g
        return np.column_stack([np.full(len(X), c), line * a, line * b, cross * a * b, g * a**2, g * b**2])
    if data == "one-point":
        return np.ones((len(X), 1))
    gamma = 2.0
    orders = np.arange(45)
    scales = np.array([math.sqrt((2 * gamma) ** k / math.factorial(k)) for k in orders])
    columns: Array = np.exp(-gamma * X**2) * scales * X**orders
    return columns


def stream(data: str, T: int, seed: int) -> tuple[Array, Array]:
    """Runs and targets within [-C, C].

    "quadratic": rows in the square, a quadratic function plus noise. "gaussian": rows in [-1, 1], a sum of three
    bumps plus noise. "one-point" (Section 6): one row again and again, targets C and -C in turn.
    """
    if data == "one-point":
        return np.zeros((T, 1)), np.where(np.arange(T) % 2 == 0, C, -C)
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, (T, 2 if data == "quadratic" else 1))
    if data == "quadratic":
        w = np.array([0.0, 0.0, 1.0, 1.0, -1.0, 0.0])
    else:
        w = features(data, np.array([[-0.6], [0.1], [0.7]])).T @ np.array([1.0, -1.0, 1.0])
    return X, features(data, X) @ (NORM * w / np.linalg.norm(w)) + random.uniform(-NOISE, NOISE, T)


def comparator(Z: Array, y: Array, radius: float = C) -> Array:
    """Least squares with |w| <= radius: ridge regression with the multiplier that makes it so."""
    values, vectors = np.linalg.eigh(Z.T @ Z)
    goal = vectors.T @ (Z.T @ y)
    values = np.maximum(values, 0.0)

    def ridge(log_multiplier: float) -> Array:
        weights: Array = goal / (values + math.exp(log_multiplier))
        return weights

    def excess(log_multiplier: float) -> float:
        return float(np.linalg.norm(ridge(log_multiplier))) - radius

    low = math.log(1e-9)
    at = low if excess(low) <= 0 else brentq(excess, low, math.log(1e3 * (1 + len(y))))
    weights: Array = vectors @ ridge(at)
    return weights


def leverages(Z: Array, alpha: float) -> Array:
    """tau_t = z_t^T (sum_{s <= t} z_s z_s^T + alpha I)^-1 z_t, the ridge leverage score of each row among those up to it.

    >>> leverages(np.ones((3, 1)), 1.0).round(4).tolist()
    [0.5, 0.3333, 0.25]
    """
    inverse = np.eye(Z.shape[1]) / alpha
    scores = np.empty(len(Z))
    for t, z in enumerate(Z):
        image = inverse @ z
        size = float(z @ image)
        inverse -= np.outer(image, image) / (1 + size)
        scores[t] = size / (1 + size)
    return scores


def effective_dimension(Z: Array, alpha: float) -> float:
    """Tr(K (K + alpha I)^-1).

    >>> round(effective_dimension(np.ones((3, 1)), 1.0), 6)
    0.75
    """
    values = np.maximum(np.linalg.eigvalsh(Z.T @ Z), 0.0)
    return float(np.sum(values / (values + alpha)))


def learner_of(trial: Trial) -> Learner:
    """The learner of a trial; the first-order ones take steps of 1 / sqrt(T)."""
    T, kernel = trial.rows or 1, KERNELS[trial.data]
    newton: dict[str, Any] = {"eta": SIGMA, "kernel": kernel, "max_size": T, **trial.settings}
    coins: dict[str, Any] = {"eps": EPS, "seed": trial.seed}
    learners: dict[str, Callable[[], Learner]] = {
        "KONS": lambda: KONS(C, **newton),
        "Sketched-KONS": lambda: SketchedKONS(C, **newton, **coins),
        "PROS-N-KONS": lambda: ProsNKons(C, **newton | {"max_size": 60}, **coins),
        "KOGD": lambda: KOGD(eta=T**-0.5, loss="squared", kernel=kernel, max_size=T),
        "NOGD": lambda: NOGD(**trial.settings, eta=T**-0.5, loss="squared", kernel=kernel),
    }
    return learners[trial.learner]()


def regret(trial: Trial) -> Outcome:
    """Regret after all rounds against the best function of norm at most C, and the bounds of Theorems 1 and 3."""
    T = trial.rows or 1
    X, y = stream(trial.data, T, trial.seed)
    learner = learner_of(trial).start(X.shape[1], regression=True)
    start = time.process_time()
    scores = learner.run(as_rows(X), y)[:, 0]
    spent = time.process_time() - start
    Z = features(trial.data, X)
    best = comparator(Z, y)
    lost = float(np.sum((scores - y) ** 2 - (Z @ best - y) ** 2) / 2)
    state = learner.state()
    measures = {"regret": lost, "rounds": float(T), "points": float(len(state["points"]))}
    if trial.learner in ("KONS", "Sketched-KONS"):
        measures["second_order_points"] = float(len(state["newton_slots"]))
        alpha = trial.settings["alpha"]
        rescaled = leverages(Z * (math.sqrt(SIGMA) * (scores - y))[:, None], alpha)
        norm = alpha * float(best @ best)
        dimension = effective_dimension(Z, alpha)
        general = 2 * dimension * math.log(2 * T) / SIGMA  # sigma L^2 = 1
        measures |= {"effective_dimension": dimension, "online_dimension": float(rescaled.sum())}
        if trial.learner == "KONS":
            measures |= {"bound": norm + float(rescaled.sum()) / SIGMA, "bound_effective": norm + general}
        else:
            least = max(trial.settings["gamma"], trial.settings["beta"] * float(rescaled.min()))
            measures["bound"] = norm + general / least
    return Outcome(measures, spent)


@lru_cache(maxsize=8)
def _dimensions(data: str, T: int, seed: int) -> tuple[float, float, float, float]:
    """Effective and online dimension, log det(K / ridge + I), and what Lemma 3 bounds it with."""
    Z = features(data, stream(data, T, seed)[0])
    scores = leverages(Z, RIDGE)
    dimension = effective_dimension(Z, RIDGE)
    norm = float(np.linalg.eigvalsh(Z.T @ Z)[-1])
    log_det = float(-np.log1p(-scores).sum())
    return dimension, float(scores.sum()), log_det, dimension * (1 + math.log(norm / RIDGE + 1))


def theory_beta(T: int) -> float:
    """The least beta Theorem 2 asks for.

    >>> round(theory_beta(1000), 1)
    110.5
    """
    return 3 * math.log(T / DELTA) / EPS**2


def dictionary(trial: Trial) -> Outcome:
    """KORS: the size of its dictionary beside the dimensions, its accuracy, and the size of Theorem 2."""
    T = trial.rows or 1
    X, _ = stream(trial.data, T, trial.seed)
    beta = theory_beta(T) if trial.settings["beta"] == "theory" else trial.settings["beta"]
    sampler = RidgeLeverageSampler(
        RIDGE, beta=beta, eps=EPS, kernel=KERNELS[trial.data], max_size=T, seed=trial.seed
    )
    start = time.process_time()
    sampler.fit(X)
    spent = time.process_time() - start
    dimension, online, log_det, lemma = _dimensions(trial.data, T, trial.seed)
    Z = features(trial.data, X)
    kept = Z[sampler.indices_] * np.sqrt(sampler.weights_)[:, None]
    ridge = RIDGE * np.eye(Z.shape[1])
    root = np.linalg.cholesky(Z.T @ Z + ridge)
    half = np.linalg.solve(root, kept.T @ kept + ridge)
    ratios = np.linalg.eigvalsh(np.linalg.solve(root, half.T))
    rho = (1 + EPS) / (1 - EPS)
    return Outcome(
        {
            "points": float(len(kept)),
            "bound": 3 * rho * beta * online,
            "effective_dimension": dimension,
            "online_dimension": online,
            "online_dimension_estimated": sampler.online_dimension_,
            "log_determinant": log_det,
            "lemma3": lemma,
            "ratio_least": float(ratios[0]),
            "ratio_largest": float(ratios[-1]),
        },
        spent,
    )


PROCEDURES: dict[str, Procedure] = {"kons-regret": regret, "kons-dictionary": dictionary}
