"""`kernelstream.stream.read`: the columns of a table, its target, and the delimiters between them."""

import io
import json

import numpy as np
import pytest

from kernelstream.stream import BadRowError, SourceError, read
from source_files import collect, csv


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
