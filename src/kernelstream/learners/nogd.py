"""Nystrom online gradient descent: a linear model over the Nystrom map of the first points.

f_t(x) = w_t . z(x),      w_{t+1} = (1 - eta lam) w_t - eta g z(x_t),   g the slope of the loss at f_t(x_t).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from kernelstream.blas import one_thread
from kernelstream.kernels import core_kernel
from kernelstream.learners.base import Array, State, state_error
from kernelstream.learners.kernel_learner import KernelLearner
from kernelstream.rows import as_rows, rows_of_state, state_of_rows
from kernelstream.sketches.landmarks import Landmarks, check_rank
from kernelstream.validate import check_integer, check_step

__all__ = ["NOGD"]


class NOGD(KernelLearner):
    """Nystrom online gradient descent: kernel gradient descent until B points are stored, then a linear model over their map.

    With ``K_B = V D V^T`` the kernel matrix of the stored points, cut to its ``rank`` largest eigenvalues:
    ``z(x) = D^-1/2 V^T k_B(x)``, and w starts from the projection of the kernel model, ``D^1/2 V^T a``.

    Args:
        budget: how many landmarks (B).
        rank: how many features (k), at most the budget; by default half of it.
        eta: step size.
        lam: regularisation.
        loss: a loss or its name; by default hinge for classification and squared for regression.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.

    This differs from the paper in:
        1. directions with an eigenvalue below 1e-10 of the largest are left out; 2. ``lam`` (0 gives the paper's update);
        3. several classes are learnt one against the rest.

    References:
        Lu, Hoi, Wang, Zhao and Liu, "Large scale online kernel learning", JMLR 17, 2016.

    >>> from kernelstream import KernelClassifier
    >>> model = KernelClassifier(NOGD(budget=20)).fit([[0.0], [1.0], [0.1], [0.9]] * 20, [0, 1, 0, 1] * 20)
    >>> model.predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    merge_guarantee: ClassVar[str] = "the mean by rows of the parts' weights over the same map"
    averaged_arrays: ClassVar[tuple[str, ...]] = ("map_weights",)
    mixing_parts: ClassVar[tuple[str, ...]] = ("_expansion", "_mapped")

    _expansion: Any
    _mapped: Any
    _matrix: Array

    def __init__(
        self,
        budget: int = 200,
        *,
        rank: int | None = None,
        eta: float = 0.5,
        lam: float = 0.0,
        loss: Any = None,
        kernel: Any = None,
    ) -> None:
        self.budget = budget
        self.rank = rank
        self.eta = eta
        self.lam = lam
        self.loss = loss
        self.kernel = kernel
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("budget", self.budget, low=1)
        check_rank(self.rank, self.budget)
        check_step(self.eta, self.lam)
        self._check_loss()

    @property
    def has_map(self) -> bool:
        """Whether the map is there; before, the model is a kernel expansion."""
        return self.started and self._mapped is not None

    def _build_core(self) -> None:
        self._mapped = None
        self._expansion = self._core_class("Expansion")(
            "kogd",
            width=self._width,
            outputs=self._outputs,
            regression=self._regression,
            budget=self.budget,
            stops_when_full=True,
            loss=self._loss().core,
            eta=self.eta,
            lam=self.lam,
            kernel=core_kernel(self._settled),
        )

    def _run_core(self, rows: Any, targets: Array, weights: Array | None, scores: Array, first: int) -> None:
        start = 0
        if self._mapped is None:
            ran = self._expansion.run(rows, 0, targets, weights, scores)
            start = self._finished(ran, first)
            if ran[1]:
                with one_thread():
                    self._embed()
        if self._mapped is not None:
            self._run_map(rows, start, targets, weights, scores, first)

    def _run_map(
        self, rows: Any, start: int, targets: Array, weights: Array | None, scores: Array, first: int
    ) -> None:
        self._finished(self._mapped.run(rows, start, targets, weights, scores), first)

    def _embed(self) -> None:
        """Go over from the kernel model to the map of its points."""
        kernel_model = self._expansion.state()
        points = self._map_points(rows_of_state("points", kernel_model, self._width))
        landmarks = self._landmarks_of(points)
        start = landmarks.lift @ kernel_model["weights"]
        self._map(points, landmarks.matrix.astype(self._dtype), start.astype(self._dtype))

    def _map_points(self, points: Any) -> Any:
        """The points as the map stores them: sparse if they are, unless a learner moves them."""
        return points

    def _landmarks_of(self, points: Array) -> Landmarks:
        rank = self.rank if self.rank is not None else max(1, self.budget // 2)
        return Landmarks(self._settled, points, rank)

    def _map_class(self) -> str:
        return "Mapped"

    def _map(self, points: Array, matrix: Array, weights: Array) -> None:
        self._matrix = np.array(matrix, order="C")
        self._mapped = self._core_class(self._map_class()).landmarks(
            as_rows(points, self._dtype),
            self._matrix,
            outputs=self._outputs,
            regression=self._regression,
            loss=self._loss().core,
            eta=self.eta,
            lam=self.lam,
            kernel=core_kernel(self._settled),
        )
        self._mapped.weights = np.ascontiguousarray(weights)
        self._points = points.copy()
        self._expansion = None

    def score_rows(self, X: Any) -> Array:
        """Scores of the core's rows ``X``, ``(n, outputs)``."""
        scores: Array = (self._expansion if self._mapped is None else self._mapped).score(X)
        return scores

    def _core_arrays(self) -> State:
        if self._mapped is None:
            arrays: State = self._expansion.state()
            return arrays
        weights = self._mapped.weights[: len(self._matrix)]
        arrays = {"matrix": self._matrix.copy(), "map_weights": weights}
        return state_of_rows("points", self._points) | arrays

    def _load_core(self, arrays: State) -> None:
        if "matrix" in arrays:
            points = rows_of_state("points", arrays, self._width)
            matrix, weights = arrays["matrix"], arrays["map_weights"]
            if points.shape[1:] != (self._width,) or len(weights) != len(matrix):
                raise state_error()
            if any(array.dtype != self._dtype for array in (points, matrix, weights)):
                raise state_error()
            self._map(points, matrix, weights)
        else:
            self._expansion.restore(arrays)

    def _core_nbytes(self) -> int:
        if self._mapped is None:
            return int(self._expansion.nbytes)
        points = self._points.data.nbytes * 2 if scipy.sparse.issparse(self._points) else self._points.nbytes
        return int(self._mapped.nbytes + points + self._matrix.nbytes)
