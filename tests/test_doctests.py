"""Runs the doctests of the installed package: the source alone has no compiled module."""

import doctest
import importlib
import importlib.util
import pkgutil
import shutil

import pytest

import kernelstream
import kernelstream_reproduce

# A module whose name starts with an underscore and is not Python source has no doctests, and may need another
# CPU.
MODULES = [
    name
    for package in (kernelstream, kernelstream_reproduce)
    for name in (
        package.__name__,
        *(module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")),
    )
    if not name.rpartition(".")[2].startswith("_")
]


def on_spark(name):
    """Modules whose examples need a session of Spark, which the tests of one process share."""
    return name.startswith("kernelstream.spark")


@pytest.mark.parametrize(
    "name",
    [pytest.param(m, marks=pytest.mark.xdist_group("spark")) if on_spark(m) else m for m in MODULES],
)
def test_doctests(name):
    if on_spark(name) and not (shutil.which("java") and importlib.util.find_spec("pyspark")):
        pytest.skip("these examples need pyspark and Java")
    module = importlib.import_module(name)
    failures, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert failures == 0, f"{failures} examples of {name} failed; see the output above"


def test_there_are_doctests():
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module("kernelstream.evaluate"))
    assert any(test.examples for test in found)
