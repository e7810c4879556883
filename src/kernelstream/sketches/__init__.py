"""Sketches of kernels and vectors, usable alone as scikit-learn transformers."""

from kernelstream.sketches.adaptive import AdaptiveNystrom
from kernelstream.sketches.base import KernelSketch
from kernelstream.sketches.dependency import ApproximateLinearDependency
from kernelstream.sketches.leverage import RidgeLeverageSampler

__all__ = [
    "AdaptiveNystrom",
    "ApproximateLinearDependency",
    "KernelSketch",
    "RidgeLeverageSampler",
]
