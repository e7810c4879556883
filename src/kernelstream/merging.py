"""Models that merge: parts of a table or a stream are learnt apart, and what they learnt is added up.

All parts go on from one *base*, a model that has learnt enough rows to have chosen what the parts must have in common (a
scaling, a bandwidth, landmarks, a dictionary). Each part makes a *delta*, what it has learnt since the base. Deltas are added to
the base in any order, and the sum is the base of the next parts. `Learner.merge_guarantee` says what that keeps of one pass over
all rows; a learner without one is refused with its `merge_refusal`.

`delta`, `combine` and `add` are functions of bytes, so that any scheduler can carry them: a delta is in the container of a model
file, knows its base, and has the names of its *tasks*. A task done twice gives the same bytes, and counts once.

`in_epochs` is what every engine does with them: in each *epoch* all tasks go on from the same base, deltas that are damaged or of
another base are refused and their tasks done again, and the sum is the base of the next epoch.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelstream.calibration import WINDOW
from kernelstream.errors import MergeError, ModelFileError
from kernelstream.estimators import KernelClassifier, KernelRegressor, started_copy
from kernelstream.labels import add_class, with_label
from kernelstream.learners.delta import record_keys, together
from kernelstream.persistence import Model, checksum, container, contents, pack, unpack
from kernelstream.scaling import Scaler
from kernelstream.tabular import is_features

__all__ = [
    "Progress",
    "add",
    "admit",
    "branch",
    "combine",
    "delta",
    "delta_of",
    "digest",
    "in_epochs",
    "learn_epoch",
    "merge",
]

Arrays = dict[str, NDArray[Any]]
Opened = tuple[dict[str, Any], Arrays]  # a delta: its header and its arrays, checked

_SCALER, _COUNTS, _CALIBRATION = "sum/scaler.", "sum/class_counts", "calibration."
_KEPT = ("first", "quantities")  # of a scaler, what is not summed


class Progress(NamedTuple):
    """How far a model that is learnt in parts is: after each epoch.

    >>> Progress(rows=500, all_rows=2000, merges=1, delta_bytes=9000, seconds=4.0, workers=2).seconds_left
    12.0
    """

    rows: int
    all_rows: int | None  # None where nobody knows
    merges: int
    delta_bytes: int  # of this epoch, as they came
    seconds: float  # since the first epoch began
    workers: int | None = None
    refused: tuple[str, ...] = ()  # what was wrong with deltas of this epoch that were done again
    before: int = 0  # rows learnt before the first epoch

    @property
    def seconds_left(self) -> float | None:
        """At the rate of the epochs so far."""
        if self.all_rows is None or self.rows == self.before:
            return None
        return self.seconds * (self.all_rows - self.rows) / (self.rows - self.before)


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
        _delta_of(base, base.learner_.state(), model, n, f"{i}")
        for i, (model, n) in enumerate(zip(models, counts, strict=True))
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

    def learn(model: Model) -> tuple[int, list[Any]]:
        n, rows = int(np.shape(y)[0]), X
        news: list[Any] = []
        if n and "encoder_" in model.__dict__ and not is_features(X, model.encoder_):
            encoder, features = model.encoder_.learnt(X)
            rows, news = features[:, : model.n_features_in_], [model.encoder_.news_of(encoder)]
            model.set_columns(None)  # features of their own get what is new when it is told to the base
        if n:
            model.partial_fit(rows, y, **({} if sample_weight is None else {"sample_weight": sample_weight}))
        return n, news

    return delta_of(base, learn, task=task)


def delta_of(base: bytes, learn: Callable[[Model], tuple[int, list[Any]]], *, task: str) -> bytes:
    """What ``learn`` adds to a base: it is given a branch, lets it learn rows, and says how many, and what is new in columns."""
    model, _ = unpack(base, "the base")
    learner = model.learner_
    before, then = (
        copy.deepcopy(model, {id(learner): learner}),
        learner.state(),
    )  # a learner may be large: its state is enough
    learner.hold()
    n, news = learn(model)
    arrays = _delta_of(before, then, model, n, task)
    return container({"kind": "delta", "base": digest(base), "tasks": [task], "news": news}, arrays)


def combine(deltas: Iterable[bytes], *, of: str | None = None, names: Sequence[str] = ()) -> bytes:
    """One delta out of several of the same base: what ``add`` would do at last may be done before, in a tree.

    With ``of``, the `digest` of the base, deltas that are damaged or of another base are left out instead of raising. The result
    says so, by the ``names`` of the deltas, and ``in_epochs`` does their tasks again.
    """
    if of is None:
        record, arrays = _together(map(_opened, deltas))
        return container(record, arrays)
    good: list[Opened] = []
    refused: list[str] = []
    for number, data in enumerate(deltas):
        try:
            record, arrays = _opened(data)
            _check_base(record, of)
        except MergeError as error:
            refused.append(f"{names[number]}: {error}" if names else str(error))
            continue
        refused += record.get("refused", [])
        good += [(record, arrays)] * bool(record["tasks"])
    record, arrays = (
        _together(good)
        if good
        else (
            {"kind": "delta", "base": of, "tasks": [], "news": []},
            {},
        )
    )
    return container(record | {"refused": refused}, arrays)


def add(base: bytes, deltas: Iterable[bytes]) -> bytes:
    """The base with what its deltas have learnt; the result is the next base. Without deltas it is the base itself."""
    return _base_with(base, list(map(_opened, deltas)))


def _base_with(base: bytes, deltas: Sequence[Opened]) -> bytes:
    if not deltas:
        return base
    record, arrays = _together(deltas)
    _check_base(record, digest(base))
    model, note = unpack(base, "the base")
    _add(model, arrays, record["news"])
    return pack(model, note)


def admit(base: bytes, labels: ArrayLike) -> bytes:
    """The base with classes for these labels, so that parts may meet them; the base itself if it knows them all.

    >>> base = pack(KernelClassifier().partial_fit([[0.0], [1.0]] * 10, ["no", "yes"] * 10))
    >>> unpack(admit(base, ["maybe", "no"]))[0].classes_.tolist()
    ['maybe', 'no', 'yes']
    """
    model, note = unpack(base, "the base")
    if not isinstance(model, KernelClassifier):
        return base
    new = np.setdiff1d(np.asarray(labels), model.classes_)
    if not len(new):
        return base
    if not model._open:
        raise MergeError(
            f"the label {new[0]!r} is not among the classes {model.classes_.tolist()} that the model was told to expect"
        )
    for label in new:
        n = len(model.classes_)
        model.classes_, place = with_label(model.classes_, label)
        add_class(model.learner_, n, place)
    return pack(model, note)


def in_epochs(
    base: bytes,
    epochs: Iterable[Collection[str]],
    learn: Callable[[bytes, list[str]], Iterable[bytes]],
    *,
    retries: int = 3,
    all_rows: int | None = None,
    rows: int = 0,
    workers: int | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> bytes:
    """The base of all epochs: in each, tasks go on from the same base, and what they learnt is added to it.

    Args:
        base: a model as bytes.
        epochs: for each epoch the names of its tasks.
        learn: called with the base and names of tasks; gives deltas, in any order, each of one task or of several. A later delta
            replaces earlier ones of the same tasks.
        retries: how often tasks are given to ``learn`` again whose delta did not come, or was damaged or of another base.
        all_rows: how many rows there are in all, if that is known; for ``progress``.
        rows: those learnt before.
        workers: how many there are; for ``progress``.
        progress: called after each epoch.

    >>> from kernelstream import KernelRegressor
    >>> from kernelstream.learners import LinearPA
    >>> from kernelstream.persistence import pack, unpack
    >>> rows = {"a": [[1.0]], "b": [[2.0]], "c": [[3.0]]}
    >>> base = pack(KernelRegressor(LinearPA()).fit([[1.0]], [1.0]))
    >>> tell = lambda base, tasks: [delta(base, rows[task], [2.0], task=task) for task in tasks]
    >>> after = in_epochs(base, [["a", "b"], ["c"]], tell, progress=lambda p: print(p.rows, p.merges))
    2 1
    3 2
    """
    began, merges, before = time.monotonic(), 0, rows
    for epoch in epochs:
        good, refused, size = _deltas_of(base, epoch, learn, retries)
        base, merges = _base_with(base, good), merges + 1
        if progress is not None:
            rows += sum(int(arrays["sum/rows"][0]) for _, arrays in good)
            seconds = time.monotonic() - began
            progress(Progress(rows, all_rows, merges, size, seconds, workers, tuple(refused), before))
    return base


def learn_epoch(
    model: Model,
    tasks: Collection[str],
    learn: Callable[[bytes, list[str]], Iterable[bytes]],
    *,
    retries: int = 3,
    meanwhile: Callable[[], object] | None = None,
) -> tuple[int, list[str]]:
    """One epoch as ``in_epochs`` does it, but added to this model, in place: a large one is packed once, and never unpacked.

    Args:
        model: the base, and then the sum.
        tasks: the names of its tasks.
        learn: see ``in_epochs``.
        retries: see ``in_epochs``.
        meanwhile: called in a thread of its own while the deltas, which are all there and good, are added.

    Returns:
        The bytes of the deltas, and what was wrong with those that were done again.
    """
    base = pack(model)
    good, refused, size = _deltas_of(base, tasks, learn, retries)
    record, arrays = _together(good)  # deltas that do not go together are refused before anything is counted
    with ThreadPoolExecutor(1) as other:
        beside = None if meanwhile is None else other.submit(meanwhile)
        try:
            _add(model, arrays, record["news"])
        except BaseException:  # whatever it was, the model is not to be half of one
            model.__dict__ = unpack(base)[0].__dict__
            raise
        if beside is not None:
            beside.result()
    return size, refused


def _deltas_of(
    base: bytes, epoch: Collection[str], learn: Callable[[bytes, list[str]], Iterable[bytes]], retries: int
) -> tuple[list[Opened], list[str], int]:
    """Good deltas of all tasks of an epoch, what was wrong with the others, and the bytes of the good ones."""
    good: dict[tuple[str, ...], tuple[Opened, int]] = {}
    refused: list[str] = []
    left, of = list(epoch), digest(base)
    for _ in range(retries + 1):
        for data in learn(base, left):
            try:
                record, arrays = _opened(data)
                _check_base(record, of)
            except MergeError as error:
                refused.append(str(error))
                continue
            refused += record.get("refused", [])
            tasks = tuple(record["tasks"])
            odd = [task for task in tasks if task not in epoch]
            if odd:
                refused.append(f"the delta of the task {odd[0]!r} was not asked for")
            elif tasks:
                good = {other: kept for other, kept in good.items() if not {*other} & {*tasks}}
                good[tasks] = (record, arrays), len(data)
        done = {task for tasks in good for task in tasks}
        left = [task for task in epoch if task not in done]
        if not left:
            return [delta for delta, _ in good.values()], refused, sum(size for _, size in good.values())
    why = refused[-1] if refused else "no delta of it came"
    raise MergeError(
        f"{len(left)} of {len(epoch)} tasks failed {retries + 1} times, the first of them {left[0]!r}: {why}"
    )


def _together(deltas: Iterable[Opened]) -> Opened:
    """The deltas as one, in the order of their tasks; those given twice count once."""
    by_tasks: dict[tuple[str, ...], Opened] = {}
    owner: dict[str, tuple[str, ...]] = {}
    for record, arrays in deltas:
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
    news = [some for record, _ in ordered for some in record["news"]]
    return {"kind": "delta", "base": first["base"], "tasks": sorted(owner), "news": news}, arrays


def _opened(data: bytes) -> Opened:
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
    if not tasks:
        return "no task"
    return f"the task {tasks[0]!r}" if len(tasks) == 1 else f"{len(tasks)} tasks, the first {tasks[0]!r}"


def digest(base: bytes) -> str:
    """What a delta knows its base by: the checksum that it has of all its contents, and that is compared when it is unpacked.

    >>> base = pack(KernelRegressor().fit([[0.0], [1.0]], [0.0, 1.0]))
    >>> digest(base) == digest(add(base, [])), digest(base) == digest(add(base, [delta(base, [[2.0]], [1.0], task="a")]))
    (True, False)
    """
    return checksum(base)


def _check_base(record: dict[str, Any], of: str) -> None:
    if record["base"] != of:
        raise MergeError(f"the delta of {_named(record)} is of another base")


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


def _delta_of(base: Model, then: Arrays, model: Model, rows: int, task: str) -> Arrays:
    """What a model has learnt since the base, whose learner had the state ``then``."""
    mine, other = model.learner_, base.learner_
    same = type(model) is type(base) and type(mine) is type(other)
    if not same or repr(mine.get_params()) != repr(other.get_params()):
        raise MergeError(f"part {task}: a model of {mine!r} did not go on from a base of {other!r}")
    width, outputs = (int(n) for n in then["shape"][:2])
    if (mine.width, mine.outputs) != (width, outputs) or not _same_classes(base, model):
        raise MergeError(
            f"part {task}: it has {mine.width} features and {_classes(model)}, its base {width} and {_classes(base)}: "
            "let the base know all of them (give `classes` to its first `partial_fit`)"
        )
    arrays = mine.delta_since(then, rows, task)
    if "scaler_" in model.__dict__:
        scales = base.scaler_.arrays
        now = model.scaler_.about(scales["first"]).arrays
        arrays |= {_SCALER + name: now[name] - scales[name] for name in now if name not in _KEPT}
    if isinstance(model, KernelClassifier) and isinstance(base, KernelClassifier):
        arrays[_COUNTS] = _counts_of(model) - _counts_of(base)
    elif isinstance(model, KernelRegressor) and isinstance(base, KernelRegressor):
        calibration = model._calibration.delta_since(base._calibration, rows, record_keys(task, WINDOW))
        arrays |= {name.replace("/", "/" + _CALIBRATION, 1): array for name, array in calibration.items()}
    return arrays


def _counts_of(model: KernelClassifier) -> NDArray[Any]:
    """Rows learnt of each class, where weights are balanced; else zeros."""
    counts = model.__dict__.get("_class_counts", {})
    return np.array([counts.get(label, 0) for label in model.classes_.tolist()], np.float64)


def _same_classes(base: Model, model: Model) -> bool:
    return not hasattr(model, "classes_") or np.array_equal(model.classes_, base.classes_)


def _classes(model: Model) -> str:
    return f"{len(model.classes_)} classes" if isinstance(model, KernelClassifier) else "no classes"


def _add(model: Model, arrays: Arrays, news: Sequence[Any] = ()) -> None:
    """Adds what was learnt, and what is new in columns."""
    _add_rows(model, arrays)
    if news:
        model.set_columns(model.encoder_.told(*news).description)


def _add_rows(model: Model, arrays: Arrays) -> None:
    if not arrays["sum/rows"][0]:
        return
    own = (_SCALER, _COUNTS, "sum/" + _CALIBRATION, "keep/" + _CALIBRATION)
    model.learner_.add_delta({name: array for name, array in arrays.items() if not name.startswith(own)})
    if "scaler_" in model.__dict__:
        then = model.scaler_.arrays
        model.scaler_ = Scaler(
            {name: array if name in _KEPT else array + arrays[_SCALER + name] for name, array in then.items()}
        )
    if isinstance(model, KernelClassifier) and arrays[_COUNTS].any():
        counts = (_counts_of(model) + arrays[_COUNTS]).astype(int).tolist()
        model._class_counts = {
            label: n for label, n in zip(model.classes_.tolist(), counts, strict=True) if n
        }
    elif isinstance(model, KernelRegressor):
        delta = {name.replace(_CALIBRATION, "", 1): array for name, array in arrays.items()}
        model._calibration = model._calibration.with_delta(delta)
