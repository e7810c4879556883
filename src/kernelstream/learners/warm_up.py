"""The warm-up of a learner: the first examples, kept until the open parameters of its kernel are set from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelstream.learners.base import Array, State, state_error

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
    NAMES = ("warmup_rows", "warmup_targets", "warmup_weights")

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: list[Array] = []
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
        return sum(row.nbytes + 16 for row in self.rows)

    def upcoming(self, weights: Array, at: int) -> tuple[Array, int]:
        """The rows from ``at`` on that are learnt before the kernel is due (weights above 0), and where to stop."""
        left = self.due - len(self)
        learnt = at + np.flatnonzero(weights[at:])[:left]
        return learnt, int(learnt[-1]) + 1 if len(learnt) == left else len(weights)

    def keep(self, rows: Any, targets: Array, weights: Array, learnt: Array) -> None:
        """Keep the rows with these numbers."""
        for i in learnt:
            self.rows.append(rows.part(int(i), int(i) + 1).array()[0])
            self.targets.append(targets[i])
            self.weights.append(weights[i])

    def arrays(self, width: int, dtype: np.dtype[Any]) -> State:
        """The examples kept, by the names of a state."""
        rows = np.array(self.rows, dtype).reshape(len(self), width)
        kept = (rows, np.array(self.targets, np.float64), np.array(self.weights, np.float64))
        return dict(zip(self.NAMES, kept, strict=True))

    def load(self, arrays: State, width: int, outputs: int) -> None:
        """Take over what ``arrays`` gave."""
        rows, targets, weights = (arrays[name] for name in self.NAMES)
        n = len(targets)
        if rows.shape != (n, width) or targets.shape != (n,) or weights.shape != (n,) or n >= self.size:
            raise state_error()
        if outputs > 1 and not np.isin(targets, np.arange(outputs)).all():
            raise state_error()
        self.rows, self.targets, self.weights = (
            [row.copy() for row in rows],
            targets.tolist(),
            weights.tolist(),
        )
