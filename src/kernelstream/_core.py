"""The compiled core for this CPU: ``KERNELSTREAM_CPU`` (v2, v3, v4 or plain) forces a level, otherwise the best one."""

from __future__ import annotations

import importlib
import importlib.util
import os
from types import ModuleType

from kernelstream import _cpu

__all__ = ["LEVEL", "core", "levels"]


def levels() -> list[str]:
    """The levels that this machine can run and that were compiled, best last.

    >>> len(levels()) >= 1
    True
    """
    found = _cpu.level()
    runs = ["plain"] if found == 0 else [f"v{n}" for n in range(2, found + 1)]
    return [level for level in runs if importlib.util.find_spec(f"kernelstream._core_{level}")]


def _load() -> tuple[str, ModuleType]:
    usable = levels()
    wanted = os.environ.get("KERNELSTREAM_CPU", "")
    if wanted and wanted not in usable:
        raise ImportError(f"KERNELSTREAM_CPU={wanted!r}: this machine runs {', '.join(usable) or 'none'}")
    if not usable:
        raise ImportError(
            "kernelstream's wheels need an x86-64-v2 processor (2009 or later); build it from source"
        )
    level = wanted or usable[-1]
    return level, importlib.import_module(f"kernelstream._core_{level}")


LEVEL, core = _load()
