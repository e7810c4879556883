"""How a class is admitted: outputs become others as a matrix would say it, one column of numbers per class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelstream import learners
from kernelstream.labels import add_class, outputs_of, unknown_labels, with_label, with_more_outputs
from kernelstream.learners import KRLS, NOGD, Learner
from kernelstream.learners.kernel_learner import KernelLearner


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


def mixing() -> list[str]:
    """The learners whose core mixes the outputs itself."""
    kinds = learners.registered(plugins=False).items()
    return [name for name, kind in kinds if issubclass(kind, KernelLearner) and kind.mixing_parts]


@pytest.mark.parametrize("name", mixing())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", [20, 200])  # within the warm-up, and after it
def test_the_core_mixes_outputs_as_the_state_would(
    name: str, dtype: Any, rows: int, monkeypatch: Any
) -> None:
    kind, rng = getattr(learners, name), np.random.default_rng(rows)
    X = rng.normal(size=(rows, 3)).astype(dtype)
    for n in (1, 2, 3, 6) if kind.multiclass else (1,):
        codes = rng.integers(0, n, rows).astype(float)
        targets = codes if n > 2 else 2 * codes - 1 if n == 2 else np.ones(rows)
        for place in {0, 1, n}:
            quick, slow = (kind().start(3, outputs_of(n), dtype=dtype) for _ in range(2))
            for learner in (quick, slow):
                learner.run(X, targets)
            add_class(quick, n, place)
            with monkeypatch.context() as through_the_state:
                through_the_state.setattr(kind, "mix_outputs", Learner.mix_outputs)
                add_class(slow, n, place)
            for learner in (quick, slow):
                learner.run(X[:15], np.full(15, place if n > 1 else 2.0 * place - 1))
            assert quick.nbytes == slow.nbytes
            made, wanted = quick.state(), slow.state()
            assert made.keys() == wanted.keys()
            for array in made:
                assert made[array].tobytes() == wanted[array].tobytes(), array


def test_classes_with_one_label_more() -> None:
    for classes, label in (([1, 3], 2), ([], 5), (["a"], "bcd"), ([1, 2], 0), (np.array([1], np.int8), 1000)):
        known = np.asarray(classes) if len(classes) else np.array([], np.int64)
        made, place = with_label(known, np.asarray(label)[()])
        wanted = np.unique(np.append(known, label))
        assert made.tolist() == wanted.tolist()
        assert made[place] == label
    made, place = with_label(np.array(["a", "c"], object), "b")
    assert (made.tolist(), made.dtype, place) == (["a", "b", "c"], object, 1)


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
