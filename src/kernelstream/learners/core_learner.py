"""What the learners run by the compiled core share: one object of the core that scores, learns, and gives back its state."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from kernelstream._core import core
from kernelstream.errors import CapacityError
from kernelstream.learners.base import Array, Learner, State
from kernelstream.losses import Loss, as_loss

if TYPE_CHECKING:
    from kernelstream._core import Model, Ran

__all__ = ["CoreLearner"]


class CoreLearner(Learner):
    """A learner whose state is an object of the compiled core, ``self._core``; it works on the core's rows.

    A learner with a parameter ``loss`` has that loss, or by default hinge for classification and squared for regression.
    """

    feature_axes: ClassVar[dict[str, int] | None] = {}
    output_axes: ClassVar[dict[str, int] | None] = {"weights": 1, "map_weights": 1}
    linear_arrays: ClassVar[tuple[str, ...]] = ("weights", "map_weights")
    #: What to use instead when ``max_size`` points are stored.
    bounded_alternative: ClassVar[str] = ""

    _core: Model

    # ---- what a learner provides ----

    @abstractmethod
    def _build_core(self) -> None:
        """Make ``self._core``, untrained."""

    def _run_core(self, rows: Any, targets: Array, weights: Array | None, scores: Array, first: int) -> None:
        """Predict then learn the rows; ``first`` is the chunk's number of the first one."""
        ran = self._core.run(rows, 0, targets, weights, scores)
        self._finished(ran, first)
        if ran[1]:
            size = self.get_params(deep=False)["max_size"]
            raise CapacityError(
                f"{type(self).__name__} holds max_size={size} points and row {{row}} needs one more: "
                f"raise max_size or use a learner with a budget, such as {self.bounded_alternative}",
                first + ran[0],
            )

    def _core_arrays(self) -> State:
        """The state of ``self._core`` as new arrays."""
        return self._core.state()

    def _load_core(self, arrays: State) -> None:
        """Fill the object just built."""
        self._core.restore(arrays)

    # ---- the contract ----

    @property
    def nbytes(self) -> int:
        """Bytes of model state."""
        return self._core.nbytes

    @property
    def n_points(self) -> int:
        """How many points are stored."""
        return self._core.count

    def start(
        self, width: int, outputs: int = 1, *, regression: bool = False, dtype: Any = np.float64
    ) -> Self:
        """Forget everything and get ready for rows of ``width`` features."""
        if getattr(self, "loss", None) is not None:
            loss = as_loss(self.loss)
            task = "regression" if regression else "classification"
            if not (loss.regression if regression else loss.classification):
                raise ValueError(f"the {loss.name} loss is not for {task}")
        return super().start(width, outputs, regression=regression, dtype=dtype)

    def initial_arrays(self) -> State:
        """The arrays of an untrained model."""
        self._build()
        return self._arrays()

    def score_rows(self, X: Any) -> Array:
        """Scores of the core's rows ``X``, ``(n, outputs)``."""
        return self._core.score(X)

    def learn_rows(self, X: Any, targets: Array, weights: Any, scores: Array) -> None:
        """Predict then learn the core's rows ``X``; the weights may be None."""
        self._run_core(X, targets, weights, scores, 0)

    def _copied(self, value: Any, copies: dict[int, Any]) -> Any:
        return value.clone() if type(value).__module__ == core.__name__ else super()._copied(value, copies)

    def _build(self) -> None:
        self._build_core()

    def _given(self, rows: Any) -> Any:
        return rows

    def _run(self, rows: Any, targets: Array, sample_weight: Array | None, scores: Array) -> None:
        self.learn_rows(self._given(rows), targets, sample_weight, scores)

    def _arrays(self) -> State:
        return self._core_arrays()

    def _load(self, arrays: State) -> None:
        self._load_core(arrays)

    def _fresh(self, width: int, outputs: int) -> State:
        return {}  # a new feature was always zero

    # ---- for subclasses ----

    def _core_class(self, name: str) -> Any:
        return getattr(core, name + ("32" if self._dtype.itemsize == 4 else "64"))

    def _finished(self, ran: Ran, first: int = 0) -> int:
        """The row to go on with after a run of the core; raises if the core refused that row.

        Every other reason to stop is the learner's own (its storage is full, something is due), and not zero: ``if ran[1]``.
        """
        row, stop = ran
        if stop == core.Stop.not_finite:
            raise self.overflow(first + row)
        return row

    def _loss(self) -> Loss:
        """The loss in use: the one given, else hinge for classification and squared for regression."""
        given = getattr(self, "loss", None)
        if given is not None:
            return as_loss(given)
        return as_loss("squared" if self._regression else "hinge")

    def _check_loss(self) -> None:
        if getattr(self, "loss", None) is not None:
            as_loss(self.loss)
