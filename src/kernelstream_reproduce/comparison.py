"""Our results beside the papers' figures: every cell with a verdict."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kernelstream_reproduce.measurements import Run, Runs, figure_of, mean, standard_errors, variant_key
from kernelstream_reproduce.protocols import PROTOCOLS
from kernelstream_reproduce.published import PAPERS, conclusion, explanation, published
from kernelstream_reproduce.store import Store
from kernelstream_reproduce.summary import Entry, Paper, Section, Summary, Table
from kernelstream_reproduce.trials import Cell, Experiment

__all__ = ["summarise"]

FAR = 3.0
"""Standard errors beyond which a figure is not the paper's."""


def summarise(
    experiments: Mapping[str, Experiment], store: Store, provenance: dict[str, str] | None = None
) -> Summary:
    """Tables, charts and claims of the experiments, as far as their trials are among the results."""
    papers = []
    for key, protocol in PROTOCOLS.items():
        sections = []
        for experiment in experiments.values():
            if experiment.paper != key:
                continue
            runs = _runs(experiment, store)
            done = sum(map(len, runs.values()))
            wanted = sum(len(cell.seeds) for cell in experiment.cells)
            sections.append(
                Section(
                    experiment.name,
                    experiment.place,
                    experiment.title,
                    experiment.protocol,
                    f"{done:,} of {wanted:,} runs" if done < wanted else f"complete: {wanted:,} runs",
                    [
                        Table(title, measure, _entries(experiment, runs, store, measure, lower), lower)
                        for title, measure, lower in protocol.tables.get(experiment.name, ())
                    ],
                    protocol.charts(experiment.name, runs),
                    protocol.claims(experiment.name, runs),
                )
            )
        if sections:
            papers.append(Paper(key, **PAPERS[key], sections=sections))
    return Summary(papers, _words(papers), provenance or {})


def _runs(experiment: Experiment, store: Store) -> Runs:
    """The runs that the store has, cell by cell."""
    runs: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for cell in experiment.cells:
        of_cell = []
        for trial in cell.trials(store.results) or []:
            if trial.id in store.results:
                times = store.times.get(trial.id, {})
                of_cell.append(
                    store.results[trial.id]
                    | {"seconds": times.get("seconds"), "seconds_curve": times.get("curve")}
                )
        if of_cell:
            runs[cell.trial.data, cell.name, variant_key(cell.variant)] = of_cell
    return runs


def _entries(experiment: Experiment, runs: Runs, store: Store, measure: str, lower: bool) -> list[Entry]:
    """The cells of a table: those whose trials have the measure, or were not run."""
    entries = []
    for cell in experiment.cells:
        of_cell = runs.get((cell.trial.data, cell.name, variant_key(cell.variant)))
        if of_cell is None or figure_of(of_cell, measure) is not None:
            entries.append(_entry(cell, of_cell or [], store, measure, lower))
    return entries


def _entry(cell: Cell, runs: Sequence[Run], store: Store, measure: str, lower: bool) -> Entry:
    entry = Entry(cell.trial.data, cell.name, dict(cell.variant), ours=figure_of(runs, measure))
    paper = published(
        cell.experiment, cell.trial.data, cell.published or cell.name, dict(cell.variant), measure
    )
    if paper is not None:
        entry.paper, entry.paper_seconds = paper
    if entry.ours is None:
        return entry
    entry.seconds = mean(runs, "seconds")
    chosen = {} if cell.tuning is None else cell.tuning.best(store.results)
    every = [run.get("found", {}) for run in runs]
    same = {name: value for name, value in every[0].items() if all(one.get(name) == value for one in every)}
    entry.settings = {**(chosen or {}), **same}  # what each permutation drew for itself is left out
    if any(run["measures"].get("warmup_rounds") for run in runs):
        entry.without_warmup = figure_of(runs, f"{measure}_without_warmup")
    if entry.paper is None:
        entry.verdict = "no figure"
        return entry
    if cell.trial.rows is not None:
        entry.verdict = "shorter run"
        return entry
    entry.errors = standard_errors(entry.ours, entry.paper)
    if entry.without_warmup is not None:
        entry.errors_without_warmup = standard_errors(entry.without_warmup, entry.paper)
    if abs(entry.errors) <= FAR:
        entry.verdict = "reproduced"
    elif entry.errors_without_warmup is not None and abs(entry.errors_without_warmup) <= FAR:
        entry.verdict = "reproduced without warm-up"
    else:
        entry.verdict = "better" if (entry.errors < 0) == lower else "worse"
    if abs(entry.errors) > FAR:
        entry.explanation = explanation(cell.experiment, entry.data, entry.label, entry.verdict)
        entry.nearest = _nearest(cell, store, measure, entry)
    return entry


def _nearest(cell: Cell, store: Store, measure: str, entry: Entry) -> str:
    """Which point of the grid comes nearest to the paper's figure in tuning, in words."""
    tuning = cell.tuning
    if tuning is None or entry.paper is None or tuning.trial.data != cell.trial.data:
        return ""
    paper, nearest = entry.paper.mean, []
    tried = [
        (point, [store.results[trial.id] for _, trial in trials])
        for point, trials in itertools.groupby(tuning.trials(), key=lambda pair: pair[0])
    ]
    counts = {measure: ""}
    if entry.without_warmup is not None:
        counts[f"{measure}_without_warmup"] = " without warm-up"
    for count, words in counts.items():
        means = ((mean(rows, count), point) for point, rows in tried)
        values = [(value, point) for value, point in means if value is not None]
        if values:
            value, point = min(values, key=lambda pair: abs(pair[0] - paper))
            where = ", ".join(f"{name} = {at:g}" for name, at in point.items())
            nearest.append(f"{value:.4g}{words} ({where})")
    return f"nearest to {paper:g} in tuning: {'; '.join(nearest)}" if nearest else ""


def _words(papers: list[Paper]) -> list[str]:
    """What reproduced and what did not, in plain words: of all papers, then of each."""
    counts = [_counted(paper) for paper in papers]
    verdicts = sum((verdicts for verdicts, _ in counts), Counter[str]())
    claims = sum((claims for _, claims in counts), Counter[str]())
    lead = f"The experiments of {len(papers)} paper{'s' if len(papers) > 1 else ''}, run again by their own protocols. "
    return [lead + _tally(verdicts, claims)] + [
        f"{paper.title} ({paper.venue}). {_tally(*counted)} {conclusion(paper.key)}"
        for paper, counted in zip(papers, counts, strict=True)
    ]


def _counted(paper: Paper) -> tuple[Counter[str], Counter[str]]:
    """Verdicts on figures that the paper gives, and on what it says in words."""
    sections = paper.sections
    entries = [
        e for section in sections for table in section.tables for e in table.entries if e.paper is not None
    ]
    claims = [c for section in sections for c in section.claims if c.place != "not in the paper"]
    return Counter(e.verdict for e in entries), Counter(claim.verdict for claim in claims)


def _tally(verdicts: Counter[str], claims: Counter[str]) -> str:
    parts = []
    if compared := sum(
        verdicts[name] for name in ("reproduced", "reproduced without warm-up", "better", "worse")
    ):
        left_out = verdicts["reproduced without warm-up"]
        aside = (
            f" ({left_out} of them once the warm-up is left out, as published code of this family does)"
            if left_out
            else ""
        )
        parts.append(
            f"Of {compared} comparisons with published figures, {verdicts['reproduced'] + left_out} came out within three "
            f"standard errors{aside}, {verdicts['better']} better and {verdicts['worse']} worse."
        )
    if sum(claims.values()) > claims["not run"]:
        parts.append(
            f"Of what is said in words, {claims['holds']} claims hold in our runs, {claims['holds in part']} in part and "
            f"{claims['does not hold']} do not."
        )
    return " ".join(parts)
