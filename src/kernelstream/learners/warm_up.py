"""The warm-up of a learner: the first examples, kept until the open parameters of its kernel are set from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from kernelstream.learners.base import Array, State, state_error
from kernelstream.rows import WIDEST_DENSE, as_arrays, rows_of_state, state_of_rows

__all__ = ["WarmUp"]


class WarmUp:
    """The first examples learnt, and when the kernel is to be set from them: when there are 2, 4, 8, ... ``size``.

    Args:
        size: how many are kept; with the last of them the warm-up ends.

    >>> kept = WarmUp(128)
    >>> kept.due
    2
    """

    #: The arrays that a state has as long as the warm-up goes on.
    NAMES = (
        *("warmup_rows", "warmup_rows_values", "warmup_rows_columns", "warmup_rows_starts"),
        *("warmup_targets", "warmup_weights"),
    )

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: list[Any] = []  # arrays, of wide rows CSR matrices
        self.targets: list[float] = []
        self.weights: list[float] = []

    def __len__(self) -> int:
        """How many examples are kept."""
        return len(self.rows)

    @property
    def due(self) -> int:
        """At how many examples the kernel is set next."""
        return min(max(2, 1 << len(self).bit_length()), self.size)

    @property
    def nbytes(self) -> int:
        """Bytes of the examples kept."""
        return sum(
            (row.data.nbytes * 2 if scipy.sparse.issparse(row) else row.nbytes) + 16 for row in self.rows
        )

    def upcoming(self, weights: Array, at: int) -> tuple[Array, int]:
        """The rows from ``at`` on that are learnt before the kernel is due (weights above 0), and where to stop."""
        left = self.due - len(self)
        learnt = at + np.flatnonzero(weights[at:])[:left]
        return learnt, int(learnt[-1]) + 1 if len(learnt) == left else len(weights)

    def keep(self, rows: Any, targets: Array, weights: Array, learnt: Array) -> None:
        """Keep the rows with these numbers."""
        for i in learnt:
            row = rows.part(int(i), int(i) + 1)
            self.rows.append(_sparse(as_arrays(row)) if rows.width > WIDEST_DENSE else row.array())
            self.targets.append(targets[i])
            self.weights.append(weights[i])

    def recoded(self, recode: Callable[[Array], Array]) -> WarmUp:
        """The same examples with other targets, which ``recode`` makes of those there are."""
        made = WarmUp(self.size)
        made.rows, made.weights = list(self.rows), list(self.weights)
        made.targets = recode(np.array(self.targets, np.float64)).tolist()
        return made

    def stacked(self, width: int, dtype: np.dtype[Any]) -> Any:
        """The rows of the examples kept as one array or CSR matrix."""
        if width > WIDEST_DENSE:
            nothing = scipy.sparse.csr_array((0, width), dtype=dtype)
            return scipy.sparse.csr_array(
                scipy.sparse.vstack([nothing, *self.rows], format="csr"), dtype=dtype
            )
        return np.array(self.rows, dtype).reshape(len(self), width)

    def arrays(self, width: int, dtype: np.dtype[Any]) -> State:
        """The examples kept, by the names of a state."""
        return state_of_rows("warmup_rows", self.stacked(width, dtype)) | {
            "warmup_targets": np.array(self.targets, np.float64),
            "warmup_weights": np.array(self.weights, np.float64),
        }

    def load(self, arrays: State, width: int, outputs: int) -> None:
        """Take over what ``arrays`` gave."""
        rows = rows_of_state("warmup_rows", arrays, width)
        targets, weights = arrays["warmup_targets"], arrays["warmup_weights"]
        n = len(targets)
        if rows.shape != (n, width) or targets.shape != (n,) or weights.shape != (n,) or n >= self.size:
            raise state_error()
        if outputs > 1 and not np.isin(targets, np.arange(outputs)).all():
            raise state_error()
        self.rows, self.targets, self.weights = (
            [_sparse(rows[i : i + 1]) if width > WIDEST_DENSE else rows[i : i + 1].copy() for i in range(n)],
            targets.tolist(),
            weights.tolist(),
        )


def _sparse(row: Any) -> Any:
    """A row as a CSR matrix of its own."""
    return scipy.sparse.csr_array(row, copy=True)
