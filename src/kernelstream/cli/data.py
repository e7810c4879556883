"""`kernelstream data`: lists the data sets that have names, or downloads some."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from kernelstream.cli.arguments import Command, UsageError, data_folder

if TYPE_CHECKING:
    from kernelstream.stream.catalogue import Dataset
    from kernelstream.stream.download import Progress

__all__ = ["data"]


def _complete_name(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from kernelstream.stream.catalogue import DATASETS

    return [name for name in ("all", *DATASETS) if name.startswith(incomplete)]


@click.command(
    cls=Command,
    epilog="""\
examples:
  kernelstream data list
  kernelstream data get a9a ijcnn1
  kernelstream data get all --data sets
  kernelstream data example fraud.csv              small files to try commands on, made here
""",
)
@click.argument("action", type=click.Choice(["list", "get", "example"]))
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete_name)
@data_folder
def data(action: str, names: tuple[str, ...], data: str | None) -> int:
    """List the data sets that have names and where their files are, or download some from the public collections.

    If a data set cannot be downloaded, the others still are, and the exit code is 2. "example" writes small files to try
    commands on into this folder: adult.csv, fraud.csv, prices.csv, reviews.csv, sensors.jsonl.
    """
    from kernelstream.stream.catalogue import DATASETS, record_of

    if action == "example":
        return _examples(names)
    chosen = list(DATASETS) if "all" in names else list(dict.fromkeys(names))
    for name in chosen:
        record_of(name)  # an unknown name is an error that says what would be right
    if action == "list":
        _list(chosen or list(DATASETS), data)
        return 0
    if not chosen:
        raise UsageError("data get needs the names of data sets (see `kernelstream data list`), or all")
    return max(_get(DATASETS[name], data) for name in chosen)


def _examples(names: tuple[str, ...]) -> int:
    """Write the examples, without touching a file that is something else."""
    import os

    from kernelstream.files import write_atomically
    from kernelstream.stream.examples import EXAMPLES, example

    for name in names or list(EXAMPLES):
        text = example(name)
        if os.path.exists(name):
            with open(name, "rb") as file:
                if file.read(len(text) + 1) != text:
                    raise UsageError(
                        f"{name} exists and is not the example: go to another folder, or rename it"
                    )
        else:
            write_atomically(name, text)
        print(f"{name}: {text.count(b'{') or text.count(bytes([10])) - 1:,} rows")
    return 0


def _list(names: list[str], folder: str | None) -> None:
    from urllib.parse import urlparse

    from kernelstream.cli.display import size
    from kernelstream.stream.catalogue import DATASETS
    from kernelstream.stream.files import data_folder, find

    table = [("name", "rows", "features", "task", "size", "from", "file")]
    for record in (DATASETS[name] for name in names):
        path = find(record.name, folder)
        table.append(
            (
                record.name,
                f"{record.rows:,}",
                str(record.features),
                record.task,
                size(path.stat().st_size) if path else "",
                "scikit-learn" if record.shipped else str(urlparse(record.addresses[0]).hostname),
                "" if record.shipped else str(path or "not here"),
            )
        )
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = (
            f"{cell:{'>' if i in (1, 2, 4) else '<'}{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join(cells).rstrip())
    print(f"\nThe data folder is {data_folder(folder)}")


def _get(record: Dataset, folder: str | None) -> int:
    """Download one data set; the exit code. An error is printed, so that the next data set is still downloaded."""
    from kernelstream.stream.download import DownloadError
    from kernelstream.stream.files import get

    if record.shipped:
        print(f"{record.name}: comes with scikit-learn")
        return 0
    try:
        with _progress(record.name) as progress:
            path = get(record.name, folder, progress=progress)
    except DownloadError as error:
        print(f"kernelstream: error: {error}", file=sys.stderr)
        return 2
    print(f"{record.name}: {path}", flush=True)
    return 0


@contextlib.contextmanager
def _progress(name: str) -> Iterator[Progress]:
    """A bar if standard error is a terminal; elsewhere a line for each address."""
    if not sys.stderr.isatty():
        from kernelstream.stream.files import announce

        yield announce
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda address, done, total: bar.update(
            task, description=address.rpartition("/")[2], completed=done, total=total
        )
