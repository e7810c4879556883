"""scikit-learn estimators around any learner.

``KernelClassifier(learner)`` and ``KernelRegressor(learner)`` check input, know labels and feature names, and hand rows to
the learner. Both learn one row at a time: ``partial_fit`` on a chunk does exactly what it does on its rows one by one.

Every call that learns is a transaction: it succeeds, or raises and leaves the model as it was. That holds for input that is
refused, for a learner that refuses a row within a chunk (``CapacityError``, ``ScoreOverflowError``: nothing of the chunk
is learnt) and for Ctrl-C.

Different models may be used from different threads at once (the compiled loops run without the interpreter lock). One model is
for one thread at a time.
"""

from __future__ import annotations

import numbers
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import column_or_1d

from kernelstream.calibration import ONE_DEVIATION, Calibration, check_coverage
from kernelstream.class_weights import (
    ClassWeight,
    Counts,
    balanced_weights,
    check_class_weight,
    given_weights,
)
from kernelstream.errors import CapacityError, ScoreOverflowError
from kernelstream.estimator_base import (
    LARGEST,
    KernelEstimator,
    as_learner,
    default_learner,
    dtype_of,
    named,
    one_dimension,
    started_copy,
    taken,
    taken_weights,
)
from kernelstream.labels import (
    NO_CLASS,
    add_class,
    codes_of_scores,
    codes_of_targets,
    is_missing,
    known_codes,
    labels_of_codes,
    link_of,
    outputs_of,
    probabilities,
    targets_of,
    unknown_labels,
    with_label,
    with_more_outputs,
)
from kernelstream.learners import Learner
from kernelstream.scaling import Scale
from kernelstream.transaction import Transaction

__all__ = ["KernelClassifier", "KernelRegressor", "as_learner", "default_learner", "started_copy"]

Array = NDArray[Any]


class KernelRegressor(RegressorMixin, KernelEstimator):
    """Regression with a kernel machine learnt from a stream.

    Args:
        learner: the algorithm, for example ``NOGD(budget=200)``, or its name (``"NOGD"``); by default
            ``NewtonMixture()``, which needs no tuning.
        shuffle: whether ``fit`` learns its rows in a random order, because a data set has none; ``partial_fit`` and
            ``predict_then_learn`` are for streams, and always learn rows as they come.
        random_state: of that order, as in scikit-learn; the default gives the same model every time.
        scale: whether features are brought to a common scale, online (`kernelstream.scaling`); "auto": for learners that do not
            do so themselves, as the default does.
        columns: lets ``X`` be a table with categories, dates, texts and gaps: "auto" tells its columns' kinds by their first
            rows; a dictionary such as ``{"when": "time"}`` or a `TableEncoder` says them (docs/tables.md). None: numbers only.

    Attributes:
        learner_: the learner at work. n_features_in_, feature_names_in_: as in scikit-learn. nbytes_: bytes of state.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 6, (2000, 1))
    >>> model = KernelRegressor().fit(x, np.sin(x[:, 0]))
    >>> bool(model.score(x, np.sin(x[:, 0])) > 0.9)
    True
    """

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything, then learn the rows once, as a set: in a random order (see ``shuffle``)."""
        with Transaction(self):
            rows = self._new_rows(X)
            targets, weights = self._targets(y, rows), self._weights(sample_weight, rows, some=True)
            self._start(rows, 1, regression=True)
            order = self._order(rows.n, weights)
            if order is not None:
                rows, targets, weights = taken(rows, order), targets[order], taken_weights(weights, order)
            rows = self._rows_to_learn(rows, weights)
            named(order, lambda: self._run(rows, targets, weights, as_set=self.shuffle)[0])
            self._calibration.settle()
        return self

    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the rows in order."""
        self.predict_then_learn(X, y, sample_weight)
        return self

    def predict_then_learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Predict each row, then learn it; the values predicted before (0 for the very first row)."""
        return self._learn(X, y, sample_weight, ())[0]

    def predict_interval_then_learn(
        self, X: Any, y: ArrayLike, coverage: Any = 0.9, sample_weight: ArrayLike | None = None
    ) -> Array:
        """An interval for each row, as ``predict_interval`` gives it just before the row is learnt."""
        coverages = check_coverage(coverage)
        return _intervals(*self._learn(X, y, sample_weight, coverages), coverage)

    def _learn(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, coverages: ArrayLike
    ) -> tuple[Array, Array]:
        with Transaction(self) as transaction:
            new = "learner_" not in self.__dict__
            rows = self._rows(X, reset=new, transaction=transaction)
            targets, weights = self._targets(y, rows), self._weights(sample_weight, rows)
            if new:
                self._start(rows, 1, regression=True)
            else:
                transaction.keep(self.learner_, rows.n)
            return self._run(self._rows_to_learn(rows, weights), targets, weights, coverages)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predicted values; nothing is learnt.

        Args:
            X: rows.
            return_std: whether to return the pair of values and standard deviations. The latter are half the widths of the
                intervals that cover 68.3 %, which is one standard deviation of a normal law and not moved by outliers.
        """
        if not return_std:
            return self._score(X)[:, 0]
        lower, upper = self._intervals(X, ONE_DEVIATION).T
        return self._score(X)[:, 0], (upper - lower) / 2

    def predict_interval(self, X: Any, coverage: Any = 0.9) -> Array:
        """Intervals that hold the targets with a probability of ``coverage``; nothing is learnt.

        They are calibrated by the errors made on the rows learnt so far, each before it was learnt (see
        ``kernelstream.calibration``). While fewer than about ``1 / (1 - coverage)`` rows have been learnt they are infinite.

        Args:
            X: rows.
            coverage: a number above 0 and below 1, or several.

        Returns:
            Lower and upper ends, ``(n, 2)``; for several coverages ``(n, coverages, 2)``.

        >>> x = np.random.default_rng(0).uniform(0, 6, (3000, 1))
        >>> y = np.sin(x[:, 0]) + np.random.default_rng(1).normal(0, 0.1, 3000)
        >>> model = KernelRegressor().fit(x[:2000], y[:2000])
        >>> lower, upper = model.predict_interval(x[2000:], coverage=0.9).T
        >>> bool(abs(((lower <= y[2000:]) & (y[2000:] <= upper)).mean() - 0.9) < 0.03)
        True
        """
        return self._intervals(X, coverage)

    def _intervals(self, X: Any, coverage: Any) -> Array:
        coverages = check_coverage(coverage)
        scores, scales = self.learner_.score_with_scales(self._rows_to_score(X))
        reaches = np.array([self._calibration.reach(c) for c in coverages])
        sizes = np.ones(len(scores)) if scales is None else scales
        return _intervals(scores[:, 0], sizes[:, None] * reaches, coverage)

    def _start(self, rows: Any, outputs: int, *, regression: bool) -> None:
        super()._start(rows, outputs, regression=regression)
        self._calibration = Calibration()

    def _run(
        self,
        rows: Any,
        targets: Array,
        weights: Array | None,
        coverages: ArrayLike = (),
        as_set: bool = False,
    ) -> tuple[Array, Array]:
        """Predict then learn; the values before, and how far intervals of some coverages reached."""
        learn = self.learner_.learn_set if as_set else self.learner_.run
        scores = learn(rows, targets, weights)[:, 0]
        scales = self.learner_.take_scales()
        reaches = self._calibration.learn(targets - scores, scales, coverages, weights)
        return scores, reaches if scales is None else reaches * scales[:, None]

    def _targets(self, y: ArrayLike, rows: Any) -> Array:
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        targets = one_dimension(y)
        if targets is None or targets.dtype.kind not in "fiu":
            targets = column_or_1d(y, dtype=np.float64, warn=True)
        targets = np.ascontiguousarray(targets, np.float64)
        self._same_length(rows, targets)
        dtype = dtype_of(rows)
        good = np.abs(targets) <= LARGEST[dtype]
        if not good.all():
            bad = np.flatnonzero(~good)
            value = targets[bad[0]]
            what = "NaN" if np.isnan(value) else "infinity" if np.isinf(value) else f"{value:g}"
            raise ValueError(
                f"y has {what} at row {bad[0]}: only finite targets that {dtype.__name__} holds can be learnt"
            )
        return targets


def _intervals(values: Array, reaches: Array, coverage: Any) -> Array:
    """Lower and upper ends, ``(n, 2)`` for one coverage, ``(n, coverages, 2)`` for several."""
    ends = np.stack([values[:, None] - reaches, values[:, None] + reaches], axis=2)
    return ends[:, 0] if isinstance(coverage, numbers.Real) else ends


def _joined(first: Array, then: Array) -> Array:
    """Rows and more rows; no copy where there are none of either."""
    return np.concatenate([first, then]) if len(first) and len(then) else then if len(then) else first


def _gives_probabilities(self: KernelClassifier) -> bool:
    if link_of(getattr(self, "learner_", None) or as_learner(self.learner)):
        return True
    raise AttributeError(
        "predict_proba needs the default learner or one with the logistic loss, such as NOGD(loss='logistic')"
    )


class KernelClassifier(ClassifierMixin, KernelEstimator):
    """Classification with a kernel machine learnt from a stream.

    Two classes use one score (positive: ``classes_[1]``), more classes one score each. Without ``classes`` in the first
    ``partial_fit``, classes are discovered row by row; a class seen for the first time starts with zero weights.

    Args:
        learner: the algorithm, for example ``BOGD(budget=100)``, or its name (``"BOGD"``); by default
            ``NewtonMixture()``, which needs no tuning.
        shuffle: whether ``fit`` learns its rows in a random order, because a data set has none; ``partial_fit`` and
            ``predict_then_learn`` are for streams, and always learn rows as they come.
        random_state: of that order, as in scikit-learn; the default gives the same model every time.
        scale: whether features are brought to a common scale, online (`kernelstream.scaling`); "auto": for learners that do not
            do so themselves, as the default does.
        columns: lets ``X`` be a table with categories, dates, texts and gaps: "auto" tells its columns' kinds by their first
            rows; a dictionary such as ``{"when": "time"}`` or a `TableEncoder` says them (docs/tables.md). None: numbers only.

        class_weight: what the weights of a class's rows are multiplied with: a dictionary from labels to weights (1 for those
            it does not name), or "balanced": the more, the rarer the class is among the rows of ``fit``, or among those of a
            stream so far (``kernelstream.class_weights``).

    Attributes:
        classes_: the classes known, sorted. learner_: the learner at work. n_features_in_, feature_names_in_: as in
        scikit-learn. nbytes_: bytes of state.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = KernelClassifier()
    >>> before = model.predict_then_learn(X, y)       # predictions made before each row was learnt
    >>> bool((before != y).mean() < 0.1)
    True
    """

    classes_: Array
    _class_counts: Counts  # of rows learnt, if weights are to be balanced

    def __init__(
        self,
        learner: Learner | str | None = None,
        *,
        shuffle: bool = True,
        random_state: Any = 0,
        scale: Scale = False,
        columns: Any = None,
        class_weight: ClassWeight = None,
    ) -> None:
        super().__init__(learner, shuffle=shuffle, random_state=random_state, scale=scale, columns=columns)
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = getattr(
            self._default_part("learner") or self.learner, "multiclass", True
        )
        return tags

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything, then learn the rows once, as a set: in a random order (see ``shuffle``)."""
        with Transaction(self):
            rows = self._new_rows(X)
            labels = self._labels(y, rows, stream=False)
            weights = self._weights(sample_weight, rows, some=True)
            classes, codes = np.unique(labels, return_inverse=True)
            self._start(rows, outputs_of(len(classes)), regression=False)
            weights = self._class_weighted(labels, weights, stream=False)
            self.classes_, self._open = classes, False
            order = self._order(rows.n, weights)
            if order is not None:
                rows, codes, weights = taken(rows, order), codes[order], taken_weights(weights, order)
            rows = self._rows_to_learn(rows, weights)
            learn = self.learner_.learn_set if self.shuffle else self.learner_.run
            targets = targets_of(codes, len(classes))
            named(order, lambda: learn(rows, targets, weights))
        return self

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn the rows in order.

        ``classes``, if given, must be given in the first call and names all classes there will be. Without it a label never seen
        before is a new class.
        """
        self._learn(X, y, classes, sample_weight)
        return self

    def predict_then_learn(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Array:
        """Predict each row, then learn it; the labels predicted before.

        As long as no label is known there is nothing to predict: such a row (the very first one, without ``classes``) gets a
        value that no comparison with its label finds equal: NaN for floats, the smallest (unsigned: largest) integer, an empty
        string; and if the labels are of another kind or hold that very value, the array is of objects and the value is None.
        """
        _, codes = self._learn(X, y, classes, sample_weight)
        if not len(self.classes_):  # no row at all: of the type of its labels
            return np.asarray(y)[:0]
        return labels_of_codes(self.classes_, codes)

    def decision_then_learn(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Array:
        """Score each row, then learn it; the scores before, laid out for the classes known at the end of the chunk.

        A class unknown when a row was scored has the smallest score of that row.
        """
        scores, _ = self._learn(X, y, classes, sample_weight)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def decision_function(self, X: Any) -> Array:
        """Scores: one per row for two classes (positive: ``classes_[1]``), else one per row and class."""
        scores = self._score(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """Predicted labels; nothing is learnt."""
        scores = self._score(X)
        if len(scores) and not len(self.classes_):
            raise NotFittedError("no row has been learnt yet, so there is no label to predict")
        return self.classes_[codes_of_scores(scores, len(self.classes_))]

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, one column per class. Needs the default learner, or the logistic loss.

        Several classes: the default learner's own, with the logistic loss one-vs-rest, normalised.
        """
        scores = self._score(X)
        return probabilities(scores, len(self.classes_), link_of(self.learner_))

    def _told_targets(self, targets: Array, found: Array) -> Array:
        codes = np.where(
            found, codes_of_targets(targets.ravel(), len(self.classes_)).reshape(targets.shape), NO_CLASS
        )
        return labels_of_codes(self.classes_, codes.ravel()).reshape(targets.shape)

    def _start(self, rows: Any, outputs: int, *, regression: bool) -> None:
        check_class_weight(self.class_weight)
        super()._start(rows, outputs, regression=regression)
        self._class_counts = {}

    def _class_weighted(self, labels: Array, weights: Array | None, *, stream: bool) -> Array | None:
        """The rows' weights times those of their classes, which are counted."""
        check_class_weight(self.class_weight)
        if self.class_weight is None:
            return weights
        if isinstance(self.class_weight, str):
            counts = self.__dict__.get("_class_counts", {})
            weights, self._class_counts = balanced_weights(counts, labels, weights, stream=stream)
            return weights
        return given_weights(self.class_weight, labels, weights)

    # ---- labels ----

    def _known_labels(self, y: Any, rows: Any) -> tuple[Array, Array] | None:
        """Labels and their codes, if all are known: labels that were admitted before need no other check."""
        labels = one_dimension(y)
        if labels is None or len(labels) != rows.n or "classes_" not in self.__dict__:
            return None
        codes = known_codes(self.classes_, labels)
        return None if codes is None else (labels, codes)

    def _labels(self, y: ArrayLike, rows: Any, *, stream: bool) -> Array:
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        plain = one_dimension(y) if stream else None
        if plain is not None and len(plain) == rows.n and plain.dtype.kind in "iubU":
            return plain  # any of them may be a label; and that a chunk of a stream has many is no reason to warn
        labels: Array = column_or_1d(y, warn=True)
        self._same_length(rows, labels)
        if labels.dtype.kind == "O":
            missing = [row for row, label in enumerate(labels.tolist()) if is_missing(label)]
            if missing:
                raise ValueError(
                    f"y has {labels[missing[0]]} at row {missing[0]}: every row needs a label; leave out those without one"
                )
        if labels.dtype.kind == "f":
            bad = np.flatnonzero(~np.isfinite(labels))
            if len(bad):
                raise ValueError(f"y has {labels[bad[0]]} at row {bad[0]}: a label must be finite")
        if len(labels):
            from sklearn.utils.multiclass import check_classification_targets

            check_classification_targets(labels)
        return labels

    def _learn(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Array, Array]:
        """Run the rows; scores for the classes known at the end, and the codes predicted (-1: no class was known)."""
        with Transaction(self) as transaction:
            new = "learner_" not in self.__dict__
            rows = self._rows(X, reset=new, transaction=transaction)
            labels, codes = self._known_labels(y, rows) or (self._labels(y, rows, stream=True), None)
            weights = self._weights(sample_weight, rows)
            if not new and not len(self.classes_):
                self.classes_ = labels[:0]  # all chunks were empty: none had labels of a type
            known, is_open = self._known_classes(classes, new, labels)
            if codes is not None:
                transaction.keep(self.learner_, rows.n)
                weights = self._class_weighted(labels, weights, stream=True)
                scores = self._run(self._rows_to_learn(rows, weights), codes, weights)
                return scores, codes_of_scores(scores, len(known))
            first_rows = self._first_rows(labels, known, is_open)
            if new:
                self._start(rows, outputs_of(len(known)), regression=False)
                self.classes_, self._open = known, is_open
            else:
                reshaped = bool(first_rows) and first_rows[0][0] == 0 and len(known) > 0
                transaction.keep(self.learner_, None if first_rows else rows.n, reshaped=reshaped)
            weights = self._class_weighted(labels, weights, stream=True)
            rows = self._rows_to_learn(rows, weights)
            return self._run_with_new_classes(rows, labels, weights, first_rows)

    def _known_classes(self, classes: ArrayLike | None, new: bool, labels: Array) -> tuple[Array, bool]:
        if not new:
            if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
                raise ValueError(
                    f"`classes={np.asarray(classes).tolist()}` is not the same as on last call to partial_fit, "
                    f"was: {self.classes_.tolist()}"
                )
            return self.classes_, self._open
        if classes is None:
            return labels[:0], True
        known = np.unique(np.asarray(classes))
        if len(known) == 0:
            raise ValueError("classes must name at least one class, or be left out")
        return known, False

    @staticmethod
    def _first_rows(labels: Array, known: Array, is_open: bool) -> list[tuple[int, Any]]:
        """The first row of each unknown label, and the label, in the order of rows; refused if all classes were named before."""
        if len(known) and len(labels) and (known.dtype.kind in "US") != (labels.dtype.kind in "US"):
            if "O" not in (known.dtype.kind, labels.dtype.kind):
                raise ValueError(
                    f"y holds labels of type {labels.dtype}, the classes known are of type {known.dtype}"
                )
        one = len(labels) == 1  # a row given alone, where the search would take as long as a round
        different, first = (labels, np.zeros(1, np.int64)) if one else np.unique(labels, return_index=True)
        unknown = unknown_labels(known, different)
        if unknown.any() and not is_open:
            label = different[unknown][0]
            raise ValueError(
                f"y has the label {label!r} at row {first[unknown][0]}, which is not among the classes "
                f"{np.asarray(known).tolist()} that this model was told to expect"
            )
        return sorted(zip(first[unknown].tolist(), different[unknown], strict=True))

    def _run_with_new_classes(
        self, rows: Any, labels: Array, weights: Array | None, first_rows: list[tuple[int, Any]]
    ) -> tuple[Array, Array]:
        """As ``_learn``. The first row of a class is scored by the model that does not know it, learnt by the one that does."""
        scores, codes = np.zeros((0, self.learner_.outputs)), np.zeros(0, np.int64)
        start = 0
        for stop, label in [*first_rows, (rows.n, None)]:
            part = self._run_known(rows, labels, weights, start, stop)
            if len(codes) > start:  # the first row of this part was the first of its class: scored already
                part = part[1:]
            if label is not None:
                part = _joined(part, self.learner_.score(rows.part(stop, stop + 1)))
            scores = _joined(scores, part)
            codes = _joined(codes, codes_of_scores(part, len(self.classes_)))
            if label is not None:
                n_before = len(self.classes_)
                self.classes_, place = with_label(self.classes_, label)
                mix, moved = add_class(self.learner_, n_before, place)
                scores = with_more_outputs(scores, mix)
                codes = np.where(codes >= 0, moved[codes] if n_before else codes, codes)
            start = stop
        return scores, codes

    def _run_known(self, rows: Any, labels: Array, weights: Array | None, start: int, stop: int) -> Array:
        """Run rows whose labels are all known."""
        if start == stop:
            return np.zeros((0, self.learner_.outputs))
        codes = self.classes_.searchsorted(labels[start:stop])
        weights = None if weights is None else np.ascontiguousarray(weights[start:stop])
        try:
            return self._run(rows.part(start, stop), codes, weights)
        except (CapacityError, ScoreOverflowError) as error:
            raise error.moved(start) from None

    def _run(self, rows: Any, codes: Array, weights: Array | None) -> Array:
        return self.learner_.run(rows, targets_of(codes, len(self.classes_)), weights)
