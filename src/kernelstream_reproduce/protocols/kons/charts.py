"""Regret and dictionaries of the KONS paper by the length of the stream, as charts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelstream_reproduce.charts import variant_series
from kernelstream_reproduce.measurements import Runs, by_variant
from kernelstream_reproduce.protocols.kons.claims import EASY, SKETCHES, STREAMS
from kernelstream_reproduce.summary import Chart

__all__ = ["draw_charts"]

TITLES = {
    "quadratic": "a quadratic kernel in the plane",
    "gaussian": "a Gaussian kernel on an interval",
    "one-point": "one point, targets in turn",
}


def _chart(
    experiment: str,
    data: str,
    caption: str,
    y_label: str,
    runs: Runs,
    lines: Mapping[str, tuple[str, str]],
) -> Chart:
    curves: list[Any] = [
        variant_series(name, by_variant(runs, data, label, "T"), measure)
        for name, (label, measure) in lines.items()
    ]
    return Chart(
        f"{experiment}-{data}",
        "line",
        f"{TITLES[data].capitalize()}",
        caption,
        "rows T",
        y_label,
        [line for line in curves if line],
        log_x=True,
        log_y=True,
    )


def draw_charts(experiment: str, runs: Runs) -> list[Chart]:
    """Regret or dictionary by the length of the stream; only those with something to show.

    >>> draw_charts("kons-regret", {})
    []
    """
    if experiment == "kons-regret":
        labels = dict.fromkeys(label for _, label, _ in runs)
        lines = {label: (label, "regret") for label in labels} | {"bound of KONS": ("KONS", "bound")}
        caption = "On these scales sqrt(T) is a straight line of slope one half, and log T bends down."
        charts = [_chart(experiment, data, caption, "regret", runs, lines) for data in STREAMS]
    else:
        lines = {label: (label, "points") for label in ("KORS, beta 2", "KORS, beta of Theorem 2")}
        lines |= {label: (label, "second_order_points") for label in SKETCHES}
        for name in ("online", "effective"):
            lines[f"{name} dimension"] = ("KORS, beta 2", f"{name}_dimension")
        lines["Theorem 2, beta 2"] = ("KORS, beta 2", "bound")
        caption = "Sketched-KONS by the gradients in its second-order matrix."
        charts = [_chart(experiment, data, caption, "points", runs, lines) for data in EASY]
    return [chart for chart in charts if chart.series]
