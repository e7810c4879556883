"""Files from public collections: fetched whole or not at all, unpacked, and joined to one LIBSVM file."""

from __future__ import annotations

import bz2
import http.client
import lzma
import os
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from kernelstream.stream.opening import PIECE

TIMEOUT = 10.0
"""Seconds to wait for a connection, and for each piece of what comes through it."""

WAITS = (1.0, 4.0)
"""Seconds before the second try and the third. Only a transfer that broke or a server in trouble is tried again."""

Progress = Callable[[str, int, int | None], object]
"""Called with an address, the bytes that have come, and how many there will be or None; first with 0 bytes, before the
connection is made."""

_BLOCK = 1 << 16  # bytes, after which progress is told

# The last column of a table is its class. A table is told from LIBSVM text by the end of its name.
_TABLES = (".data", ".arff")
_CLASSES = {b"0": b"-1", b"1": b"1", b"DOWN": b"-1", b"UP": b"1"}


class DownloadError(FileNotFoundError):
    """A data set is not here, and could not be fetched.

    >>> issubclass(DownloadError, FileNotFoundError)
    True
    """


class _Broken(Exception):
    """A failure that may not come again."""


def fetch(addresses: Sequence[str], path: Path, most: int, progress: Progress) -> None:
    """Fetch the parts of a data set and join them, in order, to one LIBSVM file packed with xz.

    A part may be packed with bzip2 or xz (told by the end of its name), be a member of a zip archive (named after
    ``#``), and be LIBSVM text or a table with the class last (``.data``, ``.arff``).

    Args:
        addresses: where the parts are.
        path: the file to write; its folder is also used for the parts. After an error it may hold anything.
        most: bytes that neither a part nor what it unpacks to can have.
        progress: called as bytes come.
    """
    part = path.with_name("part")
    with open(path, "wb") as file:
        with lzma.open(
            file, "wb", preset=0
        ) as packed:  # larger than by default by 40 %, in a twentieth of the time
            for address in addresses:
                _download(address, part, most, progress)
                end = b"\n"
                for piece in _text(address, part, most):
                    packed.write(piece)
                    end = piece[-1:]
                if end != b"\n":
                    packed.write(b"\n")
        file.flush()
        os.fsync(file.fileno())


def _download(address: str, path: Path, most: int, progress: Progress) -> None:
    for wait in (*WAITS, None):
        try:
            return _transfer(address, path, most, progress)
        except _Broken as error:
            if wait is None:
                raise DownloadError(f"{error} (tried {len(WAITS) + 1} times)") from None
            time.sleep(wait)


def _transfer(address: str, path: Path, most: int, progress: Progress) -> None:
    request = urllib.request.Request(address, headers={"User-Agent": "kernelstream"})
    progress(address, 0, None)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response, open(path, "wb") as file:
            length = response.headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else None
            while piece := response.read(_BLOCK):
                file.write(piece)
                progress(address, file.tell(), total)
                if file.tell() > most:
                    raise DownloadError(f"{address} is larger than the data set can be")
            if total is not None and file.tell() < total:
                raise _Broken(f"{address} broke off after {file.tell():,} of {total:,} bytes")
    except urllib.error.HTTPError as error:
        error.close()
        answer = f"{address} answered {error.code} {http.client.responses.get(error.code, '')}"
        raise (_Broken if error.code >= 500 or error.code in (408, 429) else DownloadError)(answer) from None
    except urllib.error.URLError as error:  # no connection: another try would only make the user wait
        raise DownloadError(
            f"cannot reach {address} ({error.reason}), perhaps for want of a network"
        ) from None
    except (ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException) as error:
        # What the server said is not repeated: it may be anything.
        why = type(error).__name__ if isinstance(error, http.client.HTTPException) else error
        raise _Broken(f"{address} broke off ({why})") from None


def _text(address: str, path: Path, most: int) -> Iterator[bytes]:
    """The LIBSVM text of a part, in pieces."""
    pieces = _unpacked(address, path, most)
    yield from _rows(address, b"".join(pieces)) if address.endswith(_TABLES) else pieces


def _unpacked(address: str, path: Path, most: int) -> Iterator[bytes]:
    where = urllib.parse.urlparse(address)
    stream: IO[bytes]
    done = 0
    try:
        with open(path, "rb") as file:
            if where.path.endswith(".bz2"):
                stream = bz2.open(file)
            elif where.path.endswith(".xz"):
                stream = lzma.open(file)
            elif where.path.endswith(".zip"):
                stream = zipfile.ZipFile(file).open(where.fragment)
            else:
                stream = file
            while piece := stream.read(PIECE):
                done += len(piece)
                if done > most:
                    raise DownloadError(f"{address} unpacks to more than the data set can be")
                yield piece
    except DownloadError:
        raise
    except (
        OSError,
        EOFError,
        KeyError,
        RuntimeError,
        lzma.LZMAError,
        zlib.error,
        zipfile.BadZipFile,
    ) as error:
        raise DownloadError(f"{address} cannot be unpacked ({error})") from None


def _rows(address: str, table: bytes) -> Iterator[bytes]:
    r"""The rows of a table as LIBSVM text; the header of ARFF is left out.

    >>> b"".join(_rows("a.arff", b"@attribute day {1,2}\n@data\n0,2,0.5,UP\n1,0,0.25,DOWN\n"))
    b'1 2:2 3:0.5\n-1 1:1 3:0.25\n'
    """
    for number, line in enumerate(table.splitlines(), 1):
        if not line.strip() or line.startswith((b"@", b"%")):
            continue
        *values, label = (value.strip() for value in line.split(b","))
        try:
            pairs = [b"%d:%b" % (i, value) for i, value in enumerate(values, 1) if float(value)]
            yield b" ".join([_CLASSES[label], *pairs]) + b"\n"
        except (ValueError, KeyError):
            shown = line[:40].decode("ascii", "replace")
            raise DownloadError(f"{address}, line {number} is no row of the data set: {shown!r}") from None
