"""Merging NewtonMixture: what a part learnt with the memories of its base, and what several parts make of that base.

- lasting, least_squares, stack, confidences, and linear of a set: sums in natural parameters. With the covariance P and the
  weights w of an expert, ``A = P^-1`` and ``b = A w``; a part has added ``A - A0`` and ``b - b0``. For least squares this is one
  pass over all rows, to rounding; for logistic Newton steps it is streaming variational Bayes: each part linearises around its
  own weights.
- recent, linear of a stream, forgetting_stack, and numbers that follow the stream (noise, coverage, frequencies of classes): the
  mean by rows. So the merged model forgets by the rows of one part, not of all.
- linear of wide rows: its squares add, its weights are averaged by rows.
- shares: their geometric mean by rows. Fixed share keeps them above a least value, so their ratios are no sums of losses.
- rings (rows kept, local memory, trees): those of the base, and then the rows of all parts, the newest the last, as many as
  fit. Trees that a part has grown are not sent: those of the base learn the rows of all parts. The window and the last label
  see the newest rows kept. The first errors, from which the usual error is told, are put together in the same way.

So one part, merged, is the part, to rounding.

Broderick, Boyd, Wibisono, Wilson and Jordan, "Streaming variational Bayes", NIPS 2013.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np
import scipy.sparse

from kernelstream.learners.base import Array, State
from kernelstream.learners.delta import averaged, from_half, half, inverse, record_keys, stacked
from kernelstream.rows import rows_of_state, state_of_rows

__all__ = ["added", "delta_between", "newest_last", "with_records", "without_records"]

#: Experts that take Newton steps.
NEWTONS = ("lasting", "least_squares", "recent", "linear")
#: The linear expert of wide rows.
LINEAR = ("linear_weights", "linear_squares")
#: Numbers and arrays that follow the stream, and those that count rounds.
FOLLOWED = (
    *("noise", "local_noise", "usual_error", "outliers", "coverage", "weight_sum", "weight_squares"),
    *("labels_repeats", "labels_changes", "labels_frequency", "labels_copy_repeats", "labels_copy_changes"),
)
COUNTED = ("learnt", "lasting_age", "recent_age", "noise_rounds", "local_noise_rounds")
#: Rings of rows: those kept, the local memory's and the trees', and the first errors; and what counts the rows that were put in.
RINGS = {
    "kept": ("kept_rows", "kept_columns", "kept_values", "kept_targets", "kept_weights", "kept_residuals"),
    "local": ("local_rows", "local_targets", "local_weights", "local_residuals"),
    "trees": ("trees_rows", "trees_targets", "trees_weights"),
    "errors": ("first_errors",),  # of a regression: no ring, but read only while there are fewer
}
PUT = {"kept": "learnt", "local": "local_next", "trees": "trees_next", "errors": "noise_rounds"}


def with_records(state: State) -> State:
    """The state with sparse rows kept as records, that is with as many columns and values each: entries that are 0 come last.

    What the linear expert stores by column met becomes dense, so that parts add up.
    """
    if "kept_rows_starts" not in state:
        return state
    width = int(state["shape"][0])
    rows = rows_of_state("kept_rows", state, width)
    counts = np.diff(rows.indptr)
    used = np.arange(counts.max(initial=0)) < counts[:, None]
    columns, values = np.zeros(used.shape, np.int32), np.zeros(used.shape)
    columns[used], values[used] = rows.indices, rows.data
    linear = {name: rows_of_state(name, state, 1 + width).toarray() for name in LINEAR}
    return state | {"kept_columns": columns, "kept_values": values} | linear


def without_records(state: State) -> State:
    """The state of which ``with_records`` made records; the window is empty."""
    if "kept_columns" not in state:
        return state
    width = int(state["shape"][0])
    columns, values = state.pop("kept_columns"), state.pop("kept_values")
    used = values != 0
    starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    rows = scipy.sparse.csr_array((values[used], columns[used], starts), shape=(len(values), width))
    for name in LINEAR:
        state |= state_of_rows(name, scipy.sparse.csr_array(state.pop(name)))
    return (
        state
        | state_of_rows("kept_rows", rows)
        | state_of_rows("window_points", scipy.sparse.csr_array((0, width)))
    )


def forgets(state: State, expert: str) -> bool:
    """Whether an expert forgets, so that the statistics of parts are averaged; those of the others add."""
    return expert == "recent" or (expert == "linear" and bool(state["ordered"][0]))


def natural(state: State, expert: str) -> tuple[Array, Array]:
    """``P^-1`` and ``P^-1 w`` of an expert; no round is pending."""
    matrix = inverse(state[f"{expert}_covariance"])
    return matrix, matrix @ state[f"{expert}_weights"]


def stacks(state: State, name: str) -> list[tuple[Array, Array]]:
    """``P^-1`` and ``P^-1 w`` of the stack and of the forgetting stack, over the experts that take part."""
    weights = state[f"{name}stack_weights"].reshape(2, -1)
    covariances = state[f"{name}stack_covariances"].reshape(2, weights.shape[1], -1)
    parts = []
    for w, covariance in zip(weights, covariances, strict=True):
        some = np.flatnonzero(np.diag(covariance) > 0)
        matrix = inverse(covariance[np.ix_(some, some)])
        parts.append((matrix, matrix @ w[some]))
    return parts


def confidences(state: State, name: str) -> tuple[Array, Array]:
    """The precisions of the experts' confidences and those times the confidences; 0 where a confidence stays 1."""
    variances = state[f"{name}confidence_variances"]
    precisions = np.divide(1, variances, out=np.zeros_like(variances), where=variances > 0)
    return precisions, precisions * state[f"{name}confidences"]


def delta_between(base: State, state: State, rows: int, task: str, capacities: dict[str, int]) -> State:
    """What a part has learnt since its base; no round is pending in either. ``capacities``: rows of full rings."""
    n = float(rows)
    delta: State = {"sum/rows": np.array([n])}
    for expert in NEWTONS:
        if f"{expert}_covariance" not in state:
            continue
        matrix, vector = natural(state, expert)
        if forgets(state, expert):
            matrix, vector = n * matrix, n * vector
        else:
            matrix0, vector0 = natural(base, expert)
            matrix, vector = matrix - matrix0, vector - vector0
        delta |= {f"sum/{expert}_matrix": half(matrix), f"sum/{expert}_vector": vector}
    if "linear_squares" in state:
        delta["sum/linear_squares"] = state["linear_squares"] - base["linear_squares"]
        delta["sum/linear_weights"] = n * (state["linear_weights"] - base["linear_weights"])
    for name in _aggregations(state):
        shares, shares0 = state[f"{name}shares"], base[f"{name}shares"]
        taking_part = (shares > 0) & (shares0 > 0)
        delta[f"sum/{name}shares"] = n * np.log(
            np.where(taking_part, shares, 1) / np.where(taking_part, shares0, 1)
        )
        (stack, forgetting), (stack0, _) = stacks(state, name), stacks(base, name)
        delta |= {
            f"sum/{name}stack_matrix": half(stack[0] - stack0[0]),
            f"sum/{name}stack_vector": stack[1] - stack0[1],
            f"sum/{name}forgetting_matrix": n * half(forgetting[0]),
            f"sum/{name}forgetting_vector": n * forgetting[1],
        }
        (precision, sure), (precision0, sure0) = confidences(state, name), confidences(base, name)
        delta |= {
            f"sum/{name}confidence_precisions": precision - precision0,
            f"sum/{name}confidence_vector": sure - sure0,
        }
    for name in _present(FOLLOWED, state):
        delta[f"sum/{name}"] = n * np.asarray(state[name], np.float64)
    for name in _present(COUNTED, state):
        delta[f"sum/{name}"] = (state[name] - base[name]).astype(np.float64)
    for ring, capacity in capacities.items():
        first = int(base[PUT[ring]][0])
        since = int(state[PUT[ring]][0]) - first
        numbers = np.arange(max(0, since - capacity), since)  # from the base on
        delta |= {
            f"keep/{ring}/limit": np.array([float(capacity)]),
            f"keep/{ring}/key": record_keys(task, since)[numbers] - numbers,  # the newest stay
        }
        slots = (first + numbers) % capacity
        delta |= {f"keep/{ring}/{name}": state[name][slots] for name in _present(RINGS[ring], state)}
    return delta


def newest_last(delta: State, ring: str) -> list[Array]:
    """The rows of all parts for a ring, in the order in which they are put in."""
    order = np.argsort(-delta[f"keep/{ring}/key"], kind="stable")
    names = _present(RINGS[ring], {name.removeprefix(f"keep/{ring}/") for name in delta})
    return [np.ascontiguousarray(delta[f"keep/{ring}/{name}"][order]) for name in names]


def added(base: State, delta: State) -> State:
    """The state of the base with what its parts have learnt, but for the local memory, the trees and the window."""
    state = {name: array.copy() for name, array in base.items()}
    for expert in NEWTONS:
        if f"{expert}_covariance" in state:
            if forgets(state, expert):
                matrix = from_half(averaged(delta, f"{expert}_matrix"))
                vector = averaged(delta, f"{expert}_vector")
            else:
                matrix0, vector0 = natural(base, expert)
                matrix = matrix0 + from_half(delta[f"sum/{expert}_matrix"])
                vector = vector0 + delta[f"sum/{expert}_vector"]
            state[f"{expert}_covariance"] = inverse(matrix)
            state[f"{expert}_weights"] = state[f"{expert}_covariance"] @ vector
    if "linear_squares" in state:
        state["linear_squares"] += delta["sum/linear_squares"]
        state["linear_weights"] += averaged(delta, "linear_weights")
    for name in _aggregations(state):
        _add_aggregation(state, delta, name, stacks(base, name)[0])
        precisions, sure = confidences(base, name)
        learnt = precisions > 0
        precisions, sure = (
            precisions + delta[f"sum/{name}confidence_precisions"],
            sure + delta[f"sum/{name}confidence_vector"],
        )
        state[f"{name}confidence_variances"][learnt] = 1 / precisions[learnt]
        state[f"{name}confidences"][learnt] = sure[learnt] / precisions[learnt]
    for name in _present(FOLLOWED, state):
        state[name] = averaged(delta, name)
    for name in _present(COUNTED, state):
        state[name] = (state[name] + delta[f"sum/{name}"]).astype(state[name].dtype)
    for name in state:
        if (name.startswith("window_") and name != "window_gamma") or name in ("cusum", "cusum_age"):
            state[name] = np.zeros_like(state[name])
    _add_kept(state, base, delta)
    if "keep/errors/key" in delta:
        errors, first = state["first_errors"], int(base["noise_rounds"][0])
        (new,) = newest_last(delta, "errors")
        errors[first : first + len(new)] = new[: max(0, len(errors) - first)]
    return state


def _add_aggregation(state: State, delta: State, name: str, stack0: tuple[Array, Array]) -> None:
    """Shares and stacks of an aggregation."""
    shares = state[f"{name}shares"] * np.exp(averaged(delta, f"{name}shares"))
    state[f"{name}shares"] = shares / shares.sum()
    weights = state[f"{name}stack_weights"].reshape(2, -1)
    covariances = state[f"{name}stack_covariances"].reshape(2, weights.shape[1], -1)
    stack = (
        stack0[0] + from_half(delta[f"sum/{name}stack_matrix"]),
        stack0[1] + delta[f"sum/{name}stack_vector"],
    )
    forgetting = (
        from_half(averaged(delta, f"{name}forgetting_matrix")),
        averaged(delta, f"{name}forgetting_vector"),
    )
    for k, (matrix, vector) in enumerate((stack, forgetting)):
        some = np.flatnonzero(np.diag(covariances[k]) > 0)
        covariance = inverse(matrix)
        covariances[k][np.ix_(some, some)] = covariance
        weights[k][some] = covariance @ vector


def _add_kept(state: State, base: State, delta: State) -> None:
    """The ring: the newest rows of the base, then the parts'."""
    learnt, learnt0, capacity = int(state["learnt"][0]), int(base["learnt"][0]), len(state["kept_targets"])
    new = len(delta["keep/kept/key"])
    old = np.arange(max(0, learnt0 - (capacity - new)), learnt0) % capacity
    slots = np.arange(learnt - len(old) - new, learnt) % capacity
    names = _present(RINGS["kept"], state)
    for name, new_rows in zip(names, newest_last(delta, "kept"), strict=True):
        rows = stacked(base[name][old], new_rows)
        if rows.shape[1:] != state[name].shape[1:]:  # sparse rows with more entries
            state[name] = np.zeros((capacity, *rows.shape[1:]), rows.dtype)
        state[name][slots] = rows


def _present(names: tuple[str, ...], state: Container[str]) -> list[str]:
    return [name for name in names if name in state]


def _aggregations(state: State) -> list[str]:
    """Prefixes of the aggregations' arrays."""
    return [name for name in ("", "local_") if f"{name}shares" in state]
