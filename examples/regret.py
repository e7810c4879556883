"""
Regret: what learning on the way costs
======================================

The regret of a learner is its loss so far, minus the loss of the best model that knew all rows from the
start. Divided by the rows it should go to zero. How fast, depends on the steps: gradient steps give a regret
that grows like the root of the rows, Newton steps one that grows like their logarithm.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_ridge import KernelRidge

from kernelstream import Gaussian, KernelRegressor
from kernelstream.learners import KRLS, NOGD, NewtonMixture, ProsNKons

plt.style.use("kernelstream.pictures")

# %%
# A smooth function with noise
# ----------------------------

rng = np.random.default_rng(0)
rows = 4000
X = rng.uniform(-2, 2, (rows, 2))
y = np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + rng.normal(0, 0.2, rows)
gamma = 0.5

# %%
# The best model in hindsight
# ---------------------------
# Kernel ridge regression with the same kernel, fitted to all rows at once. Its squared errors are what
# everyone is compared with.

best = KernelRidge(kernel="rbf", gamma=gamma, alpha=0.1).fit(X, y)
best_losses = (best.predict(X) - y) ** 2

# %%
# Learners
# --------
# ``NOGD`` takes gradient steps on 100 landmarks; ``KRLS`` (recursive least squares) Newton steps on a small
# dictionary of rows. ``ProsNKons`` takes Newton steps on a dictionary that it samples; each time the dictionary
# grows, it starts again from nothing. ``restart=False`` is its variant CON-KONS, which carries what it learnt
# over. The default does not know the kernel: it chooses its own.

kernel = Gaussian(gamma=gamma)
learners = {
    "NOGD, gradient steps": NOGD(budget=100, kernel=kernel),
    "KRLS, Newton steps": KRLS(kernel=kernel),
    "ProsNKons, restarts": ProsNKons(kernel=kernel),
    "CON-KONS, goes on": ProsNKons(kernel=kernel, restart=False),
    "the default": NewtonMixture(),
}
regrets = {}
for name, learner in learners.items():
    losses = (KernelRegressor(learner).predict_then_learn(X, y) - y) ** 2
    regrets[name] = np.cumsum(losses - best_losses)
    print(f"{name:>20}: regret {regrets[name][-1]:6.1f}, mean squared error {losses.mean():.4f}")

# %%
# Regret over the rows
# --------------------
# Both axes are logarithmic: a root is a line, a logarithm bends.
#
# ``ProsNKons`` is by far the worst: a regret of 497, where NOGD has 73. The reason is the restarts: its
# dictionary grows 174 times in these 4,000 rows, still 14 times in the last thousand, and each time it forgets
# all weights. Without the restarts, and with everything else the same, the regret is 39. The restarts are part
# of the published algorithm; in practice, use ``restart=False``, or a small ``max_size``, at which the
# dictionary stops growing (with ``max_size=30`` the regret is 47).

figure, axes = plt.subplots()
at = np.unique(np.geomspace(20, rows, 60).astype(int)) - 1
for name, regret in regrets.items():
    axes.plot(at + 1, regret[at], label=name)
axes.plot(
    at + 1,
    regrets["NOGD, gradient steps"][19] * np.sqrt((at + 1) / 20),
    color="C6",
    linestyle=":",
    label="root of the rows",
)
axes.set(
    xscale="log",
    yscale="log",
    xlabel="rows",
    ylabel="regret (squared errors)",
    title="Newton steps regret less, unless they start again",
)
axes.set_xticks([20, 100, 500, 2000], ["20", "100", "500", "2,000"])
axes.set_yticks([5, 10, 20, 50, 100, 200, 500], ["5", "10", "20", "50", "100", "200", "500"])
axes.minorticks_off()
axes.legend()
plt.show()
