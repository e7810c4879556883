"""The fast model with every sketch, against its formula with pseudo-inverses."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from kernelstream import Gaussian
from kernelstream.sketches import FastNystrom, ModifiedNystrom
from kernelstream.sketches.fast import SKETCHES, sketch_matrix
from kernelstream.sketches.nystrom import sampled

X = np.random.default_rng(0).normal(size=(90, 4))
KERNEL = Gaussian(gamma=0.15)
each_sketch = pytest.mark.parametrize("sketch", SKETCHES)


def dense(S):
    return S.toarray() if scipy.sparse.issparse(S) else S


@each_sketch
def test_is_the_formula(sketch):
    """C (S^T C)^+ (S^T K S) (C^T S)^+ C^T, in one go."""
    made = FastNystrom(12, size=40, sketch=sketch, kernel=KERNEL, seed=3).fit(X)
    K = KERNEL(X)
    C = K[:, sampled(90, 12, 3)]
    leverages = np.diag(C @ np.linalg.pinv(C.T @ C, rcond=1e-12) @ C.T)
    S = dense(sketch_matrix(sketch, 90, 40, 3, leverages))
    assert S.shape == (90, 40)
    F = np.linalg.pinv(S.T @ C) @ (S.T @ K @ S) @ np.linalg.pinv(C.T @ S)
    np.testing.assert_allclose(made.approximate(X), C @ F @ C.T, atol=1e-8)
    # the features are those of new rows too
    Z = X[:5] + 0.1
    c = KERNEL(Z, X[sampled(90, 12, 3)])
    np.testing.assert_allclose(made.approximate(Z), c @ F @ c.T, atol=1e-8)


@each_sketch
def test_a_square_orthogonal_sketch_is_the_modified_nystrom(sketch):
    if sketch in ("uniform", "srht"):  # n columns of a permutation, or of a Hadamard matrix
        rows = X[:64]
        made = FastNystrom(10, size=64, sketch=sketch, kernel=KERNEL).fit(rows)
        best = ModifiedNystrom(10, kernel=KERNEL).fit(rows)
        np.testing.assert_allclose(made.approximate(rows), best.approximate(rows), atol=1e-9)


@each_sketch
def test_never_better_and_soon_near_the_modified_nystrom(sketch):
    ratios = []
    for seed in range(6):
        best = ModifiedNystrom(12, kernel=KERNEL, seed=seed).fit(X).relative_error(X)
        made = FastNystrom(12, size=80, sketch=sketch, kernel=KERNEL, seed=seed).fit(X).relative_error(X)
        ratios.append(made / best)
    assert min(ratios) >= 1 - 1e-9
    assert np.median(ratios) < 2.5


@each_sketch
def test_the_sketch_keeps_norms_in_the_mean(sketch):
    """E S S^T = I, over seeds; exactly for rows drawn without replacement when all are drawn."""
    mean = np.mean(
        [dense(S := sketch_matrix(sketch, 20, 8, seed)) @ dense(S).T for seed in range(1500)], axis=0
    )
    np.testing.assert_allclose(mean, np.eye(20), atol=0.25)
    assert abs(np.trace(mean) - 20) < 0.7


def test_parameters():
    with pytest.raises(ValueError, match="sketch must be"):
        FastNystrom(sketch="fourier").fit(X)
    with pytest.raises(ValueError, match="size must be"):
        FastNystrom(10, size=9).fit(X)
