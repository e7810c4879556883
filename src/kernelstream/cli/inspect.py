"""`kernelstream inspect`: show what a model file holds, or what the columns of a source are."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from kernelstream.cli.arguments import Command, UsageError, reading_options
from kernelstream.cli.imports import import_scikit_learn

__all__ = ["inspect"]


@click.command(
    cls=Command,
    epilog="""\
examples:
  kernelstream inspect model.safetensors
  kernelstream inspect model.safetensors --json
  kernelstream inspect train.csv --target price --column zip=category
""",
)
@click.option("--arrays", is_flag=True, help="Also the arrays of the learner's state, and their shapes.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@reading_options(required=True)
def inspect(sources: tuple[str, ...], arrays: bool, as_json: bool, **reading: Any) -> int:
    """Show what a model file holds, or what the columns of a source are, by its first rows."""
    import_scikit_learn()
    from kernelstream.files import is_model_file

    if any(
        name.endswith(".safetensors") or (os.path.isfile(name) and is_model_file(name)) for name in sources
    ):
        if len(sources) > 1:
            raise UsageError("inspect shows one model at a time")
        return _inspect_model(sources[0], arrays, as_json)
    from kernelstream.cli.columns import show_source
    from kernelstream.cli.reading import reading_arguments, source_name

    names, options = reading_arguments(sources, reading)
    if options.get("target") is None:
        options["target"] = False  # nothing is to be predicted
    try:
        show_source(list(names), source_name(names), options, None, as_json)
    except ValueError as error:
        if not str(error).startswith("cannot tell the format"):
            raise
        raise ValueError(f"not a model file, and as a source: {error}") from None
    return 0


def _inspect_model(model: str, arrays: bool, as_json: bool) -> int:
    from kernelstream.cli.columns import print_columns
    from kernelstream.cli.display import size
    from kernelstream.learners import registered
    from kernelstream.persistence import describe

    registered()  # other packages' learners, too: a model file may name one, but imports nothing
    record = describe(model)
    note = record.pop("note")
    if as_json:
        print(json.dumps(record | ({"note": note} if note is not None else {})))
        return 0
    parameters = ", ".join(f"{key}={_shown(value)}" for key, value in sorted(record["parameters"].items()))
    pairs = [
        ("estimator", record["estimator"]),
        ("learner", record["learner"]),
        ("hyper-parameters", parameters),
        ("features", f"{record['features']:,}"),
    ]
    if "feature_names" in record:
        pairs.append(("feature names", _shortened(record["feature_names"])))
    if "classes" in record:
        classes = record["classes"]["values"]
        more = ", more may come" if record["open"] else ""
        pairs.append((f"classes ({len(classes):,})", _shortened(classes) + more))
    if arrays:
        shapes = sorted(record["arrays"].items())
        pairs.append(("arrays", ", ".join(f"{name} {shape}" for name, shape in shapes)))
    pairs.append(("model in memory", size(record["model_bytes"])))
    pairs.append(("file", f"{size(record['file_bytes'])}, format {record['format']}, checksum right"))
    pairs += [
        ("drift log" if not place else "", event["text"]) for place, event in enumerate(record["events"])
    ]
    if note not in (None, {"options": {}}):
        pairs.append(("note", _shortened([json.dumps(note, ensure_ascii=False)])))
    width = max(len(name) for name, _ in pairs)
    for name, text in pairs:
        print(f"{name:<{width}}  {text}")
    if "columns" in record:
        print("columns")
        print_columns(record["columns"])
    return 0


def _shown(value: Any) -> str:
    """A hyper-parameter as one would write it, from how the file has it."""
    if isinstance(value, dict) and "object" in value:
        inside = ", ".join(f"{k}={_shown(v)}" for k, v in value["parameters"].items() if v is not None)
        return f"{value['object']}({inside})"
    if isinstance(value, dict):
        return str(value.get("float", value.get("tuple")))
    return repr(value)


def _shortened(values: list[Any], longest: int = 100) -> str:
    text = ", ".join(map(str, values))
    return text if len(text) <= longest else f"{text[:longest]} ..."
