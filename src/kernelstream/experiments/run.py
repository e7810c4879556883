"""Playing the trials of a plan: on all cores, stoppable at any moment, without ever repeating finished work."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from kernelstream._core import LEVEL
from kernelstream.experiments.plan import Cell, Outcome, Trial
from kernelstream.experiments.protocols import play
from kernelstream.experiments.store import ResultsError, Store

__all__ = ["Progress", "TrialError", "reproduce"]

Progress = Callable[[str, float, float], object]
"""Told what is being done, the share that is done, and the seconds left (NaN before anything is known)."""

PERMUTATIONS_A_TURN = 5
"""Of every cell, before the next ones of any."""

LOST_WORKERS = 3
"""So many workers may die in a row without a single trial finished in between."""


class TrialError(RuntimeError):
    """Trials that failed; all others are done and kept."""


def reproduce(
    cells: Sequence[Cell],
    folder: str | Path,
    *,
    jobs: int = -1,
    tell: Progress = lambda *_: None,
) -> Store:
    """Play all trials of the cells that the folder does not hold yet: first what tunes them, then the permutations in turn.

    Trials run through joblib, so ``joblib.parallel_config(backend="dask")`` around the call moves them to a cluster.
    The outcome does not depend on the number of jobs, nor on how often the run was stopped.

    Args:
        cells: what to run.
        folder: of the results, see `Store`.
        jobs: processes, as in joblib; -1 for all cores.
        tell: called as trials finish.

    >>> import tempfile
    >>> from kernelstream.experiments.plan import Tuning
    >>> trial = Trial("skegd.stream", "breast_cancer", "NOGD", {"class": "NOGD", "budget": 20, "bandwidth": "aligned"})
    >>> cell = Cell("example", trial, seeds=range(3), tuning=Tuning(trial, {"eta": [0.1, 1.0]}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = reproduce([cell], folder, jobs=1)
    >>> [store.results[trial.id]["measures"]["mistakes"] < 20 for trial in cell.trials(store.results)]
    [True, True, True]
    """
    with Store(folder) as store:
        release = version("kernelstream")
        if others := {str(row.get("version")) for row in store.results.values()} - {release}:
            raise ResultsError(
                f"{folder} holds results of version {', '.join(sorted(others))}, and this is {release}: choose another folder"
            )
        watch = _Watch(cells, store, tell)
        failed: list[str] = []
        for stage in ("tuning", "running"):
            trials = tuning_trials(cells) if stage == "tuning" else run_trials(cells, store)
            for trial, outcome in _played(_missing(trials, store), jobs):
                if isinstance(outcome, Outcome) and not np.isfinite(list(outcome.measures.values())).all():
                    outcome = "a figure is not finite"
                if isinstance(outcome, Outcome):
                    store.add(trial, outcome, release, LEVEL)
                else:
                    failed.append(f"{trial.learner} on {trial.data}, seed {trial.seed}: {outcome}")
                watch.saw(stage, trial)
    store.arrange(trial.id for trial in [*tuning_trials(cells), *run_trials(cells, store)])
    if failed:
        raise TrialError(f"{len(failed)} trials failed, the others are kept; the first: {failed[0]}")
    return store


def tuning_trials(cells: Iterable[Cell]) -> list[Trial]:
    """What the choice of hyper-parameters needs, each trial once."""
    found = (trial for cell in cells if cell.tuning is not None for _, trial in cell.tuning.trials())
    return list({trial.id: trial for trial in found}.values())


def run_trials(cells: Iterable[Cell], store: Store) -> list[Trial]:
    """What is reported, each trial once: some permutations of every cell before more of any, so that a run that is stopped has
    a bit of everything, and a worker does not open a data set anew for every permutation.
    """
    every = [cell.trials(store.results) or [] for cell in cells]
    most = max((len(trials) for trials in every), default=0)
    turns = (
        trial
        for turn in range(0, most, PERMUTATIONS_A_TURN)
        for trials in every
        for trial in trials[turn : turn + PERMUTATIONS_A_TURN]
    )
    return list({trial.id: trial for trial in turns}.values())


def _missing(trials: list[Trial], store: Store) -> list[Trial]:
    return [trial for trial in trials if trial.id not in store.results]


def _played(trials: list[Trial], jobs: int) -> Iterable[tuple[Trial, Outcome | str]]:
    """Trials with their outcomes (or why they failed) as they finish. A worker that is killed costs the trials it had."""
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import BrokenProcessPool

    left = {trial.id: trial for trial in trials}
    lost = 0
    while left:
        # One trial a batch: what is finished is kept at once.
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        running = parallel(
            delayed(_play)(trial, os.getpid(), _environment()) for trial in list(left.values())
        )
        try:
            with warnings.catch_warnings():
                # loky renews workers that hold a large data set, and would say so each time.
                warnings.filterwarnings("ignore", "A worker stopped")
                for id, outcome in running:
                    lost = 0
                    yield left.pop(id), outcome
        except BrokenProcessPool:
            lost += 1
            if lost > LOST_WORKERS:
                raise TrialError(
                    "workers are killed again and again; is there enough memory? Fewer jobs need less. What is done is kept"
                ) from None
        except BaseException:  # Ctrl-C: do not wait for trials under way
            get_reusable_executor(reuse=True).shutdown(wait=False, kill_workers=True)
            raise


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("KERNELSTREAM_")}


def _play(trial: Trial, parent: int, environment: dict[str, str]) -> tuple[str, Outcome | str]:
    """Play a trial, wherever this is. One thread, so that sums come out the same everywhere."""
    from threadpoolctl import threadpool_limits

    if os.getpid() != parent:
        os.environ.update(environment)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    try:
        with threadpool_limits(1):
            return trial.id, play(trial)
    except Exception as error:  # one trial must not end a run of hours: it is told at the end
        return trial.id, f"{type(error).__name__}: {error}"


class _Watch:
    """The share done and the time left, by the trials' estimated costs."""

    def __init__(self, cells: Sequence[Cell], store: Store, tell: Progress) -> None:
        costs = {trial.id: (trial.cost, trial.id in store.results) for trial in tuning_trials(cells)}
        for cell in cells:
            trials = cell.trials(store.results)
            for n, seed in enumerate(cell.seeds):
                # Before its tuning is done a trial has no id; those of two cells that share it have the same key.
                key = f"{cell.trial.id} {cell.tuning and (cell.tuning.measure, cell.tuning.trial.id)} {seed}"
                finished = trials is not None and trials[n].id in store.results
                costs[trials[n].id if trials is not None else key] = (cell.trial.cost, finished)
        done = sum(cost for cost, finished in costs.values() if finished)
        missing = sum(cost for cost, finished in costs.values() if not finished)
        self._total, self._before, self._done = done + missing, done, done
        self._began, self._tell = time.monotonic(), tell
        tell("starting", self._share(), float("nan"))

    def _share(self) -> float:
        return min(1.0, self._done / self._total) if self._total else 1.0

    def saw(self, stage: str, trial: Trial) -> None:
        """A trial has finished."""
        self._done += trial.cost
        pace = (time.monotonic() - self._began) / (self._done - self._before)
        left = max(0.0, self._total - self._done) * pace
        self._tell(f"{stage}: {trial.learner} on {trial.data}", self._share(), left)
