"""Random frequencies of shift-invariant kernels.

By Bochner's theorem k(x - y) = E cos(w . (x - y)) for w drawn from the kernel's Fourier transform: N(0, 2
gamma I) for the Gaussian kernel, a product of Cauchy distributions of scale gamma for the Laplacian.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.kernels import Gaussian, Laplacian, as_kernel, core_kernel
from kernelstream.validate import check_integer

__all__ = ["check_components", "check_spectral", "frequencies", "spectral_draws", "spectral_scale"]

Array = NDArray[Any]


def spectral_draws(kernel: Any, width: int, pairs: int, seed: int) -> Array:
    """Frequencies for gamma-free scale one, ``(width, pairs)``; a row depends on the seed and its own number
    only.

    >>> bool((spectral_draws(Gaussian(), 3, 4, 0)[:2] == spectral_draws(Gaussian(), 2, 4, 0)).all())
    True
    """
    draws = np.empty((width, pairs))
    for feature in range(width):
        generator = np.random.Generator(np.random.Philox(key=np.array([seed, feature], np.uint64)))
        gaussian = isinstance(kernel, Gaussian)
        draws[feature] = generator.standard_normal(pairs) if gaussian else generator.standard_cauchy(pairs)
    return draws


def spectral_scale(kernel: Any) -> float:
    """What the draws are to be multiplied with.

    >>> spectral_scale(Gaussian(gamma=2.0)), spectral_scale(Laplacian(gamma=2.0))
    (2.0, 2.0)
    """
    gamma = core_kernel(kernel).gamma
    return float(np.sqrt(2 * gamma)) if isinstance(kernel, Gaussian) else gamma


def frequencies(kernel: Any, width: int, pairs: int, seed: int) -> Array:
    """W, ``(width, pairs)``, for the features ``sqrt(1/m) [cos(W x), sin(W x)]``.

    >>> frequencies(Gaussian(gamma=0.5), 2, 3, 0).shape
    (2, 3)
    """
    return spectral_draws(kernel, width, pairs, seed) * spectral_scale(kernel)


def check_components(n_components: Any) -> None:
    """Checks a number of features, cosines and sines together.

    >>> check_components(3)
    Traceback (most recent call last):
    ...
    ValueError: n_components must be even (a cosine and a sine each), got 3
    """
    check_integer("n_components", n_components, low=2)
    if n_components % 2:
        raise ValueError(f"n_components must be even (a cosine and a sine each), got {n_components}")


def check_spectral(name: str, kernel: Any) -> None:
    """Checks that a kernel has random frequencies.

    >>> check_spectral("FOGD", lambda X, Y: X @ Y.T)   # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: FOGD needs a shift-invariant kernel, Gaussian or Laplacian, got <function ...
    """
    if not isinstance(as_kernel(kernel), (Gaussian, Laplacian)):
        raise ValueError(f"{name} needs a shift-invariant kernel, Gaussian or Laplacian, got {kernel!r}")
