"""What the NOLANA paper says in words, against our runs, and its figures drawn from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from kernelstream.experiments.charts import curve_series, series
from kernelstream.experiments.findings import verdict
from kernelstream.experiments.readings import Rows, by_variant, curve, mean, power
from kernelstream.experiments.summary import Chart, Claim, Series

__all__ = ["charts", "claims"]

Runs = Mapping[str, Sequence[Mapping[str, Any]]]


def _labels(results: Rows) -> Runs:
    """Runs by label, of an experiment with one data set and nothing varied."""
    return {label: rows for (_, label, _), rows in results.items() if rows}


def _listed(values: Mapping[Any, float], unit: str = "", digits: int = 2) -> str:
    return ", ".join(f"{name}: {value:.{digits}f}{unit}" for name, value in values.items())


def _means(cells: Mapping[Any, Sequence[Mapping[str, Any]]], measure: str) -> dict[Any, float]:
    found = {name: mean(rows, measure) for name, rows in cells.items()}
    return {name: value for name, value in found.items() if value is not None}


def _table1(results: Rows) -> list[Claim]:
    cells = by_variant(results, "usps", "NOLANA", "epsilon")
    accuracy, moves, seconds = (_means(cells, name) for name in ("accuracy", "moves", "seconds"))
    enough = {0, 50, 300} <= set(accuracy)
    small, large = (
        float(np.mean([a for e, a in accuracy.items() if low <= e <= high])) if enough else 0.0
        for low, high in ((0, 50), (200, 300))
    )
    falls = list(moves.values())
    every = (mean(cells.get(0), "rounds") or 0.0) - (mean(cells.get(0), "warmup_rounds") or 0.0)
    return [
        verdict(
            "Table 1",
            "The number of updates falls as epsilon grows, from every row at 0 to none at 300.",
            [all(a >= b for a, b in pairwise(falls)), falls[-1] == 0, abs(falls[0] - every) < 1]
            if enough
            else [],
            f"moves by epsilon: {_listed(moves, digits=0)} (paper: 9298, 7742, 5523, 1262, 23, 0)",
        ),
        verdict(
            "Table 1",
            "The highest accuracy is at epsilon = 50.",
            [max(accuracy, key=lambda e: accuracy[e]) == 50] if enough else [],
            f"accuracy by epsilon: {_listed(accuracy, ' %')}",
        ),
        verdict(
            "Section 4.3",
            "There is a trade-off: fewer updates take less time and are less accurate.",
            [seconds[0] > seconds[50] > seconds[300], small > large]
            if enough and {0, 50, 300} <= set(seconds)
            else [],
            f"seconds by epsilon: {_listed(seconds)}; mean accuracy up to epsilon 50 {small:.2f} %, from 200 on {large:.2f} %",
        ),
        verdict(
            "Section 5.2",
            "Moving landmarks (epsilon = 50) beat fixed ones (epsilon = 300, NOGD): 92.14 against 90.52 % in the paper.",
            [accuracy[50] > accuracy[300]] if enough else [],
            f"{accuracy[50]:.2f} against {accuracy[300]:.2f} %" if enough else "",
        ),
    ]


def _figure1(results: Rows) -> list[Claim]:
    runs = _labels(results)
    seconds, accuracy = _means(runs, "seconds"), _means(runs, "accuracy")
    all_three = len(seconds) == 3
    powers = {}
    for name, rows in runs.items():
        found = curve(rows, "seconds")
        if found is not None:
            late = [
                (t, s) for t, s in zip(found[0], found[1].mean(axis=0), strict=True) if t >= found[0][-1] / 4
            ]
            powers[name] = power(*zip(*late, strict=True))
    text = f"seconds for all rows: {_listed(seconds)}"
    return [
        verdict(
            "Figure 1",
            "The warm-started solver is the fastest of the three.",
            [min(seconds, key=lambda s: seconds[s]) == "warm"] if all_three else [],
            text,
        ),
        verdict(
            "Figure 1",
            "The rank-two update is slow, without much gain over decomposing from scratch.",
            [seconds["rank2"] > 0.9 * seconds["scratch"]] if all_three else [],
            text,
        ),
        verdict(
            "Figure 1",
            "Time is close to linear in the number of rows.",
            [0.8 <= p <= 1.25 for p in powers.values()],
            f"time grows with the power {_listed(powers)} of the rows, over the last three quarters of them",
        ),
        verdict(
            "Section 4.1",
            "The solvers give the same model: accuracies are similar.",
            [max(accuracy.values()) - min(accuracy.values()) < 0.5] if all_three else [],
            f"accuracy: {_listed(accuracy, ' %')}",
        ),
    ]


def _figure2(results: Rows) -> list[Claim]:
    accuracy = _means(_labels(results), "accuracy")
    both = len(accuracy) == 2
    return [
        verdict(
            "Figure 2",
            "The second stage, which fits the weights to the moved landmarks, clearly improves accuracy.",
            [accuracy["two stages"] > accuracy["first stage only"] + 0.5] if both else [],
            _listed(accuracy, " %"),
        )
    ]


def _figure3(results: Rows) -> list[Claim]:
    claims = []
    for other in ("NOGD", "FOGD"):
        held: list[bool] = []
        said = []
        for data in dict.fromkeys(d for d, _, _ in results):
            ours = _means(by_variant(results, data, "OANA", "m"), "relative_error")
            theirs = _means(by_variant(results, data, other, "m"), "relative_error")
            shared = [m for m in ours if m in theirs]
            held += [ours[m] < theirs[m] for m in shared]
            said += [f"{data}, m = {m}: {ours[m]:.4f} against {theirs[m]:.4f}" for m in shared]
        claims.append(
            verdict(
                "Figure 3",
                f"OANA's kernel matrix is closer to the exact one than that of {other}, at the same memory.",
                held,
                f"lower in {sum(held)} of {len(held)} cases ({'; '.join(said)})",
            )
        )
    return claims


def _columns(results: Rows, accuracy: str, rmse: str) -> dict[tuple[str, str], dict[str, float]]:
    """Figures by data set and loss, then learner; errors are negated, so that more is better."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for (data, label, variant), rows in results.items():
        loss = json.loads(variant)["loss"]
        value = mean(rows, rmse if loss == "squared" else accuracy)
        if value is not None:
            found.setdefault((data, loss), {})[label] = -value if loss == "squared" else value
    return {column: figures for column, figures in found.items() if len(figures) == 6}


def _best(place: str, text: str, columns: dict[tuple[str, str], dict[str, float]]) -> Claim:
    wins = [max(figures, key=lambda f: figures[f]) for figures in columns.values()]
    said = [
        f"{data} ({loss}): {winner} {abs(figures[winner]):.2f}"
        + "".join(f", {name} {abs(figures[name]):.2f}" for name in ("NOLANA", "NOGD") if name != winner)
        for ((data, loss), figures), winner in zip(columns.items(), wins, strict=True)
    ]
    share = wins.count("NOLANA") / max(len(wins), 1)
    evidence = f"best in {wins.count('NOLANA')} of {len(wins)}: {'; '.join(said)}"
    return verdict(place, text, [share > 0.5] if wins else [], evidence)


def _table2(results: Rows) -> list[Claim]:
    columns = _columns(results, "accuracy", "rmse")
    last = _columns(results, "accuracy_last_tenth", "rmse_last_tenth")
    ahead = [figures["NOLANA"] > figures["NOGD"] for figures in columns.values()]
    return [
        _best(
            "Table 2",
            "NOLANA is the best in most columns (the paper: on 4 of 5 data sets); all rows counted.",
            columns,
        ),
        _best("Table 2", "The same over the last tenth of the rows, when models have settled.", last),
        verdict(
            "Table 2",
            "Adapting the landmarks is better than keeping the first ones (NOGD).",
            ahead,
            f"NOLANA is ahead of NOGD in {sum(ahead)} of {len(ahead)} columns",
        ),
    ]


def _figure4(results: Rows) -> list[Claim]:
    held, said = [], []
    for (data, label, variant), rows in results.items():
        loss = json.loads(variant)["loss"]
        found = curve(rows, "rmse" if loss == "squared" else "accuracy")
        if found is None:
            continue
        values = found[1].mean(axis=0) * (-1 if loss == "squared" else 1)
        held.append(bool(values[-1] > values[len(values) // 4]))
        if not held[-1]:
            said.append(f"{label} on {data} ({loss})")
    worse = f"; not so: {', '.join(said)}" if said else ""
    return [
        verdict(
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


def claims(experiment: str, results: Rows) -> list[Claim]:
    """The paper's claims that an experiment tests, with verdicts.

    >>> claims("nolana-figure2", {})[0].verdict
    'not run'
    """
    return _CLAIMS[experiment](results)


def _curves(results: Rows, data: str | None, variant: str | None, measure: str) -> list[Series]:
    made = [
        curve_series(label, rows, measure)
        for (d, label, v), rows in results.items()
        if data in (None, d) and variant in (None, v)
    ]
    return [one for one in made if one]


def charts(experiment: str, results: Rows) -> list[Chart]:
    """The paper's figures; only those with something to show.

    >>> charts("nolana-figure3", {})
    []
    """
    made: list[Chart] = []
    if experiment == "nolana-table1":
        cells = by_variant(results, "usps", "NOLANA", "epsilon")
        lines = [series("NOLANA", cells, "accuracy")]
        made.append(
            Chart(
                "nolana-table1-accuracy",
                "line",
                "Accuracy by the threshold",
                "A small epsilon moves a landmark with almost every row, a large one never.",
                "epsilon",
                "accuracy, %",
                [line for line in lines if line],
            )
        )
    elif experiment == "nolana-figure1":
        made.append(
            Chart(
                experiment,
                "line",
                "Time by the number of rows",
                "Predicting and learning; only the eigensolver differs.",
                "rows",
                "processor time, s",
                _curves(results, None, None, "seconds"),
            )
        )
    elif experiment == "nolana-figure2":
        made.append(
            Chart(
                experiment,
                "line",
                "With and without the second stage",
                "Accuracy over all rows so far.",
                "rows",
                "accuracy, %",
                _curves(results, None, None, "accuracy"),
            )
        )
    elif experiment == "nolana-figure3":
        for data in dict.fromkeys(d for d, _, _ in results):
            lines = [
                series(label, by_variant(results, data, label, "m"), "relative_error")
                for label in ("OANA", "NOGD", "FOGD")
            ]
            made.append(
                Chart(
                    f"{experiment}-{data}",
                    "line",
                    f"Kernel approximation on {data}",
                    "Relative error in the Frobenius norm; the same memory for all three.",
                    "landmarks m",
                    "|G - G~| / |G|",
                    [line for line in lines if line],
                    log_y=True,
                )
            )
    elif experiment == "nolana-figure4":
        for data, variant in dict.fromkeys((d, v) for d, _, v in results):
            loss = json.loads(variant)["loss"]
            measure = "rmse" if loss == "squared" else "accuracy"
            made.append(
                Chart(
                    f"{experiment}-{data}-{loss}",
                    "line",
                    f"{data}, {loss} loss",
                    "Over all rows so far.",
                    "rows",
                    "RMSE" if loss == "squared" else "accuracy, %",
                    _curves(results, data, variant, measure),
                )
            )
    return [chart for chart in made if chart.series]
