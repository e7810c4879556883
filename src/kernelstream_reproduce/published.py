"""The papers' figures, with the place they come from, and our explanations of differences: data, in two files of JSON."""

from __future__ import annotations

import fnmatch
import json
from functools import cache
from importlib.resources import files
from typing import Any

from kernelstream_reproduce.summary import Figure

__all__ = ["PAPERS", "conclusion", "explanation", "published"]


def _data(name: str) -> Any:
    return json.loads(files("kernelstream_reproduce").joinpath(name).read_text(encoding="utf-8"))


@cache
def _published() -> dict[tuple[str, ...], dict[str, Any]]:
    return {
        (f["experiment"], f["data"], f["label"], json.dumps(f["variant"]), f["measure"]): f
        for f in _data("published.json")["figures"]
    }


PAPERS: dict[str, dict[str, str]] = _data("published.json")["papers"]
"""Title, authors and venue of each paper."""


def published(
    experiment: str, data: str, label: str, variant: dict[str, Any], measure: str
) -> tuple[Figure, float] | None:
    """A paper's figure and its seconds, or None if it gives none. A standard deviation that is not given is NaN.

    >>> published("skegd-table3", "german.numer", "SkeGD", {}, "mistakes")
    (Figure(mean=27.932, std=0.481, n=20), 0.076)
    """
    record = _published().get((experiment, data, label, json.dumps(variant), measure))
    if record is None:
        return None
    std = float("nan") if record["std"] is None else record["std"]
    return Figure(record["mean"], std, record["runs"]), record["seconds"]


def explanation(experiment: str, data: str, label: str, verdict: str) -> str:
    """Why a figure of ours is off, or "" if nobody has written it down: the first record of ``explanations.json`` that fits."""
    for record in _explanations()["cells"]:
        fits = (
            record["experiment"] == experiment
            and any(fnmatch.fnmatchcase(data, pattern) for pattern in record["data"])
            and any(fnmatch.fnmatchcase(label, pattern) for pattern in record["label"])
            and verdict in record["verdict"]
        )
        if fits:
            return str(record["text"])
    return ""


def conclusion(paper: str) -> str:
    """What our full run says of a paper, in plain words."""
    return str(_explanations()["papers"][paper])


@cache
def _explanations() -> dict[str, Any]:
    explanations: dict[str, Any] = _data("explanations.json")
    return explanations
