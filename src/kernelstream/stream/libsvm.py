"""LIBSVM text, also called SVMlight: ``label index:value index:value ...``, one row per line."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array

from kernelstream import _text
from kernelstream.stream.bad_rows import BadRow
from kernelstream.stream.lines import Block, TextReader
from kernelstream.stream.options import Chunk, Options

# In the order of `Reason` in src/core/text/libsvm.hpp.
_REASONS = (
    "label {token} is not a number",
    "label {token} is not finite",
    "label {token} is not a whole number (a regression takes any: task='regression')",
    "expected index:value, found {token}",
    "index in {token} is not a number",
    "index in {token} is not finite",
    "index in {token} is not a whole number",
    "index {index} in {token}, but indices start at 1",
    "index {index} in {token}, but the largest allowed is 2147483647",
    "index {index} after index {last}, but indices must increase",
    "index {index}, but {limit}",
    "value in {token} is not a number",
    "value in {token} is not finite",
)


class LibsvmReader(TextReader):
    """Rows as CSR arrays; index 1 of the file is column 0. The width grows with the largest index seen."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._width = options.n_features or 0

    def state(self) -> dict[str, Any]:
        """What a reader needs to go on as this one would."""
        return {"width": self._width}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self._width = state["width"]

    def _give(self, parsed: Any) -> Chunk:
        labels, starts, indices, values = parsed
        self._width = max(self._width, int(indices.max(initial=-1)) + 1)
        data = (values.astype(self._options.dtype, copy=False), indices, starts)
        return Chunk(csr_array(data, (len(labels), self._width)), self._options.labels(labels))

    def _parse(self, block: Block) -> tuple[Any, list[BadRow]]:
        options = self._options
        *rows, refused = _text.parse_libsvm(
            block.text,
            options.n_features or max(options.max_features, self._width),
            options.largest,
            options.labelled,
            options.task == "classification",
        )
        return rows, [self._refusal(block, *numbers) for numbers in refused.reshape(-1, 6).tolist()]

    def _refusal(
        self, block: Block, record: int, reason: int, start: int, end: int, index: int, last: int
    ) -> BadRow:
        token = block.text[start : min(end, start + 60)].decode("utf-8", "replace")
        column = start - (int(block.ends[record - 1]) if record else 0) + 1
        limit = f"n_features is {self._options.n_features}"
        if self._options.n_features is None:
            limit = f"max_features is {self._options.max_features:,}"
        message = _REASONS[reason].format(token=repr(token), index=index, last=last, limit=limit)
        return BadRow(record, str(column), message)
