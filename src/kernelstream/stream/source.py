"""`Source`: chunks of rows, one file after another, with a position to go on from."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream.stream.bad_rows import SourceError
from kernelstream.stream.formats import TEXT, check_text, make_reader, sniff
from kernelstream.stream.named import NamedReader
from kernelstream.stream.opening import Opened, Place, fingerprint, place_name
from kernelstream.stream.options import Chunk, Options, Task
from kernelstream.tables.features import OF_A_FILE

VERSION = 1
"""Of positions."""


class Reader(Protocol):
    """What a format offers: rows of one file after another, its place in the file, and what it knows of columns."""

    @property
    def at(self) -> dict[str, int] | None:
        """Where it stands in the file."""

    @property
    def share(self) -> float | None:
        """The share of the file read."""

    def rows(self, opened: Opened, at: dict[str, int] | None) -> Iterator[Chunk]:
        """The rows of a file, from its beginning or from where a reader stood."""

    def state(self) -> dict[str, Any]:
        """What it knows of columns, for JSON."""

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""


class Source:
    """An iterator of chunks, made by `read`; also ``async for``, where a worker thread reads.

    Attributes:
        rows: rows given so far, those before a resume included.
        task: "classification" or "regression".
    """

    def __init__(
        self,
        places: Sequence[Place],
        asked: dict[str, Any],
        options: Options,
        reader: Reader | NamedReader | None,
        encoding: dict[str, Any] | None,
        resume: dict[str, Any] | None,
    ) -> None:
        self._places, self._asked, self._options = places, asked, options
        self._reader = reader
        self._format = None if resume is None else resume["format"]
        self._file = 0 if resume is None else resume["file"]
        self._resume, self._encoding = resume, encoding
        self._fingerprint: tuple[int, int] | None = None
        self._begun = self._inside = False  # rows have come: from this source, from the file at hand
        self._opened: Opened | None = None
        self._sizes = [_size_on_disk(place) for place in places]
        self._kept: list[Any] = []
        self._pending: asyncio.Future[Chunk | None] | None = None
        self.rows: int = 0 if resume is None else resume["rows"]
        self.task: Task = options.task
        if reader is not None and resume is not None:
            reader.restore(resume["reader"])
        self._chunks = self._closing(self._read())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Chunk:
        return next(self._chunks)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        if self._pending is None:
            self._pending = asyncio.ensure_future(asyncio.to_thread(next, self._chunks, None))
        chunk = await asyncio.shield(self._pending)  # if we are cancelled, the next call gets this chunk
        self._pending = None
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files opened here. `position` is still valid."""
        self._chunks.close()
        self._options.bad.close()

    @property
    def bad_rows(self) -> int:
        """Bad rows so far that were left out or put aside."""
        return self._options.bad.count

    @property
    def first_bad_row(self) -> str | None:
        """What was wrong with the first of them, and where."""
        return self._options.bad.first

    @property
    def kept(self) -> list[Any] | None:
        """The values of the column that is to be kept, for the rows given last; None without one."""
        return None if self._options.keep is None else self._kept

    @property
    def may_read_ahead(self) -> bool:
        """Whether chunks may be read long before they are used: none has to be waited for, and no bad row is put aside."""
        known = isinstance(self._reader, NamedReader) or None not in self._sizes
        return known and not self._options.bad.puts_aside

    @property
    def total_rows(self) -> int | None:
        """How many rows there will be in all, where that is known before they are read."""
        return self._reader.total if isinstance(self._reader, NamedReader) else None

    @property
    def fraction(self) -> float | None:
        """The share of the source read so far, from 0 to 1; None where the end is not in sight."""
        if isinstance(self._reader, NamedReader):
            return self._reader.share
        sizes = [size for size in self._sizes if size is not None]
        if len(sizes) < len(self._sizes):
            return None
        here = self._reader.share if self._reader is not None and self._opened is not None else 0.0
        if here is None or not sum(sizes):
            return None
        return (sum(sizes[: self._file]) + here * sizes[min(self._file, len(sizes) - 1)]) / sum(sizes)

    @property
    def encoding(self) -> dict[str, Any] | None:
        """How rows become features so far, for ``read(..., encoding=...)``: keep it with a model that learnt them.

        None for data sets and streams by name, whose rows are features already.
        """
        if self._reader is None or isinstance(self._reader, NamedReader):
            return None
        state = self._reader.state()
        return {"format": self._format, "state": state} if "version" not in state else _description(state)

    @property
    def quantities(self) -> NDArray[np.bool_] | None:
        """Which features so far are quantities, of any scale, and not marks or texts; None where columns have no kinds."""
        features = getattr(self._reader, "features", None)
        return None if features is None else features.quantities

    @property
    def position(self) -> dict[str, Any]:
        """Where this source stands, for ``read(..., resume=position)``: a small dictionary that JSON can hold.

        Valid after every chunk. With ``async for`` not while a read is under way.
        """
        if self._pending is not None:
            raise RuntimeError("a chunk is being read: the position is known again when it has come")
        if self._resume is not None and not self._begun:
            return copy.deepcopy(self._resume)
        return {
            "version": VERSION,
            "sources": [place_name(place) for place in self._places],
            "asked": self._asked,
            "format": self._format,
            "file": self._file,
            "fingerprint": self._fingerprint,
            "at": self._reader.at if self._reader and self._inside else None,
            "reader": self._reader.state() if self._reader else None,
            "rows": self.rows,
            "bad": self._options.bad.position(),
        }

    def _closing(self, chunks: Iterator[Chunk]) -> Generator[Chunk]:
        """Closes all files at the end, after an error too."""
        with contextlib.closing(self._options.bad):
            yield from chunks

    def _read(self) -> Iterator[Chunk]:
        options, resume = self._options, self._resume
        if isinstance(self._reader, NamedReader):
            yield from self._counted(self._reader.rows())
            return
        reader: Reader | None = None
        for number in range(self._file, len(self._places)):
            place = self._places[number]
            self._file, self._fingerprint, self._inside = number, fingerprint(place), False
            at = resume["at"] if resume is not None and number == resume["file"] else None
            if at is not None and resume is not None and not _same_file(place, resume["fingerprint"]):
                raise SourceError(
                    f"{place_name(place)} is not the file that was read before: it begins otherwise"
                )
            self._opened = Opened(place, options.charset)
            try:
                file_format = self._asked["format"] or sniff(self._opened)
                if options.charset is not None and file_format not in TEXT:
                    raise SourceError(
                        f"{self._opened.name} is {file_format}, which is not text: it has no encoding"
                    )
                if at is None and file_format in TEXT:
                    check_text(self._opened, file_format)
                if self._format not in (None, file_format):
                    raise SourceError(
                        f"{self._opened.name} is {file_format}, but what came before it is {self._format}: "
                        "sources read together must be of one format"
                    )
                if reader is None:
                    self._format = file_format
                    self._reader = reader = make_reader(file_format, options)
                    self._begin(file_format, reader)
                yield from self._counted(reader.rows(self._opened, at))
            finally:
                self._opened.close()
            if options.left == 0:
                return

    def _begin(self, file_format: str, reader: Reader) -> None:
        """Hand over what is known of the columns."""
        if self._resume is not None and self._resume["reader"] is not None:
            reader.restore(self._resume["reader"])
        elif self._encoding is not None:
            if (file_format == "libsvm") != (self._encoding.get("format") == "libsvm"):
                what = (
                    "has columns with names"
                    if file_format == "libsvm"
                    else "learnt LIBSVM rows, which have no names"
                )
                raise ValueError(f"the model {what}, and this is {file_format}")
            reader.restore(self._encoding.get("state", self._encoding))

    def _values_kept(self) -> list[Any]:
        reader: Any = self._reader
        if not hasattr(reader, "kept"):
            raise SourceError(f"rows of {self._format or 'a data set'} have no columns with names to be kept")
        values: list[Any] = reader.kept()
        return values

    def _counted(self, rows: Iterator[Chunk]) -> Iterator[Chunk]:
        options = self._options
        while options.left != 0 and (part := next(rows, None)) is not None:
            self._begun = self._inside = True
            n = part.X.shape[0]
            self.rows += n
            if options.left is not None:
                options.left -= n
            if n:
                self._kept = [] if self._options.keep is None else self._values_kept()
                yield part


def _description(state: dict[str, Any]) -> dict[str, Any]:
    """How rows become features, without what only the file at hand has."""
    return {key: value for key, value in state.items() if key not in OF_A_FILE}


def _same_file(place: Place, before: Sequence[int] | None) -> bool:
    now = fingerprint(place, before[0]) if before else None
    return now is None or before is None or tuple(before) == now


def _size_on_disk(place: Place) -> int | None:
    regular = isinstance(place, str | os.PathLike) and place != "-" and os.path.isfile(place)
    return os.path.getsize(place) if regular else None  # type: ignore[arg-type]
