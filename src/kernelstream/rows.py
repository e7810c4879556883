"""From arrays and CSR matrices to the core's view of a chunk and back, without copying what is contiguous already."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import validate_data

from kernelstream._core import core

__all__ = [
    "WIDEST_DENSE",
    "as_arrays",
    "as_rows",
    "check_finite",
    "checked_rows",
    "fitted_width",
    "rows_of_state",
    "state_of_rows",
]

#: Rows of more features are stored sparse, as in the core (``kWidestDense``).
WIDEST_DENSE = 4096

_ROWS: dict[Any, Any] = {np.dtype(np.float64): core.Rows64, np.dtype(np.float32): core.Rows32}


def as_rows(X: Any, dtype: Any = None) -> Any:
    """The core's view of ``X`` (2-D array or SciPy sparse), in ``dtype``, by default float32 if ``X`` is and float64 else.

    What is such a view already stays as it is.

    >>> rows = as_rows([[1.0, 0.0], [0.0, 2.0]])
    >>> rows.n, rows.width, rows.sparse
    (2, 2, False)
    """
    if isinstance(X, core.Rows64 | core.Rows32):
        return X
    if dtype is None:
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
    kind = _ROWS[np.dtype(dtype)]
    if scipy.sparse.issparse(X):
        csr = X.tocsr()
        if not csr.has_canonical_format:
            csr = csr.copy() if csr is X else csr
            csr.sum_duplicates()
        values = np.ascontiguousarray(csr.data, dtype=dtype)
        return kind.csr(
            values,
            csr.indices.astype(np.int32, copy=False),
            csr.indptr.astype(np.int64, copy=False),
            csr.shape[1],
        )
    return kind.dense(np.ascontiguousarray(X, dtype=dtype))


def as_arrays(rows: Any) -> Any:
    """The array or CSR matrix that rows were made of, read only, without a copy of the values.

    >>> as_arrays(as_rows([[1.0, 0.0], [0.0, 2.0]]).part(1, 2)).tolist()
    [[0.0, 2.0]]
    """
    if not rows.sparse:
        return rows.dense_view()
    values, indices, starts = rows.csr_view()
    if len(values) < 2**31:
        starts = starts.astype(np.int32)  # or SciPy would copy the indices into the type of the starts
    csr = scipy.sparse.csr_array((values, indices, starts), shape=(rows.n, rows.width), copy=False)
    csr.has_canonical_format = True  # `as_rows` has seen to it
    return csr


def state_of_rows(name: str, rows: Any) -> dict[str, Any]:
    """Rows that a learner stores, as arrays of its state: one for an array, three for a CSR matrix.

    >>> sorted(state_of_rows("points", scipy.sparse.csr_array([[0.0, 2.0]])))
    ['points_columns', 'points_starts', 'points_values']
    """
    if not scipy.sparse.issparse(rows):
        return {name: np.array(rows, order="C")}
    return {
        f"{name}_values": np.array(rows.data),
        f"{name}_columns": rows.indices.astype(np.int32),
        f"{name}_starts": rows.indptr.astype(np.int64),
    }


def rows_of_state(name: str, state: dict[str, Any], width: int) -> Any:
    """The array or CSR matrix that ``state_of_rows`` made arrays of; ``ValueError`` if they are none, ``KeyError`` without them.

    >>> rows_of_state("points", state_of_rows("points", scipy.sparse.csr_array([[0.0, 2.0]])), 2).toarray().tolist()
    [[0.0, 2.0]]
    """
    if name in state:
        return state[name]
    values, columns, starts = (state[f"{name}_{part}"] for part in ("values", "columns", "starts"))
    if values.dtype not in _ROWS or columns.dtype != np.int32 or starts.dtype != np.int64:
        raise ValueError(f"the state's rows {name} are of the wrong type")
    return as_arrays(_ROWS[values.dtype].csr(values, columns, starts, width)).copy()


def check_finite(rows: Any, name: str = "X") -> None:
    """Refuse NaN and infinity, naming the place.

    >>> check_finite(as_rows([[0.0, float("nan")]]))
    Traceback (most recent call last):
    ...
    ValueError: X has NaN at row 0, column 1: only finite numbers can be learnt from; drop the row or impute it first
    """
    place = rows.first_not_finite()
    if place is not None:
        row, column = place
        value = rows.part(row, row + 1).array()[0, column]
        what = "NaN" if np.isnan(value) else "infinity"
        raise ValueError(
            f"{name} has {what} at row {row}, column {column}: only finite numbers can be learnt from; "
            "drop the row or impute it first"
        )


def checked_rows(estimator: Any, X: Any, *, reset: bool, dtype: Any = None) -> Any:
    """The rows of ``X`` after scikit-learn's checks of width and feature names (``reset`` learns them) and ours of values.

    >>> from sklearn.base import BaseEstimator
    >>> checked_rows(BaseEstimator(), [[1.0, 2.0]], reset=True).width
    2
    """
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite=False,
        ensure_min_samples=0,
    )
    rows = as_rows(X, dtype)
    check_finite(rows)
    return rows


def fitted_width(X: Any, width: int) -> Any:
    """Rows with columns of zeros up to a width.

    >>> fitted_width(np.ones((1, 2)), 3).tolist()
    [[1.0, 1.0, 0.0]]
    """
    missing = width - X.shape[1]
    if missing <= 0:
        return X
    if isinstance(X, np.ndarray):
        return np.pad(X, [(0, 0), (0, missing)])
    X = X.copy()
    X.resize(X.shape[0], width)
    return X
