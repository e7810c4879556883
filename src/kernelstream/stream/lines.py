"""Blocks of whole records from text of any length: what every reader of text stands on."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream import _text
from kernelstream.stream.bad_rows import BadRow, BadRowError, SourceError, TooWideError
from kernelstream.stream.opening import Opened
from kernelstream.stream.options import Chunk, Options
from kernelstream.stream.pipes import PATIENCE

LONGEST_RECORD = 64 << 20
"""A line (or a CSV record) longer than this many bytes is an error: so memory stays bounded whatever comes."""

BLOCK = 8 << 20
"""A record that begins this many bytes after the first one of a block belongs to the next block."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # what some editors put before UTF-8


@dataclass(frozen=True)
class Block:
    """Whole records: their text, where each ends in it, and the number of the first line."""

    text: bytes
    ends: NDArray[np.int64]
    line: int
    delimiter: str = ""  # of CSV records, which may hold several lines

    @property
    def lines(self) -> int:
        """How many lines end in it."""
        if b'"' in self.text:  # a record may have several
            return self._line_ends(len(self.text))
        return len(self.ends) - (not self.text.endswith((b"\n", b"\r") if self.delimiter else b"\n"))

    def record(self, number: int) -> bytes:
        """The text of one record."""
        return self.text[self._start(number) : int(self.ends[number])]

    def line_of(self, number: int) -> int:
        """The line on which a record begins."""
        return self.line + self._line_ends(self._start(number))

    def before(self, number: int) -> Block:
        """The records before one of them."""
        return Block(self.text[: self._start(number)], self.ends[:number], self.line, self.delimiter)

    def _start(self, number: int) -> int:
        return int(self.ends[number - 1]) if number else 0

    def _line_ends(self, stop: int) -> int:
        if self.delimiter:
            return _text.line_ends(memoryview(self.text)[:stop])
        return self.text.count(b"\n", 0, stop)


class Lines:
    r"""Takes blocks of records from a source and knows where it stands.

    Args:
        opened: the bytes.
        delimiter: of a table whose fields may be quoted; empty for records that are lines.
        at: where to go on, as `at` said.
        latency: give the records that have come when the first of them has waited so many seconds for more.

    Examples:
        >>> import io
        >>> lines = Lines(Opened(io.BytesIO(b"a\nb\nc")))
        >>> lines.take(2).text, lines.at, lines.take(2).text, lines.take(2)
        (b'a\nb\n', {'offset': 4, 'line': 3}, b'c', None)
    """

    def __init__(
        self,
        opened: Opened,
        delimiter: str = "",
        at: dict[str, int] | None = None,
        latency: float | None = None,
    ) -> None:
        self._opened, self._delimiter, self._latency = opened, delimiter, latency
        self._buffer = bytearray()
        self._finished = False
        self._failed: Exception | None = None
        if at is None and opened.peek(len(_BYTE_ORDER_MARK)) == _BYTE_ORDER_MARK:
            at = {"offset": len(_BYTE_ORDER_MARK), "line": 1}
        self.at = {"offset": 0, "line": 1} if at is None else dict(at)
        opened.skip(self.at["offset"])

    def take(self, most: int) -> Block | None:
        """The next records, at most so many; None at the end."""
        block = self.look(most)
        if block is not None:
            self.drop(block)
        return block

    def look(self, most: int, *, wait: bool = False) -> Block | None:
        """The next records, which stay to be taken; None at the end.

        With `wait`, latency does not matter, unless the pipe is slow.
        """
        ends: list[NDArray[np.int64]] = []
        count = scanned = 0
        since: float | None = None  # the first record is there
        while True:
            new = _text.record_ends(self._buffer, scanned, most - count, self._delimiter, self._finished)
            if len(new):
                new = new[: np.searchsorted(new, BLOCK) + 1]  # no record that begins beyond it
                if len(self._buffer) > LONGEST_RECORD:
                    new = new[: _first(np.diff(new, prepend=scanned) > LONGEST_RECORD)]
            if len(new):
                ends.append(new)
                count += len(new)
                scanned = int(new[-1])
            if count == most or scanned >= BLOCK:
                break
            if len(self._buffer) - scanned > LONGEST_RECORD:
                if count:
                    break
                raise SourceError(self._too_long())
            if self._finished:
                if scanned < len(self._buffer) and self._failed is None:  # the last line has no line end
                    ends.append(np.array([len(self._buffer)]))
                break
            if count and self._latency is not None:
                since = since or time.monotonic()
                left = PATIENCE if wait else self._latency - (time.monotonic() - since)
                if (left <= 0 < self._latency) or self._opened.pauses(max(left, 0.0)):
                    break
            self._fill()
        if not ends:
            if isinstance(self._failed, SourceError):
                raise SourceError(f"{self._failed}, in line {self.at['line']}") from None
            if self._failed is not None:
                raise self._failed
            return None
        all_ends = np.concatenate(ends)
        with memoryview(self._buffer) as view:
            text = bytes(view[: int(all_ends[-1])])
        return Block(text, all_ends, self.at["line"], self._delimiter)

    def drop(self, block: Block) -> None:
        """Go past records that were looked at."""
        del self._buffer[: len(block.text)]
        self.at = {
            "offset": self.at["offset"] + len(block.text),
            "line": self.at["line"] + block.lines,
        }

    def _fill(self) -> None:
        try:
            piece = self._opened.read()
        except Exception as error:  # raised after the whole records that came before it
            self._failed, piece = error, b""
        self._finished = not piece
        self._buffer += piece

    def _too_long(self) -> str:
        hint = " (is a quote not closed?)" if self._delimiter else ""
        return (
            f"{self._opened.name}, line {self.at['line']}: longer than {LONGEST_RECORD >> 20} MB "
            f"without an end{hint}"
        )


def _first(mask: NDArray[np.bool_]) -> int:
    """The place of the first True, or the length."""
    return int(np.argmax(mask)) if mask.any() else len(mask)


def _message(name: str, block: Block, bad: BadRow) -> str:
    """A bad row with its place."""
    column = f", column {bad.column}" if bad.column is not None else ""
    return f"{name}, line {block.line_of(bad.row)}{column}: {bad.reason}"


class TextReader(ABC):
    """What readers of text share. A format says how a block is parsed, and how parsed rows are given out."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lines: Lines | None = None
        self._opened: Opened | None = None

    @property
    def at(self) -> dict[str, int] | None:
        """Where this reader stands in the file."""
        return self._lines.at if self._lines else None

    @property
    def share(self) -> float | None:
        """The share of the file read."""
        done = self._opened.fraction if self._opened else None
        return None if done is None else done[0] / max(done[1], 1)

    def rows(self, opened: Opened, at: dict[str, int] | None) -> Iterator[Chunk]:
        """The rows of one file, from the beginning or from where a reader stood; those before a bad one first."""
        self._opened = opened
        self._lines = lines = self._begin(opened, at)
        while (block := lines.look(self._options.size())) is not None:
            parsed, refused = self._parse(block)
            stop = refused[0] if refused and self._options.bad.stops else None
            kind: type[SourceError] = BadRowError
            if stop is None:
                try:
                    chunk = self._give(parsed)
                except TooWideError as error:  # of a table, whose rows know their records
                    stop, kind = BadRow(int(parsed.records[error.row]), None, str(error)), SourceError
            if stop is not None:  # the rows before it come first
                if not stop.row:
                    raise kind(_message(opened.name, block, stop))
                block = block.before(stop.row)
                parsed, refused = self._parse(block)
                chunk = self._give(parsed)
            if self._options.keep is not None:
                self._last = block, parsed
            for bad in refused:
                self._options.bad.meet(partial(_message, opened.name, block, bad), block.record(bad.row))
            lines.drop(block)
            yield chunk

    def _begin(self, opened: Opened, at: dict[str, int] | None) -> Lines:
        return Lines(opened, at=at, latency=self._options.latency)

    @abstractmethod
    def _parse(self, block: Block) -> tuple[Any, list[BadRow]]:
        """The good rows of a block, in any form, and the bad ones in order. Nothing else is changed."""

    @abstractmethod
    def _give(self, parsed: Any) -> Chunk:
        """Good rows as they are given out."""
