"""NewtonMixture, slow and obvious: one round at a time, the window solved afresh, no block and no delayed covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import brentq

from .base import Learner
from .kernels import Array

Kept = list[tuple[Array, float, float]]
LocalRow = tuple[Array, int, np.float32, np.float32, Array]


def soft_clip(z: Array) -> Array:
    """The identity near 0, bounded by 4."""
    return z / (1 + np.abs(z) / 4)


def softmax(z: Array) -> Array:
    """Probabilities of logits."""
    p = np.exp(z - z.max())
    return p / p.sum()


def sigmoid(f: float) -> float:
    """1 / (1 + e^-f)."""
    return 0.5 * (1 + math.tanh(f / 2))


def implicit_residual(f: float, s: float, y: int) -> float:
    """The a with a = y - sigmoid(f + s a)."""
    low, high = (0.0, 1.0) if y == 1 else (-1.0, 0.0)

    def gap(a: float) -> float:
        return y - sigmoid(f + s * a) - a

    if gap(low) <= 0:  # the probability is y to the last digit
        return low
    if gap(high) >= 0:
        return high
    return float(brentq(gap, low, high, xtol=1e-16, maxiter=200))


class Newton:
    """w ~ N(W, P): forgets towards the prior, then takes a Newton step."""

    def __init__(self, prior: Array, outputs: int, loss: str, keep: float) -> None:
        self.prior, self.loss, self.keep = prior, loss, keep
        self.P = np.diag(prior)
        self.W = np.zeros((len(prior), outputs))

    def score(self, x: Array) -> Array:
        """One score per output."""
        return self.W.T @ x

    def learn(self, x: Array, y: float, weight: float) -> None:
        """y: a real target, -1 or +1, or a class's number."""
        self.P = self.keep * self.P + (1 - self.keep) * np.diag(self.prior)
        self.W = math.sqrt(self.keep) * self.W
        f, v = self.score(x), self.P @ x
        s = float(x @ v)
        if self.loss == "squared":
            residual, h = columns(y, len(f)) - f, weight
            self.W += np.outer(v, weight * residual / (1 + h * s))
        elif len(f) == 1:  # the score after the step is f + s weight a
            a = implicit_residual(float(f[0]), weight * s, int(y > 0))
            p = (y > 0) - a
            h = weight * max(p * (1 - p), 1e-4)
            self.W[:, 0] += v * weight * a
        else:
            steps = min(math.ceil(weight), 64) if weight > 1 else 1
            for _ in range(steps):  # a heavy row is so many rows
                self.softmax_step(x, int(y), weight / steps)
            return
        self.P = self.P - h / (1 + h * s) * np.outer(v, v)

    def softmax_step(self, x: Array, y: int, weight: float) -> None:
        """One Newton step of several classes."""
        p, v = softmax(self.score(x)), self.P @ x
        s = float(x @ v)
        h = weight * max(float(p[y] * (1 - p[y])), 0.02)
        self.W += np.outer(v, weight * ((np.arange(len(p)) == y) - p) / (1 + h * s))
        self.P = self.P - h / (1 + h * s) * np.outer(v, v)


def scaling(X: Array) -> tuple[Array, Array, float]:
    """Centre and scale of each feature, and how many vary."""
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    moves = deviation > 1e-6 * np.abs(mean)
    scale = np.ones(X.shape[1])
    for d in range(X.shape[1]):
        if moves[d]:
            scale[d] = 1 / deviation[d]
        elif mean[d] != 0:
            scale[d] = 1 / abs(mean[d])
    mostly = np.array([np.sum(column != 0) > len(X) / 2 for column in X.T])
    return np.where(mostly, mean, 0.0), scale, max(1.0, float(moves.sum()))


def columns(y: float, outputs: int) -> Array:
    """The least-squares target of each column."""
    return np.array([y]) if outputs == 1 else np.where(np.arange(outputs) == int(y), 1.0, -1.0)


class Diagonal:
    """A linear model by gradient steps of their own size for each feature (AdaGrad), the bias first."""

    def __init__(self, width: int, outputs: int) -> None:
        self.W = np.zeros((1 + width, outputs))
        self.squares = np.zeros(1 + width)

    def score(self, z: Array) -> Array:
        """One score per output."""
        return self.W.T @ np.append(1.0, z)

    def learn(self, z: Array, residual: Array) -> None:
        """residual: minus the slope of the loss, one per output."""
        x = np.append(1.0, z)
        self.squares += x**2 * np.sum(residual**2)
        seen = (self.squares > 0) & (x != 0)
        self.W[seen] += np.outer(0.5 * x[seen] / np.sqrt(self.squares[seen]), residual)


@dataclass
class Memory:
    """Scaling, landmarks and bandwidth."""

    centre: Array
    scale: Array
    varying: float = 1.0
    landmarks: Array = field(default_factory=lambda: np.zeros((0, 0)))
    gamma: float = 1.0

    def __post_init__(self) -> None:
        K = gaussian(self.landmarks, self.landmarks, self.gamma)
        self.L = np.linalg.cholesky(K + 1e-3 * np.eye(len(K)))

    def scaled(self, x: Array) -> Array:
        """The scaled row."""
        return soft_clip((x - self.centre) * self.scale)

    def phi(self, x: Array, budget: int) -> Array:
        """Nystrom features, as many as the budget."""
        phi = np.zeros(budget)
        n = len(self.landmarks)
        if n:
            k = gaussian(self.landmarks, self.scaled(x)[None], self.gamma)[:, 0]
            phi[:n] = solve_triangular(self.L, k, lower=True)
        return phi


def gaussian(A: Array, B: Array, gamma: float) -> Array:
    """exp(-gamma |a - b|^2)."""
    return np.exp(-gamma * np.sum((A[:, None] - B[None]) ** 2, axis=2))


class Aggregate:
    """Fixed share over the experts and two stacks of them."""

    SHARED, STACK_PRIOR, LEAST_LIKELIHOOD, KEEP, HEAVY_TAILS, LABELS_SHARE = (
        1e-3,
        0.5,
        1e-4,
        (1.0, 0.999),
        4,
        0.01,
    )
    #: The aggregation, neighbours, corrected, and three means; what they begin with, and their weights in the stacks.
    LOCAL_SHARES, LOCAL_WEIGHTS = (1, 0.3, 0.3, 0.1, 0.1, 0.1), (0.75, 0.125, 0.125, 0, 0, 0)

    def __init__(
        self, experts: int, regression: bool, local: bool = False, ordered: bool = True, trees: bool = True
    ) -> None:
        self.E, self.regression, self.local, self.ordered, self.trees = (
            experts,
            regression,
            local,
            ordered,
            trees,
        )
        self.start_shares = np.ones(experts + 2)
        late = np.append(np.ones(experts - 1), self.LABELS_SHARE)  # of an even share
        if local:
            late = np.array(self.LOCAL_SHARES)
        part = np.ones(experts + 2)  # who takes part
        if not ordered:
            part[experts + 1] = 0  # forgetting_stack
        if not (ordered or local):
            part[[2, 4, 6]] = 0  # recent, window, labels
        if local and not ordered:
            part[5] = 0  # latest
        if not (trees or local):
            part[5] = 0
        late *= part[:experts]
        self.start_shares[:experts] = late
        self.start_shares *= part
        self.start_shares /= self.start_shares.sum()
        self.shares = self.start_shares.copy()
        self.mean = np.append(
            np.full(experts - 3, 1 / (experts - 3)), [0.0, 0.0, 0.0]
        )  # window, trees and labels begin with nothing
        self.mean *= part[:experts]
        self.mean /= self.mean.sum()
        if local:  # mostly the aggregation's forecast
            self.mean = np.array(self.LOCAL_WEIGHTS, float)
        self.start = self.STACK_PRIOR * np.diag(late)
        # as if the sum of the weights had been measured, with a variance of 0.25
        along = self.start.sum(axis=1)
        self.start -= np.outer(along, along) / (along.sum() + 0.25)
        squared = [1, 3, 5] if local else [1, 4]  # neighbours, smoothed, latest; least_squares, window
        self.confidences, self.confidence_variances = np.ones(experts), np.zeros(experts)
        if not regression:
            self.confidence_variances[squared] = self.STACK_PRIOR
        self.stacks = [self.mean.copy() for _ in self.KEEP]
        self.P = [self.start.copy() for _ in self.KEEP]
        self.noise, self.rounds, self.outliers, self.outlier = 1.0, 0, 0.0, False
        self.usual_error, self.first_errors, self.loose, self.outlier_weight = 1.0, list[float](), 0.0, 1.0

    def learn_stream(self) -> None:
        """All candidates from now on."""
        if self.ordered:
            return
        all_of_them = Aggregate(self.E, self.regression, self.local, trees=self.trees)
        added = (self.start_shares == 0) & (all_of_them.start_shares > 0)
        self.start_shares, self.mean, self.start = (
            all_of_them.start_shares,
            all_of_them.mean,
            all_of_them.start,
        )
        self.shares = np.where(added, self.SHARED * self.start_shares, self.shares)
        self.shares /= self.shares.sum()
        new = np.flatnonzero(added[: self.E])
        self.P[0][new, new] = self.start[new, new]
        self.stacks[1], self.P[1] = self.stacks[0].copy(), self.P[0].copy()
        self.ordered = True

    def bounded(self, z: Array, y: float, here: float) -> float:
        """The target that is learnt: not too far from the forecast, unless the last ones were too. And one bounded loosely.

        here: the usual error around the row.
        """
        here = max(here, self.usual_error)
        forecast = float(self.forecast(z)[0])
        miss = abs(y - forecast)
        self.outlier = self.rounds >= 8 and miss > 8 * self.usual_error
        moved = []
        for bound, far in ((8, 20), (100, 300)):
            reach, far = min(miss, bound * here), far * here
            if self.rounds < 64:
                far = max(far, 20.0)
            if miss > far:
                reach *= (far / miss) ** 2
            moved.append(forecast + math.copysign(reach, y - forecast))
        if self.rounds < 32:
            moved[1] = moved[0]
        self.outliers = 0.9 * self.outliers + 0.1 if self.outlier else 0.5 * self.outliers
        change = self.outlier and self.outliers >= 0.25
        self.outlier_weight = 1.0
        if self.outlier and not change:
            self.outlier_weight = 8 * self.usual_error / min(miss, 8 * here)
        if self.rounds < 64:
            self.first_errors.append(miss)
            self.usual_error = sorted(self.first_errors)[4 * len(self.first_errors) // 5]
            if self.rounds == 63:
                squares, before = np.square(self.first_errors), -1.0
                while self.usual_error > before:
                    before = self.usual_error
                    bounded = np.minimum(squares, (3 * before) ** 2)
                    self.usual_error = max(before, math.sqrt(bounded.mean()))
        else:
            rate = max(1 / (self.rounds + 1), 1e-3)
            counted = miss if change else min(miss, 4 * self.usual_error)
            self.usual_error = math.sqrt((1 - rate) * self.usual_error**2 + rate * counted**2)
        self.usual_error = max(self.usual_error, 1e-6)
        tight, self.loose = moved if self.outlier and not change else (y, y)
        return tight

    def rescale(self, factor: float) -> None:
        """Another unit of the targets."""
        self.noise = max(self.noise * factor**2, 1e-12)
        self.usual_error = max(self.usual_error * factor, 1e-6)
        self.first_errors = [factor * error for error in self.first_errors]

    def candidates(self, z: Array) -> Array:
        """Probabilities or values of every candidate; z: experts x classes."""
        forecasts = np.vstack([self.confidences[:, None] * z, *(w @ z for w in self.stacks)])
        return forecasts if self.regression else np.array([softmax(row) for row in forecasts])

    def forecast(self, z: Array) -> Array:
        """The weighted mean."""
        return self.shares @ self.candidates(z)

    def losses(self, z: Array, y: float) -> Array:
        """-log likelihood of each candidate, bounded."""
        forecasts = self.candidates(z)
        if self.regression:
            return np.minimum(
                (y - forecasts[:, 0]) ** 2 / (2 * self.HEAVY_TAILS * self.noise),
                -math.log(self.LEAST_LIKELIHOOD),
            )
        return -np.log(np.maximum(forecasts[:, int(y)], self.LEAST_LIKELIHOOD))

    def learn(self, z: Array, y: float, bounded: float, weight: float, learnt: int) -> None:
        """y: the class's number or the target, bounded: what the noise sees of it; learnt: rows, this one counted."""
        forecast, losses = self.forecast(z), self.losses(z, y)
        likelihood = np.exp(-weight * (losses - losses.min()))
        self.shares = self.shares * likelihood / np.sum(self.shares * likelihood)
        self.shares = (1 - self.SHARED) * self.shares + self.SHARED * self.start_shares
        weight *= learnt / (learnt + 64)  # for the stacks and the confidences
        self.learn_confidences(z, y, weight)
        for i, keep in enumerate(self.KEEP):
            before = self.candidates(z)[self.E + i]  # the forecast made before anything was forgotten
            self.P[i] = keep * self.P[i] + (1 - keep) * self.start
            self.stacks[i] = self.mean + math.sqrt(keep) * (self.stacks[i] - self.mean)
            steps = min(math.ceil(weight), 64) if weight > 1 and not self.regression else 1
            for step in range(steps):
                self.stack_step(
                    i, z, y, weight / steps, before if step == 0 else self.candidates(z)[self.E + i]
                )
        if self.regression:
            self.rounds += 1
            self.noise += ((bounded - forecast[0]) ** 2 - self.noise) * max(1 / (self.rounds + 1), 1e-3)
            self.noise = max(self.noise, 1e-12)

    def learn_confidences(self, z: Array, y: float, weight: float) -> None:
        """Newton steps of -log softmax(confidence z)_y, as those of a stack of one expert."""
        steps = min(math.ceil(weight), 64) if weight > 1 else 1
        for e in np.flatnonzero(self.confidence_variances):
            for _ in range(steps):
                p = softmax(self.confidences[e] * z[e])
                right = min(max(p[int(y)], 1e-6), 1 - 1e-6)
                slope = z[e, int(y)] - p @ z[e]
                precision = 1 / self.confidence_variances[e] + weight / steps * right / (1 - right) * slope**2
                self.confidence_variances[e] = 1 / precision
                self.confidences[e] = max(0.1, self.confidences[e] + weight / steps * slope / precision)

    def stack_step(self, i: int, z: Array, y: float, weight: float, p: Array) -> None:
        """One Newton step of a stack from its forecast p."""
        if self.regression:
            g, h = z[:, 0], weight / self.noise
            most = 3 * math.sqrt(self.noise)
            slope = h * min(max(y - p[0], -most), most)
        else:
            right = min(max(p[int(y)], 1e-6), 1 - 1e-6)
            g, h, slope = z[:, int(y)] - z @ p, weight * right / (1 - right), weight
        v = self.P[i] @ g
        self.stacks[i] = self.stacks[i] + slope * v / (1 + h * (g @ v))
        self.P[i] = self.P[i] - h * np.outer(v, v) / (1 + h * (g @ v))


class Labels:
    """How often a class follows itself, of copies of the row before and of other rows; the classes' recent frequencies."""

    def __init__(self, classes: int) -> None:
        self.frequency = np.zeros(classes)
        self.counts = {(copy, stays): np.zeros(classes) for copy in (False, True) for stays in (False, True)}
        self.last: int | None = None

    def logits(self, copy: bool) -> Array:
        """Logarithms of the classes' probabilities."""
        p = self.frequency + 0.5
        if self.last is None:
            return np.log(p / p.sum())
        repeats, changes = (self.counts[copy, stays][self.last] for stays in (True, False))
        staying = (repeats + 0.5) / (repeats + changes + 1)
        p[self.last] = 0
        p *= (1 - staying) / p.sum()
        p[self.last] = staying
        return np.log(p)

    def learn(self, y: int, weight: float, copy: bool) -> None:
        """One label."""
        if self.last is not None:
            for stays in (True, False):
                self.counts[copy, stays][self.last] *= 0.998
            self.counts[copy, y == self.last][self.last] += weight
        self.frequency *= 0.998
        self.frequency[y] += weight
        self.last = y


class Trees:
    """Regression trees, each fitted to what the others leave; rows as bins, sums of slopes as integers."""

    LEAVES, EDGES, SAMPLED, FEATURES, WORK, RATE = 16, 254, 4096, 32, 3500, 0.15

    def __init__(self, width: int, outputs: int, regression: bool, budget: int) -> None:
        self.width, self.outputs, self.regression = width, outputs, regression
        self.capacity = min(40 * budget, 2**20 // width)
        self.most = max(1, min(budget // 2, 512 // outputs if outputs > 1 else budget)) * outputs
        self.begin(np.zeros((0, width), np.float32))

    def begin(self, Z: Array) -> None:
        """No rows, no trees, other edges."""
        self.next = self.grown = self.credit = 0
        self.asked, self.answer = (b"", -1, -1), np.zeros(self.outputs)
        self.rows: dict[int, tuple[Array, np.float32, np.float32, Array]] = {}  # by slot
        self.trees: dict[
            int, tuple[Array, Array, Array]
        ] = {}  # a tree: lows and highs of its boxes, in bins, and values
        self.edges = [self.edges_of(column) for column in Z.astype(np.float32).T]

    def edges_of(self, column: Array) -> Array:
        """Middles between the distinct values, or between those around quantiles."""
        distinct, n = np.unique(column), len(column)
        at = np.arange(1, len(distinct))
        if len(distinct) > self.EDGES + 1:
            quantiles = np.sort(column)[np.arange(1, self.EDGES + 1) * n // (self.EDGES + 1)]
            at = np.unique(np.searchsorted(distinct, quantiles))
            at = at[at > 0]
        return (distinct[at - 1] + distinct[at]) / np.float32(2)

    def bins(self, z: Array) -> Array:
        """How many edges are below."""
        pairs = zip(self.edges, z.astype(np.float32), strict=True)
        return np.array([int(np.sum(edges < v)) for edges, v in pairs])

    def values(self, tree: tuple[Array, Array, Array], rows: Array) -> Array:
        """Those of the boxes that the rows are in."""
        lows, highs, values = tree
        within = np.all((rows[:, None] >= lows) & (rows[:, None] <= highs), axis=2)
        return values[np.argmax(within, axis=1)]

    def score(self, z: Array) -> Array:
        """One per output."""
        asked = (z.tobytes(), self.grown, self.next)
        if asked != self.asked:  # the same row is asked for several times in a round
            f = np.zeros(self.outputs)
            row = self.bins(z)[None] if self.trees else None
            for t in range(len(self.trees)):
                f[t % self.outputs] += self.values(self.trees[t], row)[0]
            self.asked, self.answer = asked, f
        return self.answer.copy()

    def put(self, z: Array, y: float, weight: float) -> None:
        """Keep a row."""
        if not self.edges:  # before the first rebuild
            self.edges = [np.zeros(0, np.float32)] * self.width
        y = min(max(y, -1e30), 1e30)
        row = (self.bins(z), np.float32(y), np.float32(weight), self.score(z).astype(np.float32))
        self.rows[self.next % self.capacity] = row
        self.next += 1

    def pay(self, rows: int) -> None:
        """Trees for the work of so many rows."""
        self.credit += rows * self.WORK
        while self.next >= 16:
            n, used = len(self.rows), min(self.FEATURES, sum(len(edges) > 0 for edges in self.edges))
            price = self.outputs * (
                3 * min(n, self.SAMPLED) * used
                + self.LEAVES * used * min(n, 256) // 2
                + n * (4 * self.outputs + 12)
            )
            if self.credit < price:
                return
            self.credit -= price
            self.grow()

    def add(self, t: int, sign: int) -> None:
        """The scores of the rows with a tree more or less."""
        values = sign * self.values(self.trees[t], np.array([row for row, *_ in self.rows.values()]))
        for (*_, scores), value in zip(self.rows.values(), values, strict=True):
            scores[t % self.outputs] += np.float32(value)

    def step(self, y: float, f: Array, c: int) -> tuple[float, float]:
        """Minus the slope of the loss, and its curvature."""
        f = f.astype(float)
        if self.regression:
            return y - f[0], 1.0
        p = 1 / (1 + math.exp(-f[0])) if self.outputs == 1 else float(softmax(f)[c])
        return (y > 0 if self.outputs == 1 else int(y) == c) - p, p * (1 - p)

    def grow(self) -> None:
        """A tree more of each output."""
        trees = [self.grown % self.most + c for c in range(self.outputs)]
        for t in trees if self.grown >= self.most else []:
            self.add(t, -1)
        for t, tree in zip(trees, [self.tree(t, self.grown // self.outputs) for t in trees], strict=True):
            self.trees[t] = tree
        for t in trees:
            self.add(t, 1)
        self.grown += self.outputs

    def tree(self, t: int, number: int) -> tuple[Array, Array, Array]:
        """Fitted to what the others leave."""
        n, low, high = len(self.rows), np.zeros(self.width, int), np.full(self.width, 255)
        some = [i for i in range(n) if n <= self.SAMPLED or mixed(i, number) % n < self.SAMPLED]
        split = [d for d in range(self.width) if len(self.edges[d])]
        used = sorted(sorted(split, key=lambda d: mixed(~d, number))[: self.FEATURES])
        if not used:
            return low[None], high[None], np.zeros(1)
        steps = [self.step(self.rows[i][1], self.rows[i][3], t % self.outputs) for i in some]
        both = np.array(
            [[float(self.rows[i][2]) * part for part in pair] for i, pair in zip(some, steps, strict=True)]
        )
        units = np.maximum(np.abs(both).max(axis=0), 1e-30) / 2**17
        sums = np.floor(both / units + 0.5).astype(int)
        bins = np.array([self.rows[i][0] for i in some])
        leaves = [(low, high, np.arange(len(some)))]
        best = [self.best(sums, bins, used, units)]
        while len(leaves) < self.LEAVES:
            at = int(np.argmax([gain for gain, _, _ in best]))
            gain, d, cut = best[at]
            if not gain > 0:
                break
            low, high, rows = leaves[at]
            below = bins[rows, d] <= cut
            first, second = high.copy(), low.copy()
            first[d], second[d] = cut, cut + 1
            leaves[at] = (low, first, rows[below])
            leaves.append((second, high, rows[~below]))
            best.append((0.0, 0, 0))
            for k in (at, -1):
                best[k] = self.best(sums[leaves[k][2]], bins[leaves[k][2]], used, units)
        totals = np.array([sums[rows].sum(axis=0) for _, _, rows in leaves]) * units
        lows, highs, _ = zip(*leaves, strict=True)
        return np.array(lows), np.array(highs), self.RATE * totals[:, 0] / (totals[:, 1] + 1)

    def best(self, sums: Array, bins: Array, used: list[int], units: Array) -> tuple[float, int, int]:
        """The largest gain, the feature and the cut that have it."""
        G, H = sums.sum(axis=0) * units
        before, found = G * G / (H + 1), (0.0, 0, 0)
        if H < 2:
            return found
        for d in used:
            cuts = np.unique(bins[:, d])
            cuts = cuts[cuts < len(self.edges[d])]
            g, h = ((bins[:, d] <= cuts[:, None]).astype(int) @ sums * units).T
            left, right = h + 1, H - h + 1
            gains = (g * g * right + (G - g) * (G - g) * left) / (left * right) - before
            gains[(h < 1) | (H - h < 1)] = 0
            for cut, gain in zip(cuts.tolist(), gains.tolist(), strict=True):
                if gain > found[0] + 1e-9 * (before + found[0]):
                    found = (gain, d, cut)
        return found


def mixed(a: int, b: int) -> int:
    """splitmix64 of two numbers."""
    word = 2**64 - 1
    x = ((a & word) * 0x9E3779B97F4A7C15 + b * 0xD1342543DE82EF95) & word
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & word
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & word
    return x ^ (x >> 31)


class Local:
    """All rows kept, and kernel ridge regression on the nearest of those whose landmark is among the nearest eight."""

    def __init__(self, width: int, rows: int) -> None:
        self.relevance, self.landmarks, self.most = np.ones(width), np.zeros((0, width), int), rows
        self.clear()

    def clear(self) -> None:
        """No rows."""
        self.rows: list[LocalRow] = []

    def steps(self, z: Array) -> Array:
        """A scaled row as integers."""
        return np.floor(z * self.relevance * 512 + 0.5).astype(int)

    def order(self, q: Array) -> Array:
        """The landmarks, the nearest first."""
        return np.argsort(np.sum((self.landmarks - q) ** 2, axis=1), kind="stable")

    def put(self, z: Array, y: float, weight: float, residual: Array) -> None:
        """Keep a row."""
        if len(self.landmarks):
            q = self.steps(z)
            row = (q, int(self.order(q)[0]), np.float32(y), np.float32(weight), residual.astype(np.float32))
            self.rows = [*self.rows, row][-self.most :]

    def around(self, q: Array) -> list[LocalRow]:
        """The nearest rows, the nearest first."""
        probed: set[int] = set()
        for landmark in self.order(q).tolist():  # at least 8, and more while they have fewer than 256 rows
            if len(probed) >= 8 and sum(row[1] in probed for row in self.rows) >= 256:
                break
            probed.add(landmark)
        near = [row for row in reversed(self.rows) if row[1] in probed]  # of rows equally far the younger one
        return sorted(near, key=lambda row: int(np.sum((row[0] - q) ** 2)))[:64]

    def usual_residual(self, z: Array) -> float:
        """What the forecasts left at the neighbours, exceeded at one in five of them."""
        left = sorted(abs(float(row[4][0])) for row in self.around(self.steps(z))[:24])
        return left[19] if len(left) == 24 else 0.0

    def forecasts(self, z: Array, outputs: int) -> tuple[Array, Array, Array, Array] | None:
        """Of the target, and of what the aggregation's forecast leaves: by the kernel machine, and by the smoother."""
        q = self.steps(z)
        around = self.around(q)
        if not around:
            return None
        near = around[:24]
        share = smoother(q, around, 1, 0.5)
        S = np.array([row[0] for row in near])
        to_query = np.sqrt(np.sum((S - q) ** 2, axis=1).astype(float))
        positive = [d for d in (to_query[len(near) // 2], to_query[-1], 1.0) if d > 0]
        unit = math.sqrt(3) / (2 * positive[0])
        among = np.sqrt(np.sum((S[:, None] - S[None]) ** 2, axis=2).astype(float))
        ridge = [0.03 / min(max(float(row[3]), 1e-9), 1e3) for row in near]
        K = (1 + unit * among) * np.exp(-unit * among) + np.diag(ridge)
        a = np.linalg.solve(K, (1 + unit * to_query) * np.exp(-unit * to_query))
        Y = np.array([columns(float(row[2]), outputs) for row in around])
        R = np.array([row[4] for row in around], float)
        return a @ Y[: len(a)], a @ R[: len(a)], share @ Y, share @ R

    def latest(self, z: Array, outputs: int) -> Array:
        """Of the target, by the nearest of the last rows."""
        q = self.steps(z)
        aged = sorted(enumerate(self.rows[:-513:-1]), key=lambda row: int(np.sum((row[1][0] - q) ** 2)))[:8]
        left = np.array([1 - age / 512 for age, _ in aged])
        share = smoother(q, [row for _, row in aged], 0.2, 0.03, left)
        return share @ np.array([columns(float(row[2]), outputs) for _, row in aged])


def smoother(q: Array, rows: list[LocalRow], times: float, nothing: float, by: Array | float = 1.0) -> Array:
    """Coefficients by a Matern kernel as long as some times the median distance."""
    distance = np.sqrt([float(np.sum((row[0] - q) ** 2)) for row in rows])
    length = next(d for d in (distance[len(rows) // 2], distance[-1], 1.0) if d > 0)
    r = math.sqrt(3) / (times * length) * distance
    share = (1 + r) * np.exp(-r) * [min(max(float(row[3]), 1e-9), 1e3) for row in rows] * by
    return np.array(share / (share.sum() + nothing))


class NewtonMixture(Learner):
    """The default learner."""

    def __init__(
        self,
        *,
        width: int,
        outputs: int,
        budget: int,
        regression: bool = False,
        local_rows: int = 10**9,
        ordered: bool = True,
    ) -> None:
        super().__init__(outputs=outputs, regression=regression)
        self.width, self.budget, self.ordered = width, budget, ordered
        self.capacity = max(budget, min(4 * budget, 2**22 // max(1, width)))
        self.wide = width > 3 * budget
        self.classes = 1 if regression else max(2, outputs)
        self.lasting = Memory(np.zeros(width), np.zeros(width))
        self.recent = Memory(np.zeros(width), np.zeros(width))
        self.target_centre, self.target_spread = 0.0, 1.0
        self.kept: Kept = []
        self.weights = np.zeros(0)  # of all rows
        self.learnt = self.lasting_age = self.cusum_age = self.recent_age = 0
        self.next_rebuild: float = 2
        self.cusum = self.coverage_start = self.coverage = 0.0
        self.events: list[tuple[int, str]] = []
        self.trees = None if self.wide else Trees(width, outputs, regression, budget)
        self.aggregate = Aggregate(7, regression, ordered=ordered, trees=not self.wide)
        self.local = Local(width, local_rows) if width <= 3 * budget else None
        self.local_aggregate = Aggregate(6, regression, local=True, ordered=ordered)
        self.residuals: list[Array] = []  # of the rows kept, in the units of the targets
        self.labels, self.last_target, self.last_outlier = Labels(self.classes), 0.0, False
        self.stayed = self.came_back = 0.0  # how often targets stayed where an outlier was
        self.empty("lasting")
        self.empty("recent")

    # ---- experts ----

    def expert(self, name: str) -> Newton:
        """A new one."""
        kernel, linear = {
            "lasting": (30.0, 90.0) if self.regression else (10.0, 30.0),
            "least_squares": (1.0, 3.0) if self.regression else (10.0, 10.0),
            "recent": (30.0, 90.0) if self.regression else (10.0, 30.0),
            "linear": (0.0, 30.0),
        }[name]
        memory = self.recent if name == "recent" else self.lasting
        extra = np.ones(self.outputs) if self.wide else np.full(self.width, linear / memory.varying)
        prior = np.concatenate([np.full(0 if name == "linear" else self.budget, kernel), [1.0], extra])
        loss = "squared" if self.regression or name == "least_squares" else "logistic"
        return Newton(prior, self.outputs, loss, self.keep(name))

    def keep(self, name: str) -> float:
        """What an expert keeps of the past in a round."""
        return {"recent": 0.999, "linear": 0.99997 if self.ordered else 1.0}.get(name, 1.0)

    def empty(self, which: str) -> None:
        """New experts of a memory."""
        if which == "lasting":
            self.lasting_expert, self.least_squares = self.expert("lasting"), self.expert("least_squares")
            self.linear = Diagonal(self.width, self.outputs) if self.wide else self.expert("linear")
        else:
            self.recent_expert = self.expert("recent")
            self.window: Kept = []

    def features(self, which: str, x: Array) -> Array:
        """What the Newton experts of a memory see."""
        memory = self.lasting if which == "lasting" else self.recent
        if self.wide:
            extra = np.clip(self.linear.score(self.lasting.scaled(x)), -8, 8)
        else:
            extra = memory.scaled(x)
        phi = memory.phi(x, self.budget)
        if which == "recent":  # it sees half of the landmarks, in whole lines of eight
            phi[math.ceil(math.ceil(self.budget / 2) / 8) * 8 :] = 0
        return np.concatenate([phi, [1.0], extra])

    def window_score(self, x: Array) -> Array:
        """Kernel ridge regression on the last rows."""
        if not self.window:
            return np.zeros(self.outputs)
        Z = np.array([self.recent.scaled(row) for row, _, _ in self.window])
        K = gaussian(Z, Z, self.recent.gamma) + np.diag(
            [0.1 / min(max(w, 1e-9), 1e3) for _, _, w in self.window]
        )
        Y = np.array([columns(y, self.outputs) for _, y, _ in self.window])
        return gaussian(self.recent.scaled(x)[None], Z, self.recent.gamma)[0] @ np.linalg.solve(K, Y)

    def raw(self, x: Array) -> Array:
        """Scores of the six experts."""
        lasting = self.features("lasting", x)
        linear = self.lasting.scaled(x) if self.wide else lasting[self.budget :]
        return np.array(
            [
                self.lasting_expert.score(lasting),
                self.least_squares.score(lasting),
                self.recent_expert.score(self.features("recent", x)),
                self.linear.score(linear),
                self.window_score(x),
                np.zeros(self.outputs) if self.trees is None else self.trees.score(self.lasting.scaled(x)),
            ]
        )

    def logits(self, x: Array) -> Array:
        """Experts x classes, what the aggregation sees."""
        raw = self.raw(x)
        if self.regression:
            return np.vstack([raw, [[self.standard(self.kept[-1][1]) if self.kept else 0.0]]])
        raw[[1, 4]] = self.squared_logits(raw[[1, 4]])
        if self.outputs == 1:
            raw = np.hstack([np.zeros((6, 1)), raw])
        return np.vstack([np.clip(raw, -15, 15), self.labels.logits(self.copy(x))])

    def squared_logits(self, scores: Array) -> Array:
        """Of a fit by least squares, which is overconfident after few rows."""
        return np.clip(4 * scores, -15, 15) * (self.learnt / (self.learnt + 20))

    def copy(self, x: Array) -> bool:
        """Whether the row is the one learnt last once more."""
        return bool(self.kept) and np.array_equal(x, self.kept[-1][0])

    def within(self, x: Array) -> Array:
        """The forecast of the two aggregations."""
        p = self.aggregate.forecast(self.logits(x))
        z = self.local_logits(x, p)
        return p if z is None else self.local_aggregate.forecast(z)

    def score_one(self, x: Array) -> Array:
        p = self.within(x)
        if self.regression:
            if self.ordered and self.last_outlier and self.stays(x, p[0]):
                p = np.array([self.last_target])
            return p * self.target_spread + self.target_centre
        p = self.bound_unseen(p)
        return np.array([math.log(p[1]) - math.log(p[0])]) if self.outputs == 1 else np.log(p)

    def bound_unseen(self, p: Array) -> Array:
        """A class that has not come is as likely as half a row of it says, at most."""
        if not 0 < self.learnt <= self.capacity:
            return p
        classes = [int(y > 0) if self.outputs == 1 else int(y) for _, y, _ in self.kept]
        unseen = np.bincount(classes, minlength=len(p)) == 0
        bounded = np.where(unseen, np.minimum(p, 0.5 / (self.learnt + len(p) / 2)), p)
        bounded[~unseen] *= (1 - bounded[unseen].sum()) / bounded[~unseen].sum()
        return bounded

    def stays(self, x: Array, forecast: float) -> bool:
        """Whether the next target is expected where the last one, an outlier, was."""
        rows, centre = np.array([row for row, _, _ in self.kept]), self.lasting.centre
        farthest = np.abs(rows - centre).max(axis=0)
        outlying = self.learnt >= 64 and bool(np.any((farthest > 0) & (np.abs(x - centre) > 2 * farthest)))
        far = abs(self.last_target - forecast) > 20 * self.aggregate.usual_error
        return self.stayed + (2 - far) * outlying > self.came_back + 1

    def local_logits(self, x: Array, p: Array) -> Array | None:
        """What the local aggregation sees: the aggregation's forecast, the neighbours', the first corrected, and so on."""
        made = None if self.local is None else self.local.forecasts(self.lasting.scaled(x), self.outputs)
        if made is None:
            return None
        latest = np.zeros(self.outputs)
        if self.ordered and self.local is not None:
            latest = self.local.latest(self.lasting.scaled(x), self.outputs)
        seen = [p if self.regression else np.log(np.maximum(p, 1e-6))]
        for f, missing in (made[:2], made[2:], (latest, np.zeros(self.outputs))):
            if self.regression:
                seen += [f, p + missing]
                continue
            if self.outputs == 1:
                f, missing = np.append(0.0, f), np.append(-missing, missing)
            seen += [self.squared_logits(f), np.log(np.maximum(p + missing / 2, 0.005))]
        return np.array(seen[:-1])  # the latest rows correct nothing

    def learn_local(self, x: Array, label: float, loose: float, target: float, w: float, p: Array) -> None:
        """p: the aggregation's forecast. A regression keeps the target that is bounded loosely."""
        if self.local is None:
            return
        target = loose if self.regression else target
        z = self.local_logits(x, p)
        if z is not None:
            self.local_aggregate.learn(z, loose, label, w, self.learnt + 1)
        if self.regression:
            residual = target - p
        elif self.outputs == 1:
            residual = np.array([target - (p[1] - p[0])])
        else:
            residual = 2 * ((np.arange(self.outputs) == int(target)) - p)
        unit = self.target_spread if self.regression else 1.0
        self.residuals = [*self.residuals, residual * unit][-self.capacity :]
        self.local.put(self.lasting.scaled(x), target, w, residual)

    def relevance(self, X: Array) -> Array:
        """How much the least-squares expert's score changes with each feature."""
        if len(X) < 16:
            return np.ones(self.width)
        memory, W = self.lasting, self.least_squares.W
        n = len(memory.landmarks)
        beta = np.linalg.solve(memory.L.T, W[:n])
        square = np.zeros(self.width)
        for x in X[np.linspace(0, len(X) - 1, min(len(X), 200)).astype(int)]:
            apart = memory.scaled(x) - memory.landmarks
            k = np.exp(-memory.gamma * np.sum(apart**2, axis=1))
            slope = W[self.budget + 1 :] - 2 * memory.gamma * (apart * k[:, None]).T @ beta
            square += np.sum(slope**2, axis=1)
        return (
            (0.02 + 0.98 * np.sqrt(square / square.max())) ** 1.5 if square.max() > 0 else np.ones(self.width)
        )

    def refill(self, kept: Kept) -> None:
        """The local memory anew from the rows kept."""
        if self.local is None:
            return
        self.local.relevance = self.relevance(np.array([x for x, _, _ in kept]))
        self.local.landmarks = np.array([self.local.steps(z) for z in self.lasting.landmarks])
        self.local.clear()
        unit = self.target_spread if self.regression else 1.0
        for (x, y, w), residual in zip(kept, self.residuals[-len(kept) :], strict=True):
            self.local.put(self.lasting.scaled(x), self.standard(y), w, residual / unit)

    def plant(self, kept: Kept) -> None:
        """The trees anew from the rows kept, which pay once more."""
        if self.trees is None:
            return
        self.trees.begin(np.array([self.lasting.scaled(x) for x, _, _ in kept]))
        for x, y, w in kept:
            self.trees.put(self.lasting.scaled(x), self.standard(y), w)
        self.trees.pay(len(kept))

    def rescale_local(self) -> None:
        """Relevances by what has been learnt since; the rows kept are moved."""
        if self.local is None or self.lasting_age not in (
            4 * self.capacity,
            16 * self.capacity,
            64 * self.capacity,
        ):
            return
        rows, before = self.local.rows, self.local.relevance
        self.local.relevance = self.relevance(np.array([x for x, _, _ in self.kept]))
        self.local.landmarks = np.array([self.local.steps(z) for z in self.lasting.landmarks])
        self.local.rows = []
        for q, _, y, w, residual in rows:
            q = np.floor(q * (self.local.relevance / before) + 0.5).astype(int)
            self.local.rows.append((q, int(self.local.order(q)[0]), y, w, residual))

    def teach(self, which: str, x: Array, y: float, weight: float) -> None:
        """One row to all experts of a memory; y as the experts see it."""
        seen = self.features(which, x)
        if which == "recent":
            self.recent_expert.learn(seen, y, weight)
            self.window = [*self.window, (x, y, weight)][-min(50, self.budget) :]
            return
        self.lasting_expert.learn(seen, y, weight)
        self.least_squares.learn(seen, y, weight)
        self.teach_linear(x, y, weight)

    def teach_linear(self, x: Array, y: float, weight: float) -> None:
        """One row to the linear expert."""
        if isinstance(self.linear, Newton):
            self.linear.learn(np.append(1.0, self.lasting.scaled(x)), y, weight)
            return
        z = self.lasting.scaled(x)
        f = self.linear.score(z)
        if self.regression:
            residual = y - f
        elif self.outputs == 1:
            residual = (y > 0) - np.array([sigmoid(float(f[0]))])
        else:
            residual = (np.arange(self.outputs) == int(y)) - softmax(f)
        self.linear.learn(z, weight * residual)

    # ---- a round ----

    def standard(self, y: float) -> float:
        """A target as the experts see it."""
        return (y - self.target_centre) / self.target_spread if self.regression else y

    def relative(self, weight: float) -> float:
        """A weight in units in which the last weights count as their effective number of rows."""
        recency = 0.999 ** np.arange(len(self.weights))[::-1]
        return weight * float(recency @ self.weights) / float(recency @ self.weights**2)

    def learn(self, x: Array, y: float, f: Array, w: float) -> None:
        w = min(max(w, 1e-100), 1e6)
        logits, copy = self.logits(x), self.copy(x)
        if self.regression and not self.learnt:
            self.target_centre = y
        target = self.standard(y)
        if self.regression:
            if self.ordered and self.last_outlier:
                near = abs(target - self.last_target) < abs(target - float(self.within(x)[0]))
                self.stayed, self.came_back = 0.998 * self.stayed + near, 0.998 * self.came_back + (not near)
            here = 0.0 if self.local is None else self.local.usual_residual(self.lasting.scaled(x))
            bounded = self.aggregate.bounded(logits, target, here)
            if self.ordered:
                self.last_target, self.last_outlier = target, self.aggregate.outlier
            if bounded != target:
                target, y = bounded, bounded * self.target_spread + self.target_centre
        self.weights = np.append(self.weights, w)
        self.kept = [*self.kept, (x, y, w)][-self.capacity :]
        w = self.relative(w)
        label = target if self.regression or self.outputs > 1 else float(y > 0)
        losses = self.aggregate.losses(logits, label)
        share = float(np.sum(self.recent.phi(x, self.budget) ** 2))
        loose = self.aggregate.loose if self.regression else label
        self.learn_local(x, label, loose, target, w, self.aggregate.forecast(logits))
        recent = self.features("recent", x)
        learnt_w = w * self.aggregate.outlier_weight
        self.teach("lasting", x, target, learnt_w)
        if self.trees is not None:
            self.trees.put(self.lasting.scaled(x), target, learnt_w)
            self.trees.pay(1)
        if self.ordered:
            # the linear scores that it sees are those before the round
            self.recent_expert.learn(recent, loose if self.regression else target, learnt_w)
            self.window = [*self.window, (x, target, learnt_w)][-min(50, self.budget) :]
        self.aggregate.learn(logits, loose, label, w, self.learnt + 1)
        if not self.ordered:
            self.learnt += 1
            self.lasting_age += 1
            tamed = self.tame()
            if self.lasting_age != self.next_rebuild and not tamed:
                self.rescale_local()
                return
            if self.regression:
                self.standardise(tamed)
            self.rebuild("lasting")
            return
        if not self.regression:
            self.labels.learn(int(label), w, copy)
        self.learnt += 1
        self.lasting_age += 1
        due = set()
        if self.lasting_age == self.next_rebuild:
            due = {"lasting", "recent"} if self.lasting_age == self.learnt else {"lasting"}
        tamed = self.tame()
        if tamed:
            due = {"lasting", "recent"}
        self.cusum = max(0.0, self.cusum + float(losses[0] - losses[2]) - 0.01)
        self.cusum_age = self.cusum_age + 1 if self.cusum > 0 else 0
        if self.cusum > 64 and self.cusum_age >= 32 and self.learnt > self.capacity:
            self.lasting_age = min(self.cusum_age, self.capacity)
            due.add("lasting")
            self.events.append((self.learnt, "restart"))
        self.recent_age += 1
        if self.recent_age <= self.budget:
            self.coverage += (share - self.coverage) / self.recent_age
            self.coverage_start = self.coverage
        else:
            self.coverage += (share - self.coverage) / self.budget
        if self.recent_age >= self.capacity and self.coverage < 0.75 * self.coverage_start:
            due.add("recent")
            self.events.append((self.learnt, "uncovered"))
        if due == {"lasting", "recent"} and self.regression:
            self.standardise(tamed)
        for which in ("lasting", "recent"):
            if which in due:
                self.rebuild(which)
        if "lasting" not in due:
            self.rescale_local()

    def learn_stream(self) -> None:
        """The rows learnt so far were a set, those to come are a stream."""
        self.ordered = True
        if not self.wide:
            self.linear.keep = self.keep("linear")
        self.aggregate.learn_stream()
        self.local_aggregate.learn_stream()
        self.recent.gamma = self.lasting.gamma
        self.rebuild("recent")

    # ---- rebuilding ----

    def tame(self) -> bool:
        """Whether a wild target was found among the first ones; it is moved."""
        n = self.learnt
        if not self.regression or not 4 <= n <= self.capacity or n != self.lasting_age:
            return False
        y = np.array([y for _, y, _ in self.kept])
        median = np.sort(y)[n // 2]
        away = np.abs(y - median)
        usual = np.sort(away)[(n - 1) * 4 // 5]
        far = away > (300 if n < 8 else 30) * usual
        if self.aggregate.rounds >= 64 or usual == 0 or not 0 < far.sum() <= max(2, n // 25):
            return False
        y = np.where(far, median + np.sign(y - median) * usual, y)
        self.kept = [(x, tamed, w) for (x, _, w), tamed in zip(self.kept, y.tolist(), strict=True)]
        return True

    def standardise(self, tamed: bool = False) -> None:
        """The scale of the targets from the rows kept."""
        targets = self.without_outliers()
        self.kept = [(x, y, w) for (x, _, w), y in zip(self.kept, targets, strict=True)]
        before, last = self.target_spread, self.last_target * self.target_spread + self.target_centre
        self.target_centre, self.target_spread = float(targets.mean()), float(targets.std())
        if self.target_spread <= 1e-12 * abs(self.target_centre):
            self.target_spread = max(1.0, abs(self.target_centre))
        if self.lasting_age <= 2 or tamed:  # losses of targets of unknown scale
            self.residuals = [0 * residual for residual in self.residuals]
            self.aggregate = Aggregate(7, True, ordered=self.ordered, trees=not self.wide)
            self.local_aggregate = Aggregate(6, True, local=True, ordered=self.ordered)
        else:
            for aggregate in (self.aggregate, self.local_aggregate):
                aggregate.rescale(before / self.target_spread)
        self.last_target = self.standard(last)

    def without_outliers(self) -> Array:
        """The targets of the rows kept; outliers moved towards what all other rows say, ten times at most."""
        X, y = np.array([x for x, _, _ in self.kept]), np.array([y for _, y, _ in self.kept])
        n = len(y)
        if n < 16:
            return y
        centre, scale, varying = scaling(X)
        Z = soft_clip((X - centre) * scale)
        Z -= Z.mean(axis=0)
        squares = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)
        unit = 1 / np.median(squares[squares > 0]) if squares.any() else 0.0
        K = np.exp(-unit * squares) + Z @ Z.T / varying + 1
        for _ in range(10):
            errors = np.zeros(n)
            for i in range(n):
                others = np.arange(n) != i
                centred = y - np.median(y)
                A = K[np.ix_(others, others)] + 0.1 * np.eye(n - 1)
                errors[i] = centred[i] - K[i, others] @ np.linalg.solve(A, centred[others])
            reach = 5 * float(np.quantile(np.abs(errors), 0.8))
            far = np.abs(errors) > reach
            if not far.any() or far.mean() > 0.04:
                break
            y = np.where(far, y - errors + np.sign(errors) * reach, y)
        return y

    def rebuild(self, which: str) -> None:
        """Scaling, landmarks, bandwidth; then the rows kept once more."""
        kept = self.kept[-self.lasting_age :] if which == "lasting" else self.kept
        kept = [(x, y, self.relative(w)) for x, y, w in kept]
        X = np.array([x for x, _, _ in kept])
        n = len(X)
        centre, scale, varying = scaling(X)
        landmarks = soft_clip((X - centre) * scale)[np.linspace(0, n - 1, min(n, self.budget)).astype(int)]
        squares = np.sum((landmarks[:, None] - landmarks[None]) ** 2, axis=2)
        unit = 1 / np.median(squares[squares > 0]) if squares.any() else 1.0
        tried = [unit / 16, unit / 4, unit, 4 * unit, 16 * unit, 64 * unit] if n >= 16 else [unit]
        if 16 <= n < self.learnt:  # the first rows are over: the bandwidth in use and its neighbours
            used = (self.lasting if which == "lasting" else self.recent).gamma
            at = int(np.argmin([abs(math.log(gamma / used)) for gamma in tried]))
            tried = tried[max(0, at - 1) : at + 2]
        losses = [
            self.trial(
                kept[-256:], Memory(centre, scale, varying, landmarks, gamma), n <= min(256, self.budget)
            )
            * (1 + 0.03 * abs(math.log(gamma / unit, 4)))
            for gamma in (tried if n >= 16 else [])
        ]
        best = tried[int(np.argmin(losses))] if losses else unit
        landmarks = np.concatenate([landmarks[::2], landmarks[1::2]])
        self.take(which, Memory(centre, scale, varying, landmarks, best))
        for x, y, w in kept:
            self.teach(which, x, self.standard(y), w)
        if which == "lasting":
            ages = [self.capacity // 4**k for k in range(30)]
            later = [age for age in ages if age >= 2 * self.lasting_age]
            if self.lasting_age < self.budget / 4:
                later = [2 * self.lasting_age]
            first = self.lasting_age < self.capacity
            self.next_rebuild = min(later, default=self.capacity) if first else math.inf
            self.cusum, self.cusum_age = 0.0, 0
            self.plant(kept)
            self.refill(kept)
        else:
            self.recent_age, self.coverage_start, self.coverage = 0, 0.0, 0.0

    def take(self, which: str, memory: Memory) -> None:
        """Another memory, its experts empty."""
        if which == "lasting":
            self.lasting = memory
        else:
            self.recent = memory
        self.empty(which)

    def trial(self, kept: Kept, memory: Memory, all_rows: bool) -> float:
        """Progressive squared error of ridge regression on all rows before; the first quarter does not count.

        Its kernel is that of the Nystrom map, where the landmarks are not all the rows.
        """
        Z = memory.scaled(np.array([x for x, _, _ in kept]))
        Y = np.array([columns(self.standard(y), self.outputs) for _, y, _ in kept])
        w = np.array([w for _, _, w in kept])
        kernel, linear = (30, 90) if self.regression else (10, 30)
        phi = np.array([memory.phi(x, self.budget) for x, _, _ in kept])
        mapped = gaussian(Z, Z, memory.gamma) if all_rows else phi @ phi.T
        K = kernel * mapped + 1 + linear / memory.varying * Z @ Z.T
        total = 0.0
        for i in range(len(kept) // 4, len(kept)):
            forecast = K[i, :i] @ np.linalg.solve(K[:i, :i] + np.diag(1 / w[:i]), Y[:i])
            total += w[i] * float(np.sum((Y[i] - forecast) ** 2))
        return total
