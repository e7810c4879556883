"""Gradient descent on a linear model over an explicit feature map: FOGD (Fourier) and NOGD (Nystrom).

f_t(x) = w_t . z(x),      w_{t+1} = (1 - eta lam) w_t - eta g z(x_t),   g the slope of the loss at f_t(x_t).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kernelstream._core import core
from kernelstream.kernels import core_kernel
from kernelstream.learners.base import Array, KernelLearner, State, check_seed, check_step, state_error
from kernelstream.rows import as_rows
from kernelstream.sketches.adaptive import Landmarks, check_rank
from kernelstream.sketches.fourier import check_components, check_spectral, frequencies
from kernelstream.validate import check_integer

__all__ = ["FOGD", "NOGD"]


class FOGD(KernelLearner):
    """Fourier online gradient descent: random features of a shift-invariant kernel.

    ``z(x) = sqrt(1/m) [cos(W x), sin(W x)]``, ``W ~ N(0, 2 gamma I)`` for the Gaussian kernel (Cauchy for the Laplacian), so
    that ``E z(x) . z(x') = k(x, x')``.

    Args:
        n_components: number of features, cosines and sines together (2 m); even.
        eta: step size, for features of norm one (a step on unnormalised features is m times smaller).
        lam: regularisation.
        loss: a loss or its name; by default hinge for classification and squared for regression.
        kernel: Gaussian or Laplacian; by default Gaussian with the median bandwidth.
        seed: of the frequencies.

    This differs from the paper in:
        1. features have norm one; 2. ``lam`` (0 gives the paper's update); 3. several classes are learnt one
        against the rest.

    References:
        Lu, Hoi, Wang, Zhao and Liu, "Large scale online kernel learning", JMLR 17, 2016.
        Rahimi and Recht, "Random features for large-scale kernel machines", NeurIPS 2007.

    >>> from kernelstream import KernelClassifier
    >>> model = KernelClassifier(FOGD(n_components=100)).fit([[0.0], [1.0]] * 50, [0, 1] * 50)
    >>> model.predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    feature_axes: ClassVar[dict[str, int]] = {"warmup_rows": 1}

    _core: core.Mapped64

    def __init__(
        self,
        n_components: int = 400,
        *,
        eta: float = 0.5,
        lam: float = 0.0,
        loss: Any = None,
        kernel: Any = None,
        seed: int = 0,
    ) -> None:
        self.n_components = n_components
        self.eta = eta
        self.lam = lam
        self.loss = loss
        self.kernel = kernel
        self.seed = seed
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_components(self.n_components)
        check_step(self.eta, self.lam)
        check_seed(self.seed)
        self._check_loss()
        check_spectral("FOGD", self.kernel)

    def frequencies(self) -> Array:
        """W, one row a feature of the input; a row depends on the seed and its own number only."""
        return frequencies(self._settled, self._width, self.n_components // 2, self.seed)

    def _build_core(self) -> None:
        self._core = self._core_class("Mapped").fourier(
            np.ascontiguousarray(self.frequencies(), dtype=self._dtype),
            outputs=self._outputs,
            regression=self._regression,
            loss=self._loss().core,
            eta=self.eta,
            lam=self.lam,
        )

    def _run_core(self, rows: Any, targets: Array, weights: Array | None, scores: Array, first: int) -> None:
        self._finished(self._core.run(rows, 0, targets, weights, scores), first)

    def _score(self, rows: Any) -> Array:
        return self._core.score(rows)

    def _core_arrays(self) -> State:
        return self._core.state()

    def _load_core(self, arrays: State) -> None:
        self._core.restore(arrays)

    @property
    def nbytes(self) -> int:
        """Bytes of model state."""
        return self._core.nbytes + self._kept_nbytes()


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

    output_axes: ClassVar[dict[str, int]] = {"weights": 1, "map_weights": 1}

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
        points = kernel_model["points"]
        landmarks = self._landmarks_of(points)
        start = landmarks.lift @ kernel_model["weights"]
        self._map(points, landmarks.matrix.astype(self._dtype), start.astype(self._dtype))

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
        self._points = np.array(points, order="C")
        self._expansion = None

    def _score(self, rows: Any) -> Array:
        model: core.Expansion64 = self._expansion if self._mapped is None else self._mapped
        return model.score(rows)

    def _core_arrays(self) -> State:
        if self._mapped is None:
            arrays: State = self._expansion.state()
            return arrays
        weights = self._mapped.weights[: len(self._matrix)]
        return {"points": self._points.copy(), "matrix": self._matrix.copy(), "map_weights": weights}

    def _load_core(self, arrays: State) -> None:
        if "matrix" in arrays:
            points, matrix, weights = (arrays[name] for name in ("points", "matrix", "map_weights"))
            if points.shape[1:] != (self._width,) or len(weights) != len(matrix):
                raise state_error()
            if any(array.dtype != self._dtype for array in (points, matrix, weights)):
                raise state_error()
            self._map(points, matrix, weights)
        else:
            self._expansion.restore(arrays)

    @property
    def nbytes(self) -> int:
        """Bytes of model state."""
        core = self._expansion if self._mapped is None else self._mapped
        extra = 0 if self._mapped is None else self._points.nbytes + self._matrix.nbytes
        return int(core.nbytes) + extra + self._kept_nbytes()
