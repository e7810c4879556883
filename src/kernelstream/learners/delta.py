"""Deltas: what a model has learnt since its base, as arrays that can be put together in any order.

A delta is a dictionary of arrays. The first word of a name says how two deltas are put together:

    sum/...         the arrays are added
    keep/SET/...    a set of records, one row per record in each of its arrays; ``keep/SET/key`` has a different key per record:
                    the union stays, and of it the ``keep/SET/limit`` records with the smallest keys

Both are commutative and associative, sums to rounding and sets exactly. So a tree of any shape will do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np
from scipy.linalg import lapack

from kernelstream.learners.base import Array, State

__all__ = ["averaged", "from_half", "half", "inverse", "projected", "record_keys", "stacked", "together"]


def together(deltas: Iterable[State]) -> State:
    """One delta out of several with the same names.

    >>> together([{"sum/rows": np.array([2.0])}, {"sum/rows": np.array([3.0])}])["sum/rows"].tolist()
    [5.0]
    """
    return reduce(_pair, deltas)


def _pair(a: State, b: State) -> State:
    if a.keys() != b.keys():
        odd = sorted(a.keys() ^ b.keys())[0]
        raise ValueError(f"these deltas are of different models: only one of them has {odd!r}")
    result: State = {}
    orders: dict[str, Array] = {}  # of the records of each set
    for name in a:
        rule, _, rest = name.partition("/")
        if rule != "keep" and a[name].shape != b[name].shape:
            raise ValueError(
                f"these deltas are of different models: {name!r} has the shapes {a[name].shape} and {b[name].shape}"
            )
        if rule == "sum":
            result[name] = a[name] + b[name]
        else:
            kept = rest.partition("/")[0]
            if kept not in orders:
                keys = np.concatenate([a[f"keep/{kept}/key"], b[f"keep/{kept}/key"]])
                orders[kept] = np.argsort(keys, kind="stable")[: int(a[f"keep/{kept}/limit"][0])]
            result[name] = a[name] if name.endswith("/limit") else stacked(a[name], b[name])[orders[kept]]
    return result


def stacked(a: Array, b: Array) -> Array:
    """The records of both; those with fewer columns get zeros at the end.

    >>> stacked(np.array([[1.0, 2.0]]), np.array([[3.0]])).tolist()
    [[1.0, 2.0], [3.0, 0.0]]
    """
    if a.ndim == 2 and a.shape[1] != b.shape[1]:
        most = max(a.shape[1], b.shape[1])
        a, b = (np.pad(records, ((0, 0), (0, most - records.shape[1]))) for records in (a, b))
    both: Array = np.concatenate([a, b])
    return both


def averaged(total: State, name: str) -> Array:
    """The mean by rows of an array that was summed after a multiplication by its part's number of rows."""
    mean: Array = total[f"sum/{name}"] / max(1.0, float(total["sum/rows"][0]))
    return mean


def record_keys(task: str, n: int) -> Array:
    """Random numbers in [0, 1) that depend on the task's name alone; two tasks have no number in common.

    >>> bool((record_keys("part 1", 3) == record_keys("part 1", 5)[:3]).all())
    True
    """
    seed = int.from_bytes(hashlib.blake2b(task.encode(), digest_size=16).digest(), "little")
    return np.random.Generator(np.random.Philox(key=seed)).random(n)


def half(matrix: Array) -> Array:
    """The lower half of a symmetric matrix, row after row.

    >>> half(np.array([[1.0, 2.0], [2.0, 3.0]])).tolist()
    [1.0, 2.0, 3.0]
    """
    lower: Array = matrix[np.tril_indices(len(matrix))]
    return lower


def from_half(lower: Array) -> Array:
    """The symmetric matrix of which ``half`` gave the lower half.

    >>> from_half(np.array([1.0, 2.0, 3.0])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    n = int((np.sqrt(8 * len(lower) + 1) - 1) / 2)
    matrix = np.zeros((n, n))
    matrix[np.tril_indices(n)] = lower
    return matrix + np.tril(matrix, -1).T


def inverse(matrix: Array) -> Array:
    """The inverse of a symmetric positive definite matrix, symmetric to the bit.

    >>> inverse(np.diag([2.0, 4.0])).round(9).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    factor, failed = lapack.dpotrf(matrix, lower=1)
    if failed:
        raise ValueError(
            "a matrix that should be positive definite is not: these deltas do not belong together"
        )
    lower, _ = lapack.dpotri(factor, lower=1)
    lower = np.tril(lower)
    whole: Array = lower + np.tril(lower, -1).T
    return whole


def projected(kernel: Any, points: Array, weights: Array, size: int) -> tuple[Array, Array]:
    """The expansion with the ``size`` points of the largest norms ``|weight| sqrt(k(x, x))`` that is nearest to the one given.

    >>> from kernelstream.kernels import Linear
    >>> points, weights = projected(Linear(), np.array([[2.0], [1.0]]), np.array([[1.0], [3.0]]), 1)
    >>> (points @ np.eye(1)).tolist(), (points * weights).round(6).tolist()
    ([[1.0]], [[5.0]])
    """
    matrix = np.asarray(kernel(points, points), np.float64)
    norms = np.sqrt((weights**2).sum(axis=1) * np.diag(matrix))
    order = np.argsort(-norms, kind="stable")
    kept, left = np.sort(order[:size]), np.sort(order[size:])
    among = matrix[np.ix_(kept, kept)] + 1e-10 * np.trace(matrix) / len(matrix) * np.eye(size)
    return points[kept], weights[kept] + np.linalg.solve(among, matrix[np.ix_(kept, left)] @ weights[left])
