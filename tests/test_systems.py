"""docs/systems.md names classes, files and tests that exist, and no learner or sketch is missing from it."""

import ast
import re
from pathlib import Path

import pytest

from kernelstream import alignment, learners, sketches

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs" / "systems.md"
ROWS = [
    [cell.strip().strip("`") for cell in line.strip("| \n").split("|")]
    for line in TABLE.read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| system")
]


def functions(path):
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2])
def test_every_row_is_true(row):
    _, _, name, file, oracle, bounded, tasks = row
    home = next(module for module in (learners, sketches, alignment) if hasattr(module, name))
    path = ROOT / "src" / "kernelstream" / file
    assert re.search(rf"^(class|def) {name}\b", path.read_text(), re.M)
    test_file, test = oracle.split("::")
    assert test in functions(ROOT / "tests" / test_file)
    if home is learners:
        kind = getattr(learners, name)
        assert kind.bounded == (bounded == "yes")
        assert kind.regression == ("r" in tasks)
        assert getattr(kind, "multiclass", True) == ("m" in tasks)


def test_no_system_is_missing():
    named = {row[2] for row in ROWS} | {"KernelPerceptron", "TruncatedKOGD", "Learner", "KernelSketch"}
    assert named >= {*learners.registered(plugins=False), *sketches.__all__}
