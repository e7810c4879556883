"""`kernelstream compare`: learn a source with several learners in one pass."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import click

from kernelstream.cli.arguments import (
    Command,
    UsageError,
    learner_names,
    metric_options,
    output_options,
    reading_options,
    scale_option,
    settings_option,
)
from kernelstream.cli.imports import import_scikit_learn

if TYPE_CHECKING:
    import_scikit_learn()
    from kernelstream.cli.models import Estimator
    from kernelstream.evaluate import Result

__all__ = ["compare"]


@click.command(
    cls=Command,
    epilog="""\
examples:
  kernelstream compare --learners NOGD,BOGD,KernelPA --rows 20000
  kernelstream compare a9a --learners NOGD,SkeGD,NOLANA --set budget=100 --set SkeGD.eta=0.1 --curve curves.png
""",
)
@click.option(
    "--learners",
    required=True,
    metavar="A,B,C",
    shell_complete=learner_names,
    help="Names, with commas between them.",
)
@settings_option
@scale_option
@metric_options
@output_options
@reading_options()
def compare(
    sources: tuple[str, ...],
    learners: str,
    settings: tuple[tuple[str, Any], ...],
    scale: bool | None,
    metrics: tuple[str, ...],
    window: int | None,
    max_classes: int | None,
    curve: str | None,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
    **reading: Any,
) -> int:
    """Learn a stream with several learners in one pass, and rank them."""
    import_scikit_learn()
    from kernelstream.cli.curves import check_curve, write_curve
    from kernelstream.cli.display import figures, print_ranking, progress
    from kernelstream.cli.metrics import check_metrics
    from kernelstream.cli.models import scaling_text
    from kernelstream.cli.paths import check_paths, curve_output
    from kernelstream.cli.reading import CHUNK, open_pipe, reading_arguments, source_name, task_of
    from kernelstream.errors import CapacityError, ScoreOverflowError
    from kernelstream.evaluate import Result
    from kernelstream.metrics import METRICS, WINDOW
    from kernelstream.runner import MAX_CLASSES, Interrupts, check_classes
    from kernelstream.stream import read

    check_curve(curve)
    if window == 0 or max_classes == 0:
        raise UsageError("--window and --max-classes must be at least 1")
    names, options = reading_arguments(sources, reading)
    check_paths(
        sources=names,
        outputs=curve_output(curve),
        on_bad_row=reading["on_bad_row"],
        data_folder=reading["data"],
        overwrite=overwrite,
    )
    models = _models(
        learners, settings, reading["seed"], "classification", scale
    )  # wrong names are told at once
    with contextlib.closing(read(*names, **options | {"on_bad_row": "stop"})) as source:
        task = source.task
    places = open_pipe(names)
    guess = task_of(places, options)
    if guess is not None:
        task = options["task"] = guess.task
    check_metrics(metrics, task)
    models = _models(learners, settings, reading["seed"], task, scale)
    curves = metrics if curve else ()
    results = {
        name: Result.of(model, window=window or WINDOW, curves=curves, baselines=place == 0)
        for place, (name, model) in enumerate(models.items())
    }
    baselines = next(iter(results.values())).evaluation
    failures: dict[str, str] = {}
    with (
        contextlib.closing(read(*places, **options, chunk_size=CHUNK)) as source,
        progress(not (quiet or as_json)) as show,
        Interrupts() as interrupts,
    ):
        show(next(iter(results.values())), source)
        while (chunk := interrupts.read(source)) is not None:
            check_classes(
                next(iter(models.values())), chunk[1], max_classes or MAX_CLASSES, source.rows - len(chunk[1])
            )
            for name, model in models.items():
                if name not in failures:
                    model.set_quantities(source.quantities)
                    try:
                        _learn(model, results[name], *chunk)
                    except (CapacityError, ScoreOverflowError, ValueError, FloatingPointError) as error:
                        failures[name] = " ".join(str(error).split())
            running = [results[name] for name in results if name not in failures]
            if not running:
                break
            show(min(running, key=lambda result: result.error), source)

    def rank(pair: tuple[str, Result]) -> float:
        """The smallest is the best; the first metric decides, without one the error."""
        result = pair[1]
        if not metrics or result.evaluation is None:
            return result.error
        value = result.evaluation.metrics.figures()[metrics[0]]
        return float("inf") if value != value else -value if METRICS[metrics[0]] else value

    ranked = sorted(((name, result) for name, result in results.items() if name not in failures), key=rank)
    if not ranked and failures:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in failures.items())
        raise UsageError(f"no learner reached the end: {reasons}")
    if not ranked or not ranked[0][1].rounds:
        if interrupts.asked:
            return 130
        raise UsageError(f"no rows in {source_name(names)}: it is empty, or has the names of columns alone")
    if curve:
        write_curve(curve, dict(ranked), metrics)
    title = source_name(names)
    if as_json:
        table: list[dict[str, Any]] = []
        for learner, result in ranked:
            counted = result.evaluation.record() if result.evaluation else {}
            counted.pop("baselines", None)
            scaled = hasattr(models[learner], "scaler_")
            table.append({"learner": learner, "scaled": scaled, **figures(result), **counted})
        record = {
            "source": title,
            "task": task,
            "interrupted": interrupts.asked,
            "ranked": table,
            "failed": failures,
        }
        record["baselines"] = baselines.record()["baselines"] if baselines else {}
        print(json.dumps(record))
    else:
        ending = ", interrupted" if interrupts.asked else ""
        heading = f"{ranked[0][1].rounds:,} rows of {title}{ending}"
        print_ranking(heading, ranked, failures, metrics, baselines)
        print(scaling_text(models.items()))
        if guess is not None and task == "regression":
            print(f"a regression, because {guess.reason}; --task classification takes them as classes")
    return 130 if interrupts.asked else 0


def _models(
    learners: str, settings: tuple[tuple[str, Any], ...], seed: int, task: str, scale: bool | None
) -> dict[str, Estimator]:
    """The models, by name. A setting goes to every learner that has it, or to one: NOGD.budget=100."""
    from kernelstream.cli.models import estimator_of, learner_of, pick

    names = [type(learner_of(name, [], 0)).__name__ for name in learners.split(",") if name]
    if not names:
        raise UsageError("--learners needs at least one name")
    settings_of: dict[str, list[tuple[str, Any]]] = {name: [] for name in names}
    for key, value in settings:
        learner, dot, rest = key.partition(".")
        if dot:
            settings_of[pick(learner, {name: name for name in names}, "learner")].append((rest, value))
            continue
        takers = [name for name in names if key in learner_of(name, [], 0).get_params()]
        if not takers:
            learner_of(names[0], [(key, value)], 0)  # which says what would be right
        for name in takers:
            settings_of[name].append((key, value))
    return {name: estimator_of(task, learner_of(name, settings_of[name], seed), scale) for name in names}


def _learn(model: Estimator, result: Result, X: Any, y: Any) -> None:
    if hasattr(model, "n_features_in_"):
        model.widen(X.shape[1])
    result.step(model, X, y)
