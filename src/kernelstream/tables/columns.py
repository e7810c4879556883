"""The columns of a table: which is the label, and of which kind the others are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

from kernelstream.tables.errors import SourceError, did_you_mean, listed
from kernelstream.tables.kinds import KINDS, OF_NUMBERS, OF_TIMES, Kind, UnclearColumnError
from kernelstream.tables.options import TableOptions

TARGET_NAMES = ("target", "label", "class", "y")
"""A column of one of these names is the label, if it is the only one and no other is asked for."""

Label = Literal["whole", "text", "number"]


class Columns:
    """What the columns of a table are. The first file decides; the others must have the same.

    With `open` they come and go, as names in JSON lines do: what is absent is 0, and a name may be met at any time.
    """

    def __init__(self, options: TableOptions) -> None:
        self._options = options
        self.names: list[str] = []
        self.kinds: dict[str, Kind] = {}
        self.target: str | None = None
        self.label: Label | Literal[""] = "number" if options.task == "regression" else "whole"
        self.open = False
        self.forced: list[str] = []  # names whose kinds were said, where names come and go
        self._use(())

    @property
    def read_target(self) -> str | None:
        """The column of the label, if labels are asked for."""
        return self.target if self._options.labelled else None

    def state(self) -> dict[str, Any]:
        """All that is known, for JSON."""
        return {
            "names": self.names,
            "kinds": dict(self.kinds),
            "target": self.target,
            "label": self.label,
            "open": self.open,
            "forced": self.forced,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        kinds = state["kinds"]
        if not all(isinstance(name, str) and kind in KINDS for name, kind in kinds.items()):
            raise ValueError(f"columns are one of {', '.join(KINDS)}, got {kinds!r}")
        self.names, self.target, self.label = list(state["names"]), state["target"], state["label"]
        self.kinds, self.open = dict(kinds), bool(state["open"])
        self.forced = [str(name) for name in state.get("forced", ())]
        self._use(self.kinds)

    @property
    def forced_words(self) -> list[str]:
        """The names among them that hold texts, whatever they look like."""
        return [name for name in self.forced if self.kinds.get(name, "category") not in OF_NUMBERS]

    def _use(self, names: Sequence[str] | dict[str, Any]) -> None:
        """The columns of each kind, in order; of those that come and go only the ones that are there."""
        by_kind: dict[str, list[str]] = {kind: [] for kind in KINDS}
        for name in names:
            if name in self.kinds:
                by_kind[self.kinds[name]].append(name)
        self.categories = by_kind["category"]
        self.plain_numbers = by_kind["number"]
        self.read_numbers = by_kind["boolean"] + by_kind["decimal-comma"]  # from words
        self.numbers = self.plain_numbers + self.read_numbers
        self.times, self.texts = [name for kind in OF_TIMES for name in by_kind[kind]], by_kind["text"]

    @property
    def used(self) -> list[str]:
        """The columns that become features."""
        return self.numbers + self.categories + self.times + self.texts

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
        if self.names and not self.open:
            self._compare(file, names)
            return
        options = self._options
        target = self.target
        if options.labelled and (target is None or target not in names):
            target = self._find_target(file, names)
        asked = {find_column(file, column, names): kind for column, kind in options.columns.items()}
        dropped = {find_column(file, column, names) for column in options.drop}
        dropped |= {name for name, kind in asked.items() if kind == "drop"}
        forced: set[str] = set()
        if options.categorical != "auto":
            forced = {find_column(file, column, names) for column in options.categorical}
        features = [name for name in names if name not in dropped and name != target]
        if not features:
            raise SourceError(f"{file} has no column left for the features: it has {listed(names)}")
        kinds: dict[str, Kind] = {}
        for name in features:
            if self.open and (name in self.kinds or options.frozen):
                continue  # known, or never to be
            told = asked.get(name) or ("category" if name in forced else None)
            try:
                kinds[name] = told if told in KINDS else kind_of(name)
            except UnclearColumnError as error:
                raise SourceError(f"{file}: column {name!r} {error} (columns=)") from None
        if options.categorical != "auto":
            for name, kind in kinds.items():
                if kind not in OF_NUMBERS and name not in forced and name not in asked:
                    raise SourceError(
                        f"{file}: column {name!r} is not of numbers, and not in categorical or drop"
                    )
        self.kinds |= kinds
        self._use(features)
        self.target = target
        if not self.open:
            self.names = list(names)
        if target is not None and options.labelled and options.task == "classification":
            if not self.open or not self.label:
                self.label = label_of(target)

    def _compare(self, file: str, names: Sequence[str]) -> None:
        """A table after the first must have the columns that become features, and no unknown one."""
        needed = [*self.used, *([self.target] if self.read_target is not None else [])]
        held, known = set(names), {*self.names, self.target}
        lacking = [name for name in needed if name is not None and name not in held]
        new = [name for name in names if name not in known and name != self._options.keep]
        if lacking or new:
            what = f"lacks {lacking[0]!r}" if lacking else f"has {new[0]!r}"
            raise SourceError(f"{file} {what}, other than the columns before it: {listed(self.names)}")

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
            f"its columns are {listed(names)}"
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


def check_kinds(columns: Any) -> dict[Any, str]:
    """A description of columns given by a user: names (or numbers) and their kinds, or "drop".

    >>> check_kinds({"age": "number", "when": "date"})  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    ...
    ValueError: column 'when' cannot be 'date': a column is one of number, boolean, category, time, text,
    decimal-comma, day-first, month-first, drop
    """
    if not hasattr(columns, "items"):
        raise ValueError(f"columns must be a dictionary such as {{'age': 'number'}}, got {columns!r}")
    for name, kind in columns.items():
        if kind not in (*KINDS, "drop"):
            raise ValueError(
                f"column {name!r} cannot be {kind!r}: a column is one of {', '.join(KINDS)}, drop"
            )
    return dict(columns)
