"""Kernels: values of rows against rows, the diagonal, and derivatives in their parameters.

Calling a kernel gives ``K[i, j] = k(X[i], Y[j])``; ``X`` and ``Y`` are 2-D arrays or SciPy sparse matrices. Anything callable
as ``kernel(X, Y)`` that returns such a matrix can stand where a learner takes a kernel, only slower.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from kernelstream._core import core
from kernelstream.rows import as_rows
from kernelstream.validate import check_integer, check_number

__all__ = [
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Polynomial",
    "as_kernel",
    "check_bandwidth",
    "core_kernel",
]

Array = NDArray[Any]

_NARROWEST, _WIDEST = 1e-150, 1e150  # bandwidths between which squares and inverses stay in range


def check_bandwidth(name: str, value: Any) -> float:
    """A bandwidth whose ``gamma`` is a positive finite number.

    >>> check_bandwidth("bandwidth", 1e200)
    Traceback (most recent call last):
    ...
    ValueError: bandwidth must be a finite number >= 1e-150 and <= 1e+150, got 1e+200
    """
    return _check_between(name, value, _NARROWEST, _WIDEST)


def _check_between(name: str, value: Any, low: float, high: float) -> float:
    if isinstance(value, np.floating):  # or the bounds would be cast to its type, where they may not fit
        value = float(value)
    return check_number(name, value, low=low, high=high)


class Kernel(BaseEstimator):
    """A kernel of the compiled core. Subclasses name it and give its parameters."""

    name: ClassVar[str]

    @property
    def settled(self) -> bool:
        """Whether all parameters are numbers (not still to be set from data)."""
        return True

    def settle(self, X: Any) -> Self:
        """The kernel with every parameter a number; those left open are set from the rows ``X``."""
        return self

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """The matrix of kernel values of the rows of ``X`` against the rows of ``Y`` (or of ``X``)."""
        return self._matrix(X, Y, measures=False)

    def diagonal(self, X: Any) -> Array:
        """``k(x, x)`` for each row."""
        return core.kernel_diagonal(as_rows(X), core_kernel(self))

    def gradient(self, X: Any, Y: Any = None) -> dict[str, Array]:
        """The derivative of the matrix in each real parameter, by name."""
        return {}

    def options(self) -> dict[str, Any]:
        """The parameters as the core wants them."""
        return {}

    def _matrix(self, X: Any, Y: Any, *, measures: bool) -> Array:
        """Kernel values, or the distances or products behind them."""
        left = as_rows(X)
        right = (
            left
            if Y is None
            else as_rows(Y, dtype=np.float64 if type(left).__name__ == "Rows64" else np.float32)
        )
        return core.kernel_matrix(left, right, core_kernel(self), measures)


class _Radial(Kernel):
    """What the Gaussian and the Laplacian kernel share: a scale, given as ``gamma`` or as ``bandwidth``."""

    def __init__(self, gamma: float | None = None, bandwidth: float | str | None = None) -> None:
        self.gamma = gamma
        self.bandwidth = bandwidth
        self._check()

    def _check(self) -> None:
        if self.gamma is not None:
            self.check_gamma("gamma", self.gamma)
            if self.bandwidth is not None:
                raise ValueError("give gamma or bandwidth, not both")
        elif self.bandwidth is not None and self.bandwidth != "median":
            check_bandwidth("bandwidth", self.bandwidth)

    @classmethod
    def check_gamma(cls, name: str, value: Any) -> float:
        """A scale whose bandwidth ``check_bandwidth`` would accept."""
        return _check_between(name, value, cls._gamma(_WIDEST), cls._gamma(_NARROWEST))

    @property
    def settled(self) -> bool:
        """Whether the scale is a number."""
        return self.gamma is not None or isinstance(self.bandwidth, numbers.Real)

    def settle(self, X: Any) -> Self:
        """The bandwidth set to the median distance between rows of ``X`` (1 if all are equal)."""
        if self.settled:
            return self
        measures = type(self)(gamma=1.0)._matrix(X, None, measures=True)
        distances = self._distance(measures[np.triu_indices(len(measures), k=1)])
        distances = distances[distances > 0]
        median = float(np.median(distances)) if len(distances) else 1.0
        return type(self)(bandwidth=min(max(median, _NARROWEST), _WIDEST))

    def options(self) -> dict[str, Any]:
        """``gamma``."""
        self._check()
        if not self.settled:
            raise ValueError("the bandwidth is to be set from data: call settle(X) first, or give a number")
        return {
            "gamma": float(self.gamma) if self.gamma is not None else self._gamma(float(self.bandwidth or 1))
        }

    def gradient(self, X: Any, Y: Any = None) -> dict[str, Array]:
        """Derivatives in ``gamma`` and in ``bandwidth``."""
        gamma = self.options()["gamma"]
        in_gamma = -self._matrix(X, Y, measures=True) * self(X, Y)
        return {"gamma": in_gamma, "bandwidth": in_gamma * self._gamma_slope(gamma)}

    @staticmethod
    def _distance(measures: Array) -> Array:
        raise NotImplementedError

    @staticmethod
    def _gamma(bandwidth: float) -> float:
        raise NotImplementedError

    @staticmethod
    def _gamma_slope(gamma: float) -> float:
        """D gamma / d bandwidth at this gamma."""
        raise NotImplementedError


class Gaussian(_Radial):
    """``exp(-gamma |x - x'|^2)`` with ``gamma = 1 / (2 bandwidth^2)``.

    Args:
        gamma: the scale, or
        bandwidth: the papers' sigma, or ``"median"`` (the default): the median distance between the first examples.

    >>> Gaussian(gamma=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(4).tolist()
    [[0.3679]]
    >>> Gaussian(bandwidth=2.0).options()
    {'gamma': 0.125}
    >>> Gaussian().settle([[0.0], [3.0]])
    Gaussian(bandwidth=3.0)
    """

    name = "gaussian"

    @staticmethod
    def _distance(measures: Array) -> Array:
        return np.sqrt(measures)

    @staticmethod
    def _gamma(bandwidth: float) -> float:
        return 1 / (2 * bandwidth**2)

    @staticmethod
    def _gamma_slope(gamma: float) -> float:
        return -2 * gamma * float(np.sqrt(2 * gamma))


class Laplacian(_Radial):
    """``exp(-gamma |x - x'|_1)`` with ``gamma = 1 / bandwidth``.

    Args:
        gamma: the scale, or
        bandwidth: its inverse, or ``"median"`` (the default): the median 1-norm distance between the first examples.

    >>> Laplacian(gamma=1.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4).tolist()
    [[0.1353]]
    """

    name = "laplacian"

    @staticmethod
    def _distance(measures: Array) -> Array:
        return measures

    @staticmethod
    def _gamma(bandwidth: float) -> float:
        return 1 / bandwidth

    @staticmethod
    def _gamma_slope(gamma: float) -> float:
        return -(gamma**2)


class Polynomial(Kernel):
    """``(gamma x.x' + coef0)^degree``.

    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[144.0]]
    """

    name = "polynomial"

    def __init__(self, degree: int = 3, gamma: float = 1.0, coef0: float = 1.0) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self._check()

    def _check(self) -> None:
        check_integer("degree", self.degree, low=1, high=100)
        check_number("gamma", self.gamma, low=0, open_low=True)
        check_number("coef0", self.coef0, low=0)

    def options(self) -> dict[str, Any]:
        """``gamma``, ``offset`` (coef0) and ``degree``."""
        self._check()
        return {"gamma": float(self.gamma), "offset": float(self.coef0), "degree": int(self.degree)}

    def gradient(self, X: Any, Y: Any = None) -> dict[str, Array]:
        """Derivatives in ``gamma`` and ``coef0``."""
        products = self._matrix(X, Y, measures=True)
        inner = self.degree * (self.gamma * products + self.coef0) ** (self.degree - 1)
        return {"gamma": inner * products, "coef0": inner}


class Linear(Kernel):
    """``x.x'``.

    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[11.0]]
    """

    name = "linear"


def as_kernel(kernel: Kernel | Callable[..., Any] | None) -> Kernel | Callable[..., Any]:
    """The kernel a learner was given, or the Gaussian with the median bandwidth.

    >>> as_kernel(None)
    Gaussian()
    """
    if kernel is None:
        return Gaussian()
    if callable(kernel) and not isinstance(kernel, type):
        return kernel
    raise ValueError(f"kernel must be a Kernel object or a callable kernel(X, Y), got {kernel!r}")


def core_kernel(kernel: Kernel | Callable[..., Any]) -> core.Kernel:
    """The kernel as the compiled core knows it.

    >>> core_kernel(Gaussian(bandwidth=2.0)).gamma
    0.125
    """
    if isinstance(kernel, Kernel):
        return core.Kernel(kernel.name, **kernel.options())
    return core.Kernel("callable", function=kernel)
