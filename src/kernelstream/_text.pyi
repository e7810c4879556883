from typing import Any

import numpy as np
from numpy.typing import NDArray

def record_ends(text: Any, start: int, most: int, delimiter: str, last: bool) -> NDArray[np.int64]: ...
def line_ends(text: Any) -> int: ...
def parse_libsvm(
    text: Any, n_features: int, largest: float, labelled: bool, whole_labels: bool
) -> tuple[
    NDArray[np.float64], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]
]: ...
def csv_fields(record: Any, delimiter: str) -> list[bytes]: ...
def is_number(field: Any) -> bool: ...
def csv_counts(
    text: Any, ends: NDArray[np.int64], columns: int, delimiter: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
def parse_csv(
    text: Any,
    ends: NDArray[np.int64],
    delimiter: str,
    roles: NDArray[np.uint8],
    places: NDArray[np.int32],
    numbers: int,
    categories: int,
    largest: float,
    label_kind: int,
) -> tuple[
    NDArray[np.int32],
    NDArray[np.float64],
    list[tuple[NDArray[np.int32], list[str | None]]],
    NDArray[Any],
    tuple[NDArray[np.int32], list[str]],
    NDArray[np.int64],
]: ...
def parse_json(
    text: Any,
    ends: NDArray[np.int64],
    largest: float,
    target: str,
    label: int,
    dropped: list[str],
    forced: list[str],
) -> tuple[
    NDArray[np.int32],
    NDArray[np.int64],
    NDArray[np.int32],
    NDArray[np.float64],
    list[tuple[str, int, str]],
    NDArray[Any],
    tuple[NDArray[np.int32], list[str]],
    str,
    int,
    list[str],
    NDArray[np.int64],
]: ...
def hash_texts(
    texts: list[str], features: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]: ...
