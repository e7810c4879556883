"""
Sketches of a kernel, and how far they are off
==============================================

A kernel matrix of all rows is too large for a stream. A sketch keeps a small part of it: a map to a few
features whose products are nearly the kernel's values. This example measures how nearly, for the sketches
behind ``NOGD``, ``SkeGD``, ``NOLANA`` and ``ProsNKons`` (KORS).
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import Gaussian
from kernelstream.sketches import AdaptiveNystrom, IncrementalNystrom, IncrementalSketch, RidgeLeverageSampler

plt.style.use("kernelstream.pictures")
kernel = Gaussian(bandwidth=1.0)

# %%
# The error of a sketch by its size
# ---------------------------------
# ``relative_error`` is the difference of the two kernel matrices over the matrix itself, in the Frobenius
# norm. The rows are points in three dimensions, in clusters of very different size. All sketches but KORS are
# given the number of points to keep; KORS keeps what the ridge ``alpha`` asks for.

rng = np.random.default_rng(0)
centres = rng.uniform(-3, 3, (12, 3))


def clusters(rows, shift=0.0):
    """Points around the centres; the first cluster has half of them, the next a quarter, and so on."""
    which = np.minimum(rng.geometric(0.5, rows) - 1, len(centres) - 1)
    return centres[which] + shift + rng.normal(0, 0.35, (rows, 3))


X = clusters(1000)
sizes = [10, 20, 40, 80, 160]
errors = {
    "first rows (NOGD)": [(b, IncrementalNystrom(b, kernel=kernel)) for b in sizes],
    "two sketches (SkeGD)": [(b, IncrementalSketch(b, kernel=kernel)) for b in sizes],
    "moving landmarks (NOLANA)": [(b, AdaptiveNystrom(b, rank=b, kernel=kernel)) for b in sizes],
    "leverage scores (KORS)": [
        (None, RidgeLeverageSampler(alpha, beta=1.0, kernel=kernel)) for alpha in (64, 16, 4)
    ],
}
for name, sketches in errors.items():
    errors[name] = [
        (size or len(sketch.components_), sketch.relative_error(X[::2]))
        for size, sketch in sketches
        if sketch.fit(X)
    ]
    print(f"{name:>26}:", "  ".join(f"{size}: {error:.2g}" for size, error in errors[name]))

# %%
# A stream that moves away
# ------------------------
# Now the clusters wander off. The error is measured on the last 300 rows. A map of the first rows describes
# them worse and worse. So does the sketch of SkeGD, whose landmarks are drawn once. Landmarks that move
# follow for a while; KORS takes new points when it needs them, so its dictionary grows.

moving = {
    "first rows (NOGD)": IncrementalNystrom(40, kernel=kernel),
    "two sketches (SkeGD)": IncrementalSketch(40, kernel=kernel),
    "moving landmarks (NOLANA)": AdaptiveNystrom(40, rank=40, kernel=kernel),
    "leverage scores (KORS)": RidgeLeverageSampler(4.0, beta=1.0, kernel=kernel),
}
followed = {name: [] for name in moving}
for step in range(25):
    rows = clusters(300, shift=0.1 * step)
    for name, sketch in moving.items():
        followed[name].append(sketch.partial_fit(rows).relative_error(rows))
print(f"KORS kept {len(moving['leverage scores (KORS)'].components_)} points in the end")

# %%
# Both in one picture
# -------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 4.2), sharey=True)
for marker, (name, points) in zip("osD^", errors.items(), strict=True):
    left.plot(*zip(*points, strict=True), marker + "-", label=name)
    right.plot(300 * np.arange(1, 26), followed[name], marker + "-", markevery=4)
left.set(
    xscale="log",
    yscale="log",
    xlabel="points kept",
    ylabel="relative error of the kernel",
    title="Rows that stay",
)
left.set_xticks(sizes, sizes)
left.minorticks_off()
right.set(xlabel="rows", title="Rows that move away")
left.yaxis.set_major_formatter("{x:g}")
figure.legend(loc="outside lower center", ncols=2)
plt.show()
