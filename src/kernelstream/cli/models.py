"""From names on the command line to learners and estimators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kernelstream import kernels
from kernelstream.class_weights import ClassWeight
from kernelstream.cli.arguments import UsageError
from kernelstream.estimators import KernelClassifier, KernelRegressor, default_learner
from kernelstream.learners import Learner, registered
from kernelstream.losses import as_loss
from kernelstream.scaling import Scale
from kernelstream.stream.datasets import did_you_mean

__all__ = [
    "Estimator",
    "class_weight_of",
    "estimator_of",
    "learner_class",
    "learner_of",
    "learnt_model",
    "pick",
    "scaling_text",
]

Estimator = KernelClassifier | KernelRegressor


def estimator_of(
    task: str, learner: Learner, scale: bool | None = None, class_weight: str | None = None
) -> Estimator:
    """A new estimator for a task. Without a word about scaling, it is done for learners that do not scale by themselves.

    >>> estimator_of("regression", default_learner())
    KernelRegressor(learner=NewtonMixture(), scale='auto')
    """
    scaled: Scale = "auto" if scale is None else scale
    if task == "regression":
        if class_weight is not None:
            raise UsageError("--class-weight is for classification, and this is a regression")
        return KernelRegressor(learner, scale=scaled)
    return KernelClassifier(learner, scale=scaled, class_weight=class_weight_of(class_weight))


def class_weight_of(text: str | None) -> ClassWeight:
    """What `--class-weight` says: "balanced", or weights of labels such as "yes=5,no=1".

    >>> class_weight_of("yes=5"), class_weight_of("1=72")
    ({'yes': 5.0}, {'1': 72.0, 1.0: 72.0})
    """
    if text is None:
        return None
    if text == "balanced":
        return "balanced"
    weights: dict[Any, float] = {}
    for pair in text.split(","):
        label, equals, number = pair.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = -1.0
        if not equals or not 0 <= weight < float("inf"):
            raise UsageError(
                f"--class-weight must be `balanced` or weights of labels such as `yes=5,no=1`, got {text!r}"
            )
        weights[label] = weight
        try:
            weights[float(label)] = weight  # the labels may be numbers
        except ValueError:
            pass
    return weights


def scaling_text(models: Iterable[tuple[str, Estimator]]) -> str:
    """Which of some models have their inputs scaled, in words.

    >>> scaling_text([("NOGD", estimator_of("regression", learner_of("NOGD", [], 0)))])
    'inputs brought to a common scale, online (--no-scale leaves them as they are): NOGD'
    """
    scaled: list[str] = []
    own: list[str] = []
    not_scaled: list[str] = []
    for name, model in models:
        itself = isinstance(model.learner, Learner) and model.learner.scales_itself
        (
            scaled if model.scale is True or (model.scale and not itself) else own if itself else not_scaled
        ).append(name)
    parts = (
        ("inputs brought to a common scale, online (--no-scale leaves them as they are)", scaled),
        ("scaled by the learner itself", own),
        ("inputs as they are", not_scaled),
    )
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts if names)


def learner_of(name: str | None, settings: Iterable[tuple[str, Any]], seed: int) -> Learner:
    """The learner of this name (None: the default) with its hyper-parameters set.

    >>> learner_of("nogd", [("budget", 50)], seed=0)
    NOGD(budget=50, kernel=Gaussian())
    """
    learner: Learner = default_learner() if name is None else learner_class(name)()
    known = learner.get_params()
    if "seed" in known:
        learner.set_params(seed=seed)
    if "kernel" in known and known["kernel"] is None:
        learner.set_params(kernel=kernels.as_kernel(None))  # so that its parameters have names
    for key, value in settings:
        known = learner.get_params()
        if key not in known:
            raise UsageError(
                f"unknown hyper-parameter {key!r} of {type(learner).__name__}; {did_you_mean(key, known)}"
            )
        learner.set_params(**{key: _object_of(key, value)})
    learner.check()
    return learner


def learnt_model(path: str) -> tuple[Estimator, dict[str, Any]]:
    """A model from its file, and the arguments of `read` that make features of rows as it learnt them."""
    from kernelstream.persistence import load_noted

    registered()  # other packages' learners, too: a model file may name one, but imports nothing
    model, note = load_noted(path)
    note = note if isinstance(note, dict) else {}
    encoding = note.get("encoding")
    if hasattr(model, "encoder_"):  # the source makes the features, and the model gets those
        encoding = model.encoder_.description
        model.set_columns(None)
    return model, (note.get("options") or {}) | ({"encoding": encoding} if encoding else {})


def learner_class(name: str) -> type[Learner]:
    """The learner of a name; those of other packages are imported only if ours have none of it.

    >>> learner_class("nogd").__name__
    'NOGD'
    """
    try:
        learner: type[Learner] = pick(name, registered(plugins=False), "learner")
    except UsageError:
        learner = pick(name, registered(), "learner")
    return learner


def pick(name: str, known: dict[str, Any], kind: str) -> Any:
    """The value of a name, in upper or lower case.

    >>> pick("one", {"One": 1}, "number")
    1
    """
    for key, value in known.items():
        if key.casefold() == name.casefold():
            return value
    raise UsageError(f"unknown {kind} {name!r}; {did_you_mean(name, known)}")


def _object_of(key: str, value: Any) -> Any:
    """The kernel or the loss that a setting names; any other value as it is."""
    if key == "kernel" and isinstance(value, str):
        known = {
            name: kind
            for name in kernels.__all__
            if isinstance(kind := getattr(kernels, name), type)
            and issubclass(kind, kernels.Kernel)
            and kind not in (kernels.Kernel, kernels.Precomputed)
        }
        return pick(value, known, "kernel")()
    return as_loss(value) if key == "loss" and isinstance(value, str) else value
