"""The same models behind River's interface: rows are dicts, features and classes appear as the stream flows.

A feature missing from a row is 0. A feature never met before was 0 in all rows so far: the model grows by a
column in which all it has stored is 0. Needs River: ``pip install "kernelstream[river]"``.

Every call that learns succeeds, or raises and leaves the model as it was.
"""

from __future__ import annotations

import copy
import math
from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Mapping
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernelstream._core import core
from kernelstream.class_weights import (
    ClassWeight,
    Counts,
    balanced_weights,
    check_class_weight,
    given_weights,
)
from kernelstream.errors import CapacityError, ScoreOverflowError
from kernelstream.estimators import as_learner, started_copy
from kernelstream.labels import add_class, codes_of_scores, link_of, probabilities, targets_of
from kernelstream.learners import BOGD, FOGD, NOGD, Learner
from kernelstream.rows import WIDEST_DENSE, as_rows
from kernelstream.tables.encoder import TableEncoder
from kernelstream.tabular import as_encoder
from kernelstream.transaction import Transaction

try:
    from river import base
except ImportError as error:
    raise ImportError('kernelstream.river needs River: pip install "kernelstream[river]"') from error

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Classifier", "Regressor"]

Array = NDArray[Any]
Row = Mapping[Hashable, Any]
Columns = dict[Hashable, int]

#: How many more features a learner that has to grow gets than half of what it had.
SPARE = 16


class _RiverModel(base.Estimator):
    """What both models share: from dicts and frames to rows, and a learner that grows with the features."""

    _learner: Learner | None
    _columns: Columns
    _encoder: TableEncoder | None

    def __init__(self, learner: Learner | str | None = None, columns: Any = None) -> None:
        as_learner(learner)
        self.learner = learner
        self.columns = columns
        self._learner = None
        self._columns = {}
        self._encoder = None if columns is None else as_encoder(columns)

    def _seen(self, features: Iterable[Hashable]) -> Columns:
        """The columns known and, after them, those of new features, whatever the order these come in."""
        new = [feature for feature in features if feature not in self._columns]
        if not new:
            return self._columns
        return self._columns | {feature: len(self._columns) + k for k, feature in enumerate(_ordered(new))}

    def _row(self, x: Row) -> tuple[Any, Columns]:
        """A dict as a row, and the columns needed to hold it."""
        if self._encoder is not None:
            return self._encoded([x])
        columns = self._columns
        try:
            return _dict_row(x, columns, self._width_for(columns)), columns
        except KeyError:  # rare: cheaper than to ask each time
            columns = self._seen(x)
            return _dict_row(x, columns, self._width_for(columns)), columns

    def _width_for(self, columns: Columns) -> int:
        """How many features the learner has, or is to have: more than are known, so that it rarely has to grow."""
        width = self._learner.width if self._learner else 0
        if len(columns) <= width or not width:
            return max(width, len(columns))
        return max(len(columns), width + width // 2) + SPARE

    def _rows(self, X: pd.DataFrame) -> tuple[Any, Columns]:
        """A frame as rows, and the columns needed to hold it."""
        if not X.columns.is_unique:
            raise ValueError(f"X has two columns of one name: {X.columns[X.columns.duplicated()][0]!r}")
        if self._encoder is not None:
            return self._encoded(X.to_dict("records"))
        columns = self._seen(X.columns)
        values = np.zeros((len(X), self._width_for(columns)))
        values[:, [columns[feature] for feature in X.columns]] = _frame_values(X)
        return as_rows(values), columns

    def _encoded(self, records: list[Any]) -> tuple[Any, Columns]:
        """Dicts with categories, times, texts and gaps as rows, and the columns needed to hold them."""
        assert self._encoder is not None
        encoder, X = self._encoder.learnt(records)
        columns = _EncodedColumns(encoder)
        return _widened(X, self._width_for(columns)), columns

    def _grown(
        self,
        columns: Columns,
        transaction: Transaction,
        rows: int | None,
        *,
        regression: bool,
        reshaped: bool = False,
    ) -> Learner:
        """The learner, ready to learn rows with these columns; ``rows``: how many, None if classes are to be admitted.

        ``reshaped``: a class is admitted before the first row.
        """
        if self._learner is None:
            self._learner = started_copy(self.learner, len(columns), 1, regression=regression)
        else:
            width = self._width_for(columns)
            transaction.keep(self._learner, rows, reshaped=reshaped or width > self._learner.width)
            if width > self._learner.width:
                self._learner.widen(width)
        self._columns = columns
        if isinstance(columns, _EncodedColumns):
            self._encoder = columns.encoder
        return self._learner

    def _score(self, rows: Any, columns: Columns) -> Array:
        """Scores of rows. If they have new features a wider copy makes them: a prediction changes nothing."""
        assert self._learner is not None
        learner, width = self._learner, self._width_for(columns)
        if width > learner.width:
            wider = object.__new__(type(learner))
            wider.__dict__.update(learner.__dict__)
            wider.widen(width)  # makes new arrays
            return wider.score(rows)
        return learner.score(rows)

    def _score_one(self, x: Row) -> Array:
        if self._encoder is not None:
            return self._score_encoded([x])
        try:
            return self._score(_dict_row(x, self._columns, self._width_for(self._columns)), self._columns)
        except KeyError:  # a new feature that is 0 changes no score
            known = self._columns
            needed = {name: value for name, value in x.items() if name in known or not _is_zero(value)}
        return self._score(*self._row(needed))

    def _score_many(self, X: pd.DataFrame) -> Array:
        if self._encoder is not None:
            return self._score_encoded(X.to_dict("records"))
        return self._score(*self._rows(X))

    def _score_encoded(self, records: list[Any]) -> Array:
        """Scores of rows; what the columns do not know goes to the feature of the others, or to none."""
        assert self._encoder is not None
        assert self._learner is not None
        return self._learner.score(_widened(self._encoder.encoded(records), self._learner.width))

    @property
    def _raw_memory_usage(self) -> int:
        """Bytes of the model; River's own count does not see into the compiled core."""
        shell = copy.copy(self)
        shell._learner = None
        return super(_RiverModel, shell)._raw_memory_usage + (self._learner.nbytes if self._learner else 0)


class Regressor(_RiverModel, base.MiniBatchRegressor):
    """Regression with a kernel machine learnt from a stream, for River.

    Parameters
    ----------
    learner
        The algorithm or its name, for example `NOGD(budget=200)`; by default `NewtonMixture()`, which needs no tuning.
    columns
        Lets rows have categories, times, texts and gaps: "auto", or kinds by name such as `{"when": "time"}`; see
        `kernelstream.TableEncoder`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from kernelstream.learners import NOGD
    >>> from kernelstream.river import Regressor

    >>> scaled = preprocessing.TargetStandardScaler(Regressor(NOGD(budget=100)))
    >>> model = preprocessing.StandardScaler() | scaled
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.2...

    """

    def learn_one(self, x: Row, y: float, w: float = 1.0) -> None:
        """Learn a row of features `x` with the target `y`, counted `w` times."""
        rows, columns = self._row(x)
        targets, weights = np.array([_number(y, "the target")]), _weights(w, 1)
        self._learn(rows, columns, targets, weights)

    def predict_one(self, x: Row, **kwargs: Any) -> float:
        """The value predicted for `x`; 0 before anything was learnt."""
        return float(self._score_one(x)[0, 0]) if self._learner else 0.0

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: float | pd.Series = 1.0) -> None:
        """Learn the rows of a frame in order, each as `learn_one` does."""
        rows, columns = self._rows(X)
        targets = np.array([_number(value, f"the target of row {row}") for row, value in enumerate(y)])
        _same_length(rows, targets)
        weights = _weights(w, rows.n)
        if rows.n:
            self._learn(rows, columns, targets, weights)

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The values predicted for the rows of a frame; 0 before anything was learnt."""
        import pandas as pd

        values = self._score_many(X)[:, 0] if self._learner else np.zeros(len(X))
        return pd.Series(values, index=X.index)

    def _learn(self, rows: Any, columns: Columns, targets: Array, weights: Array | None) -> None:
        with Transaction(self) as transaction:
            self._grown(columns, transaction, rows.n, regression=True).run(rows, targets, weights)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"learner": BOGD(budget=20)}
        yield {"learner": FOGD(n_components=50)}


class Classifier(_RiverModel, base.MiniBatchClassifier):
    """Classification with a kernel machine learnt from a stream, for River.

    Classes are discovered as they come; their labels may be of any type that can be hashed and sorted. There
    are probabilities with the logistic loss; with other losses `predict_proba_one` raises
    `NotImplementedError`, as it does for River's own classifiers without probabilities.

    Parameters
    ----------
    learner
        The algorithm or its name, for example `BOGD(budget=100)`; by default `NewtonMixture()`, which needs no tuning.
    class_weight
        What the weights of a class's rows are multiplied with: a dictionary from labels to weights, or "balanced": the more, the
        rarer the class has been so far.
    columns
        Lets rows have categories, times, texts and gaps: "auto", or kinds by name such as `{"when": "time"}`; see
        `kernelstream.TableEncoder`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from kernelstream.learners import NOGD
    >>> from kernelstream.river import Classifier

    >>> model = preprocessing.StandardScaler() | Classifier(NOGD(budget=100, loss="logistic"))
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.ROCAUC())
    ROCAUC: 9...%

    Features may come and go; those missing are 0. With `columns` a row may have words, times and gaps.

    >>> model = Classifier(NOGD(budget=10))
    >>> model.learn_one({"x": 1.0}, "left")
    >>> model.learn_one({"y": 1.0}, "right")
    >>> model.predict_one({"x": 0.9}), model.predict_one({"y": 0.9})
    ('left', 'right')

    """

    _labels: list[Any]
    _target_of: dict[Hashable, float]
    _class_counts: Counts

    def __init__(
        self, learner: Learner | str | None = None, class_weight: ClassWeight = None, columns: Any = None
    ) -> None:
        super().__init__(learner, columns)
        check_class_weight(class_weight)
        self.class_weight = class_weight
        self._class_counts = {}
        self._labels = []  # sorted; a label's place is its code
        self._target_of = {}

    @property
    def _multiclass(self) -> bool:
        return as_learner(self.learner).multiclass

    @property
    def _link(self) -> str | None:
        return link_of(as_learner(self.learner))

    def learn_one(self, x: Row, y: Any, w: float = 1.0) -> None:
        """Learn a row of features `x` with the label `y`, counted `w` times."""
        rows, columns = self._row(x)
        self._learn(rows, columns, [y], _weights(w, 1))

    def predict_one(self, x: Row, **kwargs: Any) -> Any:
        """The label predicted for `x`; None before anything was learnt."""
        if not self._labels:
            return None
        return self._labels[codes_of_scores(self._score_one(x), len(self._labels))[0]]

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[Any, float]:
        """The probability of each class known; needs the logistic loss."""
        self._need_probabilities()
        if not self._labels:
            return {}
        chances = probabilities(self._score_one(x), len(self._labels), self._link)
        return dict(zip(self._labels, chances[0].tolist(), strict=True))

    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: float | pd.Series = 1.0) -> None:
        """Learn the rows of a frame in order, each as `learn_one` does: classes are discovered row by row."""
        rows, columns = self._rows(X)
        labels = list(y)
        _same_length(rows, labels)
        weights = _weights(w, rows.n)
        if rows.n:
            self._learn(rows, columns, labels, weights)

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """The labels predicted for the rows of a frame; None before anything was learnt."""
        import pandas as pd

        if not self._labels:
            return pd.Series([None] * len(X), index=X.index, dtype=object)
        codes = codes_of_scores(self._score_many(X), len(self._labels))
        return pd.Series([self._labels[code] for code in codes], index=X.index)

    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """The probabilities of the classes known, one column per class; needs the logistic loss."""
        import pandas as pd

        self._need_probabilities()
        if not self._labels:
            return pd.DataFrame(index=X.index)
        chances = probabilities(self._score_many(X), len(self._labels), self._link)
        return pd.DataFrame(chances, index=X.index, columns=self._labels)

    def _learn(self, rows: Any, columns: Columns, labels: list[Any], weights: Array | None) -> None:
        first_rows: dict[Any, int] = {}
        for row, label in enumerate(labels):
            if label not in self._target_of:
                first_rows.setdefault(label, row)
        if first_rows:
            _check_labels(first_rows, self._labels)
        with Transaction(self) as transaction:
            reshaped = bool(self._labels) and 0 in first_rows.values()
            n = None if first_rows else rows.n
            learner = self._grown(columns, transaction, n, regression=False, reshaped=reshaped)
            if isinstance(self.class_weight, str):
                weights, self._class_counts = balanced_weights(
                    self._class_counts, labels, weights, stream=True
                )
            elif self.class_weight is not None:
                weights = given_weights(self.class_weight, labels, weights)
            start = 0
            for (
                label,
                row,
            ) in first_rows.items():  # the rows before are learnt by a model that does not know it
                self._run(learner, rows, labels, weights, start, row)
                self._admit(learner, label)
                start = row
            self._run(learner, rows, labels, weights, start, rows.n)

    def _run(
        self, learner: Learner, rows: Any, labels: list[Any], weights: Array | None, start: int, stop: int
    ) -> None:
        """Learn rows whose labels are all known."""
        if start == stop:
            return
        if stop - start < rows.n:
            rows, labels = rows.part(start, stop), labels[start:stop]
            weights = None if weights is None else weights[start:stop]
        try:
            learner.run(rows, np.array([self._target_of[label] for label in labels]), weights)
        except (CapacityError, ScoreOverflowError) as error:
            raise error.moved(start) from None

    def _admit(self, learner: Learner, label: Any) -> None:
        if isinstance(label, (np.bool_, np.number, np.str_)):
            label = label.item()
        place = bisect_left(self._labels, label)
        add_class(learner, len(self._labels), place)
        self._labels = [*self._labels[:place], label, *self._labels[place:]]
        targets = targets_of(np.arange(len(self._labels)), len(self._labels)).tolist()
        self._target_of = dict(zip(self._labels, targets, strict=True))

    def _need_probabilities(self) -> None:
        if not self._link:
            raise NotImplementedError(
                "probabilities need a learner with the logistic loss, such as NOGD(loss='logistic')"
            )

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {}
        yield {"learner": NOGD(budget=20, loss="logistic")}
        yield {"learner": BOGD(budget=20)}


class _EncodedColumns(dict[Hashable, int]):
    """As many columns as an encoder has features, and the encoder."""

    def __init__(self, encoder: TableEncoder) -> None:
        super().__init__((place, place) for place in range(encoder.width))
        self.encoder = encoder


def _widened(X: Any, width: int) -> Any:
    """Encoded rows with as many features as a learner has, the last ones 0."""
    sparse = csr_array(X)
    return as_rows(csr_array((sparse.data, sparse.indices, sparse.indptr), shape=(sparse.shape[0], width)))


def _dict_row(x: Row, columns: Columns, width: int) -> Any:
    """A dict as a row of so many features; ``KeyError`` if a feature has no column."""
    places = [columns[feature] for feature in x]
    try:
        values = np.array(list(x.values()))
    except ValueError:  # a value is itself a sequence
        values = np.empty(0, object)
    if values.dtype.kind not in "fiub" or values.ndim != 1:
        values = np.array([_number(v, f"feature {f!r}", of_row=True) for f, v in x.items()], np.float64)
    if width > WIDEST_DENSE:
        order = np.argsort(places)
        at, starts = np.array(places, np.int32)[order], np.array([0, len(order)])
        rows = core.Rows64.csr(values.astype(np.float64)[order], at, starts, width)
    else:
        array = np.zeros((1, width))
        array[0, places] = values
        rows = core.Rows64.dense(array)
    if rows.first_not_finite() is not None:
        for feature, value in x.items():
            _number(value, f"feature {feature!r}", of_row=True)
    return rows


def _frame_values(X: pd.DataFrame) -> Array:
    """The numbers of a frame; what is no finite number is refused."""
    values = np.empty(X.shape)
    for place, (feature, column) in enumerate(X.items()):
        if getattr(column.dtype, "kind", "O") in "fiub":
            values[:, place] = column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            for row, value in enumerate(column):
                values[row, place] = _number(value, f"feature {feature!r} of row {row}", of_row=True)
    for row, place in np.argwhere(~np.isfinite(values))[:1]:
        _number(values[row, place], f"feature {X.columns[place]!r} of row {row}", of_row=True)
    return values


def _number(value: Any, name: str, *, of_row: bool = False) -> float:
    """The value as a finite number; else an error that says what to do.

    >>> _number("red", "feature 'colour'", of_row=True)
    Traceback (most recent call last):
    ...
    TypeError: feature 'colour' is 'red', not a number: encode it first, for example with OneHotEncoder()
    >>> _number(float("nan"), "feature 'age'", of_row=True)
    Traceback (most recent call last):
    ...
    ValueError: feature 'age' is nan, not finite: leave it out (a missing feature is 0) or impute it first
    """
    if value is not None and not isinstance(value, (Real, Decimal, np.bool_)):
        advice = ": encode it first, for example with OneHotEncoder()" if of_row else ""
        raise TypeError(f"{name} is {value!r}, not a number{advice}")
    try:
        number = math.nan if value is None else float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        advice = ": leave it out (a missing feature is 0) or impute it first" if of_row else ""
        raise ValueError(f"{name} is {value}, not finite{advice}")
    return number


def _is_zero(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 0


def _ordered(features: list[Hashable]) -> list[Hashable]:
    """Sorted; features of types that cannot be compared, by type and appearance.

    >>> _ordered(["b", 2, "a", 1])
    [1, 2, 'a', 'b']
    """
    try:
        return sorted(features)  # type: ignore[type-var]
    except TypeError:
        return sorted(features, key=lambda feature: (type(feature).__name__, repr(feature)))


def _check_labels(new: Iterable[Any], known: list[Any]) -> None:
    """Refuse labels that say nothing, and those that have no place among the others."""
    for label in new:
        try:
            missing = label is None or bool(label != label)
        except TypeError:  # pandas' NA is neither equal nor unequal to anything
            missing = True
        if missing:
            raise ValueError(f"the label is {label!r}: only rows with a label can be learnt")
    try:
        sorted([*known, *new])
    except TypeError as error:
        raise TypeError(f"labels must be of types that can be sorted, got {[*known, *new]!r}") from error


def _weights(w: Any, n: int) -> Array | None:
    """Weights of n rows from one number or one for each; None if all are 1."""
    if isinstance(w, (int, float)) and w == 1:
        return None
    weights = np.array(np.broadcast_to(np.asarray(w, np.float64), n))
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(f"w must be finite and at least 0, got {w}")
    return weights


def _same_length(rows: Any, y: Any) -> None:
    if len(y) != rows.n:
        raise ValueError(f"X has {rows.n} rows and y has {len(y)} entries: each row needs one")
