"""Metrics of predictions as they come, over all rows and over the last ones, in memory that does not grow with the stream.

What is kept: counts of (label, prediction) pairs and sums over all rows, and a window of the last rows. The figures are made when
they are asked for. They are those of ``sklearn.metrics`` over the same rows, and do not depend on the chunks in which these came.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Baseline",
    "Baselines",
    "ClassificationMetrics",
    "Evaluation",
    "METRICS",
    "RegressionMetrics",
    "WINDOW",
    "metrics_of",
]

Array = NDArray[Any]

WINDOW = 1000
"""Rows of the window, unless told otherwise."""

CURVE_POINTS = 1000
"""A curve of a metric holds at most this many points."""

CURVE_SPACING = 100
"""Rows between two points of a curve, as long as it is short."""

CLASSES_SCORED = 50
"""With more classes than this the window keeps no scores, and the areas are not given."""


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
        self._code: dict[Any, int] = {None: -1}  # labels in the order met; -1: nothing was predicted
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._sums = np.zeros(2)  # of log loss and Brier score
        self._scored = 0  # rows with probabilities
        # The window is a ring: the row of number i stands at i modulo its size.
        self._truth = np.zeros(window, np.int64)
        self._guess = np.zeros(window, np.int64)
        self._losses = np.full((window, 2), np.nan)
        self._scores: Array | None = np.full((window, 0), np.nan)  # NaN in the rows that have none
        self._areas_of: tuple[int, dict[str, float]] = (-1, {})  # so many rows, kept until the next ones

    def update(
        self,
        y: ArrayLike,
        predicted: ArrayLike,
        probabilities: Array | None = None,
        classes: ArrayLike | None = None,
        scores: Array | None = None,
    ) -> None:
        """Count the next rows.

        ``predicted``: NaN or None where nothing was predicted, which is a mistake. ``probabilities``: one column per class of
        ``classes``; a label that is not among them had the probability 0. Without probabilities, ``scores`` of the same shape
        serve for the areas; a class without a score has the smallest one of its row.
        """
        self._count(_coded(y, self._code), _coded(predicted, self._code), probabilities, classes, scores)

    def _count(
        self,
        truth: Array,
        guess: Array,
        probabilities: Array | None = None,
        classes: ArrayLike | None = None,
        scores: Array | None = None,
    ) -> None:
        """`update`, of codes."""
        n = len(truth)
        if not n:
            return
        wide = len(self._code)
        pairs, counts = np.unique(truth * wide + guess + 1, return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            self._pairs[pair // wide, pair % wide - 1] += count
        losses = np.full((n, 2), np.nan)
        given = probabilities if probabilities is not None else scores
        if given is not None:
            given = np.asarray(given, np.float64)
            columns = _coded(classes, self._code)
            if probabilities is not None:
                losses = self._lost(truth, given, columns)
        kept = slice(max(0, n - self.window), n)
        at = (self.rows + np.arange(n)[kept]) % self.window
        self._truth[at], self._guess[at], self._losses[at] = truth[kept], guess[kept], losses[kept]
        if self._scores is not None:
            self._keep_scores(
                at, given, columns if given is not None else truth[:0], kept, scores is not None
            )
        self.rows += n

    def _lost(self, truth: Array, p: Array, columns: Array) -> Array:
        """Log loss and Brier score of each row, added to the sums one by one: these do not depend on chunks."""
        column_of = np.full(len(self._code), -1)
        column_of[columns] = np.arange(len(columns))
        place = column_of[truth]
        right = np.where(place >= 0, p[np.arange(len(p)), place], 0.0)
        squares = np.add.accumulate(p * p, axis=1)[:, -1]
        briers = squares - 2 * right + 1  # sum_c (p_c - [c = y])^2
        losses = np.column_stack([-np.log(np.clip(right, np.finfo(np.float64).eps, 1.0)), briers])
        self._sums = np.add.accumulate(np.vstack([self._sums, losses]))[-1]
        self._scored += len(truth)
        return losses

    def _keep_scores(
        self, at: Array, given: Array | None, columns: Array, kept: slice, smallest: bool
    ) -> None:
        assert self._scores is not None
        classes = len(self._code) - 1
        if classes > CLASSES_SCORED:
            self._scores = None
            return
        new = classes - self._scores.shape[1]
        if new:  # classes that the rows before had no score for
            lowest = np.full((self.window, 1), np.nan)
            if self._scores.shape[1]:
                lowest = self._scores.min(axis=1, keepdims=True) * (1.0 if smallest else 0.0)
            self._scores = np.hstack([self._scores, np.repeat(lowest, new, axis=1)])
        self._scores[at] = np.nan
        if given is not None:
            rows = given[kept]
            self._scores[at] = rows.min(axis=1, keepdims=True) if smallest else 0.0
            self._scores[at[:, None], columns] = rows

    def confusion(self) -> tuple[list[Any], list[list[int]]]:
        """The labels in order, and how often each (row) was predicted as each (column), over all rows."""
        labels = _in_order(self._code)
        codes = [self._code[label] for label in labels]
        return labels, [[self._pairs.get((a, b), 0) for b in codes] for a in codes]

    def figures(self) -> dict[str, float]:
        """The metrics over all rows, by name; the areas are over the window. NaN where there is no such figure."""
        pairs = np.array(list(self._pairs), np.int64).reshape(-1, 2)
        counts = np.array(list(self._pairs.values()), np.float64)
        means = (self._sums / self._scored).tolist() if self._scored else [np.nan, np.nan]
        return self._from_pairs(pairs[:, 0], pairs[:, 1], counts) | self._named(means) | self._areas()

    def recent(self) -> dict[str, float]:
        """The metrics over the window, by name."""
        n = min(self.rows, self.window)
        losses = self._losses[:n][~np.isnan(self._losses[:n, 0])]
        means = losses.mean(axis=0).tolist() if len(losses) else [np.nan, np.nan]
        pairs = self._from_pairs(self._truth[:n], self._guess[:n], np.ones(n))
        return pairs | self._named(means) | self._areas()

    def _named(self, means: list[float]) -> dict[str, float]:
        """Of two classes scikit-learn counts half the Brier score."""
        return {"log_loss": means[0], "brier": means[1] / (2 if len(self._code) <= 3 else 1)}

    def _from_pairs(self, truth: Array, guess: Array, counts: Array) -> dict[str, float]:
        """The metrics that counts of (label, prediction) tell. Nothing predicted is a class of its own, never right."""
        n = counts.sum()
        if not n:
            return dict.fromkeys(self.names[:7], np.nan)
        classes = len(self._code) - 1
        given = np.bincount(truth, counts, classes + 1)
        found = np.bincount(np.where(guess < 0, classes, guess), counts, classes + 1)
        right = np.bincount(truth, counts * (truth == guess), classes + 1)

        def share(of: Array) -> Array:
            return np.divide(right, of, out=np.zeros(classes + 1), where=of > 0)

        precision, recall, f1 = share(found), share(given), 2 * share(given + found)
        which = np.flatnonzero((given + found)[:classes])
        if classes == 2:
            which = np.array([self._positive()])
        hits, chance = right.sum(), given @ found
        spread = (n * n - given @ given) * (n * n - found @ found)
        return {
            "accuracy": float(hits / n),
            "balanced_accuracy": float(recall[given > 0].mean()),
            "precision": float(precision[which].mean()),
            "recall": float(recall[which].mean()),
            "f1": float(f1[which].mean()),
            "kappa": float(1 - (n - hits) * n / (n * n - chance)) if chance < n * n else np.nan,
            "mcc": float((hits * n - chance) / np.sqrt(spread)) if spread > 0 else 0.0,
        }

    def _positive(self) -> int:
        return (
            self._code.get(self.positive, -1)
            if self.positive is not None
            else self._code[_in_order(self._code)[1]]
        )

    def _areas(self) -> dict[str, float]:
        if self._areas_of[0] == self.rows:
            return self._areas_of[1]
        areas = []
        if self._scores is not None and self._scores.shape[1]:
            rows = np.flatnonzero(~np.isnan(self._scores[: self.rows, 0]))
            truth = self._truth[rows]
            seen = np.unique(truth)
            if len(seen) > 1:
                wanted = [self._positive()] if self._scores.shape[1] == 2 else seen.tolist()
                areas = [_areas(truth == code, self._scores[rows, code]) for code in wanted]
        roc_auc, average_precision = np.mean(areas, axis=0).tolist() if areas else (np.nan, np.nan)
        self._areas_of = self.rows, {"roc_auc": roc_auc, "average_precision": average_precision}
        return self._areas_of[1]

    def state(self) -> dict[str, Any]:
        """All that was counted, for JSON."""
        labels = [label for label in self._code if label is not None]
        return {
            "window": self.window, "positive": self.positive, "rows": self.rows, "labels": labels,
            "pairs": [[*pair, count] for pair, count in sorted(self._pairs.items())],
            "sums": self._sums.tolist(), "scored": self._scored,
            "truth": self._truth.tolist(), "guess": self._guess.tolist(), "losses": _without_nan(self._losses),
            "scores": None if self._scores is None else _without_nan(self._scores),
        }  # fmt: skip

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The metrics that gave this state."""
        metrics = cls(state["window"], state["positive"])
        metrics.rows, metrics._scored = state["rows"], state["scored"]
        metrics._code |= {label: code for code, label in enumerate(state["labels"])}
        metrics._pairs = Counter({(a, b): count for a, b, count in state["pairs"]})
        metrics._sums = np.array(state["sums"])
        metrics._truth, metrics._guess = np.array(state["truth"]), np.array(state["guess"])
        metrics._losses = np.array(state["losses"], np.float64)
        scores = state["scores"]
        metrics._scores = None if scores is None else np.array(scores, np.float64).reshape(metrics.window, -1)
        return metrics


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
        self._sums = np.zeros(3)  # of absolute errors, squared errors, pinball losses
        self._mean = self._spread = (
            0.0  # of the targets: their mean, and the sum of squares about it (Welford)
        )
        self._recent = np.zeros((window, 2))  # a ring of targets and predictions, as in ClassificationMetrics

    def update(self, y: ArrayLike, predicted: ArrayLike) -> None:
        """Count the next rows."""
        targets, guesses = np.asarray(y, np.float64), np.asarray(predicted, np.float64)
        miss = targets - guesses
        losses = np.column_stack([np.abs(miss), miss * miss, miss * (self.quantile - (miss < 0))])
        self._sums = np.add.accumulate(np.vstack([self._sums, losses]))[-1]  # one by one, whatever the chunks
        rows, mean, spread = self.rows, self._mean, self._spread
        for target in targets.tolist():
            rows += 1
            step = target - mean
            mean += step / rows
            spread += step * (target - mean)
        n = len(targets)
        kept = slice(max(0, n - self.window), n)
        at = (self.rows + np.arange(n)[kept]) % self.window
        self._recent[at] = np.column_stack([targets, guesses])[kept]
        self.rows, self._mean, self._spread = rows, mean, spread

    def figures(self) -> dict[str, float]:
        """The metrics over all rows, by name."""
        n = self.rows if self.rows else np.nan
        absolute, squared, pinball = self._sums.tolist()
        explained = 1 - squared / self._spread if self._spread > 0 else np.nan
        return {
            "mae": absolute / n,
            "rmse": float(np.sqrt(squared / n)),
            "r2": explained,
            "pinball": pinball / n,
        }

    def recent(self) -> dict[str, float]:
        """The metrics over the window, by name."""
        last = RegressionMetrics(self.window, self.quantile)
        last.update(*self._recent[: self.rows].T)
        return last.figures()

    def state(self) -> dict[str, Any]:
        """All that was counted, for JSON."""
        return {
            "window": self.window, "quantile": self.quantile, "rows": self.rows, "sums": self._sums.tolist(),
            "mean": self._mean, "spread": self._spread, "recent": self._recent.tolist(),
        }  # fmt: skip

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The metrics that gave this state."""
        metrics = cls(state["window"], state["quantile"])
        metrics.rows, metrics._mean, metrics._spread = state["rows"], state["mean"], state["spread"]
        metrics._sums, metrics._recent = np.array(state["sums"]), np.array(state["recent"])
        return metrics


METRICS: dict[str, bool] = {
    **{name: name not in ("log_loss", "brier") for name in ClassificationMetrics.names},
    **{name: name == "r2" for name in RegressionMetrics.names},
}
"""The metrics by name, and whether more is better."""

Metrics = ClassificationMetrics | RegressionMetrics


def metrics_of(task: str, window: int = WINDOW) -> Metrics:
    """Empty metrics of a task.

    >>> type(metrics_of("regression")).__name__
    'RegressionMetrics'
    """
    return RegressionMetrics(window) if task == "regression" else ClassificationMetrics(window)


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
        self._code: dict[Any, int] = {None: -1}  # as in ClassificationMetrics
        self._counts = np.zeros(0, np.int64)  # of the majority's labels, by code
        self._next: Any = 0.0 if kind == "mean" else -1  # of labels the code
        self._rows = 0

    def predict_then_learn(self, X: Any, y: ArrayLike) -> list[Any]:
        """Predict each label, then learn it; ``X`` is not looked at. None where no label is known."""
        if self.kind == "mean":
            return self._means(np.asarray(y).tolist())
        codes = self._step(_coded(y, self._code))
        labels = [*[*self._code][1:], None]  # None has the code -1
        return [labels[code] for code in codes.tolist()]

    def _means(self, targets: list[float]) -> list[float]:
        predicted, mean, rows = [], self._next, self._rows
        for target in targets:
            predicted.append(mean)
            rows += 1
            mean += (target - mean) / rows
        self._next, self._rows = mean, rows
        return predicted

    def _step(self, codes: Array) -> Array:
        """`predict_then_learn`, of codes."""
        ahead = codes  # the label to predict after each row
        if self.kind == "majority" and len(codes):
            # A label takes the lead in the row that makes its count larger than every count before.
            most = self._counts.max(initial=0)
            reached = self._learn_counts(codes)
            before = np.maximum.accumulate(np.append(most, reached))[:-1]
            leads = np.maximum.accumulate(np.where(reached > before, np.arange(len(codes)), -1))
            ahead = np.where(leads < 0, self._next, codes[leads])
            self._rows += len(codes)
        known = np.append(self._next, ahead)
        self._next = int(known[-1])
        return known[:-1]

    def _learn_counts(self, codes: Array) -> Array:
        """How often the label of each row has come by then."""
        new = np.bincount(codes, minlength=len(self._counts))
        old = np.pad(self._counts, (0, len(new) - len(self._counts)))
        order = np.argsort(codes.astype(np.int16) if len(new) < 1 << 15 else codes, kind="stable")
        reached = np.empty(len(codes), np.int64)
        first = np.cumsum(new) - new  # place of each label in this order
        reached[order] = np.arange(1, len(codes) + 1) + (old - first)[codes[order]]
        self._counts = old + new
        return reached

    def state(self) -> dict[str, Any]:
        """What was learnt, for JSON."""
        labels = [*[*self._code][1:], None]  # None has the code -1
        counts = [[labels[code], count] for code, count in enumerate(self._counts.tolist())]
        following = self._next if self.kind == "mean" else labels[self._next]
        return {"kind": self.kind, "counts": counts, "next": following, "rows": self._rows}

    @classmethod
    def from_state(cls, state: dict[str, Any], code: dict[Any, int] | None = None) -> Self:
        """The baseline that gave this state; ``code`` is of the labels of others that count the same ones."""
        baseline = cls(state["kind"])
        if code is not None:
            baseline._code = code
        following, counts = state["next"], dict(state["counts"])
        codes = _coded([*counts], baseline._code)
        baseline._counts = np.bincount(codes, [*counts.values()]).astype(np.int64)
        baseline._next = following if state["kind"] == "mean" else int(_coded([following], baseline._code)[0])
        baseline._rows = state["rows"]
        return baseline


_BASELINES = {
    "classification": {"majority class": "majority", "last label": "last"},
    "regression": {"mean": "mean", "last label": "last"},
}


class Baselines:
    """The baselines of a task with their metrics.

    >>> baselines = Baselines("classification")
    >>> baselines.update(["a", "b", "b", "b"])
    >>> {name: metrics.figures()["accuracy"] for name, metrics in baselines.metrics.items()}
    {'majority class': 0.25, 'last label': 0.5}
    """

    def __init__(self, task: str, window: int = WINDOW) -> None:
        self._baselines = {name: Baseline(kind) for name, kind in _BASELINES[task].items()}
        self.metrics: dict[str, Metrics] = {name: metrics_of(task, window) for name in self._baselines}
        self._code: dict[Any, int] = {None: -1}  # one for all of them, which meet the same labels
        self._share_code()

    def _share_code(self) -> None:
        for name, baseline in self._baselines.items():
            metrics = self.metrics[name]
            if isinstance(metrics, ClassificationMetrics):
                baseline._code = metrics._code = self._code

    def update(self, y: ArrayLike) -> None:
        """Let each predict, then learn, the next labels."""
        codes: Array | None = None
        for name, baseline in self._baselines.items():
            metrics = self.metrics[name]
            if isinstance(metrics, ClassificationMetrics):
                codes = _coded(y, self._code) if codes is None else codes
                metrics._count(codes, baseline._step(codes))
                continue
            predicted = baseline.predict_then_learn(None, y)
            predicted[:1] = [guess or 0.0 for guess in predicted[:1]]  # as a model that has learnt nothing
            metrics.update(y, predicted)

    def state(self) -> list[Any]:
        """All that was learnt and counted, for JSON."""
        return [[self._baselines[name].state(), self.metrics[name].state()] for name in self._baselines]

    def restore(self, state: list[Any]) -> None:
        """Take over a state."""
        for name, (baseline, counted) in zip(self._baselines, state, strict=True):
            self.metrics[name] = metrics = type(self.metrics[name]).from_state(counted)
            self._code = metrics._code if isinstance(metrics, ClassificationMetrics) else self._code
            self._baselines[name] = Baseline.from_state(baseline, self._code)
        self._share_code()


class Evaluation:
    """The metrics of a model on a stream, beside the baselines', and how some of them went.

    Args:
        task: "classification" or "regression".
        window: rows of the window.
        curves: names of metrics of which points are kept, at most `CURVE_POINTS` of each.
        baselines: whether baselines are counted.

    >>> evaluation = Evaluation("classification", curves=["f1"])
    >>> evaluation.update([0, 1] * 100, [0, 1] * 100)
    >>> evaluation.points
    [(100, {'f1': (1.0, 1.0)}), (200, {'f1': (1.0, 1.0)})]
    """

    def __init__(
        self, task: str, window: int = WINDOW, curves: Sequence[str] = (), *, baselines: bool = True
    ) -> None:
        self.task = task
        self.curves = list(curves)
        self.metrics = metrics_of(task, window)
        self.baselines = Baselines(task, window) if baselines else None
        self.points: list[tuple[int, dict[str, tuple[float, float]]]] = []
        self._spacing = CURVE_SPACING

    def update(self, y: ArrayLike, predicted: ArrayLike, *scored: Any) -> None:
        """Count the next rows; ``scored`` as in `ClassificationMetrics.update`."""
        truth, guess = np.asarray(y), np.asarray(predicted)
        if self.baselines is not None:
            self.baselines.update(truth)
        if not self.curves:
            return self.metrics.update(truth, guess, *scored)
        start = 0
        while start < len(truth):  # a point is of so many rows, whatever the chunks
            stop = min(len(truth), start + self._spacing - self.metrics.rows % self._spacing)
            part = slice(start, stop)
            parts = (x[part] if place != 1 and x is not None else x for place, x in enumerate(scored))
            self.metrics.update(truth[part], guess[part], *parts)
            start = stop
            if self.metrics.rows % self._spacing == 0:
                self.points.append(self._point())
            if len(self.points) > CURVE_POINTS:
                self.points = self.points[1::2]
                self._spacing *= 2

    def _point(self) -> tuple[int, dict[str, tuple[float, float]]]:
        whole, recent = self.metrics.figures(), self.metrics.recent()
        return self.metrics.rows, {name: (whole[name], recent[name]) for name in self.curves}

    def curve(self, name: str) -> tuple[list[int], list[float], list[float]]:
        """Numbers of rows, and the metric after each of them: over all rows, over the window. The last one is of now."""
        points = self.points
        if not points or points[-1][0] != self.metrics.rows:
            points = [*points, self._point()]
        values = [(rows, *figures[name]) for rows, figures in points]
        rows, whole, recent = zip(*values, strict=True)
        return list(rows), list(whole), list(recent)

    def record(self) -> dict[str, Any]:
        """All figures for JSON: over all rows, over the window, of the baselines, and the confusion matrix."""
        metrics = self.metrics
        record: dict[str, Any] = {
            "metrics": _for_json(metrics.figures()),
            "metrics_in_window": {"rows": min(metrics.rows, metrics.window), **_for_json(metrics.recent())},
        }
        if self.baselines is not None:
            record["baselines"] = {
                name: _for_json(of.figures()) for name, of in self.baselines.metrics.items()
            }
        if isinstance(metrics, ClassificationMetrics):
            labels, counts = metrics.confusion()
            if len(labels) <= CLASSES_SCORED:
                record["confusion"] = {"labels": labels, "counts": counts}
        return record

    def state(self) -> dict[str, Any]:
        """All that was counted, for JSON."""
        points = [[rows, {k: _nan_to_none(v) for k, v in figures.items()}] for rows, figures in self.points]
        return {
            "task": self.task, "curves": self.curves, "metrics": self.metrics.state(), "spacing": self._spacing,
            "points": points, "baselines": None if self.baselines is None else self.baselines.state(),
        }  # fmt: skip

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The evaluation that gave this state."""
        evaluation = cls(state["task"], state["metrics"]["window"], state["curves"], baselines=False)
        evaluation.metrics = type(evaluation.metrics).from_state(state["metrics"])
        evaluation._spacing = state["spacing"]
        evaluation.points = [
            (rows, {k: (_none_to_nan(a), _none_to_nan(b)) for k, (a, b) in figures.items()})
            for rows, figures in state["points"]
        ]
        if state["baselines"] is not None:
            evaluation.baselines = Baselines(state["task"], state["metrics"]["window"])
            evaluation.baselines.restore(state["baselines"])
        return evaluation


def _coded(labels: Any, code: dict[Any, int]) -> NDArray[np.int64]:
    """The code of each label: -1 for NaN and None, a new one for a label not met before."""
    known: list[Any] = labels if isinstance(labels, list) else np.asarray(labels).tolist()
    try:
        return np.fromiter(map(code.__getitem__, known), np.int64, len(known))
    except KeyError:
        if isinstance(known[0], float | None):
            known = [None if isinstance(label, float) and label != label else label for label in known]
        return np.array([code.setdefault(label, len(code) - 1) for label in known], np.int64)


def _for_json(figures: dict[str, float]) -> dict[str, float | None]:
    return {name: None if np.isnan(value) else value for name, value in figures.items()}


def _nan_to_none(values: tuple[float, float]) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values]


def _none_to_nan(value: float | None) -> float:
    return np.nan if value is None else value


def _areas(positive: Array, scores: Array) -> tuple[float, float]:
    """The area under the ROC curve, and the average precision; rows of the same score count together."""
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)  # of each score
    hits = np.append(0, np.cumsum(positive[order])[last]).astype(np.float64)
    false = np.append(0, last + 1) - hits
    roc_auc = (np.diff(false) * (hits[1:] + hits[:-1])).sum() / 2 / (hits[-1] * false[-1])
    average_precision = (np.diff(hits) * hits[1:] / (hits[1:] + false[1:])).sum() / hits[-1]
    return float(roc_auc), float(average_precision)


def _without_nan(array: Array) -> list[Any]:
    """Lists for JSON, which has no NaN: None stands for it."""
    values = array.astype(object)
    values[np.isnan(array)] = None
    return list(values.tolist())


def _in_order(labels: Any) -> list[Any]:
    known = [label for label in labels if label is not None]
    try:
        return sorted(known)
    except TypeError:  # labels of several types
        return sorted(known, key=lambda label: (type(label).__name__, str(label)))
