"""What the kernel expansions share that the compiled core runs under one of its rules."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from kernelstream.errors import MergeError
from kernelstream.kernels import core_kernel
from kernelstream.learners.base import State
from kernelstream.learners.delta import projected, record_keys
from kernelstream.learners.kernel_learner import KernelLearner

__all__ = ["ExpansionLearner"]


class ExpansionLearner(KernelLearner):
    """A kernel expansion run by the compiled core under the rule that ``rule`` names."""

    rule: ClassVar[str]
    mixing_parts: ClassVar[tuple[str, ...]] = ("_core",)
    merge_guarantee: ClassVar[str] = (
        "the mean by rows of the parts' functions; beyond the budget its projection on the points of the largest weights"
    )

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """Budget, storage and the hyper-parameters of the rule, by the core's names."""

    def _build_core(self) -> None:
        self._core = self._core_class("Expansion")(
            self.rule,
            width=self._width,
            outputs=self._outputs,
            regression=self._regression,
            kernel=core_kernel(self._settled),
            **self._options(),
        )

    def delta_since(self, base: State, rows: int, task: str) -> State:
        """The expansion, its weights times the number of rows: merging takes the mean by rows of the functions."""
        if not self.merge_guarantee:
            raise MergeError(f"models of {type(self).__name__} cannot be merged: {self.merge_refusal}")
        state = self.state()
        if "kernel" in state and (
            "warmup_rows" in base or not np.array_equal(state["kernel"], base["kernel"])
        ):
            raise MergeError(
                "the bandwidth has been set since the base: let the base learn its first 128 rows before, or give a bandwidth"
            )
        n = len(state["points"])
        return {
            "sum/rows": np.array([float(rows)]),
            "keep/points/limit": np.array([float(2**53)]),
            "keep/points/key": record_keys(task, n),
            "keep/points/rows": state["points"],
            "keep/points/weights": rows * state["weights"].astype(np.float64),
        }

    def add_delta(self, delta: State) -> None:
        """The mean by rows of the parts' functions, projected on as many of their points as the budget allows."""
        total = float(delta["sum/rows"][0])
        points, which = np.unique(delta["keep/points/rows"], axis=0, return_inverse=True)
        weights = np.zeros((len(points), self._outputs))
        np.add.at(weights, which.reshape(-1), delta["keep/points/weights"] / total)
        state = self.state()
        size = int(self._options()["budget"])
        if len(points) > size:
            points, weights = projected(self._settled, points, weights, size)
        clock = int(state["random"][1]) + int(total)
        state["points"], state["weights"] = points, weights.astype(state["weights"].dtype)
        state["born"] = np.arange(clock - len(points), clock)
        state["random"][1] = clock
        self.restore(state)
