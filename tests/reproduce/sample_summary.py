"""A summary made by hand, as large and as awkward as a real one: what the report's tests show."""

import math
import random

from kernelstream_reproduce.summary import (
    Chart,
    Claim,
    Entry,
    Figure,
    Paper,
    Section,
    Series,
    Summary,
    Table,
)

LEARNERS = ["RBP", "BPA-S", "BOGD", "FOGD", "NOGD", "SkeGD", "SkeGD (s_p = 0.75 B, s_m = 0.2 B)", "Forgetron"]
DATA = ["german.numer", "svmguide3", "splice", "a9a", "w7a", "ijcnn1", "cod-rna", "covtype <binary> & co"]
WARMUP = (
    "The paper leaves the rounds before the sketch exists out of its count; with them left out here as well, "
    "the figure is within three standard errors."
)
GRID = (
    "The grid of step sizes is not given in the paper. Ours is 10^{-5}, ..., 10^{0}; a smaller step would have been chosen "
    "on this data set, and the difference goes away when it is (see the protocol). The paper's own ordering of the learners "
    "stays as it is: \"SkeGD\" < 'NOGD' & so on, </script><b>not bold</b>."
)
ZERO = "The paper counts a score of exactly zero as no mistake; we count it as one."


def entry(draw: random.Random, data: str, label: str, variant: dict) -> Entry:
    base = 8 + 6 * LEARNERS.index(label) % 17 + 3 * DATA.index(data)
    paper = Figure(round(base + draw.random(), 3), round(0.1 + draw.random(), 3), 20)
    off = draw.choice([0, 0, 0.3, -0.4, 1.0, -1.4, 4.0])
    ours = Figure(paper.mean + off + draw.gauss(0, 0.1), 0.1 + draw.random(), 20)
    sketched = label in ("NOGD", "FOGD") or "SkeGD" in label
    less = Figure(ours.mean - 1.1 * draw.random(), ours.std, 20) if sketched else None
    settings = {"eta": draw.choice([0.1, 0.001, 1e-5]), "lam": 0.01, "bandwidth": 2.0 ** draw.randint(-4, 4)}
    seconds = 10 ** draw.uniform(-3, 1.5)
    if draw.random() < 0.06:
        return Entry(data, label, variant, paper=paper, paper_seconds=0.25)
    if draw.random() < 0.04:
        return Entry(data, label, variant, ours=ours, verdict="no figure", seconds=seconds, settings=settings)
    errors, errors_less = (
        (it.mean - paper.mean) / math.sqrt((it.std**2 + paper.std**2) / 20) if it else None
        for it in (ours, less)
    )
    if abs(errors) <= 3:
        verdict, why = "reproduced", ""
    elif errors_less is not None and abs(errors_less) <= 3:
        verdict, why = "reproduced without warm-up", WARMUP
    elif errors < 0:
        verdict, why = "better", GRID
    else:
        verdict, why = "worse", draw.choice([ZERO, GRID])
    return Entry(
        data, label, variant, ours, less, paper, errors, errors_less, verdict, why, seconds, 0.25, settings
    )


def table(title: str, measure: str, labels, data, variants=({},), seed=0) -> Table:
    draw = random.Random(seed)
    return Table(
        title, measure, [entry(draw, d, label, dict(v)) for label in labels for d in data for v in variants]
    )


def curves(seed: int = 0) -> list[Series]:
    draw = random.Random(seed)
    rounds = [20.0 * k for k in range(1, 61)]
    return [
        Series(
            name,
            rounds,
            [18 + 2 * i + 30 / math.sqrt(k) + draw.gauss(0, 0.2) for k in range(1, 61)],
            [2.5 / math.sqrt(k) for k in range(1, 61)],
        )
        for i, name in enumerate(LEARNERS)
    ]


def sample() -> Summary:
    """Three papers."""
    draw = random.Random(5)
    scatter = [
        Series(
            name,
            [10 ** draw.uniform(-2.5, 1.5) for _ in DATA],
            [draw.uniform(5, 45) for _ in DATA],
            names=DATA,
        )
        for name in LEARNERS
    ]
    bars = [
        Series(name, [0.0, 1.0, 2.0, 3.0], [0.5 / (1 + i + k) ** 2 for k in range(4)], [0.004] * 4)
        for i, name in enumerate(["Nyström", "SJLT <sketch>", "Fourier & co"])
    ]
    skegd = Paper(
        "skegd",
        "Sketched online gradient descent with <incremental> sketches & randomised projections",
        "A. Author, B. O'Writer, C. Third",
        "Conference on Streams, 2020",
        [
            Section(
                "skegd-table3",
                "Table 3",
                "Mistakes of budgeted learners at B = 100",
                "Every learner is tuned on one permutation, then run on 20 others. The bandwidth is set by kernel alignment "
                "among 2^{-5}, ..., 2^{7}. The paper does not say how ties are broken; the smaller value is taken.",
                "20 of 20 permutations",
                [table("Table 3: online mistake rates, B = 100", "mistakes, %", LEARNERS, DATA, seed=1)],
                [
                    Chart(
                        "skegd-table3-time",
                        "scatter",
                        "Time against mistakes",
                        "Each point is one data set. Left and low is better.",
                        "seconds for one pass",
                        "mistakes, %",
                        scatter,
                        log_x=True,
                    )
                ],
                [
                    Claim(
                        "Section 5.2",
                        "SkeGD makes fewer mistakes than all other learners on a budget & costs <= twice the time.",
                        "holds in part",
                        "Least mistakes on 6 of 8 data sets; on a9a and w7a NOGD is ahead by 0.3 points (2.1 standard errors).",
                    ),
                    Claim("Section 5.2", "It is the fastest.", "does not hold", "BOGD is 1.8 times faster."),
                    Claim("Section 5.3", "More budget never hurts.", "holds", "True in all 24 cells."),
                ],
            ),
            Section(
                "skegd-table4",
                "Table 4",
                "Other budgets",
                "As in Table 3.",
                "11 of 20 permutations; german.numer only",
                [
                    table(
                        "Table 4: budgets",
                        "mistakes, %",
                        LEARNERS[3:6],
                        DATA[:3],
                        ({"B": 50}, {"B": 100}, {"B": 200, "k": 0.1}),
                        seed=2,
                    )
                ],
            ),
            Section(
                "skegd-figure2",
                "Figure 2",
                "Mistake rate over the rounds",
                "As in Table 3.",
                "20 of 20 permutations",
                charts=[
                    Chart(
                        f"skegd-figure2-{name}",
                        "line",
                        f"Mistake rate on {name}",
                        "Mean over 20 permutations; the band is one standard deviation.",
                        "rounds",
                        "mistakes so far, %",
                        curves(seed),
                    )
                    for seed, name in enumerate(["german.numer", "a9a"])
                ],
            ),
        ],
    )
    nolana = Paper(
        "nolana",
        "Landmarks that move",
        "D. Author",
        "Journal of Streams, 2021",
        [
            Section(
                "nolana-table1",
                "Table 1",
                "Error of the kernel approximation",
                "The relative error in the Frobenius norm.",
                "5 of 5 permutations",
                charts=[
                    Chart(
                        "nolana-kernel-error",
                        "bar",
                        "Kernel error by budget",
                        "Whiskers are one standard deviation.",
                        "budget",
                        "relative error",
                        bars,
                        log_y=True,
                        categories=["m = 16", "m = 32", "m = 64", "m = 128 (\"all\" & 'more')"],
                    )
                ],
                claims=[
                    Claim("Section 4", "Moving landmarks cost little.", "not run", "The run is not done.")
                ],
            ),
            Section(
                "nolana-table2",
                "Table 2",
                "Accuracy",
                "Held-out rows.",
                "3 of 10 splits",
                [
                    Table(
                        "Table 2: accuracy",
                        "accuracy, %",
                        [
                            Entry(
                                "usps",
                                "NOLANA",
                                {},
                                Figure(95.2, 0.0, 1),
                                None,
                                Figure(94.1, math.nan, 1),
                                3.5,
                                None,
                                "better",
                                "One run only.",
                            ),
                            Entry(
                                "usps",
                                "SVM",
                                {},
                                Figure(96.0, 0.2, 3),
                                None,
                                Figure(96.1, 0.2, 10),
                                -0.7,
                                None,
                                "reproduced",
                            ),
                        ],
                        lower_is_better=False,
                    )
                ],
            ),
        ],
    )
    kons = Paper(
        "kons",
        "Second-order kernel online convex optimisation",
        "E. Author",
        "2017",
        [
            Section(
                "kons-regret",
                "Theorem 1",
                "Regret",
                "No experiments in the paper: what its theorems predict.",
                "10 of 10",
                charts=[
                    Chart(
                        "kons-regret",
                        "line",
                        "Regret",
                        "Logarithmic in the rounds. Starts below zero.",
                        "rounds",
                        "regret",
                        [
                            Series("KONS", [1.0, 10.0, 100.0, 1000.0], [-0.5, math.nan, 4.6, 6.9]),
                            Series("bound", [1.0, 10.0, 100.0, 900.0], [0.0, 2.3, 4.6, 6.8]),
                        ],
                        log_x=True,
                    )
                ],
            )
        ],
    )
    return Summary(
        [skegd, nolana, kons],
        [
            "Most of the tables reproduce: where the papers say how a figure was made, ours is within three "
            "standard errors of it.",
            "What differs, differs for three reasons: mistakes made before the map exists (left out by the papers), "
            "grids of step sizes that the papers do not give, and scores of exactly zero. "
            '<script>alert("no")</script> & other characters are shown as they are.',
        ],
        {
            "version": "0.1.0",
            "CPU level": "v3",
            "trials": "4321",
            "command": "kernelstream reproduce --results <folder>",
        },
    )
