"""Whether two versions of the default learner give the same scores, to the bit.

    python benchmarks/same_scores.py write FILE      # with one version
    python benchmarks/same_scores.py compare FILE    # with the other; exit code 1 if a score differs

Uses only what both versions have: the estimators. Set KERNELSTREAM_CPU to the same level for both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse

from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.learners import NewtonMixture

Case = tuple[str, list[Any]]


def learn(model: Any, X: Any, y: Any, pieces: int = 3, **options: Any) -> list[Any]:
    """Predictions before learning and scores of the first rows, after each piece."""
    result: list[Any] = []
    y = np.asarray(y) * 1  # truth values as 0 and 1
    for part in np.array_split(np.arange(len(y)), pieces):
        weights = {name: values[part] for name, values in options.items()}
        result.append(model.predict_then_learn(X[part], y[part], **weights))
        score = model.predict if isinstance(model, KernelRegressor) else model.decision_function
        result.append(score(X[:50]))
    return result


def cases() -> Iterator[Case]:
    """Streams of every kind, each with what the learner says about it."""
    random = np.random.default_rng(0)

    def classifier(budget: int = 40) -> KernelClassifier:
        return KernelClassifier(NewtonMixture(budget))

    X = random.normal(size=(3000, 6))
    signal = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * random.normal(size=3000)
    five = np.digitize(signal, np.quantile(signal, [0.2, 0.4, 0.6, 0.8]))
    weights = random.choice([0.0, 0.3, 1.0, 5.0], size=3000)
    yield "two classes", learn(classifier(), X, signal > 0)
    yield "two classes, weights", learn(classifier(), X, signal > 0, sample_weight=weights)
    yield "two classes, single precision", learn(classifier(), X.astype(np.float32), signal > 0)
    model = classifier(30)
    yield (
        "five classes, row by row",
        [model.predict_then_learn(X[i : i + 1], five[i : i + 1]) for i in range(600)]
        + [model.decision_function(X[:100])],
    )
    yield "five classes", learn(classifier(30), X, five)
    yield "regression", learn(KernelRegressor(NewtonMixture(40)), X, 100 + 7 * signal)
    yield "regression, weights", learn(KernelRegressor(NewtonMixture(40)), X, signal, sample_weight=weights)
    sparse = scipy.sparse.csr_array(X * (random.random(X.shape) < 0.3))
    yield "sparse", learn(classifier(), sparse, signal > 0)
    wide = random.normal(size=(1200, 200)) * (random.random((1200, 200)) < 0.2)
    label = wide[:, 0] + wide[:, 1] + wide[:, 2] > 0
    for name, rows in (("wide", wide), ("wide, sparse", scipy.sparse.csr_array(wide))):
        yield name, learn(classifier(), rows, label)
        yield f"{name}, three classes", learn(classifier(), rows, label + 1 * (wide[:, 3] > 0.5))
        yield f"{name}, regression", learn(KernelRegressor(NewtonMixture(40)), rows, wide[:, 0])
    late = np.arange(3000) >= 1500
    moved, turned = X / (1 + late)[:, None] + 3 * late[:, None], np.where(late, -signal, signal)
    yield "drift", learn(classifier(20), moved, turned > 0)
    yield "drift, five classes", learn(classifier(20), moved, np.where(late, 4 - five, five))
    yield "drift, regression", learn(KernelRegressor(NewtonMixture(20)), moved, turned)
    for name, make, y in (
        ("widen", classifier, signal > 0),
        ("widen, five classes", classifier, five),
        ("widen, regression", lambda: KernelRegressor(NewtonMixture(40)), signal),
    ):
        model, result = make(), []
        for width, part in ((3, slice(0, 900)), (6, slice(900, 1800))):
            if width == 6:
                model.widen(width)
            result += learn(model, np.ascontiguousarray(X[part, :width]), y[part])
        model.widen(200)  # wide now
        result += learn(model, np.hstack([X[1800:], random.normal(size=(1200, 194))]), y[1800:])
        model.widen(20_000)  # no window any more
        padded = scipy.sparse.csr_array(
            (X[:60].ravel(), np.tile(np.arange(6), 60), np.arange(0, 361, 6)), (60, 20_000)
        )
        yield name, [*result, *learn(model, padded, y[:60])]


def main(what: str, path: str) -> int:
    """Write or compare; the exit code."""
    saved = {} if what == "write" else dict(np.load(path))
    differ = 0
    for name, arrays in cases():
        scores = {f"{name}: {i}": np.asarray(array) for i, array in enumerate(arrays)}
        if what == "write":
            saved |= scores
            continue
        wrong = [key for key, array in scores.items() if array.tobytes() != saved[key].tobytes()]
        differ += bool(wrong)
        count = sum(array.size for array in scores.values())
        gaps = [
            np.abs(scores[key] - saved[key]) / (1 + np.abs(saved[key]))
            for key in wrong
            if saved[key].dtype.kind == "f"
        ]
        gap = max((float(g.max()) for g in gaps), default=0.0)
        print(
            f"{name}: {count:,} numbers,",
            f"{len(wrong)} arrays differ, by {gap:.1e}" if wrong else "same bits",
        )
    if what == "write":
        np.savez(path, **saved)
    return differ > 0


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("write", "compare"):
        sys.exit(str(__doc__))
    sys.exit(main(*sys.argv[1:]))
