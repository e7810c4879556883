"""The papers' protocols, one file a paper: experiments, how their trials are played, what they claim and show."""

from kernelstream.experiments.plan import Experiment, Outcome, Trial
from kernelstream.experiments.protocols import kons, nolana, okssil, skegd

__all__ = ["PROTOCOLS", "all_experiments", "play"]

PROTOCOLS = {"skegd": skegd, "nolana": nolana, "okssil": okssil, "kons": kons}
"""The protocols by paper."""

_PLAYS = {name: play for protocol in PROTOCOLS.values() for name, play in protocol.PLAYS.items()}


def all_experiments(quick: bool = False) -> dict[str, Experiment]:
    """Every experiment by name.

    >>> all_experiments()["skegd-table3"].place
    'Table 3'
    """
    found = (experiment for protocol in PROTOCOLS.values() for experiment in protocol.experiments(quick))
    return {experiment.name: experiment for experiment in found}


def play(trial: Trial) -> Outcome:
    """Do what a trial says."""
    outcome: Outcome = _PLAYS[trial.play](trial)
    return outcome
