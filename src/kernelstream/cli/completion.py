"""`kernelstream completion`: print a script that completes the command in a shell."""

from __future__ import annotations

import click

from kernelstream.cli.arguments import Command

__all__ = ["completion"]


@click.command(
    cls=Command,
    epilog="""\
to switch it on:
  bash   eval "$(kernelstream completion bash)"        in ~/.bashrc
  zsh    eval "$(kernelstream completion zsh)"         in ~/.zshrc
  fish   kernelstream completion fish | source         in ~/.config/fish/config.fish
""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print a script that completes this command in a shell."""
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(ctx.find_root().command, {}, "kernelstream", "_KERNELSTREAM_COMPLETE").source())
    return 0
