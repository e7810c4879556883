"""PROS-N-KONS: the online Newton step in the Nystrom embedding of a dictionary that KORS keeps.

With I the dictionary, ``K_I = U S U^T`` its kernel matrix and ``k_I(x)`` the kernel values of a row with it:

    z(x) = S^-1/2 U^T k_I(x)                     (the embedding, whose products are the Nystrom kernel)
    A_t = alpha I + sum_s eta_s g_s^2 z_s z_s^T,   u_{t+1} = w_t - A_t^-1 g_t z_t
    w_t = u_t - h(z_t . u_t) / (z_t^T A_{t-1}^-1 z_t) A_{t-1}^-1 z_t,     predict z_t . w_t

Each row is then shown to KORS (see ``kernelstream.sketches.RidgeLeverageSampler``), with its plain feature
vector and the regularisation gamma. If KORS keeps it, the embedding is made anew, and A and w start again
(PROS-N-KONS) or are carried over into the larger space (CON-KONS).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelstream._core import core
from kernelstream.blas import one_thread
from kernelstream.learners.base import Array, State
from kernelstream.learners.kons import NewtonLearner
from kernelstream.validate import check_number

__all__ = ["ProsNKons"]


class ProsNKons(NewtonLearner):
    """The bounded second-order learner: online Newton step on the Nystrom features of an adaptive dictionary.

    Once the dictionary holds ``max_size`` points it stays as it is; memory and time per round are then
    constant.

    Args:
        C: scores are clipped to [-C, C]; for regression it should bound the targets, and with the logistic
            loss it bounds the log-odds.
        alpha: regularisation of the second-order matrix.
        gamma: regularisation of KORS's leverage scores; smaller means a larger dictionary.
        beta: KORS's budget; the theory asks for ``3 log(T / delta) / eps^2``, practice for much less.
        eps: accuracy of the leverage scores, in (0, 1].
        eta: the stepsize; by default the curvature constant of the loss, or ``1 / (L C sqrt(t))`` if it has none (see
            ``kernelstream.learners.kons``). Either is divided by the row's weight.
        dimension: the effective dimension, if it is known: the stepsize ``sqrt(dimension / (L^2 C^2 t))``, for any loss.
        loss: a loss or its name; ``"squared"`` by default.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.
        max_size: the dictionary's cap.
        restart: whether A and w start again when the dictionary grows; ``False`` is CON-KONS, which carries
            the function and the second-order matrix over.
        seed: of KORS's coins.

    This differs from the paper in:
        1. the cap on the dictionary;
        2. directions of the dictionary with an eigenvalue below 1e-10 of the largest are left out;
        3. the dictionary grows at the end of the round whose row KORS kept, and a Newton step is always in
           force when the next row is predicted;
        4. ``eta_t = sigma_t`` as in KONS, and its step for losses without curvature. (The paper was not at hand; this follows
           the KONS paper and what its authors' later work is said to change.)
        5. sample weights: a row of weight v has the loss ``v l``, hence the slope ``v g`` and the stepsize
           ``eta / v``, also for an eta that is given. They do not reach KORS, which is shown the plain
           ``phi(x_t)`` whatever the weight, but for rows of weight 0, which it is not shown;
        6. CON-KONS is said to keep w; that it keeps A as well, both expressed in the larger space, is our
           reading;
        7. several classes, one against the rest, each with w and A of its own in the embedding of one dictionary.

    ``A^-1`` is updated by Sherman and Morrison's formula alone, and made anew only when the dictionary grows.
    Its drift is not measured while learning: after 20,000 rows its relative asymmetry was 8e-14 at alpha =
    1e-4 and 1e-5 at alpha = 1e-12. If it is found not to be positive, learning stops with
    ``ScoreOverflowError``. Kernel values are computed in double precision for float32 data too.

    References:
        Calandriello, Lazaric and Valko, "Efficient second-order online kernel learning with adaptive
        embedding", NeurIPS 2017.

    >>> from kernelstream import KernelRegressor
    >>> model = KernelRegressor(ProsNKons(alpha=0.1, max_size=9)).fit([[0.0], [1.0]] * 100, [-0.5, 0.5] * 100)
    >>> model.predict([[0.0], [1.0]]).round(1).tolist()
    [-0.5, 0.5]
    """

    quadratic = True
    _core: core.EmbeddedNewton64

    def __init__(
        self,
        C: float = 1.0,
        *,
        alpha: float = 1.0,
        gamma: float = 1.0,
        beta: float = 1.0,
        eps: float = 0.5,
        eta: float | None = None,
        dimension: float | None = None,
        loss: Any = None,
        kernel: Any = None,
        max_size: int = 200,
        restart: bool = True,
        seed: int = 0,
    ) -> None:
        self.C = C
        self.alpha = alpha
        self.gamma = gamma
        self.beta = beta
        self.eps = eps
        self.eta = eta
        self.dimension = dimension
        self.loss = loss
        self.kernel = kernel
        self.max_size = max_size
        self.restart = restart
        self.seed = seed
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        self._check_newton()
        self._check_sampling(self.beta, self.eps, self.seed)
        check_number("gamma", self.gamma, low=0, open_low=True)

    def _build_core(self) -> None:
        self._core = self._core_class("EmbeddedNewton")(
            ridge=float(self.gamma),
            beta=float(self.beta),
            eps=float(self.eps),
            seed=self.seed,
            **self._options(),
        )

    def _run_core(self, rows: Any, targets: Array, weights: Array | None, scores: Array, first: int) -> None:
        at = 0
        while at < rows.n:
            ran = self._core.run(rows, at, targets, weights, scores)
            at = self._finished(ran, first)
            if ran[1]:  # the dictionary has grown
                with one_thread():
                    self._embed()

    def _embed(self) -> None:
        """The embedding of the dictionary as it is now, and where A and w go on in it."""
        old = self._core.state()
        points = old["points"].astype(np.float64, copy=False)  # the core's precision, whatever the data's
        K = np.asarray(self._settled(points, points), np.float64)
        eigenvalues, vectors = np.linalg.eigh((K + K.T) / 2)
        good = eigenvalues > eigenvalues[-1] * 1e-10
        roots, basis = np.sqrt(eigenvalues[good]), vectors[:, good]
        matrix = basis.T / roots[:, None]
        rank, before = len(matrix), old["matrix"].shape[1]
        w, A = np.zeros((rank, self._outputs)), np.stack([self.alpha * np.eye(rank)] * self._outputs)
        if not self.restart and before:
            move = (basis[:before] * roots).T @ old["matrix"].T  # old coordinates to new ones: an isometry
            w = move @ old["weights"]
            inverses = old["inverse"].reshape(self._outputs, *2 * [len(old["matrix"])])
            A += move @ (np.linalg.inv(inverses) - self.alpha * np.eye(inverses.shape[1])) @ move.T
        inverse = np.linalg.inv(A)
        inverse = (inverse + inverse.swapaxes(1, 2)) / 2
        self._core.embed(np.ascontiguousarray(matrix), np.ascontiguousarray(w), inverse.reshape(-1, rank))

    def _copy_matrices(self, state: State, sources: Array) -> None:
        rank = len(state["matrix"])
        blocks = state["inverse"].reshape(self._outputs, rank, rank)
        state["inverse"] = np.ascontiguousarray(blocks[sources].reshape(len(sources) * rank, rank))
