"""What both estimators share: checks of rows and weights, columns, scales, the learner's life, and what is told of it."""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kernelstream.errors import CapacityError, ScoreOverflowError
from kernelstream.explanations import Event, Neighbours
from kernelstream.learners import Learner, NewtonMixture, registered
from kernelstream.parameters import DefaultParts
from kernelstream.rows import as_arrays, as_rows, check_finite, checked_rows
from kernelstream.scaling import Scale, Scaler
from kernelstream.tables.encoder import TableEncoder
from kernelstream.tabular import as_encoder, is_features
from kernelstream.transaction import Transaction
from kernelstream.validate import check_integer

__all__ = [
    "LARGEST",
    "KernelEstimator",
    "as_learner",
    "default_learner",
    "dtype_of",
    "named",
    "one_dimension",
    "started_copy",
    "taken",
    "taken_weights",
]

Array = NDArray[Any]

#: The largest number that each precision holds.
LARGEST = {kind: float(np.finfo(kind).max) for kind in (np.float32, np.float64)}
_PRECISIONS = (np.dtype(np.float64), np.dtype(np.float32))


class KernelEstimator(DefaultParts):
    """What both estimators share: input checks, and the learner's life."""

    learner: Learner | str | None
    shuffle: bool
    random_state: Any
    scale: Scale
    columns: Any
    learner_: Learner
    scaler_: Scaler
    encoder_: TableEncoder
    n_features_in_: int

    #: Passes over the rows: each is learnt once.
    n_iter_ = 1

    def __init__(
        self,
        learner: Learner | str | None = None,
        *,
        shuffle: bool = True,
        random_state: Any = 0,
        scale: Scale = False,
        columns: Any = None,
    ) -> None:
        self.learner = learner
        self.shuffle = shuffle
        self.random_state = random_state
        self.scale = scale
        self.columns = columns

    def _default_part(self, name: str) -> BaseEstimator | None:
        if name != "learner" or not isinstance(self.learner, str | None):
            return None
        try:
            return as_learner(self.learner)
        except ValueError:  # an unknown name: told when it is fitted
            return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @property
    def nbytes_(self) -> int:
        """Bytes of model state; constant once the learner's budget is full."""
        self._need_fitted()
        parts = [self.__dict__.get(name) for name in ("learner_", "scaler_", "_calibration")]
        return sum(part.nbytes for part in parts if part is not None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trained model to a file, whole or not at all; ``kernelstream.load`` reads it."""
        from kernelstream.persistence import save

        save(self, path)

    @property
    def events_(self) -> list[Event]:
        """The drift log: the last times that the default learner rebuilt a memory because of a change, the oldest first.

        Other learners rebuild nothing, and have an empty log.
        """
        self._need_fitted()
        return list(getattr(self.learner_, "events", []))

    @property
    def relevances_(self) -> Array:
        """How much each feature counts in the local memory's distances, at most 1, by column (see ``feature_names_in_``)."""
        self._need_fitted()
        relevances = getattr(self.learner_, "relevances", None)
        if relevances is None:
            raise AttributeError(self._no_local_memory("relevances_"))
        return np.asarray(relevances)

    def neighbours(self, X: Any, k: int = 5) -> Neighbours:
        """For each row the rows kept that decided: which they are, how far, their weights and targets; nothing is learnt.

        Args:
            X: rows.
            k: how many to tell, the nearest first; the default learner looks at 24 in all.

        >>> from kernelstream import KernelClassifier
        >>> model = KernelClassifier().fit([[0.0], [1.0], [2.0], [3.0]] * 10, ["low", "low", "high", "high"] * 10)
        >>> near = model.neighbours([[3.1]], k=2)
        >>> near.targets.tolist(), (near.rows % 4).tolist()
        ([['high', 'high']], [[3, 3]])
        """
        self._need_fitted()
        find = getattr(self.learner_, "neighbours", None)
        k = check_integer("k", k, low=1)
        near: Neighbours | None = find(self._rows_to_score(X), k) if find else None
        if near is None:
            raise AttributeError(self._no_local_memory("neighbours"))
        found = near.rows >= 0
        return near._replace(rows=self._places(near.rows), targets=self._told_targets(near.targets, found))

    def _no_local_memory(self, what: str) -> str:
        return (
            f"{what} needs a local memory, which only the default learner has (unless memory=0, or rows have more than "
            f"3 budget features), and {self.learner_!r} on {self.n_features_in_} features has none"
        )

    def _places(self, rounds: Array) -> Array:
        """Places in ``X`` of the rows that ``fit`` learnt in these rounds; later rounds count on."""
        n, seed = self.__dict__.get("_shuffled", (0, 0))
        fitted = (rounds >= 0) & (rounds < n)
        if not fitted.any():
            return rounds
        order = np.random.RandomState(seed).permutation(n)
        return np.where(fitted, order[np.where(fitted, rounds, 0)], rounds)

    def _told_targets(self, targets: Array, found: Array) -> Array:
        return np.where(found, targets, np.nan)

    def widen(self, width: int) -> None:
        """Accept rows of more features; those seen before keep their columns, the new ones were always zero."""
        self._need_fitted()
        width = check_integer("width", width, low=0)
        if width > self.n_features_in_:
            if hasattr(self, "feature_names_in_"):
                raise ValueError("a model that knows its features by name has no place for more of them")
            with Transaction(self) as transaction:
                self._widen(width, transaction)

    def _widen(self, width: int, transaction: Transaction) -> None:
        transaction.keep(self.learner_)
        self.learner_.widen(width)
        if "scaler_" in self.__dict__:
            self.scaler_ = self.scaler_.widened(width)
        self.n_features_in_ = width

    def set_columns(self, description: dict[str, Any] | None) -> None:
        """Let a model that learnt features know the columns that they came from; None: forget them.

        Args:
            description: `Source.encoding` of what was learnt, or `TableEncoder.description`.
        """
        self._need_fitted()
        if description is None:
            self.columns = None
            self.__dict__.pop("encoder_", None)
            return
        encoder = TableEncoder.from_description(description)
        if encoder.width < self.n_features_in_:
            raise ValueError(f"the columns have {encoder.width} features, the model {self.n_features_in_}")
        self.widen(encoder.width)
        self.columns, self.encoder_ = "auto", encoder

    def set_quantities(self, quantities: Array | None) -> None:
        """Say which features are quantities, for ``scale``, where a source made them of columns; before they are learnt.

        Args:
            quantities: true or false for each feature, `Source.quantities`; None: all of them are.
        """
        self._quantities = quantities

    def _need_fitted(self) -> None:
        if (
            "learner_" not in self.__dict__
        ):  # scikit-learn's own test takes as long as many learners need per row
            check_is_fitted(self, "learner_")

    def _rows(self, X: Any, *, reset: bool, transaction: Transaction | None = None) -> Any:
        """Checked rows of X; a new model (``reset``) takes X's precision, a model at work keeps its own.

        ``transaction``: the rows are to be learnt, and a model that knows its columns may grow by new features.
        """
        if self.columns is not None or "encoder_" in self.__dict__:
            X = self._features(X, reset, transaction)
        if reset:
            return checked_rows(self, X, reset=True)
        dtype = self.learner_.dtype
        if (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype in _PRECISIONS
            and X.shape[1] == self.n_features_in_
            and "feature_names_in_" not in self.__dict__
        ):  # an array that scikit-learn would accept as it is, without a word
            rows = as_rows(X, dtype)
            check_finite(rows)
            return rows
        return checked_rows(self, X, reset=False, dtype=dtype)

    def _features(self, X: Any, reset: bool, transaction: Transaction | None) -> Any:
        """The features of a table's rows; those known before, unless they are to be learnt."""
        if reset:
            self.encoder_, X = as_encoder(self.columns).learnt(X)
        elif "encoder_" not in self.__dict__ or is_features(X, self.encoder_):
            return X
        elif transaction is None:
            return self.encoder_.encoded(X)
        else:
            self.encoder_, X = self.encoder_.learnt(X)
            if X.shape[1] > self.n_features_in_:
                self._widen(X.shape[1], transaction)
        return X

    def _rows_to_score(self, X: Any) -> Any:
        """Checked rows of X as the learner sees them; nothing is learnt."""
        self._need_fitted()
        rows = self._rows(X, reset=False)
        return self.scaler_.apply(rows) if "scaler_" in self.__dict__ else rows

    def _rows_to_learn(self, rows: Any, weights: Array | None) -> Any:
        """Checked rows as the learner sees them; their scales are learnt."""
        if "scaler_" not in self.__dict__:
            return rows
        encoder = self.__dict__.get("encoder_")
        told = self.__dict__.get("_quantities") if encoder is None else encoder.features_.quantities
        scaler = self.scaler_ if told is None else self.scaler_.told(told)
        scaled, self.scaler_ = scaler.learn(rows, weights)
        return scaled

    def _score(self, X: Any) -> Array:
        rows = self._rows_to_score(X)
        return self.learner_.score(rows)

    def _start(self, rows: Any, outputs: int, *, regression: bool) -> None:
        if self.scale not in (True, False, "auto"):
            raise ValueError(f"scale must be True, False or 'auto', got {self.scale!r}")
        learner = as_learner(self.learner)
        self.learner_ = started_copy(
            learner, rows.width, outputs, regression=regression, dtype=dtype_of(rows)
        )
        self.__dict__.pop("scaler_", None)
        if self.scale is not False and not (self.scale == "auto" and learner.scales_itself):
            self.scaler_ = Scaler.new(rows)

    def _order(self, n: int, weights: Array | None) -> Array | None:
        """The order in which ``fit`` learns n rows; None: as they come. Rows of weight 0 are left out."""
        if not isinstance(self.shuffle, bool | np.bool_):
            raise ValueError(f"shuffle must be True or False, got {self.shuffle!r}")
        some = np.flatnonzero(weights) if weights is not None and not weights.all() else None
        if not self.shuffle:
            return some
        generator, n = check_random_state(self.random_state), n if some is None else len(some)
        whole = isinstance(self.random_state, numbers.Integral)
        seed = self.random_state if whole else generator.randint(2**31)
        self._shuffled = (n, int(seed))  # from which the order can be made again
        order = np.random.RandomState(seed).permutation(n)
        return order if some is None else some[order]

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
        dtype = dtype_of(rows)
        bad = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST[dtype])))
        if len(bad):
            raise ValueError(
                f"sample_weight is {weights[bad[0]]} at row {bad[0]}: a weight must be finite (in {dtype.__name__}) "
                "and not negative"
            )
        if some and not weights.any():
            raise ValueError("all sample weights are zero: there is nothing to fit")
        return weights

    def _new_rows(self, X: Any) -> Any:
        """Checked rows that a new model is to be fitted to."""
        rows = self._rows(X, reset=True)
        if rows.n == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required to fit.")
        return rows

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


def as_learner(learner: Learner | str | None) -> Learner:
    """The learner that was given: itself, one of this name with its default parameters, or the default.

    >>> as_learner("bogd"), as_learner(None)
    (BOGD(), NewtonMixture())
    """
    if learner is None:
        return default_learner()
    if isinstance(learner, str):
        for plugins in (
            False,
            True,
        ):  # those of other packages are imported only if ours have none of that name
            for name, kind in registered(plugins=plugins).items():
                if name.casefold() == learner.casefold():
                    return kind()
        raise ValueError(f"unknown learner {learner!r}; known are {', '.join(sorted(registered()))}")
    if not isinstance(learner, Learner):
        raise TypeError(
            f"learner must be a kernelstream learner such as NOGD(), or the name of one, got {learner!r}"
        )
    return learner


def started_copy(
    learner: Learner | str | None, width: int, outputs: int, *, regression: bool, dtype: Any = np.float64
) -> Learner:
    """A copy of the learner (None: the default one; or a name), ready for rows.

    >>> started_copy(None, 3, 1, regression=True).width
    3
    """
    copy: Learner = clone(as_learner(learner))
    return copy.start(width, outputs, regression=regression, dtype=dtype)


def taken(rows: Any, order: Array) -> Any:
    """The rows in another order."""
    return as_rows(as_arrays(rows)[order])


def taken_weights(weights: Array | None, order: Array) -> Array | None:
    """Weights in an order."""
    return None if weights is None else weights[order]


def named(order: Array | None, run: Callable[[], object]) -> None:
    """Run; an error that names a row names it by its place in what the caller gave."""
    try:
        run()
    except (CapacityError, ScoreOverflowError) as error:
        raise error if order is None else error.moved(int(order[error.row]) - error.row) from None


def one_dimension(y: Any) -> Array | None:
    """A list or an array of one dimension as an array, without scikit-learn's checks; None if it needs them."""
    if type(y) is list:
        try:
            y = np.array(y)
        except ValueError:  # lists of different lengths: scikit-learn has words for it
            return None
    return y if type(y) is np.ndarray and y.ndim == 1 else None


def dtype_of(rows: Any) -> type[np.float32] | type[np.float64]:
    """The precision of rows, and so of the model that learns them."""
    return np.float32 if type(rows).__name__ == "Rows32" else np.float64
