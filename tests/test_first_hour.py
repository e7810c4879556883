"""docs/first-hour.md: every command is run, and what it prints is what the page shows. Timings are left out."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "first-hour.md"
TIMINGS = ("seconds", "rows/s", "µs per row learnt", "model bytes", "model in memory", "file ")
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e[-+]\d+)?")


def blocks(text):
    """The commands of the page, and the lines that each prints."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def without_drift(lines):
    """When a memory is rebuilt depends on the last digits."""
    return [line for line in lines if not re.match(r"the drift log|  round [\d,]+:", line)]


def same(shown, printed):
    """Words are equal, numbers nearly: other processors round otherwise."""
    if shown.strip().startswith(TIMINGS) and printed.strip().startswith(TIMINGS):
        return True
    if re.sub(r"[\d\s.,%+-]|e(?=[-+\d])|[▁-█]|[kMG]?B", "", shown) != re.sub(
        r"[\d\s.,%+-]|e(?=[-+\d])|[▁-█]|[kMG]?B", "", printed
    ):
        return False
    pairs = [[float(n.replace(",", "")) for n in NUMBER.findall(line)] for line in (shown, printed)]
    if "µs" in shown or re.match(r"\s+\d\s", shown):  # a row of a ranking: time and curve
        return True
    return len(pairs[0]) == len(pairs[1]) and all(
        abs(a - b) <= 0.05 * max(abs(a), abs(b)) + 0.05 for a, b in zip(*pairs, strict=True)
    )


@pytest.mark.skipif(sys.platform == "win32" or shutil.which("bash") is None, reason="needs a shell")
def test_the_first_hour(tmp_path):
    program = tmp_path / "kernelstream"
    code = "import sys; from kernelstream.cli import main; sys.exit(main())"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{code}" "$@"\n')
    program.chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    commands = blocks(PAGE.read_text(encoding="utf-8"))
    assert len(commands) > 12
    for command, shown in commands:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, check=False
        )
        printed = without_drift((done.stdout + done.stderr).decode().splitlines())
        shown = without_drift(shown)
        assert len(printed) == len(shown), f"{command}\n{printed}"
        for expected, line in zip(shown, printed, strict=True):
            assert same(expected, line), f"{command}\n{expected}\n{line}"
