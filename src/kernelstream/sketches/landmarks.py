"""Landmarks of a Nystrom map that move towards the rows they meet, and the eigenpairs that follow.

The equations are those of ``kernelstream.sketches.adaptive``.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream._core import core
from kernelstream.kernels import Gaussian
from kernelstream.sketches.eigenpairs import (
    RankTwoSum,
    complement_map,
    followed_complement,
    positive_factor,
    rank_two_eigenpairs,
    warm_eigenpairs,
)
from kernelstream.sketches.nystrom import nystrom_map, top_eigenpairs
from kernelstream.validate import check_choice, check_integer, check_number

__all__ = ["Landmarks", "check_adaptation", "check_rank"]

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
    """

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
    ) -> None:
        self._set(kernel, points, rank, solver, iterations, weighted, lifetime)
        self.counts = np.ones(points.shape[0], np.int64)
        self.moved = np.zeros(points.shape[0], np.int64)  # at which move each moved last
        E = np.asarray(kernel(points, points), np.float64)
        self.gram = (E + E.T) / 2
        if self.solver == "complement":
            self.values, self.vectors = np.empty(0), self._trailing()
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
    ) -> None:
        self.kernel, self.points, self.rank, self.iterations = kernel, points, rank, iterations
        self.weighted, self.lifetime = weighted, lifetime
        if solver == "auto":  # docs/results/nolana.md
            solver = "warm" if 2 * rank <= points.shape[0] else "complement"
        self.solver = solver

    def _trailing(self) -> Array:
        return np.ascontiguousarray(np.linalg.eigh(self.gram)[1][:, : len(self.gram) - self.rank])

    def _maps(self) -> tuple[Array, Array]:
        if self.solver == "complement":
            L = positive_factor(self.gram)
            if L is not None:
                matrix = complement_map(L, self.vectors)
                return matrix, matrix @ self.gram
            return nystrom_map(*top_eigenpairs(self.gram, self.rank))
        return nystrom_map(self.values[: self.rank], self.vectors[:, : self.rank])

    def _make_map(self) -> None:
        """``matrix``: r x m, from kernel values to features."""
        self.matrix = self._maps()[0]

    @property
    def lift(self) -> Array:
        """From kernel weights to feature weights, r x m; made when asked for."""
        return self._maps()[1]

    @property
    def nbytes(self) -> int:
        """Bytes beside the points."""
        kept = (self.counts, self.gram, self.values, self.vectors, self.matrix)
        return sum(array.nbytes for array in kept)

    def arrays(self) -> dict[str, Array]:
        """The state beside the points, as new arrays."""
        return {name: getattr(self, name).copy() for name in self._names(self.lifetime)}

    @staticmethod
    def _names(lifetime: int) -> tuple[str, ...]:
        return ("counts", "gram", "values", "vectors", *(("moved",) if lifetime else ()))

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
    ) -> Self:
        """The landmarks whose ``arrays`` these were."""
        made = cls.__new__(cls)
        made._set(kernel, points, rank, solver, iterations, weighted, lifetime)
        made.moved = np.zeros(len(points), np.int64)
        if (
            solver == "auto" and len(arrays["values"]) == rank
        ):  # "auto" meant these before there was "complement"
            made.solver = "warm" if 2 * rank <= len(points) else "scratch"
        for name in cls._names(lifetime):
            setattr(made, name, np.array(arrays[name], order="C"))
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

    def move(self, q: int, x: Array, V: Array | None = None) -> Array:
        """Move landmark ``q`` towards ``x`` (Eq. 8) and update the map.

        Returns the kernel values k(u'_i, u_j) of the landmarks after against those before, times V if it is given.
        """
        m = len(self.points)
        V = np.eye(m) if V is None else V
        n = float(self.counts[q])
        self.moved[q] = self.moved.max() + 1
        small = self.solver == "small"
        if small:
            before = np.asarray(self.kernel(self.points, self.points[q : q + 1]), np.float64)[:, 0]
            crossed = self.times(V)
        both = np.concatenate([self.points, self.points[q : q + 1]])  # the last one as it was before
        self.points[q] = both[q] = (n * self.points[q].astype(np.float64) + x) / (n + 1)
        self.counts[q] += 1
        values = np.asarray(self.kernel(both, self.points[q : q + 1]), np.float64)[:, 0]
        column = values[:m]
        if small:  # E itself is not stored; b is exact all the same
            between, change = column.copy(), column - before
            between[q] = values[m]
            crossed[q] = between @ V
            change[q] /= 2
            self._solve(q, change)
            self._make_map()
            return crossed
        cross = self.gram.copy()
        cross[q] = column
        cross[q, q] = values[m]
        change = column - self.gram[:, q]
        change[q] /= 2
        self.gram[q] = self.gram[:, q] = column
        if self.solver == "complement":
            self._follow()
        else:
            self._solve(q, change)
            self._make_map()
        return cross @ V

    def _follow(self) -> None:
        L = positive_factor(self.gram)
        if L is None:
            self.vectors = self._trailing()
            self._make_map()
            return
        self.vectors = followed_complement(L, self.vectors, self.iterations)
        self.matrix = complement_map(L, self.vectors)

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
