"""Microseconds per round of every learner, early and late in a stream: a bounded learner must not slow down.

Rows of a9a (CSR, gone through again and again in new orders) and covtype.binary (standardised), B = 200, Gaussian
kernel. CPU time per round, the quickest 2,000 of 10,000 rounds around round 15,000 and of those before round 400,000. Learners
without a budget grow; they are timed until they hold 2,000 points and have no late figure.

    KERNELSTREAM_DATA=... python benchmarks/rounds.py [--markdown FILE] [--last 400000] [--only NAME ...]
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kernelstream import CapacityError, Gaussian, KernelClassifier, learners
from kernelstream._core import LEVEL
from kernelstream.stream import datasets

WINDOW = 10_000


def made(name: str, gamma: float) -> Any:
    kind = getattr(learners, name)
    settings: dict[str, Any] = {}
    known = kind().get_params()
    if "budget" in known:
        settings["budget"] = 200
    if "max_size" in known:
        settings["max_size"] = 200 if kind.bounded else 2000
    if "rank" in known:
        settings["rank"] = 40
    if name == "SkeGD":
        settings["rank"] = 20  # a tenth of the budget, as in its paper
    if "kernel" in known:
        settings["kernel"] = Gaussian(gamma=gamma)
    return kind(**settings)


def stream(name: str) -> tuple[Callable[[int], tuple[Any, Any]], float]:
    """Rows number i to i + WINDOW of an endless stream, and gamma."""
    X, y = datasets.shuffled(name, seed=0)
    if name == "covtype.binary":
        X = (X - X.mean(0)) / np.maximum(X.std(0), 1e-9)

    def window(i: int) -> tuple[Any, Any]:
        lap, at = divmod(i, len(y) - len(y) % WINDOW)
        order = np.random.default_rng(lap).permutation(len(y))[at : at + WINDOW]
        return X[order], np.where(y[order] == y.max(), 1, -1)

    return window, 0.05 if name == "a9a" else 0.01


def timed(model: KernelClassifier, X: Any, y: Any) -> tuple[float, float]:
    """Microseconds per round in the quickest fifth of the rows (a busy machine disturbs), and the share of mistakes."""
    micros, wrong, part = [], 0, len(y) // 5
    for i in range(0, len(y), part):
        start = time.process_time()
        predicted = model.predict_then_learn(X[i : i + part], y[i : i + part], classes=[-1, 1])
        micros.append((time.process_time() - start) / part * 1e6)
        wrong += int((predicted != y[i : i + part]).sum())
    return min(micros), wrong / len(y)


def growing(learner: Any, X: Any, y: Any) -> tuple[float, float]:
    """The same for a learner that stops at max_size, over the rows it takes."""
    model, rows, wrong, start = KernelClassifier(learner), 0, 0, time.process_time()
    try:
        for i in range(0, len(y), 100):
            predicted = model.predict_then_learn(X[i : i + 100], y[i : i + 100], classes=[-1, 1])
            wrong += int((predicted != y[i : i + 100]).sum())
            rows += 100
    except CapacityError:
        pass
    return (time.process_time() - start) / rows * 1e6, wrong / rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--last", type=int, default=400_000)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    names = options.only or list(learners.registered(plugins=False))
    lines = [f"CPU level {LEVEL}, CPU time, one thread; late: before round {options.last:,}.", ""]
    for data in ("a9a", "covtype.binary"):
        window, gamma = stream(data)
        lines += [
            f"### {data}",
            "",
            "| learner | µs per round, early | late | ratio | mistakes early, % |",
            "|---|---|---|---|---|",
        ]
        for name in names:
            if not getattr(learners, name).bounded:
                early, wrong = growing(made(name, gamma), *window(0))
                lines.append(f"| {name} (grows) | {early:.2f} | | | {100 * wrong:.1f} |")
                print(data, lines[-1], flush=True)
                continue
            model = KernelClassifier(made(name, gamma))
            timed(model, *(part[: WINDOW // 2] for part in window(0)))
            early, wrong = timed(model, *window(WINDOW))
            for i in range(2 * WINDOW, options.last - WINDOW, WINDOW):
                timed(model, *window(i))
            late, _ = timed(model, *window(options.last - WINDOW))
            lines.append(f"| {name} | {early:.2f} | {late:.2f} | {late / early:.2f} | {100 * wrong:.1f} |")
            print(data, lines[-1], flush=True)
        lines.append("")
    if options.markdown:
        options.markdown.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
