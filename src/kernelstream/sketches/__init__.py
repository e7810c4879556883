"""Sketches of kernels and vectors, usable alone as scikit-learn transformers."""

from kernelstream.sketches.adaptive import AdaptiveNystrom

__all__ = ["AdaptiveNystrom"]
