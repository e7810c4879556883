"""Docstrings are plain text with Google's sections; this makes reStructuredText of what would be read as markup there."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(``.*?``|`[^`]*`(?:__?)?|^\s*:[a-z]+[^:]*:|^\s*\* )")  # or a bullet
COLON = "\ue000"  # stands for a colon while sections are read
SKLEARN = re.compile(r"set_\w+_request|get_metadata_routing")


def before_sections(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Before the sections are read: an attribute has no type before a colon, and "Attributes" becomes a list."""
    if what in ("attribute", "data", "property"):
        lines[:] = [line.replace(":", COLON) for line in lines]
        return
    if "Attributes:" not in lines:
        return
    start = lines.index("Attributes:")
    end = next((i for i in range(start + 1, len(lines)) if not lines[i].strip()), len(lines))
    prose = " ".join(line.strip() for line in lines[start + 1 : end])
    parts = re.split(r"(?:^|(?<=[.;] ))(\w+(?:, \w+)*): ", prose)[1:]
    items = [
        f"    * ``{names}``: {said.strip()}".replace(", ", "``, ``", names.count(", "))
        for names, said in zip(parts[::2], parts[1::2], strict=True)
    ]
    lines[start:end] = ["Fitted attributes:", *items]


def after_sections(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """After them: indented formulas become literal blocks, and bars, stars and last underscores characters."""
    lines[:] = [line.replace(COLON, ":") for line in lines]
    literal = None  # how far the line before a block of formulas is indented
    example = False
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if literal is not None or example:
            continue
        following = next((later for later in lines[i + 1 :] if later.strip()), "")
        begins = line.endswith(":") and not line.lstrip().startswith((":", ".."))
        deeper = len(following) - len(following.lstrip()) > indent
        lines[i] = "".join(
            part if CODE.fullmatch(part) else re.sub(r"([|*])|(?<=\w)_(?!\w)", lambda m: "\\" + m[0], part)
            for part in CODE.split(line)
        )
        if begins and deeper and i + 1 < len(lines) and not lines[i + 1].strip():
            lines[i] += ":"
            literal = indent


def alias(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """A type that conf.py wants by its name is that name, also within a union."""
    signature, returns = (
        text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, returns)
    )
    return signature, returns


def skip(app: Sphinx, what: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """Methods that scikit-learn adds by itself are documented there."""
    return True if SKLEARN.fullmatch(name) else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both, around napoleon's own work."""
    app.connect("autodoc-process-docstring", before_sections, priority=100)
    app.connect("autodoc-process-docstring", after_sections, priority=900)
    app.connect("autodoc-process-signature", alias)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
