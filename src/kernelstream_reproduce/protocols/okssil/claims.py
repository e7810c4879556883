"""What the OKS-SIL paper says in words about its table and figure, judged by our runs."""

from __future__ import annotations

from kernelstream_reproduce.claims import Case, has_least_mean, judge_cases, trend
from kernelstream_reproduce.measurements import Runs, figures, means_by_variant
from kernelstream_reproduce.summary import Claim, Figure

__all__ = ["judge_claims"]


def judge_claims(name: str, runs: Runs) -> list[Claim]:
    """The claims of an experiment."""
    return _table2(runs) if name == "okssil-table2" else _figure1(runs)


def _table2(runs: Runs) -> list[Claim]:
    best: list[Case] = []
    near: list[Case] = []
    fast: list[Case] = []
    for data in dict.fromkeys(data for data, _, _ in runs):
        mistakes, seconds = figures(runs, "mistakes", data), figures(runs, "seconds", data)
        if len(mistakes) < 4:
            continue
        wins, words = has_least_mean(mistakes, "OKS-SIL")
        if data in ("w7a", "cod-rna.train"):
            least = min(figure.mean for figure in mistakes.values())
            near.append((mistakes["OKS-SIL"].mean - least < 1, f"{data}: {words}"))
        else:
            best.append((wins, f"{data}: {words}"))
        if data != "german.numer":  # has 1,000 rounds
            wins, words = has_least_mean(seconds, "OKS-SIL", ".3g", " s")
            fast.append((wins, f"{data}: {words}"))
    place = "Section 6.1, Table 2"
    return [
        judge_cases(
            place, "OKS-SIL makes the fewest mistakes on all data sets but w7a and cod-rna.", best, 6
        ),
        judge_cases(place, "On w7a and cod-rna it is comparable to the best (within one point).", near, 2),
        judge_cases(
            place, "OKS-SIL is faster than the others on streams of more than 1,000 rounds.", fast, 7
        ),
    ]


def _figure1(runs: Runs) -> list[Claim]:
    def points(symbol: str, measure: str = "mistakes") -> list[tuple[float, Figure]]:
        return means_by_variant(runs, measure, "spambase", "OKS-SIL", symbol)

    def level(symbol: str, begin: float, most: float, what: str) -> list[tuple[bool, str]]:
        values = [figure.mean for at, figure in points(symbol) if at >= begin]
        if len(values) < 2:
            return []
        spread = max(values) - min(values)
        return [(spread < most, f"{spread:.2f} points between the best and the worst {what}")]

    place = "Section 6.2, Figure 1"
    nu_time = [figure.mean for _, figure in points("nu", "seconds")]
    alike = (
        [(max(nu_time) < 1.5 * min(nu_time), f"{max(nu_time) / min(nu_time):.2f} times between the extremes")]
        if len(nu_time) > 1
        else []
    )
    return [
        judge_cases(
            place, "Mistakes fall as the budget grows.", trend(points("B"), "falls", "mistakes", " %")
        ),
        judge_cases(
            place,
            "Above a budget of 50 it has little influence (within one point).",
            level("B", 100, 1.0, "budget above 50"),
        ),
        judge_cases(
            place, "A larger budget takes more time.", trend(points("B", "seconds"), "rises", "seconds")
        ),
        judge_cases(
            place,
            "More sampled basis functions make fewer mistakes.",
            trend(points("s"), "falls", "mistakes", " %"),
        ),
        judge_cases(
            place,
            "More sampled basis functions take more time.",
            trend(points("s", "seconds"), "rises", "seconds"),
        ),
        judge_cases(
            place,
            "A threshold nu close to 1 makes fewer mistakes than a small one.",
            trend(points("nu"), "falls", "mistakes", " %"),
        ),
        judge_cases(place, "The time is much the same for every nu.", alike),
    ]
