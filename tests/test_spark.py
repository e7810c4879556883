"""Tables and streams on Spark: the same model whatever the workers do. One session serves all tests."""

import json
import os
import re
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

import kernelstream
from kernelstream import Gaussian, KernelClassifier, KernelRegressor, MergeError
from kernelstream.errors import CheckpointError
from kernelstream.learners import KRLS, NOGD, LinearPA, NewtonMixture
from kernelstream.persistence import pack, unpack
from kernelstream.spark.columns import Columns, features_of
from kernelstream.tables.errors import SourceError

pytest.importorskip("pyspark", reason="Spark's tests need pyspark")
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
from kernelstream import spark as on_spark  # noqa: E402
from kernelstream.spark import parts as parts_module  # noqa: E402
from kernelstream.spark import session as session_module  # noqa: E402

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark's tests need Java"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"),
]

RNG = np.random.default_rng(3)
X = RNG.normal(size=(1200, 4))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2]
NAMES = list("abcd")
FRAME = pd.DataFrame(X, columns=NAMES).assign(y=Y, label=np.where(Y > 0, "up", "down"))
EXACT = KRLS(nu=0.05, kernel=Gaussian(gamma=0.1))
DEFAULT = NewtonMixture(30)


@pytest.fixture(scope="module")
def spark():
    session = on_spark.local_session(2, spark_sql_shuffle_partitions=2)
    session.sparkContext.setLogLevel("OFF")  # some of these errors are meant
    return session


@pytest.fixture(scope="module")
def table(spark):
    return spark.createDataFrame(FRAME).repartition(3).persist()


# ---- tables ----


def test_least_squares_on_spark_is_one_pass(spark):
    base = KernelRegressor(EXACT, shuffle=False).partial_fit(FRAME[NAMES][:300], Y[:300])
    before = pack(base)
    one = kernelstream.branch(base).partial_fit(FRAME[NAMES][300:], Y[300:])
    rest = spark.createDataFrame(FRAME[300:])
    for partitions in (1, 2, 7):
        model = on_spark.fit(base, rest.repartition(partitions), target="y", features=NAMES, parts=3)
        np.testing.assert_allclose(model.predict(FRAME[NAMES]), one.predict(FRAME[NAMES]), atol=1e-8)
    dealt = on_spark.fit(
        base.set_params(shuffle=True), rest, target="y", features=NAMES, rows_per_part=50, parts=20
    )  # in a tree
    np.testing.assert_allclose(dealt.predict(FRAME[NAMES]), one.predict(FRAME[NAMES]), atol=1e-8)
    assert pack(base.set_params(shuffle=False)) == before


def test_the_default_and_its_predictions(table):
    told = []
    untrained = KernelClassifier(DEFAULT)
    settings = {"target": "label", "features": NAMES, "rows_per_part": 400, "parts": 2}
    model = on_spark.fit(untrained, table, progress=told.append, **settings)
    assert "learner_" not in untrained.__dict__
    assert model.classes_.tolist() == ["down", "up"]
    assert model.feature_names_in_.tolist() == NAMES
    assert model.score(FRAME[NAMES], FRAME["label"]) > 0.9
    workers = table.sparkSession.sparkContext.defaultParallelism  # a doctest may have begun the session
    assert (told[-1].rows, told[-1].all_rows, told[-1].workers) == (1200, 1200, workers)
    assert told[-1].seconds_left == 0
    rows = on_spark.predict(model, table)
    rows = on_spark.predict(model, rows, what="predict_proba", to="share").toPandas()
    assert (rows["prediction"] == model.predict(rows[NAMES])).all()
    np.testing.assert_array_equal(np.stack(rows["share"]), model.predict_proba(rows[NAMES]))
    assert pack(on_spark.fit(untrained, table, **settings)) == pack(model)


def test_intervals_by_sql(spark, table):
    model = KernelRegressor(DEFAULT).fit(FRAME[NAMES], Y)
    spark.udf.register("reach", on_spark.predict_udf(model, "predict_interval", coverage=0.8))
    rows = table.selectExpr("*", "reach(struct(a, b, c, d)) AS reach").toPandas()
    ends = np.array([[row["lower"], row["upper"]] for row in rows["reach"]])
    np.testing.assert_array_equal(ends, model.predict_interval(rows[NAMES], 0.8))
    with pytest.raises(ValueError, match="has no predict_proba"):
        on_spark.predict(model, table, what="predict_proba")


def test_arrays_and_vectors_are_the_plain_columns(spark, table):
    from pyspark.ml.feature import VectorAssembler

    vectors = VectorAssembler(inputCols=NAMES[1:], outputCol="v").transform(table)
    arrays = vectors.selectExpr("a", "array(b, c, d) AS list", "v", "y")
    model = KernelRegressor(NOGD(20, eta=0.1, kernel=Gaussian(gamma=0.2)))
    plain = on_spark.fit(model, table, target="y", features=NAMES)
    for features in (["a", "list"], ["a", "v"]):
        told = []  # one part is told, too
        same = on_spark.fit(model, arrays, target="y", features=features, progress=told.append)
        np.testing.assert_array_equal(same.predict(X), plain.predict(FRAME[NAMES]))
        assert [(p.rows, p.all_rows, p.merges, p.seconds_left) for p in told] == [(1200, 1200, 0, 0)]
    rows = on_spark.predict(same, arrays, features=["a", "v"]).toPandas()
    np.testing.assert_array_equal(
        rows["prediction"], plain.predict(np.column_stack([rows["a"], np.stack(rows["list"])]))
    )


def test_tables_with_columns_of_any_kind(spark):
    n = 600
    colours = np.array(["red", "blue", "green"])[np.arange(n) % 3].astype(object)
    colours[500:] = "black"  # only in the last rows
    frame = pd.DataFrame(
        {
            "colour": colours,
            "size": np.where(np.arange(n) % 5, np.arange(n) % 11, np.nan),
            "when": pd.Timestamp("2024-05-01") + pd.to_timedelta(np.arange(n) * 7919, unit="s"),
            "open": np.arange(n) % 2 == 0,
        }
    )
    frame["y"] = (frame["colour"] == "black") * 4.0 + (frame["colour"] == "red") + frame["size"].fillna(3) / 5
    table = spark.createDataFrame(frame).coalesce(1)
    table = table.selectExpr("colour", "IF(isnan(size), NULL, size) AS size", "`when`", "open", "y")
    model = KernelRegressor(LinearPA(), columns="auto", shuffle=False)
    model = on_spark.fit(model, table.repartitionByRange(3, "when"), target="y", parts=1)
    assert model.encoder_.columns_ == {
        "colour": "category",
        "size": "number",
        "when": "time",
        "open": "boolean",
    }
    assert {"colour=black", "size missing"} <= set(model.encoder_.get_feature_names_out())
    rows = on_spark.predict(model, table).toPandas()
    np.testing.assert_allclose(
        rows["prediction"], model.predict(rows[["when", "colour", "open", "size"]]), atol=1e-12
    )


def test_what_pandas_makes_of_columns():
    """UDFs get their rows through pandas: whole numbers with gaps come as floats."""
    import pyarrow as pa

    columns = Columns(("at",), frozenset(), frozenset(), frozenset({"at"}), table=True)
    rows = features_of(pa.table({"at": pa.array([1.7e15, None])}), columns)
    assert rows.column("at").to_pylist() == [pd.Timestamp(1.7e15, unit="us", tz="UTC"), None]


def test_a_damaged_delta_and_a_killed_worker_are_done_again(spark, table, monkeypatch, tmp_path):
    settings = {"target": "y", "features": NAMES, "rows_per_part": 400, "parts": 2}
    right = pack(on_spark.fit(KernelRegressor(DEFAULT), table, **settings))
    whole, folder = parts_module._learnt, str(tmp_path)

    def first_time(what):
        path = os.path.join(folder, what.replace(" ", "-"))
        if os.path.exists(path):
            return False
        open(path, "w").close()
        return True

    def disturbed(base, blocks, columns, task):
        if first_time(f"killed {task}"):
            os.kill(os.getpid(), signal.SIGKILL)
        data = whole(base, blocks, columns, task)
        return data[:-9] + b"123456789" if first_time(f"damaged {task}") else data

    monkeypatch.setattr(parts_module, "_learnt", disturbed)
    told = []
    assert pack(on_spark.fit(KernelRegressor(DEFAULT), table, progress=told.append, **settings)) == right
    assert re.match(r"partition 1: not a delta: damaged", told[0].refused[0])
    monkeypatch.setattr(parts_module, "_learnt", lambda base, blocks, columns, task: b"nothing")
    with pytest.raises(MergeError, match="2 of 2 tasks failed 1 times, the first of them 'partition 1'"):
        on_spark.fit(KernelRegressor(DEFAULT), table, retries=0, **settings)


def test_wrong_tables(spark, table):
    gaps = table.selectExpr("IF(a > 2, NULL, a) AS a", "b", "y", "IF(a > 2, NULL, label) AS label")
    ragged = table.selectExpr("IF(a > 2, array(a), array(a, b)) AS list", "y")
    number = KernelRegressor(DEFAULT)
    for wrong, message in (
        (lambda: on_spark.fit(number, table, target="yy"), "no column 'yy'; did you mean 'y'"),
        (lambda: on_spark.fit(number, table, target="y"), "column 'label' is of type string, and the model"),
        (lambda: on_spark.fit(number, table, target="y", features=["y"]), "'y' is named twice"),
        (lambda: on_spark.fit(number, table.limit(0), target="y", features="a"), "no rows"),
        (lambda: on_spark.fit(number, table, target="y", features="a", parts=0), "parts must be"),
        (
            lambda: on_spark.fit(number, gaps, target="y", features="a"),
            "partition 0: row .*, column 'a': it has no",
        ),
        (lambda: on_spark.fit(KernelClassifier(), gaps, target="label"), "column 'label': .* have no label"),
        (
            lambda: on_spark.fit(number, ragged, target="y"),
            "column 'list': it has .* numbers, rows before it",
        ),
        (
            lambda: on_spark.fit(KernelRegressor("NOLANA"), table, target="y", features="a"),
            "NOLANA cannot be merged",
        ),
        (
            lambda: on_spark.fit(
                KernelRegressor(shuffle=False), table, target="y", features="a", rows_per_part=5
            ),
            "each partition is a part",
        ),
    ):
        with pytest.raises((SourceError, MergeError, ValueError), match=message):
            wrong()
    with pytest.raises(TypeError, match="classic Spark session is needed, got pandas"):
        on_spark.fit(number, FRAME, target="y")


def test_without_java(monkeypatch):
    monkeypatch.setattr(session_module.shutil, "which", lambda *args, **kwargs: None)
    with pytest.raises(RuntimeError, match="Spark needs Java 17 or later, and there is none"):
        session_module._check_java()
    monkeypatch.setattr(
        session_module.importlib, "import_module", lambda name: (_ for _ in ()).throw(ImportError)
    )
    with pytest.raises(ImportError, match=r'pip install "kernelstream\[spark\]"'):
        session_module.pyspark_module()


# ---- streams ----


@pytest.fixture(scope="module")
def stream(spark, tmp_path_factory):
    """A stream of three batches of two files."""
    folder = tmp_path_factory.mktemp("files")
    for i in range(6):
        FRAME[i * 200 : (i + 1) * 200].to_parquet(folder / f"{i}.parquet", index=False)
        os.utime(folder / f"{i}.parquet", (i, i))
    schema = "a DOUBLE, b DOUBLE, c DOUBLE, d DOUBLE, y DOUBLE, label STRING"
    return lambda: spark.readStream.schema(schema).option("maxFilesPerTrigger", 2).parquet(str(folder))


class Crash(Exception):
    pass


def run(stream, folder, model, crash=None, target="y"):
    """Learn the stream; ``crash``: the batch at which to die, and whether what it learnt is saved by then."""

    class Learner(on_spark.StreamLearner):
        def __call__(self, df, batch):
            if crash == (batch, "before"):
                raise Crash
            super().__call__(df, batch)
            if crash == (batch, "after"):
                raise Crash

    with Learner(model, folder, target=target, features=NAMES, parts=2) as learner:
        query = learner.start(stream(), availableNow=True)
        try:
            query.awaitTermination()
        except Exception:
            assert crash is not None
        else:
            assert crash is None
        return learner.model, learner.batch, learner.rows, learner.offsets


def test_a_killed_stream_ends_as_an_undisturbed_one(stream, tmp_path):
    model = KernelRegressor(DEFAULT)
    right, *position = run(stream, tmp_path / "right", model)
    assert position == [2, 1200, [{"logOffset": 2}]]
    for crash in ((1, "before"), (1, "after"), (2, "after")):
        run(stream, tmp_path / "killed", model, crash)
    again, *position = run(stream, tmp_path / "killed", model)
    assert pack(again) == pack(right)
    assert position == [2, 1200, [{"logOffset": 2}]]
    assert run(stream, tmp_path / "killed", model)[2] == 1200  # nothing is left to do


def test_a_stream_admits_classes_and_keeps_its_folder_to_itself(spark, stream, tmp_path):
    folder = tmp_path / "state"
    model, *_ = run(stream, folder, KernelClassifier(LinearPA()), target="label")
    assert model.classes_.tolist() == ["down", "up"]
    assert model.score(FRAME[NAMES], FRAME["label"]) > 0.6
    with pytest.raises(CheckpointError, match="is of another run, KernelClassifier"):
        on_spark.StreamLearner(KernelRegressor(), folder, target="y")
    with on_spark.StreamLearner(KernelClassifier(LinearPA()), folder, target="label") as learner:
        with pytest.raises(CheckpointError, match="in use by another run"):
            on_spark.StreamLearner(KernelClassifier(LinearPA()), folder, target="label")
        with pytest.raises(SourceError, match="no column 'label'"):
            learner.start(stream().drop("label"))
        (folder / "spark" / "offsets" / "4").write_text("v1\n{}\n{}")
        with pytest.raises(CheckpointError, match=r"batch 4 comes, but .* up to batch 2"):
            learner(None, 4)
        (folder / "spark" / "metadata").write_text(json.dumps({"id": "another"}))
        with pytest.raises(CheckpointError, match="batches of another query, up to the offsets"):
            learner(None, 4)
        assert learner.batch == 2


# ---- a model per key ----


def test_a_model_per_key(spark, table):
    keyed = table.selectExpr("*", "IF(a > 0, 'right', 'left') AS side")
    learner = KernelRegressor(NOGD(20, eta=0.1, kernel=Gaussian(gamma=0.2)))
    models = on_spark.fit_per_key(learner, keyed, key="side", target="y", features=NAMES, order="b").persist()
    for row in models.collect():
        own = FRAME[(FRAME["a"] > 0) == (row["side"] == "right")].sort_values("b")
        same = KernelRegressor(NOGD(20, eta=0.1, kernel=Gaussian(gamma=0.2))).partial_fit(
            own[NAMES], own["y"]
        )
        assert row["rows"] == len(own)
        np.testing.assert_array_equal(
            unpack(bytes(row["model"]))[0].predict(own[NAMES]), same.predict(own[NAMES])
        )
    more = keyed.selectExpr("*").union(keyed.limit(1).selectExpr(*NAMES, "y", "label", "'none' AS side"))
    rows = on_spark.predict_per_key(models, more, key="side", features=NAMES).toPandas()
    assert len(rows) == 1201
    assert rows["prediction"].isna().tolist() == (rows["side"] == "none").tolist()
    assert np.corrcoef(rows["prediction"].dropna(), rows["y"][rows["side"] != "none"])[0, 1] > 0.5
    lists = keyed.selectExpr("side", "array(a, b, c, d) AS list", "0 AS same", "y")
    settings = {"key": "side", "target": "y", "features": "list"}
    models = on_spark.fit_per_key(learner, lists, **settings).persist()
    ties = on_spark.fit_per_key(learner, lists, order="same", **settings)
    assert {row["side"]: row["model"] for row in ties.collect()} == {
        row["side"]: row["model"] for row in models.collect()
    }
    rows = on_spark.predict_per_key(models, lists, key="side", features="list").toPandas()
    own = {row["side"]: unpack(bytes(row["model"]))[0] for row in models.collect()}
    for side, some in rows.groupby("side"):
        np.testing.assert_array_equal(some["prediction"], own[side].predict(np.stack(some["list"])))


def test_a_model_per_key_of_a_stream(spark, stream, tmp_path):
    keyed = stream().selectExpr("*", "IF(a > 0, 'right', 'left') AS side")
    model = KernelRegressor(LinearPA())
    settings = {"key": "side", "target": "y", "features": NAMES, "order": "b"}
    models = on_spark.learn_per_key(model, keyed, **settings)
    assert on_spark.learn_per_key(model, keyed, forget_after="7 days", **settings).isStreaming
    writer = models.writeStream.outputMode("update").format("memory").queryName("devices")
    query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    query.awaitTermination()
    rows = spark.table("devices").toPandas().sort_values("rows")
    own = FRAME[FRAME["a"] > 0]
    assert rows[rows["side"] == "right"]["rows"].max() == len(own)
    same = KernelRegressor(LinearPA())
    for i in range(3):
        batch = own[(own.index >= 400 * i) & (own.index < 400 * (i + 1))].sort_values("b")
        same.partial_fit(batch[NAMES], batch["y"])
    last = unpack(bytes(rows[rows["side"] == "right"]["model"].iloc[-1]))[0]
    np.testing.assert_array_equal(last.predict(X), same.predict(X))


# ---- the guide ----


def test_the_guide_runs(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guide = (Path(__file__).parent.parent / "docs" / "spark.md").read_text(encoding="utf-8")
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        exec(block, names)
