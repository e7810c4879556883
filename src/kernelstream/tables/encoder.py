"""`TableEncoder`: tables of any kind as features, for scikit-learn; what `stream.read` does with files, in memory."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, TransformerMixin, get_config
from sklearn.utils.validation import check_is_fitted

from kernelstream.tables.columns import Columns, check_kinds
from kernelstream.tables.errors import SourceError, TooWideError
from kernelstream.tables.features import OF_A_FILE, Features, check_description, upgraded
from kernelstream.tables.frames import Frame, is_records, record_entries
from kernelstream.tables.kinds import Kind
from kernelstream.tables.options import MAX_FEATURES, TEXT_FEATURES, TableOptions
from kernelstream.tables.values import check_values

__all__ = ["TableEncoder"]


class TableEncoder(TransformerMixin, BaseEstimator):
    """Features from tables whose columns are numbers, categories, dates and times, free text or booleans, with gaps.

    Tables are data frames of pandas, polars or pyarrow, dicts of columns, NumPy arrays (with columns of objects, too) or lists of
    dicts, whose names may come and go. Columns are found by name, in any order. docs/tables.md says what each kind becomes.

    Args:
        columns: "auto", or the kinds of columns by name, such as ``{"age": "number", "when": "time", "review": "text"}``:
            "number", "boolean", "category", "time", "text" or "drop". Those not named are told by their first 1000 rows.
        drop: columns to leave out.
        max_categories: categories of a column that get a feature of their own; later ones share one.
        hashed: hash categories into this many features, instead.
        text_features: features of a column of free text, whose words and pieces of words are hashed.
        max_features: more features than this are an error.
        sparse: whether to give CSR arrays; "auto": if there are categories, texts, or names that come and go.
        dtype: type of the features, float64 or float32.

    Attributes:
        columns_: the kind of each column. n_features_in_, feature_names_in_: as in scikit-learn.

    >>> table = {"age": [31, None, 58], "colour": ["red", "blue", "red"]}
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.columns_
    {'age': 'number', 'colour': 'category'}
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'colour=red', 'age missing', 'colour=blue']
    >>> encoder.transform(table).toarray().tolist()
    [[31.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [58.0, 1.0, 0.0, 0.0]]
    """

    features_: Features

    def __init__(
        self,
        columns: Literal["auto"] | Mapping[Any, str] = "auto",
        *,
        drop: Sequence[str | int] = (),
        max_categories: int = 64,
        hashed: int | None = None,
        text_features: int = TEXT_FEATURES,
        max_features: int = MAX_FEATURES,
        sparse: bool | Literal["auto"] = "auto",
        dtype: DTypeLike = np.float64,
    ) -> None:
        self.columns = columns
        self.drop = drop
        self.max_categories = max_categories
        self.hashed = hashed
        self.text_features = text_features
        self.max_features = max_features
        self.sparse = sparse
        self.dtype = dtype

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    # ---- what is known ----

    @classmethod
    def from_description(cls, description: dict[str, Any]) -> Self:
        """The encoder that a description says, as model files and `Source.encoding` have it.

        >>> encoder = TableEncoder().fit({"age": [31, None]})
        >>> TableEncoder.from_description(encoder.description).get_feature_names_out().tolist()
        ['age', 'age missing']
        """
        state = {key: value for key, value in upgraded(description).items() if key not in OF_A_FILE}
        check_description(state)
        encoder = cls(max_categories=state["max_categories"] or 64, hashed=state["hashed"])
        encoder.text_features = state["text_features"]
        options = encoder._options()
        options.max_features = max(MAX_FEATURES, 2 * len(state["features"]))
        encoder.features_ = Features(options, Columns(options))
        encoder.features_.restore(state)
        encoder.features_.begin()
        return encoder

    @property
    def description(self) -> dict[str, Any]:
        """All that is known of columns and features, as JSON can hold it."""
        check_is_fitted(self, "features_")
        return self.features_.state()

    @property
    def columns_(self) -> dict[str, Kind]:
        """The kind of each column."""
        check_is_fitted(self, "features_")
        return dict(self.features_.columns.kinds)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns."""
        return np.array(list(self.columns_), dtype=object)

    @property
    def n_features_in_(self) -> int:
        """How many columns there are."""
        return len(self.columns_)

    @property
    def width(self) -> int:
        """How many features there are so far."""
        return self.features_.width

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """A name for each feature."""
        check_is_fitted(self, "features_")
        return np.array(self.features_.names(), dtype=object)

    # ---- rows ----

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, then take note of the columns of a table and of the features that its rows need."""
        before = self.__dict__.pop("features_", None)
        try:
            return self.partial_fit(X)
        except BaseException:
            if before is not None:
                self.features_ = before
            raise

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Take note of the features that more rows need; those known keep their places."""
        self.__dict__.update(self.learnt(X)[0].__dict__)
        return self

    def transform(self, X: Any) -> Any:
        """Rows as features. What is new goes to the feature of the others, or to none; nothing is learnt."""
        check_is_fitted(self, "features_")
        return self._form(self._encode(X, learn=False))

    def encoded(self, X: Any) -> Any:
        """As `transform`, always in the form that the columns have."""
        return self._encode(X, learn=False)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, then transform."""
        return self.fit(X).transform(X)

    def learnt(self, X: Any) -> tuple[Self, Any]:
        """Another encoder, which also knows these rows, and the rows as features: this one stays as it is."""
        other: Self = copy.copy(self)
        if "features_" in self.__dict__:
            other.features_ = self.features_.copy()
        else:
            options = self._options()
            other.features_ = Features(options, Columns(options))
            other.features_.columns.open = is_records(X)
            if other.features_.columns.open:
                kinds = {str(name): kind for name, kind in options.columns.items()}
                other.features_.columns.kinds = {n: k for n, k in kinds.items() if k != "drop"}  # type: ignore[misc]
                other.features_.columns.forced = list(other.features_.columns.kinds)
        return other, other._encode(X, learn=True)

    def news_of(self, other: Self) -> dict[str, Any]:
        """What another encoder that went on from this one knows beside it, as JSON can hold it.

        >>> encoder = TableEncoder().fit({"colour": ["red"]})
        >>> news = encoder.news_of(encoder.learnt({"colour": ["blue"]})[0])
        >>> encoder.told(news).get_feature_names_out().tolist()
        ['colour=red', 'colour=blue']
        """
        mine, its = self.description, other.description
        origins = {name: origin for name, origin in its["origins"].items() if name not in mine["origins"]}
        return {"features": its["features"][len(mine["features"]) :], "origins": origins}

    def told(self, *news: Mapping[str, Any]) -> Self:
        """Another encoder, which also knows these `news_of` encoders that went on from this one, in this order."""
        other: Self = copy.copy(self)
        other.features_ = self.features_.copy()
        for some in news:
            other.features_.origins = {**some["origins"], **other.features_.origins}
            other.features_.meet_keys((str(name), str(key)) for name, key in some["features"])
        return other

    def _options(self) -> TableOptions:
        for name in ("max_categories", "hashed", "text_features", "max_features"):
            value = getattr(self, name)
            if not (name == "hashed" and value is None) and not (
                isinstance(value, int | np.integer) and value >= 1
            ):
                raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
        if self.sparse not in (True, False, "auto"):
            raise ValueError(f"sparse must be True, False or 'auto', got {self.sparse!r}")
        if np.dtype(self.dtype) not in (np.float64, np.float32):
            raise ValueError(f"dtype must be float64 or float32, got {self.dtype!r}")
        return TableOptions(
            labelled=False,
            columns={}
            if isinstance(self.columns, str) and self.columns == "auto"
            else check_kinds(self.columns),
            drop=self.drop,
            max_categories=self.max_categories,
            hashed=self.hashed,
            text_features=self.text_features,
            max_features=self.max_features,
            dtype=np.dtype(self.dtype),
        )

    def _encode(self, X: Any, *, learn: bool) -> Any:
        """Rows as features, those added that are new."""
        features, columns = self.features_, self.features_.columns
        options = features._options
        options.frozen = not learn
        try:
            if columns.open and is_records(X):
                dropped = {str(name) for name in self.drop}
                dropped |= {str(name) for name, kind in options.columns.items() if kind == "drop"}
                records = (
                    [{n: v for n, v in row.items() if str(n) not in dropped} for row in X] if dropped else X
                )
                entries, features.truths = record_entries(records, columns)
                return features.give_rows(len(X), *entries)
            frame = Frame(_with_absent(X, columns) if is_records(X) else X)
            columns.settle("X", frame.names, frame.kind, lambda name: "text")
            values, wrong = frame.values(columns)
            values, bad = check_values(values, columns, options, wrong)
            if bad:
                raise SourceError(f"X, row {bad[0].row}, column {bad[0].column}: {bad[0].reason}")
            return features.give(values).X
        except TooWideError as error:
            raise SourceError(f"X, row {error.row}: {error}") from None

    def _form(self, X: Any) -> Any:
        """Dense or CSR, as asked for."""
        config = getattr(self, "_sklearn_output_config", {})
        wanted = config.get("transform", get_config()["transform_output"])
        sparse = self.sparse if self.sparse != "auto" else None if wanted == "default" else False
        if sparse is None:
            return X
        if sparse:
            return X if issparse(X) else csr_array(X)
        return X.toarray() if issparse(X) else X


def _with_absent(X: Sequence[Mapping[Any, Any]], columns: Columns) -> dict[str, list[Any]]:
    """Dicts as the columns of a table that is known: what is absent is missing, other names are not looked at."""
    return {name: [row.get(name) for row in X] for name in columns.used}
