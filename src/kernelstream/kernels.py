"""Kernels: values of rows against rows, the diagonal, and derivatives in their parameters.

Calling a kernel gives ``K[i, j] = k(X[i], Y[j])``; ``X`` and ``Y`` are 2-D arrays or SciPy sparse matrices. Anything callable
as ``kernel(X, Y)`` that returns such a matrix can stand where a learner takes a kernel, only slower.
"""

from __future__ import annotations

import copy
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
    "ChiSquared",
    "Gaussian",
    "Intersection",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Polynomial",
    "Precomputed",
    "RationalQuadratic",
    "Spectrum",
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
    #: Whether the value is a function of ``gamma`` times a distance or product, with a derivative in gamma.
    has_scale: ClassVar[bool] = False

    @property
    def settled(self) -> bool:
        """Whether all parameters are numbers (not still to be set from data)."""
        return True

    def settle(self, X: Any) -> Self:
        """The kernel with every parameter a number; those left open are set from the rows ``X``."""
        return self

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """The matrix of kernel values of the rows of ``X`` against the rows of ``Y`` (or of ``X``)."""
        return self._matrix(X, Y, core.Part.value)

    def check_rows(self, rows: Any) -> None:
        """Raise ``ValueError`` if the kernel is not made for such rows (of the core)."""

    def diagonal(self, X: Any) -> Array:
        """``k(x, x)`` for each row."""
        rows = as_rows(X)
        self.check_rows(rows)
        return core.kernel_diagonal(rows, core_kernel(self))

    def gradient(self, X: Any, Y: Any = None) -> dict[str, Array]:
        """The derivative of the matrix in each real parameter, by name."""
        return {}

    def input_gradient(self, X: Any, Y: Any = None) -> Array:
        """The derivatives ``d k(X[i], Y[j]) / d X[i]``, ``(len(X), len(Y), features)``.

        Where there is none (a Laplacian or intersection kernel at equal entries, a Matern kernel of ``nu`` 1/2 at equal rows),
        the entry is 0, which is one of the subgradients or between them.

        >>> (Gaussian(gamma=0.5).input_gradient([[1.0, 0.0]], [[0.0, 0.0]]).round(4) + 0.0).tolist()
        [[[-0.6065, 0.0]]]
        """
        left, right = self._pair(X, Y)
        return core.kernel_input_gradient(left, right, core_kernel(self))

    def options(self) -> dict[str, Any]:
        """The parameters as the core wants them."""
        return {}

    def log_gamma_gradient(self, X: Any, Y: Any = None) -> Array:
        """The derivative of the matrix in ``log(gamma)``: that in a distance or product, times it.

        >>> Gaussian(gamma=0.5).log_gamma_gradient([[1.0, 0.0]], [[0.0, 0.0]]).round(4).tolist()
        [[-0.3033]]
        """
        if not self.has_scale:
            raise ValueError(f"{type(self).__name__} has no gamma to take a derivative in")
        return self._matrix(X, Y, core.Part.slope) * self._matrix(X, Y, core.Part.measure)

    def _pair(self, X: Any, Y: Any) -> tuple[Any, Any]:
        left = as_rows(X)
        self.check_rows(left)
        if Y is None:
            return left, left
        right = as_rows(Y, dtype=np.float64 if type(left).__name__ == "Rows64" else np.float32)
        self.check_rows(right)
        return left, right

    def _matrix(self, X: Any, Y: Any, part: core.Part) -> Array:
        """Kernel values, the distances or products behind them, or the derivatives of the first in the second."""
        left, right = self._pair(X, Y)
        return core.kernel_matrix(left, right, core_kernel(self), part)


class _Radial(Kernel):
    """What kernels of a distance share: a scale, given as ``gamma`` or as ``bandwidth``."""

    has_scale = True

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

    @staticmethod
    def input_scale(gammas: Array) -> Array:
        """Times this, the entries of a row have ``gammas`` in the kernel of ``gamma = 1``."""
        return np.sqrt(gammas)

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
        measures = self.with_gamma(1.0)._matrix(X, None, core.Part.measure)
        distances = self._distance(measures[np.triu_indices(len(measures), k=1)])
        distances = distances[distances > 0]
        median = float(np.median(distances)) if len(distances) else 1.0
        return self._with(bandwidth=min(max(median, _NARROWEST), _WIDEST))

    def with_gamma(self, gamma: float) -> Self:
        """The same kernel with this scale."""
        return self._with(gamma=gamma)

    def _with(self, **scale: Any) -> Self:
        other = copy.copy(self)  # without the names of the parameters, which take scikit-learn long to find
        other.__dict__.update({"gamma": None, "bandwidth": None, **scale})
        other._check()
        return other

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
        in_gamma = self.log_gamma_gradient(X, Y) / gamma
        return {"gamma": in_gamma, "bandwidth": in_gamma * self._gamma_slope(gamma)}

    # As for the Euclidean distance; the others have their own.

    @staticmethod
    def _distance(measures: Array) -> Array:
        return np.sqrt(measures)

    @staticmethod
    def _gamma(bandwidth: float) -> float:
        return 1 / (2 * bandwidth**2)

    @staticmethod
    def _gamma_slope(gamma: float) -> float:
        """D gamma / d bandwidth at this gamma."""
        return -2 * gamma * float(np.sqrt(2 * gamma))


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


class Matern(_Radial):
    """The Matern kernel of order ``nu``: 1/2, 3/2 or 5/2. With ``d = |x - x'|`` and ``s = sqrt(2 nu) d / bandwidth``:

        nu = 1/2   exp(-s)
        nu = 3/2   (1 + s) exp(-s)
        nu = 5/2   (1 + s + s^2 / 3) exp(-s)

    ``gamma = 1 / (2 bandwidth^2)`` as for the Gaussian kernel, which is the limit of a large ``nu``: ``s^2 = 4 nu gamma d^2``.

    Args:
        nu: 0.5, 1.5 or 2.5; functions of this kernel have derivatives up to ``nu - 1/2``.
        gamma: the scale, or
        bandwidth: the length scale, or ``"median"`` (the default): the median distance between the first examples.

    References:
        Rasmussen and Williams, "Gaussian processes for machine learning", 2006, Section 4.2.

    >>> Matern(nu=0.5, bandwidth=1.0)([[0.0, 0.0]], [[3.0, 4.0]]).round(4).tolist()
    [[0.0067]]
    """

    def __init__(
        self, nu: float = 1.5, gamma: float | None = None, bandwidth: float | str | None = None
    ) -> None:
        self.nu = nu
        super().__init__(gamma, bandwidth)

    def _check(self) -> None:
        if isinstance(self.nu, bool) or self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {self.nu!r}")
        super()._check()

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the kernel of this order in the core."""
        return f"matern{round(2 * self.nu)}2"


class RationalQuadratic(_Radial):
    """``(1 + gamma |x - x'|^2 / alpha)^-alpha``: Gaussian kernels of many bandwidths added up.

    ``gamma = 1 / (2 bandwidth^2)`` as for the Gaussian kernel, which is the limit of a large ``alpha``.

    Args:
        alpha: how few large bandwidths there are.
        gamma: the scale, or
        bandwidth: the length scale, or ``"median"`` (the default): the median distance between the first examples.

    References:
        Rasmussen and Williams, "Gaussian processes for machine learning", 2006, Section 4.2.

    >>> RationalQuadratic(alpha=2.0, gamma=1.0)([[0.0]], [[2.0]]).round(4).tolist()
    [[0.1111]]
    """

    name = "rational_quadratic"

    def __init__(
        self, alpha: float = 1.0, gamma: float | None = None, bandwidth: float | str | None = None
    ) -> None:
        self.alpha = alpha
        super().__init__(gamma, bandwidth)

    def _check(self) -> None:
        _check_between("alpha", self.alpha, 1e-6, 1e6)
        super()._check()

    def options(self) -> dict[str, Any]:
        """``gamma``, and ``offset`` (alpha)."""
        return super().options() | {"offset": float(self.alpha)}

    def gradient(self, X: Any, Y: Any = None) -> dict[str, Array]:
        """Derivatives in ``gamma``, ``bandwidth`` and ``alpha``."""
        share = self.options()["gamma"] / self.alpha * self._matrix(X, Y, core.Part.measure)
        in_alpha = self(X, Y) * (share / (1 + share) - np.log1p(share))
        return super().gradient(X, Y) | {"alpha": in_alpha}


class _Proportional(_Radial):
    """A kernel of ``gamma`` times a distance that is in proportion to the features: ``gamma = 1 / bandwidth``."""

    @staticmethod
    def input_scale(gammas: Array) -> Array:
        """Times this, the entries of a row have ``gammas`` in the kernel of ``gamma = 1``."""
        return gammas

    @staticmethod
    def _distance(measures: Array) -> Array:
        return measures

    @staticmethod
    def _gamma(bandwidth: float) -> float:
        return 1 / bandwidth

    @staticmethod
    def _gamma_slope(gamma: float) -> float:
        return -(gamma**2)


class Laplacian(_Proportional):
    """``exp(-gamma |x - x'|_1)`` with ``gamma = 1 / bandwidth``.

    Args:
        gamma: the scale, or
        bandwidth: its inverse, or ``"median"`` (the default): the median 1-norm distance between the first examples.

    >>> Laplacian(gamma=1.0)([[0.0, 0.0]], [[1.0, 1.0]]).round(4).tolist()
    [[0.1353]]
    """

    name = "laplacian"


class _Histogram(Kernel):
    """A kernel for rows of entries that are counts or shares: none below zero."""

    def check_rows(self, rows: Any) -> None:
        """Raise ``ValueError`` if an entry is below zero."""
        place = rows.first_negative()
        if place is not None:
            value = rows.part(place[0], place[0] + 1).array()[0, place[1]]
            raise ValueError(
                f"X has {value} at row {place[0]}, column {place[1]}: {type(self).__name__} is a kernel of histograms, "
                "whose entries are 0 or more"
            )


class ChiSquared(_Histogram, _Proportional):
    """``exp(-gamma sum_d (x_d - x'_d)^2 / (x_d + x'_d))`` for histograms, with ``gamma = 1 / bandwidth``; 0 / 0 counts as 0.

    Args:
        gamma: the scale, or
        bandwidth: its inverse, or ``"median"`` (the default): the median chi-squared distance between the first examples.

    References:
        Zhang, Marszalek, Lazebnik and Schmid, "Local features and kernels for classification of texture and object
        categories", IJCV 73, 2007.

    >>> ChiSquared(gamma=1.0)([[1.0, 3.0]], [[3.0, 3.0]]).round(4).tolist()
    [[0.3679]]
    >>> ChiSquared(gamma=1.0)([[1.0, -3.0]])   # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: X has -3.0 at row 0, column 1: ChiSquared is a kernel of histograms, whose entries are 0 or more
    """

    name = "chi_squared"


class Intersection(_Histogram):
    """``sum_d min(x_d, x'_d)`` for histograms.

    References:
        Swain and Ballard, "Color indexing", IJCV 7, 1991; Maji, Berg and Malik, "Classification using intersection kernel
        support vector machines is efficient", CVPR 2008.

    >>> Intersection()([[1.0, 3.0]], [[2.0, 0.5]]).tolist()
    [[1.5]]
    """

    name = "intersection"


class Spectrum(Kernel):
    """``x.x' / (|x| |x'|)`` of the n-gram counts of strings: the spectrum kernel, normalised. 0 if a row is zero.

    `kernelstream.sketches.HashedNgrams` makes the rows. ``Linear`` on them is the kernel that is not normalised.

    References:
        Leslie, Eskin and Noble, "The spectrum kernel: a string kernel for SVM protein classification", PSB 2002.

    >>> Spectrum()([[1.0, 0.0], [3.0, 4.0]], [[2.0, 0.0]]).round(4).tolist()
    [[1.0], [0.6]]
    """

    name = "spectrum"


class Precomputed(Kernel):
    """The kernel of things known by their number: ``k(i, j) = matrix[i, j]``. A row has one entry, the number.

    So a kernel of anything (graphs, trees, a slow function) is made once, in one call, and not row by row.

    A model file holds the matrix as text: for more than some hundreds of things, pickle the model.

    Args:
        matrix: the kernel values of all things with each other.

    >>> things = ["kernel", "colonel", "tree"]
    >>> kernel = Precomputed([[len(set(a) & set(b)) for a in things] for b in things])
    >>> kernel([[0], [2]], [[1]]).tolist()
    [[3.0], [1.0]]
    """

    name = "precomputed"

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self._values()

    def _values(self) -> NDArray[np.float64]:
        values = np.ascontiguousarray(self.matrix, np.float64)
        if values.ndim != 2 or values.shape[0] != values.shape[1] or not np.isfinite(values).all():
            raise ValueError(f"matrix must be square and of finite numbers, got one of shape {values.shape}")
        return values

    def options(self) -> dict[str, Any]:
        """The matrix, as ``function``."""
        return {"function": self._values()}

    def check_rows(self, rows: Any) -> None:
        """Raise ``ValueError`` unless every row is the number of a row of the matrix."""
        numbers, size = rows.array(), len(np.asarray(self.matrix))
        if rows.width != 1:
            raise ValueError(f"a row of a precomputed kernel is one number, got {rows.width} columns")
        bad = np.flatnonzero(
            (numbers[:, 0] != np.floor(numbers[:, 0])) | ~((numbers[:, 0] >= 0) & (numbers[:, 0] < size))
        )
        if len(bad):
            raise ValueError(
                f"X has {numbers[bad[0], 0]} at row {bad[0]}: a row of a precomputed kernel is a whole number from 0 to "
                f"{size - 1}"
            )


class Polynomial(Kernel):
    """``(gamma x.x' + coef0)^degree``.

    >>> Polynomial(degree=2)([[1.0, 2.0]], [[3.0, 4.0]]).tolist()
    [[144.0]]
    """

    name = "polynomial"
    has_scale = True

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
        inner = self._matrix(X, Y, core.Part.slope) / self.gamma
        return {"gamma": inner * self._matrix(X, Y, core.Part.measure), "coef0": inner}

    @staticmethod
    def input_scale(gammas: Array) -> Array:
        """Times this, the entries of a row have ``gammas`` in the kernel of ``gamma = 1``."""
        return np.sqrt(gammas)

    def with_gamma(self, gamma: float) -> Self:
        """The same kernel with this scale."""
        return type(self)(**{**self.get_params(), "gamma": gamma})


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
