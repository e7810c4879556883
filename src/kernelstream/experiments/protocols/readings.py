"""What claims and charts read off the results of an experiment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelstream.experiments.summary import Claim, Series

__all__ = ["Results", "Row", "by_variant", "curve", "mean", "power", "series", "verdict"]

Row = Mapping[str, Any]
Results = Mapping[tuple[str, str, str], Sequence[Row]]
"""The runs of each cell, by data set, label and variant (as JSON)."""


def by_variant(results: Results, data: str, label: str, name: str) -> dict[Any, Sequence[Row]]:
    """The runs of one label on one data set by what is varied, in order; cells without a run are left out.

    >>> results = {("usps", "NOLANA", '{"epsilon": 50}'): [{}], ("usps", "NOLANA", '{"epsilon": 0}'): [{}]}
    >>> by_variant(results, "usps", "NOLANA", "epsilon")
    {0: [{}], 50: [{}]}
    """
    found = {
        json.loads(variant)[name]: rows
        for (d, own, variant), rows in results.items()
        if (d, own) == (data, label) and rows
    }
    return dict(sorted(found.items()))


def mean(rows: Sequence[Row] | None, measure: str) -> float | None:
    """The mean of a measure (or of "seconds") over runs; None if there is none.

    >>> mean([{"measures": {"rmse": 1.0}}, {"measures": {"rmse": 2.0}}], "rmse"), mean([], "rmse")
    (1.5, None)
    """
    values: list[Any] = [
        row["seconds"] if measure == "seconds" else row["measures"].get(measure)
        for row in rows or ()
        if measure != "seconds" or row.get("seconds") is not None
    ]
    return float(np.mean(values)) if values and None not in values else None


def curve(rows: Sequence[Row] | None, measure: str) -> tuple[list[float], list[float]] | None:
    """Rounds, and the mean of a curve over runs; "seconds" is the time so far.

    >>> curve([{"curve": {"rounds": [5, 10], "rmse": [2.0, 1.0]}}], "rmse")
    ([5.0, 10.0], [2.0, 1.0])
    """
    found = [
        (
            row["curve"]["rounds"],
            row.get("seconds_curve") if measure == "seconds" else row["curve"].get(measure),
        )
        for row in rows or ()
        if row.get("curve")
    ]
    whole = [(rounds, values) for rounds, values in found if values and len(values) == len(rounds)]
    if not whole or any(rounds != whole[0][0] for rounds, _ in whole):
        return None
    return [float(t) for t in whole[0][0]], np.mean(
        np.array([values for _, values in whole]), axis=0
    ).tolist()


def power(x: Sequence[float], y: Sequence[float]) -> float:
    """The exponent p of the fit y = c x^p.

    >>> round(power([1, 4, 16], [3, 6, 12]), 6)
    0.5
    """
    return float(np.polyfit(np.log(x), np.log(np.maximum(y, 1e-12)), 1)[0])


def series(name: str, cells: Mapping[Any, Sequence[Row]], measure: str) -> Series | None:
    """Means and deviations of a measure by what is varied.

    >>> series("KONS", {100: [{"measures": {"regret": 2.0}}]}, "regret")
    Series(name='KONS', x=[100.0], y=[2.0], spread=[0.0], names=None)
    """
    points = [(float(x), mean(rows, measure), rows) for x, rows in cells.items()]
    kept = [(x, y, rows) for x, y, rows in points if y is not None]
    if not kept:
        return None
    spread = [
        float(np.std([row["measures"][measure] for row in rows], ddof=1)) if len(rows) > 1 else 0.0
        for _, _, rows in kept
    ]
    return Series(name, [x for x, _, _ in kept], [y for _, y, _ in kept], spread)


def verdict(place: str, text: str, held: Sequence[bool], evidence: str) -> Claim:
    """A claim that holds in all cases, in some or in none; not run if there is no case.

    >>> verdict("Figure 1", "warm is the fastest", [], "").verdict
    'not run'
    >>> verdict("Figure 1", "warm is the fastest", [True, False], "2 s, 3 s").verdict
    'holds in part'
    """
    if not held:
        return Claim(place, text, "not run", "no runs yet")
    return Claim(
        place, text, "holds" if all(held) else "holds in part" if any(held) else "does not hold", evidence
    )
