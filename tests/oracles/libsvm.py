"""LIBSVM text one line at a time, with Python's own float(): slow and obvious."""

import math


def parse_lines(lines, n_features=None):
    """Rows ``(label, [(index, value), ...])`` and, for each line refused, ``(number, reason)``; numbers from 1."""
    rows, refused = [], []
    for number, line in enumerate(lines, 1):
        try:
            if row := _parse(line, n_features):
                rows.append(row)
        except ValueError as error:
            refused.append((number, str(error)))
    return rows, refused


def _parse(line, n_features):
    text = line.partition(b"#")[0].decode("latin-1")
    for blank in "\t\r\v\f\n":
        text = text.replace(blank, " ")
    label, *pairs = [token for token in text.split(" ") if token] or [""]
    if not label:
        return None
    target = _finite(label, f"label {label!r}")
    row, last = [], 0
    for pair in pairs:
        left, colon, right = pair.partition(":")
        if not (colon and left and right):
            raise ValueError(f"expected index:value, found {pair!r}")
        index = _finite(left, f"index in {pair!r}")
        if index != int(index):
            raise ValueError(f"index in {pair!r} is not a whole number")
        if index < 1:
            raise ValueError(f"index {int(index)} in {pair!r}, but indices start at 1")
        if index >= 2**31:
            raise ValueError(f"index {int(index)} in {pair!r}, but the largest allowed is {2**31 - 1}")
        if index <= last:
            raise ValueError(f"index {int(index)} after index {last}, but indices must increase")
        if n_features is not None and index > n_features:
            raise ValueError(f"index {int(index)}, but n_features is {n_features}")
        last = int(index)
        row.append((last, _finite(right, f"value in {pair!r}")))
    return target, row


def _finite(text, what):
    try:
        number = float(text) if text.isascii() and "_" not in text and text.isprintable() else None
    except ValueError:
        number = None
    if number is None:
        raise ValueError(f"{what} is not a number")
    if not math.isfinite(number):
        raise ValueError(f"{what} is not finite")
    return number
