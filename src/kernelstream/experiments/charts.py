"""Results as charts: learning curves, time against mistakes, a measure against what is varied.

`Rows` are the rows of a cell's trials (as in ``results.jsonl``, with their ``seconds``) by data set, label and variant.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kernelstream.experiments.summary import Chart, Figure, Series

__all__ = ["Rows", "across", "curves", "figure_of", "time_against", "variant_key"]

Rows = Mapping[tuple[str, str, str], list[dict[str, Any]]]


def variant_key(variant: Mapping[str, Any]) -> str:
    """A variant as `Rows` has it.

    >>> variant_key({"B": 100})
    '{"B": 100}'
    """
    return json.dumps(dict(variant))


def figure_of(rows: Iterable[Mapping[str, Any]], measure: str) -> Figure | None:
    """Mean and standard deviation of a measure; ``seconds`` is one too. None if no row has it.

    >>> figure_of([{"measures": {"rmse": 1.0}}, {"measures": {"rmse": 2.0}}], "rmse")
    Figure(mean=1.5, std=0.7071067811865476, n=2)
    """
    found = [
        row["seconds"] if measure == "seconds" else row["measures"].get(measure)
        for row in rows
        if measure == "seconds" or measure in row["measures"]
    ]
    values = [value for value in found if value is not None]
    if not values:
        return None
    return Figure(
        float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values)
    )


def curves(
    rows: Rows, data: str, *, id: str, title: str, measure: str = "mistakes", label: str = "mistakes, %"
) -> Chart:
    """A measure so far against the rounds, one curve a learner: the mean over permutations and their spread."""
    series = []
    for (name, learner, _), found in rows.items():
        kept = [row["curve"] for row in found if row["curve"] and measure in row["curve"]]
        if name == data and kept:
            values = np.array([curve[measure] for curve in kept])
            spread = values.std(axis=0, ddof=1).tolist() if len(values) > 1 else None
            series.append(Series(learner, kept[0]["rounds"], values.mean(axis=0).tolist(), spread))
    caption = f"Mean over permutations; the band is one standard deviation. {data}."
    return Chart(id, "line", title, caption, "rounds", label, series)


def time_against(
    rows: Rows, *, id: str, title: str, measure: str = "mistakes", label: str = "mistakes, %"
) -> Chart:
    """Microseconds a round against a measure: one series a learner, one point a data set."""
    points: dict[str, Series] = {}
    for (data, learner, _), found in rows.items():
        spent, value = figure_of(found, "seconds"), figure_of(found, measure)
        if spent is not None and value is not None:
            at = points.setdefault(learner, Series(learner, [], [], None, []))
            at.x.append(1e6 * spent.mean / found[0]["measures"]["rounds"])
            at.y.append(value.mean)
            at.names = [*(at.names or []), data]
    caption = "Processor time of the learner on one core, all included; one point a data set. Down and to the left is better."
    return Chart(
        id, "scatter", title, caption, "microseconds a round", label, list(points.values()), log_x=True
    )


def across(
    rows: Rows, data: str, symbol: str, *, id: str, title: str, measure: str, label: str, caption: str = ""
) -> Chart:
    """A measure against what is varied, one curve a label."""
    series: dict[str, Series] = {}
    for (name, learner, variant), found in rows.items():
        value, at = figure_of(found, measure), json.loads(variant).get(symbol)
        if name == data and at is not None and value is not None:
            one = series.setdefault(learner, Series(learner, [], [], []))
            one.x.append(at)
            one.y.append(value.mean)
            one.spread = [*(one.spread or []), value.std]
    return Chart(id, "line", title, caption or f"Mean and standard deviation over permutations. {data}.", symbol, label,
                 list(series.values()))  # fmt: skip
