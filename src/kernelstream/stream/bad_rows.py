"""What to do with rows that cannot be used: stop, leave them out, or put them aside."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import IO, Any

from kernelstream.tables.errors import BadRow, SourceError, TooWideError

__all__ = ["BadRow", "BadRowError", "BadRows", "MissingPackageError", "SourceError", "TooWideError"]


class BadRowError(SourceError):
    """A row cannot be used. The message names the file, the line, the column and the reason.

    >>> issubclass(BadRowError, SourceError)
    True
    """


class MissingPackageError(ImportError):
    """A format needs a package that is not installed. The message says how to install it.

    >>> issubclass(MissingPackageError, ImportError)
    True
    """


class BadRows:
    r"""The policy and the tally: ``"stop"``, ``"skip"`` or ``"quarantine=FILE"``.

    Examples:
        >>> bad = BadRows("skip")
        >>> bad.meet(lambda: "rows.csv, line 3: no number", b"a,b\n")
        >>> bad.count, bad.first
        (1, 'rows.csv, line 3: no number')
        >>> BadRows("ignore")
        Traceback (most recent call last):
        ...
        ValueError: on_bad_row must be 'stop', 'skip' or 'quarantine=FILE', got 'ignore'
    """

    def __init__(self, policy: str, resume: dict[str, Any] | None = None) -> None:
        kind, equals, path = policy.partition("=") if isinstance(policy, str) else ("", "", "")
        if (
            kind not in ("stop", "skip", "quarantine")
            or (kind == "quarantine") != bool(path)
            or (equals and not path)
        ):
            raise ValueError(f"on_bad_row must be 'stop', 'skip' or 'quarantine=FILE', got {policy!r}")
        self.stops, self.puts_aside = kind == "stop", kind == "quarantine"
        self.count = 0
        self.first: str | None = None  # the first message, for a report
        self._path = path
        self._file: IO[bytes] | None = None
        self._unsaved = False
        if resume is not None:
            self.count, self.first = resume["count"], resume["first"]
            if path and resume["bytes"] is not None:
                self._cut(resume["bytes"])

    def _cut(self, size: int) -> None:
        """Remove what was put aside after the position that is resumed: those rows will be read again."""
        there = os.path.getsize(self._path) if os.path.exists(self._path) else 0
        if there < size:
            raise ValueError(
                f"{self._path} has {there} bytes, but {size} were there at the position to resume from"
            )
        if there > size:
            os.truncate(self._path, size)

    def meet(self, message: Callable[[], str], raw: bytes) -> None:
        """Take note of a bad row; raises if the policy is to stop. The message is only made if it is needed."""
        if self.stops:
            raise BadRowError(message())
        self.count += 1
        self.first = self.first or message()
        if self._path:
            with self._naming_the_file(message):
                self._file = self._file or open(self._path, "ab")
                self._unsaved = True
                self._file.write(raw if raw.endswith((b"\n", b"\r")) else raw + b"\n")

    def position(self) -> dict[str, Any]:
        """What `resume` takes. All that was put aside before is on the disk by then."""
        size = None
        if self._path:
            if self._file is not None and self._unsaved:
                with self._naming_the_file():
                    self._file.flush()
                    os.fsync(self._file.fileno())
                self._unsaved = False
            size = os.path.getsize(self._path) if os.path.exists(self._path) else 0
        return {"count": self.count, "first": self.first, "bytes": size}

    def close(self) -> None:
        """Close the file of rows put aside."""
        if self._file is not None:
            file, self._file = self._file, None
            with self._naming_the_file():
                file.close()

    @contextlib.contextmanager
    def _naming_the_file(self, message: Callable[[], str] | None = None) -> Iterator[None]:
        """An error while writing (a full disk) names the file, and the row if it is known."""
        try:
            yield
        except OSError as error:
            row = f" (to put aside: {message()})" if message else ""
            raise OSError(
                error.errno, f"cannot put bad rows aside: {error.strerror}{row}", self._path
            ) from None
