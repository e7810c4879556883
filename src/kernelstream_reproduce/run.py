"""Running the trials of cells: on all cores, stoppable at any moment, never repeating finished work."""

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
from kernelstream_reproduce.protocols import run_trial
from kernelstream_reproduce.store import ResultsError, Store
from kernelstream_reproduce.trials import Cell, Outcome, Trial

__all__ = ["Progress", "TrialError", "run_cells"]

Progress = Callable[[str, float, float], object]
"""Called with what is being done, the share that is done, and the seconds left (NaN before anything is known)."""

PERMUTATIONS_PER_TURN = 5
"""Permutations of every cell that are run before the next ones of any cell."""

LOST_WORKERS = 3
"""How many workers may die one after another without a trial finished in between."""


class TrialError(RuntimeError):
    """Trials that failed; all others are done and kept."""


def run_cells(
    cells: Sequence[Cell],
    folder: str | Path,
    *,
    jobs: int = -1,
    progress: Progress = lambda *_: None,
) -> Store:
    """Run all trials of the cells that the folder does not hold yet: first the tuning, then the permutations in turn.

    Trials run through joblib, so ``joblib.parallel_config(backend="dask")`` around the call moves them to a cluster.
    The outcome does not depend on the number of jobs, nor on how often the run was stopped.

    Args:
        cells: what to run.
        folder: of the results, see `Store`.
        jobs: processes, as in joblib; -1 for all cores.
        progress: called as trials finish.

    >>> import tempfile
    >>> from kernelstream_reproduce.trials import Tuning
    >>> trial = Trial("skegd.stream", "breast_cancer", "NOGD", {"class": "NOGD", "budget": 20, "bandwidth": "aligned"})
    >>> cell = Cell("example", trial, seeds=range(3), tuning=Tuning(trial, {"eta": [0.1, 1.0]}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = run_cells([cell], folder, jobs=1)
    >>> [store.results[trial.id]["measures"]["mistakes"] < 20 for trial in cell.trials(store.results)]
    [True, True, True]
    """
    with Store(folder) as store:
        release = version("kernelstream")
        if others := {str(row.get("version")) for row in store.results.values()} - {release}:
            raise ResultsError(
                f"{folder} holds results of version {', '.join(sorted(others))}, and this is {release}: choose another folder"
            )
        share_done = _ShareDone(cells, store, progress)
        failed: list[str] = []
        for stage in ("tuning", "running"):
            trials = tuning_trials(cells) if stage == "tuning" else reported_trials(cells, store)
            for trial, outcome in _run(_missing(trials, store), jobs):
                if isinstance(outcome, Outcome) and not np.isfinite(list(outcome.measures.values())).all():
                    outcome = "a figure is not finite"
                if isinstance(outcome, Outcome):
                    store.add(trial, outcome, release, LEVEL)
                else:
                    failed.append(f"{trial.learner} on {trial.data}, seed {trial.seed}: {outcome}")
                share_done.add(stage, trial)
    store.arrange(trial.id for trial in [*tuning_trials(cells), *reported_trials(cells, store)])
    if failed:
        raise TrialError(f"{len(failed)} trials failed, the others are kept; the first: {failed[0]}")
    return store


def tuning_trials(cells: Iterable[Cell]) -> list[Trial]:
    """What the choice of hyper-parameters needs, each trial once."""
    every = (trial for cell in cells if cell.tuning is not None for _, trial in cell.tuning.trials())
    return list({trial.id: trial for trial in every}.values())


def reported_trials(cells: Iterable[Cell], store: Store) -> list[Trial]:
    """What is reported, each trial once: some permutations of every cell before more of any, so that a run that is stopped has
    something of everything, and a worker does not open a data set again for every permutation.
    """
    every = [cell.trials(store.results) or [] for cell in cells]
    most = max((len(trials) for trials in every), default=0)
    turns = (
        trial
        for turn in range(0, most, PERMUTATIONS_PER_TURN)
        for trials in every
        for trial in trials[turn : turn + PERMUTATIONS_PER_TURN]
    )
    return list({trial.id: trial for trial in turns}.values())


def _missing(trials: list[Trial], store: Store) -> list[Trial]:
    return [trial for trial in trials if trial.id not in store.results]


def _run(trials: list[Trial], jobs: int) -> Iterable[tuple[Trial, Outcome | str]]:
    """Trials with their outcomes (or why they failed) as they finish. If a worker is killed, its trials are run again."""
    from joblib import Parallel, delayed
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import BrokenProcessPool

    left = {trial.id: trial for trial in trials}
    lost = 0
    while left:
        # One trial per batch: what is finished is kept at once.
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        running = parallel(
            delayed(_run_in_worker)(trial, os.getpid(), _environment()) for trial in list(left.values())
        )
        try:
            with warnings.catch_warnings():
                # loky restarts workers that hold a large data set, and warns each time.
                warnings.filterwarnings("ignore", "A worker stopped")
                for id, outcome in running:
                    lost = 0
                    yield left.pop(id), outcome
        except BrokenProcessPool:
            lost += 1
            if lost > LOST_WORKERS:
                raise TrialError(
                    "workers are killed again and again; is there enough memory? Fewer jobs need less. Finished trials are kept"
                ) from None
        except BaseException:  # Ctrl-C: do not wait for trials under way
            get_reusable_executor(reuse=True).shutdown(wait=False, kill_workers=True)
            raise


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("KERNELSTREAM_")}


def _run_in_worker(trial: Trial, parent: int, environment: dict[str, str]) -> tuple[str, Outcome | str]:
    """Run a trial in whatever process this is. One thread, so that sums are the same everywhere."""
    from threadpoolctl import threadpool_limits

    if os.getpid() != parent:
        os.environ.update(environment)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent
    try:
        with threadpool_limits(1):
            return trial.id, run_trial(trial)
    except Exception as error:  # one trial must not end a run of hours: it is reported at the end
        return trial.id, f"{type(error).__name__}: {error}"


_ENOUGH = 0.01  # of the work, before the time left is told


class _ShareDone:
    """The share done and the time left, by the trials' estimated costs."""

    def __init__(self, cells: Sequence[Cell], store: Store, progress: Progress) -> None:
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
        self._began, self._progress = time.monotonic(), progress
        progress("starting", self._share(), float("nan"))

    def _share(self) -> float:
        return min(1.0, self._done / self._total) if self._total else 1.0

    def add(self, stage: str, trial: Trial) -> None:
        """Count a trial that has finished."""
        self._done += trial.cost
        pace = (time.monotonic() - self._began) / (self._done - self._before)
        left = max(0.0, self._total - self._done) * pace
        if self._done - self._before < _ENOUGH * (self._total - self._before):
            left = float("nan")  # the first trials are not like the others
        self._progress(f"{stage}: {trial.learner} on {trial.data}", self._share(), left)
