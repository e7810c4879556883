"""Tables larger than one machine, on Dask: parts are learnt by the workers, and what they learnt is added up.

``fit`` learns the first rows here, which gives the base, and then goes through the table once, in *epochs*: in each, ``parts``
parts of ``rows_per_part`` rows go on from the same base at once, and their deltas are added to it (`kernelstream.merging`). The
result depends on the table, its chunks and these numbers, not on how many workers there are or how often a task is repeated.

Needs ``pip install "kernelstream[dask]"``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from kernelstream import merging
from kernelstream.estimators import KernelClassifier
from kernelstream.merging import Progress
from kernelstream.persistence import Model, pack, unpack
from kernelstream.validate import check_integer

__all__ = ["Progress", "fit", "predict"]


class _Part(NamedTuple):
    """Rows ``start`` to ``stop`` of a chunk of the table."""

    chunk: int
    start: int
    stop: int

    @property
    def task(self) -> str:
        return f"rows {self.start} to {self.stop} of chunk {self.chunk}"

    @property
    def rows(self) -> int:
        return self.stop - self.start


def fit(
    model: Model,
    X: Any,
    y: Any,
    *,
    client: Any = None,
    classes: Any = None,
    first_rows: int = 2000,
    rows_per_part: int = 10_000,
    parts: int = 4,
    retries: int = 3,
    progress: Callable[[Progress], None] | None = None,
) -> Model:
    """A model that has learnt a Dask table once; the model given, untrained or not, stays as it is.

    Args:
        model: a ``KernelClassifier`` or a ``KernelRegressor`` whose learner merges (``learner.merge_guarantee``).
        X: a Dask array or data frame, chunked by rows.
        y: its labels or targets, a Dask array or series with the same chunks.
        client: a ``dask.distributed.Client``; by default the current one.
        classes: all classes; by default they are looked for in ``y``, in a pass of its own.
        first_rows: how many rows an untrained model learns here, one after the other, before parts can go on from it.
        rows_per_part: how many rows a part learns before it is merged. Fewer are nearer to one pass, and cost more merges.
        parts: how many parts go on from the same base at once: at least the number of workers, to give each work.
        retries: how often a part whose worker fails, or that comes back damaged, is done again.
        progress: called after each epoch.

    >>> import dask.array as da, numpy as np
    >>> from dask.distributed import Client
    >>> from kernelstream import KernelRegressor
    >>> X = np.random.default_rng(0).normal(size=(3000, 2))
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     table = da.from_array(X, chunks=(1000, 2))
    ...     model = fit(KernelRegressor(), table, table[:, 0] ** 2, client=client, first_rows=1000, rows_per_part=500)
    >>> bool(model.score(X, X[:, 0] ** 2) > 0.99)
    True
    """
    for name, value in (("first_rows", first_rows), ("rows_per_part", rows_per_part), ("parts", parts)):
        check_integer(name, value, low=1)
    client = _client(client)
    X_chunks, y_chunks = _chunks(X), _chunks(y)
    if len(X_chunks) != len(y_chunks):
        raise ValueError(
            f"X has {len(X_chunks)} chunks and y has {len(y_chunks)}: give both the same chunks (`rechunk`)"
        )
    table = _Table(client, list(zip(X_chunks, y_chunks, strict=True)))
    given = (classes is not None, "classes_" in model.__dict__, not isinstance(model, KernelClassifier))
    lengths, found = table.survey(labels=not any(given))
    base, left = _first(model, table, lengths, found if classes is None else classes, first_rows)
    at_work: dict[str, _Part] = {}
    deltas: dict[str, Any] = {}

    def epochs() -> Iterator[dict[str, int]]:
        for epoch in _epochs(left, rows_per_part, parts):
            table.forget(before=epoch[0].chunk)
            deltas.clear()
            at_work.clear()
            at_work.update({part.task: part for part in epoch})
            yield {part.task: part.rows for part in epoch}

    def learn(base: bytes, tasks: list[str]) -> list[bytes]:
        """Learns these tasks; puts all of the epoch together again, so that sums are taken in the same order after a retry."""
        scattered = client.scatter(base, broadcast=True, hash=False)
        for task in tasks:
            part = at_work[task]
            chunk = table.chunk(part.chunk)
            deltas[task] = client.submit(_learn, scattered, *chunk, part, retries=retries, pure=False)
        return [client.gather(_tree(client, deltas, merging.digest(base)))]

    base = merging.in_epochs(
        base,
        epochs(),
        learn,
        retries=retries,
        all_rows=sum(lengths),
        rows=sum(lengths) - sum(part.rows for part in left),
        workers=len(client.scheduler_info(n_workers=-1)["workers"]),
        progress=progress,
    )
    return unpack(base)[0]


def predict(model: Model, X: Any, *, method: str = "predict") -> Any:
    """What ``model.predict`` (or another method, as ``"predict_proba"``) gives for a Dask table: a Dask array of its chunks."""
    da: Any = importlib.import_module("dask.array")  # not typed in all places
    data = pack(model)
    sample = np.asarray(getattr(model, method)(np.zeros((1, model.n_features_in_))))
    blocks = [_delayed(_apply)(data, method, chunk) for chunk in _chunks(X)]
    shape = (np.nan, *sample.shape[1:])
    return da.concatenate([da.from_delayed(block, shape, sample.dtype) for block in blocks])


def _delayed(function: Callable[..., Any]) -> Callable[..., Any]:
    dask: Any = importlib.import_module("dask")
    delayed: Callable[..., Any] = dask.delayed(function, pure=True)
    return delayed


def _apply(data: bytes, method: str, X: Any) -> Any:
    return np.asarray(getattr(unpack(data)[0], method)(X))


def _client(client: Any) -> Any:
    if client is not None:
        return client
    from dask.distributed import get_client

    try:
        return get_client()
    except ValueError:
        raise ValueError(
            "there is no Dask client: make one, `Client()` of dask.distributed, or give one as `client`"
        ) from None


def _chunks(table: Any) -> list[Any]:
    """The chunks of a Dask array, data frame or series, as delayed objects, from the first rows to the last."""
    if getattr(table, "ndim", 1) == 2 and hasattr(table, "numblocks") and table.numblocks[1] > 1:
        table = table.rechunk({1: -1})
    if not hasattr(table, "to_delayed"):
        raise TypeError(f"a Dask array, data frame or series is needed, got {type(table).__name__}")
    return list(np.ravel(table.to_delayed()))


class _Table:
    """The chunks of a table, of which only those at work are in the workers' memory."""

    def __init__(self, client: Any, chunks: list[Any]) -> None:
        self.client, self.chunks = client, chunks
        self.loaded: dict[int, Any] = {}

    def chunk(self, number: int) -> Any:
        """Futures of X and y."""
        if number not in self.loaded:
            self.loaded[number] = self.client.compute(list(self.chunks[number]))
        return self.loaded[number]

    def forget(self, before: int) -> None:
        """Chunks that are not needed again."""
        self.loaded = {number: chunk for number, chunk in self.loaded.items() if number >= before}

    def survey(self, *, labels: bool) -> tuple[list[int], Any]:
        """How many rows each chunk has and, if asked for, all labels: a pass over the table that keeps nothing."""
        looked = self.client.gather(
            self.client.compute([_delayed(_look)(*chunk, labels) for chunk in self.chunks])
        )
        return [n for n, _ in looked], np.unique(
            np.concatenate([found for _, found in looked])
        ) if labels else None


def _look(X: Any, y: Any, labels: bool) -> tuple[int, Any]:
    if len(X) != len(y):
        raise ValueError(f"a chunk of X has {len(X)} rows and that of y {len(y)}: each row needs one")
    return len(X), np.unique(np.asarray(y)) if labels else None


def _rows(table: Any, start: int, stop: int) -> Any:
    return table.iloc[start:stop] if hasattr(table, "iloc") else table[start:stop]


def _first(
    model: Model, table: _Table, lengths: Sequence[int], classes: Any, first_rows: int
) -> tuple[bytes, list[_Part]]:
    """The base, and the rows that are left."""
    wanted = 0 if "learner_" in model.__dict__ else first_rows
    left = []
    base: Model = clone(model) if wanted else model
    for chunk, n in enumerate(lengths):
        taken = min(n, wanted)
        if taken:
            rows = table.client.gather(
                [table.client.submit(_rows, whole, 0, taken) for whole in table.chunk(chunk)]
            )
            base.partial_fit(
                *rows, **({} if classes is None or "learner_" in base.__dict__ else {"classes": classes})
            )
            wanted -= taken
        if taken < n:
            left.append(_Part(chunk, taken, n))
    return pack(base), left


def _epochs(left: Sequence[_Part], rows_per_part: int, parts: int) -> Iterator[list[_Part]]:
    """The rows left in parts, as many at once as asked for. A part is of one chunk."""
    epoch: list[_Part] = []
    for chunk, start, stop in left:
        for at in range(start, stop, rows_per_part):
            epoch.append(_Part(chunk, at, min(at + rows_per_part, stop)))
            if len(epoch) == parts:
                yield epoch
                epoch = []
    if epoch:
        yield epoch


def _learn(base: bytes, X: Any, y: Any, part: _Part) -> bytes:
    """The delta of a part."""
    return merging.delta(
        base, _rows(X, part.start, part.stop), _rows(y, part.start, part.stop), task=part.task
    )


def _tree(client: Any, deltas: Mapping[str, Any], of: str) -> Any:
    """One delta of all that are good, two at a time."""
    names, level = list(deltas), list(deltas.values())
    while len(level) > 1 or names:
        pairs = range(0, len(level), 2)
        level = [
            client.submit(merging.combine, level[i : i + 2], of=of, names=names[i : i + 2], pure=False)
            for i in pairs
        ]
        names = []  # of deltas already put together
    return level[0]
