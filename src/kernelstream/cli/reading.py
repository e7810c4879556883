"""From the command line's sources and reading options to the arguments of `kernelstream.stream.read`."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

from kernelstream.cli.arguments import ROWS
from kernelstream.stream import DATASETS, STREAMS, SourceError, read
from kernelstream.stream.pipes import Pipe
from kernelstream.stream.task import LABELS, Guess, guess_task

__all__ = ["CHUNK", "PART", "open_pipe", "reading_arguments", "source_name", "task_of"]

CHUNK = 4096
"""Rows learnt at once. More would be no faster, and Ctrl-C waits for the end of a chunk."""

PART = 1000
"""Rows read at once for several processes: epochs are made of these."""

_HEAD = 1 << 20  # bytes of standard input that are looked at


def reading_arguments(sources: Sequence[str], reading: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The sources and the keyword arguments of `read`; options that were not given are left out.

    >>> reading_arguments([], {"rows": None, "seed": 0, "on_bad_row": "stop", "data": None, "target": None})
    (['rings'], {'rows': 100000, 'seed': 0, 'on_bad_row': 'stop', 'data_dir': None, 'latency': 0.0})
    """
    names = list(sources) or ["rings"]
    options = dict(reading)
    rows, seed, bad, folder = (options.pop(key) for key in ("rows", "seed", "on_bad_row", "data"))
    if rows is None and _is_stream(names):
        rows = ROWS
    given = {key: value for key, value in options.items() if value is not None}
    return names, {"rows": rows, "seed": seed, "on_bad_row": bad, "data_dir": folder, "latency": 0.0, **given}


def open_pipe(names: Sequence[str]) -> list[str | IO[Any]]:
    """The sources, with a pipe on standard input as an object whose first bytes can be looked at."""
    return [Pipe(sys.stdin.buffer) if name == "-" and _is_pipe() else name for name in names]  # type: ignore[misc]


def task_of(places: Sequence[Any], options: dict[str, Any]) -> Guess | None:
    """The task that the first labels speak for; None if it was asked for, or is a data set's own."""
    if "task" in options or _is_named(places):
        return None
    first = places[0]
    if first == "-":
        head = os.pread(0, _HEAD, os.lseek(0, 0, os.SEEK_CUR))
    elif isinstance(first, Pipe):
        head = first.look(LABELS, _HEAD, options["latency"])
    else:
        head = b""
    place = io.BytesIO(head) if head else first
    numbers: list[Any] = []
    others = 0
    asked = options | {"task": "regression", "on_bad_row": "skip", "rows": LABELS, "chunk_size": LABELS}
    with contextlib.suppress(SourceError, EOFError), contextlib.closing(read(place, **asked)) as source:
        for chunk in source:
            numbers.append(chunk.y)
            others = source.bad_rows
        others = source.bad_rows
    return guess_task(np.concatenate([np.zeros(0), *numbers]), others)


def _is_stream(names: Sequence[Any]) -> bool:
    return len(names) == 1 and names[0] in STREAMS and not os.path.exists(names[0])


def _is_named(names: Sequence[Any]) -> bool:
    return _is_stream(names) or (len(names) == 1 and names[0] in DATASETS and not os.path.exists(names[0]))


def _is_pipe() -> bool:
    try:
        return not stat.S_ISREG(os.fstat(0).st_mode)
    except OSError:
        return False


def source_name(sources: Sequence[str]) -> str:
    """What to call the sources in a report.

    >>> source_name(["logs/day1.csv", "logs/day2.csv"])
    'day1.csv, day2.csv'
    """
    return ", ".join(map(os.path.basename, sources))
