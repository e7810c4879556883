"""The pages of this folder, from the docstrings, `texts.toml` and docs/results/which_algorithm.md; one template for all.

python docs/algorithms/make.py [--pictures]

`--pictures` also makes docs/pictures/algorithms anew (one small picture per learner, below two minutes in all).
"""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from kernelstream import learners, sketches

HERE = Path(__file__).parent
PICTURES = HERE.parent / "pictures" / "algorithms"
RESULTS = HERE.parent / "results" / "which_algorithm.md"
LEARNERS = learners.registered(plugins=False)
TEXTS: dict[str, dict[str, str]] = tomllib.loads((HERE / "texts.toml").read_text())
PURPOSES = {
    "the default": "Anything, nothing known",
    "second order": "Every row counts: second order",
    "fast maps": "Microseconds per row: explicit maps",
    "moving inputs": "The inputs move: maps that follow",
    "unknown bandwidth": "The bandwidth is unknown",
    "little memory": "Memory for a hundred points",
    "gradient descent": "Gradient descent without a budget",
    "classical": "Classical learners, to compare with",
}
SYMBOLS = {
    "eta": "η",
    "lam": "λ",
    "rho": "ρ",
    "nu": "ν",
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "theta": "θ",
    "epsilon": "ε",
}
SYMBOLS |= {"C": "C", "eps": "ε", "budget": "B", "delta": "δ"}


def section(doc: str, head: str) -> str:
    """What a docstring says after ``head:``, on that line and below it up to an empty line; without indents."""
    found = re.search(rf"^{head}:(.*(?:\n.+)*)", inspect.cleandoc(doc), re.M)
    return inspect.cleandoc(found.group(1)) if found else ""


def plain(text: str) -> str:
    """A docstring's text as one line of Markdown for a cell of a table."""
    return re.sub(r"\s+", " ", text).replace("``", "`").replace("|", "\\|").strip()


def arguments(doc: str) -> dict[str, str]:
    """What a docstring says of each parameter."""
    found: dict[str, str] = {}
    for name, text in re.findall(r"^(\w+): ((?:.*\n)(?:[ \t]+.*\n)*)", section(doc, "Args") + "\n", re.M):
        found[name] = plain(text)
    return found


def parameters(kind: type) -> str:
    """The table of the constructor's parameters."""
    said = arguments(kind.__doc__ or "")
    rows = ["| parameter | symbol | default | meaning |", "|---|---|---|---|"]
    for name, parameter in inspect.signature(kind).parameters.items():
        if name not in said:
            raise ValueError(f"the docstring of {kind.__name__} does not say what {name} is")
        given = re.search(r"\((?:the paper's )?([A-Za-z]|lambda|rho|s_p|s_m)\)", said[name])
        symbol = given.group(1) if given else SYMBOLS.get(name, "")
        default = "required" if parameter.default is parameter.empty else f"`{parameter.default!r}`"
        rows.append(
            f"| `{name}` | {SYMBOLS.get(symbol, 'λ' if symbol == 'lambda' else symbol)} | {default} | {said[name]} |"
        )
    return "\n".join(rows)


def departures(doc: str) -> str:
    """The numbered list "This differs from the paper in" as a list of Markdown."""
    text, items = plain(section(doc, "This differs from the paper in")).replace("\\|", "|"), []
    before, number = re.split(r"(?:^|\s)1\. ", text)[0], 1
    while (start := re.search(rf"(?:^|\s){number}\. ", text)) is not None:
        stop = re.search(rf"\s{number + 1}\. ", text[start.end() :])
        end = start.end() + stop.start() if stop else len(text)
        items.append(f"{number}. {text[start.end() : end].rstrip(' ;.')}")
        text, number = text[end:], number + 1
    before = f"{before[:1].upper()}{before[1:]}" + (":" if items else "") if before else ""
    return "\n\n".join(part for part in (before, "\n".join(items)) if part)


def measured(name: str) -> str:
    """What our own runs say of a learner."""
    row = re.search(rf"^\| {name} \|(.*)\|$", RESULTS.read_text().split("## With the defaults")[1], re.M)
    if row is None:
        return "Not among the learners of [results/which_algorithm.md](../results/which_algorithm.md)."
    cells = [cell.strip() for cell in row.group(1).split("|")]
    said = [
        f"{value} {what}"
        for value, what in zip(
            cells, ("on two classes", "on several", "in regression", "where the stream changes"), strict=False
        )
        if value
    ]
    return (
        "With its defaults but for a budget of 100 points (or 400 Fourier features), over 30 short streams, "
        f"its error over the best learner's on the same stream is {', '.join(said)}, "
        f"at {cells[-1]} µs per row ([results/which_algorithm.md](../results/which_algorithm.md))."
    )


def page(name: str) -> str:
    """The page of a learner."""
    kind, text = LEARNERS[name], TEXTS[name]
    doc = kind.__doc__ or ""
    file = Path(inspect.getfile(kind)).name
    bounded = "bounded" if kind.bounded else "grows with the stream, up to `max_size`"
    different, references = departures(doc), plain(section(doc, "References"))
    parts = [
        f"# {name}\n\n{plain(inspect.cleandoc(doc).split(chr(10) * 2)[0])}",
        f"![{name} after 600 rows of two classes: its decision, and the points it stores](../pictures/algorithms/{name}.png)",
        f"## Idea\n\n{text['idea']}",
        f"## One round\n\n```text\n{text['round'].strip()}\n```\n\nThe code: `src/kernelstream/learners/{file}`, class `{name}`.",
        f"## Parameters\n\n{parameters(kind)}",
        f"## Departures from the paper\n\n{different}" if different else "",
        f"## Cost\n\nTime per row: {text['cost']}. Numbers stored: {text['memory']}. Memory: {bounded}.",
        f"## When to use it\n\n{text['use']} {measured(name)}",
        f"## References\n\n{references}" if references else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def sketch_page() -> str:
    """One page for all sketches."""
    parts = [
        "# Sketches\n\nMaps and summaries of kernels and vectors, as scikit-learn transformers with `partial_fit`. "
        "Which system of which paper each one is: [systems](../systems.md)."
    ]
    for name in sketches.__all__:
        kind = getattr(sketches, name)
        if inspect.isabstract(kind) or name == "KernelSketch":
            continue
        doc = kind.__doc__ or ""
        different = departures(doc)
        where = Path(inspect.getfile(kind)).name
        parts.append(f"## {name}\n\n{plain(inspect.cleandoc(doc).split(chr(10) * 2)[0])}")
        parts.append(f"The code: `src/kernelstream/sketches/{where}`.\n\n{parameters(kind)}")
        if different:
            parts.append(f"Departures from the paper:\n\n{different}")
    return "\n\n".join(parts) + "\n"


def index_page() -> str:
    """The list of all pages by purpose."""
    parts = [
        """# Learners by purpose

One page per learner, all of one form: the idea, one round, parameters, departures from the paper, cost, when to use it.
[Which algorithm when](../which-algorithm.md) compares them; [sketches](sketches.md) are on one page. The pictures show each
learner after the same 600 rows.

Three shapes of model share nearly all code: expansions (a sum of kernels at stored points), explicit maps (weights of features
made from landmarks or frequencies), and second order (weights and how certain they are);
[architecture](../architecture.md#a-learner) says where each is."""
    ]
    for purpose, head in PURPOSES.items():
        rows = [
            f"- [{name}]({name}.md): {plain(inspect.cleandoc(kind.__doc__ or '').split(chr(10) * 2)[0])}"
            for name, kind in sorted(LEARNERS.items())
            if TEXTS[name]["purpose"] == purpose
        ]
        parts.append(f"## {head}\n\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """All pages by file name."""
    return {f"{name}.md": page(name) for name in sorted(LEARNERS)} | {
        "sketches.md": sketch_page(),
        "index.md": index_page(),
    }


def pictures() -> None:
    """One picture per learner: the decision after 600 rows, the rows, and the stored points."""
    import matplotlib as mpl
    import numpy as np

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    from kernelstream import KernelClassifier

    rng = np.random.default_rng(0)
    turn = rng.uniform(0, np.pi, 600)
    y = rng.integers(0, 2, 600)
    X = np.column_stack(
        [np.cos(turn) + y - 0.5, np.sin(turn) * (1 - 2 * y) + 0.5 * y - 0.25]
    ) + 0.2 * rng.normal(size=(600, 2))
    across, up = np.meshgrid(np.linspace(-2.3, 2.3, 90), np.linspace(-1.6, 1.6, 64))
    grid = np.column_stack([across.ravel(), up.ravel()])
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, kind in LEARNERS.items():
        known = inspect.signature(kind).parameters
        options: dict[str, Any] = {"budget": 30} if "budget" in known and name != "NewtonMixture" else {}
        model = KernelClassifier(kind(**options))
        wrong = 100 * np.mean(model.predict_then_learn(X, y, classes=[0, 1]) != y)
        scores = model.decision_function(grid).reshape(across.shape)
        figure, axes = plt.subplots(figsize=(3.6, 2.5), dpi=80)
        size = np.quantile(np.abs(scores), 0.95) or 1.0
        axes.contourf(
            across, up, scores, levels=np.linspace(-size, size, 9), cmap="RdBu", extend="both", alpha=0.6
        )
        axes.contour(across, up, scores, levels=[0.0], colors="black", linewidths=1)
        axes.scatter(*X.T, c=np.where(y, "#2166ac", "#b2182b"), s=3, linewidths=0)
        points = model.learner_.state().get("points")
        if points is not None and points.ndim == 2 and points.shape[1] == 2:
            axes.scatter(*points.T, s=16, facecolors="none", edgecolors="black", linewidths=0.7)
        axes.set_title(f"{name}: {wrong:.1f} % mistakes in 600 rows", fontsize=8)
        axes.set_axis_off()
        axes.set_xlim(-2.3, 2.3)
        axes.set_ylim(-1.6, 1.6)
        figure.tight_layout(pad=0.3)
        path = PICTURES / f"{name}.png"
        figure.savefig(path, metadata={"Software": None})
        plt.close(figure)
        Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)  # a quarter of the bytes


if __name__ == "__main__":
    for file_name, made in pages().items():
        (HERE / file_name).write_text(made)
    if "--pictures" in sys.argv[1:]:
        pictures()
