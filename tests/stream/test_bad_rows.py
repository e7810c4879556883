"""`kernelstream.stream.read`: bad rows, and other mistakes of users."""

import gzip
import io
import json
import lzma
import os

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from kernelstream.stream import BadRowError, SourceError, read
from source_files import collect, resumed, zstd


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
