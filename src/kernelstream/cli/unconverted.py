"""Commands that still take an `argparse.Namespace`. To be deleted with the last of them."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

import click

from kernelstream.cli.arguments import Command, data_folder, folders, process_count

__all__ = ["COMMANDS", "PLUGINS"]


def _call(name: str, **arguments: Any) -> int:
    code: int = getattr(importlib.import_module(f"kernelstream.cli.{name}"), name)(
        argparse.Namespace(**arguments)
    )
    return code


def _dataset_names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from kernelstream.stream.catalogue import DATASETS

    return [name for name in ("all", *DATASETS) if name.startswith(incomplete)]


@click.command(
    cls=Command,
    epilog="""\
examples:
  kernelstream data list
  kernelstream data get a9a ijcnn1
  kernelstream data get all --data sets
""",
)
@click.argument("action", type=click.Choice(["list", "get"]))
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_dataset_names)
@data_folder
def data(action: str, names: tuple[str, ...], data: str | None) -> int:
    """List the data sets that have names and where their files are, or fetch some from the public collections."""
    return _call("data", action=action, names=list(names), data=data)


def _experiment_names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    from kernelstream.experiments.protocols import PROTOCOLS, all_experiments

    return [name for name in (*PROTOCOLS, *all_experiments()) if name.startswith(incomplete)]


@click.command(
    cls=Command,
    short_help="run the papers' experiments and write a report",
    epilog="""\
examples:
  kernelstream reproduce --quick                       a small version of everything
  kernelstream reproduce skegd-table3                  one table, 20 permutations
  kernelstream reproduce --data ~/benchmarks           everything; stop and go on as you like
""",
)
@click.argument("experiments", nargs=-1, metavar="[NAME]...", shell_complete=_experiment_names)
@click.option("--quick", is_flag=True, help="Few permutations of short prefixes: some minutes.")
@data_folder
@click.option(
    "--out",
    metavar="DIR",
    shell_complete=folders,
    help="Results and report (default: reproduction, or reproduction-quick).",
)
@click.option(
    "--jobs", type=process_count, default=-1, metavar="N", help="Processes (default: one for each core)."
)
def reproduce(experiments: tuple[str, ...], quick: bool, data: str | None, out: str | None, jobs: int) -> int:
    """Run the papers' experiments by their own protocols and write a report: ours beside theirs. What is done
    is kept as it goes; the same command goes on where it was stopped.

    NAME: an experiment such as skegd-table3, or a whole paper: skegd, nolana, okssil, kons (default: everything).
    """
    return _call("reproduce", experiments=list(experiments), quick=quick, data=data, out=out, jobs=jobs)


class _Loaded:
    """A command that looks like an entry point."""

    def __init__(self, command: click.Command) -> None:
        self.load = lambda: command


COMMANDS = {"data": data}
PLUGINS = {"reproduce": _Loaded(reproduce)}
