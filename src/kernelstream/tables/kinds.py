"""The kinds of columns, and which kind a column is by its first values; dates and times as numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["number", "boolean", "category", "time", "text", "decimal-comma", "day-first", "month-first"]
KINDS: tuple[Kind, ...] = (
    "number",
    "boolean",
    "category",
    "time",
    "text",
    "decimal-comma",
    "day-first",
    "month-first",
)
OF_NUMBERS: tuple[Kind, ...] = ("number", "boolean", "decimal-comma")
OF_TIMES: tuple[Kind, ...] = ("time", "day-first", "month-first")

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
_CLOCK = r"([T ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?)?"
_YEAR_LAST = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})(" + _CLOCK + ")")
_COMMA = re.compile(r"[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
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


def moment_of(word: str) -> float:
    """As `time_of`; seconds since 1970 are a time, too, from 1973 on: smaller numbers are hardly meant so.

    >>> moment_of("1700000000"), moment_of("17")
    (1700000000000000.0, nan)
    """
    moment = time_of(word)
    if math.isnan(moment):
        seconds = number_of(word)
        return seconds * 1e6 if 1e8 <= abs(seconds) < 1e11 else math.nan
    return moment


def day_first_of(word: str) -> float:
    """As `time_of`, of dates such as 31.5.2024, 31/05/2024 12:30 and 31-05-2024.

    >>> day_first_of("2.1.1970"), day_first_of("02/01/1970 00:00"), day_first_of("1970-01-02"), day_first_of("31.2.1970")
    (86400000000.0, 86400000000.0, 86400000000.0, nan)
    """
    found = _YEAR_LAST.fullmatch(word.strip())
    return time_of(f"{found[4]}-{found[3]:0>2}-{found[1]:0>2}{found[5]}") if found else time_of(word)


def month_first_of(word: str) -> float:
    """As `time_of`, of dates such as 05/31/2024.

    >>> month_first_of("01/02/1970"), month_first_of("13/1/1970")
    (86400000000.0, nan)
    """
    found = _YEAR_LAST.fullmatch(word.strip())
    return time_of(f"{found[4]}-{found[1]:0>2}-{found[3]:0>2}{found[5]}") if found else time_of(word)


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


def comma_number_of(word: str) -> float:
    """A number with a decimal comma; NaN for what is none.

    >>> comma_number_of("1,5"), comma_number_of("-12"), comma_number_of("1.234,5")
    (1.5, -12.0, nan)
    """
    return float(word.strip().replace(",", ".")) if _COMMA.fullmatch(word.strip()) else math.nan


READ: dict[str, tuple[Callable[[str], float], str]] = {
    "number": (number_of, "a number"),
    "boolean": (boolean_of, "true or false"),
    "decimal-comma": (comma_number_of, "a number such as 1,5"),
    "time": (moment_of, "a date or a time such as 2024-05-31 12:30:00"),
    "day-first": (day_first_of, "a date such as 31.05.2024"),
    "month-first": (month_first_of, "a date such as 05/31/2024"),
}
"""How a word becomes a number or a time, by the kind of its column, and what it should have been."""


class UnclearColumnError(ValueError):
    """What a column is cannot be told: somebody must say it."""


def kind_of_words(words: Sequence[str | None], counts: Iterable[int]) -> Kind:
    """What a column of texts is, by its different values and how often each occurs; None is a missing one.

    >>> kind_of_words(["red", "blue", None], [5, 3, 1]), kind_of_words(["True", "false"], [1, 1])
    ('category', 'boolean')
    >>> kind_of_words(["0,5", "12", "3,25"], [1, 1, 1]), kind_of_words(["31/12/2024", "01/02/2024"], [1, 1])
    ('decimal-comma', 'day-first')
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
    kind = _dates_or_commas(present, MOSTLY * rows)
    if kind is not None:
        return kind
    if len(present) > rows / 2:
        long = sum(count for word, count in present if len(word.split(None, TEXT_WORDS)) >= TEXT_WORDS)
        if long > rows / 2:
            return "text"
    return "category"


def _dates_or_commas(present: Sequence[tuple[str, int]], enough: float) -> Kind | None:
    """Dates that end with their year, and numbers with a comma, if so many values are."""
    dates = [(found, count) for word, count in present if (found := _YEAR_LAST.fullmatch(word.strip()))]
    if dates and sum(count for _, count in dates) >= enough:
        firsts, seconds = (max(int(found[part]) for found, _ in dates) for part in (1, 3))
        if firsts > 12 >= seconds or (seconds <= 12 and all(found[2] == "." for found, _ in dates)):
            return "day-first"
        if seconds > 12 >= firsts:
            return "month-first"
        if firsts <= 12:
            raise UnclearColumnError(
                f"has dates such as {dates[0][0][0]!r}, of which the day or the month may come first: "
                "say whether it is day-first or month-first"
            )
    numbers = [(word.strip(), count) for word, count in present if _COMMA.fullmatch(word.strip())]
    with_comma = [word for word, _ in numbers if "," in word]
    if with_comma and sum(count for _, count in numbers) >= enough:
        if all(_THOUSANDS.fullmatch(word) for word in with_comma):
            raise UnclearColumnError(
                f"has values such as {with_comma[0]!r}, whose comma may part decimals or thousands: "
                "say decimal-comma or category, or write thousands without commas"
            )
        return "decimal-comma"
    return None


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
