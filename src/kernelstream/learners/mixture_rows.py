"""What the default (`newton_mixture`) chooses from the rows kept is made of this: their scaling, their distances, and outliers
among their targets. The core scales rows in the same way (``src/core/memory.hpp``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf
from scipy.spatial.distance import cdist, pdist, squareform

from kernelstream._core import core

__all__ = [
    "evenly",
    "every_second_first",
    "factored",
    "gaussian",
    "pairs",
    "products",
    "raised",
    "scaled",
    "scaling",
    "soft_clip",
    "squares",
    "without_outliers",
]

Array = NDArray[Any]

#: Targets this many usual errors away are outliers; looked for among at least so many rows.
OUTLIER, OUTLIER_ROWS = 5.0, 16


def without_outliers(rows: Array, targets: Array) -> Array:
    """Targets; those further than ``OUTLIER`` usual errors from what the other rows say are moved to that distance.

    What the others say: kernel ridge regression, leaving the row itself out. The usual error is exceeded by one row in five.
    Where more than 1 in ``OUTLIER**2`` rows are that far, they are no outliers, and nothing is moved. For the first rows of
    a stream, which came when there was no forecast yet to compare them with.

    >>> x = np.linspace(-1, 1, 50)[:, None]
    >>> y = x[:, 0].copy()
    >>> y[7] = 1000.0
    >>> bool(abs(without_outliers(x, y)[7]) < 2)
    True
    """
    n = len(targets)
    if n < OUTLIER_ROWS:
        return targets
    centre, scale, varying = scaling(rows)
    z = scaled(rows, centre, scale)
    square = squares(z)
    apart = square[square > 0]
    kernel = np.exp(-square / np.median(apart)) if len(apart) else np.ones((n, n))
    linear = products(z, -np.asarray(z.mean(axis=0)).ravel()) / varying
    inverse = np.linalg.inv(kernel + linear + 1 + 0.1 * np.eye(n))
    size = max(float(np.abs(targets).max()), 1e-300)
    bounded = targets / size  # no sum of them overflows
    moved = np.zeros(n, bool)
    for _ in range(10):  # an outlier hides others, and how far it is
        errors = inverse @ (bounded - np.median(bounded)) / np.diag(inverse)
        reach = OUTLIER * np.quantile(np.abs(errors), 0.8)
        far = np.abs(errors) > reach
        if not far.any() or far.mean() > 1 / OUTLIER**2:
            break
        bounded = np.where(far, bounded - errors + np.sign(errors) * reach, bounded)
        moved |= far
    within: Array = np.where(moved, bounded * size, targets)
    return within


def evenly(n: int, most: int) -> Array:
    """The numbers of at most so many of n rows, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).astype(int)


def every_second_first(n: int) -> Array:
    """The numbers below n, the even ones first: the first half of things spaced evenly is spaced evenly, too.

    >>> every_second_first(5).tolist()
    [0, 2, 4, 1, 3]
    """
    return np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)])


def raised(matrix: Array, by: Array | float) -> Array:
    """A symmetric matrix in columns, with more on its diagonal."""
    more = np.array(matrix.T, order="F")
    more.ravel("K")[:: len(more) + 1] += by
    return more


def factored(matrix: Array) -> Array:
    """The Cholesky factor of a matrix in columns, of which the lower half counts, in its place; the upper half is as it was."""
    factor: Array
    factor, failed = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the covariance of the rows kept is not positive definite")
    return factor


def soft_clip(z: Array) -> Array:
    """``z / (1 + abs(z) / 4)``, as the core bounds scaled features."""
    z = np.clip(z, -1e300, 1e300)
    clipped: Array = z / (1 + np.abs(z) / 4)
    return clipped


def scaled(rows: Any, centre: Array, scale: Array) -> Any:
    """Rows scaled, and moved so that 0 stays 0."""
    if not scipy.sparse.issparse(rows):
        return core.scaled_rows(rows, centre, scale)
    at = rows.indices
    values = soft_clip((rows.data - centre[at]) * scale[at]) - soft_clip(-centre[at] * scale[at])
    return scipy.sparse.csr_array((values, at, rows.indptr), shape=rows.shape)


def products(z: Any, moved: Array) -> Array:
    """The products of all pairs of rows, each moved by a vector."""
    if not scipy.sparse.issparse(z):
        return np.asarray((z + moved) @ (z + moved).T)
    along = z @ moved
    return np.asarray((z @ z.T).toarray() + along[:, None] + along[None] + moved @ moved)


def squares(z: Any, others: Any = None) -> Array:
    """The squared distances of rows and others, or of all pairs of rows."""
    others = z if others is None else others
    if not scipy.sparse.issparse(z):
        return np.asarray(cdist(z, others, "sqeuclidean"))
    length, other = z.power(2).sum(axis=1), others.power(2).sum(axis=1)
    sums = length[:, None] + other[None]
    apart = sums - 2 * (z @ others.T).toarray()
    return np.asarray(
        np.where(apart > 1e-12 * sums, apart, 0.0)
    )  # less is rounding: equal rows are at distance 0


def pairs(z: Any) -> Array:
    """The squared distances of all pairs of rows, each pair once."""
    if scipy.sparse.issparse(z):
        return np.asarray(squareform(squares(z), checks=False))
    return np.asarray(pdist(z, "sqeuclidean"))


def gaussian(gamma: float, apart: Array) -> Array:
    """The kernel matrix of rows whose pairs are so far apart."""
    kernel: Array = squareform(np.exp(-gamma * apart), checks=False)
    np.fill_diagonal(kernel, 1.0)
    return kernel


def scaling(rows: Any) -> tuple[Array, Array, float]:
    """Centre and scale of each feature, and how many vary; a mostly zero one keeps 0 as its centre."""
    n = rows.shape[0]
    if scipy.sparse.issparse(rows):
        at, width = rows.indices, rows.shape[1]
        size, filled = np.zeros(width), np.bincount(at, minlength=width)
        np.maximum.at(size, at, np.abs(rows.data))
        unit = rows.data / np.where(size > 0, size, 1.0)[at]
        mean = np.bincount(at, unit, minlength=width) / n
        around = np.bincount(at, (unit - mean[at]) ** 2, minlength=width) + (n - filled) * mean**2
        return _scaling(mean * size, np.sqrt(around / n) * size, filled > n / 2)
    size = np.abs(rows).max(axis=0, initial=0.0)
    unit = rows / np.where(size > 0, size, 1.0)  # no square of it overflows, and none that matters vanishes
    mostly = np.count_nonzero(rows, axis=0) > n / 2
    return _scaling(unit.mean(axis=0) * size, unit.std(axis=0) * size, mostly)


def _scaling(mean: Array, deviation: Array, mostly: Array) -> tuple[Array, Array, float]:
    moves = deviation > 1e-6 * np.abs(mean)
    spread = np.where(moves, deviation, np.abs(mean))
    scale = 1 / np.where(spread > 0, np.maximum(spread, 1e-300), 1.0)
    return np.where(mostly, mean, 0.0), scale, max(1.0, float(np.count_nonzero(moves)))
