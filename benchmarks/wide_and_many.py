"""Time per row and memory against the number of classes and the width of rows.

    python benchmarks/wide_and_many.py [--earlier PYTHON] [--rows 2000] [--seconds 10] [--out docs/results/wide_and_many.md]

--earlier: the Python executable of an installation to compare with; the two are measured in turn, in one run.
Classes (2, 10, 100): 20 dense features, the classes discovered in chunks of 100 rows; 500: every row, given alone, is of a new
class. New features: rows of River's kind, given alone, each with one feature more. Width: 20 and 500 dense features; 2^12, 2^18
and 2^20 features of which about 50 are not zero, as a bag of words. Processor time of the first 1,000 rows and of those after, in
chunks of 100. A case that has taken --seconds is ended, and the mean is over the rows learnt by then.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from kernelstream import KernelClassifier
from kernelstream.learners import BOGD, NOGD
from kernelstream.river import Classifier

FIRST, CHUNK = 1000, 100
MANY = 500
Data = tuple[Any, np.ndarray]


def words(n: int, width: int) -> Data:
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


def table(n: int, width: int, classes: int) -> Data:
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    return rng.normal(size=(n, width)) + rng.normal(size=(classes, width))[y], y


def in_steps(learn: Callable[[int], None], rows: int, step: int, seconds: float) -> list[float]:
    """Microseconds per row of the first rows and of the others."""
    spent, done = [0.0, 0.0], [0, 0]
    for at in range(0, rows, step):
        start = time.process_time()
        learn(at)
        spent[at >= FIRST] += time.process_time() - start
        done[at >= FIRST] += step
        if sum(spent) > seconds:
            break
    return [1e6 * total / count if count else float("nan") for total, count in zip(spent, done, strict=True)]


def measure(learner: Any, data: Data, step: int, seconds: float) -> list[float]:
    X, y = data
    model = KernelClassifier(learner)
    times = in_steps(
        lambda at: model.partial_fit(X[at : at + step], y[at : at + step]), len(y), step, seconds
    )
    return [*times, model.nbytes_ / 1e6]


def new_features(seconds: float) -> list[float]:
    model, rng = Classifier(), np.random.default_rng(0)

    def learn(at: int) -> None:
        model.learn_one({f"f{d}": float(rng.normal()) for d in range(at + 1)}, at % 2 == 0)

    return [*in_steps(learn, 200, 1, seconds), float("nan")]


def run(rows: int, seconds: float) -> dict[str, list[float]]:
    cases: list[tuple[str, Callable[[], Data], int]] = [
        *((f"{c} classes", lambda c=c: table(rows, 20, c), CHUNK) for c in (2, 10, 100)),
        (f"{MANY} classes, one per row", lambda: (table(MANY, 20, 2)[0], np.arange(MANY)), 1),
        ("500 dense features", lambda: table(rows, 500, 2), CHUNK),
        *((f"2^{p} sparse features", lambda p=p: words(rows, 2**p), CHUNK) for p in (12, 18, 20)),
    ]
    found = {}
    for name, make, step in cases:
        for label, learner in (("default", None), ("NOGD", NOGD()), ("BOGD", BOGD())):
            found[f"{name} | {label}"] = measure(learner, make(), step, seconds)
            print(name, label, np.round(found[f"{name} | {label}"], 1), file=sys.stderr, flush=True)
    found["a new feature per row, up to 200 | default"] = new_features(seconds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--earlier")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(run(given.rows, given.seconds)))
        return
    made = []
    for python in filter(None, (sys.executable, given.earlier)):
        command = [python, __file__, "--measure", "--rows", str(given.rows), "--seconds", str(given.seconds)]
        made.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout))
    shown = [("now", 0), ("earlier", 1)][: len(made)]
    heads = ("first rows, µs", "later rows, µs", "MB")
    lines = [
        "| stream | learner | " + " | ".join(f"{head}: {who}" for head in heads for who, _ in shown) + " |",
        "|---" * (2 + 3 * len(shown)) + "|",
    ]
    for name in made[0]:
        cells = [made[at][name][i] for i in range(3) for _, at in shown]
        digits = [1 if i // len(shown) == 2 else 0 for i in range(len(cells))]
        figures = ("" if np.isnan(c) else f"{c:,.{d}f}" for c, d in zip(cells, digits, strict=True))
        lines.append(f"| {name} | " + " | ".join(figures) + " |")
    text = (
        "# Many classes, many features\n\nMachine: [two cores of a busy server](index.md#the-machine).\n\n"
        "`python benchmarks/wide_and_many.py`; processor time per row of one thread of a "
        f"loaded machine, {given.rows:,} rows, chunks of {CHUNK}; first rows: the first {FIRST:,}. Earlier: the version before "
        "the local memory. A new class or feature: rows given alone, the time of the whole call. A case ends after "
        f"{given.seconds:g} seconds; of a case that did not reach them there are no later rows.\n\n"
        + "\n".join(lines)
        + "\n"
    )
    print(text)
    if given.out:
        given.out.write_text(text)


if __name__ == "__main__":
    main()
