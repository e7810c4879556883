"""Regret and dictionary growth of the second-order learners, as a table.

    python benchmarks/kons_regret.py > docs/results/kons.md

Regret is the sum of squared losses (f - y)^2 / 2 of the predictions made before learning, minus that of the
best fixed function in hindsight, which is the least-squares solution in an explicit feature space (it stays
within [-C, C] on these streams).
"""

from __future__ import annotations

import time

import numpy as np

from kernelstream import Polynomial
from kernelstream.learners import KOGD, KONS, NOGD, ProsNKons, SketchedKONS
from kernelstream.rows import as_rows
from kernelstream.sketches import RidgeLeverageSampler

QUADRATIC = Polynomial(degree=2, gamma=1.0, coef0=1.0)
C = 2.0


PREFACE = f"""Made by `python benchmarks/kons_regret.py > docs/results/kons.md`.

Squared loss, quadratic kernel in the plane (six dimensions), C = {C:g}, alpha = 1. Points, bytes and time are
those of the longest run. The curvature constant is 1 / (2 + |y|)^2, from 1 / 16 to 1 / 4 for targets within
[-2, 2], so the Newton steps are cautious; the first-order learners with stepsize 1 / sqrt(T) are ahead on the
easy stream; the point is how the rows grow: KONS and CON-KONS by about a constant for each doubling of T, the
first-order ones by a factor of about 1.4. On the counter-example Sketched-KONS without a least probability
keeps little and pays for it, as the paper says.
"""


def features(X):
    """The six dimensions of (x.y + 1)^2 in the plane."""
    a, b = X.T
    return np.column_stack([np.ones(len(X)), 2**0.5 * a, 2**0.5 * b, 2**0.5 * a * b, a**2, b**2])


def stationary(T, seed=0):
    """Rows in the square, targets a quadratic function of them plus noise, all within [-C, C]."""
    r = np.random.default_rng(seed)
    X = r.uniform(-1, 1, (T, 2))
    y = 0.6 * X[:, 0] * X[:, 1] - 0.5 * X[:, 0] ** 2 + 0.3 * X[:, 1] + r.uniform(-0.5, 0.5, T)
    return X, y


def one_point(T, seed=0):
    """The paper's Section 6: one point, targets C and -C in turn."""
    return np.full((T, 2), 0.5), np.where(np.arange(T) % 2 == 0, C, -C)


def regret(scores, X, y, checkpoints):
    """Regret at each checkpoint, against the best function for the rows up to there."""
    Z, made = features(X), []
    for t in checkpoints:
        best = Z[:t] @ np.linalg.lstsq(Z[:t], y[:t], rcond=None)[0]
        made.append(float(np.sum((scores[:t] - y[:t]) ** 2 - (best - y[:t]) ** 2) / 2))
    return made


def learners(T):
    """The learners at horizon T; first-order ones get the stepsize 1 / sqrt(T) that their theory asks for."""
    eta = 1 / np.sqrt(T)
    return {
        "KONS": KONS(C, alpha=1.0, kernel=QUADRATIC, max_size=T),
        "SketchedKONS gamma=0.1": SketchedKONS(
            C, gamma=0.1, beta=1.0, alpha=1.0, kernel=QUADRATIC, max_size=T
        ),
        "SketchedKONS gamma=0": SketchedKONS(C, gamma=0.0, beta=1.0, alpha=1.0, kernel=QUADRATIC, max_size=T),
        "ProsNKons": ProsNKons(C, alpha=1.0, kernel=QUADRATIC, max_size=50),
        "CON-KONS": ProsNKons(C, alpha=1.0, kernel=QUADRATIC, max_size=50, restart=False),
        "KOGD": KOGD(eta=eta, loss="squared", kernel=QUADRATIC, max_size=T),
        "NOGD": NOGD(20, rank=6, eta=eta, loss="squared", kernel=QUADRATIC),
    }


def size_of(learner):
    """Points stored, and gradients in the second-order matrix."""
    state = learner.state()
    return len(state["points"]), len(state["newton_slots"]) if "newton_slots" in state else len(
        state.get("inverse", [])
    )


def table(stream, horizons):
    print(
        "| learner | "
        + " | ".join(f"R at {t}" for t in horizons)
        + " | points | second-order | bytes | us / round |"
    )
    print("|---|" + "---|" * (len(horizons) + 4))
    for name in learners(1):
        found = []
        for T in horizons:  # a run for each horizon, since the first-order stepsizes depend on it
            X, y = stream(T)
            learner = learners(T)[name].start(2, regression=True)
            start = time.perf_counter()
            scores = learner.run(as_rows(X), y)[:, 0]
            seconds = time.perf_counter() - start
            found.append(regret(scores, X, y, [T])[0])
        points, matrix = size_of(learner)
        cells = " | ".join(f"{r:.2f}" for r in found)
        print(f"| {name} | {cells} | {points} | {matrix} | {learner.nbytes} | {1e6 * seconds / T:.1f} |")
    print()


def growth(checkpoints):
    print("| rows | dictionary | effective dimension, estimated | online dimension, estimated |")
    print("|---|---|---|---|")
    sampler, before = RidgeLeverageSampler(1.0, beta=2.0, eps=0.5, kernel=QUADRATIC), 0
    X, _ = stationary(checkpoints[-1])
    for t in checkpoints:
        sampler.partial_fit(X[before:t])
        before = t
        n, d, o = len(sampler.indices_), sampler.effective_dimension_, sampler.online_dimension_
        print(f"| {t} | {n} | {d:.2f} | {o:.1f} |")


if __name__ == "__main__":
    print("# Regret and dictionaries of the KONS family\n")
    print(PREFACE)
    print("## A stationary stream\n")
    table(stationary, [250, 500, 1000, 2000, 4000])
    print("## The paper's Section 6: one point, alternating targets\n")
    table(one_point, [250, 500, 1000, 2000, 4000])
    print("## KORS: the dictionary follows the effective dimension\n")
    growth([250, 1000, 4000, 16_000, 64_000])
