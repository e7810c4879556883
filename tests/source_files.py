"""One table, written in every format, and what is read of it: for the tests of `kernelstream.stream.read`."""

import gzip
import io
import itertools
import json
import lzma

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from kernelstream.stream import read


def zstd(data):
    return pa.Codec("zstd").compress(data, asbytes=True)


PACKINGS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd}


def dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


def collect(chunks):
    """All rows as one dense matrix, as wide as the last chunk, and all labels."""
    chunks = list(chunks)
    widths = [X.shape[1] for X, _ in chunks]
    assert widths == sorted(widths)
    X = np.zeros((sum(X.shape[0] for X, _ in chunks), widths[-1] if widths else 0))
    at = 0
    for part, _ in chunks:
        X[at : at + part.shape[0], : part.shape[1]] = dense(part)
        at += part.shape[0]
    y = None if chunks and chunks[0].y is None else np.concatenate([y for _, y in chunks] or [[]])
    return X, y


ROWS = 57


rng = np.random.default_rng(0)


AGE = [None if i % 11 == 3 else round(float(v), 3) for i, v in enumerate(rng.normal(40, 10, ROWS))]


TOWN = [
    None if i % 13 == 5 else ["Rome", "Oslo", "São Paulo", 'a "b", c'][k]
    for i, k in enumerate(rng.integers(4, size=ROWS))
]


SIZE = rng.integers(-5, 5, ROWS).tolist()


CLASS = rng.choice(["yes", "no"], ROWS).tolist()


def quoted(value):
    text = "" if value is None else str(value)
    return '"' + text.replace('"', '""') + '"' if set(text) & set('",\n') else text


def write_csv(path, delimiter=",", header=True):
    rows = zip(AGE, TOWN, SIZE, CLASS, strict=True)
    body = "".join(delimiter.join(map(quoted, row)) + "\n" for row in rows)
    path.write_text(
        (delimiter.join(["age", "town", "size", "class"]) + "\n") * header + body, encoding="utf-8"
    )


def write_jsonl(path):
    rows = [
        dict(zip(["age", "town", "size", "class"], row, strict=True))
        for row in zip(AGE, TOWN, SIZE, CLASS, strict=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def table():
    return pa.table({"age": AGE, "town": TOWN, "size": SIZE, "class": CLASS})


def write_parquet(path):
    pa.parquet.write_table(table(), path, row_group_size=10)


def write_feather(path):
    pa.feather.write_feather(table(), str(path), chunksize=9)


def write_arrow_stream(path):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table().schema) as writer:
        writer.write_table(table(), max_chunksize=8)


WRITERS = {
    "rows.csv": write_csv,
    "rows.tsv": lambda path: write_csv(path, "\t"),
    "rows.jsonl": write_jsonl,
    "rows.parquet": write_parquet,
    "rows.feather": write_feather,
    "rows.arrows": write_arrow_stream,
}


def expected_table():
    """Age, size, then features in the order in which they are first needed."""
    features, rows = {}, []
    for age, town, size in zip(AGE, TOWN, SIZE, strict=True):
        row = {0: age or 0.0, 1: float(size)}
        if age is None:
            row[features.setdefault("age missing", 2 + len(features))] = 1.0
        row[features.setdefault(town, 2 + len(features))] = 1.0
        rows.append(row)
    X = np.zeros((ROWS, 2 + len(features)))
    for i, row in enumerate(rows):
        for column, value in row.items():
            X[i, column] = value
    return X


def resumed(arguments, chunk_size, after, **more):
    """All rows of a read that is stopped and taken up again after every `after` chunks, through JSON."""
    position, chunks = None, []
    while True:
        source = read(*arguments, chunk_size=chunk_size, resume=position, **more)
        with source:
            new = list(itertools.islice(source, after))
            position = json.loads(json.dumps(source.position))
        chunks += new
        if not new:
            return chunks, source


def csv(text, **arguments):
    return read(io.BytesIO(text.encode()), format="csv", **arguments)
