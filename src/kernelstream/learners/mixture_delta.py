"""Merging NewtonMixture: what a part learnt with the memories of its base, and what several parts make of that base.

- lasting, least_squares, linear, stack: sums in natural parameters. With the covariance P and the weights w of an expert,
  ``A = P^-1`` and ``b = A w``; a part has added ``A - A0`` and ``b - b0``. For least squares this is one pass over all rows, to
  rounding; for logistic Newton steps it is streaming variational Bayes: each part linearises around its own weights.
- recent, forgetting_stack, and numbers that follow the stream (noise, coverage, frequencies of classes): the mean by rows. So the
  merged model forgets by the rows of one part, not of all.
- linear of wide rows: its squares add, its weights are averaged by rows.
- shares: their geometric mean by rows. Fixed share keeps them above a least value, so their ratios are no sums of losses.
- rows kept: a random sample of the parts'. The local memory: the rows of the base, then those of all parts, the newest the last.
- trees: those of the base, which then learn the rows kept of all parts.
- window: empty; labels: that of the base. They depend on the order of rows, and there is none between parts.

Broderick, Boyd, Wibisono, Wilson and Jordan, "Streaming variational Bayes", NIPS 2013.
"""

from __future__ import annotations

import numpy as np

from kernelstream.learners.base import Array, State
from kernelstream.learners.delta import averaged, from_half, half, inverse, record_keys

__all__ = ["KEPT", "LOCAL", "added", "delta_between"]

#: Experts whose statistics add, and those that forget.
LASTING, RECENT = ("lasting", "least_squares", "linear"), ("recent",)
#: Numbers and arrays that follow the stream, and those that count rounds.
FOLLOWED = (
    *("noise", "local_noise", "usual_error", "outliers", "coverage", "weight_sum", "weight_squares"),
    *("labels_repeats", "labels_changes", "labels_frequency"),
)
COUNTED = ("learnt", "lasting_age", "recent_age", "noise_rounds", "local_noise_rounds")
#: The ring of the last rows learnt, and the rows of the local memory.
KEPT = ("kept_rows", "kept_targets", "kept_weights", "kept_residuals")
LOCAL = ("local_rows", "local_targets", "local_weights", "local_residuals")


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


def delta_between(base: State, state: State, rows: int, task: str, max_local: int) -> State:
    """What a part has learnt since its base; no round is pending in either. ``max_local``: rows of a full local memory."""
    n = float(rows)
    delta: State = {"sum/rows": np.array([n])}
    for expert in LASTING:
        if f"{expert}_covariance" in state:
            (matrix, vector), (matrix0, vector0) = natural(state, expert), natural(base, expert)
            delta |= {
                f"sum/{expert}_matrix": half(matrix - matrix0),
                f"sum/{expert}_vector": vector - vector0,
            }
    for expert in RECENT:
        matrix, vector = natural(state, expert)
        delta |= {f"sum/{expert}_matrix": n * half(matrix), f"sum/{expert}_vector": n * vector}
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
    for name in _present(FOLLOWED, state):
        delta[f"sum/{name}"] = n * np.asarray(state[name], np.float64)
    for name in _present(COUNTED, state):
        delta[f"sum/{name}"] = (state[name] - base[name]).astype(np.float64)
    learnt, capacity = int(state["learnt"][0]), len(state["kept_targets"])
    slots = np.arange(max(int(base["learnt"][0]), learnt - capacity), learnt) % capacity
    delta |= {"keep/kept/limit": np.array([float(capacity)]), "keep/kept/key": record_keys(task, len(slots))}
    delta |= {f"keep/kept/{name}": state[name][slots] for name in _present(KEPT, state)}
    if "local_rows" in state:
        since, count = int(state["local_next"][0]) - int(base["local_next"][0]), len(state["local_rows"])
        slots = np.arange(since - min(since, count), since)  # numbered from the base on
        delta |= {
            "keep/local/limit": np.array([float(max_local)]),
            "keep/local/key": record_keys(task, since)[since - len(slots) :] - slots,  # the newest stay
        }
        slots = (slots + int(base["local_next"][0])) % max_local
        delta |= {f"keep/local/{name}": state[name][slots] for name in LOCAL}
    return delta


def added(base: State, delta: State) -> State:
    """The state of the base with what its parts have learnt, but for the rows of the local memory."""
    state = {name: array.copy() for name, array in base.items()}
    for expert in (*LASTING, *RECENT):
        if f"{expert}_covariance" in state:
            matrix0, vector0 = natural(base, expert)
            if expert in RECENT:
                matrix, vector = (
                    from_half(averaged(delta, f"{expert}_matrix")),
                    averaged(delta, f"{expert}_vector"),
                )
            else:
                matrix = matrix0 + from_half(delta[f"sum/{expert}_matrix"])
                vector = vector0 + delta[f"sum/{expert}_vector"]
            state[f"{expert}_covariance"] = inverse(matrix)
            state[f"{expert}_weights"] = state[f"{expert}_covariance"] @ vector
    if "linear_squares" in state:
        state["linear_squares"] += delta["sum/linear_squares"]
        state["linear_weights"] += averaged(delta, "linear_weights")
    for name in _aggregations(state):
        _add_aggregation(state, delta, name, stacks(base, name)[0])
    for name in _present(FOLLOWED, state):
        state[name] = averaged(delta, name)
    for name in _present(COUNTED, state):
        state[name] = (state[name] + delta[f"sum/{name}"]).astype(state[name].dtype)
    for name in state:
        if (name.startswith("window_") and name != "window_gamma") or name in ("cusum", "cusum_age"):
            state[name] = np.zeros_like(state[name])
    _add_kept(state, base, delta)
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
    for name in _present(KEPT, state):
        state[name][slots] = np.concatenate([base[name][old], delta[f"keep/kept/{name}"]])


def _present(names: tuple[str, ...], state: State) -> list[str]:
    return [name for name in names if name in state]


def _aggregations(state: State) -> list[str]:
    """Prefixes of the aggregations' arrays."""
    return [name for name in ("", "local_") if f"{name}shares" in state]
