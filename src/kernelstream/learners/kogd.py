"""Kernel online gradient descent (NORMA), without a budget and truncated to the newest points.

With g the slope of the loss at f_t(x_t):

    f_{t+1} = (1 - eta lam) f_t - eta g k(x_t, .)
"""

from __future__ import annotations

from typing import Any

from kernelstream.learners.expansion import ExpansionLearner
from kernelstream.validate import check_integer, check_step

__all__ = ["KOGD", "TruncatedKOGD"]


class KOGD(ExpansionLearner):
    """Kernel online gradient descent; stores every example with a slope, so it grows (up to ``max_size``).

    Args:
        eta: step size.
        lam: regularisation (the papers' lambda); weights shrink by ``1 - eta lam`` each round.
        loss: a loss or its name; by default hinge for classification and squared for regression.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.
        max_size: how many points may be stored before an error ends the growth.

    This differs from the paper in:
        1. no offset b; the step size is constant;
        2. several classes: one-vs-rest columns on shared points; losses beyond the paper's;
        3. the default kernel: see ``KernelLearner``.

    References:
        Kivinen, Smola and Williamson, "Online learning with kernels", IEEE Trans. Signal Processing 52, 2004 (NORMA).

    >>> from kernelstream import KernelRegressor
    >>> model = KernelRegressor(KOGD(eta=0.5)).fit([[0.0], [1.0]] * 20, [0.0, 1.0] * 20)
    >>> model.predict([[0.0], [1.0]]).round(1).tolist()
    [0.0, 1.0]
    """

    rule = "kogd"
    bounded = False
    bounded_alternative = "NOGD, BOGD or TruncatedKOGD"

    def __init__(
        self,
        *,
        eta: float = 0.5,
        lam: float = 0.0,
        loss: Any = None,
        kernel: Any = None,
        max_size: int = 10_000,
    ) -> None:
        self.eta = eta
        self.lam = lam
        self.loss = loss
        self.kernel = kernel
        self.max_size = max_size
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_step(self.eta, self.lam)
        check_integer("max_size", self.max_size, low=1)
        self._check_loss()

    def _options(self) -> dict[str, Any]:
        step = {"loss": self._loss().core, "eta": self.eta, "lam": self.lam}
        return {"budget": self.max_size, "grows": True} | step


class TruncatedKOGD(ExpansionLearner):
    """Kernel online gradient descent that keeps the newest ``budget`` points.

    Args:
        budget: how many points (B).
        eta: step size.
        lam: regularisation; with a positive one the weight of a dropped point has already faded.
        loss: a loss or its name; by default hinge for classification and squared for regression.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.

    This differs from the paper in: what KOGD does, and the newest ``budget`` *points* are kept, whatever the number of
    rounds without a slope between them.

    References:
        Kivinen, Smola and Williamson, "Online learning with kernels", IEEE Trans. Signal Processing 52, 2004 (Section V).

    >>> from kernelstream import KernelClassifier
    >>> KernelClassifier(TruncatedKOGD(budget=3)).fit([[0.0], [1.0], [0.1], [0.9]], [0, 1, 0, 1]).learner_.n_points
    3
    """

    rule = "truncated-kogd"

    def __init__(
        self, budget: int = 200, *, eta: float = 0.5, lam: float = 0.001, loss: Any = None, kernel: Any = None
    ) -> None:
        self.budget = budget
        self.eta = eta
        self.lam = lam
        self.loss = loss
        self.kernel = kernel
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("budget", self.budget, low=1)
        check_step(self.eta, self.lam)
        self._check_loss()

    def _options(self) -> dict[str, Any]:
        return {"budget": self.budget, "loss": self._loss().core, "eta": self.eta, "lam": self.lam}
