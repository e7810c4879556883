"""What is done in one trial of the NOLANA paper: a pass over a stream, or the error of a kernel matrix."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from kernelstream.errors import ScoreOverflowError
from kernelstream.kernels import Gaussian
from kernelstream.learners import FOGD, NOGD, NOLANA, RRF, DualSGD, Learner, LinearPA
from kernelstream.rows import as_rows
from kernelstream.sketches.adaptive import AdaptiveNystrom
from kernelstream.sketches.fourier import frequencies
from kernelstream.sketches.nystrom import IncrementalNystrom
from kernelstream_reproduce.streams import classes, permuted, run_pass
from kernelstream_reproduce.trials import TUNING_SEED, Outcome, Procedure, Trial

__all__ = ["FOLDS", "PROCEDURES", "directions", "dual_directions"]

Array = NDArray[Any]

FOLDS = 5
#: Ranges of these are far apart, up to 2.5e6: they are brought to [-1, 1], as the others come.
SCALED = ("cpusmall", "covtype.binary")
#: An exploded model scores worse than any other, and JSON knows no infinity.
EXPLODED = 1e9


def directions(m: int, r: int, d: int) -> int:
    """How many random directions cost as much memory as m landmarks and a map of m x r: (m d + m r) / d.

    >>> directions(100, 80, 256)
    131
    """
    return round((m * d + m * r) / d)


def dual_directions(m: int, r: int, d: int) -> int:
    """What is left for directions beside m support vectors: m r / d.

    >>> dual_directions(100, 80, 256)
    31
    """
    return max(1, round(m * r / d))


@lru_cache(maxsize=8)
def _ranges(data: str) -> tuple[Array, Array, float, float]:
    """Middle and half width of each feature and of the target, over the whole data set."""
    X, y = permuted(data, 0)
    low, high = X.min(axis=0), X.max(axis=0)
    half = np.where(high > low, (high - low) / 2, 1.0)
    return (low + high) / 2, half, float(y.min() + y.max()) / 2, float(y.max() - y.min()) / 2


def rows_of(data: str, seed: int, rows: int | None) -> tuple[Any, Array]:
    """Permuted rows, brought to [-1, 1] where they come raw; targets of a regression too."""
    X, y = permuted(data, seed, rows)
    if data in SCALED:
        middle, half, y_middle, y_half = _ranges(data)
        X = (X - middle) / half
        if not classes(data):
            y = (y - y_middle) / y_half
    return X, y


@lru_cache(maxsize=32)
def median_distance(data: str) -> float:
    """The median distance between 1,000 rows of the permutation that is tuned on."""
    return float(Gaussian().settle(rows_of(data, TUNING_SEED, 1000)[0]).get_params()["bandwidth"])


class OneStage(NOLANA):
    """NOLANA without its second stage: moved landmarks leave the weights as they are."""

    def _move(self, x: Array) -> None:
        weights = np.array(self._mapped.weights)
        super()._move(x)
        self._mapped.weights = weights


def learner_of(trial: Trial) -> tuple[Learner, dict[str, Any]]:
    """The learner of a trial, and the bandwidth it got."""
    settings = dict(trial.settings)
    if trial.learner == "PA":
        return LinearPA(**settings), {}
    bandwidth = settings.pop("bandwidth") * median_distance(trial.data)
    learners: dict[str, Callable[..., Learner]] = {
        "FOGD": FOGD,
        "NOGD": NOGD,
        "DualSGD": DualSGD,
        "RRF": RRF,
        "NOLANA": OneStage if settings.pop("one_stage", False) else NOLANA,
    }
    if trial.learner in ("FOGD", "DualSGD", "RRF"):
        settings["seed"] = trial.seed
    return learners[trial.learner](**settings, kernel=Gaussian(bandwidth=bandwidth)), {"bandwidth": bandwidth}


def folds_of(n: int, fold: int) -> tuple[Array, Array]:
    """Runs to learn from, in order, and the held-out ones of a fold.

    >>> [rows.tolist() for rows in folds_of(7, 1)]
    [[0, 2, 3, 4, 5], [1, 6]]
    """
    held = np.arange(n) % FOLDS == fold
    return np.flatnonzero(~held), np.flatnonzero(held)


def _held_out(trial: Trial) -> Outcome:
    """One pass over four fifths of the rows, the error on the last fifth."""
    X, y = rows_of(trial.data, TUNING_SEED, trial.rows)
    many = classes(trial.data)
    learn, held = folds_of(len(y), trial.seed)
    learner, chosen = learner_of(trial)
    learner.start(X.shape[1], many if many > 2 else 1, regression=not many)
    start = time.process_time()
    try:
        learner.run(as_rows(X[learn]), y[learn])
        scores = learner.score(as_rows(X[held]))
    except ScoreOverflowError:
        error = EXPLODED
    else:
        if not many:
            with np.errstate(over="ignore"):
                error = min(EXPLODED, float(np.sqrt(np.mean((scores[:, 0] - y[held]) ** 2))))
        else:
            predicted = scores.argmax(axis=1) if many > 2 else np.where(scores[:, 0] > 0, 1.0, -1.0)
            error = 100 * float(np.mean(predicted != y[held]))
    return Outcome({"held_out_error": error}, time.process_time() - start, chosen=chosen)


def stream(trial: Trial) -> Outcome:
    """Phase "run": one pass of predicting, then learning. Phase "tune": the error on a fold, the seed its number."""
    if trial.phase == "tune":
        return _held_out(trial)
    X, y = rows_of(trial.data, trial.seed, trial.rows)
    many = classes(trial.data)
    learner, chosen = learner_of(trial)
    outcome = run_pass(learner, X, y, outputs=many if many > 2 else 1, regression=not many, timed=True)
    measures, curve = outcome.measures, outcome.curve or {}
    if many:
        for part in ("", "_last_tenth", "_without_warmup"):
            measures[f"accuracy{part}"] = 100 - measures[f"mistakes{part}"]
        curve["accuracy"] = [round(100 - share, 4) for share in curve.pop("mistakes")]
    elif trial.data in SCALED:  # errors in the target's own unit
        half = _ranges(trial.data)[3]
        measures |= {name: half * measures[name] for name in ("rmse", "rmse_last_tenth")}
        curve["rmse"] = [round(half * value, 4) for value in curve["rmse"]]
    if isinstance(learner, NOLANA):
        measures["moves"] = float(learner.n_moves)
    return replace(outcome, chosen=chosen)


def features_of(trial: Trial, X: Array) -> Array:
    """Features whose products approximate the Gaussian kernel, made from rows read in order."""
    m, width = trial.settings["m"], X.shape[1]
    r = m * 4 // 5
    kernel = Gaussian(bandwidth=median_distance(trial.data))
    if trial.learner == "FOGD":
        W = frequencies(kernel, width, directions(m, r, width), trial.seed)
        fourier: Array = np.hstack([np.cos(X @ W), np.sin(X @ W)]) / np.sqrt(W.shape[1])
        return fourier
    sketch: Any = (
        AdaptiveNystrom(m, rank=r, epsilon=trial.settings["epsilon"], solver="scratch", kernel=kernel)
        if trial.learner == "OANA"
        else IncrementalNystrom(m, rank=r, kernel=kernel)
    )
    features: Array = sketch.fit(X).transform(X)
    return features


def relative_error(X: Array, Z: Array, bandwidth: float, block: int = 1024) -> float:
    """``|G - Z Z^T|_F / |G|_F`` for the Gaussian kernel matrix G of the rows, one block of it at a time."""
    X, Z = X.astype(np.float32), Z.astype(np.float32)
    squares = np.einsum("ij,ij->i", X, X)
    off, size = 0.0, 0.0
    for a in range(0, len(X), block):
        for b in range(0, a + 1, block):  # G is symmetric
            left, right = slice(a, a + block), slice(b, b + block)
            distances = squares[left, None] + squares[right] - 2 * (X[left] @ X[right].T)
            G = np.exp(np.maximum(distances, 0) / np.float32(-2 * bandwidth**2))
            times = 1 if a == b else 2
            size += times * float(np.sum(G * G, dtype=np.float64))
            off += times * float(np.sum((G - Z[left] @ Z[right].T) ** 2, dtype=np.float64))
    return float(np.sqrt(off / size))


def kernel_error(trial: Trial) -> Outcome:
    """How far the approximate kernel matrix of all rows is off, once the stream has been gone through."""
    X = rows_of(trial.data, trial.seed, trial.rows)[0]
    X = np.asarray(X.todense()) if scipy.sparse.issparse(X) else X
    start = time.process_time()
    Z = features_of(trial, X)
    spent = time.process_time() - start
    bandwidth = median_distance(trial.data)
    error = relative_error(X, Z, bandwidth)
    return Outcome({"relative_error": error, "rows": float(len(X))}, spent, chosen={"bandwidth": bandwidth})


PROCEDURES: dict[str, Procedure] = {"nolana-stream": stream, "nolana-kernel": kernel_error}
