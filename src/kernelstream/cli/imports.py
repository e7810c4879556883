"""The import of scikit-learn without what no command needs: that is more than half of its time."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

__all__ = ["import_scikit_learn"]


def import_scikit_learn() -> None:
    """Import scikit-learn without pandas and without loading `scipy.stats`; later imports of both work as ever.

    `sklearn.utils.fixes` imports pandas wherever it is installed, and `scipy.stats`, for functions that we never call. So for
    the time of this import pandas is made to look absent, and `scipy.stats` is loaded at the first use of one of its names.
    Only the command line does this, in a process of its own; the library leaves imports alone.
    """
    if "sklearn" in sys.modules:
        return
    hidden = "pandas" not in sys.modules
    if hidden:
        sys.modules["pandas"] = None  # type: ignore[assignment]
    sys.meta_path.insert(0, _LoadWhenUsed)
    try:
        import sklearn  # noqa: F401
    finally:
        sys.meta_path.remove(_LoadWhenUsed)
        if hidden:
            del sys.modules["pandas"]


class _LoadWhenUsed:
    """Finds `scipy.stats` as a module that is loaded when one of its names is asked for."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name == "scipy.stats" else None
        if spec is not None and spec.loader is not None:
            spec.loader = importlib.util.LazyLoader(spec.loader)
        return spec
