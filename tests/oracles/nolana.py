"""NOLANA, DualSGD and RRF, slow and obvious."""

from __future__ import annotations

import math

import numpy as np

from .base import KernelLearner, Learner
from .kernels import Array, Kernel
from .loss_learners import NOGD, slopes
from .losses import Loss


class NOLANA(NOGD):
    """Algorithm 2: NOGD whose landmarks move (Algorithm 1), the model following by least squares (Eq. 12)."""

    def __init__(
        self,
        *,
        kernel: Kernel,
        outputs: int,
        budget: int,
        rank: int,
        epsilon: float,
        eta: float,
        lam: float,
        theta: float,
        loss: Loss,
        regression: bool = False,
    ) -> None:
        super().__init__(
            kernel=kernel,
            outputs=outputs,
            budget=budget,
            rank=rank,
            eta=eta,
            lam=lam,
            loss=loss,
            regression=regression,
        )
        self.epsilon = epsilon
        self.theta = theta
        self.N = np.ones(budget, dtype=int)

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        started = self.weights is not None
        super().learn(x, y, f, w)  # stage one, under the old map
        if not started:
            return
        squares = [float(np.sum((x - u) ** 2)) for u in self.points]
        q = squares.index(min(squares))
        if squares[q] < self.epsilon:
            return
        assert self.weights is not None
        new_points = [u.copy() for u in self.points]
        new_points[q] = (self.N[q] * self.points[q] + x) / (self.N[q] + 1)
        old = np.array([self.features(u) for u in new_points]) @ self.weights
        self.points = new_points
        self.N[q] += 1
        self.build_map()  # its weights are those of the kernel model; replaced next
        Phi = np.array([self.features(u) for u in self.points])
        stacked = np.vstack([Phi, math.sqrt(self.theta) * np.eye(self.rank)])
        goals = np.vstack([old, np.zeros((self.rank, self.outputs))])
        self.weights = np.linalg.lstsq(stacked, goals, rcond=None)[0]


class DualSGD(KernelLearner):
    """Le et al. 2016 in our reading (docs/conventions.md): Pegasos steps, k-merging, the rest of a dropped
    point in the Fourier features.

    `W` is (inputs, m), one frequency per column. Weights are kept divided by the step 1 / (lam (t + delay)),
    so they never shrink.
    """

    def __init__(
        self,
        *,
        kernel: Kernel,
        W: Array,
        outputs: int,
        budget: int,
        k: int,
        lam: float,
        delay: float,
        loss: Loss,
        regression: bool = False,
    ) -> None:
        super().__init__(kernel=kernel, outputs=outputs, regression=regression)
        self.W = W
        self.budget = budget
        self.neighbours = k
        self.lam = lam
        self.loss = loss
        self.t = 0
        self.delay = delay
        self.u: Array = np.zeros((2 * W.shape[1], outputs))

    def features(self, x: Array) -> Array:
        angles = x @ self.W
        return math.sqrt(1.0 / self.W.shape[1]) * np.concatenate([np.cos(angles), np.sin(angles)])

    def score_one(self, x: Array) -> Array:
        if self.t == 0:
            return np.zeros(self.outputs)
        return (self.kernel_score(x) + self.features(x) @ self.u) / (self.lam * (self.t + self.delay))

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        g = slopes(self.loss, f, y)
        self.t += 1
        if not np.any(g != 0):
            return
        self.append(x, -w * g)
        if len(self.points) > self.budget:
            self.merge()

    def merge(self) -> None:
        """Drop the point of smallest |a| (the oldest of equals); the new point takes its slot."""
        sizes = np.sum(np.abs(self.a), axis=1)
        p = min(range(len(sizes)), key=lambda j: (sizes[j], self.born[j]))
        others = [j for j in range(len(sizes)) if j != p]
        k_p = self.k_vector(self.points[p])
        near = sorted(others, key=lambda j: (-k_p[j], j))[: self.neighbours]
        K = np.array([[self.k(self.points[i], self.points[j]) for j in near] for i in near])
        d = np.linalg.solve(K, k_p[near])
        for j, d_j in zip(near, d, strict=True):
            self.a[j] = self.a[j] + self.a[p] * d_j
        rest = self.features(self.points[p]) - sum(
            d_j * self.features(self.points[j]) for j, d_j in zip(near, d, strict=True)
        )
        self.u = self.u + np.outer(rest, self.a[p])
        last = len(self.points) - 1
        self.points[p], self.a[p], self.born[p] = self.points[last], self.a[last].copy(), self.born[last]
        del self.points[last], self.born[last]
        self.a = self.a[:last]


class RRF(Learner):
    """Reparameterised random features: W = diag(g) e, gradient steps on the weights and on log g."""

    def __init__(
        self,
        *,
        e: Array,
        g: Array,
        outputs: int,
        eta: float,
        eta_g: float,
        lam: float,
        loss: Loss,
        regression: bool = False,
    ) -> None:
        super().__init__(outputs=outputs, regression=regression)
        self.e = e
        self.log_g = np.log(g)
        self.eta = eta
        self.eta_g = eta_g
        self.lam = lam
        self.loss = loss
        self.weights: Array = np.zeros((2 * e.shape[1], outputs))

    def features(self, x: Array, log_g: Array) -> Array:
        angles = (x * np.exp(log_g)) @ self.e
        return math.sqrt(1.0 / self.e.shape[1]) * np.concatenate([np.cos(angles), np.sin(angles)])

    def score_one(self, x: Array) -> Array:
        return self.features(x, self.log_g) @ self.weights

    def loss_at(self, x: Array, y: float, weights: Array, log_g: Array) -> float:
        """Sum of the losses of the columns."""
        f = self.features(x, log_g) @ weights
        targets = [y] if self.outputs == 1 else [1.0 if c == int(y) else -1.0 for c in range(self.outputs)]
        return sum(self.loss.value(float(f_c), t) for f_c, t in zip(f, targets, strict=True))

    def gradient_log_g(self, x: Array, y: float, w: float) -> Array:
        """By central differences of the loss itself."""
        h = 1e-5
        gradient = np.zeros(len(self.log_g))
        for d in range(len(self.log_g)):
            step = np.zeros(len(self.log_g))
            step[d] = h
            up = self.loss_at(x, y, self.weights, self.log_g + step)
            down = self.loss_at(x, y, self.weights, self.log_g - step)
            gradient[d] = w * (up - down) / (2 * h)
        return gradient

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        in_log_g = self.gradient_log_g(x, y, w)
        g = slopes(self.loss, f, y)
        z = self.features(x, self.log_g)
        self.weights = self.weights * (1.0 - self.eta * self.lam) - self.eta * w * np.outer(z, g)
        self.log_g = self.log_g - self.eta_g * in_log_g


class ExactRRF(RRF):
    """The same with the gradient in log g by the chain rule: exact, where differences lose half of the digits."""

    def gradient_log_g(self, x: Array, y: float, w: float) -> Array:
        m = self.e.shape[1]
        g = slopes(self.loss, self.score_one(x), y)
        gradient = np.zeros(len(self.log_g))
        for d in range(len(self.log_g)):
            for i in range(m):
                angle = sum(x[j] * math.exp(self.log_g[j]) * self.e[j, i] for j in range(len(x)))
                inner = x[d] * math.exp(self.log_g[d]) * self.e[d, i] / math.sqrt(m)
                for c in range(self.outputs):
                    turn = math.cos(angle) * self.weights[m + i, c] - math.sin(angle) * self.weights[i, c]
                    gradient[d] += w * g[c] * turn * inner
        return gradient
