"""An API server over HTTPS in a process of its own, for clients that block.

As a program it serves until its standard input ends, and prints an administrator's kubeconfig.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moorage.base import certificates as certs
from moorage.base.clock import SystemClock
from moorage_sandbox.apiserver.authentication.credentials import Authenticator
from moorage_sandbox.apiserver.wire.http import HttpServer
from moorage_sandbox.storage.watch_log import Limits
from sandbox.tests.apiserver.harness import Cluster


@contextmanager
def serving(*, remembered: int) -> Iterator[dict[str, Any]]:
    """Serve a new cluster; give its administrator's kubeconfig.

    ``remembered`` is how many changes of a kind a watch can reach back.
    """
    command = [sys.executable, "-m", "tests.foreign.served", str(remembered)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            yield json.loads(child.stdout.readline())
        finally:
            child.stdin.close()
            try:
                assert child.wait(10) == 0
            finally:
                child.kill()


async def _serve(remembered: int) -> None:
    authority = certs.Authority(SystemClock())
    context = certs.server_context(authority.server_pair(), authority.certificate)
    cluster = Cluster(clock=SystemClock(), limits=Limits(changes=remembered))
    server = HttpServer(cluster.server, Authenticator({}), context)
    port = await server.start()
    kubeconfig = certs.kubeconfig(
        f"https://127.0.0.1:{port}",
        authority_certificate=authority.certificate,
        client=authority.client_pair(),
    )
    sys.stdout.write(json.dumps(json.loads(kubeconfig)) + "\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
