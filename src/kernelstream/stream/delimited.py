"""CSV and TSV. The grammar is stated in docs/sources.md; the parser is src/core/text/csv.hpp."""

from __future__ import annotations

import contextlib
import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream import _text
from kernelstream.stream.bad_rows import BadRow, SourceError, TooWideError
from kernelstream.stream.lines import Block, Lines, TextReader
from kernelstream.stream.opening import Opened
from kernelstream.stream.options import Chunk, Options
from kernelstream.tables.columns import Columns, Label, find_column
from kernelstream.tables.features import Features
from kernelstream.tables.kinds import (
    LOOK_AHEAD,
    MOSTLY,
    Kind,
    UnclearColumnError,
    comma_number_of,
    kind_of_words,
)
from kernelstream.tables.values import Values, gather

DELIMITERS = ",;\t|"
"""Those that are looked for where none is given."""

_BLANK_LINES = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t\r\n]*[\r\n])?")
_FIELD = re.compile(rb'(?:"(?:[^"]+|"")*"?)?[^,;\t|\r\n]*')  # up to any delimiter that is looked for

# In the order of `CsvReason` in src/core/text/csv.hpp.
_REASONS = (
    "{count} fields, but there are {columns} columns",
    "text after the quote that ends a field",
    "a quote is not closed",
    "{field} is not a number (a column of another kind: columns=)",
    "{field} is not finite",
    "the text is not UTF-8 (another encoding: charset='latin-1' or the like)",
    "the label is missing",
    "label {field} is not a number",
    "label {field} is not finite",
    "label {field} is not a whole number (a regression takes any: task='regression')",
)
_LEFT_OUT, _NUMBER, _CATEGORY, _LABEL = range(4)  # `Role`
_LABEL_KINDS = {None: 0, "whole": 1, "number": 2, "text": 3}  # `LabelKind`


class _Parsed(NamedTuple):
    values: Values
    records: NDArray[np.int32]  # of the rows


class CsvReader(TextReader):
    """Rows of a table in text: see `Features` for what becomes of its columns."""

    delimiter = ","

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.columns = Columns(options)
        self.features = Features(options, self.columns)
        self._delimiter = options.delimiter or self.delimiter
        self._names: list[str] = []  # of the file at hand, in its order
        self._label_commas = False  # whether labels that are numbers have decimal commas

    def state(self) -> dict[str, Any]:
        """What a reader needs to go on as this one would."""
        file = {"order": self._names, "delimiter": self._delimiter, "label_commas": self._label_commas}
        return {**self.features.state(), **file}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self.features.restore(state)
        self._names = list(state.get("order", state["names"] if "names" in state else ()))
        self._delimiter = state.get("delimiter", self._delimiter)
        self._label_commas = bool(state.get("label_commas", False))

    def _begin(self, opened: Opened, at: dict[str, int] | None) -> Lines:
        if at is None and self._options.delimiter is None and self.delimiter == ",":
            self._delimiter = guess_delimiter(opened)
        lines = Lines(opened, self._delimiter, at, self._options.latency)
        if at is None:
            self._read_header(opened.name, lines)
        self._set_roles()
        return lines

    def _read_header(self, file: str, lines: Lines) -> None:
        """The names of the columns: the first record that is not blank, or numbers if it has none."""
        place = file
        while (first := lines.look(1)) is not None:
            place = f"{file}, line {first.line}"
            try:
                fields = _text.csv_fields(first.text, self._delimiter)
            except ValueError as error:
                raise SourceError(f"{place}: {error}") from None
            if fields:
                break
            lines.drop(first)
        if first is None:
            return
        has_names = self._options.header
        if has_names is None:
            has_names = not any(_text.is_number(field) for field in fields)
        if has_names:
            try:
                self._names = [field.decode().strip() for field in fields]
            except UnicodeDecodeError:
                raise SourceError(
                    f"{place}: the names of the columns are not UTF-8: say charset='latin-1' or the like"
                ) from None
            lines.drop(first)
        else:
            self._names = [str(i) for i in range(len(fields))]
        self._settle(file, lines)

    def _settle(self, file: str, lines: Lines) -> None:
        """What the columns are, by the first rows."""
        known = bool(self.columns.names) or (self.columns.open and self._options.frozen)
        block = None if known else lines.look(LOOK_AHEAD, wait=True)
        counts = [[0] * len(self._names)] * 3
        if block is not None:
            arrays = _text.csv_counts(block.text, block.ends, len(self._names), self._delimiter)
            counts = [array.tolist() for array in arrays]
        present, numbers, whole = counts
        place = {name: i for i, name in enumerate(self._names)}

        def kind_of(name: str) -> Kind:
            i = place[name]
            if block is None or numbers[i] >= MOSTLY * present[i]:
                return "number"
            return self._kind_of_texts(block, i)

        def label_of(name: str) -> Label:
            i = place[name]
            return "whole" if whole[i] >= MOSTLY * present[i] else "text"

        self.columns.settle(file, self._names, kind_of, label_of)
        label = place.get(self.columns.read_target or "")
        if block is not None and label is not None and self.columns.label == "number":
            with contextlib.suppress(UnclearColumnError):  # then the first row says what is wrong
                few = numbers[label] < MOSTLY * present[label]
                self._label_commas = few and self._kind_of_texts(block, label) == "decimal-comma"
        if block is not None and not known:
            self._set_roles()
            with contextlib.suppress(TooWideError):  # raised again when that row is given
                self.features.meet(self._parse(block)[0].values)

    def _kind_of_texts(self, block: Block, column: int) -> Kind:
        """What a column that is not of numbers is, by its values in the first records."""
        roles = np.full(len(self._names), _LEFT_OUT, np.uint8)
        roles[column] = _CATEGORY
        places = np.zeros(len(roles), np.int32)
        _, _, ((codes, words),), *_ = _text.parse_csv(
            block.text, block.ends, self._delimiter, roles, places, 0, 1, self._options.largest, 0
        )
        return kind_of_words(words, np.bincount(codes, minlength=len(words)).tolist())

    def _set_roles(self) -> None:
        """What the parser does with each column of this file."""
        columns = self.columns
        self._texts = columns.categories + columns.read_numbers + columns.times + columns.texts
        roles: dict[str, tuple[int, int]] = {}
        roles |= {name: (_NUMBER, place) for place, name in enumerate(columns.plain_numbers)}
        roles |= {name: (_CATEGORY, place) for place, name in enumerate(self._texts)}
        if self.columns.read_target is not None:
            roles[self.columns.read_target] = (_LABEL, 0)
        pairs = [roles.get(name, (_LEFT_OUT, 0)) for name in self._names]
        self._roles = np.array([role for role, _ in pairs], np.uint8)
        self._places = np.array([place for _, place in pairs], np.int32)

    def _give(self, parsed: _Parsed) -> Chunk:
        return self.features.give(parsed.values)

    def _parse(self, block: Block) -> tuple[_Parsed, list[BadRow]]:
        columns = self.columns
        kind = columns.label if columns.read_target is not None else None
        records, numbers, categories, labels, (codes, words), refused = _text.parse_csv(
            block.text,
            block.ends,
            self._delimiter,
            self._roles,
            self._places,
            len(columns.plain_numbers),
            len(self._texts),
            self._options.largest,
            _LABEL_KINDS["text" if kind == "number" and self._label_commas else kind],
        )
        given = None if kind is None else labels
        not_numbers: dict[int, tuple[str, str]] = {}
        if kind == "text":
            given = np.array(words, dtype=object)[codes] if len(codes) else np.array([], dtype=object)
        elif kind == "number" and self._label_commas:
            table = np.array([comma_number_of(word) for word in words])
            given = table[codes] if len(codes) else np.zeros(0)
            not_numbers = {
                row: (str(columns.target), f"label {words[codes[row]][:60]!r} is not a number such as 1,5")
                for row in np.flatnonzero(np.isnan(given)).tolist()
            }
        bad = [self._refusal(block, *six) for six in refused.reshape(-1, 6).tolist()]
        if len(self._texts) == len(columns.categories) and not not_numbers:
            return _Parsed(Values(numbers, categories, given), records), bad
        held = dict(zip(self._texts, categories, strict=True))
        values, wrong = gather(columns, numbers, held, {}, given, len(records))
        wrong = not_numbers | wrong
        if wrong:
            bad += [BadRow(int(records[row]), repr(name), why) for row, (name, why) in wrong.items()]
            bad.sort(key=lambda row: row.row)
            keep = np.ones(len(records), bool)
            keep[list(wrong)] = False
            values, records = values.part(keep), records[keep]
        return _Parsed(values, records), bad

    def kept(self) -> list[str]:
        """The column to be kept, of the rows given last."""
        block, parsed = self._last
        place = self._names.index(
            find_column(self._opened.name if self._opened else "", self._options.keep or 0, self._names)
        )
        records = (block.record(number) for number in parsed.records.tolist())
        return [
            _text.csv_fields(record, self._delimiter)[place].decode("utf-8", "replace") for record in records
        ]

    def _refusal(
        self, block: Block, record: int, reason: int, column: int, start: int, end: int, doubled: int
    ) -> BadRow:
        field = block.text[start : min(end, start + 300)].decode("utf-8", "backslashreplace")
        if doubled:
            field = field.replace('""', '"')
        message = _REASONS[reason].format(field=repr(field[:60]), count=start, columns=len(self._names))
        return BadRow(record, None if column < 0 else repr(self._names[column]), message)


def count_delimiters(opened: Opened) -> dict[str, int]:
    r"""How many of each of `DELIMITERS` the first record that is not blank has outside quotes; it stays to be read.

    >>> import io
    >>> [count_delimiters(Opened(io.BytesIO(text))) for text in (b'a;"b,c,d";e', b" \t\n\n\ta|b\r1,2")]
    [{',': 0, ';': 2, '\t': 0, '|': 0}, {',': 0, ';': 0, '\t': 1, '|': 1}]
    """
    found, at, begun = bytearray(), 0, False
    opened.peek(3)  # a whole byte order mark
    for head in opened.peeks():
        if not begun:
            at = _end(_BLANK_LINES, head, 0)
            begun = bool(head[at:].strip(b" \t"))
        end = at
        while begun and (end := _end(_FIELD, head, at)) < len(head) and head[end] not in b"\r\n":
            found.append(head[end])
            at = end + 1
        if begun and end < len(head):  # the record ends here, not only what has come of it
            break
    return {mark: found.count(mark.encode()) for mark in DELIMITERS}


def _end(pattern: re.Pattern[bytes], text: bytes, start: int) -> int:
    found = pattern.match(text, start)
    return start if found is None else found.end()


def guess_delimiter(opened: Opened) -> str:
    r"""The delimiter of a table: the one that its first record has most of; a comma if it has as many of these, or none.

    >>> import io
    >>> [guess_delimiter(Opened(io.BytesIO(text))) for text in (b"a;b;c,d", b"a;b,c", b"a")]
    [';', ',', ',']
    """
    counts = count_delimiters(opened)
    most = max(counts.values())
    best = [mark for mark, count in counts.items() if count == most]
    if "," in best:
        return ","
    if len(best) > 1:
        told = " and ".join(f"{most} of {mark!r}" for mark in best)
        raise SourceError(
            f"{opened.name}: cannot tell the delimiter, as the first line has {told}: say delimiter=CHARACTER"
        )
    return best[0]


class TsvReader(CsvReader):
    """The same with tabs."""

    delimiter = "\t"
