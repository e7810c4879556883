"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat

__all__ = ["is_model_file", "is_special", "write_atomically"]


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a device, a pipe or a socket: something to write to, never to replace.

    Names in ``/dev`` and ``/proc`` count as such whatever they lead to: ``/dev/stdout`` may be a file that the shell has open.

    >>> is_special(os.devnull), is_special("a new file")
    (True, False)
    """
    if os.path.abspath(path).startswith(("/dev/", "/proc/")):
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return os.fspath(path) == os.devnull
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a model file does (docs/model-files.md); the rest of it may be damaged.

    >>> is_model_file(os.devnull)
    False
    """
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 0 < length <= os.fstat(file.fileno()).st_size:
            return False
        try:
            return "kernelstream" in json.loads(file.read(length))["__metadata__"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return False


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that after a crash at any moment it is the old one or the new one, never a part.

    A link stays a link: the file that it leads to is replaced. A device or a pipe is written to.
    """
    try:
        if is_special(path):
            with open(path, "wb") as file:
                file.write(data)
        else:
            _replace(os.path.realpath(path), data)
    except OSError as error:
        raise OSError(error.errno, f"cannot write the file: {error.strerror}", os.fspath(path)) from None


def _replace(target: str, data: bytes) -> None:
    temporary = f"{target}.{secrets.token_hex(4)}.tmp"
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        if os.name == "posix":  # the new name must last, too
            folder = os.open(os.path.dirname(target), os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
