"""The command line: parses, calls, prints."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code (see `EXIT_CODES` in `kernelstream.cli.arguments`).

    Examples:
        >>> main(["--version"])  # doctest: +ELLIPSIS
        kernelstream ...
        0
    """
    with _interruptible_start():
        return _main(argv)


@contextlib.contextmanager
def _interruptible_start() -> Iterator[None]:
    """Ctrl-C while modules are imported ends the process at once: an exception there may be swallowed, or shown as theirs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def stop(number: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
                os._exit(130)
            frame = frame.f_back
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _main(argv: list[str] | None) -> int:
    import click

    from kernelstream.cli.group import kernelstream

    try:
        if instruction := os.environ.get("_KERNELSTREAM_COMPLETE"):  # a shell asks how to complete a word
            from click.shell_completion import shell_complete

            return shell_complete(kernelstream, {}, "kernelstream", "_KERNELSTREAM_COMPLETE", instruction)
        arguments = list(sys.argv[1:] if argv is None else argv)
        with kernelstream.make_context("kernelstream", arguments) as context:
            code: int | None = kernelstream.invoke(context)
        sys.stdout.flush()
        return code or 0
    except click.exceptions.Exit as end:  # after --help and --version
        return end.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has gone, as in `kernelstream run | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        # A message of ours speaks for itself; anything else is clearer with its type.
        ours = isinstance(error, click.ClickException | ValueError | OSError) or type(
            error
        ).__module__.startswith("kernelstream")
        _print_error(_message(error, ours))
        return 2 if ours else 1


def _print_error(message: str) -> None:
    if not sys.stderr.isatty():
        print(f"kernelstream: error: {message}", file=sys.stderr)
        return
    from rich.console import Console
    from rich.markup import escape

    Console(stderr=True, highlight=False).print(f"[bold red]kernelstream: error:[/] {escape(message)}")


def _message(error: Exception, ours: bool) -> str:
    import click

    text = str(error)
    if isinstance(error, click.ClickException):
        text = _usage_message(error)
    elif isinstance(error, OSError) and error.strerror:  # without "[Errno 28]"
        text = error.strerror + (f": {error.filename}" if error.filename else "")
    text = _with_flags(" ".join(text.split()))
    return text if ours else f"{type(error).__name__}: {text}"


def _with_flags(text: str) -> str:
    """A message of the library in the words of the command line.

    >>> _with_flags("say target=NAME, or task='regression' (charset=)")
    'say --target NAME, or --task regression (--encoding)'
    """
    import re

    arguments = "target|task|categorical|columns|drop|hashed|header|delimiter|charset|format|n_features|max_features|max_classes"

    def flag(found: re.Match[str]) -> str:
        name, value = (
            found[1].replace("charset", "encoding").replace("columns", "column").replace("_", "-"),
            found[2].strip("'"),
        )
        return f"--{name} {value}".rstrip()

    text = re.sub(rf"(?<![-\w])({arguments})=('[\w-]*'|[A-Z]+\b|)", flag, text)
    return re.sub(
        r"(?<![-\w'])(max_features|n_features|max_classes|on_bad_row)\b(?!=)",
        lambda m: "--" + m[1].replace("_", "-"),
        text,
    )


def _usage_message(error: click.ClickException) -> str:
    """What click says of a wrong command, with what would be right."""
    import click

    if not isinstance(error, click.UsageError) or error.ctx is None:
        return error.format_message()
    if isinstance(error, click.NoSuchOption):
        from kernelstream.stream.catalogue import did_you_mean

        options = [name for parameter in error.ctx.command.get_params(error.ctx) for name in parameter.opts]
        return f"unknown option {error.option_name}; {did_you_mean(error.option_name, options)}"
    return f"{error.format_message().rstrip('.')} (see {error.ctx.command_path} --help)"
