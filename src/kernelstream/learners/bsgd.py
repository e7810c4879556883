"""Budgeted stochastic gradient descent: the steps of Pegasos, and one point less when there is one too many.

With l the loss, in round t:

    f <- (1 - eta_t lam) f - eta_t l'(f(x_t)) k(x_t, .),     eta_t = 1 / (1 / eta + lam t)

When there are B + 1 points, let a be the one of smallest ``|a_a|^2 k(x_a, x_a)``:

    removal    a goes
    merging    a and another point b become z = h x_a + (1 - h) x_b, with the weight of its projection,
               a_z = a_a k(x_a, z) + a_b k(x_b, z); h and b are those that change f the least, by
               |a_a|^2 + |a_b|^2 + 2 a_a a_b k(x_a, x_b) - |a_z|^2.

For the Gaussian kernel ``k(x_a, z) = k(x_a, x_b)^((1 - h)^2)`` and ``k(x_b, z) = k(x_a, x_b)^(h^2)``, so h is a search over
numbers.
"""

from __future__ import annotations

from typing import Any, ClassVar

from kernelstream.kernels import Gaussian, as_kernel
from kernelstream.learners.expansion import ExpansionLearner
from kernelstream.validate import check_choice, check_integer, check_number

__all__ = ["BSGD"]


class BSGD(ExpansionLearner):
    """Budgeted stochastic gradient descent (budgeted Pegasos) with merging or removal of points.

    Args:
        budget: how many points (B), at least 2.
        eta: bound of the steps; infinity gives the paper's ``1 / (lam t)``, whose first steps are large.
        lam: regularisation.
        maintenance: ``"merging"`` or ``"removal"``.
        loss: a loss or its name; by default hinge for classification and squared for regression.
        kernel: Gaussian for merging; any kernel, or a callable ``kernel(X, Y)``, for removal. By default Gaussian with the median
            bandwidth.

    Written without the paper's text at hand: what follows, too, is by what is generally known of it.

    This differs from the paper in:
        1. the bound ``eta``, without which squared losses diverge in the first rounds;
        2. h is searched on a grid of nine points of [0, 1] and by bisection of the slope beside the best one (the paper: golden
           section only, which may miss the larger of two maxima);
        3. the paper's third way, projection, is not here: Projectron and NOGD have it;
        4. several classes are learnt one against the rest over shared points (the paper: the Crammer-Singer loss), so weights
           are vectors in the formulas above; other losses than the hinge;
        5. t counts the rounds of a stream, and a row of weight v has v times the loss.

    References:
        Wang, Crammer and Vucetic, "Breaking the curse of kernelization: budgeted stochastic gradient descent for large-scale SVM
        training", JMLR 13, 2012.

    >>> from kernelstream import KernelClassifier
    >>> model = KernelClassifier(BSGD(budget=3)).fit([[0.0], [1.0], [0.1], [0.9], [0.4]] * 9, [0, 1, 0, 1, 0] * 9)
    >>> model.learner_.n_points, model.predict([[0.05], [0.95]]).tolist()
    (3, [0, 1])
    """

    rule = "bsgd"
    merge_guarantee: ClassVar[str] = ""
    merge_refusal: ClassVar[str] = (
        "its steps fall with the number of rounds, and its merged points are those of one sequence"
    )

    def __init__(
        self,
        budget: int = 200,
        *,
        eta: float = 1.0,
        lam: float = 0.001,
        maintenance: str = "merging",
        loss: Any = None,
        kernel: Any = None,
    ) -> None:
        self.budget = budget
        self.eta = eta
        self.lam = lam
        self.maintenance = maintenance
        self.loss = loss
        self.kernel = kernel
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("budget", self.budget, low=2)
        check_number("eta", self.eta, low=0, open_low=True, finite=False)
        check_number("lam", self.lam, low=0, open_low=True)
        check_choice("maintenance", self.maintenance, ("merging", "removal"))
        self._check_loss()
        if self.maintenance == "merging" and not isinstance(as_kernel(self.kernel), Gaussian):
            raise ValueError(
                f"merging is for the Gaussian kernel; with {self.kernel!r} give maintenance='removal'"
            )

    def _options(self) -> dict[str, Any]:
        return {
            "budget": self.budget + 1,
            "loss": self._loss().core,
            "eta": self.eta,
            "lam": self.lam,
            "maintenance": self.maintenance,
        }
