"""CSV and JSON lines, slow and obvious, straight from "The grammar of text" in docs/sources.md.

Both give what `read` must give: rows as ``({feature: value}, label)``, and a message per bad row, without the file's name.
"""

import json
import math
import re

MISSING = {b"", b"?", b"NA", b"N/A", b"NaN", b"nan", b"null", b"NULL", b"None"}
BLANKS = b" \t\r\v\f\n"
NUMBER = re.compile(rb"[-+]?((\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|inf|infinity|nan)", re.IGNORECASE)


COMMA_OR_DATE = re.compile(r"[-+]?(\d+,\d*|,\d+)([eE][-+]?\d+)?|\d+[./-]\d+[./-]\d+.*")


class Bad(Exception):
    pass


class Beyond(Exception):
    """A column may be of a kind that this parser does not know: decimal commas, dates, booleans, free text."""


def csv_delimiter(text):
    """The one of ``,;|`` and tab that the first line that is not blank has most of, character by character."""
    text = text.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    counts, begins, blank, inside = dict.fromkeys(",;\t|", 0), True, True, False
    i = 0
    while i < len(text):
        c = text[i]
        if inside:
            if text[i : i + 2] == '""':
                i += 1
            elif c == '"':
                inside = False
        elif c in "\r\n":
            if not blank:
                break
            counts, begins = dict.fromkeys(counts, 0), True
        else:
            inside = begins and c == '"'
            begins = c in counts
            blank = blank and c in " \t"
            if c in counts:
                counts[c] += 1
        i += 1
    most = max(counts.values())
    best = [mark for mark in counts if counts[mark] == most]
    if blank or "," in best:
        return b","
    if len(best) > 1:
        told = " and ".join(f"{most} of {mark!r}" for mark in best)
        raise ValueError(
            f"<stream>: cannot tell the delimiter, as the first line has {told}: say delimiter=CHARACTER"
        )
    return best[0].encode()


def csv_records(text, delimiter):
    """``(line, raw, fields or a Bad)`` of each record, character by character."""
    i, line, records = 0, 1, []
    text = text.removeprefix(b"\xef\xbb\xbf")
    while i < len(text):
        start, fields, fault, blank = i, [], None, True
        while True:  # a field
            field = bytearray()
            if text[i : i + 1] == b'"':
                blank = False
                i += 1
                while True:
                    if i == len(text):
                        fault = fault or Bad("a quote is not closed")
                        break
                    if text[i : i + 2] == b'""':
                        field += b'"'
                        i += 2
                    elif text[i : i + 1] == b'"':
                        i += 1
                        break
                    else:
                        field += text[i : i + 1]
                        i += 1
                if i < len(text) and text[i : i + 1] not in (delimiter, b"\r", b"\n"):
                    fault = fault or Bad("text after the quote that ends a field")
                    while i < len(text) and text[i : i + 1] not in (delimiter, b"\r", b"\n"):
                        i += 1
            else:
                while i < len(text) and text[i : i + 1] not in (delimiter, b"\r", b"\n"):
                    blank = blank and text[i : i + 1] in (b" ", b"\t")
                    field += text[i : i + 1]
                    i += 1
            fields.append(bytes(field))
            if text[i : i + 1] != delimiter:
                break
            blank = False
            i += 1
        i += 2 if text[i : i + 2] == b"\r\n" else 1 if i < len(text) else 0
        raw = text[start:i]
        if not blank:
            records.append((line, raw, fault or fields))
        line += len(re.findall(rb"\r\n|\r|\n", raw))
    return records


def number(field):
    """A float, or None for what is no number."""
    field = field.strip(BLANKS)
    return float(field) if NUMBER.fullmatch(field) else None


def of_another_kind(word):
    """Whether such words may make a column of decimal commas, dates, booleans or free text; rather too often than too rarely."""
    return (
        COMMA_OR_DATE.fullmatch(word.strip()) is not None
        or len(word.split()) > 2
        or word.strip().casefold() in ("true", "false")
    )


def shown(field):
    return repr(field.decode("utf-8", "backslashreplace")[:60])


def parse_csv(text, delimiter=None, header=None, task="classification", max_categories=64):
    """What `read` must give with ``target=-1``. A ValueError has the message of what cannot be read at all."""
    records = csv_records(text, csv_delimiter(text) if delimiter is None else delimiter.encode())
    if not records:
        return [], []
    line, _, first = records[0]
    if isinstance(first, Bad):
        raise ValueError(f"line {line}: {first}")
    if header is None:
        header = not any((value := number(field)) is not None and value == value for field in first)
    if header:
        try:
            names = [field.decode().strip() for field in first]
        except UnicodeDecodeError:
            raise ValueError(
                f"line {line}: the names of the columns are not UTF-8: say charset='latin-1' or the like"
            ) from None
        records = records[1:]
    else:
        names = [str(i) for i in range(len(first))]
    for i, name in enumerate(names):
        if name in names[i + 1 :]:
            raise ValueError(f"<stream> has two columns called {name!r}")
    target = len(names) - 1
    if target == 0:
        raise ValueError("<stream> has no column left for the features")
    ahead = [f for _, _, f in records[:1000] if not isinstance(f, Bad) and len(f) == len(names)]

    def mostly(column, test):
        present = [fields[column] for fields in ahead if fields[column] not in MISSING]
        return sum(map(test, present)) >= 0.9 * len(present)

    def is_number(field):
        return (value := number(field)) is not None and value == value

    def is_whole(field):
        return is_number(field) and math.isfinite(float(field)) and float(field).is_integer()

    kinds = ["number" if mostly(i, is_number) else "category" for i in range(target)]
    looked_at = [i for i in range(target) if kinds[i] == "category"]
    if task == "regression" and not mostly(target, is_number):
        looked_at.append(target)
    for i in looked_at:
        words = [fields[i].decode("utf-8", "replace") for fields in ahead if fields[i] not in MISSING]
        if any(map(of_another_kind, words)):
            raise Beyond
    whole = task == "classification" and mostly(target, is_whole)
    text_label = task == "classification" and not whole
    rows, bad, features = [], [], {}
    for i, name in enumerate(names[:target]):
        if kinds[i] == "number":
            features[name, "number"] = len(features)
    categories = dict.fromkeys(names, 0)
    for line, _, fields in records:
        column = None
        try:
            if isinstance(fields, Bad):
                raise fields
            if len(fields) != len(names):
                raise Bad(f"{len(fields)} fields, but there are {len(names)} columns")
            numbers, words = {}, {}
            for i, (column, field) in enumerate(zip(names, fields, strict=True)):
                if i < target and kinds[i] == "number":
                    value = math.nan if field in MISSING else number(field)
                    if value is None:
                        raise Bad(f"{shown(field)} is not a number (a column of another kind: columns=)")
                    if math.isinf(value):
                        raise Bad(f"{shown(field)} is not finite")
                    numbers[column] = value
                elif i < target or text_label:
                    if i == target and field in MISSING:
                        raise Bad("the label is missing")
                    try:
                        words[column] = None if field in MISSING else field.decode()
                    except UnicodeDecodeError:
                        raise Bad(
                            "the text is not UTF-8 (another encoding: charset='latin-1' or the like)"
                        ) from None
                else:
                    if field in MISSING:
                        raise Bad("the label is missing")
                    label = number(field)
                    if label is None:
                        raise Bad(f"label {shown(field)} is not a number")
                    if not math.isfinite(label):
                        raise Bad(f"label {shown(field)} is not finite")
                    if whole and (label != int(label) or abs(label) > 2**53):
                        raise Bad(
                            f"label {shown(field)} is not a whole number (a regression takes any: task='regression')"
                        )
        except Bad as error:
            at = "" if column is None else f", column {column!r}"
            bad.append(f"line {line}{at}: {error}")
            continue
        if text_label:
            label = words.pop(names[target])
        row = {}
        for name, value in numbers.items():
            if value != value:
                row[features.setdefault((name, "missing"), len(features))] = 1.0
            elif value:
                row[features[name, "number"]] = value
        for name, word in words.items():
            if (name, word) not in features:
                if categories[name] >= max_categories:
                    word = "other", "than", "these"
                else:
                    categories[name] += 1
            row[features.setdefault((name, word), len(features))] = 1.0
        rows.append((row, label))
    return rows, bad


def _pairs(pairs):
    names = [name for name, _ in pairs]
    again = [name for i, name in enumerate(names) if name in names[:i]]
    return {"again": again, "pairs": pairs}


def parse_jsonl(text, task="classification"):
    rows, bad, features = [], [], {}
    target, kind = None, "number" if task == "regression" else None
    for line, raw in enumerate(text.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not raw.strip(BLANKS):
            continue
        column = None
        try:
            try:
                decoded = raw.decode()
            except UnicodeDecodeError:
                raise Bad("the text is not UTF-8") from None
            if not decoded.lstrip(" \t\r").startswith("{"):
                raise Bad("expected an object in braces")
            try:
                row = json.loads(decoded, parse_int=float, object_pairs_hook=_pairs)
            except json.JSONDecodeError:
                raise Bad("not JSON") from None
            if re.search("[\ud800-\udfff]", _texts(row)):
                raise Bad("half of a surrogate pair, which is no character")
            if row["again"]:
                column = row["again"][0]
                raise Bad("the name occurs twice")
            members = dict(row["pairs"])
            if target is None:
                names = [name for name in members if name.lower() in ("target", "label", "class", "y")]
                if len(names) != 1:
                    raise Bad("which is the label?")
                target = names[0]
            column, label = target, members.get(target)
            if label is None:
                raise Bad("the label is missing")
            if isinstance(label, dict | list):
                raise Bad("a nested value; only numbers, texts, true, false and null can be read")
            kind = kind or ("text" if isinstance(label, str) else "whole")
            if isinstance(label, str) != (kind == "text"):
                raise Bad("label")
            if kind != "text":
                label = float(label)
                if not math.isfinite(label):
                    raise Bad("label")
                if kind == "whole" and (label != int(label) or abs(label) > 2**53):
                    raise Bad("label")
            entries = {}
            for column, value in members.items():
                if column == target or value is None:
                    continue
                if isinstance(value, dict | list):
                    raise Bad("a nested value; only numbers, texts, true, false and null can be read")
                if isinstance(value, str):
                    entries[column, "=" + value] = 1.0
                elif not math.isfinite(value):
                    raise Bad("not finite")
                else:
                    entries[column, ""] = float(value)
        except Bad as error:
            at = "" if column is None else f", column {column!r}"
            bad.append(f"line {line}{at}: {error}")
            continue
        for name in sorted(entries):
            features.setdefault(name, len(features))
        rows.append(({features[name]: value for name, value in entries.items() if value}, label))
    return rows, bad


def _texts(value):
    """All texts in a value, put together."""
    if isinstance(value, str):
        return value + "\n"
    if isinstance(value, dict):
        return "".join(name + "\n" + _texts(item) for name, item in value["pairs"])
    return "".join(map(_texts, value)) if isinstance(value, list) else ""
