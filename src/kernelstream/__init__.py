"""Kernel machines learnt from endless data streams: one pass, bounded memory, microseconds per example."""

from kernelstream import alignment, errors, kernels, learners, losses
from kernelstream.errors import CapacityError, ModelFileError, ScoreOverflowError
from kernelstream.estimators import KernelClassifier, KernelRegressor
from kernelstream.kernels import Gaussian, Laplacian, Linear, Polynomial
from kernelstream.persistence import load

__version__ = "0.1.0"

__all__ = [
    "CapacityError",
    "Gaussian",
    "KernelClassifier",
    "KernelRegressor",
    "Laplacian",
    "Linear",
    "ModelFileError",
    "Polynomial",
    "ScoreOverflowError",
    "alignment",
    "errors",
    "kernels",
    "learners",
    "load",
    "losses",
]
