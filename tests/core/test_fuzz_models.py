"""Mutated model files, in short: `python tests/fuzz_models.py` does it at length. Here, because the sanitizers run tests/core."""

from pathlib import Path

import pytest

from fuzz_models import ORDINARY, fuzz, seeds, use, wild
from kernelstream import ModelFileError, learners, persistence

CORPUS = sorted((Path(__file__).parent.parent / "fuzz" / "models").iterdir())
HARMLESS = {"refused", "loaded and learnt", *(f"loaded, then {error.__name__}" for error in ORDINARY)}


@pytest.mark.slow
def test_no_mutation_of_a_model_file_does_harm():
    files = seeds()
    assert {name for name, _ in files} == set(learners.registered(plugins=False))
    assert {use(data) for _, data in files} == {"loaded and learnt"}
    tally = fuzz(1000, files=files)
    assert tally["refused"] > 500
    assert tally["loaded and learnt"] > 50
    assert tally.keys() <= HARMLESS


@pytest.mark.slow
def test_no_array_of_wild_numbers_does_harm():
    """Where luck is not enough: each array of each learner's state, whole."""
    found = {place: use(data) for place, data in wild(seeds()[1::3])}  # after 200 rows
    assert len(found) > 1000
    assert {place: how for place, how in found.items() if how not in HARMLESS} == {}


def test_files_kept_by_the_coverage_guided_fuzzer():
    """As they are, and mutated: tests/fuzz/fuzz_load.py has kept them because each reaches other lines of the package."""
    assert len(CORPUS) > 20
    files = [(path.name, path.read_bytes()) for path in CORPUS]
    assert {use(data) for _, data in files} <= HARMLESS
    whole = []
    for name, data in files:
        try:
            _, arrays = persistence._open(data)
        except ModelFileError:
            continue
        if arrays:
            whole.append((name, data))
    assert len(whole) > 20
    assert fuzz(500, seed=1, files=whole).keys() <= HARMLESS
