"""How far the intervals of a regression and the probabilities of a classification can be trusted.

    KERNELSTREAM_DATA=... python benchmarks/uncertainty.py [--rows 6000] [--out docs/results/uncertainty.md]

Everything is counted on the second half of each stream. Ours predicts each row, then learns it, from the first row on. What
learns once learns the first half: linear quantile regression (QuantileRegressor, at most 1,000 rows), boosted quantiles
(HistGradientBoostingRegressor), SVC with CalibratedClassifierCV on scaled features. "constant width" is our forecast with the
quantile of its errors on the first half to both sides. River's logistic regression (StandardScaler before it; one-vs-rest for
several classes) predicts then learns, as ours does.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import itertools
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.learners import NOGD
from kernelstream.stream import load, shuffled

Data = tuple[np.ndarray, np.ndarray]
COVERAGES = (0.5, 0.9, 0.95)
BINS = 15


# ---- streams ----


def dense(X: object) -> np.ndarray:
    return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, np.float64)


def mixed(name: str) -> Callable[[int], Data]:
    def make(rows: int) -> Data:
        X, y = shuffled(name, 0)
        return dense(X[:rows]), np.asarray(y[:rows])

    return make


def in_order(name: str) -> Callable[[int], Data]:
    def make(rows: int) -> Data:
        X, y = load(name)
        return dense(X[:rows]), np.asarray(y[:rows])

    return make


def column_as_target(name: str, column: int) -> Callable[[int], Data]:
    """The rows in their order, one feature being the target."""

    def make(rows: int) -> Data:
        X, _ = load(name)
        X = dense(X[:rows])
        return np.delete(X, column, axis=1), X[:, column].copy()

    return make


def of_river(make_stream: Callable[[int], Iterator]) -> Callable[[int], Data]:
    def make(rows: int) -> Data:
        taken = list(itertools.islice(make_stream(rows), rows))
        names = sorted(taken[0][0])
        codes: dict[object, float] = {}
        X = [
            [x[k] if not isinstance(x[k], str) else codes.setdefault(x[k], len(codes)) for k in names]
            for x, _ in taken
        ]
        return np.array(X, np.float64), np.array([float(y) for _, y in taken])

    return make


def synth(name: str, **options: object) -> Callable[[int], Data]:
    def stream(rows: int) -> Iterator:
        from river.datasets import synth as generators

        return iter(getattr(generators, name)(seed=1, **options))

    return of_river(stream)


def friedman_drift(rows: int) -> Data:
    from river.datasets import synth as generators

    stream = generators.FriedmanDrift(
        "gra", position=(rows // 3, 2 * rows // 3), transition_window=500, seed=1
    )
    return of_river(lambda n: iter(stream))(rows)


def trump(rows: int) -> Data:
    from river import datasets

    return of_river(lambda n: iter(datasets.TrumpApproval()))(rows)


def noise_of_the_row(rows: int) -> Data:
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, (rows, 2))
    return x, np.sin(2 * x[:, 0]) + (0.05 + 0.15 * np.abs(x[:, 0])) * rng.standard_normal(rows)


def moving_sine(rows: int) -> Data:
    """A function that moves, with noise that is four times as large in every second stretch of 1,000 rows."""
    rng, t = np.random.default_rng(1), np.arange(rows)
    x = rng.uniform(-3, 3, (rows, 3))
    noise = np.where(t // 1000 % 2, 0.6, 0.15) * rng.standard_normal(rows)
    return x, np.sin(x[:, 0] + 8 * t / rows) * x[:, 1] + noise


def skewed(rows: int) -> Data:
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, (rows, 3))
    return x, x[:, 0] + np.exp(rng.standard_normal(rows) * (0.5 + 0.2 * np.abs(x[:, 1])))


REGRESSION: dict[str, Callable[[int], Data]] = {
    "abalone": mixed("abalone_scale"),
    "cpusmall": mixed("cpusmall"),
    "Friedman": synth("Friedman"),
    "Planes2D": synth("Planes2D"),
    "Mv": synth("Mv"),
    "noise of the row": noise_of_the_row,
    "skewed noise": skewed,
    "elec2, demand (drifts)": column_as_target("elec2", 4),
    "covtype, elevation (drifts)": column_as_target("covtype.binary", 0),
    "FriedmanDrift (drifts)": friedman_drift,
    "moving sine, two noises (drifts)": moving_sine,
    "TrumpApproval (drifts)": trump,
}
CLASSIFICATION: dict[str, Callable[[int], Data]] = {
    "spambase": mixed("spambase"),
    "german": mixed("german.numer"),
    "a9a": mixed("a9a"),
    "cod-rna": mixed("cod-rna.train"),
    "ijcnn1": mixed("ijcnn1"),
    "covtype": mixed("covtype.binary"),
    "digits": lambda rows: tuple(
        a[np.random.default_rng(0).permutation(1797)][:rows] for a in load_digits(return_X_y=True)
    ),
    "usps": mixed("usps"),
    "elec2 (drifts)": in_order("elec2"),
}


# ---- regression ----


def measured(lower: np.ndarray, upper: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Coverage and mean width."""
    return float(((lower <= y) & (y <= upper)).mean()), float((upper - lower).mean())


def intervals(X: np.ndarray, y: np.ndarray) -> dict[str, list[tuple[float, float]]]:
    """Of each method: coverage and width for each coverage asked for, on the second half."""
    half = len(y) // 2
    late, target = slice(half, None), y[half:]
    found: dict[str, list[tuple[float, float]]] = {}
    for title, learner in (("ours", None), ("ours with NOGD", NOGD())):
        ends = KernelRegressor(learner).predict_interval_then_learn(X, y, coverage=COVERAGES)
        found[title] = [measured(*ends[late, k].T, target) for k in range(len(COVERAGES))]
    forecast = KernelRegressor().predict_then_learn(X, y)
    errors = np.abs(y - forecast)[half // 4 : half]
    found["constant width"] = [
        measured(forecast[late] - reach, forecast[late] + reach, target)
        for reach in np.quantile(errors, COVERAGES)
    ]
    scaler = StandardScaler().fit(X[:half])
    Z = scaler.transform(X)
    some = np.random.default_rng(0).permutation(half)[:1000]
    for title, fitted in (
        (
            "linear quantiles",
            lambda q: QuantileRegressor(quantile=q, alpha=0, solver="highs").fit(Z[some], y[some]),
        ),
        (
            "boosted quantiles",
            lambda q: HistGradientBoostingRegressor(loss="quantile", quantile=q).fit(Z[:half], y[:half]),
        ),
    ):
        found[title] = [
            measured(*(fitted(q).predict(Z[late]) for q in ((1 - c) / 2, (1 + c) / 2)), target)
            for c in COVERAGES
        ]
    return found


# ---- classification ----


def calibration(p: np.ndarray, codes: np.ndarray) -> tuple[float, float, float, float]:
    """Error, log loss, Brier score, and expected calibration error of the class predicted."""
    p = np.clip(p, 1e-15, None)
    p = p / p.sum(axis=1, keepdims=True)
    right = p.argmax(axis=1) == codes
    truth = np.eye(p.shape[1])[codes]
    sure = p.max(axis=1)
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = [abs((right - sure)[bins == b].sum()) for b in range(BINS)]
    return (
        float(1 - right.mean()),
        float(-np.log(p[np.arange(len(codes)), codes]).mean()),
        float(((p - truth) ** 2).sum(axis=1).mean()),
        float(sum(gaps) / len(codes)),
    )


def probabilities(X: np.ndarray, y: np.ndarray) -> dict[str, tuple[float, float, float, float]]:
    """Of each method: error, log loss, Brier score, expected calibration error, on the second half."""
    classes, codes = np.unique(y, return_inverse=True)
    half = len(y) // 2
    ours = KernelClassifier()
    scores = ours.decision_then_learn(X, y, classes=classes)[half:]
    if scores.ndim == 1:
        p = np.stack([1 / (1 + np.exp(scores)), 1 / (1 + np.exp(-scores))], axis=1)
    else:
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
    found = {"ours": calibration(p, codes[half:])}
    svc = make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(), cv=3))
    found["SVC, calibrated"] = calibration(
        svc.fit(X[:half], codes[:half]).predict_proba(X[half:]), codes[half:]
    )
    found["River's logistic"] = calibration(logistic_of_river(X, codes, len(classes))[half:], codes[half:])
    return found


def logistic_of_river(X: np.ndarray, codes: np.ndarray, n: int) -> np.ndarray:
    from river import linear_model, multiclass, preprocessing

    linear = linear_model.LogisticRegression()
    model = preprocessing.StandardScaler() | (linear if n == 2 else multiclass.OneVsRestClassifier(linear))
    p = np.zeros((len(X), n))
    for i, (row, code) in enumerate(zip(X.tolist(), codes.tolist(), strict=True)):
        x = dict(enumerate(row))
        told = model.predict_proba_one(x)
        known = int(code) if n > 2 else bool(code)
        p[i] = [told.get(c if n > 2 else bool(c), 0.0) for c in range(n)]
        model.learn_one(x, known)
    return p + 1e-9


# ---- the page ----


def percent(value: float) -> str:
    return f"{100 * value:.1f}"


def page(rows: int) -> Iterator[str]:
    yield "# Uncertainty: intervals and probabilities\n\nMachine: [two cores of a busy server](index.md#the-machine).\n\n"
    yield f"Made by `benchmarks/uncertainty.py --rows {rows}`, which says what is compared. "
    yield "All figures are of the second half of the stream.\n\n"
    yield "## Intervals: coverage in per cent where 50, 90 and 95 are asked for, and mean width over ours\n\n"
    methods: list[str] = []
    off: dict[str, list[float]] = {}
    widths: dict[str, list[np.ndarray]] = {}
    for name, make in REGRESSION.items():
        began = time.process_time()
        X, y = make(rows)
        found = intervals(X, y)
        if not methods:
            methods = list(found)
            yield "| stream (rows) | " + " | ".join(methods) + " |\n|---|" + "---|" * len(methods) + "\n"
        own = [width for _, width in found["ours"]]
        cells = []
        for method in methods:
            ratios = np.array([width for _, width in found[method]]) / own
            off.setdefault(method, []).append(
                100 * max(abs(c - a) for (c, _), a in zip(found[method], COVERAGES, strict=True))
            )
            widths.setdefault(method, []).append(np.log(ratios))
            told = " ".join(percent(c) for c, _ in found[method])
            cells.append(told if method == "ours" else f"{told}; " + " ".join(f"{r:.2f}" for r in ratios))
        print(name, len(y), cells, f"{time.process_time() - began:.0f} s", flush=True)
        yield f"| {name} ({len(y):,}) | " + " | ".join(cells) + " |\n"
    yield "| *points off, worst* | " + " | ".join(f"{max(off[m]):.1f}" for m in methods) + " |\n"
    yield "| *points off, mean* | " + " | ".join(f"{np.mean(off[m]):.1f}" for m in methods) + " |\n"
    means = {m: np.exp(np.mean(widths[m], axis=0)) for m in methods}
    yield (
        "| *width over ours, geometric mean* | "
        + " | ".join(" ".join(f"{r:.2f}" for r in means[m]) for m in methods)
        + " |\n\n"
    )
    yield "## Probabilities: error in per cent, log loss, Brier score, expected calibration error in per cent (15 bins)\n\n"
    methods, every = [], {}
    for name, make in CLASSIFICATION.items():
        began = time.process_time()
        X, y = make(rows)
        found = probabilities(X, y)
        if not methods:
            methods = list(found)
            yield "| stream (rows) | " + " | ".join(methods) + " |\n|---|" + "---|" * len(methods) + "\n"
        cells = []
        for method in methods:
            error, loss, brier, gap = found[method]
            every.setdefault(method, []).append((error, loss, brier, gap))
            cells.append(f"{percent(error)}, {loss:.3f}, {brier:.3f}, {percent(gap)}")
        print(name, len(y), cells, f"{time.process_time() - began:.0f} s", flush=True)
        yield f"| {name} ({len(y):,}) | " + " | ".join(cells) + " |\n"
    cells = [
        f"{percent(a)}, {b:.3f}, {c:.3f}, {percent(d)}"
        for a, b, c, d in (np.mean(every[m], axis=0) for m in methods)
    ]
    yield "| *mean* | " + " | ".join(cells) + " |\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--out", default="docs/results/uncertainty.md")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", category=FutureWarning)
    Path(given.out).write_text("".join(page(given.rows)), encoding="utf-8")


if __name__ == "__main__":
    main()
