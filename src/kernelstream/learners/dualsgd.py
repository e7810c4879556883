"""Dual space gradient descent (DualSGD): a kernel expansion on a budget, random features for what is dropped.

    f(x) = sum_j a_j k(x_j, x) + u . z(x),       z(x) . z(x') ~ k(x, x')   (Fourier features)

Round t, with g the slope of the loss at f_t(x_t) (the step 1 / (lam t) on the regularised loss):

    f_{t+1} = (1 - 1/t) f_t - g / (lam t) k(x_t, .)

If that makes more than B points, the one of smallest |a_p| goes by k-merging: with d the coefficients of the
projection of phi(x_p) on the span of its k nearest points,

    a_j <- a_j + a_p d_j,       u <- u + a_p (z(x_p) - sum_j d_j z(x_j))
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kernelstream.kernels import core_kernel
from kernelstream.learners.kernel_learner import KernelLearner
from kernelstream.sketches.fourier import check_components, check_spectral, frequencies
from kernelstream.validate import check_integer, check_number, check_seed

__all__ = ["DualSGD"]

#: Losses whose slope has no bound, and their curvature: with steps above 2 / curvature the model explodes.
UNBOUNDED_SLOPES = {"squared": 1.0, "squared_hinge": 2.0}


class DualSGD(KernelLearner):
    """Dual space gradient descent: a point dropped lives on in its neighbours and in Fourier features.

    Args:
        budget: how many points (B).
        n_components: number of Fourier features, cosines and sines together; even.
        neighbours: how many of the nearest points take over a dropped one (k); at ``budget`` all others do.
        lam: regularisation (lambda); the step of round t is ``1 / (lam t)``.
        loss: a loss or its name; by default hinge for classification and squared for regression.
        kernel: Gaussian, Laplacian, Matern or RationalQuadratic; by default Gaussian with the median bandwidth.
        seed: of the frequencies.

    This differs from the paper in:
        1. our reading of k-merging: the neighbours keep the projection of the dropped point on their span,
        the features only the rest; a neighbour is left out if those nearer than it span it up to 1e-10 of
        k(x, x) (float32 data: 1e-3, or rounded weights would grow and cancel); 2. the point
        dropped is the one of smallest weight, summed over the classes, the oldest of equals, and may be the
        new one; 3. features have norm one; 4. the kernel values between stored points and their features are
        kept (B x B and B x n_components numbers), so that a merge computes no kernel; 5. several classes are
        learnt one against the rest; 6. for the squared and the squared hinge loss, whose slopes have no
        bound, the step is ``1 / (lam t + curvature)`` (the paper projects the model on a ball instead), and
        ``1 / (lam t + w curvature)`` for a row of sample weight w > 1, which then cannot overshoot its target;
        7. sample weights (they multiply the slope).

    References:
        Le, Nguyen, Nguyen and Phung, "Dual space gradient descent for online learning", NeurIPS 2016.

    >>> from kernelstream import KernelClassifier
    >>> X, y = [[0.0], [1.0], [0.1], [0.9]] * 20, [0, 1, 0, 1] * 20
    >>> model = KernelClassifier(DualSGD(budget=3, n_components=100)).fit(X, y)
    >>> model.predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    merge_refusal: ClassVar[str] = (
        "points that leave the budget live on in its random features, at different times in each model"
    )

    quadratic = True

    def __init__(
        self,
        budget: int = 200,
        *,
        n_components: int = 200,
        neighbours: int = 10,
        lam: float = 0.001,
        loss: Any = None,
        kernel: Any = None,
        seed: int = 0,
    ) -> None:
        self.budget = budget
        self.n_components = n_components
        self.neighbours = neighbours
        self.lam = lam
        self.loss = loss
        self.kernel = kernel
        self.seed = seed
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("budget", self.budget, low=1)
        check_components(self.n_components)
        check_integer("neighbours", self.neighbours, low=0)
        check_number("lam", self.lam, low=0, open_low=True)
        check_seed(self.seed)
        self._check_loss()
        check_spectral("DualSGD", self.kernel)

    def _build_core(self) -> None:
        loss = self._loss()
        W = frequencies(self._settled, self._width, self.n_components // 2, self.seed)
        self._core = self._core_class("Dual")(
            np.ascontiguousarray(W, dtype=self._dtype),
            outputs=self._outputs,
            regression=self._regression,
            budget=self.budget,
            neighbours=self.neighbours,
            loss=loss.core,
            lam=self.lam,
            delay=UNBOUNDED_SLOPES.get(loss.name, 0.0) / self.lam,
            kernel=core_kernel(self._settled),
        )
