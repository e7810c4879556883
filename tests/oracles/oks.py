"""Online kernel selection, entry by entry: OKS-SIL, OKL-GD, OKS, and kernel alignment by definition."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .base import Learner, column_targets
from .kernels import Array, gaussian
from .loss_learners import slopes
from .losses import Loss
from .margin_learners import Projectron
from .rng import Splitmix

Value = Callable[[Array, Array, Array], Any]


def difference(value: Value) -> Value:
    """The derivative of a kernel value in each entry of gamma, by central differences of the fourth order."""

    def gradient(gamma: Array, x: Array, z: Array) -> Array:
        made = np.zeros(len(gamma))
        for e in range(len(gamma)):
            h = np.zeros(len(gamma))
            h[e] = 1e-3 * gamma[e]
            near = value(gamma + h, x, z) - value(gamma - h, x, z)
            far = value(gamma + 2 * h, x, z) - value(gamma - 2 * h, x, z)
            made[e] = (8 * near - far) / (12 * h[e])
        return made

    return gradient


def value(gamma: Array, x: Array, z: Array) -> float:
    """exp(-sum_d gamma_d (x_d - z_d)^2); gamma has one entry for all features, or one for each."""
    return math.exp(-float(np.sum(gamma * (x - z) ** 2)))


def gradient(gamma: Array, x: Array, z: Array) -> Array:
    """The derivative of `value` in each entry of gamma."""
    squares = (x - z) ** 2
    return -value(gamma, x, z) * (squares if len(gamma) > 1 else np.array([np.sum(squares)]))


def moved(gamma: Any, step: Any, logarithm: bool, interval: tuple[float, float]) -> Any:
    """A step against the derivative in gamma, or the same in log gamma, whose derivative is gamma times that."""
    to = np.exp(np.log(gamma) - gamma * step) if logarithm else gamma - step
    return np.clip(to, *interval)


def draw_without_replacement(rng: Splitmix, chances: list[float], n: int) -> list[int]:
    """n slots, one draw each, in proportion to the chances of those left."""
    left = dict(enumerate(chances))
    drawn = []
    for _ in range(n):
        aim = rng.uniform() * sum(left.values())
        cumulative = 0.0
        for slot in left:
            cumulative += left[slot]
            if cumulative > aim:
                break
        drawn.append(slot)
        del left[slot]
    return drawn


class OKSSIL(Learner):
    """Algorithm 1 of Zhang and Liao 2020; gamma has one entry, or one for each feature."""

    def __init__(
        self,
        *,
        outputs: int,
        budget: int,
        eta: float,
        rho: float,
        decay: float,
        nu: float,
        s: int,
        gamma: Array,
        interval: tuple[float, float],
        logarithm: bool = False,
        loss: Loss,
        seed: int,
        regression: bool = False,
        value: Value = value,
        gradient: Value = gradient,
    ) -> None:
        super().__init__(outputs=outputs, regression=regression)
        self.value, self.gradient = value, gradient
        self.budget, self.eta, self.rho, self.decay, self.nu, self.s = budget, eta, rho, decay, nu, s
        self.gamma = np.array(gamma, dtype=np.float64)
        self.interval, self.logarithm = interval, logarithm
        self.loss = loss
        self.rng = Splitmix(seed)
        self.points: list[Array] = []
        self.w: list[Array] = []
        self.t = 0
        self.replaced = self.compensated = 0

    def score_one(self, x: Array) -> Array:
        return self.hypothesis(self.gamma, x)

    def hypothesis(self, gamma: Array, x: Array) -> Array:
        """f(x) with the weights of now and any gamma."""
        f = np.zeros(self.outputs)
        for w_j, x_j in zip(self.w, self.points, strict=True):
            f = f + w_j * self.value(gamma, x, x_j)
        return f

    def rld(self, x: Array) -> tuple[list[int], Array, float]:
        """The sampled slots, alpha and delta of Eq. 1 and 2."""
        q = [self.value(self.gamma, x, z) for z in self.points]
        slots = draw_without_replacement(self.rng, [abs(k) for k in q], self.s)
        K = np.array([[self.value(self.gamma, self.points[i], self.points[j]) for j in slots] for i in slots])
        psi = np.array([q[i] for i in slots])
        alpha = np.linalg.pinv(K, rcond=1e-10, hermitian=True) @ psi
        own = self.value(self.gamma, x, x)
        return slots, alpha, (own - float(psi @ alpha)) / own

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        self.t += 1
        if not np.any(slopes(self.loss, f, y) != 0):
            return
        if len(self.points) < self.budget:
            self.points.append(x)
            self.w.append(np.zeros(self.outputs))
            slot = len(self.points) - 1
        else:
            slots, alpha, delta = self.rld(x)
            if delta > self.nu:
                sizes = [float(np.sum(np.abs(w_j))) for w_j in self.w]
                slot = sizes.index(min(sizes))
                self.points[slot] = x
                self.w[slot] = np.zeros(self.outputs)
                self.replaced += 1
            else:
                g = w * slopes(self.loss, f, y)
                for i, a in zip(slots, alpha, strict=True):
                    self.w[i] = self.w[i] - self.eta * a * g
                self.compensated += 1
                return
        f_b = self.score_one(x)
        self.w[slot] = -self.eta * w * slopes(self.loss, f_b, y)
        f_w = self.score_one(x)
        g = w * slopes(self.loss, f_w, y)
        step = np.zeros(len(self.gamma))
        for w_j, x_j in zip(self.w, self.points, strict=True):
            step = step + float(g @ w_j) * self.gradient(self.gamma, x, x_j)
        self.gamma = moved(self.gamma, self.rho / self.t**self.decay * step, self.logarithm, self.interval)


class OKLGD(Learner):
    """Kernel gradient descent, each centre with the gamma it was born with (Chen et al. 2016)."""

    def __init__(
        self,
        *,
        outputs: int,
        eta: float,
        rho: float,
        decay: float,
        gamma: float,
        interval: tuple[float, float],
        logarithm: bool = False,
        loss: Loss,
        regression: bool = False,
    ) -> None:
        super().__init__(outputs=outputs, regression=regression)
        self.eta, self.rho, self.decay, self.gamma = eta, rho, decay, gamma
        self.interval, self.logarithm = interval, logarithm
        self.loss = loss
        self.centres: list[tuple[Array, Array, Array]] = []  # x_j, w_j, gamma_j
        self.t = 0

    def score_one(self, x: Array) -> Array:
        f = np.zeros(self.outputs)
        for x_j, w_j, gamma_j in self.centres:
            f = f + w_j * value(gamma_j, x, x_j)
        return f

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        self.t += 1
        g = w * slopes(self.loss, f, y)
        if not np.any(g != 0):
            return
        if self.centres:
            x_n, w_n, gamma_n = self.centres[-1]
            step = self.rho / self.t**self.decay * float(g @ w_n) * float(gradient(gamma_n, x, x_n)[0])
            self.gamma = float(moved(self.gamma, step, self.logarithm, self.interval))
        self.centres.append((x, -self.eta * g, np.array([self.gamma])))


class OKS(Learner):
    """A draw between N kernel machines each round (Yang et al. 2012)."""

    def __init__(
        self,
        *,
        outputs: int,
        gammas: list[float],
        eta: float,
        delta: float,
        rate: float | None,
        loss: Loss,
        seed: int,
        regression: bool = False,
        limit: float | None = None,
    ) -> None:
        super().__init__(outputs=outputs, regression=regression)
        self.limit = limit  # of the step: 1 / curvature where the slope of the loss has no bound
        self.gammas, self.eta, self.delta, self.rate, self.loss = gammas, eta, delta, rate, loss
        self.rng = Splitmix(seed)
        self.losses = np.zeros(len(gammas))
        self.experts: list[list[tuple[Array, Array]]] = [[] for _ in gammas]
        self.t = 1
        self.u = self.rng.uniform()  # of the round to come

    def probabilities(self) -> Array:
        """p = (1 - delta) q / sum q + delta / N."""
        N = len(self.gammas)
        rate = (
            math.sqrt(2 * (1 - self.delta) * math.log(N) / (N * self.t)) if self.rate is None else self.rate
        )
        q = np.exp(-rate * self.losses)
        return (1 - self.delta) * q / q.sum() + self.delta / N

    def drawn(self) -> int:
        """The candidate of the round to come."""
        return min(int(np.sum(np.cumsum(self.probabilities()) <= self.u)), len(self.gammas) - 1)

    def score_one(self, x: Array) -> Array:
        i = self.drawn()
        f = np.zeros(self.outputs)
        for x_j, w_j in self.experts[i]:
            f = f + w_j * value(np.array([self.gammas[i]]), x, x_j)
        return f

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        i = self.drawn()
        p = self.probabilities()[i]
        targets = column_targets(y, self.outputs)
        g = slopes(self.loss, f, y)
        step = self.eta * w / p
        if self.limit is not None:
            step = min(step, self.limit)
        if np.any(g != 0):
            self.experts[i].append((x, -step * g))
        self.losses[i] += (
            w * sum(self.loss.value(float(f[c]), float(targets[c])) for c in range(self.outputs)) / p
        )
        self.t += 1
        self.u = self.rng.uniform()


def alignment(K: Array, Y: Array, centered: bool) -> float:
    """<K, T> / (|K| |T|) with T = Y Y^T, each centred by H = I - 1 1^T / n on both sides if asked."""
    n = len(K)
    H = np.eye(n) - 1.0 / n if centered else np.eye(n)
    A, T = H @ K @ H, H @ (Y @ Y.T) @ H
    return float(np.sum(A * T) / (np.linalg.norm(A) * np.linalg.norm(T)))


class ProjKA(Learner):
    """Projectron with the best aligned bandwidth: chosen anew, and all rows learnt anew, at 2, 4, 8, ... rows and the last
    of the warm-up."""

    def __init__(self, *, budget: int, eta: float, sigmas: list[float], warmup: int, outputs: int) -> None:
        super().__init__(outputs=outputs)
        self.budget, self.eta, self.sigmas, self.warmup = budget, eta, sigmas, warmup
        self.kept: list[tuple[Array, float]] = []
        self.model = self.projectron(1.0)

    def projectron(self, sigma: float) -> Projectron:
        kernel = gaussian(1 / (2 * sigma**2))
        return Projectron(kernel=kernel, outputs=self.outputs, budget=self.budget, eta=self.eta)

    def score_one(self, x: Array) -> Array:
        return self.model.score_one(x)

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        self.model.learn(x, y, f, w)
        if len(self.kept) >= self.warmup:
            return
        self.kept.append((x, y))
        n = len(self.kept)
        if n != self.warmup and (n < 2 or n & (n - 1)):
            return
        X = np.array([x for x, _ in self.kept])
        Y = np.array([column_targets(y, self.outputs) for _, y in self.kept])
        matrices = [gaussian(1 / (2 * sigma**2))(X, X) for sigma in self.sigmas]
        aligned = [alignment(K, Y, False) for K in matrices]
        self.model = self.projectron(self.sigmas[aligned.index(max(aligned))])
        self.model.run(X, np.array([y for _, y in self.kept]))
