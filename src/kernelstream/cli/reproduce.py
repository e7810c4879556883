"""`kernelstream reproduce`: the papers' experiments, and a report."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kernelstream.cli.arguments import UsageError
from kernelstream.experiments.plan import Cell, Experiment
from kernelstream.experiments.protocols import PROTOCOLS, all_experiments
from kernelstream.experiments.report import write_page, write_pictures
from kernelstream.experiments.run import Progress, TrialError
from kernelstream.experiments.run import reproduce as run
from kernelstream.experiments.store import Store
from kernelstream.experiments.streams import source_of
from kernelstream.experiments.summarise import summarise
from kernelstream.experiments.summary import Summary
from kernelstream.stream.datasets import did_you_mean
from kernelstream.stream.download import DownloadError
from kernelstream.stream.files import locate

__all__ = ["reproduce"]


def reproduce(arguments: argparse.Namespace) -> int:
    """Run the experiments asked for, as far as they are not done yet, and write the report."""
    if arguments.data is not None:
        os.environ["KERNELSTREAM_DATA"] = arguments.data
    experiments = chosen(arguments.experiments, all_experiments(arguments.quick))
    folder = Path(arguments.out or ("reproduction-quick" if arguments.quick else "reproduction"))
    cells = present([cell for experiment in experiments.values() for cell in experiment.cells])
    stopped: KeyboardInterrupt | TrialError | None = None
    try:
        with _progress() as tell:
            run(cells, folder, jobs=arguments.jobs, tell=tell)
    except (KeyboardInterrupt, TrialError) as why:
        stopped = why
    store = Store(folder)
    summary = summarise(experiments, store, _made(arguments, store))
    write_page(summary, folder / "report.html")
    pictures = importlib.util.find_spec("matplotlib") and write_pictures(summary, folder / "pictures")
    _print(summary, folder, pictures or [])
    if isinstance(stopped, TrialError):
        raise stopped
    if stopped:
        print("stopped: what is done is kept, and the same command goes on", file=sys.stderr)
    return 130 if stopped else 0


def chosen(names: list[str], known: dict[str, Experiment]) -> dict[str, Experiment]:
    """The experiments of these names, or of these papers; all of them if there are no names.

    >>> list(chosen(["okssil"], all_experiments()))
    ['okssil-table2', 'okssil-figure1']
    """
    for name in names:
        if name not in known and name not in PROTOCOLS:
            raise UsageError(f"unknown experiment {name!r}; {did_you_mean(name, [*known, *PROTOCOLS])}")
    return {
        name: experiment
        for name, experiment in known.items()
        if not names or name in names or experiment.paper in names
    }


def present(cells: list[Cell]) -> list[Cell]:
    """The cells whose data is here or can be fetched. What is missing is told, and the rest is run."""
    missing: dict[str, DownloadError] = {}
    for name in dict.fromkeys(source for cell in cells if (source := source_of(cell.trial.data))):
        try:
            locate(name)
        except DownloadError as error:
            missing[name] = error
    left = [cell for cell in cells if source_of(cell.trial.data) not in missing]
    if missing and not left:
        raise next(iter(missing.values()))
    for why in missing.values():
        print(f"kernelstream: left out: {why}", file=sys.stderr)
    return left


def _made(arguments: argparse.Namespace, store: Store) -> dict[str, str]:
    """How the results were made, for the report."""
    rows = store.results.values()
    words = ["kernelstream", "reproduce", *arguments.experiments, *(["--quick"] if arguments.quick else [])]
    return {
        "command": " ".join(words),
        "version": ", ".join(sorted({row["version"] for row in rows})),
        "CPU level": ", ".join(sorted({row["cpu"] for row in rows})),
        "trials": f"{len(rows):,}",
        "processor time": _duration(sum(times["seconds"] for times in store.times.values())),
    }


def _print(summary: Summary, folder: Path, pictures: list[Path]) -> None:
    for paper in summary.papers:
        for section in paper.sections:
            verdicts = Counter(
                e.verdict for table in section.tables for e in table.entries if e.paper is not None
            )
            claims = Counter(claim.verdict for claim in section.claims)
            figures = ", ".join(f"{n} {verdict}" for verdict, n in verdicts.most_common())
            said = ", ".join(f"{n} {verdict}" for verdict, n in claims.most_common())
            print(
                f"{section.name:18} {section.complete:22} figures: {figures or 'none published'}; claims: {said or 'none'}"
            )
    print(
        f"results  {folder / 'results.jsonl'}\ntimes    {folder / 'times.jsonl'}\nreport   {folder / 'report.html'}"
    )
    if pictures:
        print(f"pictures {pictures[0].parent} ({len(pictures)} files)")
    else:
        print("pictures need matplotlib: pip install 'kernelstream[plot]'; the page has them all")


@contextlib.contextmanager
def _progress() -> Iterator[Progress]:
    """A live bar if standard error is a terminal; elsewhere a plain line every ten seconds."""
    if not sys.stderr.isatty():
        at = -math.inf

        def line(what: str, share: float, left: float) -> None:
            nonlocal at
            if time.monotonic() > at + 10 or share == 1:
                at = time.monotonic()
                print(f"{share:6.1%}  {_left(left):>12}  {what}", file=sys.stderr, flush=True)

        yield line
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(bar_width=24), TaskProgressColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda what, share, left: bar.update(
            task, completed=share, description=f"{_left(left)}   {escape(what)}"
        )


def _left(seconds: float) -> str:
    return "" if math.isnan(seconds) else f"{_duration(seconds)} left"


def _duration(seconds: float) -> str:
    """A time in words.

    >>> _duration(75), _duration(7500)
    ('1:15', '2:05:00')
    """
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"
