"""`read`: the one way to open a source; checks its arguments before anything is read."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from kernelstream.stream.bad_rows import BadRows
from kernelstream.stream.datasets import DATASETS, STREAMS, did_you_mean
from kernelstream.stream.formats import FORMATS
from kernelstream.stream.named import NamedReader, own_task
from kernelstream.stream.opening import Place, place_name
from kernelstream.stream.options import MAX_FEATURES, TEXT_FEATURES, Options, Task
from kernelstream.stream.source import VERSION, Source
from kernelstream.tables.columns import check_kinds


def read(
    *sources: Place,
    format: str | None = None,
    target: str | int | Literal[False] | None = None,
    columns: Mapping[str | int, str] | None = None,
    categorical: Sequence[str | int] | Literal["auto"] = "auto",
    drop: Sequence[str | int] = (),
    max_categories: int = 64,
    hashed: int | None = None,
    text_features: int = TEXT_FEATURES,
    header: bool | None = None,
    delimiter: str | None = None,
    charset: str | None = None,
    task: Task | None = None,
    rows: int | None = None,
    seed: int = 0,
    chunk_size: int = 8192,
    latency: float | None = None,
    n_features: int | None = None,
    max_features: int = MAX_FEATURES,
    dtype: DTypeLike = np.float64,
    on_bad_row: str = "stop",
    encoding: dict[str, Any] | None = None,
    grow: bool = False,
    keep: str | int | None = None,
    resume: dict[str, Any] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
) -> Source:
    r"""Read rows in chunks, in memory that does not depend on their number. See ``docs/sources.md``.

    Args:
        sources: files in order, ``"-"`` for standard input, an open file, or the name of a data set
            (`DATASETS`) or built-in stream (`STREAMS`). Files may be packed with gzip, xz or zstd.
        format: "libsvm", "csv", "tsv", "jsonl", "parquet", "arrow", "npy" or "npz"; by default told by the
            file's name or its first bytes.
        target: the column of the label, by name or number (-1 is the last); by default the only one called
            target, label, class or y. False for rows without labels, or to leave them unread.
        columns: kinds of columns, by name or number, such as ``{"age": "number", "when": "time", "review": "text"}``:
            "number", "boolean", "category", "time", "text", "drop". Those of the others are told by their first rows.
        categorical: columns whose values are categories; then all columns that `columns` does not name must be numbers.
        drop: columns to leave out.
        max_categories: categories of a column that get a feature of their own; later ones share one.
        hashed: hash categories into this many features, instead.
        text_features: features of a column of free text, whose words and pieces of words are hashed.
        header: whether the first line of CSV has the names; by default it does if none of them is a number.
        delimiter: between the fields of CSV, one ASCII character; by default the one of ``,;|`` and tab that the first
            line that is not blank has most of, in TSV a tab.
        charset: the encoding of text, such as "latin-1"; by default UTF-8.
        task: "classification" (labels are whole numbers or text) or "regression" (labels are numbers). By default
            the data set's own, and classification for files.
        rows: stop after this many rows.
        seed: the order of a data set, the randomness of a built-in stream.
        chunk_size: the most rows per chunk. It changes the speed, not the rows.
        latency: the longest time in seconds that a row of a pipe waits for others, which it is then given with, also if
            they are fewer than `chunk_size`; with 0 those are given that have come. By default chunks are full.
        n_features: the width of LIBSVM rows, where a larger index is a bad row. By default a chunk is as wide
            as the features seen so far, so later chunks may be wider than earlier ones, never narrower.
        max_features: the most features that rows may have. A LIBSVM row with a larger index is a bad row; in other
            formats the source cannot be read on.
        dtype: type of the features, float64 or float32.
        on_bad_row: "stop", "skip", or "quarantine=FILE", which appends bad rows to a file as they came.
        encoding: `Source.encoding` of the rows that a model learnt: columns and categories become the same
            features, and none are added (LIBSVM rows may still be wider). It may come from another format.
        grow: new columns and categories get features also where `encoding` says what the others become.
        keep: a column whose values `Source.kept` has for the rows given last, as they came: of CSV, TSV, JSON lines, Parquet
            and Arrow.
        resume: a `Source.position` from an earlier read with the same arguments; its next row is the first.
        data_dir: the folder of the data sets' files; by default the environment variable ``KERNELSTREAM_DATA``.

    Examples:
        >>> import io
        >>> text = "+1 1:0.5 3:2\n-1 2:1  # a comment\n"
        >>> for X, y in read(io.StringIO(text), n_features=4):
        ...     print(X.toarray(), y)
        [[0.5 0.  2.  0. ]
         [0.  1.  0.  0. ]] [ 1 -1]
        >>> next(read(io.StringIO("+1 1:0.5\n+1 0:1\n"), chunk_size=1, on_bad_row="skip")).y
        array([1])
        >>> list(read(io.StringIO("+1 0:1\n")))
        Traceback (most recent call last):
        ...
        kernelstream.stream.bad_rows.BadRowError: <stream>, line 1, column 4: index 0 in '0:1', but indices start at 1

        >>> source = read("rings", chunk_size=500)
        >>> X, y = next(source)
        >>> again = read("rings", chunk_size=500, resume=source.position)
        >>> bool((next(source).X == next(again).X).all())
        True
    """
    if not sources:
        raise ValueError("read needs a source: a file, '-' for standard input, or the name of a data set")
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, not {chunk_size}")
    if rows is not None and rows < 0:
        raise ValueError(f"rows must not be negative, got {rows}")
    if task not in (None, "classification", "regression"):
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}")
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {np.dtype(dtype)}")
    if max_categories < 1 or (hashed is not None and hashed < 1) or text_features < 1:
        raise ValueError("max_categories, hashed and text_features must be at least 1")
    kinds = check_kinds({} if columns is None else columns)
    if n_features is not None and n_features < 1:
        raise ValueError(f"n_features must be at least 1, not {n_features}")
    if max_features < 1 or (n_features is not None and n_features > max_features):
        raise ValueError(f"max_features must be at least 1 and n_features, got {max_features}")
    if latency is not None and not latency >= 0:
        raise ValueError(f"latency must not be negative, got {latency}")
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0'):
        raise ValueError(
            f"delimiter must be one ASCII character, not a quote, a line end or NUL: {delimiter!r}"
        )
    if charset is not None:
        try:
            charset = codecs.lookup(charset).name
        except LookupError:
            raise ValueError(
                f"unknown encoding {charset!r}: say one such as utf-8, latin-1, cp1252 or utf-16"
            ) from None
    if format is not None and format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; {did_you_mean(format, FORMATS)}")
    name = sources[0] if len(sources) == 1 and format is None else None
    named = (
        isinstance(name, str)
        and name != "-"
        and not os.path.exists(name)
        and (name in DATASETS or name in STREAMS)
    )
    for place in () if named else sources:
        _check_there(place)
    if named:
        task = task or own_task(str(name))
    asked: dict[str, Any] = {
        "format": format,
        "target": target,
        "categorical": categorical if categorical == "auto" else list(categorical),
        "drop": list(drop),
        "max_categories": max_categories,
        "hashed": hashed,
        "header": header,
        "delimiter": delimiter,
        "task": task or "classification",
        "n_features": n_features,
        "dtype": np.dtype(dtype).name,
        "seed": seed if named else None,
    }
    if kinds or text_features != TEXT_FEATURES:  # positions of older versions do not have them
        asked |= {"columns": [[name, kind] for name, kind in kinds.items()], "text_features": text_features}
    _check_resume(resume, [place_name(place) for place in sources], asked)
    options = Options(
        task=task or "classification",
        target=None if target is False else target,
        labelled=target is not False,
        columns=kinds,
        categorical=categorical,
        drop=drop,
        max_categories=max_categories,
        hashed=hashed,
        text_features=text_features,
        header=header,
        delimiter=delimiter,
        chunk_size=chunk_size,
        latency=latency,
        charset=None if charset == "utf-8" else charset,
        n_features=n_features,
        max_features=max_features,
        dtype=np.dtype(dtype),
        left=None if rows is None else max(rows - (resume["rows"] if resume else 0), 0),
        frozen=encoding is not None and not grow,
        keep=keep,
        bad=BadRows(on_bad_row, resume["bad"] if resume else None),
    )
    reader = NamedReader(str(name), options, seed, data_dir) if named else None
    return Source(sources, asked, options, reader, encoding, resume)


def _check_there(place: Place) -> None:
    """A file that is not there, or a name that is not known, is told at once."""
    if not isinstance(place, str | os.PathLike) or place == "-":
        return
    if os.path.isdir(place):
        raise IsADirectoryError(f"{os.fspath(place)} is a folder: name the files in it")
    if os.path.exists(place):
        return
    text = os.fspath(place)
    hint = did_you_mean(text, [*STREAMS, *DATASETS])
    if text in STREAMS or text in DATASETS:
        hint = "a data set or stream by name is read alone, and has no format"
    elif os.path.dirname(text) or "." in text:
        raise FileNotFoundError(f"there is no file {text!r}")
    raise FileNotFoundError(f"there is no file {text!r}, and no data set or stream of that name; {hint}")


def _check_resume(resume: Any, names: list[str], asked: dict[str, Any]) -> None:
    if resume is None:
        return
    keys = {"version", "sources", "asked", "format", "file", "fingerprint", "at", "reader", "rows", "bad"}
    if not isinstance(resume, dict) or set(resume) != keys:
        raise ValueError("resume must be the position of a source, as Source.position gives it")
    if resume["version"] != VERSION:
        raise ValueError(f"the position to resume from is of version {resume['version']}, this is {VERSION}")
    if resume["sources"] != names:
        raise ValueError(f"the position to resume from is of {resume['sources']}, not of {names}")
    for key, value in asked.items():
        if resume["asked"].get(key) != value:
            raise ValueError(
                f"the position was made with {key}={resume['asked'].get(key)!r}, this is {key}={value!r}"
            )
