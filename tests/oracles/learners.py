"""Slow, obvious learners that follow docs/conventions.md; the compiled core is compared with them."""

from __future__ import annotations

from .loss_learners import BOGD, FOGD, KOGD, NOGD, TruncatedKOGD
from .margin_learners import (
    BPAS,
    RBP,
    Forgetron,
    KernelPA,
    KernelPerceptron,
    LinearPA,
    Projectron,
    ProjectronPP,
)

__all__ = [
    "BOGD",
    "BPAS",
    "FOGD",
    "KOGD",
    "NOGD",
    "RBP",
    "Forgetron",
    "KernelPA",
    "KernelPerceptron",
    "LinearPA",
    "Projectron",
    "ProjectronPP",
    "TruncatedKOGD",
]
