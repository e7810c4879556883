"""NewtonMixture: the default learner. Second-order experts with a lasting and a recent memory, and the best of them.

docs/default.md describes it and says where each of its paragraphs is in the code. The rounds are in ``src/core/mixture.hpp``, the
names of the state's arrays in ``src/core/mixture_state.hpp``; here are the sizes, and what a rebuild chooses.

Features. A feature x becomes z = soft_clip((x - centre) scale), soft_clip(z) = z / (1 + abs(z) / 4), centre and scale from the
rows kept. An expert sees ``[L^-1 k(landmarks, z), 1, z]`` with a Gaussian kernel k and ``K = L L^T`` over the landmarks: the
Nystrom map whitened, and a linear part.

Experts. (1) *lasting*: logistic online Newton steps with all the past; (2) *least_squares*: the same rows by recursive least
squares; (3) *recent*: logistic Newton steps that forget towards the prior, 1 round in 1000, with half of the landmarks;
(4) *linear*: logistic Newton on ``[1, z]``, which forgets 3 rounds in 100,000 of a stream and nothing of a set; (5) *window*:
kernel ridge regression on the last 50 rows, scaled as the recent memory scales; (6) *labels*: how often a label follows itself,
apart for rows that are a copy of the one before, and the classes' recent frequencies; (7) *trees*: small regression trees, each
fitted to what the others leave at the last rows (see ``src/core/trees.hpp``). In regression all use the squared loss, (1) to
(3) differ in their prior, and (6) is the target before; after an outlier the forecast may be the outlier itself (see
``src/core/labels.hpp``), and outliers are learnt as if they were nearer, by (3) and the local memory less so (see
``src/core/outliers.hpp``). (1), (2) and (4) share one memory (scaling, landmarks, bandwidth), the *lasting* one; (3) and (5)
the *recent* one.

Wide rows, ``D > 3 budget``: no covariance over the inputs. (4) takes logistic steps of its own size for each feature, and
(1) to (3) see ``[L^-1 k(landmarks, z), 1, f]`` with f its scores before the round, bounded by 8.

Aggregation. Fixed share over the experts and two stacked forecasts (see ``src/core/aggregate.hpp``). Scores of (2), (5) and of
the local fits count t / (t + 20) after t rows, times a confidence that is learnt where the candidate stands alone.

Local memory. Many rows, of which the nearest are found through cells, and kernel ridge regression on those (see
``src/core/local.hpp``): of the targets, and of the residuals of the aggregation's forecast. A second aggregation of the same kind
joins the three. A feature counts in the distance by its relevance, how much the least_squares expert's score changes with it, to
the power that would have forecast the last rows kept best.
Relevances are estimated at each rebuild of the lasting memory, when the local memory begins again from the rows kept, and when
16, 64 and 256 budget rows have been learnt since. Wide rows have no local memory.

Rebuilding, from a ring of the last 4 budget rows. Both memories are due when 2, 4, 8, ... rows have been learnt, up to the
first such number from budget / 4 on, then budget and 4 budget. Later the recent
memory is due when its landmarks no longer cover the data (its mean abs(phi)^2 fell by a quarter), and the lasting
one when the recent one has beaten it for good (a CUSUM of the difference of their log losses), from the rows since the CUSUM
was zero, and again at the same numbers of rows. A rebuild chooses centre, scale, evenly spaced landmarks, and the bandwidth
with the least progressive squared error of ridge regression on the last 256 rows kept, plus 3 % for each factor of four from
the median distance (from 16 rows on; the first quarter is not counted). The target of a regression is scaled anew
when both memories are rebuilt at once. Before the first rebuild every feature is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.linalg.lapack import dtrtri
from scipy.spatial.distance import cdist
from sklearn.base import clone

from kernelstream._core import core
from kernelstream.blas import one_thread
from kernelstream.errors import MergeError
from kernelstream.explanations import Event, EventLog, Neighbours
from kernelstream.learners.base import Mix, State, state_error
from kernelstream.learners.core_learner import CoreLearner
from kernelstream.learners.mixture_delta import (
    added,
    delta_between,
    newest_last,
    with_records,
    without_records,
)
from kernelstream.learners.mixture_formats import upgraded
from kernelstream.learners.mixture_rows import (
    evenly,
    every_second_first,
    factored,
    gaussian,
    pairs,
    products,
    raised,
    scaled,
    scaling,
    soft_clip,
    squares,
    without_outliers,
)
from kernelstream.rows import WIDEST_DENSE, as_rows, rows_of_state
from kernelstream.validate import check_integer

__all__ = ["NewtonMixture"]

Array = NDArray[Any]

#: Rows of the window.
WINDOW = 50
#: How many numbers the rows kept, or a memory's landmarks, may take: of wider rows there are fewer, but no fewer than these.
MAX_ENTRIES, MIN_LANDMARKS = 2**22, 8
#: Bandwidths tried, as multiples of 1 / (median squared distance).
SCALES = 4.0 ** np.arange(-2, 4)
#: By how much a bandwidth must be better for each factor of four that it is away from the median.
FAR = 0.03
#: Added to the diagonal of the landmarks' kernel matrix before it is factored.
JITTER = 1e-3
#: Bandwidths are tried on the last so many rows kept, if there are at least so many.
TRIAL, MIN_TRIAL = 256, 16
#: Prior variances of the lasting expert, of classes and in regression (``Mixture::set_priors``): of a kernel feature, and of the
#: linear part, shared by the features that vary.
KERNEL_PRIOR, LINEAR_PRIOR = (10.0, 30.0), (30.0, 90.0)

#: Wide rows kept with fewer than one number in so many that is not zero are taken as sparse ones.
FEW = 8
#: What the local memory and the trees keep of rows, and how many they have had.
ROWS_OF_RINGS = (
    *("local_rows", "local_targets", "local_weights", "local_residuals", "local_cells", "local_landmark_of"),
    *("trees_rows", "trees_targets", "trees_weights", "trees_scores", "trees_splits", "trees_values"),
)
COUNTS_OF_RINGS = ("local_next", "trees_next", "trees_grown")
#: Fewer rows than these are no local memory.
MIN_LOCAL = 32
#: Of how many rows kept the slopes are taken, and what is the least slope, the largest being 1.
SLOPES, LEAST_SLOPE = 200, 0.02
#: Powers of the slopes that are tried as relevances, on the last so many rows, if more than so many are kept; else the first
#: power is taken. Targets of a regression further than so many deviations count as these: wild ones tell nothing of distances.
RELEVANCE_POWERS, POWER_ROWS, MIN_POWERS, POWER_TARGETS = (1.5, 0.75, 0.0), 128, 512, 10.0
#: Means over so many neighbours are compared, beside 0 with this weight.
POWER_NEIGHBOURS, POWER_NOTHING = 24, 0.5


class Trial(NamedTuple):
    """Rows on which bandwidths are tried: squared distances to the landmarks and of their pairs, products, features that vary...

    Where the landmarks are the rows themselves (``squares`` is None) their Nystrom map is their kernel.
    """

    squares: Array | None
    apart: Array
    products: Array
    varying: float
    targets: Array
    weights: Array


class Kept(NamedTuple):
    """Rows kept: those (an array, or a CSR matrix) of some columns, all others being zero; their targets and weights."""

    rows: Any
    columns: Array
    targets: Array
    weights: Array


class NewtonMixture(CoreLearner):
    """The default learner: second-order kernel experts with long and short memories, aggregated. Nothing to tune.

    For features of any scale, dense or sparse, two or more classes with calibrated probabilities, or regression; for streams
    that stay, drift or turn. The cost is that of the experts' covariances: with ``m = budget + D + 1`` features (``budget +
    C + 1`` when ``D > 3 budget``) about ``3 m^2 + 1.5 (m - budget / 2)^2 + 3 budget^2 + 4 budget D`` multiplications and ``8
    (3 m^2 + D^2 + 2 budget^2 + 6 budget D) + 40 budget (D + 12)`` bytes, whatever the length of the stream; rows of more
    than ``2**22 / budget`` features get fewer landmarks. Prefer `NOGD` or `BOGD` where a microsecond a row matters more than
    accuracy.

    Args:
        budget: landmarks of each of the two kernel memories; more of them fit finer structure, at a cost that grows with
            their square.
        memory: bytes of the local memory at most, 0 for none. It grows with the rows learnt; when it is full the oldest
            row leaves.
            Rows of more than ``3 budget`` features have none.

    This joins ideas of four papers and follows none to the letter: landmarks that are kept while they cover the data and
    replaced when they do not (NOLANA, KORS), Nystrom features of bounded rank (SkeGD), second-order steps (KONS), the bandwidth
    chosen from the stream itself (OKS-SIL), with forgetting and fixed share for streams that change (Herbster and Warmuth).

    References:
        Zhang and Liao, "Incremental randomized sketching for online kernel learning", ICML 2019.
        Si, Kumar and Yang, "Nonlinear online learning with adaptive Nystrom approximation", 2018.
        Zhang and Liao, "Hypothesis sketching for online kernel selection in continuous kernel space", IJCAI 2020.
        Calandriello, Lazaric and Valko, "Second-order kernel online convex optimization with adaptive sketching", ICML 2017.
        Herbster and Warmuth, "Tracking the best expert", Machine Learning 32, 1998.
        Van Vaerenbergh, Lazaro-Gredilla and Santamaria, "Kernel recursive least-squares tracker for time-varying regression",
        IEEE Transactions on Neural Networks and Learning Systems 23, 2012: forgetting towards the prior.

    >>> from sklearn.datasets import load_digits
    >>> from kernelstream import KernelClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> before = KernelClassifier(NewtonMixture(budget=100)).predict_then_learn(X, y)
    >>> bool((before != y).mean() < 0.1)
    True
    """

    scales_itself: ClassVar[bool] = True

    pair_share: ClassVar[float] = 0.5
    link: ClassVar[str | None] = "softmax"
    merge_guarantee: ClassVar[str] = (
        "exactly one pass for its least_squares expert; sums of Newton steps, each part around its own weights, for the others"
    )

    budget: int
    memory: int
    _core: Any
    _landmarks: int
    _log: EventLog

    def __init__(self, budget: int = 200, memory: int = 2**26) -> None:
        self.budget, self.memory = budget, memory
        self.check()

    def check(self) -> None:
        """Raise ``ValueError`` if a hyper-parameter is out of range."""
        check_integer("budget", self.budget, low=1)
        check_integer("memory", self.memory, low=0)

    def _sizes(self, width: int) -> tuple[int, int, int]:
        """Landmarks of a memory, rows of the window, rows kept."""
        landmarks = self.budget
        width = max(1, min(width, WIDEST_DENSE))  # wider rows are stored sparse
        while landmarks > MIN_LANDMARKS and landmarks * width > MAX_ENTRIES:
            landmarks //= 2
        return landmarks, min(WINDOW, landmarks), max(landmarks, min(4 * landmarks, MAX_ENTRIES // width))

    def _local_rows(self, width: int, outputs: int) -> int:
        """How many rows the local memory may keep."""
        landmarks = self._sizes(width)[0]
        free = self.memory - landmarks * int(core.Mixture64.local_landmark_bytes(width)) - 8 * width
        rows = free // int(core.Mixture64.local_row_bytes(width, outputs))
        return min(rows, 2**31 - 1) if rows >= MIN_LOCAL and width <= 3 * landmarks else 0

    def needs(self, width: int, outputs: int) -> int:
        """About how many bytes the state takes at the start; the local memory takes up to ``memory`` more, as rows are learnt.

        >>> learner = NewtonMixture(budget=200, memory=0)
        >>> learner.needs(54, 1) / learner.start(54).nbytes  # doctest: +ELLIPSIS
        0.9...
        """
        landmarks, window, kept = self._sizes(width)
        if (
            width > WIDEST_DENSE
        ):  # nothing is by feature before there are rows; the rest stands in whole lines of 8
            slots, inputs = -(-landmarks // 8) * 8, -(-(1 + outputs) // 8) * 8
            features, points = slots + inputs, 2 * landmarks + window
            numbers = 3 * features * (features + 18 + outputs) + 2 * slots * landmarks + 2 * window**2
            return 8 * numbers + 80 * points + 32 * kept
        wide = width > 3 * landmarks
        features = landmarks + 1 + (outputs if wide else width)
        linear = (1 + width) * (1 + outputs) if wide else (1 + width) ** 2
        numbers = 3 * features * (features + 18 + outputs) + linear + 2 * landmarks**2
        stored = (6 + 2 * landmarks + window + kept) * width
        trees = (
            0
            if wide
            else min(40 * landmarks, 2**20 // max(1, width)) * (width + 4 * outputs + 8) + 1016 * width
        )
        return 8 * (numbers + stored + 2 * window**2) + trees

    def _build_core(self, sizes: tuple[int, int, int] | None = None) -> None:
        self._landmarks, window, kept = sizes or self._sizes(self._width)
        self._core = self._core_class("Mixture")(
            width=self._width,
            outputs=self._outputs,
            regression=self._regression,
            budget=self._landmarks,
            window=window,
            kept=kept,
            local=self._local_rows(self._width, self._outputs),
        )

    def run(self, rows: Any, targets: Array, sample_weight: Array | None = None) -> Array:
        """Predict then learn, row by row; the scores made before each row was learnt. After `learn_set` a stream begins."""
        if not self._core.ordered and not self._core.held:  # held, it goes on as it is
            self._core.learn_stream()
            self._rebuild_due()
        return super().run(rows, targets, sample_weight)

    def learn_set(self, rows: Any, targets: Array, sample_weight: Array | None = None) -> Array:
        """Learn rows whose order means nothing: no expert that forgets, or looks at what came last, takes part."""
        self._core.learn_set()
        return super().learn_set(rows, targets, sample_weight)

    def _run_core(self, rows: Any, targets: Array, weights: Array | None, scores: Array, first: int) -> None:
        at = 0
        while at < rows.n:
            at = self._finished(self._core.run(rows, at, targets, weights, scores))
            self._rebuild_due()

    # ---- what it can tell ----

    @property
    def nbytes(self) -> int:
        """Bytes of model state."""
        return int(self._core.nbytes) + self._log.nbytes

    @property
    def events(self) -> list[Event]:
        """The last times that a memory was rebuilt because of a change, the oldest first."""
        return self._log.events

    @property
    def relevances(self) -> Array | None:
        """How much each feature counts in the local memory's distances, at most 1; None without a local memory."""
        return self._core.array("local_relevance") if self._core.local else None

    def neighbours(self, rows: Any, k: int) -> Neighbours | None:
        """The k nearest of the neighbours that decide about each row; None without a local memory."""
        if not self._core.local:
            return None
        k = check_integer("k", k, low=1, high=self._core.NEIGHBOURS)
        return Neighbours(*self._core.neighbours(as_rows(rows, self._dtype), k))

    def score_with_scales(self, rows: Any) -> tuple[Array, Array | None]:
        """Scores, and in a regression how far each target may be, up to a factor."""
        if not self._regression:
            return super().score_with_scales(rows)
        scores, scales = self._core.score_with_scales(as_rows(rows, self._dtype))
        if not np.isfinite(scores).all():
            raise self.overflow(int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0]))
        return scores, scales

    def take_scales(self) -> Array | None:
        """The scales, as above, of the rows of the last run, before each was learnt; they are given once."""
        scales: Array = self._core.take_scales()
        return scales if self._regression else None

    def _copied(self, value: Any, copies: dict[int, Any]) -> Any:
        if type(value) is not self._core_class("Mixture"):
            return super()._copied(value, copies)
        return value, value.snapshot()  # a copy of the whole core would be mostly its local memory

    def rollback(self, snapshot: dict[str, Any]) -> None:
        """Undo everything since the snapshot was taken."""
        if isinstance(snapshot.get("_core"), tuple):
            core, before = snapshot["_core"]
            core.rollback(before)
            snapshot["_core"] = core
        super().rollback(snapshot)

    # ---- merging ----

    def hold(self) -> None:
        """Rebuild no memory from now on."""
        self._core.held = True

    def _light_state(self) -> State:
        """The state, but the local memory and the trees, which are most of it, have no rows."""
        arrays: State = self._core.state(rings=False)
        return {"shape": self._shape()} | arrays | self._log.state()

    def _flushed(self, state: State) -> State:
        """The state with no round pending; the local memory and the trees are left out, as if empty."""
        empty = {name: state[name][:0] for name in ROWS_OF_RINGS if name in state}
        empty |= {name: np.zeros_like(state[name]) for name in COUNTS_OF_RINGS if name in state}
        copy: Self = clone(self).restore(state | empty)
        copy._core.flush()
        return copy.state()

    def delta_since(self, base: State, rows: int, task: str) -> State:
        """What has been learnt with the memories of the base; see ``mixture_delta.py``."""
        state = self.state()
        parts = tuple(
            f"{memory}_{part}"
            for memory in self._core.MEMORIES
            for part in ("landmarks", "gamma", "centre", "scale")
        )
        for name in (name for name in state if name.startswith(parts)):
            if not np.array_equal(state[name], base[name]):
                raise MergeError(
                    f"{name!r} has changed since the base: go on from `kernelstream.branch(base)`, which rebuilds nothing"
                )
        rings = (*ROWS_OF_RINGS, *COUNTS_OF_RINGS)

        def flushed(one: State) -> State:
            return with_records(self._flushed(one)) | {name: one[name] for name in rings if name in one}

        with one_thread():
            return delta_between(flushed(base), flushed(state), rows, task, self._rings())

    def _rings(self) -> dict[str, int]:
        """How many rows the rings may have, where there are such."""
        kept = len(self._core.kept_targets)
        rings = {"kept": kept, "local": int(self._core.local), "trees": int(self._core.trees)}
        rings |= {"errors": len(self._core.array("first_errors"))} if self._regression else {}
        return {ring: rows for ring, rows in rings.items() if rows}

    def add_delta(self, delta: State) -> None:
        """What all parts learnt; then what is due by now is rebuilt from the rows kept."""
        base, before = self._core, self._core.lasting_age
        with one_thread():
            state = without_records(added(with_records(self._flushed(self._light_state())), delta))
            self.restore(state)
        with ThreadPoolExecutor(1) as other:  # trees and the local memory do not need each other
            taught = other.submit(base.teach_trees, *newest_last(delta, "trees")) if base.trees else None
            self._core.see_last()
            if base.local:
                self._core.swap_local(base)
                self._core.absorb(*newest_last(delta, "local"))
            if taught is not None:
                taught.result()
                self._core.swap_trees(base)
        if self._core.lasting_age >= int(state["next_rebuild"][0]):
            if self._regression:
                self._standardise()
            self._rebuild(list(self._core.MEMORIES) if self._core.ordered else ["lasting"])
        elif self._core.local and self._core.passed_relevance(before):
            with one_thread():
                self._estimate_relevance()

    # ---- rebuilding a memory ----

    def _rebuild_due(self) -> None:
        due, memories = self._core.due, self._core.MEMORIES
        if self._regression and due and len(due) == (len(memories) if self._core.ordered else 1):
            self._standardise()
        for memory in due:
            reason, figure, rounds = self._core.reason(memory)
            if reason:  # not the first rows
                self._log.add(self._core.learnt, memory, reason, figure, rounds)
        if due:
            self._rebuild(due)
        if self._core.relevance_due:
            with one_thread():
                self._estimate_relevance()

    def _standardise(self) -> None:
        """Set the scale of the targets from the rows kept; both memories are about to be rebuilt."""
        kept = self._kept(self._core.lasting_age)
        with one_thread():
            targets = without_outliers(kept.rows, kept.targets)
        self._core.replace_kept_targets(targets)
        exponent = int(np.frexp(np.abs(targets).max(initial=0.0))[1])
        unit = np.ldexp(targets, -exponent)  # no square overflows; powers of two cost no digit
        centre, spread = float(np.ldexp(np.mean(unit), exponent)), float(np.ldexp(np.std(unit), exponent))
        if not spread > 1e-12 * abs(centre):
            spread = max(1.0, abs(centre))
        self._core.standardise(centre, spread)

    def _rebuild(self, memories: list[str]) -> None:
        """Choose scaling, landmarks and bandwidth from the rows kept, and learn those again."""
        with one_thread():
            ages = {m: self._core.lasting_age if m == "lasting" else self._core.learnt for m in memories}
            for n in dict.fromkeys(ages.values()):  # memories of the same rows are the same
                self._rebuild_from([m for m in memories if ages[m] == n], self._kept(n))

    def _kept(self, n: int) -> Kept:
        """The last n rows kept; of wide rows that are mostly zero, only the features that are not zero in all of them."""
        arrays, targets, weights = self._core.kept(n)
        rows = rows_of_state("kept_rows", arrays, self._width)
        dense = not scipy.sparse.issparse(rows)
        if dense and (not self._core.wide or FEW * np.count_nonzero(rows) > rows.size):
            return Kept(rows, np.arange(self._width, dtype=np.int32), targets, weights)
        rows = scipy.sparse.csr_array(rows) if dense else rows
        columns, at = np.unique(rows.indices, return_inverse=True)
        rows = scipy.sparse.csr_array((rows.data, at, rows.indptr), shape=(len(targets), len(columns)))
        return Kept(rows, columns.astype(np.int32), targets, weights)

    def _whole(self, rows: Any, columns: Array) -> Any:
        """Rows of some columns as the core's rows of all columns."""
        if scipy.sparse.issparse(rows):
            shape = (rows.shape[0], self._width)
            rows = scipy.sparse.csr_array((rows.data, columns[rows.indices], rows.indptr), shape=shape)
        return as_rows(rows, np.float64)

    def _rebuild_from(self, memories: list[str], kept: Kept) -> None:
        targets, weights = kept.targets, kept.weights
        centre, scale, varying = scaling(kept.rows)
        z = scaled(kept.rows, centre, scale)
        n = len(targets)
        landmarks = z[evenly(n, self._landmarks)]
        apart = pairs(landmarks)
        differ = apart[apart > 0]
        unit = 1 / np.median(differ) if len(differ) else 1.0
        gammas = unit * SCALES
        if n < self._core.learnt:  # past the first rows: the bandwidth in use and its neighbours
            used = int(np.argmin(np.abs(np.log(gammas / self._core.gamma(memories[0])))))
            gammas = gammas[max(0, used - 1) : used + 2]
        gamma = float(unit)
        if n >= MIN_TRIAL:
            late = z[-TRIAL:]
            inputs = products(late, soft_clip(-centre * scale))
            all_landmarks = n <= min(TRIAL, landmarks.shape[0])
            rows = Trial(
                None if all_landmarks else squares(late, landmarks),
                apart,
                inputs,
                varying,
                targets[-TRIAL:],
                weights[-TRIAL:],
            )
            losses = self._trial(rows, gammas)
            far = np.abs(np.log(gammas / unit)) / np.log(4)
            gamma = float(gammas[int(np.argmin(losses * (1 + FAR * far)))])
        kernel = gaussian(gamma, apart)
        order = every_second_first(landmarks.shape[0])  # the recent expert sees the first half of them
        landmarks, kernel = landmarks[order], kernel[:, order]
        factor = factored(raised(kernel[order], JITTER))
        whitening = np.ascontiguousarray(dtrtri(factor, lower=1, overwrite_c=1)[0])  # its lower half
        points, again = self._whole(landmarks, kept.columns), self._whole(kept.rows, kept.columns)
        for memory in memories:
            self._core.build(memory, kept.columns, centre, scale, varying, points, gamma, whitening)
            self._core.replay(memory, again, targets, weights)
        if "lasting" in memories and self._core.local:
            self._core.refill(again, targets, weights, self._relevance(z, kept, landmarks, gamma, kernel))

    def _trial(self, rows: Trial, gammas: Array) -> Array:
        """The progressive squared error of ridge regression on all rows before, the first quarter not counted, by bandwidth.

        The regression has the Nystrom map, the constant and the linear part of the lasting expert with their priors: with all
        rows as landmarks shorter bandwidths would be chosen than the map can follow. The error of row i given those before is
        ``L_ii (L^-1 y)_i`` for the Cholesky factor L of their covariance.
        """
        y, weights = self._columns(rows.targets), rows.weights * self._core.weight_unit
        prior, linear_prior = KERNEL_PRIOR[self._regression], LINEAR_PRIOR[self._regression]
        rest = raised(linear_prior / rows.varying * rows.products + 1, 1 / weights)
        first, losses = len(y) // 4, []
        among = gaussian(gammas[0], rows.apart)
        kernel = None if rows.squares is None else np.exp(-gammas[0] * rows.squares).T
        for place in range(len(gammas)):
            if place:  # the next bandwidth is four times as large
                for k in (among,) if kernel is None else (among, kernel):
                    k *= k
                    k *= k
            if kernel is None:
                covariance = prior * among.T + rest
            else:
                whitening = factored(raised(among, JITTER))
                features = dtrsm(1.0, whitening, kernel, lower=1)
                covariance = dsyrk(prior, features, beta=1.0, c=rest, trans=1, lower=1)  # its lower half
            factor = factored(covariance)
            errors = dtrsm(1.0, factor, y, lower=1) * np.diag(factor)[:, None]
            losses.append(float(weights[first:] @ np.sum(errors[first:] ** 2, axis=1)))
        return np.array(losses)

    def _columns(self, targets: Array) -> Array:
        """Targets as those that are fitted: standardised, or -1 and +1 of each output."""
        if self._regression:
            y: Array = (targets - self._core.target_centre)[:, None] / self._core.target_spread
            return y
        return (
            targets[:, None]
            if self._outputs == 1
            else np.where(targets[:, None] == np.arange(self._outputs), 1.0, -1.0)
        )

    def _estimate_relevance(self) -> None:
        """The relevance of each feature once more, by what has been learnt since."""
        get = self._core.array
        kept = self._kept(self._core.lasting_age)
        z = core.scaled_rows(kept.rows, get("lasting_centre"), get("lasting_scale"))
        self._core.set_relevance(
            self._relevance(z, kept, get("lasting_landmarks"), self._core.gamma("lasting"))
        )

    def _relevance(
        self, rows: Array, kept: Kept, landmarks: Array, gamma: float, kernel: Array | None = None
    ) -> Array:
        """How much the least_squares score changes with each feature: a power of its root mean square slope, at most 1.

        ``rows``: those kept, scaled. ``kernel``: of the rows at which slopes are taken with the landmarks, if both are spaced
        evenly among the rows kept.
        """
        if len(rows) < 16:
            return np.ones(self._width)
        z = rows[evenly(len(rows), SLOPES)]
        fitted, n = self._core.array("least_squares_weights"), len(landmarks)
        of_kernels = self._core.array("lasting_whitening")[:n, :n].T @ fitted[:n]
        known = kernel if kernel is not None and len(z) == n else None
        kernels = np.exp(-gamma * cdist(z, landmarks, "sqeuclidean")) if known is None else known
        square, pull = np.zeros(self._width), np.empty_like(kernels)
        for output in range(self._outputs):
            np.multiply(kernels, of_kernels[:, output], out=pull)
            curved = pull.sum(axis=1)[:, None] * z - pull @ landmarks
            square += np.sum((fitted[self._landmarks + 1 :, output] - 2 * gamma * curved) ** 2, axis=0)
        largest = square.max(initial=0.0)
        if not largest > 0:
            return np.ones(self._width)
        slope = LEAST_SLOPE + (1 - LEAST_SLOPE) * np.sqrt(square / largest)
        relevance: Array = slope ** self._power(rows, kept, slope)
        return relevance

    def _power(self, z: Array, kept: Kept, slope: Array) -> float:
        """The power of the slopes with which means over the other rows near by forecast the last rows kept best."""
        if len(z) <= MIN_POWERS:
            return RELEVANCE_POWERS[0]
        return RELEVANCE_POWERS[int(np.argmin(self._power_losses(z, kept, slope)))]

    def _power_losses(self, z: Array, kept: Kept, slope: Array) -> list[float]:
        """The squared errors of those means, by power; no row is among its own neighbours."""
        n, nearest = len(z), POWER_NEIGHBOURS
        y, late = self._columns(kept.targets), np.arange(n - POWER_ROWS, n)
        y = np.clip(y, -POWER_TARGETS, POWER_TARGETS)
        losses = []
        for power in RELEVANCE_POWERS:
            points = z * slope**power
            lengths = np.sum(points**2, axis=1)
            apart = lengths - 2 * points[late] @ points.T  # but for the length of the row itself
            apart[np.arange(POWER_ROWS), late] = np.inf
            near = np.argpartition(apart, nearest - 1, axis=1)[:, :nearest]
            square = np.take_along_axis(apart, near, axis=1) + lengths[late, None]
            distance = np.sqrt(np.maximum(square, 0.0))
            median = np.median(distance, axis=1, keepdims=True)
            r = np.sqrt(3.0) / 2 * distance / np.where(median > 0, median, 1.0)
            k = (1 + r) * np.exp(-r)
            forecast = np.einsum("ij,ijc->ic", k, y[near]) / (k.sum(axis=1, keepdims=True) + POWER_NOTHING)
            losses.append(float(kept.weights[late] @ np.sum((y[late] - forecast) ** 2, axis=1)))
        return losses

    # ---- state ----

    def _build(self) -> None:
        super()._build()
        self._log = EventLog(self._core.MEMORIES, self._core.REASONS)

    def _core_arrays(self) -> State:
        arrays: State = self._core.state()
        return arrays | self._log.state()

    def _load_core(self, arrays: State) -> None:
        if self._width > WIDEST_DENSE:  # an older model of so wide rows may have stored fewer of them
            names = ("lasting_whitening", "window_targets", "kept_targets")
            found = [len(arrays[name]) for name in names if name in arrays]
            most = self._sizes(self._width)
            if len(found) == len(most) and all(0 <= n <= m for n, m in zip(found, most, strict=True)):
                self._build_core((max(1, found[0]), found[1], max(1, found[2])))
        log = {name: arrays[name] for name in self._log.state() if name in arrays}
        if len(log) != 2 or not self._log.fits(log):
            raise state_error()
        self._core.restore({name: array for name, array in arrays.items() if name not in log})
        self._log.restore(log)

    def upgrade_state(self, state: State) -> State:
        """The state of an older version as one of today."""
        return upgraded(state, self._empty)

    def _empty(self, state: State) -> State:
        """The state of such a model that has learnt nothing."""
        width, outputs, regression, _ = (int(v) for v in state["shape"])
        started = NewtonMixture(self.budget, self.memory).start(width, outputs, regression=bool(regression))
        return started.state()

    def widen(self, width: int) -> None:
        """Accept more features; those seen before keep their columns, the new ones were always zero."""
        before = self._core
        self._width = width
        self._build_core()
        if not self._core.widen_from(before) and before.learnt:
            self._restart()

    def mix_outputs(self, mix: Mix, recode: Callable[[Array], Array]) -> None:
        """Replace the outputs by others; ``recode`` turns old targets into new ones."""
        before, outputs = self._core, len(mix.sources)
        kept, local = recode(before.kept_targets), recode(before.local_targets.astype(np.float64))
        rows = self._local_rows(self._width, outputs)
        self._core = before.mixed(
            mix.sources, mix.factors, kept, np.ascontiguousarray(local, np.float32), rows
        )
        self._outputs = outputs
        if self._core.wide and self._core.learnt:
            self._restart()

    def _restart(self) -> None:
        """Both memories anew from the rows kept: the experts' features are others now."""
        self._rebuild(list(self._core.MEMORIES) if self._core.ordered else ["lasting"])
