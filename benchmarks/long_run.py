"""A very long stream through the default learner: does anything grow, drift away or stop being a number?

    python benchmarks/long_run.py [--rounds 20000000] [--out docs/results/long_run.md]

The stream has four features, two classes and regression in turn, changes now and then, and brings outliers, repeated rows and
heavy weights. At intervals: bytes of the model, resident memory, largest number of the state, asymmetry and smallest eigenvalue
(over the largest) of the covariances, mistakes. Ends with exit code 1 as soon as something is not finite, not symmetric, not
positive definite, or the model's size changes.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from kernelstream.learners import NewtonMixture
from kernelstream.rows import as_rows

WIDTH, CHUNK = 4, 4096
EXPERTS = ("lasting", "least_squares", "recent", "linear")


def chunks(rounds: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, signal and weights; about every 50,000 rows the rows move and the signal changes."""
    random = np.random.default_rng(seed)
    centre, direction = np.zeros(WIDTH), random.normal(size=WIDTH)
    for first in range(0, rounds, CHUNK):
        n = min(CHUNK, rounds - first)
        if random.random() < CHUNK / 50_000:
            centre, direction = 3 * random.normal(size=WIDTH), random.normal(size=WIDTH)
        X = centre + random.normal(size=(n, WIDTH))
        X[random.random(n) < 0.1] = centre  # one row again and again
        signal = (X - centre) @ direction + np.sin(3 * X[:, 0])
        X[random.random(n) < 1e-3] *= 1e6
        yield X, signal, random.choice([1.0, 1.0, 1.0, 0.01, 30.0], size=n)


def covariances(state: dict[str, Any]) -> dict[str, np.ndarray]:
    """Of the Newton experts, as they are written every 16 rounds, and of the stacks."""
    n = len(state["stack_weights"]) // 2
    stacks = zip(("stack", "forgetting_stack"), state["stack_covariances"].reshape(2, n, n), strict=True)
    return {name: state[f"{name}_covariance"] for name in EXPERTS} | dict(stacks)


def check(learner: NewtonMixture) -> dict[str, float]:
    """Figures of a model; raises ``ArithmeticError`` if it is not sound."""
    state = learner.state()
    numbers = np.concatenate([array.ravel() for name, array in state.items() if array.dtype.kind == "f"])
    if not np.isfinite(numbers).all():
        raise ArithmeticError("a number of the state is not finite")
    asymmetry, least = 0.0, np.inf
    for name, P in covariances(state).items():
        asymmetry = max(asymmetry, float(np.abs(P - P.T).max()))
        values = np.linalg.eigvalsh(P)
        if not values[0] > 0:
            raise ArithmeticError(f"the covariance of {name} has the eigenvalue {values[0]:g}")
        least = min(least, float(values[0] / values[-1]))
    if asymmetry > 0:
        raise ArithmeticError(f"asymmetry of {asymmetry:g}")
    largest = float(np.abs(numbers).max())
    return {"bytes": learner.nbytes, "largest": largest, "asymmetry": asymmetry, "eigenvalue": least}


def resident() -> float:
    """Megabytes of the process in memory, now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if Path("/proc/self/statm").exists() else 0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6 if pages else float("nan")


def run(task: str, rounds: int, budget: int = 10, checks: int = 20, seed: int = 0) -> list[str]:
    """One stream; a line of the table per check."""
    learner = NewtonMixture(budget, memory=0).start(WIDTH, regression=task == "regression")
    size, wrong, seen, lines, start = learner.nbytes, 0.0, 0, [], time.process_time()
    every, rows = max(1, rounds // checks), 0
    for X, signal, weights in chunks(rounds, seed):
        y = signal if task == "regression" else np.where(signal > 0, 1.0, -1.0)
        scores = learner.run(as_rows(X), y, weights)[:, 0]
        if not np.isfinite(scores).all():
            raise ArithmeticError("a score is not finite")
        wrong += float(
            np.minimum((scores - y) ** 2, 1e2).sum()
            if task == "regression"
            else ((scores > 0) != (y > 0)).sum()
        )
        seen, before, rows = seen + len(y), rows, rows + len(y)
        if rows // every > before // every or rows == rounds:
            figures = check(learner)
            if figures["bytes"] != size:
                raise ArithmeticError(f"{figures['bytes']} bytes, {size} at the start")
            error = (wrong / seen) ** 0.5 if task == "regression" else 100 * wrong / seen
            micros = 1e6 * (time.process_time() - start) / rows
            lines.append(
                f"| {task} | {rows:,} | {size:,} | {resident():.0f} | {figures['largest']:.3g} | {figures['asymmetry']:g} | "
                f"{figures['eigenvalue']:.1e} | {error:.3g} | {micros:.1f} |"
            )
            print(lines[-1], flush=True)
            wrong, seen = 0.0, 0
    return lines


def main() -> int:
    """The command; its exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20_000_000)
    parser.add_argument("--budget", type=int, default=10)
    parser.add_argument("--tasks", nargs="*", default=["classification", "regression"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    text = [
        "# The default over a very long stream",
        "",
        "Machine: [two cores of a busy server](index.md#the-machine).",
        "",
        f"`python benchmarks/long_run.py --rounds {options.rounds}`: `NewtonMixture(budget={options.budget}, memory=0)`,",
        f"without the local memory, which grows to its bound, {WIDTH} features,",
        "a change about every 50,000 rows, one row in ten a repetition, one in a thousand times a million, weights 0.01,",
        "1 and 30. Checked at intervals: all numbers finite, the model's bytes constant, covariances of the four Newton",
        "experts and both stacks symmetric to the bit and positive definite (smallest eigenvalue over the largest, the worst",
        "of the six). Error: % of mistakes, or root mean squared error (errors above 10 count as 10), since the line before.",
        "Processor time per row.",
        "",
        "| task | rounds | model, bytes | process, MB | largest number | asymmetry | eigenvalues | error | µs per row |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for task in options.tasks:
        try:
            text += run(task, options.rounds, options.budget)
        except ArithmeticError as error:
            print(f"{task}: {error}", file=sys.stderr)
            return 1
    if options.out:
        options.out.write_text("\n".join(text) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
