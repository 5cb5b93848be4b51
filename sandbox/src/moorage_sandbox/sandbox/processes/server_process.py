"""The server process of a sandbox: ``python -m moorage_sandbox.sandbox.processes.server_process``.

It reads `ServerSettings` and writes lines of `ServerReport`; see `child_process`.
"""

from __future__ import annotations

import logging
import sys

from moorage.base.clock import Clock
from moorage.base.importing import without_collecting
from moorage.base.timeline import Timeline

with without_collecting():
    from moorage.base.memory import settle_memory
    from moorage_sandbox.sandbox.processes.child_process import run_child, send_report
    from moorage_sandbox.sandbox.server import SandboxServer
    from moorage_sandbox.sandbox.settings import ServerReport, ServerSettings


def main() -> int:
    """Serve until the process should end; return the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    return run_child(ServerSettings, _serve, name="nodes")


async def _serve(settings: ServerSettings, clock: Clock) -> None:
    server = SandboxServer(settings, clock=clock)

    def ready() -> None:
        # Nodes take time to register; from now on the client in control decides when time runs.
        if isinstance(clock, Timeline):
            clock.run(0)
        send_report(ServerReport(ready=True))

    try:
        send_report(await server.start())
        settle_memory(collect=False)
        await server.play_nodes(ready)
    finally:
        await server.stop()


if __name__ == "__main__":
    sys.exit(main())
