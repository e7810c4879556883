"""
A learner of your own
=====================

An algorithm that is not in the library is a class of some dozen lines of NumPy. Then it can do what the
others can: scikit-learn's and River's way of learning, model files, the command line.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelstream.testing
from kernelstream import Gaussian, KernelClassifier
from kernelstream.evaluate import progressive
from kernelstream.learners import FOGD, Learner, register
from kernelstream.stream import rings
from kernelstream.validate import check_number, check_seed

plt.style.use("kernelstream.pictures")

# %%
# The learner
# -----------
# Random features of the Gaussian kernel, as in ``FOGD``, but with one step size per feature and class, which
# falls with the squared gradients so far (AdaGrad). Everything that changes is in ``self.arrays``.


@register
class AdaptiveFeatures(Learner):
    """Random Fourier features with one falling step size each."""

    def __init__(self, gamma=8.0, eta=0.3, seed=0):
        self.gamma = gamma
        self.eta = eta
        self.seed = seed

    def check(self):
        """Refuse hyper-parameters that make no sense."""
        check_number("gamma", self.gamma, low=0, open_low=True)
        check_number("eta", self.eta, low=0, open_low=True)
        check_seed(self.seed)

    def initial_arrays(self):
        """The state of a model that has learnt nothing."""
        normal = np.random.default_rng(self.seed).normal(size=(self.width, 100))
        zeros = np.zeros((200, self.outputs), self.dtype)
        return {
            "frequencies": (np.sqrt(2 * self.gamma) * normal).astype(self.dtype),
            "weights": zeros,
            "squares": zeros.copy(),
        }

    def features(self, X):
        """Cosines and sines."""
        angles = X @ self.arrays["frequencies"]
        return np.hstack([np.cos(angles), np.sin(angles)]) / 10

    def score_rows(self, X):
        """One score per row and output."""
        return self.features(X) @ self.arrays["weights"]

    def learn_row(self, x, target, weight, score):
        """A step against the gradient of the squared loss."""
        gradient = weight * self.features(x).T * (score - self.column_targets(target))
        self.arrays["squares"] += gradient**2
        self.arrays["weights"] -= self.eta * gradient / (np.sqrt(self.arrays["squares"]) + 1e-3)


# %%
# Is it right?
# ------------
# ``check_learner`` tries what every learner promises: chunks and single rows give the same bits, copies and
# model files go on from where they were, new classes and features are admitted, a refused row changes
# nothing, and so on. It raises at the first promise that is broken.

kernelstream.testing.check_learner(AdaptiveFeatures())
print(len(list(kernelstream.testing.learner_checks(AdaptiveFeatures()))), "promises kept")

# %%
# How good is it?
# ---------------

figure, axes = plt.subplots()
for name, learner in {
    "AdaptiveFeatures, ours": AdaptiveFeatures(),
    "FOGD, constant step": FOGD(kernel=Gaussian(gamma=8.0)),
    "the default": None,
}.items():
    result = progressive(KernelClassifier(learner), rings(5000, rings=4))
    rounds, error = result.curve
    axes.plot(rounds, 100 * error, label=f"{name}: {result.error_rate:.1%}")
axes.axhline(5, color="C6", linestyle=":")
axes.text(5000, 4.6, "labels that are noise", ha="right", va="top")
axes.set(xlabel="rows", ylabel="mistakes so far, %", ylim=(0, 55), title="Rings in the plane")
axes.legend()
plt.show()
