from typing import Any

import numpy as np
from numpy.typing import NDArray

def record_ends(text: Any, start: int, most: int, delimiter: str) -> NDArray[np.int64]: ...
def parse_libsvm(
    text: Any, n_features: int, largest: float, labelled: bool, whole_labels: bool
) -> tuple[
    NDArray[np.float64], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]
]: ...
