"""What runs on the streams: our learners, k-NN, scikit-learn, River, CapyMOA, Vowpal Wabbit, and models trained offline."""

from __future__ import annotations

import functools
import os
import pickle
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from streams import FEW, Stream

from kernelstream import CapacityError, KernelClassifier, KernelRegressor, estimators, learners
from kernelstream.errors import ScoreOverflowError

LIMIT, STEP = 4.0, 500  # seconds of processor time, looked at every so many rows: a slower peer stops there


class Diverged(Exception):
    """The model's predictions are no longer finite."""


@dataclass
class Run:
    """What a contender made of a stream: a loss for each row it took, its processor time and its size.

    The losses of a model that was trained on the first half are those of the second half; nan before.
    """

    losses: Any
    seconds: float
    nbytes: int | None
    chosen: str = ""  # what was tuned


@dataclass(frozen=True)
class Contender:
    name: str
    package: str
    run: Callable[[Stream, Any, Any, int, str], Run]  # the last: the choice tuned before ("" if none)
    about: Callable[[Stream], str]
    micros: Callable[[Stream], float]  # a guess, to run the cheap ones first
    fits: Callable[[Stream], bool] = lambda stream: not stream.whole
    always: bool = False  # all seeds, however long they take
    rows: Callable[[Stream], int] = lambda stream: stream.rows


def losses_of(predicted: Any, y: Any, stream: Stream) -> Any:
    if stream.classes:
        return (predicted != y).astype(float)
    with np.errstate(over="ignore"):
        return (predicted - y) ** 2


def dense(X: Any) -> Any:
    return X.toarray() if scipy.sparse.issparse(X) else np.asarray(X, float)


def codes(y: Any, stream: Stream) -> Any:
    """Labels as 0, 1, ...: the peers are told how many classes there are."""
    return np.unique(y, return_inverse=True)[1] if stream.classes else np.asarray(y, float)


def out_of_time(seconds: float, rows: int) -> bool:
    return seconds > LIMIT and rows % STEP == 0


def run_last(stream: Stream, X: Any, y: Any, seed: int, chosen: str) -> Run:
    """No learner at all: what the order of the rows alone gives away."""
    return Run(np.append(1.0, losses_of(y[:-1], y[1:], stream)), 0.0, y.itemsize)


# our own


def ours(kind: Any, stream: Stream) -> Any:
    """A learner at its defaults, with the papers' budget (for Fourier features 4 B of them, as in the papers)."""
    learner = kind()
    known = learner.get_params(deep=False)
    if "budget" in known:
        learner.set_params(budget=stream.budget)
    elif "n_components" in known:
        learner.set_params(n_components=4 * stream.budget)
    elif "max_size" in known and learner.bounded:
        learner.set_params(max_size=stream.budget)
    return learner


def run_ours(make: Any, stream: Stream, X: Any, y: Any, seed: int, chosen: str) -> Run:
    learner = clone(make(stream))
    model = (KernelClassifier if stream.classes else KernelRegressor)(learner)
    chunk = 1000 if learner.bounded else 100  # a chunk in which the store gets full is not counted
    told = {"classes": np.unique(y)} if stream.classes else {}  # as the peers are
    losses, seconds = [], 0.0
    for i in range(0, len(y), chunk):
        start = time.process_time()
        try:
            predicted = model.predict_then_learn(X[i : i + chunk], y[i : i + chunk], **told)
        except CapacityError:
            break
        except ScoreOverflowError as error:
            raise Diverged from error
        seconds += time.process_time() - start
        losses.append(losses_of(predicted, y[i : i + chunk], stream))
    return Run(np.concatenate(losses), seconds, int(model.nbytes_))


def default_learner(stream: Stream, **given: Any) -> Any:
    return clone(estimators.default_learner()).set_params(
        **({"budget": stream.budget} if stream.whole else {}), **given
    )


SLOW = {"NOLANA": 500, "ProjKA": 60, "KRLS": 40, "ProsNKons": 90, "KONS": 3000, "SketchedKONS": 150}


def own(name: str) -> Contender:
    kind = getattr(learners, name)

    def fits(s: Stream) -> bool:
        task = s.whole and (kind.classification if s.classes else kind.regression)
        most = 5000 if name == "KONS" else 10_000
        return task and (kind.multiclass or s.classes <= 2) and (kind.bounded or s.rows <= most)

    make = functools.partial(ours, kind)
    run = functools.partial(run_ours, make)
    most = 20_000 if name == "NOLANA" else 10**9
    micros = SLOW.get(name, 10)
    return Contender(name, "kernelstream", run, lambda s: repr(make(s)), lambda s: micros * max(1, s.classes / 2),
                     fits, rows=lambda s: min(s.rows, most))  # fmt: skip


# k-nearest-neighbour rules that keep all rows

NEIGHBOURS = (1, 5, 10)


@functools.lru_cache(1)
def neighbours(stream: Stream, seed: int) -> tuple[list[Any], float]:
    """The forecasts of the three rules, which share their distances; features scaled by the first 500 rows."""
    X, y = stream.load(seed)
    y = codes(y, stream)
    start = time.process_time()
    deviation = X[:500].std(axis=0)
    Z = ((X - X[:500].mean(axis=0)) / np.where(deviation > 0, deviation, 1)).astype(np.float32)
    norms = (Z**2).sum(axis=1)
    made = [np.zeros(len(y)) for _ in NEIGHBOURS]
    for first in range(0, len(y), 500):
        rows = np.arange(first, min(first + 500, len(y)))
        stop = rows[-1] + 1
        square = norms[:stop] - 2 * (Z[rows] @ Z[:stop].T)
        square[np.arange(stop) >= rows[:, None]] = np.inf
        near = np.argpartition(square, min(NEIGHBOURS[-1], stop - 1) - 1, axis=1)[:, : NEIGHBOURS[-1]]
        near = np.take_along_axis(near, np.argsort(np.take_along_axis(square, near, 1), axis=1), 1)
        for i in rows[rows > 0]:
            for k, out in zip(NEIGHBOURS, made, strict=True):
                mine = y[near[i - first, : min(k, i)]]
                out[i] = np.bincount(mine).argmax() if stream.classes else mine.mean()
    return made, time.process_time() - start


def run_neighbours(k: int, stream: Stream, X: Any, y: Any, seed: int, chosen: str) -> Run:
    made, seconds = neighbours(stream, seed)
    losses = losses_of(made[NEIGHBOURS.index(k)], codes(y, stream), stream)
    return Run(losses, seconds, X.shape[0] * (X.shape[1] + 1) * 8)


# scikit-learn


def standardised(X: Any) -> Any:
    """Each row scaled by the means and deviations of the rows up to it: StandardScaler, partial_fit row by row."""
    out, first = np.empty(X.shape), X[0]
    sums = squares = np.zeros(X.shape[1])
    for i in range(0, len(X), 5000):
        d = X[i : i + 5000] - first
        n = np.arange(i + 1, i + len(d) + 1)[:, None]
        total, total_squares = sums + np.cumsum(d, 0), squares + np.cumsum(d * d, 0)
        mean = total / n
        variance = total_squares / n - mean**2
        flat = variance <= 1e-12 * total_squares / n
        out[i : i + 5000] = (d - mean) / np.sqrt(np.where(flat, 1.0, variance))
        sums, squares = total[-1], total_squares[-1]
    return out


MAPPED = 200  # landmarks of the Nystroem map
STEPS = ("default", "constant 0.01", "constant 0.1", "constant 1")


def block(stream: Stream) -> int:
    """Rows that SGD predicts before it learns them: one where rows are few, else ten, for time."""
    return 1 if stream.rows < FEW else 10


def sgd(stream: Stream, step: str, seed: int) -> Any:
    given: dict[str, Any] = {"random_state": seed, "shuffle": False}
    if step.startswith("constant"):
        given |= {"learning_rate": "constant", "eta0": float(step.split()[1])}
    return SGDClassifier(loss="log_loss", **given) if stream.classes else SGDRegressor(**given)


def run_sgd(stream: Stream, Z: Any, y: Any, model: Any) -> Any:
    """Predict then learn, block after block; the losses. The prediction is `predict` without its input checks."""
    size, losses = block(stream), np.empty(len(y))
    every = np.arange(stream.classes)
    told = {"classes": every} if stream.classes else {}
    with (
        sklearn.config_context(assume_finite=True, skip_parameter_validation=True),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        for i in range(0, len(y), size):
            part, labels = Z[i : i + size], y[i : i + size]
            if i == 0:
                predicted: Any = np.zeros(len(part))
            else:
                scores = part @ model.coef_.T + model.intercept_
                if not np.isfinite(scores).all():
                    raise Diverged
                if not stream.classes:
                    predicted = scores
                else:
                    predicted = (scores[:, 0] > 0) * 1 if stream.classes == 2 else scores.argmax(1)
            losses[i : i + size] = losses_of(predicted, labels, stream)
            try:
                model.partial_fit(part, labels, **told)
            except ValueError as error:  # "Floating-point under-/overflow occurred"
                raise Diverged from error
    return losses


def tuned_step(stream: Stream, Z: Any, y: Any) -> str:
    """The step with the least loss on the first rows of this very stream: an advantage left to the peers."""
    few = 2000
    found = {}
    for step in STEPS:
        try:
            found[step] = run_sgd(stream, Z[:few], y[:few], sgd(stream, step, 0)).mean()
        except Diverged:
            found[step] = np.inf
    return min(found, key=lambda step: found[step])


def run_linear(stream: Stream, X: Any, y: Any, seed: int, chosen: str) -> Run:
    X, y, model = dense(X), codes(y, stream), sgd(stream, "default", seed)
    start = time.process_time()
    losses = run_sgd(stream, standardised(X), y, model)
    seconds = time.process_time() - start
    return Run(losses, seconds, len(pickle.dumps(model)) + 24 * X.shape[1])


def run_mapped(stream: Stream, X: Any, y: Any, seed: int, chosen: str) -> Run:
    """A Nystroem map of standardised rows (gamma = 1 / D), then SGD. Until its rows are there: the usual label or mean."""
    X, y = dense(X), codes(y, stream)
    start = time.process_time()
    S = standardised(X)
    warmup = min(MAPPED, len(y) // 2)
    made = Nystroem(gamma=1 / X.shape[1], n_components=warmup, random_state=seed).fit(S[:warmup])
    parts = range(0, len(S), 5000)
    Z = np.concatenate([made.transform(S[i : i + 5000]) for i in parts])
    mapped = time.process_time() - start
    chosen = chosen or tuned_step(stream, Z, y)
    model = sgd(stream, chosen, seed)
    start = time.process_time()
    losses = run_sgd(stream, Z, y, model)
    seconds = mapped + time.process_time() - start
    for i in range(warmup):
        before = y[:i]
        if stream.classes:
            guess: Any = np.bincount(before, minlength=1).argmax()
        else:
            guess = before.mean() if i else 0.0
        losses[i] = losses_of(np.array([guess]), y[i : i + 1], stream)[0]
    return Run(losses, seconds, len(pickle.dumps((made, model))) + 24 * X.shape[1], chosen)


# River


def river_model(kind: str, stream: Stream, seed: int) -> Any:
    from river import forest, linear_model, multiclass, preprocessing

    if kind == "linear":
        model: Any = linear_model.LogisticRegression() if stream.classes else linear_model.LinearRegression()
        if stream.classes > 2:
            model = multiclass.OneVsRestClassifier(model)
    else:
        model = getattr(forest, kind + ("Classifier" if stream.classes else "Regressor"))(seed=seed)
    # The linear models in the leaves of regression trees overflow on large features.
    return preprocessing.StandardScaler() | model if kind == "linear" or not stream.classes else model


def run_river(kind: str, stream: Stream, X: Any, y: Any, seed: int, chosen: str) -> Run:
    model = river_model(kind, stream, seed)
    values, targets = dense(X).tolist(), codes(y, stream).tolist()
    losses = np.empty(len(targets))
    seconds = 0.0
    for i, (row, target) in enumerate(zip(values, targets, strict=True)):
        x = dict(enumerate(row))
        start = time.process_time()
        predicted = model.predict_one(x)
        model.learn_one(x, target)
        seconds += time.process_time() - start
        losses[i] = predicted != target if stream.classes else np.square((predicted or 0.0) - target)
        if out_of_time(seconds, i + 1):
            losses = losses[: i + 1]
            break
    if not np.isfinite(losses).all():
        raise Diverged
    return Run(losses, seconds, len(pickle.dumps(model)))


# CapyMOA


def capymoa_model(kind: str, stream: Stream, schema: Any, seed: int) -> Any:
    import capymoa.classifier
    import capymoa.regressor

    classifiers = {
        "SGBT": capymoa.classifier.StreamingGradientBoostedTrees,
        "ARF": capymoa.classifier.AdaptiveRandomForestClassifier,
        "SRP": capymoa.classifier.StreamingRandomPatches,
    }
    regressors = {
        "SGBT": capymoa.regressor.StreamingGradientBoostedRegression,
        "ARF": capymoa.regressor.AdaptiveRandomForestRegressor,
        "SRP": capymoa.regressor.SOKNL,
    }
    return (classifiers if stream.classes else regressors)[kind](schema=schema, random_seed=seed + 1)


def used_heap() -> int:
    from java.lang import Runtime, System  # type: ignore[import-not-found]  # there once CapyMOA has started Java

    System.gc()
    return int(Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory())


def run_capymoa(kind: str, stream: Stream, X: Any, y: Any, seed: int, chosen: str) -> Run:
    os.environ.setdefault("CAPYMOA_JVM_ARGS", "-Xmx4g -Xss10M -XX:+UseSerialGC")
    from capymoa.stream import NumpyStream

    target = "categorical" if stream.classes else "numeric"
    source = NumpyStream(X, codes(y, stream), target_type=target)
    before = used_heap()
    model = capymoa_model(kind, stream, source.get_schema(), seed)
    losses, seconds = np.empty(len(y)), 0.0
    for i in range(len(y)):
        row = source.next_instance()
        start = time.process_time()
        predicted = model.predict(row)
        model.train(row)
        seconds += time.process_time() - start
        if stream.classes:
            losses[i] = predicted != row.y_index
        else:
            losses[i] = np.square((0.0 if predicted is None else predicted) - row.y_value)
        if out_of_time(seconds, i + 1):
            losses = losses[: i + 1]
            break
    if not np.isfinite(losses).all():
        raise Diverged
    return Run(losses, seconds, max(0, used_heap() - before))


# trained once, on the first half


def offline_model(kind: str, stream: Stream, rows: int, features: int, seed: int) -> Any:
    if kind == "boosting":
        return (HistGradientBoostingClassifier if stream.classes else HistGradientBoostingRegressor)(
            random_state=seed
        )
    if kind == "forest":
        return (RandomForestClassifier if stream.classes else RandomForestRegressor)(100, random_state=seed)
    machine = make_pipeline(StandardScaler(), SVC() if stream.classes else SVR())
    name = "svc" if stream.classes else "svr"
    grid = {f"{name}__C": [1, 10, 100], f"{name}__gamma": [f / features for f in (0.2, 1, 5)]}
    return GridSearchCV(machine, grid, cv=3, scoring=None if stream.classes else "neg_mean_squared_error")


def run_offline(kind: str, stream: Stream, X: Any, y: Any, seed: int, chosen: str) -> Run:
    """The first half learnt, the second predicted. The SVM's C and gamma are chosen on at most 1,000 rows of the first half;
    its targets are standardised."""
    y, half = codes(y, stream), len(y) // 2
    centre, spread = (0, 1) if stream.classes else (y[:half].mean(), y[:half].std())
    targets = y[:half] if stream.classes else (y[:half] - centre) / spread
    model = offline_model(kind, stream, half, X.shape[1], seed)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if len(np.unique(targets)) < 2:
            raise Diverged
        if kind == "SVM":
            few = np.random.default_rng(seed).permutation(half)[:1000]
            try:
                found = model.fit(X[few], targets[few])
                chosen, model = str(found.best_params_), found.best_estimator_
            except ValueError:  # a class with one row
                model = model.estimator
        model.fit(X[:half], targets)
    predicted = model.predict(X[half:])
    seconds = time.process_time() - start
    if not stream.classes:
        predicted = centre + spread * predicted
    losses = np.append(np.full(half, np.nan), losses_of(predicted, y[half:], stream))
    return Run(losses, seconds, len(pickle.dumps(model)), chosen)


# Vowpal Wabbit


def run_vw(stream: Stream, X: Any, y: Any, seed: int, chosen: str) -> Run:
    """The stream written in VW's format, then one pass of VW over the file with --predictions."""
    import vowpalwabbit

    X, y = dense(X), codes(y, stream)
    options = {0: "", 2: "--loss_function logistic"}.get(
        stream.classes, f"--oaa {stream.classes} --loss_function logistic"
    )
    with tempfile.TemporaryDirectory() as folder:
        data, made, saved = (Path(folder, name) for name in ("data", "predictions", "model"))
        labels = 2 * y - 1 if stream.classes == 2 else y + 1 if stream.classes else y
        with data.open("w") as file:
            for row, label in zip(X, labels, strict=True):
                places = np.flatnonzero(row)
                cells = " ".join(
                    f"{j}:{v:.7g}" for j, v in zip(places.tolist(), row[places].tolist(), strict=True)
                )
                file.write(f"{label} | {cells}\n")
        start = time.process_time()
        vowpalwabbit.Workspace(f"{options} --quiet -d {data} -p {made} -f {saved}").finish()
        seconds = time.process_time() - start
        predicted = np.loadtxt(made, ndmin=1)
        if stream.classes == 2:
            predicted = np.where(predicted > 0, 1, -1)
        return Run(losses_of(predicted, labels, stream), seconds, saved.stat().st_size)


def local() -> bool:
    """Whether this version of the package has the local memory: the default before it is another contender."""
    return "memory" in estimators.default_learner().get_params()


def all_contenders() -> Iterator[Contender]:
    part = functools.partial

    def ours(name: str, fits: Callable[[Stream], bool], **given: Any) -> Contender:
        make = part(default_learner, **given)
        return Contender(name, "kernelstream", part(run_ours, make), lambda s: repr(make(s)), lambda s: 60, fits,
                         always=True)  # fmt: skip

    yield ours("default", lambda s: local())
    yield ours("default, memory=0", lambda s: local() and not s.whole, memory=0)
    yield ours("earlier default", lambda s: not local() and not s.whole)
    for k in NEIGHBOURS:
        yield Contender(f"{k}-NN", "numpy", part(run_neighbours, k), lambda s: "all rows kept", lambda s: 100,
                         always=True)  # fmt: skip
    blocks = "log or squared loss, running standardisation, "
    yield Contender(
        "SGD", "scikit-learn", run_linear, lambda s: f"{blocks}blocks of {block(s)}", lambda s: 600 / block(s)
    )
    yield Contender("Nystroem + SGD", "scikit-learn", run_mapped,
                    lambda s: f"Nystroem({MAPPED}), gamma 1/D, {blocks}step of {' / '.join(STEPS)}, blocks of {block(s)}",
                    lambda s: 1200 / block(s))  # fmt: skip
    scaled = "StandardScaler | "
    yield Contender("River linear", "river", part(run_river, "linear"),
                    lambda s: scaled + "LogisticRegression (one-vs-rest), LinearRegression", lambda s: 100)  # fmt: skip
    yield Contender("VW linear", "vowpalwabbit", run_vw, lambda s: "logistic loss (squared; --oaa), all else default",
                    lambda s: 20)  # fmt: skip
    for kind in ("AMF", "ARF"):
        yield Contender(f"River {kind}", "river", part(run_river, kind),
                        lambda s: f"{'' if s.classes else scaled}defaults, at most {LIMIT:g} s", lambda s: 2000)  # fmt: skip
    for kind in ("SGBT", "ARF", "SRP"):
        yield Contender(f"CapyMOA {kind}", "capymoa", part(run_capymoa, kind),
                        lambda s: f"defaults, at most {LIMIT:g} s", lambda s: 5000)  # fmt: skip
    for kind in ("boosting", "forest", "SVM"):
        yield Contender(f"offline {kind}", "scikit-learn", part(run_offline, kind),
                        lambda s: "trained on the first half", lambda s: 500)  # fmt: skip
    if local():
        yield from (own(name) for name in learners.registered(plugins=False))
    yield Contender("last label", "kernelstream", run_last, lambda s: "predicts the label before", lambda s: 1,
                    lambda s: s.whole and s.ordered)  # fmt: skip


CONTENDERS = {c.name: c for c in all_contenders()}
KNN = [f"{k}-NN" for k in NEIGHBOURS]
PEERS = [name for name in CONTENDERS if name.split()[0] in ("SGD", "Nystroem", "River", "VW", "CapyMOA")]
OFFLINE = [name for name in CONTENDERS if name.startswith("offline")]
