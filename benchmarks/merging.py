"""What merging costs in accuracy: the default in one pass, and in 4 and 16 parts that are merged once, or often.

    KERNELSTREAM_DATA=... python benchmarks/merging.py [--rows 16000] [--only NAME ...] [--orders 1] [--out FILE]

Every model learns the same first 2,000 rows, which give the base, and then the others: one pass goes on as a stream, parts take
rows in turns, from the same base, and are merged at the end or every 100 rows of a part. Then the rows that follow are predicted,
and not learnt. Data sets come in a random order, but for elec2, which stays as it is; with several orders the figures are means.
In FILE, docs/results/merging.md, the lines of the streams that were run are replaced.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss

from kernelstream import KernelClassifier, KernelRegressor, merging
from kernelstream.learners import NewtonMixture
from kernelstream.persistence import pack, unpack
from kernelstream.stream import friedman, load, moving_classes, rings, shuffled

Data = tuple[np.ndarray, np.ndarray]
FIRST, OFTEN = 2000, 100
WAYS = [(4, None), (16, None), (4, OFTEN), (16, OFTEN)]


def mixed(name: str) -> Callable[[int, int], Data]:
    def make(rows: int, order: int) -> Data:
        X, y = shuffled(name, order)
        return dense(X[:rows]), y[:rows]

    return make


def in_order(name: str) -> Callable[[int, int], Data]:
    def make(rows: int, order: int) -> Data:
        X, y = load(name)
        return dense(X[:rows]), y[:rows]

    return make


def made(stream: Callable[..., Any]) -> Callable[[int, int], Data]:
    def make(rows: int, order: int) -> Data:
        X, y = zip(*stream(rows, seed=order), strict=True)
        return np.vstack(X), np.concatenate(y)

    return make


def dense(X: Any) -> np.ndarray:
    return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)


STREAMS: dict[str, Callable[[int, int], Data]] = {
    "a9a": mixed("a9a"),
    "ijcnn1": mixed("ijcnn1"),
    "cod-rna": mixed("cod-rna.train"),
    "covtype": mixed("covtype.binary"),
    "w7a": mixed("w7a"),
    "usps": mixed("usps"),
    "elec2, in order": in_order("elec2"),
    "rings": made(rings),
    "moving_classes": made(moving_classes),
    "cpusmall": mixed("cpusmall"),
    "friedman": made(friedman),
}


def parts_of(rows: int, parts: int, every: int | None) -> Iterator[list[np.ndarray]]:
    """The numbers of the rows of each part, epoch after epoch; parts of an epoch take its rows in turns."""
    step = rows if every is None else parts * every
    for start in range(0, rows, step):
        epoch = np.arange(start, min(start + step, rows))
        yield [part for part in (epoch[k::parts] for k in range(parts)) if len(part)]


def measures(model: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Error and log loss, or RMSE and nothing."""
    if isinstance(model, KernelRegressor):
        return float(np.sqrt(np.mean((model.predict(X) - y) ** 2))), np.nan
    p = model.predict_proba(X)
    return float(np.mean(model.predict(X) != y)), float(log_loss(y, p, labels=model.classes_))


def compare(X: np.ndarray, y: np.ndarray, learner: Any, test: int) -> dict[str, tuple[float, float]]:
    """Measures of one pass and of each way to merge."""
    regression = y.dtype.kind == "f"
    first, rest, after = slice(0, FIRST), slice(FIRST, len(y) - test), slice(len(y) - test, None)
    make = KernelRegressor if regression else KernelClassifier
    base = make(learner()).partial_fit(
        X[first], y[first], **({} if regression else {"classes": np.unique(y)})
    )
    start = pack(base)
    one = unpack(start)[0].partial_fit(X[rest], y[rest])
    found = {"one pass": measures(one, X[after], y[after])}
    Xr, yr = X[rest], y[rest]
    for parts, every in WAYS:
        state = start
        for epoch in parts_of(len(yr), parts, every):
            deltas = [merging.delta(state, Xr[p], yr[p], task=str(k)) for k, p in enumerate(epoch)]
            state = merging.add(state, deltas)
        found[f"{parts}, {'once' if every is None else 'often'}"] = measures(
            unpack(state)[0], X[after], y[after]
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=16_000)
    parser.add_argument("--test", type=int, default=20_000, help="rows that are predicted at the end")
    parser.add_argument("--only", nargs="*", default=list(STREAMS))
    parser.add_argument("--orders", type=int, default=1)
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    table = []
    for name in args.only:
        began = time.process_time()
        runs = []
        for order in range(1, args.orders + 1):
            X, y = STREAMS[name](args.rows + args.test, order)
            test = args.test if len(y) == args.rows + args.test else len(y) // 5
            runs.append(compare(X, y, lambda: NewtonMixture(args.budget), test))
        found = {way: tuple(np.mean([run[way] for run in runs], axis=0).tolist()) for way in runs[0]}
        size = f"{len(X):,} × {X.shape[1]}" + (f", {args.orders} orders" if args.orders > 1 else "")
        table.append((name, size, found))
        one = found["one pass"]
        text = "  ".join(
            f"{way}: {e:.4f} {loss:.4f} ({e / one[0] - 1:+.1%} {loss / one[1] - 1:+.1%})"
            for way, (e, loss) in found.items()
        )
        print(f"{name} {size}  {text}  {time.process_time() - began:.0f} s", flush=True)
    if args.out:
        write(args.out, table)


def write(path: Path, table: list[Any]) -> None:
    """The table, between the lines that mark it; the words around it, and the lines of other streams, stay."""
    lines = ["| stream | rows, features | measure | one pass | " + " | ".join(list(table[0][2])[1:]) + " |"]
    lines.append("|---|---|---|---:|" + "---:|" * len(WAYS))
    begin, end = "<!-- table -->", "<!-- end of table -->"
    text = path.read_text() if path.exists() else f"{begin}\n{end}\n"
    before = [
        line for line in text[text.index(begin) : text.index(end)].splitlines() if line.startswith("| ")
    ]
    new: dict[str, list[str]] = {}
    for name, size, found in table:
        one = found["one pass"]
        new[name] = []
        for k, measure in enumerate(("RMSE",) if np.isnan(one[1]) else ("error", "log loss")):
            figures = (f"{v[k]:.4f} ({v[k] / one[k] - 1:+.1%})" for w, v in found.items() if w != "one pass")
            new[name].append(f"| {name} | {size} | {measure} | {one[k]:.4f} | {' | '.join(figures)} |")
    for name in STREAMS:
        lines += new.get(name, [line for line in before if line.startswith(f"| {name} | ")])
    path.write_text(
        text[: text.index(begin)] + "\n".join([begin, "", *lines, "", ""]) + text[text.index(end) :]
    )


if __name__ == "__main__":
    main()
