"""The sparser Johnson-Lindenstrauss transform, in its block form, with rows made when they are asked for.

    S = [S_1, ..., S_d] in R^{n x s},   [S_k]_{i, h_k(i)} = sigma_k(i) in {-1/sqrt(d), 1/sqrt(d)},  else zero,

with hash functions ``h_k: {0, 1, ...} -> {0, ..., s/d - 1}``. One block (d = 1) is the Count Sketch. For
every A, ``E |S^T A|_F^2 = |A|_F^2`` and ``Var |S^T A|_F^2 <= (2 / s) |A|_F^4`` (Lemma 1 of the SkeGD paper).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from kernelstream.kernels import Linear
from kernelstream.sketches.base import ApproximatesKernel
from kernelstream.validate import check_integer

__all__ = ["SJLT", "hashed", "uniform"]

Array = NDArray[Any]

_STEP = np.uint64(0x9E3779B97F4A7C15)


def _mix(z: Array) -> Array:
    """The output function of splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = z ^ (z >> np.uint64(31))
    return mixed


def hashed(seed: int, *counters: ArrayLike) -> Array:
    """64 bits for each element of the counters (whole numbers >= 0, broadcast) and the seed.

    >>> bool(hashed(0, 3)[()] == hashed(0, [2, 3])[1])
    True
    """
    state = _mix(np.asarray(seed, np.uint64).reshape(1) + _STEP)
    for counter in counters:
        state = _mix(state + _STEP * (np.atleast_1d(counter).astype(np.uint64) + np.uint64(1)))
    return state.reshape(np.broadcast_shapes(*(np.shape(c) for c in counters)))


def uniform(bits: Array) -> Array:
    """Numbers in [0, 1) of the 53 highest bits."""
    made: Array = (bits >> np.uint64(11)) * 2.0**-53
    return made


class SJLT(ApproximatesKernel, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Random projection with a few nonzeros a row (SJLT); with one block, the Count Sketch.

    As a transformer it takes rows x to ``S^T x``: features are hashed into ``n_components`` signed sums,
    inner products and norms are kept in the mean. `rows` gives rows of S by their numbers, for sketches whose
    rows are the examples of a stream. Nothing is stored: row i is a hash of the seed, i and the block.

    Args:
        n_components: number of columns (s), rounded down to a multiple of ``blocks``.
        blocks: nonzeros of a row (d).
        seed: of the hash functions.

    This differs from the paper in:
        1. the hash functions are splitmix64 of (seed, row, block), not members of a family with proven
           independence.

    References:
        Kane and Nelson, "Sparser Johnson-Lindenstrauss transforms", JACM 61, 2014.
        Charikar, Chen and Farach-Colton, "Finding frequent items in data streams", TCS 312, 2004.

    >>> sketch = SJLT(n_components=64, blocks=4).fit([[0.0] * 1000])
    >>> z = sketch.transform([[1.0] * 1000])
    >>> z.shape, bool(abs(z @ z.T - 1000)[0, 0] < 600)
    ((1, 64), True)
    """

    kernel_ = Linear()  # products of rows are what a random projection keeps

    def __init__(self, n_components: int = 100, *, blocks: int = 4, seed: int = 0) -> None:
        self.n_components = n_components
        self.blocks = blocks
        self.seed = seed

    def check(self) -> None:
        """Raise ``ValueError`` if a parameter is out of range."""
        check_integer("blocks", self.blocks, low=1)
        check_integer("n_components", self.n_components, low=1)
        if self.n_components < self.blocks:
            raise ValueError(
                f"n_components must be at least blocks={self.blocks} (each block needs a column), "
                f"got {self.n_components}"
            )
        check_integer("seed", self.seed, low=0, high=2**64 - 1)

    @property
    def size(self) -> int:
        """Number of columns in use (s): a multiple of ``blocks``."""
        self.check()
        return self.n_components // self.blocks * self.blocks

    def rows(self, numbers: ArrayLike) -> tuple[Array, Array]:
        """The nonzeros of the rows with these numbers: columns and values, each ``(n, blocks)``.

        >>> columns, values = SJLT(8, blocks=2).rows([0, 5])
        >>> columns.shape, sorted(set(abs(values).ravel().round(4).tolist()))
        ((2, 2), [0.7071])
        """
        blocks = np.arange(self.blocks)
        bits = hashed(self.seed, np.asarray(numbers)[:, None], blocks)
        width = self.size // self.blocks
        columns = blocks * width + (uniform(bits) * width).astype(np.int64)
        # the lowest bit has no part in `uniform`
        values = np.where(bits & np.uint64(1), 1.0, -1.0) / np.sqrt(self.blocks)
        return columns, values

    def matrix(self, numbers: ArrayLike) -> Any:
        """The rows with these numbers, as a SciPy CSR array ``(n, size)``."""
        columns, values = self.rows(numbers)
        starts = np.arange(len(columns) + 1) * self.blocks
        shape = (len(columns), self.size)
        return scipy.sparse.csr_array((values.ravel(), columns.ravel(), starts), shape=shape)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number of features."""
        self.check()
        self._validated(X, reset=True)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn the number of features; rows teach nothing else."""
        if hasattr(self, "n_features_in_"):
            self._validated(X, reset=False)
            return self
        return self.fit(X)

    def transform(self, X: Any) -> Any:
        """``S^T x`` of the rows: an array, or CSR if ``X`` is sparse; float32 stays float32."""
        check_is_fitted(self, "n_features_in_")
        X = self._validated(X, reset=False)
        if not scipy.sparse.issparse(X):
            return X @ self.matrix(np.arange(X.shape[1])).astype(X.dtype)
        # rows of S for features that occur, however many there are
        used, columns = np.unique(X.indices, return_inverse=True)
        compact = scipy.sparse.csr_array((X.data, columns, X.indptr), shape=(X.shape[0], len(used)))
        return (compact @ self.matrix(used).astype(X.dtype)).tocsr()

    def _validated(self, X: Any, *, reset: bool) -> Any:
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])

    @property
    def _n_features_out(self) -> int:
        return self.size

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
