"""
Electricity prices: drift, and the log of it
============================================

Will the price of electricity rise or fall in the next half hour? The rules of the market change twice during
this (generated) stream. The default learner follows by itself, and keeps a log of when it noticed:
``model.events_``.
"""

import matplotlib.pyplot as plt
import numpy as np

from kernelstream import KernelClassifier
from kernelstream.learners import NOGD

plt.style.use("kernelstream.pictures")

# %%
# A market with three sets of rules
# ---------------------------------
# A row has the time of day, the day of the week, the demand here and in the neighbouring market, and the
# wind. Until row 5,000 the price follows the demand here. Then a cable to the neighbour opens, and the price
# follows mostly the demand there. From row 10,000 on there is a lot of wind power: where the wind is strong,
# a high demand no longer lets the price rise.
#
# We made these rules so that the changes can be seen: each is sudden, and turns the answer around for many
# rows. A real market changes more slowly and less clearly; this page shows what a drift log looks like, not how
# well the default forecasts prices.

rows, first_change, second_change = 15_000, 5_000, 10_000
rng = np.random.default_rng(1)
half_hour = np.arange(rows)
hour, day = half_hour / 2 % 24, half_hour // 48 % 7


def wave(peak):
    """A demand with a daily peak, less of it at weekends, and noise that lasts for hours."""
    noise = np.convolve(rng.normal(size=rows + 9), np.ones(10) / 10, "valid")
    return np.cos((hour - peak) * np.pi / 12) * np.where(day < 5, 1.0, 0.6) + 0.8 * noise


here, neighbour = wave(18), wave(9)
wind = np.abs(np.convolve(rng.normal(size=rows + 23), np.ones(24) / 24, "valid")) * 6
pressure = np.select(
    [half_hour < first_change, half_hour < second_change],
    [here, neighbour - 0.3 * here],
    np.where(wind > 1, here - neighbour, neighbour - 0.3 * here),
)
X = np.column_stack([hour, day, here, neighbour, wind])
y = np.where(pressure + rng.normal(0, 0.3, rows) > 0, "up", "down")

# %%
# Three forecasts
# ---------------
# Each row is predicted before it is learnt. Beside the default: ``NOGD``, gradient descent on a kernel map,
# which has no notion of drift; and the simplest forecast of all, that the price does what it did before.
# ``scale=True`` brings the columns to a common scale, which the default does by itself.

model = KernelClassifier()
wrong = {
    "the default": model.predict_then_learn(X, y) != y,
    "NOGD": KernelClassifier(NOGD(), scale=True).predict_then_learn(X, y) != y,
    "as before": np.append(True, y[1:] != y[:-1]),
}
for name, misses in wrong.items():
    print(f"{name:>12}: {misses.mean():.1%} wrong")

# %%
# The drift log
# -------------
# The default has a lasting and a recent memory. When the recent one has done better for long enough, the
# lasting one is built again from the rows since then. Each such event has the round, and the round since
# which the change seems to be there.

for event in model.events_:
    print(event)

# %%
# Events on the curve
# -------------------

window = 400
figure, axes = plt.subplots()
for name, misses in wrong.items():
    share = 100 * np.convolve(misses, np.ones(window) / window, "valid")
    axes.plot(np.arange(window, rows + 1), share, label=name)
for change in (first_change, second_change):
    axes.axvline(change, color="C6", linestyle=":")
axes.text(first_change, 38.5, " a cable opens")
axes.text(second_change, 38.5, " wind power")
rounds = [event.round for event in model.events_]
axes.plot(rounds, [1.5] * len(rounds), "^", color="C3", label="an event in the log")
axes.set(
    xlabel="half hours",
    ylabel=f"wrong in the last {window}, %",
    ylim=(0, 41),
    title="Two changes of the market",
)
figure.legend(loc="outside lower center", ncols=4)
plt.show()
