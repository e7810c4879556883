"""Results as charts: learning curves, time against mistakes, a measure against what is varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelstream_reproduce.measurements import Run, Runs, by_variant, curve, figure_of
from kernelstream_reproduce.summary import Chart, Series

__all__ = ["variant_chart", "curve_series", "table_charts", "variant_series"]


def variant_series(name: str, cells: Mapping[Any, Sequence[Run]], measure: str) -> Series | None:
    """Means and deviations of a measure by what is varied.

    >>> variant_series("KONS", {100: [{"measures": {"regret": 2.0}}]}, "regret")
    Series(name='KONS', x=[100.0], y=[2.0], spread=[0.0], names=None)
    """
    points = [
        (float(x), figure) for x, runs in cells.items() if (figure := figure_of(runs, measure)) is not None
    ]
    if not points:
        return None
    return Series(name, [x for x, _ in points], [f.mean for _, f in points], [f.std for _, f in points])


def curve_series(name: str, runs: Sequence[Run], measure: str) -> Series | None:
    """The mean curve of a cell's runs, and their spread.

    >>> curve_series("A", [{"curve": {"rounds": [5, 10], "rmse": [2.0, 1.0]}}], "rmse")
    Series(name='A', x=[5.0, 10.0], y=[2.0, 1.0], spread=None, names=None)
    """
    curves = curve(runs, measure)
    if curves is None:
        return None
    rounds, values = curves
    spread = values.std(axis=0, ddof=1).tolist() if len(values) > 1 else None
    return Series(name, rounds, values.mean(axis=0).tolist(), spread)


def table_charts(runs: Runs, name: str) -> list[Chart]:
    """The charts of a table of mistakes: learning curves on each data set, and time against mistakes."""
    # The curve of the same learner tuned in another way would nearly hide this one.
    runs = {key: cell for key, cell in runs.items() if not key[1].endswith("tuned without warm-up")}
    charts = []
    for data in dict.fromkeys(data for data, _, _ in runs):
        lines = [
            curve_series(label, cell, "mistakes") for (own, label, _), cell in runs.items() if own == data
        ]
        title, caption = (
            f"Mistakes so far on {data}",
            "Mean over permutations; the band is one standard deviation.",
        )
        curves = [line for line in lines if line]
        charts.append(Chart(f"{name}-{data}", "line", title, caption, "rounds", "mistakes, %", curves))
    return [*charts, _time_chart(runs, name)]


def _time_chart(runs: Runs, name: str) -> Chart:
    """Microseconds per round against mistakes: one series per learner, one point per data set."""
    points: dict[str, Series] = {}
    for (data, learner, _), cell in runs.items():
        seconds, mistakes = figure_of(cell, "seconds"), figure_of(cell, "mistakes")
        if seconds is not None and mistakes is not None:
            series = points.setdefault(learner, Series(learner, [], [], None, []))
            series.x.append(1e6 * seconds.mean / cell[0]["measures"]["rounds"])
            series.y.append(mistakes.mean)
            series.names = [*(series.names or []), data]
    caption = (
        "Processor time of the learner on one core; one point per data set. Down and to the left is better."
    )
    return Chart(
        f"{name}-time", "scatter", "Time against mistakes", caption, "microseconds per round", "mistakes, %",
        list(points.values()), log_x=True,
    )  # fmt: skip


def variant_chart(
    runs: Runs, data: str, symbol: str, *, id: str, title: str, measure: str, label: str, caption: str = ""
) -> Chart:
    """A measure against what is varied, one curve per label."""
    labels = dict.fromkeys(label for name, label, _ in runs if name == data)
    curves = [variant_series(one, by_variant(runs, data, one, symbol), measure) for one in labels]
    words = caption or f"Mean and standard deviation over permutations. {data}."
    return Chart(id, "line", title, words, symbol, label, [one for one in curves if one])
