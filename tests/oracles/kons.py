"""Online Newton step, KONS by the paper's Lemma 2 (corrected), KORS and KRLS: slow and obvious, in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .rng import Splitmix

Array = NDArray[np.float64]


def slope(loss: str, f: float, y: float) -> float:
    """The derivative of the loss in f."""
    if loss == "squared":
        return f - y
    if loss == "logistic":
        return -y / (1 + np.exp(y * f))
    if loss == "hinge":
        return -y if y * f < 1 else 0.0
    if loss == "epsilon_insensitive":  # epsilon = 0.1
        return float(np.sign(f - y)) if abs(f - y) > 0.1 else 0.0
    if loss == "huber":  # delta = 1
        return float(np.clip(f - y, -1.0, 1.0))
    return -2 * y * max(0.0, 1 - y * f)


def value(loss: str, f: float, y: float) -> float:
    """The loss."""
    if loss == "squared":
        return (f - y) ** 2 / 2
    if loss == "logistic":
        return float(np.log1p(np.exp(-y * f)))
    return max(0.0, 1 - y * f) ** 2


def curvature(loss: str, C: float, y: float) -> float:
    """The largest sigma of Assumption 2, by trying all pairs of scores on a grid over [-C, C]."""
    grid = np.linspace(-C, C, 201)
    values = np.array([value(loss, f, y) for f in grid])
    first = np.array([slope(loss, f, y) for f in grid])[:, None] * (grid[None, :] - grid[:, None])
    usable = np.abs(first) > 1e-6
    return float((2 * (values[None, :] - values[:, None] - first)[usable] / first[usable] ** 2).min())


def clip(z: float, C: float) -> tuple[float, float]:
    """The clipped score and h, how far z is outside [-C, C]."""
    h = np.sign(z) * max(abs(z) - C, 0.0)
    return z - h, h


def quadratic_features(X: Array, gamma: float, coef0: float) -> Array:
    """The feature map of (gamma x.y + coef0)^2: all products of two of (sqrt(gamma) x, sqrt(coef0))."""
    Z = np.hstack([np.sqrt(gamma) * X, np.full((len(X), 1), np.sqrt(coef0))])
    return np.einsum("ni,nj->nij", Z, Z).reshape(len(X), -1)


def fast_gaussian(gamma: float) -> Callable[[Array, Array], Array]:
    """The Gaussian kernel of two matrices."""
    return lambda X, Y: np.exp(-gamma * ((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2))


class OnlineNewtonStep:
    """ONS on explicit features (Eq. 1), A inverted anew each round.

    `coin(t)` says whether round t's gradient enters A (always, by default: KONS).
    """

    def __init__(
        self, width: int, *, C: float, alpha: float, loss: str, sigma: Callable[[float], float]
    ) -> None:
        self.C, self.alpha, self.loss, self.sigma = C, alpha, loss, sigma
        self.A = alpha * np.eye(width)
        self.w = np.zeros(width)
        self.g = np.zeros(width)  # the gradient of the round before
        self.clipped = self.idle = 0

    def u(self) -> Array:
        return self.w - np.linalg.solve(self.A, self.g)

    def predict(self, z: Array) -> float:
        return clip(float(z @ self.u()), self.C)[0]

    def round(self, z: Array, y: float, weight: float = 1.0, coin: bool = True) -> float:
        u = self.u()
        f, h = clip(float(z @ u), self.C)
        self.w, self.g = u, np.zeros_like(u)
        if h != 0:
            direction = np.linalg.solve(self.A, z)
            self.w = u - h / (z @ direction) * direction
        gdot = weight * slope(self.loss, f, y)
        self.g = gdot * z
        self.A = self.A + coin * self.sigma(y) / weight * np.outer(self.g, self.g)
        self.clipped += h != 0
        self.idle += gdot == 0
        return f


class LemmaKONS:
    """KONS as Algorithm 1 with Lemma 2, its slips corrected; kernel values only. No slope may be zero."""

    def __init__(
        self, kernel: Callable[[Array, Array], Array], *, C: float, alpha: float, loss: str, sigma: float
    ) -> None:
        self.kernel, self.C, self.alpha, self.loss, self.sigma = kernel, C, alpha, loss, sigma
        self.points: list[Array] = []
        self.b: list[float] = []
        self.d: list[float] = []  # gdot sqrt(eta)

    def round(self, x: Array, y: float) -> float:
        score, rest = 0.0, 0.0
        self_value = float(self.kernel(x[None], x[None])[0, 0])
        if self.points:
            P = np.array(self.points)
            D, b = np.diag(self.d), np.array(self.b)
            K, k = D @ self.kernel(P, P) @ D, self.kernel(x[None], P)[0]
            E = K + self.alpha * np.eye(len(P))
            score = k @ D @ (b - np.linalg.solve(E, K @ b)) / self.alpha
            rest = (D @ k) @ np.linalg.solve(E, D @ k)
        f, h = clip(score, self.C)
        gdot, root = slope(self.loss, f, y), np.sqrt(self.sigma)
        d = gdot * root
        below = d * d * (self_value - rest)  # the rescaled kernel, for the new point too
        self.b.append(d * (f - self.alpha * h / below) - 1 / root)
        self.points.append(x)
        self.d.append(d)
        return f


def leverage(Phi: Array, phi: Array, alpha: float, eps: float) -> float:
    """(1 + eps) phi^T (Phi^T Phi + phi phi^T + alpha I)^-1 phi; the rows of Phi are features."""
    A = Phi.T @ Phi + np.outer(phi, phi) + alpha * np.eye(len(phi))
    return float((1 + eps) * phi @ np.linalg.solve(A, phi))


def kors(
    Phi: Array, *, alpha: float, beta: float, eps: float, seed: int
) -> tuple[list[int], list[float], list[float]]:
    """Algorithm 2 on explicit features: the rows kept, their p, and the estimates of all rows."""
    draws = Splitmix(seed)
    kept: list[int] = []
    p: list[float] = []
    estimates: list[float] = []
    for t in range(len(Phi)):
        tau = leverage(Phi[kept] / np.sqrt(p)[:, None] if kept else Phi[:0], Phi[t], alpha, eps)
        estimates.append(tau)
        chance = min(beta * tau, 1.0)
        if draws.uniform() < chance:
            kept.append(t)
            p.append(chance)
    return kept, p, estimates


class KRLS:
    """At each round, weighted least squares of all targets on a_t = K^-1 k(x_t), solved from scratch."""

    def __init__(self, kernel: Callable[[Array, Array], Array], *, nu: float, max_size: int) -> None:
        self.kernel, self.nu, self.max_size = kernel, nu, max_size
        self.points: list[Array] = []
        self.a: list[Array] = []  # coefficients of every row seen over the dictionary of its time
        self.y: list[Array] = []
        self.v: list[float] = []

    def score(self, X: Array) -> Array:
        if not self.points:
            return np.zeros((len(X), 1))
        P, n = np.array(self.points), len(self.points)
        A = np.array([np.pad(a, (0, n - len(a))) for a in self.a])
        root = np.sqrt(self.v)[:, None]
        values = np.linalg.lstsq(root * A, root * np.array(self.y), rcond=None)[0]
        return self.kernel(X, P) @ np.linalg.solve(self.kernel(P, P), values)

    def residual(self, x: Array) -> tuple[float, Array]:
        """By brute force: the squared distance of phi(x) from the span, and the projection's coefficients."""
        if not self.points:
            return float(self.kernel(x[None], x[None])[0, 0]), np.zeros(0)
        P = np.array(self.points)
        k = self.kernel(x[None], P)[0]
        a = np.linalg.solve(self.kernel(P, P), k)
        return float(self.kernel(x[None], x[None])[0, 0] - 2 * k @ a + a @ self.kernel(P, P) @ a), a

    def admit(self, x: Array) -> Array:
        """Let x join the dictionary if it is far from its span; its coefficients."""
        delta, a = self.residual(x)
        if (delta > max(self.nu, 1e-10) or not self.points) and len(self.points) < self.max_size:
            self.points.append(x)
            a = np.append(np.zeros(len(a)), 1.0)
        return a

    def round(self, x: Array, y: Array, weight: float = 1.0) -> Array:
        f = self.score(x[None])[0]
        self.a.append(self.admit(x))
        self.y.append(y)
        self.v.append(weight)
        return f
