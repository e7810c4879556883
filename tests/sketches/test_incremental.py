"""SJLT, the incremental sketch and the Nystrom sketches: the paper's statements, one by one."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from kernelstream.errors import CapacityError, ScoreOverflowError
from kernelstream.kernels import Gaussian, Linear
from kernelstream.sketches import SJLT, IncrementalNystrom, IncrementalSketch, ModifiedNystrom
from kernelstream.sketches.incremental import map_matrix, sketched_solution
from oracles.kernels import gaussian
from oracles.skegd import Sketch, sjlt_row

GAMMA = 0.3


def rows(n: int, d: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize(
    "sketch",
    [SJLT(8, blocks=1), IncrementalSketch(20), IncrementalNystrom(20), ModifiedNystrom(10)],
    ids=lambda sketch: type(sketch).__name__,
)
def test_are_scikit_learn_transformers(sketch: BaseEstimator) -> None:
    check_estimator(sketch, on_skip=None)


# ---- SJLT ----


@pytest.mark.parametrize("blocks", [1, 3, 4])
def test_rows_are_those_of_the_definition(blocks: int) -> None:
    sjlt = SJLT(14, blocks=blocks, seed=9)
    numbers = [0, 1, 5, 10**12]
    expected = np.array([sjlt_row(n, sjlt.size, blocks, 9) for n in numbers])
    np.testing.assert_array_equal(sjlt.matrix(numbers).toarray(), expected)
    assert (np.count_nonzero(expected, axis=1) == blocks).all()


def test_size_is_rounded_down_and_never_below_a_column_a_block() -> None:
    assert SJLT(11, blocks=4).size == 8
    with pytest.raises(ValueError, match="at least blocks=4"):
        SJLT(3, blocks=4).fit(rows(2))
    with pytest.raises(ValueError, match="at least blocks=4"):
        SJLT(3, blocks=4).rows([0])


@pytest.mark.parametrize("blocks", [1, 4])
def test_lemma_1_mean_and_variance(blocks: int) -> None:
    """E|S^T A|^2 = |A|^2; Var = (2 / s) sum_{i != j} (a_i . a_j)^2 exactly, so <= (2 / s) |A|^4."""
    A, s, draws = rows(12, 3), 8, 20_000
    S = SJLT(s, blocks=blocks, seed=1).matrix(np.arange(12 * draws)).toarray().reshape(draws, 12, s)
    norms = np.einsum("tis,im->tsm", S, A).reshape(draws, -1)
    norms = np.sum(norms**2, axis=1)
    total = np.sum(A**2)
    gram = A @ A.T
    variance = 2 / s * (np.sum(gram**2) - np.sum(np.diag(gram) ** 2))
    assert abs(norms.mean() - total) < 4 * np.sqrt(variance / draws)
    assert norms.var() == pytest.approx(variance, rel=0.08)
    assert norms.var() < 2 / s * total**2


def test_products_are_kept_in_the_mean() -> None:
    """E[S S^T] = I, also for rows far apart."""
    numbers = np.array([0, 1, 7, 10**9])
    mean = sum(
        (S @ S.T for S in (SJLT(16, seed=seed).matrix(numbers).toarray() for seed in range(4000))),
        np.zeros((4, 4)),
    )
    np.testing.assert_allclose(mean / 4000, np.eye(4), atol=0.03)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transforms_features_dense_and_sparse(dtype: type) -> None:
    X = (rows(20, 50) * (rows(20, 50, seed=1) > 0)).astype(dtype)
    sjlt = SJLT(16).partial_fit(X[:5])
    S = sjlt.matrix(np.arange(50)).toarray()
    dense, sparse = sjlt.transform(X), sjlt.partial_fit(X).transform(scipy.sparse.csr_array(X))
    assert dense.dtype == dtype
    assert sparse.dtype == dtype
    assert scipy.sparse.issparse(sparse)
    np.testing.assert_allclose(dense, X @ S, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(sparse.toarray(), dense, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="50 features"):
        sjlt.transform(X[:, :9])


def test_features_beyond_memory_cost_nothing() -> None:
    """Only rows of features that occur are made."""
    X = scipy.sparse.csr_array(([1.0, 2.0], [3, 10**9], [0, 2]), shape=(1, 2 * 10**9))
    z = SJLT(8).fit(X).transform(X)
    expected = sjlt_row(3, 8, 4, 0) + 2 * sjlt_row(10**9, 8, 4, 0)
    np.testing.assert_allclose(z.toarray()[0], expected)


# ---- the incremental sketch ----


@pytest.mark.parametrize("capacity", [40, 1000], ids=["reservoir", "all stored"])
def test_updates_equal_the_product_in_one_go(capacity: int) -> None:
    """After hundreds of rank-1 changes, Phi_pp = S_p^T K S_p and Phi_pm = S_p^T K S_m to 1e-9."""
    X = rows(600)
    sketch = IncrementalSketch(
        30, sketch_size=22, samples=10, capacity=capacity, kernel=Gaussian(GAMMA), seed=3
    ).fit(X)
    oracle = Sketch(kernel=Gaussian(GAMMA), size=22, samples=10, rank=6, blocks=4, capacity=capacity, seed=3)
    oracle.begin(list(X[:30]))
    taken = sum(oracle.offer(x) is not None for x in X[30:])
    np.testing.assert_array_equal(sketch.stored, oracle.stored)
    assert taken == 570 if capacity == 1000 else 60 < taken < 300
    for ours, expected in zip(sketch.sketches(), oracle.sketches(), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-9, rtol=0)
    Z = sketch.transform(X[:50])
    C = gaussian(GAMMA)(X[:50], oracle.landmarks)
    np.testing.assert_allclose(Z @ Z.T, C @ oracle.Q() @ oracle.Q().T @ C.T, atol=1e-8)


@pytest.mark.slow
def test_the_reservoir_is_a_uniform_sample() -> None:
    """Landmarks stay for ever; every other example offered is stored with the same probability."""
    X = np.arange(100.0)[:, None]
    kept = np.zeros(100)
    for seed in range(200):
        sketch = IncrementalSketch(8, samples=4, capacity=24, kernel=Linear(), seed=seed).fit(X)
        landmarks = sketch.landmark_map()[0][:, 0].astype(int)
        stored = sketch.stored[:, 0].astype(int)
        assert set(landmarks) <= set(stored)
        assert len(set(stored)) == 24
        assert landmarks.max() < 8
        kept[stored] += 1
    expected = 200 * 20 / 96  # of the 96 that are no landmarks 20 are stored
    late = kept[8:]
    assert np.mean((late - expected) ** 2) / (expected * (1 - 20 / 96)) == pytest.approx(1, abs=0.5)
    assert abs(late[:46].mean() - expected) < 3
    assert abs(late[46:].mean() - expected) < 3


def test_with_s_p_the_identity_the_solution_is_the_modified_nystrom() -> None:
    X = rows(120, 3)
    K = Gaussian(GAMMA)(X)
    C = K[:, :25]
    F = np.linalg.pinv(C, rcond=1e-10) @ K @ np.linalg.pinv(C, rcond=1e-10).T
    np.testing.assert_allclose(C @ sketched_solution(K, C) @ C.T, C @ F @ C.T, atol=1e-8)
    batch = ModifiedNystrom(25, kernel=Gaussian(GAMMA), seed=4).fit(X)
    landmarks, _ = batch.landmark_map()
    C = Gaussian(GAMMA)(X, landmarks)
    np.testing.assert_allclose(batch.approximate(X), C @ sketched_solution(K, C) @ C.T, atol=1e-6)
    Q = map_matrix(K, C, 120)  # full rank: the features, too
    np.testing.assert_allclose(C @ Q.T @ Q @ C.T, batch.approximate(X), atol=1e-6)


def test_theorem_1_direction() -> None:
    """The error is never below the modified Nystrom's, close to it for s_p >> s_m, and falls with s_p."""
    X = rows(400, 5)
    K = Gaussian(0.1)(X)
    drawn = np.arange(0, 400, 27)
    C = K[:, drawn]
    best = np.sum((C @ sketched_solution(K, C) @ C.T - K) ** 2)
    errors = []
    for size in (24, 48, 96, 192, 384):
        found = []
        for seed in range(10):
            S = SJLT(size, seed=seed).matrix(np.arange(400))
            F = sketched_solution(S.T @ (S.T @ K).T, S.T @ C)
            found.append(np.sum((C @ F @ C.T - K) ** 2) / best)
        errors.append(np.median(found))
        assert min(found) >= 1 - 1e-9
    assert all(a > b for a, b in itertools.pairwise(errors)), errors
    assert errors[-1] < 1.1
    assert errors[2] < 2


def test_solvers_agree() -> None:
    X = rows(300)
    exact, randomized = (
        IncrementalSketch(80, kernel=Gaussian(0.05), solver=solver).fit(X).approximate(X)
        for solver in ("exact", "randomized")
    )
    np.testing.assert_allclose(randomized, exact, atol=2e-3)


@pytest.mark.parametrize("make", [IncrementalSketch, IncrementalNystrom])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_chunks_sparsity_and_pickling_change_no_bit(make: type, dtype: type) -> None:
    X = rows(230).astype(dtype)
    kernel = Gaussian(GAMMA)
    whole = make(40, kernel=kernel).fit(X)
    parts = make(40, kernel=kernel)
    for start, stop in [(0, 1), (1, 39), (39, 100), (100, 101), (101, 230)]:
        parts.partial_fit(X[start:stop])
        parts = pickle.loads(pickle.dumps(parts))
    sparse = make(40, kernel=kernel).fit(scipy.sparse.csr_array(X))
    expected = whole.transform(X)
    assert expected.dtype == dtype
    np.testing.assert_array_equal(parts.transform(X), expected)
    np.testing.assert_array_equal(sparse.transform(scipy.sparse.csr_array(X)), expected)


def test_cycle_counts_rows_after_the_first_b() -> None:
    X = rows(100)
    sketch = IncrementalSketch(20, cycle=7, capacity=50, kernel=Gaussian(GAMMA))
    for start in range(0, 100, 9):
        sketch.partial_fit(X[start : start + 9])
    np.testing.assert_array_equal(sketch.stored[20:], X[20::7])


def test_memory_is_constant() -> None:
    sketch = IncrementalSketch(20, kernel=Gaussian(GAMMA)).fit(rows(20))
    before = sketch.nbytes, len(pickle.dumps(sketch.state()))
    sketch.partial_fit(rows(30, seed=1))
    full = len(pickle.dumps(sketch.state()))
    for seed in range(20):
        sketch.partial_fit(rows(200, seed=seed))
    assert sketch.nbytes == before[0]
    assert len(pickle.dumps(sketch.state())) == full == pytest.approx(before[1], rel=0.7)


def test_fewer_rows_than_the_budget_make_a_map_of_them() -> None:
    X = rows(15, 2)
    for sketch in (IncrementalSketch(100, samples=50), IncrementalNystrom(100), ModifiedNystrom(50)):
        assert sketch.fit(X).relative_error(X) < 0.02
        assert sketch.transform(X).shape == (15, len(sketch.get_feature_names_out()))


def test_feeds_a_linear_model_in_a_pipeline() -> None:
    X = rows(600, 2)
    y = np.hypot(*X.T) > 1.1
    for sketch in (IncrementalSketch(100), IncrementalNystrom(100), ModifiedNystrom(50)):
        model = make_pipeline(sketch, LogisticRegression(C=100)).fit(X, y)
        assert model.score(X, y) > 0.95


def test_no_landmark_sketch_beats_the_best_rank() -> None:
    """K_k <= modified Nystrom of rank k <= incremental sketch, on the same landmarks."""
    X = rows(200, 3)
    K = Gaussian(GAMMA)(X)
    sketch = IncrementalSketch(200, rank=10, sketch_size=150, samples=40, kernel=Gaussian(GAMMA)).fit(X)
    modified = ModifiedNystrom(40, rank=10, kernel=Gaussian(GAMMA)).fit(
        X
    )  # the same seed and rows: the same landmarks
    np.testing.assert_array_equal(modified.landmark_map()[0], sketch.landmark_map()[0])
    values = np.sort(np.linalg.eigvalsh(K))[::-1]
    best = np.sum(values[10:] ** 2) / np.sum(K**2)
    assert best < modified.relative_error(X) < sketch.relative_error(X) < 4 * best


def test_modified_nystrom_stops_at_max_size() -> None:
    with pytest.raises(CapacityError, match="IncrementalSketch"):
        ModifiedNystrom(5, max_size=99).fit(rows(100))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sketch_size": 3}, "sketch_size must be at least blocks=4"),
        ({"sketch_size": "a"}, "sketch_size must be a whole number"),
        ({"blocks": None}, "blocks must be a whole number"),
        ({"capacity": 9}, "capacity must be a whole number >= 20"),
        ({"samples": 21}, "samples must be"),
        ({"rank": 20}, "rank must be"),
        ({"cycle": 0}, "cycle must be"),
        ({"solver": "svd"}, "solver must be one of"),
    ],
)
def test_refuses_bad_parameters(params: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        IncrementalSketch(20, **params).fit(rows(30))


def test_rows_of_zeros_under_a_linear_kernel_are_no_trouble() -> None:
    sketch = IncrementalSketch(20, kernel=Linear()).fit(np.zeros((40, 3)))
    assert not sketch.transform(np.ones((2, 3))).any()


@pytest.mark.parametrize("at", [20, 33, 70], ids=["first", "growing", "reservoir"])
def test_a_row_that_overflows_is_refused_and_changes_nothing(at: int) -> None:
    """k(x, x) = inf in a row that would be stored; one that the reservoir leaves out does no harm."""
    sketch = IncrementalSketch(20, capacity=40, kernel=Linear()).fit(rows(at))
    refused = 0
    for i in range(50):
        chunk = rows(3, seed=i)
        before = sketch.partial_fit(chunk[:2]).state()
        chunk[2] = 1e160
        refusing = pickle.loads(pickle.dumps(sketch))
        try:
            refusing.partial_fit(chunk[2:])
        except ScoreOverflowError:
            refused += 1
            for name, array in refusing.state().items():
                np.testing.assert_array_equal(array, before[name], err_msg=name)
        assert np.isfinite(refusing.transform(rows(5))).all()
    assert 3 < refused < 50


def test_an_overflowing_row_is_named_and_those_before_it_read() -> None:
    for bad in (7, 25):
        X = rows(40)
        X[bad] = 1e160
        sketch = IncrementalSketch(20, kernel=Linear())
        with pytest.raises(ScoreOverflowError, match=f"row {bad} ") as caught:
            sketch.fit(X)
        assert caught.value.row == bad
        sketch.partial_fit(X[bad + 1 :])
        expected = IncrementalSketch(20, kernel=Linear()).fit(np.delete(X, bad, axis=0))
        np.testing.assert_array_equal(sketch.transform(X[:5]), expected.transform(X[:5]))


def test_projection_reports_how_well_it_keeps_products() -> None:
    X = np.random.default_rng(0).normal(size=(50, 200))
    errors = [SJLT(size, seed=1).fit(X).relative_error(X) for size in (100, 400, 1600)]
    assert errors[0] > 2 * errors[1] > 4 * errors[2] > 0
    sparse = scipy.sparse.csr_array(X)
    assert SJLT(400, seed=1).fit(sparse).relative_error(sparse) == pytest.approx(errors[1])
