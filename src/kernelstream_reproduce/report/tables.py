"""A summary's tables and the numbers of its charts, in the rows and columns that the page shows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kernelstream_reproduce.report.numbers import decimals_of, number, settings_text
from kernelstream_reproduce.report.style import difference_class
from kernelstream_reproduce.summary import Chart, Entry, Figure, Paper, Section, Summary, Table

__all__ = ["Overview", "ResultTable", "chart_numbers", "overview", "verdict_counts"]

_LINES = {
    "paper": ("paper", None),
    "ours": ("all rounds", "errors"),
    "without_warmup": ("without warm-up", "errors_without_warmup"),
}
"""The lines of figures of a learner: the attribute of `Entry`, its name, and the attribute with the standard errors."""


@dataclass(frozen=True)
class Cell:
    """A figure, its difference from the paper's in standard errors, and the CSS class that colours it."""

    figure: Figure | None
    errors: float | None
    css: str


class ResultTable:
    """A table with rows by learner and columns by data set and variant.

    Attributes:
        table: the table.
        columns: data sets and variants.
        learners: the entries of each learner, one per column; None where there is none.
        decimals: of all figures.
        notes: numbers of the explanations; equal ones have one.
    """

    def __init__(self, table: Table) -> None:
        learners: dict[str, dict[tuple[str, str], Entry]] = {}
        for entry in table.entries:
            column = (entry.data, settings_text(entry.variant))
            row = learners.setdefault(entry.label, {})
            if column in row:
                raise ValueError(f"table {table.title!r} has two entries for {entry.label!r} and {column}")
            row[column] = entry
        columns = list(dict.fromkeys((entry.data, settings_text(entry.variant)) for entry in table.entries))
        data = list(dict.fromkeys(name for name, _ in columns))
        self.table = table
        self.columns = sorted(columns, key=lambda column: data.index(column[0]))
        self.learners = {name: [row.get(c) for c in self.columns] for name, row in learners.items()}
        self.decimals = decimals_of(table)
        explanations = dict.fromkeys(entry.explanation for entry in table.entries if entry.explanation)
        self.notes = {text: n for n, text in enumerate(explanations, 1)}

    @property
    def data(self) -> Counter[str]:
        """Data sets with the number of their columns."""
        return Counter(name for name, _ in self.columns)

    @property
    def has_variants(self) -> bool:
        """Whether columns need a second line in the head."""
        return any(variant for _, variant in self.columns)

    def lines(self, entries: Sequence[Entry | None]) -> Iterator[tuple[str, str, list[Cell]]]:
        """The lines of figures of a learner: the attribute that they show, its name and the cells."""
        for attribute, (name, errors_attribute) in _LINES.items():
            figures = [getattr(entry, attribute) if entry else None for entry in entries]
            if attribute == "without_warmup" and not any(figures):
                continue
            errors = [
                getattr(entry, errors_attribute) if entry and errors_attribute else None for entry in entries
            ]
            lower = self.table.lower_is_better
            cells = [
                Cell(f, None if e is None or math.isnan(e) else e, difference_class(e, lower))
                for f, e in zip(figures, errors, strict=True)
            ]
            yield attribute, name, cells

    def explained(self, explanation: str) -> list[str]:
        """The cells that an explanation is about, each with what of the grid comes nearest to the paper's figure."""
        places = []
        for entry in self.table.entries:
            if entry.explanation == explanation:
                variant = settings_text(entry.variant)
                place = f"{entry.label} on {entry.data}" + (f" ({variant})" if variant else "")
                places.append(place + (f": {entry.nearest}" if entry.nearest else ""))
        return places


def verdict_counts(entries: Iterable[Entry]) -> Counter[str]:
    """How many entries have each verdict."""
    return Counter(entry.verdict for entry in entries)


@dataclass(frozen=True)
class Overview:
    """A table in the overview: its place, and how many of its entries with a published figure have each verdict."""

    paper: Paper
    section: Section
    table: Table
    counts: Counter[str]
    compared: int

    @property
    def title(self) -> str:
        """The section's title; with the table's, if the section has several."""
        several = len(self.section.tables) > 1
        return f"{self.section.title}: {self.table.title}" if several else self.section.title


def overview(summary: Summary) -> list[Overview]:
    """The tables with published figures."""
    tables = [
        Overview(
            paper,
            section,
            table,
            verdict_counts(table.entries),
            sum(entry.paper is not None for entry in table.entries),
        )
        for paper in summary.papers
        for section in paper.sections
        for table in section.tables
    ]
    return [one for one in tables if one.compared]


Number = tuple[str, float | None]
"""A number as text, and its standard deviation if there is one."""


def chart_numbers(chart: Chart) -> tuple[list[str], list[list[Number]]]:
    """A chart's numbers, as heads and rows: a column per series where all have the same x, else a row per point.

    >>> from kernelstream_reproduce.summary import Series
    >>> lines = [Series("A", [1, 2], [0.5, 0.25]), Series("B", [1, 2], [3, 4], [0.1, 0.1])]
    >>> chart_numbers(Chart("id", "line", "title", "", "x", "y", lines))
    (['x', 'A', 'B'], [[('1', None), ('0.5', None), ('3', 0.1)], [('2', None), ('0.25', None), ('4', 0.1)]])
    """

    def x_of(x: float) -> Number:
        return (chart.categories[int(x)] if chart.kind == "bar" else number(x)), None

    def y_of(value: float, spread: float | None) -> Number:
        return (number(value), spread) if math.isfinite(value) else ("–", None)

    spreads: list[Sequence[float | None]] = [
        series.spread or [None] * len(series.y) for series in chart.series
    ]
    both = list(zip(chart.series, spreads, strict=True))
    if chart.kind != "scatter" and len({tuple(series.x) for series in chart.series}) == 1:
        heads = [chart.x_label, *(series.name for series in chart.series)]
        return heads, [
            [x_of(x), *(y_of(series.y[k], spread[k]) for series, spread in both)]
            for k, x in enumerate(chart.series[0].x)
        ]
    named = any(series.names for series in chart.series)
    heads = ["series", *(["name"] if named else []), chart.x_label, chart.y_label]
    return heads, [
        [
            (series.name, None),
            *([(series.names[k] if series.names else "", None)] if named else []),
            x_of(x),
            y_of(series.y[k], spread[k]),
        ]
        for series, spread in both
        for k, x in enumerate(series.x)
    ]
