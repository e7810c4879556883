"""Weights of classes, and wild targets: recall against weights, and R2 on clean rows against outliers.

    KERNELSTREAM_DATA=... python benchmarks/weights.py [--out docs/results/weights.md]

Recall: 1.4 % of the rows are positive, and the classes overlap. Half of the rows are learnt, the other half is predicted; means
of three draws. R2: 4,000 rows of a smooth function with a little noise, a share of whose targets is multiplied; the rows that
were left as they are count, each predicted before it is learnt, from row 400 on.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.learners import NOGD
from kernelstream.losses import Huber

WEIGHTS = {
    "none": None,
    "72 : 1": {0: 1.0, 1: 72.0},
    "1 : 1/72": {0: 1 / 72, 1: 1.0},
    "balanced": "balanced",
}
OUTLIERS = [(0.0, 1), (0.02, 10), (0.005, 100), (0.05, 10), (0.02, 1000), (0.02, 1_000_000)]


def rare(seed: int, rows: int = 8000) -> tuple[np.ndarray, np.ndarray]:
    """1.4 % positives, moved by 1.2 deviations in three of ten features."""
    rng = np.random.default_rng(seed)
    y = (rng.uniform(size=rows) < 0.014).astype(int)
    X = rng.standard_normal((rows, 10))
    X[:, :3] += 1.2 * y[:, None]
    return X, y


def recalls() -> Iterator[str]:
    names = ["default, fit", "default, stream", "NOGD, logistic, stream", "LogisticRegression"]
    yield "## Recall of the rare class, precision not shown, and (balanced accuracy) against the weights of the classes\n\n"
    yield "| weights, positive : negative | " + " | ".join(names) + " |\n|---|" + "---|" * len(names) + "\n"
    for title, weight in WEIGHTS.items():
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for seed in range(3):
            X, y = rare(seed)
            half = len(y) // 2
            models = [
                KernelClassifier(class_weight=weight).fit(X[:half], y[:half]),
                KernelClassifier(class_weight=weight).partial_fit(X[:half], y[:half], classes=[0, 1]),
                KernelClassifier(NOGD(loss="logistic"), class_weight=weight).partial_fit(
                    X[:half], y[:half], classes=[0, 1]
                ),
                make_pipeline(StandardScaler(), LogisticRegression(class_weight=weight)).fit(
                    X[:half], y[:half]
                ),
            ]
            for name, model in zip(names, models, strict=True):
                said = model.predict(X[half:])
                found[name].append((recall_score(y[half:], said), balanced_accuracy_score(y[half:], said)))
        cells = ["{:.2f} ({:.2f})".format(*np.mean(found[name], axis=0)) for name in names]
        print(title, cells, flush=True)
        yield f"| {title} | " + " | ".join(cells) + " |\n"


def wild(
    share: float, factor: float, seed: int, rows: int = 4000
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, targets, and which of them are clean."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (rows, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + 0.1 * rng.standard_normal(rows)
    clean = rng.uniform(size=rows) >= share
    return X, np.where(clean, y, factor * y), clean


def outliers() -> Iterator[str]:
    names = ["default", "NOGD, Huber's loss", "NOGD, squared loss"]
    yield "\n## R² on the clean rows against outliers (the least of three draws)\n\n"
    yield "| share of targets, times | " + " | ".join(names) + " |\n|---|" + "---|" * len(names) + "\n"
    for share, factor in OUTLIERS:
        found: dict[str, list[float]] = {name: [] for name in names}
        for seed in range(3):
            X, y, clean = wild(share, factor, seed)
            clean[:400] = False
            for name, learner in zip(names, (None, NOGD(loss=Huber()), NOGD(loss="squared")), strict=True):
                said = KernelRegressor(learner).predict_then_learn(X, y)
                left = np.sum((y - said)[clean] ** 2)
                found[name].append(1 - left / np.sum((y[clean] - y[clean].mean()) ** 2))
        cells = [f"{min(found[name]):.2f}" for name in names]
        print(share, factor, cells, flush=True)
        yield f"| {100 * share:g} %, {factor} | " + " | ".join(cells) + " |\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", default="docs/results/weights.md")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    text = "# Weights of classes, and wild targets\n\nMachine: [two cores of a busy server](index.md#the-machine).\n\n"
    text += "Made by `benchmarks/weights.py`, which says what is measured.\n\n"
    Path(given.out).write_text(text + "".join(recalls()) + "".join(outliers()), encoding="utf-8")


if __name__ == "__main__":
    main()
