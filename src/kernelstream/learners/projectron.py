"""Projectron and Projectron++: instead of storing a point that the stored ones nearly span, project it onto them.

On a mistake, with K the kernel matrix of the stored points and k its row for x_t:

    d = K^-1 k,   delta^2 = k(x_t, x_t) - k . d
    delta <= eta (or the budget is full):  a += y d        else: store x_t with weight y

Projectron++ also learns from rounds that are right with a margin below 1: with l = 1 - y f and p = k . d,

    a += y tau d,   tau = min(l / p, 2 (l - delta / eta) / p, 1)   if that is positive (delta / eta = 0 when full).
"""

from __future__ import annotations

from typing import Any

from kernelstream.learners.expansion import ExpansionLearner
from kernelstream.validate import check_integer, check_number

__all__ = ["Projectron", "ProjectronPP"]


class Projectron(ExpansionLearner):
    """A perceptron that projects new mistakes onto the stored points when they are close to their span, or when full.

    Args:
        budget: how many points (B).
        eta: distance from the span below which a point is projected; 0 stores points until the budget is full.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.

    This differs from the paper in:
        1. a budget: when it is full every mistake is projected (the paper bounds the set through eta alone);
        2. a point with delta^2 <= 1e-10 k(x, x) (1e-5 for float32 data) is always projected, so that K^-1, kept in
           double precision, stays sound; one with k(x, x) = 0 teaches nothing;
        3. several classes as in KernelPerceptron; the default kernel: see ``KernelLearner``.

    References:
        Orabona, Keshet and Caputo, "The Projectron: a bounded kernel-based perceptron", ICML 2008.

    >>> from kernelstream import KernelClassifier
    >>> model = KernelClassifier(Projectron(budget=10)).fit([[0.0], [1.0], [0.1], [0.9]], [0, 1, 0, 1])
    >>> model.predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    rule = "projectron"
    regression = False
    quadratic = True
    pair_share = 0.5

    def __init__(self, budget: int = 200, *, eta: float = 0.1, kernel: Any = None) -> None:
        self.budget = budget
        self.eta = eta
        self.kernel = kernel
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("budget", self.budget, low=1)
        check_number("eta", self.eta, low=0)

    def _options(self) -> dict[str, Any]:
        return {"budget": self.budget, "eta": self.eta}


class ProjectronPP(Projectron):
    """Projectron++: also takes a projected step when the prediction is right but its margin is below 1.

    Args:
        budget: how many points (B).
        eta: distance from the span below which a mistake is projected; it also limits margin steps. Above 0.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.

    This differs from the paper in:
        1. what Projectron does; 2. when the budget is full, a margin step is taken however far the point is from the span
        (delta / eta counts as 0): with the paper's rule a full budget hardly ever takes one (a9a, B = 200: 20.7 % mistakes
        against 17.5 %). Of the three variants in circulation this is the one of the paper below.

    References:
        Orabona, Keshet and Caputo, "The Projectron: a bounded kernel-based perceptron", ICML 2008.

    >>> from kernelstream import KernelClassifier
    >>> model = KernelClassifier(ProjectronPP(budget=10)).fit([[0.0], [1.0], [0.1], [0.9]], [0, 1, 0, 1])
    >>> model.predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    rule = "projectron++"

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("budget", self.budget, low=1)
        check_number("eta", self.eta, low=0, open_low=True)
