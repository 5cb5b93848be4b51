"""Tells a sandbox from another API server, before nodes are created or deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.base.errors import UsageError
from moorage.base.running_sandboxes import TIME_PATH
from moorage.client.transport import Call

if TYPE_CHECKING:
    from moorage.cli.session import Session
    from moorage.client.transport import Transport


async def check_sandbox(session: Session) -> None:
    """Refuse to go on with a server that is no sandbox.

    Raises
    ------
    UsageError
        The nodes of another cluster are machines, which no API call starts or ends.
    """
    await check_server_is_sandbox(session.transport)


async def check_server_is_sandbox(transport: Transport) -> None:
    """Refuse to go on with a server that is no sandbox.

    Raises
    ------
    UsageError
        As `check_sandbox`.
    """
    answer = await transport.request(Call("GET", TIME_PATH))
    if answer.status == 404:
        raise UsageError(
            "this server is no sandbox of moorage, and its nodes are left alone; "
            "`moorage nodes --count N` plays fake nodes of any server"
        )
