"""Data sets by name: the papers' benchmarks, and two small ones that come with scikit-learn.

The benchmarks are not part of the package. `load` looks for ``<name>.libsvm.xz`` in `data_dir`, else in the folder
named by the environment variable ``KERNELSTREAM_DATA``; then in the user's cache folder; and then downloads it from
the public collection that has it, unless ``KERNELSTREAM_OFFLINE`` is set.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.stream import synthetic
from kernelstream.stream.catalogue import DATASETS, Dataset, did_you_mean, record_of
from kernelstream.stream.files import locate, read_file
from kernelstream.stream.options import Task

__all__ = ["DATASETS", "STREAMS", "Dataset", "Stream", "did_you_mean", "load", "open_stream", "shuffled"]

STREAMS: dict[str, tuple[Callable[..., Iterator[Any]], Task]] = {
    "rings": (synthetic.rings, "classification"),
    "moving_classes": (synthetic.moving_classes, "classification"),
    "friedman": (synthetic.friedman, "regression"),
}
"""The built-in endless streams, by name."""


def load(name: str, data_dir: str | os.PathLike[str] | None = None) -> tuple[Any, NDArray[Any]]:
    """Load a whole data set in the order of its file.

    Args:
        name: a key of `DATASETS`.
        data_dir: the folder of the files; by default the environment variable ``KERNELSTREAM_DATA``. A set that is
            neither there nor in the cache folder is downloaded, see `kernelstream.stream.files`.

    Returns:
        ``(X, y)``: a float64 array, or a CSR array where the record says `sparse`; values as published, not
        scaled. Class labels are integers as in the file, regression targets floats.

    Examples:
        >>> X, y = load("digits")
        >>> X.shape, len(set(y.tolist()))
        ((1797, 64), 10)
        >>> load("digit")
        Traceback (most recent call last):
        ValueError: unknown data set 'digit'; did you mean 'digits'?
    """
    record = record_of(name)
    if record.shipped:
        import sklearn.datasets

        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        return X, y.astype(np.int64)
    X, y = read_file(locate(name, data_dir), record)
    return X if record.sparse else X.toarray(), y


def shuffled(
    name: str, seed: int = 0, data_dir: str | os.PathLike[str] | None = None
) -> tuple[Any, NDArray[Any]]:
    """Load a data set with its rows in a random order fixed by `seed`.

    Examples:
        >>> X, y = shuffled("breast_cancer", seed=3)
        >>> X.shape, int(y.sum())
        ((569, 30), 357)
    """
    X, y = load(name, data_dir)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


class Stream(NamedTuple):
    """A stream ready to be read: its name, its task, its number of rows and its chunks ``(X, y)``."""

    name: str
    task: Task
    rows: int | None
    chunks: Iterator[tuple[Any, NDArray[Any]]]


def open_stream(
    name: str,
    rows: int | None = None,
    *,
    seed: int = 0,
    chunk_size: int = 1000,
    data_dir: str | os.PathLike[str] | None = None,
) -> Stream:
    """Open a built-in stream or a data set by name, as chunks.

    A data set is shuffled by `seed`, unless it is ordered in time, and gives at most `rows` rows; a built-in
    stream gives exactly `rows` rows, or never ends.

    Examples:
        >>> stream = open_stream("rings", 2000, seed=1)
        >>> stream.task, stream.rows, sum(len(y) for _, y in stream.chunks)
        ('classification', 2000, 2000)
    """
    if rows is not None and rows < 0:
        raise ValueError(f"rows must not be negative, got {rows}")
    if name in STREAMS:
        generate, task = STREAMS[name]
        return Stream(name, task, rows, generate(rows, seed=seed, chunk_size=chunk_size))
    if name not in DATASETS:
        raise ValueError(f"unknown stream {name!r}; {did_you_mean(name, [*STREAMS, *DATASETS])}")
    record = DATASETS[name]
    X, y = load(name, data_dir) if record.order == "time" else shuffled(name, seed, data_dir)
    n = record.rows if rows is None else min(rows, record.rows)
    slices = (slice(i, min(i + chunk_size, n)) for i in range(0, n, chunk_size))
    return Stream(name, record.task, n, ((X[s], y[s]) for s in slices))
