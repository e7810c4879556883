"""Cross-validated accuracy of the default on sorted and on shuffled tables, beside SVC and a random forest.

    KERNELSTREAM_DATA=... python benchmarks/cross_validation.py [--out docs/results/cross_validation.md]

`cross_val_score` with five folds. The same folds for all; the rows that `fit` gets are sorted by class, or in a random order.
Mean and standard deviation over the folds, whose scores are means over eight seeds (`random_state`) where a model has one: on
small tables one seed and another differ by a few rows.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelstream import KernelClassifier
from kernelstream.stream import load

TABLES = {
    **{n: getattr(datasets, f"load_{n}") for n in ("iris", "wine", "breast_cancer", "digits")},
    "german": lambda **_: load("german.numer"),
    "spambase": lambda **_: load("spambase"),
}
MODELS: dict[str, Any] = {
    "KernelClassifier()": KernelClassifier(),
    "StandardScaler, SVC()": make_pipeline(StandardScaler(), SVC()),
    "RandomForestClassifier()": RandomForestClassifier(),
}
SEEDS = range(8)


def seeded(model: Any) -> list[Any]:
    """The model with each of the seeds, if it takes one."""
    if "random_state" not in model.get_params():
        return [model]
    return [clone(model).set_params(random_state=seed) for seed in SEEDS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    head = [f"{name}, {order}" for name in MODELS for order in ("sorted", "shuffled")]
    lines = ["| table (rows) | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    for name, read in TABLES.items():
        X, y = read(return_X_y=True)
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, float)
        order, random = np.argsort(y, kind="stable"), np.random.default_rng(0)
        X, y = X[order], y[order]
        in_order = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
        mixed = [(random.permutation(train), test) for train, test in in_order]
        cells = []
        for model in MODELS.values():
            for folds in (in_order, mixed):
                start = time.process_time()
                scores = np.mean([cross_val_score(m, X, y, cv=folds) for m in seeded(model)], axis=0)
                seconds = (time.process_time() - start) / len(seeded(model))
                cells.append(f"{scores.mean():.3f} ± {scores.std():.3f} ({seconds:.1f} s)")
        lines.append(f"| {name} ({len(y):,}) | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    if out:
        about = "`benchmarks/cross_validation.py`: " + " ".join(__doc__.split("\n\n")[-1].split())
        text = "Processor time of the five fits and predictions in brackets."
        machine = "Machine: [two cores of a busy server](index.md#the-machine)."
        out.write_text(
            f"# Sorted and shuffled tables\n\n{machine}\n\n{about} {text}\n\n" + "\n".join(lines) + "\n"
        )


if __name__ == "__main__":
    main()
