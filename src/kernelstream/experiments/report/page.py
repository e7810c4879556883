"""A summary as one HTML file that needs nothing else: tables are made here, `page.js` draws the charts from the data within."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from itertools import pairwise
from typing import Any

from kernelstream.experiments.report.looks import LIMITS, charts, size, slug
from kernelstream.experiments.summary import (
    VERDICTS,
    Chart,
    Claim,
    Entry,
    Figure,
    Paper,
    Section,
    Summary,
    Table,
)
from kernelstream.files import write_atomically

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
"""Beside the words of verdicts: colour alone says nothing."""

_KINDS = {"paper": "paper", "ours": "all rounds", "without_warmup": "without warm-up"}


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
    drawn = {place: _chart(place, chart, slots) for place, chart, slots in charts(summary)}
    parts = {
        "style": (files / "page.css").read_text(encoding="utf-8"),
        "script": (files / "page.js").read_text(encoding="utf-8"),
        "data": _json(summary),
        "contents": _contents(summary),
        "tiles": _tiles(summary),
        "lead": "\n".join(f"<p>{escape(text)}</p>" for text in summary.words[:1]),
        "words": "\n".join(f"<p>{_with_title(text, summary)}</p>" for text in summary.words[1:]),
        "glance": _glance(summary),
        "legend": _legend(),
        "papers": "\n".join(_paper(paper, p, drawn) for p, paper in enumerate(summary.papers)),
        "made": "\n".join(
            f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>"
            for key, value in summary.made.items()
        ),
    }
    template = (files / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


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


# ---- numbers ----


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _number(value: Any) -> str:
    """A setting or a chart's number, in six digits."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return _minus(f"{value:.6g}") if plain else str(value)


def _data(value: float, shown: str) -> str:
    """A number as shown, which carries the number as it is."""
    return f'<data value="{float(value)!r}">{_minus(shown)}</data>'


def _figure(figure: Figure, decimals: int) -> str:
    spread = f" ± {_data(figure.std, f'{figure.std:.{decimals}f}')}"
    known = figure.std > 0 or (figure.std == 0 and figure.n > 1)
    return (
        f"<span>{_data(figure.mean, f'{figure.mean:.{decimals}f}')}"
        f"{f'<small>{spread}</small>' if known else ''}</span>"
    )


def _errors(errors: float | None) -> str:
    if errors is None or math.isnan(errors):
        return ""
    shown = f"{errors:+.1f}" if abs(errors) < 99.95 else f"{errors:+.0f}"
    shown = "0.0" if abs(errors) < 0.05 else shown
    return f'<small class="errors">{_data(errors, shown.replace("inf", "∞"))} s.e.</small>'


def _decimals(table: Table) -> int:
    """So many that the table's largest figure has four digits."""
    means = [abs(f.mean) for e in table.entries for f in (e.ours, e.paper) if f and math.isfinite(f.mean)]
    largest = max(means, default=0.0)
    return min(6, max(0, 3 - math.floor(math.log10(largest)))) if largest > 0 else 2


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{_data(seconds, f'{seconds:.3g}')} s"


def _settings(settings: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {_number(value)}" for key, value in settings.items())


# ---- the top ----


def _tables(summary: Summary) -> Iterable[tuple[Paper, Section, Table]]:
    return (
        (paper, section, table)
        for paper in summary.papers
        for section in paper.sections
        for table in section.tables
    )


def _counts(entries: Iterable[Entry]) -> Counter[str]:
    return Counter(entry.verdict for entry in entries)


def _class(verdict: str) -> str:
    return "v-" + slug(verdict)


def _bar(counts: Counter[str], label: str) -> str:
    """Shares of verdicts side by side, as long as they are many."""
    parts = "".join(
        f'<span class="{_class(verdict)}" style="flex-grow:{counts[verdict]}"></span>'
        for verdict in VERDICTS
        if counts[verdict]
    )
    text = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    return f'<div class="bar" role="img" aria-label="{escape(f"{label}: {text}")}">{parts}</div>'


def _tiles(summary: Summary) -> str:
    counts = _counts(entry for _, _, table in _tables(summary) for entry in table.entries)
    sections = [section for paper in summary.papers for section in paper.sections]
    claims = [claim for section in sections for claim in section.claims if claim.place != "not in the paper"]
    holds = Counter(claim.verdict for claim in claims)
    both = counts["reproduced"] + counts["reproduced without warm-up"]
    tiles: list[tuple[str, int | str, str, str]] = [
        (
            "v-reproduced",
            both,
            "cells reproduced",
            f"{counts['reproduced without warm-up']} of them without warm-up",
        ),
        ("v-better", counts["better"], "better than the paper", "by more than 3 standard errors"),
        ("v-worse", counts["worse"], "worse than the paper", "by more than 3 standard errors"),
        (
            "v-not-run",
            counts["not run"],
            "not run",
            f"{counts['no figure']} more without a figure in the paper",
        ),
    ]
    if claims:
        note = f"{holds['holds in part']} in part, {holds['does not hold']} not, {holds['not run']} not run"
        tiles.append(("v-claims", f"{holds['holds']} <small>of {len(claims)}</small>", "claims hold", note))
    shown = "\n".join(
        f'<li class="tile {kind}"><strong>{value}</strong><span>{text}</span><small>{note}</small></li>'
        for kind, value, text, note in tiles
    )
    return f'<ul class="tiles">{shown}</ul>\n{_bar(counts, "All cells")}'


def _with_title(text: str, summary: Summary) -> str:
    """A paragraph; a paper's title at its beginning stands out."""
    for paper in summary.papers:
        if text.startswith(paper.title):
            return f"<strong>{escape(paper.title)}</strong>{escape(text.removeprefix(paper.title))}"
    return escape(text)


def _titled(section: Section, table: Table) -> str:
    """The section's title; with the table's, if it has several."""
    return section.title if len(section.tables) == 1 else f"{section.title}: {table.title}"


def _glance(summary: Summary) -> str:
    rows = []
    for paper, section, table in _tables(summary):
        counts = _counts(table.entries)
        good = counts["reproduced"] + counts["reproduced without warm-up"]
        asked = sum(entry.paper is not None for entry in table.entries)
        if not asked:
            continue
        rows.append(
            f'<tr><th scope="row"><small>{escape(f"{paper.venue}, {section.place}")}</small>'
            f'<a href="#{slug(section.name)}">{escape(_titled(section, table))}</a></th>'
            f"<td>{_bar(counts, table.title)}</td><td>{good} of {asked}</td>"
            f"<td>{counts['better']}</td><td>{counts['worse']}</td></tr>"
        )
    heads = "".join(
        f'<th scope="col">{text}</th>' for text in ("table", "cells", "reproduced", "better", "worse")
    )
    if not rows:
        return ""
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Tables at a glance"><table class="glance">'
        f"<caption><span>Tables at a glance</span></caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _legend() -> str:
    names = [f"≤ {LIMITS[0]}", *(f"{a}–{b}" for a, b in pairwise(LIMITS)), f"> {LIMITS[-1]}"]
    steps = range(1, len(LIMITS) + 1)
    swatches = "".join(
        f'<li class="{look}">{names[n]}<small>{word}</small></li>'
        for look, word, n in [
            *((f"better-{n}", "better", n) for n in reversed(steps)),
            ("near", "same", 0),
            *((f"worse-{n}", "worse", n) for n in steps),
        ]
    )
    verdicts = "".join(
        f'<div><dt><span class="mark" aria-hidden="true">{SIGNS[name]}</span> {name}</dt><dd>{text}</dd></div>'
        for name, text in VERDICTS.items()
    )
    return (
        f'<ul class="scale" aria-label="Colours of differences in standard errors">{swatches}</ul>'
        f'<dl class="pairs">{verdicts}</dl>'
    )


def _contents(summary: Summary) -> str:
    items = []
    for p, paper in enumerate(summary.papers):
        inner = "".join(
            f'<li><a href="#{slug(section.name)}"><b>{escape(section.place)}</b> {escape(section.title)}</a></li>'
            for section in paper.sections
        )
        items.append(f'<li><a href="#paper-{p}">{escape(paper.title)}</a><ul>{inner}</ul></li>')
    return "\n".join(items)


# ---- papers ----


def _paper(paper: Paper, p: int, drawn: dict[str, str]) -> str:
    sections = "\n".join(_section(section, f"{p}.{s}", drawn) for s, section in enumerate(paper.sections))
    return (
        f'<section class="paper" id="paper-{p}"><h2>{escape(paper.title)}</h2>'
        f'<p class="by">{escape(paper.authors)} · {escape(paper.venue)}</p>\n{sections}</section>'
    )


def _section(section: Section, place: str, drawn: dict[str, str]) -> str:
    tables = "\n".join(
        _table(table, slug(section.name), t, f"{place}.{t}") for t, table in enumerate(section.tables)
    )
    pictures = "\n".join(drawn[f"{place}.{c}"] for c in range(len(section.charts)))
    claims = "".join(_claim(claim) for claim in section.claims)
    return (
        f'<section id="{slug(section.name)}"><h3><span class="place">{escape(section.place)}</span> '
        f'{escape(section.title)}</h3><p class="complete">{escape(section.complete)}</p>'
        f'<details class="protocol"><summary>How it was run</summary><p>{escape(section.protocol)}</p></details>\n'
        + (f'<h4>What the paper says</h4><ul class="claims">{claims}</ul>\n' if claims else "")
        + f"{tables}\n"
        + (f'<div class="charts">{pictures}</div>' if pictures else "")
        + "</section>"
    )


def _claim(claim: Claim) -> str:
    return (
        f'<li><span class="badge v-{slug(claim.verdict)}">{SIGNS[claim.verdict]} {escape(claim.verdict)}</span>'
        f'<p>{escape(claim.text)} <span class="where">{escape(claim.place)}</span></p>'
        f'<p class="evidence">{escape(claim.evidence)}</p></li>'
    )


# ---- tables ----


def _table(table: Table, section: str, t: int, place: str) -> str:
    """Rows of a learner: the paper's figures, ours in each way of counting, verdicts. Columns: data sets and variants."""
    name = f"{section}-t{t}"
    decimals = _decimals(table)
    columns: dict[tuple[str, str], None] = {}
    learners: dict[str, dict[tuple[str, str], Entry]] = {}
    for entry in table.entries:
        column = (entry.data, _settings(entry.variant))
        columns[column] = None
        row = learners.setdefault(entry.label, {})
        if column in row:
            raise ValueError(f"table {table.title!r} has two entries for {entry.label!r} and {column}")
        row[column] = entry
    order = [
        column
        for data in dict.fromkeys(data for data, _ in columns)
        for column in columns
        if column[0] == data
    ]
    notes = {
        text: n
        for n, text in enumerate(dict.fromkeys(e.explanation for e in table.entries if e.explanation), 1)
    }
    bodies = "\n".join(
        _learner(label, [row.get(column) for column in order], table, decimals, notes, name)
        for label, row in learners.items()
    )
    caption = (
        f"{escape(table.title)} <small>{escape(table.measure)}, "
        f"{'lower' if table.lower_is_better else 'higher'} is better; mean ± standard deviation</small>"
    )
    return (
        f'<div class="table" data-table="{place}"><div class="scroll" tabindex="0" role="region" aria-labelledby="{name}">'
        f'<table class="results"><caption id="{name}"><span>{caption}</span></caption>{_heads(order)}{bodies}</table></div>'
        f"{_notes(notes, table, name)}</div>"
    )


def _heads(order: list[tuple[str, str]]) -> str:
    datas = Counter(data for data, _ in order)
    varied = any(variant for _, variant in order)
    first = "".join(
        f'<th scope="{"colgroup" if n > 1 else "col"}" colspan="{n}"><span>{escape(data)}</span></th>'
        for data, n in datas.items()
    )
    second = "".join(f'<th scope="col">{escape(variant)}</th>' for _, variant in order)
    return (
        f'<thead><tr><td rowspan="{1 + varied}"></td>{first}</tr>'
        f"{f'<tr>{second}</tr>' if varied else ''}</thead>"
    )


def _learner(
    label: str, row: list[Entry | None], table: Table, decimals: int, notes: dict[str, int], name: str
) -> str:
    lines = []
    for kind, words in _KINDS.items():
        figures: list[Figure | None] = [getattr(entry, kind) if entry else None for entry in row]
        if kind == "without_warmup" and not any(figures):
            continue
        cells = []
        for entry, figure in zip(row, figures, strict=True):
            errors = {"ours": "errors", "without_warmup": "errors_without_warmup"}.get(kind)
            off = getattr(entry, errors) if entry and errors else None
            look = size(off, table.lower_is_better)
            cells.append(
                f'<td class="{look}">{_figure(figure, decimals) + _errors(off) if figure else "–"}</td>'
            )
        lines.append(f'<tr class="{kind}"><th scope="row">{words}</th>{"".join(cells)}</tr>')
    verdicts = "".join(f"<td>{_verdict(entry, notes, name) if entry else ''}</td>" for entry in row)
    return (
        f'<tbody><tr class="learner"><th scope="rowgroup" colspan="{len(row) + 1}"><span>{escape(label)}</span></th></tr>'
        f'{"".join(lines)}<tr class="verdict"><th scope="row">verdict</th>{verdicts}</tr></tbody>'
    )


def _verdict(entry: Entry, notes: dict[str, int], name: str) -> str:
    first, _, rest = entry.verdict.replace("reproduced without", "without").partition(" ")
    shown = (
        f'<span class="first-word"><span class="mark" aria-hidden="true">{SIGNS[entry.verdict]}</span>&nbsp;{first}</span>'
        f"{rest and ' ' + rest}"
    )
    number = notes.get(entry.explanation)
    note = (
        f' <a class="note" href="#{name}-n{number}" aria-label="explanation {number}">[{number}]</a>'
        if number
        else ""
    )
    facts = [
        ("runs", f"{entry.ours.n}" if entry.ours else ""),
        ("paper’s runs", f"{entry.paper.n}" if entry.paper else ""),
        ("time", _seconds(entry.seconds)),
        ("paper’s time", _seconds(entry.paper_seconds)),
        *((key, escape(_number(value))) for key, value in entry.settings.items()),
    ]
    listed = "".join(f"<div><dt>{escape(key)}</dt><dd>{value}</dd></div>" for key, value in facts if value)
    if not listed:
        return f"{shown}{note}"
    return f"<details><summary>{shown}</summary><dl>{listed}</dl></details>{note}"


def _notes(notes: dict[str, int], table: Table, name: str) -> str:
    """Explanations, equal ones once, each with the cells that it explains and what of the grid comes nearest there."""
    items = []
    for text, number in notes.items():
        cells = []
        for entry in table.entries:
            if entry.explanation == text:
                variant = _settings(entry.variant)
                where = f"{entry.label} on {entry.data}" + (f" ({variant})" if variant else "")
                cells.append(f"<li>{escape(where + (f': {entry.nearest}' if entry.nearest else ''))}</li>")
        items.append(
            f'<li id="{name}-n{number}">{escape(text)}<details><summary>{len(cells)} '
            f"cell{'s' if len(cells) > 1 else ''}</summary><ul>{''.join(cells)}</ul></details></li>"
        )
    return f'<h4 class="why">Why it differs</h4><ol class="notes">{"".join(items)}</ol>' if items else ""


# ---- charts ----


def _chart(place: str, chart: Chart, slots: list[int]) -> str:
    name = f"chart-{slug(chart.id)}"
    return (
        f'<figure class="chart" id="{name}" data-chart="{place}" data-slots="{",".join(map(str, slots))}">'
        f"<h4>{escape(chart.title)}</h4>"
        '<div class="drawing"><p>The drawing needs JavaScript; its numbers are below.</p></div>'
        f"<figcaption>{escape(chart.caption)}</figcaption>"
        '<details class="numbers"><summary>Show the numbers</summary><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(chart.title)}: the numbers">{_numbers(chart)}</div></details></figure>'
    )


def _numbers(chart: Chart) -> str:
    """A chart's numbers: a column a series where all have the same x, else a row a point."""

    def shown(value: float, spread: float | None) -> str:
        if not math.isfinite(value):
            return "–"
        return _number(value) + (f" <small>± {spread:.3g}</small>" if spread is not None else "")

    def cell(tag: str, text: str) -> str:
        return f'<th scope="{tag}">{text}</th>' if tag in ("row", "col") else f"<td>{text}</td>"

    spreads: list[Sequence[float | None]] = [
        series.spread or [None] * len(series.y) for series in chart.series
    ]
    if chart.kind != "scatter" and len({tuple(series.x) for series in chart.series}) == 1:
        heads = [chart.x_label, *(series.name for series in chart.series)]
        rows = [
            [
                escape(chart.categories[int(x)]) if chart.kind == "bar" else _number(x),
                *(
                    shown(series.y[k], spread[k])
                    for series, spread in zip(chart.series, spreads, strict=True)
                ),
            ]
            for k, x in enumerate(chart.series[0].x)
        ]
    else:
        named = any(series.names for series in chart.series)
        heads = ["series", *(["name"] if named else []), chart.x_label, chart.y_label]
        rows = [
            [
                escape(series.name),
                *([escape(series.names[k] if series.names else "")] if named else []),
                escape(chart.categories[int(x)]) if chart.kind == "bar" else _number(x),
                shown(series.y[k], spread[k]),
            ]
            for series, spread in zip(chart.series, spreads, strict=True)
            for k, x in enumerate(series.x)
        ]
    head = "".join(cell("col", escape(text)) for text in heads)
    body = "\n".join(
        f"<tr>{cell('row', row[0])}{''.join(cell('td', text) for text in row[1:])}</tr>" for row in rows
    )
    return (
        f"<table><caption><span>{escape(chart.title)}: {escape(chart.y_label)}</span></caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
