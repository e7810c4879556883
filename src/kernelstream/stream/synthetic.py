"""Seeded streams made on the spot.

Each generator yields chunks ``(X, y)`` and, with ``rows=None``, never ends. A seed fixes the stream whatever
the chunk
size: every source of randomness has a generator of its own, drawn row after row.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.float64]
Int = NDArray[np.int64]


def rings(
    rows: int | None = None, *, rings: int = 2, noise: float = 0.05, seed: int = 0, chunk_size: int = 1000
) -> Iterator[tuple[Float, Int]]:
    """Two classes in the plane, a disc and rings around it: no line separates them, a Gaussian kernel does.

    Args:
        rows: number of rows, or None for an endless stream.
        rings: number of rings of equal width that fill the unit disc, the innermost a disc itself; more are
            harder.
        noise: probability that a label (-1 or +1) is flipped; no model can err less often than this.
        seed: seed of the stream.
        chunk_size: rows per chunk.

    Examples:
        >>> X, y = next(rings(seed=1, noise=0.0))
        >>> X.shape, y.shape
        ((1000, 2), (1000,))
        >>> inner = np.hypot(X[:, 0], X[:, 1]) < 0.25
        >>> set(y[inner].tolist())
        {-1}
    """
    if rings < 1:
        raise ValueError(f"rings must be at least 1, not {rings}")
    if not 0.0 <= noise <= 1.0:
        raise ValueError(f"noise is a probability: it must lie in [0, 1], not {noise}")
    random = np.random.default_rng(seed)
    for n in _sizes(rows, chunk_size):
        u = random.random((n, 3))
        # A uniform radius, so that every ring gets as many rows as any other.
        radius, angle, flip = u[:, 0], 2.0 * np.pi * u[:, 1], u[:, 2] < noise
        X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        odd = np.floor(radius * rings).astype(np.int64) % 2
        yield X, np.where(odd ^ flip, 1, -1).astype(np.int64)


def moving_classes(
    rows: int | None = None,
    *,
    classes: int = 3,
    speed: float = 0.005,
    spread: float = 0.2,
    seed: int = 0,
    chunk_size: int = 1000,
) -> Iterator[tuple[Float, Int]]:
    """Gaussian classes whose centres wander through the square [-1, 1] x [-1, 1]: a drift stream.

    Args:
        rows: number of rows, or None for an endless stream.
        classes: number of classes, labelled 0, 1, ...
        speed: standard deviation of a centre's step per row, in each direction.
        spread: standard deviation of the points around their centre.
        seed: seed of the stream.
        chunk_size: rows per chunk.

    Examples:
        >>> chunks = list(moving_classes(2500, classes=4, seed=0))
        >>> [len(y) for _, y in chunks]
        [1000, 1000, 500]
        >>> sorted(set(chunks[0][1].tolist()))
        [0, 1, 2, 3]
    """
    if classes < 1:
        raise ValueError(f"classes must be at least 1, not {classes}")
    if speed < 0 or spread < 0:
        raise ValueError(f"speed and spread must not be negative, got speed={speed}, spread={spread}")
    start, draw, walk, scatter = np.random.default_rng(seed).spawn(4)
    centres = start.uniform(-1.0, 1.0, (1, classes, 2))
    for n in _sizes(rows, chunk_size):
        steps = speed * walk.standard_normal((n, classes, 2))
        path = np.add.accumulate(np.concatenate([centres, steps]))
        centres = path[-1:]
        y = np.floor(classes * draw.random(n)).astype(np.int64)
        centre = _reflect(path[1:][np.arange(n), y])
        yield centre + spread * scatter.standard_normal((n, 2)), y


def friedman(
    rows: int | None = None, *, noise: float = 1.0, seed: int = 0, chunk_size: int = 1000
) -> Iterator[tuple[Float, Float]]:
    """Friedman's regression function of five features, with five more that say nothing.

    ``y = 10 sin(pi x0 x1) + 20 (x2 - 1/2)^2 + 10 x3 + 5 x4 + noise``, the features uniform in [0, 1].

    Args:
        rows: number of rows, or None for an endless stream.
        noise: standard deviation of the Gaussian noise; no model has a smaller root mean squared error.
        seed: seed of the stream.
        chunk_size: rows per chunk.

    References:
        J. H. Friedman, Multivariate adaptive regression splines, Annals of Statistics 19, 1991.

    Examples:
        >>> X, y = next(friedman(seed=0, noise=0.0))
        >>> X.shape
        (1000, 10)
        >>> bool(y[0] == 10 * np.sin(np.pi * X[0, 0] * X[0, 1]) + 20 * (X[0, 2] - 0.5) ** 2
        ...      + 10 * X[0, 3] + 5 * X[0, 4])
        True
    """
    if noise < 0:
        raise ValueError(f"noise is a standard deviation: it must not be negative, got {noise}")
    random, disturb = np.random.default_rng(seed).spawn(2)
    for n in _sizes(rows, chunk_size):
        X = random.random((n, 10))
        y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
        yield X, y + noise * disturb.standard_normal(n)


def adversarial_blocks(
    X: ArrayLike, y: ArrayLike, blocks: int = 500, rounds: int = 10, seed: int = 0
) -> tuple[Float, Float]:
    """The adversarial stream of the SkeGD paper (Section 6.4): blocks of one instance, every other flipped.

    Each block repeats one instance, drawn from the rows of `X` with replacement, `rounds` times. Blocks are
    counted from one; the labels of blocks 2, 4, ... are multiplied by -1. The paper's `german-1` is 500
    blocks of 10 rounds, `german-2` 500 blocks of 20.

    Args:
        X: the instances, dense.
        y: their labels, -1 or +1.
        blocks: number of blocks (k_b in the paper).
        rounds: rounds per block (k_r in the paper).
        seed: seed of the draw.

    References:
        X. Zhang, S. Liao, Incremental randomized sketching for online kernel learning, ICML 2019.

    Examples:
        >>> X, y = adversarial_blocks([[0.0], [1.0]], [1, 1], blocks=4, rounds=3)
        >>> y.astype(int).tolist()
        [1, 1, 1, -1, -1, -1, 1, 1, 1, -1, -1, -1]
        >>> X.shape
        (12, 1)
    """
    instances, labels = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if instances.ndim != 2 or labels.shape != (len(instances),) or not len(labels):
        raise ValueError(
            "X must be a non-empty matrix with one label per row, "
            f"got shapes {instances.shape} and {labels.shape}"
        )
    if not np.isin(labels, [-1.0, 1.0]).all():
        raise ValueError(
            f"labels must be -1 or +1 so that they can be flipped, got {np.unique(labels)[:5].tolist()}"
        )
    if blocks < 1 or rounds < 1:
        raise ValueError(f"blocks and rounds must be at least 1, got blocks={blocks}, rounds={rounds}")
    drawn = np.random.default_rng(seed).integers(len(labels), size=blocks)
    sign = np.where(np.arange(blocks) % 2 == 0, 1.0, -1.0)
    return np.repeat(instances[drawn], rounds, axis=0), np.repeat(sign * labels[drawn], rounds)


def _sizes(rows: int | None, chunk_size: int) -> Iterator[int]:
    """Chunk sizes that add up to `rows`, or without end."""
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, not {chunk_size}")
    if rows is not None and rows < 0:
        raise ValueError(f"rows must not be negative, got {rows}")
    left = rows
    while left is None or left > 0:
        n = chunk_size if left is None else min(chunk_size, left)
        left = None if left is None else left - n
        yield n


def _reflect(p: Float) -> Float:
    """Fold the real line into [-1, 1] as a mirror at both ends would."""
    return np.abs((p - 1.0) % 4.0 - 2.0) - 1.0
