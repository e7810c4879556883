"""Class labels, and the numbers that stand for them: the one place that knows how a learner sees classes.

Three words are used everywhere. A class has a *code*: its place among the sorted labels, 0, 1, 2, ... A learner has *outputs*,
the columns of its scores: one for up to two classes, else one per class. It learns from *targets*: +1 while one class is known,
-1 and +1 for two classes, the code itself for more. Who keeps the labels (``KernelClassifier`` an array, River's ``Classifier``
a list) is free to do so in its own way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.learners import Learner
from kernelstream.learners.base import Mix
from kernelstream.losses import Logistic, as_loss

__all__ = [
    "NO_CLASS",
    "add_class",
    "codes_of_scores",
    "codes_of_targets",
    "is_missing",
    "known_codes",
    "labels_of_codes",
    "link_of",
    "missing_label",
    "outputs_of",
    "probabilities",
    "targets_of",
    "unknown_labels",
    "with_label",
    "with_more_outputs",
]

Array = NDArray[Any]

NO_CLASS = -1
"""The code predicted while no class is known."""


# ---- codes, outputs and targets ----


def outputs_of(n_classes: int) -> int:
    """How many outputs a learner of so many classes has.

    >>> [outputs_of(n) for n in range(5)]
    [1, 1, 1, 3, 4]
    """
    return 1 if n_classes <= 2 else n_classes


def targets_of(codes: Array, n_classes: int) -> Array:
    """The targets of class codes.

    >>> [targets_of(np.array([0, 1]), n).tolist() for n in (1, 2, 3)]
    [[1.0, 1.0], [-1.0, 1.0], [0.0, 1.0]]
    """
    if n_classes <= 1:
        return np.ones(len(codes))
    return np.asarray(2.0 * codes - 1 if n_classes == 2 else codes, np.float64)


def codes_of_targets(targets: Array, n_classes: int) -> Array:
    """The codes of targets: ``targets_of`` undone.

    >>> codes_of_targets(np.array([-1.0, 1.0]), 2).tolist()
    [0, 1]
    """
    if n_classes <= 1:
        return np.zeros(len(targets), np.int64)
    return np.asarray(targets > 0 if n_classes == 2 else targets, np.int64)


def codes_of_scores(scores: Array, n_classes: int) -> Array:
    """The codes of the classes that scores predict; ``NO_CLASS`` while no class is known.

    >>> scores = np.array([[0.5], [-0.5]])
    >>> [codes_of_scores(scores, n).tolist() for n in (0, 1, 2)]
    [[-1, -1], [0, 0], [1, 0]]
    >>> codes_of_scores(np.array([[0.1, 0.3, 0.2]]), 3).tolist()
    [1]
    """
    if n_classes < 2:
        return np.full(len(scores), NO_CLASS if n_classes == 0 else 0)
    if n_classes == 2:
        return (scores[:, 0] > 0).astype(np.int64)
    return np.asarray(scores.argmax(axis=1))


def known_codes(classes: Array, labels: Array) -> Array | None:
    """The codes of labels, all of which were admitted before; None if one was not, or if that takes a closer look.

    Labels of another kind than the classes, and arrays of objects, are left to the full check. So are floats that are not whole:
    they are targets of a regression rather than labels.

    >>> known_codes(np.array(["no", "yes"]), np.array(["yes", "no"])).tolist()
    [1, 0]
    >>> known_codes(np.array([1, 2]), np.array([1, 3])) is None
    True
    """
    kind = labels.dtype.kind
    if kind != classes.dtype.kind or kind not in "iubUf" or not len(classes):
        return None
    codes = classes.searchsorted(labels)
    codes[codes == len(classes)] = 0
    if not (classes[codes] == labels).all() or (kind == "f" and (labels.astype(np.int64) != labels).any()):
        return None
    return codes


def unknown_labels(classes: Array, labels: Array) -> Array:
    """Which labels are not among the classes.

    >>> unknown_labels(np.array([1, 2]), np.array([3, 1])).tolist()
    [True, False]
    """
    if labels.dtype.kind != classes.dtype.kind or labels.dtype.kind not in "iubUf" or not len(classes):
        return ~np.isin(labels, classes)
    places = np.minimum(classes.searchsorted(labels), len(classes) - 1)
    return np.asarray(classes[places] != labels)


# ---- labels ----


def missing_label(dtype: np.dtype[Any], classes: Array) -> Any:
    """What stands for "no label is known yet" among labels of this dtype; None if no value of the dtype can.

    NaN for floats, the smallest (unsigned: largest) integer, an empty string, unless a class has this very label.

    >>> missing_label(np.dtype(np.int8), np.array([1, 2], np.int8))
    -128
    >>> missing_label(np.dtype(np.int8), np.array([-128, 2], np.int8)) is None
    True
    """
    value: Any = None
    if dtype.kind == "f":
        return np.nan
    if dtype.kind in "iu":
        value = np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max
    elif dtype.kind in "US":
        value = dtype.type("" if dtype.kind == "U" else b"")
    return None if value is None or value in classes else value


def labels_of_codes(classes: Array, codes: Array) -> Array:
    """The labels of codes, where ``NO_CLASS`` becomes the missing label (None in an array of objects if there is none).

    >>> labels_of_codes(np.array(["a", "b"]), np.array([NO_CLASS, 1])).tolist()
    ['', 'b']
    """
    unknown = codes < 0
    if not unknown.any():
        return classes[codes]
    labels = classes[np.maximum(codes, 0)]
    missing = missing_label(classes.dtype, classes)
    labels = labels.astype(object) if missing is None else labels
    labels[unknown] = missing
    return labels


def with_label(classes: Array, label: Any) -> tuple[Array, int]:
    """Sorted classes with one more label, in a dtype that holds it (longer strings, larger integers); and its code.

    >>> with_label(np.array(["a", "c"]), "bb")
    (array(['a', 'bb', 'c'], dtype='<U2'), 1)
    """
    place = int(classes.searchsorted(label)) if len(classes) else 0
    wide = np.empty(len(classes) + 1, np.result_type(classes.dtype, np.asarray(label).dtype))
    wide[:place], wide[place], wide[place + 1 :] = classes[:place], label, classes[place:]
    return wide, place


# ---- a class is admitted ----


def add_class(learner: Learner, n_classes: int, place: int) -> tuple[Mix, Array]:
    """Give a learner of ``n_classes`` one more, whose code is ``place``.

    Returns:
        How old outputs become new ones, and the new code of each old class.
    """
    n = n_classes
    moved = np.arange(n) + (np.arange(n) >= place)
    mix = Mix(np.zeros(outputs_of(n + 1), np.int64), np.zeros(outputs_of(n + 1)))
    if n <= 1:  # one column stays one; the first class is +1 while it is alone
        mix.factors[0] = -1.0 if n == 1 and place == 1 else 1.0
    elif n == 2:
        share = learner.pair_share
        mix.factors[moved] = -share, share
    else:
        mix.sources[moved], mix.factors[moved] = np.arange(n), 1.0
    if n:
        learner.mix_outputs(mix, lambda targets: targets_of(moved[codes_of_targets(targets, n)], n + 1))
    return mix, moved


def with_more_outputs(scores: Array, mix: Mix) -> Array:
    """Scores laid out for more classes; a class that had no output gets the smallest score of the row.

    >>> with_more_outputs(np.array([[2.0]]), Mix(np.zeros(3, np.int64), np.array([-1.0, 1.0, 0.0]))).tolist()
    [[-2.0, 2.0, -2.0]]
    """
    mixed, new = mix.of(scores), mix.new
    mixed[:, new] = mixed[:, ~new].min(axis=1, keepdims=True)
    return mixed


# ---- probabilities ----


def link_of(learner: Learner) -> str | None:
    """How a learner's scores become probabilities: "softmax", "logistic" (each class against the rest), or None: they do not.

    >>> from kernelstream.learners import NOGD, NewtonMixture
    >>> link_of(NewtonMixture()), link_of(NOGD(loss="logistic")), link_of(NOGD())
    ('softmax', 'logistic', None)
    """
    loss = getattr(learner, "loss", None)
    logistic = loss is not None and isinstance(as_loss(loss), Logistic)
    return getattr(learner, "link", None) or ("logistic" if logistic else None)


def probabilities(scores: Array, n_classes: int, link: str | None) -> Array:
    """Probabilities from scores, one column per class; several classes: softmax, or one-vs-rest, normalised.

    >>> probabilities(np.array([[0.0]]), 2, "logistic").tolist()
    [[0.5, 0.5]]
    """
    if link == "softmax" and n_classes > 2:
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))
    p = 1 / (1 + np.exp(-np.clip(scores, -700, 700)))
    if n_classes < 2:
        return np.ones_like(p)
    return np.hstack([1 - p, p]) if n_classes == 2 else np.asarray(p / p.sum(axis=1, keepdims=True))


def is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, NaT or pandas' NA.

    >>> is_missing(None), is_missing(float("nan")), is_missing("nan")
    (True, True, False)
    """
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(label, float) and label != label
