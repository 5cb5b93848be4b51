"""``moorage delete``: remove objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.completing import complete_objects
from moorage.cli.options import DurationType, kubeconfig_option, namespace_option, output_option

if TYPE_CHECKING:
    from moorage.api.resources import ResourceType
    from moorage.cli.render import Form
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
    type=DurationType(whole=True),
    default=None,
    metavar="DURATION",
    help="Time to stop; 0 removes at once. Default: what the object asks for.",
)
@click.option("--wait/--no-wait", default=True, help="Wait until the objects are gone (default).")
@click.option("--ignore-not-found", is_flag=True, help="What is gone already is no failure.")
@output_option("name")
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
    output: Form,
    namespace: str,
    kubeconfig: str,
    context: str,
) -> None:
    """Delete objects by name, by label, by manifest, or all of a kind."""
    from moorage.cli.manifests import read_manifests
    from moorage.cli.render import show
    from moorage.cli.session import run_session
    from moorage_sandbox.cli.delete.deletion import Deletion, delete_objects

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
    deletion.check_options()

    deleted: list[dict[str, str]] = []

    def show_deleted(kind: ResourceType, namespace: str, name: str) -> None:
        singular = f"{kind.singular}.{kind.group}" if kind.group else kind.singular
        head = {"apiVersion": kind.api_version, "kind": kind.kind}
        deleted.append({**head, "namespace": namespace, "name": name})
        if output == "name":
            click.echo(f"{singular}/{name}")
        elif output == "text":
            forced = " force" if grace_period == 0 else ""
            click.echo(f'{singular} "{name}"{forced} deleted')

    async def work(session: Session) -> None:
        await delete_objects(session, deletion, show_deleted)

    try:
        run_session(work, kubeconfig=kubeconfig, context=context, namespace=namespace, writes=True)
    finally:
        if output in {"json", "yaml"}:
            show(output, {"deleted": deleted}, text="")
