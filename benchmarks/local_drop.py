"""What a full local memory should drop: the oldest row, a random one (reservoir), or a redundant one. In NumPy.

    KERNELSTREAM_DATA=... python benchmarks/local_drop.py [--rows 6000] [--kept 500] [--out docs/results/local_drop.md]

A plain version of the default's local memory alone, no other expert beside it: features scaled by the first 500 rows, then
kernel ridge regression on the 24 nearest rows kept (as src/core/local.hpp has it, without relevances and cells). Every row is
predicted before it is learnt; errors are counted once the memory is full.
`oldest`: the oldest row leaves. `reservoir`: the row learnt takes a random place with probability kept / rows so far, so the rows
kept are an even sample of all. `redundant`: the nearest row of the same class leaves if it is nearer than half the median of such
distances among the first rows; else the oldest row.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import make_moons

from kernelstream.stream import load, moving_classes, shuffled

RULES = ("oldest", "reservoir", "redundant")
NEIGHBOURS, RIDGE, FIRST = 24, 0.03, 500
STAY = ("ijcnn1", "covtype.binary", "spambase", "usps", "chessboard")
CHANGE = ("elec2 in order", "covtype in order", "moving classes", "moons, labels swapped")
Data = tuple[np.ndarray, np.ndarray]


def stream(name: str, rows: int) -> Data:
    if name == "moving classes":
        X, y = (np.concatenate(part) for part in zip(*moving_classes(rows, seed=0), strict=True))
        return X, np.unique(y, return_inverse=True)[1]
    if name == "chessboard":
        X = np.random.default_rng(0).uniform(0, 8, (rows, 2))
        return X, (np.floor(X).sum(axis=1) % 2).astype(int)
    if name == "moons, labels swapped":
        X, y = make_moons(rows, noise=0.2, random_state=0)
        return X, np.where(np.arange(rows) < rows // 2, y, 1 - y)
    X, y = (
        load({"elec2 in order": "elec2"}.get(name, "covtype.binary"))
        if "order" in name
        else shuffled(name, 0)
    )
    X = X[:rows].toarray() if hasattr(X, "toarray") else np.asarray(X[:rows])
    return X, np.unique(y[:rows], return_inverse=True)[1]


def forecast(points: np.ndarray, labels: np.ndarray, x: np.ndarray, classes: int) -> tuple[int, np.ndarray]:
    """The class of a row, and its square distances to all rows kept."""
    squares = np.sum((points - x) ** 2, axis=1)
    near = np.argpartition(squares, NEIGHBOURS)[:NEIGHBOURS]
    to_query, at = np.sqrt(squares[near]), points[near]
    among = np.sqrt(np.maximum(0.0, np.sum((at[:, None] - at[None]) ** 2, axis=2)))
    unit = np.sqrt(3) / (2 * max(float(np.median(to_query)), 1e-9))
    kernel = (1 + unit * among) * np.exp(-unit * among) + RIDGE * np.eye(NEIGHBOURS)
    a = np.linalg.solve(kernel, (1 + unit * to_query) * np.exp(-unit * to_query))
    return int(np.argmax(np.bincount(labels[near], 2 * a, minlength=classes) - a.sum())), squares


def error(rule: str, X: np.ndarray, y: np.ndarray, kept: int) -> float:
    centre, spread = X[:FIRST].mean(axis=0), X[:FIRST].std(axis=0)
    z = (X - centre) / np.where(spread > 0, spread, 1.0)
    z = z / (1 + np.abs(z) / 4)
    random, classes = np.random.default_rng(0), int(y.max()) + 1
    points, labels, born = z[:kept].copy(), y[:kept].copy(), np.arange(kept)
    apart = np.sum((points[:200, None] - points[None, :200]) ** 2, axis=2) + np.diag(np.full(200, np.inf))
    close = np.median(np.sqrt(apart.min(axis=1))) / 2
    wrong = 0
    for i in range(kept, len(y)):
        guess, squares = forecast(points, labels, z[i], classes)
        wrong += guess != y[i]
        place = int(np.argmin(born))
        if rule == "reservoir":
            place = int(random.integers(i + 1))
        elif rule == "redundant":
            nearest = int(np.argmin(np.where(labels == y[i], squares, np.inf)))
            if labels[nearest] == y[i] and squares[nearest] <= close**2:
                place = nearest
        if place < kept:
            points[place], labels[place], born[place] = z[i], y[i], i
    return 100 * wrong / (len(y) - kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--kept", type=int, default=500)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = ["| stream | " + " | ".join(RULES) + " |", "|---" * (len(RULES) + 1) + "|"]
    means = []
    for title, names in (("streams that stay", STAY), ("streams that change", CHANGE)):
        ratios = []
        for name in names:
            X, y = stream(name, given.rows)
            errors = [error(rule, X, y, given.kept) for rule in RULES]
            ratios.append(np.log(np.array(errors) / errors[0]))
            lines.append(f"| {name} | " + " | ".join(f"{e:.2f}" for e in errors) + " |")
            print(lines[-1], flush=True)
        ratio = np.exp(np.mean(ratios, axis=0))
        means.append(
            f"| {title}: geometric mean over `oldest` | " + " | ".join(f"{r:.2f}" for r in ratio) + " |"
        )
    lines += means
    print("\n".join(means))
    if given.out:
        given.out.write_text(
            "# What a full local memory should drop\n\nMachine: [two cores of a busy server](index.md#the-machine).\n\n"
            "`KERNELSTREAM_DATA=... python benchmarks/local_drop.py`: mistakes in per "
            f"cent of at most {given.rows:,} rows with {given.kept} rows kept, by a plain version of the local memory alone; the "
            "rules are in the script's first lines.\n\n" + "\n".join(lines) + "\n"
        )


if __name__ == "__main__":
    main()
