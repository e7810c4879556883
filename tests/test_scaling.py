"""Online standardisation: against its definition, in chunks to the bit, in files, in every estimator."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

import kernelstream
from kernelstream import KernelClassifier, KernelRegressor
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


def test_csr_rows_keep_their_zeros_and_marks_stay_one():
    marks = csr_array(np.eye(5)[RNG.integers(0, 5, 50)])
    assert (as_arrays(Scaler.new(marks).learn(marks)[0]) - marks).nnz == 0
    scaled, _ = Scaler.new(SPARSE).learn(SPARSE)
    dense, given = as_arrays(scaled).toarray(), SPARSE.toarray()
    assert ((dense == 0) == (given == 0)).all()
    for row in (0, 10, 299):
        for column in np.flatnonzero(given[row]):
            seen = given[: row + 1, column]
            root = np.sqrt((seen[seen != 0] ** 2).mean())
            if root < 1 and 2 * (seen != 0).sum() <= row + 1:
                root = 1.0
            assert dense[row, column] == pytest.approx(given[row, column] / root, rel=1e-12)


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
