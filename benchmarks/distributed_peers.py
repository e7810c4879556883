"""One file, and what others make of it: dask-ml Incremental, Spark MLlib's streaming regression, Vowpal Wabbit, River, and ours.

    KERNELSTREAM_DATA=... python benchmarks/distributed_peers.py [--rows 50000] [--only NAME ...] [--page FILE]

The first four fifths are learnt once, in order; the rest is predicted. Rows per second are of processor time, all processes
together, from rows in memory (for Vowpal Wabbit and River lines and dictionaries are made before; processes have been started).
Needs: pip install dask-ml vowpalwabbit river pyspark. ``--page`` puts the table between the marks of that page.
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


def processor_seconds() -> dict[int, float]:
    """Of this process and of all that it started and that still run."""
    here, spent = psutil.Process(), {}
    for process in (here, *here.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            spent[process.pid] = times.user + times.system
    return spent


def timed(learn: Callable[[], object]) -> float:
    """Processor seconds; processes of an earlier peer may end meanwhile."""
    before = processor_seconds()
    learn()
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in processor_seconds().items())


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
    """With Spark's own step and iterations; there is no intercept."""
    from pyspark.mllib.classification import StreamingLogisticRegressionWithSGD
    from pyspark.mllib.regression import LabeledPoint
    from pyspark.streaming import StreamingContext

    from kernelstream.spark import local_session

    session = local_session(2, spark_driver_memory="1g")
    context = session.sparkContext
    centre, scale = train[0].mean(axis=0), train[0].std(axis=0) + 1e-9
    batches = []
    for start in range(0, len(train[1]), 4000):
        X, y = (train[0][start : start + 4000] - centre) / scale, train[1][start : start + 4000]
        points = [LabeledPoint(float(label > 0), row) for row, label in zip(X.tolist(), y, strict=True)]
        batches.append(context.parallelize(points, 2).cache())
        batches[-1].count()
    model = StreamingLogisticRegressionWithSGD()
    model.setInitialWeights(np.zeros(train[0].shape[1]))
    streaming = StreamingContext(context, 1)
    stream = streaming.queueStream(list(batches))
    learnt = []
    model.trainOn(stream)
    stream.foreachRDD(lambda _time, rdd: learnt.append(1) if not rdd.isEmpty() else None)

    def learn() -> None:
        streaming.start()
        while len(learnt) < len(batches) and not streaming.awaitTerminationOrTimeout(0.1):
            pass

    seconds = timed(learn)
    w = np.asarray(model.latestModel().weights)
    streaming.stop(stopSparkContext=False)
    session.stop()
    return seconds, float(np.mean(np.where((test[0] - centre) / scale @ w > 0, 1, -1) != test[1]))


def ours_on_spark(train: Data, test: Data) -> tuple[float, float]:
    import pandas as pd

    from kernelstream.spark import fit, local_session

    session = local_session(2, spark_driver_memory="1g")
    names = [f"x{d}" for d in range(train[0].shape[1])]
    frame = pd.DataFrame(train[0], columns=names).assign(y=train[1])
    table = session.createDataFrame(frame).repartition(2).persist()
    table.count()
    settings: dict[str, Any] = {"target": "y", "classes": [-1, 1], "rows_per_part": 4000, "parts": 2}
    fit(KernelClassifier(), table.limit(9000), **settings)  # Java and the workers' modules are not counted
    made: list[Any] = []
    seconds = timed(lambda: made.append(fit(KernelClassifier(), table, **settings)))
    session.stop()
    return seconds, float(np.mean(made[0].predict(pd.DataFrame(test[0], columns=names)) != test[1]))


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


def river(make: Callable[[], Any]) -> Peer:
    def run(train: Data, test: Data) -> tuple[float, float]:
        model = make()
        names = [str(d) for d in range(train[0].shape[1])]
        rows = [dict(zip(names, row, strict=True)) for row in train[0].tolist()]
        labels = (train[1] > 0).tolist()

        def learn() -> None:
            for x, y in zip(rows, labels, strict=True):
                model.learn_one(x, y)

        seconds = timed(learn)
        asked = [bool(model.predict_one(dict(zip(names, row, strict=True)))) for row in test[0].tolist()]
        return seconds, float(np.mean(np.where(asked, 1, -1) != test[1]))

    return run


def river_linear() -> Any:
    from river import linear_model, preprocessing

    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def river_kernel() -> Any:
    """Gaussian features, with the usual width for scaled rows: 1 / features."""
    from river import feature_extraction, linear_model, preprocessing

    features = feature_extraction.RBFSampler(gamma=1 / 54, n_components=200, seed=1)
    return preprocessing.StandardScaler() | features | linear_model.LogisticRegression()


def river_forest() -> Any:
    from river import forest

    return forest.ARFClassifier(seed=1)


PEERS: dict[str, tuple[Peer, str, str]] = {
    "kernelstream, the default": (ours(None), "one process", "kernels, trees"),
    "kernelstream, the default, Dask, 2 workers": (ours_on_dask, "rows in parts, merged", "kernels, trees"),
    "kernelstream, the default, Spark, 2 workers": (ours_on_spark, "rows in parts, merged", "kernels, trees"),
    "kernelstream, NOGD": (ours(NOGD(200, eta=0.1)), "one process; parts merge as means", "kernels"),
    "dask-ml Incremental(SGDClassifier)": (dask_ml, "blocks one after the other", "linear"),
    "Spark MLlib StreamingLogisticRegressionWithSGD": (spark, "gradients of a batch are summed", "linear"),
    "Vowpal Wabbit, logistic": (
        vowpal_wabbit,
        "one process here; its `--span_server` averages weights",
        "linear",
    ),
    "River LogisticRegression": (river(river_linear), "one process; models do not merge", "linear"),
    "River RBFSampler + LogisticRegression": (
        river(river_kernel),
        "one process; models do not merge",
        "kernels, 200 random features",
    ),
    "River ARFClassifier": (river(river_forest), "one process; models do not merge", "10 trees"),
}
MARKS = "<!-- table -->", "<!-- end of table -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", default="covtype.binary")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--only", nargs="*", default=list(PEERS))
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    X, y = shuffled(args.data, 1)
    X = np.ascontiguousarray(
        X[: args.rows].toarray() if hasattr(X, "toarray") else X[: args.rows], np.float64
    )
    y = np.where(y[: args.rows] == np.unique(y)[-1], 1, -1)
    cut = args.rows * 4 // 5
    train, test = (X[:cut], y[:cut]), (X[cut:], y[cut:])
    lines = [
        f"`KERNELSTREAM_DATA=... python benchmarks/distributed_peers.py --data {args.data} --rows {args.rows}`:",
        f"rows in a random order, {cut:,} learnt once, {args.rows - cut:,} predicted. Rows per second "
        "of processor time, all processes together, beside other jobs: only large ratios mean something.",
        "",
        "| library | how it is distributed | model | error | rows per processor second |",
        "|---|---|---|---:|---:|",
    ]
    for name in args.only:
        run, how, kind = PEERS[name]
        try:
            seconds, error = run(train, test)
            lines.append(f"| {name} | {how} | {kind} | {error:.2%} | {cut / seconds:,.0f} |")
        except Exception as error:  # a peer that is missing, or does not run here, is named with the reason
            reason = f"{type(error).__name__}: {str(error)[:120]}".replace("\n", " ")
            lines.append(f"| {name} | {how} | {kind} | does not run here: {reason} | |")
        print(lines[-1], flush=True)
    if args.page:
        before, _, rest = args.page.read_text().partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        args.page.write_text(before + "\n".join([MARKS[0], "", *lines, "", MARKS[1]]) + after)


if __name__ == "__main__":
    main()
