"""How a class is admitted: outputs become others as a matrix would say it, one column of numbers per class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelstream.labels import add_class, outputs_of, unknown_labels, with_more_outputs
from kernelstream.learners import KRLS, NOGD


def matrix(n: int, place: int, share: float) -> np.ndarray:
    """The slow and obvious version: new outputs are ``old @ matrix``."""
    mix = np.zeros((outputs_of(n), outputs_of(n + 1)))
    others = [code for code in range(n + 1) if code != place]
    if n <= 1:
        mix[0, 0] = -1.0 if (n, place) == (1, 1) else 1.0
    elif n == 2:
        mix[0, others[0]], mix[0, others[1]] = -share, share
    else:
        for before, after in enumerate(others):
            mix[before, after] = 1.0
    return mix


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("kind", [NOGD, KRLS])
def test_outputs_become_others_as_the_matrix_says(kind: Any, n: int) -> None:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(30, 3))
    targets = {0: np.ones(30), 1: np.ones(30), 2: rng.choice([-1.0, 1.0], 30)}.get(
        n, rng.integers(0, max(1, n), 30).astype(float)
    )
    for place in range(n + 1):
        learner = kind().start(3, outputs_of(n))
        if n:
            learner.run(X, targets)
        before = learner.score(X)
        mix, moved = add_class(learner, n, place)
        said = matrix(n, place, learner.pair_share)
        assert moved.tolist() == [code for code in range(n + 1) if code != place]
        assert mix.new.tolist() == (~said.any(axis=0)).tolist()
        assert np.array_equal(mix.of(before), before @ said)
        if n:
            np.testing.assert_allclose(learner.score(X), before @ said, rtol=1e-12, atol=1e-12)
        laid = with_more_outputs(before, mix)
        assert np.array_equal(laid[:, ~mix.new], (before @ said)[:, ~mix.new])
        assert (laid[:, mix.new] == laid[:, ~mix.new].min(axis=1, keepdims=True)).all()


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ([1, 3, 5], [0, 1, 2, 3, 5, 6]),
        (["a", "cc"], ["a", "b", "cc", "ccc"]),
        ([1.0, 2.0], [1, 3]),
        ([], [1, 2]),
    ],
)
def test_unknown_labels(classes: list[Any], labels: list[Any]) -> None:
    found = unknown_labels(np.array(classes), np.array(labels))
    assert found.tolist() == [label not in classes for label in labels]
