"""`kernelstream predict`: predict the rows of a source with a saved model."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import click

from kernelstream.cli.arguments import Command, overwrite_option, paths, reading_options
from kernelstream.cli.imports import import_scikit_learn

__all__ = ["predict"]


@click.command(
    cls=Command,
    epilog="""\
examples:
  kernelstream predict model.safetensors new.libsvm > predictions.txt
  zcat new.csv.gz | kernelstream predict model.safetensors - --format csv --drop id --output predictions.txt
""",
)
@click.argument("model", shell_complete=paths)
@click.option(
    "--output", metavar="FILE", shell_complete=paths, help="Write there (default: standard output)."
)
@overwrite_option
@reading_options(required=True, labelled=False)
def predict(model: str, sources: tuple[str, ...], output: str | None, overwrite: bool, **reading: Any) -> int:
    """Predict the rows of a source with a saved model, one prediction per line. Labels in the source are not read.

    MODEL: a file that `run --save` or `model.save` wrote.
    """
    import_scikit_learn()
    from kernelstream.cli.paths import check_paths, predictions_output
    from kernelstream.cli.reading import CHUNK, reading_arguments
    from kernelstream.learners import registered
    from kernelstream.persistence import load_noted
    from kernelstream.runner import fitted_width, lines
    from kernelstream.stream import read

    registered()  # other packages' learners, too: a model file may name one, but imports nothing
    names, options = reading_arguments(sources, reading)
    loaded, note = load_noted(model)
    check_paths(
        sources=names,
        model=model,
        outputs=predictions_output("--output", output, getattr(loaded, "classes_", ())),
        on_bad_row=reading["on_bad_row"],
        data_folder=reading["data"],
        overwrite=overwrite,
    )
    encoding = note.get("encoding") if isinstance(note, dict) else None
    if hasattr(loaded, "encoder_"):  # the source makes the features, and the model gets those
        encoding = loaded.encoder_.description
        loaded.set_columns(None)
    if encoding:
        kept = note.get("options") if isinstance(note, dict) else None
        options = (kept or {}) | options | {"encoding": encoding}
    with contextlib.ExitStack() as stack:
        options |= {"target": False, "chunk_size": CHUNK}
        source = stack.enter_context(contextlib.closing(read(*names, **options)))
        out = stack.enter_context(open(output, "wb")) if output else sys.stdout.buffer
        for X, _ in source:
            loaded.widen(X.shape[1])  # features it has never seen; the file stays as it is
            out.write(lines(loaded.predict(fitted_width(X, loaded.n_features_in_))))
        out.flush()
        if source.bad_rows:
            print(
                f"kernelstream: {source.bad_rows:,} bad rows left out; {source.first_bad_row}",
                file=sys.stderr,
            )
    return 0
