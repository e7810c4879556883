"""Tables in memory: frames of pandas, polars and pyarrow, dicts of columns, lists of dicts, NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.tables.columns import Columns
from kernelstream.tables.errors import SourceError
from kernelstream.tables.kinds import LOOK_AHEAD, OF_TIMES, Kind, canonical, kind_of_words, microseconds
from kernelstream.tables.values import Coded, Values, as_said, coded, gather

Form = Literal["number", "boolean", "time", "word"]


class Column(NamedTuple):
    """A column by the type of its values: numbers and times with NaN for what is missing, or words by code."""

    form: Form
    values: NDArray[np.float64]
    words: list[str | None]
    dictionary: bool = False  # of pandas, polars or Arrow: made to hold categories


class Frame:
    """A table in memory; its columns are looked at when they are needed.

    >>> Frame({"age": [31, None], "colour": ["red", "blue"]}).column("age").values.tolist()
    [31.0, nan]
    """

    def __init__(self, X: Any, where: str = "X") -> None:
        self._where = where
        self._columns = _columns_of(X, where)
        self.names = [str(name) for name in self._columns]
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise SourceError(f"{where} has two columns called {twice!r}")
        self._raw = dict(zip(self.names, self._columns.values(), strict=True))
        for name, column in self._raw.items():
            if not hasattr(column, "__len__") or isinstance(column, str):
                raise SourceError(
                    f"{where}: column {name!r} is {column!r}, not a list of values: a single row is a list of one dict"
                )
        lengths = {name: len(column) for name, column in self._raw.items()}
        self.rows = next(iter(lengths.values()), 0)
        for name, length in lengths.items():
            if length != self.rows:
                raise SourceError(
                    f"{where}: column {name!r} has {length} values, {self.names[0]!r} has {self.rows}"
                )
        self._held: dict[str, Column] = {}

    def column(self, name: str) -> Column:
        """A column, by the type of its values."""
        if name not in self._held:
            self._held[name] = _typed(self._raw[name], f"column {name!r}", self._where)
        return self._held[name]

    def kind(self, name: str) -> Kind:
        """What a column is, by its type and its first values."""
        column = self.column(name)
        if column.form != "word":
            return column.form
        if column.dictionary:
            return "category"
        codes = column.values[:LOOK_AHEAD].astype(np.int64)
        return kind_of_words(column.words, np.bincount(codes, minlength=len(column.words)).tolist())

    def values(self, columns: Columns) -> tuple[Values, dict[int, tuple[str, str]]]:
        """The values of columns whose kinds are known, and of each row that cannot be used the column and the reason."""
        numbers: dict[str, NDArray[np.float64]] = {}
        words: dict[str, Coded] = {}
        times: dict[str, NDArray[np.float64]] = {}
        for name in columns.used:
            kind, column = columns.kinds[name], self.column(name)
            if column.form == "word":
                words[name] = column.values.astype(np.int64), column.words
            elif kind in ("category", "text"):
                words[name] = coded(
                    None if math.isnan(v) else _spelled(v, column.form) for v in column.values.tolist()
                )
            elif kind in OF_TIMES and column.form == "number":
                times[name] = column.values * 1e6  # seconds
            elif kind in OF_TIMES and column.form == "time":
                times[name] = column.values
            elif kind in OF_TIMES or column.form == "time":
                raise SourceError(
                    f"{self._where}: column {name!r} holds {column.form}s, where a {kind} is needed"
                )
            else:
                numbers[name] = column.values
        return gather(columns, numbers, words, times, None, self.rows)


def is_records(X: Any) -> bool:
    """Whether rows are dicts.

    >>> is_records([{"a": 1}]), is_records({"a": [1]})
    (True, False)
    """
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], Mapping)


def record_entries(
    X: Sequence[Mapping[Any, Any]], columns: Columns, where: str = "X"
) -> tuple[Any, set[str]]:
    """Dicts as `Features.give_rows` wants them, what is missing is not there; and the names of booleans.

    Names whose kinds were said hold such values, or are refused.
    """
    place: dict[tuple[str, str | None], int] = {}
    truths: set[str] = set()
    rows: list[int] = []
    codes: list[int] = []
    values: list[float] = []
    for row, record in enumerate(X):
        for name, value in record.items():
            form = _form(value, f"{where}, row {row}, column {name!r}")
            if form is None:
                continue
            word = None if form in ("number", "boolean") else value if form == "word" else _moment_word(value)
            kind = columns.kinds.get(str(name)) if str(name) in columns.forced else None
            if word is None and kind in ("category", "text"):
                word = _word(value)
            elif word is None and kind in OF_TIMES:
                word = _spelled(float(value) * 1e6, "time")
            number = _number(value) if word is None else 1.0
            if not math.isfinite(number):
                raise SourceError(f"{where}, row {row}, column {name!r}: {value} is not finite")
            if form == "boolean" and (str(name), None) not in place:
                truths.add(str(name))
            rows.append(row)
            codes.append(place.setdefault((str(name), word), len(place)))
            values.append(number)
    entries = np.array(rows, np.int64), np.array(codes, np.int64), list(place), np.array(values, np.float64)
    wrong = as_said(columns, *entries)
    if wrong:
        row, (name, why) = min(wrong.items())
        raise SourceError(f"{where}, row {row}, column {name!r}: {why}")
    return entries, truths


def _columns_of(X: Any, where: str) -> dict[Any, Any]:
    """The columns of a table by name."""
    if isinstance(X, Mapping):
        return dict(X)
    if is_records(X):
        names = dict.fromkeys(name for record in X for name in record)
        return {name: [record.get(name) for record in X] for name in names}
    if hasattr(X, "get_columns"):  # polars
        return {column.name: column for column in X.get_columns()}
    if hasattr(X, "collect_schema"):
        raise SourceError(f"{where} is a query of polars: give its result, X.collect()")
    if hasattr(X, "column_names") and hasattr(X, "column"):  # pyarrow
        return {name: X.column(name) for name in X.column_names}
    if hasattr(X, "schema") and hasattr(X, "column") and hasattr(X.schema, "names"):  # a batch of pyarrow
        return {name: X.column(name) for name in X.schema.names}
    if hasattr(X, "columns") and hasattr(X, "iloc"):  # pandas
        if not X.columns.is_unique:
            raise SourceError(f"{where} has two columns called {X.columns[X.columns.duplicated()][0]!r}")
        return {name: X[name] for name in X.columns}
    if hasattr(X, "nnz"):
        raise SourceError(f"{where} is sparse: it has no columns of other kinds than numbers")
    array = X if isinstance(X, np.ndarray) else _array(X)
    if array.dtype.names:
        return {name: array[name] for name in array.dtype.names}
    if array.ndim != 2:
        raise SourceError(f"{where} has {array.ndim} dimensions: a table has rows and columns")
    return {str(place): array[:, place] for place in range(array.shape[1])}


def _array(X: Any) -> NDArray[Any]:
    """Lists of lists, with values as they are."""
    try:
        array = np.array(X)
    except ValueError:
        array = np.array(X, dtype=object)
    return np.array(X, dtype=object) if array.dtype.kind == "U" else array


def _typed(raw: Any, column: str, where: str) -> Column:
    """A column of any library by the type of its values."""
    module = type(raw).__module__.partition(".")[0]
    if module == "pyarrow":
        return _from_arrow(raw, column, where)
    if module == "polars":
        return _from_polars(raw, column, where)
    if module == "pandas":
        return _from_pandas(raw.to_series() if hasattr(raw, "to_series") else raw, column, where)
    array = raw if isinstance(raw, np.ndarray) else None
    if array is None or array.dtype.kind not in "fiubMmUO":
        array = np.empty(len(raw), object)
        array[:] = list(raw)
    return _from_numpy(array, column, where)


def _from_numpy(array: NDArray[Any], column: str, where: str) -> Column:
    kind = array.dtype.kind
    if kind in "fiub":
        return Column("boolean" if kind == "b" else "number", array.astype(np.float64), [])
    if kind == "M":
        return Column("time", _microseconds(array), [])
    if kind == "m":
        return Column("number", array / np.timedelta64(1, "s"), [])
    return _from_objects(array.tolist(), column, where)


def _microseconds(array: NDArray[Any]) -> NDArray[np.float64]:
    moments: NDArray[np.float64] = array.astype("datetime64[us]").astype(np.int64).astype(np.float64)
    moments[np.isnat(array)] = math.nan
    return moments


def _from_pandas(series: Any, column: str, where: str) -> Column:
    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    if hasattr(dtype, "categories"):
        words = [_word(value) for value in dtype.categories.tolist()]
        codes = series.cat.codes.to_numpy().astype(np.int64)
        return Column("word", *_merged(np.where(codes < 0, len(words), codes), [*words, None]), True)
    if kind in "fiub":
        values = series.to_numpy(dtype=np.float64, na_value=math.nan)
        return Column("boolean" if kind == "b" else "number", values, [])
    if kind == "M":
        if getattr(series.dt, "tz", None) is not None:
            series = series.dt.tz_convert("UTC").dt.tz_localize(None)
        return Column("time", _microseconds(series.to_numpy(dtype="datetime64[us]")), [])
    return _from_objects(series.astype(object).tolist(), column, where)


def _from_polars(series: Any, column: str, where: str) -> Column:
    name = str(series.dtype)
    if series.dtype.is_numeric() or name == "Boolean":
        values = np.array(series.cast(_polars("Float64")).to_list(), np.float64)
        return Column("boolean" if name == "Boolean" else "number", values, [])
    if name.startswith(("Datetime", "Date")):
        moments = series.cast(_polars("Datetime")("us")) if name == "Date" else series
        return Column(
            "time", np.array(moments.dt.epoch("us").cast(_polars("Float64")).to_list(), np.float64), []
        )
    made = name.startswith(("Categorical", "Enum"))
    words = _from_objects(series.to_list(), column, where)
    return words._replace(dictionary=made) if words.form == "word" else words


def _polars(name: str) -> Any:
    import polars

    return getattr(polars, name)


def _from_arrow(array: Any, column: str, where: str) -> Column:
    from pyarrow import types

    from kernelstream.tables.arrow import coded_column, floats, is_number, is_text, is_time, moments

    if is_number(array.type):
        return Column("boolean" if types.is_boolean(array.type) else "number", floats(array), [])
    if is_time(array.type):
        return Column("time", moments(array), [])
    if is_text(array.type):
        codes, words = coded_column(array)
        return Column("word", codes.astype(np.float64), words, types.is_dictionary(array.type))
    return _from_objects(array.to_pylist(), column, where)


def _from_objects(values: list[Any], column: str, where: str) -> Column:
    """A column of Python's own values; numbers among texts are texts."""
    forms = {type(value): value for value in values}
    found: set[Form] = set()
    if forms.keys() <= {str, type(None)}:
        codes, words = coded(values)
        return Column("word", codes.astype(np.float64), words)
    kinds: list[Form | None] = []
    for row, value in enumerate(values):
        form = _form(value, f"{where}, row {row}, {column}")
        kinds.append(form)
        if form is not None:
            found.add(form)
    if not found:
        return Column("number", np.full(len(values), math.nan), [])
    if found <= {"number", "boolean"}:
        numbers = [math.nan if form is None else _number(v) for v, form in zip(values, kinds, strict=True)]
        return Column("boolean" if found == {"boolean"} else "number", np.array(numbers), [])
    if found == {"time"}:
        moments = [math.nan if form is None else _moment(v) for v, form in zip(values, kinds, strict=True)]
        return Column("time", np.array(moments), [])
    codes, words = coded(None if form is None else _word(v) for v, form in zip(values, kinds, strict=True))
    return Column("word", codes.astype(np.float64), words)


def _form(value: Any, place: str) -> Form | None:
    """What a value is; None if it is missing."""
    if isinstance(value, str):
        return "word"
    if value is None:
        return None
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, Real | Decimal):
        return None if value != value else "number"
    if isinstance(value, datetime | date | np.datetime64):
        return None if value != value else "time"  # NaT is no time
    if isinstance(value, timedelta):
        return None if value != value else "number"
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    raise SourceError(
        f"{place}: a value of type {type(value).__name__}; only numbers, texts, dates, true, false and None can be used"
    )


def _number(value: Any) -> float:
    """A number; durations in seconds."""
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def _moment(value: Any) -> float:
    if isinstance(value, np.datetime64):
        return float(value.astype("datetime64[us]").astype(np.int64))
    return microseconds(
        value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    )


def _moment_word(value: Any) -> str:
    return str(np.datetime64(int(_moment(value)), "us")).replace("T", " ")


def _word(value: Any) -> str | None:
    """A value as a text."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime | date | np.datetime64):
        return _moment_word(value)
    return canonical(value)


def _spelled(value: float, form: Form) -> str:
    """A number as a text."""
    if form == "time":
        return str(np.datetime64(int(value), "us")).replace("T", " ")
    return canonical(bool(value)) if form == "boolean" else canonical(value)


def _merged(codes: NDArray[Any], words: list[str | None]) -> tuple[NDArray[np.float64], list[str | None]]:
    """The same with each word once."""
    place = {word: i for i, word in enumerate(dict.fromkeys(words))}
    return np.array([place[word] for word in words], np.float64)[codes], list(place)
