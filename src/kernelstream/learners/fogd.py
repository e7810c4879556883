"""Fourier online gradient descent: a linear model over random features.

f_t(x) = w_t . z(x),      w_{t+1} = (1 - eta lam) w_t - eta g z(x_t),   g the slope of the loss at f_t(x_t).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kernelstream.learners.base import Array
from kernelstream.learners.kernel_learner import KernelLearner
from kernelstream.sketches.fourier import check_components, check_spectral, frequencies
from kernelstream.validate import check_seed, check_step

__all__ = ["FOGD"]


class FOGD(KernelLearner):
    """Fourier online gradient descent: random features of a shift-invariant kernel.

    ``z(x) = sqrt(1/m) [cos(W x), sin(W x)]``, ``W ~ N(0, 2 gamma I)`` for the Gaussian kernel (Cauchy for the Laplacian), so
    that ``E z(x) . z(x') = k(x, x')``.

    Args:
        n_components: number of features, cosines and sines together (2 m); even.
        eta: step size, for features of norm one (a step on unnormalised features is m times smaller).
        lam: regularisation.
        loss: a loss or its name; by default hinge for classification and squared for regression.
        kernel: Gaussian, Laplacian, Matern or RationalQuadratic; by default Gaussian with the median bandwidth.
        seed: of the frequencies.

    This differs from the paper in:
        1. features have norm one; 2. ``lam`` (0 gives the paper's update); 3. several classes are learnt one
        against the rest.

    References:
        Lu, Hoi, Wang, Zhao and Liu, "Large scale online kernel learning", JMLR 17, 2016.
        Rahimi and Recht, "Random features for large-scale kernel machines", NeurIPS 2007.

    >>> from kernelstream import KernelClassifier
    >>> model = KernelClassifier(FOGD(n_components=100)).fit([[0.0], [1.0]] * 50, [0, 1] * 50)
    >>> model.predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    merge_guarantee: ClassVar[str] = "the mean by rows of the parts' weights over the same random features"
    averaged_arrays: ClassVar[tuple[str, ...]] = ("weights",)
    mixing_parts: ClassVar[tuple[str, ...]] = ("_core",)

    feature_axes: ClassVar[dict[str, int] | None] = {"warmup_rows": 1}

    def __init__(
        self,
        n_components: int = 400,
        *,
        eta: float = 0.5,
        lam: float = 0.0,
        loss: Any = None,
        kernel: Any = None,
        seed: int = 0,
    ) -> None:
        self.n_components = n_components
        self.eta = eta
        self.lam = lam
        self.loss = loss
        self.kernel = kernel
        self.seed = seed
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_components(self.n_components)
        check_step(self.eta, self.lam)
        check_seed(self.seed)
        self._check_loss()
        check_spectral("FOGD", self.kernel)

    def frequencies(self) -> Array:
        """W, one row per feature of the input; a row depends on the seed and its own number only."""
        return frequencies(self._settled, self._width, self.n_components // 2, self.seed)

    def _build_core(self) -> None:
        self._core = self._core_class("Mapped").fourier(
            np.ascontiguousarray(self.frequencies(), dtype=self._dtype),
            outputs=self._outputs,
            regression=self._regression,
            loss=self._loss().core,
            eta=self.eta,
            lam=self.lam,
        )
