"""The paths of a command, compared and checked before anything is opened: nothing is lost that it did not write.

docs/command-line.md states the rule.
"""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kernelstream.cli.arguments import UsageError
from kernelstream.files import is_model_file, is_special

__all__ = ["Output", "check_paths", "curve_output", "model_output", "predictions_output"]

_HEAD = 1 << 16  # bytes of an existing file that are looked at


@dataclass(frozen=True)
class Output:
    """A file that a command writes."""

    option: str
    path: str
    kind: str = ""  # what the file is to be, in words
    recognise: Callable[[str], bool] | None = None  # whether an existing file is of that kind


def model_output(path: str | None) -> list[Output]:
    """The file of ``--save``, if there is one."""
    return [Output("--save", path, "a model file", is_model_file)] if path else []


def curve_output(path: str | None) -> list[Output]:
    """The file of ``--curve``, if there is one."""
    return [Output("--curve", path, "a curve", _is_curve)] if path else []


def predictions_output(option: str, path: str | None, labels: Collection[Any] = ()) -> list[Output]:
    """A file of predictions, if there is one; `labels` are those that a model may have predicted."""
    texts = {str(label) for label in labels}
    return [Output(option, path, "predictions", lambda path: _is_predictions(path, texts))] if path else []


def check_paths(
    *,
    sources: Sequence[str] = (),
    model: str | None = None,
    outputs: Iterable[Output] = (),
    on_bad_row: str = "stop",
    checkpoint: str | None = None,
    data_folder: str | None = None,
    overwrite: bool = False,
) -> None:
    """Refuse a command whose outputs meet one of its other paths, or existing files of another kind.

    Args:
        sources: what is read: files, ``-``, or names of data sets.
        model: the model file that is read.
        outputs: the files that are written.
        on_bad_row: may name a file that bad rows are appended to.
        checkpoint: the folder of checkpoints.
        data_folder: the folder of the data sets.
        overwrite: whether existing files of another kind may be replaced.

    >>> check_paths(sources=["a.csv"], outputs=[Output("--predictions", "./a.csv")])
    Traceback (most recent call last):
    ...
    kernelstream.cli.arguments.UsageError: --predictions ./a.csv is the same file as the source a.csv: give another name
    """
    outputs = list(outputs)
    how, _, quarantine = on_bad_row.partition("=")
    written = [
        *outputs,
        *([Output("--on-bad-row quarantine", quarantine)] if how == "quarantine" and quarantine else []),
    ]
    taken: dict[object, str] = {}
    for text, path in _inputs(sources, model, data_folder):
        for key in _identities(path):
            taken.setdefault(key, text)
    if checkpoint is not None:
        for key in _identities(checkpoint):
            taken.setdefault(key, f"the folder --checkpoint {checkpoint}")
    for output in written:
        keys = _identities(output.path)
        for key in keys:
            if key in taken:
                raise UsageError(
                    f"{output.option} {output.path} is the same file as {taken[key]}: give another name"
                )
        _check_place(output, checkpoint)
        for key in keys:
            taken[key] = f"{output.option} {output.path}"
    for output in outputs:
        if output.recognise is not None and not overwrite and _holds_something(output.path):
            if not output.recognise(output.path):
                raise UsageError(
                    f"{output.option} {output.path}: the file exists and is not {output.kind}: give another name, "
                    "or --overwrite to replace it"
                )


def _inputs(
    sources: Sequence[str], model: str | None, data_folder: str | None
) -> Iterable[tuple[str, int | str]]:
    """What is read: words for a message, and a path or the number of an open file."""
    for source in sources:
        if source == "-":
            yield "standard input", 0
        elif os.path.exists(source):
            yield f"the source {source}", source
        elif path := _dataset_file(source, data_folder):
            yield f"the file of the data set {source}", path
        else:
            yield f"the source {source}", source
    if model is not None:
        yield f"the model {model}", model
    yield "standard output", 1


def _dataset_file(name: str, data_folder: str | None) -> str | None:
    from kernelstream.stream.catalogue import DATASETS
    from kernelstream.stream.files import find

    path = find(name, data_folder) if name in DATASETS else None
    return None if path is None else str(path)


def _identities(path: int | str) -> list[object]:
    """What two spellings of one file have in common: the path without links, and the file's number on its disk.

    Devices have none: several outputs may go to the same terminal or to /dev/null.
    """
    if isinstance(path, int):  # standard input or output, which matters here if the shell made it a file
        status = os.fstat(path)
        return [(status.st_dev, status.st_ino)] if stat.S_ISREG(status.st_mode) else []
    name = os.path.normcase(os.path.realpath(path))
    try:
        status = os.stat(path)
    except OSError:
        return [name]
    if stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        return []
    return [name, (status.st_dev, status.st_ino)] if status.st_ino else [name]


def _check_place(output: Output, checkpoint: str | None) -> None:
    """Refuse a file that could not be written, or that has a name of a checkpoint's own files."""
    path = output.path
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise UsageError(f"cannot write {path}: there is no folder {folder}")
    if os.path.isdir(path):
        raise UsageError(f"cannot write {path}: it is a folder")
    if checkpoint is not None and os.path.realpath(folder) == os.path.realpath(checkpoint):
        from kernelstream.checkpoint import is_own_name

        if is_own_name(os.path.basename(path)):
            raise UsageError(
                f"{output.option} {path}: the checkpoints have a file of that name: give another one"
            )


def _holds_something(path: str) -> bool:
    return not is_special(path) and os.path.isfile(path) and os.path.getsize(path) > 0


def _is_curve(path: str) -> bool:
    starts = {"csv": (b"learner,rows,",), "svg": (b"<?xml", b"<svg")}.get(
        path.lower().rpartition(".")[2], (b"\x89PNG\r\n\x1a\n",)
    )
    with open(path, "rb") as file:
        return file.read(64).startswith(starts)


def _is_predictions(path: str, labels: Collection[str]) -> bool:
    """One number or one of the labels per line; or the line without a prediction with which a classification begins."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    text = head.decode("utf-8", "replace")
    first = text.partition("\n")[0]
    if (
        text.startswith(("nan\n", '""\n'))
        or "prediction" in first.split(",")[:2]
        or '"prediction": ' in first
    ):
        return True
    whole = text[: text.rfind("\n") + 1]  # the last line may be cut
    rows = list(csv.reader(whole.splitlines()))
    return bool(rows) and all(len(row) == 1 and (row[0] in labels or _is_number(row[0])) for row in rows)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
