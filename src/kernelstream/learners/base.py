"""The contract of a learner: hyper-parameters, a state of named arrays, scores of rows, learning row by row.

A learner sees rows and numbers only. Targets are -1 / +1 (two classes), real numbers (regression) or class indices (three or
more classes, one output per class); labels and checks of the input are the estimators' part. docs/writing-a-learner.md
explains a complete learner line by line, and ``kernelstream.testing.check_learner`` checks one.
"""

from __future__ import annotations

import copy
import functools
import numbers
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from kernelstream.errors import MergeError, ScoreOverflowError
from kernelstream.kernels import as_kernel
from kernelstream.parameters import DefaultParts
from kernelstream.rows import as_arrays, as_rows

__all__ = ["Array", "Learner", "Mix", "State", "state_error"]

Array = NDArray[Any]
State = dict[str, Array]

#: Hyper-parameters that say how many points or features a state can hold.
_SIZES = ("budget", "max_size", "n_components", "sketch_size", "samples", "capacity", "rank", "blocks")
#: Values that nothing can change, so that a snapshot need not copy them.
_CONSTANT = (str, bytes, numbers.Number, np.dtype, type, type(None))


@functools.cache
def _parameters(learner: type[Learner]) -> frozenset[str]:
    """The names of its parameters: scikit-learn looks at the signature each time, which takes as long as many rows."""
    return frozenset(learner._get_param_names())


class Mix(NamedTuple):
    """How outputs become others when a class appears: new output c is ``factors[c]`` times old output ``sources[c]``.

    A factor of 0: no old output says anything about this one. So many numbers per class, not per pair of classes.

    >>> Mix(np.array([0, 0, 0]), np.array([-1.0, 0.0, 1.0])).of(np.array([[2.0]])).tolist()
    [[-2.0, 0.0, 2.0]]
    """

    sources: Array
    factors: Array

    @property
    def new(self) -> Array:
        """Which outputs come from no old one."""
        return np.asarray(self.factors == 0)

    def of(self, columns: Array) -> Array:
        """The new outputs, along the last axis."""
        mixed = np.take(columns, self.sources, axis=-1)
        mixed *= self.factors
        return mixed


class Learner(DefaultParts, ABC):
    """Base of all learners; a learner provides ``initial_arrays``, ``score_rows`` and ``learn_row`` (or ``learn_rows``).

    Its constructor has keywords with defaults and stores each under its own name, as scikit-learn wants it. Everything that it
    learns is in ``self.arrays``, so that copies, pickles, model files, new features and new classes need no code of its own.
    Rows are given as a C-contiguous array or a ``scipy.sparse.csr_array``, of the precision ``self.dtype``, read only.

    >>> class Mean(Learner):
    ...     def initial_arrays(self):
    ...         return {"sums": np.zeros(self.outputs), "count": np.zeros(1)}
    ...
    ...     def score_rows(self, X):
    ...         return np.tile(self.arrays["sums"] / max(1.0, self.arrays["count"][0]), (X.shape[0], 1))
    ...
    ...     def learn_row(self, x, target, weight, score):
    ...         self.arrays["sums"] += weight * self.column_targets(target)
    ...         self.arrays["count"] += weight
    >>> from kernelstream import KernelRegressor
    >>> KernelRegressor(Mean()).fit([[0.0], [1.0]], [4.0, 6.0]).predict([[0.5]]).tolist()
    [5.0]
    """

    #: What the learner can do, and whether its memory has a bound.
    classification: ClassVar[bool] = True
    regression: ClassVar[bool] = True
    multiclass: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    #: Share of the score that each of two columns gets when a third class appears: 1 for one-vs-rest, 1/2 for margins.
    pair_share: ClassVar[float] = 1.0
    #: Whether features may have any scale: the learner brings them to a common one itself.
    scales_itself: ClassVar[bool] = False
    #: How scores become probabilities: "softmax", "logistic", or None if the learner's loss decides (the logistic one does).
    link: ClassVar[str | None] = None
    #: Axis of the features, and of the outputs, in each array that has one; None: seen from ``initial_arrays``.
    feature_axes: ClassVar[dict[str, int] | None] = None
    output_axes: ClassVar[dict[str, int] | None] = None
    #: Names of the arrays in which scores are linear: a new class mixes their outputs. In other arrays with an axis of outputs
    #: a class keeps its column, and a new one gets that of an untrained model.
    linear_arrays: ClassVar[tuple[str, ...]] = ("weights",)
    #: Names of the arrays that hold targets: a new class changes their code.
    target_arrays: ClassVar[tuple[str, ...]] = ()
    #: Whether there are arrays of the size budget x budget from the start.
    quadratic: ClassVar[bool] = False
    #: What merging models keeps of one pass over all rows, in a sentence; empty if they cannot be merged, and then why.
    merge_guarantee: ClassVar[str] = ""
    merge_refusal: ClassVar[str] = "nobody has said how"
    #: Names of the arrays that are averaged by rows when models are merged; all others must be those of the base.
    averaged_arrays: ClassVar[tuple[str, ...]] = ()

    #: The state: what ``initial_arrays`` returned, changed by learning.
    arrays: State
    _width: int
    _outputs: int
    _regression: bool
    _dtype: np.dtype[Any]

    # ---- what a learner provides ----

    @abstractmethod
    def initial_arrays(self) -> State:
        """The arrays of an untrained model for ``self.width``, ``self.outputs``, ``self.is_regression`` and ``self.dtype``.

        An axis of length 0 may grow later; all others keep their length, and every array its type.
        """

    @abstractmethod
    def score_rows(self, X: Any) -> Array:
        """Scores of the rows of ``X``, ``(n, outputs)``; changes nothing."""

    def learn_row(self, x: Any, target: float, weight: float, score: Array) -> None:
        """Learn one row ``x``, of shape ``(1, width)``, with its target and its weight (above 0).

        ``score`` is the row's score before, of shape ``(outputs,)``. A row whose step leaves an array that is not finite is
        refused, and undone.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method learn_row, or learn_rows")

    def learn_rows(self, X: Any, targets: Array, weights: Any, scores: Array) -> None:
        """Predict then learn each row in order; writes the score before each into ``scores``, ``(n, outputs)``.

        This default calls ``score_rows`` and ``learn_row``. A learner in need of speed has its own, in which a row of
        weight 0 is scored but not learnt, and which raises ``self.overflow(row)`` before a step that would not be finite.
        """
        for i in range(X.shape[0]):
            x = X[i : i + 1]
            scores[i] = self.score_rows(x)[0]
            if not np.isfinite(scores[i]).all():
                raise self.overflow(i)
            if weights[i] > 0:
                before = {name: array.copy() for name, array in self.arrays.items()}
                try:
                    self.learn_row(x, float(targets[i]), float(weights[i]), scores[i])
                except BaseException:
                    self.arrays = before
                    raise
                if not all(np.isfinite(a).all() for a in self.arrays.values() if a.dtype.kind in "fc"):
                    self.arrays = before
                    raise self.overflow(i)

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range; called at the start."""

    def upgrade_state(self, state: State) -> State:
        """The state of an older version as one of today; what is one of today stays as it is."""
        return state

    def needs(self, width: int, outputs: int) -> int:
        """About how many bytes an untrained model takes, computed without making one: a small file can ask for a huge one.

        By default from the hyper-parameters with the names of sizes, such as ``budget`` and ``max_size``.
        """
        given = self.get_params(deep=False)
        sizes = [int(given[key]) for key in _SIZES if given.get(key) is not None] if self.bounded else [64]
        if self.quadratic:
            sizes.append(max(sizes, default=0) ** 2 // max(1, width))
        return 8 * (width * outputs + sum(size * (width + outputs + 8) for size in sizes))

    def hold(self) -> None:
        """Keep from now on what models to be merged must have in common: a map, a dictionary, a scaling."""

    def delta_since(self, base: State, rows: int, task: str) -> State:
        """What has been learnt since ``base``, the state before these rows (``learners/delta.py``); ``task`` names this part."""
        if not self.averaged_arrays:
            raise MergeError(f"models of {type(self).__name__} cannot be merged: {self.merge_refusal}")
        state = self.state()
        self.check_common(base, state, set(self.averaged_arrays))
        sums = {
            f"sum/{name}": rows * (state[name] - base[name]).astype(np.float64)
            for name in self.averaged_arrays
        }
        return {"sum/rows": np.array([float(rows)])} | sums

    def add_delta(self, delta: State) -> None:
        """Take over what others have learnt since the state that this learner has; several deltas are put together before."""
        state, rows = self.state(), max(1.0, float(delta["sum/rows"][0]))
        for name in self.averaged_arrays:
            state[name] = (state[name] + delta[f"sum/{name}"] / rows).astype(state[name].dtype)
        self.restore(state)

    def check_common(self, base: State, state: State, apart: set[str]) -> None:
        """Raise ``MergeError`` unless the two states agree in all arrays but those named."""
        for name in sorted((base.keys() | state.keys()) - apart):
            if name not in base or name not in state or not np.array_equal(base[name], state[name]):
                raise MergeError(
                    f"models of {type(self).__name__} can be merged while they share all but {', '.join(sorted(apart))}, and "
                    f"{name!r} has changed since the base: let the base learn more rows first, or go on from its `branch`"
                )

    # ---- what all share ----

    def _default_part(self, name: str) -> BaseEstimator | None:
        return as_kernel(None) if name == "kernel" and self.__dict__.get(name) is None else None

    @property
    def started(self) -> bool:
        """Whether ``start`` has been called."""
        return hasattr(self, "_width")

    @property
    def width(self) -> int:
        """Number of features."""
        return self._width

    @property
    def outputs(self) -> int:
        """Number of score columns: 1 for two classes and regression, else one per class."""
        return self._outputs

    @property
    def is_regression(self) -> bool:
        """Whether the targets are real numbers."""
        return self._regression

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of state and arithmetic."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Bytes of model state."""
        return sum(array.nbytes for array in self.arrays.values())

    def column_targets(self, target: float) -> Array:
        """The target of each output: as given if there is one, else +1 for the class and -1 for the others."""
        if self._outputs == 1:
            return np.array([target])
        columns = np.full(self._outputs, -1.0)
        columns[int(target)] = 1.0
        return columns

    @staticmethod
    def overflow(row: int) -> ScoreOverflowError:
        """The error for a row whose score, or the step from it, is not finite."""
        return ScoreOverflowError(
            "the score of row {row}, or the step from it, is not finite: scale the inputs and targets (StandardScaler) "
            "or lower the step size",
            row,
        )

    def start(
        self, width: int, outputs: int = 1, *, regression: bool = False, dtype: Any = np.float64
    ) -> Self:
        """Forget everything and get ready for rows of ``width`` features."""
        self.check()
        name = type(self).__name__
        if regression and not self.regression:
            raise ValueError(
                f"{name} is a classifier and cannot do regression; NOGD, FOGD, BOGD, KOGD or KernelPA can"
            )
        if not regression and not self.classification:
            raise ValueError(f"{name} does regression only")
        self._check_outputs(outputs)
        self._width, self._outputs, self._regression = int(width), int(outputs), bool(regression)
        self._dtype = np.dtype(dtype)
        self._build()
        return self

    def _check_outputs(self, outputs: int) -> None:
        if outputs > 1 and not self.multiclass:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass. "
                f"{type(self).__name__} is for two classes or regression; for {outputs} classes wrap the classifier in "
                "scikit-learn's OneVsRestClassifier, or use KRLS or NOGD"
            )

    def score(self, rows: Any) -> Array:
        """Scores of the rows, ``(n, outputs)``; nothing is learnt."""
        with np.errstate(all="ignore"):  # what is not finite is refused below
            scores = self.score_rows(self._given(as_rows(rows, self._dtype)))
        if not np.isfinite(scores).all():
            raise self.overflow(int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0]))
        return scores

    def run(self, rows: Any, targets: Array, sample_weight: Array | None = None) -> Array:
        """Predict then learn, row by row; the scores made before each row was learnt."""
        rows = as_rows(rows, self._dtype)
        scores = np.zeros((rows.n, self._outputs))
        self._run(rows, np.ascontiguousarray(targets, np.float64), sample_weight, scores)
        return scores

    def learn_set(self, rows: Any, targets: Array, sample_weight: Array | None = None) -> Array:
        """Learn rows of a data set, whose order means nothing; nothing was learnt before. Most learners do as in ``run``."""
        return Learner.run(self, rows, targets, sample_weight)

    def score_with_scales(self, rows: Any) -> tuple[Array, Array | None]:
        """Scores, and in a regression how far each target may be, up to a factor; None: equally far everywhere."""
        return self.score(rows), None

    def take_scales(self) -> Array | None:
        """The scales, as above, of the rows of the last run, before each was learnt; they are given once."""
        return None

    def state(self) -> State:
        """Everything learnt, as arrays; ``restore`` takes it back."""
        return {"shape": self._shape()} | self._arrays()

    def _shape(self) -> Array:
        return np.array([self._width, self._outputs, self._regression, self._dtype.itemsize], np.int64)

    def restore(self, state: State) -> Self:
        """Take over a state of a learner with the same hyper-parameters; one that does not fit changes nothing."""
        before = dict(self.__dict__)
        if "shape" not in state:
            raise ValueError("not a learner's state: it has no array 'shape'")
        try:
            state = self.upgrade_state(state)
            width, outputs, regression, itemsize = (int(v) for v in state["shape"])
            self.start(
                width, outputs, regression=bool(regression), dtype=np.float32 if itemsize == 4 else np.float64
            )
            self._load({name: array for name, array in state.items() if name != "shape"})
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def snapshot(self) -> dict[str, Any]:
        """Everything that learning may change, kept in memory; ``rollback`` takes it back, once."""
        copies = {
            id(self.__dict__[name]): self.__dict__[name]
            for name in _parameters(type(self)) & self.__dict__.keys()
        }
        kept: dict[str, Any] = {}
        for name, value in self.__dict__.items():
            if not isinstance(value, _CONSTANT) and id(value) not in copies:
                copies[id(value)] = self._copied(value, copies)
            kept[name] = copies.get(id(value), value)
        return kept

    def _copied(self, value: Any, copies: dict[int, Any]) -> Any:
        """A copy of a part of the state; ``copies`` has what is copied already, or need not be, by its id."""
        return value.copy() if isinstance(value, np.ndarray) else copy.deepcopy(value, copies)

    def rollback(self, snapshot: dict[str, Any]) -> None:
        """Undo everything since the snapshot was taken."""
        self.__dict__ = snapshot

    def widen(self, width: int) -> None:
        """Accept more features; those seen before keep their columns, the new ones were always zero."""
        state, fresh = self.state(), self._fresh(width, self._outputs)
        for name, axis in self._axes(self.feature_axes, 1, 0).items():
            if name in state:
                old = state[name]
                shape = list(old.shape)
                shape[axis] = width
                like_new = fresh.get(name)
                same = like_new is not None and list(like_new.shape) == shape
                wide = like_new.copy() if like_new is not None and same else np.zeros(shape, old.dtype)
                wide[(slice(None),) * (axis % old.ndim) + (slice(0, self._width),)] = old
                state[name] = wide
        state["shape"][0] = width
        self.restore(state)

    def mix_outputs(self, mix: Mix, recode: Callable[[Array], Array]) -> None:
        """Replace the outputs by others; ``recode`` turns old targets into new ones."""
        state, fresh = self.state(), self._fresh(self._width, len(mix.sources))
        for name, axis in self._axes(self.output_axes, 0, 1).items():
            if name in state:
                columns = np.moveaxis(state[name], axis, -1)
                if name in self.linear_arrays:
                    mixed = mix.of(columns)
                else:
                    mixed = columns[..., mix.sources]
                    mixed[..., mix.new] = np.moveaxis(fresh[name], axis, -1)[..., mix.new]
                state[name] = np.ascontiguousarray(np.moveaxis(mixed, -1, axis))
        for name in self.target_arrays:
            if name in state:
                state[name] = recode(state[name])
        self._mix_more(state, mix)
        state["shape"][1] = len(mix.sources)
        self.restore(state)

    def _mix_more(self, state: State, mix: Mix) -> None:
        """Change what else in the state belongs to an output, for a learner whose arrays are not by columns."""

    # ---- how rows and the state reach the methods above; the learners of the compiled core have their own way ----

    def _build(self) -> None:
        """Make an untrained state for the current width, outputs, task and precision."""
        self.arrays = {name: np.array(array) for name, array in self.initial_arrays().items()}

    def _given(self, rows: Any) -> Any:
        """Rows of the core in the form that ``score_rows`` and ``learn_rows`` want."""
        if rows.width != self._width:
            raise ValueError(f"rows have {rows.width} columns, the model {self._width}")
        return as_arrays(rows)

    def _run(self, rows: Any, targets: Array, sample_weight: Array | None, scores: Array) -> None:
        if targets.shape != (rows.n,) or (sample_weight is not None and sample_weight.shape != (rows.n,)):
            raise ValueError("targets and weights must have one entry per row")
        if self._outputs > 1 and not ((targets >= 0) & (targets < self._outputs)).all():
            raise ValueError("class index out of range")
        weights = np.ones(rows.n) if sample_weight is None else sample_weight
        with np.errstate(all="ignore"):
            self.learn_rows(self._given(rows), targets, weights, scores)

    def _arrays(self) -> State:
        """The trained state as new arrays."""
        return {name: np.array(array) for name, array in self.arrays.items()}

    def _load(self, arrays: State) -> None:
        """Fill the state just built."""
        if arrays.keys() != self.arrays.keys():
            raise state_error()
        for name, array in arrays.items():
            made = self.arrays[name]
            fits = all(m in (n, 0) for n, m in zip(array.shape, made.shape, strict=False))
            if array.ndim != made.ndim or array.dtype != made.dtype or not fits:
                raise state_error()
            self.arrays[name] = np.array(array)

    def _fresh(self, width: int, outputs: int) -> State:
        """The arrays of an untrained model of this size."""
        before = self._width, self._outputs
        self._width, self._outputs = width, outputs
        try:
            return self.initial_arrays()
        finally:
            self._width, self._outputs = before

    def _axes(self, declared: dict[str, int] | None, wider: int, more: int) -> dict[str, int]:
        """The axes that grow with the width or the outputs: as declared, or seen from the shapes of fresh arrays."""
        if declared is not None:
            return declared
        small, large = (self._fresh(self._width + k * wider, self._outputs + k * more) for k in (0, 1))
        return {
            name: next(axis for axis in range(a.ndim) if a.shape[axis] != large[name].shape[axis])
            for name, a in small.items()
            if a.shape != large[name].shape
        }

    # ---- pickles ----

    def __getstate__(self) -> dict[str, Any]:
        """Parameters and, if started, the state's arrays: nothing else is pickled."""
        kept: dict[str, Any] = self.get_params(deep=False)
        return kept | {"_state": self.state()} if self.started else kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Undo ``__getstate__``."""
        state = kept.pop("_state", None)
        self.__dict__.update(kept)
        if state is not None:
            self.restore(state)


def state_error() -> ValueError:
    """What ``restore`` raises, as the core does.

    >>> raise state_error()
    Traceback (most recent call last):
    ...
    ValueError: the state does not fit this learner
    """
    return ValueError("the state does not fit this learner")
