"""What all kernel sketches share: they read rows once, in order, and give features whose products approximate the kernel."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from kernelstream.kernels import Kernel, as_kernel
from kernelstream.rows import checked_rows

__all__ = ["ApproximatesKernel", "KernelSketch"]

Array = NDArray[Any]


class ApproximatesKernel:
    """Features whose products approximate ``kernel_``: the approximate matrix, and how far it is off."""

    kernel_: Any

    def transform(self, X: Any) -> Any:
        """Features of the rows."""
        raise NotImplementedError

    def approximate(self, X: Any, Y: Any = None) -> Array:
        """The approximate kernel matrix of the rows of ``X`` and ``Y`` (or ``X``)."""
        left = self.transform(X)
        product = left @ (left if Y is None else self.transform(Y)).T
        return np.asarray(product.toarray() if scipy.sparse.issparse(product) else product)

    def relative_error(self, X: Any) -> float:
        """``|K~ - K|_F^2 / |K|_F^2`` over the rows of ``X``: the measure of the SkeGD paper's Table 2."""
        exact = self.kernel_(X, X)
        return float(np.sum((self.approximate(X) - exact) ** 2) / np.sum(exact**2))


class KernelSketch(ApproximatesKernel, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A scikit-learn transformer z with ``z(x) . z(x')`` close to ``k(x, x')``, learnt from a stream by ``partial_fit``.

    Subclasses have a ``kernel`` parameter and write ``_reset``, ``_read`` and ``_features``.
    """

    kernel: Any

    @abstractmethod
    def _reset(self, width: int, dtype: Any) -> None:
        """Forget everything; rows will have ``width`` features."""

    @abstractmethod
    def _read(self, rows: Any) -> None:
        """Read rows, in order."""

    @abstractmethod
    def _features(self, rows: Any) -> Array:
        """Z of rows, ``(n, features)``."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then read the rows in order, once."""
        return self._learn(X, new=True)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Read the rows in order."""
        return self._learn(X, new=not hasattr(self, "kernel_"))

    def _learn(self, X: Any, *, new: bool) -> Self:
        rows = checked_rows(self, X, reset=new)
        if new:
            if rows.n == 0:
                raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required to fit.")
            kernel = as_kernel(self.kernel)
            if isinstance(kernel, Kernel) and not kernel.settled:
                kernel = kernel.settle(rows.part(0, min(rows.n, 128)).array())
            self._reset(rows.width, np.float32 if type(rows).__name__ == "Rows32" else np.float64)
            self.kernel_ = kernel
        self._check_rows(rows)
        self._read(rows)
        return self

    def _check_rows(self, rows: Any) -> None:
        if isinstance(self.kernel_, Kernel):
            self.kernel_.check_rows(rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def transform(self, X: Any) -> Array:
        """Features of the rows."""
        check_is_fitted(self, "kernel_")
        rows = checked_rows(self, X, reset=False)
        self._check_rows(rows)
        return self._features(rows)
