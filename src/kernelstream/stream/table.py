"""From the columns of a table to features: numbers as they are, categories one-hot or hashed, missing values marked."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernelstream.stream.bad_rows import BadRow
from kernelstream.stream.datasets import did_you_mean
from kernelstream.stream.opening import Opened
from kernelstream.stream.plan import Plan, Rows

TARGET_NAMES = ("target", "label", "class", "y")
"""A column of one of these names is the label, if it is the only one and no other is asked for."""

LOOK_AHEAD = 1000
"""Rows of CSV that are looked at first, to tell numbers from categories."""

_MISSING, _OTHER = "?", "*"  # beside "=red" for the category red
_LONGEST_NAME = 100

Kind = Literal["number", "category"]
Label = Literal["whole", "text", "number"]


@dataclass
class Values:
    """Good rows of a table: numbers with NaN for what is missing, categories by code, labels."""

    numbers: NDArray[np.float64]
    categories: list[tuple[NDArray[np.int64], list[str | None]]]
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


class Columns:
    """The columns of a table and the features they become. Features are only added: later rows may be wider.

    Columns of numbers come first. One more feature is added when a number is first missing, when a category is
    first met, and when a column has more than `max_categories` of them; in the order of rows, then of columns, so
    that it does not matter in which chunks the rows come.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.names: list[str] = []
        self.numbers: list[str] = []
        self.categories: list[str] = []
        self.target: str | None = None
        self.label: Label = "number" if plan.task == "regression" else "whole"
        self._extra: dict[tuple[str, str], int] = {}
        self._known: dict[str, int] = {}  # categories of a column that have a feature

    @property
    def width(self) -> int:
        """The number of features so far."""
        return len(self.numbers) + len(self._extra) + (self._plan.hashed or 0)

    def state(self) -> dict[str, Any]:
        """All that is known, for JSON."""
        return {
            "names": self.names,
            "numbers": self.numbers,
            "categories": self.categories,
            "target": self.target,
            "label": self.label,
            "extra": [list(key) for key in self._extra],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self.names, self.target, self.label = list(state["names"]), state["target"], state["label"]
        self.numbers, self.categories = list(state["numbers"]), list(state["categories"])
        self._extra, self._known = {}, {}
        for name, key in state["extra"]:
            self._add(name, key)

    def settle(
        self,
        file: str,
        names: Sequence[str],
        kind_of: Callable[[str], Kind],
        label_of: Callable[[str], Label],
    ) -> None:
        """Meet the columns of a file: the first decides what they are, the others must have the same."""
        twice = [name for name in names if names.count(name) > 1] if len(set(names)) < len(names) else []
        if twice:
            raise ValueError(f"{file} has two columns called {twice[0]!r}")
        if self.names:
            self._compare(file, names)
            return
        plan = self._plan
        target = self._find_target(file, names) if plan.labelled else None
        dropped = {find_column(file, column, names) for column in plan.drop}
        forced: set[str] = set()
        if plan.categorical != "auto":
            forced = {find_column(file, column, names) for column in plan.categorical}
        features = [name for name in names if name not in dropped and name != target]
        if not features:
            raise ValueError(f"{file} has no column left for the features: it has {_listed(names)}")
        kinds: dict[str, Kind] = {name: "category" if name in forced else kind_of(name) for name in features}
        if plan.categorical != "auto":
            for name, kind in kinds.items():
                if kind == "category" and name not in forced:
                    raise ValueError(
                        f"{file}: column {name!r} is not of numbers, and not in categorical or drop"
                    )
        self.numbers = [name for name in features if kinds[name] == "number"]
        self.categories = [name for name in features if kinds[name] == "category"]
        self.names, self.target = list(names), target
        if target is not None and plan.task == "classification":
            self.label = label_of(target)

    def _compare(self, file: str, names: Sequence[str]) -> None:
        known = set(self.names)
        optional = set() if self._plan.labelled or self.target is None else {self.target}
        lacking, new = (
            [n for n in self.names if n not in {*names, *optional}],
            [n for n in names if n not in known],
        )
        if lacking or new:
            what = f"lacks {lacking[0]!r}" if lacking else f"has {new[0]!r}"
            raise ValueError(f"{file} {what}, other than the columns before it: {_listed(self.names)}")

    def _find_target(self, file: str, names: Sequence[str]) -> str:
        if self._plan.target is not None:
            return find_column(file, self._plan.target, names)
        found = [name for name in names if name.casefold() in TARGET_NAMES]
        if len(found) == 1:
            return found[0]
        which = "several columns that may be" if found else "no column called target, label, class or y to be"
        raise ValueError(
            f"{file} has {which} the label: say target=NAME, or a number (-1 is the last); "
            f"its columns are {_listed(names)}"
        )

    def checked(self, values: Values) -> tuple[Values, list[BadRow]]:
        """The good rows, and the bad ones in order: numbers must be finite or missing, labels what they were."""
        reasons: dict[int, tuple[str, str]] = {}
        numbers, labels, largest = values.numbers, values.labels, np.finfo(self._plan.dtype).max
        if not np.nanmax(np.abs(numbers), initial=0.0) <= largest:
            for row, place in np.argwhere(np.abs(numbers) > largest).tolist():
                reasons.setdefault(row, (self.numbers[place], f"{numbers[row, place]} is not finite"))
        if labels is not None:
            if labels.dtype.kind != "f":
                missing = np.array([label is None for label in labels], bool)
                wrong = np.zeros(len(labels), bool)
            else:
                missing = np.isnan(labels)
                wrong = np.isinf(labels)
                if self.label == "whole":
                    wrong |= ~missing & ((labels != np.floor(labels)) | (np.abs(labels) > 2**53))
            kind = "a whole number (a regression takes any)" if self.label == "whole" else "finite"
            for row in np.flatnonzero(missing | wrong).tolist():
                reason = "the label is missing" if missing[row] else f"label {labels[row]} is not {kind}"
                reasons.setdefault(row, (str(self.target), reason))
        if not reasons:
            return values, []
        keep = np.ones(values.num_rows, bool)
        keep[list(reasons)] = False
        return values.part(keep), [BadRow(row, repr(at), why) for row, (at, why) in sorted(reasons.items())]

    def meet(self, values: Values) -> None:
        """Add the features that these rows need."""
        new: list[tuple[int, int, str, str]] = []
        missing = np.isnan(values.numbers)
        for place in np.flatnonzero(missing.any(axis=0)).tolist():
            if ((name := self.numbers[place]), _MISSING) not in self._extra:
                new.append((int(np.argmax(missing[:, place])), place, name, _MISSING))
        if self._plan.hashed is None:
            places = zip(self.categories, values.categories, strict=True)
            for place, (name, (codes, uniques)) in enumerate(places, len(self.numbers)):
                unknown = [
                    code
                    for code, value in enumerate(uniques)
                    if (name, category_key(value)) not in self._extra
                ]
                if not unknown or self._full(name):
                    continue
                present, first = np.unique(codes, return_index=True)
                row_of = dict(zip(present.tolist(), first.tolist(), strict=True))
                new += [(row_of[c], place, name, category_key(uniques[c])) for c in unknown if c in row_of]
        for _, _, name, key in sorted(new):
            if name in self.categories and self._known.get(name, 0) >= self._plan.max_categories:
                key = _OTHER
            self._add(name, key)

    def _full(self, name: str) -> bool:
        return (name, _OTHER) in self._extra

    def _add(self, name: str, key: str) -> None:
        if (name, key) not in self._extra:
            self._extra[name, key] = len(self._extra)
            self._known[name] = self._known.get(name, 0) + (key != _OTHER)

    def given(self, values: Values) -> Rows:
        """Rows as features, those added that are new."""
        if not self._plan.frozen:
            self.meet(values)
        return self.encode(values)

    def encode(self, values: Values) -> Rows:
        """Rows as features; what `meet` has not met goes to the feature of the others, or to none."""
        n, first, hashed = len(values.numbers), len(self.numbers), self._plan.hashed
        missing = np.isnan(values.numbers)
        numbers = np.where(missing, 0.0, values.numbers)
        marks: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # rows and features that are 1
        for place in np.flatnonzero(missing.any(axis=0)):
            mark = self._extra.get((self.numbers[place], _MISSING))
            if mark is not None:
                rows = np.flatnonzero(missing[:, place])
                marks.append((rows, np.full(len(rows), first + (hashed or 0) + mark)))
        every = np.arange(n)
        for name, (codes, uniques) in zip(self.categories, values.categories, strict=True):
            if hashed is not None:
                table = [first + zlib.crc32(f"{name}={value}".encode()) % hashed for value in uniques]
            else:
                other = self._extra.get((name, _OTHER), -1 - first)
                table = [first + self._extra.get((name, category_key(value)), other) for value in uniques]
            column = np.array(table, np.int64)[codes] if len(codes) else codes
            known = column >= 0
            marks.append((every, column) if known.all() else (every[known], column[known]))
        labels = self._plan.labels(values.labels) if values.labels is not None else None
        dtype = self._plan.dtype
        if not self.categories:
            X = np.zeros((n, self.width), dtype)
            X[:, :first] = numbers
            for rows, column in marks:
                X[rows, column] = 1.0
            return Rows(X, labels)
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
            return Rows(X, labels)
        full_rows, full_columns = np.nonzero(numbers)
        rows = np.concatenate([full_rows, *(r for r, _ in marks)])
        columns = np.concatenate([full_columns, *(c for _, c in marks)])
        data = np.concatenate([numbers[full_rows, full_columns], np.ones(len(rows) - len(full_rows))])
        X = csr_array((data.astype(dtype), (rows, columns)), (n, self.width))
        X.sort_indices()
        return Rows(X, labels)


class RowReader:
    """What readers of batches share: rows of a table by number. A format says how it makes batches and values."""

    what = ""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.columns = Columns(plan)
        self._row = 0
        self._total: int | None = None

    @property
    def at(self) -> dict[str, int] | None:
        """Where this reader stands in the file."""
        return {"row": self._row}

    @property
    def share(self) -> float | None:
        """The share of the file read."""
        return None if self._total is None else self._row / max(self._total, 1)

    def state(self) -> dict[str, Any]:
        """What a reader needs to go on as this one would."""
        return self.columns.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self.columns.restore(state)

    def rows(self, opened: Opened, at: dict[str, int] | None) -> Iterator[Rows]:
        """The rows of one file, from the beginning or from where a reader stood; those before a bad one first."""
        self._row = at["row"] if at else 0
        plan = self._plan
        for batch in self._batches(opened, self._row):
            done = 0
            while done < batch.num_rows:
                rows = batch.slice(done, plan.size())
                values, refused = self._values(rows)
                if refused and plan.bad.stops and refused[0].row:
                    rows = rows.slice(0, refused[0].row)
                    values, refused = self._values(rows)
                for bad in refused:
                    message = (
                        f"{opened.name}, row {self._row + bad.row + 1}, column {bad.column}: {bad.reason}"
                    )
                    plan.bad.meet(message.__str__, self._raw(rows.slice(bad.row, 1)))
                self._row += rows.num_rows
                done += rows.num_rows
                yield self.columns.given(values)

    def _batches(self, opened: Opened, row: int) -> Iterator[Any]:
        """Batches from a row on, with `num_rows` and `slice`."""
        raise NotImplementedError

    def _values(self, batch: Any) -> tuple[Values, list[BadRow]]:
        raise NotImplementedError

    def _raw(self, batch: Any) -> bytes:
        """One row as text, to be put aside."""
        raise NotImplementedError


def find_column(file: str, column: str | int, names: Sequence[str]) -> str:
    """The name of a column given by name or number; numbers may be text, and a name comes first.

    >>> find_column("x.csv", -1, ["a", "b"]), find_column("x.csv", "0", ["a", "b"])
    ('b', 'a')
    """
    if isinstance(column, str) and column in names:
        return column
    try:
        return names[int(column)]
    except (ValueError, IndexError):
        raise ValueError(f"{file} has no column {column!r}; {did_you_mean(str(column), names)}") from None


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


def _listed(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")
