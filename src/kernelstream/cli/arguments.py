"""Parts of the command line that several commands share: kinds of values, groups of options, the layout of help.

Light: help and completion import nothing of the library.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = [
    "EXIT_CODES",
    "ROWS",
    "Command",
    "UsageError",
    "columns",
    "count",
    "data_folder",
    "learner_names",
    "metric",
    "metric_options",
    "output_options",
    "overwrite_option",
    "process_count",
    "reading_options",
    "scale_option",
    "setting",
    "settings_option",
]

ROWS = 100_000
"""Rows that are taken from a built-in stream, which has no end of its own."""

EXIT_CODES = """\
exit codes:
  0    done
  1    a defect of kernelstream: please report it
  2    an error, explained in one line: a wrong command, a file that is not there, a bad row, a full disk ...
  130  stopped by Ctrl-C, after the result so far (and a checkpoint, if asked for)
"""

F = TypeVar("F", bound=Callable[..., Any])


class UsageError(click.ClickException):
    """The command line asks for something that does not exist; the message says what would be right."""


class Command(click.Command):
    """A command whose help shows options by group and the examples as they were written."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, those of a group under its name."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                groups.setdefault(getattr(parameter, "group", "Options"), []).append(record)
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples and the exit codes."""
        formatter.write(f"\n{self.epilog or ''}\n{EXIT_CODES}")


class _GroupedOption(click.Option):
    """An option that help shows under the name of a group."""

    def __init__(self, *arguments: Any, group: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.group = group


def stacked(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several decorators as one, applied so that the first one's option comes first in help."""

    def decorate(function: F) -> F:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


# ---- values ----


def count(text: str) -> int:
    """A whole number that is not negative.

    >>> count("1e6"), count("1_000")
    (1000000, 1000)
    """
    with contextlib.suppress(ValueError, OverflowError):
        number = float(text) if "e" in text.lower() else int(text)
        if number >= 0 and number == int(number):
            return int(number)
    raise click.BadParameter(f"expected a whole number that is not negative, got {text!r}")


def process_count(text: str | int) -> int:
    """A number of processes: at least 1, or -1 for one per core, which is the default."""
    number = text if isinstance(text, int) else count(text)
    if number == 0:
        raise click.BadParameter("expected at least 1")
    return number


def column(text: str) -> str | int:
    """A column by name, or by number if it looks like one.

    >>> column("price"), column("-1")
    ('price', -1)
    """
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def columns(text: str) -> list[str | int]:
    """Columns with commas between them."""
    return [column(part) for part in text.split(",") if part]


KINDS = ("number", "boolean", "category", "time", "text", "decimal-comma", "day-first", "month-first", "drop")
"""What a column may be said to be; `kernelstream.tables.kinds` explains."""


def column_kind(text: str) -> tuple[str, str]:
    """A column and its kind.

    >>> column_kind("zip=category")
    ('zip', 'category')
    """
    name, equals, kind = text.rpartition("=")
    if not (name and equals and kind in KINDS):
        raise click.BadParameter(f"expected NAME=KIND with a kind of {', '.join(KINDS)}, got {text!r}")
    return name, kind


def setting(text: str) -> tuple[str, Any]:
    """A hyper-parameter and its value, a Python literal or else text.

    >>> setting("budget=200"), setting("kernel=Laplacian")
    (('budget', 200), ('kernel', 'Laplacian'))
    """
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise click.BadParameter(f"expected KEY=VALUE, got {text!r}")
    try:
        return key.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return key.strip(), value


_METRIC_ALIASES = {"auc": "roc_auc", "ap": "average_precision", "logloss": "log_loss", "r": "recall"}
_METRIC_NAMES = (
    "accuracy", "balanced_accuracy", "precision", "recall", "f1", "kappa", "mcc", "log_loss", "brier",
    "roc_auc", "average_precision", "mae", "rmse", "r2", "pinball",
)  # fmt: skip


def metric(text: str) -> str:
    """The name of a metric, as `kernelstream.metrics.METRICS` has it.

    >>> metric("AUC"), metric("balanced-accuracy")
    ('roc_auc', 'balanced_accuracy')
    """
    name = text.casefold().replace("-", "_")
    name = _METRIC_ALIASES.get(name, name)
    if name not in _METRIC_NAMES:
        from kernelstream.stream.catalogue import did_you_mean

        raise click.BadParameter(f"unknown metric {text!r}; {did_you_mean(name, _METRIC_NAMES)}")
    return name


def delimiter(text: str) -> str:
    r"""A delimiter: one character, or the word tab.

    >>> delimiter("tab"), delimiter(r"\t"), delimiter(";")
    ('\t', '\t', ';')
    """
    character = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";"}.get(text.casefold(), text)
    if len(character) != 1 or not character.isascii() or character in '"\r\n\0':
        raise click.BadParameter(f"expected one ASCII character, or the word tab, got {text!r}")
    return character


def seconds(text: str) -> float:
    """A time in seconds.

    >>> seconds("0.5")
    0.5
    """
    with contextlib.suppress(ValueError):
        if (number := float(text)) >= 0 and number < float("inf"):
            return number
    raise click.BadParameter(f"expected a number of seconds that is not negative, got {text!r}")


# ---- completion ----


def metric_names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of metrics that complete what was typed."""
    return [name for name in _METRIC_NAMES if name.startswith(incomplete)]


def learner_names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of learners that complete what was typed, also after a comma."""
    from kernelstream.cli.imports import import_scikit_learn

    import_scikit_learn()
    from kernelstream.learners import registered

    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in sorted(registered()) if name.startswith(last)]


def format_names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of file formats that complete what was typed."""
    from kernelstream.stream.formats import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def paths(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete names of files."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def folders(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete names of folders."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


# ---- groups of options ----


_DATA_FOLDER: dict[str, Any] = {
    "metavar": "DIR",
    "shell_complete": folders,
    "help": "The folder of the data sets (default: $KERNELSTREAM_DATA, else the cache folder).",
}
data_folder = click.option("--data", **_DATA_FOLDER)

settings_option = click.option(
    "--set",
    "settings",
    multiple=True,
    type=setting,
    metavar="KEY=VALUE",
    help="A hyper-parameter, such as budget=200 or kernel__gamma=0.5; may be repeated.",
)

overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace existing files even if they are of another kind."
)

output_options = stacked(
    click.option(
        "--curve",
        metavar="FILE",
        shell_complete=paths,
        help="Write how the error (or each --metric) went over the rows, as FILE.csv, FILE.png or FILE.svg.",
    ),
    overwrite_option,
    click.option("--quiet", is_flag=True, help="Only the result, no progress."),
    click.option("--json", "as_json", is_flag=True, help="Only the result, as one JSON object."),
)

scale_option = click.option(
    "--scale/--no-scale",
    default=None,
    help="Bring features to a common scale, online (default: for learners that do not do so by themselves).",
)

metric_options = stacked(
    click.option(
        "--metric",
        "metrics",
        multiple=True,
        type=metric,
        metavar="NAME",
        shell_complete=metric_names,
        help="Show (and draw with --curve) this metric, such as f1, roc_auc, log_loss, mae, r2; may be repeated. "
        "The first one ranks. Default: all, and the error ranks.",
    ),
    click.option(
        "--window",
        type=count,
        metavar="N",
        help="Rows of the window that metrics are also computed over (default: 1000).",
    ),
    click.option(
        "--max-classes",
        type=count,
        metavar="N",
        help="More classes than this end the run (default: 200).",
    ),
)


def reading_options(*, required: bool = False, labelled: bool = True) -> Callable[[F], F]:
    """The sources and how their rows are read; the command's help explains what a source is."""

    def option(*names: str, **attributes: Any) -> Callable[[F], F]:
        return click.option(*names, cls=_GroupedOption, group="Reading", **attributes)

    def explain(function: F) -> F:
        default = "" if required else " (default: rings)"
        function.__doc__ = f"""{function.__doc__}

        SOURCE: files (LIBSVM, CSV, TSV, JSON lines, Parquet, Arrow, NumPy; plain, gz, xz, zst), - for standard
        input, or the name of a data set or built-in stream{default}.
        """
        return function

    sources = click.argument(
        "sources",
        nargs=-1,
        required=required,
        metavar="SOURCE..." if required else "[SOURCE]...",
        shell_complete=paths,
    )
    formats = option(
        "--format",
        metavar="NAME",
        shell_complete=format_names,
        help="The format of the files (default: by their names or first bytes).",
    )
    target = option(
        "--target", type=column, metavar="COLUMN", help="The column to predict, by name or number."
    )
    task = option(
        "--task",
        type=click.Choice(["classification", "regression"]),
        help="(default: the data set's own; of files by the first labels: many different numbers are a regression)",
    )
    categorical = option(
        "--categorical",
        type=columns,
        metavar="A,B",
        help="Columns of categories (default: those of text).",
    )
    kinds = option(
        "--column",
        "columns",
        multiple=True,
        type=column_kind,
        metavar="NAME=KIND",
        callback=lambda ctx, parameter, value: dict(value) or None,
        help=f"What a column is: {', '.join(KINDS)} (default: told by its first rows); may be repeated.",
    )
    hashed = option("--hashed", type=count, metavar="N", help="Hash categories into N features.")
    drop = option("--drop", type=columns, metavar="A,B", help="Columns to leave out.")
    delimited = option(
        "--delimiter",
        type=delimiter,
        metavar="CHARACTER",
        help="Between the fields of CSV (default: the one of , ; | and tab that the first line has most of).",
    )
    charset = option(
        "--encoding", "charset", metavar="NAME", help="Of text, such as latin-1 or utf-16 (default: utf-8)."
    )
    latency = option(
        "--latency",
        type=seconds,
        metavar="SECONDS",
        help="The longest time that a row of a pipe waits for others to be handled with it (default: 0).",
    )
    max_features = option(
        "--max-features", type=count, metavar="N", help="Features that rows may have (default: 1048576)."
    )
    header = option("--header/--no-header", default=None, help="Whether the first line of CSV has names.")
    n_features = option(
        "--n-features",
        type=count,
        metavar="N",
        help="Width of LIBSVM rows (default: that of the widest so far).",
    )
    on_bad_row = option(
        "--on-bad-row",
        default="stop",
        metavar="WHAT",
        help="stop (the default), skip, or quarantine=FILE, which appends them to a file.",
    )
    rows = option(
        "--rows", type=count, metavar="N", help=f"Rows to read (default: all; of a built-in stream {ROWS:,})."
    )
    seed = option(
        "--seed",
        type=count,
        default="0",
        metavar="N",
        help="Of the stream, the order of a data set, the learner (default: 0).",
    )
    return stacked(
        sources,
        option("--data", **_DATA_FOLDER),
        formats,
        *((target, task) if labelled else ()),
        kinds,
        categorical,
        hashed,
        drop,
        header,
        delimited,
        charset,
        n_features,
        max_features,
        latency,
        on_bad_row,
        rows,
        seed,
        explain,
    )
