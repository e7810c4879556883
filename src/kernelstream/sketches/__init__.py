"""Sketches of kernels and vectors, usable alone as scikit-learn transformers."""
