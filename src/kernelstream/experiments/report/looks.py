"""What the page and the pictures share: colours of series, and sizes of differences."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator

from kernelstream.experiments.summary import Chart, Entry, Summary

__all__ = ["COLOURS", "LIMITS", "charts", "deciding", "size", "slots", "slug"]

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
    """Every chart with its place among papers, sections and charts ("0.2.1") and the looks of its series (see `slots`)."""
    for p, paper in enumerate(summary.papers):
        usual: dict[str, int] = {}
        for s, section in enumerate(paper.sections):
            for c, chart in enumerate(section.charts):
                yield f"{p}.{s}.{c}", chart, slots([series.name for series in chart.series], usual)


def slots(names: list[str], usual: dict[str, int]) -> list[int]:
    """How the series of a chart look: numbers, each a colour and a marker; those past the colours are dashed.

    A learner looks as usual, that is, as in the charts before, unless two of one chart would look alike.

    >>> usual = {}
    >>> slots(["A", "B"], usual), slots(["C", "B"], usual), slots(["A", "C"], usual)
    ([0, 1], [2, 1], [0, 2])
    """
    found: dict[str, int] = {}
    for name in names:
        if name in usual and usual[name] not in found.values():
            found[name] = usual[name]
    for name in names:
        if name not in found:
            new = (slot for slot in range(len(COLOURS)) if slot not in {*found.values(), *usual.values()})
            free = (slot for slot in itertools.count() if slot not in found.values())
            found[name] = next(itertools.chain(new, free))
            usual.setdefault(name, found[name])
    return [found[name] for name in names]
