"""The server process of a sandbox: ``python -m moorage_sandbox.sandbox.server_process``.

Its parent (``up``) writes a `ServerSettings` as one line to standard input and keeps that open;
this process answers with lines of `ServerReport` on standard output.
"""

from __future__ import annotations

import logging
import sys

import msgspec

from moorage.base.clock import Clock
from moorage.base.errors import MoorageError, UsageError
from moorage.base.importing import without_collecting
from moorage.base.timeline import Timeline

with without_collecting():
    from moorage.base.memory import settle_memory
    from moorage.base.process import Ending, run_loop, until_ended
    from moorage_sandbox.sandbox.server import SandboxServer
    from moorage_sandbox.sandbox.settings import ServerReport, ServerSettings


def main() -> int:
    """Serve until the process should end; return the exit code."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    settings = msgspec.json.decode(line, type=ServerSettings)
    clock = settings.pace.clock()
    try:
        run_loop(_serve(settings, clock), settings.pace, clock)
    except MoorageError as error:
        _report(ServerReport(error=str(error), bad_input=isinstance(error, UsageError)))
        return 2 if isinstance(error, UsageError) else 1
    return 0


async def _serve(settings: ServerSettings, clock: Clock) -> None:
    ending = Ending(clock=clock)
    ending.listen()
    server = SandboxServer(settings, clock=clock)

    def ready() -> None:
        # Nodes take time to register; from now on the client in control decides when time runs.
        if isinstance(clock, Timeline):
            clock.run(0)
        _report(ServerReport(ready=True))

    try:
        _report(await server.start())
        settle_memory(collect=False)
        nodes = server.play_nodes(ready)
        await until_ended(nodes, ending, name="nodes", child=True)
    finally:
        await server.stop()


def _report(report: ServerReport) -> None:
    try:
        sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The parent has gone; standard input ends as well, which ends this process.
        pass


if __name__ == "__main__":
    sys.exit(main())
