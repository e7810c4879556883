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
    output_options,
    reading_options,
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
@output_options
@reading_options()
def compare(
    sources: tuple[str, ...],
    learners: str,
    settings: tuple[tuple[str, Any], ...],
    curve: str | None,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
    **reading: Any,
) -> int:
    """Learn a stream with several learners in one pass, and rank them."""
    from kernelstream.cli.curves import check_curve, write_curve
    from kernelstream.cli.display import figures, print_ranking, progress
    from kernelstream.cli.paths import check_paths, curve_output
    from kernelstream.cli.reading import CHUNK, reading_arguments, source_name, task_of
    from kernelstream.errors import CapacityError, ScoreOverflowError
    from kernelstream.evaluate import Result
    from kernelstream.runner import Interrupts
    from kernelstream.stream import read

    check_curve(curve)
    names, options = reading_arguments(sources, reading)
    check_paths(
        sources=names,
        outputs=curve_output(curve),
        on_bad_row=reading["on_bad_row"],
        data_folder=reading["data"],
        overwrite=overwrite,
    )
    models = _models(learners, settings, reading["seed"], task_of(names, options))
    results = {name: Result.of(model) for name, model in models.items()}
    failures: dict[str, str] = {}
    with (
        contextlib.closing(read(*names, **options, chunk_size=CHUNK)) as source,
        progress(not (quiet or as_json)) as show,
        Interrupts() as interrupts,
    ):
        while (chunk := interrupts.read(source)) is not None:
            for name, model in models.items():
                if name not in failures:
                    try:
                        _learn(model, results[name], *chunk)
                    except (CapacityError, ScoreOverflowError, ValueError, FloatingPointError) as error:
                        failures[name] = " ".join(str(error).split())
            running = [results[name] for name in results if name not in failures]
            if not running:
                break
            show(min(running, key=lambda result: result.error), source)
    ranked = sorted(
        ((name, result) for name, result in results.items() if name not in failures),
        key=lambda pair: pair[1].error,
    )
    if not ranked and failures:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in failures.items())
        raise UsageError(f"no learner reached the end: {reasons}")
    if not ranked or not ranked[0][1].rounds:
        if interrupts.asked:
            return 130
        raise UsageError("the source has no rows")
    if curve:
        write_curve(curve, dict(ranked))
    title = source_name(names)
    if as_json:
        table = [{"learner": learner, **figures(result)} for learner, result in ranked]
        record = {"source": title, "interrupted": interrupts.asked, "ranked": table, "failed": failures}
        print(json.dumps(record))
    else:
        ending = ", interrupted" if interrupts.asked else ""
        print_ranking(f"{ranked[0][1].rounds:,} rows of {title}{ending}", ranked, failures)
    return 130 if interrupts.asked else 0


def _models(
    learners: str, settings: tuple[tuple[str, Any], ...], seed: int, task: str
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
    return {name: estimator_of(task, learner_of(name, settings_of[name], seed)) for name in names}


def _learn(model: Estimator, result: Result, X: Any, y: Any) -> None:
    if result.rounds:
        model.widen(X.shape[1])
    result.step(model, X, y)
