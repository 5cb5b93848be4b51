"""``moorage describe``: one object in full, with its Events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from moorage.cli.completing import complete_objects
from moorage.cli.options import kubeconfig_option, namespace_option, output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage describe pod giant        conditions and Events: why it waits
  moorage describe node node-01     what it has, what is taken, which pods are there
  moorage describe pods -l app=web
"""


@click.command(epilog=_EPILOG)
@click.argument(
    "words",
    nargs=-1,
    required=True,
    metavar="KIND [NAME]...|KIND/NAME...",
    shell_complete=complete_objects,
)
@click.option("-l", "--selector", default="", metavar="LABELS", help="Only objects labelled so.")
@output_option()
@namespace_option
@kubeconfig_option
def describe(
    *,
    words: tuple[str, ...],
    selector: str,
    output: Form,
    namespace: str,
    kubeconfig: str,
    context: str,
) -> None:
    """Show objects in full, with their Events."""
    from moorage.cli.render import show
    from moorage.cli.session import Session, run_session
    from moorage_sandbox.cli.describe.text import describe_all

    async def work(session: Session) -> None:
        items: list[Any] = []
        async for found in describe_all(session, words, selector):
            if output == "text":
                click.echo(("\n\n" if items else "") + found.text)
            items.append({"object": found.obj, "events": found.events})
        show(output, {"items": items}, text="")
        if not items:
            click.echo("No resources found.", err=True)

    run_session(work, kubeconfig=kubeconfig, context=context, namespace=namespace)
