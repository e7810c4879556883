"""Parquet, Arrow IPC (files and streams) and Feather: batches of rows, and what becomes of Arrow's types."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

from kernelstream.stream.bad_rows import BadRow, MissingPackageError, SourceError
from kernelstream.stream.opening import Opened
from kernelstream.stream.options import Chunk, Options
from kernelstream.stream.row_reader import RowReader
from kernelstream.tables.arrow import is_number, is_text, is_time, kind_of_column, values_of
from kernelstream.tables.columns import Label, find_column
from kernelstream.tables.kinds import LOOK_AHEAD, Kind
from kernelstream.tables.values import Values


def need_pyarrow(what: str) -> None:
    """An error that says what to install, if pyarrow is not there."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingPackageError(
            f'reading {what} needs pyarrow: pip install "kernelstream[arrow]"'
        ) from None


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

    def _settle(self, file: str, schema: Any, first_rows: Callable[[list[str]], Any]) -> list[str]:
        """What the columns are, by their types and first rows; the names of those to be read.

        Args:
            file: its name.
            schema: of the file.
            first_rows: a table of the first rows, of the columns named.
        """
        looked: list[Any] = []

        def kind_of(name: str) -> Kind:
            type_ = schema.field(name).type
            if is_text(type_) and not looked:
                looked.append(first_rows([f.name for f in schema if is_text(f.type)]))
            kind = kind_of_column(type_, looked[0].column(name) if looked and is_text(type_) else None)
            if kind is None:
                raise SourceError(
                    f"{file}: column {name!r} is of type {type_}: drop it, or make it numbers, times or text"
                )
            return kind

        def label_of(name: str) -> Label:
            return "whole" if is_number(schema.field(name).type) else "text"

        columns = self.columns
        columns.settle(file, schema.names, kind_of, label_of)
        label = [columns.target] if self._options.labelled and columns.target is not None else []
        for name in columns.plain_numbers + (label if columns.label != "text" else []):
            type_ = schema.field(name).type
            if not is_number(type_) and not (name in columns.plain_numbers and is_text(type_)):
                raise SourceError(f"{file}: column {name!r} is of type {type_}, where numbers are needed")
        for name in columns.used:
            type_ = schema.field(name).type
            if not (is_number(type_) or is_text(type_) or is_time(type_)):
                raise SourceError(f"{file}: column {name!r} is of type {type_}, which cannot be read")
        names = columns.used + label
        if self._options.keep is not None:
            self._keep = find_column(file, self._options.keep, schema.names)
            names += [self._keep] * (self._keep not in names)
        return names

    def kept(self) -> list[Any]:
        """The column to be kept, of the rows given last."""
        rows, refused = self._last
        bad = {row.row for row in refused}
        return [value for row, value in enumerate(rows.column(self._keep).to_pylist()) if row not in bad]


class ParquetReader(_ArrowRows):
    """Parquet, a row group after another; only the columns needed are read."""

    what = "Parquet"

    def _batches(self, opened: Opened, row: int) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not opened.seekable or opened.packed:
            raise SourceError(
                f"{opened.name}: Parquet is read from plain files, not from pipes or packed files"
            )
        with pq.ParquetFile(opened.file, pre_buffer=False) as file:
            self._total = file.metadata.num_rows

            def first_rows(names: list[str]) -> Any:
                batches, rows = [], 0
                for batch in file.iter_batches(LOOK_AHEAD, columns=names, use_threads=False):
                    batches.append(batch.slice(0, LOOK_AHEAD - rows))
                    rows += batches[-1].num_rows
                    if rows >= LOOK_AHEAD:
                        break
                schema = pa.schema([file.schema_arrow.field(name) for name in names])
                return pa.Table.from_batches(batches, batches[0].schema if batches else schema)

            names = self._settle(opened.name, file.schema_arrow, first_rows)
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
            batches: Iterator[Any] = (file.get_batch(i) for i in range(file.num_record_batches))
            schema = file.schema
        else:
            stream = pa.ipc.open_stream(pa.PythonFile(_Whole(opened), "r"))
            batches, schema = iter(stream), stream.schema
        first = next(batches, None)  # no more: a pipe may be slow
        if first is not None:
            batches = itertools.chain([first], batches)
        held = pa.Table.from_batches([] if first is None else [first.slice(0, LOOK_AHEAD)], schema)
        self._settle(opened.name, schema, held.select)
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
