"""The papers' protocols, one folder per paper.

``experiments.py`` says what is run, ``procedures.py`` what is done in one trial, ``claims.py`` what the paper says in words and
whether it holds, ``charts.py`` what is drawn.
"""

from kernelstream_reproduce.protocols import kons, nolana, okssil, skegd
from kernelstream_reproduce.trials import Experiment, Outcome, Trial

__all__ = ["PROTOCOLS", "all_experiments", "run_trial"]

PROTOCOLS = {
    "skegd": skegd.PROTOCOL,
    "nolana": nolana.PROTOCOL,
    "okssil": okssil.PROTOCOL,
    "kons": kons.PROTOCOL,
}
"""The protocols by paper."""

_PROCEDURES = {name: run for protocol in PROTOCOLS.values() for name, run in protocol.procedures.items()}


def all_experiments(quick: bool = False) -> dict[str, Experiment]:
    """Every experiment by name.

    >>> all_experiments()["skegd-table3"].place
    'Table 3'
    """
    experiments = (e for protocol in PROTOCOLS.values() for e in protocol.experiments(quick))
    return {experiment.name: experiment for experiment in experiments}


def run_trial(trial: Trial) -> Outcome:
    """Do what a trial says."""
    return _PROCEDURES[trial.procedure](trial)
