"""Kernel recursive least squares with approximate linear dependency (ALD).

With K the kernel matrix of the dictionary, ``k`` the kernel values of the new row against it, ``a = K^-1 k``:

    delta = k(x, x) - k . a,    e = y - k . alpha         (delta: squared distance from the dictionary's span)
    delta > nu:  the row joins the dictionary;  P <- diag(P, 1),  alpha <- (alpha - a e / delta, e / delta)
    otherwise:   q = P a / (1 + a . P a),  P <- P - q a^T P,  alpha <- alpha + K^-1 q e
"""

from __future__ import annotations

from typing import Any

from kernelstream.kernels import core_kernel
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
            budget=self.max_size,
            nu=float(self.nu),
            kernel=core_kernel(self._settled),
        )
