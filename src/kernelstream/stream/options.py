"""What a reader is asked for: the arguments of `read` that concern every format; and the chunks that it gives."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelstream.stream.bad_rows import BadRows
from kernelstream.tables.options import MAX_FEATURES, TEXT_FEATURES, Chunk, TableOptions, Task

__all__ = ["MAX_FEATURES", "TEXT_FEATURES", "Chunk", "Options", "Task"]


@dataclass
class Options(TableOptions):
    """The arguments that every reader looks at. `left` counts the rows still wanted, None without an end."""

    header: bool | None = None
    delimiter: str | None = None
    chunk_size: int = 8192
    latency: float | None = None
    charset: str | None = None
    n_features: int | None = None
    left: int | None = None
    bad: BadRows = field(default_factory=lambda: BadRows("stop"))

    def size(self) -> int:
        """The most rows to give next."""
        return self.chunk_size if self.left is None else min(self.chunk_size, self.left)
