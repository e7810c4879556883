"""All or nothing: a call that learns either succeeds, or raises and leaves the model as it was."""

from __future__ import annotations

from typing import Any

from kernelstream.kernels import Kernel
from kernelstream.learners import Learner

__all__ = ["Transaction"]


class Transaction:
    """Within ``with Transaction(model)`` an exception of any kind puts every attribute of the model back.

    The attributes must be replaced, not changed in place. The one that changes in place is the learner: ``keep`` says that it is
    about to learn, and how many rows. A learner refuses a row before it changes anything, so that one row alone needs no copy of
    the state; several rows do, and so does a change of the learner's shape (``rows=None``).

    >>> class Model:
    ...     count = 0
    >>> model = Model()
    >>> with Transaction(model):
    ...     model.count = 5
    ...     raise ValueError("refused")
    Traceback (most recent call last):
    ...
    ValueError: refused
    >>> model.count
    0
    """

    __slots__ = ("_attributes", "_learner", "_owner", "_snapshot")

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._learner: Learner | None = None

    def keep(self, learner: Learner, rows: int | None = None) -> None:
        """Keep what the learner has learnt so far, unless it would undo the refusal of these rows by itself."""
        if self._learner is None and (rows is None or rows > 1 or _calls_python(learner)):
            self._learner, self._snapshot = learner, learner.snapshot()

    def __enter__(self) -> Transaction:
        self._attributes = dict(self._owner.__dict__)
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            return
        self._owner.__dict__.clear()
        self._owner.__dict__.update(self._attributes)
        if self._learner is not None:
            self._learner.rollback(self._snapshot)


def _calls_python(learner: Learner) -> bool:
    """Whether the kernel is a function of the user's, which may raise anything at any moment of a round."""
    kernel = getattr(learner, "kernel", None)
    return callable(kernel) and not isinstance(kernel, Kernel)
