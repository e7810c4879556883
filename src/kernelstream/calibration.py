"""Intervals of a regression: how far the target may be from the forecast, calibrated while the stream runs.

*Scores.* A row's score is the size of its error, before the row was learnt, over the scale of its forecast: the default
learner says which forecasts are uncertain, the scale of all others is 1. The last ``WINDOW`` scores are kept.

*Levels.* An interval of coverage c reaches to the score at a certain level among those kept. Were rows exchangeable, that
level would be c (split conformal prediction). Under drift it follows what happens: a row outside the interval raises it, a row
within lowers it, so that the share of rows within tends to c whatever the stream does (adaptive conformal inference). Levels
are kept for a grid of coverages, and lie between them for others.

Chosen before conformal PID control and strongly adaptive rules because it is the simplest one with a guarantee for any stream,
needs no scale of the scores, and keeps the coverage on all streams that we measured (docs/results/uncertainty.md). The window,
and a scale that follows the errors, already do what a larger step or an integrator would do.

References:
    Gibbs and Candes, "Adaptive conformal inference under distribution shift", NeurIPS 2021.
    Lei, G'Sell, Rinaldo, Tibshirani and Wasserman, "Distribution-free predictive inference for regression", JASA 113, 2018:
    errors over scales.
"""

from __future__ import annotations

import numbers
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernelstream._core import core

__all__ = ["Calibration", "check_coverage"]

Array = NDArray[Any]

#: Scores kept.
WINDOW = 1000
#: The coverages whose levels are kept.
NOMINAL = np.array([*np.arange(1, 20) / 20, 0.975, 0.99, 0.995, 0.999])
#: The coverage of one standard deviation to each side of a normal law's mean.
ONE_DEVIATION = 0.6826894921370859


class Calibration:
    """What is known of the errors so far; learns in predict-then-learn order, in constant memory.

    >>> calibration = Calibration()
    >>> reaches = calibration.learn(np.random.default_rng(0).standard_normal(5000), None, [0.9])
    >>> reaches[0].tolist(), bool(abs(calibration.reach(0.9) - 1.645) < 0.1)
    ([inf], True)
    """

    def __init__(self) -> None:
        self._scores, self._sorted = np.zeros(WINDOW), np.zeros(WINDOW)
        self._levels = NOMINAL.copy()
        self._count = 0

    @property
    def nbytes(self) -> int:
        """Bytes of it."""
        return self._scores.nbytes + self._sorted.nbytes + self._levels.nbytes

    def learn(
        self, errors: Array, scales: Array | None, coverages: ArrayLike = (), weights: Array | None = None
    ) -> Array:
        """Learn errors of rows in turn; how many scales intervals of some coverages reached before each, ``(n, coverages)``.

        Args:
            errors: target less forecast.
            scales: of the forecasts; None: all the same.
            coverages: between 0 and 1.
            weights: rows of weight 0 were not learnt, and are not learnt here; all others count once.
        """
        with np.errstate(all="ignore"):
            scores = np.abs(errors) if scales is None else np.abs(errors) / scales
        if weights is not None:
            scores = np.where(weights > 0, scores, np.nan)
        reaches: Array = core.calibrate(
            self._scores,
            self._sorted,
            self._count,
            self._levels,
            NOMINAL,
            np.ascontiguousarray(scores, np.float64),
            np.ascontiguousarray(coverages, np.float64),
        )
        self._count += len(scores) if weights is None else int(np.count_nonzero(weights > 0))
        return reaches

    def reach(self, coverage: float) -> float:
        """How many scales an interval of this coverage reaches to each side; infinity after too few rows to know."""
        return float(self.learn(np.array([np.nan]), None, [coverage], np.zeros(1))[0, 0])

    def settle(self) -> None:
        """After a set of rows, which has no order and so no drift: each level is the coverage itself, all scores count alike."""
        self._levels[:] = NOMINAL

    def state(self) -> dict[str, Array]:
        """All of it, as arrays; ``restore`` takes it back."""
        return {
            "scores": self._scores[: min(self._count, WINDOW)].copy(),
            "levels": self._levels.copy(),
            "count": np.array([self._count], np.int64),
        }

    # ---- merging: see `learners/delta.py` for the names ----

    def delta_since(self, base: Calibration, rows: int, keys: Array) -> dict[str, Array]:
        """What was learnt since a base: its last scores, of which a random sample stays, and its levels, of which the mean."""
        new = self._count - base._count
        slots = np.arange(self._count - min(new, WINDOW), self._count) % WINDOW
        return {
            "sum/count": np.array([float(new)]),
            "sum/levels": rows * self._levels,
            "keep/scores/limit": np.array([float(WINDOW)]),
            "keep/scores/key": keys[: len(slots)],
            "keep/scores/score": self._scores[slots],
        }

    def with_delta(self, delta: dict[str, Array]) -> Calibration:
        """With what parts have learnt: their scores, then the newest of its own as far as there is room."""
        count, new = self._count + int(delta["sum/count"][0]), delta["keep/scores/score"]
        old = np.arange(max(0, self._count - (WINDOW - len(new))), self._count) % WINDOW
        scores = np.concatenate([self._scores[old], new])
        ring = np.zeros(min(count, WINDOW))
        ring[np.arange(count - len(scores), count) % WINDOW] = scores
        levels = np.clip(delta["sum/levels"] / max(1.0, float(delta["sum/rows"][0])), 0.0, 1.0)
        return Calibration.restore({"scores": ring, "levels": levels, "count": np.array([count], np.int64)})

    @classmethod
    def restore(cls, state: dict[str, Array]) -> Self:
        """What ``state`` gave.

        >>> calibration = Calibration()
        >>> _ = calibration.learn(np.arange(30.0), None)
        >>> Calibration.restore(calibration.state()).reach(0.5) == calibration.reach(0.5)
        True
        """
        made = cls()
        scores, levels, count = state["scores"], state["levels"], state["count"]
        if count.dtype != np.int64 or count.shape != (1,) or not 0 <= count[0] < 2**62:
            raise ValueError("not the state of a calibration: its count is no number of rows")
        n = min(int(count[0]), WINDOW)
        right = scores.dtype == levels.dtype == np.float64 and scores.shape == (n,)
        if not right or levels.shape != NOMINAL.shape or not ((scores >= 0) & (scores < np.inf)).all():
            raise ValueError("not the state of a calibration: its arrays have the wrong shape or values")
        if not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError("not the state of a calibration: a level is not between 0 and 1")
        made._scores[:n], made._sorted[:n] = scores, np.sort(scores)
        made._levels, made._count = levels.copy(), int(count[0])
        return made


def check_coverage(coverage: Any) -> Array:
    """A coverage, or several, as an array of at least one dimension; refused unless all are above 0 and below 1.

    >>> check_coverage(90)
    Traceback (most recent call last):
    ...
    ValueError: coverage must be above 0 and below 1, for example 0.9, got 90
    """
    given = [coverage] if isinstance(coverage, numbers.Real) else coverage
    try:
        checked = np.array(given, np.float64)
    except (TypeError, ValueError):
        checked = np.zeros(0)
    if checked.ndim != 1 or not len(checked) or not ((checked > 0) & (checked < 1)).all():
        raise ValueError(f"coverage must be above 0 and below 1, for example 0.9, got {coverage!r}")
    return checked
