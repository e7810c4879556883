"""The fast model of kernel matrix approximation: the modified Nystrom model seen through a sketch S.

With C = K(:, M) the columns of the kernel matrix at the landmarks M, the modified Nystrom model is the least squares problem
``min_F |C F C^T - K|``; the fast model is the same problem with ``s`` rows and columns in place of n:

    F_fast = argmin_F |S^T (C F C^T - K) S|_F^2 = (S^T C)^+ (S^T K S) (C^T S)^+

S = I gives the modified Nystrom model, S with the columns of the landmarks the Nystrom approximation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.sketches.nystrom import ModifiedNystrom, cut_svd, sampled
from kernelstream.sketches.sjlt import SJLT, hashed, uniform
from kernelstream.validate import check_choice, check_integer

__all__ = ["FastNystrom", "sketch_matrix"]

Array = NDArray[Any]

SKETCHES = ("uniform", "leverage", "count", "sjlt", "gaussian", "srht")
_BLOCK = 256


def sketch_matrix(name: str, n: int, size: int, seed: int, leverages: Array | None = None) -> Any:
    """S, ``n x size``, with ``E S S^T = I``; SciPy CSR where most entries are zero.

    - ``"uniform"``: rows drawn without replacement; ``"leverage"``: with replacement, in proportion to ``leverages``;
    - ``"count"``, ``"sjlt"``: one and four nonzeros per row at hashed places, with random signs;
    - ``"gaussian"``: independent normal numbers;
    - ``"srht"``: columns of a Hadamard matrix, drawn without replacement, each row with a random sign.

    >>> sketch_matrix("count", 5, 3, seed=0).shape
    (5, 3)
    >>> abs(sketch_matrix("srht", 4, 4, seed=0)).tolist()[0]
    [0.5, 0.5, 0.5, 0.5]
    """
    import scipy.sparse

    if name in ("count", "sjlt"):
        blocks = 1 if name == "count" else min(4, size)
        return SJLT(size, blocks=blocks, seed=seed).matrix(np.arange(n))
    if name == "gaussian":
        bits = hashed(seed, np.arange(n)[:, None], np.arange(size)[None, :])
        return scipy.special.ndtri(uniform(bits) + 2.0**-54) / np.sqrt(size)
    if name == "srht":
        length = 1 << max(0, n - 1).bit_length()
        signs = np.where(hashed(seed, np.arange(n), 1) & np.uint64(1), 1.0, -1.0)
        both = np.arange(n)[:, None] & sampled(length, size, seed)[None, :]
        for shift in (32, 16, 8, 4, 2, 1):  # the lowest bit becomes the parity of all
            both ^= both >> shift
        made: Array = signs[:, None] * np.where(both & 1, -1.0, 1.0) / np.sqrt(both.shape[1])
        return made
    if name == "uniform":
        drawn, chances = sampled(n, size, seed), np.full(n, 1 / n)
    else:
        weights = np.ones(n) if leverages is None else leverages
        chances = weights / weights.sum()
        draws = uniform(hashed(seed, np.arange(size), 2))
        drawn = np.minimum(np.searchsorted(np.cumsum(chances), draws, side="right"), n - 1)
    columns = np.arange(len(drawn))
    return scipy.sparse.csr_array(
        (1 / np.sqrt(len(drawn) * chances[drawn]), (drawn, columns)), shape=(n, len(drawn))
    )


class FastNystrom(ModifiedNystrom):
    """The fast model ``C F C^T`` with any sketch S: near the modified Nystrom model, for less. A batch method.

    Kernel values needed besides C: ``size^2`` for the sketches that draw rows, all of them (in blocks) for the others.

    Args:
        samples: how many landmarks, drawn uniformly from the rows read.
        size: the columns of S (s), at least ``samples``; by default four times as many.
        sketch: ``"uniform"``, ``"leverage"`` (rows of C by their leverage scores), ``"count"``, ``"sjlt"``, ``"gaussian"`` or
            ``"srht"``; see `sketch_matrix`.
        rank: how many features; by default as many as landmarks.
        max_size: how many rows at most.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.
        seed: of the draws.

    This differs from the paper in:
        1. singular values of ``S^T C`` below 1e-10 of the largest are left out; 2. S does not contain the landmarks on purpose
           (the paper recommends it for drawn rows); 3. the cut to ``rank`` (none by default); 4. the Hadamard transform of
           ``"srht"`` is a product with its drawn columns, which is slower than the fast transform.

    References:
        Wang, Zhang and Zhang, "Towards more efficient SPSD matrix approximation and CUR matrix decomposition", JMLR 17, 2016.

    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> bool(FastNystrom(samples=50, sketch="gaussian").fit(X).relative_error(X) < 0.01)
    True
    """

    def __init__(
        self,
        samples: int = 50,
        *,
        size: int | None = None,
        sketch: str = "uniform",
        rank: int | None = None,
        max_size: int = 10_000,
        kernel: Any = None,
        seed: int = 0,
    ) -> None:
        super().__init__(samples, rank=rank, max_size=max_size, kernel=kernel, seed=seed)
        self.size = size
        self.sketch = sketch

    def _reset(self, width: int, dtype: Any) -> None:
        super()._reset(width, dtype)
        check_choice("sketch", self.sketch, SKETCHES)
        if self.size is not None:
            check_integer("size", self.size, low=self.samples)

    def _sketched(self, drawn: Array) -> tuple[Array, Array]:
        rows, n = self._rows, len(self._rows)
        C = np.asarray(self.kernel_(rows, rows[drawn]), np.float64)
        leverages = (cut_svd(C)[0] ** 2).sum(axis=1) if self.sketch == "leverage" else None
        size = 4 * self.samples if self.size is None else self.size
        S = sketch_matrix(self.sketch, n, size, self.seed, leverages)
        if self.sketch in ("uniform", "leverage"):
            chosen, scales = S.tocsc().indices, S.tocsc().data
            K = np.asarray(self.kernel_(rows[chosen], rows[chosen]), np.float64)
            return scales[:, None] * C[chosen], scales[:, None] * K * scales
        small = np.zeros((S.shape[1], S.shape[1]))
        for start in range(0, n, _BLOCK):
            part = slice(start, start + _BLOCK)
            small += S[part].T @ (np.asarray(self.kernel_(rows[part], rows), np.float64) @ S)
        return S.T @ C, small
