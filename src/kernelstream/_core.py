"""The compiled core for this CPU: ``KERNELSTREAM_CPU`` (v2, v3, v4 or plain) forces a level, otherwise the best one."""

from __future__ import annotations

import importlib
import importlib.util
import os
from types import ModuleType
from typing import TYPE_CHECKING

from kernelstream import _cpu

if TYPE_CHECKING:  # one stub for all levels: they are one source, and tests/core/test_stub.py keeps it true
    from typing import Any, Protocol

    from numpy.typing import NDArray

    from kernelstream import _compiled as core

    LEVEL: str
    Ran = tuple[int, core.Stop]  # the row to go on with after a run, and why it ended

    class Model(Protocol):
        """What the core's models with stored points share, in either precision."""

        @property
        def count(self) -> int: ...
        @property
        def nbytes(self) -> int: ...
        def score(self, rows: Any) -> NDArray[Any]: ...
        def run(
            self,
            rows: Any,
            start: int,
            targets: NDArray[Any],
            sample_weight: NDArray[Any] | None,
            scores: NDArray[Any],
        ) -> Ran: ...
        def state(self) -> dict[str, NDArray[Any]]: ...
        def restore(self, state: dict[str, NDArray[Any]]) -> None: ...


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


if not TYPE_CHECKING:
    LEVEL, core = _load()
