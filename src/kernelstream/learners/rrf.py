"""Reparameterised random features (RRF): Fourier features whose bandwidths are learnt with the weights.

The frequencies of a Gaussian kernel with one bandwidth an input are W = diag(g) e, e standard normal draws
that stay fixed and g_d = 1 / sigma_d, so that the features are differentiable in g:

    f(x) = w . z(x),    z(x) = sqrt(1/m) [cos(e^T diag(g) x), sin(e^T diag(g) x)]

Each round takes a gradient step on the loss of f at (w, log g), both gradients at the model before the round:

    w <- (1 - eta lam) w - eta l'(f) z(x)
    log g_d <- log g_d - scale_step l'(f) df/dlog g_d,
        df/dlog g_d = g_d x_d sum_p e_dp sqrt(1/m) (w_sin,p cos a_p - w_cos,p sin a_p),    a = e^T diag(g) x
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kernelstream.kernels import Gaussian, as_kernel
from kernelstream.learners.base import Array
from kernelstream.learners.kernel_learner import KernelLearner
from kernelstream.sketches.fourier import check_components, spectral_draws, spectral_scale
from kernelstream.validate import check_number, check_seed, check_step

__all__ = ["RRF"]


class RRF(KernelLearner):
    """Reparameterised random features: Fourier gradient descent that also learns one bandwidth an input.

    Args:
        n_components: number of features, cosines and sines together (2 m); even.
        eta: step size of the weights.
        scale_step: step size of the log inverse bandwidths; 0 leaves FOGD.
        lam: regularisation of the weights.
        loss: a loss or its name; by default hinge for classification and squared for regression.
        kernel: Gaussian, whose bandwidth all inputs start from; by default the median bandwidth.
        seed: of the draws.

    This differs from the paper in:
        1. constant step sizes; 2. the steps are taken on log g, which keeps g positive, and g stays within a
        factor e^20 of its start; 3. features have norm one; 4. several classes are learnt one against the
        rest.

    References:
        Nguyen, Le, Bui and Phung, "Large-scale online kernel learning with random feature
        reparameterization", IJCAI 2017.

    >>> from kernelstream import KernelClassifier
    >>> model = KernelClassifier(RRF(n_components=100)).fit([[0.0], [1.0]] * 50, [0, 1] * 50)
    >>> model.predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    merge_guarantee: ClassVar[str] = (
        "the mean by rows of the parts' weights over the same random features, while their scales stay"
    )
    averaged_arrays: ClassVar[tuple[str, ...]] = ("weights",)

    feature_axes: ClassVar[dict[str, int] | None] = {"warmup_rows": 1, "log_scale": 0}

    def __init__(
        self,
        n_components: int = 400,
        *,
        eta: float = 0.5,
        scale_step: float = 0.01,
        lam: float = 0.0,
        loss: Any = None,
        kernel: Any = None,
        seed: int = 0,
    ) -> None:
        self.n_components = n_components
        self.eta = eta
        self.scale_step = scale_step
        self.lam = lam
        self.loss = loss
        self.kernel = kernel
        self.seed = seed
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_components(self.n_components)
        check_step(self.eta, self.lam)
        check_number("scale_step", self.scale_step, low=0)
        check_seed(self.seed)
        self._check_loss()
        if not isinstance(as_kernel(self.kernel), Gaussian):
            raise ValueError(f"RRF learns the bandwidths of a Gaussian kernel, got {self.kernel!r}")

    def _build_core(self) -> None:
        draws = spectral_draws(self._settled, self._width, self.n_components // 2, self.seed)
        self._core = self._core_class("Reparameterised")(
            np.ascontiguousarray(draws, dtype=self._dtype),
            scale=spectral_scale(self._settled),
            scale_step=self.scale_step,
            outputs=self._outputs,
            regression=self._regression,
            loss=self._loss().core,
            eta=self.eta,
            lam=self.lam,
        )

    @property
    def bandwidths(self) -> Array:
        """The bandwidth of each input now (sigma_d = 1 / g_d)."""
        made: Array = np.exp(-self._core.state()["log_scale"]) / spectral_scale(self._settled)
        return made
