"""Margin learners: perceptrons, passive-aggressive, BPA-S."""

from __future__ import annotations

import math

import numpy as np

from .base import KernelLearner, Learner, margin_and_direction
from .kernels import Array, Kernel
from .rng import Splitmix


class _Classifier(KernelLearner):
    """A kernel margin learner that has no regression form."""

    def __init__(
        self, *, kernel: Kernel, outputs: int, regression: bool = False, max_size: int | None = None
    ) -> None:
        if regression:
            raise ValueError(f"{type(self).__name__} is for classification only")
        super().__init__(kernel=kernel, outputs=outputs, max_size=max_size)


class KernelPerceptron(_Classifier):
    """Add every mistaken point."""

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        m, u = margin_and_direction(f, y, self.outputs)
        if m <= 0:
            self.append(x, w * u)


class RBP(_Classifier):
    """Randomized budget perceptron (Cavallanti et al. 2007): when full, a random point goes."""

    def __init__(
        self, *, kernel: Kernel, outputs: int, budget: int, seed: int, regression: bool = False
    ) -> None:
        super().__init__(kernel=kernel, outputs=outputs, regression=regression)
        self.budget = budget
        self.rng = Splitmix(seed)

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        m, u = margin_and_direction(f, y, self.outputs)
        if m > 0:
            return
        if len(self.points) < self.budget:
            self.append(x, w * u)
        else:
            self.replace(self.rng.slot(self.budget), x, w * u)


def forgetron_damage(s: float, mu: float, phi: float) -> float:
    """(s phi)^2 + 2 s phi (1 - phi mu): what removing the shrunk oldest point may cost."""
    return (s * phi) ** 2 + 2.0 * s * phi * (1.0 - phi * mu)


def largest_phi(s: float, mu: float, Q: float, M: int) -> float:
    """The largest phi in (0, 1] with damage(phi) + Q <= 15/32 M, by bisection.

    The left part minus the right is negative at 0 and, unless 1 is feasible, positive at 1; a quadratic
    changes sign once in between.
    """

    def feasible(phi: float) -> bool:
        return forgetron_damage(s, mu, phi) + Q <= 15.0 / 32.0 * M

    if feasible(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if feasible(middle):
            low = middle
        else:
            high = middle
    return low


class Forgetron(_Classifier):
    """Self-tuned Forgetron (Dekel, Shalev-Shwartz, Singer 2005)."""

    def __init__(self, *, kernel: Kernel, outputs: int, budget: int, regression: bool = False) -> None:
        super().__init__(kernel=kernel, outputs=outputs, regression=regression)
        self.budget = budget
        self.M = 0
        self.Q = 0.0
        self.history: list[tuple[float, float, float, int, float]] = []  # s, mu, Q before, M, phi

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        m, u = margin_and_direction(f, y, self.outputs)
        if m > 0:
            return
        self.M += 1
        self.append(x, w * u)
        if len(self.points) <= self.budget:
            return
        r = self.oldest()
        s = float(np.sum(np.abs(self.a[r])))
        mu = float(np.sum(np.sign(self.a[r]) * self.kernel_score(self.points[r])))
        phi = largest_phi(s, mu, self.Q, self.M)
        self.history.append((s, mu, self.Q, self.M, phi))
        self.a = self.a * phi
        self.Q += forgetron_damage(s, mu, phi)
        # The new point, last so far, takes the slot of r.
        self.points[r] = self.points[-1]
        self.a[r] = self.a[-1]
        self.born[r] = self.born[-1]
        self.points.pop()
        self.a = self.a[:-1]
        self.born.pop()


class Projectron(_Classifier):
    """Projectron (Orabona, Keshet, Caputo 2008): project the new point on the stored ones if close."""

    def __init__(
        self, *, kernel: Kernel, outputs: int, budget: int, eta: float, regression: bool = False
    ) -> None:
        super().__init__(kernel=kernel, outputs=outputs, regression=regression)
        self.budget = budget
        self.eta = eta

    def project(self, x: Array) -> tuple[Array, Array, float]:
        """k, d = K^-1 k and delta^2, the squared distance of phi(x) from the span of the stored points."""
        k_tt = self.k(x, x)
        if not self.points:
            return np.zeros(0), np.zeros(0), k_tt
        k = self.k_vector(x)
        K = np.array([self.k_vector(z) for z in self.points])
        d = np.linalg.solve(K, k)
        return k, d, max(0.0, k_tt - float(k @ d))

    def learn_mistake(self, x: Array, u: Array, w: float) -> None:
        """Project the new point, or add it."""
        k_tt = self.k(x, x)
        _, d, delta2 = self.project(x)
        full = len(self.points) >= self.budget
        if math.sqrt(delta2) <= self.eta or delta2 <= 1e-10 * k_tt or full:
            self.a = self.a + np.outer(d, w * u)
        else:
            self.append(x, w * u)

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        m, u = margin_and_direction(f, y, self.outputs)
        if self.k(x, x) != 0 and m <= 0:
            self.learn_mistake(x, u, w)


class ProjectronPP(Projectron):
    """Projectron++ (the same paper): also a projected step when the margin is positive but below 1."""

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        m, u = margin_and_direction(f, y, self.outputs)
        if self.k(x, x) == 0:
            return
        if m <= 0:
            self.learn_mistake(x, u, w)
        elif m < 1:
            hinge = 1.0 - m
            k, d, delta2 = self.project(x)
            p = float(k @ d)
            if p > 0:
                allowance = 0.0 if len(self.points) >= self.budget else math.sqrt(delta2) / self.eta
                step = min(hinge / p, 2.0 * (hinge - allowance) / p, 1.0)
                if step > 0:
                    self.a = self.a + step * np.outer(d, w * u)


def pa_hinge_and_direction(
    f: Array, y: float, outputs: int, regression: bool, epsilon: float
) -> tuple[float, Array]:
    """The loss of passive-aggressive learners and the direction that lowers it."""
    if regression:
        return max(0.0, abs(y - float(f[0])) - epsilon), np.array([float(np.sign(y - f[0]))])
    m, u = margin_and_direction(f, y, outputs)
    return max(0.0, 1.0 - m), u


def pa_tau(variant: str, hinge: float, n: float, C: float, w: float) -> float:
    """The step of PA, PA-I, PA-II (Crammer et al. 2006); n is |x|^2 or k_tt. Zero: no step."""
    if hinge <= 0:
        return 0.0
    if variant in ("PA", "PA-I") and n <= 0:
        return 0.0
    if variant == "PA":
        return hinge / n
    if variant == "PA-I":
        return min(w * C, hinge / n)
    if variant == "PA-II":
        return hinge / (n + 1.0 / (2.0 * w * C))
    raise ValueError(f"variant {variant!r}: PA, PA-I or PA-II")


class KernelPA(KernelLearner):
    """Kernel passive-aggressive; `variant` is "PA", "PA-I" or "PA-II"."""

    def __init__(
        self,
        *,
        kernel: Kernel,
        outputs: int,
        variant: str,
        C: float = 1.0,
        epsilon: float = 0.1,
        max_size: int | None = None,
        regression: bool = False,
    ) -> None:
        super().__init__(kernel=kernel, outputs=outputs, regression=regression, max_size=max_size)
        self.variant = variant
        self.C = C
        self.epsilon = epsilon

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        hinge, u = pa_hinge_and_direction(f, y, self.outputs, self.regression, self.epsilon)
        tau = pa_tau(self.variant, hinge, self.k(x, x), self.C, w)
        if tau > 0:
            self.append(x, tau * u)


class LinearPA(Learner):
    """Passive-aggressive with the linear kernel; `weights` is (inputs, outputs)."""

    def __init__(
        self, *, outputs: int, variant: str, C: float = 1.0, epsilon: float = 0.1, regression: bool = False
    ) -> None:
        super().__init__(outputs=outputs, regression=regression)
        self.variant = variant
        self.C = C
        self.epsilon = epsilon
        self.weights: Array | None = None

    def score_one(self, x: Array) -> Array:
        if self.weights is None:
            return np.zeros(self.outputs)
        return x @ self.weights

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        if self.weights is None:
            self.weights = np.zeros((len(x), self.outputs))
        hinge, u = pa_hinge_and_direction(f, y, self.outputs, self.regression, self.epsilon)
        tau = pa_tau(self.variant, hinge, float(x @ x), self.C, w)
        self.weights = self.weights + tau * np.outer(x, u)


class BPAS(_Classifier):
    """Budgeted passive-aggressive, simple (Wang, Vucetic 2010)."""

    def __init__(
        self, *, kernel: Kernel, outputs: int, budget: int, C: float, regression: bool = False
    ) -> None:
        super().__init__(kernel=kernel, outputs=outputs, regression=regression)
        self.budget = budget
        self.C = C

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        m, u = margin_and_direction(f, y, self.outputs)
        hinge = max(0.0, 1.0 - m)
        k_tt = self.k(x, x)
        if hinge == 0 or k_tt == 0:
            return
        tau = min(w * self.C, hinge / k_tt)
        if len(self.points) < self.budget:
            self.append(x, tau * u)
            return
        cost = []
        for j in range(len(self.points)):
            k_jj = self.k(self.points[j], self.points[j])
            k_j = self.k(x, self.points[j])
            cost.append(float(np.sum(self.a[j] ** 2)) * (k_jj - k_j**2 / k_tt))
        r = cost.index(min(cost))
        self.replace(r, x, tau * u + self.a[r] * self.k(x, self.points[r]) / k_tt)
