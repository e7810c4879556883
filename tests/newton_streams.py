"""Streams, and what several test files of NewtonMixture need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from kernelstream.learners import NewtonMixture
from kernelstream.rows import as_rows

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs/default.md"
NEVER = ("next_rebuild", 2**63 - 1)  # what that number may be
OUTPUTS = {"two": 1, "three": 3, "regression": 1}
LINEAR_KEEP = 0.99997  # what the linear expert of a stream keeps of the past in a round
each_task = pytest.mark.parametrize("task", OUTPUTS)


def stream(task, n=560, d=3, seed=0, change=250):
    """At `change` the labels turn and the rows move."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    signal = 3 * X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=n)
    late = np.arange(n) >= change
    signal[late] *= -1
    X[late] = X[late] / 2 + 3
    return X, targets(task, signal)


def targets(task, signal):
    if task == "two":
        return np.where(signal > 0, 1.0, -1.0)
    return np.digitize(signal, [-1, 1]).astype(float) if task == "three" else 5 + 3 * signal


def weights(n, seed=1):
    return np.random.default_rng(seed).choice([0.0, 1.0, 0.3, 2.5], size=n)


def started(task, width, budget=12, dtype=np.float64):
    return NewtonMixture(budget).start(width, OUTPUTS[task], regression=task == "regression", dtype=dtype)


def scores(task, X, y, budget=12, w=None):
    X = X if scipy.sparse.issparse(X) else np.ascontiguousarray(X)
    return started(task, X.shape[1], budget).run(as_rows(X), y, w)


def levels(n, lags=3, seed=0):
    """A series that stays at a level for a while and then jumps to another one, to be predicted from its values before."""
    rng = np.random.default_rng(seed)
    series = np.where(np.arange(n + lags) // 23 % 4 == 3, 20.0, 100.0) + 0.3 * rng.normal(size=n + lags)
    return np.lib.stride_tricks.sliding_window_view(series[:-1], lags).copy(), series[lags:]


def bits(learner):
    return {name: array.tobytes() for name, array in learner.state().items()}


def rms(errors):
    return float(np.sqrt(np.mean(errors**2)))


def covariance(state, name):
    """With the rounds pending; of linear without what comes back of its prior."""
    pending = int(state["pending"][0])
    V, c = state[f"{name}_pending"][:pending], state[f"{name}_coefficients"][:pending]
    decay = {"recent": state["recent_decay"], "linear": LINEAR_KEEP**pending if state["ordered"] else 1.0}
    return state[f"{name}_covariance"] * decay.get(name, 1.0) - V.T @ np.diag(c) @ V
