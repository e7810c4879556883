"""`kernelstream reproduce`: runs the papers' experiments and writes a report.

The command line finds it through the entry point group ``kernelstream.commands``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelstream.cli.arguments import Command, UsageError, data_folder, folders, process_count

if TYPE_CHECKING:
    from kernelstream_reproduce.run import Progress
    from kernelstream_reproduce.store import Store
    from kernelstream_reproduce.summary import Summary
    from kernelstream_reproduce.trials import Cell, Experiment

__all__ = ["reproduce"]


def _complete_name(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from kernelstream_reproduce.protocols import PROTOCOLS, all_experiments

    return [name for name in (*PROTOCOLS, *all_experiments()) if name.startswith(incomplete)]


@click.command(
    "reproduce",
    cls=Command,
    short_help="run the papers' experiments and write a report",
    epilog="""\
examples:
  kernelstream reproduce --quick                       a small version of everything
  kernelstream reproduce skegd-table3                  one table, 20 permutations
  kernelstream reproduce --data ~/benchmarks           everything; stop and continue as you like
""",
)
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=_complete_name)
@click.option("--quick", is_flag=True, help="Few permutations of short prefixes: some minutes.")
@data_folder
@click.option(
    "--out",
    metavar="DIR",
    shell_complete=folders,
    help="Folder for results and report (default: reproduction, or reproduction-quick).",
)
@click.option(
    "--jobs", type=process_count, default=-1, metavar="N", help="Processes (default: one per core)."
)
def reproduce(names: tuple[str, ...], quick: bool, data: str | None, out: str | None, jobs: int) -> int:
    """Run the papers' experiments by their own protocols and write a report: our figures beside theirs.

    NAME is an experiment, such as skegd-table3, or a whole paper: skegd, nolana, okssil, kons (default: everything).
    Finished runs are kept; the same command continues where it was stopped.
    """
    if missing := [name for name in ("jinja2", "joblib") if not importlib.util.find_spec(name)]:
        raise UsageError(f"reproduce needs {' and '.join(missing)}: pip install 'kernelstream[reproduce]'")
    from kernelstream_reproduce.comparison import summarise
    from kernelstream_reproduce.protocols import all_experiments
    from kernelstream_reproduce.report import write_page, write_pictures
    from kernelstream_reproduce.run import TrialError, run_cells
    from kernelstream_reproduce.store import Store

    if data is not None:
        os.environ["KERNELSTREAM_DATA"] = data
    experiments = choose(names, all_experiments(quick))
    folder = Path(out or ("reproduction-quick" if quick else "reproduction"))
    cells = with_data([cell for experiment in experiments.values() for cell in experiment.cells])
    stopped: KeyboardInterrupt | TrialError | None = None
    try:
        with _progress() as progress:
            run_cells(cells, folder, jobs=jobs, progress=progress)
    except (KeyboardInterrupt, TrialError) as reason:
        stopped = reason
    store = Store(folder)
    summary = summarise(experiments, store, _provenance(names, quick, store))
    write_page(summary, folder / "report.html")
    pictures = write_pictures(summary, folder / "pictures") if importlib.util.find_spec("matplotlib") else []
    _print(summary, folder, pictures)
    if isinstance(stopped, TrialError):
        raise stopped
    if stopped:
        print("stopped: finished runs are kept, and the same command continues", file=sys.stderr)
    return 130 if stopped else 0


def choose(names: Sequence[str], experiments: dict[str, Experiment]) -> dict[str, Experiment]:
    """The experiments of these names, or of these papers; all of them if there are no names.

    >>> from kernelstream_reproduce.protocols import all_experiments
    >>> list(choose(["okssil"], all_experiments()))
    ['okssil-table2', 'okssil-figure1']
    """
    from kernelstream.stream.catalogue import did_you_mean
    from kernelstream_reproduce.protocols import PROTOCOLS

    for name in names:
        if name not in experiments and name not in PROTOCOLS:
            near = did_you_mean(name, [*experiments, *PROTOCOLS])
            raise UsageError(f"unknown experiment {name!r}; {near}")
    return {
        name: experiment
        for name, experiment in experiments.items()
        if not names or name in names or experiment.paper in names
    }


def with_data(cells: list[Cell]) -> list[Cell]:
    """The cells whose data is here or can be downloaded. What is missing is printed; it is an error if nothing is left."""
    from kernelstream.stream.download import DownloadError
    from kernelstream.stream.files import locate
    from kernelstream_reproduce.streams import source_of

    missing: dict[str, DownloadError] = {}
    for name in dict.fromkeys(source for cell in cells if (source := source_of(cell.trial.data))):
        try:
            locate(name)
        except DownloadError as error:
            missing[name] = error
    left = [cell for cell in cells if source_of(cell.trial.data) not in missing]
    if missing and not left:
        raise next(iter(missing.values()))
    for reason in missing.values():
        print(f"kernelstream: left out: {reason}", file=sys.stderr)
    return left


def _provenance(names: Sequence[str], quick: bool, store: Store) -> dict[str, str]:
    """Where the results come from, for the report."""
    rows = store.results.values()
    return {
        "command": " ".join(["kernelstream", "reproduce", *names, *(["--quick"] if quick else [])]),
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
            claimed = ", ".join(f"{n} {verdict}" for verdict, n in claims.most_common())
            print(
                f"{section.name:18} {section.complete:22} figures: {figures or 'none published'}; claims: {claimed or 'none'}"
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
        last = -math.inf

        def line(what: str, share: float, left: float) -> None:
            nonlocal last
            if time.monotonic() > last + 10 or share == 1:
                last = time.monotonic()
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
    """The time left, as exactly as an estimate can be.

    >>> _left(75), _left(9000), _left(464_000), _left(math.nan)
    ('1:15 left', '2.5 hours left', '5 days left', '')
    """
    if math.isnan(seconds):
        return ""
    if seconds < 3600:
        return f"{_duration(seconds)} left"
    return f"{seconds / 3600:.2g} hours left" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days left"


def _duration(seconds: float) -> str:
    """A time in words.

    >>> _duration(75), _duration(7500)
    ('1:15', '2:05:00')
    """
    hours, rest = divmod(round(seconds), 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"
