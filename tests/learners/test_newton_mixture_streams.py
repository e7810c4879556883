"""How well NewtonMixture learns: streams that change, probabilities, relevances, the latest rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit

from kernelstream import KernelClassifier
from kernelstream.learners import NewtonMixture, newton_mixture
from kernelstream.rows import as_rows
from newton_streams import (
    each_task,
    scores,
    started,
    targets,
)

# ---- streams that change ----


@each_task
def test_recovers_from_an_abrupt_change(task):
    """Over the last 500 rows no worse than 1.5 times a learner that begins at the change."""
    rng = np.random.default_rng(16)
    X = rng.normal(size=(4000, 3))
    signal = 2 * np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=4000)
    signal[2500:] *= -1
    y = targets(task, signal)

    def error(f, y):
        if task == "regression":
            return np.sqrt(np.mean((f[:, 0] - y) ** 2))
        return np.mean((f[:, 0] > 0) != (y > 0)) if task == "two" else np.mean(f.argmax(axis=1) != y)

    ours, fresh = scores(task, X, y, 50)[-500:], scores(task, X[2500:], y[2500:], 50)[-500:]
    assert error(ours, y[-500:]) < 1.5 * error(fresh, y[-500:])


def test_follows_classes_that_wander_far_away():
    """Three classes on random walks without end: the map made from the first rows would soon see one point."""
    rng = np.random.default_rng(17)
    n = 8000
    walks = np.cumsum(rng.normal(size=(n, 3, 2)) * 0.08, axis=0)
    walks += np.cumsum(np.full((n, 1, 2), 0.02), axis=0)  # and all go one way
    y = rng.integers(0, 3, size=n)
    X = 3 * np.array([[0, 0], [1, 0], [0, 1]])[y] + walks[np.arange(n), y] + 0.3 * rng.normal(size=(n, 2))
    model = KernelClassifier(NewtonMixture(50))
    assert (model.predict_then_learn(X, y) != y)[-4000:].mean() < 0.25
    first = KernelClassifier(NewtonMixture(50)).fit(X[:1000], y[:1000])
    assert (first.predict(X[-4000:]) != y[-4000:]).mean() > 0.4


# ---- probabilities ----


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_are_calibrated(classes):
    """On a noisy stream that stays: of the rows given 70 %, 70 % are right."""
    rng = np.random.default_rng(18)
    n = 6000
    X = rng.normal(size=(n, 3))
    true = np.exp(1.5 * np.stack([np.sin(2 * X[:, c % 3] + c) for c in range(classes)], axis=1))
    true /= true.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > true.cumsum(axis=1)).sum(axis=1)
    f = scores("two" if classes == 2 else "three", X, 2.0 * y - 1, 60) if classes == 2 else None
    if f is None:
        f = NewtonMixture(60).start(3, classes).run(as_rows(X), y.astype(float))
        p = np.exp(f - f.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
    else:
        p = np.hstack([1 - expit(f), expit(f)])
    p, y, true = p[500:], y[500:], true[500:]
    sure, right = p.max(axis=1), p.argmax(axis=1) == y
    bins = np.minimum((sure * 15).astype(int), 14)
    gaps = [abs(right[bins == b].sum() - sure[bins == b].sum()) for b in range(15)]
    assert sum(gaps) / len(y) < 0.05
    took = np.arange(len(y)), y
    assert -np.log(p[took]).mean() < -np.log(true[took]).mean() + 0.1
    assert np.isfinite(np.log(p)).all()


@pytest.mark.parametrize("task", ["two", "three"])
def test_the_confidence_of_a_least_squares_expert_is_learnt(task):
    """Where it is never wrong it becomes surer than its scores, where labels are noise less sure; that of others stays."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 2))
    part = (X[:, 0] > 0) + (X[:, 0] > 1)
    sure = {}
    for noise in (0.0, 0.9):
        code = np.where(rng.random(1500) < noise, rng.integers(0, 3, size=1500), part)
        learner = started(task, 2)
        learner.run(as_rows(X), code.astype(float) if task == "three" else np.where(code > 0, 1.0, -1.0))
        state = learner.state()
        sure[noise] = np.append(state["confidences"], state["local_confidences"])
        assert (np.flatnonzero(sure[noise] != 1) == [1, 4, 8, 10, 12]).all()
    assert (sure[0.0][[1, 8, 12]] > 1.1).all()  # the window and the mean of 64 rows err near the borders
    assert (sure[0.9][[1, 4, 8, 12]] < 0.6).all()


@pytest.mark.parametrize("labels", [["b", "a"], ["z", "b", "m", "a"]])
def test_probabilities_are_ordered_and_sum_to_one(labels):
    rng = np.random.default_rng(19)
    codes = rng.integers(0, len(labels), size=500)
    X = rng.normal(size=(500, 2)) * 0.3 + 3 * np.array([[0, 0], [1, 1], [0, 1], [1, 0]])[codes]
    y = np.array(labels)[codes]
    model = KernelClassifier(NewtonMixture(16)).partial_fit(X, y)
    p = model.predict_proba(X)
    assert model.classes_.tolist() == sorted(labels)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert (p >= 0).all()
    assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()
    assert (model.predict(X) == y).mean() > 0.95


# ---- relevances ----


def balls(n, seed):
    """Twelve balls in 20 dimensions, four of each class: all features matter alike."""
    rng = np.random.default_rng(seed)
    part = rng.integers(0, 12, size=n)
    return rng.normal(size=(12, 20))[part] + rng.normal(size=(n, 20)), part % 3


def two_of_twenty(n, seed):
    X = np.random.default_rng(seed).normal(size=(n, 20))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 0] > 1)


@pytest.mark.parametrize("rows", [balls, two_of_twenty])
def test_the_power_of_the_relevances_is_the_best_one_left_out(monkeypatch, rows):
    """Against loops over the rows kept."""
    X, y = rows(600, 1)
    powers, relevance, made = newton_mixture.RELEVANCE_POWERS, {}, []
    losses_of = NewtonMixture._power_losses
    monkeypatch.setattr(
        NewtonMixture, "_power_losses", lambda *rows: (made.append(losses_of(*rows)), made[-1])[1]
    )
    for tried in (powers, *((power,) for power in powers)):
        monkeypatch.setattr(newton_mixture, "RELEVANCE_POWERS", tried)
        learner = NewtonMixture(150).start(20, 3)  # 600 rows kept
        learner.run(as_rows(X), y.astype(float))
        relevance[tried] = learner.state()["local_relevance"]
    state = learner.state()
    z = (X - state["lasting_centre"]) * state["lasting_scale"]
    z /= 1 + np.abs(z) / 4
    losses = []
    for power in powers:
        points, loss = z * relevance[(power,)], 0.0
        for i in range(600 - 128, 600):
            apart = np.sqrt(np.sum((points - points[i]) ** 2, axis=1))
            near = [j for j in np.argsort(apart, kind="stable") if j != i][:24]
            r = math.sqrt(3) * apart[near] / (2 * np.median(apart[near]))
            k = (1 + r) * np.exp(-r)
            for c in range(3):
                loss += ((1 if y[i] == c else -1) - k @ np.where(y[near] == c, 1, -1) / (k.sum() + 0.5)) ** 2
        losses.append(loss)
    np.testing.assert_allclose(made[0], losses, rtol=1e-9)
    best = powers[int(np.argmin(losses))]
    assert (best < 1) == (rows is balls)
    np.testing.assert_array_equal(relevance[powers], relevance[(best,)])


def test_where_all_features_matter_alike_the_nearest_rows_are_not_better():
    ours = nearest = 0
    for seed in range(8):
        X, y = balls(2000, seed)
        ours += (KernelClassifier().predict_then_learn(X, y) != y)[800:].sum()
        squares = np.sum(X**2, axis=1)
        apart = squares[:, None] + squares - 2 * X @ X.T
        for i in range(800, 2000):
            near = np.argpartition(apart[i, :i], 10)[:10]
            nearest += np.bincount(y[near]).argmax() != y[i]
    assert ours < 1.02 * nearest


# ---- the latest rows ----


def moving_centroids(seed, rows=4000):
    """50 Gaussian centroids of 5 classes in 10 dimensions that move by 0.001 per row."""
    rng = np.random.default_rng(seed)
    centres, speed, label = rng.random((50, 10)), rng.normal(size=(50, 10)), rng.integers(5, size=50)
    speed *= 1e-3 / np.linalg.norm(speed, axis=1, keepdims=True)
    deviation = rng.random(50)
    X, y = np.empty((rows, 10)), np.empty(rows, int)
    for i in range(rows):
        centres += speed
        speed[(centres > 1) | (centres < 0)] *= -1
        c, step = rng.integers(50), rng.normal(size=10)
        X[i], y[i] = centres[c] + step / np.linalg.norm(step) * rng.normal() * deviation[c], label[c]
    return X, y


def test_the_nearest_of_the_last_rows_is_no_better_where_classes_move():
    """A 1-NN rule that knows the last rows only, whatever their number: rows from before must not keep voting."""
    X, y = moving_centroids(0)
    ours = (KernelClassifier(NewtonMixture()).predict_then_learn(X, y) != y)[500:].mean()
    for window in (200, 400, 600):
        wrong = 0
        for i in range(500, len(y)):
            first = max(0, i - window)
            nearest = first + int(np.argmin(np.sum((X[first:i] - X[i]) ** 2, axis=1)))
            wrong += y[nearest] != y[i]
        assert ours <= wrong / (len(y) - 500), window


def test_rows_of_a_set_have_no_latest():
    """Their order means nothing: the expert of the latest rows has no share."""
    X, y = moving_centroids(1, rows=300)
    model = KernelClassifier(NewtonMixture(budget=20)).fit(X, y)
    assert model.learner_.state()["local_shares"][5] == 0
    assert model.partial_fit(X, y).learner_.state()["local_shares"][5] > 0
