"""``moorage version``: the versions of moorage and of the server."""

from __future__ import annotations

from typing import Literal

import click

from moorage import __version__
from moorage.cli.options import kubeconfig_option


@click.command()
@kubeconfig_option
@click.option("--server", is_flag=True, help="Ask the API server for its version too.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def version(
    *, kubeconfig: str, context: str, server: bool, output: Literal["text", "json"]
) -> None:
    """Print the version of moorage, of Python, and with --server of the API server."""
    import json
    import platform

    found = {"moorage": __version__, "python": platform.python_version()}
    if server:
        from moorage.cli.session import Session, run_session

        async def ask(session: Session) -> str:
            return str((await session.client.read("/version")).get("gitVersion", "unknown"))

        found["server"] = run_session(ask, kubeconfig=kubeconfig, context=context)
    if output == "json":
        click.echo(json.dumps(found))
        return
    for name, text in found.items():
        click.echo(f"{name} {text}")
