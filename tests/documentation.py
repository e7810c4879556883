"""The code blocks of README and docs, and how they are run: Python in one namespace per page, commands in one folder per page."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import lzma
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROGRAM = "import sys; from kernelstream.cli import main; sys.exit(main())"

# What is not run: a page, or lines that contain a text; and why.
PAGES_RUN_ELSEWHERE = {
    "docs/writing-a-learner.md": "tests/learners/test_contract.py makes a package of it",
    "docs/streaming.md": "tests/test_checkpoint.py runs it, with crashes",
    "docs/spark.md": "tests/test_spark.py runs it, in its session",
    "docs/messages.md": "tests/cli/test_messages.py runs it, with its files",
}
NOT_RUN = {
    "kernelstream reproduce": "minutes to hours; tests/reproduce",
    "kernelstream data get": "fetches from the network; tests/stream/test_download.py",
    "a9a": "a data set that is not in the package",
    "kernelstream completion": "is for an interactive shell; tests/cli/test_commands.py",
    "tail -f": "never ends",
    "pip install": "installs",
    "reproduction/results.jsonl": "the output of `kernelstream reproduce`",
}


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line on which that begins."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """The blocks of a page that may run, in order."""
    text = page.read_text(encoding="utf-8")
    found: Iterable[re.Match[str]] = re.finditer(
        r"^([ ]*)```(python|sh|console)\n(.*?)^\1```", text, re.MULTILINE | re.DOTALL
    )
    found = (m for m in found if m[2] != "python" or not any(said in m[3] for said in NOT_RUN))
    return [
        Block(m[2], re.sub(rf"^{m[1]}", "", m[3], flags=re.M), text.count("\n", 0, m.start(3)) + 1)
        for m in found
    ]


def commands(block: Block) -> list[tuple[str, list[str]]]:
    """The commands of a block, and the lines that the page shows below each (only a console shows any)."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        if block.language == "sh":
            line = re.sub(r"\s+#.*", "", line).strip()
            if re.search(r"(^|\| |done; )kernelstream ", line):
                found.append((line, []))
        elif line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return [pair for pair in found if not any(text in pair[0] for text in NOT_RUN)]


def run_command(command: str, folder: Path) -> tuple[int, str]:
    """A command's exit code and what it prints. In this process if it needs no shell: starting Python takes a second."""
    if command.startswith("kernelstream ") and not re.search(r"[|<>&;$*(`]", command):
        from kernelstream.cli import main

        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), contextlib.chdir(folder):
            code = main(shlex.split(command)[1:])
        return code, out.getvalue()
    tools = folder / ".tools"
    tools.mkdir(exist_ok=True)
    (tools / "kernelstream").write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{PROGRAM}" "$@"\n'
    )
    (tools / "kernelstream").chmod(0o755)
    environment = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).decode()


def prepare(folder: Path) -> None:
    """The files that the pages speak of without making them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).round(3)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)

    def table(rows: list[int], label: str, sep: str = ",") -> str:
        head = sep.join(["a", "b", "c", *([label] if label else [])])
        return (
            "\n".join([head, *(sep.join(map(str, [*X[i], *([y[i]] if label else [])])) for i in rows)]) + "\n"
        )

    every = list(range(300))
    (folder / "clicks.csv.gz").write_bytes(gzip.compress(table(every, "clicked").encode()))
    (folder / "new.csv").write_text(table(every[:20], ""))
    customers = [
        f"customer,{head}" if i == 0 else f"c{i},{head}"
        for i, head in enumerate(table(every[:20], "").splitlines())
    ]
    (folder / "customers.csv").write_text("\n".join(customers) + "\n")
    libsvm = "".join(f"{y[i]} " + " ".join(f"{j + 1}:{X[i, j]}" for j in range(3)) + "\n" for i in every)
    for day in ("day1", "day2"):
        (folder / f"{day}.libsvm.xz").write_bytes(lzma.compress(libsvm.encode()))
    lines = [json.dumps({"a": X[i, 0], "b": X[i, 1], "label": int(y[i])}) for i in every]
    (folder / "logs.gz").write_bytes(gzip.compress(("\n".join(lines) + "\n").encode()))
    with contextlib.suppress(ImportError):
        import pyarrow
        import pyarrow.parquet

        columns = {"a": X[:, 0], "b": X[:, 1], "y": y}
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / "huge.parquet")
