"""Where rows come from: files, data sets by name, streams made on the spot. All give chunks ``(X, y)``."""

from kernelstream.stream.bad_rows import BadRowError
from kernelstream.stream.datasets import DATASETS, STREAMS, Dataset, Stream, load, open_stream, shuffled
from kernelstream.stream.source import Chunk, Source, read
from kernelstream.stream.synthetic import adversarial_blocks, friedman, moving_classes, rings

__all__ = [
    "BadRowError",
    "Chunk",
    "DATASETS",
    "STREAMS",
    "Dataset",
    "Source",
    "Stream",
    "adversarial_blocks",
    "friedman",
    "load",
    "moving_classes",
    "open_stream",
    "read",
    "rings",
    "shuffled",
]
