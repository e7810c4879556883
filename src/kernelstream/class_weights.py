"""Weights of classes: what each row's weight is multiplied with, for streams and for sets.

"balanced" gives a row of class c the weight ``n / (k n_c)``: of n rows of k classes, n_c are of class c. In a set all rows count,
as in scikit-learn; in a stream those up to the row itself, so the weights depend on the rows and their order only, not on the
chunks they come in. Rows of weight 0 do not count.
"""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["ClassWeight", "Counts", "balanced_weights", "check_class_weight", "given_weights"]

Array = NDArray[Any]
ClassWeight = Mapping[Any, float] | Literal["balanced"] | None
Counts = dict[Hashable, int]


def check_class_weight(class_weight: Any) -> None:
    """Refuse what is neither None, "balanced" nor a dictionary from labels to weights.

    >>> check_class_weight({"spam": -1})
    Traceback (most recent call last):
    ...
    ValueError: class_weight['spam'] is -1: a weight must be finite and not negative
    """
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            "class_weight must be None, 'balanced' or a dictionary from labels to weights such as {'spam': 5.0}, "
            f"got {class_weight!r}"
        )
    for label, weight in class_weight.items():
        if not isinstance(weight, numbers.Real) or not 0 <= float(weight) < np.inf:
            raise ValueError(
                f"class_weight[{label!r}] is {weight!r}: a weight must be finite and not negative"
            )


def given_weights(class_weight: Mapping[Any, float], labels: Any, weights: Array | None) -> Array:
    """The rows' weights times those of their classes; a class that the dictionary does not name has weight 1.

    >>> given_weights({"spam": 5.0}, np.array(["ham", "spam"]), None).tolist()
    [1.0, 5.0]
    """
    keys, places = _different(labels)
    of_rows = np.array([float(class_weight.get(key, 1.0)) for key in keys])[places]
    return of_rows if weights is None else weights * of_rows


def balanced_weights(
    counts: Counts, labels: Any, weights: Array | None, *, stream: bool
) -> tuple[Array, Counts]:
    """The rows' weights times the balanced ones; and the classes' counts after them.

    >>> balanced_weights({}, ["a", "a", "b", "a"], None, stream=True)
    (array([1.        , 1.        , 1.5       , 0.66666667]), {'a': 3, 'b': 1})
    >>> balanced_weights({}, ["a", "a", "b", "a"], None, stream=False)[0].tolist()
    [0.6666666666666666, 0.6666666666666666, 2.0, 0.6666666666666666]
    """
    keys, places = _different(labels)
    counted = np.ones(len(places), np.int64) if weights is None else (weights > 0).astype(np.int64)
    before = np.array([counts.get(key, 0) for key in keys], np.int64)
    own = np.bincount(places, counted, len(keys)).astype(np.int64)
    after = counts | {key: int(n) for key, n in zip(keys, before + own, strict=True) if n or key in counts}
    if stream:
        order = np.argsort(places, kind="stable")
        running = np.cumsum(counted[order])
        starts = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=len(keys)))[:-1]]).astype(int)
        passed = np.concatenate([[0], running])[starts]  # counted before each class begins in this order
        of_class = np.empty(len(places), np.int64)
        of_class[order] = running - passed[places[order]] + before[places[order]]
        first = (of_class == 1) & (counted > 0)  # the first row of its class
        rows = sum(counts.values()) + np.cumsum(counted)
        known = np.count_nonzero(list(counts.values())) + np.cumsum(first)
    else:
        of_class = (before + own)[places]
        rows = np.full(len(places), sum(after.values()))
        known = np.full(len(places), np.count_nonzero(list(after.values())))
    balanced = rows / np.maximum(known * of_class, 1)
    return balanced if weights is None else weights * balanced, after


def _different(labels: Any) -> tuple[list[Any], Array]:
    """The labels that occur, as keys of a dictionary, and which of them each row has."""
    if isinstance(labels, np.ndarray):
        different, places = np.unique(labels, return_inverse=True)
        return different.tolist(), places.ravel()
    keys = {label: place for place, label in enumerate(dict.fromkeys(labels))}
    return list(keys), np.array([keys[label] for label in labels], np.int64)
