"""A refusal changes nothing: after an exception of any kind the whole model, to the bit, is what it was before the call."""

# ruff: noqa: B023 - the functions are called within the loop that makes them

from __future__ import annotations

import copy
import types

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from fuzz_models import SMALL, data
from kernelstream import CapacityError, KernelClassifier, KernelRegressor, ScoreOverflowError, learners
from kernelstream.checkpoint import Checkpoint
from kernelstream.kernels import Polynomial
from kernelstream.learners import KOGD, KONS, NOGD, Learner
from kernelstream.river import Classifier, Regressor
from kernelstream.runner import Run
from kernelstream.stream import read
from kernelstream.transaction import Transaction

NAMES = list(learners.registered(plugins=False))
each = pytest.mark.parametrize("name", NAMES)


def small(name, **options):
    kind = getattr(learners, name)
    given = SMALL.get(name, {"budget": 5} if "budget" in kind._get_param_names() else {})
    return kind(**given | options)


def whole(thing):
    """Everything there is in an object, public and private, as plain values that can be compared."""
    if isinstance(thing, np.ndarray):
        values = thing.tolist() if thing.dtype.kind == "O" else thing.tobytes()
        return "array", thing.dtype.str, thing.shape, values
    if isinstance(thing, float | np.floating):
        return type(thing).__name__, np.float64(thing).tobytes()
    if isinstance(thing, dict):
        return "dict", [(whole(key), whole(value)) for key, value in thing.items()]
    if isinstance(thing, list | tuple):
        return type(thing).__name__, [whole(entry) for entry in thing]
    if isinstance(thing, types.FunctionType | type) or not hasattr(thing, "__dict__"):
        if type(thing).__module__.startswith("kernelstream._core"):
            return type(thing).__name__, getattr(thing, "nbytes", None), getattr(thing, "count", None)
        return thing
    kept = {
        name: value for name, value in vars(thing).items() if name != "_made"
    }  # a sketch's cache, made again from its state
    inside = {name: whole(value) for name, value in sorted(kept.items())}
    if isinstance(thing, Learner) and thing.started:
        inside["(state)"] = whole(thing.state())
    return type(thing).__name__, inside


def parts(model):
    """The learner at work, and the object as a whole."""
    return getattr(model, "learner_", getattr(model, "_learner", None)), whole(model)


def assert_refused(model, call, *errors, what="", before=None):
    """The call raises and leaves the model as it was (``before``: its parts, if known); the error."""
    learner, before = before or parts(model)
    with pytest.raises(errors or (Exception, KeyboardInterrupt)) as caught:
        call(model)
    learner_after, after = parts(model)
    assert learner_after is learner, what
    assert after == before, what
    return caught.value


def trained(name, classes, n=60, **options):
    kind = KernelRegressor if classes is None else KernelClassifier
    return kind(small(name, **options)).partial_fit(*data(classes, n))


def tasks(name):
    kind = getattr(learners, name)
    return (
        [2] * kind.classification + [3] * (kind.classification and kind.multiclass) + [None] * kind.regression
    )


def bad_chunks(X, y, classes):
    """Chunks that are refused whatever the learner: name, rows, labels, weights."""
    n = len(X)
    for row in range(n):
        for bad in (np.nan, np.inf, -np.inf):
            wrong = X.copy()
            wrong[row, row % X.shape[1]] = bad
            yield f"{bad} at row {row}", wrong, y, None
            yield f"{bad} at row {row}, sparse", scipy.sparse.csr_array(wrong), y, None
        for bad in (-1.0, np.nan, np.inf):
            yield f"weight {bad} at row {row}", X, y, np.where(np.arange(n) == row, bad, 1.0)
        if classes is None or y.dtype.kind == "f":
            yield f"target NaN at row {row}", X, np.where(np.arange(n) == row, np.nan, y), None
            yield f"target infinite at row {row}", X, np.where(np.arange(n) == row, np.inf, y), None
    yield "too narrow", X[:, :-1], y, None
    yield "too wide", np.hstack([X, X]), y, None
    yield "one dimension", X[0], y, None
    yield "three dimensions", X[None], y, None
    yield "words", X.astype(str).astype(object) + "x", y, None
    yield "complex", X.astype(complex), y, None
    yield "short y", X, y[:-1], None
    yield "no y", X, None, None
    yield "two columns of y", X, np.stack([y, y], axis=1), None
    yield "short weights", X, y, np.ones(n - 1)
    yield "weights of two dimensions", X, y, np.ones((n, 1))
    for name, change in {
        "an index too large": lambda m: m.indices.__setitem__(0, 10_000),
        "a negative index": lambda m: m.indices.__setitem__(0, -1),
        "starts that decrease": lambda m: m.indptr.__setitem__(1, m.indptr[-1] + 5),
        "starts beyond the end": lambda m: m.indptr.__setitem__(slice(1, None), m.indptr[1:] + 50),
    }.items():
        sparse = scipy.sparse.csr_array(X + 1.0)
        sparse.has_canonical_format = sparse.has_sorted_indices = True
        change(sparse)
        yield f"sparse rows with {name}", sparse, y, None
    if classes is not None:
        yield "words as labels", X, np.array(["a", "b"])[np.arange(n) % 2], None
        yield "continuous labels", X, np.arange(n) + 0.5, None


def calls(X, y, weights, classes):
    yield "fit", lambda m: m.fit(X, y, sample_weight=weights)
    yield "partial_fit", lambda m: m.partial_fit(X, y, sample_weight=weights)
    yield "predict_then_learn", lambda m: m.predict_then_learn(X, y, sample_weight=weights)
    if classes is not None:
        yield "decision_then_learn", lambda m: m.decision_then_learn(X, y, sample_weight=weights)


@each
def test_bad_input(name):
    """Every kind of bad input, at every row, to every method, of a new and of a trained model."""
    count = 0
    for classes in tasks(name):
        model = trained(name, classes)
        twin, before = copy.deepcopy(model), parts(model)
        X, y = data(classes, 4, seed=1)
        for what, rows, labels, weights in bad_chunks(X, y, classes):
            new = type(model)(small(name))
            for method, call in calls(rows, labels, weights, classes):
                if what in ("words as labels", "too narrow", "too wide") and method == "fit":
                    continue
                assert_refused(model, call, ValueError, TypeError, what=f"{method}, {what}", before=before)
                count += 1
                if what not in ("too narrow", "too wide", "words as labels"):
                    assert_refused(new, call, ValueError, TypeError, what=f"{method} of a new model, {what}")
                    count += 1
        for method, call in (
            ("fit", lambda m, X=X, y=y: m.fit(X, y, sample_weight=np.zeros(4))),
            ("fit of no rows", lambda m, X=X, y=y: m.fit(X[:0], y[:0])),
            ("widen", lambda m: m.widen(5.5)),
            ("widen", lambda m: m.widen("6")),
            ("widen", lambda m: m.widen(-1)),
        ):
            assert_refused(model, call, ValueError, TypeError, what=method)
            count += 1
        for m in (model, twin):  # and both go on alike
            m.partial_fit(*data(classes, 20, seed=2))
        assert whole(model.learner_.state()) == whole(twin.learner_.state())
    assert count > 150


@each
def test_refused_classes(name):
    X, y = data(2, 40)
    told = KernelClassifier(small(name)).partial_fit(X, y, classes=[0, 1])
    if not getattr(learners, name).classification:
        return
    for at in (0, 3, 5):
        labels = np.where(np.arange(6) == at, 7, y[:6])
        assert_refused(told, lambda m, labels=labels: m.partial_fit(X[:6], labels), ValueError)
        assert_refused(told, lambda m, labels=labels: m.predict_then_learn(X[:6], labels), ValueError)
    assert_refused(told, lambda m: m.partial_fit(X, y, classes=[0, 1, 2]), ValueError)
    assert_refused(KernelClassifier(small(name)), lambda m: m.partial_fit(X, y, classes=[]), ValueError)
    if getattr(learners, name).multiclass:
        return
    free = KernelClassifier(small(name)).partial_fit(X, y)  # a third class has no place in this learner
    twin = copy.deepcopy(free)
    river, frame = Classifier(small(name)), pd.DataFrame(X, columns=list("abc"))
    river.learn_many(frame, pd.Series(y))
    for at in (0, 3, 5):
        labels = np.where(np.arange(6) == at, 7, y[:6])
        for call in (
            lambda m, labels=labels: m.partial_fit(X[:6], labels),
            lambda m, labels=labels: m.decision_then_learn(X[:6], labels),
            lambda m, labels=labels: m.fit(X[:6], np.arange(6) // 2),
        ):
            assert_refused(free, call, ValueError)
        assert_refused(river, lambda m, labels=labels: m.learn_many(frame[:6], pd.Series(labels)), ValueError)
        assert_refused(river, lambda m: m.learn_one({"a": 1.0, "new": 2.0}, 7), ValueError)
    for m in (free, twin):
        m.partial_fit(X, y)
    assert whole(free.learner_.state()) == whole(twin.learner_.state())


@each
def test_an_interrupt_after_the_first_row_of_a_class(name, monkeypatch):
    """The row was learnt, in every phase of a block of rounds: what the new model shares with the old one is not written to."""
    kind = getattr(learners, name)
    if not kind.classification or not kind.multiclass:
        return
    X, y = data(3, 80)
    model, twin = (KernelClassifier(small(name)).partial_fit(X[:40], y[:40]) for _ in range(2))
    run = kind.run

    def interrupted(self, *given):
        run(self, *given)
        raise KeyboardInterrupt

    for row in range(40, 58):
        with monkeypatch.context() as with_interrupt:
            with_interrupt.setattr(kind, "run", interrupted)
            for label in (-1, 9):
                assert_refused(model, lambda m: m.partial_fit(X[row : row + 1], [label]), KeyboardInterrupt)
        for m in (model, twin):
            m.partial_fit(X[row : row + 1], y[row : row + 1])
    for m in (model, twin):
        m.partial_fit(X[58:60], [9, 9]).partial_fit(X, y)
    assert whole(model.learner_.state()) == whole(twin.learner_.state())


def test_a_refused_class_does_not_ruin_a_model(monkeypatch):
    monkeypatch.setattr(KONS, "multiclass", False)
    X, y = data(2, 400)
    model = KernelClassifier(KONS()).partial_fit(X, y)
    score = model.score(X, y)
    with pytest.raises(ValueError, match="two classes"):
        model.partial_fit(X[:1], [2])
    assert model.classes_.tolist() == [0, 1]
    assert model.score(X, y) == score


def test_a_refused_fit_leaves_the_model_usable():
    X, y = data(2)
    model = KernelClassifier(NOGD(budget=5)).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((3, 7), np.nan), [0, 1, 0])
    assert model.n_features_in_ == 3
    model.predict(X)
    frame = pd.DataFrame(X, columns=list("abc"))
    named = KernelClassifier(NOGD(budget=5)).fit(frame, y)
    assert_refused(named, lambda m: m.fit(frame.rename(columns={"a": "z"}), y[:-1]), ValueError)
    assert_refused(named, lambda m: m.partial_fit(frame.rename(columns={"a": "z"}), y), ValueError)
    assert_refused(named, lambda m: m.partial_fit(frame[["b", "a", "c"]], y), ValueError)
    assert_refused(named, lambda m: m.widen(9), ValueError)


# ---- in the middle of a chunk ----


def poison(X, y, classes, row):
    """Rows that leave the range of numbers at a row, at least for some learners: name, rows, labels, weights."""
    far = X.copy()
    far[row] = 1e200
    yield "a far row", far, y, None
    yield "a huge weight", X, y, np.where(np.arange(len(X)) == row, 1e300, 1.0)
    if classes is None:
        yield "a huge target", X, np.where(np.arange(len(X)) == row, 1e308, y), None


@each
def test_rows_that_are_too_large(name):
    """An overflow at any row of a chunk, in every method: refused with nothing learnt, or learnt."""
    kinds = [{}]
    if "kernel" in getattr(learners, name)._get_param_names() and name not in (
        "FOGD",
        "RRF",
        "DualSGD",
        "OKSSIL",
        "OKLGD",
        "DoublySGD",
    ):
        removal = {"maintenance": "removal"} if name == "BSGD" else {}  # merging is for the Gaussian kernel
        kinds.append({"kernel": Polynomial(degree=2, gamma=0.5)} | removal)
    for options in kinds:
        for classes in tasks(name):
            for n in (1, 60):
                model = trained(name, classes, n, **options)
                for row in (0, 11):
                    X, y = data(classes, 12, seed=1)
                    y = y if n > 1 or classes is None else np.resize(model.classes_, 12)
                    for what, rows, labels, weights in poison(X, y, classes, row):
                        for size in (1, 12):
                            chunk = slice(row, row + 1) if size == 1 else slice(None)
                            given = rows[chunk], labels[chunk], None if weights is None else weights[chunk]
                            for method, call in calls(*given, classes):
                                try_refused(model, call, f"{method}, {what} at row {row}, {options}")


def try_refused(model, call, what):
    """If the call raises it has changed nothing."""
    before = copy.deepcopy(model)
    learner, everything = parts(model)
    refusal = None
    try:
        with np.errstate(all="ignore"):
            call(model)
    except (ScoreOverflowError, CapacityError, np.linalg.LinAlgError, KeyboardInterrupt) as error:
        refusal = error
    if refusal is not None:
        assert parts(model)[0] is learner, what
        assert parts(model)[1] == everything, f"{what}: {type(refusal).__name__}"
        return True
    model.__dict__.clear()
    model.__dict__.update(before.__dict__)
    return False


@pytest.mark.parametrize("name", ["KernelPerceptron", "KernelPA", "KOGD", "OKLGD", "OKS", "KONS", "KRLS"])
def test_no_room_in_the_middle_of_a_chunk(name):
    X, y = data(2, 300)
    y = np.random.default_rng(0).integers(0, 2, 300)  # noise: every learner needs every point
    model = KernelClassifier(small(name, max_size=20)).partial_fit(X[:5], y[:5])
    refused = [try_refused(model, call, method) for method, call in calls(X, y, None, 2)]
    if name in ("KernelPerceptron", "KernelPA", "KOGD", "OKLGD", "OKS"):
        assert all(refused)
        error = assert_refused(model, lambda m: m.partial_fit(X, y), CapacityError)
        assert 0 < error.row < 300
        model.partial_fit(X[: error.row], y[: error.row])  # all the rows before it can be learnt
        assert_refused(
            model, lambda m: m.partial_fit(X[error.row : error.row + 1], y[error.row : error.row + 1])
        )


class Interrupting:
    """A Gaussian kernel in Python that stops at its n-th call, once, as Ctrl-C does."""

    def __init__(self):
        self.left = np.inf

    def __call__(self, X, Y):
        self.left -= 1
        if self.left == -1:
            raise KeyboardInterrupt
        return np.exp(-0.5 * ((np.asarray(X)[:, None] - np.asarray(Y)[None]) ** 2).sum(-1))

    def __deepcopy__(self, memo):
        return self


def takes_a_function(name):
    if "kernel" not in getattr(learners, name)._get_param_names():
        return False
    try:
        trained(
            name,
            2 if getattr(learners, name).classification else None,
            5,
            kernel=lambda X, Y: np.exp(X @ Y.T),
        )
    except (ValueError, TypeError):
        return False
    return True


@each
def test_interrupts(name):
    """KeyboardInterrupt raised by a kernel at its first, second, ... call of a chunk, and of one row."""
    if not takes_a_function(name):
        return
    interrupted = 0
    for classes in tasks(name):
        kernel = Interrupting()
        X, y = data(classes, 80)
        for start in (0, 10, 60):
            model = (KernelRegressor if classes is None else KernelClassifier)(small(name, kernel=kernel))
            if start:
                model.partial_fit(X[:start], y[:start])
            for size in (1, 20):
                chunk = X[start : start + size], y[start : start + size], None
                for left in (0, 1, 2, 3, 5, 8, 13):
                    for method, call in calls(*chunk, classes):
                        before = vars(kernel).copy()

                        def run(m, call=call, left=left):
                            kernel.left = left
                            try:
                                call(m)
                            finally:
                                kernel.left = np.inf

                        interrupted += try_refused(
                            model, run, f"{method} of {size} rows after {start}, call {left}"
                        )
                        assert vars(kernel) == before
    assert interrupted > 20


def test_a_run_counts_the_rows_that_were_learnt(tmp_path):
    """The error of a chunk in the middle of a run names the row of the run, and the checkpoint has all rows before the chunk."""
    model = KernelClassifier(
        KOGD(max_size=250, loss="logistic", kernel=Polynomial(degree=2, gamma=0.5, coef0=1.0))
    )
    run = Run(
        model,
        lambda position: read("rings", rows=1000, chunk_size=100, resume=position),
        checkpoint=str(tmp_path / "checkpoint"),
    )
    with pytest.raises(CapacityError, match="row 250 needs") as caught:
        run()
    assert caught.value.row == 250
    with Checkpoint(str(tmp_path / "checkpoint")) as checkpoint:
        saved = checkpoint.load()
    assert saved.record["result"]["rounds"] == 200
    assert saved.model.learner_.n_points == 200


# ---- River ----


@each
def test_river(name):
    for classes in tasks(name):
        X, y = data(classes, 40)
        kind = Regressor if classes is None else Classifier
        model, frame = kind(small(name)), pd.DataFrame(X, columns=list("abc"))
        new = kind(small(name))
        labels = y.tolist()
        for m in (new, model):
            for row in range(3):
                for bad in (np.nan, np.inf, "red", [1.0]):
                    wrong = frame[:3].astype(object)
                    wrong.iloc[row, 1] = bad
                    assert_refused(
                        m, lambda m, f=wrong: m.learn_many(f, pd.Series(y[:3])), ValueError, TypeError
                    )
                    x = {"a": 1.0, "b": bad, f"new{row}": 1.0}
                    assert_refused(m, lambda m, x=x: m.learn_one(x, labels[0]), ValueError, TypeError)
                    if m._learner is not None:
                        assert_refused(m, lambda m, x=x: m.predict_one(x), ValueError, TypeError)
            x = {"a": 1.0, "never seen": 1.0}
            for weight in (-1.0, np.nan, np.inf, "heavy"):
                assert_refused(m, lambda m, w=weight: m.learn_one(x, labels[0], w=w), ValueError, TypeError)
            for target in (None, np.nan, *(["red", np.inf] if classes is None else [])):
                assert_refused(m, lambda m, t=target: m.learn_one(x, t), ValueError, TypeError)
            if classes is not None and m is model:
                assert_refused(m, lambda m: m.learn_one(x, "a word among numbers"), TypeError)
            assert_refused(m, lambda m: m.learn_many(frame[:3], pd.Series(y[:2])), ValueError)
            twice = pd.DataFrame(X[:3], columns=["a", "a", "b"])
            assert_refused(m, lambda m, f=twice: m.learn_many(f, pd.Series(y[:3])), ValueError)
            if m is new:
                model.learn_many(frame, pd.Series(y))
        before = whole(model)
        model.predict_one({"a": 1.0, "unseen": 3.0})
        model.predict_many(frame.assign(unseen=1.0))
        assert whole(model) == before


def test_river_in_the_middle_of_a_frame():
    X, y = np.eye(9), [0, 0, 1, 1, 2, 2, 0, 1, 2]
    model = Classifier(KOGD(max_size=4, kernel=Polynomial(degree=2, gamma=1.0)))
    model.learn_one({"a": 1.0}, 0)
    assert_refused(model, lambda m: m.learn_many(pd.DataFrame(X), pd.Series(y)), CapacityError)
    overflow = pd.DataFrame(X[:3])
    overflow.iloc[2] = 1e300
    assert_refused(model, lambda m: m.learn_many(overflow, pd.Series([0, 1, 2])), ScoreOverflowError)
    assert_refused(model, lambda m: m.learn_one({"a": 1e300, "b": 1e300}, 3), ScoreOverflowError)


# ---- the transaction itself ----


def test_a_rollback_keeps_the_learner_and_undoes_what_it_learnt():
    X, y = data(2)
    model = trained("NOGD", 2)
    before = whole(model)
    learner = model.learner_

    def call(model):
        with Transaction(model) as transaction:
            transaction.keep(learner)
            learner.run(model._rows(X, reset=False), 2.0 * y - 1)
            model.classes_, model.learner_ = None, None
            model.more = 1
            raise RuntimeError

    assert_refused(model, call, RuntimeError)
    assert model.learner_ is learner
    assert whole(model) == before
