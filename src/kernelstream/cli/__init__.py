"""The command line: parses, calls, prints."""

import os
import sys
from importlib.metadata import entry_points
from typing import Any

from kernelstream.cli.arguments import UsageError, parse

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code (see `EXIT_CODES` in `kernelstream.cli.arguments`).

    Examples:
        >>> main(["--version"])  # doctest: +ELLIPSIS
        kernelstream ...
        0
    """
    try:
        words = sys.argv[1:] if argv is None else argv
        if words and (command := _other_command(words[0])):
            code: int = command.main(words[1:], f"kernelstream {words[0]}", standalone_mode=False) or 0
            sys.stdout.flush()
            return code
        arguments = parse(words)
        from kernelstream.cli import commands

        code = getattr(commands, arguments.command)(arguments)
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
        module = type(error).__module__
        ours = isinstance(error, UsageError | ValueError | OSError) or module.startswith(("kernelstream", "click"))
        _tell(_message(error, ours))
        return 2 if ours else 1


def _other_command(name: str) -> Any:
    """The click command that another package (or `kernelstream_reproduce`) registers under this name, or None."""
    entries = entry_points(group="kernelstream.commands", name=name)
    return next((entry.load() for entry in entries), None)


def _tell(message: str) -> None:
    if not sys.stderr.isatty():
        print(f"kernelstream: error: {message}", file=sys.stderr)
        return
    from rich.console import Console
    from rich.markup import escape

    Console(stderr=True, highlight=False).print(f"[bold red]kernelstream: error:[/] {escape(message)}")


def _message(error: Exception, ours: bool) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:  # without "[Errno 28]"
        text = " ".join(error.strerror.split()) + (f": {error.filename}" if error.filename else "")
    return text if ours else f"{type(error).__name__}: {text}"
