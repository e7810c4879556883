"""The streams of the table, and the best rows that the papers publish for them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelstream.stream import datasets, synthetic

SEEDS = (0, 1, 2, 3, 4)
DRIFT_ROWS = 20_000  # of the generated stream of moving classes


@dataclass(frozen=True)
class Stream:
    """A stream of the table, and the best row that the papers publish for it (%, RMSE for regression)."""

    name: str
    rows: int
    features: int
    load: Callable[[int], tuple[Any, Any]]
    classes: int = 2  # 0: regression
    seeds: tuple[int, ...] = SEEDS
    ordered: bool = False  # the order carries the difficulty: drift, or an adversary
    published: float | None = None
    source: str = ""

    @property
    def budget(self) -> int:
        return 100 if self.rows <= 10_000 else 200


def from_file(
    name: str, title: str = "", *, classes: int = 2, published: float | None = None, source: str = ""
) -> Stream:
    record = datasets.DATASETS[name]
    return Stream(title or name, record.rows, record.features, functools.partial(shuffle, name), classes,
                  published=published, source=source)  # fmt: skip


def in_order(name: str, title: str) -> Stream:
    record = datasets.DATASETS[name]
    return Stream(title, record.rows, record.features, lambda seed: whole(name), seeds=(0,), ordered=True)


@functools.lru_cache(1)
def whole(name: str) -> tuple[Any, Any]:
    return datasets.load(name)


def shuffle(name: str, seed: int) -> tuple[Any, Any]:
    """The rows of `datasets.shuffled`, without reading the file again for each seed."""
    X, y = whole(name)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


def adversarial(seed: int, rounds: int) -> tuple[Any, Any]:
    X, y = whole("german.numer_scale")
    X, y = synthetic.adversarial_blocks(X, np.where(y == y.max(), 1, -1), 500, rounds, seed)
    return X, y.astype(np.int64)


def moving(seed: int) -> tuple[Any, Any]:
    return next(synthetic.moving_classes(DRIFT_ROWS, seed=seed, chunk_size=DRIFT_ROWS))


SKEGD_3, OKSSIL_2 = "SkeGD paper, Table 3", "OKS-SIL paper, Table 2"
STREAMS = {
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
        Stream("german-1", 5000, 24, functools.partial(adversarial, rounds=10), ordered=True,
               published=16.578, source="SkeGD (theta = 0.005), SkeGD paper, Table 4"),
        Stream("german-2", 10_000, 24, functools.partial(adversarial, rounds=20), ordered=True,
               published=6.835, source="SkeGD (theta = 0.001), SkeGD paper, Table 4"),
        from_file("usps", classes=10, published=100 - 92.14, source="NOLANA (epsilon = 50), NOLANA paper, Table 1"),
        from_file("cpusmall", classes=0),
        from_file("abalone_scale", "abalone", classes=0),
        in_order("elec2", "elec2 in order"),
        in_order("covtype.binary", "covtype in order"),
        Stream("moving classes", DRIFT_ROWS, 2, moving, classes=3, ordered=True),
    )
}  # fmt: skip
PAPERS = [s.name for s in STREAMS.values() if s.published is not None]
DRIFTING = ["elec2 in order", "covtype in order", "moving classes"]
