"""All learners at one budget over thirty streams: what docs/which-algorithm.md is written from.

    KERNELSTREAM_DATA=... python benchmarks/which_algorithm.py [--markdown docs/results/which_algorithm.md] [--only NAME ...]

B = 100 points (Fourier features: 400), standardised features, the median bandwidth, 1,500 rows of each stream. Each learner
twice: with its defaults, and with the best of three steps (`eta`, `C` or `lam`; the default times 1/5, 1, 5), chosen on a stream
of another seed (but for KONS and SketchedKONS, which are slow).
Mistakes in %, for regression the root mean square error in % of the target's deviation; the mean of two seeds.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from many_streams import ORDERED, STREAMS, error, standardised

from kernelstream import KernelClassifier, KernelRegressor, learners
from kernelstream.errors import CapacityError, ScoreOverflowError

B, ROWS, SEEDS, TUNING_SEED = 100, 1500, (0, 1), 9
FACTORS = (0.2, 5.0)
STEPS = ("eta", "C", "lam")


def made(name: str, factor: float = 1.0) -> Any:
    """A learner at the budget, its step times a factor; None if it has no step."""
    kind = getattr(learners, name)
    known = kind().get_params(deep=False)
    given: dict[str, Any] = {}
    if "budget" in known:
        given["budget"] = B
    if "max_size" in known:
        given["max_size"] = B if kind.bounded else ROWS
    if "n_components" in known:
        given["n_components"] = 4 * B
    if factor != 1.0:
        steps = [step for step in STEPS if isinstance(known.get(step), float) and known[step] > 0]
        if not steps or (name == "NewtonMixture"):
            return None
        given[steps[0]] = known[steps[0]] * (1 / factor if steps[0] == "lam" else factor)
    return kind(**given)


def run(learner: Any, X: Any, y: Any, regression: bool) -> float:
    model = (KernelRegressor if regression else KernelClassifier)(learner)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return min(error(model, X, y, regression), 1000.0)
    except (CapacityError, ScoreOverflowError):  # the step was too large
        return 1000.0 if regression else 100.0


def fits(name: str, regression: bool, classes: int) -> bool:
    kind = getattr(learners, name)
    return bool(kind.regression) if regression else classes == 2 or bool(getattr(kind, "multiclass", True))


def kind_of(stream: str, regression: bool, classes: int) -> str:
    if stream in ORDERED:
        return "changing"
    return "regression" if regression else "two classes" if classes == 2 else "several classes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    names = options.only or list(learners.registered(plugins=False))
    found: dict[tuple[str, str, bool], float] = {}
    kinds: dict[str, str] = {}
    micros: dict[str, list[float]] = {}
    for stream, (load, regression) in STREAMS.items():
        rows = {}
        for seed in (*SEEDS, TUNING_SEED):
            X, y = load(seed)
            X, y = standardised(X[:ROWS]), y[:ROWS]
            rows[seed] = X, (y - y.mean()) / y.std() if regression else y
        classes = 0 if regression else len(np.unique(rows[0][1]))
        kinds[stream] = kind_of(stream, regression, classes)
        for name in names:
            if not fits(name, regression, classes):
                continue
            start = time.process_time()
            got = [run(made(name), *rows[seed], regression) for seed in SEEDS]
            spent = (time.process_time() - start) / sum(len(rows[seed][1]) for seed in SEEDS)
            micros.setdefault(name, []).append(1e6 * spent)
            found[stream, name, False] = found[stream, name, True] = float(np.mean(got))
            slow = not getattr(learners, name).bounded and name in ("KONS", "SketchedKONS")
            if made(name, FACTORS[0]) is None or slow:
                continue
            tries = {f: run(made(name, f), *rows[TUNING_SEED], regression) for f in FACTORS}
            best = min(tries, key=lambda f: tries[f])
            if tries[best] < run(made(name), *rows[TUNING_SEED], regression):
                tuned = [run(made(name, best), *rows[seed], regression) for seed in SEEDS]
                found[stream, name, True] = float(np.mean(tuned))
        line = {name: round(found[stream, name, True], 1) for name in names if (stream, name, True) in found}
        print(stream, line, flush=True)

    lines = []
    for tuned, title in ((True, "With the best of three steps"), (False, "With the defaults")):
        groups = ("two classes", "several classes", "regression", "changing")
        ratios: dict[str, dict[str, list[float]]] = {name: {group: [] for group in groups} for name in names}
        first = dict.fromkeys(names, 0)
        for stream in STREAMS:
            have = {name: found[stream, name, tuned] for name in names if (stream, name, tuned) in found}
            least = min(have.values())
            first[min(have, key=lambda name: have[name])] += 1
            for name, value in have.items():
                ratios[name][kinds[stream]].append(np.log((value + 0.5) / (least + 0.5)))
        lines += [
            f"## {title}",
            "",
            f"| learner | {' | '.join(groups)} | all | first | µs per row |",
            "|---" * 8 + "|",
        ]

        def overall(name: str, ratios: Any = ratios) -> float:
            return float(np.mean([one for group in ratios[name].values() for one in group]))

        for name in sorted(names, key=overall):
            cells = [f"{np.exp(np.mean(r)):.2f}" if r else "" for r in ratios[name].values()]
            cost = np.median(micros[name])
            lines.append(
                f"| {name} | {' | '.join(cells)} | {np.exp(overall(name)):.2f} | {first[name]} | {cost:.1f} |"
            )
        lines.append("")
    lines += [
        "## Stream by stream, the best of three steps",
        "",
        "| stream | kind | " + " | ".join(names) + " |",
    ]
    lines.append("|---" * (len(names) + 2) + "|")
    for stream in STREAMS:
        cells = [f"{found[stream, n, True]:.1f}" if (stream, n, True) in found else "" for n in names]
        lines.append(f"| {stream} | {kinds[stream]} | " + " | ".join(cells) + " |")
    print("\n".join(lines))
    if options.markdown:
        options.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
