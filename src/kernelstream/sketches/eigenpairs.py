"""Eigenpairs of a symmetric matrix that follow its changes: warm starts, and modifications of rank one and two."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from kernelstream.sketches.nystrom import top_eigenpairs

__all__ = [
    "RankTwoSum",
    "complement_map",
    "followed_complement",
    "moved_inverses",
    "positive_inverses",
    "rank_one_eigenpairs",
    "rank_two_eigenpairs",
    "warm_eigenpairs",
]

Array = NDArray[Any]


class RankTwoSum:
    """``U diag(s) U^T + e_q b^T + b e_q^T``, to be multiplied from the left only: m x r numbers in place of m x m.

    >>> (RankTwoSum(np.array([2.0]), np.array([[1.0], [0.0]]), 1, np.array([3.0, 4.0])) @ np.eye(2)).tolist()
    [[2.0, 3.0], [3.0, 8.0]]
    """

    def __init__(self, values: Array, vectors: Array, q: int, b: Array) -> None:
        self.values, self.vectors, self.q, self.b = values, vectors, q, b

    def __matmul__(self, Q: Array) -> Array:
        """The product with a matrix."""
        made: Array = self.vectors @ (self.values[:, None] * (self.vectors.T @ Q)) + np.outer(
            self.b, Q[self.q]
        )
        made[self.q] += self.b @ Q
        return made


def warm_eigenpairs(E: Any, vectors: Array, iterations: int) -> tuple[Array, Array]:
    """Leading eigenpairs of ``E`` from vectors near them: subspace iteration (Eq. 10), Rayleigh-Ritz."""
    Q = vectors
    for _ in range(iterations - 1):  # triangular factors keep columns apart at half the price
        Q = scipy.linalg.lu(E @ Q, permute_l=True, check_finite=False)[0]
    Q = scipy.linalg.qr(E @ Q, mode="economic", overwrite_a=True, check_finite=False)[0]
    small = Q.T @ (E @ Q)
    values, rotation = top_eigenpairs((small + small.T) / 2, len(small))
    return values, np.ascontiguousarray(Q @ rotation)


def positive_inverses(E: Array, shifts: Array) -> Array | None:
    """``(E + s)^-1`` for each shift s, of which the first is 0; None if landmarks nearly depend on one another: what the
    others leave of one (``1 / (E^-1)_jj``, the square of its distance from their span) is below 1e-5 of the largest ``E_ii``,
    and iterating with the inverse would lose digits.

    >>> positive_inverses(np.diag([4.0, 1e-6]), np.zeros(1)) is None
    True
    """
    made = np.empty((len(shifts), *E.shape))
    for inverse, shift in zip(made, shifts, strict=True):
        shifted = E.copy()
        shifted.flat[:: len(E) + 1] += shift
        L, failed = lapack.dpotrf(shifted.T, lower=1, clean=1, overwrite_a=1)
        if failed:
            return None
        lower = np.tril(lapack.dpotri(L, lower=1, overwrite_c=1)[0])
        inverse[...] = lower + np.tril(lower, -1).T
    return made if _apart(made, E) else None


def _apart(inverses: Array, E: Array) -> bool:
    return bool(inverses[0].diagonal().max() * E.diagonal().max() < 1e5)


def moved_inverses(inverses: Array, shifts: Array, q: int, b: Array, E: Array) -> Array | None:
    """`positive_inverses` of E from those of ``E - e_q b^T - b e_q^T``, by Woodbury's formula.

    Rounding adds up over many moves: the row just written shows how much, and then they are made anew.

    >>> moved_inverses(np.eye(2)[None], np.zeros(1), 0, np.array([1.5, 0.0]), np.diag([4.0, 1.0])).tolist()
    [[[0.25, 0.0], [0.0, 1.0]]]
    """
    made = np.empty_like(inverses)
    for new, old, shift in zip(made, inverses, shifts, strict=True):
        g, h = old[q], old @ b
        first, cross, second = float(g[q]), float(1 + h[q]), float(h @ b)
        determinant = first * second - cross * cross
        if determinant == 0:
            return None
        both = np.array([(second * g - cross * h) / determinant, (first * h - cross * g) / determinant])
        np.subtract(old, np.array([g, h]).T @ both, out=new)
        off = E[q] @ new
        off += shift * new[q]
        off[q] -= 1
        if not max(off.max(), -off.min()) <= 1e-10:  # or no number at all
            return positive_inverses(E, shifts)
    return made if _apart(made, E) else None


def followed_complement(inverse: Array, vectors: Array, iterations: int) -> Array:
    """A basis of the trailing eigenvectors of a matrix from vectors near them, by iterating with its inverse.

    Each iteration brings them as much nearer as one of `warm_eigenpairs` does the leading ones, by the ratio of
    the two eigenvalues that the cut lies between.
    """
    V = vectors
    for i in range(iterations if vectors.shape[1] else 0):
        V = inverse @ V
        if i % 2 or i == iterations - 1:  # two are well within working precision, see `positive_inverses`
            factors, tau, _, _ = lapack.dgeqrf(V)
            V = lapack.dorgqr(factors, tau, overwrite_a=1)[0]
    return np.ascontiguousarray(V)


def complement_map(inverse: Array, vectors: Array, turned: Array) -> Array | None:
    """The Nystrom map of E on all directions orthogonal to the orthonormal ``vectors`` V (m x c), (m - c) x m, from ``E^-1`` and
    ``turned = E^-1 V``; None if there are not so many to working precision.

    With Q a basis of those directions it is ``(Q^T E Q)^-1/2 Q^T`` up to a rotation of the features, which no product of two
    features can see. Neither Q nor eigenvalues are needed: ``Q (Q^T E Q)^-1 Q^T = E^-1 - Y (V^T Y)^-1 Y^T``, Y being
    ``turned``, of which a Cholesky factor with pivots is such a map.

    >>> complement_map(np.diag([0.25, 1.0]), np.eye(2)[:, 1:], np.eye(2)[:, 1:]).tolist()
    [[0.5, 0.0]]
    """
    m, c = vectors.shape
    product = inverse.T
    if c:
        R, failed = lapack.dpotrf(vectors.T @ turned, lower=1)
        if failed:
            return None
        Z = blas.dtrsm(1.0, R, turned, side=1, lower=1, trans_a=1)
        product = blas.dsyrk(-1.0, Z, beta=1.0, c=product)
    factor, order, rank, _ = lapack.dpstrf(product)
    if rank < m - c:
        return None
    made = np.empty((m - c, m))
    made[:, order - 1] = factor[: m - c] * _upper(m - c, m)
    return made


@cache
def _upper(rows: int, columns: int) -> Array:
    return np.triu(np.ones((rows, columns)))


def rank_one_eigenpairs(values: Array, vectors: Array, v: Array, sign: float) -> tuple[Array, Array]:
    """All eigenpairs, rising, of ``V diag(values) V^T + sign v v^T`` (values rising, V orthogonal).

    The eigenvalues are the roots of the secular equation, each found by LAPACK's ``lasd4``; the eigenvectors
    follow from the z for which these roots are exact (Gu and Eisenstat), so they are orthogonal to working
    precision.
    """
    if sign < 0:  # eigenvalues of -A + v v^T, their order turned
        negated, turned = rank_one_eigenpairs(-values[::-1], vectors[:, ::-1], v, 1.0)
        return -negated[::-1], np.ascontiguousarray(turned[:, ::-1])
    z = vectors.T @ v
    size = float(np.linalg.norm(z))
    if size == 0:
        return values, vectors
    low = values[0]
    d, V = values - low, np.array(vectors, order="F")
    # What rounding cannot tell from an eigenpair of the sum is left alone: directions that v misses, equal
    # eigenvalues.
    tolerance = 16 * np.finfo(float).eps * max(d[-1], size * size)
    active: list[int] = []
    for j in np.flatnonzero(np.abs(z) * size > tolerance):
        if active and d[j] - d[active[-1]] <= tolerance:
            i = active[-1]
            length = np.hypot(z[i], z[j])
            c, s = z[j] / length, z[i] / length
            V[:, i], V[:, j] = c * V[:, i] - s * V[:, j], s * V[:, i] + c * V[:, j]
            z[i], z[j] = 0.0, length
            active[-1] = int(j)
        else:
            active.append(int(j))
    n = len(active)
    new = d.copy()
    if n == 1:
        new[active[0]] += z[active[0]] ** 2
    elif n > 1:
        poles, weights = d[active], z[active]
        roots = np.sqrt(poles)
        rho = float(weights @ weights)
        unit = weights / np.sqrt(rho)
        gaps = np.empty((n, n))  # gaps[j, i] = poles_j - root_i, without cancellation
        for i in range(n):
            delta, root, total, info = lapack.dlasd4(i, roots, unit, rho)
            if info:
                raise np.linalg.LinAlgError("the secular equation has no root here")
            gaps[:, i] = delta * total
            new[active[i]] = root * root
        between = np.subtract.outer(roots, roots) * np.add.outer(roots, roots)  # of the poles lasd4 has seen
        np.fill_diagonal(between, 1.0)
        # z_j^2 = prod_i (root_i - pole_j) / prod_{i != j} (pole_i - pole_j), paired so that no product
        # overflows
        ratios = gaps.copy()
        below = np.arange(n - 1)[None, :] < np.arange(n)[:, None]
        ratios[:, :-1] /= np.where(below, between[:, :-1], between[:, 1:])
        exact = np.copysign(np.sqrt(np.abs(np.prod(ratios, axis=1))), weights)
        turn = exact[:, None] / gaps
        turn /= np.linalg.norm(turn, axis=0)
        V[:, active] = V[:, active] @ turn
    order = np.argsort(new, kind="stable")
    return new[order] + low, np.ascontiguousarray(V[:, order])


def rank_two_eigenpairs(values: Array, vectors: Array, q: int, b: Array) -> tuple[Array, Array]:
    """All eigenpairs, falling, of ``V diag(values) V^T + e_q b^T + b e_q^T`` (values falling), by two
    rank-one steps.

    ``a b^T + b a^T = (v+ v+^T - v- v-^T) / 2`` with ``v+- = s a +- b / s``; ``s = |b|^1/2`` makes both as
    short as can be.
    """
    s = np.sqrt(float(np.linalg.norm(b)))
    if s == 0:
        return values, vectors
    plus, minus = b / s, -b / s
    plus[q] += s
    minus[q] += s
    up = rank_one_eigenpairs(values[::-1], vectors[:, ::-1], plus / np.sqrt(2), 1.0)
    values, vectors = rank_one_eigenpairs(*up, minus / np.sqrt(2), -1.0)
    return np.ascontiguousarray(values[::-1]), np.ascontiguousarray(vectors[:, ::-1])
