"""JSON lines: one object per line, of numbers and texts by name. Names may come and go; one that is absent is 0.

The grammar is stated in docs/sources.md; the parser is src/core/text/json.hpp.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kernelstream import _text
from kernelstream.stream.bad_rows import BadRow, TooWideError
from kernelstream.stream.features import category_key
from kernelstream.stream.lines import Block, TextReader
from kernelstream.stream.options import Chunk, Options

_OTHER = "*"
_Feature = tuple[str, str]  # name, and category or "" for a number

# In the order of `JsonReason` in src/core/text/json.hpp.
_NOT_JSON = (
    "expected a name in quotes",
    "expected a colon",
    "expected a comma or a closing bracket",
    "expected a value",
    "a string is not closed",
    "a control character in a string",
    "a wrong escape in a string",
    "a wrong number",
    "text after the object",
    "a bracket closed by another one",
)
_REASONS = (
    *(f"not JSON: {reason} at column {{column}}" for reason in _NOT_JSON),
    "the text is not UTF-8",
    "expected an object in braces on each line, found {text}",
    "half of a surrogate pair, which is no character",
    "the name occurs twice",
    "which is the label? Say target=NAME; the names are: {names}",
    "the label is missing",
    "label {text} is a text, other than the first ones",
    "label {text} is not a text, other than the first ones",
    "label {text} is not finite",
    "label {text} is not a whole number (a regression takes any: task='regression')",
    "a nested value; only numbers, texts, true, false and null can be read",
    "{text} is not finite",
)
_WHICH_LABEL = 14
_LABEL_IS_TEXT, _NOT_AN_OBJECT = 16, 11
_LABEL_MISSING = 15
_LABELS = ("", "whole", "number", "text")  # `JsonLabel`, whose next is "none"


class _Parsed(NamedTuple):
    """Good rows: entry i stands in rows[i] and is features[codes[i]] with values[i]."""

    target: str | None
    label: str
    records: NDArray[np.int32]
    features: list[_Feature]
    codes: NDArray[np.int32]
    rows: NDArray[np.int64]
    values: NDArray[np.float64]
    labels: NDArray[Any]


class JsonlReader(TextReader):
    """Rows as CSR arrays; a name gets a column when it is first met, a text one for each category."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        forced = options.categorical if options.categorical != "auto" else ()
        if any(isinstance(column, int) for column in (options.target, *options.drop, *forced)):
            raise ValueError(
                "JSON lines have names, no column numbers: give target, categorical and drop by name"
            )
        self._target = None if options.target is None else str(options.target)
        self._dropped, self._forced = [str(name) for name in options.drop], [str(name) for name in forced]
        self._label = "number" if options.task == "regression" else ""
        self._columns: dict[tuple[str, str], int] = {}
        self._categories: dict[str, int] = {}  # how many of a name have a feature

    def state(self) -> dict[str, Any]:
        """What a reader needs to go on as this one would."""
        return {"target": self._target, "label": self._label, "columns": [list(key) for key in self._columns]}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self._target, self._label = state["target"], state["label"]
        self._columns, self._categories = {}, {}
        for name, key in state["columns"]:
            self._add(name, key)

    def _parse(self, block: Block) -> tuple[_Parsed, list[BadRow]]:
        label = _LABELS.index(self._label) if self._options.labelled else len(_LABELS)
        records, starts, codes, values, features, labels, (words_of, words), target, kind, names, refused = (
            _text.parse_json(
                block.text,
                block.ends,
                self._options.largest,
                self._target or "",
                label,
                self._dropped,
                self._forced,
            )
        )
        label_kind = _LABELS[kind] if self._options.labelled else self._label
        if self._options.labelled and label_kind == "text":
            labels = np.array(words, dtype=object)[words_of] if len(words_of) else np.array([], dtype=object)
        parsed = _Parsed(
            target or None,
            label_kind,
            records,
            [(name, _key(kind, word)) for name, kind, word in features],
            codes,
            np.repeat(np.arange(len(records)), np.diff(starts)),
            values,
            labels,
        )
        return parsed, [
            self._refusal(block, names, target, *five) for five in refused.reshape(-1, 5).tolist()
        ]

    def kept(self) -> list[Any]:
        """The name to be kept, of the rows given last; None where it is absent."""
        block, parsed = self._last
        return [
            json.loads(block.record(number)).get(self._options.keep) for number in parsed.records.tolist()
        ]

    def _refusal(
        self,
        block: Block,
        names: list[str],
        target: str,
        record: int,
        reason: int,
        name: int,
        start: int,
        end: int,
    ) -> BadRow:
        begin = int(block.ends[record - 1]) if record else 0
        token = (
            block.text[start:end] if reason == _LABEL_IS_TEXT else block.text[start : min(end, start + 300)]
        )
        text = token.decode("utf-8", "replace")
        if reason == _LABEL_IS_TEXT:
            text = repr(json.loads(text))
        elif reason == _NOT_AN_OBJECT:
            text = repr(text[:40])
        shown = ""
        if reason == _WHICH_LABEL:
            with contextlib.suppress(RecursionError):  # the line is JSON, but may be nested deeply
                shown = ", ".join(list(json.loads(block.record(record)))[:12])
        column = len(block.text[begin:start].decode("utf-8", "replace")) + 1
        message = _REASONS[reason].format(column=column, text=text[:60], names=shown)
        where = target if reason == _LABEL_MISSING else names[name] if name >= 0 else None
        return BadRow(record, None if where is None else repr(where), message)

    def _give(self, parsed: _Parsed) -> Chunk:
        self._target, self._label = parsed.target, parsed.label
        if self._options.hashed is None:
            # A feature's column depends on the rows alone: by the row it is first met in, then by name.
            present, first = np.unique(parsed.codes, return_index=True)
            order = sorted(
                (int(parsed.rows[at]), parsed.features[code]) for code, at in zip(present, first, strict=True)
            )
            place = {feature: self._place(row, *feature) for row, feature in order}
            places = [place.get(feature, -1) for feature in parsed.features]
        else:
            places = [_hash(name, key) % self._options.hashed for name, key in parsed.features]
        columns, rows, values = np.array(places, np.int64)[parsed.codes], parsed.rows, parsed.values
        if self._options.frozen:  # what the model does not know is left out
            keep = columns >= 0
            columns, rows, values = columns[keep], rows[keep], values[keep]
        shape = (len(parsed.records), self._options.hashed or len(self._columns))
        X = csr_array(
            (values.astype(self._options.dtype), (rows, columns)), shape
        )  # hashes that collide are added
        X.eliminate_zeros()
        X.sort_indices()
        return Chunk(X, self._options.labels(parsed.labels))

    def _place(self, row: int, name: str, key: str) -> int:
        """The column of a feature that a row has, a new one if need be; -1 if it gets none."""
        if (name, key) in self._columns:
            return self._columns[name, key]
        if key and (self._options.frozen or self._categories.get(name, 0) >= self._options.max_categories):
            key = _OTHER
        if not self._options.frozen:
            most = self._options.max_features
            if (name, key) not in self._columns and len(self._columns) >= most:
                raise TooWideError(
                    row,
                    f"more than {most:,} different features, which is max_features: raise it, "
                    "or hash them with hashed=NUMBER",
                )
            self._add(name, key)
        return self._columns.get((name, key), -1)

    def _add(self, name: str, key: str) -> None:
        if (name, key) not in self._columns:
            self._columns[name, key] = len(self._columns)
            self._categories[name] = self._categories.get(name, 0) + bool(key and key != _OTHER)


def _key(kind: int, word: str) -> str:
    """The name of a feature within its column; `kind` is `FeatureKind` in src/core/text/json.hpp."""
    if kind == 0:
        return ""
    if kind == 2:  # a category that is not written as a text: numbers that are the same are one
        try:
            word = json.dumps(json.loads(word))
        except ValueError:  # an integer of more digits than Python turns into text
            pass
    return category_key(word)


def _hash(name: str, key: str) -> int:
    return zlib.crc32((name + key).encode())
