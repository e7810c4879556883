"""What the NOLANA paper says in words, against our runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from kernelstream_reproduce.claims import judge
from kernelstream_reproduce.measurements import Run, Runs, by_variant, curve, mean, power
from kernelstream_reproduce.summary import Claim

__all__ = ["judge_claims"]


def _labels(runs: Runs) -> Mapping[str, Sequence[Run]]:
    """Runs by label, of an experiment with one data set and nothing varied."""
    return {label: rows for (_, label, _), rows in runs.items() if rows}


def _listed(values: Mapping[Any, float], unit: str = "", digits: int = 2) -> str:
    return ", ".join(f"{name}: {value:.{digits}f}{unit}" for name, value in values.items())


def _means(cells: Mapping[Any, Sequence[Run]], measure: str) -> dict[Any, float]:
    means = {name: mean(rows, measure) for name, rows in cells.items()}
    return {name: value for name, value in means.items() if value is not None}


def _table1(runs: Runs) -> list[Claim]:
    cells = by_variant(runs, "usps", "NOLANA", "epsilon")
    accuracy, moves, seconds = (_means(cells, name) for name in ("accuracy", "moves", "seconds"))
    enough = {0, 50, 300} <= set(accuracy)
    small, large = (
        float(np.mean([a for e, a in accuracy.items() if low <= e <= high])) if enough else 0.0
        for low, high in ((0, 50), (200, 300))
    )
    falls = list(moves.values())
    every = (mean(cells.get(0), "rounds") or 0.0) - (mean(cells.get(0), "warmup_rounds") or 0.0)
    return [
        judge(
            "Table 1",
            "The number of updates falls as epsilon grows, from every row at 0 to none at 300.",
            [all(a >= b for a, b in pairwise(falls)), falls[-1] == 0, abs(falls[0] - every) < 1]
            if enough
            else [],
            f"moves by epsilon: {_listed(moves, digits=0)} (paper: 9298, 7742, 5523, 1262, 23, 0)",
        ),
        judge(
            "Table 1",
            "The highest accuracy is at epsilon = 50.",
            [max(accuracy, key=lambda e: accuracy[e]) == 50] if enough else [],
            f"accuracy by epsilon: {_listed(accuracy, ' %')}",
        ),
        judge(
            "Section 4.3",
            "There is a trade-off: fewer updates take less time and are less accurate.",
            [seconds[0] > seconds[50] > seconds[300], small > large]
            if enough and {0, 50, 300} <= set(seconds)
            else [],
            f"seconds by epsilon: {_listed(seconds)}; mean accuracy up to epsilon 50 {small:.2f} %, from 200 on {large:.2f} %",
        ),
        judge(
            "Section 5.2",
            "Moving landmarks (epsilon = 50) beat fixed ones (epsilon = 300, NOGD): 92.14 against 90.52 % in the paper.",
            [accuracy[50] > accuracy[300]] if enough else [],
            f"{accuracy[50]:.2f} against {accuracy[300]:.2f} %" if enough else "",
        ),
    ]


def _figure1(runs: Runs) -> list[Claim]:
    by_label = _labels(runs)
    seconds, accuracy = _means(by_label, "seconds"), _means(by_label, "accuracy")
    all_three = len(seconds) == 3
    powers = {}
    for name, rows in by_label.items():
        times = curve(rows, "seconds")
        if times is not None:
            late = [
                (t, s) for t, s in zip(times[0], times[1].mean(axis=0), strict=True) if t >= times[0][-1] / 4
            ]
            powers[name] = power(*zip(*late, strict=True))
    text = f"seconds for all rows: {_listed(seconds)}"
    return [
        judge(
            "Figure 1",
            "The warm-started solver is the fastest of the three.",
            [min(seconds, key=lambda s: seconds[s]) == "warm"] if all_three else [],
            text,
        ),
        judge(
            "Figure 1",
            "The rank-two update is slow, without much gain over decomposing from scratch.",
            [seconds["rank2"] > 0.9 * seconds["scratch"]] if all_three else [],
            text,
        ),
        judge(
            "Figure 1",
            "Time is close to linear in the number of rows.",
            [0.8 <= p <= 1.25 for p in powers.values()],
            f"time grows with the power {_listed(powers)} of the rows, over the last three quarters of them",
        ),
        judge(
            "Section 4.1",
            "The solvers give the same model: accuracies are similar.",
            [max(accuracy.values()) - min(accuracy.values()) < 0.5] if all_three else [],
            f"accuracy: {_listed(accuracy, ' %')}",
        ),
    ]


def _figure2(runs: Runs) -> list[Claim]:
    accuracy = _means(_labels(runs), "accuracy")
    both = len(accuracy) == 2
    return [
        judge(
            "Figure 2",
            "The second stage, which fits the weights to the moved landmarks, clearly improves accuracy.",
            [accuracy["two stages"] > accuracy["first stage only"] + 0.5] if both else [],
            _listed(accuracy, " %"),
        )
    ]


def _figure3(runs: Runs) -> list[Claim]:
    claims = []
    for other in ("NOGD", "FOGD"):
        held: list[bool] = []
        cases = []
        for data in dict.fromkeys(d for d, _, _ in runs):
            ours = _means(by_variant(runs, data, "OANA", "m"), "relative_error")
            theirs = _means(by_variant(runs, data, other, "m"), "relative_error")
            shared = [m for m in ours if m in theirs]
            held += [ours[m] < theirs[m] for m in shared]
            cases += [f"{data}, m = {m}: {ours[m]:.4f} against {theirs[m]:.4f}" for m in shared]
        claims.append(
            judge(
                "Figure 3",
                f"OANA's kernel matrix is closer to the exact one than that of {other}, at the same memory.",
                held,
                f"lower in {sum(held)} of {len(held)} cases ({'; '.join(cases)})",
            )
        )
    return claims


def _columns(runs: Runs, accuracy: str, rmse: str) -> dict[tuple[str, str], dict[str, float]]:
    """Figures by data set and loss, then learner; errors are negated, so that more is better."""
    columns: dict[tuple[str, str], dict[str, float]] = {}
    for (data, label, variant), rows in runs.items():
        loss = json.loads(variant)["loss"]
        value = mean(rows, rmse if loss == "squared" else accuracy)
        if value is not None:
            columns.setdefault((data, loss), {})[label] = -value if loss == "squared" else value
    return {column: figures for column, figures in columns.items() if len(figures) == 6}


def _best(place: str, text: str, columns: dict[tuple[str, str], dict[str, float]]) -> Claim:
    wins = [max(figures, key=lambda f: figures[f]) for figures in columns.values()]
    cases = [
        f"{data} ({loss}): {winner} {abs(figures[winner]):.2f}"
        + "".join(f", {name} {abs(figures[name]):.2f}" for name in ("NOLANA", "NOGD") if name != winner)
        for ((data, loss), figures), winner in zip(columns.items(), wins, strict=True)
    ]
    share = wins.count("NOLANA") / max(len(wins), 1)
    evidence = f"best in {wins.count('NOLANA')} of {len(wins)}: {'; '.join(cases)}"
    return judge(place, text, [share > 0.5] if wins else [], evidence)


def _table2(runs: Runs) -> list[Claim]:
    columns = _columns(runs, "accuracy", "rmse")
    last = _columns(runs, "accuracy_last_tenth", "rmse_last_tenth")
    ahead = [figures["NOLANA"] > figures["NOGD"] for figures in columns.values()]
    return [
        _best(
            "Table 2",
            "NOLANA is the best in most columns (the paper: on 4 of 5 data sets); all rows counted.",
            columns,
        ),
        _best("Table 2", "The same over the last tenth of the rows, when models have settled.", last),
        judge(
            "Table 2",
            "Adapting the landmarks is better than keeping the first ones (NOGD).",
            ahead,
            f"NOLANA is ahead of NOGD in {sum(ahead)} of {len(ahead)} columns",
        ),
    ]


def _figure4(runs: Runs) -> list[Claim]:
    held, cases = [], []
    for (data, label, variant), rows in runs.items():
        loss = json.loads(variant)["loss"]
        accuracies = curve(rows, "rmse" if loss == "squared" else "accuracy")
        if accuracies is None:
            continue
        values = accuracies[1].mean(axis=0) * (-1 if loss == "squared" else 1)
        held.append(bool(values[-1] > values[len(values) // 4]))
        if not held[-1]:
            cases.append(f"{label} on {data} ({loss})")
    worse = f"; not so: {', '.join(cases)}" if cases else ""
    return [
        judge(
            "Figure 4",
            "Models become better with more rows.",
            held,
            f"better after all rows than after a quarter in {sum(held)} of {len(held)} curves{worse}",
        )
    ]


_CLAIMS = {
    "nolana-table1": _table1,
    "nolana-table2": _table2,
    "nolana-figure1": _figure1,
    "nolana-figure2": _figure2,
    "nolana-figure3": _figure3,
    "nolana-figure4": _figure4,
}


def judge_claims(experiment: str, runs: Runs) -> list[Claim]:
    """The paper's claims that an experiment tests, with verdicts.

    >>> judge_claims("nolana-figure2", {})[0].verdict
    'not run'
    """
    return _CLAIMS[experiment](runs)
