"""The charts of the OKS-SIL paper's experiments."""

from __future__ import annotations

from kernelstream_reproduce.charts import table_charts, variant_chart
from kernelstream_reproduce.measurements import Runs
from kernelstream_reproduce.summary import Chart

__all__ = ["draw_charts"]


def draw_charts(name: str, runs: Runs) -> list[Chart]:
    """The pictures of an experiment."""
    charts: list[Chart] = []
    if name == "okssil-table2":
        charts += table_charts(runs, name)
    else:
        for symbol in ("B", "s", "nu"):
            for measure, label in (("mistakes", "mistakes, %"), ("seconds", "seconds")):
                title = f"{symbol} against {measure if measure == 'mistakes' else 'time'} on spambase"
                charts.append(
                    variant_chart(
                        runs,
                        "spambase",
                        symbol,
                        id=f"{name}-{symbol}-{measure}",
                        title=title,
                        measure=measure,
                        label=label,
                    )
                )
    return [chart for chart in charts if any(series.x for series in chart.series)]
