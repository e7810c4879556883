"""One file, and what others make of it: dask-ml Incremental, Spark MLlib's logistic regression, Vowpal Wabbit, River, and ours.

    KERNELSTREAM_DATA=... python benchmarks/distributed_peers.py [--rows 40000] [--only NAME ...] [--out FILE]

The first four fifths are learnt once, in order; the rest is predicted. Rows per second are of processor time, all processes
together, from rows in memory (for Vowpal Wabbit and River lines and dictionaries are made before; processes have been started).
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import contextlib
import importlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from kernelstream import KernelClassifier
from kernelstream.learners import NOGD
from kernelstream.stream import shuffled

Data = tuple[np.ndarray, np.ndarray]
Peer = Callable[[Data, Data], tuple[float, float]]


def processor_seconds() -> float:
    """Of this process and of all that it started and that still run."""
    here = psutil.Process()
    total = 0.0
    for process in (here, *here.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def timed(learn: Callable[[], object]) -> float:
    began = processor_seconds()
    learn()
    return processor_seconds() - began


def ours(learner: Any) -> Peer:
    def run(train: Data, test: Data) -> tuple[float, float]:
        model = KernelClassifier(learner, scale="auto")
        seconds = timed(lambda: model.partial_fit(*train))
        return seconds, float(np.mean(model.predict(test[0]) != test[1]))

    return run


def warm() -> None:
    importlib.import_module("kernelstream.dask")


def ours_on_dask(train: Data, test: Data) -> tuple[float, float]:
    import dask.array as da
    from distributed import Client

    from kernelstream.dask import fit

    with Client(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
    ) as client:
        X, y = da.from_array(train[0], chunks=(4000, -1)), da.from_array(train[1], chunks=4000)
        client.run(warm)  # modules are not counted
        made: list[Any] = []
        seconds = timed(
            lambda: made.append(
                fit(KernelClassifier(), X, y, client=client, classes=[-1, 1], rows_per_part=2000, parts=2)
            )
        )
    return seconds, float(np.mean(made[0].predict(test[0]) != test[1]))


def dask_ml(train: Data, test: Data) -> tuple[float, float]:
    import dask.array as da
    from dask_ml.wrappers import Incremental
    from sklearn.linear_model import SGDClassifier

    centre, scale = train[0].mean(axis=0), train[0].std(axis=0) + 1e-9
    X, y = da.from_array((train[0] - centre) / scale, chunks=(4000, -1)), da.from_array(train[1], chunks=4000)
    model = Incremental(SGDClassifier(loss="log_loss"))
    seconds = timed(lambda: model.fit(X, y, classes=[-1, 1]))
    return seconds, float(np.mean(np.asarray(model.predict((test[0] - centre) / scale)) != test[1]))


def spark(train: Data, test: Data) -> tuple[float, float]:
    """What StreamingLogisticRegressionWithSGD does with each batch, without the stream around it."""
    from pyspark.mllib.classification import LogisticRegressionWithSGD
    from pyspark.mllib.regression import LabeledPoint
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    centre, scale = train[0].mean(axis=0), train[0].std(axis=0) + 1e-9
    batches = []
    for start in range(0, len(train[1]), 4000):
        X, y = (train[0][start : start + 4000] - centre) / scale, train[1][start : start + 4000]
        points = [LabeledPoint(float(label > 0), row) for row, label in zip(X.tolist(), y, strict=True)]
        batches.append(session.sparkContext.parallelize(points, 2).cache())
        batches[-1].count()
    models: list[Any] = []

    def learn() -> None:
        weights = np.zeros(train[0].shape[1])
        for batch in batches:
            models.append(
                LogisticRegressionWithSGD.train(
                    batch,
                    iterations=10,
                    step=1.0,
                    initialWeights=weights,
                    intercept=False,
                    validateData=False,
                )
            )
            weights = models[-1].weights

    seconds = timed(learn)
    w = np.asarray(models[-1].weights)
    session.stop()
    return seconds, float(np.mean(np.where((test[0] - centre) / scale @ w > 0, 1, -1) != test[1]))


def vowpal_wabbit(train: Data, test: Data) -> tuple[float, float]:
    from vowpalwabbit import Workspace

    def lines(data: Data) -> list[str]:
        return [
            f"{int(label)} | " + " ".join(f"{d}:{v:.6g}" for d, v in enumerate(row) if v)
            for row, label in zip(*data, strict=True)
        ]

    learnt, asked = lines(train), lines((test[0], test[1]))
    vw = Workspace("--loss_function logistic --quiet --bit_precision 18")

    def learn() -> None:
        for line in learnt:
            vw.learn(line)

    seconds = timed(learn)
    scores = np.array([vw.predict(line.partition(" ")[2]) for line in asked])
    vw.finish()
    return seconds, float(np.mean(np.where(scores > 0, 1, -1) != test[1]))


def river(train: Data, test: Data) -> tuple[float, float]:
    from river import linear_model, preprocessing

    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    names = [str(d) for d in range(train[0].shape[1])]
    rows = [dict(zip(names, row, strict=True)) for row in train[0].tolist()]
    labels = (train[1] > 0).tolist()

    def learn() -> None:
        for x, y in zip(rows, labels, strict=True):
            model.learn_one(x, y)

    seconds = timed(learn)
    asked = [model.predict_one(dict(zip(names, row, strict=True))) for row in test[0].tolist()]
    return seconds, float(np.mean(np.where(asked, 1, -1) != test[1]))


PEERS: dict[str, tuple[Peer, str, str]] = {
    "kernelstream, the default": (ours(None), "one process", "kernels"),
    "kernelstream, the default, Dask, 2 workers": (ours_on_dask, "rows in parts, merged", "kernels"),
    "kernelstream, NOGD": (ours(NOGD(200, eta=0.1)), "one process; parts merge as means", "kernels"),
    "dask-ml Incremental(SGDClassifier)": (dask_ml, "blocks one after the other", "linear"),
    "Spark MLlib LogisticRegressionWithSGD, batch after batch": (
        spark,
        "gradients of a batch are summed",
        "linear",
    ),
    "Vowpal Wabbit, logistic": (
        vowpal_wabbit,
        "one process here; its `--span_server` averages weights",
        "linear",
    ),
    "River LogisticRegression": (river, "one process; models do not merge", "linear"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default="covtype.binary")
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--only", nargs="*", default=list(PEERS))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    X, y = shuffled(args.data, 1)
    X = np.ascontiguousarray(
        X[: args.rows].toarray() if hasattr(X, "toarray") else X[: args.rows], np.float64
    )
    y = np.where(y[: args.rows] == np.unique(y)[-1], 1, -1)
    cut = args.rows * 4 // 5
    train, test = (X[:cut], y[:cut]), (X[cut:], y[cut:])
    lines = [
        "| library | how it is distributed | model | error | rows per processor second |",
        "|---|---|---|---:|---:|",
    ]
    for name in args.only:
        run, how, kind = PEERS[name]
        try:
            seconds, error = run(train, test)
            lines.append(f"| {name} | {how} | {kind} | {error:.2%} | {cut / seconds:,.0f} |")
        except Exception as error:  # a peer that is missing, or does not run here, is named with the reason
            lines.append(
                f"| {name} | {how} | {kind} | does not run here: {type(error).__name__}: {str(error)[:120]} | |"
            )
        print(lines[-1], flush=True)
    if args.out:
        args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
