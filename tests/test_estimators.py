"""The two estimators as scikit-learn users meet them."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris, make_circles
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelstream
from kernelstream import CapacityError, Gaussian, KernelClassifier, KernelRegressor, Laplacian
from kernelstream.learners import BOGD, BPAS, FOGD, KOGD, KRLS, NOGD, RBP, KernelPA, LinearPA


@pytest.fixture(scope="module")
def circles():
    return make_circles(600, noise=0.1, factor=0.4, random_state=0)


@pytest.fixture(scope="module")
def wave():
    x = np.random.default_rng(0).uniform(-3, 3, (800, 1))
    return x, np.sin(x[:, 0])


# ---- scikit-learn's tools ----


def test_both_learn_what_no_linear_model_can(circles, wave):
    assert KernelClassifier().fit(*circles).score(*circles) > 0.95
    assert KernelRegressor().fit(*wave).score(*wave) > 0.9
    assert is_classifier(KernelClassifier())
    assert is_regressor(KernelRegressor())


def test_pipeline(circles):
    X, y = circles
    model = make_pipeline(StandardScaler(), KernelClassifier(NOGD(budget=60)))
    assert model.fit(X * 1000 + 5000, y).score(X * 1000 + 5000, y) > 0.95


def test_grid_search(circles):
    search = GridSearchCV(
        KernelClassifier(BOGD(kernel=Gaussian(gamma=1.0))),
        {
            "learner__budget": [5, 100],
            "learner__kernel__gamma": [1e-4, 1.0],
            "learner__eta": np.array([0.1, 0.3]),
        },
        cv=3,
    ).fit(*circles)
    assert search.best_params_["learner__budget"] == 100
    assert search.best_params_["learner__kernel__gamma"] == 1.0
    assert search.best_score_ > 0.9
    assert search.best_estimator_.learner_.budget == 100


def test_grid_search_over_learners_and_numpy_bandwidths(circles):
    grid = {
        "learner": [RBP(budget=20), KernelPA()],
        "learner__kernel": [Gaussian(bandwidth=b) for b in np.arange(1, 3)],
    }
    search = GridSearchCV(KernelClassifier(), grid, cv=2).fit(*circles)
    assert search.best_estimator_.learner_.kernel_.bandwidth in (1, 2)


def test_cross_validation(circles, wave):
    assert cross_val_score(KernelClassifier(KOGD()), *circles, cv=3).mean() > 0.9
    assert cross_val_score(KernelRegressor(KOGD(eta=0.5)), *wave, cv=3).mean() > 0.8
    assert (
        len(
            cross_val_predict(KernelClassifier(FOGD(loss="logistic")), *circles, cv=3, method="predict_proba")
        )
        == 600
    )


def test_clone(circles):
    model = KernelClassifier(BOGD(budget=7, kernel=Laplacian(gamma=0.5))).fit(*circles)
    twin = clone(model)
    assert not hasattr(twin, "learner_")
    assert twin.learner is not model.learner
    assert repr(twin) == repr(model)
    assert clone(model.learner_).get_params()["budget"] == 7
    assert not clone(model.learner_).started
    model.set_params(learner__budget=9)
    assert model.learner.budget == 9
    assert model.learner_.budget == 7  # the model at work is another object


def test_joblib(circles):
    X, y = circles
    models = [KernelClassifier(RBP(budget=20, seed=s)) for s in range(4)]
    want = [m.fit(X, y).decision_function(X) for m in map(clone, models)]
    for backend in ("threading", "loky"):
        made = Parallel(n_jobs=2, backend=backend)(delayed(m.fit)(X, y) for m in models)
        assert all((m.decision_function(X) == w).all() for m, w in zip(made, want, strict=True))


def test_meta_estimators(circles):
    X, y = circles
    model = OneVsRestClassifier(KernelClassifier(NOGD(budget=40))).fit(X, y + 2 * (X[:, 0] > 0))
    assert model.score(X, y + 2 * (X[:, 0] > 0)) > 0.8


def test_parameters_are_checked_when_made_and_when_fitted(circles):
    for made in (
        lambda: NOGD(budget=0), lambda: NOGD(budget=5, rank=6), lambda: NOGD(budget=2.0),
        lambda: BOGD(budget=1), lambda: BOGD(removal="newest"), lambda: BOGD(clip=0), lambda: BOGD(eta=0),
        lambda: KOGD(lam=-1), lambda: KOGD(eta=1.0, lam=1.0), lambda: KOGD(max_size=0),
        lambda: FOGD(n_components=3), lambda: FOGD(kernel=lambda X, Y: X @ Y.T), lambda: RBP(seed=-1),
        lambda: RBP(seed=2**64), lambda: KernelPA(variant="PA-III"), lambda: LinearPA(C=0),
        lambda: LinearPA(epsilon=-1), lambda: BPAS(C="big"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"must|needs"):
            made()
    for learner in (NOGD(), BOGD(), RBP(), BPAS()):
        with pytest.raises(ValueError, match="budget must be a whole number"):
            KernelClassifier(learner.set_params(budget=-1)).fit(*circles)
    for bad in (NOGD, 3, KernelClassifier()):
        with pytest.raises(TypeError, match="learner must be a kernelstream learner"):
            KernelClassifier(bad).fit(*circles)
    with pytest.raises(ValueError, match="kernel must be"):
        KernelClassifier(KOGD(kernel="rbf")).fit(*circles)


def test_nothing_works_before_learning():
    for model in (KernelClassifier(NOGD(loss="logistic")), KernelRegressor()):
        for method in ("predict", "decision_function", "predict_proba"):
            if hasattr(model, method):
                with pytest.raises(NotFittedError):
                    getattr(model, method)([[1.0]])
        with pytest.raises(NotFittedError):
            _ = model.nbytes_
    model = KernelClassifier().partial_fit(np.zeros((0, 2)), [])
    with pytest.raises(NotFittedError, match="no row has been learnt"):
        model.predict([[1.0, 2.0]])
    assert len(model.predict(np.zeros((0, 2)))) == 0


# ---- frames ----


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame, circles):
    X, y = circles
    data = frame({"height": X[:, 0], "width": X[:, 1]})
    for kind, series in (
        (KernelClassifier, pd.Series if frame is pd.DataFrame else pl.Series),
        (KernelRegressor, list),
    ):
        model = kind(BOGD(budget=20)).partial_fit(data, series(y))
        assert model.feature_names_in_.tolist() == ["height", "width"]
        plain = kind(BOGD(budget=20)).partial_fit(X, y)
        with pytest.warns(UserWarning, match="feature names"):
            assert (model.predict(X) == plain.predict(X)).all()
        before = model.learner_.state()
        for wrong in (
            frame({"width": X[:, 1], "height": X[:, 0]}),
            frame({"height": X[:, 0], "depth": X[:, 1]}),
            frame({"height": X[:, 0], "width": X[:, 1], "depth": X[:, 1]}),
        ):
            for call in (lambda d: model.partial_fit(d, y), lambda d: model.predict(d)):  # noqa: B023
                with pytest.raises(ValueError, match="feature names"):
                    call(wrong)
        assert all(a.tobytes() == before[k].tobytes() for k, a in model.learner_.state().items())


def test_frames_of_other_types():
    data = pd.DataFrame(
        {"a": [1, 2, 3, 4], "b": [True, False, True, False], "c": np.float32([0.1, 0.2, 0.3, 0.4])}
    )
    model = KernelClassifier(LinearPA()).fit(data, pd.Series(["x", "y", "x", "y"], dtype="category"))
    assert set(model.predict(data)) <= {"x", "y"}
    assert model.learner_.dtype == np.float64
    single = KernelClassifier(LinearPA()).fit(data[["c"]], [0, 1, 0, 1])
    assert single.learner_.dtype == np.float32


# ---- labels ----

LABELS = {
    "bool": np.array([True, False]),
    "str": np.array(["no", "certainly"]),
    "object": np.array(["no", "certainly"], object),
    "negative": np.array([-7, -70]),
    "int8": np.array([100, -100], np.int8),
    "unsigned": np.array([3, 200], np.uint8),
    "huge": np.array([2**63 + 1, 2**63 + 2], np.uint64),
    "float": np.array([1.0, 2.0]),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_labels_of_any_type(labels, circles):
    X, codes = circles
    y = labels[codes]
    for model in (
        KernelClassifier(BOGD(budget=60)).fit(X, y),
        KernelClassifier(BOGD(budget=60)).partial_fit(X, y),
        KernelClassifier(BOGD(budget=60)).partial_fit(X, y, classes=labels),
    ):
        assert model.classes_.tolist() == sorted(labels.tolist())
        assert model.classes_.dtype == labels.dtype
        predicted = model.predict(X)
        assert predicted.dtype == labels.dtype
        assert (predicted == y).mean() > 0.85
        score = model.decision_function(X)
        assert ((score > 0) == (predicted == model.classes_[1])).all()


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        ([1.0, 2.0], np.nan),
        ([1, 2], np.iinfo(np.int64).min),
        (np.array([1, 2], np.int8), -128),
        (np.array([1, 2], np.uint8), 255),
        (["a", "b"], ""),
        ([True, False], None),
        (np.array(["a", "b"], object), None),
        (np.array([-128, 5], np.int8), None),  # the value that would stand for it is a label
        (np.array([255, 5], np.uint8), None),
        (["", "b"], None),
    ],
    ids=str,
)
def test_before_any_label_is_known(labels, missing):
    """The first row's prediction is never right, and is of the labels' own type where that is possible."""
    y = np.array(labels)[[0, 1, 0, 0]] if not isinstance(labels, np.ndarray) else labels[[0, 1, 0, 0]]
    predicted = KernelClassifier(LinearPA()).predict_then_learn([[1.0], [-1.0], [1.0], [2.0]], y)
    assert predicted[0] != y[0]
    assert predicted[0] == missing if missing == missing else np.isnan(predicted[0])
    assert predicted.dtype == (object if missing is None else y.dtype)
    assert predicted[1:].tolist() == [y[0], y[0], y[0]]
    told = KernelClassifier(LinearPA()).predict_then_learn([[1.0], [-1.0], [1.0], [2.0]], y, classes=y[:2])
    assert told.dtype == y.dtype
    assert told[0] == min(y[:2])  # classes known: a score of zero is the first class


def test_regression_starts_from_zero():
    assert KernelRegressor(LinearPA(variant="PA", epsilon=0.0)).predict_then_learn(
        [[1.0], [2.0]], [3.0, 4.0]
    ).tolist() == [0, 6]


def test_longer_strings_and_larger_numbers_may_come_later():
    X = np.eye(4)
    model = KernelClassifier(LinearPA()).partial_fit(X[:2], ["a", "b"])
    model.partial_fit(X[2:], ["a much longer label", "c"])
    assert model.classes_.tolist() == ["a", "a much longer label", "b", "c"]
    model = KernelClassifier(LinearPA()).partial_fit(X[:2], np.array([1, 2], np.int8))
    assert model.partial_fit(X[2:], np.array([1000, -1000])).classes_.tolist() == [-1000, 1, 2, 1000]
    assert model.predict(X).tolist() == [1, 2, 1000, -1000]


def test_classes_are_discovered_or_told():
    X = np.eye(3)
    model = KernelClassifier(LinearPA()).partial_fit(X[:1], [5])
    assert model.classes_.tolist() == [5]
    assert model.predict(X).tolist() == [5, 5, 5]
    assert model.decision_function(X).shape == (3,)
    assert model.partial_fit(X[1:2], [3]).decision_function(X).shape == (3,)
    assert model.partial_fit(X[2:], [4]).decision_function(X).shape == (3, 3)
    assert model.predict(X).tolist() == [5, 3, 4]
    assert model.partial_fit(X, [5, 3, 4], classes=[3, 4, 5]).classes_.tolist() == [3, 4, 5]
    with pytest.raises(ValueError, match="not the same as on last call"):
        model.partial_fit(X, [5, 3, 4], classes=[3, 4])

    told = KernelClassifier(LinearPA()).partial_fit(X[:1], [5], classes=[3, 4, 5])
    assert told.decision_function(X).shape == (3, 3)
    with pytest.raises(ValueError, match="classes must name"):
        KernelClassifier().partial_fit(X, [1, 2, 3], classes=[])
    fitted = KernelClassifier(LinearPA()).fit(X, [0, 1, 2])
    with pytest.raises(ValueError, match="label"):
        fitted.partial_fit(X, [0, 1, 7])
    assert fitted.fit(X, [0, 1, 7]).classes_.tolist() == [0, 1, 7]


def test_labels_that_are_none():
    X = np.eye(2)
    with pytest.raises(ValueError, match="continuous"):
        KernelClassifier().fit(X, [0.5, 1.7])
    with pytest.raises(ValueError, match="label must be finite"):
        KernelClassifier().fit(X, [np.nan, 1.0])
    with pytest.raises(ValueError, match="of type"):
        KernelClassifier().partial_fit(X, [1, 2]).partial_fit(X, ["a", "b"])
    with pytest.raises(ValueError, match="2 rows and y has 3"):
        KernelClassifier().fit(X, [1, 2, 3])


def test_weights_may_be_a_number_or_a_series(circles):
    X, y = circles
    models = [
        KernelClassifier(BOGD(budget=9)).partial_fit(X, y, sample_weight=w)
        for w in (2.0, np.full(600, 2), [2] * 600, pd.Series(np.full(600, 2.0)), pl.Series(np.full(600, 2.0)))
    ]
    scores = [m.decision_function(X) for m in models]
    assert all((s == scores[0]).all() for s in scores)
    assert (scores[0] != KernelClassifier(BOGD(budget=9)).partial_fit(X, y).decision_function(X)).any()
    with pytest.raises(ValueError, match="sample weights are zero"):
        KernelClassifier().fit(X, y, sample_weight=np.zeros(600))
    with pytest.raises(ValueError, match=r"sample_weight is -1\.0 at row 3"):
        KernelClassifier().fit(X, y, sample_weight=np.where(np.arange(600) == 3, -1.0, 1.0))


def test_known_labels_are_checked_like_new_ones(circles):
    """Labels and rows that need no full check take a shorter way; what needs one gets it, on a trained model too."""
    X, y = circles
    for labels in (y, np.array(["no", "yes"])[y], y.astype(float), y.astype(bool)):
        model = KernelClassifier(BOGD(budget=9)).partial_fit(X, labels)
        given = [labels[:2], labels[:2].tolist(), pd.Series(labels[:2]), labels[:2, None]]
        given += [labels[:2].astype(object)] if labels.dtype.kind == "U" else []
        scores = []
        for again in given:
            twin = pickle.loads(pickle.dumps(model))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                scores.append(twin.partial_fit(X[:2], again).decision_function(X))
            assert len(caught) == (np.ndim(again) == 2)  # a column where one dimension is wanted
        assert all((score == scores[0]).all() for score in scores)
    model = KernelClassifier(BOGD(budget=9)).fit(X, y.astype(float))
    for bad, why in (
        ([0.5], "continuous"), ([np.nan], "finite"), ([np.inf], "finite"), (["a"], "of type"), ([7.0], "not among"),
        ([1.0, 1.0], "1 rows and y has 2"), ([[1.0, 0.0]], "1d array"), (None, "requires y"), ([1j], "Complex"),
        ([[1.0], [1.0, 2.0]], "inhomogeneous|sequence"), ([None], "Unknown label|None"),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=why):
            model.partial_fit(X[:1], bad)
    told = KernelClassifier(BOGD(budget=9)).partial_fit(X[:1], [2.0], classes=[0.5, 2.0])
    for _ in range(2):
        with pytest.raises(ValueError, match="continuous"):
            told.partial_fit(X[:1], [0.5])
    for rows, why in (
        (X[:1, :1], "X has 1 features"), (np.hstack([X, X])[:1], "X has 4 features"), (X[0], "2D array"),
        (X[:1] * np.nan, "NaN at row 0"), (X[:1] * np.inf, "infinity"), (X[:1].astype(complex), "Complex"),
        (np.array([["a", "b"]]), "could not convert|dtype"), (X[None, :1], "dim 3"),
    ):  # fmt: skip
        with np.errstate(all="ignore"), pytest.raises(ValueError, match=why):
            model.partial_fit(rows, [1.0])
        with np.errstate(all="ignore"), pytest.raises(ValueError, match=why):
            model.predict(rows)


# ---- probabilities ----


def test_probabilities(circles):
    X, y = circles
    for classes, learner in (
        (2, NOGD(loss="logistic")),
        (3, FOGD(loss="logistic")),
        (1, KOGD(loss="logistic")),
    ):
        labels = (y + (X[:, 0] > 0)) % classes if classes > 2 else y % classes
        model = KernelClassifier(learner).fit(X, labels)
        p = model.predict_proba(X)
        assert p.shape == (600, classes)
        assert (p >= 0).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()
        if classes == 2:
            np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))


def test_probabilities_need_the_logistic_loss(circles):
    for learner in (NOGD(), NOGD(loss="hinge"), RBP(), LinearPA()):
        model = KernelClassifier(learner)
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model.fit(*circles), "predict_proba")
        with pytest.raises(AttributeError, match="predict_proba"):
            _ = model.predict_proba
    for learner in (None, NOGD(loss="logistic")):
        assert hasattr(KernelClassifier(learner), "predict_proba")
    assert not hasattr(KernelRegressor(), "predict_proba")


# ---- input ----


def test_lists_integers_and_strided_arrays(circles):
    X, y = circles
    want = KernelClassifier(BOGD(budget=9)).fit(X, y).decision_function(X)
    wide = np.repeat(X, 2, axis=1)
    for same in (
        X.tolist(),
        np.asfortranarray(X),
        wide[:, ::2],
        scipy.sparse.csr_array(X).toarray(),
        np.array(X, np.longdouble),
    ):
        assert (KernelClassifier(BOGD(budget=9)).fit(same, y).decision_function(same) == want).all()
    assert KernelClassifier(BOGD(budget=9)).fit(X, list(y)).classes_.tolist() == [0, 1]
    X.flags.writeable = False
    assert (KernelClassifier(BOGD(budget=9)).fit(X, y).decision_function(X) == want).all()
    X.flags.writeable = True


# ---- import ----


def test_importing_stays_light():
    """No heavy module comes with `import kernelstream`, and little time beyond NumPy and scikit-learn."""
    code = """
import sys, time
import numpy, scipy.sparse, sklearn.base, sklearn.utils.validation, sklearn.utils.metaestimators
before, start = set(sys.modules), time.process_time()
import kernelstream
print(time.process_time() - start)
heavy = "pandas polars pyarrow matplotlib rich river sklearn.datasets sklearn.linear_model sklearn.svm"
heavy += " scipy.stats scipy.optimize urllib.request lzma multiprocessing.pool hypothesis pytest"
print(*[name for name in heavy.split() if name in sys.modules and name not in before])
"""
    seconds, heavy = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split("\n")[:2]
    assert heavy == ""
    assert float(seconds) < 0.3


# ---- fit is for data sets ----


@pytest.mark.parametrize("learner", [None, NOGD(budget=50), KRLS()], ids=str)
def test_rows_sorted_by_class_are_a_set_like_any_other(learner):
    X, y = load_iris(return_X_y=True)
    by_class = np.argsort(y, kind="stable")
    mixed = np.random.default_rng(0).permutation(len(y))
    ours, theirs = (cross_val_score(KernelClassifier(learner), X[o], y[o]).mean() for o in (by_class, mixed))
    assert ours > theirs - 0.05
    assert ours > 0.9


@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("estimator", [KernelClassifier, KernelRegressor])
def test_fit_without_shuffling_learns_the_rows_in_order(estimator, storage):
    X, y = load_iris(return_X_y=True)
    order = np.random.RandomState(3).permutation(len(y))
    in_order = estimator(NOGD(budget=20), shuffle=False).fit(storage(X[order]), y[order])
    shuffled = estimator(NOGD(budget=20), random_state=3).fit(storage(X), y)
    default = estimator(NOGD(budget=20)).fit(storage(X), y)
    np.testing.assert_array_equal(in_order.predict(X), shuffled.predict(X))
    for name, array in in_order.learner_.state().items():
        assert array.tobytes() == shuffled.learner_.state()[name].tobytes()
    again = estimator(NOGD(budget=20)).fit(storage(X), y)
    np.testing.assert_array_equal(default.predict(X), again.predict(X))
    names = default.learner_.state()
    assert all(names[name].tobytes() == array.tobytes() for name, array in again.learner_.state().items())
    assert any(names[name].tobytes() != array.tobytes() for name, array in shuffled.learner_.state().items())


def test_a_refused_row_is_named_by_its_place_in_what_was_given():
    X, y = np.eye(60), np.arange(60) % 2
    with pytest.raises(CapacityError) as refused:
        KernelClassifier(KOGD(max_size=20, kernel=Gaussian(gamma=1.0))).fit(X, y)
    order = np.random.RandomState(0).permutation(60)
    assert refused.value.row == order[20]


def test_shuffle_is_yes_or_no():
    with pytest.raises(ValueError, match="shuffle must be True or False, got 'yes'"):
        KernelRegressor(shuffle="yes").fit([[0.0], [1.0]], [0.0, 1.0])


def test_a_saved_model_knows_how_it_shuffles(tmp_path):
    for state in (5, None, np.random.RandomState(0)):
        model = KernelClassifier(shuffle=False, random_state=state).fit([[0.0], [1.0]] * 5, [0, 1] * 5)
        model.save(tmp_path / "model")
        loaded = kernelstream.load(tmp_path / "model")
        assert loaded.shuffle is False
        assert loaded.random_state == (state if not isinstance(state, np.random.RandomState) else 0)
