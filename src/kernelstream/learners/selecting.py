"""What the learners that move the scale of their Gaussian kernel share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from kernelstream._core import core
from kernelstream.kernels import Gaussian, core_kernel
from kernelstream.learners.base import Array
from kernelstream.learners.kernel_learner import KernelLearner
from kernelstream.validate import check_number

__all__ = ["SelectingLearner"]


class SelectingLearner(KernelLearner):
    """A Gaussian expansion whose scale takes gradient steps of ``rho / t^rho_decay`` within an interval."""

    merge_refusal: ClassVar[str] = "the bandwidths of its points move with the rows of one sequence"

    gamma: float | None
    eta: float
    rho: float
    rho_decay: float
    interval: tuple[float, float]
    _core: core.Selection64

    @property
    def kernel_(self) -> Any:
        """The kernel with the scale of now: in OKLGD that of the newest centre."""
        return Gaussian(gamma=float(self._core.gamma[0]))

    def _check_search(self) -> None:
        check_number("eta", self.eta, low=0, open_low=True)
        check_number("rho", self.rho, low=0)
        check_number("rho_decay", self.rho_decay, low=0, high=1)
        if not isinstance(self.interval, (tuple, list)) or len(self.interval) != 2:
            raise ValueError(f"interval must be a pair (lowest gamma, highest gamma), got {self.interval!r}")
        low, high = self.interval
        Gaussian.check_gamma("the low end of interval", low)
        Gaussian.check_gamma("the high end of interval", high)
        check_number("the high end of interval", high, low=low)
        if self.gamma is not None:
            check_number("gamma", self.gamma, low=low, high=high)
        self._check_loss()

    def _first_kernel(self) -> Any:
        return Gaussian(gamma=self.gamma)

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """What the learners of this family have of their own, by the core's names."""

    def _first_gamma(self) -> float:
        """Where gamma starts: as given, or the median bandwidth's, moved into the interval."""
        return float(np.clip(core_kernel(self._settled).gamma, *self.interval))

    def _build_core(self) -> None:
        self._core = self._core_class("Selection")(
            width=self._width,
            outputs=self._outputs,
            regression=self._regression,
            loss=self._loss().core,
            eta=self.eta,
            rho=self.rho,
            decay=self.rho_decay,
            low=self.interval[0],
            high=self.interval[1],
            **({"gamma": np.array([self._first_gamma()])} | self._options()),
        )

    def _gamma(self) -> Array:
        return self._core.gamma
