"""The files that a command writes, checked before it begins."""

from __future__ import annotations

import os

from kernelstream.cli.arguments import UsageError

__all__ = ["check_folder"]


def check_folder(path: str | None) -> None:
    """Refuse a file that could not be written, before the run."""
    folder = os.path.dirname(os.path.abspath(path)) if path else None
    if folder is not None and not os.path.isdir(folder):
        raise UsageError(f"cannot write {path}: there is no folder {folder}")
    if path and os.path.isdir(path):
        raise UsageError(f"cannot write {path}: it is a folder")
