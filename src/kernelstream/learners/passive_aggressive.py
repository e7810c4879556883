"""Passive-aggressive learning, linear and with kernels.

The smallest change of the model that satisfies the current example, l the hinge loss and n = k(x_t, x_t) or |x_t|^2:

    f_{t+1} = f_t + tau y k(x_t, .),   tau = l / n  (PA),  min(C, l / n)  (PA-I),  l / (n + 1 / (2 C))  (PA-II).

Regression: l is the epsilon-insensitive loss and y becomes the sign of the residual.
"""

from __future__ import annotations

from typing import Any, ClassVar

from kernelstream.learners.core_learner import CoreLearner
from kernelstream.learners.expansion import ExpansionLearner
from kernelstream.validate import check_choice, check_integer, check_number

__all__ = ["KernelPA", "LinearPA"]

VARIANTS = ("PA", "PA-I", "PA-II")


class KernelPA(ExpansionLearner):
    """Kernel passive-aggressive learning; stores every example with a loss, so it grows (up to ``max_size``).

    Args:
        variant: ``"PA"``, ``"PA-I"`` or ``"PA-II"``.
        C: aggressiveness of PA-I and PA-II.
        epsilon: width of the insensitive zone, for regression.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.
        max_size: how many points may be stored before an error ends the growth.

    This differs from the paper in:
        1. several classes: the step is split between the true and the best wrong class so that their difference follows the
           two-class algorithm; C is therefore twice the paper's there;
        2. an example with n = 0 teaches nothing and is passed over.

    References:
        Crammer, Dekel, Keshet, Shalev-Shwartz and Singer, "Online passive-aggressive algorithms", JMLR 7, 2006.

    >>> from kernelstream import KernelClassifier
    >>> model = KernelClassifier(KernelPA(C=10.0)).fit([[0.0], [1.0], [0.1], [0.9]], [0, 1, 0, 1])
    >>> model.predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    rule = "passive-aggressive"
    bounded = False
    bounded_alternative = "BPAS, or LinearPA"
    pair_share = 0.5

    def __init__(
        self,
        *,
        variant: str = "PA-I",
        C: float = 1.0,
        epsilon: float = 0.1,
        kernel: Any = None,
        max_size: int = 10_000,
    ) -> None:
        self.variant = variant
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.max_size = max_size
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_choice("variant", self.variant, VARIANTS)
        check_number("C", self.C, low=0, open_low=True, finite=False)
        check_number("epsilon", self.epsilon, low=0)
        check_integer("max_size", self.max_size, low=1)

    def _options(self) -> dict[str, Any]:
        return {
            "budget": self.max_size,
            "grows": True,
            "variant": self.variant,
            "C": self.C,
            "epsilon": self.epsilon,
        }


class LinearPA(CoreLearner):
    """Passive-aggressive learning of a linear model, one weight per feature (no intercept).

    Args:
        variant: ``"PA"``, ``"PA-I"`` or ``"PA-II"``.
        C: aggressiveness of PA-I and PA-II.
        epsilon: width of the insensitive zone, for regression.

    This differs from the paper in: what KernelPA does.

    References:
        Crammer, Dekel, Keshet, Shalev-Shwartz and Singer, "Online passive-aggressive algorithms", JMLR 7, 2006.

    >>> from kernelstream import KernelRegressor
    >>> model = KernelRegressor(LinearPA(variant="PA", epsilon=0.0)).fit([[1.0, 0.0], [0.0, 2.0]], [3.0, 4.0])
    >>> model.predict([[1.0, 1.0]]).tolist()
    [5.0]
    """

    merge_guarantee: ClassVar[str] = "the mean by rows of the parts' weights over the features"
    averaged_arrays: ClassVar[tuple[str, ...]] = ("weights",)

    pair_share = 0.5
    feature_axes: ClassVar[dict[str, int] | None] = {"weights": 0}

    def __init__(self, *, variant: str = "PA-I", C: float = 1.0, epsilon: float = 0.1) -> None:
        self.variant = variant
        self.C = C
        self.epsilon = epsilon
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_choice("variant", self.variant, VARIANTS)
        check_number("C", self.C, low=0, open_low=True, finite=False)
        check_number("epsilon", self.epsilon, low=0)

    def _build_core(self) -> None:
        self._core = self._core_class("Linear")(
            width=self._width,
            outputs=self._outputs,
            regression=self._regression,
            epsilon=self.epsilon,
            C=self.C,
            variant=self.variant,
        )
