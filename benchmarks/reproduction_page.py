"""The results of `kernelstream reproduce` as a page of Markdown with pictures.

python benchmarks/reproduction_page.py REPRODUCTION_FOLDER docs/results/reproduction
"""

from __future__ import annotations

import argparse
import gzip
import shutil
from collections import Counter
from pathlib import Path

from kernelstream_reproduce.comparison import summarise
from kernelstream_reproduce.protocols import all_experiments
from kernelstream_reproduce.store import Store
from kernelstream_reproduce.summary import Entry, Figure, Section, Summary, Table

PICTURES = (
    "overview",
    "skegd-table2-errors",
    "skegd-table3-a9a",
    "skegd-table3-time",
    "skegd-table4-german-1",
    "skegd-bandwidths-svmguide3",
    "skegd-bandwidths-kernel-svmguide3",
    "okssil-table2-mushrooms",
    "okssil-table2-time",
)
"""Those on the page, beside all of NOLANA's and KONS's figures; the others are in the report."""

HEAD = """# The papers' experiments, ours beside theirs

Made by `kernelstream reproduce`, then `python benchmarks/reproduction_page.py reproduction docs/results/reproduction`.
[results.jsonl.gz](results.jsonl.gz) has every run with its seed, settings, version and CPU level,
[times.jsonl.gz](times.jsonl.gz) the processor seconds: `pandas.read_json("results.jsonl.gz", lines=True)`. To make
the interactive report of them, unpack both into a folder and run `kernelstream reproduce --out FOLDER`, which finds
nothing left to do.

Figures are mean ± standard deviation. "s.e." is the difference in standard errors. Verdicts: *reproduced*, within
three standard errors; *reproduced without warm-up*, within three when the mistakes made before the learner's map
exists are left out, as published code of this family does; *better* or *worse*, beyond three. Many of the papers'
deviations are so small that a tenth of a point is beyond three standard errors.

![All cells](overview.png)
"""


def figure(value: Figure | None, style: str) -> str:
    if value is None:
        return ""
    if value.std != value.std:
        return f"{value.mean:{style}}"
    return f"{value.mean:{style}} ± {value.std:{style}}"


def style_of(table: Table) -> str:
    return {"relative_error": ".2g", "moves": ".0f"}.get(table.measure, ".2f")


def line(entry: Entry, notes: dict[str, int], style: str) -> list[str]:
    errors = "" if entry.errors is None else f"{entry.errors:+.1f}"
    without = "" if entry.errors_without_warmup is None else f"{entry.errors_without_warmup:+.1f}"
    note = ""
    if entry.explanation:
        note = f" [{notes.setdefault(entry.explanation, len(notes) + 1)}]"
    variant = ", ".join(f"{name} = {value}" for name, value in entry.variant.items())
    runs = "" if entry.ours is None else str(entry.ours.n)
    return [
        entry.data, variant, entry.label, figure(entry.paper, style), figure(entry.ours, style), errors,
        figure(entry.without_warmup, style), without, runs, entry.verdict + note,
    ]  # fmt: skip


def table_of(table: Table, notes: dict[str, int]) -> str:
    heads = [
        "data",
        "setting",
        "learner",
        "paper",
        "ours, all rounds",
        "s.e.",
        "ours, without warm-up",
        "s.e.",
        "runs",
        "verdict",
    ]
    body = [line(entry, notes, style_of(table)) for entry in table.entries]
    kept = [i for i, head in enumerate(heads) if any(row[i] for row in body)]
    rows = [heads, ["---"] * len(heads), *body]
    return "\n".join("| " + " | ".join(row[i] for i in kept) + " |" for row in rows)


def explained(summary: Summary) -> str:
    """How many of the figures that did not come out have an explanation, in words."""
    sections = [section for paper in summary.papers for section in paper.sections]
    entries = [entry for section in sections for table in section.tables for entry in table.entries]
    notes = [entry.explanation for entry in entries if entry.explanation]
    unknown, partly = (
        sum(words in note.lower() for note in notes) for words in ("not explained", "explained in part")
    )
    return (
        f"{len(notes)} figures are beyond three standard errors when all rounds count. "
        f"For {len(notes) - unknown - partly} of them the notes below say what they come from, for {partly} in part; "
        f"for {unknown} this is not known, and the notes say what was tried. "
        "[Settings that the papers do not give](../verdicts.md) has the runs behind many of the notes."
    )


def section_of(section: Section, pictures: Path, out: Path) -> str:
    parts = [
        f"### {section.place}: {section.title}",
        f"`kernelstream reproduce {section.name}`, {section.complete}.",
        section.protocol,
    ]
    for table in section.tables:
        notes: dict[str, int] = {}
        parts += [f"**{table.title}**", table_of(table, notes)]
        parts.append("\n".join(f"{number}. {text}" for text, number in notes.items()))
    for claim in section.claims:
        parts.append(f"- **{claim.verdict}** ({claim.place}): {claim.text} {claim.evidence}".rstrip())
    for chart in section.charts:
        name = f"{chart.id}.png"
        if (chart.id in PICTURES or section.name.startswith(("nolana", "kons"))) and (
            pictures / name
        ).exists():
            shutil.copy(pictures / name, out / name)
            parts.append(f"![{chart.title}]({name})")
    text = "\n\n".join(part for part in parts if part)
    return text.replace("\n\n- **", "\n- **")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    pictures = given.folder / "pictures"
    store = Store(given.folder)
    summary = summarise(all_experiments(), store)
    shutil.copy(pictures / "overview.png", given.out / "overview.png")
    for name in ("results.jsonl", "times.jsonl"):
        packed = gzip.compress((given.folder / name).read_bytes(), mtime=0)
        (given.out / f"{name}.gz").write_bytes(packed)
    levels = Counter(row["cpu"] for row in store.results.values())
    parts = [
        HEAD,
        f"{len(store.results):,} runs, CPU level {', '.join(levels)}.",
        *summary.words,
        explained(summary),
    ]
    for paper in summary.papers:
        parts.append(f"## {paper.title}\n\n{paper.authors}, {paper.venue}.")
        parts += [section_of(section, pictures, given.out) for section in paper.sections]
    (given.out / "README.md").write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
