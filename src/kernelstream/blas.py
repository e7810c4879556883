"""BLAS on one thread, so that results do not depend on how many cores there are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import threadpoolctl
from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


#: The limit is the process's: one thread that leaves would end it for another. So only one is inside at a time.
_INSIDE = threading.RLock()


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS on one thread: the matrices of a learner are small, and sums of several threads have other last digits.

    It takes about 0.1 ms to enter and leave, so it is for the rare steps of a learner that are made in Python, not for each row.

    >>> with one_thread():
    ...     pass
    """
    with _INSIDE:
        pools = [pool for pool in _controller().lib_controllers if pool.user_api == "blas"]
        if all(pool.num_threads == 1 for pool in pools):  # nothing to change, and nothing to change back
            yield
            return
        _take_control()
        with _controller().limit(limits=1, user_api="blas"):
            yield


def _take_control() -> None:
    """Let this thread set the limit: in newer versions of threadpoolctl one that has set it keeps others from doing so."""
    clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)
