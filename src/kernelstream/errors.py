"""The errors of the library that are not plain ``ValueError`` or ``TypeError``."""

from __future__ import annotations

__all__ = ["CapacityError", "ScoreOverflowError"]


class CapacityError(RuntimeError):
    """A learner without a budget has stored ``max_size`` points and needs one more.

    Rows before the one named were learnt; that row and the rows after it were not.

    >>> issubclass(CapacityError, RuntimeError)
    True
    """


class ScoreOverflowError(ValueError):
    """A score left the range of floating-point numbers: the inputs or the step size are far too large.

    Rows before the one named were learnt; that row and the rows after it were not.

    >>> issubclass(ScoreOverflowError, ValueError)
    True
    """
