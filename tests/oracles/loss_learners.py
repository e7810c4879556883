"""Loss learners: online gradient descent on a kernel expansion or on explicit features, one-vs-rest."""

from __future__ import annotations

import math

import numpy as np

from .base import KernelLearner, Learner, column_targets
from .kernels import Array, Kernel
from .losses import Loss
from .rng import Splitmix


def slopes(loss: Loss, f: Array, y: float) -> Array:
    """g_c = loss'(f_c) against the target of column c."""
    targets = column_targets(y, len(f))
    return np.array([loss.slope(float(f[c]), float(targets[c])) for c in range(len(f))])


class KOGD(KernelLearner):
    """Kernel online gradient descent (NORMA): shrink every round, add the point if the loss has a slope."""

    def __init__(
        self,
        *,
        kernel: Kernel,
        outputs: int,
        eta: float,
        lam: float,
        loss: Loss,
        max_size: int | None = None,
        regression: bool = False,
    ) -> None:
        super().__init__(kernel=kernel, outputs=outputs, regression=regression, max_size=max_size)
        self.eta = eta
        self.lam = lam
        self.loss = loss

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        g = slopes(self.loss, f, y)
        self.a = self.a * (1.0 - self.eta * self.lam)
        if np.any(g != 0):
            self.insert(x, -self.eta * w * g)

    def insert(self, x: Array, row: Array) -> None:
        """Where the new point goes."""
        self.append(x, row)


class TruncatedKOGD(KOGD):
    """KOGD in which the oldest point is removed."""

    def __init__(
        self,
        *,
        kernel: Kernel,
        outputs: int,
        budget: int,
        eta: float,
        lam: float,
        loss: Loss,
        regression: bool = False,
    ) -> None:
        super().__init__(kernel=kernel, outputs=outputs, eta=eta, lam=lam, loss=loss, regression=regression)
        self.budget = budget

    def insert(self, x: Array, row: Array) -> None:
        if len(self.points) < self.budget:
            self.append(x, row)
        else:
            self.replace(self.oldest(), x, row)


class BOGD(KOGD):
    """Budgeted online gradient descent (Zhao et al. 2012); `removal`: uniform, nonuniform or smallest."""

    def __init__(
        self,
        *,
        kernel: Kernel,
        outputs: int,
        budget: int,
        eta: float,
        lam: float,
        removal: str,
        clip: float,
        loss: Loss,
        seed: int,
        regression: bool = False,
    ) -> None:
        if budget < 2 or removal not in ("uniform", "nonuniform", "smallest"):
            raise ValueError("budget >= 2; removal uniform, nonuniform or smallest")
        super().__init__(kernel=kernel, outputs=outputs, eta=eta, lam=lam, loss=loss, regression=regression)
        self.budget = budget
        self.removal = removal
        self.clip = clip
        self.rng = Splitmix(seed)

    def norms(self) -> Array:
        """|a_j|_1 sqrt(k_jj)."""
        return np.array(
            [np.sum(np.abs(self.a[j])) * math.sqrt(self.k(x, x)) for j, x in enumerate(self.points)]
        )

    def probabilities(self) -> Array:
        """The probability of each slot to be dropped."""
        B = self.budget
        norms = self.norms()
        if self.removal == "uniform" or np.sum(norms) == 0:
            return np.full(B, 1.0 / B)
        p = np.maximum(0.0, 1.0 - (B - 1) * norms / np.sum(norms))
        return p / np.sum(p)

    def draw(self) -> int:
        """The slot to drop, by one draw."""
        if self.removal == "uniform" or np.sum(self.norms()) == 0:
            return self.rng.slot(self.budget)
        u = self.rng.uniform()
        cumulative = 0.0
        for j, p_j in enumerate(self.probabilities()):
            cumulative += p_j
            if cumulative > u:
                return j
        return self.budget - 1

    def insert(self, x: Array, row: Array) -> None:
        if len(self.points) < self.budget:
            self.append(x, row)
            return
        if self.removal == "smallest":
            norms = list(self.norms())
            self.replace(norms.index(min(norms)), x, row)
            return
        p = self.probabilities()
        j = self.draw()
        bound = self.clip * self.eta
        for i in range(self.budget):
            if i != j:
                self.a[i] = np.clip(self.a[i] / (1.0 - p[i]), -bound, bound)
        self.replace(j, x, row)


class FOGD(Learner):
    """Fourier online gradient descent (Lu et al. 2016).

    `W` is (inputs, m), one frequency per column; `weights` is (2 m, outputs), the cosines first.
    """

    def __init__(
        self, *, W: Array, outputs: int, eta: float, lam: float, loss: Loss, regression: bool = False
    ) -> None:
        super().__init__(outputs=outputs, regression=regression)
        self.W = np.asarray(W, dtype=np.float64)
        self.eta = eta
        self.lam = lam
        self.loss = loss
        self.weights: Array = np.zeros((2 * self.W.shape[1], outputs))

    def features(self, x: Array) -> Array:
        """z(x) = sqrt(1 / m) [cos(W x), sin(W x)]."""
        projections = [float(np.sum(self.W[:, i] * x)) for i in range(self.W.shape[1])]
        cosines = [math.cos(v) for v in projections]
        sines = [math.sin(v) for v in projections]
        return math.sqrt(1.0 / self.W.shape[1]) * np.array(cosines + sines)

    def score_one(self, x: Array) -> Array:
        return self.features(x) @ self.weights

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        g = slopes(self.loss, f, y)
        self.weights = self.weights * (1.0 - self.eta * self.lam)
        self.weights = self.weights - self.eta * w * np.outer(self.features(x), g)


class NOGD(KOGD):
    """Nystrom online gradient descent (Lu et al. 2016): KOGD until `budget` points, then `weights` on phi.

    `weights` is None before, (rank, outputs) after; directions come in falling order of eigenvalue.
    """

    def __init__(
        self,
        *,
        kernel: Kernel,
        outputs: int,
        budget: int,
        rank: int,
        eta: float,
        lam: float,
        loss: Loss,
        regression: bool = False,
    ) -> None:
        super().__init__(kernel=kernel, outputs=outputs, eta=eta, lam=lam, loss=loss, regression=regression)
        self.budget = budget
        self.rank = rank
        self.weights: Array | None = None
        self.V: Array = np.zeros((0, 0))
        self.D: Array = np.zeros(0)

    def build_map(self) -> None:
        """K_B = V D V^T, the `rank` largest; weights = D^1/2 V^T a."""
        K = np.array([self.k_vector(z) for z in self.points])
        values, vectors = np.linalg.eigh(K)
        order = np.argsort(-values)[: self.rank]
        self.D = values[order]
        self.V = vectors[:, order]
        root = np.array([math.sqrt(D_i) if self.kept(D_i) else 0.0 for D_i in self.D])
        self.weights = root[:, np.newaxis] * (self.V.T @ self.a)

    def kept(self, D_i: float) -> bool:
        """Whether a direction is large enough to be used."""
        return D_i > 0 and D_i >= 1e-10 * self.D[0]

    def features(self, x: Array) -> Array:
        """phi(x) = D^-1/2 V^T k(x)."""
        inverse_root = np.array([1.0 / math.sqrt(D_i) if self.kept(D_i) else 0.0 for D_i in self.D])
        return inverse_root * (self.V.T @ self.k_vector(x))

    def score_one(self, x: Array) -> Array:
        if self.weights is None:
            return self.kernel_score(x)
        return self.features(x) @ self.weights

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        if self.weights is None:
            super().learn(x, y, f, w)
            if len(self.points) == self.budget:
                self.build_map()
            return
        g = slopes(self.loss, f, y)
        self.weights = self.weights * (1.0 - self.eta * self.lam)
        self.weights = self.weights - self.eta * w * np.outer(self.features(x), g)
