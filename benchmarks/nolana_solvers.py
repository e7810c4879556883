"""NOLANA on usps: the three solvers (the paper's Figure 1) and the threshold epsilon (its Table 1).

    KERNELSTREAM_DATA=<folder> python benchmarks/nolana_solvers.py > docs/results/nolana.md

Accuracy is that of the predictions made before each row was learnt, ten classes one against the rest,
all rows counted. The order of the rows is drawn with the seed.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from kernelstream import KernelClassifier
from kernelstream._core import LEVEL
from kernelstream.kernels import Gaussian
from kernelstream.learners import NOLANA
from kernelstream.sketches.adaptive import Landmarks
from kernelstream.stream import load

PAPER = {
    0: (92.00, 9298),
    25: (91.91, 7742),
    50: (92.14, 5523),
    100: (90.91, 1262),
    200: (90.27, 23),
    300: (90.52, 0),
}


def run(X, y, **options):
    model = KernelClassifier(NOLANA(**options))
    start = time.perf_counter()
    right = model.predict_then_learn(X, y, classes=np.unique(y)) == y
    return time.perf_counter() - start, 100 * right.mean(), model.learner_


def move_time(X, m, rank, solver, moves=40):
    """Milliseconds a move of one landmark, the least."""
    landmarks = Landmarks(Gaussian().settle(X[:128]), X[:m].copy(), rank, solver, 2)
    times = []
    for i in range(moves):
        start = time.perf_counter()
        landmarks.move(i % m, X[m + i])
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--landmarks", type=int, default=100)
    parser.add_argument("--eta", type=float, default=0.2)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    X, y = load("usps")
    order = np.random.default_rng(args.seed).permutation(len(y))
    X, y = X[order], y[order]
    m = args.landmarks
    options = {"budget": m, "rank": m * 4 // 5, "eta": args.eta, "theta": 1e-6}
    print("# NOLANA on usps\n")
    print(
        f"`KERNELSTREAM_DATA=... OMP_NUM_THREADS=1 python benchmarks/nolana_solvers.py --landmarks {m} "
        f"--eta {args.eta:g} --seed {args.seed}`"
    )
    print(f"(core {LEVEL}, one thread; m = {m}, r = 0.8 m, hinge, median bandwidth, theta = 1e-6)\n")

    print("## Time of a move (kernel column, eigenpairs, map), milliseconds, least of 40\n")
    print("| m | r | scratch | rank2 | warm (p = 2) |\n|---|---|---|---|---|")
    for size in (100, 200, 400):
        for rank in (size // 5, size * 4 // 5):
            times = " | ".join(f"{move_time(X, size, rank, s):.2f}" for s in ("scratch", "rank2", "warm"))
            print(f"| {size} | {rank} | {times} |", flush=True)

    print("\n## Whole stream by solver, epsilon = 50 (the paper's Figure 1), seconds after n rows\n")
    print("| solver | 2000 | 4000 | 6000 | accuracy of 6000, % | moves |\n|---|---|---|---|---|---|")
    for solver in ("scratch", "rank2", "warm"):
        spent = []
        for n in (2000, 4000, 6000):
            seconds, accuracy, learner = run(X[:n], y[:n], solver=solver, epsilon=50.0, **options)
            spent.append(f"{seconds:.1f}")
        print(f"| {solver} | {' | '.join(spent)} | {accuracy:.2f} | {learner.n_moves} |", flush=True)

    print("\n## The threshold (the paper's Table 1)\n")
    print("| epsilon | accuracy, % | moves | seconds | paper: accuracy, % | paper: moves |")
    print("|---|---|---|---|---|---|")
    for epsilon in (0, 25, 50, 100, 200, 300, "auto"):
        seconds, accuracy, learner = run(X, y, epsilon=epsilon, **options)
        paper = "{:.2f} | {}".format(*PAPER[epsilon]) if epsilon in PAPER else "- | -"
        print(f"| {epsilon} | {accuracy:.2f} | {learner.n_moves} | {seconds:.1f} | {paper} |", flush=True)


if __name__ == "__main__":
    main()
