"""Mutated model files: whatever is in one, loading it gives a model or a `ModelFileError`, and never a crash.

Headers and arrays are changed and the checksum is made right again, so that the changes reach the learners' `restore` and the
compiled core; plain damage to the bytes is tried too. A model that loads is scored and taught, for what a bad state does may
show only then. Under AddressSanitizer (see .ci/run for the build and the environment):

    python tests/fuzz_models.py --count 100000
"""

from __future__ import annotations

import argparse
import collections
import copy
import faulthandler
import functools
import sys
import time
import warnings

import numpy as np
import safetensors.numpy
import scipy.sparse
from sklearn.exceptions import NotFittedError

from kernelstream import (
    CapacityError,
    KernelClassifier,
    KernelRegressor,
    ModelFileError,
    ScoreOverflowError,
    kernels,
    learners,
    persistence,
)

SMALL = {
    "DualSGD": {"budget": 6, "n_components": 8, "neighbours": 3},
    "FOGD": {"n_components": 10},
    "KRLS": {"max_size": 10},
    "NewtonMixture": {"budget": 6},
    "NOGD": {"budget": 12, "rank": 5},
    "NOLANA": {"budget": 12, "rank": 5, "epsilon": 1.0},
    "OKS": {"bandwidths": (0.5, 2.0)},
    "ProjKA": {"budget": 5, "warmup": 40},
    "ProsNKons": {"max_size": 12},
    "RRF": {"n_components": 10},
    "SkeGD": {"budget": 16, "samples": 5, "rank": 4, "cycle": 20},
}
MORE = {  # other states of the same learners
    "NOLANA": [
        {"budget": 10, "rank": 3, "solver": "rank2", "epsilon": 2.0},
        {"budget": 9, "rank": 3, "solver": "warm"},
    ],
    "OKSSIL": [{"budget": 5, "anisotropic": True, "nu": 0.1}],
    "BOGD": [{"budget": 5, "removal": "nonuniform", "clip": np.inf, "kernel": kernels.Laplacian()}],
    "KOGD": [{"kernel": kernels.Polynomial(degree=2), "eta": 0.01}],
    "NOGD": [{"budget": 8, "kernel": kernels.Linear(), "eta": 0.01, "loss": "logistic"}],
    "KONS": [{"loss": "logistic"}],
}
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    7,
    8,
    63,
    64,
    65,
    1000,
    2**31 - 1,
    2**31,
    2**32,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
    -(2**63),
)
REALS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1e-300,
    1e-30,
    1e30,
    1e150,
    1e300,
    -1e300,
    np.inf,
    -np.inf,
    np.nan,
    5e-324,
)
THINGS = (
    None,
    True,
    False,
    "",
    "median",
    "squared",
    [],
    {},
    [1.0, 2.0],
    {"float": "inf"},
    {"tuple": [1.0, 2.0]},
)


def data(classes, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.8)
    signal = X[:, 0] + X[:, -1] ** 2 + 0.3 * rng.normal(size=n)
    if classes is None:
        return X, np.clip(signal, -3, 3) / 3
    return X, np.digitize(signal, np.quantile(signal, np.linspace(0, 1, classes + 1)[1:-1]))


@functools.cache
def seeds():
    """Files of every learner: after few rows and after many, both precisions, two classes, three, and regression."""
    made = []
    for name, kind in learners.registered(plugins=False).items():
        given = SMALL.get(name, {"budget": 5} if "budget" in kind._get_param_names() else {})
        for options in [given, *MORE.get(name, [])]:
            for classes in (2, 3, None):
                regression = kind.regression and options.get("loss") != "logistic"
                if (classes == 3 and not kind.multiclass) or (classes is None and not regression):
                    continue
                for rows, dtype in ((5, np.float64), (200, np.float64), (200, np.float32)):
                    model = (KernelRegressor if classes is None else KernelClassifier)(kind(**options))
                    X, y = data(classes, rows)
                    made.append(
                        (
                            name,
                            persistence.pack(
                                model.fit(X.astype(dtype), y if classes != 3 else y.astype(str))
                            ),
                        )
                    )
    return made


def sealed(record, arrays):
    """A file with a right checksum."""
    record["checksum"] = persistence._checksum(record, arrays)
    text = persistence.json.dumps(record, sort_keys=True, separators=(",", ":"))
    return bytes(safetensors.numpy.save(arrays, metadata={"kernelstream": text}))


def places(thing, path=()):
    """Paths to all entries of nested dictionaries and lists."""
    entries = (
        thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ()
    )
    for key, value in entries:
        yield (*path, key)
        yield from places(value, (*path, key))


def change_header(rng, record, arrays):
    path = list(rng.choice(np.array([*places(record), None], object)[:-1]))
    inside = record
    for key in path[:-1]:
        inside = inside[key]
    key, roll = path[-1], rng.integers(10)
    if roll == 0:
        del inside[key]
    elif roll == 1 and isinstance(inside, dict):
        inside[str(rng.choice(["budget", "x", "gamma", "values", "tuple"]))] = 1
    elif roll == 2 and "learner" in record:
        record["learner"] = str(rng.choice(list(learners.registered(plugins=False))))
    elif isinstance(inside[key], (int, float)) and roll < 8:
        inside[key] = (
            draw(rng, (*NUMBERS, inside[key] + 1, inside[key] - 1))
            if roll < 6
            else float(rng.choice(REALS[:-4]))
        )
    else:
        inside[key] = copy.deepcopy(draw(rng, THINGS + NUMBERS))


def draw(rng, things):
    return things[rng.integers(len(things))]


def change_array(rng, record, arrays):
    key = str(rng.choice(sorted(arrays)))
    array, roll = arrays[key], rng.integers(12)
    if roll < 6 and array.size:
        flat = array.reshape(-1)
        at = rng.integers(flat.size)
        if array.dtype.kind == "f":
            with np.errstate(all="ignore"):
                flat[at] = draw(rng, REALS)
        else:
            number = draw(rng, (*NUMBERS, int(flat[at]) + 1, int(flat[at]) - 1)) % 2**64
            flat[at] = np.uint64(number).astype(array.dtype)
        if rng.random() < 0.2:
            flat[:] = flat[at]
    elif roll < 7:
        del arrays[key]
    elif roll < 9:  # one more or one less along an axis
        axis = int(rng.integers(array.ndim))
        n = array.shape[axis] + (1 if rng.random() < 0.5 else -1)
        arrays[key] = np.ascontiguousarray(
            np.resize(array, [*array.shape[:axis], max(n, 0), *array.shape[axis + 1 :]])
        )
    elif roll < 10:
        arrays[key] = (
            np.ascontiguousarray(array.reshape([draw(rng, ((-1,), (1, -1), (-1, 1)))][0]))
            if array.size
            else array[:0]
        )
    elif roll < 11:
        arrays[key] = array.astype(
            draw(rng, (np.float64, np.float32, np.int64, np.uint64, np.int32, np.uint8))
        )
    else:
        other = str(rng.choice(sorted(arrays)))
        arrays[draw(rng, (other, "more", "inverse", "matrix", "kernel"))] = array.copy()


def damage(rng, data):
    """Bytes changed, cut, added, or a wrong length of the header."""
    made = bytearray(data)
    roll = rng.integers(4)
    if roll == 0:
        return bytes(made[: rng.integers(len(made))])
    if roll == 1:
        made[:8] = int(draw(rng, NUMBERS) % 2**64).to_bytes(8, "little")
    elif roll == 2:
        made += rng.bytes(int(rng.integers(1, 100)))
    for _ in range(rng.integers(1, 4)):
        made[rng.integers(len(made))] = rng.integers(256)
    return bytes(made)


def mutated(rng, data, record, arrays):
    if rng.random() < 0.1:
        return damage(rng, data)
    record, arrays = copy.deepcopy(record), {key: array.copy() for key, array in arrays.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(rng.integers(1, 4)):
            (change_header if rng.random() < 0.35 and record else change_array)(rng, record, arrays)
            if not arrays:
                break
    return sealed(record, arrays)


#: What a model that loaded may still answer to ordinary rows: its state is possible, but these rows are too much for it.
ORDINARY = (ScoreOverflowError, CapacityError, ModelFileError, NotFittedError, np.linalg.LinAlgError)


def teach(model):
    """Score, learn and save."""
    width = model.n_features_in_
    rng = np.random.default_rng(0)
    X = (
        rng.normal(size=(30, width))
        if width < 1000
        else scipy.sparse.random_array((30, width), density=30 / width, rng=0).tocsr()
    )
    if isinstance(model, KernelClassifier):
        y = np.resize(model.classes_, 30) if len(model.classes_) else np.arange(30) % 2
    else:
        y = rng.normal(size=30)
    model.predict(X)
    model.predict_then_learn(X, y)
    model.predict(scipy.sparse.csr_array(X))
    model.predict_then_learn(scipy.sparse.csr_array(X), y)
    persistence.pack(model)


def use(data):
    """Load, and if that works score and learn; the name of what happened."""
    try:
        model, _ = persistence.unpack(data, max_bytes=1 << 26)
    except ModelFileError:
        return "refused"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            teach(model)
    except Exception as error:
        return f"loaded, then {type(error).__name__}"
    return "loaded and learnt"


def fuzz(count, seed=0, files=None, told=lambda done, tally: None):
    """Use ``count`` mutated files; how often what happened."""
    rng = np.random.default_rng(seed)
    opened = [(data, *persistence._open(data)) for _, data in (files or seeds())]
    tally = collections.Counter()
    for done in range(count):
        faulthandler.dump_traceback_later(60, exit=True)  # a model that hangs is a finding, too
        data = mutated(rng, *opened[rng.integers(len(opened))])
        tally[use(data)] += 1
        told(done + 1, tally)
    faulthandler.cancel_dump_traceback_later()
    return tally


def wild(files, numbers=(-2.0, -1e300)):
    """Each file again and again, in which all numbers of one array are the same, wild one; with the place."""
    for i, (name, data) in enumerate(files):
        record, arrays = persistence._open(data)
        for key, array in arrays.items():
            for number in numbers if array.dtype.kind == "f" else numbers[:1]:
                with np.errstate(all="ignore"):
                    made = np.full(array.shape, number).astype(array.dtype)
                yield f"{name} {i} {key} {number}", sealed(copy.deepcopy(record), {**arrays, key: made})


def main():
    parser = argparse.ArgumentParser(description="Load mutated model files.")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    files = seeds()
    assert {name for name, _ in files} == set(learners.registered(plugins=False))
    for name, data in files:
        assert use(data) == "loaded and learnt", name
    start = time.monotonic()

    def told(done, tally):
        if done % 10_000 == 0:
            print(
                f"{done:,} mutations, {time.monotonic() - start:.0f} s: {dict(tally)}",
                file=sys.stderr,
                flush=True,
            )

    tally = fuzz(arguments.count, arguments.seed, files, told)
    print(
        f"{arguments.count:,} mutations of {len(files)} files of {len(learners.registered(plugins=False))} learners:"
    )
    for what, times in tally.most_common():
        print(f"{times:9,}  {what}")


if __name__ == "__main__":
    main()
