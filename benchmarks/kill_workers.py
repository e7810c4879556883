"""Kill Dask workers at random moments, and compare the model with the undisturbed one's, byte for byte.

    python benchmarks/kill_workers.py [--kills 30] [--slow 0.1]

``kernelstream.dask.fit`` on two processes, of which every few seconds one is killed (SIGKILL); Dask starts it again. One chunk in
ten of the table is a straggler that waits. Fits follow one another until all kills are done.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import threading
import time

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

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


def learnt(chunks: int, slow: float, client: Client, tell: list[object]) -> str:
    model = KernelClassifier(NewtonMixture(50))
    parts = {"first_rows": 1000, "rows_per_part": 500, "parts": 4, "retries": 10}
    after = fit(model, *table(chunks, slow), classes=[0, 1], client=client, progress=tell.append, **parts)
    return hashlib.sha256(pack(after)).hexdigest()


def cluster(count: int) -> LocalCluster:
    return LocalCluster(
        n_workers=count, threads_per_worker=1, dashboard_address=":0", memory_limit=0, silence_logs=50
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--chunks", type=int, default=150)
    parser.add_argument("--slow", type=float, default=0.1)
    parser.add_argument("--pause", type=float, default=4.0, help="seconds between kills, on average")
    args = parser.parse_args()
    dask.config.set({"distributed.scheduler.allowed-failures": 100})
    with cluster(2) as two, Client(two) as client:
        began = time.monotonic()
        right = learnt(args.chunks, args.slow, client, [])
        print(f"undisturbed: {right[:16]}, {time.monotonic() - began:.0f} s", flush=True)
        kills = 0
        stop = threading.Event()
        draw = random.Random(1)

        def kill() -> None:
            nonlocal kills
            while not stop.wait(draw.uniform(0.5, 1.5) * args.pause) and kills < args.kills:
                running = [w.process.pid for w in two.workers.values() if w.process and w.process.pid]
                if running:
                    os.kill(draw.choice(running), signal.SIGKILL)
                    kills += 1

        thread = threading.Thread(target=kill)
        thread.start()
        models, began = [], time.monotonic()
        while kills < args.kills or not models:
            told: list[object] = []
            models.append(learnt(args.chunks, args.slow, client, told))
            refused = sum(len(progress.refused) for progress in told)
            print(f"after {kills} kills: {models[-1][:16]}, {refused} deltas refused", flush=True)
        stop.set()
        thread.join()
    same = set(models) == {right}
    print(
        f"{kills} workers killed in {len(models)} runs, {time.monotonic() - began:.0f} s: all models the same: {same}"
    )
    if not same:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
