"""The commands by name. Each is imported when it is used, so that help and completion are quick."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, NamedTuple

import click

from kernelstream.cli.arguments import EXIT_CODES

__all__ = ["kernelstream"]

_EXAMPLES = """\
examples:
  kernelstream run                                     a built-in stream, to see it work
  kernelstream run clicks.csv.gz --target clicked      a file; the model that needs no tuning
  zcat logs/*.gz | kernelstream run - --format libsvm --save model.safetensors
  kernelstream compare a9a --learners NOGD,BOGD,SkeGD  one pass, many learners
  kernelstream predict model.safetensors new.csv > predictions.txt
"""


class _Entry(NamedTuple):
    """Where a command is, and what it does in one line."""

    module: str
    name: str
    help: str


_COMMANDS = {
    entry.name: entry
    for entry in (
        _Entry("kernelstream.cli.run", "run", "learn a stream: predict each row, then learn it, and report"),
        _Entry("kernelstream.cli.compare", "compare", "learn a stream with several learners in one pass, and rank them"),
        _Entry("kernelstream.cli.predict", "predict", "predict the rows of a source with a saved model"),
        _Entry("kernelstream.cli.inspect", "inspect", "show what a model file holds"),
        _Entry("kernelstream.cli.learners", "learners", "list the learners, or explain one"),
        _Entry("kernelstream.cli.data", "data", "list the data sets that have names, or fetch some"),
        _Entry("kernelstream.cli.completion", "completion", "print a script that completes this command in a shell"),
    )
}  # fmt: skip

PLUGINS = "kernelstream.commands"
"""The entry-point group whose commands (`click.Command`) are added to ours. `reproduce` is one of them."""


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_COMMANDS, *(name for name in _plugins() if name not in _COMMANDS)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS:
            return _load(f"{_COMMANDS[cmd_name].module}:{cmd_name}")
        place = _plugins().get(cmd_name)
        return None if place is None else _load(place)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from kernelstream.stream.catalogue import did_you_mean

            raise click.ClickException(
                f"unknown command {args[0]!r}; {did_you_mean(args[0], self.list_commands(ctx))}"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, entry.help) for name, entry in _COMMANDS.items()]
        for name in self.list_commands(ctx)[len(rows) :]:
            command = self.get_command(ctx, name)
            rows.append((name, "" if command is None else command.get_short_help_str(80)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"\n{_EXAMPLES}\n{EXIT_CODES}")


def _plugins() -> dict[str, str]:
    """The commands of other packages: names, and where they are as ``module:attribute``.

    `importlib.metadata` does the same, but its import alone would take a third of the time of ``kernelstream --help``.
    """
    places: dict[str, str] = {}
    for folder in sys.path:
        try:
            packages = [
                name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info"))
            ]
        except OSError:
            continue
        for package in packages:
            try:
                with open(os.path.join(folder, package, "entry_points.txt"), encoding="utf-8") as file:
                    text = file.read()
            except OSError:
                continue
            for line in text.partition(f"[{PLUGINS}]")[2].partition("\n[")[0].splitlines():
                name, equals, place = line.partition("=")
                if equals:
                    places.setdefault(name.strip(), place.strip())
    return places


def _load(place: str) -> click.Command:
    module, _, attribute = place.partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command


def _show_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from kernelstream import __version__

        print(f"kernelstream {__version__}")
        ctx.exit()


@click.group(
    cls=_Group,
    no_args_is_help=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 110},
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version,
    help="Show the version and exit.",
)  # fmt: skip
def kernelstream() -> None:
    """Learn kernel machines from endless data streams."""
