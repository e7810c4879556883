"""`kernelstream run`: learn a source and report."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import click

from kernelstream.cli.arguments import (
    Command,
    UsageError,
    count,
    folders,
    learner_names,
    metric_options,
    output_options,
    paths,
    reading_options,
    scale_option,
    settings_option,
)
from kernelstream.cli.imports import import_scikit_learn

__all__ = ["run"]

_CHANGEABLE = ("on_bad_row", "data_dir", "latency", "max_features")  # when a run is continued


@click.command(
    cls=Command,
    epilog="""\
examples:
  kernelstream run                                                      a built-in stream
  kernelstream run train.csv.gz --target price --metric r2 --metric mae the column to predict, a real number
  kernelstream run a9a --learner BOGD --set budget=200 --set kernel__gamma=0.05
  kernelstream run day1.libsvm.xz day2.libsvm.xz --save model.safetensors --predictions out.txt --curve curve.png
  kernelstream run new.csv --from model.safetensors --save newer.safetensors   go on with a saved model
  kernelstream run huge.csv --checkpoint state --every 1e6              killed? The same command continues
  kernelstream run huge.csv --workers 8 --save model.safetensors        eight processes learn parts, which are merged
  zcat logs.gz | kernelstream run - --format jsonl --target label --on-bad-row quarantine=bad.jsonl
""",
)
@click.option(
    "--learner",
    metavar="NAME",
    shell_complete=learner_names,
    help="See `kernelstream learners` (default: the best one, untuned).",
)
@settings_option
@click.option(
    "--class-weight",
    metavar="WEIGHTS",
    help="`balanced`: rare classes weigh more; or weights of labels, such as `yes=5,no=1`.",
)
@click.option(
    "--from",
    "from_model",
    metavar="MODEL",
    shell_complete=paths,
    help="Go on with the model of this file; its columns are treated as they were.",
)
@click.option(
    "--save", metavar="MODEL", shell_complete=paths, help="Write the model to this file at the end."
)
@click.option(
    "--predictions",
    metavar="FILE",
    shell_complete=paths,
    help="Write what was predicted for each row, one per line.",
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    shell_complete=folders,
    help="Keep checkpoints in this folder, and continue from the last one.",
)
@click.option("--every", type=count, metavar="N", help="Rows between two checkpoints (default: 100000).")
@click.option(
    "--workers",
    type=count,
    metavar="N",
    help="Learn with N processes: each learns parts of the rows, which are merged (default: one process, in order).",
)
@click.option("--dry-run", is_flag=True, help="Only say what the columns and the task are; learn nothing.")
@scale_option
@metric_options
@output_options
@reading_options()
def run(
    sources: tuple[str, ...],
    learner: str | None,
    settings: tuple[tuple[str, Any], ...],
    class_weight: str | None,
    from_model: str | None,
    save: str | None,
    predictions: str | None,
    checkpoint: str | None,
    every: int | None,
    workers: int | None,
    scale: bool | None,
    metrics: tuple[str, ...],
    window: int | None,
    max_classes: int | None,
    dry_run: bool,
    curve: str | None,
    overwrite: bool,
    quiet: bool,
    as_json: bool,
    **reading: Any,
) -> int:
    """Predict each row of a stream, then learn it, and report how that went."""
    import_scikit_learn()
    from kernelstream.cli.curves import check_curve, write_curve
    from kernelstream.cli.display import figures, print_table, progress
    from kernelstream.cli.metrics import check_metrics, print_metrics
    from kernelstream.cli.models import estimator_of, learner_of, learnt_model, scaling_text
    from kernelstream.cli.paths import check_paths, curve_output, model_output, predictions_output
    from kernelstream.cli.reading import CHUNK, PART, open_pipe, reading_arguments, source_name, task_of
    from kernelstream.estimators import KernelRegressor
    from kernelstream.explanations import event_lines
    from kernelstream.metrics import WINDOW
    from kernelstream.persistence import save as save_model
    from kernelstream.runner import EVERY, MAX_CLASSES, Run
    from kernelstream.stream import read

    check_curve(curve)
    if every is not None and checkpoint is None:
        raise UsageError("--every says how often to keep a checkpoint: give --checkpoint DIR with it")
    if 0 in (every, window, max_classes, workers):
        raise UsageError("--every, --window, --max-classes and --workers must be at least 1")
    names, options = reading_arguments(sources, reading)
    if from_model and (learner or settings or class_weight or scale is not None or "task" in options):
        raise UsageError(
            "--from goes on with a model as it is: --learner, --set, --class-weight, --scale and --task are not for it"
        )
    check_paths(
        sources=names,
        model=from_model,
        outputs=[
            *model_output(save),
            *predictions_output("--predictions", predictions),
            *curve_output(curve),
        ],
        on_bad_row=reading["on_bad_row"],
        checkpoint=checkpoint,
        data_folder=reading["data"],
        overwrite=overwrite,
    )
    model: Any = None
    if from_model:
        model, learnt = learnt_model(from_model)
        algorithm = model.learner_
        is_regression = isinstance(model, KernelRegressor)
        options = (
            learnt | options | {"grow": True, "task": "regression" if is_regression else "classification"}
        )
    else:
        algorithm = learner_of(learner, settings, reading["seed"])
    if workers and not algorithm.merge_guarantee:
        raise UsageError(
            f"--workers: models of {type(algorithm).__name__} cannot be merged: {algorithm.merge_refusal}"
        )
    kept = {
        "sources": names,
        "learner": " ".join(repr(algorithm).split()),
        "predictions": predictions,
        **({} if class_weight is None else {"class_weight": class_weight}),
        **({} if scale is None else {"scale": scale}),
        **({"from": from_model} if from_model else {}),
        **({"workers": workers} if workers else {}),
        **{key: value for key, value in options.items() if key not in (*_CHANGEABLE, "encoding")},
    }
    with contextlib.closing(read(*names, **options | {"on_bad_row": "stop"})) as source:
        task = source.task  # a missing file is noticed here; nothing is read
    places = open_pipe(names)
    guess = task_of(places, options)
    if guess is not None:
        task = options["task"] = guess.task
    check_metrics(metrics, task)
    if dry_run:
        from kernelstream.cli.columns import show_source

        show_source(places, source_name(names), options | {"task": task}, guess and guess.reason, as_json)
        return 0
    team = _workers(workers, trained=model is not None)
    if team:
        options["latency"] = None  # full chunks, so that the parts of a pipe do not depend on its pace

    def open_source(position: Any) -> Any:
        source = read(*places, **options, chunk_size=PART if team else CHUNK, resume=position)
        return team.chunks(source) if team else source

    start = time.monotonic()
    with progress(not (quiet or as_json)) as show, team or contextlib.nullcontext():
        outcome = Run(
            model or estimator_of(task, algorithm, scale, class_weight),
            open_source,
            step=team and team.step,
            predictions=predictions,
            checkpoint=checkpoint,
            every=every or EVERY,
            settings=kept,
            on_chunk=show,
            window=window or WINDOW,
            curves=metrics if curve else (),
            max_classes=max_classes or MAX_CLASSES,
        )()
    seconds = time.monotonic() - start
    result, rows = outcome.result, outcome.result.rounds - outcome.rows_before
    if not result.rounds:
        if outcome.interrupted:
            return 130
        raise UsageError(
            f"no rows in {source_name(names)}: it is empty, or has the names of columns alone"
            + (f": {outcome.first_bad_row}" if outcome.bad_rows else "")
        )
    if save:
        save_model(outcome.model, save, _note(outcome.model, outcome.position, options))
    title, name = type(algorithm).__name__, source_name(names)
    if curve:
        write_curve(curve, {title: result}, metrics)
    record = (
        {"task": task} | ({"task_because": guess.reason} if guess else {}) | figures(result, seconds, rows)
    )
    if outcome.bad_rows:
        record |= {"bad_rows": outcome.bad_rows, "first_bad_row": outcome.first_bad_row}
    if outcome.rows_before:
        record["rows_learnt_before"] = outcome.rows_before
    if team:
        record |= {"workers": team.count, "merges": team.merges, "parts_done_again": len(team.refused)}
    events = outcome.model.events_
    if as_json:
        record["events"] = [event.record() for event in events]
        record |= result.evaluation.record() if result.evaluation else {}
        record["scaled"] = hasattr(outcome.model, "scaler_")
        print(json.dumps({"source": name, "learner": title, "interrupted": outcome.interrupted} | record))
        return 130 if outcome.interrupted else 0
    print_table(f"{title} on {name}" + (", interrupted" if outcome.interrupted else ""), record)
    if result.evaluation is not None:
        print_metrics(result.evaluation, metrics)
    if not algorithm.scales_itself:
        print(scaling_text([(title, outcome.model)]))
    if guess is not None and task == "regression":
        print(f"a regression, because {guess.reason}; --task classification takes them as classes")
    if outcome.bad_rows:
        print(f"the first bad row: {outcome.first_bad_row}")
    if team:
        print(
            f"learnt in parts by {team.count} processes, {team.merges:,} merges: a row was predicted without the rows of other "
            f"parts since the last merge. What that keeps of one pass: {algorithm.merge_guarantee}"
        )
    if events:
        print(event_lines(events))
    if outcome.rows_before:
        done = "this run had finished before" if not rows and not outcome.interrupted else "went on"
        print(f"{done}: {outcome.rows_before:,} rows came from the checkpoint in {checkpoint}")
    return 130 if outcome.interrupted else 0


def _workers(count: int | None, *, trained: bool) -> Any:
    """Processes that learn, if they are asked for. A model that has learnt needs no first rows."""
    if not count:
        return None
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise UsageError('--workers needs Dask: pip install "kernelstream[dask]"') from None
    from kernelstream.dask import Workers

    return Workers(count, first_rows=0) if trained else Workers(count)


def _note(model: Any, position: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """How rows were read, so that `predict` does the same; the columns that have names are the model's own."""
    kept = {key: options[key] for key in ("header",) if key in options}
    if position["format"] == "libsvm":
        return {"encoding": {"format": "libsvm", "state": position["reader"]}, "options": kept}
    if position["format"]:
        model.set_columns(position["reader"])
    return {"options": kept}
