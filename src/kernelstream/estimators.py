"""scikit-learn estimators around any learner.

``KernelClassifier(learner)`` and ``KernelRegressor(learner)`` check input, know labels and feature names, and hand rows to
the learner. Both learn one row at a time: ``partial_fit`` on a chunk does exactly what it does on its rows one by one.

Different models may be used from different threads at once (the compiled loops run without the interpreter lock). One model is
for one thread at a time.
"""

from __future__ import annotations

import numbers
import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from kernelstream.errors import CapacityError, ScoreOverflowError
from kernelstream.learners import Learner, NewtonMixture
from kernelstream.losses import Logistic, as_loss
from kernelstream.rows import as_rows, check_finite

__all__ = ["KernelClassifier", "KernelRegressor", "default_learner"]

Array = NDArray[Any]


class _KernelEstimator(BaseEstimator):
    """What both estimators share: input checks, and the learner's life."""

    learner: Learner | None
    learner_: Learner
    n_features_in_: int

    def __init__(self, learner: Learner | None = None) -> None:
        self.learner = learner

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def nbytes_(self) -> int:
        """Bytes of model state; constant once the learner's budget is full."""
        check_is_fitted(self, "learner_")
        return self.learner_.nbytes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trained model to a file, whole or not at all; ``kernelstream.load`` reads it."""
        from kernelstream.persistence import save

        save(self, path)

    def widen(self, width: int) -> None:
        """Accept rows of more features; those seen before keep their columns, the new ones were always zero."""
        check_is_fitted(self, "learner_")
        if width > self.n_features_in_:
            if hasattr(self, "feature_names_in_"):
                raise ValueError("a model that knows its features by name has no place for more of them")
            self.learner_.widen(width)
            self.n_features_in_ = width

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Checked rows of X; a new model (``reset``) takes X's precision, a model at work keeps its own."""
        dtypes: list[type] = [np.float64, np.float32]
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=dtypes,
            order="C",
            ensure_all_finite=False,
            ensure_min_samples=0,
        )
        rows = as_rows(X, None if reset else self.learner_.dtype)
        check_finite(rows)
        return rows

    def _start(self, rows: Any, outputs: int, *, regression: bool) -> None:
        self.learner_ = _started(self.learner, rows.width, outputs, regression=regression, dtype=_dtype(rows))

    def _weights(self, sample_weight: ArrayLike | None, rows: Any, *, some: bool = False) -> Array | None:
        """Checked weights; ``some``: not all may be zero (in a chunk of a stream they may)."""
        if sample_weight is None:
            return None
        weights: Array = np.ascontiguousarray(sample_weight, np.float64)
        if isinstance(sample_weight, numbers.Real):
            weights = np.full(rows.n, weights.item())
        if weights.shape != (rows.n,):
            raise ValueError(
                f"sample_weight has the shape {weights.shape}: {rows.n} rows need one weight each"
            )
        dtype = _dtype(rows)
        bad = np.flatnonzero(~((weights >= 0) & (weights <= np.finfo(dtype).max)))
        if len(bad):
            raise ValueError(
                f"sample_weight is {weights[bad[0]]} at row {bad[0]}: a weight must be finite (in {dtype.__name__}) "
                "and not negative"
            )
        if some and not weights.any():
            raise ValueError("all sample weights are zero: there is nothing to fit")
        return weights

    @staticmethod
    def _need_rows(rows: Any) -> None:
        if rows.n == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required to fit.")

    @staticmethod
    def _same_length(rows: Any, y: Array) -> None:
        if len(y) != rows.n:
            raise ValueError(f"X has {rows.n} rows and y has {len(y)} entries: each row needs one")


def default_learner() -> Learner:
    """The learner of ``KernelClassifier()`` and ``KernelRegressor()``.

    >>> default_learner()
    NewtonMixture()
    """
    return NewtonMixture()


def _started(
    learner: Learner | None, width: int, outputs: int, *, regression: bool, dtype: Any = np.float64
) -> Learner:
    """A copy of the learner (None: the default one), ready for rows."""
    chosen = default_learner() if learner is None else learner
    if not isinstance(chosen, Learner):
        raise TypeError(f"learner must be a kernelstream learner such as NOGD(), got {chosen!r}")
    copy: Learner = clone(chosen)
    return copy.start(width, outputs, regression=regression, dtype=dtype)


class KernelRegressor(RegressorMixin, _KernelEstimator):
    """Regression with a kernel machine learnt from a stream.

    Args:
        learner: the algorithm, for example ``NOGD(budget=200)``; by default ``NewtonMixture()``, which needs no tuning.

    Attributes:
        learner_: the learner at work. n_features_in_, feature_names_in_: as in scikit-learn. nbytes_: bytes of state.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).uniform(0, 6, (2000, 1))
    >>> model = KernelRegressor().fit(x, np.sin(x[:, 0]))
    >>> bool(model.score(x, np.sin(x[:, 0])) > 0.9)
    True
    """

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything, then learn the rows in order, once."""
        rows = self._rows(X, reset=True)
        self._need_rows(rows)
        targets, weights = self._targets(y, rows), self._weights(sample_weight, rows, some=True)
        self._start(rows, 1, regression=True)
        self.learner_.run(rows, targets, weights)
        return self

    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the rows in order."""
        self.predict_then_learn(X, y, sample_weight)
        return self

    def predict_then_learn(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
        """Predict each row, then learn it; the values predicted before (0 for the very first row)."""
        new = not hasattr(self, "learner_")
        rows = self._rows(X, reset=new)
        targets, weights = self._targets(y, rows), self._weights(sample_weight, rows)
        if new:
            self._start(rows, 1, regression=True)
        return self.learner_.run(rows, targets, weights)[:, 0]

    def predict(self, X: Any) -> Array:
        """Predicted values; nothing is learnt."""
        check_is_fitted(self, "learner_")
        return self.learner_.score(self._rows(X, reset=False))[:, 0]

    def _targets(self, y: ArrayLike, rows: Any) -> Array:
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        targets = column_or_1d(y, dtype=np.float64, warn=True)
        self._same_length(rows, targets)
        dtype = _dtype(rows)
        bad = np.flatnonzero(~(np.abs(targets) <= np.finfo(dtype).max))
        if len(bad):
            value = targets[bad[0]]
            what = "NaN" if np.isnan(value) else "infinity" if np.isinf(value) else f"{value:g}"
            raise ValueError(
                f"y has {what} at row {bad[0]}: only finite targets that {dtype.__name__} holds can be learnt"
            )
        return np.ascontiguousarray(targets)


def _dtype(rows: Any) -> type[np.float32] | type[np.float64]:
    """The precision of rows, and so of the model that learns them."""
    return np.float32 if type(rows).__name__ == "Rows32" else np.float64


def _gives_probabilities(self: KernelClassifier) -> bool:
    if _link(getattr(self, "learner_", None) or self.learner):
        return True
    raise AttributeError(
        "predict_proba needs the default learner or one with the logistic loss, such as NOGD(loss='logistic')"
    )


def _link(learner: Learner | None) -> str | None:
    """How a learner's scores become probabilities: "softmax", "logistic" (each class against the rest), or None: they do not."""
    learner = default_learner() if learner is None else learner
    loss = getattr(learner, "loss", None)
    logistic = loss is not None and isinstance(as_loss(loss), Logistic)
    return getattr(learner, "link", None) or ("logistic" if logistic else None)


class KernelClassifier(ClassifierMixin, _KernelEstimator):
    """Classification with a kernel machine learnt from a stream.

    Two classes use one score (positive: ``classes_[1]``), more classes one score each. Without ``classes`` in the first
    ``partial_fit``, classes are discovered row by row; a class seen for the first time starts with zero weights.

    Args:
        learner: the algorithm, for example ``BOGD(budget=100)``; by default ``NewtonMixture()``, which needs no tuning.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = getattr(self.learner, "multiclass", True)
        return tags

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything, then learn the rows in order, once."""
        rows = self._rows(X, reset=True)
        self._need_rows(rows)
        labels = self._labels(y, rows)
        weights = self._weights(sample_weight, rows, some=True)
        classes, codes = np.unique(labels, return_inverse=True)
        self._start(rows, _outputs(len(classes)), regression=False)
        self.classes_, self._open = classes, False
        self.learner_.run(rows, _targets(codes, len(classes)), weights)
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
        _, predicted = self._learn(X, y, classes, sample_weight)
        codes = np.array(predicted, np.int64)
        made = self.classes_[np.maximum(codes, 0)] if len(self.classes_) else np.asarray(y)[:0]
        if (codes < 0).any():
            missing = _missing(made.dtype, self.classes_)
            made = made.astype(object) if missing is None else made
            made[codes < 0] = missing
        return made

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
        check_is_fitted(self, "learner_")
        scores = self.learner_.score(self._rows(X, reset=False))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """Predicted labels; nothing is learnt."""
        check_is_fitted(self, "learner_")
        codes = _decide(self.learner_.score(self._rows(X, reset=False)), len(self.classes_))
        if len(codes) and not len(self.classes_):
            raise NotFittedError("no row has been learnt yet, so there is no label to predict")
        return self.classes_[np.maximum(codes, 0)]

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, one column a class. Needs the default learner, or the logistic loss.

        Several classes: the default learner's own, with the logistic loss one-vs-rest, normalised.
        """
        check_is_fitted(self, "learner_")
        scores = self.learner_.score(self._rows(X, reset=False))
        return _probabilities(scores, len(self.classes_), _link(self.learner_))

    # ---- labels ----

    def _labels(self, y: ArrayLike, rows: Any) -> Array:
        from sklearn.utils.multiclass import check_classification_targets

        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        labels: Array = column_or_1d(y, warn=True)
        self._same_length(rows, labels)
        if labels.dtype.kind == "f":
            bad = np.flatnonzero(~np.isfinite(labels))
            if len(bad):
                raise ValueError(f"y has {labels[bad[0]]} at row {bad[0]}: a label must be finite")
        if len(labels):
            check_classification_targets(labels)
        return labels

    def _learn(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[Array, list[int]]:
        """Run the rows; scores for the classes known at the end, and the codes predicted (-1: no class was known)."""
        new = not hasattr(self, "learner_")
        rows = self._rows(X, reset=new)
        labels = self._labels(y, rows)
        weights = self._weights(sample_weight, rows)
        if not new and not len(self.classes_):
            self.classes_ = labels[:0]  # all chunks were empty: none told the type of labels
        known, is_open = self._known_classes(classes, new, labels)
        if len(known) and len(labels) and (known.dtype.kind in "US") != (labels.dtype.kind in "US"):
            if "O" not in (known.dtype.kind, labels.dtype.kind):
                raise ValueError(
                    f"y holds labels of type {labels.dtype}, the classes known are of type {known.dtype}"
                )
        found, first = np.unique(labels, return_index=True)
        unknown = ~np.isin(found, known)
        if unknown.any() and not is_open:
            label = found[unknown][0]
            raise ValueError(
                f"y has the label {label!r} at row {first[unknown][0]}, which is not among the classes "
                f"{np.asarray(known).tolist()} that this model was told to expect"
            )
        if new:
            self._start(rows, _outputs(len(known)), regression=False)
            self.classes_, self._open = known, is_open

        scores = np.zeros((0, self.learner_.outputs))
        predicted: list[int] = []
        arrivals = sorted((int(row), found[k]) for k, row in enumerate(first) if unknown[k])
        start = 0
        for stop, label in [*arrivals, (rows.n, None)]:
            segment = self._run_known(rows, labels, weights, start, stop)
            if (
                len(predicted) > start
            ):  # the first row was a newcomer, scored already by the model that did not know it
                segment = segment[1:]
            if label is not None:
                segment = np.vstack([segment, self.learner_.score(rows.part(stop, stop + 1))])
            scores = np.vstack([scores, segment])
            predicted.extend(_decide(segment, len(self.classes_)).tolist())
            if label is not None:
                mix, moved = self._admit(label)
                scores = _relayout(scores, mix)
                predicted = [int(moved[c]) if c >= 0 else -1 for c in predicted]
            start = stop
        return scores, predicted

    def _run_known(self, rows: Any, labels: Array, weights: Array | None, start: int, stop: int) -> Array:
        """Run rows whose labels are all known."""
        if start == stop:
            return np.zeros((0, self.learner_.outputs))
        codes = np.searchsorted(self.classes_, labels[start:stop])
        part_weights = None if weights is None else np.ascontiguousarray(weights[start:stop])
        try:
            return self.learner_.run(
                rows.part(start, stop), _targets(codes, len(self.classes_)), part_weights
            )
        except (CapacityError, ScoreOverflowError) as error:
            raise error.moved(start) from None

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

    def _admit(self, label: Any) -> tuple[Array, Array]:
        """Make room for a class; how old scores mix into new ones (NaN: no score), and where old classes moved."""
        before, n = self.classes_, len(self.classes_)
        place = int(np.searchsorted(before, label)) if n else 0
        self.classes_ = np.insert(_wide_enough(before, label), place, label)
        return _make_room(self.learner_, n, place)


def _make_room(learner: Learner, n: int, place: int) -> tuple[Array, Array]:
    """Give a learner of n classes one more, of code ``place``; how old scores mix into new ones, and where old
    classes moved.
    """
    moved = np.arange(n) + (np.arange(n) >= place)
    mix = np.zeros((_outputs(n), _outputs(n + 1)))
    if n <= 1:  # one column stays one; the first class is +1 while it is alone
        mix[0, 0] = -1.0 if n == 1 and place == 1 else 1.0
    elif n == 2:
        share = learner.pair_share
        mix[0, moved[0]], mix[0, moved[1]] = -share, share
    else:
        mix[np.arange(n), moved] = 1.0

    def recode(targets: Array) -> Array:
        if n <= 1:
            codes = np.zeros(len(targets), np.int64)
        else:
            codes = (targets > 0) * 1 if n == 2 else targets.astype(int)
        return _targets(moved[codes] if n else codes, n + 1)

    if n:
        learner.mix_outputs(mix, recode)
    return mix, moved


def _outputs(n_classes: int) -> int:
    return 1 if n_classes <= 2 else n_classes


def _targets(codes: Array, n_classes: int) -> Array:
    """Class codes as the learner's targets: -1 / +1 for two classes, +1 for one, the code itself for more."""
    if n_classes == 1:
        return np.ones(len(codes))
    return np.asarray(2.0 * codes - 1 if n_classes == 2 else codes, np.float64)


def _decide(scores: Array, n_classes: int) -> Array:
    """Codes of the classes predicted by scores; -1 while no class is known."""
    if n_classes < 2:
        return np.full(len(scores), n_classes - 1)
    if n_classes == 2:
        return np.asarray(scores[:, 0] > 0, np.int64)
    return np.asarray(scores.argmax(axis=1))


def _probabilities(scores: Array, n_classes: int, link: str | None) -> Array:
    """Probabilities from scores, one column a class; several classes: softmax, or one-vs-rest, normalised."""
    if link == "softmax" and n_classes > 2:
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))
    p = 1 / (1 + np.exp(-np.clip(scores, -700, 700)))
    if n_classes < 2:
        return np.ones_like(p)
    return np.hstack([1 - p, p]) if n_classes == 2 else np.asarray(p / p.sum(axis=1, keepdims=True))


def _relayout(scores: Array, mix: Array) -> Array:
    """Scores laid out for more classes; a class that had no column gets the smallest score of the row."""
    made = scores @ mix
    absent = ~mix.any(axis=0)
    made[:, absent] = made[:, ~absent].min(axis=1, keepdims=True)
    return made


def _wide_enough(classes: Array, label: Any) -> Array:
    """The classes in a dtype that also holds the label (longer strings, larger integers)."""
    return classes.astype(np.result_type(classes.dtype, np.asarray(label).dtype), copy=False)


def _missing(dtype: np.dtype[Any], classes: Array) -> Any:
    """What stands for "no label known" among labels of this dtype; None if nothing of the dtype can."""
    value: Any = None
    if dtype.kind == "f":
        return np.nan
    if dtype.kind in "iu":
        value = np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    elif dtype.kind in "US":
        value = dtype.type("" if dtype.kind == "U" else b"")
    return None if value is None or value in classes else value
