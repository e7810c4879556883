"""Kernel machines learnt from endless data streams: one pass, bounded memory, microseconds per example.

Names are imported when they are first used, so that ``import kernelstream`` itself costs next to nothing.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelstream import alignment, errors, kernels, learners, losses
    from kernelstream.errors import CapacityError, MergeError, ModelFileError, ScoreOverflowError
    from kernelstream.estimators import KernelClassifier, KernelRegressor
    from kernelstream.kernels import (
        ChiSquared,
        Gaussian,
        Intersection,
        Laplacian,
        Linear,
        Matern,
        Polynomial,
        Precomputed,
        RationalQuadratic,
        Spectrum,
    )
    from kernelstream.merging import branch, merge
    from kernelstream.persistence import load
    from kernelstream.tables.encoder import TableEncoder

__version__ = "0.1.0"

__all__ = [
    "CapacityError",
    "ChiSquared",
    "Gaussian",
    "Intersection",
    "KernelClassifier",
    "KernelRegressor",
    "Laplacian",
    "Linear",
    "Matern",
    "MergeError",
    "ModelFileError",
    "Polynomial",
    "Precomputed",
    "RationalQuadratic",
    "ScoreOverflowError",
    "Spectrum",
    "TableEncoder",
    "alignment",
    "branch",
    "errors",
    "kernels",
    "learners",
    "load",
    "losses",
    "merge",
]

_MODULE_OF = {
    "CapacityError": "errors",
    "MergeError": "errors",
    "branch": "merging",
    "merge": "merging",
    "ModelFileError": "errors",
    "ScoreOverflowError": "errors",
    "KernelClassifier": "estimators",
    "KernelRegressor": "estimators",
    "Gaussian": "kernels",
    "Laplacian": "kernels",
    "Linear": "kernels",
    "Polynomial": "kernels",
    "ChiSquared": "kernels",
    "Intersection": "kernels",
    "Matern": "kernels",
    "Precomputed": "kernels",
    "RationalQuadratic": "kernels",
    "Spectrum": "kernels",
    "TableEncoder": "tables.encoder",
    "load": "persistence",
}


def __getattr__(name: str) -> Any:
    """A public name or a module of the package, imported now."""
    if name in _MODULE_OF:
        value = getattr(importlib.import_module(f"kernelstream.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and importlib.util.find_spec(f"kernelstream.{name}") is not None:
        return importlib.import_module(f"kernelstream.{name}")
    raise AttributeError(f"module 'kernelstream' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
