"""Doubly stochastic gradient descent: a new random feature with every example.

With frequencies w_i drawn from the kernel's Fourier transform, ``z_i(x) = [cos(w_i . x), sin(w_i . x)]`` (m of them per round,
over sqrt(m)), so that ``E z_i(x) . z_i(x') = k(x, x')``:

    f_t(x) = sum_{i < t} a_i . z_i(x)
    a_i <- (1 - gamma_t lam) a_i,  i < t,        a_t = -gamma_t l'(f_t(x_t)) z_t(x_t)

The frequencies are a hash of the seed, their number and the input feature: nothing but the a_i is in the model.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.special

from kernelstream._core import core
from kernelstream.blas import one_thread
from kernelstream.kernels import Laplacian, Matern, RationalQuadratic
from kernelstream.learners.base import Array, State, state_error
from kernelstream.learners.kernel_learner import KernelLearner
from kernelstream.losses import Loss
from kernelstream.sketches.fourier import check_spectral, spectral_scale
from kernelstream.sketches.sjlt import hashed, uniform
from kernelstream.validate import check_integer, check_seed, check_step

__all__ = ["DoublySGD"]

_SHARED = 2**62  # the number that stands for "all features" in the hash


def hashed_frequencies(kernel: Any, width: int, first: int, stop: int, seed: int) -> Array:
    """Frequencies number ``first`` to ``stop - 1``, ``(width, stop - first)``, each a hash of the seed and its place.

    >>> from kernelstream import Gaussian
    >>> part, whole = (hashed_frequencies(Gaussian(gamma=0.5), 3, first, 9, 0) for first in (4, 0))
    >>> bool((part == whole[:, 4:]).all())
    True
    """
    numbers = np.arange(first, stop)

    def draws(*counters: Any) -> Array:  # in (0, 1)
        return uniform(hashed(seed, numbers, *counters)) + 2.0**-54

    chances = np.array([draws(feature) for feature in range(width)]).reshape(width, len(numbers))
    made: Array
    if isinstance(kernel, Laplacian):
        made = np.tan(np.pi * (chances - 0.5))
    else:
        made = scipy.special.ndtri(chances)
    if isinstance(kernel, Matern):
        made /= np.sqrt(scipy.special.gammaincinv(kernel.nu, draws(_SHARED)) / kernel.nu)
    elif isinstance(kernel, RationalQuadratic):
        made *= np.sqrt(scipy.special.gammaincinv(kernel.alpha, draws(_SHARED)) / kernel.alpha)
    return made * spectral_scale(kernel)


class DoublySGD(KernelLearner):
    """Doubly stochastic gradient descent: one example and new random features per round.

    Every round with a slope adds ``2 features`` numbers per output to the model; time per round grows with their number.
    ``FOGD`` is the bounded one.

    Args:
        features: how many frequencies per round (m).
        eta: the first step; the step of round t is ``gamma_t = eta / (1 + eta lam t)``, t counting the rounds learnt from.
        lam: regularisation.
        loss: a loss or its name; by default hinge for classification and squared for regression.
        kernel: Gaussian, Laplacian, Matern or RationalQuadratic; by default Gaussian with the median bandwidth.
        max_size: how many rounds with a slope may be stored before an error ends the growth.
        seed: of the frequencies.

    Written without the paper's text at hand: what follows, too, is by what is generally known of it.

    This differs from the paper in:
        1. steps: the paper has ``theta / t``, to which ours comes near for a large eta (``theta = 1 / lam``);
        2. a round without slope stores nothing, and frequencies are numbered by the rounds with one;
        3. cosine and sine of a frequency, not a cosine with a random phase; one example per round;
        4. the frequencies are drawn once and kept in memory for as long as the model is, not drawn again for every prediction;
        5. several classes are learnt one against the rest; a row of weight v has v times the loss.

    References:
        Dai, Xie, He, Liang, Raj, Balcan and Song, "Scalable kernel methods via doubly stochastic gradients", NeurIPS 2014.

    >>> from kernelstream import KernelClassifier
    >>> model = KernelClassifier(DoublySGD(features=8)).fit([[0.0], [1.0]] * 50, [0, 1] * 50)
    >>> model.predict([[0.05], [0.95]]).tolist()
    [0, 1]
    """

    bounded: ClassVar[bool] = False
    bounded_alternative: ClassVar[str] = "FOGD"
    merge_refusal: ClassVar[str] = "each model numbers its random features by its own rounds"
    feature_axes: ClassVar[dict[str, int] | None] = {"warmup_rows": 1}

    def __init__(
        self,
        features: int = 8,
        *,
        eta: float = 0.5,
        lam: float = 0.001,
        loss: Any = None,
        kernel: Any = None,
        max_size: int = 20_000,
        seed: int = 0,
    ) -> None:
        self.features = features
        self.eta = eta
        self.lam = lam
        self.loss = loss
        self.kernel = kernel
        self.max_size = max_size
        self.seed = seed
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("features", self.features, low=1)
        check_integer("max_size", self.max_size, low=1)
        check_step(self.eta, self.lam)
        check_seed(self.seed)
        self._check_loss()
        check_spectral("DoublySGD", self.kernel)

    def _build_core(self) -> None:
        self._core: Any = _Expansion(
            self._settled,
            self._loss(),
            width=self._width,
            outputs=self._outputs,
            dtype=self._dtype,
            **{name: getattr(self, name) for name in ("features", "eta", "lam", "max_size", "seed")},
        )


class _Expansion:
    """The model behind DoublySGD, with the methods of a model of the compiled core."""

    def __init__(
        self,
        kernel: Any,
        loss: Loss,
        *,
        width: int,
        outputs: int,
        dtype: Any,
        features: int,
        eta: float,
        lam: float,
        max_size: int,
        seed: int,
    ) -> None:
        self.kernel, self.loss, self.features, self.eta, self.lam = kernel, loss, features, eta, lam
        self.max_size, self.seed, self.width, self.outputs, self.dtype = max_size, seed, width, outputs, dtype
        self.count = self.rounds = 0
        self._frequencies = np.empty((width, 0), dtype)
        self._weights = np.zeros(
            (0, outputs), dtype
        )  # cosines and sines of a frequency side by side; longer than in use

    @property
    def nbytes(self) -> int:
        """Bytes of the weights and of the frequencies kept."""
        return self._weights.nbytes + self._frequencies.nbytes

    def _reserve(self, count: int) -> None:
        """Make the arrays long enough for so many stored rounds."""
        have = self._frequencies.shape[1] // self.features
        if count <= have:
            return
        size = min(max(16, 1 << (count - 1).bit_length()), self.max_size)
        made = hashed_frequencies(
            self.kernel, self.width, have * self.features, size * self.features, self.seed
        )
        self._frequencies = np.ascontiguousarray(np.hstack([self._frequencies, made.astype(self.dtype)]))
        longer = np.zeros((2 * size * self.features, self.outputs), self.dtype)
        longer[: len(self._weights)] = self._weights
        self._weights = longer

    def _map(self, x: Array, first: int, stop: int) -> Array:
        """The features of a dense row of stored rounds ``first`` to ``stop - 1``."""
        part = slice(first * self.features, stop * self.features)
        # column sums in the order of the features: the same bits whatever the number of columns
        angles = np.zeros(part.stop - part.start, self.dtype)
        for feature in np.flatnonzero(x):
            angles += x[feature] * self._frequencies[feature, part]
        made = np.empty(2 * len(angles), self.dtype)
        made[0::2], made[1::2] = np.cos(angles), np.sin(angles)
        made /= np.sqrt(self.dtype.type(self.features))
        return made

    def _score(self, x: Array) -> Array:
        used = 2 * self.count * self.features
        score: Array = self._map(x, 0, self.count) @ self._weights[:used]
        return score

    def score(self, rows: Any) -> Array:
        """Scores of the rows."""
        self._check_width(rows)
        with one_thread():
            return np.array([self._score(x) for x in rows.array()], np.float64).reshape(rows.n, self.outputs)

    def run(
        self, rows: Any, start: int, targets: Array, weights: Array | None, scores: Array
    ) -> tuple[int, Any]:
        """Predict then learn rows; the row to go on with, and why it stopped."""
        self._check_width(rows)
        dense = rows.array()
        with one_thread(), np.errstate(all="ignore"):
            for i in range(start, rows.n):
                score = self._score(dense[i])
                scores[i] = score
                if not np.isfinite(score).all():
                    return i, core.Stop.not_finite
                weight = 1.0 if weights is None else float(weights[i])
                stop = core.Stop.done if weight == 0 else self._learn(dense[i], score, targets[i], weight)
                if stop != core.Stop.done:
                    return i, stop
        return rows.n, core.Stop.done

    def _check_width(self, rows: Any) -> None:
        if rows.width != self.width:
            raise ValueError(f"rows have {rows.width} columns, the model {self.width}")

    def _learn(self, x: Array, score: Array, target: float, weight: float) -> Any:
        y = (
            np.full(1, target)
            if self.outputs == 1
            else np.where(np.arange(self.outputs) == target, 1.0, -1.0)
        )
        slope = weight * self.loss.slope(np.asarray(score, np.float64), y)
        if slope.any() and self.count >= self.max_size:
            return core.Stop.full
        step = self.eta / (1 + self.eta * self.lam * (self.rounds + 1))
        if slope.any():
            self._reserve(self.count + 1)
            made = -step * np.outer(self._map(x, self.count, self.count + 1), slope)
            if not np.isfinite(made.astype(self.dtype)).all():
                return core.Stop.not_finite
        used = 2 * self.count * self.features
        self._weights[:used] *= self.dtype.type(1 - step * self.lam)
        if slope.any():
            self._weights[used : used + 2 * self.features] = made
            self.count += 1
        self.rounds += 1
        return core.Stop.done

    def clone(self) -> _Expansion:
        """A copy that shares nothing that changes."""
        twin = object.__new__(_Expansion)
        twin.__dict__.update(self.__dict__)
        twin._weights = self._weights.copy()
        return twin

    def __deepcopy__(self, copies: dict[int, Any]) -> _Expansion:
        return self.clone()

    def state(self) -> State:
        """The weights in use, and the number of rounds."""
        used = 2 * self.count * self.features
        return {"weights": self._weights[:used].copy(), "rounds": np.array([self.rounds], np.int64)}

    def restore(self, arrays: State) -> None:
        """Fill an untrained model."""
        weights, rounds = arrays["weights"], arrays["rounds"]
        count, rest = divmod(len(weights), 2 * self.features)
        if arrays.keys() != {"weights", "rounds"} or rest or count > self.max_size:
            raise state_error()
        if weights.shape[1:] != (self.outputs,) or rounds.shape != (1,) or rounds[0] < 0:
            raise state_error()
        self._reserve(count)
        self._weights[:] = 0
        self._weights[: len(weights)] = weights
        self.count, self.rounds = count, int(rounds[0])
