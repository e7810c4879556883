"""Makes the README's two pictures and its table of evidence from the stored runs; nothing is measured.

    python benchmarks/readme.py

The picture of peers and the table come from docs/results/default.jsonl (`python benchmarks/default`), the picture of the papers
from docs/results/reproduction (`kernelstream reproduce`). Each picture is drawn twice, for light and for dark pages.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import median
from types import SimpleNamespace

import matplotlib

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(Path(__file__).parent / "default"))

from page import OURS, Cells, geometric
from running import read

matplotlib.use("agg")
from matplotlib import pyplot

INK = {"light": ("#24292f", "#57606a"), "dark": ("#e6edf3", "#9da7b3")}
# Name in the runs, name shown, whose package it is.
PEERS = {
    "1-NN": ("1-NN", "k-NN"),
    "5-NN": ("5-NN", "k-NN"),
    "10-NN": ("10-NN", "k-NN"),
    "SGD": ("SGD", "scikit-learn"),
    "Nystroem + SGD": ("Nystroem, SGD", "scikit-learn"),
    "River linear": ("River linear", "River"),
    "River AMF": ("River AMF", "River"),
    "River ARF": ("River ARF", "River"),
    "VW linear": ("Vowpal Wabbit", "Vowpal Wabbit"),
    "CapyMOA SGBT": ("CapyMOA SGBT", "CapyMOA"),
    "CapyMOA ARF": ("CapyMOA ARF", "CapyMOA"),
    "CapyMOA SRP": ("CapyMOA SRP", "CapyMOA"),
}
COLOURS = {
    "kernelstream": "#d55e00", "k-NN": "#8b8f96", "scikit-learn": "#2b8fd0", "River": "#009e73",
    "Vowpal Wabbit": "#b5508c", "CapyMOA": "#a87000",
}  # fmt: skip

# Where a label may stand beside its dot, in points; the first place that is free is taken.
PLACES = [
    (8, 0, "left"), (-8, 0, "right"), (8, 9, "left"), (8, -9, "left"), (-8, 9, "right"), (-8, -9, "right"),
    (8, 17, "left"), (8, -17, "left"),
]  # fmt: skip


def evidence():
    """Per contender: streams, its error over ours, on how many it errs less, microseconds and bytes, version; ours first."""
    page = (
        (ROOT / "docs/results/default.md")
        .read_text(encoding="utf-8")
        .partition("\n## Error\n")[2]
        .partition("\n## ")[0]
    )
    streams = {  # by name, with the number of classes: 0 where the page says RMSE, else any other number will do
        name: SimpleNamespace(classes=0 if "RMSE" in about else 2)
        for name, about in re.findall(r"^\| (.+?)\*? \(([\d,]+.*?)\) \|", page, re.M)
    }
    stored = {key: row for key, row in read(ROOT / "docs/results/default.jsonl").items() if key[0] in streams}
    cells = Cells(stored, streams.__getitem__)
    shown = [name for name in streams if (name, OURS) in cells]
    micros = geometric(cells[name, OURS].mean("micros") for name in shown)
    found = {}
    for contender in (OURS, *PEERS):
        ratio = {name: r for name in shown if (r := cells.over(name, contender, OURS)) is not None}
        if not ratio:
            continue
        # Time, too, is compared on the streams that both ran, then told in units of ours over all streams.
        slower = geometric(
            cells[name, contender].mean("micros") / cells[name, OURS].mean("micros") for name in ratio
        )
        found[contender] = (
            len(ratio),
            geometric(ratio.values()),
            None if contender == OURS else sum(r < 1 for r in ratio.values()),
            slower * micros,
            median(cells[name, contender].mean("nbytes") for name in ratio),
            version(stored, contender),
        )
    return found


def version(stored, contender):
    """The latest version that ran."""
    return sorted({row["version"] for key, row in stored.items() if key[1] == contender})[-1]


def size(n):
    """Bytes for people."""
    return f"{n / 1e6:.1f} MB" if n >= 1e6 else f"{n / 1e3:.0f} kB" if n >= 1e4 else f"{n / 1e3:.1f} kB"


def table(found):
    lines = [
        "| | streams | its error over ours | errs less than ours on | µs per row | memory, median | version |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for name, (streams, ratio, less, micros, nbytes, of) in found.items():
        shown = "**kernelstream, the default**" if name == OURS else PEERS[name][0]
        where = "" if less is None else str(less)
        lines.append(
            f"| {shown} | {streams} | {ratio:.2f} | {where} | {micros:,.0f} | {size(nbytes)} | {of.replace('numpy', 'NumPy')} |"
        )
    return "\n".join(lines)


def peers_picture(found, ink, grey):
    figure, axes = pyplot.subplots(figsize=(7.6, 4.3))
    placed = []
    for name, (_, ratio, _, micros, _, _) in sorted(found.items(), key=lambda item: item[1][1]):
        ours = name == OURS
        shown, package = ("kernelstream", "kernelstream") if ours else PEERS[name]
        axes.scatter(micros, ratio, s=130 if ours else 42, color=COLOURS[package], zorder=4 if ours else 3,
                     marker="*" if ours else "o", linewidths=0)  # fmt: skip
        placed.append((micros, ratio, shown, ours, COLOURS[package]))
    axes.set_xscale("log")
    axes.set_ylim(0.85, max(p[1] for p in placed) * 1.07)
    axes.set_xlim(min(p[0] for p in placed) / 1.6, max(p[0] for p in placed) * 4)
    axes.axhline(1, color=grey, linewidth=0.8, linestyle=(0, (3, 3)), zorder=1)
    axes.yaxis.set_major_locator(matplotlib.ticker.MultipleLocator(0.5))
    axes.set_xlabel("processor time per row, microseconds (log scale; left is faster)")
    axes.set_ylabel("error, times ours (lower is better)")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    figure.canvas.draw()
    taken = []
    for micros, ratio, shown, ours, colour in placed:
        at = axes.transData.transform((micros, ratio))
        for dx, dy, side in [(8, -11, "left")] if ours else PLACES:
            width = 6.1 * len(shown) * (1.15 if ours else 1)
            left = at[0] + dx * 1.4 if side == "left" else at[0] + dx * 1.4 - width
            box = (left, at[1] + dy * 1.4 - 7, left + width, at[1] + dy * 1.4 + 7)
            dots = [axes.transData.transform((p[0], p[1])) for p in placed]
            free = all(box[2] < b[0] or b[2] < box[0] or box[3] < b[1] or b[3] < box[1] for b in taken)
            clear = not any(box[0] - 4 < x < box[2] + 4 and box[1] - 4 < y < box[3] + 4 for x, y in dots)
            if free and clear:
                break
        taken.append(box)
        axes.annotate(shown, (micros, ratio), (dx, dy), textcoords="offset points", ha=side, va="center",
                      color=colour if not ours else ink, fontsize=11 if ours else 9,
                      fontweight="bold" if ours else "normal")  # fmt: skip
    return figure


def papers_picture(ink, grey):
    """Per paper: how many of its figures came out, how many of ours are better, how many worse."""
    shares = comparisons()
    figure, axes = pyplot.subplots(figsize=(7.6, 0.62 * len(shares) + 1.15))
    kinds = {"agree": ("#009e73", "within three standard errors"), "better": ("#2b8fd0", "ours is better"),
             "worse": ("#d55e00", "ours is worse")}  # fmt: skip
    for row, counts in enumerate(reversed(shares.values())):
        left = 0.0
        for kind, (colour, _) in kinds.items():
            share = 100 * counts[kind] / sum(counts.values())
            axes.barh(row, share, left=left, color=colour, height=0.62)
            if share > 4:
                axes.text(
                    left + share / 2,
                    row,
                    str(counts[kind]),
                    ha="center",
                    va="center",
                    color="white",
                    fontsize=10,
                )
            left += share
    axes.set_yticks(range(len(shares)), list(reversed(shares)))
    axes.set_xlim(0, 100)
    axes.set_xlabel("share of the published figures that we ran again, per cent")
    axes.grid(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0)
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=colour) for colour, _ in kinds.values()]
    figure.legend(
        handles,
        [said for _, said in kinds.values()],
        loc="outside upper center",
        ncols=3,
        handlelength=1,
        handleheight=1,
    )
    return figure


def comparisons():
    """The verdicts of the stored reproduction, by paper."""
    text = (ROOT / "docs/results/reproduction/README.md").read_text(encoding="utf-8")
    found = re.findall(
        r"^([A-Z][^\n]*?) \((?:[A-Z]+ )?(\d{4})\)\. Of (\d+) comparisons with published figures, (\d+) came out within three "
        r"standard errors[^,]*(?:\([^)]*\))?, (\d+) better and (\d+) worse",
        text, re.M)  # fmt: skip
    names = {"Incremental": "SkeGD", "Nonlinear": "NOLANA", "Hypothesis": "OKS-SIL"}
    return {
        f"{names.get(title.split()[0], title)} ({year})": {
            "agree": int(agree),
            "better": int(better),
            "worse": int(worse),
        }
        for title, year, _, agree, better, worse in found
    }


def draw(name, make):
    for mode, (ink, grey) in INK.items():
        with pyplot.style.context("kernelstream.pictures"), matplotlib.rc_context({
            "text.color": ink, "axes.labelcolor": ink, "xtick.color": ink, "ytick.color": ink,
            "axes.edgecolor": grey, "grid.color": grey, "svg.fonttype": "path",
        }):  # fmt: skip
            figure = make(ink, grey)
            figure.savefig(ROOT / f"docs/pictures/{name}-{mode}.svg", metadata={"Date": None})
            pyplot.close(figure)


def put(path, marker, text):
    """The text between the two comments of this name."""
    begin, end = f"<!-- {marker}: made by benchmarks/readme.py -->", f"<!-- end of {marker} -->"
    page = path.read_text(encoding="utf-8")
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{path} lacks {begin} ... {end}")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def main():
    found = evidence()
    draw("peers", lambda ink, grey: peers_picture(found, ink, grey))
    draw("papers", papers_picture)
    put(ROOT / "README.md", "evidence", table(found))
    put(ROOT / "docs/index.md", "evidence", table(found))


if __name__ == "__main__":
    main()
