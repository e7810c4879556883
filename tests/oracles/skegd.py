"""SkeGD and its sketch, as the paper writes them: everything computed in one go from all stored examples."""

from __future__ import annotations

import math

import numpy as np

from .kernels import Array, Kernel
from .loss_learners import KOGD, slopes
from .losses import Loss
from .rng import INCREMENT, MODULUS, mix


def bits(seed: int, *counters: int) -> int:
    """The hash behind every random choice of the sketch."""
    state = mix(seed + INCREMENT)
    for counter in counters:
        state = mix((state + INCREMENT * (counter + 1)) % MODULUS)
    return state


def fraction(hashed: int) -> float:
    return (hashed >> 11) * 2.0**-53


def sjlt_row(number: int, size: int, blocks: int, seed: int) -> Array:
    """One row of S_p: in each block of size / blocks columns one entry +-1/sqrt(blocks)."""
    row = np.zeros(size)
    width = size // blocks
    for k in range(blocks):
        hashed = bits(seed, number, k)
        row[k * width + math.floor(fraction(hashed) * width)] = (1.0 if hashed % 2 else -1.0) / math.sqrt(
            blocks
        )
    return row


def sample(n: int, samples: int, seed: int) -> list[int]:
    """Which of the first n examples are landmarks."""
    return sorted(sorted(range(n), key=lambda i: bits(seed, i, 0, 1))[:samples])


class Sketch:
    """The stored examples and what the paper computes from them."""

    def __init__(
        self, *, kernel: Kernel, size: int, samples: int, rank: int, blocks: int, capacity: int, seed: int
    ) -> None:
        self.kernel = kernel
        self.size = size // blocks * blocks
        self.samples = samples
        self.rank = rank
        self.blocks = blocks
        self.capacity = capacity
        self.seed = seed
        self.stored: list[Array] = []
        self.numbers: list[int] = []
        self.offered = 0
        self.drawn: list[int] = []
        self.landmarks: Array = np.zeros((0, 0))

    def begin(self, points: list[Array]) -> None:
        self.stored = list(points)
        self.numbers = list(range(len(points)))
        self.offered = len(points)
        self.drawn = sample(len(points), self.samples, self.seed)
        self.landmarks = np.array([points[i] for i in self.drawn])

    def offer(self, x: Array) -> int | None:
        """The slot x took; None if the reservoir is full and does not take it."""
        number = self.offered
        self.offered += 1
        if len(self.stored) < self.capacity:
            self.stored.append(x)
            self.numbers.append(number)
            return len(self.stored) - 1
        others = [slot for slot in range(self.capacity) if slot not in self.drawn]
        place = math.floor(fraction(bits(self.seed, number, 0, 2)) * (number + 1 - self.samples))
        if place >= len(others):
            return None
        slot = others[place]
        self.stored[slot] = x
        self.numbers[slot] = number
        return slot

    def S(self) -> Array:
        return np.array([sjlt_row(n, self.size, self.blocks, self.seed) for n in self.numbers])

    def sketches(self) -> tuple[Array, Array]:
        """Phi_pp = S_p^T K S_p and Phi_pm = S_p^T K(stored, landmarks)."""
        R, S = np.array(self.stored), self.S()
        return S.T @ self.kernel(R, R) @ S, S.T @ self.kernel(R, self.landmarks)

    def Q(self) -> Array:
        """Q = Phi_pm^+ V Sigma^1/2, the decomposition and the pseudo-inverse of rank k."""
        pp, pm = self.sketches()
        values, vectors = np.linalg.eigh((pp + pp.T) / 2)
        order = np.argsort(-values)[: self.rank]
        root = vectors[:, order] @ np.diag(np.sqrt(np.maximum(values[order], 0)))
        U, s, Vt = np.linalg.svd(pm, full_matrices=False)
        k = min(self.rank, int(np.sum(s > 1e-10 * s[0])))
        return Vt[:k].T @ np.diag(1 / s[:k]) @ U[:, :k].T @ root


class SkeGD(KOGD):
    """Algorithm 1, the sketch made once, `transfer` paper (line 18) or lstsq."""

    def __init__(
        self,
        *,
        kernel: Kernel,
        outputs: int,
        budget: int,
        size: int,
        samples: int,
        rank: int,
        blocks: int,
        cycle: int,
        capacity: int,
        eta: float,
        lam: float,
        transfer: str,
        loss: Loss,
        seed: int,
        least_share: float = 0.01,
        regression: bool = False,
    ) -> None:
        super().__init__(kernel=kernel, outputs=outputs, eta=eta, lam=lam, loss=loss, regression=regression)
        self.least_share = least_share
        self.budget = budget
        self.cycle = cycle
        self.transfer = transfer
        self.sketch = Sketch(
            kernel=kernel, size=size, samples=samples, rank=rank, blocks=blocks, capacity=capacity, seed=seed
        )
        self.t = 0  # rounds learnt
        self.weights: Array | None = None
        self.Q: Array = np.zeros((0, 0))
        self.refreshes = 0
        self.line_18 = 0

    def phi(self, x: Array) -> Array:
        return self.Q.T @ self.kernel(x[np.newaxis, :], self.sketch.landmarks)[0]

    def score_one(self, x: Array) -> Array:
        return self.kernel_score(x) if self.weights is None else self.phi(x) @ self.weights

    def renew(self, slot: int) -> None:
        """New Q; weights that keep the prediction on the example in a slot, or on all stored."""
        before = np.array([self.score_one(x) for x in self.sketch.stored])
        self.Q = self.sketch.Q()
        after = np.array([self.phi(x) for x in self.sketch.stored])
        own = self.k(self.sketch.stored[slot], self.sketch.stored[slot])
        if self.transfer == "paper" and np.sum(after[slot] ** 2) > self.least_share * own:
            self.line_18 += 1
            self.weights = np.outer(after[slot], before[slot]) / np.sum(after[slot] ** 2)
        else:
            self.weights = np.linalg.lstsq(after, before, rcond=1e-6)[0]

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        self.t += 1
        if self.weights is None:
            super().learn(x, y, f, w)
            if len(self.points) == self.budget:
                self.sketch.begin(self.points)
                self.renew(self.budget - 1)
            return
        if (self.t - 1) % self.cycle == 0:
            slot = self.sketch.offer(x)
            if slot is not None:
                self.refreshes += 1
                self.renew(slot)
        g = slopes(self.loss, self.score_one(x), y)
        self.weights = self.weights * (1 - self.eta * self.lam) - self.eta * w * np.outer(self.phi(x), g)
