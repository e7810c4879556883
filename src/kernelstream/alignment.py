"""Kernel alignment: how well a kernel matrix agrees with the targets, and the choice of a bandwidth by it.

With K the kernel matrix of n rows and Y their targets (a column of -1 / +1 or real numbers, or several
columns):

    A(K, Y) = <K, Y Y^T> / (|K| |Y Y^T|)       Frobenius product and norms; for y = -1 / +1, |y y^T| = n

The centred version (Cortes et al.) replaces K by H K H and Y by H Y, with H = I - 1 1^T / n.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from kernelstream._core import core
from kernelstream.kernels import Gaussian, Kernel, Laplacian, as_kernel, check_bandwidth
from kernelstream.rows import as_rows, check_finite
from kernelstream.validate import check_integer, check_seed

__all__ = ["CANDIDATES", "IncrementalAlignment", "kernel_alignment", "select_bandwidth"]

Array = NDArray[np.float64]

CANDIDATES: tuple[float, ...] = tuple((2.0 ** np.arange(-5, 7.5, 0.5)).tolist())
"""The bandwidths of the papers' protocol: 2^-5, 2^-4.5, ... 2^7."""

_BLOCK = 256


def kernel_alignment(K: ArrayLike, y: ArrayLike, *, centered: bool = False) -> float:
    """The alignment of a kernel matrix with the targets: between 0 and 1 for a kernel, 0 if either vanishes.

    Args:
        K: symmetric, n x n.
        y: n targets (-1 / +1, or real), or one such column per class.
        centered: centre both in feature space first.

    References:
        Cristianini, Shawe-Taylor, Elisseeff and Kandola, "On kernel-target alignment", NeurIPS 2001.
        Kandola, Shawe-Taylor and Cristianini, "On the extensions of kernel alignment", 2002.
        Cortes, Mohri and Rostamizadeh, "Algorithms for learning kernels based on centered alignment", JMLR
        13, 2012.

    >>> kernel_alignment([[1, -1], [-1, 1]], [1, -1])
    1.0
    >>> kernel_alignment([[1, 1], [1, 1]], [1, -1])
    0.0
    """
    matrix = np.asarray(K, np.float64)
    targets = _columns(y)
    if matrix.shape != (len(targets), len(targets)):
        raise ValueError(
            f"K must be {len(targets)} x {len(targets)}, as y has {len(targets)} entries, got {matrix.shape}"
        )
    if centered:  # H K H itself: its norm from those of K would be what is left of much larger numbers
        matrix = matrix - matrix[0, 0]  # H 1 1^T H = 0; a matrix of equal entries becomes exactly zero
        matrix -= matrix.mean(axis=0)
        matrix -= matrix.mean(axis=1)[:, None]
    sums = np.hstack([matrix.sum(axis=1)[:, None], matrix @ targets])
    return _alignment(float((matrix * matrix).sum()), sums, targets, centered)


def select_bandwidth(
    X: Any,
    y: ArrayLike,
    *,
    candidates: Sequence[float] = CANDIDATES,
    kernel: type[Gaussian] | type[Laplacian] = Gaussian,
    centered: bool = False,
    max_rows: int = 2000,
) -> float:
    """The bandwidth whose kernel is best aligned with the targets (the first of equals).

    Where the data cannot tell (every alignment is 0, as centred alignment is for targets that are all equal), it
    is the candidate nearest, as a ratio, to the median distance between rows (up to 128 of them).

    Args:
        X: rows, an array or SciPy sparse.
        y: targets: -1 / +1 (any two numbers are taken for them), real numbers, or a column per class.
        candidates: bandwidths to choose from.
        kernel: Gaussian or Laplacian, the class.
        centered: use centred alignment.
        max_rows: more rows than that are thinned to so many, evenly spaced. Time grows with the square of
            their number, memory with the number.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> select_bandwidth(X, np.sign(X[:, 0]), candidates=[0.01, 1.0, 100.0])
    1.0
    """
    check_integer("max_rows", max_rows, low=2)
    if len(candidates) == 0:
        raise ValueError("candidates must name at least one bandwidth")
    for sigma in candidates:
        check_bandwidth("each candidate", sigma)
    rows = X.tocsr() if scipy.sparse.issparse(X) else np.asarray(X)
    check_finite(as_rows(rows))
    targets = _columns(y)
    if rows.shape[0] != len(targets):
        raise ValueError(f"X has {rows.shape[0]} rows and y has {len(targets)} entries: each row needs one")
    if targets.shape[1] == 1 and len(levels := np.unique(targets)) == 2:
        targets = np.where(targets == levels[1], 1.0, -1.0)
    chosen = _spread(len(targets), max_rows)
    rows, targets, n = rows[chosen], targets[chosen], len(chosen)
    gammas = [kernel(bandwidth=float(sigma)).options()["gamma"] for sigma in candidates]
    squares = np.zeros(len(gammas))
    sums = np.zeros((len(gammas), n, 1 + targets.shape[1]))
    weights = np.hstack([np.ones((n, 1)), targets])
    for start in range(0, n, _BLOCK):
        part = slice(start, start + _BLOCK)
        measures = kernel(gamma=1.0)._matrix(rows[part], rows, core.Part.measure).astype(np.float64)
        for i, gamma in enumerate(gammas):
            # Centred, K - 1 1^T does for K (H 1 1^T H = 0), and wide kernels keep their digits.
            block = (np.expm1 if centered else np.exp)(-gamma * measures)
            squares[i] += float(np.vdot(block, block))
            sums[i, part] = block @ weights
    scores = [_alignment(squares[i], sums[i], targets, centered) for i in range(len(gammas))]
    if not any(scores):
        median: Any = kernel().settle(rows[_spread(n, 128)]).bandwidth
        scores = [-abs(float(np.log(sigma) - np.log(median))) for sigma in candidates]
    return float(candidates[int(np.argmax(scores))])


class IncrementalAlignment(BaseEstimator):
    """The alignment of candidate kernels with the targets of a stream, in bounded memory (ISKA).

    A reservoir keeps ``budget`` of the rows seen, each with the same chance, in ``groups`` equal parts. A new row is compared
    with the stored ones: in each group, ``y_t y_j k(x_t, x_j)`` and ``k(x_t, x_j)^2`` are averaged over its rows j and added
    with the weight t - 1, the number of pairs they stand for. Over the sum of weights these are unbiased estimates of the
    means over all pairs of rows, whose ratio ``mean(y y' k) / (mean(k^2) mean(y^2 y'^2))^1/2`` is the alignment without the
    diagonal. The estimate is the median of the groups'.

    Args:
        candidates: kernels, all parameters set, or callables; by default Gaussian kernels of the papers' bandwidths.
        budget: how many rows are stored.
        groups: of how many estimates the median is taken; at most the budget.
        seed: of the reservoir.

    Attributes:
        alignments_: the estimate of each candidate; 0 before two rows have been read.
        best_: the candidate of the largest (the first of equals).

    This differs from the paper in:
        1. its text was not at hand, only its abstract: a sketch of the alignment that is kept up to date row by row, unbiased, at
           a constant cost per round, and the median of several estimates. The sketch here is a uniform sample of the rows;
        2. it chooses a kernel and learns nothing else: the paper's learner goes on with the kernel chosen.

    References:
        Zhang and Liao, "Online kernel selection via incremental sketched kernel alignment", IJCAI 2018.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> kernels = [Gaussian(bandwidth=sigma) for sigma in (0.01, 1.0, 100.0)]
    >>> IncrementalAlignment(kernels).partial_fit(X, np.sign(X[:, 0])).best_
    Gaussian(bandwidth=1.0)
    """

    def __init__(
        self, candidates: Sequence[Any] | None = None, *, budget: int = 100, groups: int = 5, seed: int = 0
    ) -> None:
        self.candidates = candidates
        self.budget = budget
        self.groups = groups
        self.seed = seed

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Forget everything, then read the rows in order."""
        self._reset()
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: ArrayLike) -> Self:
        """Read the rows in order; the targets are -1 / +1 or real numbers."""
        if not hasattr(self, "candidates_"):
            self._reset()
        rows = as_rows(X)
        check_finite(rows)
        targets = _columns(y)[:, 0]
        if rows.n != len(targets):
            raise ValueError(f"X has {rows.n} rows and y has {len(targets)} entries: each row needs one")
        for kernel in self.candidates_:
            if isinstance(kernel, Kernel):
                kernel.check_rows(rows)
        for x, target in zip(rows.array(), targets, strict=True):
            self._read(x, target)
        return self

    @property
    def alignments_(self) -> Array:
        """The estimate of each candidate."""
        below = np.sqrt(self._sums[1] * self._sums[2])
        each = np.divide(self._sums[0], below, out=np.zeros_like(below), where=below > 0)
        counted = self._sums[2].any(axis=0)
        return np.median(each[:, counted], axis=1) if counted.any() else np.zeros(len(each))

    @property
    def best_(self) -> Any:
        """The candidate with the largest estimate."""
        return self.candidates_[int(np.argmax(self.alignments_))]

    def _reset(self) -> None:
        check_integer("budget", self.budget, low=1)
        check_integer("groups", self.groups, low=1, high=self.budget)
        check_seed(self.seed)
        given = [Gaussian(bandwidth=s) for s in CANDIDATES] if self.candidates is None else self.candidates
        self.candidates_ = [as_kernel(kernel) for kernel in given]
        if not self.candidates_ or any(isinstance(k, Kernel) and not k.settled for k in self.candidates_):
            raise ValueError("candidates must name at least one kernel, all of whose parameters are set")
        self._points: list[Array] = []
        self._targets: list[float] = []
        self._seen = 0
        self._sums = np.zeros((3, len(self.candidates_), self.groups))  # of y y' k, k^2 and (y y')^2

    def _read(self, x: Array, target: float) -> None:
        if self._points:
            points, targets = np.array(self._points), np.array(self._targets)
            group = np.arange(len(points)) % self.groups
            sizes = np.bincount(group, minlength=self.groups)
            share = self._seen / np.maximum(sizes, 1)

            def means(values: Array) -> Array:
                return np.bincount(group, values, minlength=self.groups) * share

            pairs = target * targets
            for at, kernel in enumerate(self.candidates_):
                k = np.asarray(kernel(x[None], points), np.float64).ravel()
                self._sums[:, at] += [means(pairs * k), means(k * k), means(pairs**2)]
        self._seen += 1
        slot = len(self._points)
        if slot == self.budget:
            key = np.array([self.seed, self._seen], np.uint64)
            slot = int(np.random.Generator(np.random.Philox(key=key)).integers(self._seen))
            if slot < self.budget:
                self._points[slot], self._targets[slot] = x, target
        else:
            self._points.append(x)
            self._targets.append(target)


def _spread(n: int, most: int) -> NDArray[np.int64]:
    """All of 0 .. n - 1, or ``most`` of them evenly spaced."""
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).round().astype(np.int64)


def _columns(y: ArrayLike) -> Array:
    targets = np.asarray(y, np.float64)
    if targets.ndim not in (1, 2) or len(targets) == 0:
        raise ValueError(
            f"y must hold one target a row, or one column per class, got an array of shape {targets.shape}"
        )
    targets = targets.reshape(len(targets), -1)
    if not np.isfinite(targets).all():
        row, column = np.argwhere(~np.isfinite(targets))[0]
        raise ValueError(
            f"y has {targets[row, column]} at row {row}, column {column}: only finite targets have an alignment; "
            "drop the row first"
        )
    return targets


def _alignment(square: float, sums: Array, targets: Array, centered: bool) -> float:
    """From |K|^2 and ``K [1, Y]``: all that either alignment needs of the matrix."""
    n = len(targets)
    row_sums, products = sums[:, 0], sums[:, 1:]
    if centered:
        means = targets[0] + (targets - targets[0]).mean(axis=0)  # of equal targets exactly theirs
        targets = targets - means
        products = products - row_sums[:, None] * means  # K H Y
        square = square - 2 * float(row_sums @ row_sums) / n + float(row_sums.sum()) ** 2 / n**2  # |H K H|^2
    size = np.sqrt(max(square, 0.0)) * float(np.linalg.norm(targets.T @ targets))
    return float(np.vdot(targets, products) / size) if size > 0 else 0.0
