"""Tables on Dask: the same model whatever the workers do."""

import numpy as np
import pytest

import kernelstream
from kernelstream import Gaussian, KernelClassifier, KernelRegressor, MergeError, merging
from kernelstream.learners import KRLS, NewtonMixture
from kernelstream.persistence import pack

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")
from kernelstream.dask import Progress, fit, predict  # noqa: E402

RNG = np.random.default_rng(3)
X = RNG.normal(size=(3000, 4))
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2]
LABELS = np.where(Y > 0, "up", "down")
SMALL = {"first_rows": 500, "rows_per_part": 300, "parts": 3}


@pytest.fixture(scope="module")
def client():
    with distributed.Client(
        processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as client:
        yield client


def chunked(y=Y, rows=700):
    return da.from_array(X, chunks=(rows, 2)), da.from_array(
        y, chunks=rows
    )  # chunks across columns are joined


def test_least_squares_on_dask_is_one_pass(client):
    learner = KRLS(nu=0.05, kernel=Gaussian(gamma=0.1))
    model = fit(KernelRegressor(learner), *chunked(), client=client, **SMALL)
    one = kernelstream.branch(KernelRegressor(learner).partial_fit(X[:500], Y[:500])).partial_fit(
        X[500:], Y[500:]
    )
    np.testing.assert_allclose(model.predict(X), one.predict(X), atol=1e-8)


def test_the_default_from_arrays_and_frames(client):
    told = []
    untrained = KernelClassifier(NewtonMixture(50))
    model = fit(untrained, *chunked(LABELS), client=client, progress=told.append, **SMALL)
    assert "learner_" not in untrained.__dict__
    assert model.classes_.tolist() == ["down", "up"]
    assert model.score(X, LABELS) > 0.93
    assert told[-1].rows == told[-1].all_rows == 3000
    assert isinstance(told[0], Progress)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=LABELS)
    table = dd.from_pandas(frame, npartitions=4)
    from_frame = fit(untrained, table[list("abcd")], table["label"], client=client, **SMALL)
    assert from_frame.feature_names_in_.tolist() == list("abcd")
    assert from_frame.score(frame[list("abcd")], LABELS) > 0.93
    labels = predict(model, chunked()[0]).compute()
    assert (labels == model.predict(X)).all()
    assert predict(model, chunked()[0], method="predict_proba").compute().shape == (3000, 2)


def test_the_number_of_workers_does_not_matter(client):
    model = KernelRegressor(NewtonMixture(30))
    two = fit(model, *chunked(), client=client, **SMALL)
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"
    ) as alone:
        assert pack(fit(model, *chunked(), client=alone, **SMALL)) == pack(two)


def test_a_damaged_delta_is_made_again(client, monkeypatch):
    model = KernelRegressor(NewtonMixture(30))
    right = pack(fit(model, *chunked(), client=client, **SMALL))
    whole, calls = merging.delta, []

    def damaged(*args, **kwargs):
        calls.append(kwargs["task"])
        data = whole(*args, **kwargs)
        return data[:-1] + b"!" if len(calls) % 2 else data

    monkeypatch.setattr(merging, "delta", damaged)
    told = []
    assert pack(fit(model, *chunked(), client=client, progress=told.append, **SMALL)) == right
    refused = [reason for progress in told for reason in progress.refused]
    assert any("of chunk" in reason and "damaged" in reason for reason in refused)  # by its name
    monkeypatch.setattr(merging, "delta", lambda *args, **kwargs: b"nothing")
    with pytest.raises(
        MergeError,
        match=r"3 of 3 tasks failed 2 times, the first of them 'rows 500 to .* of chunk 0.*not a delta",
    ):
        fit(model, *chunked(), client=client, retries=1, **SMALL)


def test_a_foreign_delta_is_made_again(client, monkeypatch):
    model = KernelRegressor(NewtonMixture(30))
    right = pack(fit(model, *chunked(), client=client, **SMALL))
    whole, seen = merging.delta, {}

    def foreign(base, *args, task, **kwargs):
        """The first attempt of each task goes on from the base of another model."""
        first = seen.setdefault((merging.digest(base), task), []) == []
        seen[merging.digest(base), task].append(1)
        return whole(other if first else base, *args, task=task, **kwargs)

    other = pack(KernelRegressor(NewtonMixture(30)).partial_fit(X[:400], Y[:400]))
    monkeypatch.setattr(merging, "delta", foreign)
    told = []
    assert pack(fit(model, *chunked(), client=client, progress=told.append, **SMALL)) == right
    assert all("of another base" in reason for progress in told for reason in progress.refused)
    assert all(len(progress.refused) == 3 for progress in told[:-1])


def test_a_trained_model_goes_on(client):
    trained = KernelRegressor(NewtonMixture(30)).partial_fit(X[:1000], Y[:1000])
    before = pack(trained)
    rest = da.from_array(X[1000:], chunks=(500, 4)), da.from_array(Y[1000:], chunks=500)
    model = fit(trained, *rest, client=client, **SMALL)
    assert model.learner_.state()["learnt"].tolist() == [3000]
    assert pack(trained) == before


def test_wrong_tables(client):
    features, y = chunked()
    for wrong, message in (
        (lambda: fit(KernelRegressor(), features, y.rechunk(100), client=client), "the same chunks"),
        (
            lambda: fit(KernelRegressor(), X, Y, client=client),
            "a Dask array, data frame or series is needed, got ndarray",
        ),
        (lambda: fit(KernelRegressor(), features, y[:-1], client=client), "each row needs one"),
        (lambda: fit(KernelRegressor(), features, y, client=client, parts=0), "parts must be"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            wrong()
