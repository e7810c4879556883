"""Runs the commands of docs/first-hour.md and writes what they print into it.

python benchmarks/first_hour.py            with the kernelstream of this Python
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "first-hour.md"


def main():
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def run(block):
        made = []
        for line in block[1].splitlines():
            if line.startswith("$ "):
                done = subprocess.run(
                    ["bash", "-c", line[2:]], cwd=folder, env=environment, capture_output=True, check=False
                )
                made += [line, *(done.stdout + done.stderr).decode().splitlines()]
                print(line, file=sys.stderr)
        return "```console\n" + "".join(f"{line}\n" for line in made) + "```"

    with tempfile.TemporaryDirectory() as folder:
        page = re.sub(r"```console\n(.*?)```", run, PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
