"""What is done in one trial of the OKS-SIL paper."""

from __future__ import annotations

import time

import numpy as np

from kernelstream.alignment import select_bandwidth
from kernelstream.learners.oks import BANDWIDTHS
from kernelstream_reproduce.streams import make, permuted, run_pass
from kernelstream_reproduce.trials import Outcome, Procedure, Trial

__all__ = ["PROCEDURES"]


def run_stream(trial: Trial) -> Outcome:
    """One learner on one permutation."""
    X, y = permuted(trial.data, trial.seed, trial.rows)
    settings, chosen, selecting = dict(trial.settings), {}, 0.0
    if settings.pop("first_gamma", None) == "drawn":  # sigma = 2^(-(i + 1) / 2) with i uniform in -12 ... -6
        i = int(np.random.default_rng(trial.seed).integers(-12, -5))
        settings["gamma"] = chosen["gamma"] = 2.0**i
    if rows := settings.pop("aligned_rows", None):  # the first pass of a two-pass algorithm
        start = time.process_time()
        sigma = select_bandwidth(X[:rows], y[:rows], candidates=BANDWIDTHS)
        selecting = time.process_time() - start
        settings["bandwidth"] = chosen["bandwidth"] = sigma
    outcome = run_pass(make(settings, trial.data, trial.seed), X, y)
    outcome.chosen |= chosen
    outcome.seconds += selecting
    return outcome


PROCEDURES: dict[str, Procedure] = {"okssil.stream": run_stream}
