"""``moorage logs``: what the container of a pod has written."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from moorage.cli.completing import complete_pods
from moorage.cli.options import DurationType, kubeconfig_option, namespace_option

if TYPE_CHECKING:
    from moorage.cli.session import Session

_EPILOG = """
\b
Examples:
  moorage logs web-1
  moorage logs web-1 -c nginx --tail 20
  moorage logs -f web-1

\b
No container runs on the nodes of a sandbox: a log has a line for the start of a run, and one for
its end. `moorage status` names the file of the sandbox's own messages.
"""
_FOLLOW_SECONDS = 86_400.0


@click.command(epilog=_EPILOG)
@click.argument("pod", metavar="POD", shell_complete=complete_pods)
@click.option("-c", "--container", default="", metavar="NAME", help="One of several containers.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the container ends.")
@click.option("-p", "--previous", is_flag=True, help="Of the run before the present one.")
@click.option("--tail", type=click.IntRange(0), default=None, metavar="N", help="The last N lines.")
@click.option(
    "--since",
    type=DurationType(1, whole=True),
    default=None,
    metavar="DURATION",
    help="Only lines that are not older.",
)
@namespace_option
@kubeconfig_option
def logs(  # noqa: PLR0913 - one parameter an option
    *,
    pod: str,
    container: str,
    follow: bool,
    previous: bool,
    tail: int | None,
    since: int | None,
    namespace: str,
    kubeconfig: str,
    context: str,
) -> None:
    """Print the log of a pod's container."""
    from moorage.cli.session import run_session
    from moorage.client.status import refuse_failed
    from moorage.client.transport import Call

    parameters = {
        "container": container,
        "follow": "true" if follow else "",
        "previous": "true" if previous else "",
        "tailLines": "" if tail is None else str(tail),
        "sinceSeconds": "" if since is None else str(since),
    }
    query = tuple((name, value) for name, value in parameters.items() if value)

    async def work(session: Session) -> None:
        name = quote(pod.removeprefix("pod/"))
        path = f"/api/v1/namespaces/{session.namespace}/pods/{name}/log"
        call = Call("GET", path, query, timeout_seconds=_FOLLOW_SECONDS)
        async with session.transport.stream(call) as stream:
            await refuse_failed(stream)
            async for line in stream:
                click.echo(line)

    try:
        run_session(work, kubeconfig=kubeconfig, context=context, namespace=namespace)
    except KeyboardInterrupt:
        if not follow:
            raise
