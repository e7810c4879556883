"""NumPy's files: a matrix in .npy, or X and y in .npz, whose members are unpacked row by row."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.stream.bad_rows import BadRow, SourceError
from kernelstream.stream.opening import Opened
from kernelstream.stream.row_reader import RowReader
from kernelstream.tables.columns import Label
from kernelstream.tables.values import Values, check_values


class _ArrayRows(RowReader):
    """Rows of a matrix. Its columns are called 0, 1, ..."""

    def _values(self, batch: Any) -> tuple[Values, list[BadRow]]:
        return check_values(batch, self.columns, self._options)

    def _raw(self, batch: Any) -> bytes:
        label = [] if batch.labels is None else batch.labels.tolist()
        return json.dumps(label + batch.numbers[0].tolist(), default=str).encode()

    def _settle(
        self, file: str, shape: tuple[int, ...], dtype: np.dtype[Any], names: list[str], label: Label
    ) -> None:
        if len(shape) != 2 or dtype.kind not in "fiub":
            raise SourceError(f"{file}: expected a matrix of numbers, found shape {shape} of type {dtype}")
        self._total = shape[0]
        self.columns.settle(file, names, lambda name: "number", lambda name: label)
        if len(self.columns.used) > len(self.columns.plain_numbers):
            other = next(name for name in self.columns.used if name not in self.columns.plain_numbers)
            raise SourceError(
                f"{file}: column {other!r} is of kind {self.columns.kinds[other]}, and a matrix has numbers only"
            )


class NpyReader(_ArrayRows):
    """A matrix with the label in one of its columns, mapped into memory."""

    what = "npy"

    def _batches(self, opened: Opened, row: int) -> Iterator[Values]:
        if opened.packed or not opened.seekable or not hasattr(opened.file, "name"):
            raise SourceError(f"{opened.name}: .npy is read from plain files, not from pipes or packed files")
        try:
            matrix = np.load(opened.file.name, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise SourceError(f"{opened.name} is damaged or not what its name says: {error}") from None
        width = matrix.shape[1] if matrix.ndim == 2 else 0
        self._settle(opened.name, matrix.shape, matrix.dtype, [str(i) for i in range(width)], "whole")
        features = [int(name) for name in self.columns.numbers]
        target = (
            int(self.columns.target) if self._options.labelled and self.columns.target is not None else None
        )
        while row < len(matrix):
            block = np.asarray(matrix[row : row + self._options.size()], np.float64)
            row += len(block)
            yield Values(block[:, features], [], None if target is None else block[:, target])


class NpzReader(_ArrayRows):
    """Arrays X and y in one archive."""

    what = "npz"

    def _batches(self, opened: Opened, row: int) -> Iterator[Values]:
        if opened.packed or not opened.seekable:
            raise SourceError(f"{opened.name}: .npz is read from plain files, not from pipes or packed files")
        try:
            with zipfile.ZipFile(opened.file) as archive:
                yield from self._members(opened.name, archive, row)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise SourceError(f"{opened.name} is damaged or not what its name says: {error}") from None

    def _members(self, file: str, archive: zipfile.ZipFile, row: int) -> Iterator[Values]:
        held = {name.removesuffix(".npy") for name in archive.namelist()}
        labelled = self._options.labelled
        if "X" not in held or (labelled and "y" not in held):
            raise SourceError(
                f"{file} must hold X{' and y' if labelled else ''}, it holds {', '.join(sorted(held))}"
            )
        X = _Member(file, archive, "X")
        y = _Member(file, archive, "y") if labelled else None
        label: Label = "text" if y is not None and y.dtype.kind == "U" else "whole"
        names = [str(i) for i in range(X.shape[1] if len(X.shape) == 2 else 0)]
        if y is not None:
            if y.shape != X.shape[:1] or y.dtype.kind not in "fiubU":
                raise SourceError(f"{file}: y has shape {y.shape} and type {y.dtype}, X has shape {X.shape}")
            names = [*names, "y"]
            self._options.target = "y"
        self._settle(file, X.shape, X.dtype, names, label)
        X.skip(row)
        if y is not None:
            y.skip(row)
        features = [int(name) for name in self.columns.numbers]
        while row < X.shape[0]:
            n = min(self._options.size(), X.shape[0] - row)
            row += n
            numbers = X.take(n).astype(np.float64)
            labels = None
            if y is not None:
                labels = y.take(n).astype(object if self.columns.label == "text" else np.float64)
            yield Values(numbers[:, features], [], labels)


class _Member:
    """An array in an archive, read from its first row on."""

    def __init__(self, file: str, archive: zipfile.ZipFile, name: str) -> None:
        self._where = f"{file}, array {name}"
        self._bytes = archive.open(f"{name}.npy")
        version = np.lib.format.read_magic(self._bytes)
        header = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        self.shape, fortran, self.dtype = header(self._bytes)
        if self.dtype.hasobject:
            raise SourceError(f"{self._where} holds Python objects, which are not read")
        if fortran and len(self.shape) > 1:
            raise SourceError(f"{self._where} is stored by columns: save np.ascontiguousarray({name})")
        self._row_bytes = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))

    def skip(self, rows: int) -> None:
        self._bytes.seek(rows * self._row_bytes, 1)

    def take(self, rows: int) -> NDArray[Any]:
        size = rows * self._row_bytes
        held = self._bytes.read(size)
        if len(held) < size:
            raise EOFError(f"{self._where} is cut short")
        return np.frombuffer(held, self.dtype).reshape(rows, *self.shape[1:])
