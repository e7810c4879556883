"""Checks a folder of HTML pages: every relative link and picture leads to a file, every anchor to an id. Prints what is broken.

Nothing may be loaded from elsewhere (scripts, styles, pictures), so that the site works offline.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINKS = {
    "a": "href",
    "link": "href",
    "img": "src",
    "script": "src",
    "source": "srcset",
    "video": "src",
    "object": "data",
}
LOADED = LINKS.keys() - {"a"}


class Page(HTMLParser):
    """The ids and the links of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids = {""}
        self.links: list[tuple[str, str]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element is called and where it leads."""
        given = dict(attrs)
        self.ids.update(value for name in ("id", "name") if (value := given.get(name)))
        if link := given.get(LINKS.get(tag, "")):
            self.links.append((tag, link))


def broken_links(root: Path) -> list[str]:
    """Each broken link as a line: the page, the link and why."""
    pages = {path: Page(path) for path in sorted(root.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for tag, link in page.links:
            parts = urlsplit(link)
            why = ""
            if parts.scheme or parts.netloc:
                why = "loaded from elsewhere" if tag in LOADED and parts.scheme.startswith("http") else ""
            else:
                target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                target = target / "index.html" if target.is_dir() else target
                if not target.is_file():
                    why = "no such file"
                elif target in pages and unquote(parts.fragment) not in pages[target].ids:
                    why = "no such anchor"
            if why:
                found.append(f"{path.relative_to(root)}: {link}: {why}")
    return found


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    broken = broken_links(folder)
    print("\n".join(broken), end="\n" if broken else "")
    links = sum(len(Page(path).links) for path in folder.rglob("*.html"))
    print(f"{len(list(folder.rglob('*.html')))} pages, {links} links, {len(broken)} broken")
    sys.exit(bool(broken))
