"""Which rows are good and which are bad, why and where, depends on the text alone: against a slow, obvious parser.

``KERNELSTREAM_EXAMPLES=5000 python -m pytest -n 0 tests/stream/test_grammar.py`` makes a longer run.
"""

import gzip
import io
import itertools
import json
import os

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kernelstream.stream import read
from oracles.tables import Beyond, parse_csv, parse_jsonl

EXAMPLES = int(os.environ.get("KERNELSTREAM_EXAMPLES", "300"))


class Pieces:
    """A pipe that gives its bytes in pieces of the sizes given, again and again."""

    def __init__(self, data, sizes):
        self._rest, self._sizes = io.BytesIO(data), itertools.cycle(sizes)

    def read(self, size):
        return self._rest.read(min(size, next(self._sizes)))


def recorded(source, messages):
    """The source, with the message of every bad row."""
    bad = source._options.bad
    meet = bad.meet

    def record(message, raw):
        messages.append(message().removeprefix("<stream>, "))
        meet(message, raw)

    bad.meet = record
    return source


def rows_of(chunks):
    rows = []
    for X, y in chunks:
        X = X.toarray() if hasattr(X, "toarray") else X
        for row, label in zip(X, y.tolist(), strict=True):
            rows.append(({int(i): float(row[i]) for i in np.flatnonzero(row)}, label))
    return rows


def outcome(open_file, chunk_size, resume_each=0, **arguments):
    """Rows, and messages of bad rows, of one read; or of one that is resumed after every `resume_each` chunks."""
    messages, rows, position = [], [], None
    try:
        while True:
            source = read(open_file(), chunk_size=chunk_size, on_bad_row="skip", resume=position, **arguments)
            new = list(itertools.islice(recorded(source, messages), resume_each or None))
            rows += rows_of(new)
            if not resume_each or not new:
                return rows, messages
            source.close()
            position = json.loads(json.dumps(source.position))
    except ValueError as error:
        return rows, [*messages, str(error).removeprefix("<stream>, ")]


def ways(text, chunk_size, sizes, **arguments):
    """The outcomes of reading a text in every way that must not matter."""
    yield outcome(lambda: io.BytesIO(text), 8192, **arguments)
    yield outcome(lambda: io.BytesIO(text), chunk_size, **arguments)
    yield outcome(lambda: io.BytesIO(gzip.compress(text)), chunk_size, **arguments)
    yield outcome(lambda: Pieces(text, sizes), chunk_size, **arguments)
    yield outcome(lambda: io.BytesIO(text), chunk_size, resume_each=1, **arguments)
    yield outcome(lambda: Pieces(text, sizes), chunk_size, resume_each=1, **arguments)


WORDS = st.sampled_from(
    [
        "red",
        "blue",
        "São",
        "日本",
        "",
        "NA",
        "?",
        "nan",
        "NaN",
        "-nan",
        " x ",
        "1_0",
        "0x1p3",
        "\0",
        "b" * 5000,
    ]
)
NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers(-5, 5).map(str),
    st.sampled_from(["1e400", "-1e-400", "+4", " 8 ", ".5", "5.", "1e5", "inf", "-Infinity", "١", "\v7\f"]),
)
RAW = st.sampled_from(
    [
        '"a,b"',
        '"a\nb"',
        '"a\r\nb"',
        '"\r"',
        '"q""q"',
        '""""',
        '"7"',
        '"x"y',
        'x"y"',
        "\x80",
        '"',
        "1,2",
        '""',
        "\ufeff",
    ]
)
FIELD = st.one_of(NUMBERS, NUMBERS, WORDS, RAW)
LABEL = st.one_of(
    st.sampled_from(["0", "1", "1", "0", "1.5", "", "yes", "1e300", "9007199254740993"]), WORDS, NUMBERS
)
LINE_END = st.sampled_from(["\n", "\n", "\r\n", "\r"])
LINE = st.one_of(
    st.tuples(FIELD, FIELD, LABEL).map(",".join),
    st.tuples(NUMBERS, WORDS, st.sampled_from(["0", "1"])).map(",".join),
    st.tuples(NUMBERS, WORDS, st.sampled_from(["0", "1"])).map(",".join),
    st.sampled_from(["", " ", "\t ", ",", ",,", "1", "1,2,3,4"]),
    st.sampled_from(["1\t", "\t", "a;", "|1", "1,2\t", "a\t;", '"a;b",1', '5" a,1', "1 ,", "1; 2;"]),
    st.text('ab1,;|.-"\r\n \t\0é\x80', max_size=12).filter(
        lambda text: text.count("\0") < 3
    ),  # more: binary data
)


def joined(lines, ends, last):
    text = "".join(line + end for line, end in zip(lines, itertools.cycle(ends), strict=False))
    return (
        (text if last else text.rstrip("\r\n")).encode("latin-1", "ignore")
        if "\x80" in text
        else text.encode()
    )


def swapped(text, mark):
    """A text of comma-separated fields with another delimiter, and commas where that was."""
    return text.translate({ord(","): mark, ord(mark): ","})


def check_csv(text, chunk_size, sizes, **arguments):
    """Every way of reading gives what the oracle gives; the same, where the oracle does not know the kinds of columns."""
    try:
        expected = parse_csv(text, **arguments)
    except ValueError as error:
        expected = [], [str(error)]
    except Beyond:
        expected = None
    for rows, messages in ways(text, chunk_size, sizes, format="csv", target=-1, **arguments):
        result = rows, [message.partition(": it has ")[0] for message in messages]
        expected = expected or result
        assert result == expected


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(LINE, max_size=25),
    st.lists(LINE_END, min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from(
        [
            "a,b,y",
            "a,b,y",
            '"a","b","y"',
            "",
            "\ufeffa,b,y",
            "a,b",
            "1,2,3",
            "\n \na,b,y",
            "\t \r\ta,b,y",
            '\ufeff"a;,",b,y',
            '\r\n"a\n,;",b,y',
            '5"a,b;"c,y',
        ]
    ),
    st.integers(1, 9),
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.sampled_from(["classification", "regression"]),
    st.sampled_from([64, 64, 2]),
    st.sampled_from([",", ",", ";", "|", "\t"]),
)
@example(["1,x,0"] * 20 + ['",,'] + ["2,y,1"] * 20, ["\r"], True, "a,b,y", 3, [7], "classification", 64, ",")
@example(["\0\0", "\0\0"], ["\r"], False, "a,b,y", 1, [1], "classification", 64, ",")
@example(["1,x,0"] * 30 + ["oops"], ["\r"], True, "a,b,y", 3, [7], "classification", 64, ",")
@example(
    ["1,x,0", "2," + "x" * 200_000 + ",1", "oops"],
    ["\n"],
    True,
    "a,b,y",
    2,
    [4096],
    "classification",
    64,
    ",",
)
@example(["1\t"], ["\n"], False, "", 1, [1], "classification", 64, ",")  # two fields
@example(["1 ", "2"], ["\r"], True, "\t \n\n", 1, [1], "regression", 64, ",")  # one
@example(["1,2;", "3,4;"], ["\r"], True, "", 1, [1], "classification", 64, "|")  # the first line ends with CR
@example(["1,x,0"], ["\n"], True, '\n"a\n;",b,y', 1, [1], "classification", 64, "|")  # or after a quoted LF
@example(
    ["1,x,0"], ["\n"], True, '5" a,b,y', 1, [1], "classification", 64, ";"
)  # a quote that quotes nothing
@example(["1,x,0"], ["\n"], True, '\ufeff"a|||",b,y', 1, [1], "classification", 64, ";")  # and one that does
@example(["1,x,0"], ["\n"], True, "a;b\ty", 1, [1], "classification", 64, ",")  # which one?
def test_csv_is_read_as_the_grammar_says(
    lines, ends, last, header, chunk_size, sizes, task, max_categories, mark
):
    text = joined([swapped(line, mark) for line in ([header] if header else []) + lines], ends, last)
    check_csv(text, chunk_size, sizes, task=task, max_categories=max_categories)


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(LINE, max_size=25),
    st.lists(LINE_END, min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from(["a,b,y", '"a","b","y"', "", "1,2,3"]),
    st.integers(1, 9),
    st.sampled_from(",;|\t :.-+1e#'\v\x7f"),
)
@example(["1,2,3"] * 3, ["\n"], True, "a,b,y", 2, ".")  # not 1.2
@example([",2,3"] * 3, ["\n"], True, "a,b,y", 2, "-")  # nor -2
@example(["2,2,3"] * 3, ["\n"], True, "a,b,y", 2, "1")  # nor 21213
def test_csv_with_a_delimiter_that_is_said(lines, ends, last, header, chunk_size, mark):
    text = joined([swapped(line, mark) for line in ([header] if header else []) + lines], ends, last)
    check_csv(text, chunk_size, [7], delimiter=mark)


JSON_TEXT = st.one_of(
    st.sampled_from(
        [
            '"red"',
            '"\\u00e9"',
            '"\\ud83d\\ude00"',
            '"\\ud800"',
            '"\\udc00x"',
            '"a\\nb"',
            '"\\x"',
            '"\\u12"',
            '"\t"',
            '"é"',
        ]
    ),
    st.text(max_size=8).map(json.dumps),
    st.text(max_size=8).map(
        lambda text: json.dumps(text, ensure_ascii=False).encode("utf-8", "replace").decode()
    ),
)
JSON_NUMBER = st.one_of(
    st.floats().map(json.dumps),
    st.integers().map(str),
    st.sampled_from(
        ["1e400", "-0", "01", "1.", ".5", "+1", "1e5", "1E-400", "NaN", "-Infinity", "9" * 400, "-"]
    ),
)
JSON_VALUE = st.one_of(
    JSON_NUMBER,
    JSON_NUMBER,
    JSON_TEXT,
    st.sampled_from(
        ["true", "false", "null", "[]", "{}", "[1, [2]]", '{"a": {"b": []}}', "[1,]", "[}", "tru", ""]
    ),
)
JSON_NAME = st.sampled_from(["a", "b", "c", "y", "\\u0061", "é", "label", "", 'q\\"'])
JSON_LABEL = st.sampled_from(
    ["0", "1", "1", "0", "true", "1.5", "null", '"yes"', "9" * 400, "[1]", "1e20", "NaN"]
)
JSON_LINE = st.one_of(
    st.tuples(
        st.lists(st.tuples(JSON_NAME, JSON_VALUE), max_size=3),
        JSON_LABEL,
        st.sampled_from([", ", ",", " ,\t"]),
    ).map(lambda t: "{" + t[2].join([*(f'"{k}": {v}' for k, v in t[0]), f'"y": {t[1]}']) + "}"),
    st.tuples(JSON_NUMBER, st.sampled_from(["0", "1"])).map(lambda t: f'{{"a": {t[0]}, "y": {t[1]}}}'),
    st.sampled_from(
        [
            "",
            "  \t",
            "\v",
            "{}",
            "[1]",
            "oops",
            '{"a": 1',
            '{"y": 1} x',
            '{"y": 1}{"y": 1}',
            ' {"y": 1} \r',
            '{"y" 1}',
            "{'y': 1}",
        ]
    ),
    st.text('{}[]":,1ay\\u0\t \x80é', max_size=12),
)


def alike(message):
    """A message without what only the parser says: where JSON is wrong, how a label is."""
    place, _, reason = message.partition(": ")
    for words in ("not JSON", "expected an object in braces", "which is the label?", "label"):
        if reason.startswith(words):
            return f"{place}: {words}"
    return f"{place}: not finite" if reason.endswith("is not finite") else message


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    st.lists(JSON_LINE, max_size=25),
    st.lists(st.sampled_from(["\n", "\n", "\r\n"]), min_size=1, max_size=3),
    st.booleans(),
    st.integers(1, 9),
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.sampled_from(["classification", "regression"]),
)
def test_json_lines_are_read_as_the_grammar_says(lines, ends, last, chunk_size, sizes, task):
    text = joined(lines, ends, last)
    expected, bad = parse_jsonl(text, task)
    bad = [alike(message) for message in bad]
    for rows, messages in ways(text, chunk_size, sizes, format="jsonl", task=task):
        assert [alike(message) for message in messages] == bad
        assert rows == expected


CELLS = st.tuples(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["red", "blue", 'a "b", c', "São\nPaulo", "x\ry", "N", "0x"]),
    st.integers(-3, 3),
)


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(st.lists(CELLS, min_size=1, max_size=20), st.integers(1, 9), st.integers(0, 20))
def test_the_same_table_means_the_same_in_csv_and_json_lines(table, chunk_size, bad_at):
    quoted = [f'{a!r},"' + b.replace('"', '""') + f'",{y}\n' for a, b, y in table]
    objects = [json.dumps({"a": a, "b": b, "y": y}) + "\n" for a, b, y in table]
    quoted.insert(bad_at, "1,2\n")
    objects.insert(bad_at, "oops\n")
    results = []
    for text, arguments in (
        ("a,b,y\n" + "".join(quoted), {"format": "csv", "categorical": ["b"]}),
        ("".join(objects), {"format": "jsonl", "columns": {"b": "category"}}),
    ):
        source = read(io.BytesIO(text.encode()), chunk_size=chunk_size, on_bad_row="skip", **arguments)
        rows = rows_of(source)
        names = source.encoding["features"]
        results.append([({tuple(names[i]): v for i, v in row.items()}, label) for row, label in rows])
        assert source.bad_rows == 1
    assert results[0] == results[1]
