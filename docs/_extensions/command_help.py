"""The directive `command-help`: what every command prints with --help, so that the page cannot differ from it."""

from __future__ import annotations

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from kernelstream.cli.group import kernelstream


class CommandHelp(SphinxDirective):
    """One section per command, and per command of a command."""

    def run(self) -> list[nodes.Node]:
        """All sections, in the order of `kernelstream --help`."""
        return self.sections(kernelstream, click.Context(kernelstream, info_name="kernelstream"))

    def sections(self, command: click.Command, context: click.Context) -> list[nodes.Node]:
        """A section with the help of this command, then those of the commands in it."""
        context.terminal_width = context.max_content_width = 78
        path = context.command_path
        section = nodes.section(ids=[nodes.make_id(path)], names=[path])
        section += nodes.title(path, path)
        section += nodes.literal_block("", command.get_help(context), language="text")
        self.state.document.note_explicit_target(section)
        found: list[nodes.Node] = [section]
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                if (inner := command.get_command(context, name)) is not None:
                    found += self.sections(inner, click.Context(inner, parent=context, info_name=name))
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive known."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
