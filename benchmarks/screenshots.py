"""Pictures of the command line for docs/command-line.md, taken from a real terminal (tmux) and drawn by rich and CairoSVG.

python benchmarks/screenshots.py
"""

from __future__ import annotations

import html
import io
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cairosvg
from rich.console import Console
from rich.text import Text

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
BINARY = Path(sys.executable).with_name("kernelstream")
SHOTS = {  # name: the lines typed, the width, and text to wait for before the picture is taken
    "run": (["kernelstream run moving_classes --rows 3e4"], 120, r"model bytes"),
    "running": (["kernelstream run moving_classes --rows 4e6"], 120, r" [2-9]\d% [\d,]+ rows"),
    "compare": (
        ["kernelstream compare rings --learners NOGD,BOGD,KernelPA,OKSSIL,Forgetron,LinearPA --rows 20000"],
        120,
        r"6 │",
    ),
    "errors": (
        ["kernelstream run rows.libsvm", "kernelstream run ringz", "kernelstream run --learner NODG"],
        120,
        r"did you mean 'NOGD",
    ),
}


def tmux(*words):
    return subprocess.run(
        ["tmux", "-L", "pictures", *words], capture_output=True, text=True, check=True
    ).stdout


def wait(name, wanted):
    """Until the screen shows what is wanted."""
    for _ in range(600):
        if re.search(wanted, tmux("capture-pane", "-p", "-t", name).rstrip()):
            return
        time.sleep(0.1)


def shot(name, typed, width, wanted, folder):
    tmux(
        "new-session",
        "-d",
        "-s",
        name,
        "-x",
        str(width),
        "-y",
        "60",
        "-c",
        folder,
        "env PS1='$ ' bash --norc -i",
    )
    try:
        time.sleep(1)
        tmux("send-keys", "-t", name, f"alias kernelstream={shlex.quote(str(BINARY))}; clear", "Enter")
        time.sleep(0.5)
        for line in typed:
            tmux("send-keys", "-t", name, line, "Enter")
            wait(name, wanted if line == typed[-1] else rf"(?m)^\$ {re.escape(line)}\n(?s:.*)^\$ *$")
        time.sleep(0.5)
        return tmux("capture-pane", "-e", "-p", "-t", name).rstrip()
    finally:
        tmux("kill-session", "-t", name)


def one_by_one(found):
    """A text as one element per character: CairoSVG does not stretch a text to the length that it is to have."""
    before, x, middle, after, text = found.groups()
    return "".join(
        f'<text {before}x="{float(x) + 12.2 * place:.1f}"{middle}{after}>{html.escape(mark)}</text>'
        for place, mark in enumerate(html.unescape(text))
        if not mark.isspace()
    )


def draw(name, shown, width):
    lines = shown.splitlines()
    if lines and lines[-1].strip() == "$":
        lines.pop()
    console = Console(record=True, width=width, file=io.StringIO())
    for line in lines:
        console.print(Text.from_ansi(line), no_wrap=True, crop=True)
    svg = console.export_svg(title="")
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono")
    svg = re.sub(
        r'<text ([^>]*?)x="([\d.]+)"([^>]*?) textLength="[\d.]+"([^>]*)>([^<]*)</text>', one_by_one, svg
    )
    cairosvg.svg2png(svg.encode(), write_to=str(PICTURES / f"{name}.png"), output_width=1100)


def main():
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "rows.libsvm").write_text("+1 1:0.5 3:2\n-1 2:1\n+1 1:0.25 3:none\n")
        for name, (typed, width, wanted) in SHOTS.items():
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            draw(name, shot(name, typed, width, wanted, folder), width)
            print(PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
