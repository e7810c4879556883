"""The report's charts as PNG and SVG files, and one picture of all cells, for papers and the README. Needs matplotlib."""

from __future__ import annotations

import importlib.util
import io
import os
from pathlib import Path
from typing import Any

from kernelstream.files import write_atomically
from kernelstream_reproduce.report.style import COLOURS, charts, deciding_difference, slug
from kernelstream_reproduce.summary import Chart, Entry, Summary

__all__ = ["write_pictures"]

MARKERS = ["o", "s", "^", "D", "v", "P", "X", "h"]
_VERDICTS = {  # colour and marker
    "reproduced": ("#2f8f70", "o"),
    "reproduced without warm-up": ("#8cc9b5", "s"),
    "better": ("#3f87c6", "<"),
    "worse": ("#dd7d17", ">"),
}


def write_pictures(summary: Summary, folder: str | os.PathLike[str]) -> list[Path]:
    """Write each chart as `<id>.png` and `<id>.svg` and, if there are tables, `overview.png` and `overview.svg`.

    The same summary gives the same bytes with the same matplotlib. The folder is made if it is not there.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_pictures(Summary([], [], {}), folder)
    []
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("pictures need matplotlib: pip install 'kernelstream[plot]'")
    from matplotlib import style

    drawn = list(charts(summary))
    names = [slug(chart.id) for _, chart, _ in drawn]
    if twice := sorted({name for name in names if [*names, "overview"].count(name) > 1}):
        raise ValueError(f"two pictures would have the name {twice[0]!r}: ids of charts must differ")
    os.makedirs(folder, exist_ok=True)
    written = []
    plain = {"text.parse_math": False}  # a dollar sign in a name is a dollar sign
    with style.context(["kernelstream.pictures", plain]):
        pictures = [
            (name, _chart(chart, styles)) for name, (_, chart, styles) in zip(names, drawn, strict=True)
        ]
        overview = _overview(summary)
        for name, figure in [*pictures, *([("overview", overview)] if overview else [])]:
            for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
                image = io.BytesIO()
                figure.savefig(image, format=kind, metadata=metadata)
                path = Path(folder, f"{name}.{kind}")
                write_atomically(path, image.getvalue())
                written.append(path)
    return written


def _marker_and_colour(style: int) -> dict[str, Any]:
    again = style // len(COLOURS)  # a colour comes again with another marker
    return {"color": COLOURS[style % len(COLOURS)], "marker": MARKERS[(style + 3 * again) % len(MARKERS)]}


def _chart(chart: Chart, styles: list[int]) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    figure = Figure(figsize=(7.2, 4.4))
    axes = figure.add_subplot()
    wide = 0.8 / max(1, len(chart.series))
    for k, (series, style) in enumerate(zip(chart.series, styles, strict=True)):
        look = _marker_and_colour(style)
        if chart.kind == "line":
            every = max(1, -(-len(series.x) // 6)) if len(series.x) > 12 else 1
            dash = "-" if style < len(COLOURS) else "--"
            axes.plot(series.x, series.y, dash, label=series.name, markersize=4.5,
                      markevery=(2 * k % every, every), **look)  # fmt: skip
            if series.spread:
                low, high = zip(
                    *((y - d, y + d) for y, d in zip(series.y, series.spread, strict=True)), strict=True
                )
                axes.fill_between(series.x, low, high, color=look["color"], alpha=0.13, linewidth=0)
        elif chart.kind == "scatter":
            axes.errorbar(series.x, series.y, yerr=series.spread, label=series.name, linestyle="", markersize=6,
                          **look)  # fmt: skip
        else:
            at = [x + (k + 0.5) * wide - 0.4 for x in series.x]
            axes.bar(at, series.y, wide * 0.94, yerr=series.spread, label=series.name, color=look["color"], capsize=2,
                     error_kw={"linewidth": 1})  # fmt: skip
    axes.set(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)
    if chart.kind == "bar":
        axes.set_xticks(range(len(chart.categories)), chart.categories)
        axes.grid(visible=False, axis="x")
        if not chart.log_y and all(y >= 0 for series in chart.series for y in series.y):
            axes.set_ylim(bottom=0)
        if max(map(len, chart.categories), default=0) * len(chart.categories) > 80:
            for label in axes.get_xticklabels():
                label.set(rotation=25, ha="right", rotation_mode="anchor")
    for axis, wanted, values in (
        (axes.xaxis, chart.log_x and chart.kind != "bar", [x for series in chart.series for x in series.x]),
        (axes.yaxis, chart.log_y, [y for series in chart.series for y in series.y]),
    ):
        if wanted and all(value > 0 for value in values):
            axes.set(**{f"{axis.axis_name}scale": "log"})
            plain = FuncFormatter(lambda value, _: f"{value:g}")
            axis.set_major_formatter(plain)
            axis.set_minor_formatter(plain if max(values) < 10 * min(values) else NullFormatter())
    if chart.series:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    return figure


def _overview(summary: Summary) -> Any:
    """All cells: a row per table, a dot per cell, to the right where ours is worse by so many standard errors."""
    from matplotlib.figure import Figure

    tables = [
        (
            f"{paper.key}, {section.place}" + (f",\n{table.title}" if len(section.tables) > 1 else ""),
            table,
            [entry for entry in table.entries if deciding_difference(entry) is not None],
        )
        for paper in summary.papers
        for section in paper.sections
        for table in section.tables
    ]
    tables = [row for row in tables if row[2]]
    if not tables:
        return None
    figure = Figure(figsize=(8, 1.5 + 0.62 * len(tables)))
    axes = figure.add_subplot()
    axes.axvspan(-3, 3, color="#2f8f70", alpha=0.1, linewidth=0)
    axes.axvline(0, color="#767b82", linewidth=0.8)
    entries = [entry for _, _, compared in tables for entry in compared]
    for verdict, (colour, marker) in _VERDICTS.items():
        x, y = [], []
        for row, (_, table, compared) in enumerate(tables):
            side = 1 if table.lower_is_better else -1
            ranked = sorted(
                compared, key=lambda entry: (deciding_difference(entry) or 0.0, entry.label, entry.data)
            )
            for rank, entry in enumerate(ranked):
                if entry.verdict == verdict:  # neighbours in rank stand on different heights
                    x.append(side * max(-1e3, min(1e3, deciding_difference(entry) or 0.0)))
                    y.append(row + 0.6 * ((rank * 0.618034) % 1 - 0.5))
        axes.scatter(x, y, s=26, color=colour, marker=marker, linewidth=0, zorder=3,
                     label=f"{verdict} ({_count(entries, verdict)})")  # fmt: skip
    axes.set_xscale("symlog", linthresh=3, linscale=1.2)
    ticks = [tick for tick in (-1000, -300, -100, -30, -10, -3, 0, 3, 10, 30, 100, 300, 1000)
             if axes.get_xlim()[0] <= tick <= axes.get_xlim()[1]]  # fmt: skip
    axes.set_xticks(ticks, [f"{tick:+d}".replace("-", "−") if tick else "0" for tick in ticks])
    axes.tick_params(axis="x", labelsize=8)
    axes.minorticks_off()
    axes.set_yticks(range(len(tables)), [name for name, _, _ in tables])
    axes.set_ylim(len(tables) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("← better · difference from the paper's figure in standard errors · worse →")
    figure.legend(loc="outside upper left", ncols=4, fontsize=8, handletextpad=0.1)
    return figure


def _count(entries: list[Entry], verdict: str) -> int:
    return sum(entry.verdict == verdict for entry in entries)
