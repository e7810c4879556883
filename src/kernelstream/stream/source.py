"""`read`: chunks of rows from files, pipes, data sets and built-in streams, with a position to go on from."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import os
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kernelstream.stream.bad_rows import BadRows
from kernelstream.stream.datasets import DATASETS, STREAMS, did_you_mean, open_stream
from kernelstream.stream.formats import FORMATS, make_reader, sniff
from kernelstream.stream.opening import Opened, Place, fingerprint, place_name
from kernelstream.stream.plan import Plan, Rows, Task

_VERSION = 1


class Chunk(NamedTuple):
    """Rows that came together: features, dense or CSR, and labels, which are None for data without them.

    >>> X, y = Chunk(np.zeros((2, 3)), np.array([0, 1]))
    >>> X.shape
    (2, 3)
    """

    X: Any
    y: NDArray[Any] | None


class Reader(Protocol):
    """What a format offers: rows of one file after another, its place in the file, and what it knows of columns."""

    @property
    def at(self) -> dict[str, int] | None:
        """Where it stands in the file."""

    @property
    def share(self) -> float | None:
        """The share of the file read."""

    def rows(self, opened: Opened, at: dict[str, int] | None) -> Iterator[Rows]:
        """The rows of a file, from its beginning or from where a reader stood."""

    def state(self) -> dict[str, Any]:
        """What it knows of columns, for JSON."""

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""


def read(
    *sources: Place,
    format: str | None = None,
    target: str | int | Literal[False] | None = None,
    categorical: Sequence[str | int] | Literal["auto"] = "auto",
    drop: Sequence[str | int] = (),
    max_categories: int = 64,
    hashed: int | None = None,
    header: bool | None = None,
    task: Task | None = None,
    rows: int | None = None,
    seed: int = 0,
    chunk_size: int = 8192,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    on_bad_row: str = "stop",
    encoding: dict[str, Any] | None = None,
    resume: dict[str, Any] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
) -> Source:
    r"""Read rows in chunks, in memory that does not depend on their number. See ``docs/sources.md``.

    Args:
        sources: files in order, ``"-"`` for standard input, an open file, or the name of a data set
            (`DATASETS`) or built-in stream (`STREAMS`). Files may be packed with gzip, xz or zstd.
        format: "libsvm", "csv", "tsv", "jsonl", "parquet", "arrow", "npy" or "npz"; by default told by the
            file's name or its first bytes.
        target: the column of the label, by name or number (-1 is the last); by default the only one called
            target, label, class or y. False for rows without labels, or to leave them unread.
        categorical: columns whose values are categories, not numbers; "auto" finds the columns of text.
        drop: columns to leave out.
        max_categories: categories of a column that get a feature of their own; later ones share one.
        hashed: hash categories into this many features, instead.
        header: whether the first line of CSV has the names; by default it does if none of them is a number.
        task: "classification" (labels are whole numbers or text) or "regression" (labels are numbers). By default
            the data set's own, and classification for files.
        rows: stop after this many rows.
        seed: the order of a data set, the randomness of a built-in stream.
        chunk_size: the most rows per chunk. It changes the speed, not the rows.
        n_features: the width of LIBSVM rows, where a larger index is a bad row. By default a chunk is as wide
            as the features seen so far, so later chunks may be wider than earlier ones, never narrower.
        dtype: type of the features, float64 or float32.
        on_bad_row: "stop", "skip", or "quarantine=FILE", which appends bad rows to a file as they came.
        encoding: `Source.encoding` of the rows that a model learnt: columns and categories become the same
            features, and none are added (LIBSVM rows may still be wider).
        resume: a `Source.position` from an earlier read with the same arguments; its next row is the first.
        data_dir: the folder of the data sets' files; by default the environment variable ``KERNELSTREAM_DATA``.

    Examples:
        >>> import io
        >>> text = "+1 1:0.5 3:2\n-1 2:1  # a comment\n"
        >>> for X, y in read(io.StringIO(text), n_features=4):
        ...     print(X.toarray(), y)
        [[0.5 0.  2.  0. ]
         [0.  1.  0.  0. ]] [ 1 -1]
        >>> next(read(io.StringIO("+1 1:0.5\n+1 0:1\n"), chunk_size=1, on_bad_row="skip")).y
        array([1])
        >>> list(read(io.StringIO("+1 0:1\n")))
        Traceback (most recent call last):
        ...
        kernelstream.stream.bad_rows.BadRowError: <stream>, line 1, column 4: index 0 in '0:1', but indices start at 1

        >>> source = read("rings", chunk_size=500)
        >>> X, y = next(source)
        >>> again = read("rings", chunk_size=500, resume=source.position)
        >>> bool((next(source).X == next(again).X).all())
        True
    """
    if not sources:
        raise ValueError("read needs a source: a file, '-' for standard input, or the name of a data set")
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, not {chunk_size}")
    if rows is not None and rows < 0:
        raise ValueError(f"rows must not be negative, got {rows}")
    if task not in (None, "classification", "regression"):
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}")
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {np.dtype(dtype)}")
    if max_categories < 1 or (hashed is not None and hashed < 1):
        raise ValueError("max_categories and hashed must be at least 1")
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features must be at least 1, not {n_features}")
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; {did_you_mean(format, FORMATS)}")
    name = sources[0] if len(sources) == 1 and format is None else None
    named = (
        isinstance(name, str)
        and name != "-"
        and not os.path.exists(name)
        and (name in DATASETS or name in STREAMS)
    )
    for place in () if named else sources:
        _check_there(place)
    if named:
        task = task or _own_task(str(name))
    asked = {
        "format": format,
        "target": target,
        "categorical": categorical if categorical == "auto" else list(categorical),
        "drop": list(drop),
        "max_categories": max_categories,
        "hashed": hashed,
        "header": header,
        "task": task or "classification",
        "n_features": n_features,
        "dtype": np.dtype(dtype).name,
        "seed": seed if named else None,
    }
    _check_resume(resume, [place_name(place) for place in sources], asked)
    plan = Plan(
        task=task or "classification",
        target=None if target is False else target,
        labelled=target is not False,
        categorical=categorical,
        drop=drop,
        max_categories=max_categories,
        hashed=hashed,
        header=header,
        chunk_size=chunk_size,
        n_features=n_features,
        dtype=np.dtype(dtype),
        left=None if rows is None else max(rows - (resume["rows"] if resume else 0), 0),
        frozen=encoding is not None,
        bad=BadRows(on_bad_row, resume["bad"] if resume else None),
    )
    reader = _NamedReader(str(name), plan, seed, data_dir) if named else None
    return Source(sources, asked, plan, reader, encoding, resume)


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
        plan: Plan,
        reader: Reader | _NamedReader | None,
        encoding: dict[str, Any] | None,
        resume: dict[str, Any] | None,
    ) -> None:
        self._places, self._asked, self._plan = places, asked, plan
        self._reader = reader
        self._format = None if resume is None else resume["format"]
        self._file = 0 if resume is None else resume["file"]
        self._resume, self._encoding = resume, encoding
        self._fingerprint: tuple[int, int] | None = None
        self._begun = self._inside = False  # rows have come: from this source, from the file at hand
        self._opened: Opened | None = None
        self._sizes = [_size_on_disk(place) for place in places]
        self._pending: asyncio.Future[Chunk | None] | None = None
        self.rows: int = 0 if resume is None else resume["rows"]
        self.task: Task = plan.task
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
        self._plan.bad.close()

    @property
    def bad_rows(self) -> int:
        """Bad rows so far that were left out or put aside."""
        return self._plan.bad.count

    @property
    def first_bad_row(self) -> str | None:
        """What was wrong with the first of them, and where."""
        return self._plan.bad.first

    @property
    def total_rows(self) -> int | None:
        """How many rows there will be in all, where that is known before they are read."""
        return self._reader.total if isinstance(self._reader, _NamedReader) else None

    @property
    def fraction(self) -> float | None:
        """The share of the source read so far, from 0 to 1; None where the end is not in sight."""
        if isinstance(self._reader, _NamedReader):
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
        if self._reader is None or isinstance(self._reader, _NamedReader):
            return None
        return {"format": self._format, "state": self._reader.state()}

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
            "version": _VERSION,
            "sources": [place_name(place) for place in self._places],
            "asked": self._asked,
            "format": self._format,
            "file": self._file,
            "fingerprint": self._fingerprint,
            "at": self._reader.at if self._reader and self._inside else None,
            "reader": self._reader.state() if self._reader else None,
            "rows": self.rows,
            "bad": self._plan.bad.position(),
        }

    def _closing(self, chunks: Iterator[Chunk]) -> Generator[Chunk]:
        """Closes all files at the end, after an error too."""
        with contextlib.closing(self._plan.bad):
            yield from chunks

    def _read(self) -> Iterator[Chunk]:
        plan, resume = self._plan, self._resume
        if isinstance(self._reader, _NamedReader):
            yield from self._counted(self._reader.rows())
            return
        reader: Reader | None = None
        for number in range(self._file, len(self._places)):
            place = self._places[number]
            self._file, self._fingerprint, self._inside = number, fingerprint(place), False
            at = resume["at"] if resume is not None and number == resume["file"] else None
            if at is not None and resume is not None and not _same_file(place, resume["fingerprint"]):
                raise ValueError(
                    f"{place_name(place)} is not the file that was read before: it begins otherwise"
                )
            self._opened = Opened(place)
            try:
                found = self._asked["format"] or sniff(self._opened)
                if self._format not in (None, found):
                    raise ValueError(
                        f"{self._opened.name} is {found}, but what came before it is {self._format}: "
                        "sources read together must be of one format"
                    )
                if reader is None:
                    self._format = found
                    self._reader = reader = make_reader(found, plan)
                    self._begin(found, reader)
                yield from self._counted(reader.rows(self._opened, at))
            finally:
                self._opened.close()
            if plan.left == 0:
                return

    def _begin(self, found: str, reader: Reader) -> None:
        """Hand over what is known of the columns."""
        if self._resume is not None and self._resume["reader"] is not None:
            reader.restore(self._resume["reader"])
        elif self._encoding is not None:
            if self._encoding.get("format") != found:
                raise ValueError(f"the model learnt from {self._encoding.get('format')}, and this is {found}")
            reader.restore(self._encoding["state"])

    def _counted(self, rows: Iterator[Rows]) -> Iterator[Chunk]:
        plan = self._plan
        while plan.left != 0 and (part := next(rows, None)) is not None:
            self._begun = self._inside = True
            n = part.X.shape[0]
            self.rows += n
            if plan.left is not None:
                plan.left -= n
            if n:
                yield Chunk(*part)


class _NamedReader:
    """A data set or a built-in stream behind the interface of a file's reader."""

    def __init__(self, name: str, plan: Plan, seed: int, data_dir: str | os.PathLike[str] | None) -> None:
        self._name, self._plan, self._seed, self._data_dir = name, plan, seed, data_dir
        self._row = 0
        self._last = plan.left

    @property
    def at(self) -> dict[str, int] | None:
        return None

    @property
    def total(self) -> int | None:
        known = DATASETS[self._name].rows if self._name in DATASETS else None
        return known if self._last is None else self._last if known is None else min(self._last, known)

    @property
    def share(self) -> float | None:
        return None if self.total is None else self._row / max(self.total, 1)

    def state(self) -> dict[str, Any]:
        return {"row": self._row}

    def restore(self, state: dict[str, Any]) -> None:
        self._row = state["row"]
        if self._last is not None:
            self._last += self._row

    def rows(self) -> Iterator[Rows]:
        skip = self._row
        end = None if self._plan.left is None else skip + self._plan.left
        stream = open_stream(
            self._name, end, seed=self._seed, chunk_size=self._plan.chunk_size, data_dir=self._data_dir
        )
        for X, y in stream.chunks:
            n = X.shape[0]
            if skip < n:
                X, y, skip = X[skip:], y[skip:], 0
                self._row += X.shape[0]
                labels = y.astype(np.float64) if self._plan.task == "regression" else y
                yield Rows(X.astype(self._plan.dtype, copy=False), labels if self._plan.labelled else None)
            else:
                skip -= n


def _own_task(name: str) -> Task:
    return STREAMS[name][1] if name in STREAMS else DATASETS[name].task


def _check_there(place: Place) -> None:
    """A file that is not there, or a name that is not known, is told at once."""
    if not isinstance(place, str | os.PathLike) or place == "-":
        return
    if os.path.isdir(place):
        raise IsADirectoryError(f"{os.fspath(place)} is a folder: name the files in it")
    if os.path.exists(place):
        return
    text = os.fspath(place)
    hint = did_you_mean(text, [*STREAMS, *DATASETS])
    if text in STREAMS or text in DATASETS:
        hint = "a data set or stream by name is read alone, and has no format"
    elif os.path.dirname(text) or "." in text:
        raise FileNotFoundError(f"there is no file {text!r}")
    raise FileNotFoundError(f"there is no file {text!r}, and no data set or stream of that name; {hint}")


def _check_resume(resume: Any, names: list[str], asked: dict[str, Any]) -> None:
    if resume is None:
        return
    keys = {"version", "sources", "asked", "format", "file", "fingerprint", "at", "reader", "rows", "bad"}
    if not isinstance(resume, dict) or set(resume) != keys:
        raise ValueError("resume must be the position of a source, as Source.position gives it")
    if resume["version"] != _VERSION:
        raise ValueError(f"the position to resume from is of version {resume['version']}, this is {_VERSION}")
    if resume["sources"] != names:
        raise ValueError(f"the position to resume from is of {resume['sources']}, not of {names}")
    for key, value in asked.items():
        if resume["asked"].get(key) != value:
            raise ValueError(
                f"the position was made with {key}={resume['asked'].get(key)!r}, this is {key}={value!r}"
            )


def _same_file(place: Place, before: Sequence[int] | None) -> bool:
    now = fingerprint(place, before[0]) if before else None
    return now is None or before is None or tuple(before) == now


def _size_on_disk(place: Place) -> int | None:
    regular = isinstance(place, str | os.PathLike) and place != "-" and os.path.isfile(place)
    return os.path.getsize(place) if regular else None  # type: ignore[arg-type]
