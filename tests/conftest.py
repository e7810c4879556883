"""Fixtures for all tests."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# Before NumPy is imported. Tests run in two processes: more threads of BLAS would only wait for each other. A run of them once
# waited for ever among the tests of NOLANA, which change the number of threads of OpenBLAS to one and back thousands of times.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No deadline per example: the machine may be busy, and a slow example is not a wrong one.
settings.register_profile("kernelstream", deadline=None)
# In CI the same examples each time, so that no change fails by the luck of others; elsewhere new ones, which find what is wrong.
settings.register_profile("ci-kernelstream", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("ci-kernelstream" if os.environ.get("CI") else "kernelstream")

# No test reaches out for data that is not there; those of downloads have a server of their own.
os.environ["KERNELSTREAM_OFFLINE"] = "1"


@pytest.fixture(scope="session")
def data_file() -> Callable[[str], Path]:
    """The file of a data set, found through KERNELSTREAM_DATA. The test is skipped when it is not there."""

    def find(name: str) -> Path:
        folder = os.environ.get("KERNELSTREAM_DATA")
        if not folder:
            pytest.skip(
                f"data set {name!r} needs the environment variable KERNELSTREAM_DATA, which is not set"
            )
        path = Path(folder, f"{name}.libsvm.xz")
        if not path.is_file():
            pytest.skip(f"data set {name!r}: no file {path}")
        return path

    return find


@pytest.fixture(scope="session")
def dataset(data_file):
    """A data set ``(X, y)`` by name, as `kernelstream.stream.load` gives it. Skips like `data_file`."""
    from kernelstream.stream import load

    return lambda name: load(name, data_file(name).parent)
