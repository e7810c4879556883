"""SkeGD's two weight transfers at a refresh, the paper's and least squares, on the data of the paper's Table 3.

KERNELSTREAM_DATA=... python benchmarks/skegd_transfers.py [--permutations 5]
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"

import argparse
from typing import Any

import numpy as np

from kernelstream_reproduce.streams import aligned_bandwidth, make, permuted, run_pass

ETAS = [10.0**e for e in range(-5, 1)]
STREAMS = (("german.numer_scale", None), ("svmguide3", None), ("spambase", None), ("a9a", 10_000))


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ± {np.std(values):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--permutations", type=int, default=5)
    given = parser.parse_args()
    print(
        "| data | sigma | learner | all rounds | without warm-up | eta | s |\n|---|---|---|---|---|---|---|"
    )
    for name, rows in STREAMS:
        streams = [permuted(name, seed, rows) for seed in range(given.permutations)]
        B = 200 if name == "a9a" else 100
        common: dict[str, Any] = {"budget": B, "rank": B // 10, "bandwidth": "aligned"}
        learners = {"NOGD": {"class": "NOGD"}}
        for cycle in (int(0.3 * len(streams[0][1])), 50):
            for transfer in ("paper", "lstsq"):
                settings = {"class": "SkeGD", "cycle": cycle, "transfer": transfer}
                learners[f"SkeGD {transfer}, rho = {cycle}"] = settings
        for label, own in learners.items():
            settings = {**common, **own}
            tried = {eta: run_pass(make({**settings, "eta": eta}, name, 0), *streams[0]) for eta in ETAS}
            eta, _ = min(tried.items(), key=lambda pair: pair[1].measures["mistakes"])
            runs = [
                run_pass(make({**settings, "eta": eta}, name, seed), *stream)
                for seed, stream in enumerate(streams)
            ]
            cells = [
                name,
                f"2^{np.log2(aligned_bandwidth(name)):g}",
                label,
                *(spread([run.measures[m] for run in runs]) for m in ("mistakes", "mistakes_without_warmup")),
                f"{eta:g}",
                f"{np.mean([run.seconds for run in runs]):.2f}",
            ]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
