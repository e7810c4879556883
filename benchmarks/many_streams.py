"""Thirty short streams for comparisons: data sets at hand, those shipped with scikit-learn, and generated ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.datasets

from kernelstream.stream import datasets, synthetic

ROWS = 4000
"""At most so many rows of each."""


@functools.lru_cache(2)
def whole(name: str) -> tuple[Any, Any]:
    return datasets.load(name)


def from_file(name: str, seed: int) -> tuple[Any, Any]:
    X, y = whole(name)
    order = np.random.default_rng(seed).permutation(len(y))[:ROWS]
    return X[order], y[order]


def in_order(name: str, seed: int) -> tuple[Any, Any]:
    """A part of a stream ordered in time; each seed has another."""
    X, y = whole(name)
    start = (len(y) - ROWS) // 5 * (seed % 5)
    return X[start : start + ROWS], y[start : start + ROWS]


def shipped(name: str, seed: int) -> tuple[Any, Any]:
    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))[:ROWS]
    return X[order], y[order]


def adversarial(rounds: int, seed: int) -> tuple[Any, Any]:
    X, y = whole("german.numer_scale")
    return synthetic.adversarial_blocks(X, np.where(y == y.max(), 1, -1), ROWS // rounds, rounds, seed)


def chunk(generate: Callable[..., Any], seed: int) -> tuple[Any, Any]:
    X, y = next(generate(ROWS, seed=seed, chunk_size=ROWS))
    return X, y


def turning(seed: int) -> tuple[Any, Any]:
    """A plane in five dimensions that turns once in a stream."""
    rng = np.random.default_rng(seed)
    X, angle = rng.normal(size=(ROWS, 5)), 2 * np.pi * np.arange(ROWS) / ROWS
    return X, (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1] + 0.3 * rng.normal(size=ROWS) > 0).astype(
        int
    )


def squares(features: int, seed: int) -> tuple[Any, Any]:
    """The sign of a product of two of the features; the others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, features))
    return X, (X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=ROWS) > 0).astype(int)


def waves(seed: int) -> tuple[Any, Any]:
    """A regression that needs a narrow kernel."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(ROWS, 2))
    return X, np.sin(4 * X[:, 0]) * np.cos(3 * X[:, 1]) + 0.1 * rng.normal(size=ROWS)


def made(name: str, seed: int, **options: Any) -> tuple[Any, Any]:
    X, y = getattr(sklearn.datasets, f"make_{name}")(n_samples=ROWS, random_state=seed, **options)
    return X, y


STREAMS: dict[str, tuple[Callable[[int], tuple[Any, Any]], bool]] = {
    "german": (functools.partial(from_file, "german.numer"), False),
    "german, scaled": (functools.partial(from_file, "german.numer_scale"), False),
    "svmguide3": (functools.partial(from_file, "svmguide3"), False),
    "spambase": (functools.partial(from_file, "spambase"), False),
    "mushrooms": (functools.partial(from_file, "mushrooms"), False),
    "a9a": (functools.partial(from_file, "a9a"), False),
    "w7a": (functools.partial(from_file, "w7a"), False),
    "ijcnn1": (functools.partial(from_file, "ijcnn1"), False),
    "cod-rna": (functools.partial(from_file, "cod-rna.train"), False),
    "covtype": (functools.partial(from_file, "covtype.binary"), False),
    "usps": (functools.partial(from_file, "usps"), False),
    "digits": (functools.partial(shipped, "digits"), False),
    "breast cancer": (functools.partial(shipped, "breast_cancer"), False),
    "wine": (functools.partial(shipped, "wine"), False),
    "moons": (functools.partial(made, "moons", noise=0.3), False),
    "circles": (functools.partial(made, "circles", noise=0.2, factor=0.5), False),
    "ten normals": (functools.partial(made, "hastie_10_2"), False),
    "clusters": (
        functools.partial(made, "classification", n_features=20, n_informative=6, n_clusters_per_class=3),
        False,
    ),
    "product of 2": (functools.partial(squares, 2), False),
    "product of 2 among 10": (functools.partial(squares, 10), False),
    "rings": (functools.partial(chunk, synthetic.rings), False),
    "elec2, in order": (functools.partial(in_order, "elec2"), False),
    "covtype, in order": (functools.partial(in_order, "covtype.binary"), False),
    "moving classes": (functools.partial(chunk, synthetic.moving_classes), False),
    "turning plane": (turning, False),
    "german-1, adversarial": (functools.partial(adversarial, 10), False),
    "cpusmall": (functools.partial(from_file, "cpusmall"), True),
    "abalone": (functools.partial(from_file, "abalone_scale"), True),
    "friedman": (functools.partial(chunk, synthetic.friedman), True),
    "waves": (waves, True),
}
"""Name, rows and targets of a seed, and whether the task is regression."""

ORDERED = ("elec2, in order", "covtype, in order", "moving classes", "turning plane", "german-1, adversarial")


def standardised(X: Any) -> Any:
    """Each feature with mean 0 (dense rows) and deviation 1."""
    if hasattr(X, "tocsr"):
        mean = np.asarray(X.mean(axis=0)).ravel()
        square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
        deviation = np.sqrt(np.maximum(square - mean**2, 0))
        return X.multiply(1 / np.where(deviation > 1e-9, deviation, 1.0)).tocsr()
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 1e-9, deviation, 1.0)


def error(model: Any, X: Any, y: Any, regression: bool) -> float:
    """Share of mistakes in %, or the root mean square error in deviations of the target in %."""
    classes = None if regression else np.unique(y)
    predicted = (
        model.predict_then_learn(X, y) if regression else model.predict_then_learn(X, y, classes=classes)
    )
    if regression:
        return 100 * float(np.sqrt(np.mean((predicted - y) ** 2)) / np.std(y))
    return 100 * float(np.mean(predicted != y))
