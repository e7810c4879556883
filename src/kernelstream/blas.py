"""BLAS on one thread, so that results do not depend on how many cores there are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class _Limit:
    """The limit is the process's own: it lasts from the first thread that needs it until the last one has done."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.limited: Any = None


_LIMIT = _Limit()


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS on one thread: the matrices of a learner are small, and sums of several threads have other last digits.

    It takes about 0.1 ms to enter and leave, so it is for the rare steps of a learner that are made in Python, not for each row.

    >>> with one_thread():
    ...     pass
    """
    with _LIMIT.lock:
        if not _LIMIT.users:
            _LIMIT.limited = _controller().limit(limits=1, user_api="blas")
        _LIMIT.users += 1
    try:
        yield
    finally:
        with _LIMIT.lock:
            _LIMIT.users -= 1
            if not _LIMIT.users:
                _LIMIT.limited.restore_original_limits()
