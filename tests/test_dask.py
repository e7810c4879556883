"""Tables on Dask: the same model whatever the workers do."""

import contextlib
import itertools
import os
import signal
import sys
import threading
import time
from concurrent.futures import CancelledError

import numpy as np
import pytest

import kernelstream
from kernelstream import Gaussian, KernelClassifier, KernelRegressor, MergeError, merging
from kernelstream.learners import KRLS, NewtonMixture
from kernelstream.persistence import pack
from kernelstream.runner import Run
from kernelstream.stream import Chunk, Source, read

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
pd = pytest.importorskip("pandas")
from kernelstream import dask as dask_module  # noqa: E402
from kernelstream.dask import (  # noqa: E402
    EpochSource,
    Progress,
    Workers,
    _start_missing,
    _Table,
    fit,
    predict,
)

# Functions of this module go to other processes as they are: those cannot import it, and a worker that fails to would die.
pytest.importorskip("cloudpickle").register_pickle_by_value(sys.modules[__name__])

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
    assert predict(model, chunked()[0]).chunks == chunked(LABELS)[1].chunks
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
    whole, numbers = merging.delta, itertools.count(1)

    def damaged(*args, **kwargs):
        number = next(numbers)  # of two workers at once, one gives a damaged delta
        data = whole(*args, **kwargs)
        return data[:-1] + b"!" if number % 2 else data

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


def test_what_is_lost_with_a_worker_is_done_again(client, monkeypatch):
    model = KernelRegressor(NewtonMixture(30))
    right = pack(fit(model, *chunked(), client=client, **SMALL))
    whole, lost = client.gather, []

    def gather(futures):
        if (
            isinstance(futures, list)
            and getattr(futures[0], "key", "").startswith("combine")
            and len(lost) < 2
        ):
            lost.append(futures)
            raise distributed.KilledWorker("combine", None, 3) if len(lost) == 1 else CancelledError("lost")
        return whole(futures)

    monkeypatch.setattr(client, "gather", gather)
    assert pack(fit(model, *chunked(), client=client, **SMALL)) == right
    assert len(lost) == 2


@contextlib.contextmanager
def processes(count, **config):
    """Worker processes, which may die."""
    quiet = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0, "silence_logs": 50}
    with (
        dask.config.set({name.replace("__", ".").replace("_", "-"): value for name, value in config.items()}),
        distributed.LocalCluster(n_workers=count, **quiet) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def chunk_with_signal(start, number, folder):
    """Rows of a table; the process that is asked for some of them a second time, after the survey, gets a signal."""
    if start == 1400:
        asked = len(list(folder.iterdir()))
        (folder / "new").write_text(str(os.getpid()))
        (folder / "new").rename(folder / str(asked))
        if asked == 1:
            os.kill(os.getpid(), number)
    return X[start : start + 700]


def with_signal(number, folder):
    starts = range(0, len(X), 700)
    blocks = [dask.delayed(chunk_with_signal)(start, number, folder) for start in starts]
    rows = [da.from_delayed(b, X[s : s + 700].shape, float) for b, s in zip(blocks, starts, strict=True)]
    return da.concatenate(rows), chunked()[1]


#: A process that is killed is started again in a time that nobody knows: these tests are for a machine that somebody looks at.
#: `benchmarks/kill_workers.py` kills many; what happens then is tested above and below without a kill.
kills = pytest.mark.skipif(
    not os.environ.get("KERNELSTREAM_KILLS"),
    reason="kills worker processes: set KERNELSTREAM_KILLS=1 to run it",
)

#: Far less than a process needs to start: the cluster gives up each worker that dies, as on a busy machine.
GIVEN_UP = {"distributed__deploy__lost_worker_timeout": "1ms"}


@kills
def test_a_worker_that_the_cluster_gave_up_is_started_again(client, tmp_path):
    model = KernelRegressor(NewtonMixture(30))
    right = pack(fit(model, *chunked(), client=client, **SMALL))
    told = []
    with processes(1, **GIVEN_UP) as alone:
        table = with_signal(signal.SIGKILL, tmp_path)
        assert pack(fit(model, *table, client=alone, progress=told.append, **SMALL)) == right
    assert len(list(tmp_path.iterdir())) >= 3  # one for the survey, one died
    assert told[-1].rows == 3000  # each row once


@kills
def test_a_worker_that_is_stopped_is_replaced(client, tmp_path):
    """The scheduler restarts a worker that is silent for `worker-ttl`; here it is told to, so that no clock decides."""
    model = KernelRegressor(NewtonMixture(30))
    right = pack(fit(model, *chunked(), client=client, **SMALL))
    told = []
    with processes(2) as two:

        def restart():
            while not (tmp_path / "1").exists():
                time.sleep(0.05)
            stopped = int((tmp_path / "1").read_text())
            addresses = [w.worker_address for w in two.cluster.workers.values() if w.pid == stopped]
            two.restart_workers(addresses, raise_for_error=False)

        thread = threading.Thread(target=restart)
        thread.start()
        table = with_signal(signal.SIGSTOP, tmp_path)
        assert pack(fit(model, *table, client=two, progress=told.append, **SMALL)) == right
        thread.join()
    assert told[-1].rows == 3000  # each row once


def test_a_part_meant_for_a_worker_that_is_gone_waits_for_another(tmp_path, monkeypatch):
    """Dask forgets such a task if it comes while there is no worker at all."""
    options = {"processes": False, "n_workers": 0, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as alone:
        monkeypatch.setattr(alone, "scheduler_info", lambda **_: {"workers": {"tcp://127.0.0.1:9": {}}})
        timer = threading.Timer(0.5, cluster.scale, [1])
        timer.start()
        outcome, workers = learn_file(as_csv(tmp_path / "table.csv", 600), alone, count=1)
        timer.join()
    assert (outcome.result.rounds, workers.refused) == (600, [])


def test_values_go_to_other_processes_by_files(tmp_path):
    kept = dask_module._put((X, LABELS), str(tmp_path))
    rows, labels = dask_module._taken(kept)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(labels, LABELS)
    assert dask_module._taken(dask_module._put("itself", None)) == "itself"
    with pytest.raises(OSError, match=r"cannot hand rows to the workers.*TMPDIR"):
        dask_module._put(X, str(tmp_path / "gone"))


def test_no_worker_is_an_error():
    nobody = distributed.LocalCluster(processes=False, n_workers=0, dashboard_address=":0")
    with (
        nobody,
        distributed.Client(nobody) as client,
        pytest.raises(MergeError, match=r"no worker for 0\.1 sec"),
    ):
        fit(KernelRegressor(), *chunked(), client=client, patience=0.1)


def test_a_cluster_starts_what_is_missing_in_its_plan():
    """Also a worker that never came to life, which the cluster does not look after."""

    class Cluster:
        def __init__(self, **states):
            self.worker_spec = dict.fromkeys(["a", "b"])
            self.workers = {name: type("Worker", (), {"status": state}) for name, state in states.items()}
            self.asked = []

        def scale(self, count):
            self.asked.append(count)

    state = distributed.Status
    for asked, cluster in (
        ([], Cluster(a=state.running, b=state.starting)),
        ([2], Cluster(a=state.running)),
        ([2], Cluster(a=state.running, b=state.closed)),
        ([2], Cluster(a=state.failed, b=state.running)),
    ):
        _start_missing(cluster)
        assert cluster.asked == asked
        assert all(worker.status in (state.running, state.starting) for worker in cluster.workers.values())
    _start_missing(None)


@kills
def test_processes_of_our_own_are_started_again(client, tmp_path):
    """Killed between two epochs, and given up by their cluster; the new one ignores Ctrl-C as the first did."""
    path = as_csv(tmp_path / "table.csv", 1500)
    right, _ = learn_file(path, client, count=1)
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1ms"}):
        killed = []

        def kill(workers, result):
            if result.rounds > 700 and not killed:
                killed.extend(workers._client.run(os.getpid).values())
                os.kill(killed[0], signal.SIGKILL)
            elif result.rounds == 1500:
                again.update(workers._client.run(lambda: (os.getpid(), signal.getsignal(signal.SIGINT))))

        again = {}
        outcome, _ = learn_file(path, None, count=1, watch=kill)
    assert pack(outcome.model) == pack(right.model)
    ((pid, handler),) = again.values()
    assert pid not in killed
    assert handler == signal.SIG_IGN


def test_a_survey_that_is_lost_with_a_worker_is_done_again(client, monkeypatch):
    table = _Table(client, [tuple(dask.delayed(np.arange(k)) for _ in "Xy") for k in (3, 5)])
    whole, lost = client.gather, []

    def gather(futures):
        if len(lost) < 3:
            lost.append(futures)
            raise distributed.KilledWorker("look", None, 3)
        return whole(futures)

    monkeypatch.setattr(client, "gather", gather)
    assert table.survey(labels=False) == ([3, 5], None)
    lost.clear()
    table.retries = 2
    with pytest.raises(MergeError, match="lost with their workers 3 times"):
        table.survey(labels=False)


def test_a_chunk_that_failed_with_its_workers_is_computed_again(client, tmp_path):
    """Dask gives up a task at which three workers died; the same key asked for again would be that failure."""

    def rows():
        tries = tmp_path / "tries"
        tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
        if len(tries.read_text()) < 4:
            raise distributed.comm.CommClosedError("lost")
        return np.arange(3.0)

    chunk = dask.delayed(rows)()
    table = _Table(client, [(chunk, chunk)])
    assert table.survey(labels=False) == ([3], None)
    assert len((tmp_path / "tries").read_text()) == 4
    (tmp_path / "tries").write_text("")
    held = table.chunk(0)  # as an epoch does, which asks again after a failure
    distributed.wait(held)
    np.testing.assert_array_equal(table.gathered(lambda again: table.chunk(0))[0], np.arange(3.0))


def as_csv(path, rows, late=True):
    """A table with a category and, in its last third, a class and a category that were not there before; one bad row."""
    rng = np.random.default_rng(1)
    lines = ["a,b,colour,label"]
    for i in range(rows):
        a, b = rng.normal(size=2).round(4)
        new = late and i > rows * 2 // 3 and i % 7 == 0
        colour = "new" if new else "rg"[int(rng.integers(2))]
        lines.append(f"{a},{b},{colour},{'late' if new else 'up' if a * b > 0 else 'down'}")
    lines.insert(rows // 2, "oops")
    path.write_text("\n".join(lines) + "\n")
    return path


def learn_file(path, client, stop=None, count=3, watch=lambda workers, result: None, **options):
    """`kernelstream run --workers 3`, but with the workers of a client; ended after so many chunks, as by Ctrl-C."""
    seen = []

    def on_chunk(result, source):
        watch(workers, result)
        seen.append(result.rounds)
        if stop is not None and len(seen) > stop:
            raise KeyboardInterrupt

    small = {"first_rows": 400, "least": 100, "most": 150}
    with Workers(count, client=client, **small) as workers:
        run = Run(
            KernelClassifier(NewtonMixture(40)),
            lambda position: workers.chunks(
                read(path, target="label", on_bad_row="skip", chunk_size=200, resume=position)
            ),
            step=workers.step,
            on_chunk=on_chunk,
            **options,
        )
        return run(), workers


def test_a_file_in_parts(client, tmp_path):
    path = as_csv(tmp_path / "table.csv", 3000)
    outcome, workers = learn_file(path, client, predictions=str(tmp_path / "out.txt"))
    assert outcome.result.rounds == 3000
    assert outcome.bad_rows == 1
    assert workers.merges > 5
    assert sorted(outcome.model.classes_) == ["down", "late", "up"]
    assert outcome.model.n_features_in_ == 5  # a, b, and three colours
    predicted = (tmp_path / "out.txt").read_text().splitlines()
    truth = [line.rpartition(",")[2] for line in path.read_text().splitlines()[1:] if line != "oops"]
    wrong = sum(a != b for a, b in zip(predicted, truth, strict=True))
    assert wrong == outcome.result.mistakes
    one = Run(
        KernelClassifier(NewtonMixture(40)), lambda position: read(path, target="label", on_bad_row="skip")
    )()
    assert abs(outcome.result.error - one.result.error) < 0.02
    metrics = outcome.result.evaluation.metrics.figures()
    assert metrics["accuracy"] == pytest.approx(1 - outcome.result.error)


def test_each_part_of_an_epoch_has_a_worker_of_its_own(client, tmp_path, monkeypatch):
    """Dask would give all of them to the worker that has the base, one after the other."""
    whole, given = client.submit, []

    def submit(function, *args, **options):
        if "workers" in options:
            assert options["allow_other_workers"]  # if it dies
            given.append(options["workers"][0])
        return whole(function, *args, **options)

    monkeypatch.setattr(client, "submit", submit)
    learn_file(as_csv(tmp_path / "table.csv", 1500), client, count=2)
    assert len(given) > 5
    assert all(one != other for one, other in zip(given[::2], given[1::2], strict=False))


def test_a_file_in_parts_continues_from_its_checkpoint(client, tmp_path):
    path = as_csv(tmp_path / "table.csv", 3000)
    whole, _ = learn_file(path, client, predictions=str(tmp_path / "whole.txt"))
    kept = {
        "checkpoint": str(tmp_path / "state"),
        "every": 1,
        "predictions": str(tmp_path / "out.txt"),
    }
    with pytest.raises(KeyboardInterrupt):
        learn_file(path, client, stop=4, **kept)
    again, _ = learn_file(path, client, **kept)
    assert 0 < again.rows_before < 3000
    assert pack(again.model) == pack(whole.model)
    assert (tmp_path / "out.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()


def as_text(path, form, rows=2000, bad=None):
    """Rows of numbers, whose features grow in number up to the last row; with ``bad``, that line is no row."""
    rng = np.random.default_rng(5)
    lines = []
    for i, x in enumerate(rng.normal(size=rows).round(3).tolist()):
        colour, label = int(rng.integers(1 + i // 200)), int(rng.integers(2))
        lines.append(
            {
                "csv": f"{x},c{colour},{label}",
                "jsonl": f'{{"a": {x}, "colour{colour}": 1, "label": {label}}}',
                "libsvm": f"{label} 1:{x} {colour + 2}:1",
            }[form]
        )
    if bad is not None:
        lines.insert(bad, "{oops")
    path.write_text("\n".join([*["a,colour,label"] * (form == "csv"), *lines, ""]))
    return path


def told(source):
    """All that a source says of itself."""
    return {
        "position": source.position,
        "rows": source.rows,
        "bad": (source.bad_rows, source.first_bad_row),
        "fraction": source.fraction,
        "quantities": None if source.quantities is None else source.quantities.tolist(),
        "encoding": source.encoding,
    }


def epochs_of(source, ahead):
    """The rows of each epoch, and what the source says after them; while they are used it is read ahead."""
    found = []
    try:
        for X, y in source:
            with source.read_ahead() if ahead else contextlib.nullcontext():
                if ahead:
                    wait_until(lambda: source._failed is not None or source._source.rows >= source.rows + 300)
                found.append((X if isinstance(X, np.ndarray) else X.toarray(), y, told(source)))
            found.append((None, told(source)))
    except Exception as error:
        found.append((str(error), told(source)))
    found.append(told(source))
    return found


def wait_until(there, seconds=60):
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("bad", [None, 1234], ids=["all good", "a bad row"])
@pytest.mark.parametrize("form", ["csv", "jsonl", "libsvm"])
@pytest.mark.parametrize("policy", ["stop", "skip"])
def test_a_source_read_ahead_says_what_it_says_otherwise(tmp_path, form, bad, policy):
    path = as_text(tmp_path / f"table.{form}", form, bad=bad)

    def read_it(ahead):
        options = {"format": form, "on_bad_row": policy, "chunk_size": 70}
        options |= {} if form == "libsvm" else {"target": "label"}
        with read(path, **options) as source:
            assert source.may_read_ahead
            return epochs_of(EpochSource(source, lambda rows: 300), ahead)

    def plain(found):
        return [[part.tolist() if isinstance(part, np.ndarray) else part for part in one] for one in found]

    ahead, otherwise = read_it(True), read_it(False)
    assert plain(ahead[:-1]) == plain(otherwise[:-1])
    assert ahead[-1] == otherwise[-1]
    assert any(isinstance(one[0], str) and "line" in one[0] for one in ahead[:-1]) == (
        bad is not None and policy == "stop"
    )


def test_what_is_not_read_ahead(tmp_path):
    path = as_text(tmp_path / "table.csv", "csv", bad=500)
    aside = f"quarantine={tmp_path / 'aside.txt'}"
    with open(path, "rb") as file:
        assert not read(file, format="csv", target="label").may_read_ahead  # it may be a pipe
    with read(path, target="label", chunk_size=100, on_bad_row=aside) as source:
        epochs = EpochSource(source, lambda rows: 200)
        next(epochs)
        with epochs.read_ahead():
            time.sleep(0.02)
        assert (source.rows, source.bad_rows) == (200, 0)
    assert read("friedman", rows=10).may_read_ahead


def test_reading_ahead_stops_after_the_chunk_at_hand():
    """An error of the learner, or Ctrl-C, does not wait for an epoch to be read, and loses none of its rows."""
    go = threading.Event()

    class Slow:
        rows, may_read_ahead = 0, True
        position = bad_rows = first_bad_row = fraction = quantities = encoding = kept = None

        def __next__(self):
            if self.rows >= 20:
                go.wait(60)
            self.rows += 10
            return Chunk(np.full((10, 1), float(self.rows)), np.ones(10))

    source = EpochSource(Slow(), lambda rows: 20 if rows < 20 else 10**6)
    next(source)
    with contextlib.suppress(KeyboardInterrupt), source.read_ahead():
        threading.Timer(0.05, go.set).start()
        raise KeyboardInterrupt
    assert (source.rows, source._source.rows) == (20, 30)
    source._size = lambda rows: 30
    assert next(source).X[:, 0].tolist() == [30.0] * 10 + [40.0] * 10 + [50.0] * 10
    assert source.rows == 50


def test_a_file_in_parts_is_the_same_without_reading_ahead(client, tmp_path, monkeypatch):
    path = as_csv(tmp_path / "table.csv", 3000)
    ahead, _ = learn_file(path, client)
    monkeypatch.setattr(Source, "may_read_ahead", False)
    otherwise, _ = learn_file(path, client)
    assert pack(ahead.model) == pack(otherwise.model)
    assert ahead.position == otherwise.position
    assert (ahead.bad_rows, ahead.result.mistakes) == (otherwise.bad_rows, otherwise.result.mistakes)


def test_a_source_that_fails_gives_its_rows_first():
    class Failing:
        rows = 0

        def __next__(self):
            self.rows += 10
            if self.rows > 30:
                raise OSError("gone")
            return Chunk(np.ones((10, self.rows // 10)), np.ones(10))

    source = EpochSource(Failing(), lambda rows: 20)
    assert next(source).X.shape == (20, 2)
    assert next(source).X.shape == (10, 3)
    with pytest.raises(OSError, match="gone"):
        next(source)
