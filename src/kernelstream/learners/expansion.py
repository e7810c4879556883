"""What the kernel expansions share that the compiled core runs under one of its rules."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from kernelstream.kernels import core_kernel
from kernelstream.learners.kernel_learner import KernelLearner

__all__ = ["ExpansionLearner"]


class ExpansionLearner(KernelLearner):
    """A kernel expansion run by the compiled core under the rule that ``rule`` names."""

    rule: ClassVar[str]

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
