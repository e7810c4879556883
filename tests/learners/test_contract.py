"""The public contract: learners in NumPy as a stranger writes them, registration, and the guide's own code."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import kernelstream
from kernelstream import KernelClassifier, KernelRegressor, ModelFileError
from kernelstream.learners import Learner, register, registered, registry
from kernelstream.testing import check_learner, learner_checks

GUIDE = Path(__file__).parents[2] / "docs" / "writing-a-learner.md"


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
    """What a test registers is forgotten after it."""
    monkeypatch.setattr(registry, "_LEARNERS", dict(registry._LEARNERS))


class AdaGrad(Learner):
    """Each weight has its own step size: an array with an output axis in which scores are not linear."""

    def __init__(self, eta=0.5):
        self.eta = eta

    def initial_arrays(self):
        shape = (self.width, self.outputs)
        return {"weights": np.zeros(shape, self.dtype), "squares": np.full(shape, 1e-8, self.dtype)}

    def score_rows(self, X):
        return X @ self.arrays["weights"]

    def learn_row(self, x, target, weight, score):
        slope = weight * (score - self.column_targets(target))
        gradient = x.T @ slope[None].astype(self.dtype)
        self.arrays["squares"] += gradient**2
        self.arrays["weights"] -= self.eta * gradient / np.sqrt(self.arrays["squares"])


class NearestOf(Learner):
    """The mean target of the newest points nearby: arrays that grow from nothing, and one that holds targets."""

    target_arrays = ("targets",)

    def __init__(self, budget=20, gamma=0.5):
        self.budget = budget
        self.gamma = gamma

    def initial_arrays(self):
        return {"points": np.zeros((0, self.width), self.dtype), "targets": np.zeros(0), "sizes": np.zeros(0)}

    def score_rows(self, X):
        points = self.arrays["points"]
        dense = X.toarray() if hasattr(X, "toarray") else X
        square = ((dense[:, None].astype(np.float64) - points[None]) ** 2).sum(axis=2)
        closeness = np.exp(-self.gamma * square) * self.arrays["sizes"]
        codes = np.array([self.column_targets(t) for t in self.arrays["targets"]]).reshape(-1, self.outputs)
        return closeness @ codes

    def learn_row(self, x, target, weight, score):
        dense = x.toarray() if hasattr(x, "toarray") else x
        for name, row in (("points", dense), ("targets", [target]), ("sizes", [weight])):
            kept = np.concatenate([self.arrays[name], row])[-self.budget :]
            self.arrays[name] = kept.astype(self.arrays[name].dtype)


class ChunkMean(Learner):
    """Learns a chunk at once."""

    def initial_arrays(self):
        return {"sums": np.zeros(self.outputs), "count": np.zeros(1)}

    def score_rows(self, X):
        return np.tile(self.arrays["sums"] / max(1.0, self.arrays["count"][0]), (X.shape[0], 1))

    def learn_rows(self, X, targets, weights, scores):
        for i, (target, weight) in enumerate(zip(targets, weights, strict=True)):
            sums, count = self.arrays["sums"], self.arrays["count"]
            scores[i] = sums / max(1.0, count[0])
            with np.errstate(over="ignore"):
                step = weight * self.column_targets(target)
                if not np.isfinite(sums + step).all() or not np.isfinite(count + weight).all():
                    raise self.overflow(i)
            sums += step
            count += weight


@pytest.mark.parametrize(
    "learner", [AdaGrad(), NearestOf(), ChunkMean()], ids=lambda value: type(value).__name__
)
def test_learners_of_strangers_pass_the_checks(learner):
    register(type(learner))
    check_learner(learner)


class ScoresLearn(AdaGrad):
    """Wrong: scoring changes the state."""

    def score_rows(self, X):
        self.arrays["weights"] += 1e-3
        return super().score_rows(X)


class TrueChance(AdaGrad):
    """Wrong: another model each time."""

    def learn_row(self, x, target, weight, score):
        super().learn_row(x, target, weight, score)
        self.arrays["weights"] *= 1 + 1e-9 * np.random.default_rng().random()


class HiddenState(AdaGrad):
    """Wrong: what is learnt is not all in the arrays."""

    def learn_row(self, x, target, weight, score):
        super().learn_row(x, target, weight, score)
        self.hidden = getattr(self, "hidden", 0) + 1
        self.arrays["weights"] += 1e-6 * self.hidden


@pytest.mark.parametrize("wrong", [ScoresLearn, TrueChance, HiddenState])
def test_a_broken_promise_is_found(wrong):
    """The error's note names the check."""
    with pytest.raises(AssertionError) as error:
        check_learner(wrong())
    assert "check_" in error.value.__notes__[0]


def test_an_incomplete_learner_is_no_learner():
    class NoScores(Learner):
        def initial_arrays(self):
            return {}

    class NoSteps(NoScores):
        def score_rows(self, X):
            return np.zeros((X.shape[0], self.outputs))

    with pytest.raises(TypeError, match="score_rows"):
        NoScores()
    with pytest.raises(TypeError, match="lacks the methods score_rows"):
        register(NoScores)
    with pytest.raises(NotImplementedError, match="NoSteps needs a method learn_row"):
        KernelRegressor(NoSteps()).fit([[1.0]], [1.0])


def test_a_name_is_taken_once():
    register(AdaGrad)
    register(AdaGrad)  # a notebook's cell runs again
    assert registered()["AdaGrad"] is AdaGrad
    with pytest.raises(
        ValueError, match=r"there is a learner NOGD already, kernelstream\.learners\.nogd\.NOGD"
    ):
        register(type("NOGD", (AdaGrad,), {}))
    with pytest.raises(TypeError, match="only a subclass"):
        register(int)


def test_a_file_names_registered_learners_only(tmp_path):
    model = KernelClassifier(AdaGrad()).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ModelFileError, match="register"):
        model.save(tmp_path / "m")
    register(AdaGrad)
    model.save(tmp_path / "m")
    assert (kernelstream.load(tmp_path / "m").predict([[2.0]]) == model.predict([[2.0]])).all()
    del registry._LEARNERS["AdaGrad"]
    with pytest.raises(ModelFileError, match="unknown learner 'AdaGrad': import the package"):
        kernelstream.load(tmp_path / "m")


def test_a_learner_that_needs_too_much_is_refused_before_it_is_made(tmp_path):
    class Huge(AdaGrad):
        def __init__(self, budget=1, eta=0.5):
            self.budget = budget
            super().__init__(eta)

        def initial_arrays(self):
            assert self.budget < 10**9
            return super().initial_arrays()

    register(Huge)
    model = KernelClassifier(Huge()).fit([[0.0], [1.0]], [0, 1])
    model.learner_.budget = 10**12
    model.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="may need"):
        kernelstream.load(tmp_path / "m")


def test_arrays_and_matrices_may_be_given_to_a_learner_itself():
    learner = AdaGrad().start(2, regression=True)
    X = np.random.default_rng(0).normal(size=(50, 2))
    learner.run(X, X[:, 0])
    assert learner.score(X).shape == (50, 1)


# ---- the guide ----


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def package(tmp_path):
    """The guide's learner as an installed package: a module and a dist-info folder, on the path."""
    (tmp_path / "random_features.py").write_text(blocks("python")[0])
    info = tmp_path / "random_features-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: random-features\nVersion: 1.0\n")
    (points,) = (tomllib.loads(text)["project"]["entry-points"] for text in blocks("toml"))
    lines = [f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in of.items()) for group, of in points.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return tmp_path


def run(package, *command):
    env = os.environ | {"PYTHONPATH": str(package)}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=package,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


CLI = ("-c", "import sys; from kernelstream.cli import main; sys.exit(main())")


def test_the_guides_learner_is_short():
    assert len(blocks("python")[0].splitlines()) < 40


@pytest.mark.slow
def test_the_guides_code_runs(package):
    for block in blocks("python")[1:]:
        run(package, "-c", block)


def test_the_guides_learner_passes_each_check(package):
    (package / "test_it.py").write_text(blocks("python")[2])
    run(package, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "test_it.py")


def test_the_guides_commands_run(package):
    (commands,) = blocks("sh")
    outputs = [run(package, *CLI, *shlex.split(line)[1:]) for line in commands.splitlines()]
    assert "random Fourier features" in outputs[0]
    assert "n_components = 100" in outputs[0]
    assert "RandomFeatures" in outputs[2]
    assert (package / "rings.safetensors").exists()
    assert "RandomFeatures" in run(package, *CLI, "learners")


def test_reading_a_file_imports_no_entry_point(package):
    run(package, *CLI, *shlex.split(blocks("sh")[0].splitlines()[1])[1:])
    code = (
        "import kernelstream, sys\n"
        "try:\n    kernelstream.load('rings.safetensors')\n"
        "except kernelstream.ModelFileError as error:\n    print(error)\n"
        "print('random_features' in sys.modules)"
    )
    output = run(package, "-c", code)
    assert "unknown learner 'RandomFeatures': import the package" in output
    assert output.splitlines()[-1] == "False"


def test_a_broken_entry_point_is_a_warning(package):
    (package / "random_features.py").write_text("raise OSError('on purpose')\n")
    code = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as seen:\n"
        "    from kernelstream.learners import registered\n"
        "    print('NOGD' in registered())\n"
        "print(seen[0].message)"
    )
    output = run(package, "-c", code)
    assert output.splitlines()[0] == "True"
    assert "RandomFeatures" in output
    assert "on purpose" in output


def test_every_check_says_what_is_promised():
    for check in learner_checks(AdaGrad()):
        assert check.__doc__
        assert check.__name__.startswith("check_")
