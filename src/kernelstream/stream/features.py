"""From the values of a table to features: numbers as they are, categories one-hot or hashed, missing values marked."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernelstream.stream.bad_rows import TooWideError
from kernelstream.stream.columns import Columns
from kernelstream.stream.options import Chunk, Options

_MISSING, _OTHER = "?", "*"  # beside "=red" for the category red
_LONGEST_NAME = 100


@dataclass
class Values:
    """Good rows of a table: numbers with NaN for what is missing, categories by code, labels."""

    numbers: NDArray[np.float64]
    categories: list[tuple[NDArray[Any], list[str | None]]]
    labels: NDArray[Any] | None

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.numbers)

    def slice(self, start: int, rows: int | None = None) -> Values:
        """Some rows, one after another."""
        return self.part(slice(start, None if rows is None else start + rows))

    def part(self, rows: Any) -> Values:
        """The rows of a mask or a slice."""
        labels = None if self.labels is None else self.labels[rows]
        return Values(self.numbers[rows], [(codes[rows], words) for codes, words in self.categories], labels)


class Features:
    """The features that columns become. They are only added: later rows may be wider.

    Columns of numbers come first. One more feature is added when a number is first missing, when a category is
    first met, and when a column has more than `max_categories` of them; in the order of rows, then of columns, so
    that it does not matter in which chunks the rows come.
    """

    def __init__(self, options: Options, columns: Columns) -> None:
        self._options, self.columns = options, columns
        self._added: dict[tuple[str, str], int] = {}
        self._categories: dict[str, int] = {}  # how many of a column have a feature

    @property
    def width(self) -> int:
        """The number of features so far."""
        return len(self.columns.numbers) + len(self._added) + (self._options.hashed or 0)

    def state(self) -> dict[str, Any]:
        """All that is known of columns and features, for JSON."""
        return {**self.columns.state(), "extra": [list(key) for key in self._added]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self.columns.restore(state)
        self._added, self._categories = {}, {}
        for name, key in state["extra"]:
            self._add(name, key)

    def give(self, values: Values) -> Chunk:
        """Rows as features, those added that are new."""
        if not self._options.frozen:
            self.meet(values)
        return self.encode(values)

    def meet(self, values: Values) -> None:
        """Add the features that these rows need."""
        new: list[tuple[int, int, str, str]] = []
        missing = np.isnan(values.numbers)
        for place in np.flatnonzero(missing.any(axis=0)).tolist():
            if ((name := self.columns.numbers[place]), _MISSING) not in self._added:
                new.append((int(np.argmax(missing[:, place])), place, name, _MISSING))
        if self._options.hashed is None:
            places = zip(self.columns.categories, values.categories, strict=True)
            for place, (name, (codes, uniques)) in enumerate(places, len(self.columns.numbers)):
                unknown = [
                    code
                    for code, value in enumerate(uniques)
                    if (name, category_key(value)) not in self._added
                ]
                if not unknown or self._full(name):
                    continue
                present, first = np.unique(codes, return_index=True)
                row_of = dict(zip(present.tolist(), first.tolist(), strict=True))
                new += [(row_of[c], place, name, category_key(uniques[c])) for c in unknown if c in row_of]
        for row, _, name, key in sorted(new):
            if key != _MISSING or name in self.columns.categories:
                if self._categories.get(name, 0) >= self._options.max_categories:
                    key = _OTHER
            most = self._options.max_features
            if (name, key) not in self._added and len(self.columns.numbers) + len(self._added) >= most:
                raise TooWideError(
                    row, f"column {name!r} needs one more feature, but max_features is {most:,}"
                )
            self._add(name, key)

    def _full(self, name: str) -> bool:
        return (name, _OTHER) in self._added

    def _add(self, name: str, key: str) -> None:
        if (name, key) not in self._added:
            self._added[name, key] = len(self._added)
            self._categories[name] = self._categories.get(name, 0) + (key != _OTHER)

    def encode(self, values: Values) -> Chunk:
        """Rows as features; what `meet` has not met goes to the feature of the others, or to none."""
        n, first, hashed = len(values.numbers), len(self.columns.numbers), self._options.hashed
        missing = np.isnan(values.numbers)
        numbers = np.where(missing, 0.0, values.numbers) if missing.any() else values.numbers
        marks: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # rows and features that are 1
        for place in np.flatnonzero(missing.any(axis=0)):
            mark = self._added.get((self.columns.numbers[place], _MISSING))
            if mark is not None:
                rows = np.flatnonzero(missing[:, place])
                marks.append((rows, np.full(len(rows), first + (hashed or 0) + mark)))
        every = np.arange(n)
        for name, (codes, uniques) in zip(self.columns.categories, values.categories, strict=True):
            if hashed is not None:
                table = [first + zlib.crc32(f"{name}={value}".encode()) % hashed for value in uniques]
            else:
                other = self._added.get((name, _OTHER), -1 - first)
                table = [first + self._added.get((name, category_key(value)), other) for value in uniques]
            column = np.array(table, np.int64)[codes] if len(codes) else codes
            known = column >= 0
            marks.append((every, column) if known.all() else (every[known], column[known]))
        labels = self._options.labels(values.labels) if values.labels is not None else None
        dtype = self._options.dtype
        if not self.columns.categories:
            if self.width == first:
                return Chunk(numbers.astype(dtype, copy=False), labels)
            X = np.zeros((n, self.width), dtype)
            X[:, :first] = numbers
            for rows, column in marks:
                X[rows, column] = 1.0
            return Chunk(X, labels)
        if all(len(rows) == n for rows, _ in marks):  # as many entries in each row
            entries = np.ones((n, first + len(marks)), dtype)
            entries[:, :first] = numbers
            columns = np.empty(entries.shape, np.int32)
            columns[:, :first] = np.arange(first)
            for mark_place, (_, column) in enumerate(marks):
                columns[:, first + mark_place] = column
            starts = np.arange(n + 1, dtype=np.int32) * entries.shape[1]
            X = csr_array((entries.ravel(), columns.ravel(), starts), (n, self.width))
            X.sum_duplicates()  # sorts as well; hashes that collide are added
            X.eliminate_zeros()
            return Chunk(X, labels)
        full_rows, full_columns = np.nonzero(numbers)
        rows = np.concatenate([full_rows, *(r for r, _ in marks)])
        columns = np.concatenate([full_columns, *(c for _, c in marks)])
        data = np.concatenate([numbers[full_rows, full_columns], np.ones(len(rows) - len(full_rows))])
        X = csr_array((data.astype(dtype), (rows, columns)), (n, self.width))
        X.sort_indices()
        return Chunk(X, labels)


def coded(values: Iterable[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    """Codes and the values that they stand for, in the order in which these appear.

    >>> coded(["b", None, "b"])
    (array([0, 1, 0]), ['b', None])
    """
    place: dict[Any, int] = {}
    codes = [place.setdefault(value, len(place)) for value in values]
    return np.array(codes, np.int64), list(place)


def category_key(value: str | None) -> str:
    """The name of a category's feature within its column; bounded in length."""
    if value is None:
        return _MISSING
    if len(value) > _LONGEST_NAME:  # what is kept of a category is bounded
        value = f"{value[:_LONGEST_NAME]}#{zlib.crc32(value.encode()):08x}"
    return "=" + value
