"""Time per row and memory against the number of classes and the width of rows.

    python benchmarks/wide_and_many.py [--rows 2000] [--out docs/results/wide_and_many.md]

Classes (2, 10, 100): 20 dense features, the classes discovered in chunks of 100 rows. Width: 20 and 500 dense features; 2^12,
2^18 and 2^20 features of which about 50 are not zero, as a bag of words. Processor time of the first 1,000 rows and of those
after, in chunks.
Run it with two versions of the package, side by side on one machine, and read the ratios.
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
import scipy.sparse

from kernelstream import KernelClassifier
from kernelstream.learners import BOGD, NOGD

FIRST = 1000


def words(n: int, width: int) -> tuple[Any, np.ndarray]:
    rng, y = np.random.default_rng(0), np.arange(n) % 2
    common = (rng.pareto(1.0, (n, 60)) * 20).astype(np.int64) * 2
    columns = (
        np.minimum(common + (rng.random((n, 60)) < 0.3 + 0.4 * y[:, None]), width - 1) * 2654435761
    ) % width
    X = scipy.sparse.csr_array(
        (np.ones(n * 60), columns.ravel(), np.arange(0, n * 60 + 1, 60)), shape=(n, width)
    )
    X.sum_duplicates()
    X.data[:] = 1
    return X, y


def table(n: int, width: int, classes: int) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, width)) + rng.normal(size=(classes, width))[y], y


def measure(learner: Any, X: Any, y: np.ndarray) -> str:
    model = KernelClassifier(learner)
    spent = [0.0, 0.0]
    for at in range(0, len(y), 100):
        start = time.process_time()
        model.partial_fit(X[at : at + 100], y[at : at + 100])
        spent[at >= FIRST] += time.process_time() - start
    first, later = 1e6 * spent[0] / FIRST, 1e6 * spent[1] / (len(y) - FIRST)
    return f"{first:.0f} | {later:.0f} | {model.nbytes_ / 1e6:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    cases = [(f"{c} classes", table(given.rows, 20, c)) for c in (2, 10, 100)]
    cases += [("500 dense features", table(given.rows, 500, 2))]
    cases += [(f"2^{p} sparse features", words(given.rows, 2**p)) for p in (12, 18, 20)]
    head = ["stream", "learner", "first rows, microseconds", "later rows, microseconds", "MB"]
    lines = [" | ".join(head), " | ".join(["---"] * len(head))]
    for name, (X, y) in cases:
        for label, learner in (("default", None), ("NOGD", NOGD()), ("BOGD", BOGD())):
            lines.append(f"{name} | {label} | {measure(learner, X, y)}")
            print(lines[-1], flush=True)
    if given.out:
        given.out.write_text("\n".join(f"| {line} |" for line in lines) + "\n")


if __name__ == "__main__":
    main()
