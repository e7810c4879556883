"""Which learners are known by name: those of the package, and those that others register.

A package makes its learners known with the decorator ``register``, and the command line finds them through an entry point of
the group ``kernelstream.learners``, whose value is the class or the module that holds it.
"""

from __future__ import annotations

import inspect
import warnings
from functools import cache
from importlib.metadata import entry_points
from typing import TypeVar

from kernelstream.learners.base import Learner

__all__ = ["register", "registered"]

Class = TypeVar("Class", bound=type[Learner])

GROUP = "kernelstream.learners"

_LEARNERS: dict[str, type[Learner]] = {}


def register(learner: Class) -> Class:
    """Make a learner known by the name of its class, to the command line and to model files; a decorator.

    >>> @register
    ... class Mine(Learner):
    ...     pass
    Traceback (most recent call last):
    ...
    TypeError: Mine lacks the methods initial_arrays, score_rows: only a complete learner can be registered
    """
    if not (isinstance(learner, type) and issubclass(learner, Learner)):
        raise TypeError(
            f"only a subclass of kernelstream.learners.Learner can be registered, got {learner!r}"
        )
    if inspect.isabstract(learner):
        missing = ", ".join(sorted(learner.__abstractmethods__))
        raise TypeError(
            f"{learner.__name__} lacks the methods {missing}: only a complete learner can be registered"
        )
    known = _LEARNERS.get(learner.__name__)
    where = (learner.__module__, learner.__qualname__)
    if (
        known is not None and (known.__module__, known.__qualname__) != where
    ):  # a notebook's cell may run again
        raise ValueError(
            f"there is a learner {learner.__name__} already, {known.__module__}.{known.__qualname__}: "
            "give yours another name"
        )
    _LEARNERS[learner.__name__] = learner
    return learner


def registered(*, plugins: bool = True) -> dict[str, type[Learner]]:
    """The learners by name.

    Args:
        plugins: also import those that installed packages announce as entry points. Reading a model file does without: a file
            names learners that this process knows already, and imports nothing.

    >>> registered()["FOGD"].__name__
    'FOGD'
    """
    if plugins:
        _load_plugins()
    return dict(_LEARNERS)


@cache
def _load_plugins() -> None:
    for point in entry_points(group=GROUP):
        try:
            loaded = point.load()
            if isinstance(loaded, type):
                register(loaded)
        except Exception as error:  # another package's mistake must not stop this one
            warnings.warn(
                f"the learner {point.name!r} ({point.value}) cannot be used: {type(error).__name__}: {error}",
                stacklevel=3,
            )
