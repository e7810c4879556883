"""The columns of a source or a model, for `inspect` and `run --dry-run`."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from typing import Any

__all__ = ["column_table", "print_columns", "show_source"]


def show_source(
    places: list[Any], name: str, options: dict[str, Any], reason: str | None = None, as_json: bool = False
) -> None:
    """Say what the columns of a source are, and its task if it is known."""
    description = _first_columns(places, options)
    table = None if description is None or "kinds" not in description else description
    task = options.get("task")
    if as_json:
        columns = {} if table is None else {column: kind for column, kind, _ in column_table(table)}
        print(json.dumps({"source": name, "task": task, "task_because": reason, "columns": columns}))
        return
    if task is not None:
        print(f"{name}: {task}" + (f", because {reason}" if reason else ""))
    if table is None:
        print(f"{name}: its rows are features already, and have no columns with names")
    else:
        print_columns(table)
        print("Set another kind with --column NAME=KIND.")


def _first_columns(places: list[Any], options: dict[str, Any]) -> dict[str, Any] | None:
    """How the first rows of a source become features; None for rows that have no columns with names."""
    from kernelstream.stream import read
    from kernelstream.tables.kinds import LOOK_AHEAD

    rows = LOOK_AHEAD if options.get("rows") is None else min(options["rows"], LOOK_AHEAD)
    asked = options | {"rows": rows, "chunk_size": LOOK_AHEAD}
    with contextlib.closing(read(*places, **asked)) as source:
        for _ in source:
            pass
        return source.encoding


def column_table(description: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Name, kind and features of each column.

    >>> from kernelstream import TableEncoder
    >>> column_table(TableEncoder().fit({"age": [31, None], "job": ["nurse", "smith"]}).description)
    [('age', 'number', '1, 1 for missing ones'), ('job', 'category', '2')]
    """
    counts = Counter(name for name, key in description["features"] if key not in ("?", "*"))
    special = {(name, key) for name, key in description["features"] if key in ("?", "*")}
    rows = []
    for name, kind in description["kinds"].items():
        if kind == "text":
            features = f"{description['text_features']:,}"
        elif kind == "category" and description["hashed"] is not None:
            features = f"{description['hashed']:,} for all categories, hashed"
        else:
            features = f"{counts[name]:,}"
        for key, what in (("?", "missing ones"), ("*", "all others")):
            features += f", 1 for {what}" if (name, key) in special else ""
        rows.append((name, kind, features))
    dropped = [name for name in description["names"] if name not in description["kinds"]]
    rows += [(name, "label" if name == description["target"] else "drop", "") for name in dropped]
    if description["target"] is not None and description["target"] not in dropped:
        rows.append((description["target"], "label", ""))
    return rows


def print_columns(description: dict[str, Any], most: int = 40) -> None:
    """A line per column; the first ones, if they are many."""
    rows = column_table(description)
    shown = [("column", "kind", "features"), *rows[:most]]
    shown = [(name if name.isprintable() else repr(name), kind, features) for name, kind, features in shown]
    widths = [min(max(len(row[i]) for row in shown), 40) for i in range(2)]
    for name, kind, features in shown:
        print(f"  {name:<{widths[0]}}  {kind:<{widths[1]}}  {features}".rstrip())
    if len(rows) > most:
        print(f"  ... ({len(rows):,} columns in all)")
