"""What every learner is: hyper-parameters, fixed-size state, score, run, save and restore.

A learner sees rows and numbers only. Targets are -1 / +1 (two classes), real numbers (regression) or class indices (three or
more classes, one output column each); labels and input checks are the estimators' business.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from kernelstream._core import core
from kernelstream.errors import CapacityError, ScoreOverflowError
from kernelstream.kernels import Kernel, as_kernel, core_options
from kernelstream.losses import Loss, as_loss
from kernelstream.rows import as_rows
from kernelstream.validate import check_integer, check_number

__all__ = ["ExpansionLearner", "KernelLearner", "Learner"]

Array = NDArray[Any]
State = dict[str, Array]


class Learner(BaseEstimator):
    """Base of all learners. Hyper-parameters are the constructor's keywords and are checked there and again at the start."""

    classification: ClassVar[bool] = True
    regression: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    multiclass: ClassVar[bool] = True
    #: Share of the score that each of two columns gets when a third class appears: 1 for one-vs-rest, 1/2 for margins.
    pair_share: ClassVar[float] = 1.0
    #: How scores become probabilities: "softmax", or None if the learner's loss decides (the logistic one does).
    link: ClassVar[str | None] = None
    #: Arrays of the state with a feature axis and with an output axis.
    feature_axes: ClassVar[dict[str, int]] = {}
    output_axes: ClassVar[dict[str, int]] = {"weights": 1}

    _width: int
    _outputs: int
    _regression: bool
    _dtype: np.dtype[Any]

    # ---- what a learner provides ----

    @abstractmethod
    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""

    @abstractmethod
    def _build(self) -> None:
        """Allocate an untrained state for the current width, outputs, task and dtype."""

    @abstractmethod
    def _advance(self, rows: Any, targets: Array, sample_weight: Array | None, scores: Array) -> None:
        """Predict then learn all rows, writing the scores made before each was learnt."""

    @abstractmethod
    def _score(self, rows: Any) -> Array:
        """Scores of rows, ``(n, outputs)``."""

    @abstractmethod
    def _arrays(self) -> State:
        """The trained state as new arrays."""

    @abstractmethod
    def _load(self, arrays: State) -> None:
        """Fill the state just built."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of model state."""

    def upgrade_state(self, state: State) -> State:
        """The state of an older version as one of today; what is one of today stays as it is."""
        return state

    # ---- what all share ----

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
        """Number of score columns."""
        return self._outputs

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of state and arithmetic."""
        return self._dtype

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
        if outputs > 1 and not self.multiclass:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass. "
                f"{name} is for two classes or regression; for {outputs} classes wrap the classifier in "
                "scikit-learn's OneVsRestClassifier, or use KRLS or NOGD"
            )
        self._width, self._outputs, self._regression = int(width), int(outputs), bool(regression)
        self._dtype = np.dtype(dtype)
        self._build()
        return self

    def score(self, rows: Any) -> Array:
        """Scores of the rows, ``(n, outputs)``; nothing is learnt."""
        scores = self._score(rows)
        if not np.isfinite(scores).all():
            raise _overflow(int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0]))
        return scores

    def run(self, rows: Any, targets: Array, sample_weight: Array | None = None) -> Array:
        """Predict then learn, row by row; the scores made before each row was learnt."""
        scores = np.zeros((rows.n, self._outputs))
        self._advance(rows, np.ascontiguousarray(targets, np.float64), sample_weight, scores)
        return scores

    def state(self) -> State:
        """Everything learnt, as arrays; ``restore`` takes it back."""
        shape = np.array([self._width, self._outputs, self._regression, self._dtype.itemsize], np.int64)
        return {"shape": shape} | self._arrays()

    def restore(self, state: State) -> Self:
        """Take over a state of a learner with the same hyper-parameters; one that does not fit changes nothing."""
        before = dict(self.__dict__)
        if "shape" not in state:
            raise ValueError("not a learner's state: it has no array 'shape'")
        try:
            width, outputs, regression, itemsize = (int(v) for v in state["shape"])
            self.start(
                width, outputs, regression=bool(regression), dtype=np.float32 if itemsize == 4 else np.float64
            )
            self._load({name: array for name, array in state.items() if name != "shape"})
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def widen(self, width: int) -> None:
        """Accept more features; those seen before keep their columns, the new ones were always zero."""
        state = self.state()
        for name, axis in self.feature_axes.items():
            if name in state:
                pad = [(0, 0)] * state[name].ndim
                pad[axis] = (0, width - self._width)
                state[name] = np.pad(state[name], pad)
        state["shape"][0] = width
        self.restore(state)

    def mix_outputs(self, mix: Array, recode: Callable[[Array], Array]) -> None:
        """Replace the outputs f by ``f @ mix``; ``recode`` turns old targets into new ones."""
        state = self.state()
        for name, axis in self.output_axes.items():
            if name in state:
                mixed = np.moveaxis(
                    np.moveaxis(state[name], axis, -1) @ mix.astype(state[name].dtype), -1, axis
                )
                state[name] = np.ascontiguousarray(mixed)
        if "warmup_targets" in state:
            state["warmup_targets"] = recode(state["warmup_targets"])
        state["shape"][1] = mix.shape[1]
        self.restore(state)

    def _core_class(self, name: str) -> Any:
        return getattr(core, name + ("32" if self._dtype.itemsize == 4 else "64"))

    def _finished(self, ran: tuple[int, str], first: int = 0) -> int:
        """The row to go on with after a run of the core; raises if the core refused that row."""
        row, why = ran
        if why == "not finite":
            raise _overflow(first + row)
        return row

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


def _overflow(row: int) -> ScoreOverflowError:
    return ScoreOverflowError(
        "the score of row {row}, or the step from it, is not finite: scale the inputs and targets (StandardScaler) "
        "or lower the step size",
        row,
    )


class KernelLearner(Learner):
    """A learner with a kernel, whose open parameters (the median bandwidth) are set from the first examples.

    Until 128 examples have been learnt they are also kept; when 2, 4, 8, ... 128 of them are there, the bandwidth is set anew
    and the learner starts again from those kept. So there is a sensible model from the second row on, whatever the chunks.
    """

    feature_axes: ClassVar[dict[str, int]] = {"points": 1, "warmup_rows": 1}
    WARMUP = 128

    kernel: Any
    _settled: Any
    _kept: tuple[list[Array], list[float], list[float]] | None

    @property
    def kernel_(self) -> Any:
        """The kernel in use, its parameters set."""
        return self._settled

    @abstractmethod
    def _build_core(self) -> None:
        """Allocate an untrained state for the kernel ``self._settled``."""

    @abstractmethod
    def _run_core(self, rows: Any, targets: Array, weights: Array | None, scores: Array, first: int) -> None:
        """Predict then learn with the kernel ``self._settled``; ``first`` is the chunk's number of the first row."""

    def _build(self) -> None:
        kernel: Any = as_kernel(self.kernel)
        is_open = not self._given_settled()
        self._settled = type(kernel)(gamma=1 / max(1, self._width)) if is_open else kernel
        self._kept = ([], [], []) if is_open else None
        self._build_core()

    def _advance(self, rows: Any, targets: Array, sample_weight: Array | None, scores: Array) -> None:
        at = 0
        while self._kept is not None and at < rows.n:
            have = len(self._kept[0])
            due = min(max(2, 1 << have.bit_length()), self.WARMUP)
            weights = np.ones(rows.n) if sample_weight is None else sample_weight
            learnt = at + np.flatnonzero(weights[at:])[: due - have]
            stop = int(learnt[-1]) + 1 if len(learnt) == due - have else rows.n
            try:
                self._run_core(rows.part(at, stop), targets[at:stop], weights[at:stop], scores[at:stop], at)
            except (CapacityError, ScoreOverflowError) as error:
                self._keep(rows, targets, weights, learnt[learnt < error.row])
                raise
            self._keep(rows, targets, weights, learnt)
            if len(self._kept[0]) == due:
                self._settle_again()
            at = stop
        if at < rows.n:
            weights_left = None if sample_weight is None else sample_weight[at:]
            self._run_core(rows.part(at, rows.n), targets[at:], weights_left, scores[at:], at)

    def _settle(self, kept: Array, targets: Array) -> Kernel:
        """The kernel with its open parameters set from the first examples."""
        settled: Kernel = as_kernel(self.kernel).settle(kept)  # type: ignore[union-attr]
        return settled

    def _keep(self, rows: Any, targets: Array, weights: Array, learnt: Array) -> None:
        assert self._kept is not None
        for i in learnt:
            row = rows.part(int(i), int(i) + 1).array()[0]
            kept, kept_targets, kept_weights = self._kept
            kept.append(row)
            kept_targets.append(targets[i])
            kept_weights.append(weights[i])

    def _settle_again(self) -> None:
        assert self._kept is not None
        kept, targets, weights = (np.array(v) for v in self._kept)
        settled, arrays = self._settled, self._core_arrays()
        self._settled = self._settle(kept, targets)
        self._build_core()
        try:
            self._run_core(
                as_rows(kept, self._dtype), targets, weights, np.zeros((len(kept), self._outputs)), 0
            )
        except (
            CapacityError,
            ScoreOverflowError,
        ):  # no room for these rows with the new bandwidth: stay with the old
            self._settled = settled
            self._build_core()
            self._load_core(arrays)
        if len(kept) >= self.WARMUP:
            self._kept = None

    def _core_arrays(self) -> State:
        raise NotImplementedError

    def _load_core(self, arrays: State) -> None:
        raise NotImplementedError

    def _arrays(self) -> State:
        arrays = self._core_arrays()
        if self._kept is not None or not self._given_settled():
            arrays["kernel"] = np.array([core_options(self._settled)["gamma"]])
        if self._kept is not None:
            kept, targets, weights = self._kept
            arrays["warmup_rows"] = np.array(kept, self._dtype).reshape(len(kept), self._width)
            arrays["warmup_targets"] = np.array(targets, np.float64)
            arrays["warmup_weights"] = np.array(weights, np.float64)
        return arrays

    def _load(self, arrays: State) -> None:
        if ("kernel" in arrays) == self._given_settled():
            raise state_error()
        if "kernel" in arrays:
            kernel: Any = as_kernel(self.kernel)
            self._settled = type(kernel)(gamma=float(arrays["kernel"][0]))
            self._build_core()
        if "warmup_rows" in arrays:
            kept = (arrays[f"warmup_{what}"] for what in ("rows", "targets", "weights"))
            rows, targets, weights = kept
            n, classes = len(targets), self._outputs
            if rows.shape != (n, self._width) or targets.shape != (n,) or weights.shape != (n,):
                raise state_error()
            if n >= self.WARMUP:
                raise state_error()
            if classes > 1 and not np.isin(targets, np.arange(classes)).all():
                raise state_error()
            self._kept = ([row.copy() for row in rows], targets.tolist(), weights.tolist())
        else:
            self._kept = None
        skip = ("kernel", "warmup_rows", "warmup_targets", "warmup_weights")
        self._load_core({name: array for name, array in arrays.items() if name not in skip})

    def _given_settled(self) -> bool:
        kernel = as_kernel(self.kernel)
        return not isinstance(kernel, Kernel) or kernel.settled

    def _kept_nbytes(self) -> int:
        return 0 if self._kept is None else len(self._kept[0]) * (self._width * self._dtype.itemsize + 16)

    def _loss(self) -> Loss:
        """The loss in use: the one given, else hinge for classification and squared for regression."""
        given = getattr(self, "loss", None)
        if given is not None:
            return as_loss(given)
        return as_loss("squared" if self._regression else "hinge")

    def _check_loss(self) -> None:
        if getattr(self, "loss", None) is not None:
            as_loss(self.loss)

    def start(
        self, width: int, outputs: int = 1, *, regression: bool = False, dtype: Any = np.float64
    ) -> Self:
        """Forget everything and get ready for rows of ``width`` features."""
        if getattr(self, "loss", None) is not None:
            loss = as_loss(self.loss)
            task = "regression" if regression else "classification"
            if not (loss.regression if regression else loss.classification):
                raise ValueError(f"the {loss.name} loss is not for {task}")
        super().start(width, outputs, regression=regression, dtype=dtype)
        return self


class ExpansionLearner(KernelLearner):
    """A kernel expansion run by the compiled core under one of its rules."""

    rule: ClassVar[str]
    bounded_alternative: ClassVar[str] = ""

    _core: Any

    def _options(self) -> dict[str, Any]:
        """The rule's hyper-parameters, by the core's names."""
        raise NotImplementedError

    def _build_core(self) -> None:
        defaults: dict[str, Any] = {
            "eta": 0.0,
            "lam": 0.0,
            "C": 0.0,
            "clip": 0.0,
            "variant": "",
            "seed": 0,
            "grows": False,
        }
        loss = self._loss()
        self._core = self._core_class("Expansion")(
            self.rule,
            width=self._width,
            outputs=self._outputs,
            regression=self._regression,
            **(defaults | {"loss": loss.name, "loss_width": loss.width} | self._options()),
            **core_options(self._settled),
        )

    def _run_core(self, rows: Any, targets: Array, weights: Array | None, scores: Array, first: int) -> None:
        self._ended(self._core.run(rows, 0, targets, weights, scores, False), first)

    def _ended(self, ran: tuple[int, str], first: int) -> None:
        """Raises if the core stopped before the end."""
        if ran[1] == "full":
            size = self._options()["budget"]
            raise CapacityError(
                f"{type(self).__name__} holds max_size={size} points and row {{row}} needs one more: "
                f"raise max_size or use a learner with a budget, such as {self.bounded_alternative}",
                first + ran[0],
            )
        self._finished(ran, first)

    def _score(self, rows: Any) -> Array:
        scores: Array = self._core.score(rows)
        return scores

    def _core_arrays(self) -> State:
        arrays: State = self._core.state()
        return arrays

    def _load_core(self, arrays: State) -> None:
        points = as_rows(arrays["points"], self._dtype)
        self._core.restore(points, **{name: array for name, array in arrays.items() if name != "points"})

    @property
    def nbytes(self) -> int:
        """Bytes of model state."""
        return int(self._core.nbytes) + self._kept_nbytes()

    @property
    def n_points(self) -> int:
        """How many points are stored."""
        return int(self._core.count)


def check_step(eta: Any, lam: Any) -> None:
    """Checks a step size and a regularisation that shrinks weights by ``1 - eta lam``.

    >>> check_step(0.5, 3.0)
    Traceback (most recent call last):
    ...
    ValueError: eta * lam must be below 1, got 1.5: every step would flip the model
    """
    check_number("eta", eta, low=0, open_low=True)
    check_number("lam", lam, low=0)
    if eta * lam >= 1:
        raise ValueError(f"eta * lam must be below 1, got {eta * lam:g}: every step would flip the model")


def check_seed(seed: Any) -> None:
    """Checks a seed.

    >>> check_seed(-1)
    Traceback (most recent call last):
    ...
    ValueError: seed must be a whole number >= 0 and <= 18446744073709551615, got -1
    """
    check_integer("seed", seed, low=0, high=2**64 - 1)
