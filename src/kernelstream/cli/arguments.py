"""What the command line understands. Light: `--help` and completion import nothing of the library but its names."""

import argparse
import ast
import contextlib
import re
from collections.abc import Iterator
from typing import Any, NoReturn

__all__ = ["EXIT_CODES", "ROWS", "UsageError", "make_parser", "parse"]

ROWS = 100_000
"""Rows that are taken from a built-in stream, which has no end of its own."""

EXIT_CODES = """\
exit codes:
  0    done
  1    a defect of kernelstream: please report it
  2    an error, told in one line: a wrong command, a file that is not there, a bad row, a full disk ...
  130  stopped by Ctrl-C, after the result so far (and a checkpoint, if asked for)
"""

_EXAMPLES = {
    "": """\
examples:
  kernelstream run                                     a built-in stream, to see it work
  kernelstream run clicks.csv.gz --target clicked      a file; the model that needs no tuning
  zcat logs/*.gz | kernelstream run - --format libsvm --save model.safetensors
  kernelstream compare a9a --learners NOGD,BOGD,SkeGD  one pass, many learners
  kernelstream predict model.safetensors new.csv > predictions.txt
""",
    "run": """\
examples:
  kernelstream run                                                      a built-in stream
  kernelstream run train.csv.gz --target price --task regression        the column to predict, a real number
  kernelstream run a9a --learner BOGD --set budget=200 --set kernel__gamma=0.05
  kernelstream run day1.libsvm.xz day2.libsvm.xz --save model.safetensors --predictions out.txt --curve curve.png
  kernelstream run huge.csv --checkpoint state --every 1e6              killed? The same command goes on
  zcat logs.gz | kernelstream run - --format jsonl --target label --on-bad-row quarantine=bad.jsonl
""",
    "compare": """\
examples:
  kernelstream compare --learners NOGD,BOGD,KernelPA --rows 20000
  kernelstream compare a9a --learners NOGD,SkeGD,NOLANA --set budget=100 --set SkeGD.eta=0.1 --curve curves.png
""",
    "predict": """\
examples:
  kernelstream predict model.safetensors new.libsvm > predictions.txt
  zcat new.csv.gz | kernelstream predict model.safetensors - --format csv --drop id --output predictions.txt
""",
    "inspect": "examples:\n  kernelstream inspect model.safetensors\n  kernelstream inspect model.safetensors --json\n",
    "learners": "examples:\n  kernelstream learners\n  kernelstream learners NOGD\n",
    "data": """\
examples:
  kernelstream data list
  kernelstream data get a9a ijcnn1
  kernelstream data get all --data sets
""",
    "reproduce": "",
    "completion": """\
to switch it on:
  bash   eval "$(kernelstream completion bash)"        in ~/.bashrc
  zsh    eval "$(kernelstream completion zsh)"         in ~/.zshrc
  fish   kernelstream completion fish | source         in ~/.config/fish/config.fish
""",
}


class UsageError(Exception):
    """The command line asks for something that does not exist; the message says what would be right."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def parse(argv: list[str]) -> argparse.Namespace:
    """The arguments, checked; `command` is the name of the function of `kernelstream.cli.commands` that does it."""
    parser = make_parser()
    with _suggestions(parser, argv):
        return parser.parse_args(argv)


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = _Parser(
        "kernelstream",
        description="Learn kernel machines from endless data streams.",
        epilog=f"{_EXAMPLES['']}\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, help: str, description: str | None = None) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = commands.add_parser(
            name,
            help=help,
            description=description or help[0].upper() + help[1:] + ".",
            epilog=f"{_EXAMPLES[name]}\n{EXIT_CODES}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        made.set_defaults(command=name)
        return made

    run = command(
        "run",
        "learn a stream: predict each row, then learn it, and report",
        "Predict each row of a stream, then learn it, and report how that went.",
    )
    _sources(run, "*")
    run.add_argument(
        "--learner", metavar="NAME", help="see `kernelstream learners` (default: the best one, untuned)"
    )
    _model(run)
    run.add_argument("--save", metavar="MODEL", help="write the model to this file at the end")
    run.add_argument(
        "--predictions", metavar="FILE", help="write what was predicted for each row, one a line"
    )
    run.add_argument(
        "--checkpoint", metavar="DIR", help="keep checkpoints in this folder, and go on from the last one"
    )
    run.add_argument(
        "--every", type=_count, metavar="N", help="rows between two checkpoints (default: 100000)"
    )
    _output(run)

    compare = command("compare", "learn a stream with several learners in one pass, and rank them")
    _sources(compare, "*")
    compare.add_argument("--learners", required=True, metavar="A,B,C", help="names, with commas between them")
    _model(compare)
    _output(compare)

    predict = command(
        "predict",
        "predict the rows of a source with a saved model",
        "Predict the rows of a source with a saved model, one prediction a line. Labels in the source are not looked at.",
    )
    predict.add_argument("model", metavar="MODEL", help="a file that `run --save` or `model.save` wrote")
    _sources(predict, "+", labelled=False)
    predict.add_argument("--output", metavar="FILE", help="write there (default: standard output)")

    inspect = command("inspect", "show what a model file holds")
    inspect.add_argument("model", metavar="MODEL")
    inspect.add_argument("--json", action="store_true", help="as one JSON object")

    learners = command("learners", "list the learners, or explain one")
    learners.add_argument("name", nargs="?", metavar="NAME", help="a learner to explain")

    data = command(
        "data",
        "list the data sets that have names, or fetch some",
        "List the data sets that have names and where their files are, or fetch some from the public collections.",
    )
    data.add_argument("action", choices=["list", "get"])
    data.add_argument("names", nargs="*", metavar="NAME", help="data sets, or all")
    _data_folder(data)

    command(
        "reproduce", "run the papers' experiments and write a report"
    )  # `kernelstream_reproduce.command` does it
    completion = command("completion", "print a script that completes this command in a shell")
    completion.add_argument("shell", choices=["bash", "zsh", "fish"])

    return parser


def _sources(parser: argparse.ArgumentParser, nargs: str, *, labelled: bool = True) -> None:
    """Where rows come from, and how they are read."""
    parser.add_argument(
        "sources",
        nargs=nargs,
        metavar="SOURCE",
        help="files (LIBSVM, CSV, TSV, JSON lines, Parquet, Arrow, NumPy; plain, gz, xz, zst), - for standard input, or the "
        "name of a data set or built-in stream" + (" (default: rings)" if nargs == "*" else ""),
    )
    group = parser.add_argument_group("reading")
    _data_folder(group)
    group.add_argument(
        "--format", metavar="NAME", help="of the files (default: told by their names or first bytes)"
    )
    if labelled:
        group.add_argument(
            "--target", type=_column, metavar="COLUMN", help="the column to predict, by name or number"
        )
        group.add_argument(
            "--task",
            choices=["classification", "regression"],
            help="(default: classification, or the data set's own)",
        )
    group.add_argument(
        "--categorical", type=_columns, metavar="A,B", help="columns of categories (default: those of text)"
    )
    group.add_argument("--hashed", type=_count, metavar="N", help="hash categories into N features")
    group.add_argument("--drop", type=_columns, metavar="A,B", help="columns to leave out")
    group.add_argument(
        "--header", action=argparse.BooleanOptionalAction, help="whether the first line of CSV has names"
    )
    group.add_argument(
        "--n-features", type=_count, metavar="N", help="width of LIBSVM rows (default: as wide as they come)"
    )
    group.add_argument(
        "--on-bad-row",
        default="stop",
        metavar="WHAT",
        help="stop (the default), skip, or quarantine=FILE, which keeps them there",
    )
    group.add_argument(
        "--rows", type=_count, metavar="N", help=f"rows to read (default: all; of a built-in stream {ROWS:,})"
    )
    group.add_argument(
        "--seed",
        type=_count,
        default=0,
        metavar="N",
        help="of the stream, the order of a data set, the learner (default: 0)",
    )


def _data_folder(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="the folder of the data sets (default: $KERNELSTREAM_DATA, else the cache folder)",
    )


def _model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=_setting,
        metavar="KEY=VALUE",
        help="a hyper-parameter, such as budget=200 or kernel__gamma=0.5; may be repeated",
    )


def _output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--curve", metavar="FILE", help="write the error over the rows, as FILE.csv or FILE.png"
    )
    parser.add_argument("--quiet", action="store_true", help="only the result, no progress")
    parser.add_argument("--json", action="store_true", help="only the result, as one JSON object")


class _Version(argparse.Action):
    def __call__(self, *_: Any) -> NoReturn:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"kernelstream {version('kernelstream')}")
        except PackageNotFoundError:
            print("kernelstream (not installed)")
        raise SystemExit(0)


@contextlib.contextmanager
def _suggestions(parser: argparse.ArgumentParser, argv: list[str]) -> Iterator[None]:
    """Add near misses to argparse's errors about unknown commands and options."""
    try:
        yield
    except UsageError as error:
        from kernelstream.stream.datasets import did_you_mean

        commands = next(a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction))
        message = str(error)
        if found := re.match(r"argument COMMAND: invalid choice: '(.*?)'", message):
            raise UsageError(f"unknown command {found[1]!r}; {did_you_mean(found[1], commands)}") from None
        if found := re.match(r"unrecognized arguments: (--?[\w-]+)", message):
            inside = commands.get(next((word for word in argv if word in commands), ""), parser)
            options = [option for action in inside._actions for option in action.option_strings]
            raise UsageError(f"unknown option {found[1]}; {did_you_mean(found[1], options)}") from None
        raise


def _count(text: str) -> int:
    """A non-negative integer; 1e6 and 1_000_000 are fine."""
    with contextlib.suppress(ValueError, OverflowError):
        number = float(text) if "e" in text.lower() else int(text)
        if number >= 0 and number == int(number):
            return int(number)
    raise argparse.ArgumentTypeError(f"expected a whole number that is not negative, got {text!r}")


def _jobs(text: str) -> int:
    """A positive number of processes."""
    number = _count(text)
    if number == 0:
        raise argparse.ArgumentTypeError("expected at least 1")
    return number


def _column(text: str) -> str | int:
    """A column by name, or by number if it looks like one."""
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def _columns(text: str) -> list[str | int]:
    return [_column(part) for part in text.split(",") if part]


def _setting(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    try:
        return key.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return key.strip(), value
