"""Screenshots of a report at desktop and phone width, light and dark. Needs playwright and Chromium.

python benchmarks/report_screenshots.py REPORT.html FOLDER
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"
)


def main(report, folder):
    Path(folder).mkdir(parents=True, exist_ok=True)
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS.split())
        for name, (width, height) in SIZES.items():
            for theme in ("light", "dark"):
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme)
                page.goto(Path(report).resolve().as_uri())
                for part, full in (("top", False), ("full", True)):
                    path = Path(folder, f"report-{name}-{theme}-{part}.png")
                    page.screenshot(path=path, full_page=full)
                    print(path)
                page.close()
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
