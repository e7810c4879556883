"""Whether a target is a class or a number, told by the first labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelstream.stream.bad_rows import SourceError
from kernelstream.stream.options import Task

__all__ = ["Guess", "guess_task"]

LABELS = 1000
"""Labels that are looked at."""

_FEW, _MANY = 20, 50  # different values: so few are classes, more than so many are not sure to be


class Guess(NamedTuple):
    """A task, and what speaks for it."""

    task: Task
    reason: str


def guess_task(numbers: NDArray[np.float64], others: int = 0) -> Guess:
    """The task that the first labels speak for.

    Args:
        numbers: the labels that are numbers.
        others: how many are not.

    >>> guess_task(np.array([0.0, 1.0, 1.0])).task, guess_task(np.linspace(0, 1, 500)).task
    ('classification', 'regression')
    >>> guess_task(np.arange(1000.0) % 300)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    kernelstream.tables.errors.SourceError: the target has 300 different whole numbers in the first 1,000 rows, which may ...
    """
    n = len(numbers)
    if others > n / 9 or not n:
        return Guess("classification", "the target is text")
    different = len(np.unique(numbers))
    whole = bool((numbers == np.floor(numbers)).all())
    kind = "whole numbers" if whole else "numbers"
    found = f"{different:,} different {kind} in the first {n:,} rows"
    if whole and different <= max(_FEW, min(n // 2, _MANY)):
        return Guess("classification", f"the target has {found}")
    if different > n / 2 or (not whole and (different > _FEW or n < 100)):
        return Guess("regression", f"the target has {found}")
    raise SourceError(
        f"the target has {found}, which may be classes or quantities: say task='classification' or task='regression'"
    )
