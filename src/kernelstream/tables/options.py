"""What is asked of a table's columns, by the arguments of `read` or of `TableEncoder`; and the chunks that rows become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Task = Literal["classification", "regression"]

MAX_FEATURES = 1 << 20
"""Rows with more features than this are refused unless `read` is given a larger `max_features`."""

TEXT_FEATURES = 4096
"""Features that a column of free text becomes, unless told otherwise."""


class Chunk(NamedTuple):
    """Rows that came together: features, dense or CSR, and labels, which are None for data without them.

    >>> X, y = Chunk(np.zeros((2, 3)), np.array([0, 1]))
    >>> X.shape
    (2, 3)
    """

    X: Any
    y: NDArray[Any] | None


@dataclass
class TableOptions:
    """What is asked of columns and features."""

    task: Task = "classification"
    target: str | int | None = None
    labelled: bool = True
    columns: Mapping[Any, str] = field(default_factory=dict)
    categorical: Sequence[str | int] | Literal["auto"] = "auto"
    drop: Sequence[str | int] = ()
    max_categories: int = 64
    hashed: int | None = None
    text_features: int = TEXT_FEATURES
    max_features: int = MAX_FEATURES
    dtype: np.dtype[Any] = field(default_factory=lambda: np.dtype(np.float64))
    keep: str | int | None = None  # a column whose values are given beside the rows
    frozen: bool = False  # the features are known: none are added

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
