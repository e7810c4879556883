"""Matern, rational quadratic, histogram, string and precomputed kernels: values, gradients, checks, model files, learners."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

import kernelstream
from kernelstream import (
    ChiSquared,
    Gaussian,
    Intersection,
    KernelClassifier,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Spectrum,
    learners,
)
from kernelstream.learners import BPAS, FOGD, KOGD, KONS, NOGD
from kernelstream.rows import as_rows
from kernelstream.sketches import HashedNgrams, IncrementalNystrom
from oracles import kernels as oracles

PAIRS = [
    (Matern(nu=0.5, bandwidth=1.3), oracles.matern(0.5, 1.3)),
    (Matern(nu=1.5, bandwidth=1.3), oracles.matern(1.5, 1.3)),
    (Matern(nu=2.5, gamma=0.5), oracles.matern(2.5, 1.0)),
    (RationalQuadratic(alpha=0.7, gamma=0.4), oracles.rational_quadratic(0.7, 0.4)),
    (RationalQuadratic(alpha=3.0, bandwidth=2.0), oracles.rational_quadratic(3.0, 0.125)),
    (ChiSquared(gamma=0.7), oracles.chi_squared(0.7)),
    (ChiSquared(bandwidth=4), oracles.chi_squared(0.25)),
    (Intersection(), oracles.intersection()),
    (Spectrum(), oracles.spectrum()),
]
each_pair = pytest.mark.parametrize(
    ("kernel", "oracle"), PAIRS, ids=lambda v: str(v) if not callable(v) else None
)
STORAGES = [np.asarray, scipy.sparse.csr_array]


def counts(n, d=6, seed=0):
    """Rows without negative entries, one of them zero."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 2, (n, d)) * (rng.random((n, d)) < 0.7)
    X[n // 2] = 0
    return X


@pytest.mark.parametrize("storage", STORAGES)
@each_pair
def test_values(kernel, oracle, storage):
    X, Y = counts(21), counts(34, seed=1)
    want = oracle(X, Y)
    np.testing.assert_allclose(kernel(storage(X), Y), want, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(kernel(X, storage(Y)), want, rtol=1e-11, atol=1e-13)
    # the square root of a square distance that cancelled has half of its digits
    cusp = 1e-7 if isinstance(kernel, Matern) and scipy.sparse.issparse(storage(X)) else 1e-13
    np.testing.assert_allclose(kernel(storage(X)), oracle(X, X), rtol=1e-11, atol=cusp)
    np.testing.assert_allclose(kernel.diagonal(storage(X)), np.diag(oracle(X, X)), rtol=1e-11)
    single = kernel(X.astype(np.float32), Y)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, want, rtol=1e-4, atol=1e-5)


@each_pair
def test_positive_definite(kernel, oracle):
    K = kernel(counts(30))
    assert np.linalg.eigvalsh(K)[0] > -1e-10


@pytest.mark.parametrize(
    "kernel",
    [Matern(nu=nu, gamma=1e299) for nu in (0.5, 1.5, 2.5)] + [RationalQuadratic(gamma=1e290)],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_far_points_have_small_values(kernel, dtype):
    K = kernel(np.array([[0.0], [1.0], [1e3]], dtype))
    assert np.isfinite(K).all()
    assert (np.diag(K) == 1).all()
    assert K[0, 1] < 1e-30
    assert K[0, 2] <= K[0, 1]


ALL = [
    *(kernel for kernel, _ in PAIRS),
    Gaussian(gamma=0.6),
    Laplacian(gamma=0.4),
    Polynomial(degree=3, gamma=0.4, coef0=0.9),
    Linear(),
]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("kernel", ALL, ids=str)
def test_input_gradient_is_a_finite_difference(kernel, storage):
    X, Y, h = counts(5) + 0.05, counts(7, seed=1), 1e-6
    made = kernel.input_gradient(storage(X), storage(Y))
    assert made.shape == (5, 7, 6)
    for d in range(6):
        step = np.eye(6)[d] * h
        want = (kernel(X + step, Y) - kernel(X - step, Y)) / (2 * h)
        np.testing.assert_allclose(made[:, :, d], want, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kernel", [kernel for kernel in ALL if kernel.has_scale], ids=str)
def test_parameter_gradients_are_finite_differences(kernel):
    X, Y, h = counts(9), counts(7, seed=1), 1e-6
    gradient = kernel.gradient(X, Y)
    for name, made in gradient.items():
        value = kernel.get_params()[name]
        if value is None:
            continue
        up, down = (clone(kernel).set_params(**{name: value + e})(X, Y) for e in (h, -h))
        np.testing.assert_allclose(made, (up - down) / (2 * h), rtol=1e-5, atol=1e-8)
    gamma = kernel.options()["gamma"]
    up, down = (kernel.with_gamma(gamma * np.exp(e))(X, Y) for e in (h, -h))
    np.testing.assert_allclose(kernel.log_gamma_gradient(X, Y), (up - down) / (2 * h), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(kernel.log_gamma_gradient(X, Y), gamma * gradient["gamma"], rtol=1e-12)


def test_a_kernel_without_scale_says_so():
    for kernel in (Linear(), Intersection(), Spectrum()):
        assert kernel.gradient([[1.0]]) == {}
        with pytest.raises(ValueError, match=f"{type(kernel).__name__} has no gamma"):
            kernel.log_gamma_gradient([[1.0]])


def test_at_a_cusp_the_gradient_is_zero():
    for kernel in (Matern(nu=0.5, gamma=1.0), Laplacian(gamma=1.0), Spectrum(), ChiSquared(gamma=1.0)):
        assert (kernel.input_gradient(np.zeros((1, 2))) == 0).all()


def test_parameters_are_checked():
    for bad in (1.0, 0, "3/2", True):
        with pytest.raises(ValueError, match=r"nu must be 0\.5, 1\.5 or 2\.5"):
            Matern(nu=bad)
    for bad in (0, -1, np.nan):
        with pytest.raises(ValueError, match="alpha must be"):
            RationalQuadratic(alpha=bad)
    with pytest.raises(ValueError, match="gamma must be"):
        ChiSquared(gamma=-1)
    with pytest.raises(ValueError, match="square"):
        Precomputed([[1.0, 2.0]])
    with pytest.raises(ValueError, match="square and of finite"):
        Precomputed([[np.nan]])


@pytest.mark.parametrize("kernel", [ChiSquared(), ChiSquared(gamma=1.0), Intersection()], ids=str)
@pytest.mark.parametrize("storage", STORAGES)
def test_histograms_have_no_negative_entries(kernel, storage):
    X, y = counts(30), np.arange(30) % 2
    bad = X.copy()
    bad[20, 3] = -0.5
    model = KernelClassifier(KOGD(kernel=kernel)).fit(storage(X), y)
    before = model.decision_function(X)
    match = r"X has -0.5 at row 20, column 3: .* is a kernel of histograms"
    for call in (model.predict, lambda Z: model.partial_fit(Z, y), lambda Z: model.predict_then_learn(Z, y)):
        with pytest.raises(ValueError, match=match):
            call(storage(bad))
    assert np.array_equal(before, model.decision_function(X))
    if kernel.settled:
        with pytest.raises(ValueError, match=match):
            kernel(storage(bad))
    with pytest.raises(ValueError, match=match):
        IncrementalNystrom(10, kernel=kernel).fit(storage(bad))


STREAM = counts(160, 5), np.random.default_rng(3).integers(0, 3, 160)
KINDS = [
    Matern(nu=0.5),
    Matern(nu=2.5, gamma=0.3),
    RationalQuadratic(),
    ChiSquared(),
    Intersection(),
    Spectrum(),
]


@pytest.mark.parametrize("kernel", KINDS, ids=str)
@pytest.mark.parametrize("learner", [KOGD(), BPAS(budget=10), NOGD(budget=12, rank=5)], ids=str)
def test_learners_keep_their_promises_with_it(kernel, learner, tmp_path):
    """Chunks, CSR rows, model files: the same as ever."""
    X, y = STREAM
    whole = KernelClassifier(clone(learner).set_params(kernel=kernel))
    parts = KernelClassifier(clone(learner).set_params(kernel=kernel))
    sparse = KernelClassifier(clone(learner).set_params(kernel=kernel))
    whole.partial_fit(X, y, classes=[0, 1, 2])
    for i in range(0, 160, 7):
        parts.partial_fit(X[i : i + 7], y[i : i + 7], classes=[0, 1, 2])
    sparse.partial_fit(scipy.sparse.csr_array(X), y, classes=[0, 1, 2])
    want = whole.decision_function(X)
    assert np.array_equal(want, parts.decision_function(X))
    np.testing.assert_allclose(sparse.decision_function(X), want, rtol=1e-5, atol=1e-6)
    whole.save(tmp_path / "model.safetensors")
    again = kernelstream.load(tmp_path / "model.safetensors")
    assert np.array_equal(again.decision_function(X), want)
    assert np.array_equal(
        again.partial_fit(X, y).decision_function(X), whole.partial_fit(X, y).decision_function(X)
    )


@pytest.mark.parametrize("kernel", [Matern(nu=1.5), RationalQuadratic(), ChiSquared()], ids=str)
def test_the_scale_is_set_from_data(kernel):
    X = counts(41)
    settled = kernel.settle(X)
    assert settled.settled
    measures = {"ChiSquared": -np.log(oracles.chi_squared(1.0)(X, X))}.get(
        type(kernel).__name__, np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    )
    above = measures[np.triu_indices(41, 1)]
    assert settled.bandwidth == pytest.approx(np.median(above[above > 0]))


@pytest.mark.parametrize(
    "kernel", [Matern(nu=0.5, gamma=0.2), Matern(nu=2.5, gamma=0.2), RationalQuadratic(0.8, 0.2)], ids=str
)
def test_fourier_features_stand_for_the_kernel(kernel):
    X = counts(40)
    learner = FOGD(n_components=20_000, kernel=kernel, seed=1).start(X.shape[1])
    z = learner._core.features(as_rows(X))
    error = np.abs(z @ z.T - kernel(X))
    assert error.mean() < 0.01
    assert error.max() < 0.06
    wider = FOGD(n_components=40, kernel=kernel).start(9).frequencies()
    assert np.array_equal(wider[:4], FOGD(n_components=40, kernel=kernel).start(4).frequencies())


@pytest.mark.parametrize("kernel", [ChiSquared(gamma=1.0), Intersection(), Spectrum(), Polynomial()], ids=str)
@pytest.mark.parametrize("name", ["FOGD", "DualSGD"])
def test_no_random_features_without_a_spectral_density(name, kernel):
    with pytest.raises(ValueError, match=f"{name} needs a kernel with random frequencies"):
        getattr(learners, name)(kernel=kernel)


def test_a_precomputed_kernel_is_the_kernel_it_was_made_of():
    X = np.random.default_rng(0).normal(size=(80, 3))
    y = np.sign(X[:, 0])
    numbers = np.arange(80.0)[:, None]
    for make in (
        lambda k: KOGD(kernel=k),
        lambda k: KONS(kernel=k),
        lambda k: NOGD(budget=20, rank=8, kernel=k),
    ):
        plain = KernelClassifier(make(Gaussian(gamma=0.5))).fit(X, y)
        table = KernelClassifier(make(Precomputed(Gaussian(gamma=0.5)(X)))).fit(numbers, y)
        np.testing.assert_allclose(
            table.decision_function(numbers), plain.decision_function(X), rtol=1e-6, atol=1e-8
        )
    kernel = Precomputed(Gaussian(gamma=0.5)(X))
    np.testing.assert_allclose(kernel([[3], [5]], [[7]]), Gaussian(gamma=0.5)(X[[3, 5]], X[[7]]), rtol=1e-12)
    for bad in ([[80.0]], [[-1.0]], [[1.5]]):
        with pytest.raises(ValueError, match="whole number from 0 to 79"):
            kernel(bad)
    with pytest.raises(ValueError, match="one number, got 2 columns"):
        kernel([[1.0, 2.0]])


def test_a_precomputed_kernel_in_a_model_file(tmp_path):
    numbers, y = np.arange(12.0)[:, None] % 6, np.arange(12) % 2
    model = KernelClassifier(KOGD(kernel=Precomputed(np.eye(6) + 0.1))).fit(numbers, y)
    model.save(tmp_path / "model.safetensors")
    again = kernelstream.load(tmp_path / "model.safetensors")
    assert np.array_equal(again.decision_function(numbers), model.decision_function(numbers))


def test_hashed_ngrams_are_the_spectrum_kernel():
    strings = ["GATTACA", "ATTACAT", "TTT", "", "GATTACAGATTACA"]
    rows = HashedNgrams(n=(2, 3), n_features=2**20).transform(strings)

    def ngrams(text):
        return Counter(text[i : i + n] for n in (2, 3) for i in range(len(text) - n + 1))

    want = [[sum(c * ngrams(b)[g] for g, c in ngrams(a).items()) for b in strings] for a in strings]
    assert Linear()(rows).tolist() == want
    size = np.sqrt(np.outer(np.diag(want), np.diag(want)))
    np.testing.assert_allclose(Spectrum()(rows) * size, want, atol=1e-12)
    assert (
        HashedNgrams(n=2, n_features=8).transform(strings)
        != HashedNgrams(n=2, n_features=8).transform(strings)
    ).nnz == 0
    assert HashedNgrams(n=2, n_features=8, signed=True).transform(strings).min() < 0


def test_hashed_ngrams_check_what_they_are_given():
    with pytest.raises(ValueError, match="sequence of strings"):
        HashedNgrams().transform("text")
    with pytest.raises(ValueError, match="got 3 at row 1"):
        HashedNgrams().transform(["text", 3])
    for bad in (0, (2, 1), 1.5):
        with pytest.raises(ValueError, match="n must be"):
            HashedNgrams(n=bad).fit()
