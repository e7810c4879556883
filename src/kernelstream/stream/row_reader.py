"""What readers of batches share: rows of a table by number, and the checks that text has in its parsers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from kernelstream.stream.bad_rows import BadRow, BadRowError, SourceError, TooWideError
from kernelstream.stream.opening import Opened
from kernelstream.stream.options import Chunk, Options
from kernelstream.tables.columns import Columns
from kernelstream.tables.features import Features
from kernelstream.tables.values import Values


class RowReader(ABC):
    """What readers of batches share: rows of a table by number. A format says how it makes batches and values."""

    what = ""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.columns = Columns(options)
        self.features = Features(options, self.columns)
        self._row = 0
        self._total: int | None = None

    @property
    def at(self) -> dict[str, int] | None:
        """Where this reader stands in the file."""
        return {"row": self._row}

    @property
    def share(self) -> float | None:
        """The share of the file read."""
        return None if self._total is None else self._row / max(self._total, 1)

    def state(self) -> dict[str, Any]:
        """What a reader needs to go on as this one would."""
        return self.features.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self.features.restore(state)

    def rows(self, opened: Opened, at: dict[str, int] | None) -> Iterator[Chunk]:
        """The rows of one file, from the beginning or from where a reader stood; those before a bad one first."""
        self._row = at["row"] if at else 0
        options = self._options
        for batch in self._batches(opened, self._row):
            done = 0
            while done < batch.num_rows:
                rows = batch.slice(done, options.size())
                values, refused = self._values(rows)
                stop = refused[0] if refused and options.bad.stops else None
                kind: type[SourceError] = BadRowError
                if stop is None:
                    try:
                        chunk = self.features.give(values)
                    except TooWideError as error:
                        good = np.delete(np.arange(rows.num_rows), [bad.row for bad in refused])
                        stop, kind = BadRow(int(good[error.row]), None, str(error)), SourceError
                if stop is not None:  # the rows before it come first
                    if not stop.row:
                        raise kind(self._message(opened.name, stop))
                    rows = rows.slice(0, stop.row)
                    values, refused = self._values(rows)
                    chunk = self.features.give(values)
                for bad in refused:
                    options.bad.meet(
                        partial(self._message, opened.name, bad), self._raw(rows.slice(bad.row, 1))
                    )
                self._last = rows, refused
                self._row += rows.num_rows
                done += rows.num_rows
                yield chunk

    def _message(self, name: str, bad: BadRow) -> str:
        column = f", column {bad.column}" if bad.column is not None else ""
        return f"{name}, row {self._row + bad.row + 1}{column}: {bad.reason}"

    @abstractmethod
    def _batches(self, opened: Opened, row: int) -> Iterator[Any]:
        """Batches from a row on, with `num_rows` and `slice`."""

    @abstractmethod
    def _values(self, batch: Any) -> tuple[Values, list[BadRow]]:
        """The values of a batch and its bad rows."""

    @abstractmethod
    def _raw(self, batch: Any) -> bytes:
        """One row as text, to be put aside."""
