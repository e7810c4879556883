"""A pipe whose first bytes can be looked at before it is read."""

from __future__ import annotations

import select
from typing import IO

__all__ = ["Pipe"]

PATIENCE = 1.0
"""Seconds without a byte after which a pipe is slow: what its first rows are to tell, those that have come do."""


class Pipe:
    r"""A pipe, read as a file is; `look` shows what comes first.

    >>> import io
    >>> pipe = Pipe(io.BytesIO(b"a\nb\nc"))
    >>> pipe.look(1, 100), pipe.read(3), pipe.read(3)
    (b'a\nb\n', b'a\nb', b'\nc')
    """

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        widen(pipe)
        self._ahead = b""
        self.name = "standard input"

    def look(self, lines: int, most: int, latency: float = 0.0) -> bytes:
        """The first lines, which stay to be read: so many, or those that have come when the pipe falls silent."""
        ended = False
        while self._ahead.count(b"\n") <= lines and len(self._ahead) < most:
            if self._ahead.count(b"\n") > 1 and silent(self._pipe, max(latency, PATIENCE)):
                break
            piece = self._read(1 << 20)
            ended = not piece
            if ended:
                break
            self._ahead += piece
        plain = b"\0" not in self._ahead[:1000]
        return self._ahead if ended or not plain else self._ahead[: self._ahead.rfind(b"\n") + 1]

    def read(self, size: int = 1 << 20) -> bytes:
        """The next bytes, as soon as there are some."""
        if self._ahead:
            taken, self._ahead = self._ahead[:size], self._ahead[size:]
            return taken
        return self._read(size)

    read1 = read

    def _read(self, size: int) -> bytes:
        read1 = getattr(self._pipe, "read1", self._pipe.read)
        piece: bytes = read1(size)
        return piece

    def fileno(self) -> int:
        """Of the pipe."""
        return self._pipe.fileno()


def widen(pipe: IO[bytes]) -> None:
    """Let a pipe hold more than the usual 64 kB where that can be asked for, so that rows that come fast come many at once."""
    try:
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, 1 << 20)
    except (ImportError, AttributeError, OSError, ValueError):  # not Linux, no pipe, or not allowed
        pass


def silent(pipe: IO[bytes], seconds: float) -> bool:
    """Whether no byte comes for so long; False where that cannot be known."""
    try:
        return not select.select([pipe.fileno()], [], [], seconds)[0]
    except (OSError, ValueError):
        return False
