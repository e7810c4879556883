"""The papers' streams: permutations of data sets, labels as numbers, and one pass over them, counted in every way."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.alignment import select_bandwidth
from kernelstream.experiments.plan import CURVE_POINTS, Outcome
from kernelstream.learners import NOGD, Learner
from kernelstream.rows import as_rows
from kernelstream.stream import load
from kernelstream.stream.datasets import DATASETS

__all__ = ["aligned_bandwidth", "classes", "curve_rounds", "pass_over", "permuted"]

Array = NDArray[Any]


@lru_cache(maxsize=3)
def _loaded(name: str) -> tuple[Any, Array]:
    """A data set with its targets as learners want them: -1 / +1, class indices, or real numbers."""
    X, y = load(name)
    if DATASETS[name].task == "regression":
        return X, y
    labels, index = np.unique(y, return_inverse=True)
    return X, 2.0 * index - 1.0 if len(labels) == 2 else index.astype(np.float64)


def classes(name: str) -> int:
    """Number of classes of a data set, 0 for regression.

    >>> classes("digits")
    10
    """
    return 0 if DATASETS[name].task == "regression" else len(np.unique(_loaded(name)[1]))


def permuted(name: str, seed: int, rows: int | None = None) -> tuple[Any, Array]:
    """The first rows of a random permutation of a data set.

    >>> X, y = permuted("breast_cancer", seed=3, rows=100)
    >>> X.shape, sorted(set(y.tolist()))
    ((100, 30), [-1.0, 1.0])
    """
    X, y = _loaded(name)
    order = np.random.default_rng(seed).permutation(len(y))[:rows]
    return X[order], y[order]


@lru_cache(maxsize=32)
def aligned_bandwidth(name: str) -> float:
    """The bandwidth among 2^-5, 2^-4.5, ... 2^7 of largest kernel alignment, on 2,000 rows.

    >>> aligned_bandwidth("breast_cancer")
    128.0
    """
    return select_bandwidth(*permuted(name, 0, 2000))


def curve_rounds(n: int) -> Array:
    """The rounds at which a curve over n of them is kept: evenly spaced, the last one included.

    >>> curve_rounds(150)[:3].tolist(), int(curve_rounds(150)[-1]), len(curve_rounds(150))
    ([3, 5, 8], 150, 60)
    """
    points = min(n, CURVE_POINTS)
    return np.ceil(np.arange(1, points + 1) * n / points - 1e-9).astype(np.int64)


def pass_over(
    learner: Learner, X: Any, y: Array, *, outputs: int = 1, regression: bool = False, timed: bool = False
) -> Outcome:
    """One pass of predicting, then learning.

    Percentages of mistakes: ``mistakes`` counts every round; ``mistakes_without_warmup`` leaves out those made before
    the map of NOGD and its kin exists, and divides by all rounds; ``mistakes_negative_margin`` counts y f < 0 alone, so that a score of
    zero is free (two classes). ``mistakes_last_tenth`` are those of the last tenth of the rounds. Regression has ``rmse`` in the same ways.

    Args:
        learner: not started yet.
        X: rows.
        y: targets as `permuted` gives them.
        outputs: score columns, the number of classes if there are more than two.
        regression: whether `y` are real numbers.
        timed: keep the time after each point of the curve too.
    """
    learner.start(X.shape[1], outputs, regression=regression)
    n, marks = len(y), curve_rounds(len(y))
    scores = np.empty((n, outputs))
    at, warmup, spent = 0, 0, 0.0
    ticks: list[float] = []

    def advance(stop: int) -> None:
        nonlocal at, spent
        rows, targets = as_rows(X[at:stop]), y[at:stop]
        start = time.process_time()
        scores[at:stop] = learner.run(rows, targets)
        spent += time.process_time() - start
        at = stop

    if isinstance(learner, NOGD):
        while at < n and not learner.has_map:
            advance(at + 1)
        warmup = at
    for mark in marks.tolist() if timed else [n]:
        if mark > at:
            advance(mark)
        if timed:
            ticks.append(spent)

    found = {"rounds": float(n), "warmup_rounds": float(warmup)}
    last = n - max(1, n // 10)
    if regression:
        sums = np.cumsum((scores[:, 0] - y) ** 2)
        measures = {
            "rmse": float(np.sqrt(sums[-1] / n)),
            "rmse_last_tenth": float(np.sqrt((sums[-1] - sums[last - 1]) / (n - last))),
        }
        curve = {"rmse": np.sqrt(sums[marks - 1] / marks).tolist()}
    else:
        wrong = scores.argmax(axis=1) != y if outputs > 1 else (scores[:, 0] > 0) != (y > 0)
        sums = np.cumsum(wrong)
        measures = {
            "mistakes": 100 * float(sums[-1]) / n,
            "mistakes_without_warmup": 100 * float(wrong[warmup:].sum()) / n,
            "mistakes_last_tenth": 100 * float(wrong[last:].mean()),
        }
        if outputs == 1:
            measures["mistakes_negative_margin"] = 100 * float(np.mean(y * scores[:, 0] < 0))
        curve = {"mistakes": (100 * sums[marks - 1] / marks).tolist()}
    return Outcome(
        measures | found,
        spent,
        {"rounds": marks.tolist(), **curve},
        ticks if timed else None,
    )
