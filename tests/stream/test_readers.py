"""`kernelstream.stream.read`: every format, packed and plain; bad rows; resuming; widths; names."""

import asyncio
import gzip
import io
import itertools
import json
import lzma
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelstream import stream
from kernelstream.stream import BadRowError, MissingPackageError, SourceError, lines, read


def zstd(data):
    return pa.Codec("zstd").compress(data, asbytes=True)


PACKINGS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd}


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


def collect(chunks):
    """All rows as one dense matrix, as wide as the last chunk, and all labels."""
    chunks = list(chunks)
    widths = [X.shape[1] for X, _ in chunks]
    assert widths == sorted(widths)
    X = np.zeros((sum(X.shape[0] for X, _ in chunks), widths[-1] if widths else 0))
    at = 0
    for part, _ in chunks:
        X[at : at + part.shape[0], : part.shape[1]] = dense(part)
        at += part.shape[0]
    y = None if chunks and chunks[0].y is None else np.concatenate([y for _, y in chunks] or [[]])
    return X, y


# ---------------------------------------------------------------- one table in every format

ROWS = 57
rng = np.random.default_rng(0)
AGE = [None if i % 11 == 3 else round(float(v), 3) for i, v in enumerate(rng.normal(40, 10, ROWS))]
TOWN = [
    None if i % 13 == 5 else ["Rome", "Oslo", "São Paulo", 'a "b", c'][k]
    for i, k in enumerate(rng.integers(4, size=ROWS))
]
SIZE = rng.integers(-5, 5, ROWS).tolist()
CLASS = rng.choice(["yes", "no"], ROWS).tolist()


def quoted(value):
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if set(text) & set('",\n') else text


def write_csv(path, delimiter=",", header=True):
    rows = zip(AGE, TOWN, SIZE, CLASS, strict=True)
    body = "".join(delimiter.join(map(quoted, row)) + "\n" for row in rows)
    path.write_text(
        (delimiter.join(["age", "town", "size", "class"]) + "\n") * header + body, encoding="utf-8"
    )


def write_jsonl(path):
    rows = [
        dict(zip(["age", "town", "size", "class"], row, strict=True))
        for row in zip(AGE, TOWN, SIZE, CLASS, strict=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def table():
    return pa.table({"age": AGE, "town": TOWN, "size": SIZE, "class": CLASS})


def write_parquet(path):
    pa.parquet.write_table(table(), path, row_group_size=10)


def write_feather(path):
    pa.feather.write_feather(table(), str(path), chunksize=9)


def write_arrow_stream(path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table().schema) as writer:
        writer.write_table(table(), max_chunksize=8)


WRITERS = {
    "rows.csv": write_csv,
    "rows.tsv": lambda path: write_csv(path, "\t"),
    "rows.jsonl": write_jsonl,
    "rows.parquet": write_parquet,
    "rows.feather": write_feather,
    "rows.arrows": write_arrow_stream,
}


def expected_table():
    """Age, size, then features in the order in which they are first needed."""
    features, rows = {}, []
    for age, town, size in zip(AGE, TOWN, SIZE, strict=True):
        row = {0: age or 0.0, 1: float(size)}
        if age is None:
            row[features.setdefault("age missing", 2 + len(features))] = 1.0
        row[features.setdefault(town, 2 + len(features))] = 1.0
        rows.append(row)
    X = np.zeros((ROWS, 2 + len(features)))
    for i, row in enumerate(rows):
        for column, value in row.items():
            X[i, column] = value
    return X


@pytest.mark.parametrize("chunk_size", [1, 10, 8192])
@pytest.mark.parametrize("name", [name for name in WRITERS if "json" not in name])
def test_a_table_becomes_the_same_features_in_every_format(tmp_path, name, chunk_size):
    WRITERS[name](tmp_path / name)
    X, y = collect(read(tmp_path / name, chunk_size=chunk_size))
    np.testing.assert_array_equal(X, expected_table())
    assert y.tolist() == CLASS


def test_json_lines_give_columns_to_names_as_they_come(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(
        '{"y": 1, "b": 2, "c": "red"}\n\n{"a": 3, "c": "blue", "y": 0, "b": null}\n{"y": 1, "c": "red", "d": true}\n'
    )
    X, y = collect(read(path, chunk_size=1))
    np.testing.assert_array_equal(X, [[2, 1, 0, 0, 0], [0, 0, 3, 1, 0], [0, 1, 0, 0, 1]])
    assert y.tolist() == [1, 0, 1]
    assert [X.shape[1] for X, _ in read(path, chunk_size=1)] == [2, 4, 5]


def resumed(arguments, chunk_size, after, **more):
    """All rows of a read that is stopped and taken up again after every `after` chunks, through JSON."""
    position, chunks = None, []
    while True:
        source = read(*arguments, chunk_size=chunk_size, resume=position, **more)
        with source:
            new = list(itertools.islice(source, after))
            position = json.loads(json.dumps(source.position))
        chunks += new
        if not new:
            return chunks, source


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("packing", PACKINGS)
def test_resuming_after_every_chunk_gives_the_same_rows(tmp_path, name, packing):
    if packing and ("parquet" in name or "feather" in name):
        pytest.skip("these pack their own columns")
    WRITERS[name](tmp_path / name)
    path = tmp_path / (name + packing)
    path.write_bytes(PACKINGS[packing]((tmp_path / name).read_bytes()))
    whole = collect(read(path, path))
    assert len(whole[1]) == 2 * ROWS
    for chunk_size, after in [(7, 1), (10, 2), (100, 1)]:
        chunks, source = resumed([path, path], chunk_size, after)
        for a, b in zip(collect(chunks), whole, strict=True):
            np.testing.assert_array_equal(a, b)
        assert source.rows == 2 * ROWS


@settings(max_examples=50)
@given(data=st.data())
def test_resume_and_chunks_change_nothing_in_libsvm(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("libsvm") / "rows.libsvm"
    line = st.sampled_from(["1 1:1", "-1 3:0.5 9:2", "", "# nothing", "1 x:1", "2", "oops", "-1 2:1 # end"])
    text = "\n".join(data.draw(st.lists(line, max_size=30))) + data.draw(st.sampled_from(["", "\n"]))
    path.write_text(text)
    expected = [i for i in text.splitlines() if i and not i.startswith("#") and i not in ("1 x:1", "oops")]
    bad = sum(i in ("1 x:1", "oops") for i in text.splitlines())
    aside = path.with_name("aside")
    chunks, source = resumed(
        [path], data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3)), on_bad_row=f"quarantine={aside}"
    )
    X, y = collect(chunks)
    assert y.tolist() == [int(line.split()[0]) for line in expected]
    assert (source.rows, source.bad_rows) == (len(expected), bad)
    kept = aside.read_text().splitlines() if aside.exists() else []
    assert kept == [i for i in text.splitlines() if i in ("1 x:1", "oops")]
    np.testing.assert_array_equal(X, collect(read(path, on_bad_row="skip"))[0])


CELL = st.sampled_from(
    [
        "1",
        "2.5",
        "-3e2",
        "+4",
        "",
        "NA",
        "x",
        "inf",
        '"7"',
        '"a\nb"',
        "1_0",
        "1,2",
        "-nan",
        "NAN",
        " 8 ",
        "1e400",
    ]
)


@settings(max_examples=200)
@given(
    rows=st.lists(st.tuples(CELL, CELL, st.sampled_from(["0", "1", "", "1.5"])), min_size=1, max_size=25),
    chunk=st.integers(1, 9),
)
def test_chunks_change_nothing_in_csv(rows, chunk):
    text = "a,b,y\n" + "".join(",".join(row) + "\n" for row in rows)
    whole = read(io.BytesIO(text.encode()), format="csv", on_bad_row="skip")
    X, y = collect(whole)
    parts = read(io.BytesIO(text.encode()), format="csv", on_bad_row="skip", chunk_size=chunk)
    for a, b in zip(collect(parts), (X, y), strict=True):
        np.testing.assert_array_equal(a, b)
    assert (parts.rows, parts.bad_rows) == (whole.rows, whole.bad_rows)
    assert parts.rows + parts.bad_rows == len(rows)
    assert np.isfinite(X).all()


@pytest.mark.parametrize(
    "cell", ["-nan", "NAN", "nan(1)", "inf", "1e400", " 8 ", "+4", "1e-400", "0x10", "1_0", '""', "١"]
)
def test_a_field_means_the_same_beside_a_bad_row_and_alone(cell):
    text = "a,y\n" + "1,0\n" * 30 + f"{cell},1\noops,1\n"
    alone, beside = (csv(text, chunk_size=size, on_bad_row="skip") for size in (1, 100))
    np.testing.assert_array_equal(collect(alone)[0], collect(beside)[0])
    assert alone.bad_rows == beside.bad_rows


@pytest.mark.parametrize(
    "line",
    [
        '{"a": 1, "a": 2, "y": 1}',
        '{"a": 1, "y": 1}{"a": 2, "y": 1}\n   ',
        ' {"a": 3, "y": 1}',
        '{"a": 1, "y": 1} x',
        '{"a": "\\ud800", "y": 1}',
        '{"a": -0.0, "y": 1}',
        '{"a": 1e400, "y": 1}',
        '{"y": 1, "y": 0}',
        "{}",
        '{"a": {"b": 1}, "y": 1}',
    ],
)
def test_a_line_of_json_means_the_same_beside_a_bad_row_and_alone(line):
    rows = '{"y": 1, "a": 1}\n' * 3
    made = []
    for extra in ("", "oops\n"):
        source = read(
            io.BytesIO((rows + line + "\n" + extra).encode()),
            format="jsonl",
            chunk_size=3 + 3,
            on_bad_row="skip",
        )
        first = read(
            io.BytesIO((rows + rows + line + "\n" + extra).encode()),
            format="jsonl",
            chunk_size=6,
            on_bad_row="skip",
        )
        made.append(
            (
                collect(source)[0].tolist(),
                source.bad_rows - bool(extra),
                collect(first)[0][3:].tolist(),
                first.bad_rows - bool(extra),
            )
        )
    assert made[0] == made[1]
    assert made[0][:2] == made[0][2:]


JSON_VALUE = st.sampled_from(
    [
        "1",
        "-2.5",
        "0",
        "true",
        "null",
        '"red"',
        '"2020-01-01"',
        '"é\\n"',
        "1e999",
        "[1]",
        "12345678901234567890",
    ]
)


@settings(max_examples=200)
@given(
    rows=st.lists(
        st.tuples(st.dictionaries(st.sampled_from("abc"), JSON_VALUE), st.sampled_from(["0", "1", "null"])),
        min_size=2,
        max_size=20,
    ),
    chunk=st.integers(1, 9),
)
def test_chunks_change_nothing_in_json_lines(rows, chunk):
    text = '{"y": 1}\n' + "".join(
        "{" + ", ".join([*(f'"{k}": {v}' for k, v in row.items()), f'"y": {y}']) + "}\n" for row, y in rows
    )

    def given(**arguments):
        source = read(io.BytesIO(text.encode()), format="jsonl", on_bad_row="skip", **arguments)
        return *collect(source), source.bad_rows

    for a, b in zip(given(chunk_size=chunk), given(), strict=True):
        np.testing.assert_array_equal(a, b)


# ---------------------------------------------------------------- columns


def csv(text, **arguments):
    return read(io.BytesIO(text.encode()), format="csv", **arguments)


@pytest.mark.parametrize("target", ["b", 1, -2, "1"])
def test_the_target_is_a_name_or_a_number(target):
    X, y = collect(csv("a,b,c\n1,0,2\n3,1,4\n", target=target))
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    assert y.tolist() == [0, 1]
    assert y.dtype == np.int64


def test_without_a_header_columns_have_numbers():
    X, _ = collect(csv("1,0,2\n3,1,4\n", target=1))
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    X, _ = collect(csv("red,0\nblue,1\n", target=1, header=False))
    assert X.shape == (2, 2)


def test_labels_of_each_kind():
    assert collect(csv("x,y\n1,a\n2,b\n"))[1].tolist() == ["a", "b"]
    assert collect(csv("x,y\n1,2.5\n2,3\n", task="regression"))[1].tolist() == [2.5, 3.0]
    assert collect(csv("x,y\n1,2.0\n2,3\n"))[1].tolist() == [2, 3]
    assert collect(csv("x,z\n1,2\n2,3\n", target=False))[1] is None
    assert collect(read(io.StringIO('{"x": 1, "y": "a"}\n'), format="jsonl"))[1].tolist() == ["a"]


def test_columns_dropped_and_columns_forced_to_be_categories():
    X, _ = collect(csv("id,zip,y\n7,10,0\n8,20,1\n9,10,1\n", drop=["id"], categorical=["zip"]))
    np.testing.assert_array_equal(X, [[1, 0], [0, 1], [1, 0]])


def test_later_categories_share_a_feature_and_hashing_has_a_fixed_width():
    text = "c,y\n" + "".join(f"t{i},1\n" for i in (0, 1, 2, 3, 0, 2))
    X, _ = collect(csv(text, max_categories=2, chunk_size=1))
    np.testing.assert_array_equal(X, [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 1]])
    X, _ = collect(csv(text, hashed=16, chunk_size=2))
    assert X.shape == (6, 16)
    assert (X.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(X[0], X[4])
    rows = "".join(json.dumps({f"name{i}": 2.0, "t": "x", "y": 1}) + "\n" for i in range(5))
    X, _ = collect(read(io.StringIO(rows), format="jsonl", hashed=16))
    assert X.shape == (5, 16)
    assert (X.sum(axis=1) == 3).all()


def test_a_new_category_after_the_first_rows_widens_the_rows():
    text = "c,y\n" + "a,1\n" * 1500 + "b,0\n"
    assert [X.shape[1] for X, _ in csv(text, chunk_size=1000)] == [1, 2]


def test_the_encoding_of_a_model_is_kept_for_other_rows():
    learnt = csv("n,c,y\n1,red,0\n,blue,1\n")
    collect(learnt)
    encoding = json.loads(json.dumps(learnt.encoding))
    X, y = collect(csv("c,n\nblue,3\ngreen,\n", target=False, encoding=encoding))
    np.testing.assert_array_equal(X, [[3, 0, 0, 1], [0, 0, 1, 0]])
    assert y is None
    X, _ = collect(csv("y,n,c\n1,5,red\n", target=False, encoding=encoding))
    np.testing.assert_array_equal(X, [[5, 1, 0, 0]])
    with pytest.raises(ValueError, match="has columns with names, and this is libsvm"):
        list(read(io.StringIO("1 1:1\n"), encoding=encoding))


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("a,b\n1,2\n", {}, "no column called target, label, class or y to be the label.*a, b"),
        ("y,label\n1,2\n", {}, "several columns that may be the label"),
        ("a,y\n1,2\n", {"target": "z"}, "has no column 'z'"),
        ("colour,y\n1,2\n", {"drop": ["color"]}, "did you mean 'colour'"),
        ("a,a,y\n1,2,3\n", {}, "two columns called 'a'"),
        ("y\n1\n", {}, "no column left for the features"),
        (
            "a,b,y\n1,x,3\n",
            {"categorical": []},
            "column 'b' is not of numbers, and not in categorical or drop",
        ),
    ],
)
def test_columns_that_are_not_clear_are_refused(text, arguments, message):
    with pytest.raises(ValueError, match=message):
        list(csv(text, **arguments))


def test_files_read_together_have_the_same_columns(tmp_path):
    for name, text in {"a": "x,y\n1,0\n", "b": "y,x\n1,2\n", "c": "x,z,y\n1,2,3\n", "d": "y\n3\n"}.items():
        (tmp_path / f"{name}.csv").write_text(text)
    X, y = collect(read(tmp_path / "a.csv", tmp_path / "b.csv"))
    assert (X.tolist(), y.tolist()) == ([[1.0], [2.0]], [0, 1])
    with pytest.raises(ValueError, match=r"c\.csv has 'z', other than the columns before it: x, y"):
        list(read(tmp_path / "a.csv", tmp_path / "c.csv"))
    with pytest.raises(ValueError, match=r"d\.csv lacks 'x'"):
        list(read(tmp_path / "a.csv", tmp_path / "d.csv"))
    (tmp_path / "e.libsvm").write_text("1 1:1\n")
    with pytest.raises(ValueError, match=r"e\.libsvm is libsvm, but what came before it is csv"):
        list(read(tmp_path / "a.csv", tmp_path / "e.libsvm"))


# ---------------------------------------------------------------- bad rows


@pytest.mark.parametrize(
    ("name", "good", "bad", "message"),
    [
        ("x.libsvm", "1 1:1\n", "1 1:oops\n", "line 4, column 3: value in '1:oops' is not a number"),
        ("x.libsvm", "1 1:1\n", "0.5 1:1\n", "line 4, column 1: label '0.5' is not a whole number"),
        ("x.csv", "a,y\n1,0\n", "x,1\n", "line 14, column 'a': 'x' is not a number"),
        ("x.csv", "a,y\n1,0\n", "1,2,3\n", "line 14: 3 fields, but there are 2 columns"),
        ("x.csv", "a,y\n1,0\n", "1,\n", "line 14, column 'y': the label is missing"),
        ("x.csv", "a,y\n1,0\n", "inf,1\n", "line 14, column 'a': 'inf' is not finite"),
        ("x.csv", "a,y\n1,0\n", "1,1.5\n", "line 14, column 'y': label '1.5' is not a whole number"),
        ("x.csv", "a,y\n1,0\n", "1_0,1\n", "line 14, column 'a': '1_0' is not a number"),
        ("x.jsonl", '{"y": 1, "a": 2}\n', "{oops\n", "line 4: not JSON: "),
        ("x.jsonl", '{"y": 1, "a": 2}\n', '{"a": [1], "y": 1}\n', "line 4, column 'a': a nested value"),
        ("x.jsonl", '{"y": 1, "a": 2}\n', '{"a": NaN, "y": 1}\n', "line 4, column 'a': NaN is not finite"),
        ("x.jsonl", '{"y": 1, "a": 2}\n', '{"a": 1}\n', "line 4, column 'y': the label is missing"),
        ("x.jsonl", '{"y": 1, "a": 2}\n', '{"a": 1, "y": "b"}\n', "line 4, column 'y': label 'b' is a text"),
        ("x.jsonl", '{"y": 1, "a": 2}\n', "[1]\n", "line 4: expected an object in braces"),
        (
            "x.jsonl",
            '{"y": 1, "a": 2}\n',
            '{"a": 1' + "0" * 400 + ', "y": 1}\n',
            "line 4, column 'a': 10*... is not finite|is not finite",
        ),
    ],
)
def test_bad_rows_stop_with_file_line_column_and_reason(tmp_path, name, good, bad, message):
    head, row = ("a,y\n", "1,0\n") if name.endswith("csv") else ("", good)
    text = head + row * (12 if head else 3) + bad + row
    path = tmp_path / name
    path.write_text(text)
    source = read(path)
    assert next(source).X.shape[0] == (12 if head else 3)  # the rows before it are given first
    with pytest.raises(BadRowError, match=rf"{name}, {message}"):
        next(source)
    _, source = resumed([path], 2, 1, on_bad_row=f"quarantine={tmp_path / 'aside'}")
    assert (source.rows, source.bad_rows) == (13 if head else 4, 1)
    assert (tmp_path / "aside").read_text() == bad
    assert name in source.first_bad_row
    # A position before the bad row may be taken up with another policy.
    source = read(path, chunk_size=1)
    next(source)
    assert len(collect(read(path, on_bad_row="skip", resume=source.position))[1]) == (12 if head else 3)


def test_bad_rows_of_tables_and_arrays(tmp_path):
    path = tmp_path / "x.parquet"
    pa.parquet.write_table(pa.table({"a": [1.0, float("inf"), 3.0, None], "y": [0, 1, None, 1]}), path)
    with pytest.raises(BadRowError, match=r"x\.parquet, row 2, column 'a': inf is not finite"):
        list(read(path))
    source = read(path, on_bad_row=f"quarantine={tmp_path / 'aside'}")
    X, _ = collect(source)
    np.testing.assert_array_equal(X, [[1, 0], [0, 1]])
    assert [json.loads(line) for line in open(tmp_path / "aside")] == [
        {"a": float("inf"), "y": 1},
        {"a": 3.0, "y": None},
    ]
    np.save(tmp_path / "x.npy", np.array([[1, 2, 0], [np.inf, 1, 1], [1, 1, 0.5]]))
    source = read(tmp_path / "x.npy", target=-1, on_bad_row="skip")
    assert (collect(source)[0].tolist(), source.bad_rows) == ([[1, 2]], 2)


def test_what_was_put_aside_before_is_kept_and_a_missing_part_is_noticed(tmp_path):
    path, aside = tmp_path / "x.libsvm", tmp_path / "aside"
    aside.write_text("from another run\n")
    path.write_text("1 1:1\nbad\n1 1:1\nworse\n1 1:2\n")
    source = read(path, chunk_size=2, on_bad_row=f"quarantine={aside}")
    next(source)
    position = source.position
    list(source)
    source.close()
    assert aside.read_text() == "from another run\nbad\nworse\n"
    list(read(path, on_bad_row=f"quarantine={aside}", resume=position))
    assert aside.read_text() == "from another run\nbad\nworse\n"
    aside.write_text("")
    with pytest.raises(ValueError, match="has 0 bytes, but 21 were there"):
        read(path, on_bad_row=f"quarantine={aside}", resume=position)


# ---------------------------------------------------------------- NumPy


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(tmp_path, order):
    matrix = np.asarray(rng.normal(size=(30, 4)), order=order)
    np.save(tmp_path / "x.npy", matrix)
    chunks, _ = resumed([tmp_path / "x.npy"], 7, 1, target=2, task="regression")
    X, y = collect(chunks)
    np.testing.assert_array_equal(X, matrix[:, [0, 1, 3]])
    np.testing.assert_array_equal(y, matrix[:, 2])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("labels", [np.arange(30) % 3, np.array(["a", "b", "c"])[np.arange(30) % 3]])
def test_npz(tmp_path, save, labels):
    matrix = rng.normal(size=(30, 4)).astype(np.float32)
    save(tmp_path / "x.npz", X=matrix, y=labels)
    chunks, source = resumed([tmp_path / "x.npz"], 7, 2, dtype=np.float32)
    X, y = collect(chunks)
    np.testing.assert_array_equal(X, matrix)
    assert y.tolist() == labels.tolist()
    assert chunks[0].X.dtype == np.float32
    assert source.fraction == 1.0


def test_arrays_that_cannot_be_read(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    np.save(tmp_path / "b.npy", np.zeros(3))
    np.savez(tmp_path / "c.npz", Z=np.zeros(3))
    np.savez(tmp_path / "d.npz", X=np.zeros((3, 2)), y=np.zeros(4))
    (tmp_path / "e.npz").write_bytes(b"PK\x03\x04 nothing")
    for name, message in {
        "a.npy": "damaged or not what its name says",
        "b.npy": "expected a matrix",
        "c.npz": "must hold X and y",
        "d.npz": r"y has shape \(4,\)",
        "e.npz": "damaged or not what",
    }.items():
        with pytest.raises(ValueError, match=message):
            list(read(tmp_path / name, target=0))


# ---------------------------------------------------------------- sources


def test_the_format_is_told_by_content(tmp_path):
    for name in WRITERS:
        WRITERS[name](tmp_path / name)
        with open(tmp_path / name, "rb") as file:
            plain = io.BytesIO(file.read())
        assert len(collect(read(plain))[1]) == ROWS
    assert len(collect(read(io.BytesIO(zstd(b"\xef\xbb\xbf1 1:1\r\n-1 2:1"))))[1]) == 2
    with pytest.raises(ValueError, match="cannot tell the format of <stream>: say one of libsvm"):
        list(read(io.StringIO("what is this\n")))


@pytest.mark.parametrize("packing", [".gz", ".xz", ".zst"])
def test_a_file_cut_short_gives_its_rows_and_then_an_error(tmp_path, packing):
    text = "".join(f"1 1:{i} 2:{rng.random()}\n" for i in range(30_000)).encode()
    data = PACKINGS[packing](text)
    path = tmp_path / f"x.libsvm{packing}"
    path.write_bytes(data[: len(data) * 3 // 4])
    rows = []
    with pytest.raises(ValueError, match=r"x\.libsvm.* is damaged or cut short"):
        rows.extend(X[:, [0]].toarray().ravel() for X, _ in read(path))
    rows = np.concatenate(rows)
    np.testing.assert_array_equal(rows, np.arange(len(rows)))
    if packing == ".zst":
        return  # has no checksum unless it is asked for
    path.write_bytes(data[:1000] + b"garbage" + data[1007:])
    with pytest.raises(ValueError, match=r"x\.libsvm"):
        list(read(path))


def test_standard_input_is_read_and_resumed(tmp_path, monkeypatch):
    write_csv(tmp_path / "rows.csv")
    position, chunks = None, []
    for _ in range(2):
        with subprocess.Popen(["cat", tmp_path / "rows.csv"], stdout=subprocess.PIPE) as pipe:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe.stdout))
            source = read("-", chunk_size=20, resume=position)
            chunks.append(next(source))
            position = source.position
    X, y = collect(chunks)
    np.testing.assert_array_equal(X, expected_table()[:40])
    assert y.tolist() == CLASS[:40]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x,y\n")))
    with pytest.raises(ValueError, match="standard input ends before the place to resume from"):
        list(read("-", resume=position))


def test_rows_come_as_soon_as_they_are_written():
    inlet, outlet = os.pipe()
    with open(inlet, "rb") as file:
        source = read(file, format="libsvm", chunk_size=2)
        for i in range(1, 4):
            os.write(outlet, f"1 1:{i}\n-1 1:{i}\n1 2".encode())
            X, y = next(source)
            assert X.toarray()[0, 0] == i
            assert y.tolist() == [1, -1]
            os.write(outlet, b":5\n1 9:9\n")
            assert next(source).X.shape == (2, 9)
        os.close(outlet)
        assert list(source) == []


@pytest.mark.parametrize("packing", ["", ".gz", ".xz", ".zst"])
def test_a_line_without_end_is_an_error_in_bounded_memory(tmp_path, packing, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_RECORD", 3 << 20)
    path = tmp_path / f"x.libsvm{packing}"
    path.write_bytes(PACKINGS[packing](b"1 1:1\n" + b"1" * (40 << 20)))  # a bomb, when packed
    source = read(path)
    assert next(source).X.shape == (1, 1)
    with pytest.raises(ValueError, match=r"line 2: longer than 3 MB without an end"):
        next(source)
    with pytest.raises(ValueError, match=r"line 2: .*is a quote not closed"):
        list(read(io.BytesIO(b'a,y\n"' + b"1,\n" * (4 << 20)), format="csv"))


def test_xz_that_asks_for_too_much_memory_is_refused(tmp_path):
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    (tmp_path / "x.libsvm.xz").write_bytes(lzma.compress(b"1 1:1\n", filters=filters))
    with pytest.raises(ValueError, match=r"damaged or cut short: .*[Mm]emory"):
        list(read(tmp_path / "x.libsvm.xz"))


def test_archives_one_after_another():
    for pack in (gzip.compress, lzma.compress, zstd):
        X, _ = collect(read(io.BytesIO(pack(b"1 1:1\n1 ") + pack(b"1:2\n"))))
        assert X.tolist() == [[1], [2]]


# ---------------------------------------------------------------- names, limits, positions


def test_data_sets_and_streams_by_name():
    source = read("digits", seed=3, chunk_size=500)
    X, y = collect(source)
    expected = stream.shuffled("digits", 3)
    np.testing.assert_array_equal(X, expected[0])
    np.testing.assert_array_equal(y, expected[1])
    assert (source.task, source.total_rows, source.fraction) == ("classification", 1797, 1.0)
    half = read("digits", rows=1000, chunk_size=400)
    next(half)
    again = read("digits", rows=1000, chunk_size=400, resume=half.position)
    assert (half.total_rows, again.total_rows, half.fraction) == (1000, 1000, 0.4)
    assert len(collect(again)[1]) == 600
    assert again.fraction == 1.0
    assert read("friedman").task == "regression"
    chunks, _ = resumed(["moving_classes"], 30, 1, rows=200, seed=5)
    X, y = collect(chunks)
    ((A, b),) = stream.moving_classes(200, seed=5)
    np.testing.assert_array_equal(X, A)
    np.testing.assert_array_equal(y, b)


def test_a_file_wins_over_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rings").write_text("1 1:1\n")
    assert len(collect(read("rings"))[1]) == 1


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.jsonl"])
def test_rows_stops_a_source_which_can_then_go_on(tmp_path, name):
    WRITERS[name](tmp_path / name)
    source = read(tmp_path / name, rows=25, chunk_size=10)
    first = list(source)
    assert [len(y) for _, y in first] == [10, 10, 5]
    rest = list(read(tmp_path / name, chunk_size=10, resume=source.position))
    assert np.concatenate([y for _, y in first + rest]).tolist() == CLASS


def test_what_is_not_there_is_told_at_once(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file 'ring', and no data set .*did you mean 'rings'"):
        read("ring")
    with pytest.raises(FileNotFoundError, match=r"there is no file 'rows\.csv'"):
        read("rows.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(ValueError, match="read needs a source"):
        read()
    for arguments, message in [
        ({"chunk_size": 0}, "chunk_size must be at least 1"),
        ({"rows": -1}, "rows must not be negative"),
        ({"task": "ranking"}, "task must be"),
        ({"dtype": int}, "dtype must be float64 or float32"),
        ({"format": "cvs"}, "unknown format 'cvs'; did you mean 'csv'"),
        ({"on_bad_row": "quarantine"}, "on_bad_row must be"),
        ({"n_features": 0}, "n_features must be at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            read(io.StringIO("1 1:1\n"), **arguments)


def test_positions_of_something_else_are_refused(tmp_path):
    path, other = tmp_path / "x.libsvm", tmp_path / "z.libsvm"
    path.write_text("1 1:1\n1 1:2\n")
    other.write_text("1 1:1\n")
    source = read(path, chunk_size=1)
    next(source)
    position = source.position
    for arguments, message in [
        (([other], {}), "position to resume from is of .*x.libsvm"),
        (([path], {"task": "regression"}), "made with task='classification', this is task='regression'"),
        (([path], {"resume": {"rows": 3}}), "resume must be the position of a source"),
        (([path], {"resume": position | {"version": 9}}), "of version 9"),
    ]:
        with pytest.raises(ValueError, match=message):
            read(*arguments[0], **{"resume": position} | arguments[1])
    path.write_text("2 1:1\n1 1:2\n")
    with pytest.raises(ValueError, match="is not the file that was read before"):
        list(read(path, resume=position))


def test_a_position_before_the_first_chunk_is_a_position_too(tmp_path):
    (tmp_path / "a.libsvm").write_text("1 1:1\n1 1:2\n")
    (tmp_path / "b.libsvm").write_text("oops\n1 1:3\n")
    paths = [tmp_path / "a.libsvm", tmp_path / "b.libsvm"]
    assert len(collect(read(paths[0], resume=read(paths[0]).position))[1]) == 2
    source = read(*paths, chunk_size=1)
    next(source)
    again = read(*paths, resume=source.position)
    assert again.position == source.position
    rest = read(*paths, resume=again.position)
    assert next(rest).X.toarray().tolist() == [[2]]
    with pytest.raises(BadRowError):
        next(rest)
    # The error came from a file of which nothing was given: its position is its beginning.
    assert collect(read(*paths, on_bad_row="skip", resume=rest.position))[0].tolist() == [[3]]


def test_a_file_that_has_grown_goes_on(tmp_path):
    path = tmp_path / "x.libsvm"
    path.write_text("1 1:1\n")
    source = read(path)
    assert len(list(source)) == 1
    with open(path, "a") as file:
        file.write("1 1:2\n")
    assert collect(read(path, resume=source.position))[0].tolist() == [[2]]


def test_async_for_reads_the_same_and_loses_nothing_when_cancelled(tmp_path):
    write_csv(tmp_path / "rows.csv")

    async def everything():
        return [chunk async for chunk in read(tmp_path / "rows.csv", chunk_size=10)]

    np.testing.assert_array_equal(collect(asyncio.run(everything()))[0], expected_table())

    async def interrupted():
        inlet, outlet = os.pipe()
        with open(inlet, "rb") as file:
            source = read(file, format="libsvm", chunk_size=1)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(source), 0.05)
            with pytest.raises(RuntimeError, match="being read"):
                _ = source.position
            os.write(outlet, b"1 1:7\n")
            os.close(outlet)
            chunk = await anext(source)
            assert source.position["rows"] == 1
            return chunk.X.toarray().tolist()

    assert asyncio.run(interrupted()) == [[7.0]]


def test_the_share_read_grows_to_one(tmp_path):
    for packing, pack in PACKINGS.items():
        path = tmp_path / f"x.libsvm{packing}"
        path.write_bytes(pack(b"".join(b"1 1:%d 2:%f\n" % (i, i**0.5) for i in range(40_000))))
        source = read(path, path)
        shares = [source.fraction for _ in source]
        assert shares == sorted(shares)
        assert 0 < shares[0] < shares[-1]
        assert source.fraction == 1.0
    assert read(io.StringIO("")).fraction is None


def test_models_learn_from_a_source(tmp_path):
    from kernelstream import KernelClassifier
    from kernelstream.evaluate import progressive

    text = "".join(
        f"{x:.3f},{y:.3f},{'in' if x * x + y * y < 1 else 'out'}\n" for x, y in rng.normal(size=(2000, 2))
    )
    result = progressive(KernelClassifier(), csv("x,y0,class\n" + text, chunk_size=300))
    assert result.rounds == 2000
    assert result.error_rate < 0.2


def test_without_pyarrow_text_is_read_and_other_formats_say_what_to_install(monkeypatch, tmp_path):
    for name in ("rows.csv", "rows.tsv", "rows.jsonl", "rows.parquet"):
        WRITERS[name](tmp_path / name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name in ("rows.csv", "rows.tsv", "rows.jsonl"):
        assert len(collect(read(tmp_path / name))[1]) == ROWS
    with pytest.raises(
        MissingPackageError, match=r'reading Parquet needs pyarrow: pip install "kernelstream\[arrow\]"'
    ):
        list(read(tmp_path / "rows.parquet"))


# ---------------------------------------------------------------- mistakes of users


def cut(data):
    return data[: len(data) // 2]


def flipped(data):
    """With another checksum than the right one."""
    return data[:-6] + bytes([data[-6] ^ 255]) + data[-5:]


MANY = "".join(f"1 1:{i}\n-1 2:{i % 7}\n" for i in range(9999)).encode()
MISTAKES = {
    "header.csv": (b"a\xff,y\n1,0\n", "line 1: the names of the columns are not UTF-8"),
    "quote.csv": (b'a,"y\n1,0\n', "line 1: a quote is not closed"),
    "surrogate.jsonl": (b'{"a": 1, "y": 1}\n{"a": "\\ud800", "y": 0}\n', "line 2: half of a surrogate pair"),
    "label.jsonl": (
        b'{"a": 1, "y": 1}\n{"y": %s}\n' % (b"9" * 400),
        "line 2, column 'y': label 9{60} is not finite",
    ),
    "deep.jsonl": (
        b'{"a": 1, "y": 1}\n{"a": %s, "y": 1}\n' % (b"[" * 10**5 + b"]" * 10**5),
        "line 2, column 'a': a nested",
    ),
    "unclosed.jsonl": (
        b'{"a": 1, "y": 1}\n{"a": ' + b"[" * 10**5,
        r"line 2: not JSON: expected a value at column 100007",
    ),
    "checksum.libsvm.gz": (flipped(gzip.compress(MANY)), "damaged or cut short: .*CRC.*, in line 19999"),
    "cut.libsvm.gz": (cut(gzip.compress(MANY)), r"damaged or cut short: .* bytes, unpacked\), in line \d+"),
    "cut.libsvm.xz": (cut(lzma.compress(MANY)), r"damaged or cut short: .* bytes, unpacked\), in line \d+"),
    "cut.csv.zst": (
        cut(zstd(b"a,y\n" + b"".join(b"%d,1\n" % i for i in range(99999)))),
        "damaged or cut short",
    ),
    "cut.parquet": (b"PAR1 and no more", "damaged or not what its name says"),
    "cut.arrow": (b"ARROW1 and no more", "damaged or not what its name says"),
    "nul.csv": (b"a,y\n" + b"1,1\n" * 20 + b"\0,1\n", r"line 22, column 'a': '\\x00' is not a number"),
    "nul.libsvm": (b"1 1:1\n\0 1:1\n", r"line 2, column 1: label '\\x00' is not a number"),
    "binary": (bytes(range(256)) * 9, "cannot tell the format of .*binary"),
    "binary.csv": (bytes(range(256)) * 9, "its first line is not text, but binary data"),
    "binary.libsvm": (bytes(range(256)) * 9, "line 1, column 1: label .* is not a number"),
    "binary.jsonl": (bytes(range(256)) * 9, "line 1: expected an object in braces"),
    "wide.libsvm": (
        b"1 1:1\n1 20000000:1\n",
        r"line 2, column 3: index 20000000, but max_features is 1,048,576",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_our_error_with_file_and_line_and_exit_code_2(tmp_path, name, capsys):
    from kernelstream.cli import main

    data, message = MISTAKES[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SourceError, match=rf"(?s){message}") as error:
        list(read(tmp_path / name))
    assert str(tmp_path / name) in str(error.value)
    assert main(["run", str(tmp_path / name), "--quiet", "--learner", "NOGD"]) == 2
    assert name in capsys.readouterr().err


def test_bad_rows_that_cannot_be_put_aside_name_both_files(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    path = tmp_path / "x.libsvm"
    path.write_text("1 1:1\noops\n" * 20_000)
    with pytest.raises(OSError, match=r"cannot put bad rows aside: No space left .*: '/dev/full'"):
        list(read(path, on_bad_row="quarantine=/dev/full"))
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(
        OSError, match=r"cannot put bad rows aside: Is a directory .*x\.libsvm, line 2, column 1"
    ):
        list(read(path, on_bad_row=f"quarantine={folder}"))


def test_files_of_text_that_cannot_be_encoded_or_decoded(tmp_path):
    with pytest.raises(BadRowError, match=r"<stream>, line 2, column 'c': the text is not UTF-8"):
        list(read(io.StringIO("c,y\n\ud800,1\nb,0\n"), format="csv"))
    (tmp_path / "x.csv").write_bytes(b"c,y\n\xff,1\n")
    with (
        open(tmp_path / "x.csv", encoding="utf-8") as file,
        pytest.raises(SourceError, match=r"x\.csv is not in the encoding"),
    ):
        list(read(file, format="csv"))


# ---------------------------------------------------------------- width

WIDE = """
import io, resource, sys
import numpy, scipy.sparse
from kernelstream.stream import SourceError, read
resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, 2_000_000_000))
kind, text = sys.argv[1], io.BytesIO()
if kind == "libsvm":
    X, _ = next(read(io.BytesIO(b"1 1:1\\n-1 1:1\\n1 20000000:1\\n"), max_features=30_000_000))
    assert X.shape == (3, 20_000_000) and X.nnz == 3
    source = read(io.BytesIO(b"1 1:1\\n-1 1:1\\n1 20000000:1\\n"), on_bad_row="skip")
    assert [X.shape for X, _ in source] == [(2, 1)]
    assert "line 3, column 3: index 20000000, but max_features is 1,048,576" in source.first_bad_row
elif kind == "csv":
    width = 1_000_000
    text = ",".join(map(str, range(width))).replace("0,1,", "a,b,", 1) + "\\n" + (",".join(["1"] * width) + "\\n") * 3
    X, _ = next(read(io.BytesIO(text.encode()), format="csv", header=True, target=-1))
    assert X.shape == (3, width - 1)
    try:
        next(read(io.BytesIO(text.encode()), format="csv", header=True, target=-1, max_features=1000))
    except SourceError as error:
        assert "has 1,000,000 columns, but max_features is 1,000" in str(error)
"""


@pytest.mark.parametrize("kind", ["libsvm", "csv"])
@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")
def test_wide_rows_stay_within_two_gigabytes(kind):
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WIDE, kind], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("chunk_size", [1, 2, 8192])
def test_a_row_that_needs_one_feature_too_many_ends_the_reading_after_the_rows_before_it(chunk_size):
    rows = '{"a": 1, "y": 0}\n{"b": 1, "y": 0}\noops\n{"c": 1, "y": 0}\n{"a": 1, "y": 0}\n'
    table = "c,y\n" + "a,0\nb,1\na\nc,1\n"
    for text, format, place in ((rows, "jsonl", "line 4"), (table, "csv", "line 5")):
        source = read(
            io.StringIO(text), format=format, chunk_size=chunk_size, max_features=2, on_bad_row="skip"
        )
        given = []
        with pytest.raises(SourceError, match=rf"<stream>, {place}: .*max_features"):
            given.extend(source)
        assert (collect(given)[0].tolist(), source.bad_rows) == ([[1, 0], [0, 1]], 1)


# ---------------------------------------------------------------- pipes that pause, delimiters, older positions


def test_with_latency_rows_come_when_the_pipe_pauses():
    inlet, outlet = os.pipe()
    learnt = csv("a,y\n1,0\n2,1\n")
    list(learnt)
    with open(inlet, "rb") as file:
        source = read(file, format="csv", target=False, encoding=learnt.encoding, latency=0.01)
        os.write(outlet, b"a\n1\n2\n3")
        assert next(source).X.tolist() == [[1], [2]]
        os.write(outlet, b"4\n5\n")
        assert next(source).X.tolist() == [[34], [5]]
        os.close(outlet)
        assert list(source) == []


def test_any_ascii_character_may_be_the_delimiter():
    X, y = collect(csv('a;b;y\n1;"x;y";0\n2;z;1\n', delimiter=";"))
    assert (X.tolist(), y.tolist()) == ([[1, 1, 0], [2, 0, 1]], [0, 1])
    for delimiter in ("", ";;", '"', "\n", "\r", "é", "\0"):
        with pytest.raises(ValueError, match="delimiter must be one ASCII character"):
            csv("a;y\n", delimiter=delimiter)


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
def test_the_delimiter_is_that_of_the_first_record_whatever_stands_before_and_in_it(tmp_path, delimiter):
    other = "|" if delimiter == ";" else ";"
    for text in (
        "a,b,y\n1,2,0\n3,4,1\n",
        "\n \n\r\na,b,y\n1,2,0\n3,4,1\n",
        "\ufeff\r\ra,b,y\r1,2,0\r3,4,1\r",
        f'\ufeff"a{other * 9}",b,y\n1,2,0\n3,4,1\n',
        f'"a{other}\n""{other * 9}",b,y\n1,2,0\n3,4,1\n',
        '5" a,b,y\n1,2,0\n3,4,1\n',
        f"a,b,y\n1,2,0\n3,4,1\n{other * 9}\n",
    ):
        data = text.replace(",", delimiter).encode()
        (tmp_path / "t.csv").write_bytes(data)
        ways = [read(tmp_path / "t.csv", target="y", on_bad_row="skip")]
        ways.append(read(io.BytesIO(data), format="csv", target="y", on_bad_row="skip"))
        if "\n" not in text.partition(",")[0].strip():  # else the format is asked for
            ways.append(read(io.BytesIO(data), target="y", on_bad_row="skip"))
        for source in ways:
            X, y = collect(source)
            assert (X.tolist(), y.tolist()) == ([[1, 2], [3, 4]], [0, 1])


def test_the_format_of_a_table_without_a_name_is_told_by_its_delimiter():
    for text in ("a\tb;y\n1\t2;3\n", "a;b|y\n1;2|3\n"):
        with pytest.raises(SourceError, match="cannot tell the delimiter"):
            list(read(io.BytesIO(text.encode())))
    for text, format in (
        ("a;b\tc;y\n1;2;0\n", "csv"),
        ("a\tb,c\ty\n1\t2\t0\n", "tsv"),
        ('"a\t\t\tb",c,y\n1,2,0\n', "csv"),
        ("\n \n\na,b,y\n1,2,0\n", "csv"),
        ('\r\n{"a": 1, "b": 2, "y": 0}\n', "jsonl"),
        ("\n\n0 1:1 2:2\n", "libsvm"),
    ):
        source = read(io.BytesIO(text.encode()))
        X, y = collect(source)
        assert (X.tolist(), y.tolist(), source.position["format"]) == ([[1, 2]], [0], format)


def test_a_delimiter_at_the_end_has_an_empty_field_after_it():
    for delimiter in (",", ";", "|", "\t"):
        text = f"1{delimiter}\n2{delimiter}\n"
        with pytest.raises(BadRowError, match="line 1, column '1': the label is missing"):
            list(csv(text, target=-1))
        X, y = collect(csv(text, target=False))
        assert (X.tolist(), y) == ([[1, 0, 1], [2, 0, 1]], None)
    X, y = collect(csv("x \n1 \n 2\t\n", target=False))  # blanks: no delimiter in the first line
    assert (X.tolist(), y) == ([[1], [2]], None)


def test_a_delimiter_may_be_a_character_of_numbers():
    for delimiter in ".-0e+ ":
        text = "a,b,y\n3,4,1\n,5,2\n".replace(",", delimiter)
        X, y = collect(csv(text, delimiter=delimiter))
        assert (X.tolist(), y.tolist()) == ([[3, 4, 0], [0, 5, 1]], [1, 2])


def test_positions_of_the_version_before_are_understood(tmp_path):
    path = tmp_path / "rows.csv"
    write_csv(path)
    source = read(path, chunk_size=20)
    next(source)
    position = source.position
    before = {"offset": position["at"]["offset"], "line": 22}
    assert position["at"] == before
    del position["asked"]["delimiter"]  # which that version did not have
    X, y = collect([next(read(path, chunk_size=20)), *read(path, chunk_size=9, resume=position)])
    np.testing.assert_array_equal(X, expected_table())
    assert y.tolist() == CLASS


def test_small_things_about_text():
    assert collect(csv('"a","y"\r\n"1",0\r\n2,"1"', chunk_size=1))[0].tolist() == [[1], [2]]
    assert list(csv("a,y\n")) == []
    assert list(csv("")) == []
    X, y = collect(read(io.StringIO("1:2 3:4\n+1 2:5\n\n"), format="libsvm", target=False))
    assert (X.tolist(), y) == ([[2, 0, 4], [0, 5, 0]], None)
    with pytest.raises(BadRowError, match="label 'x' is not a number"):
        list(read(io.StringIO("x 1:1\n"), format="libsvm", target=False))
    with pytest.raises(BadRowError, match="value in '1:1e39' is not finite"):
        list(read(io.StringIO("1 1:1e39\n"), dtype=np.float32))
