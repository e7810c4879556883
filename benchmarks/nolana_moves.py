"""NOLANA: how long a move of one landmark takes with each eigensolver, beside LAPACK's own times for the same sizes.

    KERNELSTREAM_DATA=... python benchmarks/nolana_moves.py [--against PYTHON]

A move is the kernel column, the eigenpairs and the map; "with Eq. 12" is all that NOLANA does at one. Least of 60 moves, in
microseconds of processor time. `--against` runs the same with another interpreter (an older version of the package), in turns.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import inspect
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelstream.kernels import Gaussian
from kernelstream.learners import NOLANA
from kernelstream.rows import as_rows
from kernelstream.sketches.landmarks import Landmarks
from kernelstream.stream import load

SIZES = [(m, rank) for m in (100, 200) for rank in (m // 5, m * 4 // 5)]
MOVES = 60


def least(step: Callable[[int], Any], n: int = MOVES) -> float:
    """Microseconds of processor time of the quickest of n calls."""
    times = []
    for i in range(n):
        start = time.process_time_ns()
        step(i)
        times.append(time.process_time_ns() - start)
    return min(times) / 1e3


def measured(X: Any, m: int, rank: int) -> dict[str, float]:
    kernel, n = Gaussian().settle(X[:128]), MOVES
    y = np.where(np.arange(len(X)) % 2, 1.0, -1.0)
    found = {}
    older = len(inspect.signature(Landmarks.move).parameters) == 3
    extra = () if older else (np.empty((m, 0)),)
    for solver in ("scratch", "rank2", "warm", "complement", "auto"):
        try:
            learner = NOLANA(m, rank=rank, kernel=kernel, solver=solver).start(X.shape[1])
        except ValueError:  # an older version
            continue
        learner.run(as_rows(X[: 3 * m]), y[: 3 * m])
        if solver != "auto":
            found[solver] = least(lambda i, at=learner._adapted: at.move(i % m, X[m + i], *extra), n)
            continue
        learner._mapped.epsilon = (0.0, 0.0, 1.0, 1.0)  # so that the next row has a nearest landmark
        learner._mapped.run(as_rows(X[:1]), 0, y[:1], None, np.empty((1, 1)))
        found["auto, with Eq. 12"] = least(lambda i, at=learner: at._move(X[m + i]), n)
        E = np.array(learner._adapted.gram)
        found["LAPACK eigh"] = least(lambda _, E=E: np.linalg.eigh(E), n)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    X = np.asarray(load("usps")[0])
    if options.json:
        print(json.dumps({f"{m} {rank}": measured(X, m, rank) for m, rank in SIZES}))
        return
    best: dict[str, dict[str, dict[str, float]]] = {}
    for _ in range(3):
        for name, python in (("this", sys.executable), ("older", options.against)):
            if python:
                out = subprocess.run([python, __file__, "--json"], capture_output=True, text=True, check=True)
                for size, found in json.loads(out.stdout).items():
                    kept = best.setdefault(name, {}).setdefault(size, found)
                    kept |= {key: min(kept[key], value) for key, value in found.items()}
    for name, sizes in best.items():
        heads = list(next(iter(sizes.values())))
        print(f"\n{name} version\n\n| m | r | " + " | ".join(heads) + " |\n|" + "---|" * (len(heads) + 2))
        for size, found in sizes.items():
            cells = " | ".join(f"{found[head]:.0f}" for head in heads)
            print(f"| {size.replace(' ', ' | ')} | {cells} |")
    if "older" in best:
        print("\n| m | r | older / this: auto, with Eq. 12 |\n|---|---|---|")
        for size, found in best["this"].items():
            ratio = best["older"][size]["auto, with Eq. 12"] / found["auto, with Eq. 12"]
            print(f"| {size.replace(' ', ' | ')} | {ratio:.1f} |")


if __name__ == "__main__":
    main()
