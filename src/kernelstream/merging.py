"""Models that merge: parts of a table or a stream are learnt apart, and what they learnt is added up.

All parts go on from one *base*, a model that has learnt enough rows to have chosen what the parts must have in common (a
scaling, a bandwidth, landmarks, a dictionary). Each part makes a *delta*, what it has learnt since the base. Deltas are added to
the base in any order, and the sum is the base of the next parts. `Learner.merge_guarantee` says what that keeps of one pass over
all rows; a learner without one is refused with its `merge_refusal`.

`delta`, `combine` and `add` are functions of bytes, so that any scheduler can carry them: a delta is in the container of a model
file, knows its base, and has the names of its *tasks*. A task done twice gives the same bytes, and counts once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelstream.errors import MergeError, ModelFileError
from kernelstream.estimators import KernelClassifier, started_copy
from kernelstream.learners.delta import together
from kernelstream.persistence import Model, container, contents, pack, unpack
from kernelstream.scaling import Scaler

__all__ = ["add", "branch", "combine", "delta", "merge"]

Arrays = dict[str, NDArray[Any]]

_SCALER = "sum/scaler."
_KEPT = ("first", "quantities")  # of a scaler, what is not summed


def branch(model: Model) -> Model:
    """A copy of the model that goes on learning what can be merged: what the base has chosen stays as it is.

    >>> model = KernelClassifier().fit([[0.0], [1.0]] * 10, [0, 1] * 10)
    >>> part = branch(model).partial_fit([[0.2]], [0])
    >>> merge([part, part], base=model).learner_.state()["learnt"].tolist()
    [22]
    """
    copy, _ = unpack(pack(model))
    copy.learner_.hold()
    return copy


def merge(models: Sequence[Model], base: Model | None = None, *, rows: Sequence[int] | None = None) -> Model:
    """One model that has learnt what all of these have learnt since the base; they stay as they are.

    Args:
        models: copies of the base that have learnt more, made by ``branch``.
        base: the model that they went on from; by default an untrained one. Most learners choose something from their first rows
            (landmarks, a bandwidth) and need a base that has seen these.
        rows: how many rows each has learnt since the base, where means are taken; by default equally many.

    >>> from kernelstream import KernelRegressor
    >>> from kernelstream.learners import LinearPA
    >>> parts = [KernelRegressor(LinearPA()).fit([[1.0]], [y]) for y in (1.0, 3.0)]
    >>> bool(np.isclose(merge(parts).predict([[1.0]])[0], np.mean([part.predict([[1.0]])[0] for part in parts])))
    True
    """
    if not models:
        raise MergeError("there is nothing to merge: give at least one model")
    counts = [1] * len(models) if rows is None else [int(n) for n in rows]
    if len(counts) != len(models) or min(counts) < 0:
        raise MergeError(
            f"rows must have one number per model, at least 0: {len(models)} models, got {rows!r}"
        )
    base = _untrained(models[0]) if base is None else base
    parts = [
        _delta_of(base, model, n, f"{i}") for i, (model, n) in enumerate(zip(models, counts, strict=True))
    ]
    merged, _ = unpack(pack(base))
    _add(merged, together(parts))
    return merged


def delta(base: bytes, X: Any, y: ArrayLike, *, task: str, sample_weight: ArrayLike | None = None) -> bytes:
    """What these rows add to a base; both are bytes, the base those of a model file.

    Args:
        base: a model, as ``kernelstream.persistence.pack`` gives it, or the contents of a file that ``save`` wrote.
        X: the rows.
        y: their labels or targets.
        sample_weight: their weights.
        task: the name of these rows. The same name is counted once, so a task may be repeated.
    """
    before, _ = unpack(base, "the base")
    model = branch(before)
    n = np.shape(y)[0]
    if n:
        model.partial_fit(X, y, **({} if sample_weight is None else {"sample_weight": sample_weight}))
    arrays = _delta_of(before, model, n, task)
    return container({"kind": "delta", "base": _digest(base), "tasks": [task]}, arrays)


def combine(deltas: Iterable[bytes]) -> bytes:
    """One delta out of several of the same base: what ``add`` would do at last may be done before, in a tree."""
    record, arrays = _together(deltas)
    return container(record, arrays)


def add(base: bytes, deltas: Iterable[bytes]) -> bytes:
    """The base with what its deltas have learnt; the result is the next base. Without deltas it is the base itself."""
    deltas = list(deltas)
    if not deltas:
        return base
    record, arrays = _together(deltas)
    if record["base"] != _digest(base):
        raise MergeError(f"the delta of {_named(record)} is of another base")
    model, note = unpack(base, "the base")
    _add(model, arrays)
    return pack(model, note)


def _together(deltas: Iterable[bytes]) -> tuple[dict[str, Any], Arrays]:
    """The deltas as one, in the order of their tasks; those given twice count once."""
    by_tasks: dict[tuple[str, ...], tuple[dict[str, Any], Arrays]] = {}
    owner: dict[str, tuple[str, ...]] = {}
    for data in deltas:
        record, arrays = _opened(data)
        tasks = tuple(record["tasks"])
        for task in tasks:
            if owner.setdefault(task, tasks) != tasks:
                raise MergeError(f"the task {task!r} is in two deltas that are not the same")
        by_tasks[tasks] = record, arrays
    if not by_tasks:
        raise MergeError("there is nothing to put together: give at least one delta")
    ordered = [by_tasks[tasks] for tasks in sorted(by_tasks)]
    first = ordered[0][0]
    for record, _ in ordered[1:]:
        if record["base"] != first["base"]:
            raise MergeError(f"the deltas of {_named(first)} and of {_named(record)} are of different bases")
    try:
        arrays = together([arrays for _, arrays in ordered])
    except ValueError as error:
        raise MergeError(str(error)) from None
    return {"kind": "delta", "base": first["base"], "tasks": sorted(owner)}, arrays


def _opened(data: bytes) -> tuple[dict[str, Any], Arrays]:
    try:
        record, arrays = contents(data)
    except ModelFileError as error:
        raise MergeError(f"not a delta: {error}") from None
    tasks = record.get("tasks")
    if (
        record.get("kind") != "delta"
        or not isinstance(tasks, list)
        or not all(isinstance(t, str) for t in tasks)
    ):
        raise MergeError("not a delta, but a model: give what `kernelstream.merging.delta` returned")
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise MergeError(f"the delta of {_named(record)} is damaged: {name!r} holds NaN or infinity")
    return record, arrays


def _named(record: dict[str, Any]) -> str:
    tasks = record["tasks"]
    return f"the task {tasks[0]!r}" if len(tasks) == 1 else f"{len(tasks)} tasks, the first {tasks[0]!r}"


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _untrained(model: Model) -> Model:
    copy, _ = unpack(pack(model))
    learner = model.learner_
    copy.learner_ = started_copy(
        learner, learner.width, learner.outputs, regression=learner.is_regression, dtype=learner.dtype
    )
    if "scaler_" in copy.__dict__:
        copy.scaler_ = Scaler(
            {
                name: array if name == "quantities" else np.zeros_like(array)
                for name, array in copy.scaler_.arrays.items()
            }
        )
    return copy


def _delta_of(base: Model, model: Model, rows: int, task: str) -> Arrays:
    """What a model has learnt since the base."""
    mine, other = model.learner_, base.learner_
    same = type(model) is type(base) and type(mine) is type(other)
    if not same or repr(mine.get_params()) != repr(other.get_params()):
        raise MergeError(f"part {task}: a model of {mine!r} did not go on from a base of {other!r}")
    if (mine.width, mine.outputs) != (other.width, other.outputs) or not _same_classes(base, model):
        raise MergeError(
            f"part {task}: it has {mine.width} features and {_classes(model)}, its base {other.width} and {_classes(base)}: "
            "let the base know all of them (give `classes` to its first `partial_fit`)"
        )
    arrays = mine.delta_since(other.state(), rows, task)
    if "scaler_" in model.__dict__:
        then = base.scaler_.arrays
        now = model.scaler_.about(then["first"]).arrays
        arrays |= {_SCALER + name: now[name] - then[name] for name in now if name not in _KEPT}
    return arrays


def _same_classes(base: Model, model: Model) -> bool:
    return not hasattr(model, "classes_") or np.array_equal(model.classes_, base.classes_)


def _classes(model: Model) -> str:
    return f"{len(model.classes_)} classes" if isinstance(model, KernelClassifier) else "no classes"


def _add(model: Model, arrays: Arrays) -> None:
    if not arrays["sum/rows"][0]:
        return
    model.learner_.add_delta({name: array for name, array in arrays.items() if not name.startswith(_SCALER)})
    if "scaler_" in model.__dict__:
        then = model.scaler_.arrays
        model.scaler_ = Scaler(
            {name: array if name in _KEPT else array + arrays[_SCALER + name] for name, array in then.items()}
        )
