"""Draws docs/pictures/architecture-light.svg and -dark.svg, the drawing of docs/architecture.md.

python benchmarks/architecture_picture.py
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
MODES = {
    "light": {"ink": "#24292f", "muted": "#57606a", "line": "#8c959f", "python": "#ddf4ff", "core": "#fff1e5", "out": "#f6f8fa"},
    "dark": {"ink": "#e6edf3", "muted": "#9da7b3", "line": "#6e7681", "python": "#0c2d48", "core": "#3d2410", "out": "#21262d"},
}  # fmt: skip
# x, y, width, height, kind, title, what it does
BOXES = [
    (10, 60, 130, 62, "out", "sources", "files, pipes, names"),
    (180, 60, 130, 62, "python", "stream/", "readers, generators"),
    (180, 150, 130, 62, "python", "tables/", "columns to features"),
    (350, 60, 150, 62, "python", "estimators.py", "checks, labels, scaling"),
    (350, 150, 150, 62, "python", "river.py", "one row at a time"),
    (540, 60, 150, 62, "python", "learners/", "one file per algorithm"),
    (540, 150, 150, 62, "python", "sketches/", "maps, landmarks"),
    (540, 260, 150, 62, "core", "src/core", "rounds in C++"),
    (350, 260, 150, 62, "core", "src/core/text", "parsers in C++"),
    (730, 60, 150, 62, "python", "evaluate, metrics", "predict, then learn"),
    (730, 150, 150, 62, "python", "persistence", "model files"),
    (730, 240, 150, 62, "python", "checkpoint", "goes on after a crash"),
    (350, 352, 340, 50, "out", "cli/ and runner.py", "a run: source to model, predictions, checkpoints"),
]
ARROWS = [
    (140, 91, 178, 91), (310, 91, 348, 91), (245, 150, 245, 124), (425, 150, 425, 124), (500, 91, 538, 91),
    (690, 91, 728, 91), (615, 150, 615, 124), (690, 181, 728, 181), (690, 200, 728, 262),
]  # fmt: skip


def drawing(mode: dict[str, str]) -> str:
    """The drawing in these colours."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 890 412" font-family="DejaVu Sans, Arial, sans-serif">',
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{mode["line"]}"/></marker></defs>',
        f'<text x="10" y="28" font-size="15" font-weight="bold" fill="{mode["ink"]}">Data goes one way: '
        "source, chunk, estimator, learner, prediction</text>",
    ]
    for x1, y1, x2, y2 in ARROWS:
        parts.append(
            f'<path d="M{x1} {y1} L{x2} {y2}" stroke="{mode["line"]}" stroke-width="1.6" marker-end="url(#tip)"/>'
        )
    dashed = f'stroke="{mode["line"]}" stroke-width="1.4" stroke-dasharray="4 3" fill="none" marker-end="url(#tip)"'
    parts.append(f'<path d="M700 122 L708 136 L708 291 L692 291" {dashed}/>')
    parts.append(f'<path d="M180 196 L160 196 L160 291 L348 291" {dashed}/>')
    for x, y, width, height, kind, title, said in BOXES:
        middle = x + width / 2
        parts += [
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="7" fill="{mode[kind]}" stroke="{mode["line"]}"/>',
            f'<text x="{middle}" y="{y + height / 2 - 4}" font-size="13" font-weight="bold" text-anchor="middle" '
            f'fill="{mode["ink"]}">{title}</text>',
            f'<text x="{middle}" y="{y + height / 2 + 14}" font-size="11" text-anchor="middle" '
            f'fill="{mode["muted"]}">{said}</text>',
        ]
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    for name, mode in MODES.items():
        (FOLDER / f"architecture-{name}.svg").write_text(drawing(mode), encoding="utf-8")
