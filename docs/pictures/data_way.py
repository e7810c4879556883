"""The way of rows, base and deltas: `python docs/pictures/data_way.py` writes data_way.svg, for docs/many-machines.md."""

from pathlib import Path

WIDTH, HEIGHT = 700, 334
INK, BOX = "#767676", "#1f77b4"


def box(x: int, y: int, w: int, h: int, *lines: str) -> str:
    """A box with lines of text."""
    top = y + h / 2 - 9 * (len(lines) - 1) + 5
    text = "".join(
        f'<text x="{x + w / 2}" y="{top + 18 * k}" text-anchor="middle">{line}</text>'
        for k, line in enumerate(lines)
    )
    return f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="4" fill="none" stroke="{BOX}" stroke-width="1.5"/>{text}'


def arrow(x1: float, y1: float, x2: float, y2: float, label: str = "", dx: float = 0, dy: float = -6) -> str:
    """A line with a head and a label."""
    middle = f'<text x="{(x1 + x2) / 2 + dx}" y="{(y1 + y2) / 2 + dy}" text-anchor="middle" font-size="12">{label}</text>'
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{INK}" marker-end="url(#end)"/>' + (
        middle if label else ""
    )


def picture() -> str:
    """The whole picture."""
    parts = [
        box(10, 130, 110, 60, "file, table", "or stream"),
        *(box(290, 20 + 100 * k, 150, 60, f"worker {k + 1}", "base + its part") for k in range(3)),
        box(560, 130, 130, 60, "coordinator", "base + deltas"),
    ]
    for k in range(3):
        parts.append(arrow(120, 160, 288, 50 + 100 * k, "rows" if k == 1 else ""))
        parts.append(arrow(440, 50 + 100 * k, 558, 160, "delta" if k == 1 else ""))
    parts.append(
        f'<path d="M 625 190 L 625 310 L 365 310 L 365 282" fill="none" stroke="{INK}" marker-end="url(#end)"/>'
    )
    words = "the sum is the base of the next epoch, for all workers"
    parts.append(f'<text x="495" y="326" text-anchor="middle" font-size="12">{words}</text>')
    parts.append(
        f'<path d="M 65 130 L 65 8 L 625 8 L 625 128" fill="none" stroke="{INK}" marker-end="url(#end)"/>'
        '<text x="160" y="22" font-size="12">the first rows</text>'
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="sans-serif" font-size="14" fill="{INK}">'
        "<title>Rows go to workers, deltas to the coordinator, and their sum is the next base</title>"
        f'<defs><marker id="end" markerWidth="9" markerHeight="7" refX="9" refY="3.5" orient="auto">'
        f'<path d="M 0 0 L 9 3.5 L 0 7 z" fill="{INK}"/></marker></defs>'
    )
    return head + "".join(parts) + "</svg>\n"


if __name__ == "__main__":
    Path(__file__).with_name("data_way.svg").write_text(picture())
