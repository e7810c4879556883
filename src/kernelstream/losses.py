"""Losses of a score ``f`` and a target ``y``: value, slope and curvature in ``f``.

``y`` is -1 or +1 for the classification losses (hinge, squared hinge, logistic) and a real number for the others. The
formulas live in the compiled core, where the learners use them.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from kernelstream._core import core as compiled
from kernelstream.validate import check_number

__all__ = ["EpsilonInsensitive", "Hinge", "Huber", "Logistic", "Loss", "Squared", "SquaredHinge", "as_loss"]

Array = NDArray[np.float64]


class Loss(BaseEstimator):
    """A loss. Subclasses name it; ``classification`` and ``regression`` say what it is for."""

    name: ClassVar[str]
    classification: ClassVar[bool] = True
    regression: ClassVar[bool] = False

    @property
    def width(self) -> float:
        """The loss's own parameter (epsilon or delta), 0 if it has none."""
        return 0.0

    @property
    def core(self) -> compiled.Loss:
        """The loss as the compiled core knows it."""
        return compiled.Loss(self.name, self.width)

    def value(self, f: ArrayLike, y: ArrayLike) -> Array:
        """The loss itself."""
        return self._of(f, y)[0]

    def slope(self, f: ArrayLike, y: ArrayLike) -> Array:
        """The derivative in ``f`` (a subgradient where there is none)."""
        return self._of(f, y)[1]

    def curvature(self, f: ArrayLike, y: ArrayLike) -> Array:
        """The second derivative in ``f`` (0 at kinks)."""
        return self._of(f, y)[2]

    def _of(self, f: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array]:
        scores, targets = np.broadcast_arrays(np.asarray(f, np.float64), np.asarray(y, np.float64))
        flat = self.core.values(scores.ravel(), targets.ravel())
        value, slope, curvature = flat.reshape((3, *scores.shape))
        return value, slope, curvature


class Hinge(Loss):
    """``max(0, 1 - y f)``, the loss of support vector machines.

    >>> Hinge().value([0.5, 2.0], 1).tolist()
    [0.5, 0.0]
    """

    name = "hinge"


class SquaredHinge(Loss):
    """``max(0, 1 - y f)^2``.

    >>> SquaredHinge().slope([0.5], 1).tolist()
    [-1.0]
    """

    name = "squared_hinge"


class Logistic(Loss):
    """``log(1 + exp(-y f))``; the only one here that gives probabilities.

    >>> Logistic().slope([0.0], 1).tolist()
    [-0.5]
    """

    name = "logistic"


class Squared(Loss):
    """``(f - y)^2 / 2``, for regression and, with y = -1 or +1, for classification.

    Papers that write ``(f - y)^2`` have half our step size eta and twice our lambda for the same update.

    >>> Squared().value([3.0], [1.0]).tolist()
    [2.0]
    """

    name = "squared"
    regression = True


class EpsilonInsensitive(Loss):
    """``max(0, |f - y| - epsilon)``, the loss of support vector regression.

    >>> EpsilonInsensitive(epsilon=0.5).value([3.0], [1.0]).tolist()
    [1.5]
    """

    name = "epsilon_insensitive"
    classification = False
    regression = True

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = epsilon
        check_number("epsilon", epsilon, low=0)

    @property
    def width(self) -> float:
        """``epsilon``."""
        return float(self.epsilon)


class Huber(Loss):
    """Squared up to ``delta``, then linear: ``delta (|f - y| - delta / 2)``.

    >>> Huber(delta=1.0).value([0.5, 3.0], 0.0).tolist()
    [0.125, 2.5]
    """

    name = "huber"
    classification = False
    regression = True

    def __init__(self, delta: float = 1.0) -> None:
        self.delta = delta
        check_number("delta", delta, low=0, open_low=True)

    @property
    def width(self) -> float:
        """``delta``."""
        return float(self.delta)


_NAMED = {loss.name: loss for loss in (Hinge, SquaredHinge, Logistic, Squared, EpsilonInsensitive, Huber)}


def as_loss(loss: Any) -> Loss:
    """A loss from itself or from its name (with its default width).

    >>> as_loss("huber")
    Huber()
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in _NAMED:
        return _NAMED[loss]()
    raise ValueError(f"loss must be one of {', '.join(map(repr, _NAMED))} or a Loss object, got {loss!r}")
