"""`kernelstream learners`: list the learners, or explain one."""

from __future__ import annotations

import inspect

import click

from kernelstream.cli.arguments import Command, learner_names
from kernelstream.cli.imports import import_scikit_learn

__all__ = ["learners"]


@click.command(cls=Command, epilog="examples:\n  kernelstream learners\n  kernelstream learners NOGD\n")
@click.argument("name", required=False, shell_complete=learner_names)
def learners(name: str | None) -> int:
    """List the learners, or explain the one called NAME."""
    import_scikit_learn()
    from kernelstream.cli.models import pick
    from kernelstream.learners import registered

    known = registered()
    if name is None:
        width = max(map(len, known))
        for key, learner in sorted(known.items()):
            print(f"{key:{width}}  {(learner.__doc__ or '').strip().partition(chr(10))[0]}")
        return 0
    learner = pick(name, known, "learner")
    text = (inspect.getdoc(learner) or "").partition(">>>")[0].rstrip()
    print(f"{learner.__name__}\n\n{text}\n\nHyper-parameters and their defaults (--set KEY=VALUE):")
    for key, parameter in inspect.signature(learner).parameters.items():
        default = parameter.default
        shown = (
            f"{len(default)} of them, {default[0]:g} to {default[-1]:g}"
            if key == "bandwidths"
            else repr(default)
        )
        print(f"  {key} = {shown}")
    tasks = [
        "classification" + ("" if learner.multiclass else " (two classes)") if learner.classification else "",
        "regression" if learner.regression else "",
    ]
    memory = "memory is bounded" if learner.bounded else "memory grows, up to max_size points"
    print(f"\nDoes {' and '.join(filter(None, tasks))}; {memory}.")
    return 0
