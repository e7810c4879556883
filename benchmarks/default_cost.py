"""What the default costs: time per row beside an earlier version, and time per row and recall of the index against rows kept.

    KERNELSTREAM_DATA=... python benchmarks/default_cost.py [--earlier PYTHON] [--rows 1000000] [--out FILE]

--earlier: the Python executable of an installation to compare with; the two are measured in turn, chunk by chunk. Processor time.
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
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np

from kernelstream import KernelClassifier
from kernelstream.learners import NOGD, LinearPA, NewtonMixture
from kernelstream.rows import as_rows
from kernelstream.stream import shuffled

TIMES = 3
FIRST_ROWS, ROWS, CHUNK = 4000, 16_000, 1000
FEW_ROWS, PER_CALL = 256, (1, 2, 8, 32, 128)
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


def samples() -> Iterator[tuple[str, float]]:
    """Names and processor times of the version that runs this, in microseconds per row of 54 features."""
    for _ in range(TIMES):
        for name, (X, y) in (
            ("covtype", first_rows("covtype.binary", ROWS + FEW_ROWS)),
            ("generated rows", generated(ROWS + FEW_ROWS)),
        ):
            model = KernelClassifier()
            first = [per_row(model, X, y, start, CHUNK) for start in range(0, FIRST_ROWS, CHUNK)]
            yield f"default, {name}, the first {FIRST_ROWS:,} rows", float(np.mean(first))
            for start in range(FIRST_ROWS, ROWS, CHUNK):
                yield f"default, {name}, from row {FIRST_ROWS:,} on", per_row(model, X, y, start, CHUNK)
            for rows in PER_CALL:
                few = "1 row" if rows == 1 else f"{rows} rows"
                for start in range(ROWS, ROWS + FEW_ROWS, rows):
                    yield f"default, {name}, then {few} per call", per_row(model, X, y, start, rows)
        yield (
            "default, fit of 1,000 rows of 20 features",
            timed(KernelClassifier().fit, X[:1000, :20], y[:1000]),
        )
        for learner in (NOGD(), LinearPA()):
            model = KernelClassifier(learner)
            for start in range(0, ROWS, CHUNK):
                yield f"{learner!r}, generated rows", per_row(model, X, y, start, CHUNK)


def per_row(model: Any, X: np.ndarray, y: np.ndarray, start: int, rows: int) -> float:
    return timed(model.predict_then_learn, X[start : start + rows], y[start : start + rows])


def timed(learn: Callable[..., Any], X: np.ndarray, y: np.ndarray) -> float:
    start = time.process_time()
    learn(X, y)
    return 1e6 * (time.process_time() - start) / len(y)


def beside(earlier: str | None) -> str:
    """The versions take turns sample by sample, so that both see the same moments of a machine that others use, too."""
    pythons = [sys.executable, *([earlier] if earlier else [])]
    versions = [
        subprocess.Popen([python, __file__, "--samples"], stdin=PIPE, stdout=PIPE, text=True)
        for python in pythons
    ]
    made: dict[str, list[list[float]]] = {}
    while True:
        lines = [answer(version) for version in versions]
        if not all(lines):
            break
        (name, _), *_ = found = [json.loads(line) for line in lines]
        made.setdefault(name, []).append([value for _, value in found])
    lines = ["| microseconds per row | now | earlier | ratio | half of the ratios |", "|---|---|---|---|---|"]
    for name, pairs in made.items():
        times = np.array([[*pair, np.nan][:2] for pair in pairs])
        now, before = np.median(times, axis=0)
        low, ratio, high = np.quantile(times[:, 0] / times[:, 1], [0.25, 0.5, 0.75])
        lines.append(f"| {name} | {now:.1f} | {before:.1f} | {ratio:.2f} | {low:.2f} to {high:.2f} |")
    return "\n".join(lines)


def answer(version: subprocess.Popen[str]) -> str:
    assert version.stdin
    assert version.stdout
    version.stdin.write("\n")
    version.stdin.flush()
    return version.stdout.readline()


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
    parser.add_argument("--samples", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.samples:
        for _, sample in zip(sys.stdin, samples(), strict=False):  # one when it is asked for
            print(json.dumps(sample), flush=True)
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
        f"## Beside an earlier version\n\nIn chunks of {CHUNK:,} rows, the two in turn, chunk by chunk; medians of {TIMES} "
        "runs. The ratio is the median of the chunks' ratios.\n\n"
        f"{tables[0]}\n\n"
        "## Against rows kept\n\nGenerated rows of 54 features, made from six hidden ones. Recall: the share of the "
        f"nearest rows kept that the index finds (as many as a forecast uses).\n\n{tables[1]}"
        f"\n\n## Recall on data sets\n\n{tables[2]}\n"
    )
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
