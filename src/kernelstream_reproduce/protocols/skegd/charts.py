"""The charts of the SkeGD paper's experiments."""

from __future__ import annotations

from kernelstream_reproduce.charts import table_charts, variant_chart
from kernelstream_reproduce.measurements import Runs, figure_of
from kernelstream_reproduce.published import published
from kernelstream_reproduce.summary import Chart, Series

__all__ = ["draw_charts"]


def draw_charts(name: str, runs: Runs) -> list[Chart]:
    """The pictures of an experiment."""
    charts: list[Chart] = []
    if name == "skegd-table2":
        cases = [(data, B) for data in ("german.numer", "svmguide3") for B in (100, 200)]
        bars = Chart(
            "skegd-table2-errors", "bar", "Relative error of the kernel matrix",
            "Mean and standard deviation over permutations, at the bandwidth that kernel alignment chooses.",
            "", "relative error", [], log_y=True, categories=[f"{data.split('.')[0]}, B = {B}" for data, B in cases],
        )  # fmt: skip
        for label in ("INys", "IRS", "INys of rank k/2", "best of rank k"):
            one = Series(label, [], [], [])
            for x, (data, B) in enumerate(cases):
                if (
                    figure := figure_of(runs.get((data, label, f'{{"B": {B}}}'), []), "relative_error")
                ) is not None:
                    one.x.append(x)
                    one.y.append(figure.mean)
                    one.spread = [*(one.spread or []), figure.std]
            bars.series.append(one)
        charts.append(bars)
    elif name in ("skegd-table3", "skegd-table4"):
        charts += table_charts(runs, name)
    elif name == "skegd-figure2":
        for measure, label in (("mistakes", "mistakes, %"), ("seconds", "seconds")):
            title = f"Budget against {measure if measure == 'mistakes' else 'time'} on cod-rna"
            charts.append(
                variant_chart(
                    runs,
                    "cod-rna.train",
                    "B",
                    id=f"{name}-{measure}",
                    title=title,
                    measure=measure,
                    label=label,
                )
            )
    elif name == "skegd-figure3":
        for data, symbol in (("cod-rna.train", "tau"), ("spambase", "d")):
            for measure, label in (("mistakes", "mistakes, %"), ("seconds", "seconds")):
                title = (
                    f"{symbol} against {measure if measure == 'mistakes' else 'time'} on {data.split('.')[0]}"
                )
                charts.append(
                    variant_chart(
                        runs,
                        data,
                        symbol,
                        id=f"{name}-{symbol}-{measure}",
                        title=title,
                        measure=measure,
                        label=label,
                    )
                )
    elif name == "skegd-bandwidths":
        for data in dict.fromkeys(data for data, label, _ in runs if label == "RBP"):
            chart = variant_chart(
                runs, data, "sigma", id=f"{name}-{data}", title=f"Bandwidth against mistakes on {data}",
                measure="mistakes", label="mistakes, %", caption="Flat lines are the paper's figures.",
            )  # fmt: skip
            for one in list(chart.series):
                if (paper := published("skegd-table3", data, one.name, {}, "mistakes")) is not None:
                    chart.series.append(Series(f"{one.name}, paper", one.x, [paper[0].mean] * len(one.x)))
            chart.log_x = True
            charts.append(chart)
        for data in ("german.numer", "svmguide3"):
            chart = variant_chart(
                runs, data, "sigma", id=f"{name}-kernel-{data}", title=f"Bandwidth against kernel error on {data}",
                measure="relative_error", label="relative error",
                caption="B = 100, rank 20; the flat lines are the paper's figures.",
            )  # fmt: skip
            for one in list(chart.series):
                if (
                    paper := published("skegd-table2", data, one.name, {"B": 100}, "relative_error")
                ) is not None:
                    chart.series.append(Series(f"{one.name}, paper", one.x, [paper[0].mean] * len(one.x)))
            chart.log_x = chart.log_y = True
            charts.append(chart)
    return [chart for chart in charts if any(series.x for series in chart.series)]
