"""BSGD and Doubly SGD against their oracles."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from kernelstream import Gaussian, Laplacian, Matern, Polynomial, RationalQuadratic
from kernelstream.learners import BSGD, DoublySGD
from kernelstream.learners.doublysgd import hashed_frequencies
from kernelstream.rows import as_rows
from oracles import budgeted as oracles
from oracles import kernels as oracle_kernels
from oracles.losses import make_losses

TASKS = ["binary", "classes", "regression"]


def stream(task, n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    f = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    w = rng.choice([0.0, 0.5, 1.0, 2.0], n)
    y = {
        "regression": f,
        "classes": np.digitize(f, [-0.3, 0.3]).astype(float),
        "binary": np.where(f > 0, 1.0, -1.0),
    }[task]
    return X, y, w


def outputs(task):
    return {"outputs": 3 if task == "classes" else 1, "regression": task == "regression"}


@pytest.mark.parametrize("maintenance", ["merging", "removal"])
@pytest.mark.parametrize("eta", [0.5, np.inf])
@pytest.mark.parametrize("task", TASKS)
def test_bsgd_follows_the_oracle(task, eta, maintenance):
    if task == "regression" and eta == np.inf:
        return  # the steps of Pegasos diverge for a squared loss
    X, y, w = stream(task)
    loss = "squared" if task == "regression" else "hinge"
    learner = BSGD(budget=7, eta=eta, lam=0.05, maintenance=maintenance, kernel=Gaussian(gamma=0.3)).start(
        3, **outputs(task)
    )
    slow = oracles.BSGD(
        kernel=oracle_kernels.gaussian(0.3),
        gamma=0.3,
        budget=7,
        eta=eta,
        lam=0.05,
        merging=maintenance == "merging",
        loss=make_losses()[loss],
        **outputs(task),
    )
    want = slow.run(X, y, w)
    np.testing.assert_allclose(learner.run(as_rows(X), y, w), want, rtol=1e-7, atol=1e-7 * np.abs(want).max())
    np.testing.assert_allclose(learner.state()["points"], slow.points, atol=1e-7)
    assert learner.n_points == 7
    assert slow.merged > 20 or maintenance == "removal"


def test_bsgd_removal_takes_any_kernel_and_merging_says_which():
    X, y, w = stream("binary")
    kernel = Polynomial(degree=2, gamma=0.3, coef0=0.5)
    learner = BSGD(budget=7, lam=0.05, maintenance="removal", kernel=kernel).start(3)
    slow = oracles.BSGD(
        kernel=oracle_kernels.polynomial(0.3, 0.5, 2),
        budget=7,
        eta=1.0,
        lam=0.05,
        merging=False,
        loss=make_losses()["hinge"],
        **outputs("binary"),
    )
    np.testing.assert_allclose(learner.run(as_rows(X), y, w), slow.run(X, y, w), atol=1e-8)
    with pytest.raises(ValueError, match="merging is for the Gaussian kernel"):
        BSGD(kernel=kernel)


def test_merging_loses_less_than_removal():
    """The distance of f from that without a budget, over three streams."""
    for seed in range(3):
        X, y, _ = stream("binary", 200, seed)
        free = BSGD(budget=1000, lam=0.02, kernel=Gaussian(gamma=0.3)).start(3)
        free.run(as_rows(X), y)
        want, off = free.score(as_rows(X)), {}
        for how in ("merging", "removal"):
            learner = BSGD(budget=25, lam=0.02, maintenance=how, kernel=Gaussian(gamma=0.3)).start(3)
            learner.run(as_rows(X), y)
            off[how] = np.abs(learner.score(as_rows(X)) - want).mean()
        assert off["merging"] < off["removal"]


@pytest.mark.parametrize("task", TASKS)
def test_doublysgd_follows_the_oracle(task):
    X, y, w = stream(task)
    kernel = Gaussian(gamma=0.3)
    learner = DoublySGD(features=4, eta=0.4, lam=0.05, kernel=kernel, seed=3).start(3, **outputs(task))
    slow = oracles.DoublySGD(
        frequencies=lambda i: hashed_frequencies(kernel, 3, 4 * i, 4 * i + 4, 3),
        eta=0.4,
        lam=0.05,
        loss=make_losses()["squared" if task == "regression" else "hinge"],
        **outputs(task),
    )
    np.testing.assert_allclose(learner.run(as_rows(X), y, w), slow.run(X, y, w), atol=1e-9)
    assert learner.n_points == len(slow.a) > 30


def test_the_frequencies_stand_for_the_kernel():
    X = np.random.default_rng(1).normal(size=(25, 3))
    for kernel in (
        Gaussian(gamma=0.3),
        Laplacian(gamma=0.3),
        Matern(nu=1.5, gamma=0.3),
        RationalQuadratic(0.8, 0.3),
    ):
        W = hashed_frequencies(kernel, 3, 0, 20_000, 5)
        made = np.cos((X[:, None] - X[None]) @ W).mean(axis=2)
        assert np.abs(made - kernel(X)).max() < 0.04
    normal = hashed_frequencies(Gaussian(gamma=0.5), 1, 0, 5000, 2).ravel()
    assert scipy.stats.kstest(normal, "norm").pvalue > 1e-3
