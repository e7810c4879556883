"""What the default costs: time per row beside an earlier version, and time per row and recall of the index against rows kept.

    KERNELSTREAM_DATA=... python benchmarks/default_cost.py [--earlier PYTHON] [--rows 1000000] [--out FILE]

--earlier: the Python executable of an installation to compare with; the two are measured in turn, in one run. Processor time.
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

from kernelstream import KernelClassifier
from kernelstream.learners import NOGD, LinearPA, NewtonMixture
from kernelstream.rows import as_rows
from kernelstream.stream import shuffled

TIMES = 3  # each version in turn, the least time of each counts
CHUNK = 1000
MARKS = (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
MEASURED = 3000  # rows after each mark
QUERIES, STEPS = 300, 512  # the latter as in the core: kSteps
RECALL = ("covtype.binary", "ijcnn1", "usps", "cod-rna.train")
SIZES = (300, 1000, 3000, 10_000, 20_000)


def first_rows(name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = shuffled(name, 0)
    return np.ascontiguousarray(X[:rows].toarray() if hasattr(X, "toarray") else X[:rows], float), y[:rows]


def generated(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """54 features of six hidden ones."""
    random = np.random.default_rng(seed)
    hidden, mix = random.normal(size=(rows, 6)), np.random.default_rng(0).normal(size=(6, 54))
    y = np.sin(2 * hidden[:, 0]) + hidden[:, 1] * hidden[:, 2] > 0
    return hidden @ mix + 0.1 * random.normal(size=(rows, 54)), y.astype(int)


# ---- beside an earlier version ----


def in_chunks(model: Any, X: np.ndarray, y: np.ndarray) -> list[float]:
    times = []
    for i in range(0, len(y), CHUNK):
        start = time.process_time()
        model.predict_then_learn(X[i : i + CHUNK], y[i : i + CHUNK])
        times.append(1e6 * (time.process_time() - start) / CHUNK)
    return times


def measure() -> dict[str, float]:
    """Microseconds per row of the version that runs this."""
    found = {}
    for name, (X, y) in (
        ("covtype", first_rows("covtype.binary", 16_000)),
        ("generated rows", generated(16_000)),
    ):
        model = KernelClassifier()
        times = in_chunks(model, X, y)
        found[f"default, {name}, 54 features, from row 4,000 on"] = float(np.median(times[4:]))
        found[f"default, {name}, 54 features, the first 4,000 rows"] = float(np.mean(times[:4]))
        start = time.process_time()
        for i in range(1000):
            model.predict_then_learn(X[i : i + 1], y[i : i + 1])
        found[f"default, {name}, 54 features, then row by row"] = 1e3 * (time.process_time() - start)
    start = time.process_time()
    KernelClassifier().fit(X[:1000, :20], y[:1000])
    found["default, fit of 1,000 rows of 20 features"] = 1e3 * (time.process_time() - start)
    for learner in (NOGD(), LinearPA()):
        found[f"{learner!r}, generated rows"] = float(
            np.median(in_chunks(KernelClassifier(learner), X, y)[4:])
        )
    return found


def beside(earlier: str | None) -> str:
    made: dict[str, list[dict[str, float]]] = {}
    for _ in range(TIMES):
        for python in filter(None, (sys.executable, earlier)):
            run = subprocess.run([python, __file__, "--measure"], check=True, capture_output=True, text=True)
            made.setdefault(python, []).append(json.loads(run.stdout))
    now, *rest = ({name: min(run[name] for run in runs) for name in runs[0]} for runs in made.values())
    lines = ["| microseconds per row | now | earlier | ratio |", "|---|---|---|---|"]
    for name, value in now.items():
        before = rest[0][name] if rest else float("nan")
        lines.append(f"| {name} | {value:.1f} | {before:.1f} | {value / before:.2f} |")
    return "\n".join(lines)


# ---- against rows kept ----


def recall(learner: Any, row: Callable[[int], np.ndarray]) -> float:
    """The share of the nearest rows kept that the index finds; queries are rows kept. `row` gives a learnt row by its number."""
    core = learner._core
    if not hasattr(core, "neighbours"):
        return float("nan")
    kept = learner.state()["local_rows"].astype(np.float64)
    norms = (kept**2).sum(axis=1)
    slots = np.random.default_rng(0).choice(len(kept), min(QUERIES, len(kept)), replace=False)
    first = int(core.learnt) - len(kept)
    distances = core.neighbours(as_rows(np.stack([row(first + slot) for slot in slots])), core.NEIGHBOURS)[1]
    found = 0
    for slot, mine in zip(slots, distances, strict=True):
        squares = norms + norms[slot] - 2 * (kept @ kept[slot])
        farthest = np.sqrt(np.partition(squares, core.NEIGHBOURS - 1)[core.NEIGHBOURS - 1]) / STEPS
        found += int((mine <= farthest + 1 / STEPS).sum())  # a query is rounded to steps of its own
    return found / distances.size


def against_rows_kept(rows: int) -> str:
    lines = ["| rows kept | µs per row | with memory=0 | recall |", "|---|---|---|---|"]
    points = []
    models = [KernelClassifier(NewtonMixture(memory=memory)) for memory in (2**30, 0)]
    at = 0
    for mark in [mark for mark in MARKS if mark <= rows]:
        times: list[list[float]] = [[], []]
        while at < mark + MEASURED:
            X, y = generated(CHUNK, seed=at)
            for model, spent in zip(models, times, strict=True):
                if at >= mark or model is models[0]:
                    start = time.process_time()
                    model.partial_fit(X, y, classes=[0, 1])
                    spent.append(1e6 * (time.process_time() - start) / CHUNK)
            at += CHUNK
        learner = models[0].learner_
        kept = len(learner.state()["local_cells"])
        local, none = (float(np.median(spent[-MEASURED // CHUNK :])) for spent in times)
        points.append((kept, local))
        share = recall(learner, lambda i: generated(CHUNK, seed=i // CHUNK * CHUNK)[0][i % CHUNK])
        lines.append(f"| {kept:,} | {local:.1f} | {none:.1f} | {share:.3f} |")
        print(lines[-1], flush=True)
    exponent = np.polyfit(*np.log(points).T, 1)[0]
    lines.append(f"\nFitted exponent of the time per row against rows kept: {exponent:.2f}.")
    return "\n".join(lines)


def recall_on(name: str) -> str:
    """A line of recalls after so many rows."""
    X, y = first_rows(name, SIZES[-1])
    model, at, cells = KernelClassifier(NewtonMixture(memory=2**28)), 0, []
    for size in SIZES:
        if size <= len(y):
            model.partial_fit(X[at:size], y[at:size], classes=np.unique(y))
            cells.append(f"{recall(model.learner_, lambda i: X[i]):.3f}")
        at = size
    return f"| {name} | {X.shape[1]} | " + " | ".join(cells + [""] * (len(SIZES) - len(cells))) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--earlier")
    parser.add_argument("--rows", type=int, default=MARKS[-1])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure()))
        return
    tables = [beside(options.earlier), against_rows_kept(options.rows)]
    head = (
        "| data set | features | "
        + " | ".join(f"{size:,} rows" for size in SIZES)
        + " |\n"
        + "|---" * 7
        + "|\n"
    )
    tables.append(head + "\n".join(recall_on(name) for name in RECALL))
    text = (
        "# What the default costs\n\nMachine: [two cores of a busy server](index.md#the-machine).\n\n"
        "`benchmarks/default_cost.py`; processor time of one thread of a loaded machine.\n\n"
        f"## Beside an earlier version\n\nIn chunks of {CHUNK:,} rows, the two in turn, the least of {TIMES}.\n\n{tables[0]}\n\n"
        "## Against rows kept\n\nGenerated rows of 54 features, made from six hidden ones. Recall: the share of the "
        f"nearest rows kept that the index finds (as many as a forecast uses).\n\n{tables[1]}"
        f"\n\n## Recall on data sets\n\n{tables[2]}\n"
    )
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
