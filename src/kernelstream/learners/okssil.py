"""OKS-SIL: online kernel selection in a continuous kernel space by hypothesis sketching.

The hypothesis is f_t = sum_j w_j k_gamma(x_j, .) over a buffer V of at most B points. With l the loss, in
each round with a slope l'(f_t(x_t)) != 0 (for the hinge: y f_t(x_t) < 1):

    |V| < B       x_t joins V
    |V| = B       draw s points x_a of V without replacement, in proportion to k(x_t, x_a);
                  alpha = K_s^+ psi_s,  delta = min_alpha |k(x_t, .) - sum_a alpha_a k(x_a, .)|^2
                  delta > nu (the RLD condition): x_t replaces the point of smallest |w_r|; else V stays

    f^b = sum_j w_j k(x_j, .) over the new V (x_t with weight 0);   g = l'(f^b(x_t))
    V changed     the weight of x_t is -eta g
    V stayed      w_a -= eta g alpha_a for the sampled points (compensation)

    V changed     with f^w the hypothesis so far,
                  d l(f^w(x_t)) / d gamma = -l'(f^w(x_t)) sum_j w_j k(x_t, x_j) |x_t - x_j|^2,
                  log gamma_{t+1} = clip(log gamma_t - c / sqrt(t) gamma_t d l / d gamma)  into Omega, or, the paper's,
                  gamma_{t+1} = clip(gamma_t - rho_t d l / d gamma)  into Omega

Anisotropic: k(x, z) = exp(-sum_d gamma_d (x_d - z_d)^2), the squared distance in each derivative being that
along d.

Any kernel k(x, z) = kappa(gamma m(x, z)) of ours may stand for the Gaussian (footnote 2 of the paper), with m the squared
distance (Matern, RationalQuadratic), the 1-norm distance (Laplacian), the chi-squared distance (ChiSquared) or the product
(Polynomial): d k / d gamma = kappa'(gamma m) m, and m = sum_d m_d has one term per feature for the anisotropic form,
kappa(sum_d gamma_d m_d).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from kernelstream.kernels import Gaussian, Kernel
from kernelstream.learners.base import Array
from kernelstream.learners.selecting import SelectingLearner
from kernelstream.validate import check_integer, check_number, check_seed

__all__ = ["OKSSIL"]


class ScaledKernel:
    """A kernel with one gamma for each feature, such as ``exp(-sum_d gamma_d (x_d - x'_d)^2)``, called as a kernel is.

    >>> ScaledKernel(Gaussian(), [1.0, 0.0])([[0.0, 0.0], [0.0, 5.0]]).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """

    def __init__(self, kernel: Any, gammas: Any) -> None:
        self.kernel = kernel
        self.gammas = np.array(gammas, np.float64)

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """The matrix of kernel values of the rows of ``X`` against the rows of ``Y`` (or of ``X``)."""
        made: Array = self.kernel.with_gamma(1.0)(self._scaled(X), None if Y is None else self._scaled(Y))
        return made

    def _scaled(self, X: Any) -> Any:
        rows: Any = X if scipy.sparse.issparse(X) else np.asarray(X)
        scales = self.kernel.input_scale(self.gammas).astype(
            np.float32 if rows.dtype == np.float32 else np.float64
        )
        return rows.multiply(scales).tocsr() if scipy.sparse.issparse(rows) else rows * scales


class OKSSIL(SelectingLearner):
    """Budgeted kernel gradient descent that learns the scale of its kernel along with the weights.

    Args:
        budget: how many points (B).
        eta: step size of the weights.
        scale_step: step size of the kernel's scale, in log gamma (c): ``scale_step / sqrt(t)``, t counting the
            rounds learnt from. It does not depend on the unit of the features. 0 keeps the kernel.
        rho: the paper's step size, in gamma, in place of ``scale_step``: ``rho_t = rho / t ** rho_decay``. It is in
            the unit of gamma squared: what is a small step for some features is a huge one for others
            (docs/results/okssil.md).
        rho_decay: of ``rho``: 1 is the paper's experiments (``rho_t = 1 / t``), 0 its Algorithm 1, 1/2 an anytime
            version of its theory.
        nu: a point whose squared distance from the span of the sampled points is above ``nu`` enters a full
            buffer. From 1 on none does.
        samples: how many points are sampled for that test (s), at most the budget.
        gamma: the scale to start from; by default the kernel's, or that of the median bandwidth of the first examples.
        interval: the smallest and the largest gamma (Omega). By default 2^-12 and 2^12 times the first gamma;
            with ``rho`` the paper's, 2^-12 and 2^12 (bandwidths from 2^-6.5 to 2^5.5).
        anisotropic: learn one gamma for each feature.
        loss: a loss or its name; by default hinge for classification and squared for regression.
        kernel: a kernel with a scale: Gaussian (the default), Laplacian, Matern, RationalQuadratic, ChiSquared or Polynomial. Its
            other parameters stay as they are.
        seed: of the sampling.

    This differs from the paper in:
        1. the replaced slot has weight 0 in f^b (the paper keeps the old weights over the new points and
           does not say which one x_t gets). So x_t can enter with weight 0: when f_t has a loss that the
           removal of the point it replaces settles;
        2. the kernel step is zero where the loss of f^w is (the paper writes y_t for the hinge's slope,
            whatever f^w);
        3. gamma is kept in the interval by clipping: the paper restricts sigma to Omega (Eq. 3, Section 5.1)
           but writes no projection in Eq. 4 and line 19 of Algorithm 1;
        4. the start: the paper draws the first sigma uniformly from 2^2.5, 2^3, ... 2^5.5. By default it is
           the median distance here, set anew when 2, 4, 8, ... 128 examples have been learnt from: each time
           the learner starts again and goes over those kept. With ``gamma`` given it starts once;
        5. eigenvalues of K_s below 1e-10 of the largest count as zero in its pseudo-inverse;
        6. the default step is in log gamma and falls like 1 / sqrt(t), as Theorem 1 wants it, where the paper's
           experiments have 1 / t; with ``rho`` it is the paper's, in gamma as in Algorithm 1. (The paper's Eq. 4
           has the step in sigma and calls both equivalent; a gradient step in sigma is another one: it moves
           gamma by ``8 gamma^3`` times the derivative in gamma, to first order);
        7. other losses than the hinge, several classes (one-vs-rest columns over the same points: the
           smallest weight is that of the 1-norm, the derivatives in gamma add up), and anisotropic scales
           are spelt out here and only mentioned or absent there;
        8. a kernel with k(x, x) other than 1 (Polynomial): a point is drawn in proportion to |k|, delta is compared with
           ``nu k(x_t, x_t)``, and the new point has its part in f^w and in the derivative; a row with k(x, x) = 0 is passed over.

    References:
        Zhang and Liao, "Hypothesis sketching for online kernel selection in continuous kernel space", IJCAI
        2020.

    >>> from kernelstream import KernelClassifier
    >>> model = KernelClassifier(OKSSIL(budget=10)).fit([[0.0], [1.0], [0.1], [0.9]] * 20, [0, 1, 0, 1] * 20)
    >>> model.predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    feature_axes: ClassVar[dict[str, int] | None] = {"points": 1, "warmup_rows": 1, "gammas": 0}

    def __init__(
        self,
        budget: int = 200,
        *,
        eta: float = 0.2,
        scale_step: float = 1.0,
        rho: float | None = None,
        rho_decay: float = 1.0,
        nu: float = 0.9,
        samples: int = 3,
        gamma: float | None = None,
        interval: tuple[float, float] | None = None,
        anisotropic: bool = False,
        loss: Any = None,
        kernel: Any = None,
        seed: int = 0,
    ) -> None:
        self.budget = budget
        self.eta = eta
        self.scale_step = scale_step
        self.rho = rho
        self.rho_decay = rho_decay
        self.nu = nu
        self.samples = samples
        self.gamma = gamma
        self.interval = interval
        self.anisotropic = anisotropic
        self.loss = loss
        self.kernel = kernel
        self.seed = seed
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("budget", self.budget, low=1)
        check_integer("samples", self.samples, low=1, high=max(1, self.budget))
        check_number("nu", self.nu, low=0, finite=False)
        check_seed(self.seed)
        if self.kernel is not None and not (isinstance(self.kernel, Kernel) and self.kernel.has_scale):
            raise ValueError(
                "OKSSIL needs a kernel whose scale it can move (Gaussian, Laplacian, Matern, RationalQuadratic, ChiSquared or "
                f"Polynomial), got {self.kernel!r}"
            )
        self._check_search()

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "budget": self.budget,
            "nu": self.nu,
            "samples": self.samples,
            "seed": self.seed,
        }
        if self.anisotropic:
            options |= {"each_feature": True, "gamma": np.full(self._width, self._first_gamma())}
        return options

    @property
    def gamma_(self) -> Array | float:
        """The scale of the next round's kernel: a number, or one for each feature."""
        return self._gamma() if self.anisotropic else float(self._gamma()[0])

    @property
    def kernel_(self) -> Any:
        """The kernel of the next round; with one gamma for each feature, callable as a kernel is."""
        return ScaledKernel(self._first_kernel(), self._gamma()) if self.anisotropic else super().kernel_

    def _first_kernel(self) -> Any:
        kernel = Gaussian() if self.kernel is None else self.kernel
        return kernel if self.gamma is None else kernel.with_gamma(self.gamma)

    def widen(self, width: int) -> None:
        """Accept more features; those new start with the gamma that all started with."""
        before = self._width
        super().widen(width)
        if self.anisotropic:
            state = self.state()
            state["gammas"][before:] = self._first_gamma()
            self.restore(state)
