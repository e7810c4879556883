"""OKS-SIL with every kernel that has a scale, against an oracle whose derivatives are differences of kernel values."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse

from kernelstream import (
    ChiSquared,
    Gaussian,
    Intersection,
    KernelClassifier,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    load,
)
from kernelstream.learners import OKSSIL
from kernelstream.rows import as_rows
from oracles import oks as oracle
from oracles.losses import make_losses

SETTINGS = {
    "budget": 10,
    "eta": 0.3,
    "rho": 0.2,
    "rho_decay": 0.0,
    "nu": 0.3,
    "samples": 3,
    "gamma": 0.5,
    "seed": 7,
}


def squares(gamma, x, z):
    return float(np.sum(gamma * (x - z) ** 2))


def chi(gamma, x, z):
    both = x + z
    return float(np.sum((gamma * np.ones(len(x)))[both > 0] * ((x - z)[both > 0] ** 2 / both[both > 0])))


def matern(nu):
    def value(gamma, x, z):
        s = math.sqrt(4 * nu * squares(gamma, x, z))
        return {0.5: 1.0, 1.5: 1 + s, 2.5: 1 + s + s * s / 3}[nu] * math.exp(-s)

    return value


KERNELS = [
    (Gaussian(), lambda g, x, z: math.exp(-squares(g, x, z))),
    (Laplacian(), lambda g, x, z: math.exp(-float(np.sum(g * np.abs(x - z))))),
    (Matern(nu=0.5), matern(0.5)),
    (Matern(nu=1.5), matern(1.5)),
    (Matern(nu=2.5), matern(2.5)),
    (RationalQuadratic(alpha=0.7), lambda g, x, z: (1 + squares(g, x, z) / 0.7) ** -0.7),
    (ChiSquared(), lambda g, x, z: math.exp(-chi(g, x, z))),
    (Polynomial(degree=2, coef0=0.4), lambda g, x, z: (float(np.sum(g * x * z)) + 0.4) ** 2),
]
each_kernel = pytest.mark.parametrize(
    ("kernel", "value"), KERNELS, ids=lambda v: str(v) if not callable(v) else type(v).__name__
)


def stream(task, n=120):
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(n, 3)))  # histograms, for ChiSquared
    signal = X[:, 0] - X[:, 1] + 0.2 * rng.normal(size=n)
    if task == "regression":
        return X, signal
    return X, np.digitize(signal, [-0.3, 0.3]).astype(float) if task == "classes" else np.where(
        signal > 0, 1.0, -1.0
    )


@pytest.mark.parametrize("anisotropic", [False, True])
@pytest.mark.parametrize(
    ("task", "logarithm"), [("binary", False), ("binary", True), ("classes", False), ("regression", True)]
)
@each_kernel
def test_follows_the_oracle(kernel, value, task, logarithm, anisotropic):
    """With the paper's step of gamma, and with the step of its logarithm."""
    X, y = stream(task)
    outputs = 3 if task == "classes" else 1
    step = {"rho": None, "scale_step": 0.3} if logarithm else {}
    learner = OKSSIL(**SETTINGS | step, kernel=kernel, anisotropic=anisotropic)
    learner.start(3, outputs, regression=task == "regression")
    slow = oracle.OKSSIL(
        outputs=outputs,
        budget=10,
        eta=0.3,
        rho=0.3 if logarithm else 0.2,
        decay=0.5 if logarithm else 0.0,
        logarithm=logarithm,
        nu=0.3,
        s=3,
        gamma=np.full(3 if anisotropic else 1, 0.5),
        interval=learner._interval(),
        loss=make_losses()["squared" if task == "regression" else "hinge"],
        seed=7,
        regression=task == "regression",
        value=value,
        gradient=oracle.difference(value),
    )
    w = np.random.default_rng(1).uniform(
        0.5, 1.5, len(y)
    )  # or points of equal weight, of which rounding drops one
    want = slow.run(X, y, w)
    np.testing.assert_allclose(learner.run(as_rows(X), y, w), want, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(learner.gamma_, slow.gamma if anisotropic else slow.gamma[0], rtol=1e-6)
    assert (slow.gamma != 0.5).all()
    np.testing.assert_allclose(learner.state()["points"], slow.points, atol=0)
    Z = X[:7] + 0.1
    np.testing.assert_allclose(learner.score(as_rows(Z)), slow.score(Z), rtol=1e-6, atol=1e-6)
    # the kernel that it says it has is the one it uses
    state = learner.state()
    np.testing.assert_allclose(
        learner.kernel_(Z, state["points"]) @ state["weights"], slow.score(Z), rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("anisotropic", [False, True])
@each_kernel
def test_chunks_csr_and_model_files(kernel, value, anisotropic, tmp_path):
    X, y = stream("classes")

    def made():
        return KernelClassifier(
            OKSSIL(budget=10, kernel=kernel, anisotropic=anisotropic, rho=0.05, rho_decay=0.0)
        )

    whole, parts, sparse = (made() for _ in range(3))
    whole.partial_fit(X, y, classes=[0, 1, 2])
    for i in range(0, len(X), 7):
        parts.partial_fit(X[i : i + 7], y[i : i + 7], classes=[0, 1, 2])
    sparse.partial_fit(scipy.sparse.csr_array(X), y, classes=[0, 1, 2])
    want = whole.decision_function(X)
    assert np.array_equal(parts.decision_function(X), want)
    np.testing.assert_allclose(sparse.decision_function(X), want, rtol=1e-4, atol=1e-4)
    whole.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert np.array_equal(
        again.partial_fit(X, y).decision_function(X), whole.partial_fit(X, y).decision_function(X)
    )


@pytest.mark.parametrize(
    "kernel",
    [Linear(), Intersection(), lambda X, Y: X @ Y.T, "rbf"],
    ids=["linear", "intersection", "function", "name"],
)
def test_a_kernel_without_scale_is_refused(kernel):
    with pytest.raises(ValueError, match="OKSSIL needs a kernel whose scale it can move"):
        OKSSIL(kernel=kernel)
