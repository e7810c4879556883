"""
Intervals for a regression that changes
=======================================

A number alone does not say how far it may be off. ``predict_interval_then_learn`` gives an interval that is
to hold the target with a chosen probability. It is calibrated by the errors made so far, the recent ones
most, so it gets wider when the stream gets harder.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import KernelRegressor

plt.style.use("kernelstream.pictures")

# %%
# A sensor that ages
# ------------------
# The target is a smooth function of two features. At row 4,000 the function changes, and at row 8,000 the
# noise becomes three times as large.

rng = np.random.default_rng(0)
rows = 12_000
row = np.arange(rows)
X = rng.uniform(-2, 2, (rows, 2))
before, after = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2, np.cos(2 * X[:, 1]) - X[:, 0]
y = np.where(row < 4000, before, after) + rng.normal(0, np.where(row < 8000, 0.2, 0.6))

# %%
# Intervals, each made before its row is learnt
# ---------------------------------------------

model = KernelRegressor()
lower, upper = model.predict_interval_then_learn(X, y, coverage=0.9).T
inside = (lower <= y) & (y <= upper)
for start in range(0, rows, 4000):
    part = slice(start + 500, start + 4000)
    print(
        f"rows {start + 500:>6,} to {start + 4000:>6,}: {inside[part].mean():.1%} inside, "
        f"mean width {(upper - lower)[part].mean():.2f}"
    )

# %%
# What the picture shows
# ----------------------
# Above: the share of targets inside, over the last 250 rows. Each change costs some coverage, for a few
# hundred rows. Below: the width. While the new function is not known the intervals are wide, then narrow
# again; with the new noise they stay wide. The dotted line is the least width there can be: 90 % of normal
# noise lie within 3.29 deviations.

window = 250


def recent(values):
    """The mean over the last rows."""
    return np.convolve(values, np.ones(window) / window, "valid")


figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7.2, 4.8))
above.plot(row[window - 1 :], 100 * recent(inside), color="C2")
above.axhline(90, color="C6", linestyle=":")
above.set(ylabel="inside, %", ylim=(70, 101), title="Intervals that are to hold 90 %")
width = np.where(np.isfinite(upper - lower), upper - lower, 0.0)
below.plot(row[window - 1 :], recent(width), color="C0")
below.step([0, 8000, rows], [0.2 * 3.29, 0.2 * 3.29, 0.6 * 3.29], where="pre", color="C6", linestyle=":")
below.set(ylabel="mean width", xlabel="rows", ylim=(0, None))
for axes in (above, below):
    for change in (4000, 8000):
        axes.axvline(change, color="C6", alpha=0.5, linewidth=1)
above.text(4060, 71.5, "another function")
above.text(8060, 71.5, "three times the noise")
plt.show()
