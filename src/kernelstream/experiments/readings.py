"""Reading the rows of an experiment: means, what is varied, curves.

`Rows` has the runs of each cell (objects of ``results.jsonl`` with their ``seconds``) by data set, label and variant (as JSON).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kernelstream.experiments.summary import Figure

__all__ = [
    "Row",
    "Rows",
    "by_variant",
    "curve",
    "figure_of",
    "mean",
    "figures",
    "power",
    "standard_errors",
    "swept",
    "variant_key",
]

Row = Mapping[str, Any]
Rows = Mapping[tuple[str, str, str], Sequence[Row]]


def variant_key(variant: Mapping[str, Any]) -> str:
    """A variant as `Rows` has it.

    >>> variant_key({"B": 100})
    '{"B": 100}'
    """
    return json.dumps(dict(variant))


def figure_of(rows: Iterable[Row] | None, measure: str) -> Figure | None:
    """Mean and standard deviation of a measure, or of ``seconds``. None if no row has it.

    >>> figure_of([{"measures": {"rmse": 1.0}}, {"measures": {"rmse": 2.0}}], "rmse")
    Figure(mean=1.5, std=0.7071067811865476, n=2)
    """
    found = [
        row.get("seconds") if measure == "seconds" else row["measures"].get(measure) for row in rows or ()
    ]
    values = [value for value in found if value is not None]
    if not values:
        return None
    return Figure(
        float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values)
    )


def mean(rows: Iterable[Row] | None, measure: str) -> float | None:
    """The mean of a measure.

    >>> mean([{"measures": {"rmse": 1.0}}, {"measures": {"rmse": 2.0}}], "rmse"), mean([], "rmse")
    (1.5, None)
    """
    figure = figure_of(rows, measure)
    return None if figure is None else figure.mean


def figures(rows: Rows, measure: str, data: str, variant: str = "{}") -> dict[str, Figure]:
    """A measure by label, on one data set and variant."""
    found = {
        label: figure_of(kept, measure)
        for (name, label, at), kept in rows.items()
        if (name, at) == (data, variant)
    }
    return {label: figure for label, figure in found.items() if figure is not None}


def by_variant(rows: Rows, data: str, label: str, symbol: str) -> dict[Any, Sequence[Row]]:
    """The runs of one label on one data set by what is varied, in order; cells without a run are left out.

    >>> rows = {("usps", "NOLANA", '{"epsilon": 50}'): [{}], ("usps", "NOLANA", '{"epsilon": 0}'): [{}]}
    >>> by_variant(rows, "usps", "NOLANA", "epsilon")
    {0: [{}], 50: [{}]}
    """
    found = {
        at: kept
        for (name, own, variant), kept in rows.items()
        if (name, own) == (data, label) and kept and (at := json.loads(variant).get(symbol)) is not None
    }
    return dict(sorted(found.items()))


def swept(rows: Rows, measure: str, data: str, label: str, symbol: str) -> list[tuple[Any, Figure]]:
    """Values of what is varied with a measure, in order."""
    found = ((at, figure_of(kept, measure)) for at, kept in by_variant(rows, data, label, symbol).items())
    return [(at, figure) for at, figure in found if figure is not None]


def standard_errors(ours: Figure, paper: Figure) -> float:
    """The difference of two means in standard errors of it. A paper's runs without a deviation are taken to scatter as ours do.

    >>> round(standard_errors(Figure(30.0, 1.0, 20), Figure(28.0, 1.0, 20)), 2)
    6.32
    """
    spread = ours.std if math.isnan(paper.std) else paper.std
    error = math.sqrt(ours.std**2 / ours.n + spread**2 / paper.n)
    difference = ours.mean - paper.mean
    return difference / error if error > 0 else math.copysign(math.inf, difference) if difference else 0.0


def curve(rows: Sequence[Row] | None, measure: str) -> tuple[list[float], Any] | None:
    """Rounds, and a curve of each run over them, an array; "seconds" is the time so far. None if there is none.

    >>> curve([{"curve": {"rounds": [5, 10], "rmse": [2.0, 1.0]}}], "rmse")
    ([5.0, 10.0], array([[2., 1.]]))
    """
    found = [
        (
            row["curve"]["rounds"],
            row.get("seconds_curve") if measure == "seconds" else row["curve"].get(measure),
        )
        for row in rows or ()
        if row.get("curve")
    ]
    whole = [(rounds, values) for rounds, values in found if values and len(values) == len(rounds)]
    if not whole or any(rounds != whole[0][0] for rounds, _ in whole):
        return None
    return [float(t) for t in whole[0][0]], np.array([values for _, values in whole])


def power(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent p of the fit y = c x^p.

    >>> round(power([1, 4, 16], [3, 6, 12]), 6)
    0.5
    """
    return float(np.polyfit(np.log(x), np.log(np.maximum(y, 1e-12)), 1)[0])
