"""Nonlinear online learning with adaptive Nystrom approximation (NOLANA).

A linear model over a Nystrom map phi_M whose landmarks M follow the stream (see
``kernelstream.sketches.adaptive``). A round (Section 4.2):

    1. w_t <- (1 - eta lam) w - eta g phi_M(x_t),  g the slope of the loss at w . phi_M(x_t)          (Eq. 11)
    2. if |x_t - u_q|^2 >= epsilon for its nearest landmark u_q, that one moves, M becomes M', and
       w <- argmin_v sum_i (w_t . phi_M(u_i) - v . phi_M'(u_i))^2 + theta |v|^2,  u_i those of M'     (Eq. 12)
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from kernelstream.blas import one_thread
from kernelstream.learners.base import Array, State, state_error
from kernelstream.learners.nogd import NOGD
from kernelstream.rows import as_rows
from kernelstream.sketches.landmarks import Landmarks, check_adaptation
from kernelstream.validate import check_number

__all__ = ["NOLANA"]


class NOLANA(NOGD):
    """Nonlinear online learning with adaptive Nystrom approximation: NOGD whose landmarks follow the stream.

    Args:
        budget: how many landmarks (m).
        rank: how many features (r), at most the budget; by default 0.8 m, the paper's choice.
        epsilon: squared distance from the nearest landmark at which a row moves it: a number (0: every row
            moves one), ``inf`` (never: NOGD) or ``"auto"``, a threshold that follows the 0.9 quantile of the
            distances seen, so that about a tenth of the rows move a landmark (fewer if more than nine in ten
            rows equal a landmark).
        solver: how the eigenpairs follow the landmarks: ``"scratch"``, ``"rank2"``, ``"warm"``, ``"small"`` (which saves
            memory), ``"complement"`` or ``"auto"``, the fastest: ``"warm"`` for a rank up to m / 2, above it (the default rank)
            ``"complement"``.
        iterations: subspace iterations of ``"warm"``, ``"small"`` and ``"complement"`` (the paper's p).
        weighted: let the landmark move that adds the least to the k-means cost, ``N_q / (N_q + 1) |x_t - u_q|^2``, which knows
            how dense each cluster is, in place of the nearest.
        lifetime: a landmark that has not moved during so many moves gives its place to the row; 0: never.
        eta: step size.
        lam: regularisation (lambda).
        theta: ridge of the least squares that carry the model over to moved landmarks (Eq. 12).
        loss: a loss or its name; by default hinge for classification and squared for regression.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.

    This differs from the paper in:
        1. the first m examples that the loss has a slope for are the first landmarks, and until there are m
        of them the model is kernel gradient descent on them, as in NOGD, of which w starts as the projection;
        2. what `AdaptiveNystrom` lists from 2 on (the map, the counts, epsilon, the solvers); 3. Eq. 11, which
        the paper solves "using gradient descent", is one gradient step of constant size; 4. the gradient
        step comes first, then Eq. 12, as in Section 4.2 and the proof of Theorem 4.1 (the abstract says the
        reverse); 5. a row of weight 0 moves no landmark, another weight only multiplies the slope; 6. several
        classes are learnt one against the rest; 7. the squared loss is halved, see `Squared`; 8. a landmark
        stays where it is if its kernel values at the new place would not be finite; 9. the paper's Algorithm 2 is
        not in the text at hand: Section 4.2, which describes it, is followed.

    References:
        Si, Kumar and Yang, "Nonlinear online learning with adaptive Nystrom approximation", 2018,
        Section 4.2.

    >>> from kernelstream import KernelClassifier
    >>> X, y = [[0.0], [1.0], [0.1], [0.9]] * 20, [0, 1, 0, 1] * 20
    >>> KernelClassifier(NOLANA(budget=10, epsilon=0.001)).fit(X, y).predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    merge_guarantee: ClassVar[str] = ""
    merge_refusal: ClassVar[str] = (
        "its map moves with the rows, and the maps of two models have no common directions"
    )
    averaged_arrays: ClassVar[tuple[str, ...]] = ()
    mixing_parts: ClassVar[tuple[str, ...]] = ()  # there is more than NOGD has

    #: Rows handed to the core at once: it looks through all of them at every call, and each move needs one.
    CHUNK = 512

    _adapted: Landmarks | None
    _threshold: tuple[float, float, float, float]

    def __init__(
        self,
        budget: int = 200,
        *,
        rank: int | None = None,
        epsilon: float | str = "auto",
        solver: str = "auto",
        iterations: int = 2,
        weighted: bool = False,
        lifetime: int = 0,
        eta: float = 0.5,
        lam: float = 0.0,
        theta: float = 1e-6,
        loss: Any = None,
        kernel: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.solver = solver
        self.iterations = iterations
        self.weighted = weighted
        self.lifetime = lifetime
        self.theta = theta
        super().__init__(budget, rank=rank, eta=eta, lam=lam, loss=loss, kernel=kernel)

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        super().check()
        check_adaptation(self.epsilon, self.solver, self.iterations, self.lifetime)
        check_number("theta", self.theta, low=0)

    def _build_core(self) -> None:
        super()._build_core()
        self._adapted = None

    def _map_points(self, points: Any) -> Array:
        return np.asarray(points.toarray() if scipy.sparse.issparse(points) else points)

    def _landmarks_of(self, points: Array) -> Landmarks:
        rank = self.rank if self.rank is not None else max(1, self.budget * 4 // 5)
        moves = self.epsilon != np.inf
        solver = self.solver if moves else "scratch"
        landmarks = Landmarks(
            self._settled,
            points,
            rank,
            solver,
            self.iterations,
            weighted=self.weighted,
            lifetime=self.lifetime,
            theta=self.theta,
        )
        self._threshold = landmarks.threshold(self.epsilon)
        self._adapted = landmarks if moves else None
        return landmarks

    @property
    def epsilon_(self) -> float:
        """The threshold in use; infinite until there are landmarks."""
        return np.inf if self._adapted is None else float(self._mapped.epsilon[0])

    @property
    def n_moves(self) -> int:
        """How often a landmark has moved."""
        if self._adapted is None:
            return 0
        return int(self._adapted.moved.max() if self.lifetime else self._adapted.counts.sum() - self.budget)

    def _map_class(self) -> str:
        return "Mapped" if self._adapted is None else "Adaptive"

    def _run_map(
        self, rows: Any, start: int, targets: Array, weights: Array | None, scores: Array, first: int
    ) -> None:
        if self._adapted is None:
            super()._run_map(rows, start, targets, weights, scores, first)
            return
        with ExitStack() as moves:
            limited = False
            for at in range(start, rows.n, self.CHUNK):
                stop = min(at + self.CHUNK, rows.n)
                part = rows.part(at, stop)
                some = None if weights is None else weights[at:stop]
                row, due = 0, True
                while due:
                    ran = self._mapped.run(part, row, targets[at:stop], some, scores[at:stop])
                    row, due = self._finished(ran, first + at), bool(ran[1])
                    if due:
                        if not limited:  # once for all moves: it takes a quarter of the time of one
                            moves.enter_context(one_thread())
                            limited = True
                        self._move(part.part(row - 1, row).array()[0])

    def _move(self, x: Array) -> None:
        """Move the landmark nearest to ``x`` and carry the model over (Eq. 12)."""
        landmarks = self._adapted
        assert landmarks is not None
        old_matrix = landmarks.matrix
        weights = self._mapped.weights[: len(old_matrix)].astype(np.float64)
        q = landmarks.choose(self._mapped.nearest, x)
        goal = landmarks.move(q, x, old_matrix.T @ weights)
        if goal is None:
            return
        moved = landmarks.carried(goal)
        self._matrix = np.ascontiguousarray(landmarks.matrix, self._dtype)
        self._mapped.move(q, as_rows(self._points[q : q + 1], self._dtype), self._matrix)
        self._mapped.weights = np.ascontiguousarray(moved, self._dtype)

    def _map(self, points: Array, matrix: Array, weights: Array) -> None:
        super()._map(points, matrix, weights)
        if self._adapted is not None:
            self._adapted.points = self._points  # one array, moved in place
            self._mapped.epsilon = self._threshold

    def _core_arrays(self) -> State:
        arrays = super()._core_arrays()
        if self._adapted is not None:
            arrays |= self._adapted.arrays() | {"epsilon": np.array(self._mapped.epsilon)}
        return arrays

    def _load_core(self, arrays: State) -> None:
        if "gram" in arrays:
            points, rank = arrays["points"], len(arrays["matrix"])
            pairs = len(points) if self.solver == "rank2" else rank
            side = 0 if self.solver == "small" else len(points)
            shapes = {"gram": (side, side), "vectors": (len(points), pairs), "values": (pairs,)}
            if arrays["values"].shape == (0,) and self.solver in ("auto", "complement"):
                shapes |= {"vectors": (len(points), len(points) - rank), "values": (0,)}
            shapes |= {"counts": (len(points),), "epsilon": (4,)}
            if self.lifetime:
                shapes |= {"moved": (len(points),)}
            if arrays.get("inverses", np.empty(0)).size:
                shapes |= {"inverses": (2 if self.theta else 1, side, side)}
            wrong = any(name not in arrays or arrays[name].shape != shape for name, shape in shapes.items())
            kinds: dict[str, type] = dict.fromkeys(shapes, np.float64) | dict.fromkeys(
                ["counts", "moved"], np.int64
            )
            if wrong or any(arrays[name].dtype != kinds[name] for name in shapes):
                raise state_error()
            self._adapted = Landmarks.restored(
                self._settled,
                points,
                rank,
                self.solver,
                self.iterations,
                arrays,
                weighted=self.weighted,
                lifetime=self.lifetime,
                theta=self.theta,
            )
            self._threshold = tuple(arrays["epsilon"].tolist())
        super()._load_core(arrays)

    def _core_nbytes(self) -> int:
        return super()._core_nbytes() + (0 if self._adapted is None else self._adapted.nbytes)
