"""Streaming reader of LIBSVM text: ``label index:value index:value ...``, one row per line."""

import io
import itertools
import math
from collections.abc import Iterator
from contextlib import ExitStack
from os import PathLike, fspath
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array

Rows = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Labels, entries per row, indices (1-based), values."""

_COLON, _NEWLINE = ord(":"), ord("\n")
_IS_SEPARATOR = np.zeros(256, dtype=bool)
_IS_SEPARATOR[list(b" \t\r\n:")] = True


def read_libsvm(
    source: str | PathLike[str] | IO[Any],
    *,
    n_features: int | None = None,
    chunk_size: int = 1000,
    dtype: DTypeLike = np.float64,
) -> Iterator[tuple[Any, NDArray[np.float64]]]:
    r"""Read LIBSVM text in chunks, in memory that does not depend on the length of the file.

    Blank lines are skipped, and so is anything after a ``#``. Values that are not finite, malformed pairs,
    indices below 1 and indices that do not increase are refused with the file, the line and the reason.

    Args:
        source: a path, or an open file (binary or text). Gzip and xz are recognised by their content.
        n_features: width of every chunk; a larger index is an error. When None, a chunk is as wide as the
            largest index seen so far, so the first chunks may be narrower than later ones.
        chunk_size: rows per chunk.
        dtype: type of the values, float64 or float32.

    Yields:
        ``(X, y)``: rows as a SciPy CSR array with 0-based columns (index 1 of the file is column 0), labels
        as floats.

    Examples:
        >>> text = io.StringIO("+1 1:0.5 3:2\n-1 2:1  # a comment\n")
        >>> for X, y in read_libsvm(text, n_features=4):
        ...     print(X.toarray(), y)
        [[0.5 0.  2.  0. ]
         [0.  1.  0.  0. ]] [ 1. -1.]
        >>> next(read_libsvm(io.StringIO("+1 1:0.5\n+1 0:1\n")))
        Traceback (most recent call last):
        ValueError: <stream>, line 2: index 0 in '0:1', but indices start at 1
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, not {chunk_size}")
    width = n_features or 0
    name = fspath(source) if isinstance(source, str | PathLike) else str(getattr(source, "name", "<stream>"))
    with ExitStack() as stack:
        lines = _open(source, stack)
        first = 1  # number of the first line of the block
        while block := list(itertools.islice(lines, chunk_size)):
            labels, counts, indices, values = _parse_block(block) or _parse_lines(block, name, first)
            largest = int(indices.max(initial=0))
            if n_features is not None and largest > n_features:
                _refuse_width(block, name, first, n_features)
            width = max(width, largest)
            first += len(block)
            if len(labels):
                # 32-bit indices, what SciPy itself would choose; _parse_* refuses larger ones.
                starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
                data = (values.astype(dtype), (indices - 1).astype(np.int32), starts)
                yield csr_array(data, shape=(len(labels), width)), labels


def _open(source: str | PathLike[str] | IO[Any], stack: ExitStack) -> Iterator[bytes]:
    """Lines of a plain, gzip or xz source. Closes what it opened, and nothing else."""
    if isinstance(source, str | PathLike):
        source = stack.enter_context(open(source, "rb"))
    elif isinstance(source, io.TextIOBase):
        return (line.encode() for line in source)
    if not hasattr(source, "peek"):
        source = io.BufferedReader(source)  # type: ignore[type-var]
        stack.callback(source.detach)  # so that dropping the buffer does not close the caller's file
    head = source.peek(6)
    if head.startswith(b"\x1f\x8b"):
        import gzip

        return iter(stack.enter_context(gzip.open(source)))
    if head.startswith(b"\xfd7zXZ\x00"):
        import lzma

        return iter(stack.enter_context(lzma.open(source)))
    return iter(source)


def _parse_block(block: list[bytes]) -> Rows | None:
    """All lines at once, or None if anything is unusual: `_parse_lines` then decides, and names the line."""
    text = b"\n" + b"".join(block)
    if b"#" in text or b"_" in text:  # float() would accept 1_000
        return None
    raw = np.frombuffer(text, dtype=np.uint8)
    separator = _IS_SEPARATOR[raw]
    starts = np.flatnonzero(separator[:-1] & ~separator[1:])  # the separator just before each token
    kind = raw[starts]  # newline: a label, blank: an index, colon: a value
    is_value = kind == _COLON
    is_label = kind == _NEWLINE
    # A value follows an index, an index is followed by a value, no blank touches a colon, and nothing is left
    # over.
    if not len(kind) or not is_label[0] or np.count_nonzero(raw == _COLON) != np.count_nonzero(is_value):
        return None
    is_index = ~is_value & ~is_label
    if (
        is_index[-1]
        or not np.array_equal(is_index[:-1], is_value[1:])
        or separator[starts[is_value] - 1].any()
    ):
        return None
    try:
        numbers = np.array(list(map(float, text.replace(b":", b" ").split())))
    except ValueError:
        return None
    if len(numbers) != len(kind) or not np.isfinite(numbers).all():
        return None
    labels, indices, values = numbers[is_label], numbers[is_index], numbers[is_value]
    whole = indices.astype(np.int64) if (np.abs(indices) < 2**31).all() else None
    if whole is None or not np.array_equal(whole, indices) or whole.min(initial=1) < 1:
        return None
    counts = np.diff(np.append(np.flatnonzero(is_label), len(kind))) // 2
    row = np.repeat(np.arange(len(labels)), counts)
    if ((np.diff(whole) <= 0) & (np.diff(row) == 0)).any():
        return None
    return labels, counts, whole, values


def _parse_lines(block: list[bytes], name: str, first: int) -> Rows:
    """The same, one line at a time, with an error that says where and why."""
    labels: list[float] = []
    counts: list[int] = []
    indices: list[int] = []
    values: list[float] = []
    for number, line in enumerate(block, first):
        label, *pairs = line.partition(b"#")[0].decode("utf-8", "replace").split() or [""]
        if not label:
            continue
        where = f"{name}, line {number}"
        labels.append(_finite(label, where, f"label {label!r}"))
        counts.append(len(pairs))
        last = 0
        for pair in pairs:
            left, colon, right = pair.partition(":")
            if not (colon and left and right):
                raise ValueError(f"{where}: expected index:value, found {pair!r}")
            index = _finite(left, where, f"index in {pair!r}")
            if index != int(index):
                raise ValueError(f"{where}: index in {pair!r} is not a whole number")
            if index < 1:
                raise ValueError(f"{where}: index {int(index)} in {pair!r}, but indices start at 1")
            if index >= 2**31:
                raise ValueError(
                    f"{where}: index {int(index)} in {pair!r}, but the largest allowed is {2**31 - 1}"
                )
            if index <= last:
                raise ValueError(f"{where}: index {int(index)} after index {last}, but indices must increase")
            last = int(index)
            indices.append(last)
            values.append(_finite(right, where, f"value in {pair!r}"))
    return np.array(labels), np.array(counts, np.int64), np.array(indices, np.int64), np.array(values)


def _finite(text: str, where: str, what: str) -> float:
    try:
        number = float(text) if "_" not in text else math.nan
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return number
    reason = "not finite" if text.lower().lstrip("+-") in ("nan", "inf", "infinity") else "not a number"
    raise ValueError(f"{where}: {what} is {reason}")


def _refuse_width(block: list[bytes], name: str, first: int, n_features: int) -> None:
    """Name the first line with an index above `n_features`."""
    for number, line in enumerate(block, first):
        indices = _parse_lines([line], name, number)[2]
        if indices.max(initial=0) > n_features:
            raise ValueError(f"{name}, line {number}: index {indices.max()}, but n_features is {n_features}")
