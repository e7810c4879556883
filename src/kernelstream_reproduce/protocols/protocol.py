"""What a paper's folder provides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernelstream_reproduce.measurements import Runs
from kernelstream_reproduce.summary import Chart, Claim
from kernelstream_reproduce.trials import Experiment, Procedure

__all__ = ["Protocol"]


@dataclass(frozen=True)
class Protocol:
    """How the experiments of one paper are run and shown.

    Attributes:
        experiments: called with `quick`; what is run.
        procedures: what is done in one trial, by the trial's `procedure`.
        tables: by experiment, the tables to show: title, measure, and whether lower is better.
        claims: called with an experiment's name and its runs; what the paper says in words, with verdicts.
        charts: called with an experiment's name and its runs; only charts with something to show.
    """

    experiments: Callable[[bool], list[Experiment]]
    procedures: Mapping[str, Procedure]
    tables: Mapping[str, Sequence[tuple[str, str, bool]]]
    claims: Callable[[str, Runs], list[Claim]]
    charts: Callable[[str, Runs], list[Chart]]
