import gzip
import io
import itertools
import lzma
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelstream import _text, stream
from kernelstream.stream import datasets, files, synthetic
from oracles.libsvm import parse_lines

MAKERS = [stream.rings, stream.moving_classes, stream.friedman]


def collect(chunks):
    X, y = zip(*chunks, strict=True)
    return np.concatenate(X), np.concatenate(y)


# ---------------------------------------------------------------- synthetic


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("chunk_size", [1, 7, 250, 5000])
def test_a_seed_fixes_the_stream_whatever_the_chunk_size(maker, chunk_size):
    X, y = collect(maker(600, seed=5, chunk_size=chunk_size))
    X_all, y_all = collect(maker(600, seed=5, chunk_size=600))
    np.testing.assert_array_equal(X, X_all)
    np.testing.assert_array_equal(y, y_all)
    assert not np.array_equal(X, collect(maker(600, seed=6))[0])


@pytest.mark.parametrize("maker", MAKERS)
def test_streams_are_endless_and_of_given_length(maker):
    assert len(list(itertools.islice(maker(chunk_size=10), 50))) == 50
    assert list(maker(0)) == []
    assert [len(y) for _, y in maker(25, chunk_size=10)] == [10, 10, 5]
    assert all(np.isfinite(X).all() for X, _ in maker(100))


@pytest.mark.parametrize("maker", MAKERS)
def test_streams_refuse_what_makes_no_sense(maker):
    with pytest.raises(ValueError, match="chunk_size must be at least 1"):
        next(maker(chunk_size=0))
    with pytest.raises(ValueError, match="rows must not be negative"):
        next(maker(-1))


def test_a_line_fails_on_rings_and_neighbours_do_not():
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier

    X, y = collect(stream.rings(4000, seed=0))
    assert abs(np.mean(y == 1) - 0.5) < 0.05
    train, test = slice(0, 3000), slice(3000, 4000)
    assert LogisticRegression().fit(X[train], y[train]).score(X[test], y[test]) < 0.6
    assert KNeighborsClassifier(15).fit(X[train], y[train]).score(X[test], y[test]) > 0.85


def test_ring_noise_is_the_share_of_flipped_labels():
    X, clean = collect(stream.rings(20_000, noise=0.0))
    X_noisy, noisy = collect(stream.rings(20_000, noise=0.2))
    np.testing.assert_array_equal(X, X_noisy)
    assert abs(np.mean(clean != noisy) - 0.2) < 0.01


def test_classes_move():
    X, y = collect(stream.moving_classes(40_000, classes=2, speed=0.005, seed=1))
    early = X[:2000][y[:2000] == 0].mean(0)
    late = X[-2000:][y[-2000:] == 0].mean(0)
    assert np.abs(early - late).max() > 0.1
    assert np.abs(X).max() < 1 + 6 * 0.2


def test_reflection_keeps_the_walk_in_the_square():
    p = np.array([-3.0, -1.5, -1.0, 0.25, 1.0, 1.5, 3.0, 5.25])
    np.testing.assert_allclose(synthetic._reflect(p), [1.0, -0.5, -1.0, 0.25, 1.0, 0.5, -1.0, 0.75])


def test_adversarial_blocks_repeat_one_row_and_flip_even_blocks():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), rng.choice([-1, 1], 50)
    A, b = stream.adversarial_blocks(X, y, blocks=40, rounds=5, seed=2)
    assert A.shape == (200, 3)
    assert b.shape == (200,)
    for block, (rows, labels) in enumerate(zip(A.reshape(40, 5, 3), b.reshape(40, 5), strict=True), start=1):
        (source,) = np.flatnonzero((rows[0] == X).all(1))
        assert (rows == X[source]).all()
        assert (labels == (-y[source] if block % 2 == 0 else y[source])).all()


def test_adversarial_blocks_refuse_labels_that_cannot_be_flipped():
    with pytest.raises(ValueError, match=r"labels must be -1 or \+1"):
        stream.adversarial_blocks([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="one label per row"):
        stream.adversarial_blocks([[0.0], [1.0]], [1])


# ---------------------------------------------------------------- LIBSVM text


def read_libsvm(source, **arguments):
    return stream.read(source, format="libsvm", task="regression", **arguments)


TEXT = "+1 1:0.5 3:-2e-3\n-1\n\n  2.5 2:1 4:7  # a comment\n# nothing here\n-1 1:0\r\n"
X_TEXT = [[0.5, 0, -2e-3, 0], [0, 0, 0, 0], [0, 1, 0, 7], [0, 0, 0, 0]]
Y_TEXT = [1, -1, 2.5, -1]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("kind", ["path", "string", "binary", "buffered"])
@pytest.mark.parametrize("chunk_size", [1, 2, 1000])
def test_reads_plain_gzip_and_xz_from_paths_and_files(tmp_path, pack, kind, chunk_size):
    path = tmp_path / "rows"
    path.write_bytes(pack(TEXT.encode()))
    source = {
        "path": lambda: path,
        "string": lambda: str(path),
        "binary": lambda: io.BytesIO(path.read_bytes()),
        "buffered": lambda: open(path, "rb"),
    }[kind]()
    X, y = zip(*read_libsvm(source, n_features=4, chunk_size=chunk_size), strict=True)
    np.testing.assert_array_equal(np.concatenate([x.toarray() for x in X]), X_TEXT)
    np.testing.assert_array_equal(np.concatenate(y), Y_TEXT)
    assert all(x.dtype == np.float64 and x.indices.dtype == np.int32 for x in X)
    if hasattr(source, "closed"):
        assert not source.closed
        source.close()


def test_reads_text_files_and_float32():
    ((X, y),) = read_libsvm(io.StringIO(TEXT), dtype=np.float32)
    assert X.dtype == np.float32
    np.testing.assert_array_equal(y, Y_TEXT)


def test_without_n_features_the_width_grows():
    chunks = read_libsvm(io.StringIO("1 2:1\n1 1:1\n1 9:1\n1 1:1\n"), chunk_size=1)
    assert [X.shape[1] for X, _ in chunks] == [2, 2, 9, 9]


def test_an_empty_file_gives_no_chunk():
    assert list(read_libsvm(io.StringIO(""))) == []
    assert list(read_libsvm(io.StringIO("\n# nothing\n"))) == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 1:nan", r"value in '1:nan' is not finite"),
        ("1 1:-inf", r"value in '1:-inf' is not finite"),
        ("nan 1:1", r"label 'nan' is not finite"),
        ("a 1:1", r"label 'a' is not a number"),
        ("1,2 1:1", r"label '1,2' is not a number"),
        ("1 1:x", r"value in '1:x' is not a number"),
        ("1 1:1_0", r"value in '1:1_0' is not a number"),
        ("1 x:1", r"index in 'x:1' is not a number"),
        ("1 qid:1 1:1", r"index in 'qid:1' is not a number"),
        ("1 1.5:1", r"index in '1.5:1' is not a whole number"),
        ("1 1", r"expected index:value, found '1'"),
        ("1 1: 5", r"expected index:value, found '1:'"),
        ("1 1 :5", r"expected index:value, found '1'"),
        ("1 :5", r"expected index:value, found ':5'"),
        ("1 1:2:3", r"value in '1:2:3' is not a number"),
        ("1 1:2:3 4", r"value in '1:2:3' is not a number"),
        ("1 1::3", r"value in '1::3' is not a number"),
        ("1:2 3", r"label '1:2' is not a number"),
        (":1 3", r"label ':1' is not a number"),
        ("1 0:1", r"index 0 in '0:1', but indices start at 1"),
        ("1 -3:1", r"index -3 in '-3:1', but indices start at 1"),
        ("1 2:1 2:1", r"index 2 after index 2, but indices must increase"),
        ("1 3:1 2:1", r"index 2 after index 3, but indices must increase"),
        ("1 9999999999:1", r"the largest allowed is 2147483647"),
        ("1 1:1 8:1", r"index 8, but n_features is 7"),
    ],
)
def test_errors_name_the_file_the_line_and_the_reason(tmp_path, line, reason):
    path = tmp_path / "bad.libsvm"
    path.write_text(f"1 1:1\n\n-1 2:1\n{line}\n1 1:1\n")
    with pytest.raises(ValueError, match=rf"bad\.libsvm, line 4, column \d+: .*{reason}"):
        list(read_libsvm(path, n_features=7))
    with pytest.raises(ValueError, match=r"<stream>, line 4, column "):
        list(read_libsvm(io.BytesIO(path.read_bytes()), n_features=7, chunk_size=3))


def parsed(text, n_features=None, labelled=True):
    """The compiled parser's rows, and the lines it refused with the words for it."""
    labels, starts, indices, values, refused = _text.parse_libsvm(
        text, n_features or 0, np.finfo(np.float64).max, labelled, False
    )
    pairs = list(zip((indices + 1).tolist(), values.tolist(), strict=True))
    rows = [(label, pairs[a:b]) for label, a, b in zip(labels.tolist(), starts[:-1], starts[1:], strict=True)]
    return rows, [numbers[0] + 1 for numbers in refused.reshape(-1, 6).tolist()]


LIKE_NUMBERS = st.one_of(
    st.text("0123456789.-+eE", max_size=12),
    st.floats().map(repr),
    st.from_regex(r"[-+]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][-+]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(
        ["nan", "-inf", "Infinity", "1_0", "0x1p3", "1e400", "1e-400", "4.9e-324", "2.4e-324", "1d5"]
    ),
)


@settings(max_examples=500)
@given(LIKE_NUMBERS, LIKE_NUMBERS)
def test_numbers_are_those_of_float(label, value):
    line = f"{label} 7:{value}\n".encode()
    rows, refused = parsed(line)
    expected, bad = parse_lines([line])
    assert rows == expected
    assert refused == [number for number, _ in bad]


@settings(max_examples=500)
@given(st.lists(st.text("0123 :\t.-#e_xn\r\v+i", max_size=14), max_size=6), st.sampled_from([None, 3]))
def test_the_compiled_parser_is_the_obvious_one(lines, n_features):
    block = [line.encode() + b"\n" for line in lines]
    rows, refused = parsed(b"".join(block), n_features)
    expected, bad = parse_lines(block, n_features)
    assert rows == expected
    assert refused == [number for number, _ in bad]


@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False),
            st.dictionaries(
                st.integers(1, 2**31 - 1), st.floats(allow_nan=False, allow_infinity=False), max_size=5
            ),
        ),
        min_size=1,
        max_size=10,
    )
)
def test_what_is_written_is_read(rows):
    text = "".join(
        " ".join([repr(label), *(f"{i}:{v!r}" for i, v in sorted(pairs.items()))]) + "\n"
        for label, pairs in rows
    )
    assert parsed(text.encode()) == ([(label, sorted(pairs.items())) for label, pairs in rows], [])


# ---------------------------------------------------------------- data sets


@pytest.mark.parametrize("name", datasets.DATASETS)
def test_data_sets_are_what_their_records_say(name, request):
    record = datasets.DATASETS[name]
    X, y = datasets.load(name) if record.shipped else request.getfixturevalue("dataset")(name)
    assert X.shape == (record.rows, record.features)
    assert hasattr(X, "indptr") == record.sparse
    assert y.shape == (record.rows,)
    assert y.dtype == (np.float64 if record.task == "regression" else np.int64)
    if record.task == "classification" and record.order == "random":
        half = len(y) // 2
        assert set(y[:half].tolist()) == set(y[half:].tolist())


def test_svmguide3_leaves_out_the_copies(data_file, dataset):
    (whole,) = read_libsvm(data_file("svmguide3"), chunk_size=2000)
    X, y = dataset("svmguide3")
    assert whole[0].shape[0] == 1284
    np.testing.assert_array_equal(X, whole[0].toarray()[:1243])
    assert (np.sum(y == -1), np.sum(y == 1)) == (947, 296)


def test_shuffling_is_seeded_and_loses_nothing():
    X, y = datasets.load("breast_cancer")
    A, a = datasets.shuffled("breast_cancer", seed=1)
    B, b = datasets.shuffled("breast_cancer", seed=1)
    np.testing.assert_array_equal(A, B)
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(A, X)
    order = np.lexsort(X.T), np.lexsort(A.T)
    np.testing.assert_array_equal(X[order[0]], A[order[1]])
    np.testing.assert_array_equal(y[order[0]], a[order[1]])


def test_unknown_names_get_suggestions():
    with pytest.raises(ValueError, match=r"unknown data set 'german'.*'german.numer'"):
        datasets.load("german")
    with pytest.raises(ValueError, match=r"unknown stream 'Ring'; did you mean 'rings'\?"):
        datasets.open_stream("Ring")


def test_missing_files_say_what_to_set(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("KERNELSTREAM_DATA", raising=False)
    with pytest.raises(
        FileNotFoundError, match=r"no file a9a\.libsvm\.xz in .*cache.*set .*KERNELSTREAM_DATA"
    ):
        datasets.load("a9a")
    monkeypatch.setenv("KERNELSTREAM_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=rf"no file a9a\.libsvm\.xz in {re.escape(str(tmp_path))},"):
        datasets.load("a9a")
    with pytest.raises(FileNotFoundError, match=r"not in .*nowhere"):
        datasets.load("a9a", tmp_path / "nowhere")


def test_a_cut_file_is_noticed(tmp_path):
    (tmp_path / "elec2.libsvm").write_text("1 1:1\n-1 8:2\n")
    with pytest.raises(ValueError, match="2 rows, but elec2 has 45312"):
        datasets.load("elec2", tmp_path)


def test_open_stream_gives_chunks_of_a_data_set():
    opened = datasets.open_stream("digits", 1500, seed=4, chunk_size=400)
    X, y = collect(opened.chunks)
    expected = datasets.shuffled("digits", 4)
    assert (opened.task, opened.rows) == ("classification", 1500)
    np.testing.assert_array_equal(X, expected[0][:1500])
    np.testing.assert_array_equal(y, expected[1][:1500])


def test_open_stream_keeps_the_order_of_time(tmp_path):
    rows = datasets.DATASETS["elec2"].rows
    (tmp_path / "elec2.libsvm").write_text("".join(f"{1 if i % 3 else -1} 1:{i}\n" for i in range(rows)))
    X, _ = collect(datasets.open_stream("elec2", 100, data_dir=tmp_path).chunks)
    np.testing.assert_array_equal(X[:, 0], np.arange(100))
