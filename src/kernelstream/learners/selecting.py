"""What the learners that move the scale of their kernel share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from kernelstream._core import core
from kernelstream.kernels import _NARROWEST, _WIDEST, Gaussian, core_kernel
from kernelstream.learners.base import Array
from kernelstream.learners.kernel_learner import KernelLearner
from kernelstream.validate import check_number

__all__ = ["SelectingLearner"]

WIDEST = 2.0**-12, 2.0**12
"""The OKS-SIL paper's smallest and largest gamma (bandwidths 2^5.5 and 2^-6.5); without ``rho``, times the first gamma."""


class SelectingLearner(KernelLearner):
    """A kernel expansion whose scale takes gradient steps within an interval.

    The logarithm of gamma takes steps of ``scale_step / sqrt(t)``, or, if ``rho`` is given, gamma itself steps
    of ``rho / t^rho_decay``, as in the papers. The first are the same whatever unit the features are in.
    """

    merge_refusal: ClassVar[str] = "the bandwidths of its points move with the rows of one sequence"

    gamma: float | None
    eta: float
    scale_step: float
    rho: float | None
    rho_decay: float
    interval: tuple[float, float] | None
    _core: core.Selection64

    @property
    def kernel_(self) -> Any:
        """The kernel with the scale of now: in OKLGD that of the newest centre."""
        return self._first_kernel().with_gamma(float(self._core.gamma[0]))

    def _check_search(self) -> None:
        check_number("eta", self.eta, low=0, open_low=True)
        check_number("scale_step", self.scale_step, low=0)
        if self.rho is not None:
            check_number("rho", self.rho, low=0)
        check_number("rho_decay", self.rho_decay, low=0, high=1)
        self._check_loss()
        if self.interval is None:
            if self.gamma is not None:
                Gaussian.check_gamma("gamma", self.gamma)
            return
        if not isinstance(self.interval, (tuple, list)) or len(self.interval) != 2:
            raise ValueError(f"interval must be a pair (lowest gamma, highest gamma), got {self.interval!r}")
        low, high = self.interval
        for end, value in (("low", low), ("high", high)):
            Gaussian.check_gamma(f"the {end} end of interval", value)
        check_number("the high end of interval", high, low=low)
        if self.gamma is not None:
            check_number("gamma", self.gamma, low=low, high=high)

    def _first_kernel(self) -> Any:
        return Gaussian(gamma=self.gamma)

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """What the learners of this family have of their own, by the core's names."""

    def _interval(self) -> tuple[float, float]:
        """The smallest and the largest gamma."""
        if self.interval is not None:
            return self.interval
        start = 1.0 if self.rho is not None else core_kernel(self._settled).gamma
        low, high = Gaussian._gamma(_WIDEST), Gaussian._gamma(_NARROWEST)  # what a Gaussian kernel takes
        return max(start * WIDEST[0], low), min(start * WIDEST[1], high)

    def _first_gamma(self) -> float:
        """Where gamma starts: as given, or the median bandwidth's, moved into the interval."""
        return float(np.clip(core_kernel(self._settled).gamma, *self._interval()))

    def _build_core(self) -> None:
        low, high = self._interval()
        self._core = self._core_class("Selection")(
            width=self._width,
            outputs=self._outputs,
            regression=self._regression,
            kernel=core_kernel(self._settled),
            loss=self._loss().core,
            eta=self.eta,
            logarithm=self.rho is None,
            rho=self.scale_step if self.rho is None else self.rho,
            decay=0.5 if self.rho is None else self.rho_decay,
            low=low,
            high=high,
            **({"gamma": np.array([self._first_gamma()])} | self._options()),
        )

    def _gamma(self) -> Array:
        return self._core.gamma
