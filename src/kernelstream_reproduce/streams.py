"""The papers' streams: permutations of data sets, labels as numbers, and one pass over them, counted in every way."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from kernelstream import learners
from kernelstream.alignment import select_bandwidth
from kernelstream.errors import CapacityError, ScoreOverflowError
from kernelstream.kernels import Gaussian
from kernelstream.learners import NOGD, Learner
from kernelstream.rows import as_rows
from kernelstream.stream import load
from kernelstream.stream.datasets import DATASETS
from kernelstream_reproduce.trials import CURVE_POINTS, Outcome

__all__ = ["aligned_bandwidth", "bandwidth_of", "classes", "curve_rounds", "make", "run_pass", "permuted"]

Array = NDArray[Any]

SCALED = "covtype.binary.scale"
"""covtype.binary with each feature brought to [0, 1], as the LIBSVM collection has it too."""


@lru_cache(maxsize=3)
def _loaded(name: str) -> tuple[Any, Array]:
    """A data set with its targets as learners want them: -1 / +1, class indices, or real numbers."""
    if name == SCALED:
        X, y = _loaded(name.removesuffix(".scale"))
        low, high = X.min(axis=0), X.max(axis=0)
        return (X - low) / np.where(high > low, high - low, 1.0), y
    X, y = load(name)
    if DATASETS[name].task == "regression":
        return X, y
    labels, index = np.unique(y, return_inverse=True)
    return X, 2.0 * index - 1.0 if len(labels) == 2 else index.astype(np.float64)


@lru_cache(maxsize=32)
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


def source_of(data: str) -> str | None:
    """The data set whose file a trial's data comes from; None if it needs none.

    >>> source_of("german-1"), source_of("covtype.binary.scale"), source_of("digits")
    ('german.numer', 'covtype.binary', None)
    """
    name = "german.numer" if data in BLOCKS else data.removesuffix(".scale")
    return name if name in DATASETS and not DATASETS[name].shipped else None


BLOCKS = {"german-1": 10, "german-2": 20}
"""Rounds per block of the adversarial streams made of german (k_r); 500 blocks (k_b)."""


def curve_rounds(n: int) -> Array:
    """The rounds at which a curve over n of them is kept: evenly spaced, the last one included.

    >>> curve_rounds(150)[:3].tolist(), int(curve_rounds(150)[-1]), len(curve_rounds(150))
    ([3, 5, 8], 150, 60)
    """
    points = min(n, CURVE_POINTS)
    return np.ceil(np.arange(1, points + 1) * n / points - 1e-9).astype(np.int64)


def _scores(learner: Any, X: Any, y: Array) -> Array:
    """Scores before learning. A learner without a budget that is full predicts on and learns no more."""
    if learner.bounded or learner.max_size >= learner.n_points + len(y):
        return np.asarray(learner.run(as_rows(X), y))
    at, parts = 0, []
    while at < len(y):
        free = max(1, learner.max_size - learner.n_points)  # so many rows are learnt for certain
        try:
            parts.append(learner.run(as_rows(X[at : at + free]), y[at : at + free]))
            at += free
        except CapacityError:  # on the first row of the part: nothing of it was learnt
            parts.append(learner.score(as_rows(X[at:])))
            at = len(y)
    return np.concatenate(parts)


def make(settings: Mapping[str, Any], data: str, seed: int) -> Learner:
    """The learner of a trial: its class and hyper-parameters; a bandwidth may be given as "aligned".

    >>> make({"class": "NOGD", "budget": 50, "bandwidth": 2.0}, "digits", seed=0)
    NOGD(budget=50, kernel=Gaussian(bandwidth=2.0))
    """
    given = dict(settings)
    learner: Any = getattr(learners, given.pop("class"))
    if "bandwidth" in given:
        given["kernel"] = Gaussian(bandwidth=bandwidth_of(given.pop("bandwidth"), data))
    if "seed" in inspect.signature(learner).parameters:
        given["seed"] = seed
    return cast(Learner, learner(**given))


def bandwidth_of(given: float | str, data: str) -> float:
    """A bandwidth as given, or by alignment.

    >>> bandwidth_of(0.5, "digits")
    0.5
    """
    return aligned_bandwidth(data) if isinstance(given, str) else given


def _warmup(learner: NOGD, X: Any, y: Array, outputs: int, regression: bool) -> int:
    """Rounds before the map exists, found by a model of its own so that the pass proper is timed undisturbed."""
    model = clone(learner).start(X.shape[1], outputs, regression=regression)
    at = 0
    while at < len(y) and not model.has_map:
        try:
            model.run(as_rows(X[at : at + 1]), y[at : at + 1])
        except ScoreOverflowError:
            return len(y)
        at += 1
    return at


def run_pass(
    learner: Learner, X: Any, y: Array, *, outputs: int = 1, regression: bool = False, timed: bool = False
) -> Outcome:
    """One pass of predicting, then learning.

    Percentages of mistakes: ``mistakes`` counts every round; ``mistakes_without_warmup`` leaves out those made before
    the map of NOGD and its subclasses exists, and divides by all rounds; ``mistakes_negative_margin`` counts y f < 0 alone, so
    that a score of zero is free (two classes). ``mistakes_last_tenth`` are those of the last tenth of the rounds. Regression
    has ``rmse`` and ``rmse_last_tenth``.

    Args:
        learner: not started yet.
        X: rows.
        y: targets as `permuted` gives them.
        outputs: score columns, the number of classes if there are more than two.
        regression: whether `y` are real numbers.
        timed: keep the time after each point of the curve too.
    """
    n, marks = len(y), curve_rounds(len(y))
    warmup = _warmup(learner, X, y, outputs, regression) if isinstance(learner, NOGD) else 0
    learner.start(X.shape[1], outputs, regression=regression)
    scores = np.full((n, outputs), np.nan)
    ticks: list[float] = []
    at, spent = 0, 0.0
    try:
        for mark in marks.tolist() if timed else [n]:
            start = time.process_time()
            scores[at:mark] = _scores(learner, X[at:mark], y[at:mark])
            spent += time.process_time() - start
            ticks.append(spent)
            at = mark
    except ScoreOverflowError:  # a step far too large: what is left of the stream counts as mistaken
        ticks += [spent] * (len(marks) - len(ticks))

    counts = {"rounds": float(n), "warmup_rounds": float(warmup)}
    last = n - max(1, n // 10)
    if regression:
        sums = np.cumsum(np.nan_to_num((scores[:, 0] - y) ** 2, nan=1e300))
        measures = {
            "rmse": float(np.sqrt(sums[-1] / n)),
            "rmse_last_tenth": float(np.sqrt((sums[-1] - sums[last - 1]) / (n - last))),
        }
        curve = {"rmse": np.sqrt(sums[marks - 1] / marks).round(4).tolist()}
    else:
        wrong = scores.argmax(axis=1) != y if outputs > 1 else (scores[:, 0] > 0) != (y > 0)
        wrong |= np.isnan(scores[:, 0])
        sums = np.cumsum(wrong)
        measures = {
            "mistakes": 100 * float(sums[-1]) / n,
            "mistakes_without_warmup": 100 * float(wrong[warmup:].sum()) / n,
            "mistakes_last_tenth": 100 * float(wrong[last:].mean()),
        }
        if outputs == 1:
            measures["mistakes_negative_margin"] = 100 * float(np.mean(~(y * scores[:, 0] >= 0)))
        curve = {"mistakes": (100 * sums[marks - 1] / marks).round(4).tolist()}
    return Outcome(
        measures | counts,
        spent,
        {"rounds": marks.tolist(), **curve},
        ticks if timed else None,
    )
