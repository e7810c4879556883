"""Strings as rows: the counts of their n-grams, hashed, for the spectrum kernel.

phi_n(s) counts every substring of n characters of s; ``phi_n(s) . phi_n(s')`` is the spectrum kernel of order n. Hashing adds
up the counts of n-grams that share one of ``n_features`` columns, so the kernel is a little larger than the exact one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin

from kernelstream.validate import check_integer

__all__ = ["HashedNgrams"]


class HashedNgrams(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Hashed counts of the n-grams of strings, as CSR rows: what ``Spectrum`` (or ``Linear``) takes.

    Nothing is learnt, so it needs no ``fit``.

    Args:
        n: the length of the n-grams in characters, or a pair ``(shortest, longest)``: the kernel is then the sum over all
            lengths.
        n_features: the number of columns. A learner stores its points densely, so this is also the memory per point.
        signed: give half of the n-grams the sign -1, so that products are right in the mean. Not for kernels of histograms.

    This differs from the paper in:
        1. counts are hashed into a fixed number of columns, and the paper's suffix tree is not needed; 2. several lengths at
           once.

    References:
        Leslie, Eskin and Noble, "The spectrum kernel: a string kernel for SVM protein classification", PSB 2002.
        Weinberger, Dasgupta, Langford, Smola and Attenberg, "Feature hashing for large scale multitask learning", ICML 2009.

    >>> from kernelstream import KernelClassifier, Spectrum
    >>> from kernelstream.learners import KOGD
    >>> rows = HashedNgrams(n=2, n_features=64).transform(["abab", "baba", "xyxy", "yxyx"])
    >>> [float(row.sum()) for row in rows]
    [3.0, 3.0, 3.0, 3.0]
    >>> KernelClassifier(KOGD(kernel=Spectrum())).fit(rows, [0, 0, 1, 1]).predict(rows).tolist()
    [0, 0, 1, 1]
    """

    def __init__(self, n: int | tuple[int, int] = 3, *, n_features: int = 4096, signed: bool = False) -> None:
        self.n = n
        self.n_features = n_features
        self.signed = signed

    def _lengths(self) -> range:
        low, high = (self.n, self.n) if not isinstance(self.n, (tuple, list)) else self.n
        check_integer("n", low, low=1)
        check_integer("n", high, low=low)
        check_integer("n_features", self.n_features, low=1, high=2**31 - 1)
        return range(low, high + 1)

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check the parameters; strings teach nothing."""
        self._lengths()
        return self

    def partial_fit(self, X: Any = None, y: Any = None) -> Self:
        """As ``fit``."""
        return self.fit()

    def transform(self, X: Iterable[str]) -> Any:
        """The counts, a SciPy CSR array ``(len(X), n_features)`` of float64."""
        lengths = self._lengths()
        if isinstance(X, str):
            raise ValueError("X must be a sequence of strings, got one string")
        from sklearn.feature_extraction import (
            FeatureHasher,
        )  # here, because its import takes longer than ours

        hasher = FeatureHasher(
            self.n_features, input_type="string", alternate_sign=self.signed, dtype=np.float64
        )
        made = hasher.transform(self._ngrams(number, text, lengths) for number, text in enumerate(X)).tocsr()
        made.sum_duplicates()
        return made

    @staticmethod
    def _ngrams(number: int, text: Any, lengths: range) -> Iterator[str]:
        if not isinstance(text, str):
            raise ValueError(f"X must hold strings, got {text!r} at row {number}")
        return (text[at : at + n] for n in lengths for at in range(len(text) - n + 1))

    @property
    def _n_features_out(self) -> int:
        return self.n_features

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags
