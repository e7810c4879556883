"""Mutated model files, in short: `python tests/fuzz_models.py` does it at length. Here, because the sanitizers run tests/core."""

from fuzz_models import fuzz, seeds, use
from kernelstream import learners


def test_no_mutation_of_a_model_file_does_harm():
    files = seeds()
    assert {name for name, _ in files} == set(learners.__all__) - {"Learner"}
    assert {use(data) for _, data in files} == {"loaded and learnt"}
    tally = fuzz(1000, files=files)
    assert tally["refused"] > 500
    assert tally["loaded and learnt"] > 50
