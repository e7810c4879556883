"""The runs of an experiment: means, curves, and measures by what is varied."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kernelstream_reproduce.summary import Figure

__all__ = [
    "Run",
    "Runs",
    "by_variant",
    "curve",
    "figure_of",
    "mean",
    "figures",
    "power",
    "standard_errors",
    "means_by_variant",
    "variant_key",
]

Run = Mapping[str, Any]
"""One line of ``results.jsonl``, with its ``seconds`` and ``seconds_curve``."""

Runs = Mapping[tuple[str, str, str], Sequence[Run]]
"""The runs of an experiment by data set, label and variant (as JSON)."""


def variant_key(variant: Mapping[str, Any]) -> str:
    """A variant as `Runs` has it.

    >>> variant_key({"B": 100})
    '{"B": 100}'
    """
    return json.dumps(dict(variant))


def figure_of(runs: Iterable[Run] | None, measure: str) -> Figure | None:
    """Mean and standard deviation of a measure, or of ``seconds``. None if no run has it.

    >>> figure_of([{"measures": {"rmse": 1.0}}, {"measures": {"rmse": 2.0}}], "rmse")
    Figure(mean=1.5, std=0.7071067811865476, n=2)
    """
    measured = (
        run.get("seconds") if measure == "seconds" else run["measures"].get(measure) for run in runs or ()
    )
    values = [value for value in measured if value is not None]
    if not values:
        return None
    return Figure(
        float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values)
    )


def mean(runs: Iterable[Run] | None, measure: str) -> float | None:
    """The mean of a measure.

    >>> mean([{"measures": {"rmse": 1.0}}, {"measures": {"rmse": 2.0}}], "rmse"), mean([], "rmse")
    (1.5, None)
    """
    figure = figure_of(runs, measure)
    return None if figure is None else figure.mean


def figures(runs: Runs, measure: str, data: str, variant: str = "{}") -> dict[str, Figure]:
    """A measure by label, on one data set and variant."""
    return {
        label: figure
        for (name, label, own), cell in runs.items()
        if (name, own) == (data, variant) and (figure := figure_of(cell, measure)) is not None
    }


def by_variant(runs: Runs, data: str, label: str, symbol: str) -> dict[Any, Sequence[Run]]:
    """The runs of one label on one data set by what is varied, in order; cells without a run are left out.

    >>> runs = {("usps", "NOLANA", '{"epsilon": 50}'): [{}], ("usps", "NOLANA", '{"epsilon": 0}'): [{}]}
    >>> by_variant(runs, "usps", "NOLANA", "epsilon")
    {0: [{}], 50: [{}]}
    """
    cells = {
        value: cell
        for (name, own, variant), cell in runs.items()
        if (name, own) == (data, label) and cell and (value := json.loads(variant).get(symbol)) is not None
    }
    return dict(sorted(cells.items()))


def means_by_variant(
    runs: Runs, measure: str, data: str, label: str, symbol: str
) -> list[tuple[Any, Figure]]:
    """Values of what is varied with a measure, in order."""
    cells = by_variant(runs, data, label, symbol)
    return [
        (value, figure) for value, cell in cells.items() if (figure := figure_of(cell, measure)) is not None
    ]


def standard_errors(ours: Figure, paper: Figure) -> float:
    """The difference of two means in standard errors of it. A paper's runs without a deviation are taken to scatter as ours do.

    >>> round(standard_errors(Figure(30.0, 1.0, 20), Figure(28.0, 1.0, 20)), 2)
    6.32
    """
    spread = ours.std if math.isnan(paper.std) else paper.std
    error = math.sqrt(ours.std**2 / ours.n + spread**2 / paper.n)
    difference = ours.mean - paper.mean
    return difference / error if error > 0 else math.copysign(math.inf, difference) if difference else 0.0


def curve(runs: Sequence[Run] | None, measure: str) -> tuple[list[float], Any] | None:
    """Rounds, and a curve of each run over them, an array; "seconds" is the time so far. None if there is none.

    >>> curve([{"curve": {"rounds": [5, 10], "rmse": [2.0, 1.0]}}], "rmse")
    ([5.0, 10.0], array([[2., 1.]]))
    """
    curves = [
        (
            run["curve"]["rounds"],
            run.get("seconds_curve") if measure == "seconds" else run["curve"].get(measure),
        )
        for run in runs or ()
        if run.get("curve")
    ]
    whole = [(rounds, values) for rounds, values in curves if values and len(values) == len(rounds)]
    if not whole or any(rounds != whole[0][0] for rounds, _ in whole):
        return None
    return [float(t) for t in whole[0][0]], np.array([values for _, values in whole])


def power(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent p of the fit y = c x^p.

    >>> round(power([1, 4, 16], [3, 6, 12]), 6)
    0.5
    """
    return float(np.polyfit(np.log(x), np.log(np.maximum(y, 1e-12)), 1)[0])
