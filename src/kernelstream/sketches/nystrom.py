"""The Nystrom approximation, and the modified one, which is better and costs more.

With C = K(:, M) the columns of the kernel matrix at the landmarks M, and W = K(M, M):

    Nystrom            K ~ C W^+ C^T,
    modified Nystrom   K ~ C F C^T,   F = argmin_F |C F C^T - K|_F^2 = C^+ K (C^+)^T.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.errors import CapacityError
from kernelstream.sketches.base import KernelSketch
from kernelstream.sketches.sjlt import hashed
from kernelstream.validate import check_integer

__all__ = ["IncrementalNystrom", "ModifiedNystrom", "nystrom_map", "top_eigenpairs"]

Array = NDArray[Any]


#: A direction is used if its eigenvalue is above this part of the largest.
CUT = 1e-10


def top_eigenpairs(E: Array, rank: int) -> tuple[Array, Array]:
    """The ``rank`` largest eigenvalues of a symmetric matrix, falling, and their vectors as columns.

    >>> top_eigenpairs(np.diag([1.0, 3.0, 2.0]), 2)[0].tolist()
    [3.0, 2.0]
    """
    values, vectors = np.linalg.eigh(E)
    return np.ascontiguousarray(values[::-1][:rank]), np.ascontiguousarray(vectors[:, ::-1][:, :rank])


def nystrom_map(values: Array, vectors: Array) -> tuple[Array, Array]:
    """``(S^-1/2 U^T, S^1/2 U^T)`` of leading eigenpairs; both are zero in directions below the cut.

    The first takes kernel values against the landmarks to features, the second kernel weights to feature
    weights.

    >>> nystrom_map(np.array([4.0, 0.0]), np.eye(2))[0].tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    good = values > max(0.0, CUT * values[0])
    roots = np.sqrt(np.where(good, values, 1.0))
    features, lift = np.where(good, 1 / roots, 0.0), np.where(good, roots, 0.0)
    return features[:, None] * vectors.T, lift[:, None] * vectors.T


class _LandmarkSketch(KernelSketch):
    """A sketch with features ``M k(x)``, k the kernel values against landmarks."""

    _made: list[tuple[Array, Array]]  # the map, once it has been asked for; emptied by every change

    @property
    @abstractmethod
    def _n_features_out(self) -> int:
        """How many features."""

    @abstractmethod
    def _make_map(self) -> tuple[Array, Array]:
        """Landmarks and M; rows that M lacks are zero features."""

    def landmark_map(self) -> tuple[Array, Array]:
        """Landmarks and the matrix M from kernel values to features."""
        if not self._made:
            self._made.append(self._make_map())
        return self._made[0]

    def _features(self, rows: Any) -> Array:
        landmarks, matrix = self.landmark_map()
        made = np.zeros((rows.n, self._n_features_out), landmarks.dtype)
        made[:, : len(matrix)] = self.kernel_(rows.array(), landmarks) @ matrix.T
        return made


class IncrementalNystrom(_LandmarkSketch):
    """Nystrom features on the first B rows of a stream, fixed from then on (INys; the map of NOGD).

    Args:
        budget: how many landmarks (B).
        rank: how many features (k); by default a fifth of the budget.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.

    This differs from the paper in:
        1. directions with an eigenvalue below 1e-10 of the largest give zero features;
        2. before B rows have been read, the map is that of the rows read.

    References:
        Lu, Hoi, Wang, Zhao and Liu, "Large scale online kernel learning", JMLR 17, 2016.

    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> bool(IncrementalNystrom(budget=100, rank=100).fit(X).relative_error(X) < 0.01)
    True
    """

    def __init__(self, budget: int = 100, *, rank: int | None = None, kernel: Any = None) -> None:
        self.budget = budget
        self.rank = rank
        self.kernel = kernel

    @property
    def _n_features_out(self) -> int:
        return max(1, self.budget // 5) if self.rank is None else self.rank

    def _reset(self, width: int, dtype: Any) -> None:
        check_integer("budget", self.budget, low=1)
        if self.rank is not None:
            check_integer("rank", self.rank, low=1, high=self.budget)
        self._points = np.empty((0, width), dtype)
        self._made = []

    def _read(self, rows: Any) -> None:
        wanted = min(rows.n, self.budget - len(self._points))
        if wanted:
            self._points = np.vstack([self._points, rows.part(0, wanted).array()])
            self._made.clear()

    def _make_map(self) -> tuple[Array, Array]:
        K = np.asarray(self.kernel_(self._points, self._points), np.float64)
        return self._points, nystrom_map(*top_eigenpairs((K + K.T) / 2, self._n_features_out))[0]


class ModifiedNystrom(_LandmarkSketch):
    """The modified Nystrom (or prototype) model: the best ``C F C^T`` on all rows read. A batch method.

    With an orthonormal basis U of C's columns, ``C F C^T = U (U^T K U) U^T``, so the ``rank`` largest
    eigenvalues of the middle give its best approximation of that rank, and clipping the negative ones
    (rounding) the features.

    Args:
        samples: how many landmarks, drawn uniformly from the rows read.
        rank: how many features; by default as many as landmarks.
        max_size: how many rows at most; the whole kernel matrix is computed, so memory grows with their
            square.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.
        seed: of the draw.

    This differs from the paper in:
        1. singular values of C below 1e-10 of the largest are left out; 2. uniform draws, not the paper's
           adaptive sampling; 3. the cut to ``rank`` (none by default).

    References:
        Wang and Zhang, "Improving CUR matrix decomposition and the Nystrom approximation via adaptive
        sampling", JMLR 14, 2013.

    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> bool(ModifiedNystrom(samples=50).fit(X).relative_error(X) < 0.01)
    True
    """

    def __init__(
        self,
        samples: int = 50,
        *,
        rank: int | None = None,
        max_size: int = 10_000,
        kernel: Any = None,
        seed: int = 0,
    ) -> None:
        self.samples = samples
        self.rank = rank
        self.max_size = max_size
        self.kernel = kernel
        self.seed = seed

    @property
    def _n_features_out(self) -> int:
        return self.samples if self.rank is None else self.rank

    def _reset(self, width: int, dtype: Any) -> None:
        check_integer("samples", self.samples, low=1)
        if self.rank is not None:
            check_integer("rank", self.rank, low=1, high=self.samples)
        check_integer("max_size", self.max_size, low=1)
        check_integer("seed", self.seed, low=0, high=2**64 - 1)
        self._rows = np.empty((0, width), dtype)
        self._made = []

    def _read(self, rows: Any) -> None:
        if len(self._rows) + rows.n > self.max_size:
            raise CapacityError(
                f"{type(self).__name__} holds at most max_size={self.max_size} rows and row {{row}} is one more: "
                "raise max_size or use IncrementalSketch, which is bounded",
                self.max_size - len(self._rows),
            )
        self._rows = np.vstack([self._rows, rows.array()])
        self._made.clear()

    def _make_map(self) -> tuple[Array, Array]:
        drawn = sampled(len(self._rows), self.samples, self.seed)
        C, K = self._sketched(drawn)
        U, singular, Vt = cut_svd(C)
        values, vectors = np.linalg.eigh(U.T @ ((K + K.T) / 2) @ U)
        values, vectors = values[::-1][: self._n_features_out], vectors[:, ::-1][:, : self._n_features_out]
        return self._rows[drawn], (np.sqrt(np.maximum(values, 0))[:, None] * vectors.T / singular) @ Vt

    def _sketched(self, drawn: Array) -> tuple[Array, Array]:
        """The columns at the landmarks and the kernel matrix, or sketches of both."""
        K = np.asarray(self.kernel_(self._rows, self._rows), np.float64)
        return K[:, drawn], K


def sampled(n: int, samples: int, seed: int) -> Array:
    """``samples`` of n numbers without replacement, in order; all of them if there are no more.

    >>> sampled(3, 5, seed=0).tolist()
    [0, 1, 2]
    """
    return np.sort(np.argsort(hashed(seed, np.arange(n), 0, 1), kind="stable")[:samples])


def cut_svd(A: Array, rank: int | None = None) -> tuple[Array, Array, Array]:
    """``A ~ U diag(s) V^T`` of the ``rank`` largest singular values (None: all) above 1e-10 of the largest.

    >>> cut_svd(np.diag([2.0, 1e-20]))[1].tolist()
    [2.0]
    """
    U, singular, Vt = np.linalg.svd(A, full_matrices=False)
    kept = np.flatnonzero(singular > 1e-10 * singular.max(initial=0.0))[:rank]
    return U[:, kept], singular[kept], Vt[kept]
