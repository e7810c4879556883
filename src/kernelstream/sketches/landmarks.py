"""Landmarks of a Nystrom map that move towards the rows they meet, and the eigenpairs that follow.

The equations are those of ``kernelstream.sketches.adaptive``.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from kernelstream._core import core
from kernelstream.kernels import Gaussian
from kernelstream.sketches.eigenpairs import (
    RankTwoSum,
    complement_map,
    followed_complement,
    moved_inverses,
    positive_inverses,
    rank_two_eigenpairs,
    warm_eigenpairs,
)
from kernelstream.sketches.nystrom import nystrom_map, top_eigenpairs
from kernelstream.validate import check_choice, check_integer, check_number

__all__ = ["Landmarks", "carry_over", "check_adaptation", "check_rank"]

Array = NDArray[Any]
SOLVERS = ("auto", "scratch", "rank2", "warm", "complement", "small")
#: ``epsilon="auto"``: the share of rows that shall move a landmark, and how fast the threshold follows.
AUTO_SHARE, AUTO_STEP = 0.1, 0.05
#: Its least value, as a part of its start: from there it is back at its start after some 200 rows.
AUTO_FLOOR = 1e-4


class Landmarks:
    """The landmarks of a Nystrom map, their counts N_q, and the leading eigenpairs of their kernel matrix E, or, with
    ``complement``, a basis of the trailing m - r eigenvectors.

    Args:
        kernel: a kernel or a callable, all parameters set.
        points: the first landmarks, ``(m, width)``; taken over, and moved in place.
        rank: how many features (r).
        solver: ``"scratch"``, ``"rank2"``, ``"warm"``, ``"small"``, ``"complement"`` or ``"auto"``, the fastest.
        iterations: of ``warm`` and ``small`` (the paper's p).
        weighted: the landmark that moves is not the nearest but the one that adds the least to the k-means cost.
        lifetime: after so many moves of others, a landmark that has not moved gives its place to the row; 0: never.
        theta: the ridge of Eq. 12.
    """

    solver: str
    shifts: Array
    inverses: Array  # of E, and of E + theta for Eq. 12; none if landmarks nearly depend on one another

    def __init__(
        self,
        kernel: Any,
        points: Array,
        rank: int,
        solver: str = "auto",
        iterations: int = 2,
        *,
        weighted: bool = False,
        lifetime: int = 0,
        theta: float = 0.0,
    ) -> None:
        self._set(kernel, points, rank, solver, iterations, weighted, lifetime, theta)
        self.counts = np.ones(points.shape[0], np.int64)
        self.moved = np.zeros(points.shape[0], np.int64)  # at which move each moved last
        E = np.asarray(kernel(points, points), np.float64)
        self.gram = (E + E.T) / 2
        if self.solver == "complement":
            self.values, self.vectors = np.empty(0), self._trailing()
            self.inverses = _or_none(positive_inverses(self.gram, self.shifts))
        else:
            self.values, self.vectors = top_eigenpairs(
                self.gram, points.shape[0] if solver == "rank2" else rank
            )
        if solver == "small":
            self.gram = self.gram[:0, :0]
        self._make_map()

    def _set(
        self,
        kernel: Any,
        points: Array,
        rank: int,
        solver: str,
        iterations: int,
        weighted: bool,
        lifetime: int,
        theta: float,
    ) -> None:
        self.kernel, self.points, self.rank, self.iterations = kernel, points, rank, iterations
        self.weighted, self.lifetime, self.theta = weighted, lifetime, theta
        self.inverses = _or_none(None)
        self.shifts = np.array([0.0, theta] if theta else [0.0])
        if solver == "auto":  # docs/results/nolana.md
            solver = "warm" if 2 * rank <= points.shape[0] else "complement"
        self.solver = solver

    def _trailing(self) -> Array:
        return np.ascontiguousarray(np.linalg.eigh(self.gram)[1][:, : len(self.gram) - self.rank])

    def _make_map(self) -> None:
        """``matrix``: r x m, from kernel values to features."""
        made = None
        if len(self.inverses):
            self._turned = self.inverses[0] @ self.vectors
            made = complement_map(self.inverses[0], self.vectors, self._turned)
        if made is None:
            self.inverses = _or_none(None)
            made = nystrom_map(*self._leading())[0]
        self.matrix = made

    @property
    def lift(self) -> Array:
        """From kernel weights to feature weights, r x m; made when asked for."""
        return self.matrix @ self.gram if len(self.inverses) else nystrom_map(*self._leading())[1]

    def _leading(self) -> tuple[Array, Array]:
        if self.solver == "complement":
            return top_eigenpairs(self.gram, self.rank)
        return self.values[: self.rank], self.vectors[:, : self.rank]

    @property
    def nbytes(self) -> int:
        """Bytes beside the points."""
        kept = (self.counts, self.gram, self.values, self.vectors, self.matrix, self.inverses)
        return sum(array.nbytes for array in kept)

    def arrays(self) -> dict[str, Array]:
        """The state beside the points, as new arrays."""
        return {name: getattr(self, name).copy() for name in self._names()}

    def _names(self) -> tuple[str, ...]:
        more = (("moved",) if self.lifetime else ()) + (("inverses",) if self.solver == "complement" else ())
        return ("counts", "gram", "values", "vectors", *more)

    @classmethod
    def restored(
        cls,
        kernel: Any,
        points: Array,
        rank: int,
        solver: str,
        iterations: int,
        arrays: dict[str, Array],
        *,
        weighted: bool = False,
        lifetime: int = 0,
        theta: float = 0.0,
    ) -> Self:
        """The landmarks whose ``arrays`` these were."""
        made = cls.__new__(cls)
        made._set(kernel, points, rank, solver, iterations, weighted, lifetime, theta)
        made.moved = np.zeros(len(points), np.int64)
        if (
            solver == "auto" and len(arrays["values"]) == rank
        ):  # "auto" meant these before there was "complement"
            made.solver = "warm" if 2 * rank <= len(points) else "scratch"
        for name in made._names():
            if name in arrays:
                setattr(made, name, np.array(arrays[name], order="C"))
            elif name == "inverses":  # of a version that did not keep it
                made.inverses = _or_none(positive_inverses(made.gram, made.shifts))
        made._make_map()
        return made

    def threshold(self, epsilon: float | str) -> tuple[float, float, float, float]:
        """The core's threshold for ``epsilon``: its value now, its least, its factors after a row that
        reaches it and another.

        ``"auto"`` starts from the 0.9 quantile of the squared distances between a landmark and its nearest
        other one, copies left out; it is multiplied by ``exp(0.045)`` after each row that reaches it and by
        ``exp(-0.005)`` after each that does not. So it follows the 0.9 quantile of the distances seen, and in
        the long run one row in ten moves a landmark: where the threshold ends is bounded, so the sum of its
        steps is. Fewer do while that quantile is below 1e-4 of the start, where the threshold stops falling:
        above all when more than nine in ten rows equal a landmark.
        """
        if epsilon != "auto":
            return float(epsilon), 0.0, 1.0, 1.0
        distances = Gaussian(gamma=1.0)._matrix(self.points, None, core.Part.measure)
        np.fill_diagonal(distances, np.inf)
        nearest = distances.min(axis=1)
        nearest = nearest[(nearest > 0) & np.isfinite(nearest)]
        start = float(np.quantile(nearest, 1 - AUTO_SHARE)) if len(nearest) else 1.0
        up, down = np.exp(AUTO_STEP * (1 - AUTO_SHARE)), np.exp(-AUTO_STEP * AUTO_SHARE)
        return start, AUTO_FLOOR * start, float(up), float(down)

    def choose(self, nearest: int, x: Array) -> int:
        """The landmark that the row ``x`` moves: one whose time is over, else by distance or by cost."""
        if self.lifetime:
            oldest = int(np.argmin(self.moved))
            if self.moved.max() - self.moved[oldest] >= self.lifetime:
                self.counts[oldest] = 0  # the row takes its place
                return oldest
        if not self.weighted:
            return nearest
        squares = ((self.points.astype(np.float64) - x) ** 2).sum(axis=1)
        return int(np.argmin(squares * (self.counts / (self.counts + 1))))

    def times(self, V: Array) -> Array:
        """E V, of the landmarks as they are."""
        made: Array
        if self.solver == "small":
            made = self.vectors @ (self.values[:, None] * (self.vectors.T @ V))
        else:
            made = self.gram @ V
        return made

    def move(self, q: int, x: Array, V: Array) -> Array | None:
        """Move landmark ``q`` towards ``x`` (Eq. 8) and update the map.

        Returns the kernel values k(u'_i, u_j) of the landmarks after against those before, times V; None if kernel values of the
        new landmark are not finite or too large to be squared: there are no eigenvalues then, and it stays.
        """
        m, n = len(self.points), float(self.counts[q])
        both = np.concatenate([self.points, self.points[q : q + 1]])  # the last one as it was before
        with np.errstate(over="ignore", invalid="ignore"):
            both[q] = (n * self.points[q].astype(np.float64) + x) / (n + 1)
            values = np.asarray(self.kernel(both, both[q : q + 1]), np.float64)[:, 0]
            if not np.isfinite(values @ values):
                return None
        small = self.solver == "small"  # E itself is not stored; b is exact all the same
        change = values[:m] - (self.kernel(self.points, both[m:])[:, 0] if small else self.gram[q])
        change[q] /= 2
        crossed = self.times(V)
        self.points[q] = both[q]
        self.counts[q] += 1
        self.moved[q] = self.moved.max() + 1
        if not small:
            self.gram[q] = self.gram[:, q] = values[:m]
        values[q] = values[m]
        crossed[q] = values[:m] @ V
        if self.solver == "complement":
            self._follow(q, change)
        else:
            self._solve(q, change)
        self._make_map()
        return crossed

    def _follow(self, q: int, change: Array) -> None:
        if len(self.inverses):
            self.inverses = _or_none(moved_inverses(self.inverses, self.shifts, q, change, self.gram))
        else:
            self.inverses = _or_none(positive_inverses(self.gram, self.shifts))
        if len(self.inverses):
            self.vectors = followed_complement(self.inverses[0], self.vectors, self.iterations)
        else:
            self.vectors = self._trailing()

    def carried(self, goal: Array) -> Array:
        """The weights v of ``min |goal - E matrix^T v|^2 + theta |v|^2`` (Eq. 12).

        With ``complement``, v is ``matrix E a`` of the kernel weights ``a`` orthogonal to the directions V left out that solve
        ``(E + theta) a = goal - E^-1 V mu``.
        """
        if not len(self.inverses):
            return carry_over(goal, self.times(self.matrix.T), self.theta)
        solved = self.inverses[-1] @ goal
        if self.vectors.shape[1]:
            turned = self.inverses[-1] @ self._turned
            mu = lapack.dposv(self.vectors.T @ turned, self.vectors.T @ solved)[1]
            solved -= turned @ mu
        weights: Array = self.matrix @ (self.gram @ solved)
        return weights

    def _solve(self, q: int, change: Array) -> None:
        if self.solver == "warm":
            self.values, self.vectors = warm_eigenpairs(self.gram, self.vectors, self.iterations)
            return
        if self.solver == "small":
            E = RankTwoSum(self.values, self.vectors, q, change)
            self.values, self.vectors = warm_eigenpairs(E, self.vectors, self.iterations)
            return
        if self.solver == "rank2":
            self.values, self.vectors = rank_two_eigenpairs(self.values, self.vectors, q, change)
            # Rounding adds up over many moves; the row just written shows how far the eigenpairs are from E.
            drift = np.abs(self.vectors @ (self.values * self.vectors[q]) - self.gram[q]).max()
            if drift <= 1e-12 * self.values[0]:
                return
        self.values, self.vectors = top_eigenpairs(self.gram, len(self.values))


def _or_none(inverses: Array | None) -> Array:
    """Inverses as an array of the state: without entries if there are none."""
    return np.empty((0, 0, 0)) if inverses is None else inverses


def carry_over(goal: Array, features: Array, theta: float) -> Array:
    """The weights v of ``min |goal - features v|^2 + theta |v|^2`` (Eq. 12), zero for features that are zero.

    >>> carry_over(np.array([[2.0], [4.0]]), np.array([[1.0, 0.0], [2.0, 0.0]]), 0.0).tolist()
    [[2.0], [0.0]]
    """
    used = features.any(axis=0)
    F = features[:, used]
    weights = np.zeros((features.shape[1], goal.shape[1]))
    A = blas.dsyrk(1.0, F, trans=1, lower=1)
    A[np.diag_indices_from(A)] += theta
    _, weights[used], failed = lapack.dposv(A, F.T @ goal, lower=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the features of the landmarks are dependent")
    return weights


def check_rank(rank: Any, landmarks: int) -> None:
    """Checks a number of features, ``None`` for the default.

    >>> check_rank(11, 10)
    Traceback (most recent call last):
    ...
    ValueError: rank must be a whole number >= 1 and <= 10, got 11
    """
    if rank is not None:
        check_integer("rank", rank, low=1, high=landmarks)


def check_adaptation(epsilon: Any, solver: Any, iterations: Any, lifetime: Any = 0) -> None:
    """Checks what says when and how landmarks move.

    >>> check_adaptation("often", "warm", 2)
    Traceback (most recent call last):
    ...
    ValueError: epsilon must be a number >= 0 or 'auto', got 'often'
    """
    if isinstance(epsilon, str):
        if epsilon != "auto":
            raise ValueError(f"epsilon must be a number >= 0 or 'auto', got {epsilon!r}")
    else:
        check_number("epsilon", epsilon, low=0, finite=False)
    check_choice("solver", solver, SOLVERS)
    check_integer("iterations", iterations, low=1, high=1000)
    check_integer("lifetime", lifetime, low=0)
