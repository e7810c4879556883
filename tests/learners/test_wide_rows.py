"""Rows of more than 4096 features are stored sparse: the same scores to rounding, the same bits in any chunks and loaded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from kernelstream.kernels import Gaussian, Laplacian, Polynomial
from kernelstream.learners import BOGD, BSGD, NOGD, KernelPA, NewtonMixture, Projectron, registered
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
    BSGD(budget=10, kernel=Gaussian(gamma=0.1), maintenance="removal"),
]
#: Their numbers depend on the width: they draw some per feature, or have bandwidths by it.
BY_WIDTH = {"DoublySGD", "DualSGD", "FOGD", "RRF", "OKLGD", "ProjKA"}
LEARNERS += [
    kind(
        **{
            name: value
            for name, value in {"budget": 10, "kernel": Gaussian(gamma=0.1)}.items()
            if name in kind().get_params(deep=False)
        }
    )
    for name, kind in registered(plugins=False).items()
    if name not in BY_WIDTH | {type(learner).__name__ for learner in LEARNERS[:-1]}
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


@pytest.mark.parametrize("name", sorted(BY_WIDTH))
def test_wide_rows_are_learnt(name: str) -> None:
    X, y = rows()
    model = registered(plugins=False)[name]().start(WIDE)
    assert np.isfinite(model.run(wide(X), y)).all()


def test_gradients_in_wide_rows() -> None:
    X, _ = rows(3)
    kernel = Gaussian(gamma=0.1)
    narrow, made = (
        kernel.input_gradient(X, X[:2]),
        kernel.input_gradient(wide(X).toarray(), wide(X[:2]).toarray()),
    )
    np.testing.assert_allclose(made[..., : NARROW * 100 : 100], narrow, rtol=1e-9)
    assert np.count_nonzero(made) == np.count_nonzero(narrow) > 0


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


@pytest.mark.parametrize("regression", [False, True])
def test_features_never_met_cost_nothing_and_change_no_bit(regression: bool) -> None:
    """Memory is in proportion to what is not zero, not to the width."""
    X, y = rows()
    Z = wide(X)
    models = [NewtonMixture(budget=12).start(width, regression=regression) for width in (WIDE, 2**20)]
    scores = [
        model.run(scipy.sparse.csr_array((Z.data, Z.indices, Z.indptr), shape=(len(y), model.width)), y)
        for model in models
    ]
    assert np.array_equal(*scores)
    assert models[0].nbytes == models[1].nbytes < 500_000
    assert sum(array.nbytes for array in models[1].state().values()) < 500_000


def test_a_state_with_a_number_for_every_feature_is_read() -> None:
    """As older versions wrote them for wide rows."""
    X, y = rows()
    Z = wide(X)
    model = NewtonMixture(budget=12).start(WIDE)
    model.run(Z[:60], y[:60])
    state = model.state()
    for name, width, fill in (
        *(
            (f"{memory}_{part}", WIDE, part == "scale")
            for memory in ("lasting", "recent")
            for part in ("centre", "scale")
        ),
        *((name, WIDE + 1, 0) for name in ("linear_weights", "linear_squares")),
    ):
        values, columns, starts = (state.pop(f"{name}_{part}") for part in ("values", "columns", "starts"))
        assert starts.tolist() == [0, len(values)]
        dense = np.full(width, float(fill))
        dense[columns] = values
        state[name] = dense[:, None] if name == "linear_weights" else dense
    read = NewtonMixture(budget=12).restore(state)
    assert np.array_equal(read.score(Z), model.score(Z))
    assert np.array_equal(read.run(Z[60:], y[60:]), model.run(Z[60:], y[60:]))


@pytest.mark.parametrize("regression", [False, True])
def test_mostly_zero_rows_are_rebuilt_from_what_is_not_zero(monkeypatch: Any, regression: bool) -> None:
    """To rounding the same as with all zeros, and dense and CSR rows alike."""
    X, y = rows()
    Z = wide(X)[:, :WIDEST_DENSE]
    few = NewtonMixture(budget=12).start(WIDEST_DENSE, regression=regression).run(Z, y)
    dense = NewtonMixture(budget=12).start(WIDEST_DENSE, regression=regression).run(Z.toarray(), y)
    monkeypatch.setattr("kernelstream.learners.newton_mixture.FEW", np.inf)
    every = NewtonMixture(budget=12).start(WIDEST_DENSE, regression=regression).run(Z, y)
    np.testing.assert_allclose(few, every, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(few, dense, rtol=1e-6, atol=1e-8)
    assert not np.array_equal(few, np.zeros_like(few))
