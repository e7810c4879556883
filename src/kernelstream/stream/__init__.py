"""Where rows come from: files, data sets by name, streams made on the spot. All give chunks ``(X, y)``."""

from kernelstream.stream.bad_rows import BadRowError, MissingPackageError, SourceError
from kernelstream.stream.datasets import DATASETS, STREAMS, Dataset, Stream, load, open_stream, shuffled
from kernelstream.stream.options import Chunk
from kernelstream.stream.reading import read
from kernelstream.stream.source import Source
from kernelstream.stream.synthetic import adversarial_blocks, friedman, moving_classes, rings

__all__ = [
    "BadRowError",
    "Chunk",
    "DATASETS",
    "STREAMS",
    "Dataset",
    "MissingPackageError",
    "Source",
    "SourceError",
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
