"""The contents of the report: tables beside the papers', charts, and claims with verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Chart", "Claim", "Entry", "Figure", "Paper", "Section", "Series", "Summary", "Table"]


@dataclass(frozen=True)
class Figure:
    """A mean over `n` runs and their standard deviation."""

    mean: float
    std: float
    n: int


@dataclass
class Entry:
    """A cell of a table: ours beside the paper's.

    Attributes:
        data: the data set's name.
        label: the learner's, as in the paper's table.
        variant: what is varied, such as ``{"B": 100}``.
        ours: all rounds counted; None if it was not run.
        without_warmup: the same runs without the mistakes made before the map exists; None where there is no warm-up.
        paper: None if the paper gives no figure.
        errors: (ours - paper) in standard errors of the difference; None unless both are there.
        errors_without_warmup: the same for `without_warmup`.
        verdict: see `VERDICTS`.
        explanation: why it is off, wherever it is by more than three standard errors.
        nearest: which settings of the grid come nearest to the paper's figure, in words.
        seconds: ours, processor time of one run.
        paper_seconds: the paper's, on its machine.
        settings: hyper-parameters that were chosen.
    """

    data: str
    label: str
    variant: dict[str, Any]
    ours: Figure | None = None
    without_warmup: Figure | None = None
    paper: Figure | None = None
    errors: float | None = None
    errors_without_warmup: float | None = None
    verdict: str = "not run"
    explanation: str = ""
    seconds: float | None = None
    paper_seconds: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    nearest: str = ""


VERDICTS = {
    "reproduced": "within three standard errors of the paper's figure",
    "reproduced without warm-up": "within three standard errors when the warm-up's mistakes are left out",
    "better": "better than the paper's figure by more than three standard errors",
    "worse": "worse than the paper's figure by more than three standard errors",
    "shorter run": "only the first rows of the paper's stream: nothing to compare",
    "no figure": "the paper gives no figure",
    "not run": "not run",
}


@dataclass
class Table:
    """Entries in rows by `label` and columns by `data` and `variant`; `lower_is_better` decides what "better" means."""

    title: str
    measure: str
    entries: list[Entry]
    lower_is_better: bool = True


@dataclass
class Series:
    """A curve, the points of a scatter, or bars; `names` are the points' own, `spread` standard deviations."""

    name: str
    x: list[float]
    y: list[float]
    spread: list[float] | None = None
    names: list[str] | None = None


@dataclass
class Chart:
    """A picture. In bars, x counts `categories` from 0. `log_x` and `log_y` are how it first shows."""

    id: str
    kind: Literal["line", "scatter", "bar"]
    title: str
    caption: str
    x_label: str
    y_label: str
    series: list[Series]
    log_x: bool = False
    log_y: bool = False
    categories: list[str] = field(default_factory=list)


@dataclass
class Claim:
    """What a paper says in words, and whether our runs say so too."""

    place: str
    text: str
    verdict: Literal["holds", "holds in part", "does not hold", "not run"]
    evidence: str


@dataclass
class Section:
    """One experiment."""

    name: str
    place: str
    title: str
    protocol: str
    complete: str
    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)


@dataclass
class Paper:
    """A paper and its experiments."""

    key: str
    title: str
    authors: str
    venue: str
    sections: list[Section]


@dataclass
class Summary:
    """Everything the report shows.

    Attributes:
        papers: the papers in turn.
        words: what reproduced and what did not, and why, in plain words; one string per paragraph.
        provenance: version, CPU level, trials, command: where the results come from.
    """

    papers: list[Paper]
    words: list[str]
    provenance: dict[str, str]
