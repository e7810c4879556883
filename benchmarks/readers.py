"""Rows per second of each reader, side by side with what a user would otherwise take.

All contenders read the same rows in this one process, in turns; the best of the turns counts. Rates are by CPU time of all
threads, which a busy machine disturbs least; the last column is by the clock (Vowpal Wabbit parses in a thread of its own).
`read` gives chunks of features ready to learn from, categories encoded; the peers give a whole matrix or frame (scikit-learn,
pandas) or nothing (Vowpal Wabbit with `--noop` parses and hashes its own format). What is not installed is left out and said so.

    python benchmarks/readers.py [--rows 200000] [--turns 5] [--markdown FILE]

Needs `pip install "kernelstream[test]" vowpalwabbit`; a9a and covtype.binary come from KERNELSTREAM_DATA.
"""

from __future__ import annotations

import os

for variable in (
    "POLARS_MAX_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "ARROW_NUM_THREADS",
):
    os.environ[variable] = "1"

import argparse
import gzip
import json
import lzma
import platform
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
from sklearn.datasets import load_svmlight_file

from kernelstream.stream import read

try:
    import vowpalwabbit
except ImportError:
    vowpalwabbit = None

Contender = tuple[str, Callable[[], object]]


def consume(path: Path, **arguments: object) -> None:
    for _ in read(path, **arguments):  # type: ignore[arg-type]
        pass


def vw(path: Path, arguments: str) -> None:
    workspace = vowpalwabbit.Workspace(f"{arguments} --quiet -d {path}")
    workspace.run_parser()
    workspace.finish()


def vw_contenders(folder: Path, name: str, lines: Iterable[str]) -> list[Contender]:
    if vowpalwabbit is None:
        return []
    path = folder / f"{name}.vw"
    path.write_text("".join(lines))
    return [
        ("Vowpal Wabbit, parse only (`--noop`)", lambda: vw(path, "--noop")),
        ("Vowpal Wabbit, linear learner", lambda: vw(path, "--loss_function logistic")),
    ]


def libsvm(folder: Path, name: str) -> tuple[str, int, float, list[Contender]]:
    """A data set as LIBSVM text, plain and packed."""
    data = Path(os.environ["KERNELSTREAM_DATA"], f"{name}.libsvm.xz").read_bytes()
    text = lzma.decompress(data)
    plain, gz, xz = (folder / f"{name}.libsvm{ending}" for ending in ("", ".gz", ".xz"))
    plain.write_bytes(text)
    gz.write_bytes(gzip.compress(text, 6))
    xz.write_bytes(data)
    rows = text.splitlines()
    lines = (
        f"{'1' if (head := row.split(b' ', 1))[0] in (b'1', b'+1') else '-1'} | {head[1].decode() if len(head) > 1 else ''}\n"
        for row in rows
    )
    contenders: list[Contender] = [
        ("`read`", lambda: consume(plain)),
        ("`read`, gzip", lambda: consume(gz)),
        ("`read`, xz", lambda: consume(xz)),
        ("scikit-learn `load_svmlight_file`", lambda: load_svmlight_file(str(plain))),
        *vw_contenders(folder, name, lines),
    ]
    return f"{name}, LIBSVM text", len(rows), len(text) / 1e6, contenders


def numbers(folder: Path, n: int) -> list[tuple[str, int, float, list[Contender]]]:
    """Twenty columns of numbers."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 20)).round(4), rng.integers(0, 2, n)
    table = pa.table({**{f"x{i}": X[:, i] for i in range(20)}, "y": y})
    csv, parquet, npz, npy = (folder / f"numbers.{ending}" for ending in ("csv", "parquet", "npz", "npy"))
    pa.csv.write_csv(table, csv)
    pa.parquet.write_table(table, parquet, row_group_size=50_000)
    np.savez(npz, X=X, y=y)
    np.save(npy, np.column_stack([X, y]))
    lines = (
        f"{2 * b - 1} | " + " ".join(f"{i}:{v}" for i, v in enumerate(row)) + "\n"
        for row, b in zip(X.tolist(), y.tolist(), strict=True)
    )
    whole = csv.stat().st_size / 1e6
    return [
        (
            "20 columns of numbers, CSV",
            n,
            whole,
            [
                ("`read`", lambda: consume(csv)),
                ("pandas `read_csv`", lambda: pd.read_csv(csv)),
                (
                    "pandas `read_csv`, exact (`round_trip`)",
                    lambda: pd.read_csv(csv, float_precision="round_trip"),
                ),
                (
                    "pandas `read_csv(chunksize=8192)`",
                    lambda: list(map(len, pd.read_csv(csv, chunksize=8192))),
                ),
                (
                    "pyarrow `read_csv`, one thread",
                    lambda: pa.csv.read_csv(csv, pa.csv.ReadOptions(use_threads=False)),
                ),
                ("polars `read_csv` and `to_numpy`, one thread", lambda: pl.read_csv(csv).to_numpy()),
                *vw_contenders(folder, "numbers", lines),
            ],
        ),
        (
            "the same, Parquet",
            n,
            parquet.stat().st_size / 1e6,
            [
                ("`read`", lambda: consume(parquet)),
                ("pandas `read_parquet`", lambda: pd.read_parquet(parquet)),
                (
                    "pyarrow `read_table` and to NumPy, one thread",
                    lambda: np.column_stack(
                        [c.to_numpy() for c in pa.parquet.read_table(parquet, use_threads=False).columns]
                    ),
                ),
                ("polars `read_parquet` and `to_numpy`", lambda: pl.read_parquet(parquet).to_numpy()),
            ],
        ),
        (
            "the same, .npz",
            n,
            npz.stat().st_size / 1e6,
            [("`read`", lambda: consume(npz)), ("`numpy.load`", lambda: [np.load(npz)[k] for k in "Xy"])],
        ),
        (
            "the same, .npy",
            n,
            npy.stat().st_size / 1e6,
            [("`read`", lambda: consume(npy, target=-1)), ("`numpy.load`", lambda: np.load(npy))],
        ),
    ]


def mixed(folder: Path, n: int) -> list[tuple[str, int, float, list[Contender]]]:
    """Six columns of numbers, eight of ten categories each."""
    rng = np.random.default_rng(1)
    letters = np.array(list("abcdefghij"))
    columns = {f"x{i}": rng.normal(size=n).round(4) for i in range(6)} | {
        f"c{i}": letters[rng.integers(10, size=n)] for i in range(8)
    }
    table = pa.table({**columns, "y": rng.integers(0, 2, n)})
    csv, jsonl = folder / "mixed.csv", folder / "mixed.jsonl"
    pa.csv.write_csv(table, csv)
    rows = table.to_pylist()
    jsonl.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def dummies() -> object:
        return pd.get_dummies(pd.read_csv(csv))

    return [
        (
            "6 numbers and 8 categories, CSV",
            n,
            csv.stat().st_size / 1e6,
            [
                ("`read`, one-hot", lambda: consume(csv)),
                ("`read`, hashed", lambda: consume(csv, hashed=256)),
                ("pandas `read_csv`", lambda: pd.read_csv(csv)),
                ("pandas `read_csv` and `get_dummies`", dummies),
                (
                    "pyarrow `read_csv`, one thread",
                    lambda: pa.csv.read_csv(csv, pa.csv.ReadOptions(use_threads=False)),
                ),
                ("polars `read_csv`, one thread", lambda: pl.read_csv(csv)),
                (
                    "polars `read_csv` and `to_dummies`, one thread",
                    lambda: pl.read_csv(csv).to_dummies([f"c{i}" for i in range(8)]),
                ),
            ],
        ),
        (
            "the same, JSON lines",
            n,
            jsonl.stat().st_size / 1e6,
            [
                ("`read`, one-hot", lambda: consume(jsonl)),
                ("pandas `read_json(lines=True)`", lambda: pd.read_json(jsonl, lines=True)),
                (
                    "pyarrow `read_json`, one thread",
                    lambda: pa.json.read_json(jsonl, pa.json.ReadOptions(use_threads=False)),
                ),
                ("polars `read_ndjson`, one thread", lambda: pl.read_ndjson(jsonl)),
            ],
        ),
    ]


def measure(contenders: list[Contender], turns: int) -> dict[str, tuple[float, float]]:
    """CPU seconds of all threads and seconds by the clock, each the best of the turns."""
    best: dict[str, tuple[float, float]] = {}
    for _ in range(turns):
        for name, run in contenders:
            start, clock = time.process_time(), time.perf_counter()
            run()
            taken = time.process_time() - start, time.perf_counter() - clock
            best[name] = tuple(map(min, best.get(name, taken), taken))  # type: ignore[assignment]
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    out = [
        f"{platform.machine()}, Python {platform.python_version()}, best of {arguments.turns} turns, CPU time.",
        "",
    ]
    if vowpalwabbit is None:
        out += ["Vowpal Wabbit is not installed: left out.", ""]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        groups: list[tuple[str, int, float, list[Contender]]] = []
        if os.environ.get("KERNELSTREAM_DATA"):
            groups += [libsvm(folder, name) for name in ("a9a", "covtype.binary")]
        else:
            out += ["KERNELSTREAM_DATA is not set: a9a and covtype.binary are left out.", ""]
        groups += numbers(folder, arguments.rows) + mixed(folder, arguments.rows)
        for title, rows, megabytes, contenders in groups:
            best = measure(contenders, arguments.turns)
            ours = next(iter(best.values()))
            out += [f"**{title}** ({rows:,} rows, {megabytes:.1f} MB)", ""]
            out += [
                "| reader | rows/s | MB/s | CPU time, `read` = 1 | by the clock |",
                "|---|---:|---:|---:|---:|",
            ]
            for name, (seconds, clock) in best.items():
                out.append(
                    f"| {name} | {rows / seconds:,.0f} | {megabytes / seconds:.0f} "
                    f"| {seconds / ours[0]:.2f} | {clock / ours[1]:.2f} |"
                )
            out.append("")
            print("\n".join(out[-len(best) - 5 :]), flush=True)
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(out))


if __name__ == "__main__":
    main()
