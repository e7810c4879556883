"""Our metrics beside scikit-learn's on three streams, and what they cost per row.

python benchmarks/metrics.py > docs/results/metrics.md

The streams: payments with one fraud in a hundred, classes that move, a regression. The model is NOGD (with the logistic loss);
each row is predicted before it is learnt. scikit-learn gets all predictions at once.
"""

from __future__ import annotations

import io
import time

import numpy as np
from sklearn import metrics as sk

from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.evaluate import Result
from kernelstream.learners import NOGD
from kernelstream.metrics import Evaluation
from kernelstream.stream import read
from kernelstream.stream.examples import example

CHUNK = 4096


def collected(model, chunks):
    """The evaluation, what was counted, in parts, and the processor time of the model."""
    result = Result.of(model, window=10**6)
    parts, update = [], result.evaluation.update
    result.evaluation.update = lambda *part: parts.append(part)
    start = time.process_time()
    for X, y in chunks:
        if hasattr(model, "n_features_in_"):
            model.widen(X.shape[1])
        result.step(model, X, y)
    learning = time.process_time() - start
    for part in parts:
        update(*part)
    return result.evaluation, parts, learning


def classification(parts):
    y, guess = (np.concatenate([part[i] for part in parts]).tolist() for i in (0, 1))
    classes = sorted(set(y))
    two = len(classes) == 2
    average = {"average": "binary", "pos_label": classes[1]} if two else {"average": "macro"}
    guess = ["none" if g is None else g for g in guess] if None in guess else guess
    kept = [i for i, g in enumerate(guess) if g != "none"]
    figures = {
        "accuracy": np.mean([a == b for a, b in zip(y, guess, strict=True)]),
        "balanced_accuracy": np.mean(
            [np.mean([g == c for t, g in zip(y, guess, strict=True) if t == c]) for c in classes]
        ),
    }
    texts, guesses = list(map(str, y)), list(map(str, guess))
    figures |= {
        "kappa": sk.cohen_kappa_score(texts, guesses),
        "mcc": sk.matthews_corrcoef(texts, guesses),
    }
    average = {"average": "macro", "labels": [str(classes[1])] if two else [str(c) for c in classes]}
    for name, score in (("precision", sk.precision_score), ("recall", sk.recall_score), ("f1", sk.f1_score)):
        figures[name] = score(texts, guesses, zero_division=0, **average)
    p = np.zeros((len(y), len(classes)))
    row = 0
    for part in parts:
        if len(part) > 2 and part[2] is not None:
            columns = [classes.index(c) for c in np.asarray(part[3]).tolist()]
            p[row : row + len(part[0])][:, columns] = part[2]
        row += len(part[0])
    labels, p = np.array(texts)[kept], p[kept]
    truth = labels[:, None] == np.array(list(map(str, classes)))
    order = np.argsort(list(map(str, classes)))
    figures["log_loss"] = sk.log_loss(labels, p[:, order], labels=[str(classes[k]) for k in order])
    figures["brier"] = np.mean(((p - truth) ** 2).sum(axis=1)) / (2 if two else 1)
    if two:
        figures["roc_auc"] = sk.roc_auc_score(truth[:, 1], p[:, 1])
        figures["average_precision"] = sk.average_precision_score(truth[:, 1], p[:, 1])
    else:
        figures["roc_auc"] = np.mean([sk.roc_auc_score(truth[:, k], p[:, k]) for k in range(len(classes))])
        figures["average_precision"] = sk.average_precision_score(truth, p)
    return figures


def regression(parts):
    y, guess = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return {
        "mae": sk.mean_absolute_error(y, guess),
        "rmse": sk.root_mean_squared_error(y, guess),
        "r2": sk.r2_score(y, guess),
        "pinball": sk.mean_pinball_loss(y, guess, alpha=0.5),
    }


def main():
    fraud = io.BytesIO(example("fraud.csv"))
    streams = {
        "fraud, 1 % of 4,000 rows": (
            KernelClassifier(NOGD(loss="logistic"), scale=True),
            read(fraud, format="csv", target="fraud", drop=["payment", "when"], chunk_size=CHUNK),
            classification,
        ),
        "moving_classes, 20,000 rows": (
            KernelClassifier(NOGD(loss="logistic")),
            read("moving_classes", rows=20_000, chunk_size=CHUNK),
            classification,
        ),
        "friedman, 20,000 rows": (
            KernelRegressor(NOGD()),
            read("friedman", rows=20_000, chunk_size=CHUNK),
            regression,
        ),
    }
    print(
        "# Metrics beside scikit-learn's, and their cost\n\nMachine: [two cores of a busy server](index.md#the-machine).\n\n"
        "`python benchmarks/metrics.py`; the window holds all rows.\n"
    )
    print("| stream | metric | ours | scikit-learn | difference |\n|---|---|---:|---:|---:|")
    costs = []
    for name, (model, chunks, score) in streams.items():
        evaluation, parts, learning = collected(model, chunks)
        ours, theirs = evaluation.metrics.figures(), score(parts)
        for metric, value in ours.items():
            print(
                f"| {name} | {metric} | {value:.6g} | {theirs[metric]:.6g} | {abs(value - theirs[metric]):.1e} |"
            )
        rows = evaluation.metrics.rows
        taken = []
        for baselines in (False, True):
            counted = Evaluation(evaluation.task, 1000, baselines=baselines)
            start = time.process_time()
            for part in parts:
                counted.update(*part)
            taken.append(1e6 * (time.process_time() - start) / rows)
        costs.append((name, *taken, 1e6 * learning / rows))
    print("\n| stream | metrics, µs per row | with both baselines | NOGD itself |\n|---|---:|---:|---:|")
    for name, *figures in costs:
        print(f"| {name} | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |")


if __name__ == "__main__":
    main()
