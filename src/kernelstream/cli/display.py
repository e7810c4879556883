"""Progress while a run lasts, and tables after it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelstream.evaluate import Result
    from kernelstream.metrics import Evaluation
    from kernelstream.stream import Source

    Show = Callable[[Result, Source], object]

__all__ = [
    "error_text",
    "figures",
    "metric_label",
    "number",
    "print_ranking",
    "print_rows",
    "print_table",
    "progress",
    "size",
]

WINDOW = 10_000
"""Rows of the window whose error is shown beside that of all rows."""


class Watch:
    """The figures of a run under way: errors, speed, memory, time left."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._share: float | None = None  # of the source, when this run began
        self._rows = 0  # learnt before this run began
        self._marks: deque[tuple[int, float]] = deque()  # rows and loss after each chunk of the window

    def see(self, result: Result, source: Source) -> None:
        """Note the state after a chunk; for the first time when the run begins."""
        if self._share is None:
            self._share, self._rows = source.fraction or 0.0, result.rounds
        self._marks.append((result.rounds, result.loss))
        while len(self._marks) > 1 and self._marks[1][0] <= result.rounds - WINDOW:
            self._marks.popleft()

    def line(self, result: Result) -> str:
        """The state in one line."""
        start, before = self._marks[0]
        mean = (result.loss - before) / max(result.rounds - start, 1)
        window = mean**0.5 if result.task == "regression" else mean
        speed = (result.rounds - self._rows) / max(time.monotonic() - self._began, 1e-9)
        used = process_memory()
        return (
            f"{_error(result, result.error)}, last {result.rounds - start:,}: {error_text(result, window)}   "
            f"{speed:,.0f} rows/s" + ("" if used is None else f"   {size(used)}")
        )

    def left(self, source: Source) -> str:
        """The time left, if the size of the source is known."""
        share, began = source.fraction, self._share or 0.0
        if share is None or share <= began:
            return ""
        seconds = int((time.monotonic() - self._began) * (1 - share) / (share - began))
        hours = f"{seconds // 3600}:{seconds // 60 % 60:02d}" if seconds >= 3600 else f"{seconds // 60}"
        return f"{hours}:{seconds % 60:02d} left"


def error_text(result: Result, error: float) -> str:
    """An error as it is shown: a share of mistakes in per cent, an RMSE as it is."""
    return f"{error:.4g}" if result.task == "regression" else f"{error:.2%}"


def _error(result: Result, error: float) -> str:
    return f"{'RMSE' if result.task == 'regression' else 'error'} {error_text(result, error)}"


def process_memory() -> int | None:
    """Bytes of this process in memory; None where the system does not say.

    >>> process_memory() is None or process_memory() > 1e6
    True
    """
    with contextlib.suppress(OSError, AttributeError, ValueError), open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


def size(nbytes: int) -> str:
    """A number of bytes in words.

    >>> size(1_500_000)
    '1.5 MB'
    """
    from rich.filesize import decimal

    return decimal(nbytes)


@contextlib.contextmanager
def progress(show: bool) -> Iterator[Show]:
    """A live bar if standard error is a terminal; elsewhere a plain line for every tenth and every 5 seconds."""
    watch = Watch()
    if not show:
        yield lambda result, source: None
    elif not sys.stderr.isatty():
        shown, at = 0.0, time.monotonic()  # the share and the time of the last line

        def print_line(result: Result, source: Source) -> None:
            nonlocal shown, at
            share = source.fraction or 0.0
            watch.see(result, source)
            if share >= shown + 0.1 or time.monotonic() > at + 5:
                shown, at = int(share * 10 + 1e-9) / 10, time.monotonic()
                left = watch.left(source) if share < 1 else ""
                print(
                    f"{result.rounds:>12,} rows   {watch.line(result)}   {left}".rstrip(),
                    file=sys.stderr,
                    flush=True,
                )

        yield print_line
    else:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        columns = (BarColumn(bar_width=16), TaskProgressColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("waiting for rows", total=None)

            def update(result: Result, source: Source) -> None:
                share = source.fraction
                watch.see(result, source)
                if not result.rounds:
                    return
                bar.update(
                    task,
                    total=None if share is None else 1.0,
                    completed=share or 0.0,
                    description=f"{result.rounds:,} rows   {watch.line(result)}   {watch.left(source)}",
                )

            yield update


def figures(result: Result, seconds: float | None = None, rows: int | None = None) -> dict[str, Any]:
    """The figures of a result, by name; `seconds` is the whole time for `rows`, reading included."""
    if result.task == "regression":
        errors = {"rmse": result.rmse, "rmse_last_tenth": result.recent_error()}
    else:
        errors = {
            "mistakes": result.mistakes,
            "error_rate": result.error_rate,
            "error_rate_last_tenth": result.recent_error(),
        }
    record = {"rounds": result.rounds, **errors, "seconds_in_model": result.seconds}
    if seconds is not None and rows:
        record |= {"seconds": seconds, "rows_per_second": rows / seconds}
    return record | {
        "microseconds_per_row": 1e6 * result.seconds / max(result.rounds, 1),
        "model_bytes": result.nbytes,
    }


_LABELS: dict[str, tuple[str, str]] = {
    "rounds": ("rounds", ",d"),
    "mistakes": ("mistakes", ",d"),
    "error_rate": ("error", ".2%"),
    "error_rate_last_tenth": ("error, last 10 %", ".2%"),
    "rmse": ("RMSE", ".5g"),
    "rmse_last_tenth": ("RMSE, last 10 %", ".5g"),
    "seconds": ("seconds", ".2f"),
    "rows_per_second": ("rows/s", ",.0f"),
    "microseconds_per_row": ("µs per row learnt", ".2f"),
    "model_bytes": ("model bytes", ",d"),
    "bad_rows": ("bad rows left out", ",d"),
    "workers": ("processes", ",d"),
    "merges": ("merges", ",d"),
}


def print_table(title: str, record: dict[str, Any]) -> None:
    """Figures under their names."""
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
    for label, figure in lines:
        table.add_row(label, figure)
    Console().print(table)


def print_rows(
    heads: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", left: Collection[int] = (0,)
) -> None:
    """A table: its columns are aligned right but for those of `left`; in a terminal with a frame."""
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(title=title or None)
        for i, head in enumerate(heads):
            table.add_column(head, justify="left" if i in left else "right")
        for row in rows:
            table.add_row(*row)
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    if title:
        print(title)
    for row in (heads, *rows):
        cells = (
            f"{cell:<{w}}" if i in left else f"{cell:>{w}}"
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        print(f"  {'  '.join(cells)}".rstrip())


def number(value: float) -> str:
    """A figure as it is shown; a dash where there is none.

    >>> number(0.98765), number(float("nan")), number(1234.5)
    ('0.9877', '-', '1234')
    """
    if value != value:
        return "-"
    return f"{value:.4f}" if abs(value) < 10 and (abs(value) >= 0.001 or value == 0) else f"{value:.4g}"


def metric_label(name: str) -> str:
    """A metric's name in words.

    >>> metric_label("balanced_accuracy"), metric_label("roc_auc")
    ('balanced accuracy', 'ROC AUC')
    """
    short = {
        "roc_auc": "ROC AUC",
        "mcc": "MCC",
        "f1": "F1",
        "mae": "MAE",
        "rmse": "RMSE",
        "r2": "R2",
        "brier": "Brier",
    }
    return short.get(name) or name.replace("_", " ")


def print_ranking(
    title: str,
    ranked: list[tuple[str, Result]],
    failures: dict[str, str],
    metrics: Sequence[str] = (),
    baselines: Evaluation | None = None,
) -> None:
    """Learners from the best to the worst; below them the baselines, and those that failed, with the reason."""
    measure = "RMSE" if ranked and ranked[0][1].task == "regression" else "error"
    heads = (
        "",
        "learner",
        *map(metric_label, metrics),
        measure,
        "last 10 %",
        "µs/row",
        "model",
        "error over the rows",
    )
    curves = [result.curve[1].tolist() for _, result in ranked]
    curves = [curve[len(curve) // 50 :] for curve in curves]  # the very first rows are all mistakes
    top = max((point for curve in curves for point in curve), default=1.0)
    rows = []
    for place, ((name, result), curve) in enumerate(zip(ranked, curves, strict=True), 1):
        figures = {} if result.evaluation is None else result.evaluation.metrics.figures()
        cost = f"{1e6 * result.seconds / max(result.rounds, 1):.2f}"
        memory = "" if result.nbytes is None else size(result.nbytes)
        errors = error_text(result, result.error), error_text(result, result.recent_error())
        chosen = (number(figures[metric]) for metric in metrics)
        rows.append((str(place), name, *chosen, *errors, cost, memory, spark(curve, top)))
    if baselines is not None and baselines.baselines is not None:
        for name, of in baselines.baselines.metrics.items():
            figures = of.figures()
            error = figures["rmse"] if measure == "RMSE" else 1 - figures["accuracy"]
            chosen = (number(figures[metric]) for metric in metrics)
            rows.append(("", name, *chosen, error_text(ranked[0][1], error), "", "", "", ""))
    print_rows(heads, rows, title, left=(0, 1, len(heads) - 1))
    for name, reason in failures.items():
        print(f"  -  {name} stopped: {reason}")


def spark(values: list[float], top: float, width: int = 24) -> str:
    """A curve in one line of text; a full block is `top`.

    >>> spark([1.0, 0.5, 0.25], 1.0)
    '█▄▂'
    """
    blocks = "▁▂▃▄▅▆▇█"
    picked = (
        [values[(i + 1) * len(values) // width - 1] for i in range(width)] if len(values) > width else values
    )
    return "".join(blocks[min(7, max(0, round(8 * value / top) - 1))] for value in picked) if top > 0 else ""
