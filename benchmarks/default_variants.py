"""Changes of the default's global memories that were tried: more rows kept, relevances in the kernel, Matern kernels.

    KERNELSTREAM_DATA=... [KS_KERNEL=matern32] python benchmarks/default_variants.py [--streams NAME ...]

One line per stream of benchmarks/default, its first order: the error of each variant, and its processor time per row in
microseconds. KS_KERNEL is for a build in which ``Memory`` in src/core/memory.hpp names that kernel in place of "gaussian".
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"
sys.path.insert(0, str(Path(__file__).parent / "default"))

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from streams import stream

from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.learners import NewtonMixture, newton_mixture

STREAMS = ["svmguide3", "spambase", "Phishing", "a9a", "usps", "cpusmall", "abalone", "digits", "Bananas", "ImageSegments",
           "Yeast", "chessboard", "rings", "clusters", "moving classes", "elec2 in order", "covtype in order", "friedman",
           "Waveform", "random tree", "Agrawal", "Mv", "w7a", "mushrooms", "hyperplane"]  # fmt: skip
POWER, FEWEST = 0.5, 64  # of a relevance; rows from which on it is taken


class MoreRows(NewtonMixture):
    """Keeps 16 budget rows."""

    def _sizes(self, width: int) -> tuple[int, int, int]:
        landmarks, window, kept = super()._sizes(width)
        return landmarks, window, 4 * kept


class Relevance(NewtonMixture):
    """Builds a memory, then once more with each feature's scale times a power of its relevance."""

    def _rebuild_from(self, memories: list[str], kept: Any) -> None:
        super()._rebuild_from(memories, kept)
        if len(kept.targets) < FEWEST or not self._core.local:
            return
        factor = self._core.array("local_relevance")[kept.columns] ** POWER
        plain = newton_mixture.scaling

        def scaling(rows: Any) -> tuple[Any, Any, float]:
            centre, scale, varying = plain(rows)
            return centre, scale * factor / np.sqrt(np.mean(factor**2)), varying

        newton_mixture.scaling = scaling
        try:
            super()._rebuild_from(memories, kept)
        finally:
            newton_mixture.scaling = plain


def matern(twice: float, polynomial: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The kernel of -gamma times the squared distance, as the core has it."""

    def kernel(exponent: Any) -> Any:
        root = np.sqrt(twice * np.maximum(-exponent, 0))
        return polynomial(root) * np.exp(-root)

    return kernel


KERNELS = {"matern12": matern(2, lambda s: 1.0), "matern32": matern(6, lambda s: 1 + s)}


class OtherKernel:
    """NumPy, but `exp` is another kernel."""

    def __init__(self, name: str) -> None:
        self.exp = KERNELS[name]

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class Matern(NewtonMixture):
    """Tries each bandwidth with a kernel of its own: the default squares a Gaussian's twice."""

    def _trial(self, rows: Any, gammas: Any) -> Any:
        return np.concatenate(
            [super(Matern, self)._trial(rows, gammas[i : i + 1]) for i in range(len(gammas))]
        )


def error_of(learner: NewtonMixture, name: str) -> tuple[float, float]:
    s = stream(name)
    X, y = s.load(0)
    model = (KernelClassifier if s.classes else KernelRegressor)(learner)
    start, losses = time.process_time(), []
    for i in range(0, len(y), 1000):
        predicted, target = model.predict_then_learn(X[i : i + 1000], y[i : i + 1000]), y[i : i + 1000]
        losses.append((predicted != target) * 100.0 if s.classes else (predicted - target) ** 2)
    mean = float(np.concatenate(losses).mean())
    return mean if s.classes else mean**0.5, 1e6 * (time.process_time() - start) / len(y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", nargs="+", metavar="NAME", default=STREAMS)
    options = parser.parse_args()
    variants: list[type[NewtonMixture]] = [NewtonMixture, MoreRows, Relevance]
    if kernel := os.environ.get("KS_KERNEL"):
        vars(newton_mixture)["np"] = OtherKernel(kernel)  # the module's only `exp` is its kernel's
        variants = [Matern]
    for name in options.streams:
        found = [error_of(variant(), name) for variant in variants]
        print(name, *(f"{e:.4f} ({micros:.0f} us)" for e, micros in found), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
