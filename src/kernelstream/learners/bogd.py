"""Bounded online gradient descent.

Kernel gradient descent with at most B points. When full, point j is dropped with probability p_j and the others are divided
by 1 - p_i, so that the model stays the same on average; then weights are clipped to [-clip eta, clip eta]:

    uniform     p_j = 1 / B                                                        (BOGD)
    nonuniform  p_j = 1 - (B - 1) s_j,  s_j = |a_j| sqrt(k_jj) / sum_i ...         (BOGD++: least variance)
    smallest    the point of smallest |a_j| sqrt(k_jj), nothing rescaled
"""

from __future__ import annotations

from typing import Any

from kernelstream.learners.expansion import ExpansionLearner
from kernelstream.validate import check_choice, check_integer, check_number, check_seed, check_step

__all__ = ["BOGD"]


class BOGD(ExpansionLearner):
    """Bounded online gradient descent with unbiased removal of points.

    Args:
        budget: how many points (B), at least 2.
        eta: step size.
        lam: regularisation (the paper's lambda).
        removal: ``"uniform"``, ``"nonuniform"`` or ``"smallest"``.
        clip: bound of a kept weight in steps (the paper's gamma); may be infinite.
        loss: a loss or its name; by default hinge for classification and squared for regression.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.
        seed: of the draws.

    This differs from the paper in:
        1. ``removal="smallest"``, a deterministic rule, is not in the paper;
        2. ``"nonuniform"``: a p_j below 0 (a point of more than 1 / (B - 1) of all weight) counts as 0, the others are
           divided by their sum;
        3. several classes: one-vs-rest columns on shared points, |a_j| is the 1-norm over them; any loss may be given;
        4. the default kernel: see ``KernelLearner``.

    References:
        Zhao, Wang, Wu, Jin and Hoi, "Fast bounded online gradient descent algorithms for scalable kernel-based online
        learning", ICML 2012.

    >>> from kernelstream import KernelClassifier
    >>> KernelClassifier(BOGD(budget=3)).fit([[0.0], [1.0], [0.1], [0.9]], [0, 1, 0, 1]).learner_.n_points
    3
    """

    rule = "bogd"

    def __init__(
        self,
        budget: int = 200,
        *,
        eta: float = 0.5,
        lam: float = 0.001,
        removal: str = "uniform",
        clip: float = 1.0,
        loss: Any = None,
        kernel: Any = None,
        seed: int = 0,
    ) -> None:
        self.budget = budget
        self.eta = eta
        self.lam = lam
        self.removal = removal
        self.clip = clip
        self.loss = loss
        self.kernel = kernel
        self.seed = seed
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("budget", self.budget, low=2)
        check_step(self.eta, self.lam)
        check_choice("removal", self.removal, ("uniform", "nonuniform", "smallest"))
        check_number("clip", self.clip, low=0, open_low=True, finite=False)
        check_seed(self.seed)
        self._check_loss()

    def _options(self) -> dict[str, Any]:
        return {
            "budget": self.budget,
            "loss": self._loss().core,
            "eta": self.eta,
            "lam": self.lam,
            "removal": self.removal,
            "clip": self.clip,
            "seed": self.seed,
        }
