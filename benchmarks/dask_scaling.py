"""Rows per second with 1 and 2 Dask workers, what a merge costs, and what that means for more workers.

    python benchmarks/dask_scaling.py scaling [--rows 10e6] [--minutes 25]     rows/s, the default and NOGD, one file
    python benchmarks/dask_scaling.py merges                                   bytes and milliseconds against budget
    python benchmarks/dask_scaling.py model [--picture FILE]                  1 to 1,000 workers: a formula and a simulation

``scaling`` writes a CSV file of ten numbers, a category and a label, and lets `kernelstream.dask.Workers` learn it as
`kernelstream run --workers` does. One pass takes the first rows of the file, as many as fit ``--minutes``, all of them if time
allows; then one worker and two take the same rows. Rows/s by the clock need a quiet machine. Processor time does not: the main
thread of the process that reads and merges works while the workers wait, so its time and that of the busiest worker add up to the
time on cores that are free. Another thread of it reads while the workers learn.
What was measured is kept in docs/results/dask_scaling.json, and ``model`` uses it.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import heapq
import importlib
import json
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import kernelstream
from kernelstream import KernelClassifier, merging
from kernelstream.dask import Workers
from kernelstream.evaluate import Result
from kernelstream.learners import NOGD, NewtonMixture
from kernelstream.persistence import pack
from kernelstream.stream import read

LEARNERS = {"the default": NewtonMixture, "NOGD": lambda: NOGD(200, eta=0.1)}
#: Of the time, by learner.
SHARE = {"the default": 0.9, "NOGD": 0.1}
BUDGETS = (50, 100, 200, 400)
FIGURES = Path("docs/results/dask_scaling.json")


def write_table(path: Path, rows: int) -> None:
    """Ten numbers, a category, a label."""
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(0)
    names = [*(f"x{i}" for i in range(10)), "colour", "label"]
    fields = [pa.field(name, pa.float64() if name[0] == "x" else pa.string()) for name in names]
    with csv.CSVWriter(path, pa.schema(fields)) as file:
        for start in range(0, rows, 100_000):
            X = rng.normal(size=(min(100_000, rows - start), 10)).round(4)
            colour = rng.integers(0, 3, len(X))
            noise = 0.3 * rng.normal(size=len(X))
            score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * (colour == 1) + noise
            columns = [*X.T, np.array(["red", "green", "blue"])[colour], np.where(score > 0, "yes", "no")]
            file.write_table(pa.table(dict(zip(names, columns, strict=True))))


def rate(path: Path, learner: Any, count: int, most: int) -> dict[str, Any]:
    """A run in parts; the start of the processes, which import all they need, is left out."""
    model: Any = KernelClassifier(learner)
    result = Result.of(model, window=1000)
    with Workers(count) as workers, read(path, target="label", chunk_size=1000) as source:
        workers._client.run(importlib.import_module, "kernelstream.dask")
        began, used, theirs = time.monotonic(), time.process_time(), seconds_of_children()
        waited = time.thread_time()
        for X, y in workers.chunks(source):
            left = most - result.rounds
            if len(y) > left:
                X, y = X[:left], y[:left]
            model, _ = workers.step(model, result, X, y)
            if result.rounds >= most:
                break
        seconds, used = time.monotonic() - began, time.process_time() - used
        waited = time.thread_time() - waited
        each = [spent - theirs.get(pid, 0.0) for pid, spent in seconds_of_children().items()]
    return {
        "rows": result.rounds,
        "seconds": seconds,
        "rows_per_second": result.rounds / seconds,
        "error": result.error,
        "merges": workers.merges,
        "processor_seconds": used,
        "processor_seconds_while_workers_wait": waited,
        "processor_seconds_of_workers": sorted(each, reverse=True)[:count],
    }


def seconds_of_children() -> dict[int, float]:
    """Processor time of each process that this one has started."""
    return {
        child.pid: sum(child.cpu_times()[:2]) for child in psutil.Process().children() if child.is_running()
    }


def alone(path: Path, learner: Any, seconds: float) -> dict[str, Any]:
    """The first rows by one model in this process, without any merge."""
    model: Any = KernelClassifier(learner)
    result = Result.of(model, window=1000)
    with read(path, target="label", chunk_size=4096) as source:
        began, used = time.monotonic(), time.process_time()
        for X, y in source:
            result.step(model, X, y)
            if time.monotonic() - began > seconds:
                break
        took = time.monotonic() - began
    return {
        "rows": result.rounds,
        "seconds": took,
        "rows_per_second": result.rounds / took,
        "error": result.error,
        "processor_seconds": time.process_time() - used,
        "processor_seconds_while_workers_wait": time.process_time() - used,
        "processor_seconds_of_workers": [],
    }


def scaling(args: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        began = time.monotonic()
        write_table(path, args.rows)
        print(
            f"{args.rows:,} rows, {path.stat().st_size / 1e6:,.0f} MB, written in {time.monotonic() - began:.0f} s",
            flush=True,
        )
        for name, learner in LEARNERS.items():
            # one pass, one worker and two take 1, 1.1 and 0.6 of the time of one pass
            one = alone(path, learner(), 60 * args.minutes / 2.7 * SHARE[name])
            found[name] = {"one pass": one}
            for count in (1, 2):
                found[name][f"{count} workers"] = rate(path, learner(), count, one["rows"])
            for way, figures in found[name].items():
                print(name, way, json.dumps(figures), flush=True)
    write_section("scaling", scaling_table(args.rows, found))
    return {"rows": args.rows, "learners": found}


def free_seconds(figures: dict[str, Any]) -> float:
    """Processor time that passes one after the other: of what is done while workers wait, and of the busiest worker."""
    waited = figures.get(
        "processor_seconds_while_workers_wait", figures["processor_seconds"]
    )  # older ones have all
    return float(waited + max(figures["processor_seconds_of_workers"], default=0.0))


def scaling_table(rows: int, found: dict[str, Any]) -> str:
    heads = [
        "learner",
        "way",
        "rows",
        "merges",
        "rows/s by the clock",
        "against one pass",
        "against 1 worker",
    ]
    heads += ["processor s, reading and merging", "of it while workers wait", "of each worker"]
    heads += ["one after the other", "against one pass", "against 1 worker", "error"]
    learnt = ", ".join(f"{name} {ways['one pass']['rows']:,}" for name, ways in found.items())
    lines = [f"A file of {rows:,} rows. Rows learnt, the first ones, by each way: {learnt}.", ""]
    lines += [f"| {' | '.join(heads)} |", f"|---|---|{'---:|' * (len(heads) - 2)}"]
    for name, ways in found.items():
        one, first = ways["one pass"], ways["1 workers"]
        for way, f in ways.items():
            clock = [f"{f['rows_per_second']:,.0f}"]
            clock += [f"{f['rows_per_second'] / other['rows_per_second']:.2f}" for other in (one, first)]
            theirs = ", ".join(f"{spent:.1f}" for spent in f["processor_seconds_of_workers"])
            waited = f.get("processor_seconds_while_workers_wait", f["processor_seconds"])
            free = [f"{f['processor_seconds']:.1f}", f"{waited:.1f}", theirs, f"{free_seconds(f):.1f}"]
            free += [f"{free_seconds(other) / free_seconds(f):.2f}" for other in (one, first)]
            title = "1 worker" if way == "1 workers" else way
            cells = [
                name,
                title,
                f"{f['rows']:,}",
                f"{f.get('merges', 0)}",
                *clock,
                *free,
                f"{f['error']:.4f}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write_section(name: str, text: str) -> None:
    """Between the two marks of docs/results/dask_scaling.md; a page without them gets them at its end."""
    page = FIGURES.with_suffix(".md")
    whole, begin, end = page.read_text(), f"<!-- {name} -->", f"<!-- end of {name} -->"
    if begin not in whole or end not in whole:
        whole = f"{whole.rstrip()}\n\n{begin}\n{end}\n"
    page.write_text(f"{whole[: whole.index(begin)]}{begin}\n\n{text}\n\n{whole[whole.index(end) :]}")


def merges(args: argparse.Namespace) -> dict[str, Any]:
    """What one merge of two parts costs, by budget: processor time, the median of five."""
    found = {}
    rng = np.random.default_rng(0)
    X = rng.normal(size=(22_000, 20))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)
    cases: list[tuple[str, Any]] = [(f"the default, budget {b}", NewtonMixture(b)) for b in BUDGETS]
    cases += [(f"the default, budget {b}, no local memory", NewtonMixture(b, memory=0)) for b in (200,)]
    cases += [(f"NOGD, budget {b}", NOGD(b, eta=0.1)) for b in (200,)]
    for name, learner in cases:
        model = KernelClassifier(learner).partial_fit(X[:20_000], y[:20_000])
        base = pack(model)
        one, two = slice(20_000, 21_000), slice(21_000, 22_000)
        a = merging.delta(base, X[one], y[one], task="a")
        b = merging.delta(base, X[two], y[two], task="b")
        steps: dict[str, Any] = {
            "pack": partial(pack, model),
            "delta": partial(merging.delta, base, X[:1], y[:1], task="one row"),
            "learn": partial(merging.delta, base, X[one], y[one], task="a"),
            "combine": partial(merging.combine, [a, b]),
            "add": partial(merging.add, base, [a, b]),
        }
        times: dict[str, list[float]] = {what: [] for what in steps}
        for _ in range(5):
            for what, step in steps.items():
                at = time.process_time()
                step()
                times[what].append(time.process_time() - at)
        ms = {what: 1e3 * float(np.median(values)) for what, values in times.items()}
        row = (ms["learn"] - ms["delta"]) / 999 * 1e3
        found[name] = {
            "base_bytes": len(base),
            "delta_bytes": len(a),
            "milliseconds": {k: round(v, 2) for k, v in ms.items() if k != "learn"},
            "microseconds_per_row": row,
        }
        print(name, json.dumps(found[name]), flush=True)
    return found


# ---- beyond this machine ----


def epoch_seconds(workers: int, rows: int, cost: dict[str, float]) -> float:
    """How long an epoch lasts: the base goes out by a tree, all learn, deltas come back by a tree, one process adds them.

    `rows` are those of one part. Times are in seconds, `rate` in bytes per second.
    """
    levels = np.ceil(np.log2(max(workers, 1)))
    send = (1 + levels) * cost["base_bytes"] / cost["rate"]
    learn = cost["fixed"] + rows * cost["row"]
    back = (
        levels * (cost["combine"] + cost["delta_bytes"] / cost["rate"]) + cost["delta_bytes"] / cost["rate"]
    )
    return float(send + learn + back + cost["add"])


def simulated(
    workers: int, rows: int, cost: dict[str, float], rng: np.random.Generator, slow: float, epochs: int = 20
) -> float:
    """Rows per second by events: each worker has its own pace, one in twenty is `slow` times as long; trees wait for their parts.

    A node sends to one other at a time; whoever has the base sends it on; two deltas are put together as soon as both are there.
    """
    total = 0.0
    for _ in range(epochs):
        # the base goes out: a heap of when each holder is free to send
        link = cost["base_bytes"] / cost["rate"]
        holders, begin = [0.0], []
        while len(begin) < workers:
            at = heapq.heappop(holders) + link
            begin.append(at)
            heapq.heappush(holders, at)
            heapq.heappush(holders, at)
        pace = rng.lognormal(0.0, 0.05, workers) * np.where(rng.random(workers) < 0.05, slow, 1.0)
        ready = [at + cost["fixed"] + rows * cost["row"] * p for at, p in zip(begin, pace, strict=True)]
        heapq.heapify(ready)
        hop = cost["delta_bytes"] / cost["rate"]
        while len(ready) > 1:  # the two that are ready first
            heapq.heappop(ready)
            later = heapq.heappop(ready)
            heapq.heappush(ready, later + hop + cost["combine"])
        total += ready[0] + hop + cost["add"]
    return epochs * workers * rows / total


def costs_of(figures: dict[str, Any], network: float) -> dict[str, float]:
    ms = figures["milliseconds"]
    return {
        "base_bytes": figures["base_bytes"],
        "delta_bytes": figures["delta_bytes"],
        "rate": network,
        "fixed": ms["delta"] / 1e3,
        "row": figures["microseconds_per_row"] / 1e6,
        "combine": ms["combine"] / 1e3,
        "add": (ms["add"] + ms["pack"]) / 1e3,
    }


COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)


def model(args: argparse.Namespace) -> dict[str, Any]:
    """Throughput by the formula and by the simulation."""
    measured = json.loads(FIGURES.read_text())["merges"]
    found: dict[str, Any] = {}
    for name in ("the default, budget 200", "NOGD, budget 200"):
        cost = costs_of(measured[name], args.network)
        for rows in (1000, 10_000, 100_000):
            formula = [w * rows / epoch_seconds(w, rows, cost) for w in COUNTS]
            rng = np.random.default_rng(1)
            even = [simulated(w, rows, cost, rng, 1.0) for w in COUNTS]
            late = [simulated(w, rows, cost, rng, 2.0) for w in COUNTS]
            found[f"{name}, {rows:,} rows per part"] = {
                "formula": formula,
                "simulated": even,
                "stragglers": late,
                "merging": [1 - rows * cost["row"] / epoch_seconds(w, rows, cost) for w in (1, 1000)],
            }
    return found


def table(found: dict[str, Any]) -> str:
    lines = [
        "| learner, rows per part | "
        + " | ".join(f"{w:,}" for w in COUNTS)
        + " | share of merging, 1 and 1,000 |"
    ]
    lines.append("|---|" + "---:|" * (len(COUNTS) + 1))
    for name, row in found.items():
        for way in ("formula", "simulated", "stragglers"):
            title = (
                name
                if way == "formula"
                else {"simulated": "simulated", "stragglers": "1 worker in 20 at half speed"}[way]
            )
            cells = " | ".join(f"{v / 1e3:,.0f}" for v in row[way])
            share = ", ".join(f"{part:.0%}" for part in row["merging"]) if way == "formula" else ""
            lines.append(f"| {title} | {cells} | {share} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("scaling", "merges", "model"))
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=1_000_000)
    parser.add_argument("--minutes", type=float, default=3.0, help="all cases of `scaling` together")
    parser.add_argument("--network", type=float, default=1e9, help="bytes per second between two machines")
    parser.add_argument("--picture", type=Path, help="of `model`")
    args = parser.parse_args()
    found = {"scaling": scaling, "merges": merges, "model": model}[args.what](args)
    before = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    FIGURES.write_text(json.dumps(before | {args.what: found}, indent=1) + "\n")
    if args.what == "model":
        print(table(found))
        write_section("model", table(found))
        if args.picture:
            draw(args.picture, found)


def draw(path: Path, found: dict[str, Any]) -> None:
    import matplotlib.pyplot as plt

    plt.style.use(Path(kernelstream.__file__).with_name("pictures.mplstyle"))
    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    for axis, learner in zip(axes, ("the default", "NOGD"), strict=True):
        for k, (name, row) in enumerate((n, r) for n, r in found.items() if n.startswith(learner)):
            axis.loglog(COUNTS, row["formula"], "-", color=f"C{k}", label=name.split(", ")[-1])
            axis.loglog(COUNTS, row["simulated"], "o", color=f"C{k}", markersize=4)
            axis.loglog(COUNTS, row["stragglers"], "x", color=f"C{k}", markersize=4)
        axis.set(title=learner, xlabel="workers", ylabel="rows per second")
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axis.legend(fontsize=8, loc="upper left")
    figure.savefig(path)


if __name__ == "__main__":
    main()
