"""Errors of tables, wherever they come from, and the words that errors share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class SourceError(ValueError):
    """A source cannot be read: damaged, cut short, too wide, or not what its name says. The message names the file.

    >>> issubclass(SourceError, ValueError)
    True
    """


class TooWideError(Exception):
    """A row needs more features than are allowed. Readers turn it into a `SourceError` that names the file and line."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row  # among the good rows of the chunk


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used: its number in the block (from 0), the column, if it is one, and the reason."""

    row: int
    column: str | None
    reason: str


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error message about an unknown name: near misses if there are any, else all names.

    Examples:
        >>> did_you_mean("budgte", ["budget", "eta"])
        "did you mean 'budget'?"
        >>> did_you_mean("x", ["budget", "eta"])
        'known: budget, eta'
    """
    known = sorted(known)
    folded = {k.casefold(): k for k in known}
    near = [folded[k] for k in difflib.get_close_matches(name.casefold(), folded, n=3)]
    return f"did you mean {' or '.join(map(repr, near))}?" if near else f"known: {', '.join(known)}"


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, the first of them if they are many.

    >>> listed(["a", "b", "c"], most=2)
    'a, b, ... (3 in all)'
    """
    printable = [name if name.isprintable() else repr(name) for name in names[:most]]
    return ", ".join(printable) + (f", ... ({len(names)} in all)" if len(names) > most else "")
