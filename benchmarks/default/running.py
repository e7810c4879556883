"""Runs what is not stored yet, and stores it: one line per run."""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
from contenders import CONTENDERS, STEP, Contender, Diverged
from streams import PAPERS, SEEDS, SHORT, Stream

# Seconds of processor time: a contender that needs more for seed 0 is not run with the other seeds.
PATIENCE = 1.0
ORDERS = 3  # of a stream at most, but for our own learner and the k-NN rules
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


def figure(losses: Any, stream: Stream) -> float | None:
    """Error in per cent, or root mean squared error; None where a loss is missing."""
    if not len(losses) or not np.isfinite(losses).all():
        return None
    return round(float(100 * losses.mean() if stream.classes else np.sqrt(losses.mean())), 5)


def one_run(stream: Stream, contender: Contender, seed: int, chosen: str) -> dict[str, Any]:
    X, y = stream.load(seed)
    rows = contender.rows(stream)
    row: dict[str, Any] = {
        "stream": stream.name,
        "contender": contender.name,
        "seed": seed,
        "rows": rows,
        "of": len(y),
        "settings": contender.about(stream),
        "version": f"{contender.package} {installed(contender.package)}",
    }
    try:
        run = contender.run(stream, X[:rows], y[:rows], seed, chosen)
        if not np.isfinite(run.losses[-1]):
            raise Diverged
    except Diverged:
        return row | {"error": None, "half": None, "micros": None, "seconds": None, "nbytes": None}
    n = len(run.losses)
    # Errors after fewer rows, to compare with peers that stopped early: only of our own, in the orders that peers run.
    compared = contender.package == "kernelstream" and not stream.whole and seed < len(SEEDS)
    marks = range(STEP, n, STEP) if compared else ()
    return (
        row
        | {
            "rows": n,
            "error": figure(run.losses, stream),
            "half": figure(run.losses[len(y) // 2 :], stream) if n == len(y) else None,  # of the second half
            **({"curve": {m: figure(run.losses[:m], stream) for m in marks}} if marks else {}),
            "micros": round(run.seconds / n * 1e6, 2),
            "seconds": round(run.seconds, 3),
            "nbytes": run.nbytes,
            **({"chosen": run.chosen} if run.chosen else {}),
        }
    )


def run_all(options: argparse.Namespace) -> None:
    """Stream after stream, the cheap contenders first; seed 0 of a contender comes before its other seeds."""
    stored = read(options.results)
    for name in options.streams:
        s = options.find(name)
        contenders = [
            c for c in map(CONTENDERS.__getitem__, options.contenders) if c.fits(s) and installed(c.package)
        ]
        contenders.sort(key=lambda c: c.micros(s))
        for seed, contender in itertools.product(s.seeds, contenders):
            first, before = stored.get((name, contender.name, 0)), stored.get((name, contender.name, seed))
            if before and before["settings"] == contender.about(s) and not options.again:
                continue
            slow = first and (first["seconds"] or PATIENCE + 1) > PATIENCE
            if seed and not contender.always and (slow or seed >= ORDERS):
                continue
            row = one_run(s, contender, seed, first.get("chosen", "") if seed and first else "")
            stored[name, contender.name, seed] = row
            with options.results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(
                name, contender.name, seed, row["rows"], row["error"], row["half"], row["micros"], flush=True
            )


def tidy(path: Path) -> None:
    """The stored runs in the order of streams and contenders."""
    order = {name: i for i, name in enumerate([*SHORT, *PAPERS, *CONTENDERS])}
    rows = sorted(
        read(path).values(),
        key=lambda r: (order.get(r["stream"], 999), r["stream"], order.get(r["contender"], 999), r["seed"]),
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
