"""The alignment estimated from a stream: exact while everything is stored, unbiased after that."""

from __future__ import annotations

import numpy as np
import pytest

from kernelstream import Gaussian, Polynomial
from kernelstream.alignment import IncrementalAlignment

KERNELS = [Gaussian(gamma=0.05), Gaussian(gamma=0.5), Gaussian(gamma=5.0), Polynomial(degree=2, gamma=0.3)]


def stream(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)


def exact(kernel, X, y):
    """Over all pairs of two different rows: <K, y y^T> / (|K| |y y^T|)."""
    K, Y, off = kernel(X), np.outer(y, y), ~np.eye(len(X), dtype=bool)
    return (K * Y)[off].sum() / np.sqrt((K[off] ** 2).sum() * (Y[off] ** 2).sum())


def test_with_a_large_budget_it_is_the_definition():
    X, y = stream(60)
    for targets in (y, y * np.linspace(0.5, 2, 60)):
        made = IncrementalAlignment(KERNELS, budget=100, groups=1).fit(X, targets)
        np.testing.assert_allclose(made.alignments_, [exact(k, X, targets) for k in KERNELS], rtol=1e-12)


def test_in_a_bounded_sample_it_is_right_in_the_mean():
    X, y = stream(150)
    sums = []
    for seed in range(60):
        made = IncrementalAlignment(KERNELS, budget=10, groups=1, seed=seed).fit(X, y)
        sums.append(made._sums[:, :, 0])
        assert len(made._points) == 10
    K, Y, above = [k(X) for k in KERNELS], np.outer(y, y), np.triu_indices(150, 1)
    want = [
        [(M * Y)[above].sum() for M in K],
        [(M[above] ** 2).sum() for M in K],
        [(Y[above] ** 2).sum()] * 4,
    ]
    spread = np.std(sums, axis=0) / np.sqrt(60)
    assert (np.abs(np.mean(sums, axis=0) - want) < 4 * spread + 1e-6).all()


def test_it_chooses_as_the_batch_does_in_any_chunks():
    X, y = stream(600)
    whole = IncrementalAlignment(KERNELS, seed=2).fit(X, y)
    assert whole.best_ == KERNELS[int(np.argmax([exact(k, X, y) for k in KERNELS]))]
    parts = IncrementalAlignment(KERNELS, seed=2)
    for i in range(0, 600, 37):
        parts.partial_fit(X[i : i + 37], y[i : i + 37])
    assert np.array_equal(parts.alignments_, whole.alignments_)


def test_checks():
    X, y = stream(5)
    assert (IncrementalAlignment(KERNELS).fit(X[:1], y[:1]).alignments_ == 0).all()
    for bad in (
        {"budget": 0},
        {"groups": 200},
        {"seed": -1},
        {"candidates": []},
        {"candidates": [Gaussian()]},
    ):
        with pytest.raises(ValueError, match=next(iter(bad))):
            IncrementalAlignment(**bad).fit(X, y)
    with pytest.raises(ValueError, match="each row needs one"):
        IncrementalAlignment(KERNELS).fit(X, y[:3])
