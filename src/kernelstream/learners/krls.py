"""Kernel recursive least squares with approximate linear dependency (ALD).

With K the kernel matrix of the dictionary, ``k`` the kernel values of the new row against it, ``a = K^-1 k``:

    delta = k(x, x) - k . a,    e = y - k . alpha         (delta: squared distance from the dictionary's span)
    delta > nu:  the row joins the dictionary;  P <- diag(P, 1),  alpha <- (alpha - a e / delta, e / delta)
    otherwise:   q = P a / (1 + a . P a),  P <- P - q a^T P,  alpha <- alpha + K^-1 q e
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from kernelstream.kernels import core_kernel
from kernelstream.learners.base import Array, State
from kernelstream.learners.delta import from_half, half, inverse
from kernelstream.learners.kernel_learner import KernelLearner
from kernelstream.validate import check_integer, check_number

__all__ = ["KRLS"]


class KRLS(KernelLearner):
    """Kernel recursive least squares, with a dictionary of rows that are far from each other's span.

    At every round it is the best fit to all rows seen, when each row is replaced by its projection on the
    span of the dictionary it met.

    Args:
        nu: squared distance from the dictionary's span above which a row joins it.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.
        max_size: the dictionary's cap; when it is full, rows are projected however far they are.

    Classification fits -1 and +1, and with more classes one column each, which share dictionary and P.

    This differs from the paper in:
        1. the cap; 2. a row with ``delta <= 1e-10 k(x, x)`` never joins, so that K stays sound for nu = 0;
        3. the Cholesky factor of K is kept, not its inverse; 4. sample weights (weighted least squares);
        5. a row with ``k(x, x) = 0`` is passed over; the first other row joins whatever nu, as in the paper.

    P is updated by Sherman and Morrison's formula alone; its drift is not measured. If it is found not to be
    positive, learning stops with ``ScoreOverflowError``. Kernel values are computed in double precision for
    float32 data too.

    References:
        Engel, Mannor and Meir, "The kernel recursive least-squares algorithm", IEEE Trans. Signal Processing
        52, 2004.

    >>> from kernelstream import KernelRegressor
    >>> model = KernelRegressor(KRLS(nu=0.001)).fit([[0.0], [1.0], [0.5]] * 20, [0.0, 1.0, 0.0] * 20)
    >>> abs(model.predict([[0.0], [1.0], [0.5]])).round(2).tolist()
    [0.0, 1.0, 0.0]
    """

    quadratic = True
    merge_guarantee: ClassVar[str] = "exactly one pass over all rows, with the dictionary of the base"

    #: The dictionary's cap of a learner that is held.
    _size: int | None = None

    def __init__(self, nu: float = 0.1, *, kernel: Any = None, max_size: int = 200) -> None:
        self.nu = nu
        self.kernel = kernel
        self.max_size = max_size
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_number("nu", self.nu, low=0)
        check_integer("max_size", self.max_size, low=1)

    def _build_core(self) -> None:
        self._core = self._core_class("RecursiveLeastSquares")(
            width=self._width,
            outputs=self._outputs,
            regression=self._regression,
            budget=self._size or self.max_size,
            nu=float(self.nu),
            kernel=core_kernel(self._settled),
        )

    # ---- merging: sums of a a^T and a y over the rows, a = K^-1 k their coordinates in the dictionary ----

    def hold(self) -> None:
        """No row joins the dictionary from now on."""
        state = self.state()
        self._size = max(1, len(state["points"]))
        self.restore(state)

    def _sums(self, state: State) -> tuple[Array, Array]:
        """``P^-1`` and ``P^-1 K alpha``: to these every row adds its own ``a a^T`` and ``a y``."""
        matrix = inverse(state["P"].astype(np.float64))
        weights = state["weights"].astype(np.float64)
        return matrix, matrix @ (self._settled(state["points"].astype(np.float64)) @ weights)

    def delta_since(self, base: State, rows: int, task: str) -> State:
        """What these rows added to the sums."""
        state = self.state()
        self.check_common(base, state, {"P", "weights"})
        matrix, vector = (
            now - before for now, before in zip(self._sums(state), self._sums(base), strict=True)
        )
        return {"sum/rows": np.array([float(rows)]), "sum/matrix": half(matrix), "sum/vector": vector}

    def add_delta(self, delta: State) -> None:
        """The sums of all rows, and the weights that follow from them."""
        state = self.state()
        matrix, vector = self._sums(state)
        state["P"] = inverse(matrix + from_half(delta["sum/matrix"]))
        weights = state["P"] @ (vector + delta["sum/vector"])
        points = state["points"].astype(np.float64)
        state["weights"] = np.linalg.solve(self._settled(points), weights).astype(state["weights"].dtype)
        self.restore(state)
