"""Predictions as columns: pandas UDFs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from kernelstream.estimators import KernelClassifier
from kernelstream.persistence import Model, pack, unpack
from kernelstream.spark.columns import Columns, columns_of, features_of, is_table
from kernelstream.spark.session import pyspark_module

__all__ = ["What", "predict", "predict_udf", "predictions_of"]

What = Literal["predict", "predict_proba", "predict_interval"]


def predict_udf(model: Model, what: What = "predict", *, coverage: float = 0.9) -> Any:
    """A pandas UDF that takes a struct of the model's columns, for ``select`` and for SQL (``spark.udf.register``).

    Vectors of ``pyspark.ml`` are to be given as arrays (``vector_to_array``); ``predict`` does so by itself.

    Args:
        model: a trained model.
        what: "predict": classes or values; "predict_proba": an array of probabilities in the order of ``model.classes_``;
            "predict_interval": a struct of ``lower`` and ``upper``.
        coverage: of intervals.

    >>> from kernelstream import KernelRegressor
    >>> from kernelstream.spark import fit, local_session
    >>> spark = local_session(1)
    >>> df = spark.range(100).selectExpr("id AS x", "2 * id AS y")
    >>> twice = spark.udf.register("twice", predict_udf(fit(KernelRegressor(), df, target="y")))
    >>> df.selectExpr("twice(struct(x)) AS p").columns
    ['p']
    """
    return _udf(model, what, coverage, None)


def _udf(model: Model, what: What, coverage: float, columns: Columns | None) -> Any:
    import pandas as pd

    _check_what(model, what)
    data = pack(model)

    def answer(batches: Any) -> Any:
        for frame in batches:
            yield _answers(data, what, coverage, frame, columns)

    result = pd.DataFrame if what == "predict_interval" else pd.Series
    answer.__annotations__ = {"batches": Iterator[pd.DataFrame], "return": Iterator[result]}  # type: ignore[valid-type]
    return pyspark_module(".sql.functions").pandas_udf(answer, _type_of(model, what))


def _check_what(model: Model, what: What) -> None:
    if what not in ("predict", "predict_proba", "predict_interval"):
        raise ValueError(f"what must be 'predict', 'predict_proba' or 'predict_interval', got {what!r}")
    if not hasattr(model, what):
        raise ValueError(f"a {type(model).__name__} of {model.learner_!r} has no {what}")


def _type_of(model: Model, what: What) -> str:
    """The type of Spark that predictions have."""
    if what != "predict":
        return "array<double>" if what == "predict_proba" else "lower double, upper double"
    kind = model.classes_.dtype.kind if isinstance(model, KernelClassifier) else "f"
    return {"f": "double", "i": "long", "u": "long", "b": "boolean"}.get(kind, "string")


@lru_cache(4)
def _model(data: bytes) -> Model:
    return unpack(data)[0]


def _answers(data: bytes, what: What, coverage: float, frame: Any, columns: Columns | None) -> Any:
    import pandas as pd
    import pyarrow as pa

    model = _model(data)
    if columns is None:
        names = [str(name) for name in frame.columns]
        lists = [name for name in names if len(frame) and isinstance(frame[name].iloc[0], np.ndarray | list)]
        columns = Columns(tuple(names), frozenset(lists), frozenset(), frozenset(), is_table(model))
    answers = predictions_of(
        model, what, coverage, pa.Table.from_pandas(frame, preserve_index=False), columns
    )
    if what == "predict_interval":
        return pd.DataFrame(answers, columns=["lower", "upper"])
    return pd.Series(list(answers) if answers.ndim == 2 else answers)


def predictions_of(model: Model, what: What, coverage: float, table: Any, columns: Columns) -> Any:
    """What a model predicts for an Arrow table."""
    X = features_of(table, columns)
    return np.asarray(
        model.predict_interval(X, coverage) if what == "predict_interval" else getattr(model, what)(X)
    )


def predict(
    model: Model,
    df: Any,
    *,
    features: str | Sequence[str] | None = None,
    what: What = "predict",
    coverage: float = 0.9,
    to: str = "prediction",
) -> Any:
    """The DataFrame with one more column: what the model predicts. Streaming DataFrames, too.

    Args:
        model: a trained model.
        df: a DataFrame.
        features: as in ``fit``; by default the columns that the model knows by name, else all.
        what: as in ``predict_udf``.
        coverage: of intervals.
        to: the name of the new column.

    >>> from kernelstream import KernelRegressor
    >>> from kernelstream.spark import fit, local_session
    >>> df = local_session(1).range(100).selectExpr("id AS x", "2 * id AS y")
    >>> predict(fit(KernelRegressor(), df, target="y"), df).columns
    ['x', 'y', 'prediction']
    """
    columns = columns_of(df, model, features)
    struct = pyspark_module(".sql.functions").struct(*columns.select())
    return df.withColumn(to, _udf(model, what, coverage, columns)(struct))
