"""What runs on the streams: our learners, scikit-learn's pipelines, River's and Vowpal Wabbit's models."""

from __future__ import annotations

import functools
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
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier, SGDRegressor
from streams import DRIFTING, Stream

from kernelstream import CapacityError, KernelClassifier, KernelRegressor, estimators, learners
from kernelstream.errors import ScoreOverflowError


class Diverged(Exception):
    """The model's predictions are no longer finite."""


@dataclass
class Run:
    """What a contender made of a stream: a loss for each row it took, its CPU time and its size."""

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
    rows: Callable[[Stream], int] = lambda stream: stream.rows
    fits: Callable[[Stream], bool] = lambda stream: True
    always: bool = False  # all seeds, however long they take

    def settings(self, stream: Stream) -> str:
        """As long as these are the same, a stored run holds."""
        part = f"; first {self.rows(stream):,} rows" if self.rows(stream) < stream.rows else ""
        return self.about(stream) + part


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
    losses, seconds = [], 0.0
    for i in range(0, len(y), chunk):
        start = time.process_time()
        try:
            predicted = model.predict_then_learn(X[i : i + chunk], y[i : i + chunk])
        except CapacityError:
            break
        except ScoreOverflowError as error:
            raise Diverged from error
        seconds += time.process_time() - start
        losses.append(losses_of(predicted, y[i : i + chunk], stream))
    return Run(np.concatenate(losses), seconds, int(model.nbytes_))


def default_learner(stream: Stream) -> Any:
    made = getattr(estimators, "default_learner", learners.NOGD)()
    return clone(made).set_params(budget=stream.budget)


SLOW = {"NOLANA": 500, "ProjKA": 60, "KRLS": 40, "ProsNKons": 90, "KONS": 3000, "SketchedKONS": 150}


def own(name: str) -> Contender:
    kind = getattr(learners, name)

    def fits(s: Stream) -> bool:
        task = kind.classification if s.classes else kind.regression
        most = 5000 if name == "KONS" else 10_000
        return task and (kind.multiclass or s.classes <= 2) and (kind.bounded or s.rows <= most)

    make = functools.partial(ours, kind)
    run = functools.partial(run_ours, make)
    most = 20_000 if name == "NOLANA" else 10**9
    micros = SLOW.get(name, 10)
    return Contender(name, "kernelstream", run, lambda s: repr(make(s)), lambda s: micros * max(1, s.classes / 2),
                     lambda s: min(s.rows, most), fits)  # fmt: skip


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


STEPS = ("default", "constant 0.01", "constant 0.1", "constant 1")


def block(stream: Stream) -> int:
    """Rows that SGD predicts before it learns them: one where order matters or rows are few, else more, for time."""
    if stream.ordered or (stream.rows <= 5000 and stream.classes <= 2):
        return 1
    return 10 if stream.rows <= 100_000 else 100


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
    few = 2000 if block(stream) == 1 else 10_000
    found = {}
    for step in STEPS:
        try:
            found[step] = run_sgd(stream, Z[:few], y[:few], sgd(stream, step, 0)).mean()
        except Diverged:
            found[step] = np.inf
    return min(found, key=lambda step: found[step])


def run_linear(scaled: bool, stream: Stream, X: Any, y: Any, seed: int, chosen: str) -> Run:
    X, y, model = dense(X), codes(y, stream), sgd(stream, "default", seed)
    start = time.process_time()
    losses = run_sgd(stream, standardised(X) if scaled else X, y, model)
    seconds = time.process_time() - start
    return Run(losses, seconds, len(pickle.dumps(model)) + (24 * X.shape[1] if scaled else 0))


def run_mapped(kind: str, stream: Stream, X: Any, y: Any, seed: int, chosen: str) -> Run:
    """A map of standardised rows (gamma = 1 / D), then SGD. Nystroem: until its B rows are there, the usual label or mean."""
    X, y = dense(X), codes(y, stream)
    start = time.process_time()
    S = standardised(X)
    gamma, warmup = 1 / X.shape[1], 0
    if kind == "Nystroem":
        warmup = min(stream.budget, len(y) - 1)
        made = Nystroem(gamma=gamma, n_components=warmup, random_state=seed).fit(S[:warmup])
    else:
        made = RBFSampler(gamma=gamma, n_components=200, random_state=seed).fit(S[:1])
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
    from river import forest, linear_model, multiclass, preprocessing, tree

    suffix = "Classifier" if stream.classes else "Regressor"
    if kind == "linear":
        linear: Any = linear_model.LogisticRegression() if stream.classes else linear_model.LinearRegression()
        if stream.classes > 2:
            linear = multiclass.OneVsRestClassifier(linear)
        return preprocessing.StandardScaler() | linear
    if kind == "HT":
        model = getattr(tree, "HoeffdingTree" + suffix)()
    elif kind == "HAT":
        model = getattr(tree, "HoeffdingAdaptiveTree" + suffix)(seed=seed)
    else:
        model = getattr(forest, "ARF" + suffix)(seed=seed)
    # The linear models in the leaves of regression trees overflow on features as large as those of cpusmall.
    return model if stream.classes else preprocessing.StandardScaler() | model


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
    if not np.isfinite(losses).all():
        raise Diverged
    return Run(losses, seconds, len(pickle.dumps(model)))


def river_rows(kind: str, stream: Stream) -> int:
    if stream.name in DRIFTING and (
        kind != "ARF" or stream.rows <= 50_000
    ):  # here adaptive trees are the ones to beat
        return min(stream.rows, 50_000)
    return min(stream.rows, 60_000 if kind == "linear" else 20_000)


RIVER = {
    "linear": "StandardScaler | LogisticRegression (LinearRegression; one-vs-rest)",
    "HT": "HoeffdingTree, defaults",
    "HAT": "HoeffdingAdaptiveTree, defaults",
    "ARF": "ARF, defaults",
}


def river_about(kind: str, stream: Stream) -> str:
    return RIVER[kind] + ("" if stream.classes or kind == "linear" else ", after StandardScaler")


def river_micros(kind: str, s: Stream) -> float:
    pairs = max(1, s.classes / 2)
    guesses = {
        "linear": (20 + 2 * s.features) * pairs,
        "HT": 20 + 4 * s.features * pairs,
        "HAT": 40 + 8 * s.features * pairs,
        "ARF": 1000 + 200 * s.features**0.5 * pairs,
    }
    return guesses[kind]


# Vowpal Wabbit


def run_vw(kernel: bool, stream: Stream, X: Any, y: Any, seed: int, chosen: str) -> Run:
    """The stream written in VW's format, then one pass of VW over the file with --predictions."""
    X, y = dense(X), codes(y, stream)
    if kernel:
        X = standardised(X)
        if not chosen:
            few = slice(0, 2000)
            chosen = min(("0.1", "1", "10"),
                         key=lambda l2: run_vw_file(stream, X[few], y[few], ksvm(X, l2)).losses.mean())  # fmt: skip
        return run_vw_file(stream, X, y, ksvm(X, chosen), chosen)
    options = {0: "", 2: "--loss_function logistic"}.get(
        stream.classes, f"--oaa {stream.classes} --loss_function logistic"
    )
    return run_vw_file(stream, X, y, options)


def ksvm(X: Any, l2: str) -> str:
    return f"--ksvm --kernel rbf --bandwidth {1 / X.shape[1]:.6g} --l2 {l2}"


def run_vw_file(stream: Stream, X: Any, y: Any, options: str, chosen: str = "") -> Run:
    import vowpalwabbit

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
        return Run(losses_of(predicted, labels, stream), seconds, saved.stat().st_size, chosen)


def all_contenders() -> Iterator[Contender]:
    part = functools.partial
    yield Contender("default", "kernelstream", part(run_ours, default_learner), lambda s: repr(default_learner(s)),
                    lambda s: 40, always=True)  # fmt: skip
    yield from (own(name) for name in learners.registered(plugins=False))

    def sgd_micros(s: Stream) -> float:
        return (550 / block(s) + 10) * max(1, s.classes)

    def sgd_rows(most: int, s: Stream) -> int:
        return min(s.rows, most) if block(s) == 1 else s.rows

    linear = "log or squared loss, default step, blocks of "
    yield Contender("SGD", "scikit-learn", part(run_linear, True),
                    lambda s: f"{linear}{block(s)}, running standardisation", sgd_micros, part(sgd_rows, 50_000))  # fmt: skip
    yield Contender("SGD, raw features", "scikit-learn", part(run_linear, False),
                    lambda s: f"{linear}{block(s)}", sgd_micros, part(sgd_rows, 50_000))  # fmt: skip
    mapped = f"gamma 1/D, running standardisation, step of {' / '.join(STEPS)}, blocks of "
    yield Contender("RBFSampler + SGD", "scikit-learn", part(run_mapped, "RBFSampler"),
                    lambda s: f"RBFSampler(200), {mapped}{block(s)}", lambda s: 2 * sgd_micros(s),
                    part(sgd_rows, 10_000))  # fmt: skip
    yield Contender("Nystroem + SGD", "scikit-learn", part(run_mapped, "Nystroem"),
                    lambda s: f"Nystroem({s.budget}), {mapped}{block(s)}", lambda s: 2 * sgd_micros(s),
                    part(sgd_rows, 10_000))  # fmt: skip
    for kind in RIVER:
        yield Contender(f"River {kind}", "river", part(run_river, kind), part(river_about, kind),
                        part(river_micros, kind), part(river_rows, kind))  # fmt: skip
    yield Contender("VW linear", "vowpalwabbit", part(run_vw, False),
                    lambda s: "logistic loss (squared; --oaa), all else default", lambda s: 15 + s.features / 2)  # fmt: skip
    yield Contender("VW ksvm", "vowpalwabbit", part(run_vw, True),
                    lambda s: "--ksvm --kernel rbf --bandwidth 1/D, running standardisation, --l2 of 0.1 / 1 / 10",
                    lambda s: 1000, lambda s: min(s.rows, 5000), lambda s: s.classes == 2)  # fmt: skip
    yield Contender("last label", "kernelstream", run_last, lambda s: "predicts the label before", lambda s: 1,
                    fits=lambda s: s.ordered)  # fmt: skip


CONTENDERS = {c.name: c for c in all_contenders()}
LINEAR = ["SGD", "SGD, raw features", "River linear", "VW linear", "LinearPA"]
PEERS = ["RBFSampler + SGD", "Nystroem + SGD", "River HT", "River HAT", "River ARF", "VW linear", "VW ksvm"]
