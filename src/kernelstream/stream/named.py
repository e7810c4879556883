"""Data sets and built-in streams by name, behind the interface of a file's reader."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelstream.stream.datasets import DATASETS, STREAMS, open_stream
from kernelstream.stream.options import Chunk, Options, Task


def own_task(name: str) -> Task:
    """The task of a data set or stream."""
    return STREAMS[name][1] if name in STREAMS else DATASETS[name].task


class NamedReader:
    """The rows of a data set or a built-in stream."""

    def __init__(
        self, name: str, options: Options, seed: int, data_dir: str | os.PathLike[str] | None
    ) -> None:
        self._name, self._options, self._seed, self._data_dir = name, options, seed, data_dir
        self._row = 0
        self._last = options.left

    @property
    def at(self) -> dict[str, int] | None:
        """Nothing: the position is the row."""
        return None

    @property
    def total(self) -> int | None:
        """How many rows there will be in all."""
        known = DATASETS[self._name].rows if self._name in DATASETS else None
        return known if self._last is None else self._last if known is None else min(self._last, known)

    @property
    def share(self) -> float | None:
        """The share of the rows read."""
        return None if self.total is None else self._row / max(self.total, 1)

    def state(self) -> dict[str, Any]:
        """The row to go on from."""
        return {"row": self._row}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self._row = state["row"]
        if self._last is not None:
            self._last += self._row

    def rows(self) -> Iterator[Chunk]:
        """The rows from there on."""
        skip = self._row
        end = None if self._options.left is None else skip + self._options.left
        stream = open_stream(
            self._name, end, seed=self._seed, chunk_size=self._options.chunk_size, data_dir=self._data_dir
        )
        for X, y in stream.chunks:
            n = X.shape[0]
            if skip < n:
                X, y, skip = X[skip:], y[skip:], 0
                self._row += X.shape[0]
                labels = y.astype(np.float64) if self._options.task == "regression" else y
                yield Chunk(
                    X.astype(self._options.dtype, copy=False), labels if self._options.labelled else None
                )
            else:
                skip -= n
