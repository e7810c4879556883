"""Rows of more than 4096 features are stored sparse: the same scores to rounding, the same bits in any chunks and loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from kernelstream.kernels import Gaussian, Laplacian, Polynomial
from kernelstream.learners import BOGD, NOGD, KernelPA, NewtonMixture, Projectron
from kernelstream.rows import WIDEST_DENSE

NARROW, WIDE = 40, WIDEST_DENSE + 100
LEARNERS = [
    BOGD(budget=10, kernel=Gaussian(gamma=0.1)),
    BOGD(budget=10, kernel=Laplacian(gamma=0.1)),
    BOGD(budget=10, kernel=Polynomial(degree=2)),
    NOGD(budget=10, kernel=Gaussian(gamma=0.1)),
    KernelPA(kernel=Gaussian(gamma=0.1)),
    Projectron(budget=10, kernel=Gaussian(gamma=0.1)),
    NewtonMixture(budget=12),
]


def rows(n: int = 120) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, NARROW)) * (rng.random((n, NARROW)) < 0.2)
    return X, np.where(X[:, 0] + X[:, 1] ** 2 + 0.2 * rng.normal(size=n) > 0.1, 1.0, -1.0)


def wide(X: np.ndarray) -> scipy.sparse.csr_array:
    sparse = scipy.sparse.csr_array(X)
    return scipy.sparse.csr_array((sparse.data, sparse.indices * 100, sparse.indptr), shape=(len(X), WIDE))


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: f"{type(learner).__name__}")
def test_sparse_storage_gives_the_scores_of_dense_storage(learner: Any) -> None:
    X, y = rows()
    dense = type(learner)(**learner.get_params(deep=False)).start(NARROW).run(X, y)
    sparse = type(learner)(**learner.get_params(deep=False)).start(WIDE).run(wide(X), y)
    np.testing.assert_allclose(sparse, dense, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: f"{type(learner).__name__}")
def test_chunks_and_saving_change_no_bit(learner: Any) -> None:
    X, y = rows()
    Z = wide(X)
    whole = type(learner)(**learner.get_params(deep=False)).start(WIDE)
    scores = whole.run(Z, y)
    part = type(learner)(**learner.get_params(deep=False)).start(WIDE)
    parts = [part.run(Z[:1], y[:1]), part.run(Z[1:50], y[1:50])]
    again = type(learner)(**learner.get_params(deep=False)).restore(part.state())
    parts.append(again.run(Z[50:], y[50:]))
    assert np.array_equal(np.vstack(parts), scores)
    state, other = whole.state(), again.state()
    assert all(np.array_equal(state[name], other[name]) for name in state)


@pytest.mark.parametrize("learner", [BOGD(budget=10), NOGD(budget=10), NewtonMixture(budget=12)], ids=type)
def test_memory_is_in_proportion_to_what_is_not_zero(learner: Any) -> None:
    X, y = rows()
    model = type(learner)(**learner.get_params(deep=False)).start(WIDE)
    model.run(wide(X), y)
    per_feature = (
        8 * 10 if isinstance(learner, NewtonMixture) else 0
    )  # scales and the weights of its linear part
    assert model.nbytes < 400_000 + per_feature * WIDE
    scores = model.score(wide(X))
    model.widen(2 * WIDE)
    twice = scipy.sparse.csr_array(wide(X))
    twice.resize((len(y), 2 * WIDE))
    np.testing.assert_allclose(model.score(twice), scores, rtol=1e-9, atol=1e-12)
