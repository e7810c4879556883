"""Results as charts: learning curves, time against mistakes, a measure against what is varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelstream.experiments.readings import Row, Rows, by_variant, curve, figure_of
from kernelstream.experiments.summary import Chart, Series

__all__ = ["across", "curve_series", "of_a_table", "series"]


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


def of_a_table(rows: Rows, name: str) -> list[Chart]:
    """The charts of a table of mistakes: learning curves on each data set, and time against mistakes."""
    # The same learner tuned in another way can hardly be told from it.
    rows = {key: kept for key, kept in rows.items() if not key[1].endswith("tuned without warm-up")}
    made = []
    for data in dict.fromkeys(data for data, _, _ in rows):
        lines = [
            curve_series(label, kept, "mistakes")
            for (own, label, _), kept in rows.items()
            if own == data
            and not label.endswith("tuned without warm-up")  # hardly to be told from the others
        ]
        title, caption = (
            f"Mistakes so far on {data}",
            "Mean over permutations; the band is one standard deviation.",
        )
        kept = [line for line in lines if line]
        made.append(Chart(f"{name}-{data}", "line", title, caption, "rounds", "mistakes, %", kept))
    return [*made, _time_against(rows, name)]


def _time_against(rows: Rows, name: str) -> Chart:
    """Microseconds a round against mistakes: one series a learner, one point a data set."""
    points: dict[str, Series] = {}
    for (data, learner, _), found in rows.items():
        spent, value = figure_of(found, "seconds"), figure_of(found, "mistakes")
        if spent is not None and value is not None:
            at = points.setdefault(learner, Series(learner, [], [], None, []))
            at.x.append(1e6 * spent.mean / found[0]["measures"]["rounds"])
            at.y.append(value.mean)
            at.names = [*(at.names or []), data]
    caption = (
        "Processor time of the learner on one core; one point a data set. Down and to the left is better."
    )
    return Chart(
        f"{name}-time", "scatter", "Time against mistakes", caption, "microseconds a round", "mistakes, %",
        list(points.values()), log_x=True,
    )  # fmt: skip


def across(
    rows: Rows, data: str, symbol: str, *, id: str, title: str, measure: str, label: str, caption: str = ""
) -> Chart:
    """A measure against what is varied, one curve a label."""
    labels = dict.fromkeys(label for name, label, _ in rows if name == data)
    made = [series(one, by_variant(rows, data, one, symbol), measure) for one in labels]
    words = caption or f"Mean and standard deviation over permutations. {data}."
    return Chart(id, "line", title, words, symbol, label, [one for one in made if one])
