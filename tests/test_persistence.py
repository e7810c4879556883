"""Model files: what is saved comes back to the bit, and what cannot be a model is refused."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from sklearn.exceptions import NotFittedError

import kernelstream
from fuzz_models import SMALL, data, sealed, seeds, use
from kernelstream import (
    Gaussian,
    KernelClassifier,
    KernelRegressor,
    Laplacian,
    ModelFileError,
    Polynomial,
    learners,
    persistence,
)
from kernelstream.learners import BOGD, BPAS, FOGD, KOGD, NOGD, NOLANA, OKS, OKSSIL, mixture_formats
from kernelstream.losses import EpsilonInsensitive, Huber

NAMES = list(learners.registered(plugins=False))
GOLDEN = Path(__file__).parent / "golden" / "model-format-1.safetensors"
NEWER_SHAPES = {
    f"{part}{name}" for part in ("", "local_") for name in ("shares", "stack_weights", "stack_covariances")
}
GOLDEN_MIXTURE = GOLDEN.with_name("newton-mixture-format-1.safetensors")


def trained(learner=None, classes=2, rows=200, dtype=np.float64):
    X, y = data(classes, rows)
    return (KernelRegressor if classes is None else KernelClassifier)(learner).fit(X.astype(dtype), y)


def small(name):
    kind = getattr(learners, name)
    return kind(**SMALL.get(name, {"budget": 5} if "budget" in kind._get_param_names() else {}))


def files(name):
    return [data for seeded, data in seeds() if seeded == name]


def edited(model, change):
    """The file of a model after a change of its header and arrays, with a right checksum."""
    record, arrays = persistence._open(persistence.pack(model))
    change(record, arrays)
    return sealed(record, arrays)


def refusal(bytes_, **options):
    with pytest.raises(ModelFileError) as caught:
        persistence.unpack(bytes_, "m.safetensors", **options)
    assert str(caught.value).startswith("m.safetensors: ")
    return str(caught.value)


# ---- there and back ----


@pytest.mark.parametrize("name", NAMES)
def test_a_loaded_model_goes_on_as_the_saved_one(name, tmp_path):
    for i, packed in enumerate(files(name)):
        first, _ = persistence.unpack(packed)
        path = tmp_path / f"{i}.safetensors"
        first.save(path)
        assert path.read_bytes() == packed
        second = kernelstream.load(path)
        X, y = data(None if isinstance(first, KernelRegressor) else len(first.classes_), 100, seed=1)
        if isinstance(first, KernelClassifier):
            y = first.classes_[y]
        X = X.astype(first.learner_.dtype)
        assert first.predict(X).tobytes() == second.predict(X).tobytes()
        a, b = first.predict_then_learn(X, y), second.predict_then_learn(X, y)
        assert np.array_equal(a, b)
        assert persistence.pack(first) == persistence.pack(second)


@pytest.mark.parametrize("name", NAMES)
def test_loaded_models_are_models(name):
    """Pickle, joblib, copy and clone work on what was loaded."""
    model, _ = persistence.unpack(files(name)[1])
    for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert persistence.pack(copied) == persistence.pack(model)
    assert repr(model.learner) == repr(model.learner_)
    assert model.learner is not model.learner_


def test_joblib(tmp_path):
    model = trained()
    joblib.dump(model, tmp_path / "m.joblib")
    assert persistence.pack(joblib.load(tmp_path / "m.joblib")) == persistence.pack(model)


@pytest.mark.parametrize(
    "learner",
    [
        None,
        BOGD(budget=np.int64(7), eta=np.float32(0.1), clip=np.inf, kernel=Laplacian(bandwidth=2)),
        KOGD(kernel=Polynomial(degree=2, gamma=0.1), loss="logistic", eta=0.01),
        NOGD(budget=9, kernel=Gaussian(gamma=np.float64(0.3)), rank=None),
        BPAS(C=np.inf, budget=3),
        OKSSIL(budget=5, interval=[2.0**-3, 2.0**3], anisotropic=True),
        OKS(bandwidths=(0.5, 1, np.float64(2))),
        OKS(bandwidths=np.array([0.5, 1.0])),
        NOLANA(budget=8, epsilon=np.inf),
    ],
    ids=str,
)
def test_hyper_parameters_come_back(learner, tmp_path):
    model = trained(learner)
    model.save(tmp_path / "m")
    loaded = kernelstream.load(tmp_path / "m")
    assert (loaded.learner is None) == (learner is None)

    def plain(params):
        return {
            k: v.get_params() if hasattr(v, "get_params") else np.asarray(v).tolist()
            for k, v in params.items()
        }

    assert plain(loaded.learner_.get_params()) == plain(model.learner_.get_params())
    if isinstance(learner, OKS):
        assert isinstance(
            loaded.learner_.bandwidths, tuple if isinstance(learner.bandwidths, tuple) else list
        )


@pytest.mark.parametrize("loss", [None, "huber", Huber(delta=0.3), EpsilonInsensitive(epsilon=0.01)], ids=str)
def test_losses_come_back(loss):
    model = trained(BOGD(budget=5, loss=loss), classes=None)
    assert repr(persistence.unpack(persistence.pack(model))[0].learner_) == repr(model.learner_)


@pytest.mark.parametrize(
    "classes",
    [
        np.array([-1, 1]),
        np.array([0, 200], np.uint8),
        np.array([-1.0, 2.0]),
        np.array([1.0, 3.0], np.float32),
        np.array([False, True]),
        np.array(["no", "yes", "Umlaut ü"]),
        np.array(["a", "b"], object),
        np.array([2**53 + 1, 2**62]),
    ],
    ids=lambda c: str(c.dtype),
)
def test_classes_come_back(classes):
    X, y = data(len(classes))
    model = KernelClassifier(NOGD(budget=5)).fit(X, classes[y])
    loaded, _ = persistence.unpack(persistence.pack(model))
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == model.classes_.tolist()
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


def test_classes_are_still_discovered_after_loading():
    X, y = data(3)
    model = KernelClassifier(NOGD(budget=5)).partial_fit(X[:5], np.zeros(5, int))
    loaded, _ = persistence.unpack(persistence.pack(model))
    for m in (model, loaded):
        m.partial_fit(X, y)
    assert persistence.pack(loaded) == persistence.pack(model)
    closed = KernelClassifier(NOGD(budget=5)).partial_fit(X[:5], y[:5], classes=[0, 1, 2])
    with pytest.raises(ValueError, match="told to expect"):
        persistence.unpack(persistence.pack(closed))[0].partial_fit(X, y + 1)


def test_a_model_of_no_rows_yet():
    model = KernelClassifier().partial_fit(np.zeros((0, 3)), np.zeros(0, int))
    loaded, _ = persistence.unpack(persistence.pack(model))
    X, y = data(2)
    assert (
        loaded.partial_fit(X, y).predict(X).tolist()
        == KernelClassifier().partial_fit(X, y).predict(X).tolist()
    )


def test_feature_names_come_back(tmp_path):
    X, y = data(2)
    frame = pd.DataFrame(X, columns=["a", "b", "ü"])
    KernelClassifier().fit(frame, y).save(tmp_path / "m")
    loaded = kernelstream.load(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "ü"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame.rename(columns={"a": "z"}))


def test_widened_models_come_back():
    model = trained(FOGD(n_components=10))
    model.widen(5)
    loaded, _ = persistence.unpack(persistence.pack(model))
    X = np.random.default_rng(0).normal(size=(9, 5))
    assert loaded.n_features_in_ == 5
    assert loaded.decision_function(X).tobytes() == model.decision_function(X).tobytes()


def test_notes_come_back():
    note = {"position": {"line": 3}, "list": [1, 2.5, None, "x"]}
    assert persistence.unpack(persistence.pack(trained(), note))[1] == note


@pytest.mark.slow
def test_the_same_model_gives_the_same_bytes_in_another_process(tmp_path):
    """No order of a dictionary or a set goes into the file."""
    code = """
import sys
from kernelstream import KernelClassifier
KernelClassifier().fit([[0.0, 1.0], [1.0, 0.0]] * 20, ["a", "b"] * 20).save(sys.argv[1])
"""
    for i in range(2):
        environment = os.environ | {"PYTHONHASHSEED": str(i)}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / str(i))], check=True, env=environment)
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()


# ---- what is not saved ----


def test_what_is_not_trained_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        KernelClassifier().save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_code_is_not_saved(tmp_path):
    class Mine(NOGD):
        pass

    class MyGaussian(Gaussian):
        pass

    class MyClassifier(KernelClassifier):
        pass

    X, y = data(2)
    for model, why in (
        (KernelClassifier(Mine(budget=5)), "Mine is not one of kernelstream's learners"),
        (KernelClassifier(NOGD(budget=5, kernel=lambda X, Y: X @ Y.T)), "NOGD's kernel is <function"),
        (KernelClassifier(NOGD(budget=5, kernel=MyGaussian(gamma=1.0))), "NOGD's kernel is MyGaussian"),
        (MyClassifier(), "only KernelClassifier and KernelRegressor"),
    ):
        with pytest.raises(ModelFileError, match=why):
            model.fit(X, y).save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("classes", [[None, "a"], [1, "a"], [b"a", b"b"]], ids=str)
def test_odd_classes_are_not_saved(classes):
    model = trained()
    model.classes_ = np.array(classes, object) if None in classes or 1 in classes else np.array(classes)
    with pytest.raises(ModelFileError, match="class"):
        persistence.pack(model)


def test_a_diverged_model_is_not_saved():
    model = trained(NOGD(budget=5))
    state = model.learner_.state()
    state["map_weights"][0] = np.nan
    model.learner_.restore(state)
    with pytest.raises(ModelFileError, match="'map_weights' of this NOGD holds NaN"):
        persistence.pack(model)


# ---- what is not loaded ----


def test_damage_is_noticed():
    packed = persistence.pack(trained())
    for at in (0, 5, 9, 100, len(packed) // 2, len(packed) - 1):
        changed = bytearray(packed)
        changed[at] ^= 1
        refusal(bytes(changed))
    for n in (0, 7, 8, 100, len(packed) - 1):
        refusal(packed[:n])
    refusal(packed + b"\0")
    assert "checksum" in refusal(packed[:-1] + bytes([packed[-1] ^ 1]))


def test_files_of_others_are_refused(tmp_path):
    assert "not one of a kernelstream model" in refusal(safetensors.numpy.save({"a": np.zeros(3)}))
    refusal(b"\x80\x05K\x01.")
    refusal(pickle.dumps(trained()))
    for path in (tmp_path, Path("/dev/zero")):
        if path.exists():
            with pytest.raises(ModelFileError, match="not a file"):
                kernelstream.load(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        kernelstream.load("nowhere.safetensors")


def test_newer_formats_are_refused():
    def change(record, arrays):
        record["format"] = persistence.FORMAT + 1

    assert (
        f"its format is {persistence.FORMAT + 1}, this version of kernelstream reads 1 to {persistence.FORMAT}: upgrade"
        in refusal(edited(trained(), change))
    )


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("learner", "os.system", "unknown learner 'os.system'"),
        ("learner", "Learner", "unknown learner"),
        ("estimator", "Pipeline", "unknown estimator"),
        ("parameters", {"budget": -1}, "budget must be"),
        ("parameters", {"budget": 12, "x": 1}, "no hyper-parameter 'x'"),
        ("parameters", {"kernel": {"object": "Popen", "parameters": {}}}, "unknown kernel or loss 'Popen'"),
        ("parameters", {"kernel": {"what": 1}}, "nothing known"),
        ("classes", {"type": "i8", "values": [1, 0]}, "not sorted"),
        ("classes", {"type": "i8", "values": [0, 1, 2]}, "not those of such a model"),
        ("classes", {"type": "i8", "values": [0, 2**70]}, "OverflowError"),
        ("classes", {"type": "i8", "values": ["a", "b"]}, "not all of type int"),
        ("classes", {"type": "M8", "values": [0, 1]}, "unknown type"),
        ("features", 4, "not those of such a model"),
        ("feature_names", ["a"], "feature names"),
    ],
    ids=str,
)
def test_impossible_headers_are_refused(key, value, why):
    assert why in refusal(
        edited(trained(NOGD(budget=12)), lambda record, arrays: record.update({key: value}))
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.pop("points"),
        lambda a: a.update(more=np.zeros(3)),
        lambda a: a.update(points=a["points"][:-1].copy()),
        lambda a: a.update(points=a["points"].astype(np.float32)),
        lambda a: a.update(points=np.vstack([a["points"], a["points"]])),
        lambda a: a.update(weights=np.full_like(a["weights"], np.nan)),
        lambda a: a.update(born=a["born"] - 1000),
        lambda a: a.update(random=np.full_like(a["random"], 2**63)),
        lambda a: a.update(shape=a["shape"] * 0),
        lambda a: a.update(shape=np.array([3, 1, 0, 5])),
    ],
)
def test_impossible_states_are_refused(change):
    model = trained(BOGD(budget=5, kernel=Gaussian(gamma=0.5)))
    refusal(edited(model, lambda record, arrays: change(arrays)))


def test_a_small_file_that_asks_for_a_huge_model_is_refused():
    model = trained(BOGD(budget=5), rows=3)

    def change(record, arrays):
        record["parameters"]["budget"] = 10**12

    assert "may need" in refusal(edited(model, change))
    packed = persistence.pack(trained(BOGD(budget=5)))
    assert "more than max_bytes=100" in refusal(packed, max_bytes=100)


def test_large_files_are_not_read(tmp_path):
    path = tmp_path / "large"
    with open(path, "wb") as file:
        file.truncate(1 << 40)  # takes no space on the disk
    with pytest.raises(ModelFileError, match="max_bytes"):
        kernelstream.load(path)


def with_text(text):
    """A file whose header is this text."""
    _, arrays = persistence._open(persistence.pack(trained()))
    return bytes(safetensors.numpy.save(arrays, metadata={"kernelstream": text}))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("{", "not a model file"),
        ("[]", "not a JSON object"),
        ("1" * 10_000, "not a model file"),
        ('{"format": ' + "9" * 5000 + "}", "not a model file"),
        ('{"format": ' + "9" * 4000 + "}", "its format is 9"),
        ('{"format": NaN}', "NaN"),
        ('{"format": Infinity}', "Infinity"),
        ("null", "not a JSON object"),
        ('{"format": true}', "its format is True"),
        ('{"format": 1.0}', "its format is 1.0"),
        ('{"format": 1, "format": 1}', "'format' twice"),
        ('{"a": {"x": 1, "y": 2, "x": 3}}', "'x' twice"),
    ],
    ids=lambda value: value[:30],
)
def test_hostile_json_is_refused(text, why, tmp_path):
    packed = with_text(text)
    message = refusal(packed)
    assert why in message
    assert len(message) < 600
    (tmp_path / "m").write_bytes(packed)
    with pytest.raises(ModelFileError, match="m: "):
        persistence.describe(tmp_path / "m")


def test_an_array_given_twice_is_refused():
    packed = persistence.pack(trained(NOGD(budget=5)))
    end = 8 + int.from_bytes(packed[:8], "little")
    header = packed[8:end].rstrip()
    entry = header[header.index(b'"points"') : header.index(b"}", header.index(b'"points"')) + 1]
    header = header[:-1] + b"," + entry + b"}"
    refusal(len(header).to_bytes(8, "little") + header + packed[end:])


def hostile():
    """Files that are small and would need much memory: name and bytes."""
    model = trained(NOGD(budget=5))
    names = sorted(["x" * 300_000, *(f"{i:05d}" for i in range(20_000))])
    for name, change in {
        "one long class": {"classes": {"type": "U", "values": names}},
        "many classes": {"classes": {"type": "i8", "values": list(range(200_000))}},
        "many names": {"feature_names": [str(i) for i in range(200_000)]},
        "lists": {"note": [[]] * 300_000},
        "objects": {"note": [{}] * 300_000},
        "numbers": {"note": [0.5] * 300_000},
        "a long note": {"note": "\N{GRINNING FACE}" + "a" * 2_000_000},
        "many hyper-parameters": {"parameters": {f"x{i}": 1 for i in range(100_000)}},
        "a long tuple": {"parameters": {"eta": {"tuple": [1] * 500_000}}},
        "a large budget": {"parameters": {"budget": 10**9}},
        "a huge budget": {"parameters": {"budget": 10**4000}},
        "a large rank": {"parameters": {"budget": 10**5, "rank": 10**5}},
    }.items():
        yield name, edited(model, lambda record, arrays, change=change: record.update(change))

    def many_arrays(record, arrays):
        arrays.update({f"array{i}": np.zeros(0) for i in range(20_000)})

    yield "many arrays", edited(model, many_arrays)

    def wide(record, arrays):
        record["features"] = 10**9
        arrays["shape"] = np.array([10**9, *arrays["shape"][1:]])

    yield "many features", edited(model, wide)


def test_memory_is_counted_before_it_is_taken():
    """Whatever is in a file, loading it takes no more than max_bytes and some copies of the file."""
    limit = 4 << 20
    for name, packed in hostile():
        tracemalloc.start()
        try:
            with pytest.raises(ModelFileError, match=r"max_bytes|not a possible model|no hyper-parameter"):
                persistence.unpack(packed, max_bytes=limit)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < limit + 4 * len(packed), name
    for _, packed in seeds():  # a small limit is enough for small models
        persistence.unpack(packed, max_bytes=limit)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the size of the process as Linux gives it")
def test_hostile_files_in_a_process_with_little_memory(tmp_path):
    """The same with the process's own memory: what libraries allocate beside Python counts too."""
    for i, (_, packed) in enumerate(hostile()):
        (tmp_path / str(i)).write_bytes(packed)
    code = """
import os, resource, sys
import kernelstream
kernelstream.load  # imports what loading needs
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (96 << 20), -1))
for name in os.listdir(sys.argv[1]):
    try:
        kernelstream.load(os.path.join(sys.argv[1], name), max_bytes=16 << 20)
    except kernelstream.ModelFileError as error:
        assert "MemoryError" not in str(error), (name, error)
    else:
        raise AssertionError(name)
"""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr


# ---- writing ----


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m"
    trained().save(path)
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="cannot write the file: No space left on device") as caught:
        trained(BOGD(budget=5)).save(path)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "m")
    trained().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "m").is_file()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="cannot write"):
        trained().save(tmp_path / "m")


# ---- old files ----


def test_a_file_of_format_1_loads():
    """The file was written when the format was new. It must go on loading."""
    model = kernelstream.load(GOLDEN)
    expected = json.loads(GOLDEN.with_suffix(".json").read_text())
    X = np.array(expected["X"])
    np.testing.assert_allclose(model.decision_function(X), expected["scores"], rtol=1e-12)
    assert model.predict(X).tolist() == expected["labels"]
    assert use(GOLDEN.read_bytes()) == "loaded and learnt"


def test_a_default_model_of_format_1_loads_and_goes_on():
    """Every number of the file is in the model, under its name of today; the model predicts and its experts learn as they did."""
    record, old = persistence._open(GOLDEN_MIXTURE.read_bytes())
    today = kernelstream.load(GOLDEN_MIXTURE)  # its local memory is empty, and is filled from now on
    assert len(today.learner_.state()["local_rows"]) == 0
    record["parameters"]["memory"] = 0  # as it was
    model, _ = persistence.unpack(sealed(record, old))
    state = model.learner_.state()
    since = {
        "events",
        "events_count",
        "first_errors",
        "labels_copy_changes",
        "labels_copy_repeats",
        "outliers",
        "ordered",
        "usual_error",
        "weight_squares",
        "weight_sum",
    }
    trees = mixture_formats.TREES  # of which it has none yet
    for name in ("stack_weights", "stack_covariances", "shares"):
        shape = (2, 7, 7)[: -1 if name == "stack_weights" else None] if name != "shares" else (9,)
        array = np.delete(state[name].reshape(shape), trees, axis=-1)
        state[name] = (np.delete(array, trees, axis=1) if name == "stack_covariances" else array).ravel()
    since |= {name for name in state if name.startswith("trees_") or "confidence" in name}
    kept = sum(array.size for name, array in state.items() if name not in since)
    assert kept == sum(array.size for array in old.values())
    for name, array in old.items():
        if name in ("numbers", "counters"):
            names = getattr(mixture_formats, f"FORMAT_1_{name.upper()}")
            assert np.concatenate([state[new] for new in names]).tobytes() == array.tobytes()
        else:
            new = name.replace("loose_", "least_squares_").replace("echo_stays", "labels_repeats")
            new = (
                new.replace("echo_leaves", "labels_changes")
                .replace("echo_", "labels_")
                .replace("stacks", "stack_weights")
            )
            assert state[new].tobytes() == array.tobytes(), name
    expected = json.loads(GOLDEN_MIXTURE.with_suffix(".json").read_text())
    X, y = np.array(expected["X"]), np.array(expected["y"])
    # After t rows a score of a least-squares fit counts t / (t + 20) today: after very many it counts as it did.
    after_many, _ = persistence.unpack(persistence.pack(model))
    state = after_many.learner_.state()
    after_many.learner_.restore(state | {"learnt": state["learnt"] + 10**12 * len(state["kept_targets"])})
    np.testing.assert_allclose(after_many.decision_function(X), expected["scores"], rtol=1e-10)
    np.testing.assert_array_equal(model.predict(X), after_many.predict(X))
    assert today.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert len(today.partial_fit(X, y).learner_.state()["local_rows"]) == len(y)
    assert model.predict_then_learn(X, y).tolist() == expected["predicted"]
    # What linear, the stacks and the shares learn follows other rules today; all other experts learn as they did.
    after = model.learner_.state()
    for name, array in expected["after"].items():
        np.testing.assert_allclose(after[name], array, rtol=1e-9, atol=1e-9, err_msg=name)
    again, _ = persistence.unpack(persistence.pack(model))
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()


def loaded_golden(number):
    """The default model stored in an older format, what is in the file, and its state now: what it knew is the same."""
    path = GOLDEN_MIXTURE.with_name(f"newton-mixture-format-{number}.safetensors")
    _, old = persistence._open(path.read_bytes())
    model = kernelstream.load(path)
    state = model.learner_.state()
    for name in old.keys() - NEWER_SHAPES:
        assert state[name].tobytes() == old[name].tobytes(), name
    return model, old, state


def goes_on(model):
    """It predicts the rows that it was made from, and learns and is stored as a model of today."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] ** 2, [0, 1])
    assert (model.predict(X[:90]) == y[:90]).mean() > 0.95
    model.partial_fit(X[90:], y[90:])
    again, _ = persistence.unpack(persistence.pack(model))
    assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()


def test_a_default_model_of_format_2_loads_and_goes_on():
    """What it knows stays as it is; it was a stream's."""
    model, _, state = loaded_golden(2)
    assert state["ordered"] == 1
    goes_on(model)


def test_trees_of_a_model_without_any_wait_for_the_next_rebuild():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = KernelClassifier(learners.NewtonMixture(40)).partial_fit(X[:100], y[:100])
    trees, old = mixture_formats.TREES, model.learner_.state()
    old = {name: array for name, array in old.items() if not name.startswith("trees_")}
    old["shares"] = np.delete(old["shares"], trees) / np.delete(old["shares"], trees).sum()
    old["stack_weights"] = np.delete(old["stack_weights"].reshape(2, 7), trees, axis=1).ravel()
    covariances = np.delete(old["stack_covariances"].reshape(2, 7, 7), trees, axis=1)
    old["stack_covariances"] = np.delete(covariances, trees, axis=2).ravel()
    model.learner_.restore(old)
    model.partial_fit(X[100:159], y[100:159])
    assert model.learner_.state()["shares"][trees] == 0
    again, _ = persistence.unpack(persistence.pack(model))
    for both in (model, again):
        both.partial_fit(X[159:], y[159:])  # the 160th row is the last before a rebuild
    state = model.learner_.state()
    assert state["trees_grown"] > 0
    assert state["shares"][trees] > 0
    assert (np.diagonal(state["stack_covariances"].reshape(2, 7, 7), axis1=1, axis2=2)[:, trees] > 0).all()
    assert persistence.pack(again) == persistence.pack(model)


def test_a_default_model_of_format_4_loads_and_goes_on():
    """What it knows stays as it is: the newest local expert begins with nothing, and earns its share from then on."""
    model, old, state = loaded_golden(4)
    np.testing.assert_array_equal(state["local_shares"], np.insert(old["local_shares"], 5, 0.0))
    weights = state["local_stack_weights"].reshape(2, 6)
    np.testing.assert_array_equal(weights[:, :5].ravel(), old["local_stack_weights"])
    np.testing.assert_array_equal(weights[:, 5], 0.0)
    covariances = state["local_stack_covariances"].reshape(2, 6, 6)
    np.testing.assert_array_equal(covariances[:, :5, :5].ravel(), old["local_stack_covariances"])
    assert (covariances[:, 5, 5] > 0).all()
    assert not covariances[:, 5, :5].any()
    goes_on(model)
    assert model.learner_.state()["local_shares"][5] > 0


def test_a_default_model_of_format_5_loads_and_goes_on():
    """What it knows stays as it is: it has seen no row that is a copy of the one before."""
    model, _, state = loaded_golden(5)
    for name in ("labels_copy_repeats", "labels_copy_changes"):
        np.testing.assert_array_equal(state[name], np.zeros(3))
    goes_on(model)


def test_a_default_model_of_format_6_loads_and_goes_on():
    """What it knows stays as it is: how sure its least-squares experts may be it learns from then on."""
    model, _, state = loaded_golden(6)
    assert (state["confidences"] == 1).all()
    assert (state["local_confidences"] == 1).all()
    goes_on(model)
    learnt = model.learner_.state()
    for name in ("confidences", "local_confidences"):
        assert ((learnt[name] != 1) == (state[name.replace("ces", "ce_variances")] > 0)).all()


def test_hostile_files_of_format_1_are_refused():
    def old(change):
        record, arrays = persistence._open(GOLDEN_MIXTURE.read_bytes())
        change(arrays)
        return sealed(record, arrays)

    for change in (
        lambda a: a.pop("counters"),
        lambda a: a.update(numbers=a["numbers"][:-1].copy()),
        lambda a: a.update(counters=np.append(a["counters"], 0)),
        lambda a: a.update(counters=a["counters"][None].copy()),
        lambda a: a.update(numbers=-a["numbers"]),
        lambda a: a.update(learnt=np.array([3])),
        lambda a: a.pop("loose_weights"),
    ):
        refusal(old(change))
