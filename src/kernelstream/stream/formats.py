"""Which format a file has, and its reader."""

from __future__ import annotations

import importlib
import os
import re
from typing import Any

from kernelstream.stream.bad_rows import SourceError
from kernelstream.stream.opening import Opened
from kernelstream.stream.options import Options

FORMATS = {
    "libsvm": ("libsvm", "LibsvmReader"),
    "csv": ("delimited", "CsvReader"),
    "tsv": ("delimited", "TsvReader"),
    "jsonl": ("jsonl", "JsonlReader"),
    "parquet": ("arrow", "ParquetReader"),
    "arrow": ("arrow", "ArrowReader"),
    "npy": ("arrays", "NpyReader"),
    "npz": ("arrays", "NpzReader"),
}
"""The formats, and the module and class that read them: pyarrow is only imported when it is needed."""

TEXT = ("libsvm", "csv", "tsv", "jsonl")
"""The formats that are text."""

_ENDINGS = {
    "libsvm": "libsvm", "svm": "libsvm", "svmlight": "libsvm",
    "csv": "csv", "tsv": "tsv", "tab": "tsv",
    "jsonl": "jsonl", "ndjson": "jsonl", "json": "jsonl",
    "parquet": "parquet", "pq": "parquet",
    "arrow": "arrow", "arrows": "arrow", "ipc": "arrow", "feather": "arrow",
    "npy": "npy", "npz": "npz",
}  # fmt: skip
_PACKED = re.compile(r"\.(gz|xz|zst|zstd)$", re.IGNORECASE)
_LIBSVM_LINE = re.compile(rb"\s*[-+.\w]+(\s+\d+:[^\s:]+)+\s*(#.*)?$|\s*[-+]?\d[.\d]*\s*$")


def sniff(opened: Opened) -> str:
    r"""The format by the file's name, or else by its first bytes.

    >>> import io
    >>> sniff(Opened(io.BytesIO(b"+1 3:1 7:0.5\n"))), sniff(Opened(io.BytesIO(b"a,b\n1,2\n")))
    ('libsvm', 'csv')
    """
    ending = _PACKED.sub("", os.path.basename(opened.name)).rpartition(".")[2].lower()
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    head = opened.peek_line()
    for mark, name in (
        (b"PAR1", "parquet"),
        (b"ARROW1", "arrow"),
        (b"\x93NUMPY", "npy"),
        (b"PK\x03\x04", "npz"),
    ):
        if head.startswith(mark):
            return name
    line = head.removeprefix(b"\xef\xbb\xbf").rstrip()
    if line.startswith(b"\xff\xff\xff\xff"):
        return "arrow"  # a stream without a file's mark
    if line.startswith(b"{"):
        return "jsonl"
    if not line or line.lstrip().startswith(b"#") or _LIBSVM_LINE.match(line):
        return "libsvm"
    if b"\t" in line:
        return "tsv"
    if any(mark in line for mark in (b",", b";", b"|")):
        return "csv"
    raise SourceError(f"cannot tell the format of {opened.name}: say one of {', '.join(FORMATS)}")


def make_reader(name: str, options: Options) -> Any:
    """A reader of a format."""
    module, kind = FORMATS[name]
    return getattr(importlib.import_module(f"kernelstream.stream.{module}"), kind)(options)
