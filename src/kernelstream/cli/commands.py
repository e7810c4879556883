"""What each command does."""

import argparse
import contextlib
import inspect as python_inspect
import json
import os
import sys
import time
from typing import Any

from kernelstream import kernels
from kernelstream.cli.arguments import ROWS, UsageError, make_parser
from kernelstream.cli.data import data as data
from kernelstream.cli.display import (
    check_curve,
    figures,
    print_ranking,
    print_table,
    progress,
    size,
    write_curve,
)
from kernelstream.errors import CapacityError, ScoreOverflowError
from kernelstream.estimators import KernelClassifier, KernelRegressor, default_learner
from kernelstream.evaluate import Result
from kernelstream.learners import Learner, registered
from kernelstream.losses import as_loss
from kernelstream.persistence import describe, load_noted, save
from kernelstream.runner import EVERY, Interrupts, Run, fitted_width, lines
from kernelstream.stream import DATASETS, STREAMS, Source, read
from kernelstream.stream.datasets import did_you_mean
from kernelstream.stream.formats import FORMATS

CHUNK = 4096
"""Rows learnt in one go. More would be no faster, and Ctrl-C waits for the end of a chunk."""

Estimator = KernelClassifier | KernelRegressor


# ---- run ----


def run(arguments: argparse.Namespace) -> int:
    """Learn a source and report."""
    check_curve(arguments.curve)
    for path in (arguments.save, arguments.predictions, arguments.curve):
        _check_folder(path)
    if arguments.every is not None and arguments.checkpoint is None:
        raise UsageError("--every says how often to keep a checkpoint: give --checkpoint DIR with it")
    if arguments.every == 0:
        raise UsageError("--every must be at least 1")
    options = _reading(arguments)
    sources = options.pop("sources")
    task = _task(sources, options)
    learner = _learner(arguments.learner, arguments.set, arguments.seed)
    settings = {
        "sources": sources,
        "learner": " ".join(repr(learner).split()),
        "predictions": arguments.predictions,
        **{key: value for key, value in options.items() if key not in ("on_bad_row", "data_dir")},
    }
    start = time.monotonic()
    with progress(not (arguments.quiet or arguments.json)) as tell:
        outcome = Run(
            _estimator(task, learner),
            lambda position: read(*sources, **options, chunk_size=CHUNK, resume=position),
            predictions=arguments.predictions,
            checkpoint=arguments.checkpoint,
            every=arguments.every or EVERY,
            settings=settings,
            told=tell,
        )()
    seconds = time.monotonic() - start
    result, rows = outcome.result, outcome.result.rounds - outcome.rows_before
    if not result.rounds:
        if outcome.interrupted:
            return 130
        raise UsageError(
            "the source has no rows" + (f": {outcome.first_bad_row}" if outcome.bad_rows else "")
        )
    if arguments.save:
        save(outcome.model, arguments.save, _note(outcome.position, options))
    if arguments.curve:
        write_curve(arguments.curve, {type(learner).__name__: result})
    record = figures(result, seconds, rows)
    if outcome.bad_rows:
        record |= {"bad_rows": outcome.bad_rows, "first_bad_row": outcome.first_bad_row}
    if outcome.rows_before:
        record["rows_learnt_before"] = outcome.rows_before
    name = ", ".join(map(os.path.basename, sources))
    if arguments.json:
        told = {"source": name, "learner": type(learner).__name__, "interrupted": outcome.interrupted}
        print(json.dumps(told | record))
        return 130 if outcome.interrupted else 0
    print_table(
        f"{type(learner).__name__} on {name}" + (", interrupted" if outcome.interrupted else ""), record
    )
    if outcome.bad_rows:
        print(f"the first bad row: {outcome.first_bad_row}")
    if outcome.rows_before:
        done = "this run had finished before" if not rows and not outcome.interrupted else "went on"
        print(f"{done}: {outcome.rows_before:,} rows came from the checkpoint in {arguments.checkpoint}")
    return 130 if outcome.interrupted else 0


def _reading(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `read`."""
    sources = list(arguments.sources) or ["rings"]
    rows = arguments.rows
    if rows is None and len(sources) == 1 and sources[0] in STREAMS and not os.path.exists(sources[0]):
        rows = ROWS
    options: dict[str, Any] = {
        "sources": sources,
        "rows": rows,
        "seed": arguments.seed,
        "on_bad_row": arguments.on_bad_row,
        "data_dir": arguments.data,
    }
    for name in ("format", "target", "task", "categorical", "hashed", "drop", "header", "n_features"):
        value = getattr(arguments, name, None)
        if value is not None:
            options[name] = value
    return options


def _note(position: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """How the source made features of columns, so that `predict` does the same."""
    encoding = {"format": position["format"], "state": position["reader"]} if position["format"] else None
    kept = {key: options[key] for key in ("categorical", "hashed", "drop", "header") if key in options}
    return {"encoding": encoding, "options": kept}


def _task(sources: list[str], options: dict[str, Any]) -> str:
    """The task: as asked for, or a data set's own. Opening a source reads nothing yet, but finds what is not there."""
    with contextlib.closing(read(*sources, **options | {"on_bad_row": "stop"})) as source:
        return source.task


def _check_folder(path: str | None) -> None:
    """Refuse a file that could not be written, before the run."""
    folder = os.path.dirname(os.path.abspath(path)) if path else None
    if folder is not None and not os.path.isdir(folder):
        raise UsageError(f"cannot write {path}: there is no folder {folder}")
    if path and os.path.isdir(path):
        raise UsageError(f"cannot write {path}: it is a folder")


def _estimator(task: str, learner: Learner) -> Estimator:
    return KernelRegressor(learner) if task == "regression" else KernelClassifier(learner)


def _learner(name: str | None, settings: list[tuple[str, Any]], seed: int) -> Learner:
    """The named learner with its hyper-parameters set."""
    learner: Learner = default_learner() if name is None else _learner_class(name)()
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
        learner.set_params(**{key: _named(key, value)})
    learner.check()
    return learner


def _learner_class(name: str) -> type[Learner]:
    """The learner of a name; those of other packages are imported only if ours have none of it."""
    try:
        found: type[Learner] = _pick(name, registered(plugins=False), "learner")
    except UsageError:
        found = _pick(name, registered(), "learner")
    return found


def _named(key: str, value: Any) -> Any:
    """The kernel or the loss that a setting names; any other value as it is."""
    if key == "kernel" and isinstance(value, str):
        known = {
            k.__name__: k for k in (kernels.Gaussian, kernels.Laplacian, kernels.Polynomial, kernels.Linear)
        }
        return _pick(value, known, "kernel")()
    return as_loss(value) if key == "loss" and isinstance(value, str) else value


def _pick(name: str, known: dict[str, Any], what: str) -> Any:
    """What is known by a name, in upper or lower case."""
    for key, value in known.items():
        if key.casefold() == name.casefold():
            return value
    raise UsageError(f"unknown {what} {name!r}; {did_you_mean(name, known)}")


# ---- compare ----


def compare(arguments: argparse.Namespace) -> int:
    """Learn a source with several learners in one pass."""
    check_curve(arguments.curve)
    _check_folder(arguments.curve)
    options = _reading(arguments)
    sources = options.pop("sources")
    models = _contenders(arguments, _task(sources, options))
    results = {name: Result.of(model) for name, model in models.items()}
    failed: dict[str, str] = {}
    show = not (arguments.quiet or arguments.json)
    with (
        contextlib.closing(read(*sources, **options, chunk_size=CHUNK)) as source,
        progress(show) as tell,
        Interrupts() as interrupts,
    ):
        while (chunk := interrupts.read(source)) is not None:
            for name, model in models.items():
                if name not in failed:
                    try:
                        _learn(model, results[name], *chunk)
                    except (CapacityError, ScoreOverflowError, ValueError, FloatingPointError) as error:
                        failed[name] = " ".join(str(error).split())
            going = [results[name] for name in results if name not in failed]
            if not going:
                break
            tell(min(going, key=lambda result: result.error), source)
    ranked = sorted(((n, r) for n, r in results.items() if n not in failed), key=lambda pair: pair[1].error)
    if not ranked and failed:
        raise UsageError(
            "no learner got through: " + "; ".join(f"{name}: {why}" for name, why in failed.items())
        )
    if not ranked or not ranked[0][1].rounds:
        if interrupts.asked:
            return 130
        raise UsageError("the source has no rows")
    if arguments.curve:
        write_curve(arguments.curve, dict(ranked))
    name = ", ".join(map(os.path.basename, sources))
    if arguments.json:
        table = [{"learner": learner, **figures(result)} for learner, result in ranked]
        print(
            json.dumps({"source": name, "interrupted": interrupts.asked, "ranked": table, "failed": failed})
        )
    else:
        title = f"{ranked[0][1].rounds:,} rows of {name}" + (", interrupted" if interrupts.asked else "")
        print_ranking(title, ranked, failed)
    return 130 if interrupts.asked else 0


def _contenders(arguments: argparse.Namespace, task: str) -> dict[str, Estimator]:
    """The models, by name. A setting goes to every learner that has it, or to one: NOGD.budget=100."""
    names = [type(_learner(name, [], 0)).__name__ for name in arguments.learners.split(",") if name]
    if not names:
        raise UsageError("--learners needs at least one name")
    given: dict[str, list[tuple[str, Any]]] = {name: [] for name in names}
    for key, value in arguments.set:
        whose, dot, rest = key.partition(".")
        if dot:
            given[_pick(whose, {name: name for name in names}, "learner")].append((rest, value))
            continue
        takers = [name for name in names if key in _learner(name, [], 0).get_params()]
        if not takers:
            _learner(names[0], [(key, value)], 0)  # which says what would be right
        for name in takers:
            given[name].append((key, value))
    return {name: _estimator(task, _learner(name, given[name], arguments.seed)) for name in names}


def _learn(model: Estimator, result: Result, X: Any, y: Any) -> None:
    if result.rounds:
        model.widen(X.shape[1])
    result.step(model, X, y)


# ---- predict, inspect ----


def predict(arguments: argparse.Namespace) -> int:
    """Predict the rows of a source with a saved model."""
    registered()  # other packages' learners, too: a model file may name one, but imports nothing
    model, note = load_noted(arguments.model)
    options = _reading(arguments)
    sources = options.pop("sources")
    _check_folder(arguments.output)
    if isinstance(note, dict) and note.get("encoding"):  # written by `run --save`
        options = note["options"] | options | {"encoding": note["encoding"]}
    with contextlib.ExitStack() as stack:
        options |= {"target": False, "chunk_size": CHUNK}
        source: Source = stack.enter_context(contextlib.closing(read(*sources, **options)))
        out = stack.enter_context(open(arguments.output, "wb")) if arguments.output else sys.stdout.buffer
        for X, _ in source:
            model.widen(X.shape[1])  # features it has never seen; the file stays as it is
            out.write(lines(model.predict(fitted_width(X, model.n_features_in_))))
        out.flush()
        if source.bad_rows:
            print(
                f"kernelstream: {source.bad_rows:,} bad rows left out; {source.first_bad_row}",
                file=sys.stderr,
            )
    return 0


def inspect(arguments: argparse.Namespace) -> int:
    """Show what a model file holds."""
    registered()  # see `predict`
    record = describe(arguments.model)
    note = record.pop("note")
    if arguments.json:
        print(json.dumps(record | ({"note": note} if note is not None else {})))
        return 0
    given = ", ".join(f"{key}={_shown(value)}" for key, value in sorted(record["parameters"].items()))
    pairs = [
        ("estimator", record["estimator"]),
        ("learner", record["learner"]),
        ("hyper-parameters", given),
        ("features", f"{record['features']:,}"),
    ]
    if "feature_names" in record:
        pairs.append(("feature names", _few(record["feature_names"])))
    if "classes" in record:
        classes = record["classes"]["values"]
        pairs.append(
            (f"classes ({len(classes):,})", _few(classes) + (", more may come" if record["open"] else ""))
        )
    pairs.append(("arrays", ", ".join(f"{name} {shape}" for name, shape in sorted(record["arrays"].items()))))
    pairs.append(("model in memory", size(record["model_bytes"])))
    pairs.append(("file", f"{size(record['file_bytes'])}, format {record['format']}, checksum right"))
    if note is not None:
        pairs.append(("note", _few([json.dumps(note)])))
    width = max(len(name) for name, _ in pairs)
    for name, text in pairs:
        print(f"{name:<{width}}  {text}")
    return 0


def _shown(value: Any) -> str:
    """A hyper-parameter as one would write it, from how the file has it."""
    if isinstance(value, dict) and "object" in value:
        inside = ", ".join(f"{k}={_shown(v)}" for k, v in value["parameters"].items() if v is not None)
        return f"{value['object']}({inside})"
    if isinstance(value, dict):
        return str(value.get("float", value.get("tuple")))
    return repr(value)


def _few(things: list[Any], most: int = 100) -> str:
    text = ", ".join(map(str, things))
    return text if len(text) <= most else f"{text[:most]} ..."


# ---- reproduce, learners, completion ----


def reproduce(arguments: argparse.Namespace) -> int:
    """Run the papers' experiments; what that needs is imported only now."""
    from kernelstream.cli.reproduce import reproduce as reproduce_papers

    return reproduce_papers(arguments)


def learners(arguments: argparse.Namespace) -> int:
    """List the learners, or explain one."""
    known = registered()
    if arguments.name is None:
        width = max(map(len, known))
        for name, learner in sorted(known.items()):
            print(f"{name:{width}}  {(learner.__doc__ or '').strip().partition(chr(10))[0]}")
        return 0
    learner = _pick(arguments.name, known, "learner")
    text = (python_inspect.getdoc(learner) or "").partition(">>>")[0].rstrip()
    print(f"{learner.__name__}\n\n{text}\n\nHyper-parameters and their defaults (--set KEY=VALUE):")
    for key, parameter in python_inspect.signature(learner).parameters.items():
        default = parameter.default
        shown = (
            f"{len(default)} of them, {default[0]:g} to {default[-1]:g}"
            if key == "bandwidths"
            else repr(default)
        )
        print(f"  {key} = {shown}")
    does = [
        "classification" + ("" if learner.multiclass else " (two classes)") if learner.classification else "",
        "regression" if learner.regression else "",
    ]
    size_ = "memory is bounded" if learner.bounded else "memory grows, up to max_size points"
    print(f"\nDoes {' and '.join(filter(None, does))}; {size_}.")
    return 0


def _experiment_names() -> list[str]:
    from kernelstream.experiments.protocols import PROTOCOLS, all_experiments

    return [*PROTOCOLS, *all_experiments()]


def completion(arguments: argparse.Namespace) -> int:
    """Print a script for a shell."""
    import shtab

    parser = make_parser()
    commands = next(a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    files = {"sources", "model", "save", "predictions", "curve", "output"}
    for action in (action for command in commands.values() for action in command._actions):
        if action.dest in ("learner", "learners", "name"):
            action.choices = sorted(registered())
        elif action.dest == "format":
            action.choices = list(FORMATS)
        elif action.dest in files:
            action.complete = shtab.FILE
        elif action.dest == "experiments":
            action.choices = _experiment_names()
        elif action.dest == "names":
            action.choices = ["all", *DATASETS]
        elif action.dest in ("checkpoint", "data", "out"):
            action.complete = shtab.DIRECTORY
    print(shtab.complete(parser, arguments.shell))
    return 0
