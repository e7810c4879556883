"""Online adaptive Nystrom approximation (OANA): landmarks that follow the stream by online k-means.

With landmarks u_1 .. u_m, E_ij = k(u_i, u_j) and its leading r eigenpairs E ~ U_r S_r U_r^T:

    phi(x) = [k(x, u_1), ..., k(x, u_m)] U_r S_r^-1/2                                                  (Eq. 7)

The landmark q nearest to x_t moves if |x_t - u_q|^2 >= epsilon; N_q is 1 plus its moves so far:

    u_q <- (N_q u_q + x_t) / (N_q + 1),   N_q <- N_q + 1                                               (Eq. 8)

which changes one row and column of E, a modification of rank two:

    E' = E + a b^T + b a^T,   a = e_q,   b_i = k(u_i, u'_q) - k(u_i, u_q), the q-th one halved         (Eq. 9)

Four ways to the eigenpairs of E': ``scratch`` decomposes it anew; ``rank2`` modifies all m eigenpairs of E
by two rank-one steps; ``warm`` iterates Q <- E' Q from Q = U_r (Eq. 10), orthonormalises, and diagonalises
Q^T E' Q (Rayleigh-Ritz). ``small`` does the same with ``U_r S_r U_r^T + a b^T + b a^T`` for E', as the paper does: E is not
stored, and what was left out of it once stays out. ``complement``, ours, follows the m - r directions left out, V <- E'^-1 V:
they come as much nearer per iteration as ``warm``'s, and at r = 0.8 m there are a quarter as many. It keeps E'^-1, which a move
changes by rank two as well; the map is made of V and E'^-1 without any eigenvalue, its features rotated, which no prediction
shows. Where landmarks nearly depend on one another (a diagonal entry of E'^-1 above 1e5 over the largest of E') it decomposes E'
anew, as ``scratch`` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream._core import core
from kernelstream.kernels import core_kernel
from kernelstream.rows import as_rows
from kernelstream.sketches.base import KernelSketch
from kernelstream.sketches.landmarks import Landmarks, check_adaptation, check_rank
from kernelstream.validate import check_integer

__all__ = ["AdaptiveNystrom"]

Array = NDArray[Any]


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
        solver: how the eigenpairs follow: ``"scratch"``, ``"rank2"``, ``"warm"``, ``"small"`` (which saves memory),
            ``"complement"`` or ``"auto"``, the fastest: ``"warm"`` for a rank up to m / 2, above it (the default rank)
            ``"complement"``.
        iterations: subspace iterations of ``"warm"``, ``"small"`` and ``"complement"`` (the paper's p).
        weighted: let the landmark move that adds the least to the k-means cost, ``N_q / (N_q + 1) |x_t - u_q|^2``, which knows
            how dense each cluster is, in place of the nearest.
        lifetime: a landmark that has not moved during so many moves gives its place to the row; 0: never.
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
        moves); 9. ``solver="auto"`` and ``"complement"`` (the paper: ``small`` always); 10. ``weighted`` and ``lifetime`` are
        named in the paper as future work, without formulas: those above are ours.

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
        weighted: bool = False,
        lifetime: int = 0,
        kernel: Any = None,
    ) -> None:
        self.n_landmarks = n_landmarks
        self.rank = rank
        self.epsilon = epsilon
        self.solver = solver
        self.iterations = iterations
        self.weighted = weighted
        self.lifetime = lifetime
        self.kernel = kernel

    def _reset(self, width: int, dtype: Any) -> None:
        check_integer("n_landmarks", self.n_landmarks, low=1)
        check_rank(self.rank, self.n_landmarks)
        check_adaptation(self.epsilon, self.solver, self.iterations, self.lifetime)
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
            self._landmarks = Landmarks(
                self.kernel_,
                self._first,
                rank,
                self.solver,
                self.iterations,
                weighted=self.weighted,
                lifetime=self.lifetime,
            )
            self._threshold = self._landmarks.threshold(self.epsilon)
        if not np.isfinite(self._threshold[0]):
            return
        adaptive = self._core()
        while (at := adaptive.far(rows, at)) < rows.n:
            x = rows.part(at, at + 1).array()[0]
            q = self._landmarks.choose(adaptive.nearest, x)
            at += 1
            if self._landmarks.move(q, x, np.zeros((len(self._first), 0))) is not None:
                adaptive.move(q, *self._core_map(q))
                self.n_moves_ += 1
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
