"""Predict, then learn: how well a model does on a stream while it learns it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from kernelstream.estimators import KernelClassifier
from kernelstream.labels import codes_of_scores, labels_of_codes, link_of, probabilities
from kernelstream.metrics import Evaluation
from kernelstream.transaction import Transaction

CURVE_POINTS = 1000
"""A curve holds at most this many points, and at least half as many once the stream is that long."""


class PredictsThenLearns(Protocol):
    """What `progressive` asks of a model."""

    def predict_then_learn(self, X: Any, y: Any) -> Any:
        """Learn the rows in turn; return what was predicted for each before it was learnt."""


class Forecasts(NamedTuple):
    """What a model predicted for rows before it learnt them."""

    predicted: NDArray[Any]
    counted: list[tuple[Any, ...]]  # what `Evaluation.update` counts, in parts
    seconds: float


@dataclass
class Result:
    """The tally of a stream. Its loss is 1 for a mistake in classification, the squared error in regression.

    Attributes:
        task: "classification" or "regression".
        warmup: rounds at the start that the `..._without_warmup` figures leave out.
        rounds: rounds so far, warm-up included.
        loss: sum of the losses of all rounds.
        loss_in_warmup: sum of the losses of the first `warmup` rounds.
        seconds: time spent in the model; reading and counting are left out.
        nbytes: size of the model's state (its `nbytes_`), or None if it does not say.
        spacing: rounds between two points of the curve.
        cumulated: loss after every `spacing` rounds.
        evaluation: metrics beside those of baselines, if they were asked for.
    """

    task: Literal["classification", "regression"]
    warmup: int = 0
    rounds: int = 0
    loss: float = 0.0
    loss_in_warmup: float = 0.0
    seconds: float = 0.0
    nbytes: int | None = None
    spacing: int = 1
    cumulated: list[float] = field(default_factory=list, repr=False)
    evaluation: Evaluation | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        model: object,
        warmup: int = 0,
        *,
        window: int | None = None,
        curves: Sequence[str] = (),
        baselines: bool = True,
    ) -> Self:
        """An empty tally for a model's task; with a window, metrics are counted too: see `Evaluation`."""
        task: Literal["classification", "regression"] = (
            "regression" if _is_regressor(model) else "classification"
        )
        evaluation = None if window is None else Evaluation(task, window, curves, baselines=baselines)
        return cls(task, warmup, evaluation=evaluation)

    def state(self) -> dict[str, Any]:
        """All that was counted, for JSON."""
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "evaluation"}
        return kept | {"evaluation": None if self.evaluation is None else self.evaluation.state()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The tally that gave this state."""
        evaluation = state.get("evaluation")
        return cls(**state | {"evaluation": evaluation and Evaluation.from_state(evaluation)})

    def step(self, model: PredictsThenLearns, X: Any, y: Any) -> NDArray[Any]:
        """Let the model predict and learn the next rows and count; what it predicted.

        To stop and continue later, keep ``result.state()`` (JSON can hold it) for ``Result.from_state``.
        """
        made = forecast_then_learn(model, X, y, metrics=self.evaluation is not None)
        self.count(y, made)
        nbytes = getattr(model, "nbytes_", None)
        self.nbytes = None if nbytes is None else int(nbytes)
        return made.predicted

    def count(self, y: Any, made: Forecasts) -> None:
        """Count forecasts of the next rows, wherever they were made."""
        self.seconds += made.seconds
        self._add(_losses(made.predicted, np.asarray(y), self))
        if self.evaluation is not None:
            for part in made.counted:
                self.evaluation.update(*part)

    @property
    def mistakes(self) -> int:
        """Rounds in which the predicted class was wrong; every round counts."""
        return int(self._loss_of("classification", self.loss))

    @property
    def mistakes_without_warmup(self) -> int:
        """Mistakes after the first `warmup` rounds."""
        return int(self._loss_of("classification", self.loss - self.loss_in_warmup))

    @property
    def error_rate(self) -> float:
        """Mistakes divided by rounds."""
        return self._loss_of("classification", self.loss) / max(self.rounds, 1)

    @property
    def error_rate_without_warmup(self) -> float:
        """Mistakes after the warm-up divided by *all* rounds, the way the papers' figures are counted."""
        return self._loss_of("classification", self.loss - self.loss_in_warmup) / max(self.rounds, 1)

    @property
    def squared_error(self) -> float:
        """Sum of the squared errors of all rounds."""
        return self._loss_of("regression", self.loss)

    @property
    def rmse(self) -> float:
        """Root of the mean squared error over all rounds."""
        return float(np.sqrt(self._loss_of("regression", self.loss) / max(self.rounds, 1)))

    @property
    def error(self) -> float:
        """`error_rate` or `rmse`, after the task."""
        return self.rmse if self.task == "regression" else self.error_rate

    @property
    def rows_per_second(self) -> float:
        """Rounds per second spent in the model."""
        return self.rounds / max(self.seconds, 1e-9)

    @property
    def curve(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Rounds, evenly spaced, and the `error` after each of them."""
        rounds = self.spacing * np.arange(1, len(self.cumulated) + 1)
        mean = np.array(self.cumulated) / rounds
        return rounds, np.sqrt(mean) if self.task == "regression" else mean

    def recent_error(self, share: float = 0.1) -> float:
        """The error over the last `share` of the rounds, to the nearest earlier point of the curve."""
        if not 0.0 < share <= 1.0:
            raise ValueError(f"share must lie in (0, 1], not {share}")
        points = int((1.0 - share) * self.rounds / self.spacing + 1e-9)
        before = self.cumulated[points - 1] if points else 0.0
        mean = (self.loss - before) / max(self.rounds - points * self.spacing, 1)
        return float(np.sqrt(mean)) if self.task == "regression" else mean

    def _loss_of(self, task: str, loss: float) -> float:
        if self.task != task:
            raise AttributeError(
                f"this is the result of a {self.task}; mistakes are counted in classification, "
                "squared errors in regression"
            )
        return loss

    def _add(self, losses: NDArray[np.float64]) -> None:
        """Count the losses of the next rounds. What is kept does not depend on the chunks they come in."""
        n = len(losses)
        if n == 0:
            return
        losses[0] += self.loss
        sums = np.add.accumulate(losses, out=losses)  # the loss after each of these rounds
        if self.rounds < self.warmup:
            self.loss_in_warmup = float(sums[min(self.warmup - self.rounds, n) - 1])
        first = self.spacing * (len(self.cumulated) + 1) - self.rounds - 1
        self.cumulated.extend(sums[first :: self.spacing].tolist())
        while len(self.cumulated) > CURVE_POINTS:
            self.cumulated = self.cumulated[1::2]
            self.spacing *= 2
        self.loss = float(sums[-1])
        self.rounds += n


def progressive(
    model: PredictsThenLearns,
    X_or_chunks: Any,
    y: Any = None,
    *,
    chunk_size: int = 1000,
    warmup: int = 0,
    window: int | None = None,
    callback: Callable[[Result], object] | None = None,
) -> Result:
    """Run a model over a stream, predicting each row before learning it, and count.

    A prediction that is not finite is an error, never a round without a mistake. The one exception: a
    classifier that has not seen a label yet predicts "missing" (NaN when labels are floats) for the very
    first row, which is a mistake.

    Args:
        model: a `KernelClassifier`, a `KernelRegressor`, or anything with their `predict_then_learn(X, y)`.
        X_or_chunks: the rows (array, CSR, data frame) if `y` is given; otherwise an iterable of chunks ``(X,
            y)``.
        y: labels or targets of the rows.
        chunk_size: rows per call of the model when `y` is given. It changes the speed, not the outcome.
        warmup: rounds to leave out of the `..._without_warmup` figures.
        window: count metrics as well, over all rows and over the last `window`, beside those of baselines:
            `Result.evaluation` has them.
        callback: called after each chunk with the result so far, the same object that is returned in the end.

    Examples:
        >>> class Last:
        ...     "Predicts the label before."
        ...     label = 0
        ...     def predict_then_learn(self, X, y):
        ...         predicted, self.label = np.append(self.label, y[:-1]), y[-1]
        ...         return predicted
        >>> result = progressive(Last(), np.zeros((6, 1)), np.array([1, 1, 0, 0, 0, 1]), warmup=1)
        >>> result.rounds, result.mistakes, result.mistakes_without_warmup
        (6, 3, 2)
        >>> result.error_rate
        0.5
    """
    if warmup < 0:
        raise ValueError(f"warmup must not be negative, got {warmup}")
    result = Result.of(model, warmup, window=window)
    for X, labels in _chunks(X_or_chunks, y, chunk_size):
        result.step(model, X, labels)
        if callback is not None:
            callback(result)
    return result


def forecast_then_learn(model: PredictsThenLearns, X: Any, y: Any, *, metrics: bool) -> Forecasts:
    """Let a model predict and learn rows; with ``metrics``, classes have scores or probabilities, too.

    >>> from kernelstream import KernelRegressor
    >>> model = KernelRegressor().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> forecast_then_learn(model, [[1.0]], [1.0], metrics=True).predicted.shape
    (1,)
    """
    start = time.perf_counter()
    if metrics and isinstance(model, KernelClassifier):
        predicted, counted = _scored(model, X, np.asarray(y))
    else:
        predicted = np.asarray(model.predict_then_learn(X, y))
        counted = [(y, predicted)]
    return Forecasts(predicted, counted, time.perf_counter() - start)


def _scored(model: KernelClassifier, X: Any, y: NDArray[Any]) -> tuple[NDArray[Any], list[tuple[Any, ...]]]:
    """Predict, then learn; the labels predicted, and what `Evaluation.update` counts, in parts.

    A new class ends a part: rows before it were scored without it, and so was its first row.
    """
    known = set(model.classes_.tolist()) if hasattr(model, "classes_") else set()
    labels = y.tolist()
    if known.issuperset(labels):
        scores = model.decision_then_learn(X, y).reshape(len(labels), -1)
        predicted = labels_of_codes(model.classes_, codes_of_scores(scores, len(model.classes_)))
        return predicted, [(y, predicted, *_given(model, scores))]
    first_rows = {label: row for row, label in reversed(list(enumerate(labels))) if label not in known}
    counted: list[tuple[Any, ...]] = []
    with Transaction(model) as transaction:
        if hasattr(model, "learner_"):
            transaction.keep(model.learner_)
        start = 0
        for stop in [*sorted(first_rows.values()), len(labels)]:
            if start < stop:
                parts, part = _rows_of(X, start, stop), y[start:stop]
                scores = model.decision_then_learn(parts, part).reshape(stop - start, -1)
                counted.append((part, *_guessed(model, scores)))
            if stop < len(labels):  # the first row of a class
                row, part = _rows_of(X, stop, stop + 1), y[stop : stop + 1]
                if hasattr(model, "learner_") and len(model.classes_):
                    counted.append((part, *_guessed(model, model.decision_function(row).reshape(1, -1))))
                else:
                    counted.append((part, np.array([None])))
                model.partial_fit(row, part)
            start = stop + 1
    guesses = [guess for part in counted for guess in part[1].tolist()]
    code = {label: place for place, label in enumerate(model.classes_.tolist())} | {None: -1}
    return labels_of_codes(model.classes_, np.array([code[guess] for guess in guesses])), counted


def _guessed(model: KernelClassifier, scores: NDArray[Any]) -> tuple[Any, ...]:
    """The labels that scores say, and the scores as `ClassificationMetrics` counts them."""
    return model.classes_[codes_of_scores(scores, len(model.classes_))], *_given(model, scores)


def _given(model: KernelClassifier, scores: NDArray[Any]) -> tuple[Any, ...]:
    """Probabilities, classes, scores: of the first and the last one is None."""
    classes, link = model.classes_, link_of(model.learner_)
    if link is not None:
        return probabilities(scores, len(classes), link), classes, None
    if len(classes) <= 2:
        scores = np.hstack([-scores, scores])[:, -len(classes) :]
    return None, classes, scores


def _rows_of(X: Any, start: int, stop: int) -> Any:
    return (X.iloc if hasattr(X, "iloc") else X)[start:stop]


def _losses(predicted: NDArray[Any], y: NDArray[Any], result: Result) -> NDArray[np.float64]:
    if predicted.shape != y.shape:
        raise ValueError(
            f"the model predicted an array of shape {predicted.shape} for labels of shape {y.shape}"
        )
    if result.task == "regression":
        losses: NDArray[np.float64] = np.subtract(predicted, y, dtype=np.float64)
        losses *= losses
        if not np.isfinite(losses.sum()):
            _check_finite(predicted, result)
        return losses
    if predicted.dtype.kind in "fc":
        _check_finite(predicted, result)
    return np.asarray(predicted != y, dtype=np.float64)


def _check_finite(predicted: NDArray[Any], result: Result) -> None:
    bad = ~np.isfinite(predicted)
    if result.task == "classification" and result.rounds == 0:
        bad[:1] = False
    if bad.any():
        row = int(np.argmax(bad))
        raise FloatingPointError(
            f"the model predicted {predicted[row]} in round {result.rounds + row + 1}: "
            "it has diverged, or its input was not finite"
        )


def _chunks(X: Any, y: Any, chunk_size: int) -> Iterator[tuple[Any, Any]] | Iterable[tuple[Any, Any]]:
    if y is None:
        if hasattr(X, "shape"):
            raise ValueError("y is missing: pass the labels, or an iterable of chunks (X, y)")
        chunks: Iterable[tuple[Any, Any]] = X
        return chunks
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, not {chunk_size}")
    X = X if hasattr(X, "shape") else np.asarray(X)
    y = np.asarray(y)
    if X.shape[0] != len(y):
        raise ValueError(f"X has {X.shape[0]} rows, but y has {len(y)}")
    rows = X.iloc if hasattr(X, "iloc") else X
    return ((rows[i : i + chunk_size], y[i : i + chunk_size]) for i in range(0, len(y), chunk_size))


def _is_regressor(model: object) -> bool:
    if not hasattr(model, "__sklearn_tags__"):
        return False
    from sklearn.base import is_regressor

    return bool(is_regressor(model))
