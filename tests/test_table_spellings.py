"""Decimal commas, days first, seconds, durations; and kinds that were said, for every form of a table."""

import datetime
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kernelstream
from kernelstream import KernelClassifier, KernelRegressor, TableEncoder, cli
from kernelstream.stream import SourceError, read
from kernelstream.tables.kinds import comma_number_of, day_first_of, kind_of_words, month_first_of, time_of

DAYS = [datetime.date(2023, 1, 1) + datetime.timedelta(days=17 * i) for i in range(40)]
PRICES = [round(1.25 * i - 7, 2) for i in range(40)]


def csv(path, dates, numbers, label="y"):
    rows = "".join(f"{d};{x};{i % 2}\n" for i, (d, x) in enumerate(zip(dates, numbers, strict=True)))
    path.write_text(f"when;price;{label}\n{rows}")
    return str(path)


@pytest.mark.parametrize(
    ("form", "kind"),
    [("%d.%m.%Y", "day-first"), ("%d/%m/%Y", "day-first"), ("%m/%d/%Y", "month-first"), ("%Y-%m-%d", "time")],
)
def test_every_spelling_gives_the_same_features(tmp_path, form, kind):
    plain = csv(tmp_path / "plain.csv", [day.isoformat() for day in DAYS], PRICES)
    other = csv(
        tmp_path / "other.csv",
        [day.strftime(form) for day in DAYS],
        [str(price).replace(".", ",") for price in PRICES],
    )
    sources = [read(path, delimiter=";") for path in (plain, other)]
    (X, y), (X2, y2) = (next(source) for source in sources)
    assert (y == y2).all()
    assert (X == X2).all()
    assert sources[1].encoding["kinds"] == {"when": kind, "price": "decimal-comma"}
    frame = pd.read_csv(other, delimiter=";").drop(columns="y")
    assert (TableEncoder().fit(frame).transform(frame) == X2).all()


def test_a_label_with_decimal_commas_is_a_regression(tmp_path):
    path = tmp_path / "sales.csv"
    path.write_text("n;sales\n" + "".join(f"{i};{str(i * 0.75).replace('.', ',')}\n" for i in range(60)))
    ((_, y),) = read(path, target="sales", task="regression")
    assert y.tolist() == [i * 0.75 for i in range(60)]
    path.write_text(path.read_text() + "61;many\n")
    with pytest.raises(
        SourceError, match=r"line 62, column 'sales': label 'many' is not a number such as 1,5"
    ):
        list(read(path, target="sales", task="regression"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["01/02/2024", "03/04/2024"], "say whether it is day-first or month-first"),
        (["1,234", "12,500"], "say decimal-comma or category"),
    ],
)
def test_what_is_unclear_is_asked_for(words, message):
    with pytest.raises(ValueError, match=message):
        kind_of_words(words, [1, 1])
    frame = {"odd": words * 5, "x": list(range(10))}
    with pytest.raises(SourceError, match=f"X: column 'odd' has .*{message}"):
        TableEncoder().fit(frame)
    TableEncoder({"odd": "category"}).fit(frame)


def test_words_that_are_neither():
    assert kind_of_words(["31/12/2024", "12/31/2024"], [1, 1]) == "category"
    assert kind_of_words(["1,2,3", "4,5"], [1, 1]) == "category"
    for wrong in ("", "1.5", "1,2,3", "a", "1,5 kg"):
        assert math.isnan(comma_number_of(wrong))
    for wrong in ("31.2.2024", "1.13.2024", "2024", "1.1.24"):
        assert math.isnan(day_first_of(wrong))
    assert (
        day_first_of("31.12.2024 23:59:01")
        == month_first_of("12/31/2024 23:59:01")
        == time_of("2024-12-31 23:59:01")
    )


def test_a_model_knows_its_spellings(tmp_path, capsys):
    dates = [day.strftime("%d.%m.%Y") for day in DAYS]
    path = csv(tmp_path / "x.csv", dates, [str(price).replace(".", ",") for price in PRICES], "label")
    model = str(tmp_path / "m")
    assert cli.main(["run", path, "--quiet", "--save", model]) == 0
    lines = [{"when": "03.04.2023", "price": "2,5"}, {"when": "2023-04-03", "price": 2.5}]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    capsys.readouterr()
    assert cli.main(["predict", model, str(tmp_path / "new.jsonl"), "--scores"]) == 0
    one, two = capsys.readouterr().out.splitlines()[1:]
    assert one == two
    loaded = kernelstream.load(model)
    assert [str(loaded.decision_function(pd.DataFrame([line]))[0]) for line in lines] == [
        one.split(",")[1]
    ] * 2


DICTS = [{"age": 31, "zip": 8000, "when": 1700000000}, {"age": "44", "zip": "8001"}, {"age": 58.0}]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("age", "old", "X, row 2, column 'age': 'old' is not a number"),
        (
            "when",
            "soon",
            "X, row 2, column 'when': 'soon' is not a date or a time such as 2024-05-31 12:30:00",
        ),
        ("paid", "perhaps", "X, row 2, column 'paid': 'perhaps' is not true or false"),
    ],
)
def test_kinds_that_were_said_hold_in_lists_of_dicts(name, value, message, tmp_path):
    kinds = {"age": "number", "zip": "category", "when": "time", "paid": "boolean"}
    model = KernelClassifier(columns=kinds)
    wrong = [*DICTS[:2], {**DICTS[2], name: value}]
    with pytest.raises(SourceError) as error:
        model.partial_fit(wrong, [0, 1, 0])
    assert str(error.value) == message
    model.partial_fit(DICTS, [0, 1, 0])
    assert model.encoder_.get_feature_names_out()[0] == "age"
    assert {"zip=8000", "zip=8001", "when elapsed"} <= set(model.encoder_.get_feature_names_out())
    before = model.decision_function(DICTS)
    with pytest.raises(SourceError):
        model.partial_fit(wrong, [0, 1, 0])
    model.save(tmp_path / "m")
    loaded = kernelstream.load(tmp_path / "m")
    for one in (model, loaded):
        assert (one.decision_function(DICTS) == before).all()
        with pytest.raises(SourceError) as error:
            one.predict(wrong)
        assert str(error.value) == message
    lines = tmp_path / "x.jsonl"
    lines.write_text("".join(json.dumps({**row, "y": 1}) + "\n" for row in wrong))
    with pytest.raises(SourceError) as error:
        list(read(lines, columns=kinds))
    assert str(error.value) == message.replace("X, row 2", f"{lines}, line 3")
    source = read(lines, columns=kinds, on_bad_row="skip")
    ((X, _),) = source
    assert (X.shape[0], source.bad_rows) == (2, 1)


def test_numbers_said_to_be_times_are_seconds(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("when,x,y\n" + "".join(f"{1700000000 + 86400 * i},{i},{i % 2}\n" for i in range(30)))
    ((X, _),) = read(path, columns={"when": "time"})
    assert X[:, 1].tolist() == list(range(30))
    path.write_text("when,x,y\n2024-01-01,1,0\n17,2,1\n")
    with pytest.raises(SourceError, match="'17' is not a date or a time"):
        list(read(path, columns={"when": "time"}))


@pytest.mark.parametrize(
    "made",
    [
        list,
        lambda d: np.array(d, "timedelta64[s]"),
        pd.Series,
        pl.Series,
        pa.array,
    ],
    ids=["list", "numpy", "pandas", "polars", "pyarrow"],
)
def test_durations_are_seconds(made):
    durations = [datetime.timedelta(minutes=i) for i in range(4)]
    assert TableEncoder().fit_transform({"took": made(durations)}).ravel().tolist() == [0, 60, 120, 180]


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ({"a": 1}, [0], r"column 'a' is 1, not a list of values: a single row is a list of one dict"),
        ({"a": "text"}, [0], r"column 'a' is 'text', not a list of values"),
        ({"a": [1, 2]}, ["x", None], r"y has None at row 1: every row needs a label"),
        (
            {"a": [1, 2]},
            pd.Series(["x", pd.NA], dtype="string"),
            r"y has (nan|<NA>) at row 1: every row needs a label",
        ),
    ],
)
def test_other_wrong_tables(X, y, message):
    with pytest.raises(ValueError, match=message):
        KernelClassifier(columns="auto").fit(X, y)


def test_a_regression_from_nullable_columns():
    frame = pd.DataFrame({"x": pd.array([1, 2, None] * 10, dtype="Int64")})
    model = KernelRegressor(columns="auto").fit(frame, pd.Series(range(30), dtype="Int64"))
    assert np.isfinite(model.predict(frame)).all()
