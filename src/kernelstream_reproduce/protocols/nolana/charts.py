"""The NOLANA paper's figures, drawn from our runs."""

from __future__ import annotations

import json

from kernelstream_reproduce.charts import curve_series, variant_series
from kernelstream_reproduce.measurements import Runs, by_variant
from kernelstream_reproduce.summary import Chart, Series

__all__ = ["draw_charts"]


def _curves(runs: Runs, data: str | None, variant: str | None, measure: str) -> list[Series]:
    curves = [
        curve_series(label, rows, measure)
        for (d, label, v), rows in runs.items()
        if data in (None, d) and variant in (None, v)
    ]
    return [one for one in curves if one]


def draw_charts(experiment: str, runs: Runs) -> list[Chart]:
    """The paper's figures; only those with something to show.

    >>> draw_charts("nolana-figure3", {})
    []
    """
    charts: list[Chart] = []
    if experiment == "nolana-table1":
        cells = by_variant(runs, "usps", "NOLANA", "epsilon")
        lines = [variant_series("NOLANA", cells, "accuracy")]
        charts.append(
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
        charts.append(
            Chart(
                experiment,
                "line",
                "Time by the number of rows",
                "Predicting and learning; only the eigensolver differs.",
                "rows",
                "processor time, s",
                _curves(runs, None, None, "seconds"),
            )
        )
    elif experiment == "nolana-figure2":
        charts.append(
            Chart(
                experiment,
                "line",
                "With and without the second stage",
                "Accuracy over all rows so far.",
                "rows",
                "accuracy, %",
                _curves(runs, None, None, "accuracy"),
            )
        )
    elif experiment == "nolana-figure3":
        for data in dict.fromkeys(d for d, _, _ in runs):
            lines = [
                variant_series(label, by_variant(runs, data, label, "m"), "relative_error")
                for label in ("OANA", "NOGD", "FOGD")
            ]
            charts.append(
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
        for data, variant in dict.fromkeys((d, v) for d, _, v in runs):
            loss = json.loads(variant)["loss"]
            measure = "rmse" if loss == "squared" else "accuracy"
            charts.append(
                Chart(
                    f"{experiment}-{data}-{loss}",
                    "line",
                    f"{data}, {loss} loss",
                    "Over all rows so far.",
                    "rows",
                    "RMSE" if loss == "squared" else "accuracy, %",
                    _curves(runs, data, variant, measure),
                )
            )
    return [chart for chart in charts if chart.series]
