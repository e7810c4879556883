"""Kill Dask workers at random moments, and compare the model with the undisturbed one's, byte for byte.

    python benchmarks/kill_workers.py [--kills 30] [--minutes 15] [--out docs/results/kill_workers.md]

``kernelstream.dask.fit`` on two processes, of which one is killed (SIGKILL) after a random pause, and started again. Only
a worker is killed that has done a task since it started: else kills could come faster than workers start. They start from a
server that has imported what they need (`forkserver`), so that many kills fit the time. One chunk in ten of the
table is a straggler that waits. Fits follow one another until all kills are done, or the time is over.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

from kernelstream import KernelClassifier
from kernelstream.dask import fit
from kernelstream.learners import NewtonMixture
from kernelstream.persistence import pack

CHUNK, WIDTH = 1000, 6


def rows(chunk: int, slow: float) -> np.ndarray:
    """A chunk of the table; some wait."""
    if chunk % 10 == 7:
        time.sleep(slow)
    return np.random.default_rng(chunk).normal(size=(CHUNK, WIDTH))


def labels(X: np.ndarray) -> np.ndarray:
    return (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)


def table(chunks: int, slow: float) -> tuple[da.Array, da.Array]:
    X = da.concatenate(
        [da.from_delayed(dask.delayed(rows)(k, slow), (CHUNK, WIDTH), float) for k in range(chunks)]
    )
    return X, X.map_blocks(labels, drop_axis=1, dtype=int)


def learnt(chunks: int, slow: float, client: Client, tell: list[Any]) -> str:
    model = KernelClassifier(NewtonMixture(20, memory=2**18))
    parts = {"first_rows": 1000, "rows_per_part": 500, "parts": 4, "retries": 10}
    after = fit(model, *table(chunks, slow), classes=[0, 1], client=client, progress=tell.append, **parts)
    counted = int(after.learner_.state()["learnt"][0])
    if not counted == tell[-1].rows == chunks * CHUNK:  # a part that counted twice, or was lost
        raise SystemExit(f"{counted} rows learnt of {chunks * CHUNK}")
    return hashlib.sha256(pack(after)).hexdigest()


class Done(SchedulerPlugin):
    """Addresses of workers that have done a task."""

    def __init__(self) -> None:
        self.workers: set[str] = set()

    def transition(self, key: Any, start: str, finish: str, *args: Any, **more: Any) -> None:
        if (start, finish) == ("processing", "memory") and more.get("worker"):
            self.workers.add(more["worker"])


def cluster(count: int) -> LocalCluster:
    return LocalCluster(
        n_workers=count, threads_per_worker=1, dashboard_address=":0", memory_limit=0, silence_logs=50
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=15.0, help="no worker is killed later")
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--slow", type=float, default=0.1)
    parser.add_argument(
        "--pause", type=float, default=1.0, help="seconds between kills, on average, at least"
    )
    parser.add_argument("--out", type=Path, help="a page with the result")
    args = parser.parse_args()
    signal.alarm(int(60 * args.minutes) + 240)  # a run that hangs ends with an error
    started = dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    with started, cluster(2) as two, Client(two) as client:
        began = time.monotonic()
        right = learnt(args.chunks, args.slow, client, [])
        undisturbed = time.monotonic() - began
        print(f"undisturbed: {right[:16]}, {undisturbed:.0f} s", flush=True)
        done, kills, stop, draw = Done(), 0, threading.Event(), random.Random(1)
        two.scheduler.add_plugin(done)
        began = time.monotonic()
        end = began + 60 * args.minutes

        def kill() -> None:
            nonlocal kills
            while not stop.wait(draw.uniform(0.2, 1.8) * args.pause) and kills < args.kills:
                nannies = list(two.workers.values())
                at_work = [w for w in nannies if w.worker_address in done.workers and w.pid]
                if at_work:
                    chosen = draw.choice(at_work)
                    done.workers.discard(chosen.worker_address)
                    try:
                        os.kill(chosen.pid, signal.SIGKILL)
                    except (ProcessLookupError, TypeError):  # it has just ended by itself
                        continue
                    kills += 1
                    print(f"kill {kills}, {time.monotonic() - began:.0f} s", flush=True)

        thread = threading.Thread(target=kill)
        thread.start()
        models, again = [], 0
        while not models or (kills < args.kills and time.monotonic() < end):
            told: list[Any] = []
            models.append(learnt(args.chunks, args.slow, client, told))
            again += sum(len(progress.refused) for progress in told)
            print(f"after {kills} kills: {models[-1][:16]}", flush=True)
        stop.set()
        thread.join()
    same = sum(model == right for model in models)
    text = (
        f"{kills} workers were killed in {len(models)} {'fit' if len(models) == 1 else 'fits'} of {args.chunks * CHUNK:,} rows, "
        f"{time.monotonic() - began:.0f} s. {same} of {len(models)} models have the bytes of the undisturbed one, which took "
        f"{undisturbed:.0f} s; each row counts once. {again} deltas were refused."
    )
    print(text)
    if args.out:
        options = {name: getattr(args, name) for name in ("kills", "minutes", "chunks", "pause")}
        command = " ".join(f"--{name} {value:g}" for name, value in options.items())
        args.out.write_text(
            "# Dask workers that are killed\n\nMachine: [two cores of a busy server](index.md#the-machine).\n\n"
            f"`python benchmarks/kill_workers.py {command}`:\n`kernelstream.dask.fit` on two processes, one of which is "
            f"killed at random moments ({args.pause:g} s apart on average, at least).\n\n{text}\n"
        )
    if same < len(models):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
