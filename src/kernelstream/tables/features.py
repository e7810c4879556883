"""From the values of a table to features: numbers, categories one-hot or hashed, times, texts; missing values marked."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernelstream import _text
from kernelstream.tables.columns import Columns
from kernelstream.tables.errors import TooWideError
from kernelstream.tables.kinds import KINDS, OF_TIMES, READ, TIME_PARTS, Kind, kind_of_word, time_parts
from kernelstream.tables.options import Chunk, TableOptions
from kernelstream.tables.values import Coded, Values

VERSION = 2
"""Of the description of columns and features that models keep."""

OF_A_FILE = ("order", "delimiter", "label_commas")
"""What a reader's state has beside its description: what only the file at hand has."""

# The key of a feature within its column: "" for a number, "=red" for the category red, "@elapsed" for a part of a time, and
_MISSING, _OTHER, _TEXT, _HASHED = "?", "*", "~", "#"
_LONGEST_NAME = 100
_Key = tuple[str, str]


class Features:
    """The features that columns become. They are only added: later rows may be wider.

    Of a table, those that need no row to be known come first: its numbers, the parts of its times, its texts, the hashed
    categories. One more feature is added when a value is first missing, when a category is first met, and when a column
    has more than `max_categories` of them; in the order of rows, then of columns, so that it does not matter in which
    chunks the rows come. Of columns that come and go, all features are added so.
    """

    def __init__(self, options: TableOptions, columns: Columns) -> None:
        self._options, self.columns = options, columns
        self.hashed, self.max_categories = options.hashed, options.max_categories
        self.text_features = options.text_features
        self._clear()

    def _clear(self) -> None:
        self._places: dict[_Key, int] = {}
        self._categories: dict[str, int] = {}  # how many of a column have a feature
        self.origins: dict[str, float] = {}  # the first time of a column, in microseconds
        self.truths: set[str] = set()  # names, among those that come and go, whose numbers are true and false
        self.width = 0
        self._quantities = np.zeros(0, bool)

    # ---- what is known ----

    def state(self) -> dict[str, Any]:
        """All that is known of columns and features, for JSON."""
        return {
            "version": VERSION,
            **self.columns.state(),
            "hashed": self.hashed,
            "max_categories": self.max_categories,
            "text_features": self.text_features,
            "origins": dict(self.origins),
            "features": [list(key) for key in self._places],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        state = upgraded(state, self._options.hashed)
        self.columns.restore(state)
        self.hashed, self.text_features = state["hashed"], state["text_features"]
        self.max_categories = state["max_categories"] or self._options.max_categories
        self._clear()
        self.origins = {str(name): float(origin) for name, origin in state["origins"].items()}
        for name, key in state["features"]:
            self._add(str(name), str(key))

    def copy(self) -> Features:
        """Another one that knows the same."""
        other = Features(self._options, Columns(self._options))
        other.restore(self.state())
        return other

    def names(self) -> list[str]:
        """A name for each feature.

        ``age``, ``age missing``, ``colour=red``, ``colour other``, ``when elapsed``, ``review word 7``, ``review piece 7``.
        """
        return [name for key in self._places for name in self._names_of(*key)]

    def _names_of(self, name: str, key: str) -> Iterator[str]:
        if key == _HASHED:
            yield from (f"hashed {place}" for place in range(self.hashed or 0))
        elif key == _TEXT:
            words = self.text_features - self.text_features // 2
            yield from (f"{name} word {place}" for place in range(words))
            yield from (f"{name} piece {place}" for place in range(self.text_features - words))
        elif key in (_MISSING, _OTHER):
            yield f"{name} {'missing' if key == _MISSING else 'other'}"
        else:
            yield f"{name} {key[1:]}" if key.startswith("@") else name + key

    @property
    def quantities(self) -> NDArray[np.bool_]:
        """Which features are quantities, of any scale; the others are on a common one: marks, texts, places on a circle."""
        if len(self._quantities) < self.width:
            known = len(self._quantities)
            new = [key for key, place in self._places.items() if place >= known]
            marks = [np.full(self._size(key), self._is_quantity(name, key), bool) for name, key in new]
            self._quantities = np.concatenate([self._quantities, *marks])
        return self._quantities

    def _is_quantity(self, name: str, key: str) -> bool:
        if key == _HASHED:
            return self.columns.open  # numbers are among them
        return key == "@elapsed" or (not key and self.columns.kinds.get(name) != "boolean")

    def begin(self) -> None:
        """The features that the columns of a table have before any row."""
        if self._places or self.columns.open:
            if self.columns.open and self.hashed is not None:
                self._add("", _HASHED)
            return
        for name in self.columns.numbers:
            self._add(name, "")
        for name in self.columns.times:
            for part in TIME_PARTS:
                self._add(name, "@" + part)
        for name in self.columns.texts:
            self._add(name, _TEXT)
        if self.hashed is not None:
            self._add("", _HASHED)
        if self.width - (self.hashed or 0) > self._options.max_features:
            raise TooWideError(
                0,
                f"the columns need {self.width:,} features, but max_features is {self._options.max_features:,} "
                f"(a text has {self.text_features:,}: text_features=)",
            )

    def _add(self, name: str, key: str) -> int:
        place = self._places.get((name, key))
        if place is None:
            place = self._places[name, key] = self.width
            self.width += self._size(key)
            if key.startswith("=") or key == _MISSING:
                self._categories[name] = self._categories.get(name, 0) + 1
        return place

    def _size(self, key: str) -> int:
        return self.hashed or 0 if key == _HASHED else self.text_features if key == _TEXT else 1

    def _check_width(self, row: int, name: str, more: int = 1) -> None:
        own = self.width - (self.hashed or 0)
        if own + more > self._options.max_features:
            which = "one more feature" if more == 1 else f"{more:,} more features"
            raise TooWideError(
                row, f"column {name!r} needs {which}, but max_features is {self._options.max_features:,}"
            )

    # ---- rows of a table ----

    def give(self, values: Values) -> Chunk:
        """Rows as features, those added that are new."""
        if not self._options.frozen:
            self.meet(values)
        return self.encode(values)

    def meet(self, values: Values) -> None:
        """Add the features that these rows need."""
        self.begin()
        if self.columns.open:
            self.meet_rows(*_entries(values, self.columns))
            return
        for place, name in enumerate(self.columns.times):
            if name not in self.origins:
                known = values.times[~np.isnan(values.times[:, place]), place]
                if len(known):
                    self.origins[name] = float(known[0])
        for row, _, name, key in sorted(self._new(values)):
            self._meet(row, name, key)

    def meet_keys(self, keys: Iterable[_Key]) -> None:
        """Add features that rows elsewhere need, as `state` has them."""
        for name, key in keys:
            self._meet(0, name, key)

    def _meet(self, row: int, name: str, key: str) -> None:
        if key != _MISSING or name in self.columns.categories:
            if self._categories.get(name, 0) >= self.max_categories:
                key = _OTHER
        if (name, key) not in self._places:
            self._check_width(row, name)
            self._add(name, key)

    def needs(self, values: Values) -> bool:
        """Whether these rows would add anything."""
        if not self._places or self.columns.open:
            return True
        begun = all(name in self.origins for name in self.columns.times)
        return not begun or bool(self._new(values))

    def _new(self, values: Values) -> list[tuple[int, int, str, str]]:
        """The features that rows of a table need: row, place of the column, its name, and the key."""
        columns = self.columns
        new: list[tuple[int, int, str, str]] = []

        def missing(first: int, names: Sequence[str], matrix: NDArray[np.bool_]) -> None:
            for place in np.flatnonzero(matrix.any(axis=0)).tolist():
                if (names[place], _MISSING) not in self._places:
                    new.append((int(np.argmax(matrix[:, place])), first + place, names[place], _MISSING))

        if _has_missing(values.numbers):
            missing(0, columns.numbers, np.isnan(values.numbers))
        first = len(columns.numbers)
        if self.hashed is None:
            places = zip(columns.categories, values.categories, strict=True)
            for place, (name, (codes, uniques)) in enumerate(places, first):
                unknown = [
                    code
                    for code, value in enumerate(uniques)
                    if (name, category_key(value)) not in self._places
                ]
                if not unknown or (name, _OTHER) in self._places:
                    continue
                present, first_rows = np.unique(codes, return_index=True)
                row_of = dict(zip(present.tolist(), first_rows.tolist(), strict=True))
                new += [(row_of[c], place, name, category_key(uniques[c])) for c in unknown if c in row_of]
        first += len(columns.categories)
        if columns.times:
            missing(first, columns.times, np.isnan(values.times))
        first += len(columns.times)
        for place, (name, (codes, words)) in enumerate(zip(columns.texts, values.texts, strict=True)):
            if None in words:
                missing(first + place, [name], (codes == words.index(None))[:, None])
        return new

    def encode(self, values: Values) -> Chunk:
        """Rows as features; what `meet` has not met goes to the feature of the others, or to none."""
        self.begin()
        columns = self.columns
        labels = self._options.labels(values.labels) if values.labels is not None else None
        n = len(values.numbers)
        if columns.open:
            return Chunk(self.encode_rows(n, *_entries(values, columns)), labels)
        numbers, gaps = values.numbers, _has_missing(values.numbers)
        missing = np.isnan(numbers) if gaps else np.zeros((0, numbers.shape[1]), bool)
        numbers = np.where(missing, 0.0, numbers) if gaps else numbers
        marks: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []  # rows and features that are 1

        def mark(name: str, rows: NDArray[np.int64]) -> None:
            feature = self._places.get((name, _MISSING))
            if feature is not None and len(rows):
                marks.append((rows, np.full(len(rows), feature)))

        for place in np.flatnonzero(missing.any(axis=0)).tolist():
            mark(columns.numbers[place], np.flatnonzero(missing[:, place]))
        if columns.times:
            parts = [
                time_parts(np.ascontiguousarray(values.times[:, place]), self.origins.get(name))
                for place, name in enumerate(columns.times)
            ]
            numbers = np.hstack([numbers, *parts])
            for place, name in enumerate(columns.times):
                mark(name, np.flatnonzero(np.isnan(values.times[:, place])))
        texts: list[tuple[NDArray[Any], ...]] = []  # rows, features and values
        for name, column in zip(columns.texts, values.texts, strict=True):
            texts.append(self._hash_texts(self._places[name, _TEXT], *column))
            if None in column[1]:
                mark(name, np.flatnonzero(column[0] == column[1].index(None)))
        every = np.arange(n)
        for name, (codes, uniques) in zip(columns.categories, values.categories, strict=True):
            if self.hashed is not None:
                base = self._places["", _HASHED]
                table = [base + zlib.crc32(f"{name}={value}".encode()) % self.hashed for value in uniques]
            else:
                other = self._places.get((name, _OTHER), -1)
                table = [self._places.get((name, category_key(value)), other) for value in uniques]
            places = np.array(table, np.int64)[codes] if len(codes) else codes
            known = places >= 0
            marks.append((every, places) if known.all() else (every[known], places[known]))
        return Chunk(self._matrix(numbers, marks, texts), labels)

    def _matrix(
        self,
        numbers: NDArray[np.float64],
        marks: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
        texts: list[tuple[NDArray[Any], ...]],
    ) -> Any:
        """The first columns, features that are 1, and entries of texts: dense if all columns are numbers or times."""
        n, first = numbers.shape
        dtype = self._options.dtype
        if not self.columns.categories and not self.columns.texts:
            if self.width == first:
                return numbers.astype(dtype, copy=False)
            X = np.zeros((n, self.width), dtype)
            X[:, :first] = numbers
            for rows, places in marks:
                X[rows, places] = 1.0
            return X
        if not texts and all(len(rows) == n for rows, _ in marks):  # as many entries in each row
            entries = np.ones((n, first + len(marks)), dtype)
            entries[:, :first] = numbers
            columns = np.empty(entries.shape, np.int32)
            columns[:, :first] = np.arange(first)
            for mark_place, (_, places) in enumerate(marks):
                columns[:, first + mark_place] = places
            starts = np.arange(n + 1, dtype=np.int32) * entries.shape[1]
            X = csr_array((entries.ravel(), columns.ravel(), starts), (n, self.width))
            X.sum_duplicates()  # sorts as well; hashes that collide are added
            X.eliminate_zeros()
            return X
        full_rows, full_columns = np.nonzero(numbers)
        ones = sum(len(rows) for rows, _ in marks)
        rows = np.concatenate([full_rows, *(r for r, _ in marks), *(t[0] for t in texts)])
        columns = np.concatenate([full_columns, *(c for _, c in marks), *(t[1] for t in texts)])
        data = np.concatenate([numbers[full_rows, full_columns], np.ones(ones), *(t[2] for t in texts)])
        return _csr(data.astype(dtype), rows, columns, (n, self.width))

    def _hash_texts(
        self, base: int, codes: NDArray[Any], words: list[str | None]
    ) -> tuple[NDArray[Any], ...]:
        """Rows, features and values of a column of texts."""
        starts, places, values = _text.hash_texts(
            ["" if word is None else word.casefold() for word in words], self.text_features
        )
        lengths = np.diff(starts)
        per_row = lengths[codes] if len(codes) else np.zeros(0, np.int64)
        rows = np.repeat(np.arange(len(codes)), per_row)
        inside = np.arange(len(rows)) - np.repeat(np.cumsum(per_row) - per_row, per_row)
        at = (np.repeat(starts[codes], per_row) if len(codes) else np.zeros(0, np.int64)) + inside
        return rows, base + places[at].astype(np.int64), values[at]

    # ---- rows whose names come and go ----

    def meet_rows(
        self, rows: NDArray[np.int64], codes: NDArray[Any], entries: Sequence[tuple[str, str | None]], _: Any
    ) -> None:
        """Add the features that rows need whose names come and go; see `give_rows`."""
        if self.hashed is not None:
            return
        # A feature's place depends on the rows alone: by the row it is first met in, then by name.
        present, first = np.unique(codes, return_index=True)
        order = sorted(
            (int(rows[at]), entries[code]) for code, at in zip(present.tolist(), first.tolist(), strict=True)
        )
        for row, (name, word) in order:
            self._place(row, name, word)

    def _place(self, row: int, name: str, word: str | None) -> None:
        """A place for what a name holds, if it has none."""
        kinds = self.columns.kinds
        if name not in kinds:
            number: Kind = "boolean" if name in self.truths else "number"
            kinds[name] = number if word is None else kind_of_word(word)
        kind = kinds[name]
        if kind in OF_TIMES and word is not None and not math.isnan(moment := READ[kind][0](word)):
            if (name, "@elapsed") not in self._places:
                self._check_width(row, name, len(TIME_PARTS))
                self.origins[name] = moment
                for part in TIME_PARTS:
                    self._add(name, "@" + part)
        elif kind == "text" and word is not None:
            if (name, _TEXT) not in self._places:
                self._check_width(row, name, self.text_features)
                self._add(name, _TEXT)
        else:
            key = "" if word is None else category_key(word)
            if (name, key) not in self._places:
                if key and self._categories.get(name, 0) >= self.max_categories:
                    key = _OTHER
                if (name, key) not in self._places:
                    if self.width >= self._options.max_features:
                        raise TooWideError(
                            row,
                            f"more than {self._options.max_features:,} different features, which is max_features: "
                            "raise it, or hash them with hashed=NUMBER",
                        )
                    self._add(name, key)

    def encode_rows(
        self,
        n: int,
        rows: NDArray[np.int64],
        codes: NDArray[Any],
        entries: Sequence[tuple[str, str | None]],
        values: NDArray[np.float64],
    ) -> Any:
        """The matrix of n rows; what has no place is left out."""
        places = np.full(len(entries), -1, np.int64)
        longer: dict[int, tuple[NDArray[Any], NDArray[np.float64]]] = {}  # times and texts have several
        for code, (name, word) in enumerate(entries):
            if self.hashed is not None:
                key = "" if word is None else category_key(word)
                places[code] = self._places["", _HASHED] + _hash(name, key) % self.hashed
                continue
            kind = self.columns.kinds.get(name)
            if kind in OF_TIMES and word is not None and (name, "@elapsed") in self._places:
                moment = READ[kind][0](word)
                if not math.isnan(moment):
                    first = self._places[name, "@elapsed"]
                    parts = time_parts(np.array([moment]), self.origins.get(name))[0]
                    longer[code] = first + np.arange(len(TIME_PARTS)), parts
                    continue
            if kind == "text" and word is not None and (name, _TEXT) in self._places:
                _, at, weights = _text.hash_texts([word.casefold()], self.text_features)
                longer[code] = self._places[name, _TEXT] + at.astype(np.int64), weights
                continue
            key = "" if word is None else category_key(word)
            other = self._places.get((name, _OTHER), -1) if key else -1
            places[code] = self._places.get((name, key), other)
        columns = places[codes] if len(codes) else np.zeros(0, np.int64)
        keep = columns >= 0
        if longer:
            several = [i for i, code in enumerate(codes.tolist()) if code in longer]
            pieces = [longer[int(codes[i])] for i in several]
            more_rows = np.repeat(rows[several], [len(piece[0]) for piece in pieces])
            rows = np.concatenate([rows[keep], more_rows])
            columns = np.concatenate([columns[keep], *(piece[0] for piece in pieces)])
            values = np.concatenate([values[keep], *(piece[1] for piece in pieces)])
        elif not keep.all():
            columns, rows, values = columns[keep], rows[keep], values[keep]
        X = _csr(values.astype(self._options.dtype), rows, columns, (n, self.width))
        X.eliminate_zeros()  # hashes that collide were added
        return X

    def give_rows(
        self,
        n: int,
        rows: NDArray[np.int64],
        codes: NDArray[Any],
        entries: Sequence[tuple[str, str | None]],
        values: NDArray[np.float64],
    ) -> Any:
        """The matrix of n rows whose names come and go, features added that are new.

        Entry i stands in rows[i], which do not decrease; entries[codes[i]] is its name and its text, None for a number, and
        values[i] its number, 1 for a text.
        """
        self.begin()
        if not self._options.frozen:
            self.meet_rows(rows, codes, entries, values)
        return self.encode_rows(n, rows, codes, entries, values)


def _has_missing(numbers: NDArray[np.float64]) -> bool:
    """Whether any is NaN: then so is the sum (which may be for other reasons, at little cost)."""
    with np.errstate(all="ignore"):
        return bool(np.isnan(numbers.sum())) and bool(np.isnan(numbers).any())


def _csr(values: NDArray[Any], rows: NDArray[Any], columns: NDArray[Any], shape: tuple[int, int]) -> Any:
    """A CSR matrix, sorted, with indices of 32 bits, which scikit-learn wants."""
    X = csr_array((values, (rows.astype(np.int32), columns.astype(np.int32))), shape)
    X.sum_duplicates()
    if X.indices.dtype != np.int32 and X.nnz < 2**31:
        X = csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape)
    return X


def _entries(values: Values, columns: Columns) -> tuple[Any, Any, list[tuple[str, str | None]], Any]:
    """Rows of a table as rows whose names come and go: what is missing is not there."""
    entries: list[tuple[str, str | None]] = []
    rows, codes, numbers = [], [], []
    for place, name in enumerate(columns.numbers):
        at = np.flatnonzero(~np.isnan(values.numbers[:, place]))
        rows.append(at)
        codes.append(np.full(len(at), len(entries)))
        numbers.append(values.numbers[at, place])
        entries.append((name, None))

    def texts(name: str, given: NDArray[Any], words: Sequence[str | None]) -> None:
        there = np.array([word is not None for word in words], bool)
        at = np.flatnonzero(there[given]) if len(given) else np.zeros(0, np.int64)
        rows.append(at)
        codes.append(given[at].astype(np.int64) + len(entries))
        numbers.append(np.ones(len(at)))
        entries.extend((name, word) for word in words)

    for names, columns_of in ((columns.categories, values.categories), (columns.texts, values.texts)):
        for name, column in zip(names, columns_of, strict=True):
            texts(name, *column)
    for place, name in enumerate(columns.times):
        moments, given = np.unique(values.times[:, place], return_inverse=True)
        words = [
            None if math.isnan(m) else str(np.datetime64(int(m), "us")).replace("T", " ")
            for m in moments.tolist()
        ]
        texts(name, given, words)
    row = np.concatenate([np.zeros(0, np.int64), *rows])
    order = np.argsort(row, kind="stable")
    return (
        row[order],
        np.concatenate([np.zeros(0, np.int64), *codes])[order],
        entries,
        np.concatenate([np.zeros(0), *numbers])[order],
    )


def upgraded(state: dict[str, Any], hashed: int | None = None) -> dict[str, Any]:
    """A description of today from one that an older version wrote; `hashed` was not part of it then.

    >>> old = {"target": None, "label": "whole", "columns": [["x", ""], ["colour", "=red"]]}
    >>> upgraded(old)["kinds"]
    {'x': 'number', 'colour': 'category'}
    """
    if "version" in state:
        if state["version"] != VERSION:
            raise ValueError(f"the description of columns is of version {state['version']!r}, not {VERSION}")
        return state
    block = [["", _HASHED]] if hashed is not None else []
    kinds: dict[str, str] = {}
    if "columns" in state:  # of JSON lines
        for name, key in state["columns"]:
            kinds[name] = "category" if key else kinds.get(name, "number")
        shape = {"names": [], "open": True, "features": block or state["columns"]}
    else:
        kinds = dict.fromkeys(state["numbers"], "number") | dict.fromkeys(state["categories"], "category")
        features = [[name, ""] for name in state["numbers"]] + block + list(state["extra"])
        shape = {"names": state["names"], "open": False, "features": features}
    return {
        "version": VERSION,
        "kinds": kinds,
        "target": state["target"],
        "label": state["label"],
        "hashed": hashed,
        "max_categories": None,  # the default then, or as asked for
        "text_features": 1,
        "origins": {},
        "forced": [],
        **shape,
    }


def check_description(state: Any) -> None:
    """Refuse what is no description of columns, or one that would not fit together."""
    known = {"version", "names", "kinds", "target", "label", "open", "hashed", "max_categories"}
    known |= {"text_features", "origins", "features", "forced"}
    if not isinstance(state, dict) or state.keys() != known:
        raise ValueError("its description of columns is incomplete")
    if not isinstance(state["kinds"], dict) or not all(kind in KINDS for kind in state["kinds"].values()):
        raise ValueError("a column in its description has no kind")
    for entry in state["features"]:
        if not (isinstance(entry, list) and len(entry) == 2 and all(isinstance(part, str) for part in entry)):
            raise ValueError("a feature in its description is not a column and a key")
    for name in ("hashed", "max_categories", "text_features"):
        if state[name] is not None and (type(state[name]) is not int or not 1 <= state[name] < 2**31):
            raise ValueError(f"{name} in its description of columns is {state[name]!r}")


def category_key(value: str | None) -> str:
    """The name of a category's feature within its column; bounded in length."""
    if value is None:
        return _MISSING
    if len(value) > _LONGEST_NAME:  # what is kept of a category is bounded
        value = f"{value[:_LONGEST_NAME]}#{zlib.crc32(value.encode()):08x}"
    return "=" + value


def _hash(name: str, key: str) -> int:
    return zlib.crc32((name + key).encode())


__all__ = ["Coded", "Features", "Values", "category_key", "check_description", "upgraded"]
