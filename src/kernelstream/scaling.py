"""Online standardisation: every feature brought to a common scale, by the rows learnt so far, in memory of their width.

A row is scaled by the statistics of the rows learnt before and of itself. So the same row is scaled alike when it is predicted
and when it is learnt, no scaled value is larger than the square root of the number of rows, and the first rows need no exception.
Nothing is scaled again later: the statistics depend on the rows and their order only, not on the chunks they come in, to the bit.

Dense rows lose their mean and get deviation 1. In CSR rows zeros must stay zeros: a feature is divided by the root mean square of
its values other than zero, so that marks of categories stay 1; and only if that is above 1, or if most rows have the feature, so
that parts of texts, which have norm 1 together, stay small. The first rows decide which of the two a model does.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from kernelstream.rows import as_arrays, as_rows

__all__ = ["Scale", "Scaler"]

Array = NDArray[Any]
Scale = bool | Literal["auto"]


class Scaler:
    """What is known of the features' scales. It never changes: learning rows gives another one.

    Args:
        arrays: the statistics. Dense: ``first``, the first row, and of the differences from it the ``sums`` and the ``squares``
            (of large numbers, these lose few digits); CSR: the ``squares`` of the values and their ``counts``. Both: ``rows``.

    >>> scaler = Scaler.new(np.array([[100.0], [102.0]]))
    >>> scaled, scaler = scaler.learn(np.array([[100.0], [102.0], [104.0]]))
    >>> as_arrays(scaled).round(3).ravel().tolist()
    [0.0, 1.0, 1.225]
    >>> as_arrays(scaler.apply(np.array([[102.0]]))).tolist()
    [[0.0]]
    """

    __slots__ = ("arrays",)

    def __init__(self, arrays: dict[str, Array]) -> None:
        self.arrays = arrays

    @classmethod
    def new(cls, X: Any) -> Scaler:
        """For rows like these, of which none has been learnt."""
        rows = as_rows(X)
        names = ("squares", "counts") if rows.sparse else ("first", "sums", "squares")
        return cls({name: np.zeros(rows.width) for name in names} | {"rows": np.zeros(1)})

    @property
    def sparse(self) -> bool:
        """Whether zeros stay zeros."""
        return "counts" in self.arrays

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.arrays["squares"])

    @property
    def nbytes(self) -> int:
        """Bytes of the statistics."""
        return sum(array.nbytes for array in self.arrays.values())

    def widened(self, width: int) -> Scaler:
        """The same for more features, which were 0 in all rows so far."""
        return Scaler(
            {
                name: array if name == "rows" else np.pad(array, (0, width - len(array)))
                for name, array in self.arrays.items()
            }
        )

    def apply(self, X: Any) -> Any:
        """The rows, scaled; nothing is learnt."""
        rows = as_rows(X)
        if self.sparse:
            csr = csr_array(as_arrays(rows))
            squares, counts = self.arrays["squares"][csr.indices], self.arrays["counts"][csr.indices]
            return _csr_rows(csr, _over_root(csr.data, squares, counts, self.arrays["rows"][0]), rows)
        return _dense_rows(self._standard(*self._sums(rows, np.zeros(rows.n))[:4]), rows)

    def learn(self, X: Any, weights: Array | None = None) -> tuple[Any, Scaler]:
        """The rows, each scaled by those before it and itself; and what is known after them. Rows of weight 0 do not count."""
        rows = as_rows(X)
        if not rows.n:
            return rows, self
        counted = np.ones(rows.n) if weights is None else (weights > 0).astype(np.float64)
        if self.sparse:
            return self._learn_csr(rows, counted)
        if not self.arrays["rows"][0] and counted.any():
            first = _dense(rows)[int(np.argmax(counted))].astype(np.float64)
            return Scaler(self.arrays | {"first": first, "rows": np.zeros(1)})._learn_dense(rows, counted)
        return self._learn_dense(rows, counted)

    # ---- dense ----

    def _learn_dense(self, rows: Any, counted: Array) -> tuple[Any, Scaler]:
        *own, after = self._sums(rows, counted)
        return _dense_rows(self._standard(*own), rows), Scaler({"first": self.arrays["first"]} | after)

    def _sums(self, rows: Any, counted: Array) -> tuple[Array, Array, Array, Array, dict[str, Array]]:
        """Differences from the first row; sums, squares and rows with each row itself; and those after all that count.

        Every sum is taken in the order of the rows, one by one: that is what ``accumulate`` does.
        """
        with np.errstate(over="ignore"):
            differences = _dense(rows) - self.arrays["first"]
            squares = differences * differences
            mark = counted[:, None]
            before = [
                np.add.accumulate(np.vstack([self.arrays[name], np.where(mark > 0, added, 0.0)]))
                for name, added in (("sums", differences), ("squares", squares))
            ]
            count = np.add.accumulate(np.concatenate([self.arrays["rows"], counted]))
            after = {"sums": before[0][-1], "squares": before[1][-1], "rows": count[-1:]}
            own = before[0][:-1] + differences, before[1][:-1] + squares, count[:-1, None] + 1.0
        return differences, *own, after

    @staticmethod
    def _standard(differences: Array, sums: Array, squares: Array, rows: Array) -> Array:
        """The difference from the mean, over the deviation; 0 for a feature that does not vary."""
        with np.errstate(all="ignore"):
            mean = sums / rows
            variance = squares / rows - mean * mean
            varies = variance > 1e-12 * (squares / rows)  # less is rounding
            scaled = (differences - mean) / np.sqrt(np.where(varies, variance, 1.0))
            return np.asarray(np.where(varies, scaled, 0.0))

    # ---- CSR ----

    def _learn_csr(self, rows: Any, counted: Array) -> tuple[Any, Scaler]:
        csr = csr_array(as_arrays(rows))
        squares, counts = self.arrays["squares"].copy(), self.arrays["counts"].copy()
        scaled = np.empty(len(csr.data))
        starts, learnt = csr.indptr.tolist(), float(self.arrays["rows"][0])
        for row, counts_too in enumerate(counted.tolist()):
            part = slice(starts[row], starts[row + 1])
            places, values = csr.indices[part], csr.data[part]
            scaled[part] = _over_root(values, squares[places], counts[places], learnt)
            if counts_too:
                learnt += 1.0
                squares[places] += values.astype(np.float64) ** 2
                counts[places] += values != 0
        after = {"squares": squares, "counts": counts, "rows": np.array([learnt])}
        return _csr_rows(csr, scaled, rows), Scaler(after)


def _over_root(values: Array, squares: Array, counts: Array, rows: float) -> Array:
    """Values over the root mean square of those before and themselves, if that is above 1 or most rows have them."""
    values = values.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        root = np.sqrt((squares + values * values) / (counts + 1.0))
    root = np.where((root > 1.0) | (2.0 * (counts + 1.0) > rows + 1.0), root, 1.0)
    scaled: Array = np.divide(values, root, out=np.zeros(len(values)), where=root > 0)
    return scaled


def _dense(rows: Any) -> Array:
    X = as_arrays(rows)
    dense: Array = X.toarray() if issparse(X) else X
    return dense


def _precision(rows: Any) -> Any:
    return np.float32 if type(rows).__name__ == "Rows32" else np.float64


def _dense_rows(scaled: Array, rows: Any) -> Any:
    return as_rows(scaled, _precision(rows))


def _csr_rows(csr: Any, scaled: Array, rows: Any) -> Any:
    # zeros that are stored stay so: their places are the rows' own
    return as_rows(csr_array((scaled, csr.indices, csr.indptr), shape=csr.shape), _precision(rows))
