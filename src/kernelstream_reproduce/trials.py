"""What is to be run: experiments of cells, cells of trials.

An *experiment* is one table or figure of a paper. A *cell* of it is one learner on one data set under one setting: what a paper
gives one figure for. A cell is tuned on one permutation (`Tuning`) and then run on several; each such run is a *trial*, the unit
of work, plain data that any process can run. The `id` of a trial is made of all that decides its outcome, so equal trials of two
experiments are run once.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

__all__ = ["Cell", "Experiment", "Outcome", "Procedure", "Trial", "Tuning"]

CURVE_POINTS = 60
"""Points of a stored learning curve, at most."""

TUNING_SEED = 1000
"""The permutation that hyper-parameters are tuned on: none of those that are reported."""


@dataclass(frozen=True)
class Trial:
    """One run of one learner.

    Attributes:
        procedure: what is done, a key of the `procedures` of a `kernelstream_reproduce.protocols` protocol.
        data: a data set or stream.
        rows: rows of it, the first ones of the permutation; None for all.
        learner: the learner's name, as in the paper's table.
        settings: hyper-parameters, those tuned among them.
        seed: of the permutation and the learner.
        phase: "tune" or "run".
        cost: about how long it takes, in any unit; only the time left is computed from it.
    """

    procedure: str
    data: str
    learner: str
    settings: Mapping[str, Any]
    seed: int = 0
    rows: int | None = None
    phase: Literal["tune", "run"] = "run"
    cost: float = field(default=1.0, compare=False)

    @property
    def key(self) -> dict[str, Any]:
        """All that decides the outcome, as JSON. The names in it never change: the ids of stored results are made of them."""
        return {
            "play": self.procedure,
            "data": self.data,
            "rows": self.rows,
            "learner": self.learner,
            "settings": dict(self.settings),
            "phase": self.phase,
            "seed": self.seed,
        }

    @property
    def id(self) -> str:
        """A short name of the key.

        >>> Trial("stream", "rings", "NOGD", {"eta": 0.1}).id
        'c18883e41add'
        """
        return hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:12]


@dataclass
class Outcome:
    """What came of a trial. All but the times is the same wherever and whenever it is run.

    Attributes:
        measures: figures by name; percent where they are shares.
        seconds: processor time of the learner.
        curve: measures over the rounds, `rounds` among the keys; at most `CURVE_POINTS` points.
        seconds_curve: processor time at those rounds.
        chosen: what the trial chose by itself, such as a bandwidth by kernel alignment.
    """

    measures: dict[str, float]
    seconds: float
    curve: dict[str, list[float]] | None = None
    seconds_curve: list[float] | None = None
    chosen: dict[str, Any] = field(default_factory=dict)


Procedure = Callable[[Trial], Outcome]
"""What is done in one trial."""


@dataclass(frozen=True)
class Tuning:
    """The choice of hyper-parameters: the grid point with the least mean `measure` over the trials of `seeds`.

    Attributes:
        trial: the trial without the hyper-parameters that are tuned.
        grid: values of each.
        seeds: permutations, or folds of a cross-validation, whatever `trial.procedure` makes of them.
        measure: what is minimised; the first of equals wins.
    """

    trial: Trial
    grid: Mapping[str, Sequence[Any]]
    seeds: tuple[int, ...] = (TUNING_SEED,)
    measure: str = "mistakes"

    def points(self) -> list[dict[str, Any]]:
        """The grid's points. A step that would shrink weights below zero (eta lam >= 1) is none."""
        values = (
            dict(zip(self.grid, point, strict=True)) for point in itertools.product(*self.grid.values())
        )
        return [point for point in values if point.get("eta", 0) * point.get("lam", 0) < 1]

    def trials(self) -> Iterator[tuple[dict[str, Any], Trial]]:
        """Every point with each of its trials."""
        for point in self.points():
            for seed in self.seeds:
                settings = {**self.trial.settings, **point}
                yield point, replace(self.trial, settings=settings, seed=seed, phase="tune")

    def best(self, results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
        """The best point, once all trials are among the results (rows by id)."""
        points: list[tuple[dict[str, Any], float]] = []
        for point, trials in itertools.groupby(self.trials(), key=lambda pair: pair[0]):
            ids = [trial.id for _, trial in trials]
            if not all(id in results for id in ids):
                return None
            points.append((point, sum(results[id]["measures"][self.measure] for id in ids) / len(ids)))
        return min(points, key=lambda pair: pair[1])[0]


@dataclass(frozen=True)
class Cell:
    """One learner on one data set under one setting.

    Attributes:
        experiment: name of the experiment.
        trial: the trial without seed and tuned hyper-parameters.
        seeds: permutations.
        label: what the row is called in tables, by default the learner's name.
        variant: what is varied, such as ``{"B": 100}``: columns of a table or the horizontal axis of a figure.
        tuning: how the other hyper-parameters are chosen; None if there are none.
        published: label of the paper's figure to compare with, by default its own.
    """

    experiment: str
    trial: Trial
    seeds: Sequence[int]
    label: str = ""
    variant: Mapping[str, Any] = field(default_factory=dict)
    tuning: Tuning | None = None
    published: str = ""

    @property
    def name(self) -> str:
        """What the row is called in tables."""
        return self.label or self.trial.learner

    def trials(self, results: Mapping[str, Mapping[str, Any]]) -> list[Trial] | None:
        """The trials to report, or None while the tuning is not done."""
        chosen = {} if self.tuning is None else self.tuning.best(results)
        if chosen is None:
            return None
        settings = {**self.trial.settings, **chosen}
        return [replace(self.trial, settings=settings, seed=seed) for seed in self.seeds]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper.

    Attributes:
        name: such as "skegd-table3".
        paper: a key of the published papers.
        place: where it is in the paper.
        title: what it shows.
        protocol: how it is run, in plain words, with what the paper leaves open and what we took.
        cells: the full run.
    """

    name: str
    paper: str
    place: str
    title: str
    protocol: str
    cells: tuple[Cell, ...]
