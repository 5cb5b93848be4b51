"""``moorage delete``: remove objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from moorage.cli.completing import complete_objects
from moorage.cli.options import kubeconfig_option, namespace_option

if TYPE_CHECKING:
    from moorage.api.resources import ResourceType
    from moorage.cli.session import Session

_EPILOG = """
\b
Examples:
  moorage delete pod giant
  moorage delete pods web-1 web-2 --grace-period 0
  moorage delete pods -l app=web
  moorage delete pods --all
  moorage delete -f examples/first.yaml --ignore-not-found
"""


@click.command(epilog=_EPILOG)
@click.argument(
    "words", nargs=-1, metavar="[KIND NAME...|KIND/NAME...]", shell_complete=complete_objects
)
@click.option(
    "-f", "--filename", "sources", multiple=True, metavar="FILE", help="The objects of manifests."
)
@click.option("-R", "--recursive", is_flag=True, help="Go into the directories of a directory.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Objects labelled so.")
@click.option("--all", "everything", is_flag=True, help="Every object of the kind.")
@click.option(
    "--grace-period",
    type=click.IntRange(min=0),
    default=None,
    metavar="SECONDS",
    help="Time to stop; 0 removes at once. Default: what the object asks for.",
)
@click.option("--wait/--no-wait", default=True, help="Wait until the objects are gone (default).")
@click.option("--ignore-not-found", is_flag=True, help="What is gone already is no failure.")
@click.option("-o", "--output", type=click.Choice(["text", "name"]), default="text")
@namespace_option
@kubeconfig_option
def delete(  # noqa: PLR0913 - one parameter an option
    *,
    words: tuple[str, ...],
    sources: tuple[str, ...],
    recursive: bool,
    selector: str,
    everything: bool,
    grace_period: int | None,
    wait: bool,
    ignore_not_found: bool,
    output: Literal["text", "name"],
    namespace: str,
    kubeconfig: str,
    context: str,
) -> None:
    """Delete objects by name, by label, by manifest, or all of a kind."""
    from moorage.cli.delete.deletion import Deletion, delete_objects
    from moorage.cli.manifests import read_manifests
    from moorage.cli.session import run_session

    if bool(words) == bool(sources):
        raise click.UsageError("say what to delete: KIND NAME, KIND/NAME, or -f FILE")
    deletion = Deletion(
        words=words,
        manifests=read_manifests(sources, recursive=recursive) if sources else [],
        selector=selector,
        everything=everything,
        grace_seconds=grace_period,
        wait=wait,
        ignore_missing=ignore_not_found,
    )
    deletion.check()

    def told(kind: ResourceType, name: str) -> None:
        group = f".{kind.group}" if kind.group else ""
        if output == "name":
            click.echo(f"{kind.singular}{group}/{name}")
        else:
            forced = " force" if grace_period == 0 else ""
            click.echo(f'{kind.singular}{group} "{name}"{forced} deleted')

    async def work(session: Session) -> None:
        await delete_objects(session, deletion, told)

    run_session(work, kubeconfig=kubeconfig, context=context, namespace=namespace)
