"""Structured Streaming: each batch counts once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from sklearn.base import clone

from kernelstream.checkpoint import Checkpoint
from kernelstream.errors import CheckpointError
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
from kernelstream.validate import check_integer

__all__ = ["StreamLearner"]


class StreamLearner:
    """Learns the batches of Structured Streaming; each counts once, whatever is killed.

    After each batch the model, the number of the batch and the offsets of its sources are written to one file, atomically. A
    batch that Spark gives again after a crash is known by its number and left out; one that was not finished is learnt from the
    model before it. So the final model is that of a stream without crashes, to the bit.

    Args:
        model: as in ``fit``. If the folder has a model, that one goes on.
        folder: a folder of the driver's machine, on a disk that outlives it: the model's files, and Spark's own in ``spark/``. It
            is made if it does not exist.
        target, features, weight, classes, parts, retries: as in ``fit``. Without ``classes``, new ones are admitted before the
            batch that has them is learnt. Rows come as they are: each partition of a batch is a part.
        progress: called after each epoch of each batch; rows are those of all batches so far, the time left is that of the batch.

    >>> import tempfile
    >>> from kernelstream import KernelRegressor
    >>> from kernelstream.spark import local_session
    >>> spark = local_session(1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     spark.range(50).selectExpr("id AS x", "2 * id AS y").coalesce(1).write.parquet(f"{folder}/rows")
    ...     stream = spark.readStream.schema("x LONG, y LONG").parquet(f"{folder}/rows")
    ...     with StreamLearner(KernelRegressor(), f"{folder}/state", target="y") as learner:
    ...         learner.start(stream, availableNow=True).awaitTermination()
    ...         learner.batch, learner.model.n_features_in_
    (0, 1)
    """

    def __init__(
        self,
        model: Model,
        folder: str | os.PathLike[str],
        *,
        target: str,
        features: str | Sequence[str] | None = None,
        weight: str | None = None,
        classes: Any = None,
        parts: int = 4,
        retries: int = 3,
        progress: Callable[[Progress], object] | None = None,
    ) -> None:
        check_integer("parts", parts, low=1)
        need_merging(model)
        self._untrained, self._names = model, (features, target, weight)
        self._classes, self._parts, self._retries = classes, parts, retries
        self._tell = progress
        self._checkpoint = Checkpoint(folder)
        self.folder = Path(folder).resolve()
        try:
            self._base, self._position, self._rows = self._saved(repr(model))
        except BaseException:
            self._checkpoint.close()
            raise

    def _saved(self, what: str) -> tuple[bytes | None, dict[str, Any] | None, int]:
        began = self._checkpoint.begin({"spark": what})
        if began != {"spark": what}:
            raise CheckpointError(
                f"{self.folder} is of another run, {began and began.get('spark')}, not of {what}: give another folder"
            )
        saved = self._checkpoint.load()
        if saved is None:
            trained = "learner_" in self._untrained.__dict__
            return pack(self._untrained) if trained else None, None, 0
        return pack(saved.model), saved.position, saved.record["rows"]

    @property
    def model(self) -> Model:
        """The model that has learnt all batches so far."""
        if self._base is None:
            return clone(self._untrained)  # type: ignore[no-any-return]
        return unpack(self._base)[0]

    @property
    def batch(self) -> int | None:
        """The number of the last batch learnt."""
        return None if self._position is None else int(self._position["batch"])

    @property
    def offsets(self) -> list[Any]:
        """Where the sources stand after that batch, as Spark writes it."""
        return [] if self._position is None else list(self._position["offsets"])

    @property
    def rows(self) -> int:
        """How many rows have been learnt."""
        return self._rows

    def start(self, df: Any, **trigger: Any) -> Any:
        """Start a query on a streaming DataFrame; what it returns is Spark's ``StreamingQuery``.

        Args:
            df: a streaming DataFrame.
            trigger: as of Spark's ``trigger``: ``processingTime="10 seconds"``, ``availableNow=True``.
        """
        need_classic(df)
        columns_of(
            df, self._untrained, self._names[0], *self._names[1:]
        )  # what is wrong is told before it begins
        writer = df.writeStream.foreachBatch(self).option(
            "checkpointLocation", (self.folder / "spark").as_uri()
        )
        return (writer.trigger(**trigger) if trigger else writer).start()

    def __call__(self, df: Any, batch: int) -> None:
        """Learn a batch, unless it is known."""
        position = {"batch": batch, **self._source(batch)}
        if self._is_known(position):
            return
        features, target, weight = self._names
        model = self._untrained if self._base is None else unpack(self._base)[0]
        columns = columns_of(df, model, features, target, weight)
        rows, labels = survey(
            df, target, labels=isinstance(model, KernelClassifier) and self._classes is None
        )
        learnt = self._base
        if rows:
            learnt = learn_parts(
                self._base,
                model,
                Parts(df.select(*columns.select()), columns, f" of batch {batch}"),
                at_once=self._parts,
                retries=self._retries,
                classes=self._classes,
                labels=labels,
                all_rows=self._rows + rows,
                rows=self._rows,
                progress=self._tell,
            )
        if learnt is None:
            return
        self._checkpoint.save(unpack(learnt)[0], position=position, rows=self._rows + rows)
        self._base, self._position, self._rows = learnt, position, self._rows + rows

    def _source(self, batch: int) -> dict[str, Any]:
        """The query, and where its sources stand after the batch: Spark writes both before it gives the batch."""
        spark = self.folder / "spark"
        query = json.loads((spark / "metadata").read_text())["id"]
        lines = (
            (spark / "offsets" / str(batch)).read_text().splitlines()[2:]
        )  # a version and settings come first
        return {"query": query, "offsets": [None if line == "-" else json.loads(line) for line in lines]}

    def _is_known(self, position: dict[str, Any]) -> bool:
        known = self._position
        if known is None:
            return False
        if known["query"] != position["query"]:
            raise CheckpointError(
                f"the model in {self.folder} has learnt batches of another query, up to the offsets {known['offsets']}: "
                f"{self.folder / 'spark'} was replaced; put it back, or start with this model, in another folder, from there"
            )
        if position["batch"] > known["batch"] + 1:
            raise CheckpointError(
                f"batch {position['batch']} comes, but the model in {self.folder} has learnt up to batch {known['batch']}: "
                "its newest file is lost"
            )
        return bool(position["batch"] <= known["batch"])

    def close(self) -> None:
        """Let other runs use the folder."""
        self._checkpoint.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
