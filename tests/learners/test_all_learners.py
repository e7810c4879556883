"""What every learner must do, whatever its algorithm: the checks of `kernelstream.testing` over all of `kernelstream.learners`.

What is about the kernels, the compiled core or exact sizes is tested below them.
"""

from __future__ import annotations

import pickle
import threading
import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from kernelstream import (
    CapacityError,
    Gaussian,
    KernelClassifier,
    Laplacian,
    Linear,
    Polynomial,
    ScoreOverflowError,
    learners,
    testing,
)
from kernelstream.learners import Learner
from kernelstream.rows import as_arrays, as_rows
from kernelstream.testing import example_stream as data
from kernelstream.testing import learner_checks, same_bits

#: Small sizes for every learner that has such a parameter, and what some need besides.
SIZES = {"budget": 5, "n_components": 20, "seed": 3}
SMALL = {
    "DoublySGD": {"features": 3, "max_size": 10_000},
    "DualSGD": {"neighbours": 3},
    "KOGD": {"lam": 0.01},
    "KRLS": {"max_size": 10},
    "NOGD": {"budget": 12, "rank": 5},
    "NOLANA": {"budget": 12, "rank": 5},
    "NewtonMixture": {"budget": 8, "memory": 4000},
    "OKLGD": {"max_size": 10_000},
    "OKS": {"bandwidths": (0.5, 2.0)},
    "OKSSIL": {"nu": 0.3},
    "ProjKA": {"warmup": 40},
    "ProsNKons": {"max_size": 9},
    "SkeGD": {"budget": 16, "samples": 5, "rank": 4, "cycle": 20},
    "SketchedKONS": {"gamma": 0.2},
}
NAMES = [name for name, kind in vars(learners).items() if isinstance(kind, type) and kind is not Learner]
BOUNDED = [name for name in NAMES if getattr(learners, name).bounded]
OWN_KERNEL = {
    "LinearPA",
    "NewtonMixture",
    "OKLGD",
    "OKS",
    "OKSSIL",
    "ProjKA",
}  # take no kernel, or one with a scale

#: How much of the memory single precision may take: what is factored stays in double; so does all of the second-order ones.
SINGLE = dict.fromkeys(["KONS", "KRLS", "NewtonMixture", "ProsNKons", "SketchedKONS"], 1.0) | dict.fromkeys(
    ["DualSGD", "NOLANA", "ProjKA", "Projectron", "ProjectronPP", "SkeGD"], 0.95
)

#: The kernels of those that do not take all.
KERNELS = dict.fromkeys(["DoublySGD", "DualSGD", "FOGD"], (Gaussian, Laplacian)) | dict.fromkeys(
    ["BSGD", "RRF"], (Gaussian,)
)

each = pytest.mark.parametrize("name", NAMES)
with_kernel = pytest.mark.parametrize("name", [name for name in NAMES if name not in OWN_KERNEL])


def test_every_learner_is_in_the_suite():
    assert set(SMALL) < set(NAMES)
    assert len(NAMES) == len([name for name in learners.__all__ if name[0].isupper()]) - 1
    assert set(learners.registered(plugins=False)) >= set(NAMES)
    growing = {"DoublySGD", "KernelPerceptron", "KernelPA", "KOGD", "KONS", "OKLGD", "OKS", "SketchedKONS"}
    assert set(NAMES) - set(BOUNDED) == growing


def small(name, kernel=None, **options):
    """A small learner; with the default kernel (median bandwidth) unless one is given."""
    if kernel is not None and name not in OWN_KERNEL:
        options["kernel"] = kernel if isinstance(kernel, KERNELS.get(name, object)) else Gaussian(gamma=0.3)
    kind = getattr(learners, name)
    sizes = {key: size for key, size in SIZES.items() if key in kind().get_params()}
    return kind(**(sizes | SMALL.get(name, {}) | options))


def models(name, kernel=None, **options):
    """The learner in each estimator that takes it."""
    return testing.models(small(name, kernel, **options))


def state(model):
    return model.learner_.state()


# ---- the common checks ----

#: Longer streams than strangers need; KONS takes O(t^2) per round.
OPTIONS = {
    "check_memory_is_bounded": {"rows": 20_000},
    "check_threads": {"rows": 3000},
    "check_widen_equals_zero_columns": {"exact": True},
}
SLOW = {"KONS": {"check_threads": {"rows": 300}}, "SketchedKONS": {"check_threads": {"rows": 300}}}
#: These sum in an order that depends on the width: equal to rounding.
SLOW |= {name: {"check_widen_equals_zero_columns": {}} for name in ("LinearPA", "NewtonMixture")}


@pytest.mark.parametrize(
    ("name", "check"),
    [(name, check) for name in NAMES for check in learner_checks(small(name))],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_promise(name, check):
    check(small(name), **(OPTIONS | SLOW.get(name, {})).get(check.__name__, {}))


def test_a_learner_must_be_complete():
    with pytest.raises(TypeError, match="abstract"):
        Learner()


@pytest.mark.parametrize(
    "kernel", [Gaussian(gamma=0.4), Laplacian(), Polynomial(degree=2), Linear()], ids=str
)
@with_kernel
def test_chunks_equal_rows(name, kernel):
    eta = "eta" in small(name).get_params() and isinstance(kernel, (Polynomial, Linear))
    testing.check_chunks_equal_rows(small(name, kernel, **({"eta": 0.01} if eta else {})))


@pytest.mark.parametrize("labels", [["a", "bb", "ccc", "dddd"], [-1.0, 0.0, 2.0, 9.0]], ids=str)
@pytest.mark.parametrize("name", [name for name in NAMES if getattr(learners, name).multiclass])
def test_classes_arriving_in_any_order(name, labels):
    testing.check_classes_in_any_order(small(name), labels)


@with_kernel
def test_a_copy_goes_on_bit_for_bit(name):
    testing.check_copies_go_on(small(name, Gaussian(gamma=0.4)))


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@each
def test_non_finite_input_is_refused_and_named(name, bad):
    testing.check_non_finite_input_is_refused(small(name), bad)


@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.3), Laplacian(gamma=0.2)], ids=str)
@with_kernel
def test_dense_and_sparse_agree(name, kernel):
    testing.check_dense_equals_sparse(small(name, kernel))


@with_kernel
def test_sparse_input_in_any_order_with_duplicates(name):
    testing.check_any_csr_is_understood(small(name, Gaussian(gamma=0.3)))


@with_kernel
def test_widen_equals_zero_columns_all_along(name):
    testing.check_widen_equals_zero_columns(small(name, Gaussian(gamma=0.2)), exact=True, first=0)


def test_widen_a_linear_model():
    testing.check_widen_equals_zero_columns(small("LinearPA"), first=0)


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e-160, 1e155])
@pytest.mark.parametrize(
    "kernel", [Gaussian(gamma=0.5), Laplacian(), Linear(), Polynomial(degree=3)], ids=str
)
@with_kernel
def test_huge_values_never_give_nan(name, kernel, scale):
    testing.check_scores_are_finite_or_refused(small(name, kernel), [scale])


@with_kernel
def test_a_step_beyond_single_precision_is_refused(name):
    testing.check_step_beyond_float32_is_refused(small(name, Gaussian(gamma=0.3)))


# ---- the warm-up ----


@with_kernel
def test_warm_up_ends_and_does_not_depend_on_chunks(name):
    """The bandwidth is the median over the first 128 rows, also when a chunk holds more than those."""
    X, y = data(n=300, classes=2)
    model = KernelClassifier(small(name)).partial_fit(X, y)
    learner = model.learner_
    gamma = learner.kernel_.options()["gamma"]
    distances = np.sqrt(((X[:128, None] - X[None, :128]) ** 2).sum(axis=2))
    assert gamma == pytest.approx(1 / (2 * np.median(distances[np.triu_indices(128, 1)]) ** 2))
    assert "warmup_rows" not in state(model)


# ---- states and memory ----


@each
def test_a_state_that_does_not_fit_is_refused(name):
    X, y = data(classes=2)
    good = KernelClassifier(small(name)).partial_fit(X, y).learner_.state()
    for key in ("points", "weights", "map_weights", "matrix", "inverse", "born", "random", "ledger"):
        if key in good:
            bad = dict(good)
            shape = list(good[key].shape)
            shape[-1] += 1
            bad[key] = np.zeros(shape, good[key].dtype)
            with pytest.raises((ValueError, TypeError)):
                small(name).restore(bad)


@pytest.mark.parametrize("name", BOUNDED)
def test_memory_is_small(name):
    """What `nbytes_` reports after 20,000 rows."""
    X, y = data(n=20_000, classes=3 if getattr(learners, name).multiclass else 2)
    assert KernelClassifier(small(name)).partial_fit(X, y).nbytes_ < 40_000


@pytest.mark.parametrize("name", ["KernelPerceptron", "KernelPA", "KOGD", "OKLGD", "OKS"])
def test_an_unbounded_learner_says_what_else_to_use(name):
    X, y = data(n=400)
    for kernel in (None, Gaussian(gamma=5.0)):
        for model in models(name, kernel, max_size=20):
            with pytest.raises(CapacityError, match=r"max_size=20.*such as") as error:
                model.partial_fit(X, y)
            alternatives = [n for n in BOUNDED if n in str(error.value)]
            assert alternatives
        learner = small(name, kernel, max_size=20).start(4, 3)
        with pytest.raises(CapacityError, match=r"max_size=20.*such as"):
            learner.run(X, y)
        assert learner.n_points == 20
        assert np.isfinite(learner.score(X)).all()  # what was learnt before stays in use


@pytest.mark.parametrize("name", ["KernelPerceptron", "KernelPA", "KOGD", "OKLGD", "OKS"])
def test_a_full_store_in_the_warm_up_gives_the_same_for_any_chunks(name):
    X, y = data(n=60, classes=2)
    targets = 2.0 * y - 1
    whole, single = (small(name, max_size=20).start(4) for _ in range(2))
    with pytest.raises(CapacityError) as error:
        whole.run(X, targets)
    row = int(str(error.value).split("row ")[1].split()[0])
    for i in range(row):
        single.run(X[i : i + 1], targets[i : i + 1])
    before = single.state()
    with pytest.raises(CapacityError, match="row 0"):
        single.run(X[row : row + 1], targets[row : row + 1])
    assert same_bits(single.state(), before)
    assert same_bits(whole.state(), before)


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
    targets = 2.0 * y - 1
    single, whole = (small("KernelPerceptron", max_size=12).start(4) for _ in range(2))
    row = None
    for i in range(200):
        try:
            single.run(X[i : i + 1], targets[i : i + 1])
        except CapacityError:
            row = i
            break
    assert row is not None
    with pytest.raises(CapacityError, match=f"row {row} "):
        whole.run(X, targets)
    assert same_bits(whole.state(), single.state())


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


def test_rows_give_back_the_callers_memory():
    """A learner in NumPy reads what the caller holds: nothing is copied, and nothing can be written."""
    X, _ = data(n=20, density=0.5)
    for dtype in (np.float64, np.float32):
        Z = X.astype(dtype)
        for rows, want in ((as_rows(Z), Z), (as_rows(Z).part(3, 9), Z[3:9]), (as_rows(Z[:0]), Z[:0])):
            view = as_arrays(rows)
            assert view.dtype == dtype
            assert (view == want).all()
            assert len(want) == 0 or np.shares_memory(view, Z)
            assert not view.flags.writeable
            assert view.flags.c_contiguous
        csr = scipy.sparse.csr_array(Z)
        for rows, want in (
            (as_rows(csr), Z),
            (as_rows(csr).part(3, 9), Z[3:9]),
            (as_rows(csr).part(5, 5), Z[:0]),
        ):
            view = as_arrays(rows)
            assert isinstance(view, scipy.sparse.csr_array)
            assert view.dtype == dtype
            assert (view.toarray() == want).all()
            assert len(want) == 0 or np.shares_memory(view.data, csr.data)
            assert len(want) == 0 or np.shares_memory(view.indices, rows.csr_view()[1])  # the core's own


# ---- labels, precision, threads ----


@pytest.mark.parametrize("labels", [["x", "yy"], [3, 4], [True, False]], ids=str)
def test_an_empty_first_chunk_does_not_fix_the_type_of_labels(labels):
    X, _ = data(n=20)
    y = np.array(labels)[np.arange(20) % 2]
    model = KernelClassifier(small("BOGD")).partial_fit(X[:0], [])
    model.partial_fit(X, y)
    assert model.classes_.dtype == KernelClassifier(small("BOGD")).partial_fit(X, y).classes_.dtype
    assert model.classes_.tolist() == sorted(labels)


@each
def test_single_precision_takes_less_memory(name):
    X, y = data(n=300, d=40, classes=3 if getattr(learners, name).multiclass else 2)
    size = (
        {"n_components": 160}
        if name in ("FOGD", "RRF")
        else {"budget": 160}
        if "budget" in small(name).get_params()
        else {}
    )
    single, double = (
        KernelClassifier(small(name, **size)).fit(Z, y).nbytes_ for Z in (X.astype(np.float32), X)
    )
    assert single <= SINGLE.get(name, 0.65) * double


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
