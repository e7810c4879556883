"""The self-tuned Forgetron.

On a mistake the point is stored with weight y. When that makes B + 1 points, all weights shrink by the largest phi in (0, 1]
that keeps the damage of forgetting within its allowance, and the oldest point r (weight size s) is forgotten:

    (s phi)^2 + 2 s phi (1 - phi mu) + Q <= 15/32 M,    mu = y_r f'(x_r),

where f' is the model of B + 1 points, M counts the mistakes and Q the damage so far.
"""

from __future__ import annotations

from typing import Any, ClassVar

from kernelstream.learners.expansion import ExpansionLearner
from kernelstream.validate import check_integer

__all__ = ["Forgetron"]


class Forgetron(ExpansionLearner):
    """A perceptron on a budget that shrinks its weights and forgets the oldest point, with a mistake bound.

    Args:
        budget: how many points (the paper's B).
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.

    This differs from the paper in:
        1. several classes: the paper's s and mu are taken along the pair of classes of the forgotten point
           (s = sum_c |a_rc|, mu = sum_c sign(a_rc) f'_c(x_r)), which for two classes is the paper's;
        2. kernels with k(x, x) > 1 are accepted, though the mistake bound needs k(x, x) <= 1;
        3. the default kernel: see ``KernelLearner``.

    References:
        Dekel, Shalev-Shwartz and Singer, "The Forgetron: a kernel-based perceptron on a fixed budget", NeurIPS 2005.

    >>> from kernelstream import KernelClassifier
    >>> model = KernelClassifier(Forgetron(budget=10)).fit([[0.0], [1.0], [0.1], [0.9]], [0, 1, 0, 1])
    >>> model.predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    merge_guarantee: ClassVar[str] = ""
    merge_refusal: ClassVar[str] = "how far it shrinks its weights follows from the order of its mistakes"

    rule = "forgetron"
    regression = False
    pair_share = 0.5

    def __init__(self, budget: int = 200, *, kernel: Any = None) -> None:
        self.budget = budget
        self.kernel = kernel
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("budget", self.budget, low=1)

    def _options(self) -> dict[str, Any]:
        return {"budget": self.budget}
