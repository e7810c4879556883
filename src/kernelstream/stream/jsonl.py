"""JSON lines: one object per line, of numbers and texts by name. Names may come and go; one that is absent is 0."""

from __future__ import annotations

import json
import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernelstream.stream.bad_rows import BadRow
from kernelstream.stream.lines import Block, TextReader
from kernelstream.stream.plan import Plan, Rows
from kernelstream.stream.table import TARGET_NAMES, category_key, coded

MOST_FEATURES = 1 << 20
"""More features than this are an error, so that memory stays bounded: `hashed` has no such limit."""

_OTHER = "*"
_Feature = tuple[str, str]  # name, and category or "" for a number


class _Entries(NamedTuple):
    """Good rows: entry i stands in rows[i] and is features[codes[i]] with values[i]."""

    target: str | None
    label: str
    n: int
    features: list[_Feature]
    codes: NDArray[np.int64]
    rows: NDArray[np.int64]
    values: NDArray[np.float64]
    labels: NDArray[Any]


class JsonlReader(TextReader):
    """Rows as CSR arrays; a name gets a column when it is first met, a text one for each category."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        if any(
            isinstance(c, int)
            for c in (plan.target, *plan.drop, *(plan.categorical if plan.categorical != "auto" else ()))
        ):
            raise ValueError(
                "JSON lines have names, no column numbers: give target, categorical and drop by name"
            )
        self._target = None if plan.target is None else str(plan.target)
        self._label = "number" if plan.task == "regression" else ""
        self._columns: dict[tuple[str, str], int] = {}
        self._known: dict[str, int] = {}  # categories of a name that have a feature

    def state(self) -> dict[str, Any]:
        """What a reader needs to go on as this one would."""
        return {"target": self._target, "label": self._label, "columns": [list(key) for key in self._columns]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self._target, self._label = state["target"], state["label"]
        self._columns, self._known = {}, {}
        for name, key in state["columns"]:
            self._add(name, key)

    def _parse(self, block: Block) -> tuple[_Entries, list[BadRow]]:
        entries = self._quick(block)
        return (entries, []) if entries is not None else self._careful(block)

    def _quick(self, block: Block) -> _Entries | None:
        """All rows at once with pyarrow, or None if it is not there, or anything is unusual in one of them."""
        plan, target = self._plan, self._target
        if (plan.labelled and not (target and self._label)) or plan.categorical != "auto":
            return None
        starts = np.concatenate([[0], block.ends[:-1]])
        if (
            np.frombuffer(block.text, np.uint8)[starts] != ord("{")
        ).any():  # so that a line cannot hide two objects
            return None
        try:
            import pyarrow as pa
            import pyarrow.json as pa_json

            from kernelstream.stream.arrow import coded_column, floats, is_number
        except ImportError:
            return None
        texts = pa.schema([(name, pa.string()) for name in self._known if (name, "") not in self._columns])
        try:
            table = pa_json.read_json(
                pa.BufferReader(block.text),
                pa_json.ReadOptions(use_threads=False, block_size=len(block.text) + 1),
                pa_json.ParseOptions(explicit_schema=texts, newlines_in_values=False),
            )
            if table.num_rows != len(block.ends):
                return None
            features: list[_Feature] = []
            parts: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []  # rows, codes, values
            labels: NDArray[Any] = np.zeros(table.num_rows)
            for name, column in zip(table.column_names, table.columns, strict=True):
                if plan.labelled and name == target:
                    if column.null_count or is_number(column.type) != (self._label != "text"):
                        return None
                    labels = (
                        floats(column)
                        if self._label != "text"
                        else np.array(column.to_pylist(), dtype=object)
                    )
                elif name in plan.drop or name == target or column.null_count == len(column):
                    continue
                elif is_number(column.type):
                    values = floats(column)
                    rows = np.flatnonzero(column.is_valid().to_numpy())
                    parts.append((rows, np.full(len(rows), len(features)), values[rows]))
                    features.append((name, ""))
                elif pa.types.is_string(column.type):
                    codes, words = coded_column(column)
                    rows = np.flatnonzero(column.is_valid().to_numpy())
                    parts.append((rows, codes[rows] + len(features), np.ones(len(rows))))
                    features += [(name, category_key(word)) for word in words]
                else:
                    return None
            if plan.labelled and target not in table.column_names:
                return None
        except (pa.ArrowException, UnicodeDecodeError):
            return None
        lines, codes, values = (
            (np.concatenate([*arrays, []]) for arrays in zip(*parts, strict=True))
            if parts
            else [np.array([])] * 3
        )
        if not np.abs(values).max(initial=0.0) <= np.finfo(plan.dtype).max:
            return None
        if self._label != "text" and not np.isfinite(labels).all():
            return None
        if self._label == "whole" and not ((labels == np.floor(labels)) & (np.abs(labels) <= 2**53)).all():
            return None
        return _Entries(
            target,
            self._label,
            table.num_rows,
            features,
            codes.astype(np.int64),
            lines.astype(np.int64),
            values,
            labels,
        )

    def _careful(self, block: Block) -> tuple[_Entries, list[BadRow]]:
        """Line by line."""
        plan = self._plan
        rows, labels, bad = [], [], []
        target, label = self._target, self._label
        skip = {target, *plan.drop}
        forced = frozenset() if plan.categorical == "auto" else frozenset(plan.categorical)
        largest = float(np.finfo(plan.dtype).max)
        for record in range(len(block.ends)):
            line = block.record(record)
            if line.isspace():
                continue
            column = None
            items: list[tuple[_Feature, float]] = []
            try:
                row = _object(line)
                if plan.labelled:
                    if target is None:
                        target = _find_target(row)
                        skip.add(target)
                    column, value = target, row.get(target)
                    label = label or ("text" if isinstance(value, str) else "whole")
                    made = _label(value, label)
                for column, value in row.items():
                    if column in skip or value is None:
                        continue
                    kind = type(value)
                    if kind is list or kind is dict:
                        raise ValueError(
                            "a nested value; only numbers, texts, true, false and null can be read"
                        )
                    if kind is str or column in forced:
                        items.append(
                            ((column, category_key(value if kind is str else json.dumps(value))), 1.0)
                        )
                    elif -largest <= value <= largest:
                        items.append(((column, ""), float(value)))
                    else:
                        raise ValueError(f"{_short(value)} is not finite")
            except ValueError as error:
                bad.append(BadRow(record, None if column is None else repr(column), str(error)))
            else:
                rows.append(items)
                if plan.labelled:
                    labels.append(made)
        codes, features = coded(feature for items in rows for feature, _ in items)
        values = np.array([value for items in rows for _, value in items])
        lines = np.repeat(np.arange(len(rows)), [len(items) for items in rows])
        made_labels = np.array(labels, dtype=object if label == "text" else np.float64)
        return _Entries(target, label, len(rows), features, codes, lines, values, made_labels), bad

    def _given(self, parsed: _Entries) -> Rows:
        self._target, self._label = parsed.target, parsed.label
        if self._plan.hashed is None:
            # A feature's column depends on the rows alone: by the row it is first met in, then by name.
            present, first = np.unique(parsed.codes, return_index=True)
            order = sorted(
                (int(parsed.rows[at]), parsed.features[code]) for code, at in zip(present, first, strict=True)
            )
            place = {feature: self._place(*feature) for _, feature in order}
            places = [place.get(feature, -1) for feature in parsed.features]
        else:
            places = [_hash(name, key) % self._plan.hashed for name, key in parsed.features]
        columns, rows, values = np.array(places, np.int64)[parsed.codes], parsed.rows, parsed.values
        if self._plan.frozen:  # what the model does not know is left out
            keep = columns >= 0
            columns, rows, values = columns[keep], rows[keep], values[keep]
        shape = (parsed.n, self._plan.hashed or len(self._columns))
        X = csr_array(
            (values.astype(self._plan.dtype), (rows, columns)), shape
        )  # hashes that collide are added
        X.eliminate_zeros()
        X.sort_indices()
        return Rows(X, self._plan.labels(parsed.labels))

    def _place(self, name: str, key: str) -> int:
        """The column of a feature, a new one if need be; -1 if it gets none."""
        if (name, key) in self._columns:
            return self._columns[name, key]
        if key and (self._plan.frozen or self._known.get(name, 0) >= self._plan.max_categories):
            key = _OTHER
        if not self._plan.frozen:
            self._add(name, key)
        return self._columns.get((name, key), -1)

    def _add(self, name: str, key: str) -> None:
        if (name, key) not in self._columns:
            if len(self._columns) == MOST_FEATURES:
                raise ValueError(
                    f"more than {MOST_FEATURES} different features: hash them, with hashed=NUMBER"
                )
            self._columns[name, key] = len(self._columns)
            self._known[name] = self._known.get(name, 0) + bool(key and key != _OTHER)


def _object(line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError:
        raise ValueError("the text is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(row, dict):
        raise ValueError(f"expected an object in braces, found {line.decode()[:40].strip()!r}")
    return row


def _find_target(row: dict[str, Any]) -> str:
    found = [name for name in row if name.casefold() in TARGET_NAMES]
    if len(found) == 1:
        return found[0]
    names = ", ".join(list(row)[:12])
    raise ValueError(f"which is the label? Say target=NAME; the first row has {names or 'no names'}")


def _short(value: Any) -> str:
    """A number as text, also one of very many digits."""
    return (
        str(value) if isinstance(value, float) or abs(value) < 10**40 else "an integer of more than 40 digits"
    )


def _hash(name: str, key: str) -> int:
    return zlib.crc32((name + key).encode("utf-8", "surrogatepass"))


def _label(value: Any, kind: str) -> float | str:
    if value is None:
        raise ValueError("the label is missing")
    if isinstance(value, str) != (kind == "text"):
        raise ValueError(
            f"label {value!r:.60} is {'not ' if kind == 'text' else ''}a text, other than the first ones"
        )
    if isinstance(value, str):
        return value
    if isinstance(value, list | dict) or not abs(value) <= np.finfo(np.float64).max:
        raise ValueError(f"label {value!r:.60} is not finite")
    if kind == "whole" and not (value == int(value) and abs(value) <= 2**53):
        raise ValueError(f"label {value} is not a whole number (a regression takes any: task='regression')")
    return float(value)
