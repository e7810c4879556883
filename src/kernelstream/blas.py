"""BLAS on one thread, so that results do not depend on how many cores there are."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """BLAS on one thread: the matrices of a learner are small, and sums of several threads have other last digits.

    It takes about 0.1 ms to enter and leave, so it is for the rare steps of a learner that are made in Python, not for each row.

    >>> with one_thread():
    ...     pass
    """
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited
