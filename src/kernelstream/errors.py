"""The errors of the library that are not plain ``ValueError`` or ``TypeError``."""

from __future__ import annotations

from typing import Any, Self

__all__ = ["CapacityError", "CheckpointError", "MergeError", "ModelFileError", "ScoreOverflowError"]


class _StoppedError(Exception):
    """Learning stopped at ``row`` of the chunk, which ``message`` names as ``{row}``."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message.format(row=row))
        self.message, self.row = message, row

    def moved(self, rows: int) -> Self:
        """The same error, where this many rows stand before those counted."""
        return type(self)(self.message, self.row + rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message, self.row)


class CapacityError(_StoppedError, RuntimeError):
    """A learner without a budget has stored ``max_size`` points and needs one more.

    An estimator, and River's models, have learnt nothing of the chunk. A learner's own ``run`` has learnt the rows before
    the one named, but not that row and those after it.

    >>> issubclass(CapacityError, RuntimeError)
    True
    """


class ScoreOverflowError(_StoppedError, ValueError):
    """A score left the range of floating-point numbers: the inputs or the step size are far too large.

    An estimator, and River's models, have learnt nothing of the chunk. A learner's own ``run`` has learnt the rows before
    the one named, but not that row and those after it.

    >>> issubclass(ScoreOverflowError, ValueError)
    True
    """


class ModelFileError(ValueError):
    """A model cannot be written to a file, or a file is not a model that this version can make.

    >>> issubclass(ModelFileError, ValueError)
    True
    """


class CheckpointError(ValueError):
    """A checkpoint folder cannot be used: another run has it, it is of another run, or nothing in it is whole.

    >>> issubclass(CheckpointError, ValueError)
    True
    """


class MergeError(ValueError):
    """Models cannot be merged: their learner does not allow it, or they do not belong together.

    >>> issubclass(MergeError, ValueError)
    True
    """
