"""Predictions as text: one per line, or as a table with ids, probabilities or scores, in CSV or JSON lines."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelstream.cli.arguments import UsageError
from kernelstream.cli.models import Estimator
from kernelstream.estimators import KernelClassifier
from kernelstream.runner import lines

__all__ = ["Predictions"]


class Predictions:
    """Makes the text of predictions.

    Args:
        model: the model.
        proba: whether the probability of each class is wanted.
        scores: whether scores are.
        id_name: the column that is passed through, if any.
        to: "lines", "csv" or "jsonl"; None: lines if nothing but the prediction is wanted, else CSV.
    """

    def __init__(
        self, model: Estimator, *, proba: bool, scores: bool, id_name: str | None, to: str | None
    ) -> None:
        if proba and not hasattr(model, "predict_proba"):
            if not isinstance(model, KernelClassifier):
                raise UsageError("--proba is of a classification, and the model is of a regression")
            raise UsageError("--proba needs a model of the default learner or of the logistic loss")
        if scores and not isinstance(model, KernelClassifier):
            raise UsageError("--scores is of a classification; a regression's predictions are its scores")
        more = proba or scores or id_name is not None
        if to == "lines" and more:
            raise UsageError("--proba, --scores and --id need --output-format csv or jsonl")
        self._model, self._proba, self._scores, self._id = model, proba, scores, id_name
        self._to = to or ("csv" if more else "lines")
        self._begun = False

    def text(self, X: Any, ids: list[Any] | None) -> bytes:
        """The text of some rows; that of the first ones begins with the names of the columns, in CSV."""
        predicted = self._model.predict(X)
        if self._to == "lines":
            return lines(predicted)
        tables = {}
        if self._proba:
            tables["probabilities"] = self._model.predict_proba(X)
        if self._scores:
            scores: NDArray[Any] = self._model.decision_function(X)
            tables["scores"] = scores.reshape(len(scores), -1)
        return (self._json if self._to == "jsonl" else self._csv)(predicted, tables, ids)

    def _names(self, columns: int) -> list[str]:
        classes = [str(label) for label in self._model.classes_]
        return (
            classes if columns == len(classes) else classes[-1:]
        )  # one score: the larger, the more the second class

    def _csv(self, predicted: NDArray[Any], tables: dict[str, NDArray[Any]], ids: list[Any] | None) -> bytes:
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        if not self._begun:
            self._begun = True
            heads = [*([] if self._id is None else [self._id]), "prediction"]
            for what, values in tables.items():
                kind = "probability" if what == "probabilities" else "score"
                heads += [f"{kind} of {name}" for name in self._names(values.shape[1])]
            out.writerow(heads)
        figures = np.hstack([np.zeros((len(predicted), 0)), *tables.values()]).tolist()
        for row, (label, values) in enumerate(zip(predicted.tolist(), figures, strict=True)):
            out.writerow([*([] if ids is None else [ids[row]]), label, *values])
        return text.getvalue().encode()

    def _json(self, predicted: NDArray[Any], tables: dict[str, NDArray[Any]], ids: list[Any] | None) -> bytes:
        made = []
        for row, label in enumerate(predicted.tolist()):
            record = {} if ids is None or self._id is None else {self._id: ids[row]}
            record["prediction"] = label
            for what, values in tables.items():
                record[what] = dict(zip(self._names(values.shape[1]), values[row].tolist(), strict=True))
            made.append(json.dumps(record, ensure_ascii=False))
        return "".join(f"{line}\n" for line in made).encode()
