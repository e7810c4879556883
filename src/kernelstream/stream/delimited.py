"""CSV and TSV: blocks of records that pyarrow reads. Blocks in which something is wrong are read again with care."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.stream.arrow import need_pyarrow, values_of
from kernelstream.stream.bad_rows import BadRow
from kernelstream.stream.lines import Block, Lines, TextReader
from kernelstream.stream.opening import Opened
from kernelstream.stream.plan import Plan, Rows
from kernelstream.stream.table import LOOK_AHEAD, Columns, Kind, Label, Values, coded

MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""Fields that stand for a missing value."""

_MOSTLY = 0.9  # a column is of numbers if so many of its first values are; the others are then bad rows


class CsvReader(TextReader):
    """Rows of a table in text: see `Columns` for what becomes of its columns."""

    delimiter = ","

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        need_pyarrow("CSV")
        self.columns = Columns(plan)
        self._names: list[str] = []  # of the file at hand, in its order

    def state(self) -> dict[str, Any]:
        """What a reader needs to go on as this one would."""
        return {**self.columns.state(), "order": self._names}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self.columns.restore(state)
        self._names = list(state["order"])

    def _begin(self, opened: Opened, at: dict[str, int] | None) -> Lines:
        lines = Lines(opened, self.delimiter, at)
        if at is not None:
            return lines
        first = lines.look(1)
        if first is None:
            return lines
        fields = self._fields(first.text)
        has_names = self._plan.header
        if has_names is None:
            has_names = not any(_is_number(field) for field in fields)
        self._names = (
            [field.strip() for field in fields] if has_names else [str(i) for i in range(len(fields))]
        )
        if has_names:
            lines.drop(first)
        self._settle(opened.name, lines)
        return lines

    def _settle(self, file: str, lines: Lines) -> None:
        """What the columns are, by the first rows."""
        if self.columns.names:
            self.columns.settle(file, self._names, _never, _never)
            return
        block = lines.look(LOOK_AHEAD)
        records = [self._fields(block.record(i)) for i in range(len(block.ends))] if block else []
        records = [fields for fields in records if len(fields) == len(self._names)]
        seen = {
            name: [value for value in column if value not in MISSING]
            for name, column in zip(self._names, zip(*records, strict=True), strict=False)
        }

        def kind_of(name: str) -> Kind:
            return "number" if _mostly(_is_number, seen.get(name, [])) else "category"

        def label_of(name: str) -> Label:
            return "whole" if _mostly(_is_whole, seen.get(name, [])) else "text"

        self.columns.settle(file, self._names, kind_of, label_of)
        if block is not None:
            self.columns.meet(self._parse(block)[0])

    def _fields(self, record: bytes) -> list[str]:
        """The fields of one record; none if it is blank."""
        text = record.decode("utf-8", "surrogateescape").rstrip("\r\n")
        return next(csv.reader([text], delimiter=self.delimiter), []) if text.strip() else []

    def _given(self, parsed: Any) -> Rows:
        return self.columns.given(parsed)

    def _parse(self, block: Block) -> tuple[Values, list[BadRow]]:
        values = self._quick(block)
        return (values, []) if values is not None else self._careful(block)

    def _quick(self, block: Block) -> Values | None:
        """All rows at once, or None if anything is wrong with one of them."""
        import pyarrow as pa
        import pyarrow.csv as pa_csv

        columns = self.columns
        text = pa.dictionary(pa.int32(), pa.string())
        types = {name: pa.float64() for name in columns.numbers} | dict.fromkeys(columns.categories, text)
        if self._plan.labelled and columns.target is not None:
            types[columns.target] = text if columns.label == "text" else pa.float64()
        try:
            table = pa_csv.read_csv(
                pa.BufferReader(block.text),
                pa_csv.ReadOptions(
                    column_names=self._names, use_threads=False, block_size=len(block.text) + 1
                ),
                pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                pa_csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(types),
                    null_values=MISSING,
                    strings_can_be_null=True,
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowKeyError, UnicodeDecodeError):
            return None
        values, bad = values_of(table, columns, self._plan)
        # pyarrow also reads spellings of NaN that are not in MISSING: the careful reading decides about them.
        missing = sum(table.column(name).null_count for name in columns.numbers)
        return None if bad or np.count_nonzero(np.isnan(values.numbers)) > missing else values

    def _careful(self, block: Block) -> tuple[Values, list[BadRow]]:
        """Record by record."""
        columns, bad = self.columns, []
        place = {name: i for i, name in enumerate(self._names)}
        target = columns.target if self._plan.labelled else None
        numbers: list[list[float]] = []
        categories: list[list[str | None]] = []
        labels: list[Any] = []
        largest = float(np.finfo(self._plan.dtype).max)
        for record in range(len(block.ends)):
            column: str | None = None
            try:
                fields = self._fields(block.record(record))
                if not fields:
                    continue
                if len(fields) != len(self._names):
                    raise ValueError(f"{len(fields)} fields, but there are {len(self._names)} columns")
                row = []
                for column in columns.numbers:
                    row.append(_number(fields[place[column]], largest))
                words = []
                for column in columns.categories:
                    field = fields[place[column]]
                    field.encode()  # a field that is not UTF-8 says so here
                    words.append(None if field in MISSING else field)
                if (column := target) is not None:
                    labels.append(_label(fields[place[column]], columns.label))
            except UnicodeEncodeError:
                bad.append(BadRow(record, column and repr(column), "the text is not UTF-8"))
            except (ValueError, csv.Error) as error:
                bad.append(BadRow(record, column and repr(column), str(error)))
            else:
                numbers.append(row)
                categories.append(words)
        made: NDArray[Any] | None = None
        if target is not None:
            made = np.array(labels, dtype=object if columns.label == "text" else np.float64)
        codes = [coded(row[i] for row in categories) for i in range(len(columns.categories))]
        return Values(
            np.array(numbers, np.float64).reshape(len(numbers), len(columns.numbers)), codes, made
        ), bad


class TsvReader(CsvReader):
    """The same with tabs."""

    delimiter = "\t"


def _never(name: str) -> Any:
    raise AssertionError("the columns are settled")


def _mostly(test: Callable[[str], bool], values: list[str]) -> bool:
    return sum(map(test, values)) >= _MOSTLY * len(values)


def _is_number(field: str) -> bool:
    try:
        return "_" not in field and not math.isnan(float(field))
    except ValueError:
        return False


def _is_whole(field: str) -> bool:
    return _is_number(field) and float(field).is_integer()


def _number(field: str, largest: float = math.inf) -> float:
    if field in MISSING:
        return math.nan
    try:
        number = float(field) if "_" not in field else None
    except ValueError:
        number = None
    if number is None:
        raise ValueError(f"{field[:60]!r} is not a number (a column of categories: categorical=)")
    if abs(number) > largest:  # NaN, in any spelling, is a missing value
        raise ValueError(f"{field[:60]!r} is not finite")
    return number


def _label(field: str, kind: Label) -> float | str:
    if field in MISSING:
        raise ValueError("the label is missing")
    if kind == "text":
        field.encode()
        return field
    number = _number(field)
    if not math.isfinite(number):
        raise ValueError(f"label {field[:60]!r} is not finite")
    if kind == "whole" and not number.is_integer():
        raise ValueError(f"label {field[:60]!r} is not a whole number, but the first ones are")
    return number
