"""Files from public collections: downloaded whole or not at all, unpacked, and joined to one LIBSVM file.

Whatever a server answers, the only errors are `DownloadError`, with the address, and the ``OSError`` of our own disk.

This is not left to pooch: it has no limit on the size of an answer and of what an archive unpacks to, checks files and not rows,
tries every error again (also a 404), and lets the errors of requests, urllib3 and the archives through as they are.
"""

from __future__ import annotations

import bz2
import http.client
import lzma
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from kernelstream.stream.opening import PIECE

TIMEOUT = 10.0
"""Seconds to wait for a connection, and for each piece of what comes through it."""

PATIENCE = 60.0
"""Seconds after which a transfer must have brought `SLOWEST` bytes per second on average."""

SLOWEST = 1000
"""Bytes per second; a transfer that is slower is given up."""

WAITS = (1.0, 4.0)
"""Seconds before the second try and the third. Only a transfer that broke or a server in trouble is tried again."""

Progress = Callable[[str, int, int | None], object]
"""Called with an address, the number of bytes so far, and how many there will be or None; first with 0 bytes, before the
connection is made."""

_BLOCK = 1 << 16  # the most bytes between two calls of progress

# The last column of a table is its class. The end of its name tells a table from LIBSVM text.
_TABLES = (".data", ".arff")
_CLASSES = {b"0": b"-1", b"1": b"1", b"DOWN": b"-1", b"UP": b"1"}


class DownloadError(FileNotFoundError):
    """A data set is not here, and could not be downloaded.

    >>> issubclass(DownloadError, FileNotFoundError)
    True
    """


class _BrokenTransfer(Exception):
    """A failure that another try may not meet."""


def fetch(addresses: Sequence[str], path: Path, most: int, progress: Progress) -> None:
    """Download the parts of a data set and join them, in order, to one LIBSVM file packed with xz.

    A part may be packed with bzip2 or xz (as the end of its name says), be a member of a zip archive (named after
    ``#``), and be LIBSVM text or a table with the class last (``.data``, ``.arff``).

    Args:
        addresses: where the parts are.
        path: the file to write; its folder is also used for the parts. After an error it may hold anything.
        most: bytes that neither a part nor what it unpacks to can have.
        progress: called as bytes come.

    Raises:
        DownloadError: a part could not be had or is not what it should be.
        OSError: the file could not be written.
    """
    part = path.with_name("part")
    with open(path, "wb") as file:
        # Preset 0: 40 % larger than by default, in a twentieth of the time.
        with lzma.open(file, "wb", preset=0) as packed:
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
            progress(address, 0, None)
            with open(path, "wb") as file:
                for piece, total in _transfer(address, most):
                    file.write(piece)
                    progress(address, file.tell(), total)
            return
        except _BrokenTransfer as error:
            if wait is None:
                raise DownloadError(f"{error} (tried {len(WAITS) + 1} times)") from None
            time.sleep(wait)


def _transfer(address: str, most: int) -> Iterator[tuple[bytes, int | None]]:
    """The bytes at an address in pieces, each with the length of the whole if it is known. All errors are ours."""
    try:
        request = urllib.request.Request(address, headers={"User-Agent": "kernelstream"})
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            total, done, began = response.length, 0, time.monotonic()
            while piece := response.read1(_BLOCK):
                done += len(piece)
                if done > most:
                    raise DownloadError(f"{address} is larger than the data set can be")
                if time.monotonic() - began > max(PATIENCE, done / SLOWEST):
                    raise _BrokenTransfer(f"{address} was too slow: {done:,} bytes in {PATIENCE:g} seconds")
                yield piece, total
            if total is not None and done < total:
                raise _BrokenTransfer(f"{address} broke off after {done:,} of {total:,} bytes")
    except (DownloadError, _BrokenTransfer):
        raise
    except urllib.error.HTTPError as error:
        error.close()
        answer = f"{address} answered {error.code} {http.client.responses.get(error.code, '')}".rstrip()
        again = error.code >= 500 or error.code in (408, 429)
        raise (_BrokenTransfer if again else DownloadError)(answer) from None
    except urllib.error.URLError as error:  # no connection: another try would only make the user wait
        raise DownloadError(
            f"cannot reach {address} ({error.reason}); is there a connection to the network?"
        ) from None
    except OSError as error:  # of the connection: the file is written elsewhere
        raise _BrokenTransfer(f"{address} broke off ({error})") from None
    except http.client.HTTPException as error:  # not the text of it: the server may have chosen it
        raise _BrokenTransfer(f"{address} broke off ({type(error).__name__})") from None
    except Exception as error:  # such as a redirect to a host that cannot be one: it would be the same again
        raise DownloadError(f"{address} gave an answer that is not HTTP ({type(error).__name__})") from None


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
    except Exception as error:  # a spoilt archive makes its reader raise nearly anything
        why = (
            str(error) if isinstance(error, OSError | EOFError | lzma.LZMAError | zipfile.BadZipFile) else ""
        )
        raise DownloadError(f"{address} cannot be unpacked ({why or type(error).__name__})") from None


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
