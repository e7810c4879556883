"""
One model per device
====================

A hundred machines send their measurements. They are of the same kind, but each has its own habits. One model
for all of them learns the average machine. Models are small enough to have one for each.
"""

from collections import defaultdict

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import KernelRegressor
from kernelstream.learners import NewtonMixture

plt.style.use("kernelstream.pictures")

# %%
# The machines
# ------------
# The power that a machine takes depends on its load and on the temperature, by a curve that has a different
# place, height and slope in each machine. Rows of all machines come mixed.

rng = np.random.default_rng(0)
devices, rows = 100, 20_000
place, height, slope = (
    rng.uniform(0.2, 0.8, devices),
    rng.uniform(0.5, 1.5, devices),
    rng.normal(0, 0.5, devices),
)
device = rng.integers(0, devices, rows)
load, temperature = rng.uniform(0, 1, rows), rng.normal(0, 1, rows)
X = np.column_stack([load, temperature])
bump = height[device] * np.exp(-(((load - place[device]) / 0.2) ** 2))
power = bump + slope[device] * temperature + rng.normal(0, 0.05, rows)

# %%
# A dictionary of models
# ----------------------
# ``defaultdict`` makes a model when a device is heard of for the first time. A budget of 30 is enough for 200
# rows per device; ``memory=0`` leaves out the local memory. Rows come in chunks of 1,000; each chunk is
# divided by device.


def small():
    """A model for one device."""
    return KernelRegressor(NewtonMixture(budget=30, memory=0))


together, models = small(), defaultdict(small)
forecasts = {"one model for all": np.zeros(rows), "one model per device": np.zeros(rows)}
for start in range(0, rows, 1000):
    chunk = slice(start, start + 1000)
    forecasts["one model for all"][chunk] = together.predict_then_learn(X[chunk], power[chunk])
    for name in np.unique(device[chunk]):
        own = start + np.flatnonzero(device[chunk] == name)
        forecasts["one model per device"][own] = models[name].predict_then_learn(X[own], power[own])

errors = {name: np.abs(forecast - power) for name, forecast in forecasts.items()}
for name, error in errors.items():
    print(
        f"{name:>20}: mean absolute error {error.mean():.3f}, in the second half {error[rows // 2 :].mean():.3f}"
    )
print(f"{len(models)} models, {np.mean([model.nbytes_ for model in models.values()]) / 1e3:.0f} kB each")

# %%
# Who wins, and when
# ------------------
# After some ten rows per device the models of single devices are better than the one that has seen a hundred
# times as many rows. On the right, the error of each device in the second half: below the line its own model
# is better.

figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.9), width_ratios=[5, 4])
for name, error in errors.items():
    smooth = np.convolve(error, np.ones(500) / 500, "valid")
    left.plot(np.arange(500, rows + 1) / devices, smooth, label=name)
left.set(
    xlabel="rows per device", ylabel="mean absolute error, last 500", ylim=(0, None), title="Over the stream"
)
left.legend()
late = np.arange(rows) >= rows // 2
each = [[error[late & (device == d)].mean() for d in range(devices)] for error in errors.values()]
right.plot(*each, "o", color="C2", markersize=4.5, alpha=0.8)
top = 1.05 * np.max(each)
right.plot([0, top], [0, top], color="C6", linestyle=":")
right.set(
    xlabel="one model for all", ylabel="its own model", title="Each device", xlim=(0, top), ylim=(0, top)
)
plt.show()
