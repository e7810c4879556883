"""Claims judged by results: the small grammar that the protocols' verdicts are written in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from kernelstream.experiments.summary import Claim

__all__ = ["Case", "against", "judged", "trend", "verdict"]

Case = tuple[bool, str]
"""Whether a claim holds in one case, and the figures that say so."""


def judged(place: str, text: str, cases: Sequence[Case], wanted: int | None = None) -> Claim:
    """A claim with the figures of each case as evidence; see `verdict`.

    Args:
        place: in the paper.
        text: the claim in our words.
        cases: what there are results for.
        wanted: number of cases of a complete run; with fewer the evidence says so.

    >>> judged("Table 3", "A beats B.", [(True, "x: 1 < 2"), (False, "y: 4 > 3")])
    Claim(place='Table 3', text='A beats B.', verdict='holds in part', evidence='1 of 2: x: 1 < 2. Not: y: 4 > 3.')
    """
    held = [words for holds, words in cases if holds]
    broken = [words for holds, words in cases if not holds]
    words = ". Not: ".join("; ".join(part) for part in (held, broken) if part)
    words = words if held else f"not: {words}"
    short = (
        f" ({wanted - len(cases)} more were not run)" if wanted is not None and len(cases) < wanted else ""
    )
    return verdict(
        place, text, [holds for holds, _ in cases], f"{len(held)} of {len(cases)}{short}: {words}."
    )


def verdict(place: str, text: str, held: Sequence[bool], evidence: str) -> Claim:
    """A claim that holds if it does in all its cases, in part if in half of them or more; not run if there is no case.

    >>> verdict("Figure 1", "warm is the fastest", [], "").verdict
    'not run'
    >>> verdict("Figure 1", "warm is the fastest", [True, False], "2 s, 3 s").verdict
    'holds in part'
    """
    if not held:
        return Claim(place, text, "not run", "")
    part: Literal["holds in part", "does not hold"] = (
        "holds in part" if 2 * sum(held) >= len(held) else "does not hold"
    )
    return Claim(place, text, "holds" if all(held) else part, evidence)


def against(values: Mapping[str, float], name: str, style: str = ".2f", unit: str = "") -> Case:
    """Whether a label has the least value, beside the best of the others.

    >>> against({"A": 3.0, "B": 2.0, "C": 4.0}, "A")
    (False, 'A 3.00, B 2.00')
    """
    other = min((label for label in values if label != name), key=values.__getitem__)
    words = f"{name} {values[name]:{style}}{unit}, {other} {values[other]:{style}}{unit}"
    return values[name] < values[other], words


def trend(
    points: Sequence[tuple[Any, float]], direction: Literal["falls", "rises"], what: str, unit: str = ""
) -> list[Case]:
    """Whether a measure ends lower (or higher) than it began, as one case with all its values; none without two points.

    >>> trend([(100, 9.0), (200, 8.5), (300, 8.7)], "falls", "mistakes", " %")
    [(True, 'mistakes 9, 8.5, 8.7 % at 100, 200, 300 (1 of 2 steps)')]
    """
    if len(points) < 2:
        return []
    sign = -1 if direction == "falls" else 1
    steps = [sign * (b - a) > 0 for (_, a), (_, b) in pairwise(points)]
    values = ", ".join(f"{value:.4g}" for _, value in points)
    places = ", ".join(f"{at:g}" for at, _ in points)
    holds = sign * (points[-1][1] - points[0][1]) > 0
    return [(holds, f"{what} {values}{unit} at {places} ({sum(steps)} of {len(steps)} steps)")]
