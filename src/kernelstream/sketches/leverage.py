"""Kernel online row sampling (KORS): a dictionary chosen by ridge leverage scores, in one pass.

With ``phi_t = phi(x_t)``, the dictionary of kept rows ``(i, 1 / p_i)`` and ``Psi = [phi_i / sqrt(p_i)]`` (the
selection matrix holds ``1 / sqrt(p)``, so that ``E[Psi Psi^T] = sum_t phi_t phi_t^T``):

    tau_t = (1 + eps) phi_t^T (Psi Psi^T + phi_t phi_t^T + alpha I)^-1 phi_t        the estimate, Eq. 4
    p_t = min(beta tau_t, 1);  keep x_t with probability p_t and weight 1 / p_t
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from kernelstream._core import core
from kernelstream.errors import ScoreOverflowError
from kernelstream.kernels import core_kernel
from kernelstream.rows import as_rows, checked_rows
from kernelstream.sketches.base import Array, KernelSketch
from kernelstream.validate import check_integer, check_number

__all__ = ["DictionarySketch", "RidgeLeverageSampler"]


class DictionarySketch(KernelSketch):
    """A sketch made of a dictionary of rows: what KORS and ALD share.

    Attributes:
        components_: the rows kept. indices_: their numbers in the stream, from 0. n_seen_: rows read.
            nbytes_: bytes of state.
    """

    max_size: int
    _core: core.Dictionary64

    @abstractmethod
    def _rule(self) -> dict[str, Any]:
        """The hyper-parameters by the core's names."""

    def _reset(self, width: int, dtype: Any) -> None:
        check_integer("max_size", self.max_size, low=1)
        self._rule()
        self._shape = (int(width), np.dtype(dtype).itemsize)
        self._core = None  # type: ignore[assignment]  # until the kernel is settled; no other method runs before

    def _build(self) -> Any:
        width, itemsize = self._shape
        kind = getattr(core, "Dictionary32" if itemsize == 4 else "Dictionary64")
        return kind(width=width, budget=self.max_size, kernel=core_kernel(self.kernel_), **self._rule())

    def _same(self, rows: Any) -> Any:
        """The rows in the precision of the dictionary."""
        dtype = np.float32 if self._shape[1] == 4 else np.float64
        return rows if type(rows).__name__.endswith(str(8 * self._shape[1])) else as_rows(rows.array(), dtype)

    def _read(self, rows: Any) -> None:
        if self._core is None:
            self._core = self._build()
        stopped = self._core.read(self._same(rows))
        if stopped < rows.n:
            raise ScoreOverflowError(
                "a kernel value of row {row} is not finite, and the rows from it on were not read: "
                "scale the inputs (StandardScaler)",
                stopped,
            )

    def _features(self, rows: Any) -> Array:
        return self._core.features(self._same(rows)).astype(
            np.float32 if self._shape[1] == 4 else np.float64, copy=False
        )

    def _scores(self, X: Any) -> Array:
        return self._core.leverages(self._same(checked_rows(self, X, reset=False)))

    @property
    def _n_features_out(self) -> int:
        return self._core.count

    @property
    def components_(self) -> Array:
        """The rows kept."""
        return self._core.state()["points"]

    @property
    def indices_(self) -> Array:
        """The numbers of the rows kept, in the stream."""
        return self._core.state()["born"]

    @property
    def n_seen_(self) -> int:
        """How many rows have been read."""
        return int(self._core.state()["seen"][0])

    @property
    def nbytes_(self) -> int:
        """Bytes of state."""
        return self._core.nbytes

    def __getstate__(self) -> dict[str, Any]:
        """As scikit-learn does it, with the core as arrays."""
        kept: dict[str, Any] = super().__getstate__()
        if getattr(self, "_core", None) is not None:
            kept = kept | {"_core": self._core.state()}
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Undo ``__getstate__``."""
        super().__setstate__(kept)
        arrays = kept.get("_core")
        if arrays is not None:
            self._core = self._build()
            self._core.restore(arrays)


class RidgeLeverageSampler(DictionarySketch):
    """KORS: keeps a row with a probability proportional to its ridge leverage score among the rows so far.

    The features are ``L^-1 S^T k(x)`` with ``L L^T = S^T K S + alpha I`` over the dictionary and S holding
    ``1 / sqrt(p)``: their products are the regularised Nystrom kernel ``K S (S^T K S + alpha I)^-1 S^T K``,
    which lies below K, by no more than ``alpha / (1 - eps)`` if the guarantee holds.

    Args:
        alpha: the ridge.
        beta: oversampling; the theory asks for ``3 log(T / delta) / eps^2``.
        eps: accuracy, in (0, 1]; estimates are inflated by 1 + eps.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.
        max_size: how many rows at most; a full dictionary stays as it is.
        seed: of the coins.

    Attributes:
        components_, indices_, n_seen_, nbytes_: the dictionary. probabilities_, weights_: p and 1 / p of each
            row kept.
        effective_dimension_: ``Tr(K (K + alpha I)^-1)`` of the rows read until the dictionary was full,
            estimated from the dictionary.
        online_dimension_: the sum of the estimates tau_t of the rows read until the dictionary was full.

    This differs from the paper in:
        1. the cap: once the dictionary is full, rows are neither measured nor kept;
        2. rows with ``k(x, x) = 0`` are passed over; a row with a kernel value that is not finite is refused
           with ``ScoreOverflowError``, and the rows before it stay read.

    Kernel values are computed in double precision for float32 data too.

    References:
        Calandriello, Lazaric and Valko, "Second-order kernel online convex optimization with adaptive
        sketching", ICML 2017. Cohen, Musco and Pachocki, "Online row sampling", APPROX 2016.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> sampler = RidgeLeverageSampler(alpha=1.0, beta=4.0).fit(X)
    >>> len(sampler.components_) < 250
    True
    >>> sampler.transform(X[:3]).shape == (3, len(sampler.components_))
    True
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        beta: float = 4.0,
        eps: float = 0.5,
        kernel: Any = None,
        max_size: int = 1000,
        seed: int = 0,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.eps = eps
        self.kernel = kernel
        self.max_size = max_size
        self.seed = seed

    def _rule(self) -> dict[str, Any]:
        return {
            "sampled": True,
            "ridge": check_number("alpha", self.alpha, low=0, open_low=True),
            "beta": check_number("beta", self.beta, low=0, open_low=True),
            "eps": check_number("eps", self.eps, low=0, high=1, open_low=True),
            "seed": check_integer("seed", self.seed, low=0, high=2**64 - 1),
        }

    def leverage(self, X: Any) -> Array:
        """The estimates tau that the rows of ``X`` would have if each came next; nothing is learnt."""
        return self._scores(X)

    @property
    def probabilities_(self) -> Array:
        """The probability p of each row kept."""
        scales: Array = self._core.state()["dictionary_scales"]
        return 1 / scales**2

    @property
    def weights_(self) -> Array:
        """1 / p of each row kept."""
        scales: Array = self._core.state()["dictionary_scales"]
        return scales**2

    @property
    def effective_dimension_(self) -> float:
        """``Tr(Psi^T Psi (Psi^T Psi + alpha I)^-1)``.

        It estimates the effective dimension of the rows read until the dictionary was full; later rows do not count.
        """
        packed, n = self._core.state()["dictionary"], self._n_features_out
        L = np.zeros((n, n))
        L[np.tril_indices(n)] = packed
        return float(n - self.alpha * np.sum(np.linalg.inv(L) ** 2)) if n else 0.0

    @property
    def online_dimension_(self) -> float:
        """The sum of the estimates of the rows read until the dictionary was full.

        It is an upper estimate of the online effective dimension of those rows; later ones do not count.
        """
        return float(self._core.state()["online"][0])
