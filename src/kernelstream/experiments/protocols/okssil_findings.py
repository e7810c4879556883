"""What the OKS-SIL paper says in words about its table and figure, judged by our runs; and the charts."""

from __future__ import annotations

from kernelstream.experiments.charts import across, of_a_table
from kernelstream.experiments.findings import Case, against, judged, trend
from kernelstream.experiments.readings import Rows, figures, swept
from kernelstream.experiments.summary import Chart, Claim, Figure

__all__ = ["TABLES", "charts", "claims"]

TABLES = {
    "okssil-table2": [("Mistakes, %", "mistakes", True)],
    "okssil-figure1": [("Mistakes on spambase, %", "mistakes", True)],
}


def claims(name: str, rows: Rows) -> list[Claim]:
    """The claims of an experiment."""
    return _table2(rows) if name == "okssil-table2" else _figure1(rows)


def _table2(rows: Rows) -> list[Claim]:
    best: list[Case] = []
    near: list[Case] = []
    fast: list[Case] = []
    for data in dict.fromkeys(data for data, _, _ in rows):
        found, spent = figures(rows, "mistakes", data), figures(rows, "seconds", data)
        if len(found) < 4:
            continue
        wins, words = against(found, "OKS-SIL")
        if data in ("w7a", "cod-rna.train"):
            least = min(figure.mean for figure in found.values())
            near.append((found["OKS-SIL"].mean - least < 1, f"{data}: {words}"))
        else:
            best.append((wins, f"{data}: {words}"))
        if data != "german.numer":  # has 1,000 rounds
            wins, words = against(spent, "OKS-SIL", ".3g", " s")
            fast.append((wins, f"{data}: {words}"))
    place = "Section 6.1, Table 2"
    return [
        judged(place, "OKS-SIL makes the fewest mistakes on all data sets but w7a and cod-rna.", best, 6),
        judged(place, "On w7a and cod-rna it is comparable to the best (within one point).", near, 2),
        judged(place, "OKS-SIL is faster than the others on streams of more than 1,000 rounds.", fast, 7),
    ]


def _figure1(rows: Rows) -> list[Claim]:
    def points(symbol: str, measure: str = "mistakes") -> list[tuple[float, Figure]]:
        return swept(rows, measure, "spambase", "OKS-SIL", symbol)

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
        judged(place, "Mistakes fall as the budget grows.", trend(points("B"), "falls", "mistakes", " %")),
        judged(
            place,
            "Above a budget of 50 it has little influence (within one point).",
            level("B", 100, 1.0, "budget above 50"),
        ),
        judged(place, "A larger budget takes more time.", trend(points("B", "seconds"), "rises", "seconds")),
        judged(
            place,
            "More sampled basis functions make fewer mistakes.",
            trend(points("s"), "falls", "mistakes", " %"),
        ),
        judged(
            place,
            "More sampled basis functions take more time.",
            trend(points("s", "seconds"), "rises", "seconds"),
        ),
        judged(
            place,
            "A threshold nu close to 1 makes fewer mistakes than a small one.",
            trend(points("nu"), "falls", "mistakes", " %"),
        ),
        judged(place, "The time is much the same for every nu.", alike),
    ]


def charts(name: str, rows: Rows) -> list[Chart]:
    """The pictures of an experiment."""
    made: list[Chart] = []
    if name == "okssil-table2":
        made += of_a_table(rows, name)
    else:
        for symbol in ("B", "s", "nu"):
            for measure, label in (("mistakes", "mistakes, %"), ("seconds", "seconds")):
                title = f"{symbol} against {measure if measure == 'mistakes' else 'time'} on spambase"
                made.append(
                    across(
                        rows,
                        "spambase",
                        symbol,
                        id=f"{name}-{symbol}-{measure}",
                        title=title,
                        measure=measure,
                        label=label,
                    )
                )
    return [chart for chart in made if any(series.x for series in chart.series)]
