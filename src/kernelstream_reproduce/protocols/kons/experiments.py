"""Calandriello, Lazaric and Valko, "Second-order kernel online convex optimization with adaptive sketching", ICML 2017.

The paper has theorems and no experiments: these measure what it proves.
"""

from __future__ import annotations

from typing import Any

from kernelstream_reproduce.trials import Cell, Experiment, Trial

__all__ = ["TABLES", "list_experiments"]

PAPER = "kons"
TABLES: dict[str, list[tuple[str, str, bool]]] = {}  # the paper has none, and curves say it better
STREAMS = ("quadratic", "gaussian", "one-point")
CUBIC = 3200
"""Longest stream for learners whose rounds cost O(t^2)."""

ALPHA = 0.01
"""Small beside the sum of sigma g^2, or the streams would end before the logarithm begins: see "KONS, alpha 1"."""

SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "KONS": ("KONS", {"alpha": ALPHA}),
    "KONS, alpha 1": ("KONS", {"alpha": 1.0}),
    "Sketched-KONS, gamma 0.1": ("Sketched-KONS", {"alpha": ALPHA, "gamma": 0.1, "beta": 1.0}),
    "Sketched-KONS, gamma 0": ("Sketched-KONS", {"alpha": ALPHA, "gamma": 0.0, "beta": 1.0}),
    "PROS-N-KONS": ("PROS-N-KONS", {"alpha": ALPHA, "restart": True}),
    "CON-KONS": ("PROS-N-KONS", {"alpha": ALPHA, "restart": False}),
    "KOGD": ("KOGD", {}),
    "NOGD": ("NOGD", {"budget": 40, "rank": 20}),
}
KORS = {"KORS, beta 2": 2.0, "KORS, beta of Theorem 2": "theory"}

COMMON = (
    "Three streams with k(x, x) <= 1 and targets within [-C, C], C = 2: a quadratic kernel in the plane (six "
    "features) and a Gaussian kernel on an interval (its Taylor features), each with a function of norm 1.5 "
    "plus uniform noise, and Section 6's counter-example, one point with targets C and -C in turn. "
)


def _horizons(last: int) -> list[int]:
    return [100 * 2**k for k in range(20) if 100 * 2**k <= last]


def _regret_cell(experiment: str, label: str, data: str, T: int, quick: bool) -> Cell:
    learner, settings = SETTINGS[label]
    if (learner, data) == ("NOGD", "one-point"):  # NOGD wants as many points as it has landmarks; one will do
        settings = {"budget": 1, "rank": 1}
    cost = 8 * (T / CUBIC) ** 3 if learner == "KONS" else 0.01 + T * 4e-5
    trial = Trial("kons-regret", data, learner, settings, rows=T, cost=cost)
    return Cell(experiment, trial, range(2 if quick else 5), label, {"T": T})


def list_experiments(quick: bool) -> list[Experiment]:
    """The experiments; `quick` has two streams each and shorter ones.

    >>> [experiment.name for experiment in list_experiments(quick=True)]
    ['kons-regret', 'kons-dictionary']
    """
    short, long = (800, 1600) if quick else (CUBIC, 25_600)
    regrets = [
        _regret_cell("kons-regret", label, data, T, quick)
        for data in STREAMS
        for label in SETTINGS
        for T in _horizons(long if label in ("PROS-N-KONS", "CON-KONS", "KOGD", "NOGD") else short)
    ]
    dictionaries = [
        Cell(
            "kons-dictionary",
            Trial("kons-dictionary", data, "KORS", {"beta": beta}, rows=T, cost=cost),
            range(2 if quick else 5),
            label,
            {"T": T},
        )
        for data in ("quadratic", "gaussian")
        for label, beta in KORS.items()
        for T in _horizons((400 if quick else 1600) if beta == "theory" else long)
        for cost in [8 * (T / CUBIC) ** 3 if beta == "theory" else 0.01 + T * 4e-5]
    ]
    sketched = [
        _regret_cell("kons-dictionary", label, data, T, quick)
        for data in ("quadratic", "gaussian")
        for label in SETTINGS
        if "Sketched" in label
        for T in _horizons(short)
    ]
    return [
        Experiment(
            "kons-regret",
            PAPER,
            "Theorems 1 and 3, Section 6",
            "Regret by the length of the stream, beside the bounds",
            COMMON
            + "Squared loss (f - y)^2 / 2, stepsize sigma = 1 / (4 C^2), L = 2 C, alpha = 0.01 (and 1 for comparison: "
            "the logarithm begins when the sum of the squared slopes outgrows alpha). The comparator is the best "
            "function of norm at most C in hindsight (the paper's class, |f(x_t)| <= C, is larger). The bound of "
            "KONS is the first of Theorem 1, alpha |w|^2 + d_onl / sigma with the online dimension of its own "
            "gradients; that of Sketched-KONS is Theorem 3's, with beta = 1 where the theorem asks for 3 log(T / "
            "delta) / eps^2. KOGD and NOGD take steps of 1 / sqrt(T). PROS-N-KONS and CON-KONS (at most 60 "
            "points) are the authors' later answer to Section 6. Each length is a run of its own, on five "
            "streams.",
            tuple(regrets),
        ),
        Experiment(
            "kons-dictionary",
            PAPER,
            "Lemma 3, Theorem 2",
            "Dictionaries by the length of the stream, beside the dimensions",
            COMMON
            + "KORS with alpha = 1, eps = 0.5, beta = 2 and the beta of Theorem 2 (delta = 0.1); Sketched-KONS by the "
            "gradients in its second-order matrix. Effective and online dimension are computed exactly. The size "
            "Theorem 2 predicts is 3 rho beta d_onl: the printed 3 rho beta / eps^2 counts the 1 / eps^2 that beta "
            "holds twice, and its last form has a constant too small for that beta. Five streams.",
            tuple(dictionaries + sketched),
        ),
    ]
