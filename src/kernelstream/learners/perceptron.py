"""Kernel perceptron, and the randomized budget perceptron.

On a mistake (margin m = y f(x_t) <= 0) the point is stored with weight y:

    f_{t+1} = f_t + y_t k(x_t, .)

RBP does the same with at most B points: when full, a point drawn uniformly is removed first. Several classes:
docs/conventions.md.
"""

from __future__ import annotations

from typing import Any

from kernelstream.learners.expansion import ExpansionLearner
from kernelstream.validate import check_integer, check_seed

__all__ = ["RBP", "KernelPerceptron"]


class KernelPerceptron(ExpansionLearner):
    """The kernel perceptron; stores every mistake, so it grows (up to ``max_size``).

    Args:
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.
        max_size: how many points may be stored before an error ends the growth.

    This differs from the paper in:
        1. several classes: a step raises the true and lowers the best wrong class by a half each (docs/conventions.md);
        2. the default kernel, whose bandwidth is set from the first examples: see ``KernelLearner``.

    References:
        Freund and Schapire, "Large margin classification using the perceptron algorithm", Machine Learning 37, 1999.

    >>> from kernelstream import Gaussian, KernelClassifier
    >>> model = KernelClassifier(KernelPerceptron(kernel=Gaussian(gamma=1.0)))
    >>> model.fit([[0.0], [1.0], [0.1], [0.9]], ["a", "b", "a", "b"]).predict([[0.2], [1.1]]).tolist()
    ['a', 'b']
    """

    rule = "perceptron"
    regression = False
    bounded = False
    bounded_alternative = "RBP, Forgetron or Projectron"
    pair_share = 0.5

    def __init__(self, *, kernel: Any = None, max_size: int = 10_000) -> None:
        self.kernel = kernel
        self.max_size = max_size
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("max_size", self.max_size, low=1)

    def _options(self) -> dict[str, Any]:
        return {"budget": self.max_size, "grows": True}


class RBP(ExpansionLearner):
    """The randomized budget perceptron: at most ``budget`` points, a uniformly drawn one is removed for a new one.

    Args:
        budget: how many points (the papers' B).
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.
        seed: of the draws.

    This differs from the paper in: what KernelPerceptron does.

    References:
        Cavallanti, Cesa-Bianchi and Gentile, "Tracking the best hyperplane with a simple budget perceptron",
        Machine Learning 69, 2007.

    >>> from kernelstream import KernelClassifier
    >>> KernelClassifier(RBP(budget=2)).fit([[0.0], [1.0], [0.1], [0.9]], [0, 1, 0, 1]).learner_.n_points
    2
    """

    rule = "perceptron"
    regression = False
    pair_share = 0.5

    def __init__(self, budget: int = 200, *, kernel: Any = None, seed: int = 0) -> None:
        self.budget = budget
        self.kernel = kernel
        self.seed = seed
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("budget", self.budget, low=1)
        check_seed(self.seed)

    def _options(self) -> dict[str, Any]:
        return {"budget": self.budget, "seed": self.seed}
