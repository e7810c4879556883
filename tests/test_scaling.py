"""Online standardisation: against its definition, in chunks to the bit, in files, in every estimator."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import kernelstream
from kernelstream import KernelClassifier, KernelRegressor, cli
from kernelstream.kernels import Gaussian
from kernelstream.learners import BOGD, NOGD
from kernelstream.rows import as_arrays
from kernelstream.scaling import Scaler

RNG = np.random.default_rng(5)
TABLE = np.column_stack(
    [
        RNG.normal(1e6, 3.0, 300),
        RNG.exponential(1e-4, 300),
        np.full(300, 7.0),
        RNG.integers(0, 2, 300),
    ]
)
SPARSE = csr_array(np.where(RNG.random((300, 6)) < 0.3, RNG.normal(5, 100, (300, 6)), 0.0))
LABELS = (TABLE[:, 0] > 1e6).astype(int)


def test_dense_rows_are_scaled_by_the_rows_before_and_themselves():
    scaled, _ = Scaler.new(TABLE).learn(TABLE)
    for row, got in enumerate(as_arrays(scaled)):
        seen = TABLE[: row + 1]
        deviation = seen.std(axis=0)
        want = np.divide(
            TABLE[row] - seen.mean(axis=0), deviation, out=np.zeros(4), where=deviation > 1e-9 * abs(seen[0])
        )
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-7)
    assert (as_arrays(scaled)[:, 2] == 0).all()


def scaled_slowly(X, quantities):
    """The rule of `kernelstream.scaling` for CSR rows, from its words; `quantities`: 1, 0, or 2 where nobody says."""
    made = np.zeros(X.shape)
    for row, column in np.ndindex(*X.shape):
        x, seen = X[row, column], X[: row + 1, column]
        values = seen[seen != 0]
        made[row, column] = x
        if quantities[column] == 0 or not len(values):
            continue
        most, root = 2 * len(values) > len(seen), np.sqrt((values**2).mean())
        if root <= 1 and not (most and quantities[column] == 1):
            continue
        if most and values.std() > 1e-9 * abs(values).max():
            made[row, column] = (x - seen.mean()) / seen.std()
        else:
            made[row, column] = x / root
    return made


@pytest.mark.parametrize("told", [0, 1, 2])
def test_csr_rows_are_scaled_by_what_they_hold(told):
    rng = np.random.default_rng(7)
    X = np.column_stack(
        [
            rng.normal(2000, 7, 200),  # a year
            np.where(
                rng.random(200) < 0.7, rng.normal(0, 1e-3, 200), 0.0
            ),  # small numbers that most rows have
            np.where(rng.random(200) < 0.3, rng.normal(50, 10, 200), 0.0),  # a few rows have it
            rng.random(200) < 0.8,  # a mark
            np.where(rng.random(200) < 0.6, 40.0, 0.0),
            np.where(rng.random(200) < 0.5, rng.normal(3, 1, 200), 0.0),  # now most, now fewer
        ]
    )
    scaler = Scaler.new(csr_array(X))
    if told != 2:
        scaler = scaler.told(np.full(X.shape[1], bool(told)))
    got = as_arrays(scaler.learn(csr_array(X))[0])
    np.testing.assert_allclose(got.toarray(), scaled_slowly(X, [told] * X.shape[1]), rtol=1e-9, atol=1e-9)
    assert got.has_sorted_indices


def test_marks_stay_one_and_texts_as_they_are():
    marks = csr_array(np.eye(5)[RNG.integers(0, 5, 50)])
    assert (as_arrays(Scaler.new(marks).learn(marks)[0]) - marks).nnz == 0
    texts = ["the film was good", "the film was bad", "the play was long and bad"] * 20
    people = {"year": [2000.0 + i % 17 for i in range(60)], "about": texts, "sex": ["f", "m", "f"] * 20}
    model = KernelClassifier(NOGD(budget=30), scale=True, columns={"about": "text"})
    model.partial_fit(people, [1, 0, 0] * 20)
    features = model.encoder_.encoded(people)
    scaled, given = as_arrays(model.scaler_.apply(features)).toarray(), features.toarray()
    assert (scaled[:, 1:] == given[:, 1:]).all()
    year = given[:, 0]
    np.testing.assert_allclose(scaled[:, 0], (year - year.mean()) / year.std(), atol=0.1)


def test_the_command_line_scales_as_the_estimator_does(tmp_path):
    """A source says which features are quantities, as an encoder does."""
    rows = [
        {"year": 2000 + i % 17, "about": f"a text of {i % 7} words and more", "y": i % 2} for i in range(80)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    argv = [
        "run",
        str(tmp_path / "rows.jsonl"),
        "--learner",
        "NOGD",
        "--quiet",
        "--save",
        str(tmp_path / "m"),
    ]
    assert cli.main(argv) == 0
    model = KernelClassifier(NOGD(kernel=Gaussian()), scale=True, columns="auto")
    model.partial_fit(
        [{"year": row["year"], "about": row["about"]} for row in rows], [row["y"] for row in rows]
    )
    saved = kernelstream.load(tmp_path / "m")
    for name, array in model.scaler_.arrays.items():
        assert (saved.scaler_.arrays[name] == array).all()
    assert set(model.scaler_.arrays["quantities"]) == {0.0, 1.0}


@pytest.mark.parametrize("X", [TABLE, SPARSE], ids=["dense", "csr"])
def test_statistics_about_other_values_are_the_same(X):
    one = Scaler.new(X).learn(X)[1]
    other = one.about(one.arrays["first"] * 0.5 + 1)
    np.testing.assert_allclose(
        as_arrays(other.apply(X)).data, as_arrays(one.apply(X)).data, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("X", [TABLE, TABLE.astype(np.float32), SPARSE], ids=["dense", "float32", "csr"])
def test_chunks_do_not_matter_and_a_prediction_is_what_learning_sees(X):
    weights = (RNG.random(300) > 0.2).astype(float)
    whole, after = Scaler.new(X).learn(X, weights)
    scaler, start = Scaler.new(X), 0
    for size in (1, 1, 7, 91, 200):
        part, given = X[start : start + size], weights[start : start + size]
        for row in range(part.shape[0]) if size < 10 else ():
            alone = scaler.apply(part[row : row + 1])
            if row == 0:
                assert _bits(alone) == _bits(scaler.learn(part[:1], given[:1])[0])
        scaled, scaler = scaler.learn(part, given)
        assert _bits(scaled) == _bits(whole.part(start, start + part.shape[0]))
        start += size
    assert all((scaler.arrays[name] == after.arrays[name]).all() for name in after.arrays)


def _bits(rows):
    X = as_arrays(rows)
    return (X.data.tobytes(), X.indices.tobytes()) if hasattr(X, "indices") else X.tobytes()


@pytest.mark.parametrize("X", [TABLE, SPARSE], ids=["dense", "csr"])
def test_models_scale_save_and_go_on(X, tmp_path):
    model = KernelClassifier(NOGD(budget=30, loss="logistic"), scale="auto")
    one = clone(model).partial_fit(X[:100], LABELS[:100], classes=[0, 1])
    two = clone(model)
    for start, stop in ((0, 1), (1, 40), (40, 100)):
        before = None if start == 0 else two.decision_function(X[start : start + 1])
        got = two.decision_then_learn(X[start:stop], LABELS[start:stop], classes=[0, 1])
        assert before is None or before[0] == got[0]
    one.save(tmp_path / "model.safetensors")
    three = kernelstream.load(tmp_path / "model.safetensors")
    assert three.scale == "auto"
    for other in (two, three):
        other.partial_fit(X[100:], LABELS[100:])
    one.partial_fit(X[100:], LABELS[100:])
    for other in (two, three):
        assert (one.decision_function(X) == other.decision_function(X)).all()


def test_a_scaled_model_learns_what_an_unscaled_one_cannot():
    model = KernelClassifier(NOGD(budget=30), scale=True)
    assert model.fit(TABLE, LABELS).score(TABLE, LABELS) > 0.8


def test_auto_scales_for_learners_that_need_it():
    assert hasattr(KernelClassifier(BOGD(), scale="auto").fit(TABLE, LABELS), "scaler_")
    assert not hasattr(KernelClassifier(scale="auto").fit(TABLE, LABELS), "scaler_")
    assert hasattr(KernelRegressor(scale=True).fit(TABLE, LABELS), "scaler_")
    assert not hasattr(KernelRegressor(BOGD()).fit(TABLE, LABELS), "scaler_")
    with pytest.raises(ValueError, match=r"scale must be True, False or 'auto', got 'yes'"):
        KernelClassifier(scale="yes").fit(TABLE, LABELS)


def test_a_refused_chunk_leaves_the_statistics(tmp_path):
    model = KernelClassifier(NOGD(budget=30), scale=True).partial_fit(TABLE[:50], LABELS[:50])
    before = model.decision_function(TABLE)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.where(TABLE > 1e-9, TABLE, np.nan)[50:], LABELS[50:])
    with pytest.raises(ValueError, match="y"):
        model.partial_fit(TABLE[50:], LABELS[51:])
    assert (model.decision_function(TABLE) == before).all()


def test_wider_rows():
    model = KernelClassifier(NOGD(budget=30), scale=True).partial_fit(TABLE[:50, :2], LABELS[:50])
    zeros = np.hstack([TABLE[:50, :2], np.zeros((50, 2))])
    same = KernelClassifier(NOGD(budget=30), scale=True).partial_fit(zeros, LABELS[:50])
    model.widen(4)
    assert (model.decision_function(TABLE) == same.decision_function(TABLE)).all()


def test_damaged_statistics_are_refused(tmp_path):
    from kernelstream import ModelFileError, persistence

    model = KernelClassifier(NOGD(budget=30), scale=True).partial_fit(TABLE, LABELS)
    model.scaler_ = Scaler({**model.scaler_.arrays, "squares": np.zeros(3)})
    with pytest.raises(ModelFileError, match="scal"):
        persistence.unpack(persistence.pack(model))
