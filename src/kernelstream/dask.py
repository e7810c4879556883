"""Tables larger than one machine, on Dask: parts are learnt by the workers, and what they learnt is added up.

``fit`` learns the first rows here, which gives the base, and then goes through the table once, in *epochs*: in each, ``parts``
parts of ``rows_per_part`` rows go on from the same base at once, and their deltas are added to it (`kernelstream.merging`). The
result depends on the table, its chunks and these numbers, not on how many workers there are or how often a task is repeated.

``Workers`` are those of one machine, for `kernelstream run --workers N`: this process reads the source, they learn.

Needs ``pip install "kernelstream[dask]"``.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import itertools
import logging
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack
from sklearn.base import clone

from kernelstream import merging
from kernelstream.errors import MergeError
from kernelstream.estimators import KernelClassifier
from kernelstream.evaluate import Forecasts, Result, forecast_then_learn
from kernelstream.merging import Progress
from kernelstream.persistence import Model, pack, unpack
from kernelstream.rows import fitted_width
from kernelstream.stream import Chunk, Source
from kernelstream.validate import check_integer

__all__ = ["Progress", "Workers", "fit", "predict"]

#: Rows that are learnt one after the other before parts go on from them.
FIRST_ROWS = 2000
#: Seconds between two looks at the workers.
LOOK = 1.0
#: Seconds without a sign of life of a worker of our own, after which its part is done again: it is stopped, or cannot be reached.
SILENT = 60
#: Settings of Dask's own processes: no look at them a hundred times per second, which takes a thirtieth of each core.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "10s",
}
#: Chunks of a table that are looked at together.
AT_ONCE = 32
#: Numbers that an epoch of a source has at most, but for its last chunk: 256 MB.
MOST_NUMBERS = 2**25
#: What a source says of itself that changes as it is read.
TOLD = ("rows", "position", "bad_rows", "first_bad_row", "fraction", "quantities", "encoding", "kept")


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
    first_rows: int = FIRST_ROWS,
    rows_per_part: int = 10_000,
    parts: int = 4,
    retries: int = 3,
    patience: float = 300.0,
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
        patience: seconds without any worker, after which this is an error.
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
    table = _Table(client, list(zip(X_chunks, y_chunks, strict=True)), patience, retries)
    given = (classes is not None, "classes_" in model.__dict__, not isinstance(model, KernelClassifier))
    lengths, found = table.survey(labels=not any(given))
    base, left = _first(model, table, lengths, found if classes is None else classes, first_rows)
    at_work: dict[str, _Part] = {}
    deltas: dict[str, Any] = {}

    def epochs() -> Iterator[list[str]]:
        for epoch in _epochs(left, rows_per_part, parts):
            table.forget(before=epoch[0].chunk)
            deltas.clear()
            at_work.clear()
            at_work.update({part.task: part for part in epoch})
            yield list(at_work)

    def learn(base: bytes, tasks: list[str]) -> list[bytes]:
        """Learns these tasks; puts all of the epoch together again, so that sums are taken in the same order after a retry."""
        sent = _submit(client, _itself, base)
        for task in tasks:
            part = at_work[task]
            chunk = table.chunk(part.chunk)
            deltas[task] = client.submit(_learn, sent, *chunk, part, retries=retries, pure=False)
        return _gathered(client, [_tree(client, deltas, merging.digest(base))], patience)

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
    lengths = (
        X.chunks[0] if hasattr(X, "chunks") else [np.nan] * len(blocks)
    )  # a data frame does not know them
    shapes = ((n, *sample.shape[1:]) for n in lengths)
    return da.concatenate(
        [da.from_delayed(block, shape, sample.dtype) for block, shape in zip(blocks, shapes, strict=True)]
    )


class Workers:
    """Processes on this machine that learn the chunks of a source in parts: one part each at a time.

    The first ``first_rows`` rows are learnt here. Later ones come in epochs, each with a part per worker; all parts of an epoch
    go on from the same base. Parts are small as long as the model is young, because it changes fastest then: an epoch has half as
    many rows as were learnt before it, and a part at least ``least`` and at most ``most`` rows. So the merges, each of which
    costs what some thousands of rows cost, take a small part of the time of a large file.

    A worker that dies is started again, and one that gives no sign of life for a minute (it is stopped, say) is replaced; in both
    cases its part is done again, and counts once. An epoch waits for its slowest part.

    Args:
        count: how many.
        first_rows: rows learnt here before the first part.
        least: rows of a part at least.
        most: rows of a part at most.
        retries: how often a part is done again whose worker died, or whose delta is refused.
        patience: seconds without any worker, after which this is an error.
        client: a ``dask.distributed.Client`` whose workers to use; by default processes are started, and ended at the end.

    >>> from dask.distributed import Client
    >>> from kernelstream import KernelRegressor
    >>> from kernelstream.stream import read
    >>> model = KernelRegressor()
    >>> result = Result.of(model)
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client, Workers(2, client=client) as workers:
    ...     for X, y in workers.chunks(read("friedman", rows=4000, chunk_size=1000)):
    ...         model, predicted = workers.step(model, result, X, y)
    >>> result.rounds, workers.merges
    (4000, 2)
    """

    def __init__(
        self,
        count: int,
        *,
        first_rows: int = FIRST_ROWS,
        least: int = 500,
        most: int = 500_000,
        retries: int = 3,
        patience: float = 300.0,
        client: Any = None,
    ) -> None:
        self.count = check_integer("count", count, low=1)
        self.first_rows, self.least, self.most = first_rows, least, most
        self.retries, self.patience = retries, patience
        self.merges = self.delta_bytes = 0
        self.refused: list[str] = []
        self._open = contextlib.ExitStack()
        self._client = client
        self._folder: str | None = None
        self._source: EpochSource | None = None

    def __enter__(self) -> Workers:
        if self._client is not None:
            return self
        dask: Any = importlib.import_module("dask")  # not typed in all places
        distributed: Any = importlib.import_module("distributed")
        self._folder = self._open.enter_context(
            tempfile.TemporaryDirectory(prefix="kernelstream-", ignore_cleanup_errors=True)
        )
        with dask.config.set({**QUIET, "distributed.scheduler.worker-ttl": f"{SILENT}s"}):
            cluster = distributed.LocalCluster(
                n_workers=self.count,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",  # any port that is free
                memory_limit=0,
                silence_logs=logging.ERROR,
            )
        self._client = self._open.enter_context(distributed.Client(self._open.enter_context(cluster)))
        # Ctrl-C, which a terminal sends to all processes, is for the one that reads the source. Workers that are started again
        # get this, too. A function of our own would import the package while Dask waits for an answer.
        self._client.register_worker_callbacks(partial(signal.signal, signal.SIGINT, signal.SIG_IGN))
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def chunks(self, source: Source) -> EpochSource:
        """The source in chunks of one epoch each. A source of files is read ahead while ``step`` learns."""
        self._source = EpochSource(source, self.epoch_rows)
        return self._source

    def epoch_rows(self, rows: int) -> int:
        """How many rows an epoch has that begins after so many.

        >>> [Workers(2).epoch_rows(rows) for rows in (0, 2000, 100_000, 10**9)]
        [2000, 1000, 50000, 1000000]
        """
        if rows < self.first_rows:
            return self.first_rows - rows
        return min(max(self.count * self.least, rows // 2), self.count * self.most)

    def step(self, model: Model, result: Result, X: Any, y: Any) -> tuple[Model, NDArray[Any]]:
        """Let the model predict and learn the next rows, and count; the model after them, and what was predicted."""
        y = np.asarray(y)
        here = self._learnt_here(model, result.rounds, y)
        if len(here) == len(y):
            return model, result.step(model, X, y)
        parts = _split(len(y), here, self.count)
        predicted: list[tuple[Any, NDArray[Any]]] = []
        if len(here):
            predicted.append((here, result.step(model, X[here], y[here])))

        def count(made: list[Forecasts]) -> None:
            for part, forecasts in zip(parts, made, strict=True):
                result.count(y[part], forecasts)
                predicted.append((part, forecasts.predicted))

        with contextlib.nullcontext() if self._source is None else self._source.read_ahead():
            rows = [(X[part], y[part]) for part in parts]
            self._learn(model, rows, result.rounds, result.evaluation is not None, count)
        result.nbytes = int(model.nbytes_)
        whole = np.empty(len(y), np.result_type(*(some for _, some in predicted)))
        for part, some in predicted:
            whole[part] = some
        return model, whole

    def _learnt_here(self, model: Model, rows: int, y: NDArray[Any]) -> NDArray[np.intp]:
        """Rows that this process learns: the first ones, and the first of each class that is new."""
        if rows < self.first_rows or "learner_" not in model.__dict__:
            return np.arange(len(y))
        if not isinstance(model, KernelClassifier):
            return np.zeros(0, np.intp)
        labels = y.tolist()
        new = set(labels).difference(model.classes_.tolist())
        return np.array(sorted(map(labels.index, new)), np.intp)

    def _epoch_folder(self) -> contextlib.AbstractContextManager[str | None]:
        """A folder for the files of an epoch, which processes of our own can read; None for those of a client."""
        if self._folder is None:
            return contextlib.nullcontext()
        return tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True)

    def _learn(
        self,
        model: Model,
        parts: Sequence[tuple[Any, Any]],
        before: int,
        metrics: bool,
        count: Callable[[list[Forecasts]], None],
    ) -> None:
        """Adds to the model what the parts have learnt, and lets what each predicted before be counted meanwhile."""
        rows = {f"part {i} of the rows after {before}": part for i, part in enumerate(parts)}
        done: dict[str, tuple[bytes, Forecasts]] = {}

        def learn(base: bytes, tasks: list[str]) -> list[bytes]:
            living = sorted(self._client.scheduler_info(n_workers=-1)["workers"])
            with self._epoch_folder() as folder:
                sent = _submit(self._client, _itself, _put(base, folder))
                futures = []
                for number, task in enumerate(tasks):
                    # A worker of its own, if that lives: Dask would give all parts to the one that has the base.
                    place = (
                        {"workers": [living[number % len(living)]], "allow_other_workers": True}
                        if living
                        else {}
                    )
                    arguments = sent, _put(rows[task], folder), task, metrics, folder
                    futures.append(_submit(self._client, _step, *arguments, retries=self.retries, **place))
                made = [_taken(one) for one in _gathered(self._client, futures, self.patience)]
            done.update(zip(tasks, made, strict=False))
            return [data for data, _ in made]

        size, refused = merging.learn_epoch(
            model,
            list(rows),
            learn,
            retries=self.retries,
            meanwhile=lambda: count([done[task][1] for task in rows]),
        )
        self.merges, self.delta_bytes = self.merges + 1, self.delta_bytes + size
        self.refused += refused


class EpochSource:
    """A source whose chunks are put together until they have so many rows, or ``MOST_NUMBERS``; else it is that source.

    What it says of itself, as its position, is always that after the rows given, whatever has been read ahead.

    Args:
        source: the source.
        size: how many, by the rows given before.
    """

    def __init__(self, source: Source, size: Callable[[int], int]) -> None:
        self._source, self._size = source, size
        self._chunks: list[Chunk] = []  # of the next epoch
        self._failed: Exception | None = None
        self._stopped = False
        self._told: dict[str, Any] = {}  # what the source said before it was read ahead

    def __getattr__(self, name: str) -> Any:
        told = self.__dict__.get("_told", {})
        return told[name] if name in told else getattr(self._source, name)

    def __iter__(self) -> EpochSource:
        return self

    def __next__(self) -> Chunk:
        self._stopped = False
        self._read()
        self._told = {}
        chunks, self._chunks = self._chunks, []
        if not chunks:
            raise self._failed or StopIteration
        return chunks[0]

    @contextlib.contextmanager
    def read_ahead(self) -> Iterator[None]:
        """Meanwhile a thread reads the next rows, if the source allows it. At the end it stops after the chunk at hand."""
        if self._told or not getattr(self._source, "may_read_ahead", False):
            yield
            return
        self._told = {name: copy.deepcopy(getattr(self._source, name)) for name in TOLD}
        self._stopped = False
        thread = threading.Thread(target=self._read, name="kernelstream reads ahead", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped = True
            thread.join()

    def _read(self) -> None:
        """Chunks of the next epoch, until there are enough of them. What fails is raised after the rows before it."""
        before = self._told.get("rows", self._source.rows - sum(chunk.X.shape[0] for chunk in self._chunks))
        enough = before + self._size(before)
        numbers = sum(chunk.X.size for chunk in self._chunks)
        while (
            not self._stopped
            and self._failed is None
            and self._source.rows < enough
            and numbers < MOST_NUMBERS
        ):
            try:
                self._chunks.append(next(self._source))
                numbers += self._chunks[-1].X.size
            except (
                Exception
            ) as error:  # of whatever kind, and the end too: `__next__` raises it in the thread that asks
                self._failed = error
        if not self._stopped and len(self._chunks) > 1:
            self._chunks = [_joined(self._chunks)]


def _joined(chunks: Sequence[Chunk]) -> Chunk:
    """One chunk of several, which are never narrower than those before them."""
    rows = [fitted_width(chunk.X, chunks[-1].X.shape[1]) for chunk in chunks]
    X = np.vstack(rows) if isinstance(rows[0], np.ndarray) else vstack(rows, format="csr")
    return Chunk(X, np.concatenate([chunk.y for chunk in chunks]))


def _split(n: int, left_out: NDArray[np.intp], parts: int) -> list[Any]:
    """Numbers of n rows without some, in so many parts, but no empty one: slices where that is possible, which copy nothing.

    >>> _split(5, np.array([], int), 2)
    [slice(0, 3, None), slice(3, 5, None)]
    >>> _split(3, np.array([0]), 3)
    [array([1]), array([2])]
    """
    if len(left_out):
        rest = np.delete(np.arange(n), left_out)
        return [part for part in np.array_split(rest, parts) if len(part)]
    ends = [0, *itertools.accumulate(n // parts + (k < n % parts) for k in range(parts))]
    return [slice(*pair) for pair in itertools.pairwise(ends) if pair[0] < pair[1]]


def _submit(client: Any, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """A future of a task.

    A base is sent as one, too: so Dask makes it again if the workers that have it die. And a part, which waits for it, is given
    to a worker when there is one: Dask finds none for a task that was meant for a dead worker when there was no other.
    """
    dask: Any = importlib.import_module("dask")
    with dask.config.set(
        {"distributed.admin.large-graph-warning-threshold": "1 TB"}
    ):  # they are meant to be sent
        return client.submit(function, *args, pure=False, **options)


def _gathered(client: Any, futures: list[Any], patience: float) -> list[Any]:
    """What futures gave; nothing if it was lost with a worker, and has to be done again."""
    distributed: Any = importlib.import_module("distributed")
    try:
        return list(client.gather(_waited(client, futures, patience)))
    except (CancelledError, distributed.KilledWorker, distributed.comm.CommClosedError):
        return []


def _waited(client: Any, futures: list[Any], patience: float) -> list[Any]:
    """The futures, once they are done or have failed. Workers that the cluster has given up are started again meanwhile."""
    distributed: Any = importlib.import_module("distributed")
    seen = time.monotonic()
    while True:
        try:
            distributed.wait(futures, timeout=LOOK)
            return futures
        except TimeoutError:
            _start_missing(client.cluster)
        if client.scheduler_info(n_workers=-1)["workers"]:
            seen = time.monotonic()
        elif time.monotonic() - seen > patience:
            raise MergeError(f"there has been no worker for {patience:g} seconds: {client!r}")


def _start_missing(cluster: Any) -> None:
    """Start the workers of a cluster's plan that it has given up.

    One whose process died is started again by its nanny. But a cluster closes the nanny for good if the worker is not back after
    15 seconds (``distributed.deploy.lost-worker-timeout``), which a busy machine may need, and a nanny whose start fails ends.
    """
    distributed: Any = importlib.import_module("distributed")
    plan, workers = getattr(cluster, "worker_spec", None), getattr(cluster, "workers", None)
    if not isinstance(plan, dict) or not isinstance(workers, dict):
        return  # it has a way of its own
    for name, worker in list(workers.items()):
        if getattr(worker, "status", None) in (distributed.Status.closed, distributed.Status.failed):
            workers.pop(name, None)
    if plan.keys() - workers.keys():
        cluster.scale(len(plan))


class _File(NamedTuple):
    """A file that holds a value, for processes of this machine."""

    path: str


def _put(value: Any, folder: str | None) -> Any:
    """The value itself or, with a folder, a new file there that holds it.

    Dask would copy a base and the rows several times, and all of that in the process that reads and merges.
    """
    if folder is None:
        return value
    try:
        number, path = tempfile.mkstemp(dir=folder)
        with open(number, "wb") as file:
            pickle.dump(value, file, protocol=5)
    except OSError as error:
        raise OSError(
            error.errno,
            f"cannot hand rows to the workers: {error.strerror} (TMPDIR names another folder)",
            folder,
        ) from None
    return _File(path)


def _itself(value: Any) -> Any:
    return value


def _taken(value: Any) -> Any:
    """What ``_put`` was given."""
    if not isinstance(value, _File):
        return value
    with open(value.path, "rb") as file:
        return pickle.load(file)


def _step(base: Any, rows: Any, task: str, metrics: bool, folder: str | None) -> Any:
    """The delta of a part, and what was predicted before each row was learnt; with a folder, in a file there."""
    X, y = _taken(rows)
    made: list[Forecasts] = []

    def learn(model: Model) -> tuple[int, list[Any]]:
        made.append(forecast_then_learn(model, X, y, metrics=metrics))
        return len(y), []

    return _put((merging.delta_of(_taken(base), learn, task=task), made[0]), folder)


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

    def __init__(self, client: Any, chunks: list[Any], patience: float = 300.0, retries: int = 3) -> None:
        self.client, self.chunks = client, chunks
        self.patience, self.retries = patience, retries
        self.loaded: dict[int, Any] = {}

    def chunk(self, number: int) -> Any:
        """Futures of X and y."""
        before = self.loaded.get(number)
        failed = before and any(future.status in ("error", "lost", "cancelled") for future in before)
        if before is None or failed:  # workers may have died with it
            self.loaded[number] = self._computed(self.chunks[number], again=bool(failed))
        return self.loaded[number]

    def _computed(self, delayed: Sequence[Any], *, again: bool) -> list[Any]:
        """Futures of delayed objects.

        What has failed is done again as a task of its own: asked for under the same keys it would have failed already, and
        Dask's own ``retry`` may leave tasks waiting for ever where several of one graph have failed.
        """
        if not again:
            return list(self.client.compute(list(delayed)))
        cloudpickle: Any = importlib.import_module("cloudpickle")
        dask: Any = importlib.import_module("dask")
        graphs = [cloudpickle.dumps(one) for one in dask.optimize(*delayed)]
        return [_submit(self.client, _evaluate, graph, retries=self.retries) for graph in graphs]

    def first(self, number: int, stop: int, *, again: bool) -> list[Any]:
        """Futures of the first rows of a chunk."""
        return [self.client.submit(_rows, whole, 0, stop, pure=False) for whole in self.chunk(number)]

    def gathered(self, futures: Callable[..., list[Any]]) -> list[Any]:
        """What ``futures(again=False)`` gave; if it was lost with a worker they are made again."""
        for tries in range(self.retries + 1):
            found = _gathered(self.client, futures(again=tries > 0), self.patience)
            if found:
                return found
        raise MergeError(f"chunks of the table were lost with their workers {self.retries + 1} times")

    def forget(self, before: int) -> None:
        """Chunks that are not needed again."""
        self.loaded = {number: chunk for number, chunk in self.loaded.items() if number >= before}

    def survey(self, *, labels: bool) -> tuple[list[int], Any]:
        """How many rows each chunk has and, if asked for, all labels: a pass over the table that keeps nothing."""
        looked: list[Any] = []
        for start in range(0, len(self.chunks), AT_ONCE):  # what came before is not lost with a worker
            some = [_delayed(_look)(*chunk, labels) for chunk in self.chunks[start : start + AT_ONCE]]
            looked += self.gathered(partial(self._computed, some))
        return [n for n, _ in looked], np.unique(
            np.concatenate([found for _, found in looked])
        ) if labels else None


def _evaluate(graph: bytes) -> Any:
    """A delayed object, computed by the worker itself."""
    return pickle.loads(graph).compute(scheduler="synchronous")


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
            rows = table.gathered(partial(table.first, chunk, taken))
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
