"""`kernelstream inspect`: show what a model file holds."""

from __future__ import annotations

import json
from typing import Any

import click

from kernelstream.cli.arguments import Command, paths
from kernelstream.cli.imports import import_scikit_learn

__all__ = ["inspect"]


@click.command(
    cls=Command,
    epilog="""\
examples:
  kernelstream inspect model.safetensors
  kernelstream inspect model.safetensors --json
""",
)
@click.argument("model", shell_complete=paths)
@click.option("--arrays", is_flag=True, help="Also the arrays of the learner's state, and their shapes.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def inspect(model: str, arrays: bool, as_json: bool) -> int:
    """Show what a model file holds."""
    import_scikit_learn()
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
    if note is not None:
        pairs.append(("note", _shortened([json.dumps(note)])))
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


def _shortened(values: list[Any], longest: int = 100) -> str:
    text = ", ".join(map(str, values))
    return text if len(text) <= longest else f"{text[:longest]} ..."
