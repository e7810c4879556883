"""Online adaptive Nystrom approximation (OANA): landmarks that follow the stream by online k-means.

With landmarks u_1 .. u_m, E_ij = k(u_i, u_j) and its leading r eigenpairs E ~ U_r S_r U_r^T:

    phi(x) = [k(x, u_1), ..., k(x, u_m)] U_r S_r^-1/2                                                  (Eq. 7)

The landmark q nearest to x_t moves if |x_t - u_q|^2 >= epsilon; N_q is 1 plus its moves so far:

    u_q <- (N_q u_q + x_t) / (N_q + 1),   N_q <- N_q + 1                                               (Eq. 8)

which changes one row and column of E, a modification of rank two:

    E' = E + a b^T + b a^T,   a = e_q,   b_i = k(u_i, u'_q) - k(u_i, u_q), the q-th one halved         (Eq. 9)

Three ways to the eigenpairs of E': ``scratch`` decomposes it anew; ``rank2`` modifies all m eigenpairs of E
by two rank-one steps; ``warm`` iterates Q <- E' Q from Q = U_r (Eq. 10), orthonormalises, and diagonalises
Q^T E' Q (Rayleigh-Ritz).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from kernelstream._core import core
from kernelstream.kernels import Gaussian, core_kernel
from kernelstream.rows import as_rows
from kernelstream.sketches.base import KernelSketch
from kernelstream.sketches.nystrom import nystrom_map, top_eigenpairs
from kernelstream.validate import check_choice, check_integer, check_number

__all__ = ["AdaptiveNystrom", "Landmarks"]

Array = NDArray[Any]
SOLVERS = ("auto", "scratch", "rank2", "warm")
#: ``epsilon="auto"``: the share of rows that shall move a landmark, and how fast the threshold follows.
AUTO_SHARE, AUTO_STEP = 0.1, 0.05
#: Its least value, as a part of its start: from there it is back at its start after some 200 rows.
AUTO_FLOOR = 1e-4


def warm_eigenpairs(E: Array, vectors: Array, iterations: int) -> tuple[Array, Array]:
    """Leading eigenpairs of ``E`` from vectors near them: subspace iteration (Eq. 10), Rayleigh-Ritz."""
    Q = vectors
    for _ in range(iterations - 1):  # triangular factors keep columns apart at half the price
        Q = scipy.linalg.lu(E @ Q, permute_l=True, check_finite=False)[0]
    Q = scipy.linalg.qr(E @ Q, mode="economic", overwrite_a=True, check_finite=False)[0]
    small = Q.T @ (E @ Q)
    values, rotation = top_eigenpairs((small + small.T) / 2, len(small))
    return values, np.ascontiguousarray(Q @ rotation)


def rank_one_eigenpairs(values: Array, vectors: Array, v: Array, sign: float) -> tuple[Array, Array]:
    """All eigenpairs, rising, of ``V diag(values) V^T + sign v v^T`` (values rising, V orthogonal).

    The eigenvalues are the roots of the secular equation, each found by LAPACK's ``lasd4``; the eigenvectors
    follow from the z for which these roots are exact (Gu and Eisenstat), so they are orthogonal to working
    precision.
    """
    if sign < 0:  # eigenvalues of -A + v v^T, their order turned
        negated, turned = rank_one_eigenpairs(-values[::-1], vectors[:, ::-1], v, 1.0)
        return -negated[::-1], np.ascontiguousarray(turned[:, ::-1])
    z = vectors.T @ v
    size = float(np.linalg.norm(z))
    if size == 0:
        return values, vectors
    low = values[0]
    d, V = values - low, np.array(vectors, order="F")
    # What rounding cannot tell from an eigenpair of the sum is left alone: directions that v misses, equal
    # eigenvalues.
    tolerance = 16 * np.finfo(float).eps * max(d[-1], size * size)
    active: list[int] = []
    for j in np.flatnonzero(np.abs(z) * size > tolerance):
        if active and d[j] - d[active[-1]] <= tolerance:
            i = active[-1]
            length = np.hypot(z[i], z[j])
            c, s = z[j] / length, z[i] / length
            V[:, i], V[:, j] = c * V[:, i] - s * V[:, j], s * V[:, i] + c * V[:, j]
            z[i], z[j] = 0.0, length
            active[-1] = int(j)
        else:
            active.append(int(j))
    n = len(active)
    new = d.copy()
    if n == 1:
        new[active[0]] += z[active[0]] ** 2
    elif n > 1:
        poles, weights = d[active], z[active]
        roots = np.sqrt(poles)
        rho = float(weights @ weights)
        unit = weights / np.sqrt(rho)
        gaps = np.empty((n, n))  # gaps[j, i] = poles_j - root_i, without cancellation
        for i in range(n):
            delta, root, total, info = scipy.linalg.lapack.dlasd4(i, roots, unit, rho)
            if info:
                raise np.linalg.LinAlgError("the secular equation has no root here")
            gaps[:, i] = delta * total
            new[active[i]] = root * root
        between = np.subtract.outer(roots, roots) * np.add.outer(roots, roots)  # of the poles lasd4 has seen
        np.fill_diagonal(between, 1.0)
        # z_j^2 = prod_i (root_i - pole_j) / prod_{i != j} (pole_i - pole_j), paired so that no product
        # overflows
        ratios = gaps.copy()
        below = np.arange(n - 1)[None, :] < np.arange(n)[:, None]
        ratios[:, :-1] /= np.where(below, between[:, :-1], between[:, 1:])
        exact = np.copysign(np.sqrt(np.abs(np.prod(ratios, axis=1))), weights)
        turn = exact[:, None] / gaps
        turn /= np.linalg.norm(turn, axis=0)
        V[:, active] = V[:, active] @ turn
    order = np.argsort(new, kind="stable")
    return new[order] + low, np.ascontiguousarray(V[:, order])


def rank_two_eigenpairs(values: Array, vectors: Array, q: int, b: Array) -> tuple[Array, Array]:
    """All eigenpairs, falling, of ``V diag(values) V^T + e_q b^T + b e_q^T`` (values falling), by two
    rank-one steps.

    ``a b^T + b a^T = (v+ v+^T - v- v-^T) / 2`` with ``v+- = s a +- b / s``; ``s = |b|^1/2`` makes both as
    short as can be.
    """
    s = np.sqrt(float(np.linalg.norm(b)))
    if s == 0:
        return values, vectors
    plus, minus = b / s, -b / s
    plus[q] += s
    minus[q] += s
    up = rank_one_eigenpairs(values[::-1], vectors[:, ::-1], plus / np.sqrt(2), 1.0)
    values, vectors = rank_one_eigenpairs(*up, minus / np.sqrt(2), -1.0)
    return np.ascontiguousarray(values[::-1]), np.ascontiguousarray(vectors[:, ::-1])


class Landmarks:
    """The landmarks of a Nystrom map, their counts N_q, and the leading eigenpairs of their kernel matrix E.

    Args:
        kernel: a kernel or a callable, all parameters set.
        points: the first landmarks, ``(m, width)``; taken over, and moved in place.
        rank: how many features (r).
        solver: ``"scratch"``, ``"rank2"``, ``"warm"`` or ``"auto"``, the faster of ``warm`` and ``scratch``.
        iterations: of ``warm`` (the paper's p).
    """

    def __init__(
        self, kernel: Any, points: Array, rank: int, solver: str = "auto", iterations: int = 2
    ) -> None:
        self._set(kernel, points, rank, solver, iterations)
        self.counts = np.ones(len(points), np.int64)
        E = np.asarray(kernel(points, points), np.float64)
        self.gram = (E + E.T) / 2
        self.values, self.vectors = top_eigenpairs(self.gram, len(points) if solver == "rank2" else rank)
        self._make_map()

    def _set(self, kernel: Any, points: Array, rank: int, solver: str, iterations: int) -> None:
        self.kernel, self.points, self.rank, self.iterations = kernel, points, rank, iterations
        if solver == "auto":  # docs/results/nolana.md: Rayleigh-Ritz of a high rank costs more than it saves
            solver = "warm" if 2 * rank <= len(points) else "scratch"
        self.solver = solver

    def _maps(self) -> tuple[Array, Array]:
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
        return {name: getattr(self, name).copy() for name in ("counts", "gram", "values", "vectors")}

    @classmethod
    def restored(
        cls, kernel: Any, points: Array, rank: int, solver: str, iterations: int, arrays: dict[str, Array]
    ) -> Self:
        """The landmarks whose ``arrays`` these were."""
        made = cls.__new__(cls)
        made._set(kernel, points, rank, solver, iterations)
        for name in ("counts", "gram", "values", "vectors"):
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
        distances = Gaussian(gamma=1.0)._matrix(self.points, None, measures=True)
        np.fill_diagonal(distances, np.inf)
        nearest = distances.min(axis=1)
        nearest = nearest[(nearest > 0) & np.isfinite(nearest)]
        start = float(np.quantile(nearest, 1 - AUTO_SHARE)) if len(nearest) else 1.0
        up, down = np.exp(AUTO_STEP * (1 - AUTO_SHARE)), np.exp(-AUTO_STEP * AUTO_SHARE)
        return start, AUTO_FLOOR * start, float(up), float(down)

    def move(self, q: int, x: Array) -> Array:
        """Move landmark ``q`` towards ``x`` (Eq. 8) and update the map.

        Returns the kernel values k(u'_i, u_j) of the landmarks after against those before.
        """
        old = self.points[q : q + 1].copy()
        n = float(self.counts[q])
        self.points[q] = (n * self.points[q].astype(np.float64) + x) / (n + 1)
        self.counts[q] += 1
        new = self.points[q : q + 1]
        column = np.asarray(self.kernel(self.points, new), np.float64)[:, 0]
        cross = self.gram.copy()
        cross[q] = column
        cross[q, q] = float(np.asarray(self.kernel(new, old))[0, 0])
        change = column - self.gram[:, q]
        change[q] /= 2
        self.gram[q] = self.gram[:, q] = column
        self._solve(q, change)
        self._make_map()
        return cross

    def _solve(self, q: int, change: Array) -> None:
        if self.solver == "warm":
            self.values, self.vectors = warm_eigenpairs(self.gram, self.vectors, self.iterations)
            return
        if self.solver == "rank2":
            self.values, self.vectors = rank_two_eigenpairs(self.values, self.vectors, q, change)
            # Rounding adds up over many moves; the row just written shows how far the eigenpairs are from E.
            drift = np.abs(self.vectors @ (self.values * self.vectors[q]) - self.gram[q]).max()
            if drift <= 1e-12 * self.values[0]:
                return
        self.values, self.vectors = top_eigenpairs(self.gram, len(self.values))


class AdaptiveNystrom(KernelSketch):
    """Online adaptive Nystrom approximation (OANA): a Nystrom map whose landmarks follow the stream by online
    k-means.

    Args:
        n_landmarks: how many landmarks (m); the first m rows are the first ones.
        rank: how many features (r), at most m; by default 0.8 m, the paper's choice.
        epsilon: squared distance from the nearest landmark at which a row moves it: a number (0: every row
            moves one), ``inf`` (never) or ``"auto"``, a threshold that follows the 0.9 quantile of the
            distances seen, so that about a tenth of the rows move a landmark (fewer if more than nine in ten
            rows equal a landmark).
        solver: how the eigenpairs follow: ``"scratch"``, ``"rank2"``, ``"warm"`` or ``"auto"``, the faster
            one: ``"warm"`` for a rank up to m / 2, above it (the default rank) ``"scratch"``.
        iterations: subspace iterations of ``"warm"`` (the paper's p).
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.

    Attributes:
        landmarks_: the landmarks now. counts_: 1 plus the moves of each (N_q). n_moves_: how often one
            moved. epsilon_: the threshold now.

    This differs from the paper in:
        1. the first m rows are the first landmarks (the paper: "randomly"); 2. the exact E is kept beside its
        eigenpairs (m x m numbers), and ``warm`` iterates on it, not on ``U S U^T + a b^T + b a^T``, so that
        truncation errors do not add up; 3. each iteration is followed by a factorisation, the last one by
        Rayleigh-Ritz; 4. ``rank2`` keeps all m eigenpairs, since those left out would come back into the
        leading r; it starts anew when rounding shows; 5. directions with an eigenvalue below 1e-10 of the
        largest are left out; 6. ``epsilon="auto"``; 7. N_q starts at 1 and counts moves only, as Algorithm 1
        does (Section 4.1 speaks of all points in the cluster, and the paper gives no start); 8. epsilon = 0
        means that every row moves a landmark, as in Algorithm 1 and Table 1 (Section 5.2 says that none
        moves); 9. ``solver="auto"`` (the paper: ``warm`` always).

    References:
        Si, Kumar and Yang, "Nonlinear online learning with adaptive Nystrom approximation", 2018,
        Algorithm 1.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> sketch = AdaptiveNystrom(n_landmarks=20, rank=15).fit(X)
    >>> sketch.transform(X).shape, sketch.relative_error(X) < 0.01
    ((500, 15), True)
    """

    def __init__(
        self,
        n_landmarks: int = 200,
        *,
        rank: int | None = None,
        epsilon: float | str = "auto",
        solver: str = "auto",
        iterations: int = 2,
        kernel: Any = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.rank = rank
        self.epsilon = epsilon
        self.solver = solver
        self.iterations = iterations
        self.kernel = kernel

    def _reset(self, width: int, dtype: Any) -> None:
        check_integer("n_landmarks", self.n_landmarks, low=1)
        check_rank(self.rank, self.n_landmarks)
        check_adaptation(self.epsilon, self.solver, self.iterations)
        self._first = np.empty((0, width), dtype)
        self._landmarks: Landmarks | None = None
        self.n_moves_ = 0

    def _read(self, rows: Any) -> None:
        at = 0
        if self._landmarks is None:
            at = min(rows.n, self.n_landmarks - len(self._first))
            self._first = np.concatenate([self._first, rows.part(0, at).array()])
            if len(self._first) < self.n_landmarks:
                return
            rank = self.rank if self.rank is not None else max(1, self.n_landmarks * 4 // 5)
            self._landmarks = Landmarks(self.kernel_, self._first, rank, self.solver, self.iterations)
            self._threshold = self._landmarks.threshold(self.epsilon)
        if not np.isfinite(self._threshold[0]):
            return
        adaptive = self._core()
        while (at := adaptive.far(rows, at)) < rows.n:
            q = adaptive.nearest
            self._landmarks.move(q, rows.part(at, at + 1).array()[0])
            adaptive.move(q, *self._core_map(q))
            self.n_moves_ += 1
            at += 1
        self._threshold = adaptive.epsilon

    def _core_map(self, q: int) -> tuple[Any, Array]:
        assert self._landmarks is not None
        points = self._landmarks.points
        matrix = np.ascontiguousarray(self._landmarks.matrix, points.dtype)
        return as_rows(points[q : q + 1], points.dtype), matrix

    def _core(self) -> Any:
        """The map in the compiled core; made when needed, so that the sketch itself is plain arrays."""
        assert self._landmarks is not None
        points = self._landmarks.points
        made = core.Adaptive32 if points.dtype == np.float32 else core.Adaptive64
        task: dict[str, Any] = {
            "outputs": 1,
            "regression": True,
            "loss": core.Loss("squared"),
            "eta": 0.0,
            "lam": 0.0,
        }
        matrix = np.ascontiguousarray(self._landmarks.matrix, points.dtype)
        adaptive = made.landmarks(
            as_rows(points, points.dtype), matrix, kernel=core_kernel(self.kernel_), **task
        )
        adaptive.epsilon = self._threshold
        return adaptive

    def _features(self, rows: Any) -> Array:
        if self._landmarks is None:
            need = self.n_landmarks - len(self._first)
            raise ValueError(f"n_landmarks={self.n_landmarks} rows make a map: {need} more are needed")
        if rows.n and (np.float32 if type(rows).__name__ == "Rows32" else np.float64) != self._first.dtype:
            rows = as_rows(rows.array(), self._first.dtype)
        made: Array = self._core().features(rows)[:, : self._landmarks.rank]
        return made

    @property
    def landmarks_(self) -> Array:
        """The landmarks now, ``(m, width)``."""
        return self._first.copy()

    @property
    def epsilon_(self) -> float:
        """The threshold now; infinite until there are landmarks."""
        return np.inf if self._landmarks is None else self._threshold[0]

    @property
    def counts_(self) -> Array:
        """One plus the moves of each landmark (N_q)."""
        return (
            np.ones(len(self._first), np.int64) if self._landmarks is None else self._landmarks.counts.copy()
        )

    @property
    def _n_features_out(self) -> int:
        return 0 if self._landmarks is None else self._landmarks.rank


def check_rank(rank: Any, landmarks: int) -> None:
    """Checks a number of features, ``None`` for the default.

    >>> check_rank(11, 10)
    Traceback (most recent call last):
    ...
    ValueError: rank must be a whole number >= 1 and <= 10, got 11
    """
    if rank is not None:
        check_integer("rank", rank, low=1, high=landmarks)


def check_adaptation(epsilon: Any, solver: Any, iterations: Any) -> None:
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
