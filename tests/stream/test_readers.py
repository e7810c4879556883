"""`kernelstream.stream.read`: every format, packed and plain, gives the same rows, in any chunks, and when it is resumed."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelstream.stream import BadRowError, read
from source_files import CLASS, PACKINGS, ROWS, WRITERS, collect, csv, expected_table, resumed


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


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(tmp_path, order):
    matrix = np.asarray(np.random.default_rng(0).normal(size=(30, 4)), order=order)
    np.save(tmp_path / "x.npy", matrix)
    chunks, _ = resumed([tmp_path / "x.npy"], 7, 1, target=2, task="regression")
    X, y = collect(chunks)
    np.testing.assert_array_equal(X, matrix[:, [0, 1, 3]])
    np.testing.assert_array_equal(y, matrix[:, 2])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("labels", [np.arange(30) % 3, np.array(["a", "b", "c"])[np.arange(30) % 3]])
def test_npz(tmp_path, save, labels):
    matrix = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
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
