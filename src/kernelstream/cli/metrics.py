"""Tables of metrics, beside those of the baselines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernelstream.cli.arguments import UsageError
from kernelstream.cli.display import metric_label, number, print_rows

if TYPE_CHECKING:
    from kernelstream.metrics import Evaluation

__all__ = ["check_metrics", "print_metrics"]

MOST_CLASSES = 10
"""A confusion matrix of more classes is not printed; --json has it."""


def check_metrics(names: Sequence[str], task: str) -> None:
    """Refuse metrics of the other task.

    >>> check_metrics(["f1"], "regression")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    kernelstream.cli.arguments.UsageError: --metric f1 is of a classification, this is a regression: say one of mae, ...
    """
    from kernelstream.metrics import metrics_of

    known = metrics_of(task).names
    for name in names:
        if name not in known:
            other = "regression" if task == "classification" else "classification"
            raise UsageError(
                f"--metric {name} is of a {other}, this is a {task}: say one of {', '.join(known)}"
            )


def print_metrics(evaluation: Evaluation, names: Sequence[str]) -> None:
    """The metrics over all rows and over the window, beside the baselines'; then the confusion matrix."""
    metrics = evaluation.metrics
    whole, recent = metrics.figures(), metrics.recent()
    baselines = {} if evaluation.baselines is None else evaluation.baselines.metrics
    others = [of.figures() for of in baselines.values()]
    longer = metrics.rows > metrics.window
    rows = []
    for name in names or metrics.names:
        areas = name in ("roc_auc", "average_precision")  # known over the window alone
        cells = [whole[name], *([recent[name]] if longer else []), *(figures[name] for figures in others)]
        shown = [number(value) for value in cells]
        rows.append((metric_label(name), *(["-", *shown[1:]] if areas and longer else shown)))
    last = [f"last {metrics.window:,}"] if longer else []
    print_rows(("", "all rows", *last, *baselines), rows)
    if evaluation.task == "classification" and not names:
        labels, counts = metrics.confusion()  # type: ignore[union-attr]
        if len(labels) <= MOST_CLASSES:
            table = [
                (_short(label), *map("{:,}".format, row)) for label, row in zip(labels, counts, strict=True)
            ]
            print_rows(("label / predicted", *map(_short, labels)), table)


def _short(label: object, longest: int = 20) -> str:
    text = str(label)
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
