"""What each part of the default learner buys, how it recovers from drift, and what a larger budget costs.

    KERNELSTREAM_DATA=... python benchmarks/default_parts.py [drift] [budgets] [ablation] [--out docs]

Needs matplotlib. Writes results/default_PART.md and pictures/default_*.png under --out.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits, make_moons

from kernelstream.learners import NOGD, RRF, NewtonMixture, newton_mixture
from kernelstream.rows import as_rows
from kernelstream.stream import adversarial_blocks, load, moving_classes, shuffled

EXPERTS = ("lasting", "least_squares", "recent", "linear", "window", "trees", "labels")
STACKS = ("stack", "forgetting_stack")
ALL = EXPERTS + STACKS
Data = tuple[Any, np.ndarray, int]  # rows, targets as a learner wants them, score columns


def coded(X: Any, y: Any) -> Data:
    classes, codes = np.unique(y, return_inverse=True)
    return (
        as_rows(X),
        (2.0 * codes - 1 if len(classes) == 2 else codes.astype(float)),
        max(1, len(classes) * (len(classes) > 2)),
    )


def stream(name: str, seed: int, rows: int = 12_000) -> Data:
    if name == "german-1":
        X, y = load("german.numer_scale")
        return coded(*adversarial_blocks(X, y, 500, 10, seed=seed))
    if name == "moving classes":
        chunks = list(moving_classes(rows, seed=seed))
        return coded(*(np.concatenate(part) for part in zip(*chunks, strict=True)))
    if name == "classes wandering off":
        random = np.random.default_rng(seed)
        steps = 0.003 + 0.01 * random.normal(size=(rows, 3, 2))
        y = random.integers(0, 3, rows)
        centres = random.uniform(-1, 1, (1, 3, 2)) + np.cumsum(steps, axis=0)
        return coded(centres[np.arange(rows), y] + 0.2 * random.normal(size=(rows, 2)), y)
    if name == "chessboard":
        random = np.random.default_rng(seed)
        X = random.uniform(0, 8, (rows, 2))
        return coded(X, np.floor(X).sum(axis=1) % 2)
    if name == "moons, labels swapped":
        X, y = make_moons(rows, noise=0.2, random_state=seed)
        return coded(X, np.where(np.arange(rows) < rows // 2, y, 1 - y))
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(y))
        return coded(X[order], y[order])
    if name.endswith("in order"):
        X, y = load({"elec2 in order": "elec2", "covtype in order": "covtype.binary"}[name])
        return coded(X[: 2 * rows], y[: 2 * rows])
    X, y = shuffled(name, seed)
    return coded(X[:rows], y[:rows])


STATIONARY = ["german.numer_scale", "svmguide3", "spambase", "mushrooms", "a9a", "ijcnn1", "cod-rna.train", "covtype.binary",
              "usps", "digits", "chessboard"]  # fmt: skip
CHANGING = [
    "german-1",
    "elec2 in order",
    "covtype in order",
    "moving classes",
    "classes wandering off",
    "moons, labels swapped",
]


def wrong(scores: np.ndarray, targets: np.ndarray) -> np.ndarray:
    predicted = np.where(scores[:, 0] > 0, 1.0, -1.0) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return np.asarray(predicted != targets, float)


class Still(NewtonMixture):
    """Rebuilds nothing after the first rows."""

    def _rebuild(self, memories: list[str]) -> None:
        if self._core.learnt <= 4 * self.budget:
            super()._rebuild(memories)


class Global(NewtonMixture):
    """Without the local memory."""

    def __init__(self, budget: int = 200, memory: int = 0) -> None:
        super().__init__(budget, memory)


def fresh(kind: type[NewtonMixture], data: Data, budget: int, candidates: tuple[str, ...] = ALL) -> Any:
    alone = {"memory": 0} if len(candidates) == 1 else {}  # an expert alone has no local memory beside it
    learner = kind(budget=budget, **alone).start(data[0].width, data[2])
    learner._core.only(list(candidates))
    return learner


# ---- ablation ----


def without(expert: str) -> tuple[str, ...]:
    return tuple(name for name in ALL if name != expert)


VARIANTS: list[tuple[str, type[NewtonMixture], tuple[str, ...], bool]] = [
    ("all of it", NewtonMixture, ALL, False),
    *((f"without {expert}", NewtonMixture, without(expert), False) for expert in EXPERTS),
    ("without the stacked forecasts", NewtonMixture, EXPERTS, False),
    ("without the local memory", Global, ALL, False),
    ("without the local memory and trees", Global, without("trees"), False),
    ("one bandwidth, the median's", NewtonMixture, ALL, True),
    ("nothing rebuilt after the first rows", Still, ALL, False),
    *((f"{expert} alone", NewtonMixture, (expert,), False) for expert in EXPERTS[:6]),
]


ABLATION_HEAD = """# What each part of the default buys

Machine: [two cores of a busy server](index.md#the-machine).

`KERNELSTREAM_DATA=... python benchmarks/default_parts.py ablation`. Mistakes in per cent without a part, or with one part alone
(then without the local memory too); "ratio" is the geometric mean over those of the whole. One order, at most 6,000 rows of each
stream (12,000 of those in order).
"""


def ablation() -> str:
    scales = newton_mixture.SCALES
    table: dict[str, list[float]] = {name: [] for name, *_ in VARIANTS}
    for where in STATIONARY + CHANGING:
        data = stream(where, 0, 6000)
        for name, kind, candidates, fixed in VARIANTS:
            newton_mixture.SCALES = np.ones(1) if fixed else scales
            misses = wrong(fresh(kind, data, 200, candidates).run(*data[:2]), data[1])
            table[name].append(float(100 * misses.mean()))
        print(where, [f"{name} {errors[-1]:.2f}" for name, errors in table.items()], flush=True)
    newton_mixture.SCALES = scales
    text = [ABLATION_HEAD]
    for title, names in (("Streams that stay", STATIONARY), ("Streams that change", CHANGING)):
        columns = [(STATIONARY + CHANGING).index(name) for name in names]
        best = np.array(table["all of it"])[columns]
        text += [
            f"## {title}",
            "",
            "| | " + " | ".join(names) + " | ratio |",
            "|---" * (len(names) + 2) + "|",
        ]
        for name, errors in table.items():
            mine = np.array(errors)[columns]
            ratio = np.exp(np.mean(np.log(mine / best)))
            text.append(f"| {name} | " + " | ".join(f"{e:.2f}" for e in mine) + f" | {ratio:.2f} |")
        text.append("")
    return "\n".join(text)


# ---- drift ----


def drift(out: Path) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for axis, where in zip(axes, ("moons, labels swapped", "classes wandering off"), strict=True):
        data, window = stream(where, 0), 300
        learners: list[tuple[str, Callable[[], Any]]] = [
            ("NewtonMixture", lambda d=data: fresh(NewtonMixture, d, 200)),
            ("... nothing rebuilt", lambda d=data: fresh(Still, d, 200)),
            ("... lasting expert alone, nothing rebuilt", lambda d=data: fresh(Still, d, 200, ("lasting",))),
            ("NOGD", lambda d=data: NOGD().start(d[0].width, d[2])),
            ("RRF", lambda d=data: RRF().start(d[0].width, d[2])),
        ]
        for label, make in learners:
            misses = wrong(make().run(*data[:2]), data[1])
            smooth = np.convolve(misses, np.ones(window) / window, "valid")
            axis.plot(np.arange(len(smooth)) + window, 100 * smooth, label=label, lw=1.2)
        axis.set(title=where, xlabel="round", ylim=(0, 102))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel(f"mistakes in the last {window} rounds, %")
    figure.legend(
        *axes[0].get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=5
    )  # hides no peak
    figure.savefig(out / "pictures" / "default_drift.png", dpi=110)


# ---- budgets ----

BUDGETS, MEMORIES = (25, 50, 100, 200, 400, 800), (0, 2**16, 2**18, 2**20, 2**22)
WHERE = ("ijcnn1", "covtype.binary", "spambase", "chessboard", "moving classes")
BUDGETS_HEAD = """# What `budget` and `memory` of the default buy and cost

Machine: [two cores of a busy server](index.md#the-machine).

`KERNELSTREAM_DATA=... python benchmarks/default_parts.py budgets`: at most 12,000 rows of each stream, each predicted before it
is learnt. Time is processor time of the second half of the rows, on a loaded machine; MB is the whole model at the end. First
budgets with `memory` as it is by default (64 MiB, which these streams do not fill), then memories with the default budget of 200.

"""


def measured(data: Data, **sizes: int) -> tuple[float, float, float]:
    """Error in per cent, microseconds per row of the last half, MB."""
    learner, half = NewtonMixture(**sizes).start(data[0].width, data[2]), data[0].n // 2
    first = wrong(learner.run(data[0].part(0, half), data[1][:half]), data[1][:half])
    start = time.process_time()
    second = wrong(learner.run(data[0].part(half, data[0].n), data[1][half:]), data[1][half:])
    micros = 1e6 * (time.process_time() - start) / len(second)
    return float(100 * np.concatenate([first, second]).mean()), micros, learner.nbytes / 1e6


def budgets(out: Path) -> str:
    found: dict[str, dict[tuple[str, int], tuple[float, float, float]]] = {
        "budget": {},
        "memory": {},
    }
    for where in WHERE:
        data = stream(where, 0)
        for knob, sizes in (("budget", BUDGETS), ("memory", MEMORIES)):
            for size in sizes:
                found[knob][where, size] = measured(data, **{knob: size})
                print(where, knob, size, found[knob][where, size], flush=True)
    text = []
    for knob, figures in found.items():
        unit = " (KiB)" if knob == "memory" else ""
        text += [
            f"## {knob.capitalize()}",
            "",
            f"| stream | {knob}{unit} | error % | µs per row, last half | MB |",
            "|---" * 5 + "|",
        ]
        for (where, size), (error, micros, mega) in figures.items():
            shown = size // 1024 if knob == "memory" else size
            text.append(f"| {where} | {shown:,} | {error:.2f} | {micros:.1f} | {mega:.1f} |")
        text.append("")
    budgets_picture(found, out)
    return BUDGETS_HEAD + "\n".join(text)


def budgets_picture(found: dict[str, dict[tuple[str, int], tuple[float, float, float]]], out: Path) -> None:
    """Error over that of the default against time per row, a point per budget, and against memory."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharey=True)
    for where in WHERE:
        default = found["budget"][where, 200][0]
        points = np.array(
            [[found["budget"][where, b][1], found["budget"][where, b][0] / default] for b in BUDGETS]
        )
        axes[0].plot(points[:, 0], points[:, 1], "o-", ms=4, label=where)
        for budget, point in zip(BUDGETS, points, strict=True):
            if where == WHERE[0] and budget != 50:  # it lies beside 25
                axes[0].annotate(f"{budget}", point, textcoords="offset points", xytext=(5, 5), fontsize=8)
        axes[1].plot([m / 1024 for m in MEMORIES], [found["memory"][where, m][0] / default for m in MEMORIES], "o-",
                     ms=4, label=where)  # fmt: skip
    axes[0].set(xscale="log", xlabel="CPU time per row, µs, for budgets of 25 to 800")
    axes[0].xaxis.set_major_formatter("{x:g}")
    axes[1].set_xscale("symlog", linthresh=64)
    axes[1].set_xticks([m / 1024 for m in MEMORIES], [f"{m // 1024:,}" for m in MEMORIES])
    axes[1].minorticks_off()
    axes[1].set_xlabel("memory, KiB")
    axes[0].set_ylabel("mistakes over those of the default")
    for axis in axes:
        axis.margins(0.1, 0.12)  # so that no label lies on the frame
        axis.axhline(1, color="grey", lw=0.8)
        axis.grid(alpha=0.3, which="both")
    axes[0].legend(fontsize=8)
    figure.savefig(out / "pictures" / "default_budgets.png", dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=["ablation", "drift", "budgets"])
    parser.add_argument("--out", type=Path, default=Path("docs"))
    options = parser.parse_args()
    for part in options.parts or ["drift", "budgets", "ablation"]:
        parts = {
            "ablation": ablation,
            "drift": lambda: drift(options.out),
            "budgets": lambda: budgets(options.out),
        }
        made = parts[part]()
        if made:
            (options.out / "results" / f"default_{part}.md").write_text(made + "\n")
