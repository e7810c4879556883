"""Bytes from a file, a pipe or standard input: plain, or packed with gzip, xz or zstd, told apart by content."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import lzma
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from typing import IO, Any, Protocol

from kernelstream.stream.bad_rows import MissingPackageError, SourceError
from kernelstream.stream.pipes import silent, widen

Place = str | os.PathLike[str] | IO[Any]
"""What can be opened: a path, ``-`` for standard input, or an open file."""

PIECE = 1 << 20
"""Bytes asked for at once."""

_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s*\n)?([^\n]*\n?)")

_XZ_MEMORY = 192 << 20  # `xz -9` needs 65 MB to unpack; an archive may ask for 4 GB


class _Reads(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Opened:
    """One source of bytes, unpacked. `peek` looks without taking, `skip` goes to where a reader once was.

    Examples:
        >>> opened = Opened(io.BytesIO(gzip.compress(b"some text")))
        >>> opened.skip(5)
        >>> opened.read()
        b'text'
    """

    def __init__(self, place: Place, charset: str | None = None) -> None:
        self._mine = contextlib.ExitStack()  # what is closed with us: never the caller's file
        self.name = place_name(place)
        self._pipe = self._file = self._binary(place)
        self._ahead = b""
        self._given = 0  # bytes, unpacked
        self._done, self._closed = 0, False
        self._size = _file_size(self._file)
        self.seekable = self._size is not None
        try:
            head = self._file.read(6) if self.seekable else _read_some(self._file)
            if self.seekable:
                self._file.seek(-len(head), os.SEEK_CUR)
            else:  # a pipe cannot go back
                self._file = _PutBack(head, self._file)
            self._stream = self._unpacked(head)
        except BaseException:
            self._mine.close()
            raise
        self._holds_back = (
            self._stream is not self._file
        )  # what has come is known when a piece of it is unpacked
        if charset is not None:
            self._stream = _Recoded(self._stream, charset, self.name)
        self.packed = self._stream is not self._file

    def _binary(self, place: Place) -> Any:
        if isinstance(place, str | os.PathLike):
            if place == "-":
                widen(sys.stdin.buffer)
                return sys.stdin.buffer
            return self._mine.enter_context(open(place, "rb"))
        if isinstance(place, io.TextIOBase):
            return _Encoded(place)
        return place

    def _unpacked(self, head: bytes) -> Any:
        if head.startswith(b"\x1f\x8b"):
            return self._mine.enter_context(gzip.GzipFile(fileobj=self._file))
        if head.startswith(b"\xfd7zXZ\x00"):
            return _Xz(self._file)
        if head.startswith(b"\x28\xb5\x2f\xfd"):
            return _zstd(self._file)
        return self._file

    @property
    def file(self) -> Any:
        """The plain file itself, for formats that jump about in it. Only if it is `seekable` and not `packed`."""
        self._file.seek(self._file.tell() - len(self._ahead))
        self._ahead = b""
        return self._file

    @property
    def fraction(self) -> tuple[int, int] | None:
        """Bytes of the file read and in all, packed as they are; None for a pipe."""
        if self._size is not None and not self._closed:
            self._done = min(self._file.tell(), self._size)
        return None if self._size is None else (self._done, self._size)

    def read(self, size: int = PIECE) -> bytes:
        """The next bytes, as soon as there are some; empty at the end."""
        if self._ahead:
            taken, self._ahead = self._ahead[:size], self._ahead[size:]
            return taken
        try:
            piece = _read_some(self._stream, size)
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise self._damaged(error) from None
        except OSError as error:
            if error.errno is not None:
                raise OSError(error.errno, error.strerror, self.name) from None
            if not self.packed:
                raise
            raise self._damaged(error) from None
        self._given += len(piece)
        return piece

    def _damaged(self, error: Exception) -> SourceError:
        return SourceError(
            f"{self.name} is damaged or cut short: {error} (after {self._given:,} bytes, unpacked)"
        )

    def pauses(self, seconds: float) -> bool:
        """Whether no more bytes come for so long. Only of plain pipes and the like can that be known."""
        if self.seekable or self._holds_back or self._ahead or not hasattr(self._pipe, "fileno"):
            return False
        return silent(self._pipe, seconds)

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, or all that are left, which stay to be read; a pipe may have to wait for them."""
        while len(self._ahead) < size:
            ahead, self._ahead = self._ahead, b""
            more = self.read()
            self._ahead = ahead + more
            if not more:
                break
        return self._ahead[:size]

    def peeks(self, most: int = PIECE) -> Iterator[bytes]:
        """The next bytes, which stay to be read: those that have come, then more each time, until there are `most` or all."""
        size = 0
        while size < most and len(self.peek(size + 1)) > size:
            size = len(self._ahead)
            yield self._ahead[:most]

    def peek_line(self) -> bytes:
        """The first line that is not blank, without a byte order mark, or as much of it as there is; it stays to be read."""
        line = b""
        for head in self.peeks():
            found = _FIRST_LINE.match(head)
            line = found[1] if found else b""
            if line.endswith(b"\n"):
                break
        return line

    def skip(self, size: int) -> None:
        """Leave out so many bytes from here; by a jump where that is possible."""
        if self.seekable and not self.packed:
            at = self._file.tell() - len(self._ahead) + size
            if self._size is not None and at > self._size:
                raise self._too_short()
            self._file.seek(at)
            self._ahead = b""
            return
        while size > 0:
            piece = self.read(min(size, PIECE))
            if not piece:
                raise self._too_short()
            size -= len(piece)

    def _too_short(self) -> SourceError:
        return SourceError(f"{self.name} ends before the place to resume from: is it the same as before?")

    def close(self) -> None:
        """Close what was opened here; a file given open stays open."""
        if not self._closed:
            _ = self.fraction
            self._closed = True
        self._mine.close()


def place_name(place: Place) -> str:
    """What to call a source in messages.

    >>> place_name("-"), place_name(io.StringIO("text"))
    ('standard input', '<stream>')
    """
    if isinstance(place, str | os.PathLike):
        return "standard input" if place == "-" else os.fspath(place)
    name = getattr(place, "name", None)
    return name if isinstance(name, str) else "<stream>"


def fingerprint(place: Place, size: int = 4096) -> tuple[int, int] | None:
    """A number for the first `size` bytes of a file, and how many it has; None for pipes. A file that grew keeps it."""
    if not isinstance(place, str | os.PathLike) or place == "-" or not os.path.isfile(place):
        return None
    with open(place, "rb") as file:
        head = file.read(size)
    return len(head), zlib.crc32(head)


def _file_size(file: Any) -> int | None:
    """The size of a regular file, or of bytes in memory."""
    try:
        if isinstance(file, io.BytesIO):
            return len(file.getbuffer())
        if not isinstance(file, io.BufferedReader | io.FileIO):  # others may stand for an unpacked file
            return None
        status = os.fstat(file.fileno())
        return status.st_size if stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None


def _read_some(file: Any, size: int = PIECE) -> bytes:
    read: bytes = file.read1(size) if hasattr(file, "read1") else file.read(size)
    return read


class _PutBack:
    """A pipe with the bytes put back that were read from it already."""

    def __init__(self, head: bytes, file: _Reads) -> None:
        self._head, self._rest = head, file

    def read(self, size: int = PIECE) -> bytes:
        if self._head:
            taken, self._head = self._head[:size], self._head[size:]
            return taken
        return _read_some(self._rest, size)

    read1 = read
    closed = False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        pass


class _Encoded:
    """A text file as bytes."""

    def __init__(self, file: IO[str]) -> None:
        self._text = file

    def read(self, size: int = PIECE) -> bytes:
        try:
            return self._text.read(size).encode("utf-8", "surrogatepass")  # half a pair is then a bad row
        except UnicodeDecodeError as error:
            raise SourceError(
                f"{place_name(self._text)} is not in the encoding it was opened with: {error}"
            ) from None


class _Recoded:
    """Text of another encoding as UTF-8."""

    def __init__(self, file: _Reads, charset: str, name: str) -> None:
        self._file, self._charset, self._name = file, charset, name
        self._decoder = codecs.getincrementaldecoder(charset)()

    def read(self, size: int = PIECE) -> bytes:
        while True:
            piece = _read_some(self._file, size)
            try:
                text = self._decoder.decode(piece, not piece)
            except UnicodeError as error:
                raise SourceError(f"{self._name} is not {self._charset}: {error}") from None
            if text or not piece:
                return text.encode()


class _Xz:
    """Unpacks xz in bounded memory, whatever the archive asks for."""

    def __init__(self, file: _Reads) -> None:
        self._file = file
        self._machine = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
        self._left = b""

    def read(self, size: int = PIECE) -> bytes:
        while True:
            if self._machine.eof:  # archives may follow one another, with zeros between them
                left = self._machine.unused_data
                while not (left := left.lstrip(b"\0")):
                    if not (left := _read_some(self._file)):
                        return b""
                self._left = left
                self._machine = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
            elif self._machine.needs_input and not self._left:
                self._left = _read_some(self._file)
                if not self._left:
                    raise EOFError("the archive ends before its end marker")
            given, self._left = self._left, b""
            if made := self._machine.decompress(given, size):
                return made


def _zstd(file: Any) -> Any:
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingPackageError('reading zstd needs pyarrow: pip install "kernelstream[arrow]"') from None
    return _Zstd(pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd"))


class _Zstd:
    """Unpacks zstd in small pieces: pyarrow gives nothing of a piece that the archive's damage falls into."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def read(self, size: int = PIECE) -> bytes:
        piece: bytes = self._stream.read(min(size, 1 << 16))
        return piece
