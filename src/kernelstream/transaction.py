"""All or nothing: a call that learns either succeeds, or raises and leaves the model as it was."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelstream.kernels import Kernel
from kernelstream.learners import Learner
from kernelstream.losses import Loss

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

    __slots__ = ("_attributes", "_learner", "_names", "_owner", "_plain", "_snapshot")

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._learner: Learner | None = None

    def keep(self, learner: Learner, rows: int | None = None) -> None:
        """Keep what the learner has learnt so far, unless it would undo the refusal of these rows by itself."""
        if rows is None or rows > 1 or _calls_python(learner):
            attributes = learner.__dict__
            self._snapshot = _snapshot(learner)
            self._plain = {
                name: _copy(value) for name, value in attributes.items() if isinstance(value, _PLAIN)
            }
            self._names = attributes.keys() - self._plain.keys()
            self._learner = learner

    def __enter__(self) -> Transaction:
        self._attributes = dict(self._owner.__dict__)
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            return
        self._owner.__dict__.clear()
        self._owner.__dict__.update(self._attributes)
        if self._learner is not None:
            _rollback(self._learner, self._snapshot)
            # A state has a kernel's width, not the words it was given in: what is plain is put back as it was.
            attributes = self._learner.__dict__
            for name in attributes.keys() - self._names:
                del attributes[name]
            attributes.update(self._plain)


_PLAIN = (type(None), bool, int, float, str, list, tuple, np.dtype, Kernel, Loss)


def _copy(value: Any) -> Any:
    """A copy of a list, or of lists in a tuple (examples kept during the warm-up); nothing else is changed in place."""
    if type(value) is tuple:
        return tuple(map(_copy, value))
    return value.copy() if type(value) is list else value


def _calls_python(learner: Learner) -> bool:
    """Whether the kernel is a function of the user's, which may raise anything at any moment of a round."""
    kernel = getattr(learner, "kernel", None)
    return callable(kernel) and not isinstance(kernel, Kernel)


def _snapshot(learner: Learner) -> Any:
    snapshot = getattr(learner, "snapshot", None)
    return learner.state() if snapshot is None else snapshot()


def _rollback(learner: Learner, snapshot: Any) -> None:
    rollback = getattr(learner, "rollback", None)
    if rollback is None:
        learner.restore(snapshot)
    else:
        rollback(snapshot)
