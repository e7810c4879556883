"""Losses of a score f and a target y: value, slope in f, curvature in f. Scalars only."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Scalar = Callable[[float, float], float]


class Loss(NamedTuple):
    """Three functions of (f, y)."""

    value: Scalar
    slope: Scalar
    curvature: Scalar


def _exp(z: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.exp(z))


def hinge() -> Loss:
    """max(0, 1 - y f)."""
    return Loss(
        value=lambda f, y: max(0.0, 1.0 - y * f),
        slope=lambda f, y: -y if y * f < 1.0 else 0.0,
        curvature=lambda f, y: 0.0,
    )


def squared_hinge() -> Loss:
    """max(0, 1 - y f)^2."""
    return Loss(
        value=lambda f, y: max(0.0, 1.0 - y * f) ** 2,
        slope=lambda f, y: -2.0 * y * max(0.0, 1.0 - y * f),
        curvature=lambda f, y: 2.0 if y * f < 1.0 else 0.0,
    )


def logistic() -> Loss:
    """log(1 + exp(-y f))."""

    def curvature(f: float, y: float) -> float:
        p = 1.0 / (1.0 + _exp(-f))
        return p * (1.0 - p)

    return Loss(
        value=lambda f, y: float(np.logaddexp(0.0, -y * f)),
        slope=lambda f, y: -y / (1.0 + _exp(y * f)),
        curvature=curvature,
    )


def squared() -> Loss:
    """(f - y)^2 / 2."""
    return Loss(
        value=lambda f, y: (f - y) ** 2 / 2.0,
        slope=lambda f, y: f - y,
        curvature=lambda f, y: 1.0,
    )


def epsilon_insensitive(epsilon: float) -> Loss:
    """max(0, |f - y| - epsilon)."""
    return Loss(
        value=lambda f, y: max(0.0, abs(f - y) - epsilon),
        slope=lambda f, y: float(np.sign(f - y)) if abs(f - y) > epsilon else 0.0,
        curvature=lambda f, y: 0.0,
    )


def huber(delta: float) -> Loss:
    """(f - y)^2 / 2 near y, delta (|f - y| - delta / 2) further than delta."""

    def value(f: float, y: float) -> float:
        if abs(f - y) <= delta:
            return (f - y) ** 2 / 2.0
        return delta * (abs(f - y) - delta / 2.0)

    return Loss(
        value=value,
        slope=lambda f, y: min(max(f - y, -delta), delta),
        curvature=lambda f, y: 1.0 if abs(f - y) <= delta else 0.0,
    )


def make_losses(epsilon: float = 0.1, delta: float = 1.0) -> dict[str, Loss]:
    """Every loss by name."""
    return {
        "hinge": hinge(),
        "squared_hinge": squared_hinge(),
        "logistic": logistic(),
        "squared": squared(),
        "epsilon_insensitive": epsilon_insensitive(epsilon),
        "huber": huber(delta),
    }


LOSSES = make_losses()
