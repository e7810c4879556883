"""
A decision surface as it is learnt
==================================

Two classes in the plane, two spirals. The model sees one point at a time, and after some of them its opinion
of the whole plane is drawn.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation

from kernelstream import KernelClassifier

plt.style.use("kernelstream.pictures")

# %%
# Two spirals
# -----------

rng = np.random.default_rng(0)
rows = 1000
turn = np.sqrt(rng.uniform(0.02, 1, rows)) * 3 * np.pi
label = rng.integers(0, 2, rows)
angle = turn + np.pi * label
X = turn[:, None] / (3 * np.pi) * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(
    0, 0.025, (rows, 2)
)

# %%
# The model, drawn while it learns
# --------------------------------
# ``predict_proba`` gives the probability of each class at the points of a grid. Violet and orange are the two
# classes, pale is where the model is not sure. The large points are those of the last step.

ends = np.unique(np.geomspace(8, rows, 22).astype(int))
grid = np.linspace(-1.15, 1.15, 70)
plane = np.column_stack([axis.ravel() for axis in np.meshgrid(grid, grid)])
model = KernelClassifier()
wrong = 0
shades = plt.get_cmap("PuOr_r")(np.linspace(0.22, 0.78, 8))
colours = np.array(["#3d2a66", "#8a3c00"])

figure, axes = plt.subplots(figsize=(4, 4), dpi=90, facecolor="white", layout="none")
figure.subplots_adjust(0, 0, 1, 1)


def draw(step):
    """Learn the rows up to the next end, then draw what the model says of the plane."""
    global wrong
    start, end = ([0, *ends])[step], ends[step]
    wrong += (
        model.predict_then_learn(X[start:end], label[start:end], classes=[0, 1]) != label[start:end]
    ).sum()
    probability = model.predict_proba(plane)[:, 1].reshape(len(grid), -1)
    axes.clear()
    axes.set_axis_off()
    axes.contourf(grid, grid, probability, np.linspace(0, 1, 9), colors=shades)
    axes.scatter(*X[:start].T, s=8, c=colours[label[:start]], linewidths=0)
    axes.scatter(*X[start:end].T, s=22, c=colours[label[start:end]], edgecolors="white", linewidths=0.5)
    axes.text(
        -1.11,
        1.09,
        f"{end:,} points, {wrong} mistakes so far",
        color="#222222",
        va="top",
        fontsize=10,
        bbox={"color": "white"},
    )


animation = FuncAnimation(figure, draw, frames=len(ends), init_func=lambda: None, interval=350)
plt.show()
