"""The command line: parses, calls, prints."""

import argparse
import ast
import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from kernelstream.evaluate import Result

ROWS = 100_000
"""Rows that `kernelstream run` takes from a built-in stream, which has no end of its own."""


class UsageError(Exception):
    """The command line asks for something that does not exist; the message says what would be right."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2 after an error, 130 after Ctrl-C.

    Examples:
        >>> main(["--version"])  # doctest: +ELLIPSIS
        kernelstream ...
        0
    """
    try:
        arguments = _parse(sys.argv[1:] if argv is None else argv)
        code: int = arguments.command(arguments)
        sys.stdout.flush()
        return code
    except SystemExit as stop:  # argparse after --help and --version
        return int(stop.code or 0)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as in `kernelstream run | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        # A message of ours speaks for itself; anything else is clearer with its type.
        kind = "" if isinstance(error, UsageError | ValueError | OSError) else f"{type(error).__name__}: "
        print("kernelstream: error:", kind + " ".join(str(error).split()), file=sys.stderr)
        return 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = _Parser(
        "kernelstream", description="Learn kernel machines from endless data streams.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"kernelstream {_version()}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    run = commands.add_parser(
        "run",
        help="learn a stream: predict each row, then learn it, and report",
        description="Predict each row of a stream, then learn it, and report how that went.",
        allow_abbrev=False,
    )
    run.set_defaults(command=_run)
    run.add_argument(
        "--stream", default="rings", metavar="NAME", help="built-in stream or data set (default: rings)"
    )
    run.add_argument(
        "--rows", type=_count, metavar="N", help=f"rows to learn (built-in streams: {ROWS}; data sets: all)"
    )
    run.add_argument(
        "--learner", metavar="NAME", help="see `kernelstream learners` (default: the best one, untuned)"
    )
    run.add_argument(
        "--set",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a hyper-parameter, such as budget=200 or kernel__gamma=0.5; may be repeated",
    )
    run.add_argument(
        "--seed", type=_count, default=0, metavar="N", help="seed of the stream and the learner (default: 0)"
    )
    run.add_argument("--quiet", action="store_true", help="only the result, no progress")
    run.add_argument("--json", action="store_true", help="only the result, as one JSON object")

    learners = commands.add_parser("learners", help="list the learners", allow_abbrev=False)
    learners.set_defaults(command=_learners)

    options = [
        "--help",
        "--version",
        *(option for action in run._actions for option in action.option_strings),
    ]
    with _suggestions({"COMMAND": list(commands.choices), "option": options}):
        return parser.parse_args(argv)


@contextlib.contextmanager
def _suggestions(known: dict[str, list[str]]) -> Iterator[None]:
    """Add near misses to argparse's errors about unknown commands and options."""
    try:
        yield
    except UsageError as error:
        from kernelstream.stream.datasets import did_you_mean

        message = str(error)
        if found := re.match(r"argument COMMAND: invalid choice: '(.*?)'", message):
            name = found[1]
            raise UsageError(f"unknown command {name!r}; {did_you_mean(name, known['COMMAND'])}") from None
        if found := re.match(r"unrecognized arguments: (--?[\w-]+)", message):
            raise UsageError(
                f"unknown option {found[1]}; {did_you_mean(found[1], known['option'])}"
            ) from None
        raise


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("kernelstream")
    except PackageNotFoundError:
        return "(not installed)"


def _count(text: str) -> int:
    """A non-negative integer; 1e6 and 1_000_000 are fine."""
    with contextlib.suppress(ValueError, OverflowError):
        number = float(text) if "e" in text.lower() else int(text)
        if number >= 0 and number == int(number):
            return int(number)
    raise argparse.ArgumentTypeError(f"expected a whole number that is not negative, got {text!r}")


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    try:
        return key.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return key.strip(), value


def _run(arguments: argparse.Namespace) -> int:
    from kernelstream.evaluate import progressive
    from kernelstream.stream import STREAMS, open_stream

    rows = ROWS if arguments.rows is None and arguments.stream in STREAMS else arguments.rows
    stream = open_stream(arguments.stream, rows, seed=arguments.seed)
    model = _model(stream.task, arguments.learner, arguments.set, arguments.seed)
    show = not (arguments.quiet or arguments.json)
    so_far: list[Result] = []
    interrupted = False
    with _progress(stream.rows) if show else contextlib.nullcontext(lambda result: None) as tell:

        def keep(result: "Result") -> None:
            so_far[:] = [result]
            tell(result)

        try:
            progressive(model, stream.chunks, callback=keep)
        except KeyboardInterrupt:
            interrupted = True
    if not so_far:
        if interrupted:
            return 130
        raise UsageError("the stream has no rows: ask for at least one, as in --rows 1000")
    learner = type(getattr(model, "learner_", model)).__name__
    record = _record(so_far[0])
    if arguments.json:
        print(json.dumps({"stream": stream.name, "learner": learner, "interrupted": interrupted, **record}))
    else:
        _print_table(f"{learner} on {stream.name}" + (", interrupted" if interrupted else ""), record)
    return 130 if interrupted else 0


def _model(task: str, name: str | None, settings: list[tuple[str, Any]], seed: int) -> Any:
    """The estimator for a task around the named learner, with its hyper-parameters set."""
    from kernelstream.estimators import KernelClassifier, KernelRegressor
    from kernelstream.kernels import as_kernel
    from kernelstream.stream.datasets import did_you_mean

    estimator = KernelRegressor if task == "regression" else KernelClassifier
    if name is None:
        # The learner that the estimator chooses by itself, so that it can be given hyper-parameters.
        from sklearn.base import clone

        learner = clone(estimator().fit([[0.0], [1.0]], [0, 1]).learner_)
    else:
        learner = _pick(name, _known_learners(), "learner")()
    known = learner.get_params()
    if "seed" in known:
        learner.set_params(seed=seed)
    if "kernel" in known and known["kernel"] is None:
        learner.set_params(kernel=as_kernel(None))  # so that its parameters have names
    for key, value in settings:
        known = learner.get_params()
        if key not in known:
            raise UsageError(f"unknown hyper-parameter {key!r}; {did_you_mean(key, known)}")
        learner.set_params(**{key: _named(key, value)})
    return estimator(learner)


def _named(key: str, value: Any) -> Any:
    """The kernel or the loss that a setting names; any other value as it is."""
    from kernelstream import kernels
    from kernelstream.losses import as_loss

    if key == "kernel" and isinstance(value, str):
        known = {
            k.__name__: k for k in (kernels.Gaussian, kernels.Laplacian, kernels.Polynomial, kernels.Linear)
        }
        return _pick(value, known, "kernel")()
    return as_loss(value) if key == "loss" and isinstance(value, str) else value


def _pick(name: str, known: dict[str, Any], what: str) -> Any:
    """What is known by a name, in upper or lower case."""
    from kernelstream.stream.datasets import did_you_mean

    for key, value in known.items():
        if key.casefold() == name.casefold():
            return value
    raise UsageError(f"unknown {what} {name!r}; {did_you_mean(name, known)}")


def _known_learners() -> dict[str, Any]:
    from kernelstream import learners

    return {name: getattr(learners, name) for name in learners.__all__ if name != "Learner"}


def _learners(arguments: argparse.Namespace) -> int:
    known = _known_learners()
    width = max(map(len, known))
    for name, learner in sorted(known.items()):
        print(f"{name:{width}}  {(learner.__doc__ or '').strip().partition(chr(10))[0]}")
    return 0


@contextlib.contextmanager
def _progress(rows: int | None) -> "Iterator[Callable[[Result], None]]":
    """A live bar on a terminal, elsewhere a plain line for every tenth and at least every 5 seconds."""
    if not sys.stdout.isatty():
        tenth = max((rows or 1_000_000) // 10, 1)
        told, at = 0, time.monotonic()

        def tell(result: "Result") -> None:
            nonlocal told, at
            if result.rounds // tenth > told or time.monotonic() > at + 5:
                told, at = result.rounds // tenth, time.monotonic()
                print(f"{result.rounds:>12,} rows   {_state(result)}", flush=True)

        yield tell
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns) as progress:
        task = progress.add_task("", total=rows)
        yield lambda result: progress.update(task, completed=result.rounds, description=_state(result))


def _state(result: "Result") -> str:
    """How far the model has come, in one line."""
    error = f"RMSE {result.rmse:.4g}" if result.task == "regression" else f"error {result.error_rate:6.2%}"
    return f"{error}   {result.rows_per_second:>11,.0f} rows/s   {_size(result.nbytes)}"


def _size(nbytes: int | None) -> str:
    if nbytes is None:
        return "size unknown"
    from rich.filesize import decimal

    return decimal(nbytes)


def _record(result: "Result") -> dict[str, Any]:
    """The figures of a result, by name."""
    if result.task == "regression":
        errors = {"rmse": result.rmse, "rmse_last_tenth": result.recent_error()}
    else:
        errors = {
            "mistakes": result.mistakes,
            "error_rate": result.error_rate,
            "error_rate_last_tenth": result.recent_error(),
        }
    return {
        "rounds": result.rounds,
        **errors,
        "seconds": result.seconds,
        "rows_per_second": result.rows_per_second,
        "microseconds_per_row": 1e6 * result.seconds / result.rounds,
        "model_bytes": result.nbytes,
    }


_LABELS: dict[str, tuple[str, str]] = {
    "rounds": ("rounds", ",d"),
    "mistakes": ("mistakes", ",d"),
    "error_rate": ("error", ".2%"),
    "error_rate_last_tenth": ("error, last 10 %", ".2%"),
    "rmse": ("RMSE", ".5g"),
    "rmse_last_tenth": ("RMSE, last 10 %", ".5g"),
    "rows_per_second": ("rows/s", ",.0f"),
    "microseconds_per_row": ("µs per row", ".2f"),
    "model_bytes": ("model bytes", ",d"),
}


def _print_table(title: str, record: dict[str, Any]) -> None:
    lines = [
        (label, "unknown" if record[key] is None else format(record[key], style))
        for key, (label, style) in _LABELS.items()
        if key in record
    ]
    if not sys.stdout.isatty():
        print(title)
        for label, figure in lines:
            print(f"  {label:<18}{figure:>14}")
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for line in lines:
        table.add_row(*line)
    Console().print(table)
