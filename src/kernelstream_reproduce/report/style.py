"""What the page and the pictures share: colours of series, and sizes of differences."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator

from kernelstream_reproduce.summary import Chart, Entry, Summary

__all__ = ["COLOURS", "LIMITS", "charts", "deciding_difference", "difference_class", "styles", "slug"]

COLOURS = ["#0072b2", "#d55e00", "#008a64", "#b5508c", "#a87000", "#2b8fd0", "#767b82", "#7d7400"]
"""Of series, those of `kernelstream/pictures.mplstyle`. `page.css` has those of dark mode."""

LIMITS = (1, 3, 6, 12)
"""A difference grows in colour where its size in standard errors passes one of these."""


def difference_class(errors: float | None, lower_is_better: bool) -> str:
    """The CSS class of a difference: its direction and how many `LIMITS` it passes; empty if there is none.

    >>> [difference_class(errors, lower_is_better=True) for errors in (-4.2, 0.5, 40.0, None)]
    ['better-2', 'near', 'worse-4', '']
    """
    if errors is None or math.isnan(errors):
        return ""
    passed = sum(abs(errors) > limit for limit in LIMITS)
    if not passed:
        return "near"
    return f"{'better' if (errors < 0) == lower_is_better else 'worse'}-{passed}"


def deciding_difference(entry: Entry) -> float | None:
    """The difference that the verdict rests on."""
    return entry.errors_without_warmup if entry.verdict == "reproduced without warm-up" else entry.errors


def slug(name: str) -> str:
    """A name for files and anchors.

    >>> slug("Table 3: <a9a>")
    'table-3-a9a'
    """
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.") or "unnamed"


def charts(summary: Summary) -> Iterator[tuple[str, Chart, list[int]]]:
    """Every chart with its place among papers, sections and charts ("0.2.1") and the style of its series (see `styles`)."""
    for p, paper in enumerate(summary.papers):
        usual: dict[str, int] = {}
        for s, section in enumerate(paper.sections):
            for c, chart in enumerate(section.charts):
                yield f"{p}.{s}.{c}", chart, styles([series.name for series in chart.series], usual)


def styles(names: list[str], usual: dict[str, int]) -> list[int]:
    """The styles of a chart's series: numbers, each for a colour and a marker; those past the colours are dashed.

    A learner keeps the style it has in earlier charts (`usual`), unless two series of one chart would share it.

    >>> usual = {}
    >>> styles(["A", "B"], usual), styles(["C", "B"], usual), styles(["A", "C"], usual)
    ([0, 1], [2, 1], [0, 2])
    """
    chosen: dict[str, int] = {}
    for name in names:
        if name in usual and usual[name] not in chosen.values():
            chosen[name] = usual[name]
    for name in names:
        if name not in chosen:
            new = (style for style in range(len(COLOURS)) if style not in {*chosen.values(), *usual.values()})
            free = (style for style in itertools.count() if style not in chosen.values())
            chosen[name] = next(itertools.chain(new, free))
            usual.setdefault(name, chosen[name])
    return [chosen[name] for name in names]
