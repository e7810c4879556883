"""Runs the commands of docs/first-hour.md and writes what they print into it.

python benchmarks/first_hour.py                    with the kernelstream of this Python
python benchmarks/first_hour.py --empty [--wheel FILE] [FOLDER]   from an empty environment, made in a folder

The second one builds the wheel unless one is given, installs it with pip, runs every command there, and writes how long each
takes into docs/results/first_hour.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs" / "first-hour.md", ROOT / "docs" / "results" / "first_hour.md"


def processor_time():
    """Seconds of processor time of all programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Timed:
    """Runs commands in a folder and takes note of how long each takes."""

    def __init__(self, programs, folder):
        self.taken = []
        self._folder = folder
        self._environment = os.environ | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "120",
        }

    def __call__(self, command):
        start, used = time.perf_counter(), processor_time()
        argv = ["bash", "-c", command]
        done = subprocess.run(argv, cwd=self._folder, env=self._environment, capture_output=True, check=False)
        self.taken.append((command, time.perf_counter() - start, processor_time() - used))
        print(f"{self.taken[-1][1]:6.1f} s  {command}", file=sys.stderr)
        return (done.stdout + done.stderr).decode()


def page_of(run):
    """The page with what its commands print now."""

    def block(found):
        made = []
        for line in found[1].splitlines():
            if line.startswith("$ "):
                made += [line, *run(line[2:]).splitlines()]
        return "```console\n" + "".join(f"{line}\n" for line in made) + "```"

    return re.sub(r"```console\n(.*?)```", block, PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def empty(folder, wheel):
    """Every step from an empty environment on, and how long it takes."""
    programs = Path(folder, "environment", "bin")
    outside = Timed(Path(sys.executable).parent, folder)
    if wheel is None:
        outside(f"{sys.executable} -m pip wheel -q --no-deps -w wheel {ROOT}")
    venv.create(programs.parent, with_pip=True)
    inside = Timed(programs, folder)
    inside(f"pip install -q {wheel or 'wheel/kernelstream-*.whl'}")
    installed = inside("pip list --format freeze").split()
    page_of(inside)
    install, *rest = inside.taken
    rest = rest[1:]
    first = install[1] + sum(wall for _, wall, _ in rest[:2])
    lines = [
        "# The first hour, from an empty environment",
        "",
        "Machine: [two cores of a busy server](index.md#the-machine).",
        "",
        "`python benchmarks/first_hour.py --empty`: pip installs the wheel into an empty environment, and every command of",
        "[first-hour.md](../first-hour.md), where the outputs are, runs there. "
        f"{platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}.",
        "",
        f"- From `pip install` of the wheel to the first result of `run`: **{first:.0f} s by the clock**, "
        f"{install[1]:.0f} of them pip's.",
        *(
            f"- Building the wheel from source (`pip install .`): {build:.0f} s of processor time more."
            for _, _, build in outside.taken
        ),
        f"- Installed: {', '.join(installed)}.",
        "",
        "| command | seconds | processor time |",
        "|---|---:|---:|",
        *(
            f"| `{command.replace('|', chr(92) + '|')}` | {wall:.1f} | {used:.1f} |"
            for command, wall, used in rest
        ),
    ]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    with tempfile.TemporaryDirectory() as folder:
        parser = argparse.ArgumentParser(
            description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("--empty", action="store_true")
        parser.add_argument("--wheel", type=Path)
        parser.add_argument("folder", nargs="?", type=Path, default=Path(folder))
        arguments = parser.parse_args()
        if arguments.empty:
            empty(arguments.folder.absolute(), arguments.wheel and arguments.wheel.absolute())
        else:
            page = page_of(Timed(Path(sys.executable).parent, folder))
            PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
