"""NOLANA: how long a move of one landmark takes with each eigensolver.

KERNELSTREAM_DATA=... OMP_NUM_THREADS=1 python benchmarks/nolana_moves.py
"""

from __future__ import annotations

import time
from typing import Any

from kernelstream.kernels import Gaussian
from kernelstream.sketches.landmarks import Landmarks
from kernelstream.stream import load


def milliseconds(X: Any, m: int, rank: int, solver: str, moves: int = 40) -> float:
    """Of a move (kernel column, eigenpairs, map), the least."""
    landmarks = Landmarks(Gaussian().settle(X[:128]), X[:m].copy(), rank, solver, 2)
    times = []
    for i in range(moves):
        start = time.perf_counter()
        landmarks.move(i % m, X[m + i])
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main() -> None:
    X, _ = load("usps")
    print("| m | r | scratch | rank2 | warm (p = 2) |\n|---|---|---|---|---|")
    for m in (100, 200, 400):
        for rank in (m // 5, m * 4 // 5):
            times = " | ".join(f"{milliseconds(X, m, rank, s):.2f}" for s in ("scratch", "rank2", "warm"))
            print(f"| {m} | {rank} | {times} |", flush=True)


if __name__ == "__main__":
    main()
