"""Partitions of a DataFrame, learnt by the workers: deltas, a tree that puts them together, and errors with their place."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from kernelstream import merging
from kernelstream.errors import CapacityError, MergeError
from kernelstream.estimators import as_learner
from kernelstream.merging import Progress
from kernelstream.persistence import Model, pack
from kernelstream.spark.columns import Columns, rows_of, values_of
from kernelstream.spark.session import pyspark_module
from kernelstream.tables.errors import SourceError

__all__ = ["Parts", "Wrong", "fitted", "learn_parts", "need_classic", "need_merging", "survey", "told"]

_FAN_IN = 8  # deltas that one task puts together
_MOST_CLASSES = 10_000


class Wrong(NamedTuple):
    """What a part found wrong with its rows: to be done again it need not be."""

    merging: bool
    message: str

    def error(self) -> ValueError:
        """What to raise."""
        return MergeError(self.message) if self.merging else SourceError(self.message)


class Parts:
    """The partitions of a DataFrame, which workers learn; each is read once.

    Args:
        df: with the columns to learn, as ``Columns.select`` chose them.
        columns: what they are.
        named: what stands behind a partition's name in errors, and in the names of tasks.
    """

    def __init__(self, df: Any, columns: Columns, named: str = "") -> None:
        self.columns, self.named = columns, named
        self.context = df.sparkSession.sparkContext
        self.blocks = df.mapInArrow(_block_maker(), "block binary").rdd
        self.count = self.blocks.getNumPartitions()

    def task(self, place: int) -> str:
        """The name of a partition's task: the same whenever it is done."""
        return f"partition {place}{self.named}"

    def first(self, model: Model, classes: Any) -> tuple[bytes | None, int, int]:
        """An untrained model that has learnt the first partition with rows; its rows, and how many partitions are done."""
        columns, named = self.columns, self.task
        for place in range(self.count):
            begin = partial(_begun, model, columns=columns, classes=classes, task=named(place))
            found = self._some([place]).mapPartitions(partial(_alone, begin)).collect()[0]
            if isinstance(found, Wrong):
                raise found.error()
            if found is not None:
                return *found, place + 1
        return None, 0, self.count

    def learn(self, base: bytes, tasks: list[str], places: dict[str, int]) -> list[bytes]:
        """The deltas of some partitions, put together in a tree by the workers."""
        columns, of = self.columns, merging.digest(base)
        shared = self.context.broadcast(base)
        order = sorted(tasks, key=places.__getitem__)
        deltas = self._some([places[task] for task in order]).mapPartitionsWithIndex(
            lambda i, blocks: [(i, _learnt(shared.value, blocks, columns, order[i]))]
        )
        names, count = order, len(order)
        while count > _FAN_IN:
            count = math.ceil(count / _FAN_IN)
            groups = deltas.map(lambda pair: (pair[0] // _FAN_IN, pair)).groupByKey(count)
            deltas = groups.mapValues(partial(_joined, of=of, names=names))
            names = []
        found = _joined(deltas.collect(), of, names)
        shared.destroy()
        if isinstance(found, Wrong):
            raise found.error()
        return [found]

    def _some(self, places: list[int]) -> Any:
        """Some partitions, without a look at the others, in ascending order."""
        jvm = self.context._jvm
        chosen = jvm.PythonUtils.toSeq(places).toSet()
        pruned = jvm.org.apache.spark.rdd.PartitionPruningRDD.create(self.blocks._jrdd.rdd(), chosen)
        return type(self.blocks)(pruned.toJavaRDD(), self.context, self.blocks._jrdd_deserializer)


def _block_maker() -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Batches of Arrow as bytes, which stand for any columns; a function inside, so that its workers need not import us."""

    def to_blocks(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            yield pa.record_batch({"block": pa.array([sink.getvalue().to_pybytes()], pa.binary())})

    return to_blocks


def _alone(work: Callable[[Any], Any], blocks: Iterable[Any]) -> list[Any]:
    return [work(blocks)]


def _from_blocks(blocks: Iterable[Any]) -> Any:
    """The table of all blocks; None if there is none."""
    import pyarrow as pa

    tables = [pa.ipc.open_stream(bytes(row.block)).read_all() for row in blocks]
    tables = [table for table in tables if table.num_rows]
    return pa.concat_tables(tables) if tables else None


def told(task: str, work: Callable[[], Any]) -> Any:
    """What the work gives, or what it finds wrong with its rows: Spark would only do it again."""
    try:
        return work()
    except (ValueError, TypeError, CapacityError) as error:
        message = str(error) if task in str(error) else f"{task}: {error}"
        return Wrong(isinstance(error, MergeError), message)


def _begun(model: Model, blocks: Iterable[Any], columns: Columns, classes: Any, task: str) -> Any:
    """A model that has learnt these rows alone, as bytes, and how many they are; None if there are none."""

    def work() -> tuple[bytes, int] | None:
        table = _from_blocks(blocks)
        if table is None:
            return None
        known = {} if classes is None else {"classes": classes}
        return pack(fitted(clone(model), table, columns, **known)), table.num_rows

    return told(task, work)


def fitted(model: Model, table: Any, columns: Columns, **known: Any) -> Model:
    """The model, which has learnt a table."""
    X, y, weights = rows_of(table, columns)
    model.partial_fit(X, y, sample_weight=weights, **known)
    return model


def _learnt(base: bytes, blocks: Iterable[Any], columns: Columns, task: str) -> Any:
    """The delta of these rows."""

    def work() -> bytes:
        table = _from_blocks(blocks)
        X, y, weights = (None, np.zeros(0), None) if table is None else rows_of(table, columns)
        return merging.delta(base, X, y, task=task, sample_weight=weights)

    return told(task, work)


def _joined(pairs: Iterable[tuple[int, Any]], of: str, names: Sequence[str]) -> Any:
    """The deltas of some parts as one."""
    ordered = sorted(pairs, key=lambda pair: pair[0])
    for _, found in ordered:
        if isinstance(found, Wrong):
            return found
    return merging.combine(
        [data for _, data in ordered], of=of, names=[names[place] for place, _ in ordered] if names else ()
    )


def learn_parts(
    base: bytes | None,
    model: Model,
    parts: Parts,
    *,
    at_once: int,
    retries: int,
    classes: Any,
    labels: Any = None,
    all_rows: int | None = None,
    rows: int = 0,
    progress: Callable[[Progress], object] | None,
) -> bytes | None:
    """The model that has learnt all parts, some at once; None if there was no row, and no model before.

    ``classes``: all there will ever be. ``labels``: those of these rows.
    """
    began, done = time.monotonic(), 0
    if base is None:
        base, first_rows, done = parts.first(model, classes)
        rows += first_rows
        if base is None:
            return None
    if labels is not None:
        base = merging.admit(base, labels)
    places = {parts.task(place): place for place in range(done, parts.count)}
    tasks = list(places)
    workers = parts.context.defaultParallelism
    if progress is not None and not tasks:  # the first part was all there is
        progress(Progress(rows, all_rows, 0, 0, time.monotonic() - began, workers))
    return merging.in_epochs(
        base,
        (tasks[at : at + at_once] for at in range(0, len(tasks), at_once)),
        lambda base, some: parts.learn(base, some, places),
        retries=retries,
        all_rows=all_rows,
        rows=rows,
        workers=workers,
        progress=progress,
    )


def need_classic(df: Any) -> None:
    """Refuse a DataFrame without partitions to choose from."""
    if not hasattr(df, "_jdf"):
        what = type(df).__module__ + "." + type(df).__name__
        raise TypeError(
            f"a DataFrame of a classic Spark session is needed, got {what}: Spark Connect has no partitions to choose from"
        )


def need_merging(model: Model) -> None:
    """Refuse a learner that does not merge, before anything is done."""
    learner = model.learner_ if "learner_" in model.__dict__ else as_learner(model.learner)
    if not learner.merge_guarantee:
        raise MergeError(f"models of {type(learner).__name__} cannot be merged: {learner.merge_refusal}")


def survey(df: Any, target: str, *, labels: bool) -> tuple[int, Any]:
    """How many rows there are and, if asked for, all labels: a pass over the target."""
    if not labels:
        return df.count(), None
    column = pyspark_module(".sql.functions").col(f"`{target}`")
    counts = df.groupBy(column.alias(target)).count().limit(_MOST_CLASSES + 1).toArrow()
    if counts.num_rows > _MOST_CLASSES:
        raise SourceError(
            f"column {target!r} has more than {_MOST_CLASSES:,} different labels: take a KernelRegressor, or give classes="
        )
    rows, column = counts.column(1).to_numpy(), counts.column(0)
    if column.null_count:
        lacking = rows[np.asarray(column.is_null())][0]
        raise SourceError(f"column {target!r}: {lacking:,} of {rows.sum():,} rows have no label")
    return int(rows.sum()), np.unique(values_of(column.combine_chunks()))
