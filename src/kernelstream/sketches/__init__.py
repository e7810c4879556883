"""Sketches of kernels and vectors, usable alone as scikit-learn transformers."""

from kernelstream.sketches.adaptive import AdaptiveNystrom
from kernelstream.sketches.base import KernelSketch
from kernelstream.sketches.dependency import ApproximateLinearDependency
from kernelstream.sketches.fast import FastNystrom
from kernelstream.sketches.incremental import IncrementalSketch
from kernelstream.sketches.leverage import RidgeLeverageSampler
from kernelstream.sketches.ngrams import HashedNgrams
from kernelstream.sketches.nystrom import IncrementalNystrom, ModifiedNystrom
from kernelstream.sketches.sjlt import SJLT

__all__ = [
    "AdaptiveNystrom",
    "ApproximateLinearDependency",
    "FastNystrom",
    "HashedNgrams",
    "IncrementalNystrom",
    "IncrementalSketch",
    "KernelSketch",
    "ModifiedNystrom",
    "RidgeLeverageSampler",
    "SJLT",
]
