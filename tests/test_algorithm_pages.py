"""docs/algorithms has a page for every learner, made of the docstrings as they are now."""

import importlib.util
import inspect
from pathlib import Path

import pytest

from kernelstream import learners

FOLDER = Path(__file__).parent.parent / "docs" / "algorithms"
_spec = importlib.util.spec_from_file_location("algorithm_pages", FOLDER / "make.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)
OURS = {
    name
    for name, kind in learners.registered(plugins=False).items()
    if kind.__module__.startswith("kernelstream.")
}


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_learner_has_its_page(name):
    text = (FOLDER / f"{name}.md").read_text()
    assert text == make.page(name), "run python docs/algorithms/make.py"
    for parameter in inspect.signature(getattr(learners, name)).parameters:
        assert f"\n| `{parameter}` |" in text
    assert f"]({name}.md)" in (FOLDER / "index.md").read_text()
    assert 1000 < (FOLDER.parent / "pictures" / "algorithms" / f"{name}.png").stat().st_size < 40_000


def test_the_other_pages_and_nothing_else():
    assert set(make.TEXTS) == OURS
    assert (FOLDER / "sketches.md").read_text() == make.sketch_page()
    assert (FOLDER / "index.md").read_text() == make.index_page()
    assert {path.stem for path in FOLDER.glob("*.md")} == OURS | {"index", "sketches"}


def test_departures_are_those_of_the_docstring():
    """Each item of each docstring is an item of its page, in order."""
    doc = "A.\n\nThis differs from the paper in:\n    1. one thing; 2. another\n    of 3 lines;\n    3. a | b.\n"
    assert make.departures(doc) == "1. one thing\n2. another of 3 lines\n3. a | b"
    listed = [name for name in OURS if "differs from the paper" in getattr(learners, name).__doc__]
    assert listed
    for name in listed:
        assert make.departures(getattr(learners, name).__doc__), name
