"""Processor time of one row through the estimators and River's models, beside another installed version.

    python benchmarks/row_by_row.py --against /tmp/other/bin/python

Each figure is the smallest of some repetitions, in microseconds of processor time per call. The two versions take turns, so that
a busy machine disturbs both alike.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import subprocess
import sys
import time

import numpy as np

WIDTH, TRAINED, CALLS, REPEATS = 20, 2000, 300, 7


def cases():
    """Name and call of each measurement; a call gets the number of a row."""
    from kernelstream import KernelClassifier, KernelRegressor
    from kernelstream.learners import NOGD

    rng = np.random.default_rng(0)
    X = rng.normal(size=(TRAINED, WIDTH))
    codes = (X[:, 0] + X[:, 1] ** 2 > 1).astype(np.int64)
    rows = [X[i : i + 1] for i in range(CALLS)]
    dicts = [dict(zip(map(str, range(WIDTH)), row.tolist(), strict=True)) for row in X[:CALLS]]
    words = np.array(["no", "yes"])[codes]
    three = np.array(["a", "b", "c"])[codes + (X[:, 2] > 0)]

    def classifier(learner, labels, given):
        model = KernelClassifier(learner).partial_fit(X, labels)
        ys = [given(labels[i : i + 1]) for i in range(CALLS)]
        return model, ys

    array, plain = (lambda y: y), (lambda y: y.tolist())
    for name, learner in (("NOGD", NOGD(budget=200)), ("default", None)):
        for kind, labels, given in (
            ("int array", codes, array),
            ("int list", codes, plain),
            ("str array", words, array),
            ("str list", words, plain),
            ("str array, 3 classes", three, array),
        ):
            model, ys = classifier(learner, labels, given)
            yield f"{name} partial_fit, {kind}", lambda i, m=model, ys=ys: m.partial_fit(rows[i], ys[i])
            if kind in ("int array", "str array"):
                yield f"{name} predict, {kind}", lambda i, m=model: m.predict(rows[i])
                yield (
                    f"{name} predict_then_learn, {kind}",
                    lambda i, m=model, ys=ys: m.predict_then_learn(rows[i], ys[i]),
                )
        regressor = KernelRegressor(learner).partial_fit(X, X[:, 0])
        targets = [X[i : i + 1, 0].copy() for i in range(CALLS)]
        yield f"{name} regressor partial_fit", lambda i, m=regressor, t=targets: m.partial_fit(rows[i], t[i])
        yield f"{name} regressor predict", lambda i, m=regressor: m.predict(rows[i])
        try:
            from kernelstream import river
        except ImportError:
            continue
        for kind, labels in (("int", codes), ("str", words)):
            model, listed = river.Classifier(learner), labels.tolist()
            for x, y in zip(dicts, listed, strict=False):
                model.learn_one(x, y)
            yield f"{name} River learn_one, {kind}", lambda i, m=model, y=listed: m.learn_one(dicts[i], y[i])
            yield f"{name} River predict_one, {kind}", lambda i, m=model: m.predict_one(dicts[i])


def measure(repeats):
    """Microseconds per call, by name: the smallest of some repetitions."""
    best = {}
    for name, call in cases():
        for _ in range(repeats):
            start = time.process_time()
            for i in range(CALLS):
                call(i)
            spent = (time.process_time() - start) / CALLS * 1e6
            best[name] = min(spent, best.get(name, np.inf))
    return best


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", help="the Python of another installed version")
    parser.add_argument("--json", action="store_true", help="print one JSON object of this version")
    arguments = parser.parse_args()
    if arguments.json:
        print(json.dumps(measure(REPEATS)))
        return
    pythons = [sys.executable] + ([arguments.against] if arguments.against else [])
    best = [{} for _ in pythons]
    for _ in range(2):
        for figures, python in zip(best, pythons, strict=True):
            run = subprocess.run([python, __file__, "--json"], capture_output=True, text=True, check=True)
            for name, spent in json.loads(run.stdout).items():
                figures[name] = min(spent, figures.get(name, np.inf))
    print(
        f"{'microseconds per call':44s} {'this':>8s}"
        + ("    other  other / this" if arguments.against else "")
    )
    for name, spent in best[0].items():
        other = f" {best[1][name]:8.1f} {best[1][name] / spent:13.1f}" if arguments.against else ""
        print(f"{name:44s} {spent:8.1f}{other}")


if __name__ == "__main__":
    main()
