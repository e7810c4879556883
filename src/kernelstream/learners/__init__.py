"""The learners: one class per algorithm, to be held by ``KernelClassifier`` or ``KernelRegressor``."""

from kernelstream.learners.base import Learner
from kernelstream.learners.bogd import BOGD
from kernelstream.learners.bpas import BPAS
from kernelstream.learners.bsgd import BSGD
from kernelstream.learners.doublysgd import DoublySGD
from kernelstream.learners.dualsgd import DualSGD
from kernelstream.learners.fogd import FOGD
from kernelstream.learners.forgetron import Forgetron
from kernelstream.learners.kogd import KOGD, TruncatedKOGD
from kernelstream.learners.kons import KONS, SketchedKONS
from kernelstream.learners.krls import KRLS
from kernelstream.learners.newton_mixture import NewtonMixture
from kernelstream.learners.nogd import NOGD
from kernelstream.learners.nolana import NOLANA
from kernelstream.learners.oklgd import OKLGD
from kernelstream.learners.oks import OKS
from kernelstream.learners.okssil import OKSSIL
from kernelstream.learners.passive_aggressive import KernelPA, LinearPA
from kernelstream.learners.perceptron import RBP, KernelPerceptron
from kernelstream.learners.projectron import Projectron, ProjectronPP
from kernelstream.learners.projka import ProjKA
from kernelstream.learners.prosnkons import ProsNKons
from kernelstream.learners.registry import register, registered
from kernelstream.learners.rrf import RRF
from kernelstream.learners.skegd import SkeGD

__all__ = [
    "BOGD",
    "BPAS",
    "BSGD",
    "DoublySGD",
    "DualSGD",
    "FOGD",
    "Forgetron",
    "KOGD",
    "KONS",
    "KRLS",
    "KernelPA",
    "KernelPerceptron",
    "Learner",
    "LinearPA",
    "NOGD",
    "NOLANA",
    "NewtonMixture",
    "OKLGD",
    "OKS",
    "OKSSIL",
    "ProjKA",
    "Projectron",
    "ProjectronPP",
    "ProsNKons",
    "RBP",
    "RRF",
    "SkeGD",
    "SketchedKONS",
    "TruncatedKOGD",
    "register",
    "registered",
]

for _name in __all__:
    if isinstance(globals()[_name], type) and globals()[_name] is not Learner:
        register(globals()[_name])
