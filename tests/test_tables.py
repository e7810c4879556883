"""TableEncoder: kinds, tables of all libraries, against slow and obvious features; and what is refused."""

from __future__ import annotations

import datetime
import math
import pickle

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import kernelstream
from kernelstream import KernelClassifier, KernelRegressor, TableEncoder
from kernelstream.learners import NOGD
from kernelstream.stream import read
from kernelstream.tables.kinds import kind_of_words, time_of

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

N = 40
RNG = np.random.default_rng(3)
COLUMNS = {
    "age": [None if i % 7 == 3 else float(i) for i in range(N)],
    "count": list(range(N)),
    "job": [None if i % 5 == 4 else f"job{i % 3}" for i in range(N)],
    "when": [None if i % 11 == 5 else datetime.datetime(2024, 1 + i % 12, 3, i % 24, 5) for i in range(N)],
    "note": [None if i % 9 == 8 else f"a note of four or five words {i}" for i in range(N)],
    "flag": [None if i % 13 == 7 else i % 2 == 0 for i in range(N)],
}
KINDS = {
    "age": "number",
    "count": "number",
    "job": "category",
    "when": "time",
    "note": "text",
    "flag": "boolean",
}
TEXTS = 32


def tables():
    arrow = pa.table(COLUMNS)
    objects = np.empty((N, len(COLUMNS)), object)
    for place, column in enumerate(COLUMNS.values()):
        objects[:, place] = column
    yield "dict of lists", COLUMNS
    yield "pandas", pd.DataFrame(COLUMNS)
    yield "pandas, nullable", pd.DataFrame(COLUMNS).convert_dtypes()
    yield "pandas, Arrow", arrow.to_pandas(types_mapper=pd.ArrowDtype)
    yield (
        "pandas, zone",
        pd.DataFrame(COLUMNS).assign(
            when=pd.to_datetime(pd.Series(COLUMNS["when"])).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
        ),
    )
    yield "polars", pl.DataFrame(COLUMNS)
    yield "pyarrow", arrow
    yield "pyarrow batch", arrow.to_batches()[0]
    yield "other order", pd.DataFrame(COLUMNS)[list(COLUMNS)[::-1]]
    yield (
        "texts",
        pd.DataFrame(COLUMNS | {"when": [None if w is None else w.isoformat() for w in COLUMNS["when"]]}),
    )


def obvious(names):
    """The features of all rows, by name, computed one by one."""
    rows = []
    first = next(w for w in COLUMNS["when"] if w is not None)
    for i in range(N):
        row = dict.fromkeys(names, 0.0)
        for name in ("age", "count", "flag"):
            value = COLUMNS[name][i]
            row[name if value is not None else f"{name} missing"] = 1.0 if value is None else float(value)
        job = COLUMNS["job"][i]
        row["job missing" if job is None else f"job={job}"] = 1.0
        when = COLUMNS["when"][i]
        if when is None:
            row["when missing"] = 1.0
        else:
            row["when elapsed"] = (when - first).total_seconds() / 86400
            midnight = when.replace(hour=0, minute=0)
            for part, share in (
                ("day", (when - midnight).total_seconds() / 86400),
                ("week", (when.weekday() + (when - midnight).total_seconds() / 86400) / 7),
                ("year", (when - datetime.datetime(when.year, 1, 1)).total_seconds() / 86400 / 365.25),
            ):
                row[f"when {part}_sin"] = math.sin(2 * math.pi * share)
                row[f"when {part}_cos"] = math.cos(2 * math.pi * share)
        if COLUMNS["note"][i] is None:
            row["note missing"] = 1.0
        rows.append([row[name] for name in names])
    return np.array(rows)


@pytest.mark.parametrize(
    ("name", "table"), list(tables()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_tables_of_all_libraries(name, table):
    encoder = TableEncoder(text_features=TEXTS)
    X = encoder.fit_transform(table).toarray()
    assert encoder.columns_ == KINDS
    assert set(encoder.feature_names_in_) == set(COLUMNS)
    names = encoder.get_feature_names_out().tolist()
    assert len(set(names)) == len(names) == X.shape[1]
    text = np.array([name.startswith(("note word", "note piece")) for name in names])
    assert text.sum() == TEXTS
    np.testing.assert_allclose(X[:, ~text], obvious(names)[:, ~text], atol=1e-9)
    there = np.array([note is not None for note in COLUMNS["note"]])
    words, pieces = X[:, text][:, : TEXTS // 2], X[:, text][:, TEXTS // 2 :]
    for part in (words, pieces):
        np.testing.assert_allclose((part**2).sum(axis=1), there, atol=1e-12)
    if name != "other order":
        first = TableEncoder(text_features=TEXTS).fit(COLUMNS)
        assert (first.transform(COLUMNS).toarray() == X).all()


@pytest.mark.parametrize("hashed", [None, 8])
def test_chunks_do_not_matter_and_transform_changes_nothing(hashed):
    whole = TableEncoder(text_features=TEXTS, hashed=hashed).fit(COLUMNS)
    parts = TableEncoder(text_features=TEXTS, hashed=hashed, columns=KINDS)
    frame = pd.DataFrame(COLUMNS)
    for start, stop in ((0, 1), (1, 2), (2, 20), (20, N)):
        parts.partial_fit(frame[start:stop])
        before = parts.description
        parts.transform(frame)
        assert parts.description == before
    assert parts.description == whole.description
    assert (parts.transform(frame).toarray() == whole.transform(frame).toarray()).all()


def test_dicts_whose_names_come_and_go():
    encoder = TableEncoder(text_features=TEXTS)
    first = [{"a": 1.0, "word": "red"}, {"b": True, "when": "2024-01-01"}]
    encoder.fit(first)
    assert encoder.columns_ == {"a": "number", "word": "category", "b": "boolean", "when": "time"}
    encoder.partial_fit(
        [{"word": "blue", "c": datetime.date(2024, 1, 5), "text": "one of the longer ones, this", "a": None}]
    )
    names = encoder.get_feature_names_out().tolist()
    assert names[:4] == ["a", "word=red", "b", "when elapsed"]
    assert encoder.columns_["c"] == "time"
    X = encoder.transform([{"a": 3, "unknown": 2, "word": "green"}])
    assert X.shape == (1, len(names))
    assert X.toarray()[0, :2].tolist() == [3.0, 0.0]
    table = encoder.transform(pd.DataFrame({"a": [3, 4], "word": ["red", "blue"], "other": [1, 2]})).toarray()
    assert table[:, :2].tolist() == [[3.0, 1.0], [4.0, 0.0]]


def test_dicts_for_a_table_have_missing_values_for_what_is_absent():
    encoder = TableEncoder(text_features=TEXTS).fit(COLUMNS)
    given = encoder.transform([{"age": 3.0, "unknown": 1}, {"job": "job1", "count": 5}])
    same = encoder.transform(
        {
            "age": [3.0, None],
            "count": [None, 5],
            "job": [None, "job1"],
            "when": [None] * 2,
            "note": [None] * 2,
            "flag": [None] * 2,
        }
    )
    assert (given != same).nnz == 0


def test_output_forms():
    numbers = {"a": [1.0, None], "t": pd.to_datetime(["2024-01-01", "2024-01-02"])}
    assert not issparse(TableEncoder().fit_transform(numbers))
    assert issparse(TableEncoder(sparse=True).fit_transform(numbers))
    assert issparse(TableEncoder().fit_transform({"c": ["x", "y"]}))
    assert TableEncoder(sparse=False, dtype=np.float32).fit_transform({"c": ["x", "y"]}).dtype == np.float32
    framed = TableEncoder().set_output(transform="pandas").fit_transform({"c": ["x", "y"], "a": [1, 2]})
    assert framed.columns.tolist() == ["a", "c=x", "c=y"]
    assert framed.to_numpy().tolist() == [[1, 1, 0], [2, 0, 1]]


def test_bounded_categories():
    encoder = TableEncoder(max_categories=3).fit({"c": [f"c{i}" for i in range(10)]})
    assert encoder.get_feature_names_out().tolist() == ["c=c0", "c=c1", "c=c2", "c other"]
    assert encoder.transform({"c": ["c9", "new", "c1"]}).toarray().tolist() == [
        [0, 0, 0, 1],
        [0, 0, 0, 1],
        [0, 1, 0, 0],
    ]


def test_categories_that_are_numbers_are_the_same_in_every_type(tmp_path):
    encoder = TableEncoder({"zip": "category"}).fit({"zip": [1, 2, 3]})
    expected = encoder.transform({"zip": ["2", "3"]}).toarray().tolist()
    for column in (
        [2, 3],
        [2.0, 3.0],
        np.array([2, 3], np.int8),
        pd.Series([2, 3]).astype("category"),
        pa.array([2.0, 3.0]),
    ):
        assert encoder.transform({"zip": column}).toarray().tolist() == expected
    path = tmp_path / "t.jsonl"
    path.write_text('{"zip": 2}\n{"zip": 3.0}\n')
    ((X, _),) = read(path, target=False, encoding=encoder.description)
    assert X.toarray().tolist() == expected


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"count": [1], "job": ["a"]}, "X lacks 'age', other than the columns before it"),
        (COLUMNS | {"more": [1] * N}, "X has 'more', other than the columns before it"),
        (COLUMNS | {"age": ["old"] * N}, "X, row 0, column 'age': 'old' is not a number"),
        (COLUMNS | {"age": [1.0] * 3 + [math.inf] * (N - 3)}, "X, row 3, column 'age': inf is not finite"),
        (COLUMNS | {"when": ["2024-02-31"] * N}, "X, row 0, column 'when': '2024-02-31' is not a date or a time"),
        (COLUMNS | {"flag": ["maybe"] * N}, "X, row 0, column 'flag': 'maybe' is not true or false"),
        (COLUMNS | {"age": [[1]] * N}, "X, row 0, column 'age': a value of type list"),
        (COLUMNS | {"age": COLUMNS["when"]}, "X: column 'age' holds times, where a number is needed"),
        (COLUMNS | {"age": [1.0]}, "'age'"),
        (np.zeros((3, 2)), "X lacks 'age'"),
        (np.zeros(3), "X has 1 dimensions: a table has rows and columns"),
        (pd.DataFrame([[1, 2]], columns=["age", "age"]), "X has two columns called 'age'"),
        (pl.DataFrame(COLUMNS).lazy(), "X is a query of polars"),
    ],
)  # fmt: skip
def test_what_is_refused_changes_nothing(table, message):
    encoder = TableEncoder(text_features=TEXTS).fit(COLUMNS)
    before = encoder.description
    for call in (encoder.transform, encoder.partial_fit):
        with pytest.raises(ValueError, match=message.replace("(", r"\(")):
            call(table)
        assert encoder.description == before


def test_wrong_arguments():
    for arguments, message in (
        ({"columns": {"age": "date"}}, "column 'age' cannot be 'date'"),
        ({"columns": ["age"]}, "columns must be a dictionary"),
        ({"columns": {"agee": "number"}}, "X has no column 'agee'; did you mean 'age'"),
        ({"max_categories": 0}, "max_categories must be"),
        ({"sparse": "no"}, "sparse must be"),
        ({"dtype": int}, "dtype must be"),
        ({"max_features": 20}, "max_features is 20"),
    ):
        with pytest.raises(ValueError, match=message):
            TableEncoder(**arguments).fit(COLUMNS)
    with pytest.raises(ValueError, match="columns must be None, 'auto', a dictionary"):
        KernelClassifier(columns=3).fit(COLUMNS, [0, 1] * 20)


def test_copies():
    encoder = TableEncoder(text_features=TEXTS).fit(COLUMNS)
    for other in (pickle.loads(pickle.dumps(encoder)), TableEncoder.from_description(encoder.description)):
        assert (other.transform(COLUMNS) != encoder.transform(COLUMNS)).nnz == 0
    assert not hasattr(clone(encoder), "features_")


# ---- kinds ----


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["true", "False", "TRUE"], "boolean"), (["yes", "no"], "category"), (["2024-01-01", "2024-01-02"], "time"),
        (["20240101", "20240102"], "category"), (["2024-01-01", "soon"], "category"), ([None, None], "category"),
        (["New York City", "New York City", "Rio de Janeiro"], "text"), (["New York City"] * 3 + ["Rio de Janeiro"], "category"),
        (["10:30", "11:30"], "category"), (["John Smith", "Ada Brown"], "category"),
    ],
)  # fmt: skip
def test_kinds_of_texts(words, kind):
    different = list(dict.fromkeys(words))
    assert kind_of_words(different, [words.count(word) for word in different]) == kind


@pytest.mark.parametrize("offset", ["", "Z", "+00:00", "+05:30", "-0800", " UTC"])
def test_times_are_read_as_python_reads_them(offset):
    word = f"2024-05-31T12:30:00.25{offset}"
    zone = {"+05:30": 5.5, "-0800": -8}.get(offset, 0)
    expected = datetime.datetime(
        2024, 5, 31, 12, 30, 0, 250000, tzinfo=datetime.timezone(datetime.timedelta(hours=zone))
    )
    assert time_of(word) == expected.timestamp() * 1e6


# ---- estimators ----


def test_estimators_take_tables_row_by_row_and_whole(tmp_path):
    frame, y = pd.DataFrame(COLUMNS), [i % 3 == 0 for i in range(N)]
    whole = KernelClassifier(NOGD(budget=10), columns=TableEncoder(KINDS, text_features=TEXTS)).partial_fit(
        frame, y
    )
    single = clone(whole)
    for i in range(N):
        single.partial_fit(frame[i : i + 1], y[i : i + 1])
    assert (single.decision_function(frame) == whole.decision_function(frame)).all()
    assert single.encoder_.description == whole.encoder_.description
    whole.save(tmp_path / "m")
    assert (
        kernelstream.load(tmp_path / "m").decision_function(frame) == whole.decision_function(frame)
    ).all()
    assert (
        pickle.loads(pickle.dumps(whole)).decision_function(frame) == whole.decision_function(frame)
    ).all()
    fitted = clone(whole).fit(frame, y)
    assert fitted.predict(frame).shape == (N,)


def test_a_refused_chunk_leaves_model_and_columns():
    frame, y = pd.DataFrame(COLUMNS), [float(i) for i in range(N)]
    model = KernelRegressor("NOGD", columns=TableEncoder(text_features=TEXTS), scale="auto").partial_fit(
        frame[:20], y[:20]
    )
    before, described = model.predict(frame), model.encoder_.description
    new = frame[20:].assign(job="new")
    for X, targets in (
        (new, [math.nan] * 20),
        (new, y[21:]),
        (new.assign(age="x"), y[20:]),
        (new.drop(columns="age"), y[20:]),
    ):
        with pytest.raises(ValueError, match=r"."):
            model.partial_fit(X, targets)
        assert model.encoder_.description == described
        assert model.learner_.width == model.encoder_.width
        assert (model.predict(frame) == before).all()


def test_arrays_with_gaps():
    X = RNG.normal(size=(60, 3))
    X[::7, 1] = np.nan
    model = KernelClassifier(columns="auto").fit(X, X[:, 0] > 0)
    assert model.encoder_.columns_ == {"0": "number", "1": "number", "2": "number"}
    assert model.learner_.width == 4
    assert model.score(X, X[:, 0] > 0) > 0.7
    with pytest.raises(ValueError, match="NaN"):
        KernelClassifier().fit(X, X[:, 0] > 0)


def test_a_pipeline():
    model = make_pipeline(TableEncoder(text_features=TEXTS), KernelClassifier(NOGD(budget=10)))
    assert model.fit(pd.DataFrame(COLUMNS), [0, 1] * 20).predict(COLUMNS).shape == (N,)
