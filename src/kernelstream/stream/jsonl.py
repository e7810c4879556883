"""JSON lines: one object per line, of numbers and texts by name. Names may come and go; one that is absent is 0."""

from __future__ import annotations

import json
import math
import zlib
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from kernelstream.stream.bad_rows import BadRow
from kernelstream.stream.lines import Block, TextReader
from kernelstream.stream.plan import Plan, Rows
from kernelstream.stream.table import TARGET_NAMES, category_key

MOST_FEATURES = 1 << 20
"""More features than this are an error, so that memory stays bounded: `hashed` has no such limit."""

_OTHER = "*"
_Item = tuple[str, str, float]  # name, category ("" for a number), value


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

    def _parse(self, block: Block) -> tuple[Any, list[BadRow]]:
        rows, labels, bad = [], [], []
        target, label = self._target, self._label
        for record in range(len(block.ends)):
            line = block.record(record)
            if line.isspace():
                continue
            column = None
            try:
                row = _object(line)
                if target is None and self._plan.labelled:
                    target = _find_target(row)
                if self._plan.labelled:
                    column = target
                    value = row.get(str(target))
                    label = label or ("text" if isinstance(value, str) else "whole")
                    made = _label(value, label)
                items: list[_Item] = []
                for column, value in row.items():
                    if column != target and column not in self._plan.drop and value is not None:
                        items.append(self._item(column, value))
            except ValueError as error:
                bad.append(BadRow(record, None if column is None else repr(column), str(error)))
            else:
                rows.append(items)
                if self._plan.labelled:
                    labels.append(made)
        return (target, label, rows, labels), bad

    def _item(self, name: str, value: Any) -> _Item:
        if isinstance(value, str) or (self._plan.categorical != "auto" and name in self._plan.categorical):
            if isinstance(value, list | dict):
                raise ValueError("a nested value; only numbers, texts, true, false and null can be read")
            return name, category_key(value if isinstance(value, str) else json.dumps(value)), 1.0
        return name, "", _number(value, float(np.finfo(self._plan.dtype).max))

    def _given(self, parsed: Any) -> Rows:
        self._target, self._label, rows, labels = parsed
        starts, indices, values = [0], [], []
        for items in rows:
            for name, key, value in items:
                place = self._place(name, key)
                if place is not None:
                    indices.append(place)
                    values.append(value)
            starts.append(len(indices))
        width = self._plan.hashed or len(self._columns)
        X = csr_array(
            (np.array(values, self._plan.dtype), np.array(indices, np.int32), np.array(starts)),
            (len(rows), width),
        )
        X.sum_duplicates()
        X.eliminate_zeros()
        kind = object if self._label == "text" else np.float64
        return Rows(X, self._plan.labels(np.array(labels, dtype=kind)))

    def _place(self, name: str, key: str) -> int | None:
        """The column of a feature, a new one if need be."""
        if self._plan.hashed is not None:
            return zlib.crc32((name + key).encode("utf-8", "surrogatepass")) % self._plan.hashed
        found = self._columns.get((name, key))
        if found is not None:
            return found
        if key and (self._plan.frozen or self._known.get(name, 0) >= self._plan.max_categories):
            key = _OTHER
        if not self._plan.frozen:
            self._add(name, key)
        return self._columns.get((name, key))

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


def _number(value: Any, largest: float) -> float:
    if isinstance(value, list | dict):
        raise ValueError("a nested value; only numbers, texts, true, false and null can be read")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not abs(number) <= largest:
        raise ValueError(f"{str(value)[:40]} is not finite")
    return number


def _label(value: Any, kind: str) -> float | str:
    if value is None:
        raise ValueError("the label is missing")
    if isinstance(value, str) != (kind == "text"):
        raise ValueError(
            f"label {value!r:.60} is {'not ' if kind == 'text' else ''}a text, other than the first ones"
        )
    if isinstance(value, str):
        return value
    number = _number(value, float(np.finfo(np.float64).max))
    if kind == "whole" and not (number.is_integer() and abs(number) <= 2**53):
        raise ValueError(f"label {value} is not a whole number (a regression takes any: task='regression')")
    return number
