"""What the kernel expansions share that the compiled core runs under one of its rules."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from kernelstream.kernels import core_options
from kernelstream.learners.base import Array
from kernelstream.learners.kernel_learner import KernelLearner

__all__ = ["ExpansionLearner"]


class ExpansionLearner(KernelLearner):
    """A kernel expansion run by the compiled core under the rule that ``rule`` names."""

    rule: ClassVar[str]

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """The rule's hyper-parameters, by the core's names."""

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
