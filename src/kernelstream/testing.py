"""Checks of a learner, anyone's: what every learner promises, each as a function.

``check_learner(learner)`` runs them all. ``learner_checks(learner)`` yields those that apply, for a test of each:

    @pytest.mark.parametrize("check", learner_checks(Mine()), ids=lambda check: check.__name__)
    def test_mine(check):
        check(Mine(budget=5))

Give a learner with small sizes: the streams have some hundreds of rows. A check raises ``AssertionError`` if a promise is
broken; the learner given is not changed.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import itertools
import pickle
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import clone

from kernelstream.errors import CapacityError, ScoreOverflowError
from kernelstream.estimators import KernelClassifier, KernelRegressor
from kernelstream.learners import Learner, registered
from kernelstream.persistence import pack, unpack
from kernelstream.rows import as_rows

__all__ = ["check_learner", "learner_checks"]

Array = NDArray[Any]
Check = Callable[..., None]
Partition = list[tuple[int, int]]

_CHECKS: list[tuple[Check, Callable[[Learner], bool]]] = []


def check_learner(learner: Learner) -> None:
    """Run all checks that apply to a learner; the first one broken raises, and its note says what is promised.

    >>> from kernelstream.learners import LinearPA
    >>> check_learner(LinearPA())
    """
    for check in learner_checks(learner):
        try:
            check(clone(learner))
        except Exception as error:
            promise = " ".join((check.__doc__ or "").split())
            error.add_note(f"{check.__name__} of {learner!r}: {promise}")
            raise


def learner_checks(learner: Learner) -> Iterator[Check]:
    """The checks that apply to a learner: functions of it, each with a name and a docstring that says what is promised.

    >>> from kernelstream.learners import NOGD
    >>> "check_classes_in_any_order" in [check.__name__ for check in learner_checks(NOGD())]
    True
    """
    return (check for check, applies in _CHECKS if applies(learner))


def _check(applies: Callable[[Learner], bool] = lambda _: True) -> Callable[[Check], Check]:
    def add(check: Check) -> Check:
        _CHECKS.append((check, applies))
        return check

    return add


# ---- streams, models, comparisons ----


def example_stream(
    n: int = 200, d: int = 4, classes: int = 3, seed: int = 0, density: float = 1.0
) -> tuple[Array, Array]:
    """Rows and class codes: a curve through normal noise, with zeros if the density is below 1.

    >>> example_stream(5)[0].shape
    (5, 4)
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if density < 1:
        X *= rng.random((n, d)) < density
    signal = X[:, 0] + X[:, -1] ** 2 + 0.5 * rng.normal(size=n)
    return X, np.digitize(signal, np.quantile(signal, np.linspace(0, 1, classes + 1)[1:-1]))


def models(learner: Learner) -> Iterator[Any]:
    """The learner in each estimator that takes it.

    >>> from kernelstream.learners import RBP
    >>> list(models(RBP()))
    [KernelClassifier(learner=RBP())]
    """
    if learner.classification:
        yield KernelClassifier(learner)
    if learner.regression:
        yield KernelRegressor(learner)


def same_bits(a: dict[str, Array], b: dict[str, Array]) -> bool:
    """Whether two states (arrays by name) are the same to the last bit.

    >>> same_bits({"w": np.zeros(1)}, {"w": -np.zeros(1)})
    False
    """
    return a.keys() == b.keys() and all(
        a[k].dtype == b[k].dtype and a[k].shape == b[k].shape and a[k].tobytes() == b[k].tobytes() for k in a
    )


def partition(n: int, seed: int) -> Partition:
    """Chunks of many sizes that make up n rows.

    >>> partition(5, seed=0)[-1][1]
    5
    """
    rng = np.random.default_rng(seed)
    sizes: list[int] = []
    while sum(sizes) < n:
        sizes.append(int(rng.choice([1, 2, 3, 7, 8, 9, 16, 17, 40, 64, 65])))
    ends = np.minimum(np.cumsum(sizes), n).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


@contextlib.contextmanager
def _raises(error: type[Exception] | tuple[type[Exception], ...], match: str = "") -> Iterator[None]:
    try:
        yield
    except error as raised:
        message = str(raised)
    else:
        raise AssertionError(f"{error} {match!r} was not raised")
    assert re.search(match, message), f"the error should say {match!r}: {message}"


def _state(model: Any) -> dict[str, Array]:
    state: dict[str, Array] = model.learner_.state()
    return state


def _classes(learner: Learner) -> int:
    return 3 if learner.multiclass else 2


def _stream(learner: Learner, **options: Any) -> tuple[Array, Array]:
    return example_stream(**({"classes": _classes(learner)} | options))


def _scores(model: Any, X: Any) -> Array:
    scores: Array = getattr(model, "decision_function", model.predict)(X)
    return scores


def _tasks(learner: Learner) -> Iterator[tuple[int, bool]]:
    if learner.classification:
        yield 1, False
        if learner.multiclass:
            yield 3, False
    if learner.regression:
        yield 1, True


def _targets(X: Array, y: Array, outputs: int, regression: bool) -> Array:
    return y * 1.0 if outputs == 3 else X[:, 0] if regression else np.where(y == y.max(), 1.0, -1.0)


def _through(model: Any, run: Callable[[Any, int, int], Array], chunks: Iterable[tuple[int, int]]) -> Array:
    return np.concatenate([run(model, a, b) for a, b in chunks])


def _all_agree(new: Callable[[], Any], run: Callable[[Any, int, int], Array], n: int, state: Any) -> None:
    """Single rows, all at once and two partitions: the same scores and the same state."""
    single = new()
    want = _through(single, run, [(i, i + 1) for i in range(n)])
    for chunks in ([(0, n)], partition(n, 1), partition(n, 2)):
        chunked = new()
        got = _through(chunked, run, chunks)
        assert got.tobytes() == want.tobytes(), "scores depend on the chunks"
        assert same_bits(state(chunked), state(single)), "the state depends on the chunks"


# ---- the constructor ----


@_check()
def check_parameters(learner: Learner) -> None:
    """Hyper-parameters are keywords with defaults, stored as given; a clone is equal and not started."""
    twin = clone(learner)
    assert type(twin) is type(learner)
    assert twin.get_params(deep=False).keys() == learner.get_params(deep=False).keys()
    assert not twin.started
    assert not type(learner)().started, "every hyper-parameter needs a default"
    assert repr(twin) == repr(learner)


@_check()
def check_given_learner_is_not_trained(learner: Learner) -> None:
    """An estimator trains a copy of the learner that it was given."""
    X, y = _stream(learner, n=20)
    for model in models(learner):
        model.partial_fit(X, y)
        assert not model.learner.started
        assert model.learner_ is not model.learner


# ---- chunks ----


@_check()
def check_chunks_equal_rows(learner: Learner) -> None:
    """A chunk does what its rows do one by one, to the bit: every task, precision and storage, weights of zero among them."""
    for dtype, density, (outputs, regression) in itertools.product(
        (np.float64, np.float32), (1.0, 0.5), _tasks(learner)
    ):
        X, y = example_stream(density=density)
        rows = as_rows(scipy.sparse.csr_array(X) if density < 1 else X, dtype)
        targets = _targets(X, y, outputs, regression)
        weights = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 2.0], size=len(y))

        def new(outputs: int = outputs, regression: bool = regression, dtype: Any = dtype) -> Any:
            return clone(learner).start(4, outputs, regression=regression, dtype=dtype)

        def run(model: Any, a: int, b: int, rows: Any = rows, t: Array = targets, w: Array = weights) -> Any:
            return model.run(rows.part(a, b), t[a:b], w[a:b])

        _all_agree(new, run, len(y), lambda model: model.state())


@_check()
def check_chunks_equal_rows_in_estimators(learner: Learner) -> None:
    """The same through the estimators: classes given, discovered, regression; some weights are zero, even all of a chunk."""
    X, y = _stream(learner, density=0.5)
    weights = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 2.0], size=len(y))
    for kind in models(learner):
        for given in [None] if isinstance(kind, KernelRegressor) else [list(range(_classes(learner))), None]:
            extra = {} if given is None else {"classes": given}
            method = "decision_then_learn" if given else "predict_then_learn"
            Z = X.astype(np.float32) if given else scipy.sparse.csr_array(X)

            def run(model: Any, a: int, b: int, m: str = method, Z: Any = Z, extra: Any = extra) -> Any:
                return getattr(model, m)(Z[a:b], y[a:b], sample_weight=weights[a:b], **extra)

            _all_agree(functools.partial(clone, kind), run, len(y), _state)


@_check()
def check_empty_chunk_does_nothing(learner: Learner) -> None:
    """A chunk without rows changes nothing, first or later."""
    X, y = _stream(learner)
    for plain, with_gaps in zip(models(learner), models(learner), strict=True):
        for start in (0, 50, 150):
            for rows in (X[:0], scipy.sparse.csr_array(X[:0])):
                with_gaps.partial_fit(rows, y[:0])
                assert len(with_gaps.predict_then_learn(rows, y[:0])) == 0
            plain.partial_fit(X[start : start + 50], y[start : start + 50])
            with_gaps.partial_fit(X[start : start + 50], y[start : start + 50])
            assert len(with_gaps.predict(X[:0])) == 0
        assert same_bits(_state(plain), _state(with_gaps))


# ---- classes ----


@_check(lambda learner: learner.classification and learner.multiclass)
def check_classes_in_any_order(learner: Learner, labels: Any = (0, 1, 2, 3)) -> None:
    """One to four classes, new ones anywhere in the sorting order; chunks, single rows and one call agree."""
    X, _ = example_stream(n=80)
    rng = np.random.default_rng(2)
    for order in [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1)]:
        codes = np.concatenate([rng.integers(0, k, size) for k, size in ((1, 3), (2, 17), (3, 30), (4, 30))])
        codes[[3, 20, 50]] = 1, 2, 3
        y = np.array(labels)[np.array(order)[codes]]
        single, chunked, whole = (KernelClassifier(clone(learner)) for _ in range(3))
        want = [single.predict_then_learn(X[i : i + 1], y[i : i + 1])[0] for i in range(80)]
        got = [p for a, b in partition(80, 3) for p in chunked.predict_then_learn(X[a:b], y[a:b])]
        every = whole.predict_then_learn(X, y)
        assert want[0] != y[0]
        assert got[1:] == want[1:] == every[1:].tolist()
        assert got[0] != y[0]
        assert every[0] != y[0]
        assert whole.classes_.tolist() == sorted(labels)
        assert same_bits(_state(chunked), _state(single))
        assert same_bits(_state(whole), _state(single))


@_check(lambda learner: learner.classification and learner.multiclass)
def check_new_class_keeps_the_past(learner: Learner) -> None:
    """Before a class is known it is ranked last; the predictions are those of a model that has not met it."""
    X, y = example_stream(n=60)
    y[:30] = np.where(y[:30] == 2, 1, y[:30])
    model, twin = KernelClassifier(clone(learner)), KernelClassifier(clone(learner))
    scores = model.decision_then_learn(X, y)
    predicted = twin.predict_then_learn(X, y)
    new = int(np.argmax(y == 2))
    assert (scores[:new, 2] == scores[:new].min(axis=1)).all()
    assert (np.argmax(scores, axis=1)[new + 1 :] == predicted[new + 1 :]).all()


@_check(lambda learner: learner.classification)
def check_unknown_label_is_refused(learner: Learner) -> None:
    """With classes given, another label is refused with its row, and nothing changes."""
    X, y = _stream(learner)
    known = list(range(_classes(learner)))
    model = KernelClassifier(learner).partial_fit(X[:50], y[:50], classes=known)
    before = _state(model)
    bad = y[50:100].copy()
    bad[20:22] = 7, 9
    with _raises(ValueError, rf"label .*7.* at row 20.*{re.escape(str(known))}"):
        model.partial_fit(X[50:100], bad)
    assert same_bits(before, _state(model))
    assert model.classes_.tolist() == known


# ---- nothing but learning changes a model ----


@_check()
def check_predicting_changes_nothing(learner: Learner) -> None:
    """Scores of any rows leave the state, and what is learnt next, as they were."""
    X, y = _stream(learner)
    for model in models(learner):
        model.partial_fit(X[:60], y[:60])
        before = _state(model)
        twin = pickle.loads(pickle.dumps(model))
        for rows in (X, X[:1], X[:0], scipy.sparse.csr_array(X), X.astype(np.float32)):
            model.predict(rows)
            _scores(model, rows)
        assert same_bits(before, _state(model))
        assert model.predict_then_learn(X, y).tobytes() == twin.predict_then_learn(X, y).tobytes()


@_check()
def check_callers_arrays_are_not_kept(learner: Learner) -> None:
    """Rows, targets and weights may be overwritten once they are learnt."""
    X, y = _stream(learner, density=0.7)
    for sparse in (False, True):
        for model in models(learner):
            dense, targets, weights = X[:100].copy(), y[:100].copy(), np.ones(100)
            rows: Any = scipy.sparse.csr_array(dense) if sparse else dense
            model.partial_fit(rows, targets, sample_weight=weights)
            before, scores = _state(model), model.predict(X)
            (rows.data if sparse else rows)[:] = 77.0
            targets[:] = 1
            weights[:] = 5.0
            assert same_bits(before, _state(model))
            assert (model.predict(X) == scores).all()


@_check()
def check_state_is_not_shared(learner: Learner) -> None:
    """The arrays of ``state()``, and those given to ``restore``, are the caller's to overwrite."""
    X, y = _stream(learner)
    for n in (50, 200):  # in the middle of a warm-up, and after it
        trained = next(models(learner)).partial_fit(X[:n], y[:n]).learner_
        reference = trained.state()
        for array in trained.state().values():
            if array.flags.writeable:
                array.fill(3)
        assert same_bits(trained.state(), reference)
        given = copy.deepcopy(reference)
        restored = clone(learner).restore(given)
        for array in given.values():
            array.fill(3)
        assert same_bits(restored.state(), reference)


# ---- the same again ----


@_check()
def check_same_seed_same_bits(learner: Learner) -> None:
    """The same rows give the same model, and ``fit`` forgets everything first."""
    X, y = _stream(learner)
    for a, b in zip(models(learner), models(learner), strict=True):
        assert same_bits(_state(a.fit(X, y)), _state(b.fit(X, y)))
        assert same_bits(_state(a.fit(X, y)), _state(b))


@_check(lambda learner: "seed" in learner.get_params())
def check_other_seed_other_model(learner: Learner) -> None:
    """Each seed gives a model of its own."""
    X, y = _stream(learner)
    seeded = [clone(learner).set_params(seed=seed) for seed in (0, 1, 2**64 - 1)]
    scores = [_scores(next(models(one)).fit(X, y), X) for one in seeded]
    assert all((a != b).any() for a, b in itertools.combinations(scores, 2))


@_check()
def check_threads(learner: Learner, rows: int = 400) -> None:
    """Two models in two threads learn what each would learn alone."""
    X, y = _stream(learner, n=rows)
    streams = X, X[::-1].copy()
    want = [[model.predict_then_learn(Z, y) for model in models(learner)] for Z in streams]
    got: list[list[Array]] = [[], []]
    gate = threading.Barrier(2)

    def work(slot: int) -> None:
        gate.wait()
        got[slot] = [model.predict_then_learn(streams[slot], y) for model in models(learner)]

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for ours, theirs in zip(want, got, strict=True):
        assert all(a.tobytes() == b.tobytes() for a, b in zip(ours, theirs, strict=True))


# ---- copies ----


def _through_state(model: Any) -> Any:
    twin = copy.copy(model)
    twin.learner_ = type(model.learner)(**model.learner.get_params(deep=False)).restore(_state(model))
    return twin


def _through_joblib(model: Any) -> Any:
    import joblib

    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


COPIES: dict[str, Callable[[Any], Any]] = {
    "state": _through_state,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
    "joblib": _through_joblib,
    "file": lambda model: unpack(pack(model))[0],
}


@_check()
def check_copies_go_on(learner: Learner, how: Iterable[str] = tuple(COPIES)) -> None:
    """A copy (by ``state``, pickle, deepcopy, joblib, model file) predicts and learns on as its original, to the bit.

    A model file is for registered learners only.
    """
    X, y = _stream(learner, n=400)
    for way in how:
        if way == "file" and registered(plugins=False).get(type(learner).__name__) is not type(learner):
            continue
        for dtype in (np.float64, np.float32):
            Z = X.astype(dtype)
            for model in models(learner):
                for start, stop in [(0, 1), (1, 7), (7, 100), (100, 130), (130, 260), (260, 400)]:
                    twin = COPIES[way](model) if hasattr(model, "learner_") else copy.deepcopy(model)
                    ours = model.predict_then_learn(Z[start:stop], y[start:stop])
                    theirs = twin.predict_then_learn(Z[start:stop], y[start:stop])
                    assert ours.tobytes() == theirs.tobytes(), way
                    assert same_bits(_state(model), _state(twin)), way
                    assert model.nbytes_ == twin.nbytes_, way
                    assert (model.predict(Z) == twin.predict(Z)).all(), way


@_check()
def check_rollback(learner: Learner) -> None:
    """``rollback`` undoes all that was learnt since ``snapshot``; learning goes on as if it had not been."""
    for outputs, regression in _tasks(learner):
        X, y = example_stream()
        targets = _targets(X, y, outputs, regression)
        model, twin = (clone(learner).start(4, outputs, regression=regression) for _ in range(2))
        for start, stop in [(0, 3), (3, 60), (60, 140), (140, 200)]:
            before, snapshot = model.state(), model.snapshot()
            model.run(as_rows(X[::-1].copy()), targets)
            model.widen(6)
            model.rollback(snapshot)
            assert same_bits(model.state(), before)
            ours = model.run(as_rows(X[start:stop]), targets[start:stop])
            theirs = twin.run(as_rows(X[start:stop]), targets[start:stop])
            assert ours.tobytes() == theirs.tobytes()
        assert same_bits(model.state(), twin.state())


@_check()
def check_wrong_state_is_refused(learner: Learner) -> None:
    """A state that lacks an array, or in which one has another number of axes, is refused, or not given back as it was."""
    X, y = _stream(learner)
    good = next(models(learner)).partial_fit(X, y).learner_.state()
    for name in good:
        bad = {key: array for key, array in good.items() if key != name}
        for wrong in (bad, bad | {name: good[name][None]}):
            restored = clone(learner)
            try:
                restored.restore(wrong)
            except (ValueError, TypeError, KeyError):
                assert not restored.started, "a state that is refused changes nothing"
            else:
                assert not same_bits(restored.state(), wrong), name


# ---- memory ----


@_check(lambda learner: learner.bounded)
def check_memory_is_bounded(learner: Learner, rows: int = 500) -> None:
    """Ten times as many rows: what ``nbytes`` reports stays, and so does what the process holds."""

    def resident() -> int:
        pages = Path("/proc/self/statm")
        return int(pages.read_text().split()[1]) * 4096 if pages.exists() else 0

    X, y = _stream(learner, n=rows)
    model = next(models(learner)).partial_fit(X, y)
    size, process = model.nbytes_, resident()
    for _ in range(9):
        model.partial_fit(X, y)
        assert model.nbytes_ == size, "nbytes grows with the rows"
    assert resident() - process < 16e6, "the process grows with the rows"


# ---- input that is refused ----


@_check()
def check_non_finite_input_is_refused(learner: Learner, bad: float = np.nan) -> None:
    """NaN and infinity are refused with their place, and nothing changes."""
    X, y = _stream(learner, density=0.8)
    what = "NaN" if np.isnan(bad) else "infinity"
    for model in models(learner):
        model.partial_fit(X[:50], y[:50])
        before = _state(model)
        Z = X[50:100].copy()
        Z[17, 2] = bad
        Z[30, 1] = np.nan
        for rows in (Z, scipy.sparse.csr_array(Z), Z.astype(np.float32), np.asfortranarray(Z)):
            with _raises(ValueError, f"{what} at row 17, column 2"):
                model.partial_fit(rows, y[50:100])
            assert same_bits(before, _state(model))
            with _raises(ValueError, f"{what} at row 17, column 2"):
                model.predict(rows)
            assert same_bits(before, _state(model))
        with _raises(ValueError, "row 17, column 2"):
            type(model)(model.learner).fit(Z, y[50:100])


@_check()
def check_too_large_for_float32_is_refused(learner: Learner) -> None:
    """A model of float32 refuses a number that float32 cannot hold, and nothing changes."""
    X, y = _stream(learner, n=50)
    model = next(models(learner)).partial_fit(X.astype(np.float32), y)
    before = _state(model)
    X[3, 1] = 1e300
    with np.errstate(over="ignore"), _raises(ValueError, "infinity at row 3, column 1"):
        model.partial_fit(X, y)
    assert same_bits(before, _state(model))


@_check()
def check_wrong_width_is_refused(learner: Learner) -> None:
    """Rows of another width are refused by the estimators and by the learner, and nothing changes."""
    X, y = _stream(learner)
    for model in models(learner):
        model.partial_fit(X[:50], y[:50])
        before = _state(model)
        for rows in (X[:, :3], np.hstack([X, X]), scipy.sparse.csr_array(X[:, :3]), X[:0, :2]):
            with _raises(ValueError, "features"):
                model.partial_fit(rows, y[: rows.shape[0]])
            with _raises(ValueError, "features"):
                model.predict(rows)
        with _raises(ValueError, "columns"):
            model.learner_.score(as_rows(X[:, :3]))
        assert same_bits(before, _state(model))


@_check()
def check_lengths_and_weights_are_checked(learner: Learner) -> None:
    """Targets and weights of another length, and weights that are negative or not finite, are refused; nothing changes."""
    X, y = _stream(learner)
    for model in models(learner):
        model.partial_fit(X[:50], y[:50])
        before = _state(model)
        for bad in (
            {"y": y[:49]},
            {"y": None},
            {"sample_weight": np.ones(49)},
            {"sample_weight": np.full(50, -1.0)},
        ):
            with _raises(ValueError):
                model.partial_fit(X[:50], **({"y": y[:50]} | bad))
        for weight in (np.nan, np.inf):
            with _raises(ValueError):
                model.partial_fit(X[:2], y[:2], sample_weight=[1.0, weight])
        assert same_bits(before, _state(model))


@_check()
def check_regression_targets_are_checked(learner: Learner) -> None:
    """A target that is not finite is refused with its row; a classifier refuses regression."""
    X, y = _stream(learner)
    if not learner.regression:
        with _raises(ValueError, "cannot do regression"):
            KernelRegressor(learner).fit(X, y)
        return
    model = KernelRegressor(learner).partial_fit(X[:50], y[:50])
    before = _state(model)
    with _raises(ValueError, "y has NaN at row 1"):
        model.partial_fit(X[:2], [0.0, np.nan])
    with _raises(ValueError, "y has infinity at row 0"):
        model.partial_fit(X[:2], [np.inf, 0.0])
    assert same_bits(before, _state(model))


# ---- precision and storage ----


@_check()
def check_float32_is_kept(learner: Learner) -> None:
    """A model has the precision of its first rows and keeps it."""
    X, y = _stream(learner)
    for model in models(learner):
        model.partial_fit(X.astype(np.float32), y)
        assert model.learner_.dtype == np.float32
        model.partial_fit(X, y)
        assert model.learner_.dtype == np.float32
        assert clone(model).partial_fit(X, y).learner_.dtype == np.float64
        assert type(model)(model.learner).fit(X.astype(int), y).learner_.dtype == np.float64


@_check()
def check_dense_equals_sparse(learner: Learner) -> None:
    """Dense and CSR rows give the same model up to rounding."""
    X, y = _stream(learner, density=0.5, seed=4)
    for dense, sparse in zip(models(learner), models(learner), strict=True):
        dense.partial_fit(X, y)
        sparse.partial_fit(scipy.sparse.csr_array(X), y)
        want = _scores(dense, X)
        for rows in (X, scipy.sparse.csr_array(X), scipy.sparse.csc_matrix(X)):
            np.testing.assert_allclose(_scores(sparse, rows), want, rtol=1e-9, atol=1e-9)


@_check()
def check_any_csr_is_understood(learner: Learner) -> None:
    """Unsorted columns and entries in parts mean what SciPy says; the caller's matrix stays as it is."""
    X, y = _stream(learner, n=40, d=5)
    messy = scipy.sparse.csr_matrix(
        (
            np.repeat(X[:, ::-1], 2, axis=1).ravel() / 2,
            np.tile(np.repeat(np.arange(5)[::-1], 2), 40),
            np.arange(41) * 10,
        ),
        shape=X.shape,
    )
    indices = messy.indices.copy()
    for a, b in zip(models(learner), models(learner), strict=True):
        a.partial_fit(messy, y)
        b.partial_fit(scipy.sparse.csr_array(X), y)
        assert (messy.indices == indices).all()
        assert same_bits(_state(a), _state(b))


# ---- features that appear later, weights ----


@_check()
def check_widen_equals_zero_columns(learner: Learner, exact: bool = False, first: int = 2) -> None:
    """A feature that appears later was always zero: widths 3, 7 and 20 give what 20 give with zeros, up to rounding.

    ``exact``: to the bit. ``first``: the first row compared; before two rows a scale may be one over the width.
    """
    X, y = example_stream(n=200, d=20)
    X[:60, 3:] = 0
    X[60:150, 7:] = 0
    outputs, regression = next(_tasks(learner))
    targets = _targets(X, y, outputs, regression)
    full = clone(learner).start(20, outputs, regression=regression)
    grown = clone(learner).start(3, outputs, regression=regression)
    want = full.run(as_rows(X), targets)
    got = np.zeros_like(want)
    for start, stop, width in [(0, 60, 3), (60, 150, 7), (150, 200, 20)]:
        if width > 3:
            grown.widen(width)
        assert grown.width == width
        got[start:stop] = grown.run(as_rows(X[start:stop, :width]), targets[start:stop])
    np.testing.assert_allclose(got[first:], want[first:], rtol=1e-9, atol=1e-9)
    if exact:
        assert got[first:].tobytes() == want[first:].tobytes()
        assert same_bits(full.state(), grown.state())


@_check()
def check_zero_weight_leaves_out(learner: Learner) -> None:
    """A row of weight zero is predicted, but changes nothing."""
    X, y = _stream(learner)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 0.3], size=200)
    kept = weights > 0
    for a, b in zip(models(learner), models(learner), strict=True):
        extra = {"classes": list(range(_classes(learner)))} if isinstance(a, KernelClassifier) else {}
        a.partial_fit(X, y, sample_weight=weights, **extra)
        b.partial_fit(X[kept], y[kept], sample_weight=weights[kept], **extra)
        assert same_bits(_state(a), _state(b))
        assert (a.predict(X) == b.predict(X)).all()


@_check()
def check_unit_weights_change_nothing(learner: Learner) -> None:
    """A weight of one is what no weight is."""
    X, y = _stream(learner)
    for a, b in zip(models(learner), models(learner), strict=True):
        assert same_bits(_state(a.fit(X, y)), _state(b.fit(X, y, sample_weight=np.ones(200))))


# ---- numbers near the end of the range ----


@_check()
def check_scores_are_finite_or_refused(
    learner: Learner, scales: Iterable[float] = (1e200, 1e-200, 1e-160, 1e155)
) -> None:
    """Rows and targets of any size give finite scores, or ``ScoreOverflowError``: never NaN or infinity."""
    X, y = _stream(learner, n=300, d=3)
    for scale, sparse in itertools.product(scales, (False, True)):
        for targets in (y, y * scale):
            for model in models(learner):
                if isinstance(model, KernelClassifier) and targets is not y:
                    continue
                run = getattr(model, "decision_then_learn", model.predict_then_learn)
                for part in (slice(0, 40), slice(40, 41), slice(41, 42), slice(42, 300)):
                    Z: Any = X[part] * scale
                    Z = scipy.sparse.csr_array(Z) if sparse else Z
                    with contextlib.suppress(ScoreOverflowError):
                        assert np.isfinite(run(Z, targets[part])).all()
                    if hasattr(model, "learner_"):  # else the first rows were refused
                        with contextlib.suppress(ScoreOverflowError):
                            assert np.isfinite(_scores(model, Z)).all()


@_check()
def check_step_beyond_float32_is_refused(learner: Learner) -> None:
    """A target or a weight whose step float32 cannot hold is refused; the rows after it are learnt as ever."""
    X, y = example_stream(n=60, classes=2)
    X = X.astype(np.float32)
    for model in models(learner):
        regression = isinstance(model, KernelRegressor)
        targets = X[:, 0].astype(float) if regression else y
        broken: dict[str, Any] = {"y": y[50:51], "sample_weight": [1e300]}
        if regression:
            broken = {"y": [1e39]}
        model.partial_fit(X[:50], targets[:50])
        with contextlib.suppress(ScoreOverflowError, ValueError):
            model.partial_fit(X[50:51], **broken)
        model.partial_fit(X[51:], targets[51:])
        assert np.isfinite(model.learner_.score(as_rows(X, np.float32))).all()


@_check(lambda learner: not learner.bounded and "max_size" in learner.get_params())
def check_growth_ends_with_an_error(learner: Learner) -> None:
    """A learner that grows stops at ``max_size`` points with ``CapacityError``; what was learnt before stays in use."""
    X, y = _stream(learner, n=400)
    for model in models(clone(learner).set_params(max_size=20)):
        model.partial_fit(X[:5], y[:5])
        with _raises(CapacityError, r"max_size=20.*such as"):
            model.partial_fit(X, y)
        assert np.isfinite(model.predict(X)).all()
