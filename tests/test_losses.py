"""Losses: values, slopes and curvatures, against the oracles and against differences of each other."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.losses import make_losses
from sklearn.base import clone

from kernelstream import KernelClassifier, KernelRegressor
from kernelstream.learners import BOGD, FOGD, KOGD, NOGD, TruncatedKOGD
from kernelstream.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Squared, SquaredHinge, as_loss

ORACLES = make_losses(epsilon=0.3, delta=0.8)
LOSSES = [Hinge(), SquaredHinge(), Logistic(), Squared(), EpsilonInsensitive(0.3), Huber(0.8)]
each_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)


def points(loss):
    """Scores and targets: -1 and +1 for classification, anything for regression; kinks and far ends included."""
    f = np.concatenate([np.linspace(-4, 4, 81), [0.3, -0.3, 0.8, 1.0, -1.0, 1e3, -1e3, 1e8]])
    y = [-1.0, 1.0] if not loss.regression else [-1.0, 0.0, 1.0, 2.7]
    return (grid.ravel() for grid in np.meshgrid(f, y))


@each_loss
def test_against_the_oracles(loss):
    oracle = ORACLES[loss.name]
    f, y = points(loss)
    for what in ("value", "slope", "curvature"):
        want = [getattr(oracle, what)(float(a), float(b)) for a, b in zip(f, y, strict=True)]
        np.testing.assert_allclose(getattr(loss, what)(f, y), want, rtol=1e-12, atol=1e-15)


@each_loss
def test_slope_and_curvature_are_finite_differences(loss):
    rng = np.random.default_rng(0)
    f = rng.uniform(-3, 3, 400)
    y = rng.choice([-1.0, 1.0], 400) if not loss.regression else rng.normal(size=400)
    h = 1e-6
    kink = np.abs(np.abs(f - y) - loss.width) < 1e-4 if loss.width else np.abs(y * f - 1) < 1e-4
    f, y = f[~kink], y[~kink]
    np.testing.assert_allclose(
        loss.slope(f, y), (loss.value(f + h, y) - loss.value(f - h, y)) / (2 * h), atol=1e-7
    )
    np.testing.assert_allclose(
        loss.curvature(f, y), (loss.slope(f + h, y) - loss.slope(f - h, y)) / (2 * h), atol=1e-7
    )


def test_far_ends_of_the_logistic_loss():
    loss = Logistic()
    assert loss.value([1e4, -1e4], 1).tolist() == [0.0, 1e4]
    assert loss.slope([1e4, -1e4], 1).tolist() == [0.0, -1.0]
    assert loss.curvature([1e4, -1e4, 0.0], 1).tolist() == [0.0, 0.0, 0.25]
    assert loss.value(-40.0, -1) == pytest.approx(np.exp(-40.0), rel=1e-12)


@each_loss
def test_shapes_are_broadcast(loss):
    made = loss.value(np.zeros((3, 1)), [1.0, -1.0])
    assert made.shape == (3, 2)
    assert loss.slope(0.5, 1.0).shape == ()
    assert loss.curvature([], 1.0).shape == (0,)


def test_as_loss():
    for loss in LOSSES:
        assert as_loss(loss) is loss
        assert type(as_loss(loss.name)) is type(loss)
    for bad in ("zero_one", Hinge, None, 3):
        with pytest.raises(ValueError, match="loss must be one of 'hinge'"):
            as_loss(bad)


def test_widths_are_checked():
    for bad in (-0.1, np.nan, np.inf, "wide"):
        with pytest.raises(ValueError, match="epsilon must be a finite number >= 0"):
            EpsilonInsensitive(bad)
    for bad in (0, -1, np.nan, "wide"):
        with pytest.raises(ValueError, match="delta must be a finite number > 0"):
            Huber(bad)
    assert clone(Huber(2.0)).width == 2.0
    assert EpsilonInsensitive(0).width == 0.0


@pytest.mark.parametrize("learner", [BOGD, FOGD, KOGD, NOGD, TruncatedKOGD])
@each_loss
def test_which_task_takes_which_loss(learner, loss):
    X, y = np.arange(8.0)[:, None], np.arange(8) % 2
    for model, fits in ((KernelClassifier, loss.classification), (KernelRegressor, loss.regression)):
        for given in (loss, loss.name):
            made = model(learner(loss=given))
            if fits:
                made.fit(X, y)
            else:
                with pytest.raises(ValueError, match=f"the {loss.name} loss is not for"):
                    made.fit(X, y)
    with pytest.raises(ValueError, match="loss must be one of"):
        learner(loss="zero_one")
