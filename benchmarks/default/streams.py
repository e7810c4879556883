"""The streams of the two tables: many short ones, and the papers' whole data sets with the best rows published for them."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import datasets as bundled

from kernelstream.stream import datasets, synthetic

Data = tuple[Any, Any]
SEEDS = (0, 1, 2, 3, 4)
# Most rows of a stream; of three large ones; a stream of fewer rows than FEW has few.
ROWS, MANY, FEW = 8000, 30_000, 2000
# A stream is run in as many orders as have so many rows together, within bounds: with few mistakes per order the ratio of two
# learners' errors is mostly luck.
ALL_ROWS, FEWEST_ORDERS, MOST_ORDERS = 100_000, 3, 50
DRIFT_ROWS = 20_000  # of the generated stream of moving classes, in the papers' table


@dataclass(frozen=True)
class Stream:
    """A stream of a table. `published`: the best row that the papers have for it (%, RMSE for regression)."""

    name: str
    rows: int
    features: int
    load: Callable[[int], Data]
    classes: int = 2  # 0: regression
    seeds: tuple[int, ...] = SEEDS
    ordered: bool = False  # the order carries the difficulty: drift, or an adversary
    afterwards: bool = False  # not looked at before the defaults were chosen
    whole: bool = False  # in the papers' table: all rows, with the papers' budget
    published: float | None = None
    source: str = ""

    @property
    def budget(self) -> int:
        return 100 if self.rows <= 10_000 else 200


@functools.lru_cache(1)
def file(name: str) -> Data:
    return datasets.load(name)


def shuffle(X: Any, y: Any, seed: int, rows: int | None = None) -> Data:
    """The rows of `datasets.shuffled`, without reading a file again for each seed."""
    order = np.random.default_rng(seed).permutation(len(y))[:rows]
    return X[order], y[order]


# ---- the papers' data sets, all rows ----


def from_file(
    name: str, title: str = "", *, classes: int = 2, published: float | None = None, source: str = ""
) -> Stream:
    record = datasets.DATASETS[name]
    return Stream(title or name, record.rows, record.features, lambda seed: shuffle(*file(name), seed), classes,
                  whole=True, published=published, source=source)  # fmt: skip


def in_order(name: str, title: str) -> Stream:
    record = datasets.DATASETS[name]
    return Stream(
        title, record.rows, record.features, lambda seed: file(name), seeds=(0,), ordered=True, whole=True
    )


def adversarial(seed: int, rounds: int) -> Data:
    X, y = file("german.numer_scale")
    X, y = synthetic.adversarial_blocks(X, np.where(y == y.max(), 1, -1), 500, rounds, seed)
    return X, y.astype(np.int64)


def moving(seed: int, rows: int = DRIFT_ROWS) -> Data:
    return next(synthetic.moving_classes(rows, seed=seed, chunk_size=rows))


SKEGD_3, OKSSIL_2 = "SkeGD paper, Table 3", "OKS-SIL paper, Table 2"
PAPERS = {
    s.name: s
    for s in (
        from_file("german.numer_scale", published=27.932, source=f"SkeGD, {SKEGD_3}"),
        from_file("svmguide3", published=21.388, source=f"SkeGD, {SKEGD_3}"),
        from_file("spambase", published=28.209, source=f"OKS-SIL, {OKSSIL_2}"),
        from_file("mushrooms", published=0.351, source=f"OKS-SIL, {OKSSIL_2}"),
        from_file("a9a", published=18.524, source=f"SkeGD, {SKEGD_3}"),
        from_file("w7a", published=2.782, source=f"SkeGD, {SKEGD_3}"),
        from_file("ijcnn1", published=9.348, source=f"SkeGD, {SKEGD_3}"),
        from_file("cod-rna.train", "cod-rna", published=11.638, source=f"SkeGD, {SKEGD_3}"),
        from_file("covtype.binary", published=30.493, source=f"SkeGD, {SKEGD_3}"),
        Stream("german-1", 5000, 24, functools.partial(adversarial, rounds=10), ordered=True, whole=True,
               published=16.578, source="SkeGD (theta = 0.005), SkeGD paper, Table 4"),
        Stream("german-2", 10_000, 24, functools.partial(adversarial, rounds=20), ordered=True, whole=True,
               published=6.835, source="SkeGD (theta = 0.001), SkeGD paper, Table 4"),
        from_file("usps", classes=10, published=100 - 92.14, source="NOLANA (epsilon = 50), NOLANA paper, Table 1"),
        from_file("cpusmall", classes=0),
        from_file("abalone_scale", "abalone", classes=0),
        in_order("elec2", "elec2 in order"),
        in_order("covtype.binary", "covtype in order"),
        Stream("moving classes", DRIFT_ROWS, 2, moving, classes=3, ordered=True, whole=True),
    )
}  # fmt: skip
DRIFTING = ["elec2 in order", "covtype in order", "moving classes"]

# ---- many short streams ----


def coded(pairs: list[tuple[dict[str, Any], Any]], target: str = "") -> Data:
    """River's dictionaries as a table: words become one column per word, dates are left out, of many targets one is taken."""
    columns = []
    for key, first in pairs[0][0].items():
        values = [x[key] for x, _ in pairs]
        if isinstance(first, str):
            columns += [np.array([v == word for v in values]) for word in sorted(set(values))]
        elif isinstance(first, int | float):
            columns.append(np.array(values))
    y = np.array([y[target] if target else y for _, y in pairs])
    return np.column_stack(columns).astype(float), y


def river_table(name: str, target: str = "") -> Data:
    """A table that comes with River."""
    from river import datasets as river

    return coded(list(getattr(river, name)()), target)


def lagged(name: str, lags: int = 8) -> Data:
    """A series that comes with River, each value to be predicted from those before it."""
    from river import datasets as river

    series = np.array([y for _, y in getattr(river, name)()], float)
    series = series[np.isfinite(series)]
    return np.lib.stride_tricks.sliding_window_view(series[:-1], lags).copy(), series[lags:]


def river_generator(name: str, seed: int, rows: int = ROWS, **given: Any) -> Data:
    """One of River's generators."""
    from river.datasets import synth

    kind = getattr(synth, name)
    names = [name for name in inspect.signature(kind).parameters if name.startswith("seed")]
    return coded(list(itertools.islice(iter(kind(**dict.fromkeys(names, seed), **given)), rows)))


def joined(made: Iterator[Data]) -> Data:
    X, y = (np.concatenate(part) for part in zip(*made, strict=True))
    return X, y


def chessboard(seed: int) -> Data:
    X = np.random.default_rng(seed).uniform(0, 8, (ROWS, 2))
    return X, (np.floor(X).sum(axis=1) % 2).astype(int)


def moving_centroids(seed: int) -> Data:
    """50 Gaussian centroids of 5 classes in 10 dimensions that move by 0.001 per row: the stream RBF_f."""
    random = np.random.default_rng(seed)
    centres, speed = random.random((50, 10)), random.normal(size=(50, 10))
    speed /= np.linalg.norm(speed, axis=1, keepdims=True) / 1e-3
    label, deviation, weight = random.integers(5, size=50), random.random(50), random.random(50)
    X, y = np.empty((ROWS, 10)), np.empty(ROWS, int)
    for i in range(ROWS):
        centres += speed
        speed[(centres > 1) | (centres < 0)] *= -1
        c = random.choice(50, p=weight / weight.sum())
        step = random.normal(size=10)
        X[i], y[i] = centres[c] + step / np.linalg.norm(step) * random.normal() * deviation[c], label[c]
    return X, y


def sea(seed: int) -> Data:
    """Four concepts in turn, one label in ten wrong."""
    random = np.random.default_rng(seed)
    X = random.uniform(0, 10, (ROWS, 3))
    bound = np.array([8, 9, 7, 9.5])[np.arange(ROWS) * 4 // ROWS]
    return X, ((X[:, 0] + X[:, 1] <= bound) ^ (random.random(ROWS) < 0.1)).astype(int)


def hyperplane(seed: int) -> Data:
    """A plane that turns all the time, one label in twenty wrong."""
    random = np.random.default_rng(seed)
    X, normal = random.random((ROWS, 10)), random.random(10)
    y = np.empty(ROWS, int)
    for i in range(ROWS):
        normal[:5] += 1e-3 * np.array([1, -1, 1, -1, 1])
        y[i] = X[i] @ normal > normal.sum() / 2
    return X, y ^ (random.random(ROWS) < 0.05)


def clusters(seed: int) -> Data:
    X, y = bundled.make_classification(
        ROWS, 20, n_informative=8, n_classes=4, n_clusters_per_class=4, class_sep=1.0, random_state=seed
    )
    return X, y


def friedman(seed: int, turning: bool = False) -> Data:
    """Friedman's function; if turning, its inputs are in another order from the middle on."""
    X, y = bundled.make_friedman1(ROWS, 10, noise=1.0, random_state=seed)
    if turning:
        X[ROWS // 2 :] = X[ROWS // 2 :, ::-1].copy()
    return X, y


def short(name: str, load: Callable[[int], Data], *, ordered: bool = False, afterwards: bool = False,
          regression: bool = False, one: bool = False, together: int = ALL_ROWS,
          most: int = MOST_ORDERS) -> Stream:  # fmt: skip
    """A stream whose sizes are found by loading it; `one`: the rows have one order only."""

    @functools.lru_cache(2)
    def dense(seed: int) -> Data:
        X, y = load(seed)
        return np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X, float), y

    X, y = dense(0)
    orders = 1 if one else min(max(round(together / len(y)), FEWEST_ORDERS), most)
    return Stream(
        name,
        len(y),
        X.shape[1],
        dense,
        0 if regression else len(np.unique(y)),
        tuple(range(orders)),
        ordered,
        afterwards,
    )


def of_papers(name: str, rows: int = ROWS) -> Callable[[int], Data]:
    return lambda seed: shuffle(*file(name), seed, rows)


def first_of(name: str) -> Callable[[int], Data]:
    return lambda seed: tuple(part[:ROWS] for part in file(name))  # type: ignore[return-value]


def of_sklearn(name: str) -> Callable[[int], Data]:
    return lambda seed: shuffle(*getattr(bundled, f"load_{name}")(return_X_y=True), seed)


def of_river(name: str, target: str = "") -> Callable[[int], Data]:
    return lambda seed: shuffle(*river_table(name, target), seed)


part = functools.partial
SHORT: dict[str, Callable[[str], Stream]] = {
    # the papers'
    "german": lambda n: short(n, of_papers("german.numer")),
    "svmguide3": lambda n: short(n, of_papers("svmguide3")),
    "spambase": lambda n: short(n, of_papers("spambase")),
    "mushrooms": lambda n: short(n, of_papers("mushrooms")),
    "a9a": lambda n: short(n, of_papers("a9a")),
    "w7a": lambda n: short(n, of_papers("w7a")),
    "usps": lambda n: short(n, of_papers("usps")),
    "ijcnn1": lambda n: short(n, of_papers("ijcnn1", MANY)),
    "cod-rna": lambda n: short(n, of_papers("cod-rna.train", MANY)),
    "covtype": lambda n: short(n, of_papers("covtype.binary", MANY)),
    "covtype in order": lambda n: short(n, first_of("covtype.binary"), ordered=True, one=True),
    "elec2 in order": lambda n: short(n, first_of("elec2"), ordered=True, one=True),
    "german-1": lambda n: short(n, part(adversarial, rounds=10), ordered=True),
    "cpusmall": lambda n: short(n, of_papers("cpusmall"), regression=True),
    "abalone": lambda n: short(n, of_papers("abalone_scale"), regression=True),
    # scikit-learn's
    "iris": lambda n: short(n, of_sklearn("iris")),
    "wine": lambda n: short(n, of_sklearn("wine")),
    "breast_cancer": lambda n: short(n, of_sklearn("breast_cancer")),
    "digits": lambda n: short(n, of_sklearn("digits")),
    "diabetes": lambda n: short(n, of_sklearn("diabetes"), regression=True),
    # River's
    "Phishing": lambda n: short(n, of_river(n)),
    "Bananas": lambda n: short(n, of_river(n)),
    "ImageSegments": lambda n: short(n, of_river(n)),
    "TrumpApproval": lambda n: short(n, lambda seed: river_table(n), ordered=True, regression=True, one=True),
    "ChickWeights": lambda n: short(n, lambda seed: river_table(n), ordered=True, regression=True, one=True),
    "Yeast": lambda n: short(n, of_river(n, "Class2"), afterwards=True),
    "Shuttle": lambda n: short(n, lambda seed: shuffle(*river_table(n), seed, ROWS), afterwards=True),
    "SolarFlare": lambda n: short(n, of_river(n, "c-class-flares"), afterwards=True, regression=True),
    "WaterFlow": lambda n: short(
        n, lambda seed: lagged(n), ordered=True, afterwards=True, regression=True, one=True
    ),
    # generated
    "chessboard": lambda n: short(n, chessboard),
    "rings": lambda n: short(n, lambda seed: joined(synthetic.rings(ROWS, rings=4, seed=seed))),
    "clusters": lambda n: short(n, clusters),
    "moving classes": lambda n: short(n, part(moving, rows=ROWS), ordered=True),
    "moving centroids": lambda n: short(n, moving_centroids, ordered=True),
    "SEA": lambda n: short(n, sea, ordered=True),
    "hyperplane": lambda n: short(n, hyperplane, ordered=True),
    "friedman": lambda n: short(n, friedman, regression=True),
    "friedman turning": lambda n: short(n, part(friedman, turning=True), ordered=True, regression=True),
    "Agrawal": lambda n: short(n, part(river_generator, n, classification_function=4), afterwards=True),
    "LED": lambda n: short(n, part(river_generator, n, noise_percentage=0.1), afterwards=True),
    "Waveform": lambda n: short(n, part(river_generator, n), afterwards=True),
    "random RBF": lambda n: short(
        n, part(river_generator, "RandomRBF", n_classes=4, n_features=10), afterwards=True
    ),
    "random tree": lambda n: short(n, part(river_generator, "RandomTree", n_classes=3), afterwards=True),
    "Mv": lambda n: short(n, part(river_generator, n), afterwards=True, regression=True),
    "Planes2D": lambda n: short(n, part(river_generator, n), afterwards=True, regression=True),
}


@functools.cache
def stream(name: str) -> Stream:
    return SHORT[name](name)
