"""Approximate linear dependency (ALD): keep a row if it is far from the span of the rows kept.

With K the kernel matrix of the dictionary and k the row's values against it, a row is kept if
``delta = k(x, x) - k^T K^-1 k > nu``.
"""

from __future__ import annotations

from typing import Any

from kernelstream.sketches.base import Array
from kernelstream.sketches.leverage import DictionarySketch
from kernelstream.validate import check_number

__all__ = ["ApproximateLinearDependency"]


class ApproximateLinearDependency(DictionarySketch):
    """The ALD dictionary: rows that were further than ``nu`` from the span of those kept before.

    Until the dictionary is full, every row read is within a squared distance ``nu`` of the span of those kept
    (or of ``1e-10 k(x, x)``, if that is more).

    The features are ``L^-1 k(x)`` with ``L L^T = K`` over the dictionary: their products are the Nystrom
    kernel, and the squared length of a row's features falls short of ``k(x, x)`` by its residual delta.

    Args:
        nu: squared distance from the span above which a row is kept.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.
        max_size: how many rows at most; a full dictionary stays as it is.

    Attributes:
        components_, indices_, n_seen_, nbytes_: the dictionary.

    This differs from the paper in:
        1. the cap;
        2. a row with ``delta <= 1e-10 k(x, x)`` is never kept;
        3. rows with ``k(x, x) = 0`` are passed over, and the first other row is kept whatever nu, as in the
           paper; a row with a kernel value that is not finite is refused with ``ScoreOverflowError``, and the
           rows before it stay read.

    Kernel values are computed in double precision for float32 data too.

    References:
        Engel, Mannor and Meir, "The kernel recursive least-squares algorithm", IEEE Trans. Signal Processing
        52, 2004.

    >>> from kernelstream import Gaussian
    >>> ald = ApproximateLinearDependency(nu=0.1, kernel=Gaussian(gamma=1.0))
    >>> ald.fit([[0.0], [0.1], [2.0], [0.0]]).indices_.tolist()
    [0, 2]
    """

    def __init__(self, nu: float = 0.1, *, kernel: Any = None, max_size: int = 1000) -> None:
        self.nu = nu
        self.kernel = kernel
        self.max_size = max_size

    def _rule(self) -> dict[str, Any]:
        return {"sampled": False, "nu": check_number("nu", self.nu, low=0)}

    def residual(self, X: Any) -> Array:
        """Delta of the rows of ``X``; nothing is learnt."""
        return self._scores(X)
