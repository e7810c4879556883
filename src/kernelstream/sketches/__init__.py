"""Sketches of kernels and vectors, usable alone as scikit-learn transformers."""

from kernelstream.sketches.incremental import IncrementalSketch
from kernelstream.sketches.nystrom import IncrementalNystrom, ModifiedNystrom
from kernelstream.sketches.sjlt import SJLT

__all__ = ["IncrementalNystrom", "IncrementalSketch", "ModifiedNystrom", "SJLT"]
