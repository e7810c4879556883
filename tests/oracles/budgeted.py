"""BSGD and Doubly SGD, slow and obvious: merges by trying points on a line, features as lists."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from .base import KernelLearner, Learner
from .kernels import Array, Kernel
from .loss_learners import slopes
from .losses import Loss


class BSGD(KernelLearner):
    """Pegasos steps; with more than `budget` points, removal of the smallest or the merge that changes f the least."""

    def __init__(
        self,
        *,
        kernel: Kernel,
        outputs: int,
        budget: int,
        eta: float,
        lam: float,
        merging: bool,
        loss: Loss,
        regression: bool,
        gamma: float = 0.0,
    ) -> None:
        super().__init__(kernel=kernel, outputs=outputs, regression=regression)
        self.budget, self.eta, self.lam, self.merging, self.loss = budget, eta, lam, merging, loss
        self.t = self.merged = 0
        self.gamma = gamma

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        self.t += 1
        eta = 1 / (1 / self.eta + self.lam * self.t)
        g = w * slopes(self.loss, f, y)
        self.a = self.a * (1 - eta * self.lam)
        if not g.any():
            return
        self.append(x, -eta * g)
        if len(self.points) <= self.budget:
            return
        sizes = [float(a @ a) * self.k(p, p) for a, p in zip(self.a, self.points, strict=True)]
        small = next(
            j for j, size in enumerate(sizes) if size <= min(sizes) * (1 + 1e-9)
        )  # steps make equal weights
        if self.merging:
            best = min(
                (self.merge(small, other) for other in range(len(self.points)) if other != small),
                key=lambda m: m[0],
            )
            _, other, z, weight = best
            self.points[other], self.a[other] = z, weight
            self.merged += 1
        # the last one takes the free place, as in the core
        last = len(self.points) - 1
        self.points[small], self.a[small] = self.points[last], self.a[last].copy()
        self.points.pop()
        self.a = self.a[:last]

    def merge(self, a: int, b: int) -> tuple[float, int, Array, Array]:
        """|f before - f after|^2 at the best h, computed from kernel values of the points themselves."""
        x_a, x_b, w_a, w_b = self.points[a], self.points[b], self.a[a], self.a[b]

        def weight(h: float) -> Array:
            z = h * x_a + (1 - h) * x_b
            made: Array = w_a * self.k(x_a, z) + w_b * self.k(x_b, z)
            return made

        def slope(h: float) -> float:
            """Of |weight|^2 in h: d k(x, z) / dh = -2 gamma (z - x) . (x_a - x_b) k(x, z)."""
            z, along = h * x_a + (1 - h) * x_b, x_a - x_b
            to_a = -2 * self.gamma * float((z - x_a) @ along) * self.k(x_a, z)
            to_b = -2 * self.gamma * float((z - x_b) @ along) * self.k(x_b, z)
            return float(2 * weight(h) @ (w_a * to_a + w_b * to_b))

        grid = np.linspace(0, 1, 41)
        slopes_ = [slope(h) for h in grid]
        tops = [0.0, 1.0]
        for low, high, left, right in zip(grid, grid[1:], slopes_, slopes_[1:], strict=False):
            if left > 0 >= right:
                tops.append(float(brentq(slope, low, high, xtol=1e-15)))
        h = max(tops, key=lambda h: float(weight(h) @ weight(h)))
        change = w_a @ w_a + w_b @ w_b + 2 * w_a @ w_b * self.k(x_a, x_b) - weight(h) @ weight(h)
        return float(change), b, h * x_a + (1 - h) * x_b, weight(h)


class DoublySGD(Learner):
    """f(x) = sum_i a_i . z_i(x), a new z_i with every round that has a slope."""

    def __init__(
        self,
        *,
        frequencies: Callable[[int], Array],
        outputs: int,
        eta: float,
        lam: float,
        loss: Loss,
        regression: bool,
    ) -> None:
        super().__init__(outputs=outputs, regression=regression)
        self.frequencies, self.eta, self.lam, self.loss = frequencies, eta, lam, loss
        self.a: list[Array] = []
        self.t = 0

    def features(self, i: int, x: Array) -> Array:
        W = self.frequencies(i)  # width x m
        m = W.shape[1]
        return np.concatenate([np.cos(x @ W), np.sin(x @ W)]) / np.sqrt(m)

    def score_one(self, x: Array) -> Array:
        f = np.zeros(self.outputs)
        for i, a in enumerate(self.a):
            f = f + self.features(i, x) @ a
        return f

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        self.t += 1
        step = self.eta / (1 + self.eta * self.lam * self.t)
        g = w * slopes(self.loss, f, y)
        self.a = [(1 - step * self.lam) * a for a in self.a]
        if g.any():
            self.a.append(-step * np.outer(self.features(len(self.a), x), g))
