"""`fit` is for data sets: cross-validated accuracy on rows sorted by class and on shuffled rows, beside SVC and a random forest.

    KERNELSTREAM_DATA=... python benchmarks/fit_sets.py [--out docs/results/fit_sets.md]

Five folds, the same for all models, drawn at random and stratified; "sorted" and "shuffled" say in which order `fit` gets the
rows of a fold. The error behind the mean is that of the mean over five draws of the folds. `shuffle=False` learns the sorted rows
as a stream, as they come.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn import datasets as bundled
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelstream import KernelClassifier
from kernelstream.stream import load

DRAWS = 5
TABLES = ("iris", "wine", "breast_cancer", "digits", "german.numer", "svmguide3")
MODELS: dict[str, tuple[Callable[[], object], bool]] = {
    "sorted": (KernelClassifier, True),
    "shuffled": (KernelClassifier, False),
    "sorted, shuffle=False": (lambda: KernelClassifier(shuffle=False), True),
    "SVC": (lambda: make_pipeline(StandardScaler(), SVC()), False),
    "random forest": (lambda: RandomForestClassifier(random_state=0), False),
}


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows, in an order that means nothing."""
    if hasattr(bundled, f"load_{name}"):
        X, y = getattr(bundled, f"load_{name}")(return_X_y=True)
    else:
        X, y = load(name)
        X = X.toarray() if hasattr(X, "toarray") else X
    order = np.random.default_rng(0).permutation(len(y))
    return np.ascontiguousarray(X[order], np.float64), np.asarray(y)[order]


def accuracy(make: Callable[[], object], X: np.ndarray, y: np.ndarray, in_order: bool, draw: int) -> float:
    """Share of right classes over five folds."""
    right = 0
    for train, test in StratifiedKFold(5, shuffle=True, random_state=draw).split(X, y):
        rows = train[np.argsort(y[train], kind="stable")] if in_order else train
        right += int(np.sum(make().fit(X[rows], y[rows]).predict(X[test]) == y[test]))
    return right / len(y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = ["| table (rows) | " + " | ".join(MODELS) + " |", "|---" * (1 + len(MODELS)) + "|"]
    for name in TABLES:
        X, y = table(name)
        cells = []
        for make, in_order in MODELS.values():
            scores = [accuracy(make, X, y, in_order, draw) for draw in range(DRAWS)]
            cells.append(f"{100 * np.mean(scores):.2f} ± {100 * np.std(scores, ddof=1) / np.sqrt(DRAWS):.2f}")
        lines.append(f"| {name} ({len(y):,}) | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    if given.out:
        given.out.write_text(
            "# Data sets: `fit` on sorted and on shuffled rows\n\nMachine: [two cores of a busy server](index.md#the-machine)."
            "\n\n"
            "`benchmarks/fit_sets.py`\n\nAccuracy in per cent, five-fold"
            " cross-validation, the mean of five draws of the folds ± its standard error.\n\n"
            + "\n".join(lines)
            + "\n"
        )


if __name__ == "__main__":
    main()
