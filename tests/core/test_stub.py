"""The stub of the compiled core, `src/kernelstream/_compiled.pyi`, is what the core says of itself.

It is kept in the repository, so that mypy and editors need no build, and so that no build needs to run what it has compiled,
which may be for another machine. After a change of the bindings: `python tests/core/test_stub.py` writes it again.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelstream._core import core

STUB = Path(__file__).parents[2] / "src/kernelstream/_compiled.pyi"
HEAD = """# The compiled core, written by tests/core/test_stub.py; do not edit.
# ruff: noqa
# fmt: off
"""


def stub() -> str:
    """nanobind's stub, with arrays without their layout and states with their types."""
    from nanobind.stubgen import StubGen

    generator = StubGen(core)
    generator.put(core)
    text = generator.get()
    text = re.sub(r"Annotated\[(NDArray\[[\w.]+\]), dict\((?:[^()]|\([^()]*\))*\)\]", r"\1", text)
    text = re.sub(r"\bdict\b(?!\[)", "dict[str, NDArray[Any]]", text)
    text = re.sub(r"\btuple\b(?!\[)", "tuple[Any, ...]", text)
    text = text.replace("**options)", "**options: Any)").replace(
        "from typing import Annotated, ", "from typing import Any, "
    )
    return HEAD + re.sub(r"\n{2,}", "\n", re.sub(r" +\n", "\n", text)).strip() + "\n"


def test_the_stub_is_true():
    pytest.importorskip("nanobind.stubgen")
    assert stub() == STUB.read_text(encoding="utf-8"), "run: python tests/core/test_stub.py"


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
