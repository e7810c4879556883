"""What a reader is asked for: the arguments of `read` that concern every format; and the chunks that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.stream.bad_rows import BadRows

Task = Literal["classification", "regression"]

MAX_FEATURES = 1 << 20
"""Rows with more features than this are refused unless `read` is given a larger `max_features`."""


class Chunk(NamedTuple):
    """Rows that came together: features, dense or CSR, and labels, which are None for data without them.

    >>> X, y = Chunk(np.zeros((2, 3)), np.array([0, 1]))
    >>> X.shape
    (2, 3)
    """

    X: Any
    y: NDArray[Any] | None


@dataclass
class Options:
    """The arguments that every reader looks at. `left` counts the rows still wanted, None without an end."""

    task: Task = "classification"
    target: str | int | None = None
    labelled: bool = True
    categorical: Sequence[str | int] | Literal["auto"] = "auto"
    drop: Sequence[str | int] = ()
    max_categories: int = 64
    hashed: int | None = None
    header: bool | None = None
    delimiter: str | None = None
    chunk_size: int = 8192
    latency: float | None = None
    charset: str | None = None
    keep: str | int | None = None  # a column whose values are given beside the rows
    n_features: int | None = None
    max_features: int = MAX_FEATURES
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float64))
    left: int | None = None
    frozen: bool = False  # the features are known: none are added
    bad: BadRows = field(default_factory=lambda: BadRows("stop"))

    def size(self) -> int:
        """The most rows to give next."""
        return self.chunk_size if self.left is None else min(self.chunk_size, self.left)

    def labels(self, labels: NDArray[Any]) -> NDArray[Any] | None:
        """Labels as they are given out: whole numbers in classification, floats in regression."""
        if not self.labelled:
            return None
        return (
            labels if self.task == "regression" or labels.dtype.kind not in "f" else labels.astype(np.int64)
        )

    @property
    def largest(self) -> float:
        """The largest magnitude of a number that is finite in the type asked for."""
        return float(np.finfo(self.dtype).max)
