"""The error or a metric over the rows, as a picture or as numbers."""

from __future__ import annotations

import csv
import importlib.util
import io
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from kernelstream.cli.arguments import UsageError
from kernelstream.cli.display import error_text, metric_label
from kernelstream.files import write_atomically

if TYPE_CHECKING:
    from kernelstream.evaluate import Result

__all__ = ["check_curve", "write_curve"]


def check_curve(path: str | None) -> None:
    """Refuse a curve that could not be written, before the run."""
    if path is None:
        return
    if not path.lower().endswith((".png", ".svg", ".csv")):
        raise UsageError(f"--curve {path}: the name must end in .png, .svg or .csv")
    if not path.lower().endswith(".csv") and importlib.util.find_spec("matplotlib") is None:
        raise UsageError(
            "--curve FILE.png and FILE.svg need matplotlib: pip install 'kernelstream[plot]', or give FILE.csv"
        )


def write_curve(path: str, results: dict[str, Result], metrics: Sequence[str] = ()) -> None:
    """The error (or the metrics) over the rows, of one or several learners, as a picture or as numbers."""
    if path.lower().endswith(".csv"):
        return write_atomically(
            path, (_metric_rows(results, metrics) if metrics else _error_rows(results)).encode()
        )
    from matplotlib import style

    with style.context("kernelstream.pictures"):
        write_atomically(path, _picture(results, metrics, path.lower().rpartition(".")[2]))


def _picture(results: dict[str, Result], metrics: Sequence[str], kind: str) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5 * max(1, len(metrics))))
    panels = figure.subplots(max(1, len(metrics)), squeeze=False)[:, 0]
    for axes, metric in zip(panels, metrics or [""], strict=True):
        (_draw_error if not metric else partial(_draw_metric, metric=metric))(axes, results)
        axes.set(xlabel="rows learnt")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.legend()
    image = io.BytesIO()
    figure.savefig(image, format=kind, metadata={"Date": None} if kind == "svg" else {"Software": None})
    return image.getvalue()


def _error_rows(results: dict[str, Result]) -> str:
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["learner", "rows", "error"])
    for name, result in results.items():
        out.writerows(
            (name, n, repr(error)) for n, error in zip(*(c.tolist() for c in result.curve), strict=True)
        )
    return text.getvalue()


def _metric_rows(results: dict[str, Result], metrics: Sequence[str]) -> str:
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["learner", "rows", "metric", "all_rows", "window"])
    for name, result in results.items():
        assert result.evaluation is not None
        for metric in metrics:
            points = zip(*result.evaluation.curve(metric), strict=True)
            out.writerows((name, n, metric, repr(whole), repr(recent)) for n, whole, recent in points)
    return text.getvalue()


def _draw_error(axes: Any, results: dict[str, Result]) -> None:
    for name, result in results.items():
        axes.plot(*result.curve, label=f"{name}: {error_text(result, result.error)}")
    regression = any(result.task == "regression" for result in results.values())
    axes.set(ylabel="RMSE so far" if regression else "share of mistakes so far", ylim=(0, None))


def _draw_metric(axes: Any, results: dict[str, Result], metric: str) -> None:
    """A line over the window, and a dashed one over all rows."""
    for name, result in results.items():
        assert result.evaluation is not None
        rows, whole, recent = result.evaluation.curve(metric)
        (line,) = axes.plot(rows, recent, label=f"{name}: {whole[-1]:.4g}", linewidth=1.2)
        axes.plot(rows, whole, "--", color=line.get_color(), linewidth=1.2)
        window = result.evaluation.metrics.window
    axes.set(ylabel=f"{metric_label(metric)}\nlast {window:,} rows (dashed: all rows)")
