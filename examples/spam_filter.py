"""
A spam filter that learns from a stream of texts
================================================

Messages come one after the other. Each is judged, then its true label is learnt. Half-way the spammers change
their words. A filter that was trained once does not know the new words; one that goes on learning does.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

from kernelstream import KernelClassifier

plt.style.use("kernelstream.pictures")

# %%
# The messages
# ------------
# Each has 12 words: most of them are usual ones, some are typical of its kind. From message 3,000 on, spam
# has another subject.

usual = "the a to we you is it on for of and this that with have will can please thanks today week".split()
typical = {
    "ham": "meeting lunch report invoice family photos train draft notes project call school".split(),
    "pills": "pills cheap pharmacy discount weight miracle order shipping doctor brand".split(),
    "coins": "coins wallet profit double crypto invest broker signals guaranteed exchange".split(),
}


def message(number, rng):
    """The text of a message, and whether it is spam."""
    spam = rng.random() < 0.4
    kind = "ham" if not spam else "pills" if number < 3000 else "coins"
    words = [rng.choice(typical[kind] if rng.random() < 0.18 else usual) for _ in range(12)]
    return " ".join(words), "spam" if spam else "ham"


rng = np.random.default_rng(0)
texts, labels = map(np.array, zip(*(message(number, rng) for number in range(6000)), strict=True))
for text, label in zip(texts[:3], labels[:3], strict=True):
    print(f"{label:>4}: {text}")

# %%
# Texts as rows
# -------------
# scikit-learn's ``HashingVectorizer`` needs no vocabulary, so a word that was never seen before is no
# problem. The rows are sparse: 4,096 columns, of which about a dozen are not zero. ``KernelClassifier`` takes
# them as they are.

X = HashingVectorizer(n_features=4096, alternate_sign=False).transform(texts)

# %%
# Two filters
# -----------
# One learns all messages. The other learns the first 2,000 and stays as it is. ``predict_then_learn``
# predicts each row before it is learnt, so all messages are test data.

learning = KernelClassifier()
always = learning.predict_then_learn(X, labels)

trained = KernelClassifier().partial_fit(X[:2000], labels[:2000])
once = trained.predict(X[2000:])

print(f"wrong among the last 3,000: {(always != labels)[3000:].mean():.1%} if it goes on learning,", end=" ")
print(f"{(once != labels[2000:])[1000:].mean():.1%} if it was trained once")
print(f"the model has {learning.nbytes_ / 1e6:.1f} MB")

# %%
# The share of wrong answers over the stream
# ------------------------------------------


def recent(wrong, window=300):
    """The share in the last rows."""
    return 100 * np.convolve(wrong, np.ones(window) / window, "valid")


figure, axes = plt.subplots()
axes.plot(np.arange(300, 6001), recent(always != labels), label="goes on learning")
axes.plot(np.arange(2300, 6001), recent(once != labels[2000:]), label="trained on the first 2,000")
axes.axvline(3000, color="C6", linestyle=":")
axes.annotate("the spammers change their words", (3000, 42), (-8, 0), textcoords="offset points", ha="right")
axes.set(
    xlabel="messages",
    ylabel="wrong among the last 300, %",
    ylim=(0, 45),
    title="A filter has to go on learning",
)
axes.legend(loc="center left")
plt.show()
