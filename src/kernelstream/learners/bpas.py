"""BPA-S: passive-aggressive learning on a budget, the simple variant.

With tau = min(C, hinge / k_tt): below the budget the point is stored with weight tau y. When full, one point r is dropped so
that the model changes least while the example is satisfied as PA-I would; only the new weight is free, which gives

    a_t = tau y + a_r k_rt / k_tt,      r = argmin_r a_r^2 (k_rr - k_rt^2 / k_tt).
"""

from __future__ import annotations

from typing import Any

from kernelstream.learners.expansion import ExpansionLearner
from kernelstream.validate import check_integer, check_number

__all__ = ["BPAS"]


class BPAS(ExpansionLearner):
    """Budgeted passive-aggressive learning (BPA-S): the dropped point's weight is partly carried over to the new one.

    Args:
        budget: how many points (B).
        C: aggressiveness; no step is larger.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.

    This differs from the paper in:
        1. several classes: as in KernelPA; a_r^2 becomes the squared norm of the point's weights over the classes;
        2. an example with k_tt = 0 is passed over.

    References:
        Wang and Vucetic, "Online passive-aggressive algorithms on a budget", AISTATS 2010.

    >>> from kernelstream import KernelClassifier
    >>> model = KernelClassifier(BPAS(budget=2)).fit([[0.0], [1.0], [0.1], [0.9]], [0, 1, 0, 1])
    >>> model.predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    rule = "bpa-s"
    regression = False
    pair_share = 0.5

    def __init__(self, budget: int = 200, *, C: float = 1.0, kernel: Any = None) -> None:
        self.budget = budget
        self.C = C
        self.kernel = kernel
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("budget", self.budget, low=1)
        check_number("C", self.C, low=0, open_low=True, finite=False)

    def _options(self) -> dict[str, Any]:
        return {"budget": self.budget, "C": self.C}
