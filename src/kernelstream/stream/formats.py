"""Which format a file has, and its reader."""

from __future__ import annotations

import importlib
import os
import re
from typing import Any

from kernelstream.stream.bad_rows import SourceError
from kernelstream.stream.delimited import DELIMITERS, count_delimiters
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
    if ending in ("xlsx", "xls", "ods"):
        raise SourceError(f"{opened.name} is a spreadsheet, which is not read here: save it as CSV")
    head = opened.peek_line()
    for mark, name in (
        (b"PAR1", "parquet"),
        (b"ARROW1", "arrow"),
        (b"\x93NUMPY", "npy"),
        (b"PK\x03\x04", "npz"),
    ):
        if head.startswith(mark):
            return name
    line = head.rstrip()
    if line.startswith(b"\xff\xff\xff\xff"):
        return "arrow"  # a stream without a file's mark
    if line.startswith(b"{"):
        return "jsonl"
    if not line or line.lstrip().startswith(b"#") or _LIBSVM_LINE.match(line):
        return "libsvm"
    if any(mark.encode() in line for mark in DELIMITERS):
        counts = count_delimiters(opened)
        tabs = counts.pop("\t")  # which of the others it is, CSV's reader finds out
        return "tsv" if tabs > max(counts.values()) else "csv"
    raise SourceError(f"cannot tell the format of {opened.name}: say one of {', '.join(FORMATS)}")


_MARKS = {
    b"PK\x03\x04": "a zip archive, as spreadsheets are too: unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a spreadsheet: save it as CSV",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"%PDF": "a PDF document",
    b"PAR1": "Parquet: say format='parquet'",
    b"ARROW1": "Arrow: say format='arrow'",
    b"\xff\xfe": "text in UTF-16: say charset='utf-16'",
    b"\xfe\xff": "text in UTF-16: say charset='utf-16'",
    b"<!doctype": "a web page: did its download fail?",
    b"<html": "a web page: did its download fail?",
    b"<?xml": "XML, which is not read here",
    b"SQLite format": "a database: export the table as CSV",
}


def check_text(opened: Opened, name: str) -> None:
    r"""Refuse what is no text of a format, by its first line.

    >>> import io
    >>> check_text(Opened(io.BytesIO(b"%PDF-1.7")), "csv")
    Traceback (most recent call last):
    ...
    kernelstream.tables.errors.SourceError: <stream> is not csv: it is a PDF document
    """
    line = opened.peek_line()
    head = line[:1000]
    for mark, what in _MARKS.items():
        if head[: len(mark)].lower() == mark.lower():
            raise SourceError(f"{opened.name} is not {name}: it is {what}")
    first = head.partition(b"\r")[0]  # a record may end so, too
    controls = sum(byte < 32 and byte not in b"\t\n\f\v" for byte in first)
    if name in ("csv", "tsv") and b"\0" in first and controls > 0.3 * len(first) and len(first) > 8:
        raise SourceError(f"{opened.name} is not {name}: its first line is not text, but binary data")
    if name in ("csv", "tsv") and head.startswith(b'{"') and head.rstrip().endswith(b"}"):
        raise SourceError(f"{opened.name} is not {name}: it looks like JSON lines: say format='jsonl'")


def make_reader(name: str, options: Options) -> Any:
    """A reader of a format."""
    module, kind = FORMATS[name]
    return getattr(importlib.import_module(f"kernelstream.stream.{module}"), kind)(options)
