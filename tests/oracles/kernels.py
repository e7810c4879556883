"""Kernels and their parameter gradients, entry by entry, by definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Kernel = Callable[[Array, Array], Array]


def _matrix(entry: Callable[[Array, Array], float]) -> Kernel:
    """Turn k(x, y) on two rows into k(X, Y) on two matrices."""

    def k(X: Array, Y: Array) -> Array:
        X = np.asarray(X, dtype=np.float64)
        Y = np.asarray(Y, dtype=np.float64)
        K = np.zeros((len(X), len(Y)))
        for i in range(len(X)):
            for j in range(len(Y)):
                K[i, j] = entry(X[i], Y[j])
        return K

    return k


def _squared_distance(x: Array, y: Array) -> float:
    return float(np.sum((x - y) ** 2))


def _absolute_distance(x: Array, y: Array) -> float:
    return float(np.sum(np.abs(x - y)))


def _dot(x: Array, y: Array) -> float:
    return float(np.sum(x * y))


def gaussian(gamma: float) -> Kernel:
    """exp(-gamma |x - y|_2^2)."""
    return _matrix(lambda x, y: float(np.exp(-gamma * _squared_distance(x, y))))


def gaussian_gradient_gamma(gamma: float) -> Kernel:
    """d k / d gamma = -|x - y|_2^2 k."""
    return _matrix(lambda x, y: float(-_squared_distance(x, y) * np.exp(-gamma * _squared_distance(x, y))))


def laplacian(gamma: float) -> Kernel:
    """exp(-gamma |x - y|_1)."""
    return _matrix(lambda x, y: float(np.exp(-gamma * _absolute_distance(x, y))))


def laplacian_gradient_gamma(gamma: float) -> Kernel:
    """d k / d gamma = -|x - y|_1 k."""
    return _matrix(lambda x, y: float(-_absolute_distance(x, y) * np.exp(-gamma * _absolute_distance(x, y))))


def polynomial(gamma: float, coef0: float, degree: int) -> Kernel:
    """(gamma x.y + coef0)^degree."""
    return _matrix(lambda x, y: (gamma * _dot(x, y) + coef0) ** degree)


def polynomial_gradient_gamma(gamma: float, coef0: float, degree: int) -> Kernel:
    """d k / d gamma = degree (gamma x.y + coef0)^(degree - 1) x.y."""
    return _matrix(lambda x, y: degree * (gamma * _dot(x, y) + coef0) ** (degree - 1) * _dot(x, y))


def polynomial_gradient_coef0(gamma: float, coef0: float, degree: int) -> Kernel:
    """d k / d coef0 = degree (gamma x.y + coef0)^(degree - 1)."""
    return _matrix(lambda x, y: degree * (gamma * _dot(x, y) + coef0) ** (degree - 1))


def linear() -> Kernel:
    """x.y (no parameter, no gradient)."""
    return _matrix(_dot)


def matern(nu: float, bandwidth: float) -> Kernel:
    """The general formula, 2^(1 - nu) / Gamma(nu) s^nu K_nu(s) with s = sqrt(2 nu) |x - y| / bandwidth."""
    from scipy.special import gamma, kv

    def entry(x: Array, y: Array) -> float:
        s = np.sqrt(2 * nu * _squared_distance(x, y)) / bandwidth
        return 1.0 if s == 0 else float(2 ** (1 - nu) / gamma(nu) * s**nu * kv(nu, s))

    return _matrix(entry)


def rational_quadratic(alpha: float, gamma: float) -> Kernel:
    """(1 + gamma |x - y|^2 / alpha)^-alpha."""
    return _matrix(lambda x, y: float((1 + gamma * _squared_distance(x, y) / alpha) ** -alpha))


def chi_squared(gamma: float) -> Kernel:
    """exp(-gamma sum_d (x_d - y_d)^2 / (x_d + y_d)), 0 / 0 being 0."""

    def entry(x: Array, y: Array) -> float:
        return float(
            np.exp(-gamma * sum((a - b) ** 2 / (a + b) for a, b in zip(x, y, strict=True) if a + b > 0))
        )

    return _matrix(entry)


def intersection() -> Kernel:
    """sum_d min(x_d, y_d)."""
    return _matrix(lambda x, y: float(sum(min(a, b) for a, b in zip(x, y, strict=True))))


def spectrum() -> Kernel:
    """x.y / (|x| |y|), 0 if either is zero."""

    def entry(x: Array, y: Array) -> float:
        size = np.sqrt(_dot(x, x) * _dot(y, y))
        return float(_dot(x, y) / size) if size > 0 else 0.0

    return _matrix(entry)
