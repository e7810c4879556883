"""A picture in a light and a dark form, `<picture>` in Markdown as code hosts understand it, follows the site's switch."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

PICTURE = re.compile(
    r'<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img alt="([^"]*)" src="([^"]+)">\s*</picture>'
)


def convert(app: Sphinx, page: str, text: list[str]) -> None:
    """Two images, of which furo shows one."""
    text[0] = PICTURE.sub(r"![\2](\3){.only-light}\n![\2](\1){.only-dark}", text[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Before a page is read."""
    app.connect("source-read", convert)
    return {"parallel_read_safe": True}
