"""River's models that know columns: words, times and gaps in dicts."""

import copy

import numpy as np
import pandas as pd
import pytest

from kernelstream import KernelClassifier
from kernelstream.learners import NOGD

pytest.importorskip("river")
from kernelstream.river import Classifier, Regressor

RNG = np.random.default_rng(2)
ROWS = [
    {"age": float(a), "job": str(j), "when": f"2026-01-{d:02d}"} if a > 20 else {"age": None, "job": str(j)}
    for a, j, d in zip(
        RNG.integers(15, 70, 300),
        RNG.choice(["clerk", "nurse", "smith"], 300),
        RNG.integers(1, 28, 300),
        strict=True,
    )
]
LABELS = [row["job"] == "nurse" for row in ROWS]
KINDS = {"age": "number", "job": "category", "when": "time"}


@pytest.mark.parametrize("columns", ["auto", KINDS])
def test_words_times_and_gaps(columns):
    model = Classifier(columns=columns)
    right = 0
    for x, y in zip(ROWS, LABELS, strict=True):
        right += model.predict_one(x) == y
        model.learn_one(x, y)
    assert right > 270
    assert model.predict_one({"job": "nurse"}) is True
    assert model.predict_one({"job": "never seen", "other": "x"}) in (True, False)
    assert 0 <= model.predict_proba_one(ROWS[0])[True] <= 1


def test_the_same_features_as_the_estimator():
    river, estimator = Classifier(NOGD(20), columns=KINDS), KernelClassifier(NOGD(20), columns=KINDS)
    for x, y in zip(ROWS, LABELS, strict=True):
        river.learn_one(x, y)
    estimator.partial_fit(ROWS, LABELS, classes=[False, True])
    assert (
        river._encoder.get_feature_names_out().tolist() == estimator.encoder_.get_feature_names_out().tolist()
    )


def test_many_rows_at_once():
    one, many = Regressor("NOGD", columns=KINDS), Regressor("NOGD", columns=KINDS)
    y = pd.Series([float(len(row["job"])) for row in ROWS])
    for x, target in zip(ROWS, y, strict=True):
        one.learn_one(x, target)
    frame = pd.DataFrame(ROWS)
    many.learn_many(frame, y)
    np.testing.assert_allclose(many.predict_many(frame), [one.predict_one(x) for x in ROWS], atol=1e-9)


def test_a_refused_row_changes_nothing():
    model = Classifier(columns=KINDS)
    model.learn_one(ROWS[0], True)
    before = copy.deepcopy(model.__dict__["_encoder"].description)
    with pytest.raises(ValueError, match="label"):
        model.learn_one({"age": 3.0, "job": "new"}, None)
    assert model._encoder.description == before
    assert model._labels == [True]


def test_wrong_columns():
    with pytest.raises(ValueError, match="columns must be"):
        Classifier(columns=3)
    with pytest.raises(ValueError, match="unknown learner"):
        Classifier("nothing")
