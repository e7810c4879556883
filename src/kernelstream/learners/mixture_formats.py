"""States of older versions of ``NewtonMixture``: what today's core reads of them.

A model file has the format of the version that wrote it; each step below adds what came with the next one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernelstream._core import core
from kernelstream.explanations import EventLog
from kernelstream.learners.base import State, state_error
from kernelstream.rows import WIDEST_DENSE

__all__ = ["upgraded"]

#: The state of a model of the same shape that has learnt nothing.
Empty = Callable[[State], State]

#: Errors of the first rounds that the core keeps (``Outliers::kFirstErrors``).
FIRST_ERRORS = 64
#: Local experts in model files of format 2, and of formats 3 and 4; experts in those of formats 1 to 3, which had no trees, the
#: fifth now.
OLDER_LOCAL, FORMAT_3_EXPERTS, TREES = (3, 5), 6, 5
#: What model files of format 1 called the state's numbers, counters and arrays: by position, and by the beginning of the name.
FORMAT_1_NUMBERS = (
    *(
        "target_centre",
        "target_spread",
        "cusum",
        "coverage_start",
        "coverage",
        "lasting_gamma",
        "recent_gamma",
    ),
    *(
        "window_gamma",
        "noise",
        "noise_rounds",
        "recent_decay",
        "lasting_varying",
        "recent_varying",
        "labels_last_target",
    ),
)
FORMAT_1_COUNTERS = (
    *(
        "learnt",
        "lasting_age",
        "next_rebuild",
        "cusum_age",
        "recent_age",
        "pending",
        "lasting_count",
        "recent_count",
    ),
    *("window_count", "window_next", "window_rounds", "labels_last"),
)
FORMAT_1_NAMES = {
    "loose_": "least_squares_",
    "echo_stays": "labels_repeats",
    "echo_leaves": "labels_changes",
    "echo_frequency": "labels_frequency",
    "stacks": "stack_weights",
}


def upgraded(state: State, empty: Empty) -> State:
    """A state of any version as one of today.

    >>> from kernelstream.learners import NewtonMixture
    >>> learner = NewtonMixture(budget=4).start(2)
    >>> before = {name: array for name, array in learner.state().items() if "copy" not in name}  # as format 5 had it
    >>> sorted(upgraded(before, learner._empty)) == sorted(learner.state())
    True
    """
    for step in (
        *(_with_local, _with_trees, _with_local_experts),
        *(_with_copies, _with_confidences, _by_rows),
    ):
        state = step(state, empty)
    return state


def _with_confidences(state: State, empty: Empty) -> State:
    """A state of format 6: the confidences of its experts are those of a model that has learnt nothing."""
    if "shape" not in state or "confidences" in state or "confidence_variances" in state:
        return state
    return {name: array for name, array in empty(state).items() if "confidence" in name} | state


def _with_copies(state: State, empty: Empty) -> State:
    """A state of format 5, which did not count rows that are a copy of the one before apart."""
    names = ("labels_repeats", "labels_changes")
    if any(name not in state or name.replace("_", "_copy_") in state for name in names):
        return state
    return state | {name.replace("_", "_copy_"): np.zeros_like(state[name]) for name in names}


def _by_rows(state: State, empty: Empty) -> State:
    """A state of wide rows that has a number for every feature: as rows, of which the core keeps what is not zero."""
    if "shape" not in state or state["shape"][0] <= WIDEST_DENSE:
        return state
    names = [f"{memory}_{part}" for memory in core.Mixture64.MEMORIES for part in ("centre", "scale")]
    dense = [name for name in (*names, "linear_weights", "linear_squares") if name in state]
    return state | {name: np.ascontiguousarray(np.atleast_2d(state[name].T)) for name in dense}


def _with_trees(state: State, empty: Empty) -> State:
    """A state of format 3: until the lasting memory is rebuilt there are no trees, and they take no part."""
    n = FORMAT_3_EXPERTS
    shapes = {"shares": (n + 2,), "stack_weights": (2 * n,), "stack_covariances": (2 * n * n,)}
    if "shape" not in state or any(name.startswith("trees_") for name in state):
        return state
    if any(name not in state or state[name].shape != shape for name, shape in shapes.items()):
        return state
    added = {name: array for name, array in empty(state).items() if name.startswith("trees_")}
    added["shares"] = np.insert(state["shares"], TREES, 0.0)
    added["stack_weights"] = np.insert(state["stack_weights"].reshape(2, n), TREES, 0.0, axis=1).ravel()
    covariances = np.zeros((2, n + 1, n + 1))
    others = np.delete(np.arange(n + 1), TREES)
    for k, before in enumerate(state["stack_covariances"].reshape(2, n, n)):
        covariances[k][np.ix_(others, others)] = before
    return state | added | {"stack_covariances": covariances.ravel()}


def _with_local(state: State, empty: Empty) -> State:
    """A state of format 1, which gets today's names, or of format 2."""
    if "events" not in state:
        state = state | EventLog((), ()).state()
    if "learnt" in state and "ordered" not in state:  # format 2: streams only
        if state.get("local_shares", np.zeros(OLDER_LOCAL[0] + 2)).shape != (OLDER_LOCAL[0] + 2,):
            raise state_error()
        return {**state, "ordered": np.ones(1, np.int64)}
    if "numbers" not in state or "counters" not in state:
        return state
    arrays = dict(state)
    numbers, counters = arrays.pop("numbers"), arrays.pop("counters")
    if numbers.shape != (len(FORMAT_1_NUMBERS),) or counters.shape != (len(FORMAT_1_COUNTERS),):
        raise state_error()
    renamed = {}
    for name, array in arrays.items():
        old = next((old for old in FORMAT_1_NAMES if name.startswith(old)), "")
        renamed[FORMAT_1_NAMES.get(old, "") + name.removeprefix(old)] = array
    renamed |= {name: numbers[i : i + 1] for i, name in enumerate(FORMAT_1_NUMBERS)}
    renamed |= {name: counters[i : i + 1] for i, name in enumerate(FORMAT_1_COUNTERS)}
    if len(renamed) != len(arrays) + len(numbers) + len(counters):  # one name twice
        raise state_error()
    one, none = np.ones(1), np.zeros(1)
    renamed |= {
        "weight_sum": one,
        "weight_squares": one,
        "usual_error": np.sqrt(np.maximum(renamed["noise"], 0)),
        "first_errors": np.zeros(FIRST_ERRORS),
        "outliers": none,
        "ordered": np.ones(1, np.int64),
    }
    return _empty_local(renamed, empty) | renamed


def _with_local_experts(state: State, empty: Empty) -> State:
    """Fewer local experts, the first of today's: the others have nothing of the shares and of the stacks yet."""
    before = state.get("local_shares")
    fresh = empty(state) if before is not None and "shape" in state else {}
    if before is None or "local_shares" not in fresh:
        return state
    n, experts = before.size - 2, fresh["local_shares"].size - 2
    if n not in OLDER_LOCAL or n >= experts:
        return state
    shapes = {
        "local_shares": (n + 2,),
        "local_stack_weights": (2 * n,),
        "local_stack_covariances": (2 * n * n,),
    }
    if any(name not in state or state[name].shape != shape for name, shape in shapes.items()):
        raise state_error()
    shares = np.zeros(experts + 2)
    shares[:n], shares[-2:] = before[:n], before[n:]
    weights = np.zeros((2, experts))
    weights[:, :n] = state["local_stack_weights"].reshape(2, n)
    prior = fresh["local_stack_covariances"].reshape(2, experts, experts)
    covariances = prior * np.eye(experts)
    covariances[:, :n, :n] = state["local_stack_covariances"].reshape(2, n, n)
    return state | {
        "local_shares": shares,
        "local_stack_weights": weights.ravel(),
        "local_stack_covariances": covariances.ravel(),
    }


def _empty_local(state: State, empty: Empty) -> State:
    """The arrays of an empty local memory, which an older state lacks."""
    fresh = empty(state)
    return {name: fresh[name] for name in fresh if name.startswith("local_") or name == "kept_residuals"}
