"""KONS: microseconds per round by the number of stored rows, beside LAPACK's two triangular solves of that size.

    python benchmarks/kons_rounds.py [--against PYTHON]

A round must solve with the Cholesky factor of t rows twice, t^2 multiplications in all, and read it twice: that is what is
optimal for an update of the factor. Processor time, the quickest of five blocks of 10 rounds. `--against`: another interpreter
(an older version).
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import json
import subprocess
import sys
import time

import numpy as np
from scipy.linalg import blas

from kernelstream.kernels import Gaussian
from kernelstream.learners import KONS
from kernelstream.rows import as_rows

SIZES = (200, 400, 750, 1200, 1600)
BLOCK = 10


def solves(n: int) -> float:
    """Microseconds of a forward and a backward solve with a factor of n rows."""
    rng = np.random.default_rng(0)
    L, b = np.asfortranarray(np.tril(rng.normal(size=(n, n)) / n + np.eye(n))), rng.normal(size=n)
    times = []
    for _ in range(20):
        start = time.process_time_ns()
        blas.dtrsv(L, b, lower=1)
        blas.dtrsv(L, b, lower=1, trans=1)
        times.append(time.process_time_ns() - start)
    return min(times) / 1e3


def rounds() -> dict[int, float]:
    """Microseconds per round when so many rows are stored."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(SIZES[-1] + 5 * BLOCK, 5))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    learner = KONS(kernel=Gaussian(gamma=0.3), max_size=len(X)).start(5, 1, regression=True)
    found, at = {}, 0
    for size in SIZES:
        learner.run(as_rows(X[at:size]), y[at:size])
        at, times = size, []
        for _ in range(5):
            start = time.process_time_ns()
            learner.run(as_rows(X[at : at + BLOCK]), y[at : at + BLOCK])
            times.append(time.process_time_ns() - start)
            at += BLOCK
        found[size] = min(times) / 1e3 / BLOCK
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(rounds()))
        return
    best: dict[str, dict[str, float]] = {}
    for _ in range(3):
        for name, python in (("this", sys.executable), ("older", options.against)):
            if python:
                out = subprocess.run([python, __file__, "--json"], capture_output=True, text=True, check=True)
                for size, value in json.loads(out.stdout).items():
                    kept = best.setdefault(name, {})
                    kept[size] = min(kept.get(size, np.inf), value)
    print(
        "| rows stored | "
        + " | ".join(f"{name} version" for name in best)
        + " | LAPACK's two solves | this / LAPACK |"
    )
    print("|---" * (len(best) + 3) + "|")
    for size in SIZES:
        lapack = solves(size)
        cells = " | ".join(f"{best[name][str(size)]:.0f}" for name in best)
        print(f"| {size} | {cells} | {lapack:.0f} | {best['this'][str(size)] / lapack:.2f} |")


if __name__ == "__main__":
    main()
