"""The River models: River's own checks, and what River does not check."""

import copy
import datetime
import decimal
import importlib
import math
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from river import checks, datasets, evaluate, metrics, preprocessing
from sklearn.base import clone

from kernelstream import CapacityError, Gaussian, KernelClassifier, KernelRegressor, Polynomial
from kernelstream.learners import (
    BOGD,
    BPAS,
    FOGD,
    KOGD,
    NOGD,
    RBP,
    Forgetron,
    KernelPA,
    KernelPerceptron,
    LinearPA,
    Projectron,
    ProjectronPP,
    TruncatedKOGD,
)
from kernelstream.river import Classifier, Regressor

KERNEL = Gaussian(gamma=0.5)
BOTH = [
    NOGD(budget=20),
    FOGD(n_components=50),
    BOGD(budget=20),
    KOGD(),
    TruncatedKOGD(),
    KernelPA(),
    LinearPA(),
]
CLASSIFIERS = [
    *BOTH,
    NOGD(budget=20, loss="logistic"),
    FOGD(n_components=50, loss="logistic"),
    NOGD(budget=20, kernel=Polynomial(degree=2)),
    KernelPerceptron(),
    RBP(),
    Forgetron(),
    Projectron(),
    ProjectronPP(),
    BPAS(),
]
MODELS = [*map(Classifier, [None, *CLASSIFIERS]), *map(Regressor, [None, *BOTH])]


def name(value):
    learner = getattr(value, "learner", value)
    inside = "default" if learner is None else repr(learner).replace(" ", "").replace("\n", "")
    return inside if learner is value else f"{type(value).__name__}-{inside}"


def fixed(learner):
    """The learner with a kernel that does not depend on the data, if it has one."""
    has_open_kernel = getattr(learner, "kernel", KERNEL) is None
    return clone(learner).set_params(kernel=KERNEL) if has_open_kernel else learner


def stream(n=120, width=5, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width))
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1] ** 2, np.linspace(-0.7, 0.9, classes - 1))
    return X, y


def dicts(X):
    return [{f"f{j}": float(v) for j, v in enumerate(row)} for row in X]


# ---- River's own checks ----


@pytest.mark.parametrize(
    ("model", "check"),
    [
        pytest.param(model, check, id=f"{name(model)}-{k}-{check.__name__}")
        for model in MODELS
        for k, check in enumerate(checks.yield_checks(model))
    ],
)
def test_river_check(model, check):
    assert model._unit_test_skips() == set()  # so that check_estimator, too, runs everything
    check(model.clone())


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Classifier, Regressor])
def test_river_check_estimator_with_the_models_own_test_parameters(kind):
    for params in kind._unit_test_params():
        checks.check_estimator(kind(**params))


@pytest.mark.parametrize(
    ("data", "learner", "metric", "least"),
    [
        (datasets.Phishing, NOGD(budget=100), metrics.Accuracy(), 0.85),
        (datasets.Phishing, NOGD(budget=100, loss="logistic"), metrics.ROCAUC(), 0.9),
        (datasets.ImageSegments, NOGD(budget=200, rank=100, eta=1.0), metrics.Accuracy(), 0.75),
    ],
)
def test_pipeline_classifies(data, learner, metric, least):
    model = preprocessing.StandardScaler() | Classifier(learner)
    assert evaluate.progressive_val_score(data(), model, metric).get() > least


def test_pipeline_predicts_values():
    model = preprocessing.StandardScaler() | preprocessing.TargetStandardScaler(Regressor(NOGD(budget=100)))
    assert evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE()).get() < 0.5


def test_pipeline_on_frames():
    frame = pd.DataFrame([x for x, _ in datasets.Phishing()])
    y = pd.Series([y for _, y in datasets.Phishing()], name="phishing")
    model = preprocessing.StandardScaler() | Classifier(NOGD(budget=100, loss="logistic"))
    for start in range(0, 1200, 50):
        model.learn_many(frame[start : start + 50], y[start : start + 50])
    predicted = model.predict_many(frame[1200:])
    assert predicted.dtype == bool
    assert predicted.index.equals(frame.index[1200:])
    assert (predicted == y[1200:]).mean() > 0.8


# ---- the same model as the scikit-learn estimators ----


@pytest.mark.parametrize("learner", CLASSIFIERS, ids=name)
@pytest.mark.parametrize("classes", [2, 4])
def test_classifier_equals_estimator(learner, classes):
    X, y = stream(classes=classes)
    expected = KernelClassifier(learner).predict_then_learn(X, y)
    model = Classifier(learner)
    got = []
    for x, label in zip(dicts(X), y.tolist(), strict=True):
        got.append(model.predict_one(x))
        model.learn_one(x, label)
    assert got[0] is None
    assert got[1:] == expected[1:].tolist()


@pytest.mark.parametrize("learner", BOTH, ids=name)
def test_regressor_equals_estimator(learner):
    X, _ = stream()
    y = np.sin(X[:, 0])
    expected = KernelRegressor(learner).predict_then_learn(X, y)
    model = Regressor(learner)
    got = []
    for x, target in zip(dicts(X), y.tolist(), strict=True):
        got.append(model.predict_one(x))
        model.learn_one(x, target)
    assert got == expected.tolist()


def test_probabilities_equal_estimator():
    X, y = stream(classes=3)
    learner = NOGD(budget=20, loss="logistic")
    expected = KernelClassifier(learner).partial_fit(X, y).predict_proba(X)
    model = Classifier(learner)
    model.learn_many(pd.DataFrame(X), pd.Series(y))
    got = model.predict_proba_many(pd.DataFrame(X))
    assert got.columns.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(got, expected)
    one = model.predict_proba_one(dict(enumerate(X[7])))
    assert list(one) == [0, 1, 2]
    np.testing.assert_allclose(list(one.values()), expected[7], rtol=1e-12)


# ---- features that come and go ----


@pytest.mark.parametrize("learner", CLASSIFIERS, ids=name)
@pytest.mark.parametrize("classes", [2, 3])
def test_new_features_equal_a_model_that_knew_them(learner, classes):
    X, y = stream(width=12, classes=classes)
    arrival = [0, 0, 0, 1, 1, 30, 30, 31, 60, 90, 90, 119]  # the row that brings a feature
    grows, knew = Classifier(fixed(learner)), Classifier(fixed(learner))
    for t, (row, label) in enumerate(zip(X, y.tolist(), strict=True)):
        here = {f"{j:02}": float(v) for j, v in enumerate(row) if arrival[j] <= t}
        full = {f"{j:02}": float(v) if arrival[j] <= t else 0.0 for j, v in enumerate(row)}
        assert grows.predict_one(here) == knew.predict_one(full)
        grows.learn_one(here, label)
        knew.learn_one(full, label)
    assert_same_state(grows, knew, rtol=rounding(learner))


@pytest.mark.parametrize("learner", BOTH, ids=name)
def test_new_features_equal_a_regressor_that_knew_them(learner):
    X, _ = stream(width=6)
    grows, knew = Regressor(fixed(learner)), Regressor(fixed(learner))
    for t, row in enumerate(X):
        here = {j: float(v) for j, v in enumerate(row) if 10 * j <= t}
        full = {j: here.get(j, 0.0) for j in range(6)}
        if isinstance(learner, LinearPA):
            assert grows.predict_one(here) == pytest.approx(knew.predict_one(full), rel=1e-9)
        else:
            assert grows.predict_one(here) == knew.predict_one(full)
        for model, x in ((grows, here), (knew, full)):
            model.learn_one(x, math.sin(row[0]))
    assert_same_state(grows, knew, rtol=rounding(learner))


def test_new_features_with_the_median_bandwidth():
    # While one row is known, the bandwidth is a guess from the number of features; then the rows set it.
    X, y = stream(width=6)
    grows, knew = Classifier(NOGD(budget=20)), Classifier(NOGD(budget=20))
    for t, (row, label) in enumerate(zip(X, y.tolist(), strict=True)):
        here = {j: float(v) for j, v in enumerate(row) if 10 * j <= t}
        grows.learn_one(here, label)
        knew.learn_one({j: here.get(j, 0.0) for j in range(6)}, label)
    assert_same_state(grows, knew)


def rounding(learner):
    """How far a model that grew may be from one that knew all features: not by a bit, but for LinearPA, whose
    dot product is summed in an order that depends on the number of features.
    """
    return 1e-9 if isinstance(learner, LinearPA) else 0.0


def assert_same_state(a, b, rtol=0.0):
    a, b = copy.deepcopy(a), copy.deepcopy(b)  # a model that grew has more columns than features, all 0
    width = max(a._learner.width, b._learner.width)
    for model in (a, b):
        model._learner.widen(width)
    assert a._columns == b._columns
    one, other = a._learner.state(), b._learner.state()
    assert one.keys() == other.keys()
    for key, array in one.items():
        np.testing.assert_allclose(array, other[key], rtol=rtol, atol=rtol, err_msg=key)


def test_missing_features_are_zero():
    X, y = stream()
    sparse, dense = Classifier(NOGD(budget=20)), Classifier(NOGD(budget=20))
    rng = np.random.default_rng(1)
    for row, label in zip(X, y.tolist(), strict=True):
        row[1:] *= rng.random(4) < 0.4
        x = dict(enumerate(row.tolist()))
        if sparse._columns:
            sparse.learn_one({j: v for j, v in x.items() if v != 0}, label)
        else:
            sparse.learn_one(x, label)
        dense.learn_one(x, label)
    assert_same_state(sparse, dense)


def test_a_row_that_brings_many_features_widens_once(monkeypatch):
    widths = []
    widen = NOGD.widen
    monkeypatch.setattr(NOGD, "widen", lambda self, width: (widths.append(width), widen(self, width)))
    model = Classifier(NOGD(budget=20))
    model.learn_one({"a": 1.0}, 0)
    model.learn_one({f"b{j}": 1.0 for j in range(50)}, 1)
    model.learn_one({"a": 1.0, "b7": 2.0}, 1)
    assert len(widths) == 1
    assert widths[0] >= 51


def test_prediction_counts_new_features_and_changes_nothing():
    X, y = stream()
    model = Classifier(NOGD(budget=20, loss="logistic", kernel=KERNEL))
    knew = Classifier(NOGD(budget=20, loss="logistic", kernel=KERNEL))
    for x, label in zip(dicts(X), y.tolist(), strict=True):
        model.learn_one(x, label)
        knew.learn_one(x | {"new": 0.0}, label)
    before = pickle.dumps(model)
    x = dicts(X)[3]
    expected = knew.predict_proba_one(x | {"new": 1.5})
    assert model.predict_proba_one(x | {"new": 1.5}) == expected != model.predict_proba_one(x)
    assert model.predict_proba_one(x | {"new": 0.0}) == model.predict_proba_one(x)
    assert model.predict_proba_many(pd.DataFrame([x | {"new": 1.5}])).loc[0].to_dict() == expected
    assert pickle.dumps(model) == before


def test_empty_rows_and_features_of_mixed_types():
    model = Classifier(NOGD(budget=20, kernel=KERNEL))
    model.learn_one({}, "none")
    assert model.predict_one({}) == "none"
    model.learn_one({"a": 1, 3: 2.5, ("t", 1): True, None: decimal.Decimal("0.5")}, "some")
    model.learn_one({}, "none")
    assert model.predict_one({}) == "none"
    assert model.predict_one({"a": np.int64(1), 3: np.float32(2.5), ("t", 1): np.True_, None: 0.5}) == "some"


# ---- input that is refused ----

BAD = [
    ("red", TypeError, "feature 'b' is 'red', not a number: encode it first"),
    ("3.0", TypeError, "feature 'b' is '3.0', not a number"),
    ([1.0], TypeError, r"feature 'b' is \[1.0\], not a number"),
    (np.ones(1), TypeError, "feature 'b' is .*, not a number"),
    (1j, TypeError, "feature 'b' is 1j, not a number"),
    (datetime.date(2024, 1, 1), TypeError, "feature 'b' is .*, not a number"),
    (np.datetime64("2024-01-01"), TypeError, "feature 'b' is .*, not a number"),
    (None, ValueError, "feature 'b' is None, not finite: leave it out"),
    (math.nan, ValueError, "feature 'b' is nan, not finite: leave it out"),
    (-math.inf, ValueError, "feature 'b' is -inf, not finite"),
    (decimal.Decimal("nan"), ValueError, "feature 'b' is NaN, not finite"),
    (10**400, ValueError, "feature 'b' is 1000*, not finite"),
]


@pytest.mark.parametrize(("value", "error", "message"), BAD, ids=[repr(value)[:20] for value, _, _ in BAD])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("kind", [Classifier, Regressor])
def test_bad_values_are_refused(kind, known, value, error, message):
    model = kind(NOGD(budget=20))
    model.learn_one({"a": 1.0, "b": 2.0} if known else {"a": 1.0}, 1)
    before = pickle.dumps(model)
    x = {"a": 0.5, "b": value, "c": 1.0}
    with pytest.raises(error, match=message):
        model.learn_one(x, 2)
    with pytest.raises(error, match=message):
        model.predict_one(x)
    frame = pd.DataFrame({"a": [0.5, 0.5], "b": pd.Series([1.0, value], dtype=object)})
    in_frame = message.replace("feature 'b'", "feature 'b' of row 1")
    with pytest.raises(error, match=in_frame):
        model.learn_many(frame, pd.Series([2, 3]))
    with pytest.raises(error, match=in_frame):
        model.predict_many(frame)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64"])
def test_frames_with_gaps_are_refused(dtype):
    model = Classifier(NOGD(budget=20))
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, None]}).astype(dtype)
    with pytest.raises(ValueError, match="feature 'b' of row 1 is nan, not finite: leave it out"):
        model.learn_many(frame, pd.Series([0, 1]))
    assert model.predict_one({"a": 1.0}) is None


@pytest.mark.parametrize("label", [None, math.nan, np.float64("nan"), pd.NA, pd.NaT])
def test_labels_that_say_nothing_are_refused(label):
    model = Classifier(NOGD(budget=20))
    model.learn_one({"a": 1.0}, 1)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"the label is .*: only rows with a label can be learnt"):
        model.learn_one({"a": 1.0, "b": 1.0}, label)
    with pytest.raises(ValueError, match=r"the label is .*: only rows with a label can be learnt"):
        model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series([2, label], dtype=object))
    assert pickle.dumps(model) == before


def test_labels_that_cannot_be_sorted_are_refused():
    model = Classifier(NOGD(budget=20))
    model.learn_one({"a": 1.0}, "yes")
    before = pickle.dumps(model)
    with pytest.raises(TypeError, match="labels must be of types that can be sorted"):
        model.learn_one({"a": 1.0, "b": 1.0}, 0)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("target", "error"),
    [("high", TypeError), (None, ValueError), (math.nan, ValueError), (math.inf, ValueError)],
)
def test_bad_targets_are_refused(target, error):
    model = Regressor(NOGD(budget=20))
    model.learn_one({"a": 1.0}, 1.0)
    before = pickle.dumps(model)
    with pytest.raises(error, match="the target is"):
        model.learn_one({"a": 1.0, "b": 1.0}, target)
    with pytest.raises(error, match="the target of row 1 is"):
        model.learn_many(pd.DataFrame({"b": [1.0, 2.0]}), pd.Series([2.0, target], dtype=object))
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("kind", [Classifier, Regressor])
def test_frames_of_the_wrong_shape_are_refused(kind):
    model = kind(NOGD(budget=20))
    with pytest.raises(ValueError, match="X has 2 rows and y has 1 entries"):
        model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series([1]))
    with pytest.raises(ValueError, match="two columns of one name: 'a'"):
        model.learn_many(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), pd.Series([1]))
    model.learn_many(pd.DataFrame({"a": []}), pd.Series([], dtype=float))
    assert model._learner is None


def test_a_learner_must_be_a_learner():
    with pytest.raises(TypeError, match="learner must be a kernelstream learner"):
        Classifier(3)
    with pytest.raises(ValueError, match="cannot do regression"):
        Regressor(Projectron()).learn_one({"a": 1.0}, 1.0)


# ---- labels, weights, life ----


@pytest.mark.parametrize(
    "labels",
    [
        [False, True],
        ["b", "a", "a longer one"],
        [3, -1, 10**30],
        [np.int64(4), np.int64(2)],
        [np.True_, np.False_],
        [("b", 1), ("a", 2), ("a", 1)],
        [datetime.date(2024, 1, 2), datetime.date(2024, 1, 1)],
        [0.5, 1.5],
    ],
    ids=str,
)
def test_labels_of_any_type(labels):
    model = Classifier(NOGD(budget=20, loss="logistic", kernel=Gaussian(gamma=10.0)))
    for _ in range(20):
        for k, label in enumerate(labels):
            model.learn_one({"x": float(k)}, label)
    for k, label in enumerate(labels):
        got = model.predict_one({"x": float(k)})
        assert got == label
        assert not isinstance(got, np.generic)
    assert list(model.predict_proba_one({"x": 0.0})) == sorted(labels)
    frame = pd.DataFrame({"x": np.arange(len(labels), dtype=float)})
    assert model.predict_many(frame).tolist() == labels


def test_before_anything_was_learnt():
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=[5, 6])
    model = Classifier(NOGD(loss="logistic"))
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert model.predict_many(frame).tolist() == [None, None]
    assert model.predict_proba_many(frame).shape == (2, 0)
    assert Regressor().predict_one({"a": 1.0}) == 0.0
    assert Regressor().predict_many(frame).to_dict() == {5: 0.0, 6: 0.0}


def test_no_probabilities_without_the_logistic_loss():
    with pytest.raises(NotImplementedError, match="logistic"):
        Classifier(NOGD()).predict_proba_one({"a": 1.0})
    with pytest.raises(NotImplementedError, match="logistic"):
        Classifier(BOGD()).predict_proba_many(pd.DataFrame({"a": [1.0]}))


@pytest.mark.parametrize("learner", CLASSIFIERS, ids=name)
def test_frames_of_any_size_equal_rows(learner):
    X, y = stream(classes=4)
    frame, labels = pd.DataFrame(dicts(X)), pd.Series(y)
    one, many = Classifier(learner), Classifier(learner)
    for x, label in zip(dicts(X), y.tolist(), strict=True):
        one.learn_one(x, label)
    for start, stop in ((0, 0), (0, 1), (1, 3), (3, 90), (90, 120)):
        many.learn_many(frame[start:stop], labels[start:stop])
    assert_same_state(one, many)
    assert many.predict_many(frame).tolist() == [one.predict_one(x) for x in dicts(X)]


def test_a_full_learner_names_the_row_of_the_frame():
    frame = pd.DataFrame(np.eye(6))
    model = Classifier(KOGD(max_size=4, kernel=KERNEL))
    labels = pd.Series([0, 0, 1, 1, 2, 2])
    with pytest.raises(CapacityError, match="row 4 needs one more"):
        model.learn_many(frame, labels)
    model.learn_many(frame[:4], labels[:4])  # nothing was learnt before
    one = Classifier(KOGD(max_size=4, kernel=KERNEL))
    for row, label in zip(np.eye(6)[:4], [0, 0, 1, 1], strict=True):
        one.learn_one(dict(enumerate(row)), label)
    np.testing.assert_array_equal(model._learner.state()["points"], one._learner.state()["points"])


@pytest.mark.parametrize("kind", [Classifier, Regressor])
def test_weights(kind):
    X, y = stream()
    weights = np.random.default_rng(3).integers(0, 4, len(X)) / 2
    one, many = kind(NOGD(budget=20)), kind(NOGD(budget=20))
    for x, label, w in zip(dicts(X), y.tolist(), weights, strict=True):
        one.learn_one(x, label, w=w)
    many.learn_many(pd.DataFrame(dicts(X)), pd.Series(y), w=pd.Series(weights))
    assert_same_state(one, many)
    plain = kind(NOGD(budget=20))
    plain.learn_many(pd.DataFrame(dicts(X)), pd.Series(y), w=1)
    assert plain._learner.state()["points"].tobytes() != many._learner.state()["points"].tobytes()
    for bad in (-1.0, math.nan):
        with pytest.raises(ValueError, match="w must be finite and at least 0"):
            one.learn_one({"f0": 1.0}, 1, w=bad)


@pytest.mark.parametrize("model", MODELS, ids=name)
def test_copies_go_on_alike(model):
    X, y = stream()
    model = model.clone()
    for x, label in zip(dicts(X)[:60], y.tolist(), strict=False):
        model.learn_one(x, label)
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.clone(include_attributes=True)]
    assert model.clone()._learner is None
    for x, label in zip(dicts(X)[60:], y[60:].tolist(), strict=True):
        for one in (model, *copies):
            one.learn_one(x | {"late": 1.0}, label)
    for other in copies:
        assert_same_state(model, other)
        assert other.predict_one(dicts(X)[0]) == model.predict_one(dicts(X)[0])


def test_frames_of_other_number_types():
    frame = pd.DataFrame({"b": [True, False], "i": [1, 2], "f": np.array([0.5, 1.5], np.float32)})
    frame["n"] = pd.array([1, 2], dtype="Int64")
    frame["s"] = pd.arrays.SparseArray([0, 3])
    frame["o"] = pd.Series([1, 2.5], dtype=object)
    one, many = Classifier(NOGD(budget=20)), Classifier(NOGD(budget=20))
    many.learn_many(frame, pd.Series(["x", "y"]))
    one.learn_one({"b": True, "i": 1, "f": 0.5, "n": 1, "s": 0, "o": 1}, "x")
    one.learn_one({"b": False, "i": 2, "f": 1.5, "n": 2, "s": 3, "o": 2.5}, "y")
    assert_same_state(one, many)


def test_memory_counts_the_compiled_state():
    small, large = Classifier(BOGD(budget=10)), Classifier(BOGD(budget=1000))
    for model in (small, large):
        for x, label in zip(dicts(stream()[0]), stream()[1].tolist(), strict=True):
            model.learn_one(x, label)
    assert large._raw_memory_usage - small._raw_memory_usage == large._learner.nbytes - small._learner.nbytes
    assert small._raw_memory_usage > small._learner.nbytes


def test_without_river_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "kernelstream.river")
    with pytest.raises(ImportError, match=r'pip install "kernelstream\[river\]"'):
        importlib.import_module("kernelstream.river")
