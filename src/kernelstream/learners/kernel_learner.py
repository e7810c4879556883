"""What the learners with a kernel share: its open parameters (the median bandwidth) are set from the first examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from kernelstream.blas import one_thread
from kernelstream.errors import CapacityError, ScoreOverflowError
from kernelstream.kernels import Kernel, as_kernel, core_kernel
from kernelstream.learners.base import Array, Mix, State, state_error
from kernelstream.learners.core_learner import CoreLearner
from kernelstream.learners.warm_up import WarmUp
from kernelstream.rows import as_rows

__all__ = ["KernelLearner"]


class KernelLearner(CoreLearner):
    """A learner with a kernel, whose open parameters (the median bandwidth) are set from the first examples.

    Until 128 examples have been learnt they are also kept; when 2, 4, 8, ... 128 of them are there, the bandwidth is set anew
    and the learner starts again from those kept. So there is a sensible model from the second row on, whatever the chunks.
    """

    feature_axes: ClassVar[dict[str, int] | None] = {"points": 1, "warmup_rows": 1}
    target_arrays: ClassVar[tuple[str, ...]] = ("warmup_targets",)

    #: Names of the attributes that hold all of the model but the warm-up: objects of the core, or None, that mix their outputs
    #: themselves. Empty: that goes through the state.
    mixing_parts: ClassVar[tuple[str, ...]] = ()

    _settled: Any
    _warm_up: WarmUp | None

    @property
    def kernel_(self) -> Any:
        """The kernel in use, its parameters set."""
        return self._settled

    @property
    def nbytes(self) -> int:
        """Bytes of model state."""
        return self._core_nbytes() + (0 if self._warm_up is None else self._warm_up.nbytes)

    # ---- what a learner may have of its own ----

    def _first_kernel(self) -> Any:
        """The kernel that learning starts from: as given, with its open parameters."""
        return as_kernel(self.kernel)

    def _new_warm_up(self) -> WarmUp:
        return WarmUp(128)

    def _settle(self, kept: Array, targets: Array) -> Kernel:
        """The kernel with its open parameters set from the first examples."""
        settled: Kernel = self._first_kernel().settle(kept)
        return settled

    def _core_nbytes(self) -> int:
        return self._core.nbytes

    # ---- the contract, with the warm-up around the core ----

    def learn_rows(self, X: Any, targets: Array, weights: Any, scores: Array) -> None:
        """Predict then learn the core's rows ``X``; the weights may be None."""
        at = 0
        while self._warm_up is not None and at < X.n:
            given = np.ones(X.n) if weights is None else weights
            learnt, stop = self._warm_up.upcoming(given, at)
            try:
                self._run_core(X.part(at, stop), targets[at:stop], given[at:stop], scores[at:stop], at)
            except (CapacityError, ScoreOverflowError) as error:
                self._warm_up.keep(X, targets, given, learnt[learnt < error.row])
                raise
            due = self._warm_up.due
            self._warm_up.keep(X, targets, given, learnt)
            if len(self._warm_up) == due:
                self._settle_again(self._warm_up)
            at = stop
        if at < X.n:
            left = None if weights is None else weights[at:]
            self._run_core(X.part(at, X.n), targets[at:], left, scores[at:], at)

    def mix_outputs(self, mix: Mix, recode: Callable[[Array], Array]) -> None:
        """Replace the outputs by others; ``recode`` turns old targets into new ones."""
        if not self.mixing_parts:
            super().mix_outputs(mix, recode)
            return
        outputs = len(mix.sources)
        self._check_outputs(outputs)
        parts = {name: getattr(self, name) for name in self.mixing_parts}
        made: dict[str, Any] = {
            name: None if part is None else part.mixed(mix.sources, mix.factors)
            for name, part in parts.items()
        }
        if self._warm_up is not None:
            made["_warm_up"] = self._warm_up.recoded(recode)
        self.__dict__.update(made, _outputs=outputs)

    def _settle_again(self, kept: WarmUp) -> None:
        """Set the kernel from the examples kept and learn them again."""
        rows, targets, weights = (
            kept.stacked(self._width, self._dtype),
            np.array(kept.targets),
            np.array(kept.weights),
        )
        settled, arrays = self._settled, self._core_arrays()
        with one_thread():
            self._settled = self._settle(rows, targets)
        self._build_core()
        try:
            scores = np.zeros((len(kept), self._outputs))
            self._run_core(as_rows(rows, self._dtype), targets, weights, scores, 0)
        except (
            CapacityError,
            ScoreOverflowError,
        ):  # these rows do not fit with the new bandwidth: stay with the old
            self._settled = settled
            self._build_core()
            self._load_core(arrays)
        if len(kept) >= kept.size:
            self._warm_up = None

    def _build(self) -> None:
        kernel = self._first_kernel()
        is_open = self._is_open()
        self._settled = kernel.with_gamma(1 / max(1, self._width)) if is_open else kernel
        self._warm_up = self._new_warm_up() if is_open else None
        self._build_core()

    def _given(self, rows: Any) -> Any:
        if isinstance(self._settled, Kernel):
            self._settled.check_rows(rows)
        return super()._given(rows)

    def _arrays(self) -> State:
        arrays = self._core_arrays()
        if self._is_open():
            arrays["kernel"] = np.array([core_kernel(self._settled).gamma])
        return arrays | ({} if self._warm_up is None else self._warm_up.arrays(self._width, self._dtype))

    def _load(self, arrays: State) -> None:
        is_open = self._is_open()
        if ("kernel" in arrays) != is_open or ("warmup_targets" in arrays and not is_open):
            raise state_error()
        if "kernel" in arrays:
            self._settled = self._first_kernel().with_gamma(float(arrays["kernel"][0]))
            self._build_core()
        if "warmup_targets" in arrays:
            self._warm_up = self._new_warm_up()
            self._warm_up.load(arrays, self._width, self._outputs)
        else:
            self._warm_up = None
        kept = ("kernel", *WarmUp.NAMES)
        self._load_core({name: array for name, array in arrays.items() if name not in kept})

    def _is_open(self) -> bool:
        """Whether the kernel's parameters are to be set from the first examples."""
        kernel = self._first_kernel()
        return isinstance(kernel, Kernel) and not kernel.settled
