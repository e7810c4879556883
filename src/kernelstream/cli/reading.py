"""From the command line's sources and reading options to the arguments of `kernelstream.stream.read`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

from kernelstream.cli.arguments import ROWS
from kernelstream.stream import STREAMS, read

__all__ = ["CHUNK", "reading_arguments", "source_name", "task_of"]

CHUNK = 4096
"""Rows learnt at once. More would be no faster, and Ctrl-C waits for the end of a chunk."""


def reading_arguments(sources: Sequence[str], reading: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The sources and the keyword arguments of `read`; options that were not given are left out.

    >>> reading_arguments([], {"rows": None, "seed": 0, "on_bad_row": "stop", "data": None, "target": None})
    (['rings'], {'rows': 100000, 'seed': 0, 'on_bad_row': 'stop', 'data_dir': None})
    """
    names = list(sources) or ["rings"]
    options = dict(reading)
    rows, seed, bad, folder = (options.pop(key) for key in ("rows", "seed", "on_bad_row", "data"))
    if rows is None and len(names) == 1 and names[0] in STREAMS and not os.path.exists(names[0]):
        rows = ROWS
    given = {key: value for key, value in options.items() if value is not None}
    return names, {"rows": rows, "seed": seed, "on_bad_row": bad, "data_dir": folder, **given}


def task_of(sources: Sequence[str], options: dict[str, Any]) -> str:
    """The task: as asked for, or a data set's own. Opening a source reads nothing, but notices a missing file."""
    with contextlib.closing(read(*sources, **options | {"on_bad_row": "stop"})) as source:
        return source.task


def source_name(sources: Sequence[str]) -> str:
    """What to call the sources in a report.

    >>> source_name(["logs/day1.csv", "logs/day2.csv"])
    'day1.csv, day2.csv'
    """
    return ", ".join(map(os.path.basename, sources))
