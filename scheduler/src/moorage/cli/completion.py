"""``moorage completion``: the script with which a shell completes commands and options."""

from __future__ import annotations

from typing import Literal

import click

_EPILOG = """
\b
Examples:
  source <(moorage completion bash)
  moorage completion fish > ~/.config/fish/completions/moorage.fish
"""


@click.command(epilog=_EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, *, shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print the completion script of a shell.

    It completes commands and options, and asks the server for kinds, names and namespaces.
    """
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    assert maker is not None, "the choices are the shells there are makers for"
    root = ctx.find_root()
    click.echo(maker(root.command, {}, "moorage", "_MOORAGE_COMPLETE").source())
