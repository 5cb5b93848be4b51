"""A server killed under load, and one whose disk is full: what it has acknowledged it keeps.

``python -m sandbox.tests.sandbox.crash`` does the first for longer.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

import pytest

from moorage.api.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS
from moorage.base import aio
from moorage.base.errors import ApiError
from moorage.client.writes import Client
from sandbox.tests.sandbox.crash import CLIENTS, client_of, lost_in, server_on, stored


async def _furnished(client: Client) -> None:
    """Wait until the controllers have given every namespace what is its due, and write no more."""
    async with asyncio.timeout(30):
        while True:
            listed = [
                await client.list(kind) for kind in (NAMESPACES, SERVICE_ACCOUNTS, CONFIG_MAPS)
            ]
            spaces, accounts, maps = (_items(each) for each in listed)
            due = {each["metadata"]["name"] for each in spaces}
            if all(
                due <= {each["metadata"]["namespace"] for each in found}
                for found in (accounts, maps)
            ):
                return
            await aio.sleep(0.05)


def _items(listed: Any) -> list[Any]:
    return list(listed["items"])


async def _write_big_ones(client: Client, kept: list[str]) -> None:
    """Create config maps of 10 kB until one is refused; name those that were not."""
    for number in range(100):
        name = f"big-{number}"
        body = {"metadata": {"name": name}, "data": {"x": "y" * 10_000}}
        await client.create(CONFIG_MAPS, body, namespace="default")
        kept.append(name)


@pytest.mark.slow
async def test_no_acknowledged_write_is_lost_when_the_server_is_killed_under_load(tmp_path):
    rounds, kill_after = 2, 150
    count, faults = await lost_in(tmp_path, rounds=rounds, kill_after=kill_after)
    assert faults == []
    # Calls under way when the server died may have been answered still.
    assert rounds * kill_after <= count <= rounds * (kill_after + CLIENTS)


@pytest.mark.slow
async def test_a_server_with_a_full_disk_refuses_writes_until_there_is_room(tmp_path):
    async with server_on(tmp_path) as server, client_of(tmp_path) as client:
        await _furnished(client)
        files = resource.RLIMIT_FSIZE
        _, no_limit = resource.prlimit(server.process.pid, files)
        # No file of the server may grow beyond this: what a full disk is to a program.
        room_bytes = 200_000
        resource.prlimit(server.process.pid, files, (room_bytes, no_limit))
        kept: list[str] = []
        with pytest.raises(ApiError) as caught:
            await _write_big_ones(client, kept)
        assert (caught.value.code, caught.value.reason) == (507, "InsufficientStorage")
        assert "make room and try again" in caught.value.message
        found, version = await stored(client)
        assert sorted(n for n in found if n.startswith("big-")) == sorted(kept)
        resource.prlimit(server.process.pid, files, (no_limit, no_limit))
        made = await client.create(
            CONFIG_MAPS, {"metadata": {"name": "after"}}, namespace="default"
        )
        assert made["metadata"]["resourceVersion"] == str(version + 1)  # type: ignore[index]
        found, version = await stored(client)
        server.kill()
        await server.process.wait()
    async with server_on(tmp_path), client_of(tmp_path) as client:
        again, _ = await stored(client)
        assert again == found
