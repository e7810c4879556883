"""OKL-GD: kernel gradient descent with an adaptive kernel size.

Each centre keeps the scale it was born with, f_t = sum_j w_j k_{gamma_j}(x_j, .). With g = l'(f_t(x_t)) != 0
and n the newest centre, the only one through which the loss depends on the scale of now:

    gamma_t = clip(gamma_{t-1} + rho_t g w_n k_{gamma_n}(x_t, x_n) |x_t - x_n|^2)  into the interval
    f_{t+1} = f_t - eta g k_{gamma_t}(x_t, .)
"""

from __future__ import annotations

from typing import Any

from kernelstream.learners.selecting import SelectingLearner
from kernelstream.validate import check_integer

__all__ = ["OKLGD"]


class OKLGD(SelectingLearner):
    """Kernel gradient descent in which every centre has its own bandwidth; grows (up to ``max_size``).

    Args:
        eta: step size of the weights.
        scale_step: step size of the scale, in log gamma: ``scale_step / sqrt(t)``, t counting the rounds learnt
            from. It does not depend on the unit of the features. 0 gives KOGD.
        rho: the papers' step size, in gamma, in place of ``scale_step``: ``rho_t = rho / t ** rho_decay``.
        rho_decay: of ``rho``; 1 as in the OKS-SIL paper's experiments, 0 for a constant step as in Chen et al.
        gamma: the scale to start from; by default that of the median bandwidth of the first examples.
        interval: the smallest and the largest gamma; by default 2^-12 and 2^12 times the first gamma, with ``rho``
            2^-12 and 2^12.
        loss: a loss or its name; by default hinge for classification and squared for regression.
        max_size: how many points may be stored before an error ends the growth (2,000 in the OKS-SIL paper).

    This differs from the paper in:
        1. the step is taken in the logarithm of gamma = 1 / (2 sigma^2), or with ``rho`` in gamma as the OKS-SIL
            paper has it (Chen et al.: in sigma), and kept in the interval;
        2. losses other than the squared one; with them a round without a slope stores nothing;
        3. several classes: one-vs-rest columns over the same centres, whose derivatives in gamma add up;
        4. when ``max_size`` is reached it stops with an error (what the OKS-SIL paper did there is not said);
        5. the default start: the median distance, set anew when 2, 4, 8, ... 128 examples have been learnt from;
            each time the learner starts again and goes over those kept.

    References:
        Chen, Liang, Zheng and Principe, "Kernel least mean square with adaptive kernel size", Neurocomputing
        191, 2016.

    >>> from kernelstream import KernelRegressor
    >>> model = KernelRegressor(OKLGD(eta=0.5)).fit([[0.0], [1.0]] * 20, [0.0, 1.0] * 20)
    >>> model.predict([[0.0], [1.0]]).round(1).tolist()
    [0.0, 1.0]
    """

    bounded = False
    bounded_alternative = "OKSSIL"

    def __init__(
        self,
        *,
        eta: float = 0.2,
        scale_step: float = 1.0,
        rho: float | None = None,
        rho_decay: float = 1.0,
        gamma: float | None = None,
        interval: tuple[float, float] | None = None,
        loss: Any = None,
        max_size: int = 2000,
    ) -> None:
        self.eta = eta
        self.scale_step = scale_step
        self.rho = rho
        self.rho_decay = rho_decay
        self.gamma = gamma
        self.interval = interval
        self.loss = loss
        self.max_size = max_size
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("max_size", self.max_size, low=1)
        self._check_search()

    def _options(self) -> dict[str, Any]:
        return {"budget": self.max_size, "grows": True, "each_point": True}

    @property
    def gamma_(self) -> float:
        """The scale of the newest centre."""
        return float(self._gamma()[0])
