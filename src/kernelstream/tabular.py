"""Tables for estimators: what becomes of ``X`` in a model that knows its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from kernelstream.tables.encoder import TableEncoder

__all__ = ["as_encoder", "is_features"]


def as_encoder(columns: Any) -> TableEncoder:
    """A new encoder from what an estimator was given as ``columns``.

    >>> as_encoder({"age": "number"})
    TableEncoder(columns={'age': 'number'})
    """
    if isinstance(columns, TableEncoder):
        return clone(columns)  # type: ignore[no-any-return]
    if columns == "auto" or isinstance(columns, Mapping):
        return TableEncoder(columns)
    raise ValueError(
        f"columns must be None, 'auto', a dictionary such as {{'age': 'number'}} or a TableEncoder, got {columns!r}"
    )


def is_features(X: Any, encoder: TableEncoder) -> bool:
    """Whether rows are features already, as `stream.read` gives them, and not a table.

    Numbers without names are, unless the columns that the model knows have no names but 0, 1, ... themselves.

    >>> encoder = TableEncoder().fit({"age": [31.0]})
    >>> is_features(np.zeros((1, 1)), encoder), is_features({"age": [3]}, encoder)
    (True, False)
    """
    if issparse(X):
        return True
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "fiub" or X.ndim != 2:
        return False
    return not all(name.isdigit() for name in encoder.columns_)
