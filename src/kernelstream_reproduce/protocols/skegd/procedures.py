"""What is done in one trial of the SkeGD paper: a pass over a stream, or the error of a kernel matrix."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from kernelstream.kernels import Gaussian
from kernelstream.sketches import IncrementalNystrom, IncrementalSketch
from kernelstream.stream import adversarial_blocks
from kernelstream_reproduce.streams import BLOCKS, bandwidth_of, make, permuted, run_pass
from kernelstream_reproduce.trials import Outcome, Procedure, Trial

__all__ = ["PROCEDURES"]


def run_stream(trial: Trial) -> Outcome:
    """One learner on one permutation, or on an adversarial stream made of german."""
    blocks = BLOCKS.get(trial.data)
    data = "german.numer" if blocks else trial.data
    if blocks is None:
        X, y = permuted(data, trial.seed, trial.rows)
    else:
        X, y = adversarial_blocks(*permuted(data, 0), 500, blocks, seed=trial.seed)
        X, y = X[: trial.rows], y[: trial.rows]
    outcome = run_pass(make(trial.settings, data, trial.seed), X, y)
    if "bandwidth" in trial.settings:
        outcome.chosen["bandwidth"] = bandwidth_of(trial.settings["bandwidth"], data)
    return outcome


def kernel_error(trial: Trial) -> Outcome:
    """The relative error of a sketch's kernel matrix: |K~ - K|^2 / |K|^2 (Frobenius)."""
    X, _ = permuted(trial.data, trial.seed, trial.rows)
    sigma = bandwidth_of(trial.settings.get("bandwidth", "aligned"), trial.data)
    kernel = Gaussian(bandwidth=sigma)
    K = kernel(X)
    B, k = trial.settings["budget"], trial.settings["rank"]
    start = time.process_time()
    if trial.settings["sketch"] == "best":
        values = np.sort(np.linalg.eigvalsh(K))[::-1]
        error = float(np.sum(values[k:] ** 2) / np.sum(values**2))
        spent = time.process_time() - start
    else:
        sketch: Any = IncrementalNystrom(B, rank=k, kernel=kernel)
        if trial.settings["sketch"] == "irs":
            sketch = IncrementalSketch(
                B, rank=k, capacity=len(X), solver="randomized", kernel=kernel, seed=trial.seed
            )
        Z = sketch.fit(X).transform(X)
        spent = time.process_time() - start
        error = float(np.sum((Z @ Z.T - K) ** 2) / np.sum(K**2))
    return Outcome({"relative_error": error}, spent, chosen={"bandwidth": sigma})


PROCEDURES: dict[str, Procedure] = {"skegd.stream": run_stream, "skegd.kernel": kernel_error}
