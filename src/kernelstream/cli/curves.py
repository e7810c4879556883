"""The error over the rows, as a picture or as numbers."""

from __future__ import annotations

import csv
import importlib.util
import io
from typing import TYPE_CHECKING

from kernelstream.cli.arguments import UsageError
from kernelstream.cli.display import error_text
from kernelstream.files import write_atomically

if TYPE_CHECKING:
    from kernelstream.evaluate import Result

__all__ = ["check_curve", "write_curve"]


def check_curve(path: str | None) -> None:
    """Refuse a curve that could not be written, before the run."""
    if path is None:
        return
    if not path.lower().endswith((".png", ".csv")):
        raise UsageError(f"--curve {path}: the name must end in .png or .csv")
    if path.lower().endswith(".png") and importlib.util.find_spec("matplotlib") is None:
        raise UsageError(
            "--curve FILE.png needs matplotlib: pip install 'kernelstream[plot]', or give FILE.csv"
        )


def write_curve(path: str, results: dict[str, Result]) -> None:
    """Errors over the rows of one or several learners, as a picture or as numbers."""
    if path.lower().endswith(".csv"):
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow(["learner", "rows", "error"])
        for name, result in results.items():
            out.writerows(
                (name, n, repr(error)) for n, error in zip(*(c.tolist() for c in result.curve), strict=True)
            )
        return write_atomically(path, text.getvalue().encode())
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for name, result in results.items():
        axes.plot(*result.curve, label=f"{name}: {error_text(result, result.error)}", linewidth=1.6)
    regression = any(result.task == "regression" for result in results.values())
    axes.set(
        xlabel="rows learnt",
        ylabel="RMSE so far" if regression else "share of mistakes so far",
        ylim=(0, None),
    )
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=120)
    write_atomically(path, image.getvalue())
