"""What every learner must do, whatever its algorithm: one suite over all of `kernelstream.learners`."""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import pickle
import threading
import tracemalloc
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from kernelstream import (
    CapacityError,
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    Laplacian,
    Linear,
    Polynomial,
    ScoreOverflowError,
    learners,
)
from kernelstream.rows import as_rows

SMALL = {
    "BOGD": {"budget": 5, "seed": 3},
    "BPAS": {"budget": 5},
    "DualSGD": {"budget": 5, "n_components": 20, "neighbours": 3, "seed": 3},
    "FOGD": {"n_components": 20, "seed": 3},
    "Forgetron": {"budget": 5},
    "KOGD": {"lam": 0.01},
    "KRLS": {"max_size": 10},
    "KernelPA": {},
    "KernelPerceptron": {},
    "LinearPA": {},
    "NOGD": {"budget": 12, "rank": 5},
    "NOLANA": {"budget": 12, "rank": 5},
    "NewtonMixture": {"budget": 8, "memory": 4000},
    "OKLGD": {"max_size": 10_000},
    "OKS": {"bandwidths": (0.5, 2.0), "seed": 3},
    "OKSSIL": {"budget": 5, "nu": 0.3, "seed": 3},
    "ProjKA": {"budget": 5, "warmup": 40},
    "Projectron": {"budget": 5},
    "ProjectronPP": {"budget": 5},
    "RBP": {"budget": 5, "seed": 3},
    "RRF": {"n_components": 20, "seed": 3},
    "SkeGD": {"budget": 16, "samples": 5, "rank": 4, "cycle": 20, "seed": 3},
    "TruncatedKOGD": {"budget": 5},
}
#: Two classes only, while this suite's data has three: tests/test_kons.py asks the same of them.
TWO_CLASSES = {"KONS", "ProsNKons", "SketchedKONS"}
NAMES = [name for name in learners.__all__ if name != "Learner" and name not in TWO_CLASSES]
BOUNDED = [name for name in NAMES if getattr(learners, name).bounded]
OWN_KERNEL = {"LinearPA", "NewtonMixture", "OKLGD", "OKS", "OKSSIL", "ProjKA"}  # take no kernel
RANDOM = [name for name in NAMES if "seed" in getattr(learners, name)().get_params()]

#: How much of the memory single precision may take: what is factored stays in double; so does all of KRLS and NewtonMixture.
SINGLE = {"KRLS": 1.0, "NewtonMixture": 1.0} | dict.fromkeys(
    ["DualSGD", "NOLANA", "ProjKA", "Projectron", "ProjectronPP", "SkeGD"], 0.95
)

#: The kernels of those that do not take all.
KERNELS = {"DualSGD": (Gaussian, Laplacian), "FOGD": (Gaussian, Laplacian), "RRF": (Gaussian,)}

each = pytest.mark.parametrize("name", NAMES)


def test_every_learner_is_in_the_suite():
    assert sorted(SMALL) == sorted(NAMES)
    assert set(RANDOM) == {"BOGD", "DualSGD", "FOGD", "OKS", "OKSSIL", "RBP", "RRF", "SkeGD"}
    assert set(NAMES) - set(BOUNDED) == {"KernelPerceptron", "KernelPA", "KOGD", "OKLGD", "OKS"}


def small(name, kernel=None, **options):
    """A small learner; with the default kernel (median bandwidth) unless one is given."""
    if kernel is not None and name not in OWN_KERNEL:
        options["kernel"] = kernel if isinstance(kernel, KERNELS.get(name, object)) else Gaussian(gamma=0.3)
    return getattr(learners, name)(**(SMALL[name] | options))


def models(name, kernel=None, **options):
    """The learner in each estimator that takes it, with suitable targets for `data`."""
    learner = small(name, kernel, **options)
    yield KernelClassifier(learner)
    if learner.regression:
        yield KernelRegressor(learner)


def data(n=200, d=4, classes=3, seed=0, density=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if density < 1:
        X *= rng.random((n, d)) < density
    signal = X[:, 0] + X[:, -1] ** 2 + 0.5 * rng.normal(size=n)
    return X, np.digitize(signal, np.quantile(signal, np.linspace(0, 1, classes + 1)[1:-1]))


def same_bits(a, b):
    """Whether two states (arrays by name) are the same to the last bit."""
    return a.keys() == b.keys() and all(
        a[k].dtype == b[k].dtype and a[k].shape == b[k].shape and a[k].tobytes() == b[k].tobytes() for k in a
    )


def state(model):
    return model.learner_.state()


def cuts(n, seed):
    """A partition of range(n) into chunks of many sizes."""
    rng = np.random.default_rng(seed)
    sizes = []
    while sum(sizes) < n:
        sizes.append(int(rng.choice([1, 2, 3, 7, 8, 9, 16, 17, 40, 64, 65])))
    ends = np.minimum(np.cumsum(sizes), n)
    return list(zip([0, *ends[:-1]], ends, strict=True))


SINGLES = [(i, i + 1) for i in range(200)]
PARTITIONS = [[(0, 200)], cuts(200, 1), cuts(200, 2)]

# ---- chunks ----


@pytest.mark.parametrize(
    "kernel", [None, Gaussian(gamma=0.4), Laplacian(), Polynomial(degree=2), Linear()], ids=str
)
@each
def test_chunks_equal_rows(name, kernel):
    """Learners: every kernel, precision, storage and task."""
    step = (
        {"eta": 0.01}
        if "eta" in small(name).get_params() and isinstance(kernel, (Polynomial, Linear))
        else {}
    )
    learner = small(name, kernel, **step)
    tasks = [(1, False), (3, False), (1, True)][: 3 if learner.regression else 2]
    for dtype, density, (outputs, regression) in itertools.product(
        (np.float64, np.float32), (1.0, 0.5), tasks
    ):
        X, y = data(density=density)
        rows = as_rows(scipy.sparse.csr_array(X) if density < 1 else X, dtype)
        targets = y * 1.0 if outputs == 3 else X[:, 0] if regression else np.where(y == 2, 1.0, -1.0)
        weights = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 2.0], size=len(y))

        def through(partition):
            model = clone(learner).start(4, outputs, regression=regression, dtype=dtype)  # noqa: B023
            made = [model.run(rows.part(a, b), targets[a:b], weights[a:b]) for a, b in partition]  # noqa: B023
            return model.state(), np.concatenate(made)

        single, want = through(SINGLES)
        for partition in PARTITIONS:
            chunked, got = through(partition)
            assert got.tobytes() == want.tobytes()
            assert same_bits(chunked, single)


@each
def test_chunks_equal_rows_in_estimators(name):
    """Estimators: classes given, discovered, regression; some weights are zero, even all of a chunk."""
    X, y = data(density=0.5)
    weights = np.random.default_rng(5).choice([0.0, 0.5, 1.0, 2.0], size=len(y))
    for kind in models(name):
        for classes in [None] if isinstance(kind, KernelRegressor) else [[0, 1, 2], None]:
            extra = {} if classes is None else {"classes": classes}
            method = "decision_then_learn" if classes else "predict_then_learn"
            Z = X.astype(np.float32) if classes else scipy.sparse.csr_array(X)

            def through(partition):
                model = clone(kind)  # noqa: B023
                run = getattr(model, method)  # noqa: B023
                made = [run(Z[a:b], y[a:b], sample_weight=weights[a:b], **extra) for a, b in partition]  # noqa: B023
                return model, np.concatenate(made)

            single, want = through(SINGLES)
            for partition in PARTITIONS:
                chunked, got = through(partition)
                assert got.tobytes() == want.tobytes()
                assert same_bits(state(chunked), state(single))


@pytest.mark.parametrize("labels", [[0, 1, 2, 3], ["a", "bb", "ccc", "dddd"], [-1.0, 0.0, 2.0, 9.0]], ids=str)
@each
def test_classes_arriving_in_any_order(name, labels):
    """One to four classes, new ones anywhere in the sorting order; chunks, single rows and one call agree."""
    X, _ = data(n=80)
    rng = np.random.default_rng(2)
    for order in [(0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1)]:
        codes = np.concatenate([rng.integers(0, k, size) for k, size in ((1, 3), (2, 17), (3, 30), (4, 30))])
        codes[[3, 20, 50]] = 1, 2, 3
        y = np.array(labels)[np.array(order)[codes]]
        single, chunked, whole = (KernelClassifier(small(name)) for _ in range(3))
        want = [single.predict_then_learn(X[i : i + 1], y[i : i + 1])[0] for i in range(80)]
        got = [p for a, b in cuts(80, 3) for p in chunked.predict_then_learn(X[a:b], y[a:b])]
        every = whole.predict_then_learn(X, y)
        assert want[0] != y[0]
        assert got[1:] == want[1:] == every[1:].tolist()
        assert got[0] != y[0]
        assert every[0] != y[0]
        assert whole.classes_.tolist() == sorted(labels)
        assert same_bits(state(chunked), state(single))
        assert same_bits(state(whole), state(single))


@each
def test_a_new_class_never_changes_the_past(name):
    """decision_then_learn before a class is known ranks that class last."""
    X, y = data(n=60)
    y[:30] = np.where(y[:30] == 2, 1, y[:30])
    model, twin = KernelClassifier(small(name)), KernelClassifier(small(name))
    scores = model.decision_then_learn(X, y)
    predicted = twin.predict_then_learn(X, y)
    new = int(np.argmax(y == 2))
    assert (scores[:new, 2] == scores[:new].min(axis=1)).all()
    assert (np.argmax(scores, axis=1)[new + 1 :] == predicted[new + 1 :]).all()


@each
def test_warm_up_ends_and_does_not_depend_on_chunks(name):
    """The bandwidth is the median over the first 128 rows, also when a chunk holds more than those."""
    X, y = data(n=300)
    model = KernelClassifier(small(name)).partial_fit(X, y)
    if name in OWN_KERNEL:
        return
    learner = model.learner_
    gamma = learner.kernel_.options()["gamma"]
    distances = np.sqrt(((X[:128, None] - X[None, :128]) ** 2).sum(axis=2))
    assert gamma == pytest.approx(1 / (2 * np.median(distances[np.triu_indices(128, 1)]) ** 2))
    assert "warmup_rows" not in state(model)


# ---- nothing but learning changes a model ----


@each
def test_predicting_changes_nothing(name):
    X, y = data()
    for model in models(name):
        model.partial_fit(X[:60], y[:60])
        before = state(model)
        twin = pickle.loads(pickle.dumps(model))
        for rows in (X, X[:1], X[:0], scipy.sparse.csr_array(X), X.astype(np.float32)):
            model.predict(rows)
            if isinstance(model, KernelClassifier):
                model.decision_function(rows)
        assert same_bits(before, state(model))
        assert model.predict_then_learn(X, y).tobytes() == twin.predict_then_learn(X, y).tobytes()


@each
def test_no_array_of_the_caller_is_kept(name):
    X, y = data(density=0.7)
    for sparse in (False, True):
        for model in models(name):
            rows, targets, weights = X[:100].copy(), y[:100].copy(), np.ones(100)
            rows = scipy.sparse.csr_array(rows) if sparse else rows
            model.partial_fit(rows, targets, sample_weight=weights)
            before, scores = state(model), model.predict(X)
            (rows.data if sparse else rows)[:] = 77.0
            targets[:] = 1
            weights[:] = 5.0
            assert same_bits(before, state(model))
            assert (model.predict(X) == scores).all()


@each
def test_no_array_of_a_state_is_shared(name):
    X, y = data()
    for n in (50, 200):  # in the middle of the warm-up, and after it
        learner = KernelClassifier(small(name)).partial_fit(X[:n], y[:n]).learner_
        reference = learner.state()
        for array in learner.state().values():
            array.flags.writeable and array.fill(3)
        assert same_bits(learner.state(), reference)
        given = copy.deepcopy(reference)
        restored = small(name).restore(given)
        for array in given.values():
            array.fill(3)
        assert same_bits(restored.state(), reference)


@each
def test_the_learner_given_is_never_trained(name):
    X, y = data(n=20)
    for model in models(name):
        model.partial_fit(X, y)
        assert not model.learner.started
        assert model.learner_ is not model.learner


# ---- seeds ----


@each
def test_same_seed_same_bits(name):
    X, y = data()
    for a, b in zip(models(name), models(name), strict=True):
        assert same_bits(state(a.fit(X, y)), state(b.fit(X, y)))
        assert same_bits(state(a.fit(X, y)), state(b))  # fit forgets everything


@pytest.mark.parametrize("name", RANDOM)
def test_other_seed_other_model(name):
    X, y = data()
    scores = [KernelClassifier(small(name, seed=s)).fit(X, y).decision_function(X) for s in (0, 1, 2**64 - 1)]
    assert all((a != b).any() for a, b in itertools.combinations(scores, 2))


# ---- save and restore ----


def through_state(model):
    made = copy.copy(model)
    made.learner_ = type(model.learner)(**model.learner.get_params(deep=False)).restore(state(model))
    return made


def through_joblib(model):
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


COPIES = {
    "state": through_state,
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
    "deepcopy": copy.deepcopy,
    "joblib": through_joblib,
}


@pytest.mark.parametrize("how", COPIES)
@each
def test_a_copy_goes_on_bit_for_bit(name, how):
    X, y = data(n=400)
    for kernel in (None, Gaussian(gamma=0.4)):
        for dtype in (np.float64, np.float32):
            Z = X.astype(dtype)
            for model in models(name, kernel):
                for start, stop in [(0, 1), (1, 7), (7, 100), (100, 130), (130, 260), (260, 400)]:
                    twin = COPIES[how](model) if hasattr(model, "learner_") else copy.deepcopy(model)
                    ours = model.predict_then_learn(Z[start:stop], y[start:stop])
                    theirs = twin.predict_then_learn(Z[start:stop], y[start:stop])
                    assert ours.tobytes() == theirs.tobytes()
                    assert same_bits(state(model), state(twin))
                    assert model.nbytes_ == twin.nbytes_
                    assert (model.predict(Z) == twin.predict(Z)).all()


@each
def test_a_state_that_does_not_fit_is_refused(name):
    X, y = data()
    good = KernelClassifier(small(name)).partial_fit(X, y).learner_.state()
    for key in ("points", "weights", "map_weights", "matrix", "inverse", "born", "random", "ledger"):
        if key in good:
            bad = dict(good)
            shape = list(good[key].shape)
            shape[-1] += 1
            bad[key] = np.zeros(shape, good[key].dtype)
            with pytest.raises((ValueError, TypeError)):
                small(name).restore(bad)


# ---- memory ----


@pytest.mark.parametrize("name", BOUNDED)
def test_memory_is_constant(name):
    """200,000 rounds: what nbytes_ reports stays, and so does what the process holds."""

    def resident():
        pages = Path("/proc/self/statm")
        return int(pages.read_text().split()[1]) * 4096 if pages.exists() else 0

    X, y = data(n=20_000, classes=3)
    model = KernelClassifier(small(name)).partial_fit(X, y)
    after_warm_up, process = model.nbytes_, resident()
    for _ in range(9):
        model.partial_fit(X, y)
        assert model.nbytes_ == after_warm_up
    assert resident() - process < 16e6
    assert after_warm_up < 40_000


@pytest.mark.parametrize("name", ["KernelPerceptron", "KernelPA", "KOGD", "OKLGD", "OKS"])
def test_an_unbounded_learner_says_what_else_to_use(name):
    X, y = data(n=400)
    for kernel in (None, Gaussian(gamma=5.0)):
        for model in models(name, kernel, max_size=20):
            with pytest.raises(CapacityError, match=r"max_size=20.*such as") as error:
                model.partial_fit(X, y)
            alternatives = [n for n in BOUNDED if n in str(error.value)]
            assert alternatives
            assert model.learner_.n_points == 20
            assert np.isfinite(model.predict(X)).all()  # what was learnt before stays in use


@pytest.mark.parametrize("name", ["KernelPerceptron", "KernelPA", "KOGD", "OKLGD", "OKS"])
def test_a_full_store_in_the_warm_up_gives_the_same_for_any_chunks(name):
    X, y = data(n=60, classes=2)
    whole, single = (KernelClassifier(small(name, max_size=20)) for _ in range(2))
    with pytest.raises(CapacityError) as error:
        whole.partial_fit(X, y, classes=[0, 1])
    row = int(str(error.value).split("row ")[1].split()[0])
    for i in range(row):
        single.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    before = state(single)
    with pytest.raises(CapacityError, match="row 0"):
        single.partial_fit(X[row : row + 1], y[row : row + 1])
    assert same_bits(state(single), before)
    assert same_bits(state(whole), before)


@pytest.mark.parametrize("kernel", [None, Gaussian(gamma=5.0)], ids=str)
def test_errors_name_the_row_of_the_chunk(kernel):
    """Also when classes were discovered on the way, and through a pickle."""
    X, _ = data(n=60)
    y = np.concatenate([[0] * 7, [1, 0] * 4, [2, 1, 0] * 15])
    with pytest.raises(CapacityError, match="row 25 needs") as error:
        KernelClassifier(small("KOGD", kernel, max_size=25, loss="logistic")).partial_fit(X, y)
    twin = pickle.loads(pickle.dumps(error.value))
    assert (type(twin), str(twin), twin.row) == (CapacityError, str(error.value), 25)
    X[30] *= 1e200
    X[41] *= 1e200
    with pytest.raises(ScoreOverflowError, match=r"row 41\b"):
        KernelClassifier(small("KOGD", Linear(), loss="logistic")).partial_fit(X, y)


def test_a_bandwidth_that_needs_more_room_than_there_is_is_not_taken():
    """The restart of a warm-up may need more points than max_size: the model keeps the bandwidth it has."""
    X, y = data(n=200, classes=2, seed=8)
    X[:20] *= 50  # far apart at first: a wide kernel, under which few rows are mistakes
    y[:20] = 0
    single, whole = (KernelClassifier(small("KernelPerceptron", max_size=12)) for _ in range(2))
    row = None
    for i in range(200):
        try:
            single.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
        except CapacityError:
            row = i
            break
    assert row is not None
    with pytest.raises(CapacityError, match=f"row {row} "):
        whole.partial_fit(X, y, classes=[0, 1])
    assert same_bits(state(whole), state(single))


@pytest.mark.parametrize("name", ["KernelPerceptron", "KernelPA", "KOGD"])
def test_an_unbounded_learner_grows(name):
    """Storage grows by doubling; more points than the first allocation survive a copy."""
    X, y = data(n=600, d=3)
    y = np.random.default_rng(0).integers(0, 3, 600)
    model = KernelClassifier(small(name, Gaussian(gamma=20.0))).partial_fit(X, y)
    assert model.learner_.n_points > 130
    twin = pickle.loads(pickle.dumps(model))
    assert (twin.decision_function(X) == model.decision_function(X)).all()
    assert same_bits(state(twin.partial_fit(X, y)), state(model.partial_fit(X, y)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@each
def test_a_contiguous_array_is_not_copied(name, dtype):
    X, y = data(n=20_000, d=60, classes=2)
    X = X.astype(dtype)
    sparse = scipy.sparse.csr_array(X)
    for rows in (X, sparse):
        model = KernelClassifier(
            small(name, Gaussian(gamma=0.01), **({"max_size": 50} if name not in BOUNDED else {}))
        )
        try:
            model.partial_fit(rows[:200], y[:200])
            tracemalloc.start()
            model.predict(rows)
            if name in BOUNDED:
                model.partial_fit(rows, y)
            peak = tracemalloc.get_traced_memory()[1]
        except CapacityError:
            continue
        finally:
            tracemalloc.stop()
        # scores, labels and codes of 20,000 rows take a few arrays of 160 kB; X has 4.8 or 9.6 MB
        assert peak < X.nbytes / 3


def test_rows_look_at_the_callers_memory():
    for dtype in (np.float64, np.float32):
        X = np.ones((3, 2), dtype)
        rows = as_rows(X)
        X[1, 1] = 5
        assert rows.array()[1, 1] == 5
        csr = scipy.sparse.csr_array(X)
        rows = as_rows(csr)
        csr.data[:] = 8
        assert (rows.array() == 8).all()


# ---- input that is refused ----


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@each
def test_non_finite_input_is_refused_and_named(name, bad):
    X, y = data(density=0.8)
    for model in models(name):
        model.partial_fit(X[:50], y[:50])
        before = state(model)
        Z = X[50:100].copy()
        Z[17, 2] = bad
        Z[30, 1] = np.nan
        for rows in (Z, scipy.sparse.csr_array(Z), Z.astype(np.float32), np.asfortranarray(Z)):
            for call in (lambda: model.partial_fit(rows, y[50:100]), lambda: model.predict(rows)):  # noqa: B023
                with pytest.raises(
                    ValueError, match=f"{'NaN' if np.isnan(bad) else 'infinity'} at row 17, column 2"
                ):
                    call()
                assert same_bits(before, state(model))
        with pytest.raises(ValueError, match="row 17, column 2"):
            type(model)(model.learner).fit(Z, y[50:100])


@each
def test_a_number_too_large_for_single_precision_is_refused(name):
    X, y = data(n=50)
    model = KernelClassifier(small(name)).partial_fit(X.astype(np.float32), y)
    before = state(model)
    X[3, 1] = 1e300
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="infinity at row 3, column 1"):
        model.partial_fit(X, y)
    assert same_bits(before, state(model))


@each
def test_wrong_width_is_refused(name):
    X, y = data()
    for model in models(name):
        model.partial_fit(X[:50], y[:50])
        before = state(model)
        for rows in (X[:, :3], np.hstack([X, X]), scipy.sparse.csr_array(X[:, :3]), X[:0, :2]):
            with pytest.raises(ValueError, match="features"):
                model.partial_fit(rows, y[: rows.shape[0]])
            with pytest.raises(ValueError, match="features"):
                model.predict(rows)
        with pytest.raises(ValueError, match="columns"):
            model.learner_.score(as_rows(X[:, :3]))
        assert same_bits(before, state(model))


@each
def test_lengths_and_weights_are_checked(name):
    X, y = data()
    for model in models(name):
        model.partial_fit(X[:50], y[:50])
        before = state(model)
        for bad in (
            {"y": y[:49]},
            {"y": None},
            {"sample_weight": np.ones(49)},
            {"sample_weight": np.full(50, -1.0)},
        ):
            with pytest.raises(ValueError):  # noqa: PT011
                model.partial_fit(X[:50], **({"y": y[:50]} | bad))
        for bad in (np.nan, np.inf):
            with pytest.raises(ValueError):  # noqa: PT011
                model.partial_fit(X[:2], y[:2], sample_weight=[1.0, bad])
        assert same_bits(before, state(model))


@each
def test_an_unknown_label_is_refused(name):
    X, y = data()
    model = KernelClassifier(small(name)).partial_fit(X[:50], y[:50], classes=[0, 1, 2])
    before = state(model)
    bad = y[50:100].copy()
    bad[20:22] = 7, 9
    with pytest.raises(ValueError, match=r"label .*7.* at row 20.*\[0, 1, 2\]"):
        model.partial_fit(X[50:100], bad)
    assert same_bits(before, state(model))
    assert model.classes_.tolist() == [0, 1, 2]


@each
def test_regression_targets_are_checked(name):
    X, y = data()
    if not getattr(learners, name).regression:
        with pytest.raises(ValueError, match="cannot do regression"):
            KernelRegressor(small(name)).fit(X, y)
        return
    model = KernelRegressor(small(name)).partial_fit(X[:50], y[:50])
    before = state(model)
    with pytest.raises(ValueError, match="y has NaN at row 1"):
        model.partial_fit(X[:2], [0.0, np.nan])
    with pytest.raises(ValueError, match="y has infinity at row 0"):
        model.partial_fit(X[:2], [np.inf, 0.0])
    assert same_bits(before, state(model))


@each
def test_an_empty_chunk_does_nothing(name):
    X, y = data()
    for plain, with_gaps in zip(models(name), models(name), strict=True):
        for start in (0, 50, 150):
            for rows in (X[:0], scipy.sparse.csr_array(X[:0])):
                with_gaps.partial_fit(rows, y[:0])
                assert len(with_gaps.predict_then_learn(rows, y[:0])) == 0
            plain.partial_fit(X[start : start + 50], y[start : start + 50])
            with_gaps.partial_fit(X[start : start + 50], y[start : start + 50])
            assert len(with_gaps.predict(X[:0])) == 0
        assert same_bits(state(plain), state(with_gaps))


@pytest.mark.parametrize("labels", [["x", "yy"], [3, 4], [True, False]], ids=str)
def test_an_empty_first_chunk_does_not_fix_the_type_of_labels(labels):
    X, _ = data(n=20)
    y = np.array(labels)[np.arange(20) % 2]
    model = KernelClassifier(small("BOGD")).partial_fit(X[:0], [])
    model.partial_fit(X, y)
    assert model.classes_.dtype == KernelClassifier(small("BOGD")).partial_fit(X, y).classes_.dtype
    assert model.classes_.tolist() == sorted(labels)


# ---- precision, storage, threads ----


@each
def test_single_precision_is_kept(name):
    X, y = data()
    for model in models(name):
        model.partial_fit(X.astype(np.float32), y)
        assert model.learner_.dtype == np.float32
        model.partial_fit(X, y)  # a model at work keeps its own
        assert model.learner_.dtype == np.float32
        assert clone(model).partial_fit(X, y).learner_.dtype == np.float64
        assert type(model)(model.learner).fit(X.astype(int), y).learner_.dtype == np.float64


@each
def test_single_precision_takes_less_memory(name):
    X, y = data(n=300, d=40)
    size = (
        {"n_components": 160}
        if name in ("FOGD", "RRF")
        else {"budget": 160}
        if "budget" in SMALL[name]
        else {}
    )
    single, double = (
        KernelClassifier(small(name, **size)).fit(Z, y).nbytes_ for Z in (X.astype(np.float32), X)
    )
    assert single <= SINGLE.get(name, 0.65) * double


@each
def test_dense_and_sparse_agree(name):
    X, y = data(density=0.5, seed=4)
    for kernel in (Gaussian(gamma=0.3), Laplacian(gamma=0.2)):
        for dense, sparse in zip(models(name, kernel), models(name, kernel), strict=True):
            dense.partial_fit(X, y)
            sparse.partial_fit(scipy.sparse.csr_array(X), y)
            for method in ("predict",) if isinstance(dense, KernelRegressor) else ("decision_function",):
                want = getattr(dense, method)(X)
                for rows in (X, scipy.sparse.csr_array(X), scipy.sparse.csc_matrix(X)):
                    np.testing.assert_allclose(getattr(sparse, method)(rows), want, rtol=1e-9, atol=1e-9)


@each
def test_sparse_input_in_any_order_with_duplicates(name):
    """Unsorted columns and entries in parts mean what SciPy says; the caller's matrix stays as it is."""
    X, y = data(n=40, d=5)
    messy = scipy.sparse.csr_matrix(
        (
            np.repeat(X[:, ::-1], 2, axis=1).ravel() / 2,
            np.tile(np.repeat(np.arange(5)[::-1], 2), 40),
            np.arange(41) * 10,
        ),
        shape=X.shape,
    )
    indices = messy.indices.copy()
    a, b = (KernelClassifier(small(name, Gaussian(gamma=0.3))) for _ in range(2))
    a.partial_fit(messy, y)
    b.partial_fit(scipy.sparse.csr_array(X), y)
    assert (messy.indices == indices).all()
    assert same_bits(state(a), state(b))


@each
def test_two_models_in_two_threads(name):
    X, y = data(n=3000)
    streams = X, X[::-1].copy()
    want = [[m.predict_then_learn(Z, y) for m in models(name)] for Z in streams]
    got = [None, None]
    gate = threading.Barrier(2)

    def work(slot):
        gate.wait()
        got[slot] = [m.predict_then_learn(streams[slot], y) for m in models(name)]

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for ours, theirs in zip(want, got, strict=True):
        assert all(a.tobytes() == b.tobytes() for a, b in zip(ours, theirs, strict=True))


def test_a_callable_kernel_does_not_deadlock_with_readers():
    """One thread learns with a Python kernel while another reads the state: neither waits for ever."""

    def kernel(A, B):
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))

    X, y = data(n=600)
    model = KernelClassifier(small("RBP", kernel)).partial_fit(X[:10], y[:10], classes=[0, 1, 2])
    done = threading.Event()

    def learn():
        model.partial_fit(X, y)
        done.set()

    worker = threading.Thread(target=learn, daemon=True)
    worker.start()
    while not done.is_set() and worker.is_alive():
        model.learner_.state()
    worker.join(timeout=30)
    assert done.is_set()


@pytest.mark.parametrize("name", [n for n in NAMES if n not in {*KERNELS, *OWN_KERNEL}])
def test_a_kernel_that_raises_leaves_a_usable_model(name):
    class Faulty:
        calls, fails = 0, -1

        def __call__(self, A, B):
            self.calls += 1
            if self.calls == self.fails:
                raise ZeroDivisionError("on purpose")
            return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))

    kernel = Faulty()
    X, y = data(n=60, classes=2)
    model = KernelClassifier(small(name)).set_params(learner__kernel=kernel)
    model.partial_fit(X, y)
    kernel = model.learner_.kernel
    want = model.decision_function(X)
    kernel.fails = kernel.calls + 12
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        model.decision_function(X)
    assert (model.decision_function(X) == want).all()


# ---- features that appear later, weights of zero ----


@each
def test_widen_equals_zero_columns_all_along(name):
    """Widths 3, then 7, then 20. Two learners sum in an order that depends on the width: equal to rounding."""
    X, y = data(n=200, d=20)
    X[:60, 3:] = 0
    X[60:150, 7:] = 0
    targets = np.where(y == 2, 1.0, -1.0)
    for kernel in (Gaussian(gamma=0.2), None):
        full = small(name, kernel).start(20)
        grown = small(name, kernel).start(3)
        want = full.run(as_rows(X), targets)
        got = np.zeros_like(want)
        for start, stop, width in [(0, 60, 3), (60, 150, 7), (150, 200, 20)]:
            if width > 3:
                grown.widen(width)
            assert grown.width == width
            got[start:stop] = grown.run(as_rows(X[start:stop, :width]), targets[start:stop])
        if kernel is None or name in OWN_KERNEL:
            got, want = got[2:], want[2:]  # before two rows the scale is one over the width
        if name in ("LinearPA", "NewtonMixture"):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
        else:
            assert got.tobytes() == want.tobytes()
            assert same_bits(full.state(), grown.state())


@each
def test_weight_zero_equals_leaving_the_row_out(name):
    X, y = data()
    weights = np.random.default_rng(0).choice([0.0, 1.0, 0.3], size=200)
    kept = weights > 0
    for a, b in zip(models(name), models(name), strict=True):
        extra = {"classes": [0, 1, 2]} if isinstance(a, KernelClassifier) else {}
        a.partial_fit(X, y, sample_weight=weights, **extra)
        b.partial_fit(X[kept], y[kept], sample_weight=weights[kept], **extra)
        assert same_bits(state(a), state(b))
        assert (a.predict(X) == b.predict(X)).all()


@each
def test_unit_weights_change_nothing(name):
    X, y = data()
    for a, b in zip(models(name), models(name), strict=True):
        assert same_bits(state(a.fit(X, y)), state(b.fit(X, y, sample_weight=np.ones(200))))


# ---- numbers near the end of the range ----


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e-160, 1e155])
@pytest.mark.parametrize(
    "kernel", [None, Gaussian(gamma=0.5), Laplacian(), Linear(), Polynomial(degree=3)], ids=str
)
@each
def test_huge_values_never_give_nan(name, kernel, scale):
    X, y = data(n=300, d=3)
    for sparse in (False, True):
        for targets in (y, y * scale):
            for model in models(name, kernel):
                if isinstance(model, KernelClassifier) and targets is not y:
                    continue
                run, score = "predict_then_learn", "predict"
                if isinstance(model, KernelClassifier):
                    run, score = "decision_then_learn", "decision_function"
                for part in (slice(0, 40), slice(40, 41), slice(41, 42), slice(42, 300)):
                    Z = X[part] * scale
                    Z = scipy.sparse.csr_array(Z) if sparse else Z
                    with contextlib.suppress(ScoreOverflowError):
                        assert np.isfinite(getattr(model, run)(Z, targets[part])).all()
                    with contextlib.suppress(ScoreOverflowError):
                        assert np.isfinite(getattr(model, score)(Z)).all()


@each
@pytest.mark.parametrize("what", ["target", "weight"])
def test_a_step_beyond_single_precision_is_refused(name, what):
    """And the rows after it are learnt as if it had not been there."""
    X, y = data(n=60, classes=2)
    X = X.astype(np.float32)
    if what == "target":
        if not getattr(learners, name).regression:
            return
        model, targets = KernelRegressor(small(name, kernel=Gaussian(gamma=0.3))), X[:, 0].astype(float)
        broken = {"y": [1e39]}
    else:
        model, targets = KernelClassifier(small(name, kernel=Gaussian(gamma=0.3))), y
        broken = {"y": y[50:51], "sample_weight": [1e300]}
    model.partial_fit(X[:50], targets[:50])
    before = model.predict(X)
    with contextlib.suppress(ScoreOverflowError, ValueError):
        model.partial_fit(X[50:51], **broken)
    model.partial_fit(X[51:], targets[51:])
    assert np.isfinite(model.learner_.score(as_rows(X, np.float32))).all()
    assert len(before) == len(X)
