"""Runs the commands of the console blocks of pages and writes what they print into them.

python benchmarks/console_blocks.py docs/first-hour.md ...     (all pages, if none are named)
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
os.environ["COLUMNS"] = "120"

from documentation import PAGES, Block, commands, prepare, run_command


def main() -> None:
    for page in [Path(name) for name in sys.argv[1:]] or PAGES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            prepare(folder)

            def run(found: re.Match[str], folder: Path = folder) -> str:
                made = []
                for command, _ in commands(Block("console", found[1], 0)):
                    print(command, file=sys.stderr)
                    made += [f"$ {command}", *run_command(command, folder)[1].splitlines()]
                return "```console\n" + "".join(f"{line}\n" for line in made) + "```"

            text = page.read_text(encoding="utf-8")
            made = re.sub(r"```console\n(.*?)```", run, text, flags=re.DOTALL)
            if made != text:
                page.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
