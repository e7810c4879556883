"""A summary as one HTML file that needs nothing else: the templates make the tables, `page.js` draws the charts."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections import Counter
from importlib import resources
from itertools import pairwise
from typing import Any

import jinja2
from markupsafe import Markup

from kernelstream.files import write_atomically
from kernelstream_reproduce.report import numbers
from kernelstream_reproduce.report.style import LIMITS, charts, slug
from kernelstream_reproduce.report.tables import ResultTable, chart_numbers, overview, verdict_counts
from kernelstream_reproduce.summary import VERDICTS, Summary

__all__ = ["page", "write_page"]

SIGNS = {
    "reproduced": "✓",
    "reproduced without warm-up": "✓",
    "better": "▲",
    "worse": "▼",
    "no figure": "·",
    "shorter run": "·",
    "not run": "–",
    "holds": "✓",
    "holds in part": "◐",
    "does not hold": "✗",
}
"""Shown beside the words of verdicts, for readers who do not see the colours."""


def write_page(summary: Summary, path: str | os.PathLike[str]) -> None:
    """Write the page to a file, wholly or not at all.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_page(Summary([], ["Nothing was run."], {}), f"{folder}/report.html")
    ...     "Nothing was run." in pathlib.Path(folder, "report.html").read_text(encoding="utf-8")
    True
    """
    write_atomically(path, page(summary).encode())


def page(summary: Summary) -> str:
    """The page as text.

    >>> page(Summary([], ["Fewer than 3 < 4 cells."], {})).count("3 &lt; 4 cells")
    1
    """
    files = resources.files(__package__)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {name: getattr(numbers, name) for name in numbers.__all__}
    environment.filters |= {"slug": slug, "exact": lambda value: repr(float(value))}
    environment.globals |= {
        "signs": SIGNS,
        "verdicts": VERDICTS,
        "arrange": ResultTable,
        "chart_numbers": chart_numbers,
        "charts": {place: (chart, styles) for place, chart, styles in charts(summary)},
    }
    sections = [section for paper in summary.papers for section in paper.sections]
    claims = [claim for section in sections for claim in section.claims if claim.place != "not in the paper"]
    return environment.get_template("page.html").render(
        summary=summary,
        style=Markup((files / "page.css").read_text(encoding="utf-8")),
        script=Markup((files / "page.js").read_text(encoding="utf-8")),
        data=Markup(_json(summary)),
        counts=verdict_counts(entry for section in sections for t in section.tables for entry in t.entries),
        claims=Counter(claim.verdict for claim in claims),
        overview=overview(summary),
        paragraphs=[_after_title(text, summary) for text in summary.words[1:]],
        legend=_legend(),
    )


def _json(summary: Summary) -> str:
    """The data, such that no text within can end the script element; JSON has no NaN."""
    text = json.dumps(_finite(dataclasses.asdict(summary)), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _after_title(text: str, summary: Summary) -> tuple[str, str]:
    """The title of a paper at the beginning of a paragraph, or "", and the rest."""
    title = next((paper.title for paper in summary.papers if text.startswith(paper.title)), "")
    return title, text.removeprefix(title)


def _legend() -> list[tuple[str, str, str]]:
    """The colours of differences: CSS class, range of standard errors, word."""
    ranges = [f"≤ {LIMITS[0]}", *(f"{a}–{b}" for a, b in pairwise(LIMITS)), f"> {LIMITS[-1]}"]
    steps = range(1, len(LIMITS) + 1)
    return [
        *((f"better-{n}", ranges[n], "better") for n in reversed(steps)),
        ("near", ranges[0], "same"),
        *((f"worse-{n}", ranges[n], "worse") for n in steps),
    ]
