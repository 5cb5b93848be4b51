"""``moorage version``: the versions of moorage and of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage import __version__
from moorage.cli.options import kubeconfig_option, output_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage version
  moorage version --server -o json
"""


@click.command(epilog=_EPILOG)
@kubeconfig_option
@click.option("--server", is_flag=True, help="Ask the API server for its version too.")
@output_option()
def version(*, kubeconfig: str, context: str, server: bool, output: Form) -> None:
    """Print the version of moorage, of Python, and with --server of the API server."""
    import platform

    from moorage.cli.render import show

    versions = {"moorage": __version__, "python": platform.python_version()}
    if server:
        from moorage.cli.session import Session, run_session

        async def ask(session: Session) -> str:
            return str((await session.client.read_path("/version")).get("gitVersion", "unknown"))

        versions["server"] = run_session(ask, kubeconfig=kubeconfig, context=context)
    show(output, versions, text="\n".join(f"{name} {text}" for name, text in versions.items()))
