"""Kernels: values, gradients, bandwidths set from data, refusals; Fourier features that stand for them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from kernelstream import Gaussian, KernelClassifier, Laplacian, Linear, Polynomial
from kernelstream.kernels import as_kernel, core_kernel
from kernelstream.learners import FOGD, KOGD
from kernelstream.rows import as_rows
from oracles import kernels as oracles

PAIRS = [
    (Gaussian(gamma=0.7), oracles.gaussian(0.7)),
    (Gaussian(bandwidth=2.0), oracles.gaussian(0.125)),
    (Gaussian(bandwidth=np.float32(2)), oracles.gaussian(0.125)),
    (Gaussian(bandwidth=np.int64(2)), oracles.gaussian(0.125)),
    (Laplacian(gamma=0.7), oracles.laplacian(0.7)),
    (Laplacian(bandwidth=4), oracles.laplacian(0.25)),
    (Polynomial(), oracles.polynomial(1.0, 1.0, 3)),
    (Polynomial(degree=1, gamma=0.5, coef0=0.0), oracles.polynomial(0.5, 0.0, 1)),
    (Polynomial(degree=5, gamma=0.2, coef0=2), oracles.polynomial(0.2, 2.0, 5)),
    (Linear(), oracles.linear()),
]
each_pair = pytest.mark.parametrize(
    ("kernel", "oracle"), PAIRS, ids=lambda v: str(v) if not callable(v) else None
)
STORAGES = [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_matrix]


def rows(n, d=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)


@pytest.mark.parametrize("storage", STORAGES)
@each_pair
def test_values(kernel, oracle, storage):
    X, Y = rows(21), rows(34, seed=1)
    want = oracle(X, Y)
    np.testing.assert_allclose(kernel(storage(X), Y), want, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(kernel(X, storage(Y)), want, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(kernel(storage(X)), oracle(X, X), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(kernel.diagonal(storage(X)), np.diag(oracle(X, X)), rtol=1e-11)


@pytest.mark.filterwarnings("error")
def test_parameters_of_any_number_type():
    for number in (np.float16(0.5), np.float32(0.5), np.float64(0.5), np.longdouble(0.5)):
        for kind in (Gaussian, Laplacian):
            assert kind(gamma=number).options() == {"gamma": 0.5}
            assert kind(bandwidth=number).options() == {"gamma": 2.0}


@each_pair
def test_single_precision(kernel, oracle):
    X, Y = rows(21).astype(np.float32), rows(34, seed=1).astype(np.float32)
    made = kernel(X, Y)
    assert made.dtype == kernel.diagonal(X).dtype == np.float32
    want = oracle(X, Y)
    np.testing.assert_allclose(made, want, rtol=1e-4, atol=1e-5 * np.abs(want).max())
    assert kernel(X, rows(3)).dtype == np.float32
    assert kernel(rows(3), X).dtype == np.float64


@pytest.mark.parametrize("storage", STORAGES[:2])
@pytest.mark.parametrize(
    ("kernel", "parameters"),
    [
        (Gaussian(gamma=0.7), {"gamma": 0.7}),
        (Gaussian(bandwidth=0.8), {"bandwidth": 0.8}),
        (Laplacian(gamma=0.3), {"gamma": 0.3}),
        (Laplacian(bandwidth=1.7), {"bandwidth": 1.7}),
        (Polynomial(degree=3, gamma=0.4, coef0=0.9), {"gamma": 0.4, "coef0": 0.9}),
        (Polynomial(degree=1, gamma=0.4, coef0=0.9), {"gamma": 0.4, "coef0": 0.9}),
        (Linear(), {}),
    ],
    ids=str,
)
def test_gradients_are_finite_differences(kernel, parameters, storage):
    X, Y = storage(rows(9)), rows(7, seed=1)
    gradient = kernel.gradient(X, Y)
    radial = {"gamma", "bandwidth"} if isinstance(kernel, (Gaussian, Laplacian)) else set(parameters)
    assert set(gradient) == radial
    for name, value in parameters.items():
        h = 1e-6
        up, down = (clone(kernel).set_params(**{name: value + e})(X, Y) for e in (h, -h))
        np.testing.assert_allclose(gradient[name], (up - down) / (2 * h), rtol=1e-6, atol=1e-8)
    assert all(g.shape == (9, 9) for g in kernel.gradient(X).values())


@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.7), Laplacian(gamma=0.7)], ids=str)
def test_both_radial_gradients_belong_together(kernel):
    """d/d bandwidth = d/d gamma x d gamma / d bandwidth, whichever of the two was given."""
    X = rows(6)
    twin = {"Gaussian": Gaussian(bandwidth=(1 / 1.4) ** 0.5), "Laplacian": Laplacian(bandwidth=1 / 0.7)}[
        type(kernel).__name__
    ]
    for name in ("gamma", "bandwidth"):
        np.testing.assert_allclose(kernel.gradient(X)[name], twin.gradient(X)[name], rtol=1e-12)


def distances(X, order):
    apart = np.abs(X[:, None] - X[None]) ** order
    return (apart.sum(axis=2) ** (1 / order))[np.triu_indices(len(X), 1)]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("kind", "order"), [(Gaussian, 2), (Laplacian, 1)])
def test_the_median_bandwidth(kind, order, storage):
    X = rows(41) + 1
    for kernel in (kind(), kind(bandwidth="median")):
        assert not kernel.settled
        settled = kernel.settle(storage(X))
        assert settled.settled
        assert settled.bandwidth == pytest.approx(np.median(distances(X, order)))
        assert not kernel.settled
    assert kind(gamma=2.0).settle(X).gamma == 2.0
    assert kind(bandwidth=np.int64(3)).settle(X).bandwidth == 3
    repeated = np.repeat([[0.0, 1.0], [0.0, 3.0]], 10, axis=0)
    assert kind().settle(repeated).bandwidth == 2.0  # distances of zero do not count
    assert kind().settle(np.ones((5, 2))).bandwidth == 1.0
    assert kind().settle(np.ones((1, 2))).bandwidth == 1.0


@pytest.mark.parametrize("kind", [Gaussian, Laplacian])
@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_a_bandwidth_set_from_extreme_data_can_be_used(kind, scale):
    X = rows(12) * scale
    assert np.isfinite(kind().settle(X)(X)).all()


@pytest.mark.parametrize("kind", [Gaussian, Laplacian])
def test_bandwidths_at_the_ends_can_be_used_and_beyond_are_refused(kind):
    X = rows(5)
    for end in (1e-150, 1e150):
        gamma = kind(bandwidth=end).options()["gamma"]
        assert 0 < gamma < np.inf
        for kernel in (kind(bandwidth=end), kind(gamma=gamma)):
            np.testing.assert_allclose(kernel(X), np.eye(5) if end < 1 else np.ones((5, 5)), atol=1e-300)
    for beyond in (1e-200, 1e-151, 1e151, 1e200):
        with pytest.raises(ValueError, match=r"bandwidth must be a finite number >= 1e-150 and <= 1e\+150"):
            kind(bandwidth=beyond)
    for beyond in (1e-310, 1e305):
        with pytest.raises(ValueError, match=r"gamma must be a finite number >= .* and <= "):
            kind(gamma=beyond)


@pytest.mark.parametrize("kind", [Gaussian, Laplacian])
def test_radial_kernels_check_their_parameters(kind):
    for bad in (0, -1, np.nan, np.inf, "wide", True, [1.0], 1j):
        with pytest.raises(ValueError, match="gamma must be a finite number >= "):
            kind(gamma=bad)
        with pytest.raises(ValueError, match="bandwidth must be a finite number >= 1e-150"):
            kind(bandwidth=bad)
    with pytest.raises(ValueError, match="not both"):
        kind(gamma=1.0, bandwidth=1.0)
    with pytest.raises(ValueError, match="settle"):
        kind()([[1.0]], [[2.0]])
    changed = kind(gamma=1.0).set_params(gamma=-1.0)
    with pytest.raises(ValueError, match="gamma must be"):
        changed([[1.0]], [[2.0]])
    with pytest.raises(ValueError, match="gamma must be"):
        KernelClassifier(KOGD(kernel=changed)).fit([[1.0], [2.0]], [0, 1])


def test_polynomial_checks_its_parameters():
    for bad in (0, -1, 2.5, 101, "three", True):
        with pytest.raises(ValueError, match="degree must be a whole number >= 1 and <= 100"):
            Polynomial(degree=bad)
    with pytest.raises(ValueError, match="gamma must be"):
        Polynomial(gamma=0)
    with pytest.raises(ValueError, match="coef0 must be a finite number >= 0"):
        Polynomial(coef0=-0.1)


def test_widths_must_agree():
    with pytest.raises(ValueError, match="X has 3 columns, Y 2"):
        Linear()(np.ones((2, 3)), np.ones((2, 2)))


def test_as_kernel():
    kernel = Polynomial()
    assert as_kernel(kernel) is kernel
    assert isinstance(as_kernel(None), Gaussian)

    def function(X, Y):
        return X @ Y.T

    assert as_kernel(function) is function
    assert core_kernel(function).name == "callable"
    for bad in ("rbf", Gaussian, 3):
        with pytest.raises(ValueError, match="kernel must be"):
            as_kernel(bad)


def test_kernels_are_scikit_learn_parameters():
    kernel = Gaussian(bandwidth=2.0)
    twin = clone(kernel)
    assert twin is not kernel
    assert twin.get_params() == {"gamma": None, "bandwidth": 2.0}
    assert repr(twin) == "Gaussian(bandwidth=2.0)"


# ---- Fourier features ----


@pytest.mark.parametrize("storage", STORAGES[:2])
@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        (Gaussian(gamma=0.2), np.float64),
        (Laplacian(gamma=0.2), np.float64),
        (Gaussian(gamma=0.2), np.float32),
    ],
    ids=str,
)
def test_fourier_features_stand_for_the_kernel(kernel, dtype, storage):
    X = rows(60).astype(dtype)
    learner = FOGD(n_components=20_000, kernel=kernel, seed=1).start(X.shape[1], dtype=dtype)
    z = learner._core.features(as_rows(storage(X)))
    assert z.dtype == dtype
    error = np.abs(z @ z.T - kernel(X.astype(float)))
    assert error.mean() < 0.01
    assert error.max() < 0.06
    np.testing.assert_allclose((z * z).sum(axis=1), 1.0, rtol=1e-4)


@pytest.mark.parametrize("kernel", [Gaussian(gamma=0.3), Laplacian(gamma=0.3)], ids=str)
def test_frequencies(kernel):
    """A row depends on the seed and its own number only, and has the distribution of the kernel."""
    few, many = (FOGD(n_components=40_000, kernel=kernel, seed=5).start(d).frequencies() for d in (2, 5))
    assert many.shape == (5, 20_000)
    assert (many[:2] == few).all()
    assert len(np.unique(many)) == many.size
    half = np.quantile(np.abs(many), 0.5)
    assert half == pytest.approx(
        {"Gaussian": 0.67449 * np.sqrt(0.6), "Laplacian": 0.3}[type(kernel).__name__], rel=0.02
    )


def test_a_bandwidth_too_small_for_single_precision_is_no_nan():
    K = Gaussian(bandwidth=1e-30)(np.array([[1.0], [1.0], [2.0]], np.float32))
    assert np.array_equal(K, [[1, 1, K[0, 2]], [1, 1, K[0, 2]], [K[0, 2], K[0, 2], 1]])
    assert K[0, 2] < 1e-30
