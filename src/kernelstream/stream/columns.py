"""The columns of a table: which is the label, which are numbers, which are categories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

from kernelstream.stream.bad_rows import SourceError
from kernelstream.stream.datasets import did_you_mean
from kernelstream.stream.options import Options

TARGET_NAMES = ("target", "label", "class", "y")
"""A column of one of these names is the label, if it is the only one and no other is asked for."""

Kind = Literal["number", "category"]
Label = Literal["whole", "text", "number"]


class Columns:
    """What the columns of a table are. The first file decides; the others must have the same."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.names: list[str] = []
        self.numbers: list[str] = []
        self.categories: list[str] = []
        self.target: str | None = None
        self.label: Label = "number" if options.task == "regression" else "whole"

    @property
    def read_target(self) -> str | None:
        """The column of the label, if labels are asked for."""
        return self.target if self._options.labelled else None

    def state(self) -> dict[str, Any]:
        """All that is known, for JSON."""
        return {
            "names": self.names,
            "numbers": self.numbers,
            "categories": self.categories,
            "target": self.target,
            "label": self.label,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self.names, self.target, self.label = list(state["names"]), state["target"], state["label"]
        self.numbers, self.categories = list(state["numbers"]), list(state["categories"])

    def settle(
        self,
        file: str,
        names: Sequence[str],
        kind_of: Callable[[str], Kind],
        label_of: Callable[[str], Label],
    ) -> None:
        """Take the columns of a file: the first file decides what they are, the others must have the same.

        Args:
            file: its name, and the line of the column names if it has one, for messages.
            names: of its columns.
            kind_of: tells what a column of the first file is.
            label_of: tells what the labels of the first file are.
        """
        if len(names) > self._options.max_features + 1:
            raise SourceError(
                f"{file} has {len(names):,} columns, but max_features is {self._options.max_features:,}"
            )
        if len(set(names)) < len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            raise SourceError(f"{file} has two columns called {twice!r}")
        if self.names:
            self._compare(file, names)
            return
        options = self._options
        target = self._find_target(file, names) if options.labelled else None
        dropped = {find_column(file, column, names) for column in options.drop}
        forced: set[str] = set()
        if options.categorical != "auto":
            forced = {find_column(file, column, names) for column in options.categorical}
        features = [name for name in names if name not in dropped and name != target]
        if not features:
            raise SourceError(f"{file} has no column left for the features: it has {_listed(names)}")
        kinds: dict[str, Kind] = {name: "category" if name in forced else kind_of(name) for name in features}
        if options.categorical != "auto":
            for name, kind in kinds.items():
                if kind == "category" and name not in forced:
                    raise SourceError(
                        f"{file}: column {name!r} is not of numbers, and not in categorical or drop"
                    )
        self.numbers = [name for name in features if kinds[name] == "number"]
        self.categories = [name for name in features if kinds[name] == "category"]
        self.names, self.target = list(names), target
        if target is not None and options.task == "classification":
            self.label = label_of(target)

    def _compare(self, file: str, names: Sequence[str]) -> None:
        known = set(self.names)
        optional = set() if self._options.labelled or self.target is None else {self.target}
        lacking, new = (
            [n for n in self.names if n not in {*names, *optional}],
            [n for n in names if n not in known],
        )
        if lacking or new:
            what = f"lacks {lacking[0]!r}" if lacking else f"has {new[0]!r}"
            raise SourceError(f"{file} {what}, other than the columns before it: {_listed(self.names)}")

    def _find_target(self, file: str, names: Sequence[str]) -> str:
        if self._options.target is not None:
            return find_column(file, self._options.target, names)
        candidates = [name for name in names if name.casefold() in TARGET_NAMES]
        if len(candidates) == 1:
            return candidates[0]
        which = (
            "several columns that may be"
            if candidates
            else "no column called target, label, class or y to be"
        )
        raise SourceError(
            f"{file} has {which} the label: say target=NAME, or a number (-1 is the last); "
            f"its columns are {_listed(names)}"
        )


def find_column(file: str, column: str | int, names: Sequence[str]) -> str:
    """The name of a column given by name or number; numbers may be text, and a name comes first.

    >>> find_column("x.csv", -1, ["a", "b"]), find_column("x.csv", "0", ["a", "b"])
    ('b', 'a')
    """
    if isinstance(column, str) and column in names:
        return column
    try:
        return names[int(column)]
    except (ValueError, IndexError):
        raise SourceError(f"{file} has no column {column!r}; {did_you_mean(str(column), names)}") from None


def _listed(names: Sequence[str], most: int = 12) -> str:
    printable = [name if name.isprintable() else repr(name) for name in names[:most]]
    return ", ".join(printable) + (f", ... ({len(names)} in all)" if len(names) > most else "")
