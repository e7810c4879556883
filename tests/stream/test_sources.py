"""`kernelstream.stream.read`: files, pipes and names as sources; their ends, limits, widths and positions."""

import asyncio
import gzip
import io
import lzma
import os
import subprocess
import sys

import numpy as np
import pytest

from kernelstream import stream
from kernelstream.stream import BadRowError, MissingPackageError, SourceError, lines, read
from source_files import (
    CLASS,
    PACKINGS,
    ROWS,
    WRITERS,
    collect,
    csv,
    expected_table,
    resumed,
    write_csv,
    zstd,
)


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
    values = np.random.default_rng(0).random(30_000)
    text = "".join(f"1 1:{i} 2:{value}\n" for i, value in enumerate(values)).encode()
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

    points = np.random.default_rng(0).normal(size=(2000, 2))
    text = "".join(f"{x:.3f},{y:.3f},{'in' if x * x + y * y < 1 else 'out'}\n" for x, y in points)
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
