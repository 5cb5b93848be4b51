"""Kills a server under load and counts what it had acknowledged.

Run it with ``python -m sandbox.tests.sandbox.crash``.

A test runs two rounds of this; by itself it runs as many as asked for (``--rounds 50``) on one
directory that grows, and exits with 1 when anything acknowledged is lost.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from moorage.api.resources import CONFIG_MAPS
from moorage.base.clock import SystemClock
from moorage.base.errors import MoorageError
from moorage.base.rng import Streams
from moorage.client.http_transport import HttpTransport
from moorage.client.kubeconfig import find_access
from moorage.client.transport import Call
from moorage.client.writes import Client
from moorage_sandbox.sandbox.settings import ServerReport, ServerSettings

CLIENTS = 16
PATH = "/api/v1/namespaces/default/configmaps"


class Server:
    """A server process with a data directory."""

    def __init__(self, process: asyncio.subprocess.Process, report: ServerReport) -> None:
        self.process = process
        self.report = report

    def kill(self) -> None:
        """End it without a chance to do anything more."""
        self.process.send_signal(signal.SIGKILL)


@asynccontextmanager
async def server_on(directory: Path) -> AsyncIterator[Server]:
    """Run a server process; it is gone afterwards."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "moorage_sandbox.sandbox.processes.server_process",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        settings = ServerSettings(data=str(directory / "data"))
        process.stdin.write(msgspec.json.encode(settings) + b"\n")
        await process.stdin.drain()
        report = msgspec.json.decode(await process.stdout.readline(), type=ServerReport)
        (directory / "kubeconfig").write_text(report.kubeconfig)
        yield Server(process, report)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def client_of(directory: Path) -> AsyncIterator[Client]:
    """Open a client with the kubeconfig in a directory."""
    access = find_access(str(directory / "kubeconfig"), clock=SystemClock())
    transport = HttpTransport(access, user_agent="crash")
    try:
        yield Client(transport, rng=Streams(1).stream("crash"))
    finally:
        await transport.close()


async def write_until_killed(
    client: Client, server: Server, *, prefix: str, kill_after: int
) -> dict[str, int]:
    """Create config maps from many clients; kill the server in the midst of it.

    Returns
    -------
    dict[str, int]
        Name -> resourceVersion of everything that was acknowledged.
    """
    acknowledged: dict[str, int] = {}

    async def write(number: int) -> None:
        count = 0
        while True:
            name = f"{prefix}-{number}-{count}"
            body = {"metadata": {"name": name}, "data": {"x": "y" * 500}}
            try:
                made = await client.create(CONFIG_MAPS, body, namespace="default")
            except MoorageError:
                return
            acknowledged[name] = int(_meta(made)["resourceVersion"])
            if len(acknowledged) == kill_after:
                server.kill()
            count += 1

    await asyncio.gather(*[write(number) for number in range(CLIENTS)])
    return acknowledged


async def stored(client: Client) -> tuple[dict[str, int], int]:
    """Return name -> resourceVersion of every config map there is, and the list's version."""
    answer = await client.transport.request(Call("GET", PATH))
    listed = json.loads(answer.body)
    found = {
        item["metadata"]["name"]: int(item["metadata"]["resourceVersion"])
        for item in listed["items"]
    }
    return found, int(listed["metadata"]["resourceVersion"])


async def lost_in(directory: Path, *, rounds: int, kill_after: int) -> tuple[int, list[str]]:
    """Write, kill, restart, and compare, some times over.

    Returns
    -------
    tuple[int, list[str]]
        How many writes were acknowledged, and what is wrong.
    """
    acknowledged: dict[str, int] = {}
    faults: list[str] = []
    for number in range(rounds):
        async with server_on(directory) as server, client_of(directory) as client:
            found, version = await stored(client)
            faults += _compare(acknowledged, found, version)
            told = await write_until_killed(
                client, server, prefix=f"r{number}", kill_after=kill_after
            )
            faults += [f"{n}: version {v} again" for n, v in told.items() if v <= version]
            acknowledged |= told
    async with server_on(directory), client_of(directory) as client:
        faults += _compare(acknowledged, *await stored(client))
    return len(acknowledged), faults


def _compare(acknowledged: dict[str, int], found: dict[str, int], version: int) -> list[str]:
    faults = [
        f"{name}: {version_told} was acknowledged, {found.get(name)} is there"
        for name, version_told in acknowledged.items()
        if found.get(name) != version_told
    ]
    if version < max(acknowledged.values(), default=0):
        faults.append(f"the list's version {version} is older than what was acknowledged")
    return faults


def _meta(obj: Any) -> dict[str, Any]:
    meta: dict[str, Any] = obj["metadata"]
    return meta


def main() -> int:
    """Run rounds and print the count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--kill-after", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        count, faults = asyncio.run(
            lost_in(Path(directory), rounds=options.rounds, kill_after=options.kill_after)
        )
    sys.stdout.write(f"{options.rounds} kills, {count} writes acknowledged, {len(faults)} lost\n")
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
