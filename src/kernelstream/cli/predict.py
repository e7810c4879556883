"""`kernelstream predict`: predict the rows of a source with a saved model."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import click

from kernelstream.cli.arguments import Command, column, overwrite_option, paths, reading_options
from kernelstream.cli.imports import import_scikit_learn

__all__ = ["predict"]


@click.command(
    cls=Command,
    epilog="""\
examples:
  kernelstream predict model.safetensors new.libsvm > predictions.txt
  zcat new.csv.gz | kernelstream predict model.safetensors - --format csv --output predictions.txt
  tail -f rows.jsonl | kernelstream predict model.safetensors - --format jsonl --id id --proba --output-format jsonl
""",
)
@click.argument("model", shell_complete=paths)
@click.option(
    "--output", metavar="FILE", shell_complete=paths, help="Write there (default: standard output)."
)
@click.option("--proba", is_flag=True, help="Also the probability of each class.")
@click.option("--scores", is_flag=True, help="Also the scores, which are larger for the class predicted.")
@click.option("--id", "id_column", metavar="COLUMN", type=column, help="Pass this column through, in front.")
@click.option(
    "--output-format",
    "to",
    type=click.Choice(["lines", "csv", "jsonl"]),
    help="(default: one prediction per line; CSV if more than the prediction is asked for)",
)
@overwrite_option
@reading_options(required=True, labelled=False)
def predict(
    model: str,
    sources: tuple[str, ...],
    output: str | None,
    proba: bool,
    scores: bool,
    id_column: str | int | None,
    to: str | None,
    overwrite: bool,
    **reading: Any,
) -> int:
    """Predict the rows of a source with a saved model, one prediction per line. Labels in the source are not read.

    Rows of a pipe are answered as they come.

    MODEL: a file that `run --save` or `model.save` wrote.
    """
    import_scikit_learn()
    from kernelstream.cli.models import learnt_model
    from kernelstream.cli.paths import check_paths, predictions_output
    from kernelstream.cli.predictions import Predictions
    from kernelstream.cli.reading import CHUNK, reading_arguments
    from kernelstream.rows import fitted_width
    from kernelstream.stream import read

    names, options = reading_arguments(sources, reading)
    loaded, learnt = learnt_model(model)
    name = None if id_column is None else str(id_column)
    predictions = Predictions(loaded, proba=proba, scores=scores, id_name=name, to=to)
    check_paths(
        sources=names,
        model=model,
        outputs=predictions_output("--output", output, getattr(loaded, "classes_", ())),
        on_bad_row=reading["on_bad_row"],
        data_folder=reading["data"],
        overwrite=overwrite,
    )
    options = learnt | options
    with contextlib.ExitStack() as stack:
        options |= {"target": False, "chunk_size": CHUNK, "keep": id_column}
        source = stack.enter_context(contextlib.closing(read(*names, **options)))
        out = stack.enter_context(open(output, "wb")) if output else sys.stdout.buffer
        for X, _ in source:
            loaded.widen(X.shape[1])  # features it has never seen; the file stays as it is
            out.write(predictions.text(fitted_width(X, loaded.n_features_in_), source.kept))
            out.flush()  # a row is answered when it has come, not when many have
        if source.bad_rows:
            print(
                f"kernelstream: {source.bad_rows:,} bad rows left out; {source.first_bad_row}",
                file=sys.stderr,
            )
    return 0
