"""Kernel online Newton step, exact (KONS) and with a sketched second-order matrix (Sketched-KONS).

The online Newton step in feature space, ``phi_t = phi(x_t)``, ``g_t`` the slope of the loss at yhat_t:

    A_t = alpha I + sum_{s <= t} eta_s g_s^2 phi_s phi_s^T
    u_t = w_{t-1} - A_{t-1}^-1 g_{t-1} phi_{t-1},       ybar_t = phi_t . u_t
    w_t = u_t - h(ybar_t) / (phi_t^T A_{t-1}^-1 phi_t) A_{t-1}^-1 phi_t,    h(z) = sign(z) max(|z| - C, 0)
    predict yhat_t = phi_t . w_t = ybar_t - h(ybar_t)

With ``Psi = [g_s sqrt(eta_s) phi_s]`` (the paper's phi-bar) and ``E = Psi^T Psi + alpha I``,

    A^-1 phi = (phi - Psi E^-1 Psi^T phi) / alpha
    phi^T A^-1 phi = (k(x, x) - |L^-1 Psi^T phi|^2) / alpha,    E = L L^T

so u is a kernel expansion, and a round costs one forward and one backward solve with L, which grows by a row.

The stepsize is the paper's ``eta_t = sigma_t``, the curvature constant of Assumption 2:

    l(b) >= l(a) + l'(a) (b - a) + sigma / 2 (l'(a) (b - a))^2      for all a, b in [-C, C].

By Taylor's formula any ``sigma <= min l'' / max l'^2`` will do. The largest sigma is, for

- squared, ``(f - y)^2 / 2``: l'' = 1 and |l'| <= C + |y|, hence ``1 / (C + |y_t|)^2``, which is at least
  ``1 / (4 C^2)`` for targets in [-C, C]. (The paper's loss ``(f - y)^2`` is twice this one and has ``1 / (8
  C^2)`` for all of them; our alpha is half of the paper's.)
- logistic: with p = 1 / (1 + exp(y f)), l'' = p (1 - p) and |l'| = p; over [-C, C] the least l'' and the
  largest |l'| are both reached at y f = -C, hence ``l'' / l'^2 = (1 - p) / p = exp(-C)``.
- squared hinge: from a with e = 1 - y a > 0 to b on the same side of the kink, ``2 e^2 sigma <= 1``; to b
  beyond it, at a distance d >= e, ``2 e^2 sigma d^2 <= 2 e d - e^2``. The worst case is y a = -C, y b = C:
  ``(3 C - 1) / (8 C^2 (1 + C))`` for C >= 1, and ``1 / (2 (1 + C)^2)`` for C <= 1.

A row of weight v has the loss ``v l``, so the slope ``v l'`` and the constant ``sigma / v``.

Losses without curvature (hinge, epsilon-insensitive, Huber) have sigma = 0. Theorem 1 then has ``eta_t = 1 / (L C sqrt(t))``
with L the largest ``|l'|`` on [-C, C], for a regret of the order of ``d_eff sqrt(T)``; if the effective dimension is known in
advance, ``eta_t = sqrt(d_eff / (L^2 C^2 t))``, for ``sqrt(d_eff T)``. t counts the rounds learnt from.

The *Newton decrement* of a round is ``eta_t g_t^T A_t^-1 g_t``, its ridge leverage score: how much that the matrix does not
know yet. Section 6 of the paper would stop a batch optimisation when it is small; in a stream, rounds below
``least_decrement`` are passed over.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from kernelstream._core import core
from kernelstream.kernels import core_kernel
from kernelstream.learners.base import Array, Mix, State
from kernelstream.learners.kernel_learner import KernelLearner
from kernelstream.losses import Loss, as_loss
from kernelstream.validate import check_integer, check_number, check_seed

__all__ = ["KONS", "SketchedKONS", "curvature_constant"]

CURVED = ("squared", "logistic", "squared_hinge")


def curvature_constant(loss: Any, C: float, target: float = 1.0) -> float:
    """The largest sigma of Assumption 2 for scores in [-C, C].

    The target matters for the squared loss only; the labels of two classes are -1 and 1.

    >>> curvature_constant("squared", C=1.0), curvature_constant("squared", C=1.0, target=3.0)
    (0.25, 0.0625)
    """
    return core.curvature_constant(as_loss(loss).core, C, target)


class NewtonLearner(KernelLearner):
    """What KONS, Sketched-KONS and PROS-N-KONS share: the step, and scores in [-C, C].

    Several classes are learnt one against the rest: each has its own weights and second-order matrix, over the same stored
    points.
    """

    merge_refusal: ClassVar[str] = "its points and its matrix are those of one sequence of rows"

    C: float
    alpha: float
    eta: float | None
    dimension: float | None
    loss: Any
    max_size: int

    def _check_newton(self) -> None:
        check_number("C", self.C, low=0, open_low=True)
        check_number("alpha", self.alpha, low=0, open_low=True)
        for name in ("eta", "dimension"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), low=0, open_low=True)
        if self.eta is not None and self.dimension is not None:
            raise ValueError("give eta or dimension, not both")
        check_integer("max_size", self.max_size, low=1)
        self._check_loss()

    def _check_sampling(self, beta: Any, eps: Any, seed: Any) -> None:
        check_number("beta", beta, low=0, open_low=True)
        check_number("eps", eps, low=0, high=1, open_low=True)
        check_seed(seed)

    def _loss(self) -> Loss:
        return as_loss("squared" if self.loss is None else self.loss)

    def _options(self) -> dict[str, Any]:
        return {
            "width": self._width,
            "regression": self._regression,
            "budget": self.max_size,
            "loss": self._loss().core,
            "kernel": core_kernel(self._settled),
            "C": float(self.C),
            "outputs": self._outputs,
            "eta": 0.0 if self.eta is None else float(self.eta),
            "dimension": self._dimension(),
        }

    def _dimension(self) -> float:
        """The d_eff of the step for losses without curvature; 0 for the other steps."""
        if self.dimension is not None:
            return float(self.dimension)
        return 1.0 if self.eta is None and self._loss().name not in CURVED else 0.0

    def _mix_more(self, state: State, mix: Mix) -> None:
        """The second-order matrix of a class is that of the output it comes from; a new one starts with the first's."""
        self._copy_matrices(state, mix.sources)

    @abstractmethod
    def _copy_matrices(self, state: State, sources: Array) -> None:
        """Put the matrix of output ``sources[c]`` in the place of that of each output c."""


class KONS(NewtonLearner):
    """Kernel online Newton step: logarithmic regret for curved losses, at O(t^2) a round.

    Every round with a slope stores its point; memory is O(t^2) too, up to ``max_size`` points.
    ``ProsNKons`` is the bounded one.

    Args:
        C: scores are clipped to [-C, C]; for regression it should bound the targets, and with the logistic
            loss it bounds the log-odds.
        alpha: regularisation of the second-order matrix.
        eta: the stepsize; by default the curvature constant of the loss, or ``1 / (L C sqrt(t))`` if it has none (see the
            module). Either is divided by the row's weight.
        dimension: the effective dimension, if it is known: the stepsize ``sqrt(dimension / (L^2 C^2 t))``, for any loss.
        loss: a loss or its name; ``"squared"`` by default.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.
        least_decrement: rounds whose Newton decrement (at most 1) is not above this are neither stored nor learnt from.
        max_size: how many points may be stored before an error ends the growth.

    This differs from the paper in:
        1. u is kept as a kernel expansion, updated by u <- w - A^-1 g, instead of through the vector b of
           Lemma 2, which is the same function. (Lemma 1 is right; Lemma 2 as printed is not: its ``1 /
           eta_i`` lacks a ``1 / g_i``, and its k_ii must be the rescaled one);
        2. a round with zero slope and a clipped score (h != 0) stores its point, which b cannot express; one
           with neither stores nothing;
        3. the kernel need not be normalised; a row with ``k(x, x) = 0`` is passed over;
        4. sigma is the one of each loss as this library scales it, and with the squared loss that of each
           target, ``eta_t = sigma_t = 1 / (C + |y_t|)^2``: larger than the paper's ``1 / (4 C^2)`` within
           [-C, C], and the smaller one that is needed beyond;
        5. several classes, one against the rest, each with a second-order matrix of its own over the same points;
        6. sample weights: a row of weight v has the loss ``v l``, hence the slope ``v g`` and the stepsize
           ``eta / v``, also for an eta that is given;
        7. the cap ``max_size``; and ``least_decrement``, which the paper proposes for batches only.

    Kernel values are computed in double precision for float32 data too, since coefficients are of the order
    of 1 / alpha. (A callable kernel is given float64 rows; if it rounds to float32, alpha should not be
    below 1e-5.)

    References:
        Calandriello, Lazaric and Valko, "Second-order kernel online convex optimization with adaptive
        sketching", ICML 2017.

    >>> from kernelstream import KernelRegressor
    >>> model = KernelRegressor(KONS(C=1.0, alpha=0.1)).fit([[0.0], [1.0]] * 20, [-0.5, 0.5] * 20)
    >>> model.predict([[0.0], [1.0]]).round(1).tolist()
    [-0.5, 0.5]
    """

    bounded = False
    bounded_alternative = "ProsNKons"
    _core: core.KernelNewton64

    def __init__(
        self,
        C: float = 1.0,
        *,
        alpha: float = 1.0,
        eta: float | None = None,
        dimension: float | None = None,
        loss: Any = None,
        kernel: Any = None,
        least_decrement: float = 0.0,
        max_size: int = 5_000,
    ) -> None:
        self.C = C
        self.alpha = alpha
        self.eta = eta
        self.dimension = dimension
        self.least_decrement = least_decrement
        self.loss = loss
        self.kernel = kernel
        self.max_size = max_size
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        self._check_newton()
        check_number("least_decrement", self.least_decrement, low=0, high=1)

    def _copy_matrices(self, state: State, sources: Array) -> None:
        def arrays(output: int) -> list[str]:
            name = f"newton{output or ''}"
            return [name, f"{name}_slots", f"{name}_scales"]

        old = {name: state.pop(name) for name in list(state) if name.startswith("newton")}
        for output, source in enumerate(sources):
            state |= {to: old[of] for to, of in zip(arrays(output), arrays(int(source)), strict=True)}

    def _sketch(self) -> dict[str, Any]:
        return {}

    def _build_core(self) -> None:
        self._core = self._core_class("KernelNewton")(
            alpha=float(self.alpha),
            least_decrement=float(self.least_decrement),
            **self._options(),
            **self._sketch(),
        )


class SketchedKONS(KONS):
    """KONS whose second-order matrix takes gradients at random, by their ridge leverage scores.

    ``p_t = max(min(beta tau_t, 1), gamma)`` with tau_t KORS's estimate of the ridge leverage score of ``g_t
    sqrt(eta_t) phi_t``; ``A_t = A_{t-1} + z_t eta_t g_t g_t^T`` (unweighted) with the coin ``z_t``. Every
    point with a slope is still stored for the expansion, but the quadratic cost is only in those whose coin
    came up. The alternative of the paper's Section 6 is ``weighted=True``: ``A_t = A_{t-1} + z_t / p_t eta_t g_t g_t^T``,
    which is right in the mean but may change a lot from round to round.

    Args:
        C: scores are clipped to [-C, C].
        gamma: the least probability of a coin; 1 gives KONS.
        beta: KORS's budget; the theory asks for ``3 log(T / delta) / eps^2``, practice for much less.
        eps: accuracy of the leverage scores, in (0, 1].
        alpha: regularisation of the second-order matrix and of the leverage scores.
        eta: the stepsize; by default as KONS. Either is divided by the row's weight.
        dimension: the effective dimension, if it is known; see KONS.
        weighted: gradients enter the matrix with the weight ``1 / p_t``.
        loss: a loss or its name; ``"squared"`` by default.
        kernel: a kernel, or a callable ``kernel(X, Y)``; by default Gaussian with the median bandwidth.
        least_decrement: rounds whose Newton decrement is not above this are neither stored nor learnt from.
        max_size: how many points may be stored before an error ends the growth.
        seed: of the coins.

    This differs from the paper in: what KONS does, and
        1. Lemma 4 as printed keeps the term ``yhat_i`` of b_i when the coin z_i is 0; the Newton step with
           the sketched A (which Theorem 3 analyses) has ``z_i yhat_i`` there, and that is what is done here;
        2. one draw decides both coins of a round, KORS's own (probability min(beta tau, 1)) and z_t, so that
           KORS's dictionary is part of the sketch, as Corollary 1 wants it;
        3. sample weights reach KORS: it is shown ``g_t sqrt(eta_t) phi_t`` of the weighted loss;
        4. several classes have one coin, for ``sqrt(sum_c eta_c g_c^2) phi_t``.

    References:
        Calandriello, Lazaric and Valko, "Second-order kernel online convex optimization with adaptive
        sketching", ICML 2017.

    >>> from kernelstream import KernelRegressor
    >>> model = KernelRegressor(SketchedKONS(gamma=0.2, alpha=0.1)).fit([[0.0], [1.0]] * 40, [-0.5, 0.5] * 40)
    >>> model.predict([[0.0], [1.0]]).round(1).tolist()
    [-0.5, 0.5]
    >>> model.learner_.n_newton < model.learner_.n_points
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        gamma: float = 0.1,
        beta: float = 5.0,
        eps: float = 0.5,
        alpha: float = 1.0,
        eta: float | None = None,
        dimension: float | None = None,
        weighted: bool = False,
        loss: Any = None,
        kernel: Any = None,
        least_decrement: float = 0.0,
        max_size: int = 10_000,
        seed: int = 0,
    ) -> None:
        self.gamma = gamma
        self.beta = beta
        self.eps = eps
        self.weighted = weighted
        self.seed = seed
        super().__init__(
            C,
            alpha=alpha,
            eta=eta,
            dimension=dimension,
            loss=loss,
            kernel=kernel,
            least_decrement=least_decrement,
            max_size=max_size,
        )

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        super().check()
        self._check_sampling(self.beta, self.eps, self.seed)
        check_number("gamma", self.gamma, low=0, high=1)

    @property
    def n_newton(self) -> int:
        """How many gradients are in the second-order matrix."""
        return self._core.newton_count

    def _sketch(self) -> dict[str, Any]:
        return {
            "sketched": True,
            "weighted": bool(self.weighted),
            "beta": float(self.beta),
            "eps": float(self.eps),
            "least": float(self.gamma),
            "seed": self.seed,
        }
