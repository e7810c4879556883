"""What all oracles share: the protocol of a stream, stored points, margins and one-vs-rest targets."""

from __future__ import annotations

import numpy as np

from .kernels import Array, Kernel


def margin_and_direction(f: Array, y: float, outputs: int) -> tuple[float, Array]:
    """Margin m and direction u. One column: y is -1 or +1. More columns: y is the class index."""
    if outputs == 1:
        return float(y * f[0]), np.array([float(y)])
    true = int(y)
    wrong = -1
    for c in range(outputs):
        if c != true and (wrong == -1 or f[c] > f[wrong]):
            wrong = c
    u = np.zeros(outputs)
    u[true] = 0.5
    u[wrong] = -0.5
    return float(f[true] - f[wrong]), u


def column_targets(y: float, outputs: int) -> Array:
    """The target of each column: y itself, or one-vs-rest +-1 of the class index y."""
    if outputs == 1:
        return np.array([float(y)])
    return np.array([1.0 if c == int(y) else -1.0 for c in range(outputs)])


class Learner:
    """Scores a row, then learns it."""

    def __init__(self, *, outputs: int, regression: bool = False) -> None:
        if regression and outputs != 1:
            raise ValueError("regression has one output column")
        self.outputs = outputs
        self.regression = regression

    def score_one(self, x: Array) -> Array:
        """The scores of one row."""
        raise NotImplementedError

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        """Learn one row of weight w > 0, scored f before."""
        raise NotImplementedError

    def score(self, X: Array) -> Array:
        """The scores of all rows, nothing learnt."""
        X = np.asarray(X, dtype=np.float64)
        return np.array([self.score_one(x) for x in X]).reshape(len(X), self.outputs)

    def run(self, X: Array, y: Array, w: Array | None = None) -> Array:
        """Score and learn row after row; the scores before each row was learnt."""
        X = np.asarray(X, dtype=np.float64)
        scores = np.zeros((len(X), self.outputs))
        for t in range(len(X)):
            f = self.score_one(X[t])
            scores[t] = f
            weight = 1.0 if w is None else float(w[t])
            if weight > 0.0:
                self.learn(X[t].copy(), float(y[t]), f, weight)
        return scores


class KernelLearner(Learner):
    """f(x) = sum_j a_j k(x, x_j), the points in slot order."""

    def __init__(
        self, *, kernel: Kernel, outputs: int, regression: bool = False, max_size: int | None = None
    ) -> None:
        super().__init__(outputs=outputs, regression=regression)
        self.kernel = kernel
        self.max_size = max_size
        self.points: list[Array] = []
        self.a: Array = np.zeros((0, outputs))
        self.born: list[int] = []  # time of insertion of each slot
        self.clock = 0

    def k(self, x: Array, z: Array) -> float:
        """k(x, z) for two rows."""
        return float(self.kernel(x[np.newaxis, :], z[np.newaxis, :])[0, 0])

    def k_vector(self, x: Array) -> Array:
        """k(x, x_j) for every stored point."""
        return np.array([self.k(x, z) for z in self.points])

    def kernel_score(self, x: Array) -> Array:
        """sum_j a_j k(x, x_j)."""
        f = np.zeros(self.outputs)
        for j in range(len(self.points)):
            f = f + self.a[j] * self.k(x, self.points[j])
        return f

    def score_one(self, x: Array) -> Array:
        return self.kernel_score(x)

    def append(self, x: Array, row: Array) -> None:
        """Store x in the next free slot."""
        if self.max_size is not None and len(self.points) >= self.max_size:
            raise RuntimeError(f"more than max_size={self.max_size} points")
        self.points.append(x)
        self.a = np.vstack([self.a, row])
        self.born.append(self.clock)
        self.clock += 1

    def replace(self, slot: int, x: Array, row: Array) -> None:
        """Store x in the slot of a point that is dropped."""
        self.points[slot] = x
        self.a[slot] = row
        self.born[slot] = self.clock
        self.clock += 1

    def oldest(self) -> int:
        """The slot whose point was inserted first."""
        return self.born.index(min(self.born))
