"""Metrics of predictions as they come, over all rows and over the last ones, in memory that does not grow with the stream.

What is kept: counts of (label, prediction) pairs and sums over all rows, and a window of the last rows. The figures are made when
they are asked for, by ``sklearn.metrics``, which takes the counts as weights; so they are scikit-learn's, by its own code.
"""

from __future__ import annotations

import warnings
from collections import Counter, deque
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Baseline", "ClassificationMetrics", "RegressionMetrics"]

Array = NDArray[Any]

WINDOW = 1000
"""Rows of the window, unless told otherwise."""

CLASSES_SCORED = 50
"""With more classes than this the window keeps no probabilities, and the areas are not given."""


class ClassificationMetrics:
    """Metrics of a classifier on a stream.

    Two classes: precision, recall, F1, average precision and the area under the ROC curve are those of the second class in
    sorted order (or of ``positive``). More classes: unweighted means over the classes (one class against the rest for the areas).

    Args:
        window: rows of the window, which the areas and ``recent`` are over.
        positive: the label of the positive class, when there are two.

    >>> metrics = ClassificationMetrics()
    >>> metrics.update([0, 1, 1, 0], [0, 1, 0, 0])
    >>> figures = metrics.figures()
    >>> figures["accuracy"], figures["recall"], round(figures["mcc"], 4)
    (0.75, 0.5, 0.5774)
    >>> metrics.confusion()
    ([0, 1], [[2, 0], [1, 1]])
    """

    names: ClassVar[tuple[str, ...]] = (
        "accuracy", "balanced_accuracy", "precision", "recall", "f1", "kappa", "mcc", "log_loss", "brier",
        "roc_auc", "average_precision",
    )  # fmt: skip

    def __init__(self, window: int = WINDOW, positive: Any = None) -> None:
        self.window = window
        self.positive = positive
        self.rows = 0
        self._pairs: Counter[tuple[Any, Any]] = Counter()
        self._log_loss = self._brier = 0.0
        self._scored = 0  # rows with probabilities
        self._recent: deque[tuple[Any, Any, float, float, dict[Any, float] | None]] = deque(maxlen=window)

    def update(
        self,
        y: ArrayLike,
        predicted: ArrayLike,
        probabilities: Array | None = None,
        classes: ArrayLike | None = None,
    ) -> None:
        """Count the next rows.

        ``predicted``: NaN or None where nothing was predicted, which is a mistake. ``probabilities``: one column per class of
        ``classes``; a label that is not among them had the probability 0.
        """
        labels, guesses = np.asarray(y).tolist(), [_known(p) for p in np.asarray(predicted).tolist()]
        self.rows += len(labels)
        self._pairs.update(zip(labels, guesses, strict=True))
        if probabilities is None:
            empty = (
                (label, guess, np.nan, np.nan, None) for label, guess in zip(labels, guesses, strict=True)
            )
            self._recent.extend(empty)
            return
        columns = np.asarray(classes).tolist()
        place = {label: k for k, label in enumerate(columns)}
        codes = np.array([place.get(label, -1) for label in labels], np.int64)
        p = np.asarray(probabilities, np.float64)
        right = np.where(codes >= 0, p[np.arange(len(p)), codes], 0.0)
        log_losses = -np.log(np.clip(right, np.finfo(np.float64).eps, 1.0))
        # sum_c (p_c - [c = y])^2, and half of it for two classes, as scikit-learn counts it
        briers = ((p**2).sum(axis=1) - 2 * right + 1) / (2 if len(columns) <= 2 else 1)
        for a, b in zip(
            log_losses.tolist(), briers.tolist(), strict=True
        ):  # one by one: sums do not depend on chunks
            self._log_loss += a
            self._brier += b
        self._scored += len(labels)
        first = max(0, len(labels) - self.window)
        keep = len(columns) <= CLASSES_SCORED
        for i in range(first, len(labels)):
            scores = dict(zip(columns, p[i].tolist(), strict=True)) if keep else None
            self._recent.append((labels[i], guesses[i], float(log_losses[i]), float(briers[i]), scores))

    def confusion(self) -> tuple[list[Any], list[list[int]]]:
        """The labels in order, and how often each (row) was predicted as each (column), over all rows."""
        labels = _in_order({label for pair in self._pairs for label in pair if label is not None})
        return labels, [[self._pairs.get((a, b), 0) for b in labels] for a in labels]

    def figures(self) -> dict[str, float]:
        """The metrics over all rows, by name; the areas are over the window. NaN where there is no such figure."""
        figures = _from_pairs(self._pairs, self.positive)
        scored = max(self._scored, 1) if self._scored else np.nan
        figures |= {"log_loss": self._log_loss / scored, "brier": self._brier / scored}
        return figures | self._areas()

    def recent(self) -> dict[str, float]:
        """The metrics over the window, by name."""
        figures = _from_pairs(Counter((label, guess) for label, guess, *_ in self._recent), self.positive)
        scored = [(a, b) for _, _, a, b, _ in self._recent if not np.isnan(a)]
        means = np.mean(scored, axis=0).tolist() if scored else [np.nan, np.nan]
        return figures | {"log_loss": means[0], "brier": means[1]} | self._areas()

    def _areas(self) -> dict[str, float]:
        from sklearn.metrics import average_precision_score, roc_auc_score

        nothing = {"roc_auc": np.nan, "average_precision": np.nan}
        rows = [(label, scores) for label, *_, scores in self._recent if scores is not None]
        seen = _in_order({label for label, _ in rows})
        if len(seen) < 2:
            return nothing
        known = _in_order({label for _, scores in rows for label in scores} | set(seen))
        if len(known) == 2:
            seen = [self._positive_of(known)]
        areas = []
        for label in seen:
            truth = np.array([given == label for given, _ in rows])
            scores = np.array([of.get(label, 0.0) for _, of in rows])
            areas.append((roc_auc_score(truth, scores), average_precision_score(truth, scores)))
        means = np.mean(areas, axis=0)
        return {"roc_auc": float(means[0]), "average_precision": float(means[1])}

    def _positive_of(self, known: list[Any]) -> Any:
        return known[1] if self.positive is None else self.positive


class RegressionMetrics:
    """Metrics of a regression on a stream.

    Args:
        window: rows of the window, which ``recent`` is over.
        quantile: of the pinball loss.

    >>> metrics = RegressionMetrics()
    >>> metrics.update([1.0, 2.0, 3.0], [1.0, 2.5, 2.5])
    >>> {name: round(value, 4) for name, value in metrics.figures().items()}
    {'mae': 0.3333, 'rmse': 0.4082, 'r2': 0.75, 'pinball': 0.1667}
    """

    names: ClassVar[tuple[str, ...]] = ("mae", "rmse", "r2", "pinball")

    def __init__(self, window: int = WINDOW, quantile: float = 0.5) -> None:
        self.window = window
        self.quantile = quantile
        self.rows = 0
        self._absolute = self._squared = self._pinball = 0.0
        self._mean = self._spread = (
            0.0  # of the targets: their mean, and the sum of squares about it (Welford)
        )
        self._recent: deque[tuple[float, float]] = deque(maxlen=window)

    def update(self, y: ArrayLike, predicted: ArrayLike) -> None:
        """Count the next rows."""
        targets = np.asarray(y, np.float64).tolist()
        guesses = np.asarray(predicted, np.float64).tolist()
        for target, guess in zip(targets, guesses, strict=True):
            miss = target - guess
            self.rows += 1
            self._absolute += abs(miss)
            self._squared += miss * miss
            self._pinball += miss * (self.quantile - (miss < 0))
            step = target - self._mean
            self._mean += step / self.rows
            self._spread += step * (target - self._mean)
            self._recent.append((target, guess))

    def figures(self) -> dict[str, float]:
        """The metrics over all rows, by name."""
        n = self.rows if self.rows else np.nan
        explained = 1 - self._squared / self._spread if self._spread > 0 else np.nan
        rmse = float(np.sqrt(self._squared / n))
        return {"mae": self._absolute / n, "rmse": rmse, "r2": explained, "pinball": self._pinball / n}

    def recent(self) -> dict[str, float]:
        """The metrics over the window, by name."""
        last = RegressionMetrics(self.window, self.quantile)
        if self._recent:
            targets, guesses = zip(*self._recent, strict=True)
            last.update(targets, guesses)
        return last.figures()


class Baseline:
    """What needs no features: the most frequent class so far, the last label, or the mean of the targets so far.

    Args:
        kind: ``"majority"``, ``"last"`` or ``"mean"``.

    >>> Baseline("majority").predict_then_learn(None, ["a", "b", "b", "a"])
    [None, 'a', 'a', 'b']
    >>> Baseline("mean").predict_then_learn(None, [1.0, 2.0, 6.0])
    [0.0, 1.0, 1.5]
    """

    def __init__(self, kind: str) -> None:
        if kind not in ("majority", "last", "mean"):
            raise ValueError(f"kind must be one of 'majority', 'last', 'mean', got {kind!r}")
        self.kind = kind
        self._counts: Counter[Any] = Counter()
        self._next: Any = 0.0 if kind == "mean" else None
        self._rows = 0

    def predict_then_learn(self, X: Any, y: ArrayLike) -> list[Any]:
        """Predict each label, then learn it; ``X`` is not looked at. None where no label is known."""
        predicted = []
        for label in np.asarray(y).tolist():
            predicted.append(self._next)
            self._rows += 1
            if self.kind == "last":
                self._next = label
            elif self.kind == "mean":
                self._next += (label - self._next) / self._rows
            else:
                self._counts[label] += 1
                if self._next is None or self._counts[label] > self._counts[self._next]:
                    self._next = label
        return predicted


def _known(label: Any) -> Any:
    """The label predicted; None for NaN, the mark of "no label known"."""
    return None if isinstance(label, float) and label != label else label


def _in_order(labels: set[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:  # labels of several types
        return sorted(labels, key=lambda label: (type(label).__name__, str(label)))


def _from_pairs(pairs: Counter[tuple[Any, Any]], positive: Any) -> dict[str, float]:
    """The metrics that counts of (label, prediction) tell."""
    from sklearn import metrics

    names = ("accuracy", "balanced_accuracy", "precision", "recall", "f1", "kappa", "mcc")
    if not pairs:
        return dict.fromkeys(names, np.nan)
    known = _in_order({label for pair in pairs for label in pair if label is not None})
    code = {label: k for k, label in enumerate(known)} | {
        None: len(known)
    }  # nothing predicted: a class of its own
    truth = [code[label] for label, _ in pairs]
    guess = [code[label] for _, label in pairs]
    weight = list(pairs.values())
    if len(known) == 2:
        which = {"labels": [1 if positive is None else code.get(positive, -1)], "average": "macro"}
    else:
        which = {"labels": list(range(len(known))), "average": "macro"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes that were never predicted, or a single class
        precision, recall, f1, _ = metrics.precision_recall_fscore_support(
            truth, guess, sample_weight=weight, zero_division=0.0, **which
        )
        return {
            "accuracy": float(metrics.accuracy_score(truth, guess, sample_weight=weight)),
            "balanced_accuracy": float(metrics.balanced_accuracy_score(truth, guess, sample_weight=weight)),
            "precision": float(precision),
            "recall": float(recall),
            "f1": float(f1),
            "kappa": float(metrics.cohen_kappa_score(truth, guess, sample_weight=weight)),
            "mcc": float(metrics.matthews_corrcoef(truth, guess, sample_weight=weight)),
        }
