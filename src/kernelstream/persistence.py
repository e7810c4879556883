"""Model files: a model's arrays and a JSON header, in the safetensors layout; never pickle, nothing that could run.

The header's one metadata entry, ``kernelstream``, is a JSON object with the format number, the estimator, the learner by name,
its hyper-parameters, the classes, the feature names and a checksum over all of this and the arrays. A learner is looked up
among those registered in the process, never imported, and a state is accepted only if the learner, having taken it over, gives it
back to the bit. docs/model-files.md describes the format.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import os
import stat
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from kernelstream import kernels, losses
from kernelstream.calibration import Calibration
from kernelstream.class_weights import ClassWeight, Counts, check_class_weight
from kernelstream.errors import ModelFileError
from kernelstream.estimators import KernelClassifier, KernelRegressor
from kernelstream.files import write_atomically
from kernelstream.labels import outputs_of
from kernelstream.learners import Learner, registered
from kernelstream.scaling import Scaler
from kernelstream.tables.encoder import TableEncoder
from kernelstream.tables.features import check_description, upgraded

__all__ = ["checksum", "container", "contents", "describe", "load", "load_noted", "pack", "save", "unpack"]

Model = KernelClassifier | KernelRegressor
Arrays = dict[str, NDArray[Any]]
Record = dict[str, Any]

FORMAT = 7
"""The format written. A file of a higher one is refused; lower ones are read.

2: NewtonMixture's state. 3: the same, its log of events, the calibration of a regression. 4: its trees. 5: one more local
expert, scales of wide rows by column. 6: labels of rows that are a copy of the one before.
"""

MAX_BYTES = 1 << 33
"""The largest file read and the largest model made of one, unless told otherwise: 8 GiB."""

_KEY = "kernelstream"
_SCALER, _CALIBRATION = "scaler.", "calibration."  # before the names of their arrays
_FIT = ("shuffle", "random_state", "scale")  # parameters of the estimators beside the learner
_ESTIMATORS: dict[str, Any] = {"KernelClassifier": KernelClassifier, "KernelRegressor": KernelRegressor}
_OBJECTS = {
    thing.__name__: thing
    for module, kind in ((kernels, kernels.Kernel), (losses, losses.Loss))
    for thing in (getattr(module, name) for name in module.__all__)
    if isinstance(thing, type) and issubclass(thing, kind) and thing is not kind
}
#: What a header takes in memory at most, measured on headers of many kinds: its text in several forms, and Python's objects.
_BYTES_PER_CHARACTER, _BYTES_PER_ENTRY = 12, 128
_DTYPES = {
    "F64": np.float64,
    "F32": np.float32,
    "I64": np.int64,
    "I32": np.int32,
    "I16": np.int16,
    "U64": np.uint64,
}


def save(model: Model, path: str | os.PathLike[str], note: Any = None) -> None:
    """Write a trained estimator to a file, which is there completely or, after an error or a crash, not at all.

    Args:
        model: a ``KernelClassifier`` or a ``KernelRegressor``.
        path: the file.
        note: anything that JSON can hold, to be kept with the model. ``kernelstream run --save`` keeps how its source makes
            features of columns.

    >>> import tempfile
    >>> model = KernelClassifier().fit([[0.0], [1.0]] * 10, ["no", "yes"] * 10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.safetensors")
    ...     load(f"{folder}/model.safetensors").predict([[0.9]]).tolist()
    ['yes']
    """
    write_atomically(path, pack(model, note))


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Model:
    """The estimator that ``save`` wrote; it predicts and goes on learning as the saved one would, to the bit.

    Nothing in the file is executed. A file that is damaged, cut short, not ours, written by a newer version, or that
    describes an impossible model is refused with ``ModelFileError``.

    Args:
        path: the file.
        max_bytes: the largest file to read, and the most that its header, classes, names, note, arrays and the model
            made of them may need together; all is counted before it is allocated. The arrays are copied a few times
            on the way: a file of n bytes may take some 4 n bytes besides, while it is loaded.
    """
    return load_noted(path, max_bytes=max_bytes)[0]


def load_noted(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> tuple[Model, Any]:
    """As ``load``, with the note that was saved with the model."""
    return unpack(_read(path, max_bytes), os.fspath(path), max_bytes=max_bytes)


def describe(path: str | os.PathLike[str]) -> Record:
    """What a file says of itself: its header, the arrays by name with type and shape, and the bytes of the model."""
    data = _read(path, MAX_BYTES)
    model, record, arrays = _unpacked(data, os.fspath(path), MAX_BYTES)
    shapes = {name: f"{array.dtype} {list(array.shape)}" for name, array in arrays.items()}
    if hasattr(model, "encoder_"):
        record["columns"] = model.encoder_.description  # of older files it is in the note
    return (
        record
        | {"arrays": shapes, "model_bytes": model.nbytes_, "file_bytes": len(data)}
        | {"events": [event.record() for event in model.events_]}
    )


def pack(model: Model, note: Any = None) -> bytes:
    """A trained estimator as the bytes of a model file, with a note: anything that JSON can hold."""
    if type(model) not in _ESTIMATORS.values():
        raise ModelFileError(
            f"only {' and '.join(_ESTIMATORS)} have a file format, not {type(model).__module__}.{type(model).__name__}"
        )
    check_is_fitted(model, "learner_")
    learner = model.learner_
    name = type(learner).__name__
    if registered(plugins=False).get(name) is not type(learner):
        raise ModelFileError(
            f"{type(learner).__module__}.{name} is not one of kernelstream's learners: a model file holds no code, so whoever "
            "loads it could not make one; put @kernelstream.learners.register before the class, or pickle the model"
        )
    parameters = learner.get_params(deep=False)
    record: Record = {
        "format": FORMAT,
        "estimator": type(model).__name__,
        "default": model.learner is None,
        "learner": name,
        "parameters": {key: _encode(value, f"{name}'s {key}") for key, value in parameters.items()},
        "features": int(model.n_features_in_),
        "fit": _encode_fit(model),
        "note": note,
    }
    if hasattr(model, "feature_names_in_"):
        record["feature_names"] = [str(feature) for feature in model.feature_names_in_]
    if isinstance(model, KernelClassifier):
        record["classes"] = _encode_classes(model.classes_)
        record["open"] = model._open
        record["class_weight"] = _encode_class_weight(model.class_weight)
        record["class_counts"] = _encode_pairs(model._class_counts)
    if "_shuffled" in model.__dict__:
        record["shuffled"] = list(model._shuffled)
    if hasattr(model, "encoder_"):
        record["columns"] = model.encoder_.description
    arrays = {key: np.ascontiguousarray(array) for key, array in learner.state().items()}
    if isinstance(model, KernelRegressor):
        arrays |= {_CALIBRATION + key: array for key, array in model._calibration.state().items()}
    if hasattr(model, "scaler_"):
        arrays |= {_SCALER + key: np.ascontiguousarray(a) for key, a in model.scaler_.arrays.items()}
    _check_numbers(arrays, f"this {name}")
    return container(record, arrays)


def container(record: Record, arrays: Arrays) -> bytes:
    """A header and arrays as the bytes of a file, with a checksum."""
    record = {"format": FORMAT} | record
    checked = record | {"checksum": _checksum(record, arrays)}
    return bytes(safetensors.numpy.save(arrays, metadata={_KEY: _json(checked)}))


def contents(data: bytes, *, max_bytes: int = MAX_BYTES) -> tuple[Record, Arrays]:
    """The header and the arrays that ``container`` put into bytes; the arrays are not to be written to."""
    return _open(data, _Memory(max_bytes))


def checksum(data: bytes) -> str:
    """The checksum that ``container`` put into bytes, of all else in them; only ``contents`` and ``unpack`` compare it.

    >>> checksum(container({"kind": "a test"}, {})) == checksum(container({"kind": "another"}, {}))
    False
    """
    return str(_record(data, _Memory(MAX_BYTES)).get("checksum"))


def unpack(data: bytes, name: str = "the file", *, max_bytes: int = MAX_BYTES) -> tuple[Model, Any]:
    """The estimator and the note in the bytes of a model file; ``name`` stands for it in errors."""
    model, record, _ = _unpacked(data, name, max_bytes)
    return model, record.get("note")


def _unpacked(data: bytes, name: str, max_bytes: int) -> tuple[Model, Record, Arrays]:
    """The estimator, the header and the arrays in the bytes of a model file."""
    memory = _Memory(max_bytes)
    try:
        record, arrays = _open(data, memory)
        if record.get("kind", "model") != "model":
            raise ModelFileError("not a model, but a delta: add it to its base")
        return _build(record, arrays, memory), record, arrays
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {_short(str(error))}") from None
    except Exception as error:  # of whatever kind: a hostile header or state may fail anywhere
        what = _short(f"{type(error).__name__}: {error}")
        raise ModelFileError(f"{name}: not a possible model: {what}") from error


class _Memory:
    """Counts what a file will need, before it is allocated."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = self.left = max_bytes

    def take(self, nbytes: int, what: str) -> None:
        if nbytes > self.left:
            before = (
                f" beside {self.max_bytes - self.left:,} bytes before" if self.left < self.max_bytes else ""
            )
            raise ModelFileError(
                f"its {what} may need {nbytes:,} bytes{before}, more than max_bytes={self.max_bytes:,}"
            )
        self.left -= nbytes


def _short(text: str) -> str:
    """A message without most of what a hostile file puts into it."""
    return text if len(text) <= 500 else f"{text[:400]} ... {text[-50:]}"


# ---- the container ----


def _open(data: bytes, memory: _Memory | None = None) -> tuple[Record, Arrays]:
    """The header and the arrays, as they were written; the arrays are not to be written to."""
    record = _record(data, memory or _Memory(MAX_BYTES))
    try:
        views: list[tuple[str, Record]] = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        raise ModelFileError(f"damaged, cut short or not a model file ({error})") from None
    written = record.get("format")
    if type(written) is not int or not 1 <= written <= FORMAT:
        raise ModelFileError(
            f"its format is {written!r}, this version of kernelstream reads 1 to {FORMAT}: upgrade kernelstream"
        )
    arrays: Arrays = {}
    for key, view in views:
        if view["dtype"] not in _DTYPES:
            raise ModelFileError(f"array {key!r} is of type {view['dtype']}, which no model has")
        arrays[key] = np.frombuffer(view["data"], _DTYPES[view["dtype"]]).reshape(view["shape"])
    if record.pop("checksum", None) != _checksum(record, arrays):
        raise ModelFileError("damaged: its checksum is not that of its contents")
    return record, arrays


def _record(data: bytes, memory: _Memory) -> Record:
    """Our own header."""
    end = 8 + int.from_bytes(data[:8], "little")
    if not 8 < end <= len(data):
        raise ModelFileError("damaged, cut short or not a model file (the length of its header is wrong)")
    memory.take(len(data) - end, "arrays")
    text = data[8:end]
    entries = sum(text.count(mark) for mark in (b",", b":", b"[", b"{"))
    memory.take(_BYTES_PER_CHARACTER * len(text) + _BYTES_PER_ENTRY * entries, "header")
    metadata = _parse(text).get("__metadata__")
    inner = metadata.get(_KEY) if isinstance(metadata, dict) else None
    if not isinstance(inner, str):
        raise ModelFileError("a safetensors file, but not one of a kernelstream model")
    return _parse(inner)


def _parse(text: bytes | str) -> Record:
    """A JSON object."""
    try:
        record = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except RecursionError:
        raise ModelFileError("damaged or not a model file (its header is nested too deeply)") from None
    except ModelFileError:
        raise
    except ValueError as error:  # not JSON, not UTF-8, or a number of thousands of digits
        raise ModelFileError(f"damaged, cut short or not a model file ({error})") from None
    if not isinstance(record, dict):
        raise ModelFileError("its header is not a JSON object")
    return record


def _object(pairs: list[tuple[str, Any]]) -> Record:
    """An object of JSON; two entries of one name would let two readers see two models in one file."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ModelFileError(f"its header has the entry {twice!r} twice")
    return entries


def _no_constant(name: str) -> Any:
    raise ModelFileError(f"its header has {name}, which JSON does not know")


def _checksum(record: Record, arrays: Arrays) -> str:
    digest = hashlib.blake2b(_json(record).encode(), digest_size=32)
    for key in sorted(arrays):
        digest.update(f"\n{key} {arrays[key].dtype.str} {arrays[key].shape}\n".encode())
        digest.update(arrays[key].data if arrays[key].size else b"")
    return digest.hexdigest()


def _json(record: Record) -> str:
    return json.dumps(record, sort_keys=True, allow_nan=False, separators=(",", ":"))


def _read(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise ModelFileError(f"{os.fspath(path)}: not a file")
    if status.st_size > max_bytes:
        raise ModelFileError(
            f"{os.fspath(path)}: {status.st_size:,} bytes are more than max_bytes={max_bytes:,}"
        )
    return Path(path).read_bytes()


# ---- from a header to a model ----


def _build(record: Record, arrays: Arrays, memory: _Memory) -> Model:
    estimator = _known(_ESTIMATORS, record["estimator"], "estimator")
    kind = _known(
        registered(plugins=False), record["learner"], "learner", "import the package that registers it, or "
    )
    parameters = {key: _decode(value) for key, value in record["parameters"].items()}
    unknown = sorted(set(parameters) - set(kind._get_param_names()))
    if unknown:
        raise ModelFileError(
            f"{record['learner']} has no hyper-parameter {unknown[0]!r}: upgrade kernelstream"
        )
    learner: Learner = kind(**parameters)
    calibration = {key: arrays[key] for key in arrays if key.startswith(_CALIBRATION)}
    arrays = {key: array for key, array in arrays.items() if key not in calibration}
    classes = _decode_classes(record["classes"], memory) if estimator is KernelClassifier else None
    max_bytes = memory.left
    _check_numbers(arrays, "its learner")
    shape = arrays.get("shape", np.zeros(0))
    outputs = 1 if classes is None else outputs_of(len(classes))
    right = shape.dtype == np.int64 and shape.shape == (4,) and shape[1] == outputs
    if not right or shape[2] != (classes is None) or shape[3] not in (4, 8) or shape[0] != record["features"]:
        raise ModelFileError("its arrays are not those of such a model")
    _check_size(learner, int(shape[0]), outputs, max_bytes)
    scaler = _scaler_of({key: a for key, a in arrays.items() if key.startswith(_SCALER)}, int(shape[0]))
    arrays = {key: array for key, array in arrays.items() if not key.startswith(_SCALER)}
    if record["format"] < FORMAT:
        arrays = learner.upgrade_state(arrays)
    learner.restore({key: array.copy() for key, array in arrays.items()})
    if not _same(learner.state(), arrays):
        raise ModelFileError(f"its arrays are not those of a {record['learner']} with these hyper-parameters")
    fit = {key: _decode(value) for key, value in record.get("fit", {}).items() if key in _FIT}
    model: Model = estimator(None if record["default"] is True else clone(learner), **fit)
    model.learner_ = learner
    model.n_features_in_ = int(shape[0])
    if scaler is not None:
        model.scaler_ = scaler
    _attach_columns(model, record)
    if "feature_names" in record:
        names = record["feature_names"]
        if len(names) != model.n_features_in_ or not all(isinstance(name, str) for name in names):
            raise ModelFileError(f"its feature names are not {model.n_features_in_} strings")
        model.feature_names_in_ = np.array(names, object)
    if "shuffled" in record:
        n, seed = record["shuffled"]
        if type(n) is not int or type(seed) is not int or not (0 <= n < 2**48 and 0 <= seed < 2**32):
            raise ModelFileError("the order that it says it was fitted in is none")
        model._shuffled = (n, seed)
    if isinstance(model, KernelRegressor):
        own = {key.removeprefix(_CALIBRATION): array for key, array in calibration.items()}
        model._calibration = Calibration.restore(own) if record["format"] >= 3 else Calibration()
    elif calibration:
        raise ModelFileError("a classifier has no calibration")
    if isinstance(model, KernelClassifier):
        assert classes is not None
        model.classes_, model._open = classes, record["open"] is True
        model.class_weight = _decode_class_weight(record.get("class_weight"))
        model._class_counts = _decode_counts(record.get("class_counts", []), classes)
    return model


def _attach_columns(model: Model, record: Record) -> None:
    """The columns that the features came from, if the file has them; of older files they are in the note of `run --save`."""
    columns, note = record.get("columns"), record.get("note")
    if columns is not None:
        check_description(columns)
    elif isinstance(note, dict) and isinstance(note.get("encoding"), dict):
        kept = note["encoding"]
        if kept.get("format") == "libsvm" or not isinstance(kept.get("state"), dict):
            return
        columns = upgraded(kept["state"], (note.get("options") or {}).get("hashed"))
    if columns is None:
        return
    encoder = TableEncoder.from_description(columns)
    if encoder.width != model.n_features_in_ and "columns" not in record:
        return
    if encoder.width != model.n_features_in_:
        raise ModelFileError(
            f"its columns have {encoder.width:,} features, its model {model.n_features_in_:,}"
        )
    model.set_columns(encoder.description)


def _scaler_of(arrays: Arrays, width: int) -> Scaler | None:
    """The statistics of the features' scales, if the model has them."""
    if not arrays:
        return None
    named = {key.removeprefix(_SCALER): array.copy() for key, array in arrays.items()}
    if named.keys() == {"squares", "counts", "rows"}:  # of a version that left means as they were
        named |= {"first": np.zeros(width), "sums": np.zeros(width), "quantities": np.ones(width)}
    dense = {"first", "sums", "squares", "rows"}
    right = named.keys() in (dense, dense | {"counts", "quantities"}) and all(
        array.dtype == np.float64 and array.shape == ((1,) if key == "rows" else (width,))
        for key, array in named.items()
    )
    if not right or any((named[key] < 0).any() for key in ("squares", "counts", "rows") if key in named):
        raise ModelFileError("its arrays of scales are not those of such a model")
    return Scaler(named)


def _known(known: dict[str, Any], name: Any, what: str, first: str = "") -> Any:
    if not isinstance(name, str) or name not in known:
        raise ModelFileError(f"unknown {what} {name!r}: {first}upgrade kernelstream")
    return known[name]


def _check_numbers(arrays: Arrays, whose: str) -> None:
    for key, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(
                f"the array {key!r} of {whose} holds NaN or infinity: the model has diverged"
            )


def _check_size(learner: Learner, width: int, outputs: int, max_bytes: int) -> None:
    """Refuse a model too large to make, before anything is allocated: a small file can ask for a huge budget."""
    if width < 0:
        raise ModelFileError("its width is negative")
    needed = learner.needs(width, outputs)
    if needed > max_bytes:
        raise ModelFileError(
            f"its {type(learner).__name__} of {width:,} features may need {needed:,} bytes, more than max_bytes={max_bytes:,}"
        )


def _same(mine: Arrays, given: Arrays) -> bool:
    return mine.keys() == given.keys() and all(
        mine[key].dtype == given[key].dtype
        and mine[key].shape == given[key].shape
        and np.array_equal(_bits(mine[key]), _bits(given[key]))
        for key in mine
    )


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers as integers of the same bits: so -0.0 is not 0.0."""
    return array.view(f"u{array.dtype.itemsize}")


# ---- hyper-parameters and classes as JSON ----


def _encode(value: Any, what: str) -> Any:
    """A hyper-parameter as JSON: tuples, infinities, kernels and losses are objects of one or two entries."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, tuple):
        return {"tuple": [_encode(entry, what) for entry in value]}
    if isinstance(value, list):
        return [_encode(entry, what) for entry in value]
    name = type(value).__name__
    if _OBJECTS.get(name) is type(value):
        given = value.get_params(deep=False)
        return {
            "object": name,
            "parameters": {key: _encode(v, f"{name}'s {key}") for key, v in given.items()},
        }
    raise ModelFileError(
        f"{what} is {value!r}: a model file holds numbers, words, and kernels and losses of kernelstream, but no code; "
        "pickle the model instead"
    )


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"float"} and value["float"] in ("inf", "-inf", "nan"):
        return float(value["float"])
    if value.keys() == {"tuple"} and isinstance(value["tuple"], list):
        return tuple(_decode(value["tuple"]))
    if value.keys() == {"object", "parameters"}:
        kind = _known(_OBJECTS, value["object"], "kernel or loss")
        return kind(**{key: _decode(entry) for key, entry in value["parameters"].items()})
    raise ModelFileError(f"a hyper-parameter is {value!r}, which is nothing known")


def _encode_fit(model: Model) -> Record:
    """The estimator's own parameters; of a random generator nothing is kept, and a loaded model has the default's."""
    given = {key: getattr(model, key) for key in _FIT}
    if not isinstance(given["random_state"], numbers.Integral | None):
        del given["random_state"]
    return {key: _encode(value, key) for key, value in given.items()}


def _encode_class_weight(class_weight: ClassWeight) -> Any:
    return (
        class_weight if class_weight is None or isinstance(class_weight, str) else _encode_pairs(class_weight)
    )


def _encode_pairs(of_labels: Mapping[Any, Any]) -> list[Any]:
    """What belongs to each label, as pairs: a key of a JSON object could only be a string."""
    return [[_encode(label, "a label"), _encode(value, "its weight")] for label, value in of_labels.items()]


def _decode_class_weight(pairs: Any) -> ClassWeight:
    class_weight = dict(pairs) if isinstance(pairs, list) else pairs
    check_class_weight(class_weight)
    known: ClassWeight = class_weight
    return known


def _decode_counts(pairs: list[Any], classes: NDArray[Any]) -> Counts:
    counts = dict(pairs)
    known = set(classes.tolist())
    if not all(type(n) is int and n >= 0 and label in known for label, n in counts.items()):
        raise ModelFileError("its counts of classes are not those of its classes")
    return counts


def _encode_classes(classes: NDArray[Any]) -> Record:
    kind, values = classes.dtype.kind, classes.tolist()
    if kind == "O" and not all(isinstance(value, str) for value in values):
        odd = next(value for value in values if not isinstance(value, str))
        raise ModelFileError(
            f"the class {odd!r} is of type {type(odd).__name__} in an array of objects: a model file holds classes that are "
            "all whole numbers, all numbers, all booleans or all strings"
        )
    if kind not in "iufbUO":
        raise ModelFileError(
            f"classes of type {classes.dtype} have no place in a model file: use numbers, booleans or strings"
        )
    return {"type": kind if kind in "UO" else classes.dtype.str[1:], "values": values}


def _decode_classes(record: Any, memory: _Memory) -> NDArray[Any]:
    kind, values = record["type"], record["values"]
    if kind not in ("O", "U", "b1", *(k + size for k in "iuf" for size in "1248")) or kind == "f1":
        raise ModelFileError(f"its classes are of the unknown type {kind!r}")
    wanted = str if kind in "OU" else bool if kind == "b1" else float if kind[0] == "f" else int
    if not isinstance(values, list) or not all(type(value) is wanted for value in values):
        raise ModelFileError(f"its classes are not all of type {wanted.__name__}")
    # NumPy gives each string as many bytes as the longest needs.
    size = 4 * max(map(len, values), default=0) if kind == "U" else 8
    memory.take(2 * size * len(values), "classes")
    classes = np.array(values, object if kind == "O" else kind)
    if classes.tolist() != values or not (classes[1:] > classes[:-1]).all():
        raise ModelFileError("its classes are not sorted, or not what their type can hold")
    if classes.dtype.kind == "f" and not np.isfinite(classes).all():
        raise ModelFileError("its classes hold NaN or infinity")
    return classes
