"""Runs what is not stored yet, and stores it: one line per run."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np
from contenders import CONTENDERS, Contender, Diverged
from streams import STREAMS, Stream

PATIENCE = 3.0  # seconds of CPU: a contender that needs more for seed 0 is not run with the other seeds
MARKS = (
    1000,
    2000,
    5000,
    10_000,
    20_000,
    50_000,
    60_000,
    100_000,
    200_000,
    500_000,
)  # rows at which curves are kept
Key = tuple[str, str, int]


def read(path: Path) -> dict[Key, dict[str, Any]]:
    """The stored runs; of two of the same stream, contender and seed the later holds."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.strip()]
    return {(row["stream"], row["contender"], row["seed"]): row for row in rows}


def installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def one_run(stream: Stream, contender: Contender, seed: int, chosen: str) -> dict[str, Any]:
    X, y = stream.load(seed)
    rows = contender.rows(stream)
    row: dict[str, Any] = {
        "stream": stream.name,
        "contender": contender.name,
        "seed": seed,
        "rows": rows,
        "of": len(y),
        "settings": contender.settings(stream),
        "version": f"{contender.package} {installed(contender.package)}",
        "metric": "error, %" if stream.classes else "RMSE",
    }
    try:
        run = contender.run(stream, X[:rows], y[:rows], seed, chosen)
        mean = np.cumsum(run.losses) / np.arange(1, len(run.losses) + 1)
        if not np.isfinite(mean[-1]):
            raise Diverged
    except Diverged:
        return row | {"error": None, "curve": {}, "micros": None, "seconds": None, "nbytes": None}
    figures = 100 * mean if stream.classes else np.sqrt(mean)
    return row | {
        "rows": len(figures),
        "error": round(float(figures[-1]), 5),
        "curve": {str(m): round(float(figures[m - 1]), 5) for m in MARKS if m <= len(figures)},
        "micros": round(run.seconds / len(figures) * 1e6, 2),
        "seconds": round(run.seconds, 3),
        "nbytes": run.nbytes,
        **({"chosen": run.chosen} if run.chosen else {}),
    }


def run_all(options: argparse.Namespace) -> None:
    stored = read(options.results)
    jobs = [
        (contender.micros(stream) * contender.rows(stream), seed, stream, contender)
        for stream in (STREAMS[name] for name in options.streams)
        for contender in (CONTENDERS[name] for name in options.contenders)
        if contender.fits(stream) and installed(contender.package)
        for seed in stream.seeds
        if seed in options.seeds
    ]
    # By cost in steps of two, then by stream: files are read seldom, and seed 0 of a job comes before the others.
    jobs.sort(key=lambda job: (int(np.log2(job[0])), job[2].name, job[3].name, job[1]))
    done = set()
    for _, seed, stream, contender in jobs:
        key = (stream.name, contender.name, seed)
        first = stored.get((stream.name, contender.name, 0))
        before = stored.get(key)
        if before and before["settings"] == contender.settings(stream) and not options.again:
            continue
        same = first is not None and first["settings"] == contender.settings(stream)
        if seed and same and not contender.always and (first["error"] is None or first["seconds"] > PATIENCE):
            continue
        row = one_run(stream, contender, seed, first.get("chosen", "") if seed and same else "")
        stored[key] = row
        done.add(key)
        with options.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(stream.name, contender.name, seed, row["rows"], row["error"], row["micros"], flush=True)
    if done:
        order = {name: i for i, name in enumerate([*STREAMS, *CONTENDERS])}
        rows = sorted(
            read(options.results).values(),
            key=lambda r: (order.get(r["stream"], 99), order.get(r["contender"], 999), r["seed"]),
        )
        options.results.write_text("".join(json.dumps(row) + "\n" for row in rows))
