"""The results on disk: two files of JSON lines in a folder.

``results.jsonl`` holds what is the same wherever and whenever a trial is run: its settings, seed, figures and curves, the
version and the CPU level. ``times.jsonl`` holds how long it took, by the trial's id. Lines are appended as trials finish; a line
that was cut short by a crash is dropped when the files are opened again. A finished run leaves both in the order of its
trials, so that two runs of the same trials end with equal results files.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import filelock

from kernelstream.files import write_atomically
from kernelstream_reproduce.trials import Outcome, Trial

__all__ = ["ResultsError", "Store"]


class ResultsError(ValueError):
    """A folder of results that cannot be used; the message says what would help."""


class Store:
    """The results of a folder. Used with ``with``, it may be added to, by one process at a time.

    Attributes:
        results: rows by trial id.
        times: rows of times by trial id.

    >>> import tempfile
    >>> trial = Trial("stream", "rings", "NOGD", {"eta": 0.1})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Store(folder) as store:
    ...         store.add(trial, Outcome({"mistakes": 12.5}, seconds=0.01), version="0.1.0", cpu="v3")
    ...     Store(folder).results[trial.id]["measures"]
    {'mistakes': 12.5}
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.results_path = self.folder / "results.jsonl"
        self.times_path = self.folder / "times.jsonl"
        self.results = _read(self.results_path)
        self.times = _read(self.times_path)
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Lock the folder and get ready to add."""
        self.folder.mkdir(parents=True, exist_ok=True)
        # Not bound to a thread, so that any thread may close the store.
        lock = filelock.FileLock(self.folder / ".lock", timeout=0, thread_local=False)
        try:
            self._open.enter_context(lock)
        except filelock.Timeout:
            raise ResultsError(
                f"another run is writing to {self.folder}: wait for it, or choose another folder"
            ) from None
        # Another run may just have finished.
        self.results, self.times = _read(self.results_path), _read(self.times_path)
        paths = (self.times_path, self.results_path)
        self._files = [self._open.enter_context(_open_at_end(path)) for path in paths]
        return self

    def __exit__(self, *_: object) -> None:
        """Close and unlock."""
        self._open.close()

    def add(self, trial: Trial, outcome: Outcome, version: str, cpu: str) -> None:
        """Keep the outcome of a trial: the times first, so that a result never lacks them."""
        row = {
            "id": trial.id,
            **trial.key,
            "found": outcome.chosen,
            "measures": outcome.measures,
            "curve": outcome.curve if trial.phase == "run" else None,  # those of the tuning are not shown
            "version": version,
            "cpu": cpu,
        }
        times: dict[str, Any] = {"id": trial.id, "seconds": outcome.seconds}
        if outcome.seconds_curve is not None:
            times["curve"] = outcome.seconds_curve
        for file, line in zip(self._files, (times, row), strict=True):
            file.write(_line(line))
            file.flush()
        self.times[trial.id], self.results[trial.id] = times, json.loads(_line(row))

    def arrange(self, ids: Iterable[str]) -> None:
        """Put both files into the order of these trials; other results follow, by id."""
        order = [id for id in dict.fromkeys(ids) if id in self.results]
        order += sorted(set(self.results) - set(order))
        for path, rows in ((self.results_path, self.results), (self.times_path, self.times)):
            text = "".join(_line(rows[id]) for id in order if id in rows)
            write_atomically(str(path), text.encode())


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, allow_nan=False) + "\n"


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Runs by id; the last of equals. What stands after the last newline was cut short."""
    rows: dict[str, dict[str, Any]] = {}
    if not path.exists():
        return rows
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        try:
            row = json.loads(line)
            rows[row["id"]] = row
        except (ValueError, KeyError, TypeError):
            raise ResultsError(
                f"{path}, line {number} is not a result: delete the line, or choose another folder"
            ) from None
    return rows


def _open_at_end(path: Path) -> Any:
    """The file open at its end, without a line that was cut short."""
    if path.exists():
        whole = path.read_bytes()
        if not whole.endswith(b"\n"):
            with open(path, "r+b") as file:
                file.truncate(whole.rfind(b"\n") + 1)
    return open(path, "a", encoding="utf-8")
