"""OKS: online kernel selection among N candidates by a lottery.

One kernel expansion f_i for each candidate kernel k_i. With L_i the importance-weighted losses of candidate
i so far:

    q_i = exp(-rate L_i),   p_i = (1 - delta) q_i / sum_j q_j + delta / N
    draw i ~ p;   predict f_i(x_t);   with g = l'(f_i(x_t)):
    f_i -= eta g / p_i k_i(x_t, .),   L_i += l(f_i(x_t)) / p_i

For losses whose slope has no bound the step is min(eta / p_i, 1 / c) with c the largest l'': 1 for the squared
loss, 2 for the squared hinge. The other candidates neither predict nor learn in that round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from kernelstream._core import core
from kernelstream.kernels import Gaussian, check_bandwidth
from kernelstream.learners.base import Array
from kernelstream.learners.core_learner import CoreLearner
from kernelstream.validate import check_integer, check_number, check_seed

__all__ = ["BANDWIDTHS", "OKS", "check_bandwidths"]

BANDWIDTHS: tuple[float, ...] = tuple((2.0 ** np.arange(-6.5, 6.0, 0.5)).tolist())
"""The candidates of the OKS-SIL paper's experiments: 2^-6.5, 2^-6, ... 2^5.5."""


def check_bandwidths(bandwidths: Any) -> None:
    """Checks candidate bandwidths.

    >>> check_bandwidths([])
    Traceback (most recent call last):
    ...
    ValueError: bandwidths must name at least one candidate, got []
    """
    if len(bandwidths) == 0:
        raise ValueError(f"bandwidths must name at least one candidate, got {bandwidths!r}")
    for sigma in bandwidths:
        check_bandwidth("each of bandwidths", sigma)


class OKS(CoreLearner):
    """Gradient descent in one of N Gaussian kernels, drawn anew each round; grows (up to ``max_size``).

    The candidate of a round is a function of the seed, the number of rounds learnt before and the losses so
    far. ``predict`` scores with the one drawn for the round to come, so it uses up no draw and agrees with
    what that round would predict.

    Args:
        bandwidths: the candidates' sigma; by default the 25 of the OKS-SIL paper, 2^-6.5 to 2^5.5.
        eta: step size of the expansions (see 2. below for its limit).
        delta: smoothing of the probabilities, above 0.
        rate: learning rate of the candidates' weights; by default ``sqrt(2 (1 - delta) ln N / (N t))`` at
            round t.
        loss: a loss or its name; by default hinge for classification and squared for regression.
        max_size: how many points all candidates together may store before an error ends the growth.
        seed: of the draws.

    This differs from the paper in:
        1. the default rate: a stream has no T, so t stands for it (give ``sqrt(2 (1 - delta) ln N / (N T))``
            to have the paper's);
        2. the step: with the squared and the squared hinge loss, whose slopes have no bound, it is at most
            1 / c, c being the loss's curvature (1 and 2). The paper's ``eta / p_i`` goes up to
            ``eta N / delta``, and from 2 / c on every step takes the score further from the target;
        3. several classes: one-vs-rest columns, whose losses add up.

    References:
        Yang, Mahdavi, Jin, Yi and Hoi, "Online kernel selection: algorithms and evaluations", AAAI 2012.

    >>> from kernelstream import KernelClassifier
    >>> model = KernelClassifier(OKS([0.5, 1.0])).fit([[0.0], [1.0], [0.1], [0.9]] * 20, [0, 1, 0, 1] * 20)
    >>> model.predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    merge_refusal: ClassVar[str] = "each model draws its kernels by its own losses"

    feature_axes: ClassVar[dict[str, int] | None] = {"points": 1}
    bounded = False
    bounded_alternative = "OKSSIL"
    _core: core.Lottery64

    def __init__(
        self,
        bandwidths: Sequence[float] = BANDWIDTHS,
        *,
        eta: float = 0.2,
        delta: float = 0.2,
        rate: float | None = None,
        loss: Any = None,
        max_size: int = 10_000,
        seed: int = 0,
    ) -> None:
        self.bandwidths = bandwidths
        self.eta = eta
        self.delta = delta
        self.rate = rate
        self.loss = loss
        self.max_size = max_size
        self.seed = seed
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_bandwidths(self.bandwidths)
        check_number("eta", self.eta, low=0, open_low=True)
        check_number("delta", self.delta, low=0, high=1, open_low=True)
        if self.rate is not None:
            check_number("rate", self.rate, low=0)
        check_integer("max_size", self.max_size, low=1)
        check_seed(self.seed)
        self._check_loss()

    @property
    def kernel_(self) -> Any:
        """The kernel drawn for the next round."""
        return Gaussian(bandwidth=float(self.bandwidths[self._core.next]))

    @property
    def probabilities_(self) -> Array:
        """The probability of each candidate in the next round."""
        return self._core.chances()

    def needs(self, width: int, outputs: int) -> int:
        """About how many bytes an untrained model takes: each candidate begins with memory for a few points."""
        return super().needs(width, outputs) * len(self.bandwidths)

    def _build_core(self) -> None:
        self._core = self._core_class("Lottery")(
            width=self._width,
            outputs=self._outputs,
            regression=self._regression,
            loss=self._loss().core,
            eta=self.eta,
            gammas=np.array(
                [Gaussian(bandwidth=float(sigma)).options()["gamma"] for sigma in self.bandwidths]
            ),
            delta=self.delta,
            rate=-1.0 if self.rate is None else self.rate,
            seed=self.seed,
            budget=self.max_size,
        )
