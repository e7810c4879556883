"""Checks of hyper-parameters, with errors that say what would be right."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection
from typing import Any

__all__ = ["check_choice", "check_integer", "check_number", "check_seed", "check_step"]


def check_number(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    finite: bool = True,
) -> float:
    """A real number in ``[low, high]``, or in ``(low, high]`` if ``open_low``.

    >>> check_number("eta", -1, low=0, open_low=True)
    Traceback (most recent call last):
    ...
    ValueError: eta must be a finite number > 0, got -1
    """
    bounds = (f" > {low:g}" if open_low else f" >= {low:g}") if low > -math.inf else ""
    bounds += (" and" if bounds else "") + f" <= {high:g}" if high < math.inf else ""
    good = isinstance(value, numbers.Real) and not isinstance(value, bool)
    good = good and (value > low if open_low else value >= low) and value <= high
    if not good or (finite and not math.isfinite(value)):
        raise ValueError(f"{name} must be a{' finite' if finite else ''} number{bounds}, got {value!r}")
    return float(value)


def check_integer(name: str, value: Any, *, low: int, high: int | None = None) -> int:
    """A whole number from ``low`` on, up to ``high`` if given.

    >>> check_integer("budget", 2.5, low=1)
    Traceback (most recent call last):
    ...
    ValueError: budget must be a whole number >= 1, got 2.5
    """
    good = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not good or value < low or (high is not None and value > high):
        top = f" and <= {high}" if high is not None else ""
        raise ValueError(f"{name} must be a whole number >= {low}{top}, got {value!r}")
    return int(value)


def check_choice(name: str, value: Any, choices: Collection[str]) -> str:
    """One of some words.

    >>> check_choice("removal", "newest", ["oldest", "uniform"])
    Traceback (most recent call last):
    ...
    ValueError: removal must be one of 'oldest', 'uniform', got 'newest'
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def check_step(eta: Any, lam: Any) -> None:
    """A step size and a regularisation that shrinks weights by ``1 - eta lam``.

    >>> check_step(0.5, 3.0)
    Traceback (most recent call last):
    ...
    ValueError: eta * lam must be below 1, got 1.5: every step would flip the model
    """
    check_number("eta", eta, low=0, open_low=True)
    check_number("lam", lam, low=0)
    if eta * lam >= 1:
        raise ValueError(f"eta * lam must be below 1, got {eta * lam:g}: every step would flip the model")


def check_seed(seed: Any) -> None:
    """A seed.

    >>> check_seed(-1)
    Traceback (most recent call last):
    ...
    ValueError: seed must be a whole number >= 0 and <= 18446744073709551615, got -1
    """
    check_integer("seed", seed, low=0, high=2**64 - 1)
