"""Parquet, Arrow IPC (files and streams) and Feather: batches of rows, and what becomes of Arrow's types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.stream.bad_rows import BadRow, MissingPackageError, SourceError
from kernelstream.stream.columns import Columns, Kind, Label
from kernelstream.stream.features import Values
from kernelstream.stream.opening import Opened
from kernelstream.stream.options import Chunk, Options
from kernelstream.stream.row_reader import RowReader, check_values


def need_pyarrow(what: str) -> None:
    """An error that says what to install, if pyarrow is not there."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingPackageError(
            f'reading {what} needs pyarrow: pip install "kernelstream[arrow]"'
        ) from None


def values_of(table: Any, columns: Columns, options: Options) -> tuple[Values, list[BadRow]]:
    """The good rows of a table, or of a batch, and the bad ones in order."""
    numbers = np.empty((table.num_rows, len(columns.numbers)))
    for place, name in enumerate(columns.numbers):
        numbers[:, place] = floats(table.column(name))
    labels: NDArray[Any] | None = None
    if options.labelled and columns.target is not None:
        column = table.column(columns.target)
        if columns.label == "text":
            codes, words = coded_column(column)
            labels = np.array([*words, None], dtype=object)[codes]
        else:
            labels = floats(column)
    categories = [coded_column(table.column(name)) for name in columns.categories]
    return check_values(Values(numbers, categories, labels), columns, options)


def floats(column: Any) -> NDArray[np.float64]:
    """A column of numbers, with NaN for what is missing."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    column = column.cast(pa.float64(), safe=False)
    return np.asarray(
        column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    )


def coded_column(column: Any) -> tuple[NDArray[np.int64], list[str | None]]:
    """Codes and the texts they stand for; a missing one is None, the last."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    words = column.dictionary.cast(pa.string()).to_pylist()
    codes = column.indices.cast(pa.int64())
    if codes.null_count:
        codes = codes.fill_null(len(words))
        words = [*words, None]
    # A file's dictionary may say the same thing twice, or "nothing".
    if len(set(words)) < len(words):
        place = {word: i for i, word in enumerate(dict.fromkeys(words))}
        return np.array([place[word] for word in words], np.int64)[codes.to_numpy()], list(place)
    return codes.to_numpy(zero_copy_only=False), words


class _ArrowRows(RowReader):
    """What Parquet and Arrow share."""

    def __init__(self, options: Options) -> None:
        need_pyarrow(self.what)
        super().__init__(options)

    def rows(self, opened: Opened, at: dict[str, int] | None) -> Iterator[Chunk]:
        """The rows of one file, from the beginning or from where a reader stood; those before a bad one first."""
        import pyarrow as pa

        try:
            yield from super().rows(opened, at)
        except pa.ArrowException as error:
            raise SourceError(f"{opened.name} is damaged or not what its name says: {error}") from None

    def _values(self, batch: Any) -> tuple[Values, list[BadRow]]:
        return values_of(batch, self.columns, self._options)

    def _raw(self, batch: Any) -> bytes:
        return json.dumps(batch.to_pylist()[0], default=str).encode()

    def _settle(self, file: str, schema: Any) -> list[str]:
        """What the columns are, by their types; the names of those to be read."""

        def kind_of(name: str) -> Kind:
            type_ = schema.field(name).type
            if is_number(type_):
                return "number"
            if _is_text(type_):
                return "category"
            raise SourceError(
                f"{file}: column {name!r} is of type {type_}: drop it, or make it numbers or text"
            )

        def label_of(name: str) -> Label:
            return "whole" if is_number(schema.field(name).type) else "text"

        columns = self.columns
        columns.settle(file, schema.names, kind_of, label_of)
        label = [columns.target] if self._options.labelled and columns.target is not None else []
        for name in columns.numbers + (label if columns.label != "text" else []):
            type_ = schema.field(name).type
            if not is_number(type_):
                raise SourceError(f"{file}: column {name!r} is of type {type_}, where numbers are needed")
        return columns.numbers + columns.categories + label


class ParquetReader(_ArrowRows):
    """Parquet, a row group after another; only the columns needed are read."""

    what = "Parquet"

    def _batches(self, opened: Opened, row: int) -> Iterator[Any]:
        import pyarrow.parquet as pq

        if not opened.seekable or opened.packed:
            raise SourceError(
                f"{opened.name}: Parquet is read from plain files, not from pipes or packed files"
            )
        with pq.ParquetFile(opened.file, pre_buffer=False) as file:
            self._total = file.metadata.num_rows
            names = self._settle(opened.name, file.schema_arrow)
            first, groups = 0, list(range(file.num_row_groups))
            while groups and first + file.metadata.row_group(groups[0]).num_rows <= row:
                first += file.metadata.row_group(groups.pop(0)).num_rows
            skip = row - first
            size = self._options.chunk_size
            for batch in file.iter_batches(size, row_groups=groups, columns=names, use_threads=False):
                yield batch.slice(skip)
                skip = max(skip - batch.num_rows, 0)


class ArrowReader(_ArrowRows):
    """Arrow IPC: files (Feather is one) are read batch after batch, streams also from pipes and packed files."""

    what = "Arrow"

    def _batches(self, opened: Opened, row: int) -> Iterator[Any]:
        import pyarrow as pa

        if opened.peek(6) == b"ARROW1":
            if not opened.seekable or opened.packed:
                raise SourceError(
                    f"{opened.name}: Arrow files are read plain; from pipes, write Arrow streams"
                )
            file = pa.ipc.open_file(opened.file)
            batches = (file.get_batch(i) for i in range(file.num_record_batches))
            self._settle(opened.name, file.schema)
        else:
            stream = pa.ipc.open_stream(pa.PythonFile(_Whole(opened), "r"))
            batches = iter(stream)
            self._settle(opened.name, stream.schema)
        skip = row
        for batch in batches:
            yield batch.slice(skip)
            skip = max(skip - batch.num_rows, 0)


class _Whole:
    """Reads all bytes asked for, as Arrow expects it of a file."""

    closed = False

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def read(self, size: int = -1) -> bytes:
        pieces, left = [], size
        while left and (piece := self._opened.read(left if left > 0 else 1 << 20)):
            pieces.append(piece)
            left -= len(piece) if left > 0 else 0
        return b"".join(pieces)

    def close(self) -> None:
        pass


def is_number(type_: Any) -> bool:
    """Whether a column of this type becomes one feature."""
    from pyarrow import types

    return bool(
        types.is_integer(type_)
        or types.is_floating(type_)
        or types.is_boolean(type_)
        or types.is_decimal(type_)
    )


def _is_text(type_: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(type_):
        return _is_text(type_.value_type) or is_number(type_.value_type)
    return bool(types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_))
