"""Numbers as the page shows them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kernelstream_reproduce.summary import Table

__all__ = ["decimals_of", "errors_text", "fixed", "minus", "number", "settings_text"]


def minus(text: str) -> str:
    """A text with true minus signs.

    >>> minus("-3")
    '−3'
    """
    return text.replace("-", "−")


def number(value: Any) -> str:
    """A setting or a number of a chart, in six digits.

    >>> number(0.123456789), number(-2), number(True), number("auto")
    ('0.123457', '−2', 'True', 'auto')
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return minus(f"{value:.6g}") if is_number else str(value)


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals.

    >>> fixed(-1.256, 2)
    '−1.26'
    """
    return minus(f"{value:.{decimals}f}")


def errors_text(errors: float) -> str:
    """A difference in standard errors.

    >>> errors_text(-0.01), errors_text(3.14), errors_text(-1234.5), errors_text(float("-inf"))
    ('0.0', '+3.1', '−1234', '−∞')
    """
    if abs(errors) < 0.05:
        return "0.0"
    text = f"{errors:+.1f}" if abs(errors) < 99.95 else f"{errors:+.0f}"
    return minus(text).replace("inf", "∞")


def decimals_of(table: Table) -> int:
    """So many decimals that the table's largest figure has four digits."""
    means = [abs(f.mean) for e in table.entries for f in (e.ours, e.paper) if f and math.isfinite(f.mean)]
    largest = max(means, default=0.0)
    return min(6, max(0, 3 - math.floor(math.log10(largest)))) if largest > 0 else 2


def settings_text(settings: Mapping[str, Any]) -> str:
    """Settings in one line.

    >>> settings_text({"B": 100, "eta": 1e-5})
    'B = 100, eta = 1e−05'
    """
    return ", ".join(f"{key} = {number(value)}" for key, value in settings.items())
