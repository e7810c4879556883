"""What the KONS paper proves, against our runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelstream_reproduce.claims import judge
from kernelstream_reproduce.measurements import Run, Runs, by_variant, means_by_variant, power
from kernelstream_reproduce.summary import Claim

__all__ = ["judge_claims"]

EASY = ("quadratic", "gaussian")
STREAMS = (*EASY, "one-point")
SKETCHES = ("Sketched-KONS, gamma 0.1", "Sketched-KONS, gamma 0")
FIRST_ORDER = (2.0**2 + 4.0**2) / 2
"""|w|^2 / (2 eta) + eta L^2 T / 2 for eta = 1 / sqrt(T), in sqrt(T): norms are at most C = 2, slopes L = 4."""


def _means(runs: Runs, data: str, label: str, measure: str) -> dict[int, float]:
    return {T: figure.mean for T, figure in means_by_variant(runs, measure, data, label, "T")}


def _rows(runs: Runs, streams: Sequence[str], labels: Sequence[str]) -> list[Run]:
    cells = [by_variant(runs, data, label, "T") for data in streams for label in labels]
    return [row for cell in cells for rows in cell.values() for row in rows]


def _late_power(figures: Mapping[int, float]) -> float | None:
    """The exponent over the last four lengths; None if there are fewer, or a regret is not positive."""
    late = list(figures.items())[-4:]
    if len(late) < 4 or any(value <= 0 for _, value in late):
        return None
    return power([T for T, _ in late], [value for _, value in late])


def _powers(
    runs: Runs, label: str, measure: str, streams: Sequence[str], beside: str | None = None
) -> dict[str, float]:
    """Exponents by stream; at the lengths that another learner was run at too, if one is named."""
    powers = {}
    for data in streams:
        figures = _means(runs, data, label, measure)
        if beside is not None:
            common = _means(runs, data, beside, measure)
            figures = {T: value for T, value in figures.items() if T in common}
        powers[data] = _late_power(figures)
    return {data: p for data, p in powers.items() if p is not None}


def _listed(powers: Mapping[str, float]) -> str:
    return ", ".join(f"{data} {p:.2f}" for data, p in powers.items())


def _under(rows: Sequence[Run], upper: str, lower: str = "regret") -> tuple[list[bool], float]:
    """Whether each run is under its bound, and the largest part of a bound that was used."""
    pairs = [(row["measures"][lower], row["measures"][upper]) for row in rows if upper in row["measures"]]
    return [a <= b for a, b in pairs], max((a / b for a, b in pairs), default=0.0)


def _regret(runs: Runs) -> list[Claim]:
    kons = _rows(runs, STREAMS, ["KONS", "KONS, alpha 1"])
    under, used = _under(kons, "bound")
    under_effective, used_effective = _under(kons, "bound_effective")
    # A regret cannot exceed 8 T here (predictions and targets within [-2, 2]): a bound above says nothing.
    telling = [
        row
        for row in _rows(runs, STREAMS, SKETCHES[:1])
        if row["measures"].get("bound", 0) < 8 * row["measures"]["rounds"]
    ]
    sketched, used_sketched = _under(telling, "bound")
    logarithmic = _powers(runs, "KONS", "regret", STREAMS)
    first = _powers(runs, "KOGD", "regret", STREAMS, beside="KONS")
    simple_under = [
        row["measures"]["regret"] <= FIRST_ORDER * row["measures"]["rounds"] ** 0.5
        for row in _rows(runs, STREAMS, ["KOGD"])
    ]
    both = [data for data in logarithmic if data in first]
    ends: list[str] = []
    for data in both:
        exact, simple = (_means(runs, data, label, "regret") for label in ("KONS", "KOGD"))
        T = max(T for T in exact if T in simple)
        ends.append(f"{data} {exact[T]:.1f} and {simple[T]:.1f} at T = {T}")
    price: list[bool] = []
    examples: list[str] = []
    for data in STREAMS:
        exact, sketch = (_means(runs, data, label, "regret") for label in ("KONS", SKETCHES[0]))
        if exact and sketch and max(exact) in sketch:
            T = max(exact)
            price.append(sketch[T] <= exact[T] / 0.1)
            examples.append(f"{data}, T = {T}: {exact[T]:.1f} and {sketch[T]:.1f}")
    fails = _powers(runs, SKETCHES[1], "regret", ["one-point"])
    keeps = _means(runs, "one-point", SKETCHES[1], "second_order_points")
    slow = _powers(runs, "KONS, alpha 1", "regret", STREAMS)
    prosnkons = _powers(runs, "PROS-N-KONS", "regret", STREAMS)
    conkons = _powers(runs, "CON-KONS", "regret", STREAMS)
    return [
        judge(
            "Theorem 1",
            "The regret of KONS is at most alpha |w|^2 + d_onl / sigma.",
            under,
            f"under the bound in {sum(under)} of {len(under)} runs, at most {100 * used:.0f} % of it",
        ),
        judge(
            "Theorem 1",
            "It is at most alpha |w|^2 + 2 d_eff log(2 sigma L^2 T) / sigma.",
            under_effective,
            f"under the bound in {sum(under_effective)} of {len(under_effective)} runs, "
            f"at most {100 * used_effective:.1f} % of it",
        ),
        judge(
            "Theorem 1",
            "For curved losses the regret of KONS grows like log T.",
            [p < 0.35 for p in (*logarithmic.values(), *slow.values())],
            f"over the last three doublings it grows like T to the power: {_listed(logarithmic)} (sqrt(T): 0.5); with alpha = 1, "
            f"beside which the squared slopes of the first two add up slowly: {_listed(slow)}",
        ),
        judge(
            "Section 3",
            "Functional gradient descent has a regret of O(sqrt(T)) whatever the loss.",
            simple_under,
            f"KOGD with steps 1 / sqrt(T) is under its bound, {FIRST_ORDER:g} sqrt(T), in {sum(simple_under)} of "
            f"{len(simple_under)} runs, and grows like T to the power: {_listed(first)}",
        ),
        judge(
            "Section 3",
            "Second-order steps make regret grow more slowly than first-order ones.",
            [logarithmic[data] < first[data] for data in both],
            f"powers of T, KONS: {_listed(logarithmic)}; KOGD: {_listed(first)}. Regrets of KONS and KOGD: {', '.join(ends)}",
        ),
        judge(
            "Section 6",
            "Keeping a share gamma of the gradients costs at most 1 / gamma times the regret of KONS.",
            price,
            f"KONS and Sketched-KONS with gamma = 0.1, {'; '.join(examples)}",
        ),
        judge(
            "Theorem 3",
            "The regret of Sketched-KONS (gamma = 0.1) is below its bound.",
            sketched,
            f"under the bound in {sum(sketched)} of {len(sketched)} runs whose bound is below the largest regret "
            f"possible, at most {100 * used_sketched:.1f} % of it",
        ),
        judge(
            "Section 6",
            "With one point and targets in turn, a sketch by a small dictionary fails to have logarithmic regret.",
            [p > 0.6 for p in fails.values()],
            f"Sketched-KONS with gamma = 0 keeps {max(keeps.values(), default=0):.0f} gradients and its regret grows like "
            f"T to the power {_listed(fails)}",
        ),
        judge(
            "not in the paper",
            "A projection on the dictionary, as in the authors' later PROS-N-KONS, keeps the regret logarithmic in small space.",
            [p < 0.35 for p in (*prosnkons.values(), *conkons.values())],
            f"grows like T to the power: PROS-N-KONS, which restarts, {_listed(prosnkons)}; CON-KONS, which does not, "
            f"{_listed(conkons)} (at most 60 points)",
        ),
    ]


def _dictionary(runs: Runs) -> list[Claim]:
    practice, theory = "KORS, beta 2", "KORS, beta of Theorem 2"
    lemma = [row["measures"] for row in _rows(runs, EASY, [practice, theory])]
    held = [m["online_dimension"] <= m["log_determinant"] <= m["lemma3"] for m in lemma]
    # With the theorem's beta short streams are kept whole, and the bound on the size exceeds them: those say nothing.
    exact = _rows(runs, EASY, [theory])
    smaller = [row for row in exact if row["measures"]["points"] < row["rows"]]
    under, used = _under([r for r in exact if r["measures"]["bound"] < r["rows"]], "bound", "points")
    accurate = [row["measures"] for row in smaller]
    close = [m["ratio_least"] >= 0.5 and m["ratio_largest"] <= 1.5 for m in accurate]
    between = [
        m["online_dimension"] <= m["online_dimension_estimated"] <= 3 * m["online_dimension"]
        for m in accurate
    ]
    loose = [row["measures"] for row in _rows(runs, EASY, [practice])]
    follows: list[bool] = []
    examples: list[str] = []
    for data in EASY:
        points = _means(runs, data, practice, "points")
        online = _means(runs, data, practice, "online_dimension")
        effective = _means(runs, data, practice, "effective_dimension")
        if len(points) >= 3:
            ratios = [points[T] / online[T] for T in points]
            T = max(points)
            follows.append(max(ratios) < 1.5 * min(ratios) and points[T] < 0.2 * T)
            examples.append(
                f"{data}: {min(ratios):.1f} to {max(ratios):.1f} points for each online dimension; at T = {T} "
                f"{points[T]:.0f} points, online dimension {online[T]:.1f}, effective dimension {effective[T]:.1f}"
            )
    shares = [
        row["measures"]["second_order_points"] / row["measures"]["rounds"]
        for row in _rows(runs, EASY, SKETCHES[:1])
    ]
    return [
        judge(
            "Lemma 3",
            "The online dimension is at most log det(K / alpha + I), which is at most d_eff (1 + log(|K| / alpha + 1)).",
            held,
            f"so in {sum(held)} of {len(held)} runs",
        ),
        judge(
            "Theorem 2 (1)",
            "With its beta, KORS approximates the second-order matrix within a factor 1 +- eps, eps = 0.5.",
            close,
            f"so in {sum(close)} of {len(close)} runs that do not keep every row (of {len(exact)}); with beta = 2 the "
            "ratios are between "
            f"{min((m['ratio_least'] for m in loose), default=0):.2f} and "
            f"{max((m['ratio_largest'] for m in loose), default=0):.2f}",
        ),
        judge(
            "Theorem 2 (2)",
            "The dictionary has at most 3 rho beta d_onl points.",
            under,
            f"so in {sum(under)} of {len(under)} runs whose bound is below the number of rows, at most {100 * used:.0f} % of it"
            if under
            else f"in none of {len(exact)} runs is the bound below the number of rows",
        ),
        judge(
            "Theorem 2 (3)",
            "Estimated leverage scores are between the exact ones and rho = 3 times them (their sums are compared).",
            between,
            f"so in {sum(between)} of {len(between)} runs",
        ),
        judge(
            "Section 4",
            "The dictionary follows the dimension of the stream, not its length.",
            follows,
            "; ".join(examples),
        ),
        judge(
            "Theorem 3",
            "Sketched-KONS keeps about a share gamma of the gradients, so that rounds cost gamma^2 t^2.",
            [0.05 < sum(shares) / len(shares) < 0.2] if shares else [],
            f"gamma = 0.1: {100 * sum(shares) / len(shares):.0f} % of the gradients" if shares else "",
        ),
    ]


def judge_claims(experiment: str, runs: Runs) -> list[Claim]:
    """The paper's claims that an experiment tests, with verdicts.

    >>> {claim.verdict for claim in judge_claims("kons-regret", {})}
    {'not run'}
    """
    return _regret(runs) if experiment == "kons-regret" else _dictionary(runs)
