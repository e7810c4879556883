"""A run: predict then learn all rows of a source, write predictions, keep checkpoints, and stop when asked."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.checkpoint import Checkpoint
from kernelstream.errors import CapacityError, CheckpointError, ScoreOverflowError
from kernelstream.estimators import KernelClassifier
from kernelstream.evaluate import Result
from kernelstream.files import is_special
from kernelstream.metrics import WINDOW
from kernelstream.persistence import Model
from kernelstream.rows import fitted_width
from kernelstream.stream import Source

__all__ = [
    "EVERY",
    "MAX_CLASSES",
    "Interrupts",
    "Outcome",
    "Run",
    "TooManyClassesError",
    "check_classes",
    "differences",
    "lines",
]

EVERY = 100_000
"""Rows between two checkpoints, by default."""

MAX_CLASSES = 200
"""Classes of a classification, by default: more are mostly a target that is a number."""


class Outcome(NamedTuple):
    """How a run ended."""

    model: Model
    result: Result
    position: Any  # of the source, at the end
    rows_before: int  # learnt before this run began, by the one that it continues
    bad_rows: int
    first_bad_row: str | None
    interrupted: bool


@dataclasses.dataclass
class Run:
    """Predict then learn a source to its end.

    With a checkpoint folder, the run continues where the one before was killed, and ends with the same model and the same
    predictions, to the bit, as one that was never killed. A finished run is not repeated.

    Args:
        model: a new estimator, or one that has learnt and goes on.
        open_source: opens the source, from a position if one is given.
        predictions: a file that gets one line for each row, what was predicted before it was learnt.
        checkpoint: a folder.
        every: rows between two checkpoints.
        settings: what the outcome depends on; a checkpoint of other settings is refused.
        on_chunk: called with the result so far and the source, at the start and after each chunk.
        step: learns a chunk, predicting each row before: gets the model, the result to count in, the rows and their labels; gives
            the model after them, and what was predicted. By default the model learns them here, one after the other.
        window: rows of the window of the metrics.
        curves: names of metrics whose course is kept.
        max_classes: more classes than this end the run.
    """

    model: Model
    open_source: Callable[[Any], Source]
    predictions: str | None = None
    checkpoint: str | None = None
    every: int = EVERY
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    step: Callable[[Model, Result, Any, Any], tuple[Model, NDArray[Any]]] | None = None
    on_chunk: Callable[[Result, Source], object] = lambda result, source: None
    window: int = WINDOW
    curves: Sequence[str] = ()
    max_classes: int = MAX_CLASSES

    def __call__(self) -> Outcome:
        """Run to the end of the source or to Ctrl-C, whichever is first."""
        with contextlib.ExitStack() as stack:
            folder = None if self.checkpoint is None else stack.enter_context(Checkpoint(self.checkpoint))
            saved = None if folder is None else folder.load()
            begun = None if folder is None else folder.begin()
            result = Result.of(self.model, window=self.window, curves=self.curves)
            model, position, size = self.model, None, None
            if begun is not None:  # and perhaps killed before the first checkpoint
                self._check_settings(begun)
                position = begun["position"]
            if saved is not None:
                model, position, result = (
                    saved.model,
                    saved.position,
                    Result.from_state(saved.record["result"]),
                )
                size = self._check_predictions(saved.record["written"])
                if saved.record["finished"]:
                    bad = position["bad"]
                    return Outcome(model, result, position, result.rounds, bad["count"], bad["first"], False)
            before = result.rounds
            source = stack.enter_context(contextlib.closing(self.open_source(position)))
            if folder is not None:
                folder.begin({"settings": self.settings, "position": source.position})
            written = None
            if self.predictions is not None:
                written = stack.enter_context(contextlib.closing(_Lines(self.predictions, size)))
            interrupts = stack.enter_context(Interrupts())

            def save(finished: bool = False) -> None:
                if folder is not None and result.rounds:
                    record = {
                        "result": result.state(),
                        "written": None if written is None else written.sync(),
                        "finished": finished,
                    }
                    folder.save(model, position, **record)

            last_saved = before
            self.on_chunk(result, source)
            while True:
                try:
                    chunk = interrupts.read(source)
                except Exception:  # of the source: all that came before it is learnt, and counts
                    save()
                    raise
                if chunk is None:
                    break
                X, y = chunk
                unknown_first = result.task == "classification" and not len(getattr(model, "classes_", ()))
                if hasattr(model, "n_features_in_"):
                    model.widen(X.shape[1])
                    X = fitted_width(X, model.n_features_in_)
                model.set_quantities(source.quantities)
                try:
                    check_classes(model, y, self.max_classes, result.rounds)
                    if self.step is None:
                        predicted = result.step(model, X, y)
                    else:
                        model, predicted = self.step(model, result, X, y)
                except (CapacityError, ScoreOverflowError) as error:  # nothing of this chunk is learnt
                    save()
                    raise error.moved(result.rounds) from None
                except TooManyClassesError:
                    save()
                    raise
                if written is not None:
                    written.write(lines(predicted, unknown_first=unknown_first))
                position = source.position
                if result.rounds - last_saved >= self.every:
                    save()
                    last_saved = result.rounds
                self.on_chunk(result, source)
            if not interrupts.asked:
                position = source.position  # with the bad rows at the very end
            save(finished=not interrupts.asked)
            bad_rows, first_bad = source.bad_rows, source.first_bad_row
            return Outcome(model, result, position, before, bad_rows, first_bad, interrupts.asked)

    def _check_settings(self, begun: dict[str, Any]) -> None:
        if not isinstance(begun, dict) or not {"settings", "position"} <= begun.keys():
            raise CheckpointError(f"{self.checkpoint} is not of a run: give another folder")
        changed = differences(begun["settings"], self.settings)
        if changed:
            raise CheckpointError(
                f"the checkpoint in {self.checkpoint} is of another run: {'; '.join(changed)}. "
                "Give the same command, another folder, or delete this one"
            )

    def _check_predictions(self, size: int | None) -> int | None:
        """The length of the predictions when the checkpoint was written, which must still be there."""
        if self.predictions is not None and size is not None and not is_special(self.predictions):
            there = os.path.getsize(self.predictions) if os.path.exists(self.predictions) else 0
            if there < size:
                raise CheckpointError(
                    f"{self.predictions} has {there:,} bytes, but the checkpoint in {self.checkpoint} says that {size:,} "
                    "were written: it is not the file that was written before"
                )
        return size


class TooManyClassesError(ValueError):
    """A classification met more classes than it may."""


def check_classes(model: Model, y: Any, most: int, rows: int) -> None:
    """Refuse labels that would make more classes than allowed: each costs time and memory, and is rarely meant."""
    if not isinstance(model, KernelClassifier):
        return
    known = len(model.classes_) if hasattr(model, "classes_") else 0
    labels = np.asarray(y).tolist()
    if known + len(labels) <= most:
        return
    new = set(labels).difference(model.classes_.tolist() if known else ())
    if known + len(new) > most:
        examples = ", ".join(str(label) for label in list(dict.fromkeys(labels))[:5])
        raise TooManyClassesError(
            f"more than {most:,} classes within {rows + len(labels):,} rows (labels such as {examples}): if the target is a "
            "number to be predicted, say task='regression'; if these are classes, raise max_classes"
        )


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """How two settings differ, in words.

    >>> differences({"seed": 1, "learner": "NOGD"}, {"seed": 2, "learner": "NOGD"})
    ['seed was 1, is 2']
    """
    return [
        f"{key} was {before.get(key)}, is {now.get(key)}"
        for key in sorted({*before, *now})
        if before.get(key) != now.get(key)
    ]


def lines(predicted: NDArray[Any], *, unknown_first: bool = False) -> bytes:
    r"""Predictions as lines of text, from which the same numbers are read again; ``nan`` where no label was known.

    >>> lines(np.array([-9, 1, 2]), unknown_first=True)
    b'nan\n1\n2\n'
    >>> lines(np.array(["a", "b, c"]))
    b'a\n"b, c"\n'
    """
    values = predicted.tolist()
    if predicted.dtype.kind in "OU" and all(isinstance(value, str | None) for value in values):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([value or ""] for value in values)
        return text.getvalue().encode()
    if unknown_first:
        values[0] = "nan"
    if predicted.dtype.kind in "iub":  # few classes, many rows
        line = {value: f"{value}\n" for value in set(values)}
        return "".join(map(line.__getitem__, values)).encode()
    return "".join(f"{value}\n" for value in values).encode()


class _Lines:
    """A file that lines are added to, first cut to a length; without one it starts empty. Errors name the file."""

    def __init__(self, path: str, size: int | None) -> None:
        self._path = path
        self._special = is_special(path)  # a device or a pipe has no length, and cannot be cut
        with self._naming_the_file():
            append = size is not None and not self._special
            self._file = open(path, "r+b" if append else "wb", buffering=0)
            if append:
                self._file.truncate(size)
                self._file.seek(0, os.SEEK_END)

    def write(self, text: bytes) -> None:
        with self._naming_the_file():
            while text:  # a disk that fills up takes a part first
                text = text[self._file.write(text) :]

    def sync(self) -> int | None:
        """The length, once everything is on the disk; None for a device or a pipe."""
        if self._special:
            return None
        with self._naming_the_file():
            os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        with self._naming_the_file():
            self._file.close()

    @contextlib.contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OSError(
                error.errno, f"cannot write the predictions: {error.strerror}", self._path
            ) from None


class Interrupts:
    """Ctrl-C ends a wait for rows at once, and learning at the end of the chunk; a second one ends the process at once."""

    def __init__(self) -> None:
        self.asked = False
        self._reading = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._reading or self.asked:
            self.asked = True
            raise KeyboardInterrupt
        self.asked = True

    def read(self, source: Iterator[Any]) -> Any:
        """The next chunk; None at the end, and after Ctrl-C."""
        if self.asked:
            return None
        try:
            self._reading = True
            chunk = next(source, None)
            self._reading = False
            return chunk
        except KeyboardInterrupt:
            self._reading = False
            if not self.asked:
                raise
            return None
