"""Columns of a DataFrame as rows for a model: numbers, arrays and vectors, or a table with columns of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kernelstream.persistence import Model
from kernelstream.spark.session import pyspark_module
from kernelstream.tables.errors import SourceError, did_you_mean

__all__ = ["Columns", "columns_of", "features_of", "is_table", "rows_of", "values_of"]

_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal", "boolean")


class Columns(NamedTuple):
    """Which columns of a DataFrame a model has to do with, and how they come to the workers."""

    features: tuple[str, ...]
    lists: frozenset[str]  # arrays and vectors
    vectors: frozenset[str]
    times: frozenset[str]  # moments, which travel as microseconds
    table: bool  # the model knows columns of any kind
    target: str | None = None
    weight: str | None = None

    def select(self) -> list[Any]:
        """Columns of Spark, each under its own name."""
        functions = pyspark_module(".sql.functions")
        chosen = []
        for name in self.features:
            column = functions.col(f"`{name}`")
            if name in self.vectors:
                column = pyspark_module(".ml.functions").vector_to_array(column)
            elif name in self.times:
                column = functions.unix_micros(column)
            chosen.append(column.alias(name))
        others = dict.fromkeys(name for name in (self.target, self.weight) if name is not None)
        return chosen + [functions.col(f"`{name}`").alias(name) for name in others]


def columns_of(
    df: Any,
    model: Model | None,
    features: str | Sequence[str] | None,
    target: str | None = None,
    weight: str | None = None,
    key: str | None = None,
    order: str | None = None,
) -> Columns:
    """What the columns of a DataFrame are; ``order`` may be a feature as well, if it is named as one.

    Without a model any kind of column is taken: whether it knows tables is then for the caller to say.
    """
    types = {field.name: field.dataType for field in df.schema.fields}
    if len(types) < len(df.columns):
        twice = next(name for name in df.columns if df.columns.count(name) > 1)
        raise SourceError(f"the DataFrame has two columns called {twice!r}")
    others = [name for name in (target, weight, key) if name is not None]
    if features is None:
        known = None if model is None else _known_names(model)
        chosen = known if known is not None else [name for name in types if name not in (*others, order)]
    else:
        chosen = [features] if isinstance(features, str) else list(features)
    for name in (*others, *([] if order is None else [order]), *chosen):
        if name not in types:
            raise SourceError(f"the DataFrame has no column {name!r}; {did_you_mean(name, types)}")
    both = [name for name in chosen if name in others or chosen.count(name) > 1]
    if both or not chosen:
        what = f"the column {both[0]!r} is named twice" if both else "no column is left for the features"
        raise SourceError(f"{what}: the features are {chosen}, the others {others}")
    table = model is not None and is_table(model)
    kinds = {name: _kind(types[name]) for name in chosen}
    for name, kind in kinds.items():
        if table and kind in ("vector", "array"):
            raise SourceError(f"column {name!r} holds {kind}s: with columns= a column has one value per row")
        if model is not None and not table and kind not in ("number", "vector", "array"):
            raise SourceError(
                f"column {name!r} is of type {types[name].simpleString()}, and the model takes numbers only: give it "
                'columns="auto" for categories, dates and texts, or leave the column out with features='
            )
    return Columns(
        features=tuple(chosen),
        lists=frozenset(name for name, kind in kinds.items() if kind in ("vector", "array")),
        vectors=frozenset(name for name, kind in kinds.items() if kind == "vector"),
        times=frozenset(name for name, kind in kinds.items() if kind == "moment"),
        table=table,
        target=target,
        weight=weight,
    )


def is_table(model: Model) -> bool:
    """Whether a model knows columns of any kind."""
    return model.columns is not None or "encoder_" in model.__dict__


def _known_names(model: Model) -> list[str] | None:
    """The columns that a trained model knows by name."""
    if "encoder_" in model.__dict__:
        return list(model.encoder_.columns_)
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _kind(kind: Any) -> str:
    if type(kind).__name__ == "VectorUDT":
        return "vector"
    name = kind.typeName()
    if name == "array":
        return "array" if kind.elementType.typeName() in _NUMBERS else "other"
    return "number" if name in _NUMBERS else "moment" if name == "timestamp" else name


def rows_of(table: Any, columns: Columns) -> tuple[Any, Any, Any]:
    """The rows, labels and weights of an Arrow table that ``Columns.select`` made."""
    return features_of(table, columns), _labels(table, columns), _weights(table, columns)


def features_of(table: Any, columns: Columns) -> Any:
    """The rows of an Arrow table that ``Columns.select`` made, as an estimator takes them."""
    import pandas as pd
    import pyarrow as pa

    if columns.table:
        chosen = {name: table.column(name) for name in columns.features}
        for name in columns.times:
            whole = chosen[name].cast(pa.int64(), safe=False)  # pandas makes floats of those with gaps
            chosen[name] = whole.cast(pa.timestamp("us", "UTC"))
        return pa.table(chosen)
    parts = []
    for name in columns.features:
        column = _whole(table, name, "fill it, or give the model columns='auto', which knows gaps")
        if name in columns.lists:
            lengths = np.asarray(pa.compute.list_value_length(column))
            odd = np.flatnonzero(lengths != lengths[0]) if len(lengths) else lengths
            if len(odd):
                raise SourceError(
                    f"row {odd[0]}, column {name!r}: it has {lengths[odd[0]]} numbers, rows before it {lengths[0]}"
                )
            numbers = column.flatten().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            parts.append(numbers.reshape(len(column), -1))
        else:
            parts.append(_numbers(column)[:, None])
    X = np.hstack(parts)
    return X if columns.lists else pd.DataFrame(X, columns=list(columns.features), copy=False)


def _whole(table: Any, name: str, advice: str) -> Any:
    """A column as one array, in which nothing is missing."""
    column = table.column(name).combine_chunks()
    if column.null_count:
        row = int(np.argmax(np.asarray(column.is_null())))
        raise SourceError(f"row {row}, column {name!r}: it has no value; {advice}")
    return column


def _numbers(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _labels(table: Any, columns: Columns) -> Any:
    if columns.target is None:
        return None
    return values_of(_whole(table, columns.target, "every row to learn needs one"))


def values_of(column: Any) -> Any:
    """Labels or targets as an array."""
    import pyarrow as pa

    if pa.types.is_decimal(column.type):
        return _numbers(column)
    if (
        pa.types.is_integer(column.type)
        or pa.types.is_floating(column.type)
        or pa.types.is_boolean(column.type)
    ):
        return column.to_numpy(zero_copy_only=False)
    return np.array(column.to_pylist())


def _weights(table: Any, columns: Columns) -> Any:
    if columns.weight is None:
        return None
    return _numbers(_whole(table, columns.weight, "every row needs a weight, or none"))
