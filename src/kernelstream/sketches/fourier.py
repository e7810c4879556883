"""Random frequencies of shift-invariant kernels.

By Bochner's theorem k(x - y) = E cos(w . (x - y)) for w drawn from the kernel's Fourier transform:

    Gaussian             N(0, 2 gamma I)
    Laplacian            a product of Cauchy distributions of scale gamma
    Matern               sqrt(2 gamma) sqrt(2 nu / c) N(0, I), c ~ chi-squared of 2 nu degrees: a multivariate t distribution
    RationalQuadratic    sqrt(2 gamma) sqrt(g) N(0, I), g ~ Gamma(alpha) / alpha: a mixture of Gaussian kernels
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.kernels import Gaussian, Laplacian, Matern, RationalQuadratic, as_kernel, core_kernel
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
        generator = _generator(seed, feature)
        cauchy = isinstance(kernel, Laplacian)
        draws[feature] = generator.standard_cauchy(pairs) if cauchy else generator.standard_normal(pairs)
    shared = _generator(seed, 2**64 - 1)  # one draw per frequency, for all its features
    if isinstance(kernel, Matern):
        draws *= np.sqrt(2 * kernel.nu / shared.chisquare(2 * kernel.nu, pairs))
    elif isinstance(kernel, RationalQuadratic):
        draws *= np.sqrt(shared.standard_gamma(kernel.alpha, pairs) / kernel.alpha)
    return draws


def _generator(seed: int, number: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=np.array([seed, number], np.uint64)))


def spectral_scale(kernel: Any) -> float:
    """What the draws are to be multiplied with.

    >>> spectral_scale(Gaussian(gamma=2.0)), spectral_scale(Laplacian(gamma=2.0))
    (2.0, 2.0)
    """
    gamma = core_kernel(kernel).gamma
    return gamma if isinstance(kernel, Laplacian) else float(np.sqrt(2 * gamma))


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
    ValueError: FOGD needs a kernel with random frequencies (Gaussian, Laplacian, Matern or RationalQuadratic), got ...
    """
    if not isinstance(as_kernel(kernel), (Gaussian, Laplacian, Matern, RationalQuadratic)):
        raise ValueError(
            f"{name} needs a kernel with random frequencies (Gaussian, Laplacian, Matern or RationalQuadratic), got {kernel!r}"
        )
