"""scikit-learn's conventions beyond its own checks: learners by name, nested parameters of defaults, routing, pictures."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_validate

import kernelstream
from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.kernels import Laplacian
from kernelstream.learners import BOGD, NOGD, NewtonMixture

RNG = np.random.default_rng(1)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("name", ["BOGD", "bogd"])
def test_a_learner_by_name(name, tmp_path):
    model = KernelClassifier(name).partial_fit(X, Y)
    same = KernelClassifier(BOGD()).partial_fit(X, Y)
    assert (model.decision_function(X) == same.decision_function(X)).all()
    assert clone(model).learner == name
    model.save(tmp_path / "m")
    assert isinstance(kernelstream.load(tmp_path / "m").learner, BOGD)


def test_an_unknown_learner():
    with pytest.raises(ValueError, match="unknown learner 'BOGDD'; known are"):
        KernelClassifier("BOGDD").fit(X, Y)
    with pytest.raises(TypeError, match="or the name of one, got <class"):
        KernelClassifier(BOGD).fit(X, Y)


@pytest.mark.parametrize("model", [KernelClassifier(), KernelRegressor()])
def test_parameters_of_the_default(model):
    assert model.get_params()["learner__budget"] == NewtonMixture().budget
    assert model.get_params()["learner"] is None
    changed = clone(model).set_params(learner__budget=50)
    assert changed.learner.budget == 50
    assert clone(changed).get_params()["learner__budget"] == 50
    assert changed.fit(X, Y).learner_.budget == 50
    assert model.learner is None


@pytest.mark.parametrize("learner", ["BOGD", BOGD()])
def test_parameters_of_the_default_kernel(learner):
    model = KernelClassifier(learner)
    assert model.get_params()["learner__kernel__gamma"] is None
    model.set_params(learner__kernel__gamma=0.3, learner__budget=7)
    assert (model.learner.kernel.gamma, model.learner.budget) == (0.3, 7)
    assert model.fit(X, Y).learner_.kernel_.gamma == 0.3
    model.set_params(learner__kernel=Laplacian(), learner__kernel__gamma=0.1)
    assert model.learner.kernel.gamma == 0.1


def test_wrong_parameters_change_nothing():
    model = KernelClassifier()
    for wrong in ({"learner__kernel__gamma": 1.0}, {"learner__budgett": 3}, {"learn__budget": 3}):
        with pytest.raises(ValueError, match="Invalid parameter"):
            model.set_params(**wrong)
    assert model.learner is None


def test_a_search_over_the_default_and_names():
    search = GridSearchCV(KernelClassifier("NOGD"), {"learner__budget": [5, 20]}, cv=2).fit(X, Y)
    assert search.best_estimator_.learner.budget in (5, 20)
    search = GridSearchCV(KernelClassifier(), {"learner": ["NOGD", "BOGD"], "scale": [True]}, cv=2).fit(X, Y)
    assert search.best_params_["learner"] in ("NOGD", "BOGD")


def test_names_and_passes():
    pd = pytest.importorskip("pandas")
    model = KernelClassifier(NOGD(budget=10)).fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_iter_ == SGDClassifier(max_iter=1, tol=None).fit(X, Y).n_iter_ == 1


def test_metadata_routing():
    with sklearn.config_context(enable_metadata_routing=True):
        model = KernelClassifier(NOGD(budget=10)).set_fit_request(sample_weight=True)
        model.set_partial_fit_request(sample_weight=True, classes=True).set_score_request(sample_weight=True)
        routed = cross_validate(model, X, Y, params={"sample_weight": np.ones(len(Y))}, cv=2)
        assert len(routed["test_score"]) == 2
        with pytest.raises(Exception, match="sample_weight"):
            cross_validate(KernelClassifier(), X, Y, params={"sample_weight": np.ones(len(Y))}, cv=2)
        KernelRegressor().set_fit_request(sample_weight=True).set_partial_fit_request(sample_weight=True)


@pytest.mark.parametrize("learner", [None, "BOGD", NOGD(budget=10)])
def test_the_picture_in_a_notebook(learner):
    model = KernelClassifier(learner)
    assert "KernelClassifier" in model._repr_html_()
    assert "KernelClassifier" in model.fit(X, Y)._repr_html_()
