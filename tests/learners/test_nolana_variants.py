"""OANA and NOLANA: the iteration that does not store E, the weighted choice of a landmark, and landmarks whose time is over."""

from __future__ import annotations

import numpy as np
import pytest

from kernelstream import Gaussian, KernelClassifier, load
from kernelstream.learners import NOLANA
from kernelstream.sketches import AdaptiveNystrom

KERNEL = Gaussian(gamma=0.4)
X = np.random.default_rng(0).normal(size=(120, 3))
Z = X[:9] + 0.2


def followed(rows, m, *, rank=None, iterations=2, weighted=False, lifetime=0):
    """Landmarks, and U S U^T as a dense matrix that is iterated on, all from the definitions."""
    points, counts, last, moves = rows[:m].copy(), np.ones(m), np.zeros(m, int), 0
    values, vectors = np.linalg.eigh(KERNEL(points))
    S, U = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    for x in rows[m:]:
        squares = ((points - x) ** 2).sum(axis=1)
        cost = squares * counts / (counts + 1) if weighted else squares
        q = int(np.argmin(cost))
        if lifetime and moves - last.min() >= lifetime:
            q = int(np.argmin(last))
            counts[q] = 0
        before = KERNEL(points)[:, q]
        points[q] = (counts[q] * points[q] + x) / (counts[q] + 1)
        counts[q] += 1
        moves += 1
        last[q] = moves
        b = KERNEL(points)[:, q] - before
        b[q] /= 2
        M = U @ np.diag(S) @ U.T
        M[q] += b
        M[:, q] += b
        Q = U
        for _ in range(iterations):
            Q = np.linalg.qr(M @ Q)[0]
        S, turn = np.linalg.eigh(Q.T @ M @ Q)
        S, U = S[::-1], (Q @ turn)[:, ::-1]
    return points, U, S


def test_the_iteration_without_e():
    sketch = AdaptiveNystrom(12, rank=7, epsilon=0.0, solver="small", kernel=KERNEL).fit(X)
    points, U, S = followed(X, 12, rank=7)
    np.testing.assert_allclose(sketch.landmarks_, points, atol=1e-12)
    features = KERNEL(Z, points) @ U / np.sqrt(S)
    np.testing.assert_allclose(sketch.approximate(Z), features @ features.T, atol=1e-8)
    assert sketch._landmarks.gram.size == 0
    exact = AdaptiveNystrom(12, rank=7, epsilon=0.0, solver="warm", kernel=KERNEL).fit(X)
    assert sketch._landmarks.nbytes < 0.7 * exact._landmarks.nbytes


def test_with_every_eigenpair_it_is_exact():
    small, scratch = (
        AdaptiveNystrom(10, rank=10, epsilon=0.0, solver=solver, kernel=KERNEL).fit(X)
        for solver in ("small", "scratch")
    )
    np.testing.assert_allclose(small.approximate(Z), scratch.approximate(Z), atol=1e-8)


@pytest.mark.parametrize(("weighted", "lifetime"), [(True, 0), (False, 9), (True, 9)])
def test_which_landmark_moves(weighted, lifetime):
    sketch = AdaptiveNystrom(
        8, rank=8, epsilon=0.0, weighted=weighted, lifetime=lifetime, solver="scratch", kernel=KERNEL
    )
    sketch.fit(X)
    points = followed(X, 8, weighted=weighted, lifetime=lifetime)[0]
    np.testing.assert_allclose(sketch.landmarks_, points, atol=1e-12)
    plain = AdaptiveNystrom(8, rank=8, epsilon=0.0, solver="scratch", kernel=KERNEL).fit(X)
    assert np.abs(plain.landmarks_ - points).max() > 0.1


def test_expired_landmarks_leave_old_places():
    """The rows have moved away; without expiry some landmarks stay where no row is any more."""
    old, new = X[:60], X[60:] + 8
    kept = AdaptiveNystrom(10, epsilon=0.0, kernel=KERNEL).fit(np.vstack([old, new]))
    left = AdaptiveNystrom(10, epsilon=0.0, lifetime=20, kernel=KERNEL).fit(np.vstack([old, new]))
    assert (kept.landmarks_.mean(axis=1) < 4).any()
    assert (left.landmarks_.mean(axis=1) > 4).all()


OPTIONS = [{"solver": "small"}, {"weighted": True}, {"lifetime": 15}, {"solver": "small", "lifetime": 15}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_nolana_in_chunks_and_in_model_files(options, tmp_path):
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, 0)

    def made():
        return KernelClassifier(NOLANA(budget=20, rank=12, epsilon=0.3, kernel=KERNEL, **options))

    whole, parts = made().partial_fit(X, y), made()
    for i in range(0, len(X), 11):
        parts.partial_fit(X[i : i + 11], y[i : i + 11], classes=[0, 1])
    assert np.array_equal(whole.decision_function(X), parts.decision_function(X))
    assert whole.learner_.n_moves > 15
    whole.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.learner_.n_moves == whole.learner_.n_moves
    assert np.array_equal(
        again.partial_fit(X, y).decision_function(X), whole.partial_fit(X, y).decision_function(X)
    )
    assert whole.score(X, y) > 0.6


def test_parameters():
    with pytest.raises(ValueError, match="lifetime must be"):
        NOLANA(lifetime=-1)
    with pytest.raises(ValueError, match="solver must be"):
        NOLANA(solver="tiny")
