"""Small files as practitioners have them, made with a seed: categories, gaps, dates, outliers, a rare class, text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from kernelstream.stream.catalogue import did_you_mean

__all__ = ["EXAMPLES", "example"]

Rng = np.random.Generator


def _adult(rng: Rng) -> Iterable[dict[str, Any]]:
    """People and whether they earn more than 50,000: numbers, categories, gaps marked with a question mark."""
    education = {"school": 9, "college": 12, "bachelor": 13, "master": 14, "doctor": 16}
    for _ in range(3000):
        age, sex = int(rng.integers(17, 80)), rng.choice(["female", "male"])
        studied = str(rng.choice(list(education), p=[0.4, 0.25, 0.2, 0.1, 0.05]))
        married = rng.random() < min(0.8, 0.02 * (age - 17))
        job = str(rng.choice(["clerk", "craft", "manager", "sales", "service", "technician"]))
        hours = int(np.clip(rng.normal(40, 10), 5, 99))
        gain = int(rng.exponential(6000)) if rng.random() < 0.08 else 0
        odds = -6 + 0.35 * (education[studied] - 9) + 1.6 * married + 0.04 * (hours - 40) + gain / 4000
        odds += 1.2 * (job in ("manager", "technician")) + 0.08 * min(age - 17, 30) - 0.2 * (sex == "female")
        yield {
            "age": age,
            "education": studied,
            "married": "yes" if married else "no",
            "job": "?" if rng.random() < 0.05 else job,
            "sex": sex,
            "hours": "" if rng.random() < 0.03 else hours,
            "gain": gain,
            "income": ">50K" if rng.random() < 1 / (1 + np.exp(-odds)) else "<=50K",
        }


def _fraud(rng: Rng) -> Iterable[dict[str, Any]]:
    """Payments, one in a hundred a fraud."""
    now = datetime(2026, 3, 1)
    for number in range(4000):
        now += timedelta(seconds=float(rng.exponential(40)))
        fraud = rng.random() < 0.01
        amount = rng.lognormal(5.2 if fraud else 3.2, 0.9)
        yield {
            "payment": f"p{number:05d}",
            "when": now.isoformat(sep=" ", timespec="seconds"),
            "amount": f"{amount:.2f}",
            "shop": rng.choice(["food", "fuel", "games", "phones", "travel"], p=_shares(fraud)),
            "abroad": "yes" if rng.random() < (0.6 if fraud else 0.05) else "no",
            "last_hour": int(rng.poisson(3.0 if fraud else 0.4)),
            "fraud": int(fraud),
        }


def _shares(fraud: bool) -> list[float]:
    return [0.05, 0.05, 0.3, 0.4, 0.2] if fraud else [0.5, 0.25, 0.1, 0.05, 0.1]


def _prices(rng: Rng) -> Iterable[dict[str, Any]]:
    """Flats and their prices: dates, gaps, and one price in two hundred with a zero too many."""
    day = datetime(2023, 1, 2)
    districts = {"centre": 6000, "harbour": 5200, "north": 3500, "south": 4100, "west": 4600}
    for _ in range(2000):
        day += timedelta(hours=float(rng.exponential(8)))
        district = str(rng.choice(list(districts)))
        area = float(np.clip(rng.normal(75, 25), 20, 200))
        built = int(rng.integers(1900, 2024))
        season = 1 + 0.05 * np.sin(2 * np.pi * day.timetuple().tm_yday / 365)
        price = area * districts[district] * season * (1 + 0.001 * (built - 1960)) * rng.normal(1, 0.08)
        yield {
            "sold": day.date().isoformat(),
            "district": district,
            "area": f"{area:.1f}",
            "rooms": "" if rng.random() < 0.1 else max(1, round(area / 25)),
            "built": "" if rng.random() < 0.15 else built,
            "price": round(float(price) * (10 if rng.random() < 0.005 else 1)),
        }


def _reviews(rng: Rng) -> Iterable[dict[str, Any]]:
    """Reviews as text, and whether they are good."""
    words = {
        "good": ["great", "excellent", "happy", "perfect", "recommend", "fast", "quiet", "love it"],
        "bad": ["broken", "terrible", "refund", "slow", "noisy", "never again", "waste", "cheap plastic"],
    }
    common = ["the", "it", "this", "machine", "after", "one", "week", "delivery", "box", "and", "was", "came"]
    for _ in range(600):
        label = "good" if rng.random() < 0.6 else "bad"
        other = "bad" if label == "good" else "good"
        text = list(rng.choice(common, rng.integers(4, 12)))
        text += list(rng.choice(words[label], rng.integers(1, 4)))
        text += list(rng.choice(words[other], 1)) if rng.random() < 0.15 else []
        yield {"review": " ".join(rng.permutation(text)).capitalize() + ".", "label": label}


def _sensors(rng: Rng) -> Iterable[dict[str, Any]]:
    """Readings of machines, as JSON; some sensors are silent now and then."""
    now = datetime(2026, 5, 4, 6)
    for number in range(1200):
        now += timedelta(seconds=float(rng.exponential(15)))
        mode = str(rng.choice(["idle", "run", "boost"], p=[0.2, 0.6, 0.2]))
        speed = {"idle": 300, "run": 1500, "boost": 2400}[mode] * rng.normal(1, 0.05)
        vibration, heat = rng.gamma(2, 0.4), rng.normal(40 + speed / 60, 4)
        fault = bool(vibration > 1.6 and heat > 62) or rng.random() < 0.01
        record = {
            "id": f"m{number:04d}",
            "at": now.isoformat(timespec="seconds"),
            "mode": mode,
            "speed": round(float(speed), 1),
            "vibration": round(float(vibration), 3),
            "heat": round(float(heat), 1),
            "fault": "yes" if fault else "no",
        }
        if rng.random() < 0.05:
            del record["heat"]
        yield record


EXAMPLES: dict[str, Callable[[Rng], Iterable[dict[str, Any]]]] = {
    "adult.csv": _adult,
    "fraud.csv": _fraud,
    "prices.csv": _prices,
    "reviews.csv": _reviews,
    "sensors.jsonl": _sensors,
}
"""The files, and what makes their rows."""


def example(name: str) -> bytes:
    """The text of an example; the same every time.

    >>> example("reviews.csv").splitlines()[0]
    b'review,label'
    """
    if name not in EXAMPLES:
        raise ValueError(f"unknown example {name!r}; {did_you_mean(name, EXAMPLES)}")
    rows = list(EXAMPLES[name](np.random.default_rng(sum(name.encode()))))
    if Path(name).suffix == ".jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    text = io.StringIO()
    out = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
    return text.getvalue().encode()
