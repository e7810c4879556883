"""Judging the papers' claims by our runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from kernelstream_reproduce.measurements import standard_errors
from kernelstream_reproduce.summary import Claim, Figure

__all__ = ["Case", "has_least_mean", "judge_cases", "trend", "judge"]

Case = tuple[bool, str]
"""Whether a claim holds in one case, and the figures that say so."""


NOISE = 2.0
"""Standard errors within which two means are the same."""


def judge_cases(
    place: str, text: str, cases: Sequence[Case], wanted: int | None = None, *, most: bool = False
) -> Claim:
    """A claim with the figures of each case as evidence; see `judge`.

    Args:
        place: in the paper.
        text: the claim in our words.
        cases: what there are results for.
        wanted: number of cases of a complete run; with fewer the evidence says so.
        most: the claim is about most cases: it holds if it does in more than half of them.

    >>> judge_cases("Table 3", "A beats B.", [(True, "x: 1 < 2"), (False, "y: 4 > 3")])
    Claim(place='Table 3', text='A beats B.', verdict='holds in part', evidence='1 of 2: x: 1 < 2. Not: y: 4 > 3.')
    """
    if not cases:
        return Claim(place, text, "not run", "")
    held = [words for holds, words in cases if holds]
    broken = [words for holds, words in cases if not holds]
    words = ". Not: ".join("; ".join(part) for part in (held, broken) if part)
    words = words if held else f"not: {words}"
    short = (
        f" ({wanted - len(cases)} more were not run)" if wanted is not None and len(cases) < wanted else ""
    )
    evidence = f"{len(held)} of {len(cases)}{short}: {words}."
    claim = judge(place, text, [holds for holds, _ in cases], evidence)
    if most and 2 * len(held) > len(cases):
        claim.verdict = "holds"
    return claim


def judge(place: str, text: str, held: Sequence[bool], evidence: str) -> Claim:
    """A claim that holds if it does in all its cases, in part if in half of them or more; not run if there is no case.

    >>> judge("Figure 1", "warm is the fastest", [], "").verdict
    'not run'
    >>> judge("Figure 1", "warm is the fastest", [True, False], "2 s, 3 s").verdict
    'holds in part'
    """
    if not held:
        return Claim(place, text, "not run", evidence)
    part: Literal["holds in part", "does not hold"] = (
        "holds in part" if 2 * sum(held) >= len(held) else "does not hold"
    )
    return Claim(place, text, "holds" if all(held) else part, evidence)


def has_least_mean(figures: Mapping[str, Figure], name: str, style: str = ".2f", unit: str = "") -> Case:
    """Whether a label has the least mean, by more than two standard errors, and its figure beside the best of the others.

    >>> has_least_mean({"A": Figure(3.0, 0.1, 20), "B": Figure(2.0, 0.1, 20), "C": Figure(4.0, 0.1, 20)}, "A")
    (False, 'A 3.00, B 2.00')
    >>> has_least_mean({"A": Figure(2.99, 0.1, 20), "B": Figure(3.0, 0.1, 20)}, "A")
    (False, 'A 2.99, B 3.00 (the same within the noise)')
    """
    other = min((label for label in figures if label != name), key=lambda label: figures[label].mean)
    errors = standard_errors(figures[name], figures[other])
    words = f"{name} {figures[name].mean:{style}}{unit}, {other} {figures[other].mean:{style}}{unit}"
    return errors < -NOISE, words + (" (the same within the noise)" if abs(errors) <= NOISE else "")


def trend(
    points: Sequence[tuple[Any, Figure]], direction: Literal["falls", "rises"], what: str, unit: str = ""
) -> list[Case]:
    """Whether a measure ends lower (or higher) than it began by more than two standard errors; no case without two points.

    >>> trend([(100, Figure(9.0, 0.1, 20)), (200, Figure(8.5, 0.1, 20)), (300, Figure(8.7, 0.1, 20))], "falls", "mistakes", " %")
    [(True, 'mistakes 9, 8.5, 8.7 % at 100, 200, 300')]
    """
    if len(points) < 2:
        return []
    errors = standard_errors(points[-1][1], points[0][1])
    values = ", ".join(f"{figure.mean:.4g}" for _, figure in points)
    places = ", ".join(f"{at:g}" for at, _ in points)
    same = " (the same at both ends, within the noise)" if abs(errors) <= NOISE else ""
    holds = errors < -NOISE if direction == "falls" else errors > NOISE
    return [(holds, f"{what} {values}{unit} at {places}{same}")]
