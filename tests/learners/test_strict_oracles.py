"""Learners and sketches against slow versions of their own, over random streams, to 1e-10 of the largest score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelstream.kernels import Gaussian
from kernelstream.learners import FOGD, RRF, DualSGD, KernelPA, ProjKA, TruncatedKOGD
from kernelstream.rows import as_rows
from kernelstream.sketches import IncrementalNystrom
from kernelstream.sketches.fourier import frequencies, spectral_draws
from oracles import kernels as oracle_kernels
from oracles import learners as oracles
from oracles.losses import LOSSES
from oracles.nolana import DualSGD as OracleDualSGD
from oracles.nolana import ExactRRF
from oracles.oks import ProjKA as OracleProjKA

GAMMA = 0.9
KERNEL, ORACLE_KERNEL = Gaussian(gamma=GAMMA), oracle_kernels.gaussian(GAMMA)
SEEDS = range(3)
TASKS = {"binary": 1, "classes": 3, "regression": 1}


def stream(task: str, seed: int, n: int = 70) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, int(rng.integers(2, 7))))
    signal = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    y = {"binary": np.where(signal > 0, 1.0, -1.0), "classes": np.digitize(signal, [-0.5, 0.5]) * 1.0}
    return X, y.get(task, signal), rng.uniform(0.2, 2.0, n) * (rng.random(n) > 0.1)


def check(learner: Any, oracle: Any, task: str, seed: int, weighted: bool = True, first: int = 0) -> None:
    """The same scores before each row, and on new rows after."""
    X, y, w = stream(task, seed)
    learner.start(X.shape[1], TASKS[task], regression=task == "regression")
    made = oracle(X.shape[1], TASKS[task], task == "regression")
    want = made.run(X, y, w if weighted else None)
    scale = np.abs(want).max()
    got = learner.run(as_rows(X), y, w if weighted else None)
    np.testing.assert_allclose(got[first:], want[first:], rtol=0, atol=1e-10 * scale)
    new = stream(task, seed + 100)[0][:20, :1] * np.ones(X.shape[1])
    np.testing.assert_allclose(learner.score(as_rows(new)), made.score(new), rtol=0, atol=1e-10 * scale)
    assert scale > 0.02


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("task", "loss"), [("binary", "hinge"), ("classes", "logistic"), ("regression", "huber")]
)
def test_fogd_and_truncated_kogd(task: str, loss: str, seed: int) -> None:
    step: dict[str, Any] = {"eta": 0.3, "lam": 0.05}
    check(
        TruncatedKOGD(7, loss=loss, kernel=KERNEL, **step),
        lambda _, outputs, regression: oracles.TruncatedKOGD(
            budget=7, loss=LOSSES[loss], kernel=ORACLE_KERNEL, outputs=outputs, regression=regression, **step
        ),
        task,
        seed,
    )
    check(
        FOGD(40, loss=loss, kernel=KERNEL, seed=seed, **step),
        lambda width, outputs, regression: oracles.FOGD(
            W=frequencies(KERNEL, width, 20, seed),
            loss=LOSSES[loss],
            outputs=outputs,
            regression=regression,
            **step,
        ),
        task,
        seed,
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
@pytest.mark.parametrize("task", TASKS)
def test_kernel_pa(task: str, variant: str, seed: int) -> None:
    options: dict[str, Any] = {"variant": variant, "C": 0.4, "epsilon": 0.1}
    check(
        KernelPA(kernel=KERNEL, **options),
        lambda _, outputs, regression: oracles.KernelPA(
            kernel=ORACLE_KERNEL, outputs=outputs, regression=regression, **options
        ),
        task,
        seed,
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("neighbours", [1, 3])
@pytest.mark.parametrize(
    ("task", "loss"), [("binary", "hinge"), ("classes", "logistic"), ("regression", "squared")]
)
def test_dualsgd_far_over_its_budget(task: str, loss: str, neighbours: int, seed: int) -> None:
    check(
        DualSGD(9, n_components=30, neighbours=neighbours, lam=0.1, loss=loss, kernel=KERNEL, seed=seed),
        lambda width, outputs, regression: OracleDualSGD(
            kernel=ORACLE_KERNEL, W=frequencies(KERNEL, width, 15, seed), outputs=outputs, budget=9, k=neighbours,
            lam=0.1, delay=10.0 if loss == "squared" else 0.0, loss=LOSSES[loss], regression=regression,
        ),
        task,
        seed,
        weighted=False,
    )  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("task", "loss"), [("binary", "hinge"), ("classes", "logistic"), ("regression", "squared")]
)
def test_rrf_with_steps_of_its_scales(task: str, loss: str, seed: int) -> None:
    check(
        RRF(30, eta=0.3, scale_step=0.03, lam=0.01, loss=loss, kernel=KERNEL, seed=seed),
        lambda width, outputs, regression: ExactRRF(
            e=spectral_draws(KERNEL, width, 15, seed), g=np.full(width, np.sqrt(2 * GAMMA)), outputs=outputs,
            eta=0.3, eta_g=0.03, lam=0.01, loss=LOSSES[loss], regression=regression,
        ),
        task,
        seed,
    )  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("task", ["binary", "classes"])
def test_projka(task: str, seed: int) -> None:
    sigmas = [2.0**e for e in range(-3, 4)]
    check(
        ProjKA(8, eta=0.4, bandwidths=sigmas, warmup=20),
        lambda _, outputs, regression: OracleProjKA(
            budget=8, eta=0.4, sigmas=sigmas, warmup=20, outputs=outputs
        ),
        task,
        seed,
        weighted=False,
        first=2,  # before two rows there is nothing to choose a bandwidth by
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rank", [1, 5, 30])
def test_inys_is_the_nystrom_approximation_of_its_rank(rank: int, seed: int) -> None:
    """K~ = C W_k^+ C^T, W_k the best approximation of rank k of the kernel matrix of the first B rows."""
    X = stream("binary", seed)[0]
    sketch = IncrementalNystrom(30, rank=rank, kernel=KERNEL)
    for start in range(0, len(X), 13):
        sketch.partial_fit(X[start : start + 13])
    C, W = ORACLE_KERNEL(X, X[:30]), ORACLE_KERNEL(X[:30], X[:30])
    U, singular, Vt = np.linalg.svd(W)
    want = C @ Vt[:rank].T @ np.diag(1 / singular[:rank]) @ U[:, :rank].T @ C.T
    Z = sketch.transform(X)
    assert Z.shape == (len(X), rank)
    np.testing.assert_allclose(Z @ Z.T, want, rtol=0, atol=1e-10)
