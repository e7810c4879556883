"""docs/systems.md names classes, files and strict tests that exist, and no learner or sketch is missing from it."""

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
    if line.startswith("| ") and line.count("|") == 8 and not line.startswith("| system")
]
STRICT = 1e-7
"""The largest difference from its oracle that a system may have."""


def functions(path):
    return {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def is_strict(test, defined):
    """Whether a test, or a function of its file that it calls, compares arrays exactly or to within `STRICT`."""
    nodes, seen = list(ast.walk(defined[test])), {test}
    for node in nodes:  # grows
        name = getattr(getattr(node, "func", None), "id", "")
        if name in defined and name not in seen:
            seen.add(name)
            nodes += ast.walk(defined[name])
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    exact = any(getattr(call.func, "attr", "") in ("array_equal", "assert_array_equal") for call in calls)
    tolerances = [
        constant.value
        for node in nodes
        if isinstance(node, ast.Compare)
        or (isinstance(node, ast.keyword) and node.arg in ("atol", "rtol", "abs", "rel"))
        for constant in ast.walk(node)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, float)
    ]
    return exact or any(0 < tolerance <= STRICT for tolerance in tolerances)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2])
def test_every_row_is_true(row):
    _, _, name, file, oracle, bounded, tasks = row
    home = next(module for module in (learners, sketches, alignment) if hasattr(module, name))
    path = ROOT / "src" / "kernelstream" / file
    assert re.search(rf"^(class|def) {name}\b", path.read_text(), re.M)
    test_file, test = oracle.split("::")
    defined = functions(ROOT / "tests" / test_file)
    assert test in defined
    assert is_strict(test, defined), f"{oracle} is no equality to {STRICT:g}"
    if home is learners:
        kind = getattr(learners, name)
        assert kind.bounded == (bounded == "yes")
        assert kind.regression == ("r" in tasks)
        assert getattr(kind, "multiclass", True) == ("m" in tasks)


def test_no_system_is_missing():
    named = {row[2] for row in ROWS} | {"Learner", "KernelSketch"}
    assert named >= {*learners.registered(plugins=False), *sketches.__all__}


def test_the_tests_named_beside_variants_and_footnotes_exist():
    """A name without a file is of the file named before it."""
    named, file = 0, ""
    for path, test in re.findall(r"`([\w/]+\.py)?(?:::(\w+))?`", TABLE.read_text()):
        file = path or file
        if test:
            assert test in functions(ROOT / "tests" / file), (file, test)
            named += 1
        elif path:
            assert any((ROOT / place / path).exists() for place in (".", "tests", "src/kernelstream")), path
    assert named > len(ROWS)


def test_an_inequality_is_no_oracle():
    defined = functions(ROOT / "tests" / "sketches" / "test_incremental.py")
    assert not is_strict("test_lemma_1_mean_and_variance", defined)
