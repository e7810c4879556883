"""A DataFrame of any size, learnt in one pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernelstream.estimators import KernelClassifier
from kernelstream.merging import Progress
from kernelstream.persistence import Model, pack, unpack
from kernelstream.spark.columns import columns_of
from kernelstream.spark.parts import (
    Parts,
    learn_parts,
    need_classic,
    need_merging,
    survey,
)
from kernelstream.spark.session import pyspark_module
from kernelstream.tables.errors import SourceError
from kernelstream.validate import check_integer

__all__ = ["fit"]

_ROWS_PER_PART, _MOST_PARTS = 20_000, 4_000
_KEY = "_kernelstream_key"


def fit(
    model: Model,
    df: Any,
    *,
    target: str,
    features: str | Sequence[str] | None = None,
    weight: str | None = None,
    classes: Any = None,
    rows_per_part: int | None = None,
    parts: int = 4,
    retries: int = 3,
    progress: Callable[[Progress], object] | None = None,
) -> Model:
    """A model that has learnt a DataFrame once; the model given, untrained or not, stays as it is.

    A model with ``shuffle=True``, the default, takes the DataFrame for a set: Spark deals the rows to parts of about equal size,
    at random, by the places of the rows. With ``shuffle=False`` each partition is a part, and they are learnt in their order. The
    first part is learnt alone by an untrained model, and gives the base. The result depends on the rows, on the DataFrame's
    partitions and on these numbers, not on how many workers there are or how often a task is repeated.

    Args:
        model: a ``KernelClassifier`` or a ``KernelRegressor`` whose learner merges (``learner.merge_guarantee``).
        df: a DataFrame; in each epoch some of its partitions are read, each once in all.
        target: the column of labels or targets.
        features: the other columns to learn from: numbers, arrays of numbers, vectors of ``pyspark.ml``; with ``columns=`` of the
            model also categories, dates, texts and gaps. By default all but the target and the weight.
        weight: a column of weights.
        classes: all classes; by default they are looked for in the DataFrame, in a pass over its target.
        rows_per_part: how many rows a part learns before it is merged, if rows are shuffled; by default 20,000, and more where
            that would be more than 4,000 parts. Fewer are nearer to one pass, and cost more merges.
        parts: how many parts go on from the same base at once: at least the number of workers, to give each work.
        retries: how often a part is done again whose delta comes back damaged or of another base; Spark has its own number for
            workers that fail (``spark.task.maxFailures``).
        progress: called after each epoch; once, if there is one part only.

    >>> from kernelstream import KernelRegressor
    >>> from kernelstream.spark import local_session
    >>> df = local_session(1).range(3000).selectExpr("id % 10 AS a", "id % 7 AS b", "(id % 10) * (id % 7) AS y")
    >>> model = fit(KernelRegressor(), df, target="y", rows_per_part=1000)
    >>> bool(abs(model.predict(df.limit(1).toPandas()[["a", "b"]])[0]) < 1)
    True
    """
    check_integer("parts", parts, low=1)
    need_classic(df)
    need_merging(model)
    columns = columns_of(df, model, features, target, weight)
    base = pack(model) if "learner_" in model.__dict__ else None
    rows, found = survey(df, target, labels=isinstance(model, KernelClassifier) and classes is None)
    if not rows:
        raise SourceError("the DataFrame has no rows")
    classes = found if classes is None else classes
    chosen = df.select(*columns.select())
    if model.shuffle:
        size = (
            rows_per_part if rows_per_part is not None else max(_ROWS_PER_PART, math.ceil(rows / _MOST_PARTS))
        )
        check_integer("rows_per_part", size, low=1)
        chosen = _dealt(chosen, math.ceil(rows / size), model.random_state)
    elif rows_per_part is not None:
        raise ValueError(
            "rows_per_part is for rows in a random order: with shuffle=False each partition is a part; change them with "
            "df.repartitionByRange or spark.sql.files.maxPartitionBytes"
        )
    learnt = learn_parts(
        base,
        model,
        Parts(chosen, columns),
        at_once=parts,
        retries=retries,
        classes=classes,
        labels=classes,
        all_rows=rows,
        progress=progress,
    )
    assert learnt is not None
    return unpack(learnt)[0]


def _dealt(df: Any, parts: int, random_state: Any) -> Any:
    """The rows at random in partitions of about equal size, in a random order; both depend on the rows' places alone."""
    functions = pyspark_module(".sql.functions")
    seed = int(random_state) if isinstance(random_state, int | np.integer) else 0
    key = functions.xxhash64(functions.monotonically_increasing_id(), functions.lit(seed))
    return df.withColumn(_KEY, key).repartition(parts, _KEY).sortWithinPartitions(_KEY).drop(_KEY)
