"""The learners: one class an algorithm, to be held by ``KernelClassifier`` or ``KernelRegressor``."""

from kernelstream.learners.base import Learner
from kernelstream.learners.bogd import BOGD
from kernelstream.learners.bpas import BPAS
from kernelstream.learners.forgetron import Forgetron
from kernelstream.learners.kogd import KOGD, TruncatedKOGD
from kernelstream.learners.mapped import FOGD, NOGD
from kernelstream.learners.passive_aggressive import KernelPA, LinearPA
from kernelstream.learners.perceptron import RBP, KernelPerceptron
from kernelstream.learners.projectron import Projectron, ProjectronPP
from kernelstream.learners.skegd import SkeGD

__all__ = [
    "BOGD",
    "BPAS",
    "FOGD",
    "KOGD",
    "NOGD",
    "RBP",
    "Forgetron",
    "KernelPA",
    "KernelPerceptron",
    "Learner",
    "LinearPA",
    "Projectron",
    "ProjectronPP",
    "SkeGD",
    "TruncatedKOGD",
]
