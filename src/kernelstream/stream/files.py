"""The files of the data sets: where they are looked for, how they get there, how they are checked."""

import contextlib
import hashlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import vstack

from kernelstream.stream.catalogue import Dataset, record_of
from kernelstream.stream.download import DownloadError, Progress, fetch
from kernelstream.stream.libsvm import LibsvmReader
from kernelstream.stream.opening import Opened
from kernelstream.stream.options import Options

_SUFFIXES = (".libsvm.xz", ".libsvm.gz", ".libsvm")


def cache_folder() -> Path:
    """The folder for what was fetched, where the user named none.

    >>> cache_folder().name
    'kernelstream'
    """
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local", "kernelstream")
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "kernelstream"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache", "kernelstream")


def data_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The folder of the files: as given, else ``KERNELSTREAM_DATA``, else the cache folder.

    >>> data_folder("sets").name
    'sets'
    """
    return Path(data_dir or os.environ.get("KERNELSTREAM_DATA") or cache_folder())


def find(name: str, data_dir: str | os.PathLike[str] | None = None) -> Path | None:
    """The file of a data set in the data folder or the cache folder, or None.

    >>> find("a9a", "no such folder") in (None, find("a9a", cache_folder()))
    True
    """
    return _inside(data_folder(data_dir), name) or _inside(cache_folder(), name)


def _inside(folder: Path, name: str) -> Path | None:
    paths = (folder / (name + suffix) for suffix in _SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def locate(name: str, data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The file of a data set, fetched if it is not here: into the data folder if we may write there, else into the cache."""
    if there := find(name, data_dir):
        return there
    folder = data_folder(data_dir)
    if os.access(folder, os.W_OK):
        return get(name, folder)
    try:
        return get(name, cache_folder())
    except DownloadError as error:
        raise DownloadError(f"not in {folder}; {error}") from None


def announce(address: str, done: int, total: int | None) -> None:
    """Say on standard error that an address is being fetched."""
    if not done:
        print(f"kernelstream: fetching {address}", file=sys.stderr, flush=True)


def get(name: str, data_dir: str | os.PathLike[str] | None = None, *, progress: Progress = announce) -> Path:
    """Fetch a data set into the data folder, unless it is there.

    The file appears under its name when it is whole and its rows are right, not before: whatever goes wrong leaves
    nothing behind, and several processes may fetch the same set at once.

    Args:
        name: a key of `DATASETS`.
        data_dir: the folder, made if need be; by default see `data_folder`.
        progress: called with the address, the bytes that have come, and how many there will be or None; first with 0,
            before the connection is made. By default a line on standard error.

    Returns:
        The file.

    Raises:
        DownloadError: it could not be fetched; the message says why and what to do.

    Examples:
        >>> get("digits")
        Traceback (most recent call last):
        ValueError: data set 'digits' comes with scikit-learn: there is nothing to fetch
    """
    record, folder = record_of(name), data_folder(data_dir)
    if record.shipped:
        raise ValueError(f"data set {name!r} comes with scikit-learn: there is nothing to fetch")
    if there := _inside(folder, name):
        return there
    path = folder / (name + _SUFFIXES[0])
    try:
        if os.environ.get("KERNELSTREAM_OFFLINE", "0") not in ("", "0"):
            raise DownloadError("KERNELSTREAM_OFFLINE is set, so nothing is fetched")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder) as temporary:
            fetched = Path(temporary, path.name)
            most = record.rows * (record.features + 1) * 32  # no number, with its index, takes 32 characters
            fetch(record.addresses, fetched, most, progress)
            _check(fetched, record)
            os.replace(fetched, path)
    except OSError as error:
        why = error if isinstance(error, DownloadError) else f"cannot write into {folder}, {error.strerror}"
        raise DownloadError(
            f"no file {path.name} in {folder}, and it could not be fetched: {why}. Try `kernelstream data get {name}` again; "
            f"or put the file there yourself; or set the environment variable KERNELSTREAM_DATA to the folder that holds it"
        ) from None
    return path


def _check(path: Path, record: Dataset) -> None:
    """Refuse a file that does not hold the rows of the data set."""
    origin = " and ".join(record.addresses)
    try:
        found = rows_sha256(*read_file(path, record))
    except ValueError as error:
        told = str(error).replace(str(path), "it")
        raise DownloadError(f"{origin} gave something else than {record.name} ({told})") from None
    if found != record.sha256:
        raise DownloadError(
            f"{origin} gave other rows than {record.name} has: their checksum is {found}, not {record.sha256}"
        )


def rows_sha256(X: Any, y: NDArray[Any]) -> str:
    """The SHA-256 of rows, which does not depend on how a file writes or packs them.

    It is that of four little-endian arrays, one after another: the labels (float64), and of the rows without their zeros,
    columns in order, where each starts (int64), the columns (int32) and the values (float64).

    >>> import scipy.sparse
    >>> rows_sha256(scipy.sparse.csr_array([[0.0, 2.0]]), np.array([1]))[:12]
    '55cab721cccb'
    """
    rows = X.copy()
    rows.eliminate_zeros()
    rows.sort_indices()
    digest = hashlib.sha256()
    for array, kind in ((y, "<f8"), (rows.indptr, "<i8"), (rows.indices, "<i4"), (rows.data, "<f8")):
        digest.update(array.astype(kind).tobytes())
    return digest.hexdigest()


def read_file(path: Path, record: Dataset) -> tuple[Any, NDArray[Any]]:
    """The rows of a file, as CSR."""
    reader = LibsvmReader(Options(task=record.task, n_features=record.features))
    with contextlib.closing(Opened(path)) as opened:
        chunks = list(reader.rows(opened, None))
    rows = sum(X.shape[0] for X, _ in chunks)
    if rows < record.rows:
        raise ValueError(
            f"{path} has {rows} rows, but {record.name} has {record.rows}: is the file cut short?"
        )
    X, y = vstack([X for X, _ in chunks], format="csr"), np.concatenate([y for _, y in chunks])
    return X[: record.rows], y[: record.rows]
