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
