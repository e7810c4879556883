"""The data sets that have names: what is known of them, and where they come from."""

from dataclasses import dataclass
from typing import Literal

from kernelstream.stream.options import Task
from kernelstream.tables.errors import did_you_mean

__all__ = ["DATASETS", "Dataset", "did_you_mean", "record_of"]


@dataclass(frozen=True)
class Dataset:
    """What we know about a data set before opening it.

    Attributes:
        name: its name, and the file's.
        rows: rows to use, from the first; the file may hold more (see `svmguide3`).
        features: number of features.
        order: "shuffle" (sorted or autocorrelated in the file), "random" (already in random order), "time"
            (a drift stream: keep the order).
        task: "classification" or "regression".
        sparse: whether `load` gives CSR rows; otherwise a dense array.
        shipped: whether scikit-learn ships it.
        addresses: where its parts are, in the order of the rows; see `kernelstream.stream.download.fetch`.
        sha256: of the rows, as `rows_sha256` has it, so however they are written or packed.
    """

    name: str
    rows: int
    features: int
    order: Literal["shuffle", "random", "time"] = "random"
    task: Task = "classification"
    sparse: bool = False
    shipped: bool = False
    addresses: tuple[str, ...] = ()
    sha256: str = ""


def _libsvm(*files: str) -> tuple[str, ...]:
    return tuple(f"https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/{file}" for file in files)


DATASETS = {
    d.name: d
    for d in (
        Dataset(
            "german.numer",
            1000,
            24,
            addresses=_libsvm("binary/german.numer"),
            sha256="1a8969e06f91b2a75d2fb3587f722e9e989ddc83e67232b9283e60ae880dc65a",
        ),
        Dataset(
            "german.numer_scale",
            1000,
            24,
            addresses=_libsvm("binary/german.numer_scale"),
            sha256="892e7fd10debe0d442daae4b0133281039816272d1f8c51c151af22ca6ca1ce9",
        ),
        # The file's last 41 rows, its test part, are exact copies of the 41 before them.
        Dataset(
            "svmguide3",
            1243,
            21,
            order="shuffle",
            addresses=_libsvm("binary/svmguide3", "binary/svmguide3.t"),
            sha256="f75f9ee25e9ec215057b3e536664fcac70d5b24ba0e394c8710f124f43ce1cd7",
        ),
        Dataset(
            "spambase",
            4601,
            57,
            order="shuffle",
            addresses=("https://archive.ics.uci.edu/static/public/94/spambase.zip#spambase.data",),
            sha256="201c7b8f3ebbf1785e1254ceb8d8d5b2eb00928b23f13eb7856c981d39904840",
        ),
        Dataset(
            "mushrooms",
            8124,
            112,
            order="shuffle",
            sparse=True,
            addresses=_libsvm("binary/mushrooms"),
            sha256="7f20c1a81a2f433441bd439cdc9d3d659cbfa8f29d49c8c62f3d3e31041a4dff",
        ),
        Dataset(
            "a9a",
            48842,
            123,
            sparse=True,
            addresses=_libsvm("binary/a9a", "binary/a9a.t"),
            sha256="cc3b4c7281e32ed53801ba9259e7f0de2800ff9eb680fb3dcfc83a97ec6c9c29",
        ),
        Dataset(
            "w7a",
            49749,
            300,
            order="shuffle",
            sparse=True,
            addresses=_libsvm("binary/w7a", "binary/w7a.t"),
            sha256="8fae292f61af6dfbf0de0aeb36beb3532673234e1a351f6567f24fbaf9bf6376",
        ),
        Dataset(
            "ijcnn1",
            141691,
            22,
            addresses=_libsvm("binary/ijcnn1.bz2", "binary/ijcnn1.t.bz2"),
            sha256="f2f480e94484c580a4c21c926d55accf296d6fab56be389497b89d3d37975049",
        ),
        Dataset(
            "cod-rna.train",
            59535,
            8,
            order="shuffle",
            addresses=_libsvm("binary/cod-rna"),
            sha256="29270e446781474e80673fdf01d58e1e001daa5507f3ae2f5ba28b217c2d266f",
        ),
        Dataset(
            "covtype.binary",
            581012,
            54,
            order="shuffle",
            addresses=_libsvm("binary/covtype.libsvm.binary.bz2"),
            sha256="a057f5e1ef3fb09ca930eba0be6069d297eee58730285a79d14283a00c225b5e",
        ),
        Dataset(
            "usps",
            9298,
            256,
            addresses=_libsvm("multiclass/usps.bz2", "multiclass/usps.t.bz2"),
            sha256="50f565879b15b718bccf9e3efc9b5eaf1016f173292b3699d16b343b0038f2b7",
        ),
        Dataset(
            "cpusmall",
            8192,
            12,
            task="regression",
            addresses=_libsvm("regression/cpusmall"),
            sha256="b96e5c893ae25d82c495ba595291c113021d39b23d45728844b449af8346e481",
        ),
        Dataset(
            "abalone_scale",
            4177,
            8,
            task="regression",
            addresses=_libsvm("regression/abalone_scale"),
            sha256="2647caf3dd6766f63e920ebe349c13cebd9b937b5fcc1d59f03b349d177b4519",
        ),
        Dataset(
            "elec2",
            45312,
            8,
            order="time",
            addresses=("https://www.openml.org/data/v1/download/2419/electricity.arff",),
            sha256="fe8c968f2a0d5408bd7b8cd1561146326d2bc46added228ddd81459ec5fecd3c",
        ),
        Dataset("digits", 1797, 64, shipped=True),
        Dataset("breast_cancer", 569, 30, shipped=True),
    )
}
"""The registered data sets, by name."""


def record_of(name: str) -> Dataset:
    """What is known of a data set.

    Examples:
        >>> record_of("a9a").rows
        48842
    """
    if name not in DATASETS:
        raise ValueError(f"unknown data set {name!r}; {did_you_mean(name, DATASETS)}")
    return DATASETS[name]
