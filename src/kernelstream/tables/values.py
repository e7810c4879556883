"""Good rows of a table, as numbers, codes of words, and times; made alike from every format."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.tables.columns import Columns
from kernelstream.tables.errors import BadRow
from kernelstream.tables.kinds import OF_NUMBERS, READ, number_of
from kernelstream.tables.options import TableOptions

Coded = tuple[NDArray[Any], list[str | None]]
"""Codes, and the words that they stand for; None is a missing one."""


@dataclass
class Values:
    """Good rows of a table: numbers and times with NaN for what is missing, categories and texts by code, labels."""

    numbers: NDArray[np.float64]
    categories: list[Coded]
    labels: NDArray[Any] | None
    times: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    texts: list[Coded] = field(default_factory=list)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.numbers)

    def slice(self, start: int, rows: int | None = None) -> Values:
        """Some rows, one after another."""
        return self.part(slice(start, None if rows is None else start + rows))

    def part(self, rows: Any) -> Values:
        """The rows of a mask or a slice."""
        return Values(
            self.numbers[rows],
            [(codes[rows], words) for codes, words in self.categories],
            None if self.labels is None else self.labels[rows],
            self.times[rows] if self.times.size else self.times,
            [(codes[rows], words) for codes, words in self.texts],
        )


def gather(
    columns: Columns,
    numbers: Mapping[str, NDArray[np.float64]] | NDArray[np.float64],
    coded_columns: Mapping[str, Coded],
    times: Mapping[str, NDArray[np.float64]],
    labels: NDArray[Any] | None,
    rows: int,
) -> tuple[Values, dict[int, tuple[str, str]]]:
    """Values from columns in any form, and of each row that cannot be used the column and the reason.

    Args:
        columns: what they are.
        numbers: by name; or the matrix of `columns.plain_numbers`.
        coded_columns: texts by name, of any kind.
        times: in microseconds, by name.
        labels: as they are.
        rows: how many.
    """
    wrong: dict[int, tuple[str, str]] = {}
    by_name: Mapping[str, NDArray[np.float64]] = {} if isinstance(numbers, np.ndarray) else numbers

    def column(name: str, held: Mapping[str, NDArray[np.float64]]) -> Any:
        if name in held:
            return held[name]
        read, what = READ[columns.kinds[name]]
        codes, words = coded_columns[name]
        if not len(codes):
            return np.zeros(0)
        table = np.array([math.nan if word is None else read(word) for word in words])
        found: NDArray[np.float64] = table[codes]
        bad = np.array([word is not None for word in words]) & np.isnan(table)
        if bad.any():
            for row in np.flatnonzero(bad[codes]).tolist():
                word = words[int(codes[row])]
                if read is not number_of or str(word).strip().lstrip("+-").casefold() != "nan":
                    wrong.setdefault(row, (name, f"{str(word)[:60]!r} is not {what}"))
        return found

    matrix: NDArray[np.float64]
    if isinstance(numbers, np.ndarray) and not columns.read_numbers:
        matrix = numbers
    else:
        matrix = np.empty((rows, len(columns.numbers)))
        first = len(columns.plain_numbers)
        if isinstance(numbers, np.ndarray):
            matrix[:, :first] = numbers
        else:
            for place, name in enumerate(columns.plain_numbers):
                matrix[:, place] = column(name, by_name)
        for place, name in enumerate(columns.read_numbers, first):
            matrix[:, place] = column(name, by_name)
    moments = np.empty((rows, len(columns.times)))
    for place, name in enumerate(columns.times):
        moments[:, place] = column(name, times)
    values = Values(
        matrix,
        [coded_columns[name] for name in columns.categories],
        labels,
        moments,
        [coded_columns[name] for name in columns.texts],
    )
    return values, wrong


def check_values(
    values: Values, columns: Columns, options: TableOptions, wrong: dict[int, tuple[str, str]] | None = None
) -> tuple[Values, list[BadRow]]:
    """The good rows, and the bad ones in order: numbers must be finite or missing, labels what they were."""
    reasons: dict[int, tuple[str, str]] = {} if wrong is None else wrong
    numbers, labels, largest = values.numbers, values.labels, options.largest
    if not np.nanmax(np.abs(numbers), initial=0.0) <= largest:
        for row, place in np.argwhere(np.abs(numbers) > largest).tolist():
            reasons.setdefault(row, (columns.numbers[place], f"{numbers[row, place]} is not finite"))
    if labels is not None:
        if labels.dtype.kind != "f":
            missing = np.array([label is None for label in labels], bool)
            refused = np.zeros(len(labels), bool)
        else:
            missing = np.isnan(labels)
            refused = np.isinf(labels)
            if columns.label == "whole":
                refused |= ~missing & ((labels != np.floor(labels)) | (np.abs(labels) > 2**53))
        kind = "a whole number (a regression takes any)" if columns.label == "whole" else "finite"
        for row in np.flatnonzero(missing | refused).tolist():
            reason = "the label is missing" if missing[row] else f"label {labels[row]} is not {kind}"
            reasons.setdefault(row, (str(columns.target), reason))
    if not reasons:
        return values, []
    keep = np.ones(values.num_rows, bool)
    keep[list(reasons)] = False
    return values.part(keep), [BadRow(row, repr(at), why) for row, (at, why) in sorted(reasons.items())]


def as_said(
    columns: Columns,
    rows: NDArray[np.int64],
    codes: NDArray[Any],
    entries: list[tuple[str, str | None]],
    values: NDArray[np.float64],
) -> dict[int, tuple[str, str]]:
    """Entries of names that come and go, brought to the kinds that were said; of each row that cannot be, name and reason.

    `entries` and `values` are changed in place: a word that is to be a number becomes one.
    """
    wrong: dict[int, tuple[str, str]] = {}
    for code, (name, word) in enumerate(entries):
        kind = columns.kinds.get(name)
        if word is None or kind not in READ or name not in columns.forced:
            continue
        read, what = READ[kind]
        number = read(word)
        at = codes == code
        if math.isnan(number):
            for row in rows[at].tolist():
                wrong.setdefault(row, (name, f"{word[:60]!r} is not {what}"))
        elif kind in OF_NUMBERS:
            entries[code] = name, None
            values[at] = number
    return wrong


def coded(values: Iterable[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    """Codes and the values that they stand for, in the order in which these appear.

    >>> coded(["b", None, "b"])
    (array([0, 1, 0]), ['b', None])
    """
    place: dict[Any, int] = {}
    codes = [place.setdefault(value, len(place)) for value in values]
    return np.array(codes, np.int64), list(place)
