"""Intervals of a regression: coverage, the same bits in any chunks and after saving, and the scales they stand on."""

import pickle

import numpy as np
import pytest

import kernelstream
from kernelstream import KernelClassifier, KernelRegressor
from kernelstream._core import core
from kernelstream.calibration import NOMINAL, WINDOW, Calibration
from kernelstream.learners import NOGD, NewtonMixture
from kernelstream.rows import as_rows

SMALL = NewtonMixture(budget=50)


def noisy(n, seed=0):
    """Targets whose noise depends on the row."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.sin(2 * X[:, 0]) + (0.05 + 0.3 * np.abs(X[:, 0])) * rng.standard_normal(n)


def slow_reaches(scores, coverages):
    """What `Calibration` does, slowly: levels of each nominal coverage, and quantiles of the last scores."""
    levels, past, out = NOMINAL.copy(), [], []
    for score in scores:
        held = np.sort(past[-WINDOW:])
        m = len(held)

        def at(level, held=held, m=m):
            return held[min(max(int(np.ceil(level * (m + 1))) - 1, 0), m - 1)]

        row = []
        for c in coverages:
            level = np.interp(c, [0, *NOMINAL, 1], [0, *np.maximum.accumulate(levels), 1])
            row.append(at(level) if c * (m + 1) <= m else np.inf)
        out.append(row)
        if m:
            within = np.array([score <= at(level) for level in levels])
            levels = np.clip(levels + 0.01 * 4 * NOMINAL * (1 - NOMINAL) * (NOMINAL - within), 0, 1)
        past.append(score)
    return np.array(out)


def test_reaches_against_the_slow_version():
    scores = np.abs(np.random.default_rng(0).standard_normal(1500)) * np.repeat([1.0, 4.0, 0.5], 500)
    coverages = [0.02, 0.5, 0.62, 0.9, 0.97, 0.9995]
    reaches = Calibration().learn(scores, None, coverages)
    np.testing.assert_allclose(reaches, slow_reaches(scores, coverages), rtol=1e-12)


def test_coverage_of_exchangeable_scores():
    """Within binomial error, for any coverage; larger ones reach further."""
    scores = np.random.default_rng(1).standard_exponential(6000)
    coverages = np.array([0.03, 0.33, 0.5, 0.77, 0.9, 0.95, 0.99])
    reaches = Calibration().learn(scores, None, coverages)[1000:]
    covered = (scores[1000:, None] <= reaches).mean(axis=0)
    assert (np.abs(covered - coverages) < 3 * np.sqrt(coverages * (1 - coverages) / 5000)).all()
    assert (np.diff(reaches, axis=1) >= 0).all()


def test_coverage_while_errors_grow():
    scores = np.random.default_rng(2).standard_exponential(8000) * np.geomspace(1, 1e6, 8000)
    reaches = Calibration().learn(scores, None, [0.5, 0.9, 0.95])
    assert (np.abs((scores[:, None] <= reaches).mean(axis=0) - [0.5, 0.9, 0.95]) < 0.01).all()


@pytest.mark.parametrize("learner", [SMALL, NOGD(budget=50)], ids=["default", "NOGD"])
def test_intervals_cover_and_do_not_depend_on_chunks(learner):
    X, y = noisy(3000)
    whole, parts = KernelRegressor(learner), KernelRegressor(learner)
    intervals = whole.predict_interval_then_learn(X, y, coverage=[0.5, 0.9])
    rng, at = np.random.default_rng(3), 0
    while at < len(y):
        stop = at + int(rng.integers(1, 700))
        before = None if at == 0 else parts.predict_interval(X[at : at + 1], coverage=[0.5, 0.9])
        chunk = parts.predict_interval_then_learn(X[at:stop], y[at:stop], coverage=[0.5, 0.9])
        np.testing.assert_array_equal(chunk, intervals[at:stop])
        if before is not None:
            np.testing.assert_array_equal(before, chunk[:1])
        at = stop
        parts = pickle.loads(pickle.dumps(parts))
    inside = (intervals[:, :, 0] <= y[:, None]) & (y[:, None] <= intervals[:, :, 1])
    assert (np.abs(inside[500:].mean(axis=0) - [0.5, 0.9]) < 0.02).all()


def test_wide_where_the_noise_is():
    X, y = noisy(4000)
    model = KernelRegressor(SMALL).fit(X, y)
    quiet, loud = (model.predict(np.array([[v, 0.5]]), return_std=True)[1][0] for v in (0.0, 1.9))
    assert 1.5 * quiet < loud


def test_fit_is_calibrated():
    X, y = noisy(6000)
    model = KernelRegressor(SMALL).fit(X[:3000], y[:3000])
    for coverage in (0.5, 0.9, 0.95):
        lower, upper = model.predict_interval(X[3000:], coverage).T
        assert (
            abs(((lower <= y[3000:]) & (y[3000:] <= upper)).mean() - coverage) < 0.05
        )  # three standard errors
    values, deviations = model.predict(X[:5], return_std=True)
    np.testing.assert_array_equal(values, model.predict(X[:5]))
    assert (deviations > 0).all()


def test_saved_and_loaded(tmp_path):
    X, y = noisy(1300)
    model = KernelRegressor(SMALL).partial_fit(X[:1100], y[:1100])
    model.save(tmp_path / "model")
    loaded = kernelstream.load(tmp_path / "model")
    for one in (model, loaded):
        one.rest = one.predict_interval_then_learn(X[1100:], y[1100:], 0.8)
    np.testing.assert_array_equal(model.rest, loaded.rest)


def test_rows_of_weight_0_are_not_learnt():
    X, y = noisy(600)
    weights = (np.arange(600) % 3 > 0).astype(float)
    model = KernelRegressor(SMALL).partial_fit(X, y, sample_weight=weights)
    other = KernelRegressor(SMALL).partial_fit(X[weights > 0], y[weights > 0])
    np.testing.assert_array_equal(model.predict_interval(X[:9]), other.predict_interval(X[:9]))


def test_what_is_refused():
    X, y = noisy(20)
    model = KernelRegressor(SMALL).fit(X, y)
    for coverage in (0, 1, 95, "most", [], [0.5, 1.5], None):
        with pytest.raises(ValueError, match="coverage must be above 0 and below 1"):
            model.predict_interval(X, coverage)
    assert np.isinf(model.predict_interval(X[:1], 0.99)).all()
    state = Calibration().state()
    for name, array in {"scores": np.zeros(3), "levels": np.full(23, 2.0), "count": np.zeros(1)}.items():
        with pytest.raises(ValueError, match="not the state of a calibration"):
            Calibration.restore(state | {name: array})


def kernel_machine(model, x, k=24):
    """Neighbours by brute force from the state, and the exact formulas of the small Gaussian process on them."""
    state = model.learner_.state()
    z = core.scaled_rows(x, state["lasting_centre"], state["lasting_scale"])
    zero = core.scaled_rows(0 * x, state["lasting_centre"], state["lasting_scale"])
    origin = np.array(
        [
            np.clip(-c * s, -1e300, 1e300)
            for c, s in zip(state["lasting_centre"], state["lasting_scale"], strict=True)
        ]
    )
    origin = origin / (1 + np.abs(origin) / 4)
    query = np.floor((z - zero + origin) * state["local_relevance"] * 512 + 0.5)
    kept, count = state["local_rows"].astype(float), int(state["local_next"][0])
    n = len(kept)
    rounds = np.array([count - 1 - (count - 1 - slot) % max(n, 1) for slot in range(n)])
    found = []
    for q in query:
        square = ((kept - q) ** 2).sum(axis=1)
        order = np.lexsort((-rounds, square))[:k]
        distance = np.sqrt(square[order])
        unit = np.sqrt(3) / (2 * distance[len(order) // 2])

        def matern(d, unit=unit):
            return (1 + unit * d) * np.exp(-unit * d)

        apart = np.sqrt(((kept[order][:, None] - kept[order][None]) ** 2).sum(axis=2))
        K = matern(apart) + 0.03 * np.eye(len(order))
        right = matern(distance)
        a = np.linalg.solve(K, right)
        found.append((rounds[order], distance / 512, a, 1 - right @ np.linalg.solve(K, right), right, order))
    return found


def test_neighbours_and_scales_against_brute_force():
    """With few rows all cells are searched, so the neighbours are the nearest rows of all."""
    X, y = noisy(300)
    model = KernelRegressor(NewtonMixture(budget=8)).partial_fit(X, y)
    near = model.neighbours(X[:20] + 0.01, k=24)
    state = model.learner_.state()
    _, scales = model.learner_.score_with_scales(as_rows(X[:20] + 0.01))
    usual, spread = state["usual_error"][0], state["target_spread"][0]
    for i, (rounds, distances, a, variance, right, order) in enumerate(kernel_machine(model, X[:20] + 0.01)):
        np.testing.assert_array_equal(near.rows[i], rounds)
        np.testing.assert_allclose(near.distances[i], distances, rtol=1e-12)
        np.testing.assert_allclose(near.weights[i], a, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(near.targets[i], y[rounds], rtol=1e-5, atol=1e-6)
        left = state["local_residuals"][order, 0].astype(float)
        here = np.sqrt((4 * usual**2 + right @ left**2) / (4 + right.sum()))
        assert scales[i] == pytest.approx(np.sqrt(usual * here * (0.03 + variance)) * spread, rel=1e-8)


def test_neighbours_are_named_by_their_place_in_the_data(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(900, 3)), np.repeat(["a", "b", "c"], 300)
    weights = np.ones(900)
    weights[::7] = 0
    learnt = np.flatnonzero(weights)
    model = KernelClassifier().fit(X, y, sample_weight=weights)
    near = model.neighbours(X[learnt[:50]], k=1)
    np.testing.assert_array_equal(near.rows[:, 0], np.arange(50))
    np.testing.assert_array_equal(near.targets[:, 0], y[learnt[:50]])
    model.save(tmp_path / "model")
    loaded = kernelstream.load(tmp_path / "model")
    for one in (model, loaded):
        one.partial_fit([[2.0, 2.0, 2.0]], ["c"])
        assert one.neighbours([[2.0, 2.0, 2.0]], k=2).rows[0, 0] == len(learnt)
    assert ((model.relevances_ > 0) & (model.relevances_ <= 1)).tolist() == [True] * 3


def test_no_local_memory():
    X, y = noisy(50)
    for learner in (NOGD(), NewtonMixture(memory=0)):
        model = KernelRegressor(learner).fit(X, y)
        for ask in (lambda m: m.neighbours(X), lambda m: m.relevances_):
            with pytest.raises(AttributeError, match="needs a local memory"):
                ask(model)
    assert KernelRegressor(NOGD()).fit(X, y).events_ == []
    few = KernelRegressor().partial_fit(X[:3], y[:3]).neighbours(X[:1], k=5)
    assert (few.rows >= 0).sum() < 5
    assert np.isnan(few.targets[few.rows < 0]).all()
    with pytest.raises(ValueError, match="k must be a whole number >= 1 and <= 24"):
        KernelRegressor().fit(X, y).neighbours(X, k=100)


def changing(n=3000):
    """Two classes that change places in the middle."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 2))
    return X, ((X[:, 0] > 0) ^ (np.arange(n) >= n // 2)).astype(int)


def test_events_tell_of_a_change(tmp_path):
    X, y = changing()
    model = KernelClassifier(NewtonMixture(budget=50)).partial_fit(X, y)
    event = next(e for e in model.events_ if e.why == "beaten")
    assert (event.rebuilt, event.figure > 64) == ("lasting", True)
    assert 1500 <= event.since <= 1520 < event.round < 1700
    assert str(event).startswith(f"round {event.round:,}: lasting memory rebuilt, beaten by the recent one")
    rows = KernelClassifier(NewtonMixture(budget=50))
    for at in range(0, len(y), 7):
        rows.partial_fit(X[at : at + 7], y[at : at + 7])
    model.save(tmp_path / "model")
    assert rows.events_ == model.events_ == kernelstream.load(tmp_path / "model").events_
    assert KernelClassifier(NewtonMixture(budget=50)).partial_fit(X[:1500], y[:1500]).events_ == []
