"""Rows per second of `kernelstream.spark.fit` with one and two workers, the default learner, a Parquet file made here.

    python benchmarks/spark_scaling.py --rows 4e6 --minutes 10 --page docs/results/spark_scaling.md

Each number of workers has a process of its own (`local[N]`). The times are those of `fit` as a whole (a pass that finds
the classes, Spark's shuffle, learning, merging) and from the first merge to the last; they need a quiet machine. Processor
seconds are told apart by process: Java, the Python of the workers, the Python of the driver. All runs together take about
``--minutes``: each ends after its share, and its rate is that of the rows learnt by then.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import psutil

from kernelstream import KernelClassifier

FEATURES = [f"x{i}" for i in range(10)]


def write(path: Path, rows: int, chunk: int = 200_000) -> None:
    """A table of two classes with a curved boundary, chunk by chunk."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([*((name, pa.float32()) for name in FEATURES), ("label", pa.int32())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, chunk):
            rng = np.random.default_rng([5, start])
            X = rng.normal(size=(min(chunk, rows - start), len(FEATURES))).astype(np.float32)
            score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] - 0.5 * X[:, 3] + 0.5 * rng.normal(size=len(X))
            columns = [*X.T, (score > 0).astype(np.int32)]
            writer.write_table(pa.table([np.ascontiguousarray(c) for c in columns], schema=schema))


class Enough(Exception):
    pass


def processor_seconds() -> dict[str, float]:
    """Of this process, of Java and of the workers' Python."""
    here, total = psutil.Process(), {"driver": 0.0, "Java": 0.0, "workers": 0.0}
    for process in (here, *here.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            kind = "driver" if process == here else "Java" if process.name() == "java" else "workers"
            total[kind] += times.user + times.system
    return total


def measure(path: str, workers: int, rows_per_part: int, parts: int, limit: float) -> dict[str, float]:
    from kernelstream.spark import fit, local_session

    spark = local_session(workers, spark_driver_memory="2g", spark_sql_files_maxPartitionBytes=str(16 << 20))
    table = spark.read.parquet(path)
    table.limit(1).collect()  # Java is warm
    before = processor_seconds()
    began, told = time.monotonic(), []

    def tell(p):
        told.append(p)
        print(p, p.seconds_left, file=sys.stderr, flush=True)
        if time.monotonic() - began > limit:
            raise Enough

    model = None
    with contextlib.suppress(Enough):
        model = fit(
            KernelClassifier(), table, target="label", rows_per_part=rows_per_part, parts=parts, progress=tell
        )
    seconds = time.monotonic() - began
    after = processor_seconds()
    first, last = told[0], told[-1]
    test = table.limit(5000).toPandas()
    result = {
        "rows": last.rows,
        "seconds": seconds,
        "rate": last.rows / seconds,
        "learning": (last.rows - first.rows) / max(1e-9, last.seconds - first.seconds),
        "merges": last.merges,
        "delta_bytes": last.delta_bytes,
        "error": float("nan") if model is None else 1 - model.score(test[FEATURES], test["label"]),
    }
    spark.stop()
    return result | {kind: after[kind] - before[kind] for kind in before}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows-per-part", type=int, default=50_000)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--minutes", type=float, default=10.0, help="of all runs together")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    limit = 60 * options.minutes / len(options.workers)
    if options.child:
        path, workers = options.child
        print(json.dumps(measure(path, int(workers), options.rows_per_part, options.parts, limit)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        rows = int(options.rows)
        write(path, rows)
        size = path.stat().st_size
        print(f"{rows:,} rows, {size / 1e6:,.0f} MB", flush=True)
        found = {}
        for workers in options.workers:
            settings = ["--rows-per-part", str(options.rows_per_part), "--parts", str(options.parts)]
            settings += ["--minutes", str(options.minutes), "--workers", *map(str, options.workers)]
            call = [sys.executable, __file__, *settings, "--child", str(path), str(workers)]
            out = subprocess.run(
                call, check=True, stdout=subprocess.PIPE, text=True, timeout=2 * limit + 60
            ).stdout
            found[workers] = json.loads(out.splitlines()[-1])
            print(workers, found[workers], flush=True)
    one = found[options.workers[0]]
    lines = [
        "# Spark: rows per second with one and two workers",
        "",
        "Machine: [two cores of a busy server](index.md#the-machine).",
        "",
        f"`python benchmarks/spark_scaling.py --rows {options.rows:g} --minutes {options.minutes:g}`: the default learner, "
        f"a Parquet file of {rows:,} rows,",
        f"10 numbers and two classes each ({size / 1e6:,.0f} MB), parts of {options.rows_per_part:,} rows, "
        f"{options.parts} at once, on a machine of {os.cpu_count()} cores.",
        "",
        "| workers | rows learnt | seconds | rows/s, `fit` as a whole | rows/s while learning | ratio, whole "
        "| ratio, learning | processor µs per row: workers | Java | driver | merges | bytes per merge "
        "| error on 5,000 rows |",
        f"|{'---:|' * 13}",
    ]
    for workers, r in found.items():
        cells = [
            f"{workers}",
            f"{r['rows']:,}",
            f"{r['seconds']:.0f}",
            f"{r['rate']:,.0f}",
            f"{r['learning']:,.0f}",
            f"{r['rate'] / one['rate']:.2f}",
            f"{r['learning'] / one['learning']:.2f}",
            *(f"{1e6 * r[kind] / r['rows']:.1f}" for kind in ("workers", "Java", "driver")),
            f"{r['merges']}",
            f"{r['delta_bytes']:,}",
            f"{r['error']:.4f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    print("\n".join(lines))
    if options.page:
        options.page.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
