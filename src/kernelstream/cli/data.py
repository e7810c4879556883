"""`kernelstream data`: which data sets have names, where their files are, and fetching them."""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from urllib.parse import urlparse

from kernelstream.cli.arguments import UsageError
from kernelstream.cli.display import size
from kernelstream.stream.catalogue import DATASETS, Dataset, record_of
from kernelstream.stream.download import DownloadError, Told
from kernelstream.stream.files import announce, data_folder, find, get

__all__ = ["data"]


def data(arguments: argparse.Namespace) -> int:
    """List data sets, or fetch them."""
    names = list(DATASETS) if "all" in arguments.names else list(dict.fromkeys(arguments.names))
    for name in names:
        record_of(name)  # which says what would be right
    if arguments.action == "list":
        _list(names or list(DATASETS), arguments.data)
        return 0
    if not names:
        raise UsageError("data get needs the names of data sets (see `kernelstream data list`), or all")
    return max(_get(DATASETS[name], arguments.data) for name in names)


def _list(names: list[str], folder: str | None) -> None:
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
    """Fetch one data set. A failure is told, and does not keep others from being fetched."""
    if record.shipped:
        print(f"{record.name}: comes with scikit-learn")
        return 0
    try:
        with _progress(record.name) as told:
            path = get(record.name, folder, told=told)
    except DownloadError as error:
        print(f"kernelstream: error: {error}", file=sys.stderr)
        return 2
    print(f"{record.name}: {path}", flush=True)
    return 0


@contextlib.contextmanager
def _progress(name: str) -> Iterator[Told]:
    """A bar if standard error is a terminal; elsewhere a line for each address."""
    if not sys.stderr.isatty():
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
