"""Results as charts: learning curves, time against mistakes, a measure against what is varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelstream.experiments.readings import Row, Rows, by_variant, curve, figure_of
from kernelstream.experiments.summary import Chart, Series

__all__ = ["across", "curve_series", "curves", "series", "time_against"]


def series(name: str, cells: Mapping[Any, Sequence[Row]], measure: str) -> Series | None:
    """Means and deviations of a measure by what is varied.

    >>> series("KONS", {100: [{"measures": {"regret": 2.0}}]}, "regret")
    Series(name='KONS', x=[100.0], y=[2.0], spread=[0.0], names=None)
    """
    found = [
        (float(x), figure) for x, rows in cells.items() if (figure := figure_of(rows, measure)) is not None
    ]
    if not found:
        return None
    return Series(name, [x for x, _ in found], [f.mean for _, f in found], [f.std for _, f in found])


def curve_series(name: str, rows: Sequence[Row], measure: str) -> Series | None:
    """The mean curve of a cell's runs, and their spread.

    >>> curve_series("A", [{"curve": {"rounds": [5, 10], "rmse": [2.0, 1.0]}}], "rmse")
    Series(name='A', x=[5.0, 10.0], y=[2.0, 1.0], spread=None, names=None)
    """
    found = curve(rows, measure)
    if found is None:
        return None
    rounds, values = found
    spread = values.std(axis=0, ddof=1).tolist() if len(values) > 1 else None
    return Series(name, rounds, values.mean(axis=0).tolist(), spread)


def curves(
    rows: Rows, data: str, *, id: str, title: str, measure: str = "mistakes", label: str = "mistakes, %"
) -> Chart:
    """A measure so far against the rounds, one curve a learner: the mean over permutations and their spread."""
    made = [curve_series(learner, kept, measure) for (name, learner, _), kept in rows.items() if name == data]
    caption = f"Mean over permutations; the band is one standard deviation. {data}."
    return Chart(id, "line", title, caption, "rounds", label, [one for one in made if one])


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
    caption = (
        "Processor time of the learner on one core; one point a data set. Down and to the left is better."
    )
    return Chart(
        id, "scatter", title, caption, "microseconds a round", label, list(points.values()), log_x=True
    )


def across(
    rows: Rows, data: str, symbol: str, *, id: str, title: str, measure: str, label: str, caption: str = ""
) -> Chart:
    """A measure against what is varied, one curve a label."""
    labels = dict.fromkeys(label for name, label, _ in rows if name == data)
    made = [series(one, by_variant(rows, data, one, symbol), measure) for one in labels]
    words = caption or f"Mean and standard deviation over permutations. {data}."
    return Chart(id, "line", title, words, symbol, label, [one for one in made if one])
