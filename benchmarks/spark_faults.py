"""Kills drivers and executors of a streaming query at random moments; the final model is that of an undisturbed one.

    python benchmarks/spark_faults.py --kills 30 --page docs/results/spark_faults.md

A stream of Parquet files is learnt by `kernelstream.spark.StreamLearner` on `local-cluster[2,1,512]`: a driver and two
executors, each a process of its own, with 512 MB for Java. Again and again, a random moment after a batch has begun or
ended, SIGKILL goes to the driver (Python and its JVM; the same program is then started again) or to an executor (Spark
starts another). When all kills are done, the query runs to its end. The undisturbed run has its own folder, in one
process, `local[2]`: so the number and kind of workers do not matter either.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from kernelstream import Gaussian, KernelRegressor
from kernelstream.checkpoint import Checkpoint
from kernelstream.learners import KRLS, NewtonMixture
from kernelstream.persistence import pack

MODELS = {"default": NewtonMixture(40), "krls": KRLS(nu=0.05, kernel=Gaussian(gamma=0.1))}
CLUSTER = "local-cluster[2,1,512]"
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # most of these processes live for seconds: they must start soon
SCHEMA = "a DOUBLE, b DOUBLE, c DOUBLE, y DOUBLE"


def learn(folder: Path, state: str, master: str, model: str) -> None:
    """The program that is killed."""
    from pyspark.sql import SparkSession

    from kernelstream.spark import StreamLearner

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.executor.extraJavaOptions": JAVA,
        "spark.sql.shuffle.partitions": "2",
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.task.maxFailures": "50",
        "spark.stage.maxConsecutiveAttempts": "50",
        "spark.executor.heartbeatInterval": "2s",
    }
    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(folder / "files"))
    with StreamLearner(KernelRegressor(MODELS[model]), folder / state, target="y", parts=2) as learner:
        print("started", flush=True)
        query = learner.start(stream, availableNow=True)
        query.awaitTermination()
    spark.stop()


def write_files(folder: Path, batches: int, rows: int) -> None:
    import pandas as pd

    folder.mkdir()
    rng = np.random.default_rng(7)
    for i in range(2 * batches):
        X = rng.normal(size=(rows // 2, 3))
        frame = pd.DataFrame(X, columns=list("abc")).assign(y=np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2])
        frame.to_parquet(folder / f"{i:05d}.parquet", index=False)
        os.utime(folder / f"{i:05d}.parquet", (i, i))


def below(pid: int) -> list[int]:
    """All processes that a process has started, directly or not."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(
                int(path.parent.name)
            )
    found = list(parents.get(pid, []))
    for child in found:
        found += parents.get(child, [])
    return found


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--drivers", type=float, default=0.2, help="share of kills that hit the driver")
    parser.add_argument("--batches", type=int, default=120)
    parser.add_argument("--rows", type=int, default=1000, help="of a batch")
    parser.add_argument(
        "--pause", type=float, default=2.0, help="seconds from the beginning of a batch to a kill, at most"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=10.0,
        help="no more kills after this time; the end comes within twice this",
    )
    parser.add_argument("--model", choices=MODELS, default="default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        folder, state, master = options.child
        learn(Path(folder), state, master, options.model)
        return

    folder = Path(tempfile.mkdtemp(prefix="spark-faults-"))
    write_files(folder / "files", options.batches, options.rows)

    def start(state: str, master: str) -> subprocess.Popen[str]:
        call = [sys.executable, __file__, "--model", options.model, "--child", str(folder), state, master]
        with open(folder / f"{state}.log", "a") as log:
            return subprocess.Popen(
                call, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True, cwd=folder
            )

    began = time.monotonic()
    if start("right", "local[2]").wait():
        raise SystemExit(f"the undisturbed run failed: {folder}/right.log")
    print(f"undisturbed: {time.monotonic() - began:.0f} s", flush=True)

    chance = random.Random(options.seed)
    killed = {"driver": 0, "executor": 0}
    within = 0  # kills in the middle of a batch
    began, starts, known = time.monotonic(), 0, (-1, -1)

    def batches() -> tuple[int, int]:
        """The newest batch that has begun, and the newest that has ended; Spark deletes files of old ones."""
        spark = folder / "killed" / "spark"
        begun, ended = (
            max((int(path.name) for path in (spark / part).glob("[0-9]*")), default=-1)
            for part in ("offsets", "commits")
        )
        return begun, ended

    def left() -> float:
        return max(1.0, began + 120 * options.minutes - time.monotonic())

    while True:
        child, starts = start("killed", CLUSTER), starts + 1
        up = child.stdout is not None and child.stdout.readline()
        while up and child.poll() is None and sum(killed.values()) < options.kills:
            if time.monotonic() - began > 60 * options.minutes:
                break
            if batches() == known:  # no batch since the last kill: the query is not at work yet
                time.sleep(0.05)
                continue
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(chance.uniform(0, options.pause))
                break
            known = batches()
            everyone = below(child.pid)
            executors = [pid for pid in everyone if "CoarseGrainedExecutorBackend" in command(pid)]
            if chance.random() < options.drivers:
                kill([child.pid, *(pid for pid in everyone if "SparkSubmit" in command(pid))])
                killed["driver"] += 1
                within += known[0] > known[1]
            elif executors:
                kill([chance.choice(executors)])
                killed["executor"] += 1
                within += known[0] > known[1]
            print(f"{time.monotonic() - began:5.0f} s: {killed}, batch {known[0]}", flush=True)
        everyone = below(child.pid)
        try:
            code = child.wait(left())
        except subprocess.TimeoutExpired:
            kill([child.pid, *below(child.pid)])
            raise SystemExit(f"no end within {2 * options.minutes:g} minutes: {folder}/killed.log") from None
        kill(everyone)  # executors of a driver that is gone end by themselves, but later
        if code == 0:
            break
        if code != -signal.SIGKILL:
            raise SystemExit(f"the query failed by itself: {folder}/killed.log")
    seconds = time.monotonic() - began

    saved = {}
    for state in ("right", "killed"):
        with Checkpoint(folder / state) as checkpoint:
            saved[state] = checkpoint.load()
    right, disturbed = saved["right"], saved["killed"]
    same = pack(right.model) == pack(disturbed.model)
    learnt = {
        state: int(kept.model.learner_.state().get("learnt", [kept.record["rows"]])[0])
        for state, kept in saved.items()
    }
    rows = options.batches * (options.rows // 2) * 2
    lines = [
        "# Kills in the middle of a streaming query on Spark",
        "",
        "Machine: [two cores of a busy server](index.md#the-machine).",
        "",
        f"`python benchmarks/spark_faults.py --kills {options.kills} --batches {options.batches} --rows {options.rows} "
        f"--pause {options.pause:g} --minutes {options.minutes:g} --model {options.model}`:",
        f"{options.batches} batches of {options.rows:,} rows, {rows:,} in all; a driver and two executors on one machine "
        f"(`{CLUSTER}`), SIGKILL at random moments. The killed run took {seconds / 60:.0f} minutes; "
        f"kills end after {options.minutes:g}.",
        "",
        "| | undisturbed (`local[2]`) | killed |",
        "|---|---:|---:|",
        f"| drivers killed | 0 | {killed['driver']} |",
        f"| executors killed | 0 | {killed['executor']} |",
        f"| of these kills, while a batch was learnt | 0 | {within} |",
        f"| starts of the program | 1 | {starts} |",
        f"| last batch | {right.position['batch']} | {disturbed.position['batch']} |",
        f"| rows counted in the checkpoint | {right.record['rows']:,} | {disturbed.record['rows']:,} |",
        f"| rows the model has learnt | {learnt['right']:,} | {learnt['killed']:,} |",
        f"| offsets | `{right.position['offsets']}` | `{disturbed.position['offsets']}` |",
        f"| model files are equal to the byte | | {'yes' if same else 'NO'} |",
        "",
    ]
    print("\n".join(lines), f"{seconds:.0f} s; {folder}", sep="\n")
    if options.page:
        options.page.write_text("\n".join(lines))
    if not same or {right.record["rows"], disturbed.record["rows"], *learnt.values()} != {rows}:
        raise SystemExit("the models are not the same")
    if sum(killed.values()) < options.kills:
        raise SystemExit(f"only {sum(killed.values())} kills before the end: more --batches or --minutes")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
