"""Learners and variants that are not in the papers' tables, beside the old ones: mistakes, regret and cost on six streams.

KERNELSTREAM_DATA=... python benchmarks/new_algorithms.py [--permutations 3] > docs/results/new_algorithms.md

Every learner has its default parameters but for a budget of 100 (and what its row says), the Gaussian kernel with the median
bandwidth unless a kernel is named, and standardised features. Nothing is tuned to a stream.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import time
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse
from sklearn.base import clone
from sklearn.svm import LinearSVC

from kernelstream import KernelClassifier, Laplacian, Matern, RationalQuadratic
from kernelstream.alignment import CANDIDATES, IncrementalAlignment, select_bandwidth
from kernelstream.kernels import Gaussian
from kernelstream.learners import (
    BOGD,
    BSGD,
    FOGD,
    KOGD,
    KONS,
    NOGD,
    NOLANA,
    OKSSIL,
    DoublySGD,
    ProsNKons,
    SketchedKONS,
)
from kernelstream.losses import Loss
from kernelstream.rows import as_rows
from kernelstream.sketches import FastNystrom, IncrementalNystrom, ModifiedNystrom
from kernelstream.sketches.fast import SKETCHES
from kernelstream_reproduce.streams import permuted

STREAMS = ("german.numer_scale", "svmguide3", "spambase", "ijcnn1", "mushrooms", "usps")
ROWS = 2000
REGRET_ROWS = 1000
B = 100
LEARNERS: dict[str, Any] = {
    "KOGD (no budget)": KOGD(),
    "BOGD": BOGD(budget=B),
    "**BSGD, merging**": BSGD(budget=B),
    "**BSGD, removal**": BSGD(budget=B, maintenance="removal"),
    "FOGD": FOGD(n_components=4 * B),
    "**DoublySGD** (no budget)": DoublySGD(),
    "NOGD": NOGD(budget=B),
    "NOLANA": NOLANA(budget=B),
    "**NOLANA, small solver**": NOLANA(budget=B, solver="small"),
    "**NOLANA, weighted**": NOLANA(budget=B, weighted=True),
    "**NOLANA, lifetime 200**": NOLANA(budget=B, lifetime=200),
    "OKSSIL": OKSSIL(budget=B),
    "**OKSSIL, Laplacian**": OKSSIL(budget=B, kernel=Laplacian()),
    "**OKSSIL, Matern 1/2**": OKSSIL(budget=B, kernel=Matern(nu=0.5)),
    "**OKSSIL, Matern 5/2**": OKSSIL(budget=B, kernel=Matern(nu=2.5)),
    "**OKSSIL, rational quadratic**": OKSSIL(budget=B, kernel=RationalQuadratic()),
    "KONS (no budget)": KONS(),
    "**KONS, hinge** (no budget)": KONS(loss="hinge"),
    "**KONS, hinge, d_eff = 20** (no budget)": KONS(loss="hinge", dimension=20.0),
    "**KONS, decrement above 0.05** (no budget)": KONS(least_decrement=0.05),
    "SketchedKONS (no budget)": SketchedKONS(),
    "**SketchedKONS, weighted** (no budget)": SketchedKONS(weighted=True),
    "ProsNKons": ProsNKons(max_size=B),
    "**ProsNKons, hinge**": ProsNKons(max_size=B, loss="hinge"),
}


def rows_of(name: str, seed: int) -> tuple[Any, Any]:
    """Up to ROWS rows in a random order, standardised."""
    X, y = permuted(name, seed, ROWS)
    X = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1), y


def learners(data: dict[tuple[str, int], tuple[Any, Any]], permutations: int) -> None:
    print(f"| learner | {' | '.join(STREAMS)} | mean | µs per row |")
    print("|---" * (len(STREAMS) + 3) + "|")
    for label, learner in LEARNERS.items():
        cells, seconds, rows = [], 0.0, 0
        for name in STREAMS:
            wrong = []
            for seed in range(permutations):
                X, y = data[name, seed]
                model = KernelClassifier(learner)
                start = time.process_time()
                wrong.append(100 * float(np.mean(model.predict_then_learn(X, y, classes=np.unique(y)) != y)))
                seconds, rows = seconds + time.process_time() - start, rows + len(y)
            cells.append(float(np.mean(wrong)))
        line = " | ".join(f"{cell:.1f}" for cell in [*cells, float(np.mean(cells))])
        print(f"| {label} | {line} | {1e6 * seconds / rows:.0f} |", flush=True)


def least_cost(loss: Loss, F: Any, y: Any) -> float:
    """``min_w sum_t loss(w . F_t, y_t) + |w|^2 / 2``."""
    if loss.name == "hinge":
        fitted = LinearSVC(C=1.0, loss="hinge", fit_intercept=False, max_iter=20_000, tol=1e-3).fit(F, y)
        w = fitted.coef_[0]
        return float(loss.value(F @ w, y).sum() + w @ w / 2)

    def cost(w: Any) -> tuple[float, Any]:
        f = F @ w
        return float(loss.value(f, y).sum() + w @ w / 2), F.T @ loss.slope(f, y) + w

    return float(scipy.optimize.minimize(cost, np.zeros(F.shape[1]), jac=True, method="L-BFGS-B").fun)


def regrets(data: dict[tuple[str, int], tuple[Any, Any]]) -> None:
    print(f"\n| learner | loss | {' | '.join(STREAMS)} | mean |\n|---" + "|---" * (len(STREAMS) + 2) + "|")
    best: dict[tuple[str, str, str], float] = {}
    for label, learner in LEARNERS.items():
        cells = []
        for name in STREAMS:
            X, y = data[name, 0][0][:REGRET_ROWS], data[name, 0][1][:REGRET_ROWS]
            classes, codes = np.unique(y, return_inverse=True)
            columns = [codes] if len(classes) == 2 else [codes == c for c in range(len(classes))]
            signs = np.array([np.where(column, 1.0, -1.0) for column in columns])
            targets = signs[0] if len(columns) == 1 else codes.astype(float)
            started = clone(learner).start(X.shape[1], len(columns))
            scores, loss = started.run(as_rows(X), targets), started._loss()
            kernel = (learner.kernel or Gaussian()).settle(X[:128])
            key = name, loss.name, repr(kernel)
            if key not in best:
                values, vectors = np.linalg.eigh(kernel(X))
                F = vectors * np.sqrt(np.maximum(values, 0))
                best[key] = sum(least_cost(loss, F, sign) for sign in signs)
            cells.append((float(loss.value(scores.T, signs).sum()) - best[key]) / len(y))
        line = " | ".join(f"{cell:.3f}" for cell in [*cells, float(np.mean(cells))])
        print(f"| {label} | {loss.name} | {line} |", flush=True)


def sketches(data: dict[tuple[str, int], tuple[Any, Any]]) -> None:
    print(f"\n| sketch | {' | '.join(STREAMS)} | seconds |\n|---" + "|---" * (len(STREAMS) + 1) + "|")
    kinds: dict[str, Any] = {
        "IncrementalNystrom (the first 50 rows)": IncrementalNystrom(50, rank=50),
        "ModifiedNystrom": ModifiedNystrom(50),
        **{f"**FastNystrom, {name}**": FastNystrom(50, size=200, sketch=name) for name in SKETCHES},
    }
    for label, sketch in kinds.items():
        cells, start = [], time.process_time()
        for name in STREAMS:
            X = data[name, 0][0][:1000]
            cells.append(f"{sketch.fit(X).relative_error(X):.4f}")
        print(f"| {label} | {' | '.join(cells)} | {time.process_time() - start:.1f} |", flush=True)


def alignments(data: dict[tuple[str, int], tuple[Any, Any]]) -> None:
    print(
        f"\n| bandwidth of the best alignment | {' | '.join(STREAMS[:-1])} | seconds |\n|---"
        + "|---" * len(STREAMS)
        + "|"
    )
    batch, online, spent = [], [], [0.0, 0.0]
    for name in STREAMS[:-1]:
        X, y = data[name, 0]
        y = np.where(y == np.unique(y)[1], 1.0, -1.0)
        start = time.process_time()
        batch.append(f"2^{np.log2(select_bandwidth(X, y)):g}")
        middle = time.process_time()
        kernels = [Gaussian(bandwidth=s) for s in CANDIDATES]
        online.append(f"2^{np.log2(IncrementalAlignment(kernels).fit(X, y).best_.bandwidth):g}")
        spent = [spent[0] + middle - start, spent[1] + time.process_time() - middle]
    print(f"| `select_bandwidth`, all pairs | {' | '.join(batch)} | {spent[0]:.1f} |")
    print(f"| **`IncrementalAlignment`**, 100 rows stored | {' | '.join(online)} | {spent[1]:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--permutations", type=int, default=3)
    given = parser.parse_args()
    data = {(name, seed): rows_of(name, seed) for name in STREAMS for seed in range(given.permutations)}
    print(
        f"""# New learners, variants and sketches beside the old ones

Machine: [two cores of a busy server](index.md#the-machine).

Made by `python benchmarks/new_algorithms.py --permutations {given.permutations}`: {ROWS} rows (or all, if there are fewer)
of each stream, in {given.permutations} random orders, standardised; budget {B}; defaults otherwise, nothing tuned. What is new
is **bold**. Mistakes in percent of one pass, predicting each row before it is learnt; processor time per row over all streams.
"""
    )
    learners(data, given.permutations)
    print(
        f"""
Regret per row, on the first {REGRET_ROWS} rows of the first order: the sum of a learner's own losses, each row before it is
learnt, less the least that one fixed function pays on the same rows, `min_h sum_t loss(h(x_t), y_t) + |h|^2 / 2` over all h of
the kernel that the learner starts with, divided by the number of rows; summed over the classes of usps. Below 0 a learner is
better than the best fixed function. Compare rows of one loss only."""
    )
    regrets(data)
    print(
        "\nKernel approximation: the relative error |K~ - K|^2 / |K|^2 on 1,000 rows, 50 landmarks, s = 200."
    )
    sketches(data)
    print("\nThe bandwidth that kernel alignment chooses, from all rows at once and from the stream.")
    alignments(data)


if __name__ == "__main__":
    main()
