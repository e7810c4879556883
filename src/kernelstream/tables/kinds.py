"""The kinds of columns, and which kind a column is by its first values; dates and times as numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["number", "boolean", "category", "time", "text"]
KINDS: tuple[Kind, ...] = ("number", "boolean", "category", "time", "text")

LOOK_AHEAD = 1000
"""Rows that are looked at first, to tell what columns are."""

MOSTLY = 0.9
"""A column is of numbers, or of times, if so many of its first values are; the others are then bad rows."""

TEXT_WORDS = 3
"""In free text most values have at least so many words, and most are different."""

ONE_TEXT_WORDS = 5
"""Where one value must decide, it is free text if it has at least so many words."""

_TIME = re.compile(
    r"\d{4}([-/])\d\d\1\d\d([T ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?( ?(Z|z|UTC|GMT|[+-]\d\d:?\d\d))?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_TRUE = {"true": 1.0, "false": 0.0}
_BOOLEANS = _TRUE | {"yes": 1.0, "no": 0.0, "t": 1.0, "f": 0.0, "y": 1.0, "n": 0.0, "1": 1.0, "0": 0.0}
DAY = 86_400e6  # microseconds

TIME_PARTS = ("elapsed", "day_sin", "day_cos", "week_sin", "week_cos", "year_sin", "year_cos")
"""What a time becomes: days since the first one met, and its place in the day, in the week and in the year, each on a circle."""


def time_of(word: str) -> float:
    """A date or a time in microseconds since 1970, UTC unless it says otherwise; NaN if it is none.

    >>> time_of("1970-01-02"), time_of("1970-01-01T01:00:00+01:00"), time_of("1970/01/01 00:00:01"), time_of("12.5")
    (86400000000.0, 0.0, 1000000.0, nan)
    """
    word = word.strip()
    if not _TIME.fullmatch(word):
        return math.nan
    try:
        text = word.replace("/", "-").replace("UTC", "Z").replace("GMT", "Z").replace("z", "Z")
        return microseconds(datetime.fromisoformat(text.replace(" Z", "Z")))
    except ValueError:  # the 31st of February
        return math.nan


def microseconds(moment: datetime) -> float:
    """A moment in microseconds since 1970; UTC unless it has a zone.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 2))
    2000000.0
    """
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return float((aware - _EPOCH) // _MICROSECOND)


def boolean_of(word: str) -> float:
    """1, 0, or NaN for what is neither true nor false.

    >>> boolean_of("TRUE"), boolean_of("no"), boolean_of("maybe")
    (1.0, 0.0, nan)
    """
    return _BOOLEANS.get(word.strip().casefold(), math.nan)


def number_of(word: str) -> float:
    """A number as Python reads it, in ASCII and without underscores; NaN for what is none.

    >>> number_of(" 1e3"), number_of("1_0")
    (1000.0, nan)
    """
    if "_" in word or not word.isascii():
        return math.nan
    try:
        return float(word)
    except ValueError:
        return math.nan


def kind_of_words(words: Sequence[str | None], counts: Iterable[int]) -> Kind:
    """What a column of texts is, by its different values and how often each occurs; None is a missing one.

    >>> kind_of_words(["red", "blue", None], [5, 3, 1]), kind_of_words(["True", "false"], [1, 1])
    ('category', 'boolean')
    >>> kind_of_words(["2024-02-01", "2024-02-02 10:00"], [1, 1]), kind_of_words(["a good film", "not so good"], [1, 1])
    ('time', 'text')
    """
    present = [(word, count) for word, count in zip(words, counts, strict=True) if word is not None and count]
    rows = sum(count for _, count in present)
    if not rows:
        return "category"
    if all(word.strip().casefold() in _TRUE for word, _ in present):
        return "boolean"
    if not math.isnan(time_of(present[0][0])) or not math.isnan(time_of(present[-1][0])):
        if sum(count for word, count in present if not math.isnan(time_of(word))) >= MOSTLY * rows:
            return "time"
    if len(present) > rows / 2:
        long = sum(count for word, count in present if len(word.split(None, TEXT_WORDS)) >= TEXT_WORDS)
        if long > rows / 2:
            return "text"
    return "category"


def kind_of_word(word: str) -> Kind:
    """What a column is, by one text: for rows whose names come and go, which cannot wait.

    >>> kind_of_word("2024-02-01T10:00:00Z"), kind_of_word("red"), kind_of_word("it broke after a week")
    ('time', 'category', 'text')
    """
    if not math.isnan(time_of(word)):
        return "time"
    return "text" if len(word.split(None, ONE_TEXT_WORDS)) >= ONE_TEXT_WORDS else "category"


def time_parts(times: NDArray[np.float64], origin: float | None) -> NDArray[np.float64]:
    """The features of times (`TIME_PARTS`), all 0 where one is missing. Row by row, so that chunks do not matter.

    >>> time_parts(np.array([0.0, np.nan, 86_400e6 / 4]), 0.0)[:, :3].round(9).tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.25, 1.0, 0.0]]
    """
    parts = np.zeros((len(times), len(TIME_PARTS)))
    there = np.flatnonzero(~np.isnan(times))
    moments = times[there]
    if not len(moments):
        return parts
    parts[there, 0] = (moments - origin) / DAY if origin is not None else 0.0
    whole = moments.astype("int64").astype("datetime64[us]")
    since_new_year = (whole - whole.astype("datetime64[Y]").astype("datetime64[us]")).astype(np.int64)
    for place, share in (
        (1, np.mod(moments, DAY) / DAY),
        (3, np.mod(moments / DAY + 3, 7) / 7),  # the first of January 1970 was a Thursday
        (5, since_new_year / (365.25 * DAY)),
    ):
        angles = (
            2 * math.pi * share
        ).tolist()  # one by one: NumPy's own may differ with the place in an array
        parts[there, place] = [math.sin(angle) for angle in angles]
        parts[there, place + 1] = [math.cos(angle) for angle in angles]
    return parts


def canonical(value: Any) -> str:
    """A value that is not a text as a category: whole numbers without a point.

    >>> canonical(3.0), canonical(True), canonical(2.5)
    ('3', 'true', '2.5')
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        return str(int(value)) if math.isfinite(value) and value == int(value) else repr(float(value))
    return str(value)
