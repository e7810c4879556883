"""What the default does inside: `python docs/pictures/default_inside.py` writes default_shares.svg and default_neighbours.svg."""

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np

from kernelstream import KernelClassifier

FOLDER = Path(__file__).parent
CHANGE = 2_000
INK = "#767b82"
CANDIDATES = (  # in the order of the state's `shares`
    "lasting", "least_squares", "recent", "linear", "window", "trees", "labels", "stack", "forgetting_stack",
)  # fmt: skip


def chessboard(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four fields in the plane; one label in twenty is wrong."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, (rows, 2))
    return X, ((X[:, 0] * X[:, 1] > 0) ^ (random.random(rows) < 0.05)).astype(int)


def shares() -> None:
    """The candidates' shares on a stream whose labels are swapped half-way."""
    X, y = chessboard(2 * CHANGE, 1)
    y[CHANGE:] = 1 - y[CHANGE:]
    model, rounds, found, wrong = KernelClassifier(), [], [], []
    for at in range(0, len(y), 20):
        wrong.append(np.mean(model.predict_then_learn(X[at : at + 20], y[at : at + 20]) != y[at : at + 20]))
        rounds.append(at + 20)
        found.append(model.learner_.state()["shares"])
    table = np.array(found)
    table = np.stack([np.convolve(np.pad(c, 2, mode="edge"), np.ones(5) / 5, "valid") for c in table.T])
    largest = sorted(range(len(CANDIDATES)), key=lambda c: -table[c].max())[:5]
    rest = [c for c in range(len(CANDIDATES)) if c not in largest]
    figure, (top, bottom) = plt.subplots(2, 1, sharex=True, height_ratios=[3, 1], figsize=(7.2, 4.4))
    top.stackplot(
        rounds, *table[largest], table[rest].sum(axis=0), labels=[*(CANDIDATES[c] for c in largest), "all others"], alpha=0.85,
        colors=[*(f"C{k}" for k in range(5)), INK],
    )  # fmt: skip
    top.set(ylabel="share", ylim=(0, 1), title="Labels are swapped: who is believed")
    handles, names = top.get_legend_handles_labels()
    top.legend(handles[::-1], names[::-1], loc="center left", bbox_to_anchor=(1, 0.5))
    bottom.plot(rounds, 100 * np.convolve(np.pad(wrong, (9, 0), mode="edge"), np.ones(10) / 10, "valid"))
    bottom.set(xlabel="rows", ylabel="mistakes, %\nlast 200 rows", xlim=(0, len(y)), ylim=(0, None))
    for axes in (top, bottom):
        axes.axvline(CHANGE, color=INK, linestyle="--", linewidth=1)
    save(figure, "default_shares.svg")


def neighbours() -> None:
    """The rows kept around two queries, and their weights in the local kernel machine."""
    X, y = chessboard(1_200, 2)
    model = KernelClassifier()
    model.partial_fit(X, y)
    figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.7))
    for axes, query, title in zip(
        panels, ([0.45, 0.5], [0.04, -0.5]), ("In a field", "At a border"), strict=True
    ):
        near = model.neighbours(np.array([query]), k=24)
        centre, reach = np.array(query), 0.16
        for label, marker in ((0, "o"), (1, "s")):
            mine = near.targets[0] == label
            for sign, filled in ((1, True), (-1, False)):
                chosen = mine & (np.sign(near.weights[0]) == sign)
                place = X[near.rows[0][chosen]]
                colour = f"C{label}"
                axes.scatter(
                    *place.T, s=1_500 * np.abs(near.weights[0][chosen]) + 6, marker=marker, edgecolors=colour, linewidths=1.2,
                    facecolors=colour if filled else "none", alpha=0.8,
                )  # fmt: skip
            shown = (y == label) & (np.abs(X - centre) < reach).all(axis=1)
            others = np.setdiff1d(np.flatnonzero(shown), near.rows[0])
            axes.scatter(*X[others].T, s=8, marker=marker, color=f"C{label}", alpha=0.35, linewidths=0)
        axes.plot(*query, marker="x", color=INK, markersize=11, markeredgewidth=2.5, linestyle="")
        chance = model.predict_proba(np.array([query]))[0, 1]
        axes.set(
            title=f"{title}: {chance:.0%} class 1", xlim=(centre[0] - reach, centre[0] + reach),
            ylim=(centre[1] - reach, centre[1] + reach), aspect="equal", xlabel="feature 1", ylabel="feature 2",
        )  # fmt: skip
    save(figure, "default_neighbours.svg")


def save(figure: plt.Figure, name: str) -> None:
    """Without the date: the same picture gives the same bytes."""
    figure.savefig(FOLDER / name, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    plt.style.use("kernelstream.pictures")
    shares()
    neighbours()
