"""
Fraud: one row in a hundred
===========================

Where one class is rare, a model that always says "fine" is right 99 times in 100, and useless. Two things
help: look at recall and precision instead of the share of mistakes, and let the rare class weigh more
(``class_weight``).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import average_precision_score, precision_recall_curve, precision_score, recall_score

from kernelstream import KernelClassifier

plt.style.use("kernelstream.pictures")

# %%
# Payments
# --------
# Three features: the amount (in logarithms), the hour, and the payments of that card during the last day.
# Fraud has two habits: small amounts many times in a row, and large amounts at night. Each alone is not rare
# among honest payments.

rng = np.random.default_rng(0)
rows = 20_000
fraud = rng.random(rows) < 0.01
night_habit = rng.random(rows) < 0.5
amount = np.where(
    fraud,
    np.where(night_habit, rng.normal(6, 0.5, rows), rng.normal(1, 0.5, rows)),
    rng.normal(3.5, 1.2, rows),
)
hour = np.where(fraud & night_habit, rng.normal(3, 1.5, rows), rng.normal(14, 5, rows)) % 24
last_day = np.where(fraud & ~night_habit, rng.poisson(9, rows), rng.poisson(3, rows))
X = np.column_stack([amount, hour, last_day])

# %%
# Weights of the classes
# ----------------------
# ``decision_then_learn`` gives the score of each row before it was learnt; it is positive where the model
# would say "fraud". "balanced" counts the classes online, and lets both have the same weight in all.

scores = {}
for name, weight in (("none", None), ("fraud weighs 10", {True: 10.0}), ("balanced", "balanced")):
    scores[name] = KernelClassifier(class_weight=weight).decision_then_learn(X, fraud, classes=[False, True])

print("class_weight     mistakes  recall  precision  average precision")
for name, score in scores.items():
    said = score > 0
    print(
        f"{name:<16} {(said != fraud).mean():8.2%} {recall_score(fraud, said):7.0%} {precision_score(fraud, said):10.0%}"
        f" {average_precision_score(fraud, score):18.2f}"
    )
print(f"always 'fine'    {fraud.mean():8.2%} {0:7.0%}          -               {fraud.mean():.2f}")

# %%
# What weights change
# -------------------
# The curves are close to each other: the *order* in which payments are suspected depends little on the
# weights, and is best here without any. What they move is the point at which the model says "fraud" (the
# dots). If someone can look at the most suspicious payments only, take the scores and choose your own point;
# if the model has to decide, choose the weight by what a missed fraud costs against a false alarm.

figure, axes = plt.subplots(figsize=(6.4, 4.4))
for number, (name, score) in enumerate(scores.items()):
    precision, recall, _ = precision_recall_curve(fraud, score)
    axes.plot(100 * recall, 100 * precision, color=f"C{number}", label=name)
    said = score > 0
    axes.plot(
        100 * recall_score(fraud, said),
        100 * precision_score(fraud, said),
        "o",
        color=f"C{number}",
        markersize=9,
    )
axes.axhline(100 * fraud.mean(), color="C6", linestyle=":", label="by chance")
axes.set(
    xlabel="recall: frauds found, %",
    ylabel="precision: alarms that are right, %",
    xlim=(0, 101),
    ylim=(0, 103),
)
axes.set_title("The weight moves the point, hardly the curve")
axes.legend(title="class_weight", loc="lower left", bbox_to_anchor=(0.02, 0.06))
plt.show()
