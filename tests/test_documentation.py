"""README and docs: every Python block and every command runs, and prints what the page shows; every public name is documented."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import shutil
import sys

import pytest

from documentation import PAGES, PAGES_RUN_ELSEWHERE, ROOT, blocks, commands, prepare, run_command

TIMINGS = ("seconds", "rows/s", "µs per row learnt", "model bytes", "model in memory", "file ")
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[-+]\d+)?")
LANGUAGES = {page.relative_to(ROOT).as_posix(): blocks(page) for page in PAGES}
RUN = [name for name, found in LANGUAGES.items() if found and name not in PAGES_RUN_ELSEWHERE]


def without_drift(text):
    """When a memory is rebuilt depends on the last digits."""
    return [line for line in text if not re.match(r"the drift log|  round [\d,]+:", line)]


def same(shown, printed):
    """Words are equal, numbers nearly: other processors round otherwise."""
    if shown.strip().startswith(TIMINGS) and printed.strip().startswith(TIMINGS):
        return True
    words = [re.sub(r"[\d\s.,%+-]|e(?=[-+\d])|[▁-█]|[kMG]?B", "", line) for line in (shown, printed)]
    if words[0] != words[1]:
        return False
    pairs = [[float(n.replace(",", "")) for n in NUMBER.findall(line)] for line in (shown, printed)]
    if "µs" in shown or re.match(r"\s+\d\s", shown):  # a row of a ranking: time and curve
        return True
    return len(pairs[0]) == len(pairs[1]) and all(
        abs(a - b) <= 0.05 * max(abs(a), abs(b)) + 0.05 for a, b in zip(*pairs, strict=True)
    )


@pytest.mark.parametrize("name", RUN)
def test_the_page_runs(name, tmp_path, monkeypatch):
    if sys.platform == "win32" or shutil.which("bash") is None:
        pytest.skip("needs a shell")
    folder = tmp_path / "work"
    folder.mkdir()
    prepare(folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = {"__name__": "page"}
    for block in LANGUAGES[name]:
        if block.language == "python":
            code = compile("\n" * (block.line - 1) + block.text, str(ROOT / name), "exec")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(code, names)
            continue
        for command, shown in commands(block):
            code, printed = run_command(command, folder)
            if block.language == "sh":
                assert code == 0, f"{command}\n{printed}"
                continue
            printed, shown = without_drift(printed.splitlines()), without_drift(shown)
            assert len(printed) == len(shown), f"{command}\n" + "\n".join(printed)
            for expected, line in zip(shown, printed, strict=True):
                assert same(expected, line), f"{command}\n{expected}\n{line}"


def test_pages_named_exist_and_there_are_many_blocks():
    assert set(PAGES_RUN_ELSEWHERE) <= set(LANGUAGES)
    assert sum(block.language == "python" for name in RUN for block in LANGUAGES[name]) > 20
    assert sum(len(commands(b)) for name in RUN for b in LANGUAGES[name] if b.language != "python") > 20


def public(name):
    """The public names of a module."""
    module = importlib.import_module(name)
    own = (n for n, thing in vars(module).items() if getattr(thing, "__module__", "") == name)
    return set(getattr(module, "__all__", None) or (n for n in own if not n.startswith("_")))


def listed():
    """The modules of the reference, with the names that it lists of each."""
    found = {}
    for page in sorted((ROOT / "docs" / "reference").glob("*.md")):
        module = ""
        for kind, name in re.findall(r"^\.\. (\w+):: ([\w.]+)", page.read_text(encoding="utf-8"), re.M):
            if kind in ("automodule", "currentmodule"):
                module = name
                found.setdefault(module, set())
            if kind == "automodule" and module != "kernelstream":
                found[module] |= public(module)
            elif kind in ("autoclass", "autofunction"):
                home, _, short = name.rpartition(".")
                found.setdefault(home or module, set()).add(short)
    return found


def test_the_reference_lists_every_public_name():
    pages = listed()
    for module, names in pages.items():
        missing = public(module) - names
        if module == "kernelstream":  # names of its modules are on their pages
            missing -= set().union(*(others for other, others in pages.items() if other != module))
            missing -= {name.rpartition(".")[2] for name in pages}
        if module != "kernelstream.explanations":
            assert not missing, f"{module}: {sorted(missing)} not in docs/reference"
    assert {
        f"kernelstream.{name}" for name in ("learners", "kernels", "losses", "sketches", "stream")
    } <= set(pages)


# What nobody has to import: its names are on the page of `kernelstream`, or it serves the other modules.
INTERNAL = {
    "blas", "calibration", "class_weights", "cli", "estimator_base", "estimators", "files", "labels", "parameters", "persistence",
    "rows", "runner", "scaling", "tables", "tabular", "transaction",
}  # fmt: skip


def test_every_public_module_has_a_page():
    found = {path.stem for path in (ROOT / "src" / "kernelstream").iterdir() if path.suffix == ".py"}
    found |= {path.parent.name for path in (ROOT / "src" / "kernelstream").glob("*/__init__.py")}
    found = {name for name in found if not name.startswith("_")}
    pages = {name.partition(".")[2] for name in listed()} - {""}
    assert INTERNAL <= found
    assert found - INTERNAL == pages, "give it a page in docs/reference, or name it in INTERNAL"
    contents = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8").splitlines()
    assert {path.stem for path in (ROOT / "docs" / "reference").glob("*.md")} - {"index", "commands"} <= set(
        contents
    )


def test_every_page_of_results_is_listed_and_names_its_command_and_machine():
    folder = ROOT / "docs" / "results"
    contents = (folder / "index.md").read_text(encoding="utf-8").splitlines()
    for page in sorted(folder.glob("*.md")):
        if page.stem == "index":
            continue
        text = page.read_text(encoding="utf-8")
        scripts = re.findall(r"benchmarks/\w+(?:\.py)?", text)
        assert page.stem in contents, f"{page.name} is not in docs/results/index.md"
        assert scripts, f"{page.name} does not name the command that makes it"
        assert all((ROOT / script).exists() for script in scripts), f"{page.name}: {scripts}"
        assert "(index.md#the-machine)" in text, f"{page.name} does not name its machine"


def test_every_public_name_has_a_docstring():
    lacking, count = [], 0
    for module, names in listed().items():
        for name in names:
            thing = getattr(importlib.import_module(module), name)
            ours = (
                [(f"{module}.{name}", thing)] if isinstance(thing, type) or inspect.isroutine(thing) else []
            )
            if isinstance(thing, type):
                ours += [
                    (f"{module}.{name}.{member}", getattr(thing, member))
                    for kind in thing.__mro__
                    if kind.__module__.startswith("kernelstream")
                    for member, value in vars(kind).items()
                    if not member.startswith("_")
                    and (inspect.isroutine(value) or isinstance(value, property | classmethod | staticmethod))
                    and not re.fullmatch(r"set_\w+_request", member)  # scikit-learn's own
                ]
            count += len(ours)
            lacking += [path for path, each in ours if not inspect.getdoc(each)]
    assert not lacking, f"{len(lacking)} of {count} lack a docstring: {sorted(set(lacking))}"
