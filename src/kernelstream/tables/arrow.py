"""Columns of Arrow: tables in memory, batches of files. Needs pyarrow, which whoever has such a column has."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.tables.columns import Columns
from kernelstream.tables.errors import BadRow
from kernelstream.tables.kinds import OF_NUMBERS, OF_TIMES, Kind, canonical, kind_of_words
from kernelstream.tables.options import TableOptions
from kernelstream.tables.values import Coded, Values, check_values, gather


def values_of(table: Any, columns: Columns, options: TableOptions) -> tuple[Values, list[BadRow]]:
    """The good rows of a table, or of a batch, and the bad ones in order."""
    numbers: dict[str, NDArray[np.float64]] = {}
    words: dict[str, Coded] = {}
    times: dict[str, NDArray[np.float64]] = {}
    for name in columns.used:
        column = table.column(name)
        kind = columns.kinds[name]
        if kind in OF_NUMBERS and is_number(column.type):
            numbers[name] = floats(column)
        elif kind in OF_TIMES and not is_text(column.type):
            times[name] = moments(column)
        else:
            words[name] = coded_column(column)
    labels: NDArray[Any] | None = None
    if options.labelled and columns.target is not None:
        column = table.column(columns.target)
        if columns.label == "text":
            codes, spelled = coded_column(column)
            labels = np.array([*spelled, None], dtype=object)[codes]
        else:
            labels = floats(column)
    values, wrong = gather(columns, numbers, words, times, labels, table.num_rows)
    return check_values(values, columns, options, wrong)


def kind_of_column(type_: Any, first: Any) -> Kind | None:
    """What a column is, by its type and its first values; None for what cannot be read."""
    from pyarrow import types

    if types.is_boolean(type_):
        return "boolean"
    if is_number(type_):
        return "number"
    if is_time(type_):
        return "time"
    if not is_text(type_):
        return None
    if types.is_dictionary(type_):
        return "category"
    codes, words = coded_column(first)
    return kind_of_words(words, np.bincount(codes, minlength=len(words)).tolist())


def moments(column: Any) -> NDArray[np.float64]:
    """A column of dates or times in microseconds, with NaN for what is missing; numbers are seconds."""
    import pyarrow as pa

    if is_number(column.type):
        return floats(column) * 1e6
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    else:
        column = column.cast(pa.timestamp("us"), safe=False)
    return floats(column.cast(pa.int64()))


def floats(column: Any) -> NDArray[np.float64]:
    """A column of numbers, with NaN for what is missing."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if not pa.types.is_float64(column.type):
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
    if pa.types.is_floating(column.dictionary.type):  # as a whole number is written
        words = [
            None if word is None or word != word else canonical(word)
            for word in column.dictionary.to_pylist()
        ]
    else:
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


def is_number(type_: Any) -> bool:
    """Whether a column of this type becomes one feature."""
    from pyarrow import types

    return bool(
        types.is_integer(type_)
        or types.is_floating(type_)
        or types.is_boolean(type_)
        or types.is_decimal(type_)
    )


def is_text(type_: Any) -> bool:
    """Whether a column is of texts."""
    from pyarrow import types

    if types.is_dictionary(type_):
        return is_text(type_.value_type) or is_number(type_.value_type)
    return bool(types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_))


def is_time(type_: Any) -> bool:
    """Whether a column is of dates or times."""
    from pyarrow import types

    return bool(types.is_timestamp(type_) or types.is_date(type_))
