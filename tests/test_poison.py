"""A row whose step would not be finite is refused, and the state is exactly what it was before that row."""

from __future__ import annotations

import numpy as np
import pytest

from fuzz_models import MORE, SMALL
from kernelstream import kernels, learners
from kernelstream.errors import CapacityError, ScoreOverflowError
from kernelstream.rows import as_rows

NAMES = list(learners.registered(plugins=False))
HUGE = {8: (1e30, 1e154, 1e200, 1e300, 1.7e308), 4: (1e18, 1e30, 3e38)}
TINY = {8: (1e-300, 5e-324), 4: (1e-300, 5e-324)}


def cases():
    for name in NAMES:
        kind = getattr(learners, name)
        names = kind._get_param_names()
        given = SMALL.get(name, {"budget": 5} if "budget" in names else {})
        all_options = [given, *MORE.get(name, [])]
        if "loss" in names:
            all_options.append(given | {"loss": "squared"})
        if "kernel" in names and name not in ("FOGD", "DualSGD", "RRF"):
            all_options.append(given | {"kernel": kernels.Linear()})
        for number, options in enumerate(all_options):
            for dtype in (np.float64, np.float32):
                yield pytest.param(kind, options, dtype, id=f"{name}-{number}-{np.dtype(dtype).name}")


def same(a, b):
    return a.keys() == b.keys() and all(a[name].tobytes() == b[name].tobytes() for name in a)


def finite(state):
    return all(np.isfinite(array).all() for name, array in state.items() if name != "epsilon")


def poisons(rng, dtype, regression):
    """Rows, targets and weights of which one is huge (or tiny)."""
    size = np.dtype(dtype).itemsize
    x = rng.normal(size=(1, 3))
    for huge in HUGE[size]:
        yield np.full((1, 3), huge), 1.0, 1.0
        yield np.array([[huge, -huge, 0.0]]), -1.0, 1.0
        yield np.array([[huge, 1.0, 0.0]]), 1.0, huge
        yield x, 1.0, huge
        yield x, -1.0, huge
        yield 1e15 * x, -1.0, huge
        if regression:
            yield x, huge, 1.0
            yield x, -huge, huge
    for tiny in TINY[size]:
        yield x, -1.0, tiny
        yield 2 * x, 1.0, tiny


@pytest.mark.parametrize(("kind", "options", "dtype"), list(cases()))
def test_poison(kind, options, dtype):
    for task in ("classes", "three classes", "regression"):
        regression = task == "regression"
        outputs = 3 if task == "three classes" else 1
        try:
            learner = kind(**options).start(3, outputs, regression=regression, dtype=dtype)
        except ValueError:  # not for this task
            continue
        rng = np.random.default_rng(0)
        X = rng.normal(size=(160, 3))
        y = np.digitize(X[:, 0], [-0.5, 0.5]).astype(float) if outputs == 3 else np.sign(X[:, 0] + 0.1)
        learner.run(as_rows(X, dtype), y)
        start = learner.state()
        assert finite(start)
        refused = 0
        for x, target, weight in poisons(rng, dtype, regression):
            if outputs == 3:
                target = float(target > 0)
            before = learner.state()
            try:
                with np.errstate(all="ignore"):
                    learner.run(as_rows(x, dtype), np.array([target]), np.array([weight]))
            except (ScoreOverflowError, CapacityError):
                refused += 1
                assert same(learner.state(), before), (task, x, target, weight)
            state = learner.state()
            bad = [name for name in state if name != "epsilon" and not np.isfinite(state[name]).all()]
            assert not bad, (task, x, target, weight, bad)
            if not same(state, before):
                learner.restore(start)  # each poison meets the same model
