"""A model per key, of tables and of streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from kernelstream.estimators import KernelClassifier
from kernelstream.persistence import Model, pack, unpack
from kernelstream.spark.columns import Columns, columns_of, is_table, rows_of
from kernelstream.spark.parts import (
    Wrong,
    fitted,
    told,
)
from kernelstream.spark.predictions import predictions_of
from kernelstream.spark.session import pyspark_module
from kernelstream.tables.errors import SourceError
from kernelstream.validate import check_integer

__all__ = ["fit_per_key", "learn_per_key", "predict_per_key"]

KEY, PLACE, ROW = "_kernelstream_key", "_kernelstream_place", "_kernelstream_row"


def fit_per_key(
    model: Model,
    df: Any,
    *,
    key: str,
    target: str,
    features: str | Sequence[str] | None = None,
    weight: str | None = None,
    order: str | None = None,
) -> Any:
    """A DataFrame with the key, ``rows`` and ``model``: of each key a model of its own, as the bytes of a model file.

    Args:
        model: an untrained model, with any learner: nothing is merged.
        df: a DataFrame; the rows of one key must fit into the memory of a worker.
        key: the column that says which model a row is for.
        target: as in ``fit``.
        features: as in ``fit``; by default all but the columns named otherwise.
        weight: as in ``fit``.
        order: a column that the rows of a key are ordered by; by default, and among equals, the order of the DataFrame.

    >>> from kernelstream import KernelRegressor
    >>> from kernelstream.spark import local_session
    >>> df = local_session(1).range(40).selectExpr("id % 2 AS device", "id AS x", "id * (id % 2) AS y")
    >>> models = fit_per_key(KernelRegressor(), df, key="device", target="y")
    >>> sorted((row.device, row.rows) for row in models.collect())
    [(0, 20), (1, 20)]
    """
    functions = pyspark_module(".sql.functions")
    columns = columns_of(df, model, features, target, weight, key, order)
    row = functions.monotonically_increasing_id()
    place = row if order is None else functions.col(f"`{order}`")
    chosen = df.select(
        functions.col(f"`{key}`").alias(KEY), place.alias(PLACE), row.alias(ROW), *columns.select()
    )

    def learn(group: tuple[Any, ...], table: Any) -> Any:
        import pyarrow as pa

        table = table.sort_by([(PLACE, "ascending"), (ROW, "ascending")])
        data = told(f"key {group[0].as_py()!r}", lambda: pack(fitted(clone(model), table, columns)))
        if isinstance(data, Wrong):
            raise data.error()
        return pa.table(
            {KEY: table.column(KEY)[:1], "rows": [table.num_rows], "model": pa.array([data], pa.binary())}
        )

    schema = f"{KEY} {df.schema[key].dataType.simpleString()}, rows long, model binary"
    return chosen.groupBy(KEY).applyInArrow(learn, schema).withColumnRenamed(KEY, key)


def predict_per_key(
    models: Any,
    df: Any,
    *,
    key: str,
    features: str | Sequence[str],
    to: str = "prediction",
    type: str = "double",
) -> Any:
    """The rows of a DataFrame with what the models of their keys predict; keys without a model get null.

    Args:
        models: what ``fit_per_key`` gave.
        df: a DataFrame.
        key: as in ``fit_per_key``.
        features: as in ``fit_per_key``.
        to: the name of the new column.
        type: its type in Spark, such as "string" for classes that are texts.

    >>> from kernelstream import KernelRegressor
    >>> from kernelstream.spark import local_session
    >>> df = local_session(1).range(40).selectExpr("id % 2 AS device", "id AS x", "id * (id % 2) AS y")
    >>> models = fit_per_key(KernelRegressor(), df, key="device", target="y", features="x")
    >>> predict_per_key(models, df, key="device", features="x").columns
    ['device', 'x', 'y', 'prediction']
    """
    functions = pyspark_module(".sql.functions")
    names = [features] if isinstance(features, str) else list(features)
    columns = columns_of(df, None, names, key=key)
    packed = functions.struct(*columns.select()).alias(PLACE)
    left = df.select("*", functions.col(f"`{key}`").alias(KEY), packed)
    right = models.select(functions.col(f"`{key}`").alias(KEY), "model")
    schema = pyspark_module(".sql.types").StructType([*df.schema.fields]).add(to, type)
    kind = pyspark_module(".sql.pandas.types").to_arrow_type(schema[to].dataType)

    def answer(rows: Any, found: Any) -> Any:
        import pyarrow as pa

        kept = rows.drop_columns([KEY, PLACE])
        if not found.num_rows or not rows.num_rows:
            return kept.append_column(to, pa.nulls(rows.num_rows, kind))
        model = unpack(found.column("model")[0].as_py())[0]
        chosen = pa.Table.from_batches(
            [pa.RecordBatch.from_struct_array(s) for s in rows.column(PLACE).chunks]
        )
        predictions = predictions_of(model, "predict", 0.9, chosen, columns._replace(table=is_table(model)))
        return kept.append_column(to, pa.array(predictions.tolist(), kind))

    return left.groupBy(KEY).cogroup(right.groupBy(KEY)).applyInArrow(answer, schema)


def learn_per_key(
    model: Model,
    df: Any,
    *,
    key: str,
    target: str,
    order: str,
    features: str | Sequence[str] | None = None,
    weight: str | None = None,
    forget_after: str | None = None,
    max_bytes: int = 1 << 24,
) -> Any:
    """A streaming DataFrame of models, one per key, each of which learns the rows of its key and is kept in Spark's state.

    For each batch and key with new rows there is one row: the key, ``rows`` learnt in all, the ``loss`` of the predictions made
    just before each row was learnt (the share of wrong classes, or the mean squared error) and the ``model`` as the bytes of a
    model file. Write it in the output mode "update". A batch that is done again starts from the state before it, so each row
    counts once; Spark's ``checkpointLocation`` keeps all states.

    Args:
        model: an untrained model, with any learner that has a budget.
        df: a streaming DataFrame.
        key: the column that says which model a row is for.
        target: as in ``fit``.
        features: as in ``fit``; by default all but the columns named otherwise.
        weight: as in ``fit``.
        order: a column that the rows of a key are ordered by within a batch, such as their time. Among equals the order is
            Spark's, which may change when a batch is done again: the same bits need values that differ.
        forget_after: how long a key may have no rows, for example "7 days" of the clock; then its model is forgotten.
            Spark looks for such keys again and again, so a query with the trigger ``availableNow`` would not end.
        max_bytes: the largest model file that a key may have; more is an error that names the key.
    """
    state = pyspark_module(".sql.streaming.state")
    functions = pyspark_module(".sql.functions")
    check_integer("max_bytes", max_bytes, low=1)
    columns = columns_of(df, model, features, target, weight, key, order)
    chosen = df.select(
        functions.col(f"`{key}`").alias(KEY), functions.col(f"`{order}`").alias(PLACE), *columns.select()
    )
    wait = None if forget_after is None else _milliseconds(df, forget_after)

    def learn(group: tuple[Any, ...], frames: Iterable[Any], state: Any) -> Iterator[Any]:
        import pandas as pd
        import pyarrow as pa

        if state.hasTimedOut:
            state.remove()
            return
        data, rows = state.get if state.exists else (None, 0)
        frame = pd.concat(list(frames)).sort_values(PLACE, kind="stable").drop(columns=[KEY, PLACE])
        table = pa.Table.from_pandas(frame, preserve_index=False)
        current = clone(model) if data is None else unpack(bytes(data))[0]
        found = told(f"key {group[0]!r}", lambda: _run(current, table, columns))
        if isinstance(found, Wrong):
            raise found.error()
        data = pack(current)
        if len(data) > max_bytes:
            raise SourceError(
                f"key {group[0]!r}: its model needs {len(data):,} bytes, more than max_bytes={max_bytes:,}: take a smaller budget"
            )
        state.update((data, rows + len(frame)))
        if wait is not None:
            state.setTimeoutDuration(wait)
        yield pd.DataFrame({KEY: [group[0]], "rows": [rows + len(frame)], "loss": [found], "model": [data]})

    timeout = (
        state.GroupStateTimeout.NoTimeout if wait is None else state.GroupStateTimeout.ProcessingTimeTimeout
    )
    return (
        chosen.groupBy(KEY)
        .applyInPandasWithState(
            learn,
            f"{KEY} {df.schema[key].dataType.simpleString()}, rows long, loss double, model binary",
            "model binary, rows long",
            "update",
            timeout,
        )
        .withColumnRenamed(KEY, key)
    )


def _run(model: Model, table: Any, columns: Columns) -> float:
    """Predict each row, then learn it; the loss of the predictions."""
    X, y, weights = rows_of(table, columns)
    before = model.predict_then_learn(X, y, sample_weight=weights)
    if isinstance(model, KernelClassifier):
        return float(np.mean(before != y))
    return float(np.mean((before - y) ** 2))


def _milliseconds(df: Any, duration: str) -> int:
    """A duration in words, as Spark reads it."""
    interval = df.sparkSession.sql(
        "SELECT unix_millis(timestamp_seconds(0) + CAST(:text AS INTERVAL))", args={"text": duration}
    )
    return int(interval.first()[0])
