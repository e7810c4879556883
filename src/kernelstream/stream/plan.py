"""What a reader is asked for: the arguments of `read` that concern every format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.stream.bad_rows import BadRows

Task = Literal["classification", "regression"]


class Rows(NamedTuple):
    """Rows as a reader gives them: features, and labels or None."""

    X: Any
    y: NDArray[Any] | None


@dataclass
class Plan:
    """The arguments that every reader looks at. `left` counts the rows still wanted, None without an end."""

    task: Task = "classification"
    target: str | int | None = None
    labelled: bool = True
    categorical: Sequence[str | int] | Literal["auto"] = "auto"
    drop: Sequence[str | int] = ()
    max_categories: int = 64
    hashed: int | None = None
    header: bool | None = None
    chunk_size: int = 8192
    n_features: int | None = None
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
