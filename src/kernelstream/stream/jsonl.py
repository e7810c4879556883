"""JSON lines: one object per line, of numbers and texts by name. Names may come and go; one that is absent is 0.

The grammar is stated in docs/sources.md; the parser is src/core/text/json.hpp.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream import _text
from kernelstream.stream.bad_rows import BadRow
from kernelstream.stream.lines import Block, TextReader
from kernelstream.stream.options import Chunk, Options
from kernelstream.tables.columns import Columns
from kernelstream.tables.features import Features
from kernelstream.tables.kinds import READ, canonical
from kernelstream.tables.values import Values, as_said, coded, gather

_Feature = tuple[str, str | None]  # name, and its text or None for a number

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
_TRUTH = 3  # `FeatureKind`
_LABELS = ("", "whole", "number", "text")  # `JsonLabel`, whose next is "none"


class _Parsed(NamedTuple):
    """Good rows: entry i stands in rows[i] and is features[codes[i]] with values[i]; or the values of a table's columns."""

    truths: set[str]  # names whose first number is true or false
    target: str | None
    label: str
    records: NDArray[np.int32]
    features: list[_Feature]
    codes: NDArray[np.int32]
    rows: NDArray[np.int64]
    values: NDArray[np.float64]
    labels: NDArray[Any]
    table: Values | None


class JsonlReader(TextReader):
    """Rows as CSR arrays; a name gets a feature when it is first met, a text one for each category.

    If a model knows the names as the columns of a table, each row is a row of that table, and what is absent is missing.
    """

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        forced = options.categorical if options.categorical != "auto" else ()
        asked = dict(options.columns)
        if any(isinstance(column, int) for column in (options.target, *options.drop, *forced, *asked)):
            raise ValueError(
                "JSON lines have names, no column numbers: give target, columns, categorical and drop by name"
            )
        self.columns = Columns(options)
        self.features = Features(options, self.columns)
        self.columns.open = True
        self.columns.target = None if options.target is None else str(options.target)
        if options.task != "regression":
            self.columns.label = ""
        self.columns.kinds = {str(name): "category" for name in forced}
        self.columns.kinds |= {str(name): kind for name, kind in asked.items() if kind != "drop"}
        self._dropped = [str(name) for name in options.drop]
        self._dropped += [str(name) for name, kind in asked.items() if kind == "drop"]
        self.columns.forced = list(self.columns.kinds)

    def state(self) -> dict[str, Any]:
        """What a reader needs to go on as this one would."""
        return self.features.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        asked = self.columns.forced
        self.features.restore(state)
        columns = self.columns
        if columns.open:
            columns.forced = columns.forced or asked
        else:  # of a table
            columns.forced = columns.categories + columns.times + columns.texts
            self._dropped = [name for name in columns.names if name not in columns.kinds]
            self._dropped = [name for name in self._dropped if name != columns.read_target]

    def _parse(self, block: Block) -> tuple[_Parsed, list[BadRow]]:
        columns = self.columns
        label = _LABELS.index(columns.label) if self._options.labelled else len(_LABELS)
        records, starts, codes, values, features, labels, (words_of, words), target, kind, names, refused = (
            _text.parse_json(
                block.text,
                block.ends,
                self._options.largest,
                columns.target or "",
                label,
                self._dropped,
                columns.forced_words,
            )
        )
        label_kind = _LABELS[kind] if self._options.labelled else columns.label
        if self._options.labelled and label_kind == "text":
            labels = np.array(words, dtype=object)[words_of] if len(words_of) else np.array([], dtype=object)
        bad = [self._refusal(block, names, target, *five) for five in refused.reshape(-1, 5).tolist()]
        spelled = json.dumps if columns.open else canonical
        entries: list[_Feature] = [(name, _word(kind, word, spelled)) for name, kind, word in features]
        truths = {name for name, kind, _ in features if kind == _TRUTH}
        rows = np.repeat(np.arange(len(records)), np.diff(starts))
        table = None
        wrong: dict[int, tuple[str | None, str]]
        if columns.open:
            wrong = {
                row: (repr(at), why)
                for row, (at, why) in as_said(columns, rows, codes, entries, values).items()
            }
        else:
            table, wrong = self._table(len(records), rows, codes, entries, values, labels)
        if wrong:
            bad += [BadRow(int(records[row]), at, why) for row, (at, why) in wrong.items()]
            bad.sort(key=lambda row: row.row)
            keep = np.ones(len(records), bool)
            keep[list(wrong)] = False
            inside = keep[rows]
            rows, codes, values = (np.cumsum(keep) - 1)[rows[inside]], codes[inside], values[inside]
            records, labels = records[keep], labels[keep] if len(labels) else labels
            table = None if table is None else table.part(keep)
        return _Parsed(
            truths, target or None, label_kind, records, entries, codes, rows, values, labels, table
        ), bad

    def _table(
        self,
        n: int,
        rows: NDArray[np.int64],
        codes: NDArray[np.int32],
        entries: list[_Feature],
        values: NDArray[np.float64],
        labels: NDArray[Any],
    ) -> tuple[Values, dict[int, tuple[str | None, str]]]:
        """The columns of a table that a model knows, and of each row that cannot be used the column and the reason."""
        columns = self.columns
        numbers = {name: np.full(n, np.nan) for name in columns.numbers}
        texts: dict[str, list[str | None]] = {
            name: [None] * n for name in columns.categories + columns.texts + columns.times
        }
        wrong: dict[int, tuple[str | None, str]] = {}
        known = np.zeros(n, bool)
        order = np.argsort(codes, kind="stable")
        ends = np.searchsorted(codes[order], np.arange(len(entries) + 1))
        for code, (name, word) in enumerate(entries):
            at = order[ends[code] : ends[code + 1]]
            if name not in columns.kinds:
                continue  # a name that the model does not know
            where = rows[at]
            known[where] = True
            if name in texts:
                for row in where.tolist():
                    texts[name][row] = word
            elif word is None:
                numbers[name][where] = values[at]
            elif not math.isnan(number := READ[columns.kinds[name]][0](word)):
                numbers[name][where] = number
            else:
                for row in where.tolist():
                    wrong.setdefault(row, (repr(name), f"the text {word[:60]!r} where a number is needed"))
        for row in np.flatnonzero(~known).tolist():
            wrong.setdefault(row, (None, "it has none of the columns that the model knows"))
        held = {name: coded(column) for name, column in texts.items()}
        given = labels if self._options.labelled else None
        table, more = gather(columns, numbers, held, {}, given, n)
        for row, (column, why) in more.items():
            wrong.setdefault(row, (repr(column), why))
        return table, wrong

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
        if parsed.table is not None:
            return self.features.give(parsed.table)
        self.columns.target, self.columns.label = parsed.target, parsed.label  # type: ignore[assignment]
        self.features.truths = parsed.truths
        X = self.features.give_rows(
            len(parsed.records), parsed.rows, parsed.codes, parsed.features, parsed.values
        )
        return Chunk(X, self._options.labels(parsed.labels))


def _word(kind: int, word: str, spelled: Callable[[Any], str]) -> str | None:
    """The text of an entry, None for a number; `kind` is `FeatureKind` in src/core/text/json.hpp."""
    if kind in (0, _TRUTH):
        return None
    if kind == 2:  # a category that is not written as a text: numbers that are the same are one
        try:
            value = json.loads(word)
        except ValueError:  # an integer of more digits than Python turns into text
            return word
        return spelled(value)
    return word
