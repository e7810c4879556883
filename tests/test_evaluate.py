import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import RegressorMixin

from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.errors import CapacityError
from kernelstream.evaluate import CURVE_POINTS, Result, progressive
from kernelstream.learners import NOGD, KernelPA
from kernelstream.stream import friedman, moving_classes, rings


class Fixed:
    """Predicts fixed values, whatever the rows."""

    nbytes_ = 123

    def __init__(self, predictions):
        self.predictions = np.asarray(predictions)
        self.seen = 0

    def predict_then_learn(self, X, y):
        start, self.seen = self.seen, self.seen + len(y)
        return self.predictions[start : self.seen]


class FixedRegressor(RegressorMixin, Fixed):
    def __sklearn_tags__(self):
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type="regressor", target_tags=TargetTags(required=True))


def run(predictions, y, model=Fixed, **options):
    return progressive(model(predictions), np.zeros((len(y), 1)), np.asarray(y), **options)


@pytest.mark.parametrize("chunk_size", [1, 3, 1000])
def test_counts_every_round_and_the_rounds_after_warm_up(chunk_size):
    y = np.array([1, -1, 1, 1, -1, -1, 1, 1, 1, -1])
    predicted = np.array([-1, 1, 1, -1, -1, -1, 1, -1, 1, -1])
    result = run(predicted, y, warmup=2, chunk_size=chunk_size)
    assert (result.rounds, result.mistakes, result.mistakes_without_warmup) == (10, 4, 2)
    assert result.error_rate == result.error == 0.4
    assert result.error_rate_without_warmup == 0.2  # the papers divide by all rounds
    assert result.nbytes == 123
    assert result.seconds > 0


def test_regression_sums_squared_errors():
    result = run([0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 0.0, 3.0], FixedRegressor, warmup=1)
    assert result.task == "regression"
    assert (result.squared_error, result.rmse) == (5.0, np.sqrt(5 / 4))
    assert result.loss - result.loss_in_warmup == 4.0
    with pytest.raises(AttributeError, match="mistakes are counted in classification"):
        _ = result.mistakes


def test_warm_up_longer_than_the_stream():
    result = run([0, 0, 0], [1, 1, 0], warmup=10)
    assert (result.mistakes, result.mistakes_without_warmup) == (2, 0)


@pytest.mark.parametrize("rounds", [1, 10, 999, 1000, 1001, 1999, 2003, 17_321])
@pytest.mark.parametrize("model", [Fixed, FixedRegressor])
def test_the_curve_and_the_sums_do_not_depend_on_the_chunks(rounds, model):
    rng = np.random.default_rng(0)
    y, predicted = rng.standard_normal((2, rounds)).round(0 if model is Fixed else 3)
    one, many = (run(predicted, y, model, chunk_size=c, warmup=7) for c in (rounds, 13))
    assert one.cumulated == many.cumulated
    assert (one.loss, one.loss_in_warmup, one.spacing) == (many.loss, many.loss_in_warmup, many.spacing)
    at, error = one.curve
    assert len(at) <= CURVE_POINTS
    assert len(at) >= min(rounds, CURVE_POINTS // 2)
    losses = (predicted - y) ** 2 if model is FixedRegressor else (predicted != y).astype(float)
    expected = np.array([losses[:n].mean() for n in at])
    np.testing.assert_allclose(error, np.sqrt(expected) if model is FixedRegressor else expected)


def test_recent_error_is_that_of_the_last_rounds():
    y = np.zeros(1000)
    predicted = np.r_[np.ones(900), np.zeros(50), np.ones(50)]
    result = run(predicted, y)
    assert result.recent_error() == 0.5
    assert result.recent_error(0.05) == 1.0
    assert result.recent_error(1.0) == result.error_rate
    with pytest.raises(ValueError, match="share must lie in"):
        result.recent_error(0)


def test_recent_error_of_short_streams():
    assert run([1], [0]).recent_error() == 1.0
    assert Result("classification").recent_error() == 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_prediction_that_is_not_finite_is_an_error(bad):
    with pytest.raises(FloatingPointError, match="round 3"):
        run([1.0, 1.0, bad], [1.0, 1.0, 1.0], chunk_size=2)
    with pytest.raises(FloatingPointError, match="round 1"):
        run([bad], [1.0], FixedRegressor)


def test_the_missing_label_of_the_first_round_is_a_mistake():
    for missing, labels in [
        (np.nan, np.array([1.0, 1.0])),
        ("", np.array(["a", "a"])),
        (np.iinfo(np.int64).min, np.array([1, 1])),
        (None, np.array([(1, 2), (1, 2)], dtype="i,i").astype(object)),
    ]:
        predicted = np.empty(2, dtype=labels.dtype)
        predicted[:] = [missing, labels[1]]
        assert run(predicted, labels).mistakes == 1


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="X has 3 rows, but y has 2"):
        progressive(Fixed([0]), np.zeros((3, 1)), [0, 1])
    with pytest.raises(ValueError, match="y is missing"):
        progressive(Fixed([0]), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="predicted an array of shape"):
        run([0], [0, 1])
    with pytest.raises(ValueError, match="chunk_size must be at least 1"):
        run([0], [0], chunk_size=0)
    with pytest.raises(ValueError, match="warmup must not be negative"):
        run([0], [0], warmup=-1)


def test_the_callback_sees_every_chunk():
    seen = []
    result = run(np.zeros(25), np.zeros(25), chunk_size=10, callback=lambda r: seen.append((r, r.rounds)))
    assert [n for _, n in seen] == [10, 20, 25]
    assert all(r is result for r, _ in seen)


def test_an_empty_stream():
    result = progressive(Fixed([]), iter([]))
    assert (result.rounds, result.mistakes, result.error_rate) == (0, 0, 0.0)


def test_the_default_classifier_learns_rings():
    result = progressive(KernelClassifier(), rings(20_000, seed=1))
    assert result.rounds == 20_000
    assert result.recent_error() < 0.2
    assert result.nbytes > 0


def test_the_default_classifier_learns_several_classes():
    result = progressive(KernelClassifier(), moving_classes(20_000, classes=4, speed=0, seed=3))
    assert result.recent_error() < 0.4


def test_the_default_regressor_learns_friedman():
    chunks = list(friedman(20_000, seed=1))
    result = progressive(KernelRegressor(), chunks)
    spread = np.concatenate([y for _, y in chunks]).std()
    assert result.recent_error() < 0.7 * spread


def test_rows_may_be_sparse_or_a_frame():
    import pandas as pd
    import polars as pl

    X, y = next(rings(500, seed=2))
    expected = progressive(KernelClassifier(), X, y, chunk_size=100).mistakes
    assert progressive(KernelClassifier(), csr_array(X), y, chunk_size=100).mistakes == expected
    for frame in (pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame(X, schema=["a", "b"])):
        assert progressive(KernelClassifier(), frame, y, chunk_size=100).mistakes == expected


@pytest.mark.parametrize("learner", [None, "NOGD"])
@pytest.mark.parametrize("labels", [[3, 1, 7], ["ham", "spam"], [0.0, 1.0]])
def test_metrics_do_not_depend_on_chunks_and_change_nothing(labels, learner):
    """Classes that appear later are split off: every row is scored by the classes known before it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    y = np.array(labels)[np.minimum(rng.integers(len(labels), size=240), np.arange(240) // 60)]

    def new():
        return KernelClassifier(None if learner is None else NOGD(budget=20))

    plain = [new().predict_then_learn(X, y)]
    results = []
    for chunk in (1, 7, 240):
        model, result, predicted = new(), None, []
        result = Result.of(model, window=100, curves=["accuracy"])
        predicted = [result.step(model, X[i : i + chunk], y[i : i + chunk]) for i in range(0, 240, chunk)]
        assert all(map(_same, np.concatenate(predicted).tolist(), plain[0].tolist()))
        results.append(result)
    first = results[0].evaluation.record()
    assert first["metrics"]["accuracy"] == pytest.approx(1 - results[0].error_rate)
    for result in results[1:]:
        assert result.evaluation.record() == first
        assert result.evaluation.curve("accuracy") == results[0].evaluation.curve("accuracy")
    assert (first["metrics"]["log_loss"] is None) == (learner == "NOGD")
    assert first["metrics"]["roc_auc"] is not None
    assert set(first["baselines"]) == {"majority class", "last label"}
    again = Result.from_state(json.loads(json.dumps(results[0].state(), allow_nan=False)))
    assert again == results[0]
    assert again.evaluation.record() == first


def _same(a, b):
    return a == b or (a != a and b != b)


def test_a_chunk_with_a_new_class_that_is_refused_leaves_the_model_as_it_was():
    model = KernelClassifier(KernelPA(max_size=5))
    result = Result.of(model, window=10)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    result.step(model, X[:3], y[:3])
    before = model.predict(X).tolist()
    with pytest.raises(CapacityError):
        result.step(model, X[3:], np.where(np.arange(3, 60) > 40, 2, y[3:]))
    assert model.predict(X).tolist() == before
    assert (result.rounds, result.evaluation.metrics.rows) == (3, 3)


def test_metrics_of_a_regression():
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300.0)
    result = progressive(KernelRegressor(), X, y, window=100)
    record = result.evaluation.record()
    assert record["metrics"]["rmse"] == pytest.approx(result.rmse, rel=1e-12)
    assert record["baselines"]["last label"]["mae"] == pytest.approx(299 / 300)
