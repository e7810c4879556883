"""Data sets by name: the papers' benchmarks from a data folder, two small ones that come with scikit-learn.

The benchmarks are not part of the package. `load` looks for ``<name>.libsvm.xz`` in the folder named by the
environment variable ``KERNELSTREAM_DATA``, or in `data_dir`.
"""

import contextlib
import difflib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack

from kernelstream.stream import synthetic
from kernelstream.stream.libsvm import LibsvmReader
from kernelstream.stream.opening import Opened
from kernelstream.stream.plan import Plan, Task

_LIBSVM_SUFFIXES = (".libsvm.xz", ".libsvm.gz", ".libsvm")


@dataclass(frozen=True)
class Dataset:
    """What we know about a data set before opening it.

    Attributes:
        name: its name, and the file's.
        rows: rows to use, from the first; the file may hold more (see `svmguide3`).
        features: number of features.
        order: "shuffle" (sorted or autocorrelated in the file), "random" (already in random order), "time"
            (a drift stream: keep the order).
        task: "classification" or "regression".
        sparse: whether `load` gives CSR rows; otherwise a dense array.
        shipped: whether scikit-learn ships it.
    """

    name: str
    rows: int
    features: int
    order: Literal["shuffle", "random", "time"] = "random"
    task: Task = "classification"
    sparse: bool = False
    shipped: bool = False


DATASETS = {
    d.name: d
    for d in (
        Dataset("german.numer", 1000, 24),
        Dataset("german.numer_scale", 1000, 24),
        # The file's last 41 rows, its test part, are exact copies of the 41 before them.
        Dataset("svmguide3", 1243, 21, order="shuffle"),
        Dataset("spambase", 4601, 57, order="shuffle"),
        Dataset("mushrooms", 8124, 112, order="shuffle", sparse=True),
        Dataset("a9a", 48842, 123, sparse=True),
        Dataset("w7a", 49749, 300, order="shuffle", sparse=True),
        Dataset("ijcnn1", 141691, 22),
        Dataset("cod-rna.train", 59535, 8, order="shuffle"),
        Dataset("covtype.binary", 581012, 54, order="shuffle"),
        Dataset("usps", 9298, 256),
        Dataset("cpusmall", 8192, 12, task="regression"),
        Dataset("abalone_scale", 4177, 8, task="regression"),
        Dataset("elec2", 45312, 8, order="time"),
        Dataset("digits", 1797, 64, shipped=True),
        Dataset("breast_cancer", 569, 30, shipped=True),
    )
}
"""The registered data sets, by name."""

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
        data_dir: the folder of the files; by default the environment variable ``KERNELSTREAM_DATA``.

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
    if name not in DATASETS:
        raise ValueError(f"unknown data set {name!r}; {did_you_mean(name, DATASETS)}")
    record = DATASETS[name]
    if record.shipped:
        import sklearn.datasets

        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        return X, y.astype(np.int64)
    path = _find(name, data_dir)
    reader = LibsvmReader(Plan(task=record.task, n_features=record.features))
    with contextlib.closing(Opened(path)) as opened:
        chunks = list(reader.rows(opened, None))
    X, y = vstack([X for X, _ in chunks], format="csr"), np.concatenate([y for _, y in chunks])
    if len(y) < record.rows:
        raise ValueError(f"{path} has {len(y)} rows, but {name} has {record.rows}: is the file cut short?")
    X, y = X[: record.rows], y[: record.rows]
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
    stream gives exactly `rows`, or goes on for ever.

    Examples:
        >>> stream = open_stream("rings", 2000, seed=1)
        >>> stream.task, stream.rows, sum(len(y) for _, y in stream.chunks)
        ('classification', 2000, 2000)
    """
    if rows is not None and rows < 0:
        raise ValueError(f"rows must not be negative, got {rows}")
    if name in STREAMS:
        maker, task = STREAMS[name]
        return Stream(name, task, rows, maker(rows, seed=seed, chunk_size=chunk_size))
    if name not in DATASETS:
        raise ValueError(f"unknown stream {name!r}; {did_you_mean(name, [*STREAMS, *DATASETS])}")
    record = DATASETS[name]
    X, y = load(name, data_dir) if record.order == "time" else shuffled(name, seed, data_dir)
    n = record.rows if rows is None else min(rows, record.rows)
    slices = (slice(i, min(i + chunk_size, n)) for i in range(0, n, chunk_size))
    return Stream(name, record.task, n, ((X[s], y[s]) for s in slices))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown name: near misses if there are any, else all names.

    Examples:
        >>> did_you_mean("budgte", ["budget", "eta"])
        "did you mean 'budget'?"
        >>> did_you_mean("x", ["budget", "eta"])
        'known: budget, eta'
    """
    known = sorted(known)
    folded = {k.casefold(): k for k in known}
    near = [folded[k] for k in difflib.get_close_matches(name.casefold(), folded, n=3)]
    return f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(known)}"


def _find(name: str, data_dir: str | os.PathLike[str] | None) -> Path:
    """The file of a data set, or an error that says what to do."""
    folder = data_dir or os.environ.get("KERNELSTREAM_DATA")
    if not folder:
        raise FileNotFoundError(
            f"data set {name!r} is not shipped with kernelstream: set the environment variable "
            f"KERNELSTREAM_DATA to the folder that holds {name}{_LIBSVM_SUFFIXES[0]}"
        )
    for suffix in _LIBSVM_SUFFIXES:
        path = Path(folder, name + suffix)
        if path.is_file():
            return path
    raise FileNotFoundError(
        f"no file {name}{_LIBSVM_SUFFIXES[0]} in {os.fspath(folder)}: set the environment variable "
        "KERNELSTREAM_DATA to the folder that holds it"
    )
