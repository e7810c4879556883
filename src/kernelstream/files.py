"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets

__all__ = ["write_atomically"]


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that after a crash at any moment it is the old one or the new one, never a part."""
    target = os.path.realpath(path)
    temporary = f"{target}.{secrets.token_hex(4)}.tmp"
    try:
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
        except OSError as error:
            raise OSError(error.errno, f"cannot write the file: {error.strerror}", os.fspath(path)) from None
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
