"""What the local memory buys: progressive errors of the default learner with and without it, and of k-nearest-neighbour rules.

    KERNELSTREAM_DATA=... python benchmarks/local_memory.py [--rows 8000] [--only NAME ...] [--out docs/results/local_memory.md]

Every row is predicted before it is learnt. The error is the share of wrong classes, or the root of the mean squared error. The
k-NN rules keep all rows; their features are scaled by the mean and deviation of the first 500 rows. Streams of fewer than 2,000
rows are the mean of five orders. The first ten rounds are not counted.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn import datasets as bundled

from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.learners import NewtonMixture
from kernelstream.stream import load, moving_classes, rings, shuffled

Data = tuple[np.ndarray, np.ndarray]
SMALL, ORDERS = 2000, 5
FIRST = 10  # rounds that are not counted: no rule knows anything yet
ORDERED = {"TrumpApproval", "ChickWeights"}


def dense(X: object) -> np.ndarray:
    return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)


def in_order(name: str) -> Callable[[int, int], Data]:
    def make(rows: int, seed: int) -> Data:
        X, y = load(name)
        return dense(X[:rows]), y[:rows]

    return make


def mixed(name: str) -> Callable[[int, int], Data]:
    def make(rows: int, seed: int) -> Data:
        X, y = shuffled(name, seed)
        return dense(X[:rows]), y[:rows]

    return make


def shuffle(X: np.ndarray, y: np.ndarray, rows: int, seed: int) -> Data:
    order = np.random.default_rng(seed).permutation(len(y))[:rows]
    return dense(X[order]), y[order]


def sklearn_table(name: str) -> Callable[[int, int], Data]:
    return lambda rows, seed: shuffle(*getattr(bundled, f"load_{name}")(return_X_y=True), rows, seed)


def river_table(name: str, mix: bool = True) -> Callable[[int, int], Data]:
    """One of the tables that come with River; a feature that is a word is left out, a date is its day."""

    def make(rows: int, seed: int) -> Data:
        from river import datasets

        pairs = list(getattr(datasets, name)())
        names = [k for k, v in pairs[0][0].items() if isinstance(v, int | float)]
        X = np.array([[float(x[k]) for k in names] for x, _ in pairs])
        targets = [next(iter(y.values())) if isinstance(y, dict) else y for _, y in pairs]
        y = np.array(targets if isinstance(targets[0], float) else np.unique(targets, return_inverse=True)[1])
        return shuffle(X, y, rows, seed) if mix else (X[:rows], y[:rows])

    return make


def chunks(made: Iterator[Data]) -> Data:
    X, y = (np.concatenate(part) for part in zip(*made, strict=True))
    return X, y


def chessboard(rows: int, seed: int) -> Data:
    X = np.random.default_rng(seed).uniform(0, 8, (rows, 2))
    return X, (np.floor(X).sum(axis=1) % 2).astype(int)


def moving_centroids(rows: int, seed: int) -> Data:
    """50 Gaussian centroids of 5 classes in 10 dimensions that move by 0.001 a row: the stream RBF_f."""
    random = np.random.default_rng(seed)
    centres, speed = random.random((50, 10)), random.normal(size=(50, 10))
    speed /= np.linalg.norm(speed, axis=1, keepdims=True) / 1e-3
    label, deviation, weight = random.integers(5, size=50), random.random(50), random.random(50)
    X, y = np.empty((rows, 10)), np.empty(rows, int)
    for i in range(rows):
        centres += speed
        outside = (centres > 1) | (centres < 0)
        speed[outside] *= -1
        c = random.choice(50, p=weight / weight.sum())
        step = random.normal(size=10)
        X[i], y[i] = centres[c] + step / np.linalg.norm(step) * random.normal() * deviation[c], label[c]
    return X, y


def sea(rows: int, seed: int) -> Data:
    """Four concepts in turn, one label in ten wrong."""
    random = np.random.default_rng(seed)
    X = random.uniform(0, 10, (rows, 3))
    bound = np.array([8, 9, 7, 9.5])[np.arange(rows) * 4 // rows]
    return X, ((X[:, 0] + X[:, 1] <= bound) ^ (random.random(rows) < 0.1)).astype(int)


def clusters(rows: int, seed: int) -> Data:
    return bundled.make_classification(
        rows, 20, n_informative=8, n_classes=4, n_clusters_per_class=4, class_sep=1.0, random_state=seed
    )


def friedman(rows: int, seed: int) -> Data:
    return bundled.make_friedman1(rows, 10, noise=1.0, random_state=seed)


def friedman_turning(rows: int, seed: int) -> Data:
    """Friedman's function, its inputs in another order from the middle on."""
    X, y = bundled.make_friedman1(rows, 10, noise=1.0, random_state=seed)
    X[rows // 2 :] = X[rows // 2 :, ::-1]
    return X, y


def hyperplane(rows: int, seed: int) -> Data:
    """A plane that turns all the time, one label in twenty wrong."""
    random = np.random.default_rng(seed)
    X, normal = random.random((rows, 10)), random.random(10)
    y = np.empty(rows, int)
    for i in range(rows):
        normal[:5] += 1e-3 * np.array([1, -1, 1, -1, 1])
        y[i] = X[i] @ normal > normal.sum() / 2
    return X, y ^ (random.random(rows) < 0.05)


STREAMS: dict[str, Callable[[int, int], Data]] = {
    "usps": mixed("usps"),
    "ijcnn1": mixed("ijcnn1"),
    "covtype shuffled": mixed("covtype.binary"),
    "covtype in order": in_order("covtype.binary"),
    "cod-rna": mixed("cod-rna.train"),
    "spambase": mixed("spambase"),
    "w7a": mixed("w7a"),
    "a9a": mixed("a9a"),
    "german": mixed("german.numer"),
    "svmguide3": mixed("svmguide3"),
    "mushrooms": mixed("mushrooms"),
    "elec2 in order": in_order("elec2"),
    "digits": sklearn_table("digits"),
    "breast_cancer": sklearn_table("breast_cancer"),
    "wine": sklearn_table("wine"),
    "iris": sklearn_table("iris"),
    "Phishing": river_table("Phishing"),
    "Bananas": river_table("Bananas"),
    "ImageSegments": river_table("ImageSegments"),
    "chessboard": chessboard,
    "rings": lambda rows, seed: chunks(rings(rows, rings=4, seed=seed)),
    "moving classes": lambda rows, seed: chunks(moving_classes(rows, seed=seed)),
    "moving centroids": moving_centroids,
    "SEA": sea,
    "hyperplane": hyperplane,
    "clusters": clusters,
    "cpusmall": mixed("cpusmall"),
    "abalone": mixed("abalone_scale"),
    "diabetes": sklearn_table("diabetes"),
    "friedman": friedman,
    "friedman turning": friedman_turning,
    "TrumpApproval": river_table("TrumpApproval", mix=False),
    "ChickWeights": river_table("ChickWeights", mix=False),
}
REGRESSION = {
    "cpusmall", "abalone", "diabetes", "friedman", "friedman turning", "TrumpApproval", "ChickWeights",
}  # fmt: skip


def error(predicted: np.ndarray, y: np.ndarray, regression: bool) -> float:
    if regression:
        return float(np.sqrt(np.mean((predicted - y) ** 2)))
    return 100 * float(np.mean(predicted != y))


def neighbours(X: np.ndarray, y: np.ndarray, ks: tuple[int, ...], regression: bool) -> list[np.ndarray]:
    """Forecasts of k-NN rules that keep all rows, each row predicted before it is kept."""
    deviation = X[:500].std(axis=0)
    Z = ((X - X[:500].mean(axis=0)) / np.where(deviation > 0, deviation, 1)).astype(np.float32)
    codes = y if regression else np.unique(y, return_inverse=True)[1]
    norms = (Z**2).sum(axis=1)
    made = [np.full(len(y), codes[0], float) for _ in ks]
    for start in range(0, len(y), 500):
        stop = min(start + 500, len(y))
        square = norms[:stop] - 2 * (Z[start:stop] @ Z[:stop].T)
        square[np.arange(stop) >= np.arange(start, stop)[:, None]] = np.inf
        top = min(max(ks), stop - 1)
        near = np.argpartition(square, top - 1, axis=1)[:, :top]
        order = np.take_along_axis(near, np.argsort(np.take_along_axis(square, near, 1), axis=1), 1)
        for i in range(max(start, 1), stop):
            for k, out in zip(ks, made, strict=True):
                mine = codes[order[i - start, : min(k, i)]]
                out[i] = mine.mean() if regression else np.bincount(mine).argmax()
    return made if regression else [np.unique(y)[out.astype(int)] for out in made]


def row(name: str, rows: int) -> tuple[list[float], float, int]:
    """Errors of the default without and with the local memory, 1-NN, 5-NN and 10-NN; the time ratio; the rows."""
    regression, errors, seconds = name in REGRESSION, [], [0.0, 0.0]
    ordered = name in ORDERED
    for seed in range(1 if ordered or len(STREAMS[name](rows, 0)[1]) >= SMALL else ORDERS):
        X, y = STREAMS[name](rows, seed)
        predicted = []
        for i, learner in enumerate((NewtonMixture(memory=0), NewtonMixture())):
            model = KernelRegressor(learner) if regression else KernelClassifier(learner)
            start = time.process_time()
            predicted.append(model.predict_then_learn(X, y))
            seconds[i] += time.process_time() - start
        predicted += neighbours(X, y, (1, 5, 10), regression)
        errors.append([error(p[FIRST:], y[FIRST:], regression) for p in predicted])
    return np.mean(errors, axis=0).tolist(), seconds[1] / seconds[0], len(y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--only", nargs="*", default=list(STREAMS))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = [
        "| stream (rows) | without | with | ratio | 1-NN | 5-NN | 10-NN | over the best k-NN | time |",
        "|---" * 9 + "|",
    ]
    ratios, against = [], []
    for name in given.only:
        (without, local, *near), times, n = row(name, given.rows)
        ratios.append(local / without)
        against.append(local / min(near))
        lines.append(
            f"| {name} ({n:,}) | {without:.3f} | {local:.3f} | {ratios[-1]:.3f} | "
            + " | ".join(f"{e:.3f}" for e in near)
            + f" | {against[-1]:.3f} | {times:.2f} |"
        )
        print(lines[-1], flush=True)
    mean = float(np.exp(np.mean(np.log(ratios))))
    lines.append(
        f"\nGeometric mean of the ratios {mean:.3f}, worst {max(ratios):.3f}; over the best k-NN at worst {max(against):.3f}."
    )
    print(lines[-1])
    if given.out:
        given.out.write_text(
            "# What the local memory buys\n\nMachine: [two cores of a busy server](index.md#the-machine).\n\n"
            "`" + "benchmarks/local_memory.py" + f" --rows {given.rows}`\n\n" + "\n".join(lines) + "\n"
        )


if __name__ == "__main__":
    main()
