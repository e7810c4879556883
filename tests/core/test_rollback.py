"""A NewtonMixture goes back to what it was: its local memory by a journal of what changed, all else by a copy.

`check_rollback` of the package's own checks looks at every learner; here are the ways a local memory changes: rows that take
the place of others, cells that split, are emptied and used again, landmarks and relevances that move, and other models' rows.
"""

from __future__ import annotations

import numpy as np
import pytest

from kernelstream.learners import NewtonMixture
from kernelstream.rows import as_rows

OUTPUTS = {"two classes": 1, "three classes": 3, "regression": 1}
TASKS = list(OUTPUTS)


def stream(task, rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [1.0, 1.0, 0.1] + 0.01 * np.arange(rows)[:, None] * [1.0, 0.0, 0.0]
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=rows)
    if task == "two classes":
        y = np.where(y > 0, 1.0, -1.0)
    elif task == "three classes":
        y = np.digitize(y, [-0.5, 0.5]).astype(float)
    return X, y


def started(task, memory, budget=6):
    return NewtonMixture(budget, memory=memory).start(3, OUTPUTS[task], regression=task == "regression")


def bits(learner):
    state = {name: array.tobytes() for name, array in learner.state().items()}
    return state | {"nbytes": learner.nbytes}


def run(learner, X, y):
    return learner.run(as_rows(np.ascontiguousarray(X)), np.ascontiguousarray(y)).tobytes()


@pytest.mark.parametrize("memory", [6_000, 2**21])
@pytest.mark.parametrize("task", TASKS)
def test_what_was_learnt_in_between_leaves_no_trace(task, memory):
    """Of any number of rows, at any age: full or not, with or without a rebuild."""
    X, y = stream(task, 1500)
    Z, z = stream(task, 1200, seed=1)
    model, twin = started(task, memory), started(task, memory)
    rng = np.random.default_rng(2)
    at = 0
    while at < len(X):
        n = int(rng.integers(1, 8 if at < 60 else 150))  # the first rows are rebuilt from again and again
        others = int(rng.choice([1, 7, 60, 1200]))
        before, snapshot = bits(model), model.snapshot()
        run(model, Z[:others], z[:others])
        model.rollback(snapshot)
        assert bits(model) == before
        assert run(model, X[at : at + n], y[at : at + n]) == run(twin, X[at : at + n], y[at : at + n])
        at += n
    assert bits(model) == bits(twin)
    rows = twin.state()["local_rows"]
    assert (len(rows) < len(X)) == (memory < 2**20), "the ring is full, or it is not"


@pytest.mark.parametrize("task", TASKS)
def test_snapshots_within_snapshots(task):
    X, y = stream(task, 1500)
    model = started(task, 6_000)
    run(model, X[:300], y[:300])
    first, outer = bits(model), model.snapshot()
    run(model, X[300:340], y[300:340])
    for undone in (True, False, True, False):
        second, inner = bits(model), model.snapshot()
        run(model, X[400:1400], y[400:1400])
        if undone:
            model.rollback(inner)
            assert bits(model) == second
        del inner
        run(model, X[340:350], y[340:350])
    model.rollback(outer)
    assert bits(model) == first


@pytest.mark.parametrize("task", TASKS)
def test_what_a_merge_added_is_undone(task):
    X, y = stream(task, 600)
    base, part = started(task, 6_000), started(task, 6_000)
    run(base, X[:300], y[:300])
    part.restore(base.state())
    part.hold()
    run(part, X[300:], y[300:])
    learnt = part.delta_since(base.state(), 300, "0")
    before, snapshot = bits(base), base.snapshot()
    base.add_delta(learnt)
    assert bits(base)["local_rows"] != before["local_rows"]
    base.rollback(snapshot)
    assert bits(base) == before


def test_a_snapshot_serves_once_and_its_model_alone():
    X, y = stream("two classes", 400)
    model, twin = started("two classes", 6_000), started("two classes", 6_000)
    run(model, X[:200], y[:200])
    run(twin, X[:200], y[:200])
    core, before = model._core, bits(model)
    snapshot, other = core.snapshot(), twin._core.snapshot()
    run(model, X[200:], y[200:])
    later = core.snapshot()
    core.rollback(snapshot)
    for useless in (snapshot, later, other):
        with pytest.raises(ValueError, match="not a snapshot of this model"):
            core.rollback(useless)
    assert bits(model) == before
    assert run(model, X[200:], y[200:]) == run(twin, X[200:], y[200:])
    assert bits(model) == bits(twin)
