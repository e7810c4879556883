"""What the page and the pictures share: colours of series, and sizes of differences."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from kernelstream.experiments.summary import Chart, Entry, Paper, Summary

__all__ = ["COLOURS", "LIMITS", "charts", "deciding", "series_slots", "size", "slug"]

COLOURS = ["#0072b2", "#d55e00", "#008a64", "#b5508c", "#a87000", "#2b8fd0", "#333333", "#7d7400"]
"""Of series: Okabe and Ito's, the light ones darkened until they stand out from white. `page.css` has those of dark mode."""

LIMITS = (1, 3, 6, 12)
"""A difference grows in colour where its size in standard errors passes one of these."""


def size(errors: float | None, lower_is_better: bool) -> str:
    """How a difference is coloured: its direction and how many `LIMITS` it passes; empty if there is none.

    >>> size(-4.2, lower_is_better=True), size(0.5, True), size(40.0, True), size(None, True)
    ('better-2', 'near', 'worse-4', '')
    """
    if errors is None or math.isnan(errors):
        return ""
    passed = sum(abs(errors) > limit for limit in LIMITS)
    if not passed:
        return "near"
    return f"{'better' if (errors < 0) == lower_is_better else 'worse'}-{passed}"


def deciding(entry: Entry) -> float | None:
    """The difference that the verdict rests on."""
    return entry.errors_without_warmup if entry.verdict == "reproduced without warm-up" else entry.errors


def slug(name: str) -> str:
    """A name for files and anchors.

    >>> slug("Table 3: <a9a>")
    'table-3-a9a'
    """
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "unnamed"


def charts(summary: Summary) -> Iterator[tuple[str, Chart, list[int]]]:
    """Every chart with its place among papers, sections and charts ("0.2.1") and the looks of its series."""
    for p, paper in enumerate(summary.papers):
        slots = series_slots(paper)
        for s, section in enumerate(paper.sections):
            for c, chart in enumerate(section.charts):
                place = f"{p}.{s}.{c}"
                yield place, chart, [slots[place.partition(".")[2], series.name] for series in chart.series]


def series_slots(paper: Paper) -> dict[tuple[str, str], int]:
    """The look of each series of each chart: a number, colour and marker in turn.

    A learner looks the same in all charts of a paper, unless that would make two of one chart look alike.

    >>> from kernelstream.experiments.summary import Chart, Section, Series
    >>> def chart(*names): return Chart("", "line", "", "", "", "", [Series(name, [], []) for name in names])
    >>> slots = series_slots(Paper("", "", "", "", [Section("", "", "", "", "", charts=[chart("A", "B"), chart("C", "B")])]))
    >>> slots
    {('0.0', 'A'): 0, ('0.0', 'B'): 1, ('0.1', 'B'): 1, ('0.1', 'C'): 2}
    """
    usual: dict[str, int] = {}
    found: dict[tuple[str, str], int] = {}
    for s, section in enumerate(paper.sections):
        for c, chart in enumerate(section.charts):
            taken: set[int] = set()
            known = [series.name for series in chart.series if series.name in usual]
            for name in known:
                if usual[name] not in taken:
                    found[f"{s}.{c}", name] = usual[name]
                    taken.add(usual[name])
            for series in chart.series:
                if (f"{s}.{c}", series.name) not in found:
                    free = (slot for slot in range(len(taken) + len(usual) + 1) if slot not in taken)
                    unused = [slot for slot in range(len(COLOURS)) if slot not in {*taken, *usual.values()}]
                    slot = unused[0] if unused else next(free)
                    found[f"{s}.{c}", series.name] = slot
                    usual.setdefault(series.name, slot)
                    taken.add(slot)
    return found
