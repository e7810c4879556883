"""Online standardisation: every feature brought to a common scale, by the rows learnt so far, in memory of their width.

A row is scaled by the statistics of the rows learnt before and of itself. So the same row is scaled alike when it is predicted
and when it is learnt, no scaled value is larger than the square root of the number of rows, and the first rows need no exception.
Nothing is scaled again later: the statistics depend on the rows and their order only, not on the chunks they come in, to the bit.

Dense rows lose their mean and get deviation 1. In CSR rows

- *quantities* are brought to a common scale: numbers of a table and the elapsed part of its times. Its categories, true and
  false, texts (which have norm 1 together) and marks of missing values are on a common scale already, and stay as they are;
- a quantity that most rows have loses its mean and gets deviation 1, as in dense rows, and so do its zeros;
- one that fewer rows have keeps its zeros, and is divided by the root mean square of its other values if that is above 1;
- one whose values other than zero are all the same is a mark: it becomes 1 if most rows have it, and keeps its zeros;
- where nobody says what is a quantity (a matrix, LIBSVM text), every feature is taken for one if that root is above 1.

The first rows decide which of the two a model does.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from kernelstream._core import core
from kernelstream.rows import as_arrays, as_rows

__all__ = ["Scale", "Scaler"]

Array = NDArray[Any]
Scale = bool | Literal["auto"]


class Scaler:
    """What is known of the features' scales. It never changes: learning rows gives another one.

    Args:
        arrays: the statistics. Dense: ``first``, the first row, and of the differences from it the ``sums`` and the ``squares``
            (of large numbers, these lose few digits); CSR: the same of the values other than 0, their ``counts``, and which
            features are ``quantities`` (1 or 0; 2: nobody says). Both: ``rows``.

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
        names = ("first", "sums", "squares", *(["counts"] if rows.sparse else []))
        arrays = {name: np.zeros(rows.width) for name in names} | {"rows": np.zeros(1)}
        return cls(arrays | ({"quantities": np.full(rows.width, 2.0)} if rows.sparse else {}))

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
                name: array
                if name == "rows"
                else np.pad(
                    array, (0, width - len(array)), constant_values=2.0 if name == "quantities" else 0.0
                )
                for name, array in self.arrays.items()
            }
        )

    def told(self, quantities: Array) -> Scaler:
        """The same, once it is known which features are quantities; dense rows do not care."""
        if not self.sparse or len(quantities) != self.width:
            return self
        if (self.arrays["quantities"] == quantities).all():
            return self
        return Scaler(self.arrays | {"quantities": quantities.astype(np.float64)})

    def about(self, first: Array) -> Scaler:
        """The same statistics, of the differences from other values: so they can be summed with another one's."""
        counts = self.arrays["counts"] if self.sparse else self.arrays["rows"]
        moved, sums = self.arrays["first"] - first, self.arrays["sums"]
        squares = self.arrays["squares"] + 2 * moved * sums + counts * moved * moved
        arrays = {"first": first, "sums": sums + counts * moved, "squares": np.maximum(squares, 0.0)}
        return Scaler(self.arrays | arrays)

    def apply(self, X: Any) -> Any:
        """The rows, scaled; nothing is learnt."""
        rows = as_rows(X)
        if self.sparse:
            return self._scale_csr(rows, np.zeros(rows.n))[0]
        return _dense_rows(self._standard(*self._sums(rows, np.zeros(rows.n))[:4]), rows)

    def learn(self, X: Any, weights: Array | None = None) -> tuple[Any, Scaler]:
        """The rows, each scaled by those before it and itself; and what is known after them. Rows of weight 0 do not count."""
        rows = as_rows(X)
        if not rows.n:
            return rows, self
        counted = np.ones(rows.n) if weights is None else (weights > 0).astype(np.float64)
        if self.sparse:
            return self._scale_csr(rows, counted)
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

    def _scale_csr(self, rows: Any, counted: Array) -> tuple[Any, Scaler]:
        names = ("first", "sums", "squares", "counts")
        known = self.arrays
        sparse = rows if rows.sparse else as_rows(csr_array(as_arrays(rows)), _precision(rows))
        values, indices, starts, *after, learnt = core.scale_csr(
            sparse,
            known["first"],
            known["sums"],
            known["squares"],
            known["counts"],
            known["quantities"],
            float(known["rows"][0]),
            counted,
        )
        arrays = dict(zip(names, after, strict=True)) | {"rows": np.array([learnt])}
        return type(sparse).csr(values, indices, starts, rows.width), Scaler(self.arrays | arrays)


def _dense(rows: Any) -> Array:
    X = as_arrays(rows)
    dense: Array = X.toarray() if issparse(X) else X
    return dense


def _precision(rows: Any) -> Any:
    return np.float32 if type(rows).__name__ == "Rows32" else np.float64


def _dense_rows(scaled: Array, rows: Any) -> Any:
    return as_rows(scaled, _precision(rows))
