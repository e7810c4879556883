"""Weights of classes: those of sample weights to the bit, balanced ones in any chunks, saved, and in River's interface."""

import numpy as np
import pytest
from sklearn.metrics import recall_score
from sklearn.utils.class_weight import compute_sample_weight

import kernelstream
from kernelstream import KernelClassifier
from kernelstream.learners import BOGD, NOGD, NewtonMixture

LEARNERS = [NewtonMixture(budget=30), NOGD(budget=30, loss="logistic"), BOGD(budget=30)]


def rare(n=600, classes=("no", "yes"), share=0.06):
    rng = np.random.default_rng(0)
    y = np.array(classes)[
        rng.choice(len(classes), n, p=[1 - share * (len(classes) - 1)] + [share] * (len(classes) - 1))
    ]
    X = rng.standard_normal((n, 3)) + np.searchsorted(classes, y)[:, None]
    return X, y


def slow_balanced(y, sample_weight):
    """The weights of a stream, row by row."""
    counts, weights = {}, []
    for label, weight in zip(y.tolist(), sample_weight, strict=True):
        if weight > 0:
            counts[label] = counts.get(label, 0) + 1
        weights.append(weight * (sum(counts.values()) / max(1, len(counts) * counts.get(label, 0))))
    return np.array(weights)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
def test_the_same_as_sample_weights_to_the_bit(learner):
    X, y = rare(classes=("a", "b", "c"))
    if not learner.multiclass:
        y = np.where(y == "c", "b", y)
    given = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    by_hand = given * np.where(y == "a", 0.25, np.where(y == "b", 3.0, 1.0))
    balanced = given.copy()
    balanced[given > 0] *= compute_sample_weight("balanced", y[given > 0])
    for class_weight, fit_weight, stream_weight in (
        ({"a": 0.25, "b": 3.0}, by_hand, by_hand),
        ("balanced", balanced, slow_balanced(y, given)),
    ):
        ours = KernelClassifier(learner, class_weight=class_weight)
        theirs = KernelClassifier(learner)
        np.testing.assert_array_equal(
            ours.fit(X, y, sample_weight=given).decision_function(X),
            theirs.fit(X, y, sample_weight=fit_weight).decision_function(X),
        )
        ours, theirs = KernelClassifier(learner, class_weight=class_weight), KernelClassifier(learner)
        np.testing.assert_array_equal(
            ours.decision_then_learn(X, y, sample_weight=given),
            theirs.decision_then_learn(X, y, sample_weight=stream_weight),
        )


@pytest.mark.parametrize("class_weight", ["balanced", {"yes": 7.5}])
def test_chunks_and_files_do_not_matter(class_weight, tmp_path):
    X, y = rare()
    whole = KernelClassifier(NOGD(budget=30), class_weight=class_weight).partial_fit(X, y)
    parts, at, rng = KernelClassifier(NOGD(budget=30), class_weight=class_weight), 0, np.random.default_rng(2)
    while at < len(y):
        stop = at + int(rng.integers(1, 90))
        parts.partial_fit(X[at:stop], y[at:stop])
        parts.save(tmp_path / "model")
        parts = kernelstream.load(tmp_path / "model")
        at = stop
    assert parts.get_params()["class_weight"] == class_weight
    np.testing.assert_array_equal(whole.decision_function(X), parts.decision_function(X))


def test_a_rare_class_is_found():
    rng = np.random.default_rng(3)
    y = (rng.uniform(size=3000) < 0.014).astype(int)
    X = rng.standard_normal((3000, 4)) + 1.2 * y[:, None]
    found = {}
    for name, weight in {"none": None, "72": {1: 72.0}, "1/72": {0: 1 / 72}, "balanced": "balanced"}.items():
        model = KernelClassifier(NewtonMixture(budget=30), class_weight=weight).partial_fit(X, y)
        found[name] = recall_score(y, model.predict(X))
    assert found["none"] < 0.5
    assert min(found["72"], found["1/72"], found["balanced"]) > 0.6


def test_what_is_refused():
    X, y = rare(50)
    for wrong in ("even", 3, {"yes": -1.0}, {"yes": np.nan}, {"yes": "much"}):
        for call in (lambda m: m.fit(X, y), lambda m: m.partial_fit(X, y)):
            model = KernelClassifier(NOGD(), class_weight=wrong)
            with pytest.raises(ValueError, match="class_weight"):
                call(model)
            assert not hasattr(model, "learner_")


def test_river():
    river = pytest.importorskip("kernelstream.river")
    X, y = rare(200)
    for class_weight in ("balanced", {"yes": 5.0}):
        model = river.Classifier(NOGD(budget=30), class_weight=class_weight)
        for row, label in zip(X, y, strict=True):
            model.learn_one(dict(enumerate(row.tolist())), str(label))
        ours = KernelClassifier(NOGD(budget=30), class_weight=class_weight).partial_fit(X, y)
        said = [model.predict_one(dict(enumerate(row.tolist()))) for row in X]
        assert said == ours.predict(X).tolist()
