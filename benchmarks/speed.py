"""Microseconds per round, side by side with what a user would otherwise take.

Every contender predicts each row and then learns it. All run in this one process, one thread, in turns; the best of the turns
counts, in CPU time (one thread), which a busy machine disturbs least. Rows: D = 54 dense (covtype.binary,
standardised; random rows without the data folder) and a9a as CSR.

    python benchmarks/speed.py [--rows 20000] [--turns 3] [--markdown FILE]
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import platform
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier

from kernelstream import Gaussian, KernelClassifier
from kernelstream._core import LEVEL
from kernelstream.learners import BOGD, NOGD, Learner
from kernelstream.stream import datasets

Job = Callable[[], int]  # runs some rounds and says how many


def ours(learner: Learner, X: Any, y: Any, warm: int) -> Job:
    model = KernelClassifier(learner).partial_fit(X[:warm], y[:warm], classes=[-1, 1])

    def job() -> int:
        model.predict_then_learn(X[warm:], y[warm:])
        return len(y) - warm

    return job


def scikit_learn(gamma: float, X: Any, y: Any, chunk: int, rounds: int) -> Job:
    features = Nystroem(gamma=gamma, n_components=200, random_state=0).fit(X[:200])
    model = SGDClassifier(loss="hinge").partial_fit(features.transform(X[:200]), y[:200], classes=[-1, 1])

    def job() -> int:
        for i in range(200, 200 + rounds, chunk):
            Z = features.transform(X[i : i + chunk])
            model.predict(Z)
            model.partial_fit(Z, y[i : i + chunk])
        return rounds

    return job


def river_logistic(X: Any, y: Any, rounds: int) -> Job:
    from river.linear_model import LogisticRegression

    model = LogisticRegression()
    dense = X[:rounds].toarray() if scipy.sparse.issparse(X) else X[:rounds]
    sparse = scipy.sparse.issparse(X)
    rows = [{j: v for j, v in enumerate(row) if v or not sparse} for row in dense.tolist()]
    labels = (y[:rounds] > 0).tolist()

    def job() -> int:
        for row, label in zip(rows, labels, strict=True):
            model.predict_one(row)
            model.learn_one(row, label)
        return rounds

    return job


def dense_rows(n: int) -> tuple[Any, Any, str]:
    try:
        X, y = datasets.shuffled("covtype.binary", seed=0)
    except FileNotFoundError:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 54))
        return X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1), "random rows"
    X = (X[:n] - X[:n].mean(0)) / np.maximum(X[:n].std(0), 1e-9)
    return np.ascontiguousarray(X), np.where(y[:n] > 1, 1, -1), "covtype.binary"


def measure(jobs: dict[str, Job], turns: int) -> dict[str, float]:
    best: dict[str, float] = {}
    for turn in range(turns + 1):  # the first turn warms up
        for name, job in jobs.items():
            start = time.process_time()
            rounds = job()
            micros = (time.process_time() - start) / rounds * 1e6
            if turn:
                best[name] = min(micros, best.get(name, np.inf))
    return best


def table(title: str, best: dict[str, float], own: tuple[str, ...]) -> list[str]:
    lines = [
        f"### {title}",
        "",
        "| contender | µs per round | " + " | ".join(f"times {o}" for o in own) + " |",
    ]
    lines.append("|---|---|" + "---|" * len(own))
    for name, micros in best.items():
        ratios = " | ".join(f"{micros / best[o]:.1f}" for o in own)
        lines.append(f"| {name} | {micros:.2f} | {ratios} |")
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")

    X, y, name = dense_rows(options.rows)
    streams = [(f"dense, D = 54 ({name}), float64", X, y, 0.01)]
    try:
        X, y = datasets.shuffled("a9a", seed=0)
        streams.append(("a9a as CSR, D = 123, float64", X[: options.rows], y[: options.rows], 0.05))
    except FileNotFoundError:
        print("a9a left out: KERNELSTREAM_DATA does not name its folder")

    lines = [
        f"CPU level {LEVEL}, {platform.processor() or platform.machine()}; best of {options.turns} turns.",
        "",
    ]
    for title, X, y, gamma in streams:
        kernel = Gaussian(gamma=gamma)
        jobs = {
            "kernelstream NOGD, B = 200, rank 40": ours(NOGD(200, rank=40, kernel=kernel), X, y, 2000),
            "kernelstream BOGD, B = 200": ours(BOGD(200, kernel=kernel), X, y, 2000),
            "scikit-learn Nystroem(200) + SGD, 100 rows at a time": scikit_learn(gamma, X, y, 100, 5000),
            "scikit-learn Nystroem(200) + SGD, one row at a time": scikit_learn(gamma, X, y, 1, 300),
            "River LogisticRegression (linear), one row at a time": river_logistic(X, y, 2000),
        }
        lines += table(title, measure(jobs, options.turns), tuple(jobs)[:2])
    print("\n".join(lines))
    if options.markdown:
        options.markdown.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
