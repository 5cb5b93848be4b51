"""Data directories that somebody damaged, and a disk whose fsync fails, under a whole server.

Each damage is refused with what is wrong and how to go on; with ``salvage`` the server goes on with
the rest, and with resourceVersions that nobody has seen. Faults of the disk, call by call, are in
`test_disk`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from moorage.api.resources import CONFIG_MAPS
from moorage.base.aio import TaskOwner
from moorage.base.clock import SystemClock
from moorage.base.errors import ApiError, MoorageError, UsageError
from moorage.base.rng import Streams
from moorage.client.writes import Client
from moorage_sandbox.cluster.in_process import InProcessTransport
from moorage_sandbox.sandbox.server import SandboxServer
from moorage_sandbox.sandbox.settings import ServerSettings
from sandbox.tests.sandbox.crash import client_of, server_on, stored
from sandbox.tests.sandbox.process import Up

COUNT = 300
# What the controllers keep in each namespace.
OWN = "kube-root-ca.crt"


class Running:
    """A server in this loop, on a directory, and a client of it."""

    def __init__(self, path: Path, *, salvage: bool = False) -> None:
        self.server = SandboxServer(
            ServerSettings(data=str(path), salvage=salvage), clock=SystemClock()
        )

    @cached_property
    def client(self) -> Client:
        """Verbs of the server, once it has started."""
        transport = InProcessTransport(self.server._api, latency_seconds=0)
        return Client(transport, rng=Streams(1).stream("test"))

    async def names(self) -> tuple[set[str], int]:
        """Return the config maps that are there, and the list's version."""
        listed: Any = await self.client.list(CONFIG_MAPS)
        metas = [item["metadata"] for item in listed["items"]]
        found = {meta["name"] for meta in metas if meta["namespace"] == "default"} - {OWN}
        return found, int(listed["metadata"]["resourceVersion"])

    async def create(self, name: str) -> int:
        """Create a config map and return its version."""
        body = {"metadata": {"name": name}, "data": {"x": "y" * 100}}
        made: Any = await self.client.create(CONFIG_MAPS, body, namespace="default")
        return int(made["metadata"]["resourceVersion"])


async def _served(path: Path) -> int:
    """Serve a cluster until it has its objects and end it as a kill does; return the version."""
    running = Running(path)
    await running.server.start()
    for number in range(COUNT):
        await running.create(f"c{number}")
    _, version = await running.names()
    # Nothing of what is done in good order: the mark stays as it was.
    await running.server._http.stop()  # type: ignore[union-attr]
    running.server._directory.close()  # type: ignore[union-attr]
    return version


def _flip(path: Path, name: str, part: float) -> None:
    file = path / name
    content = bytearray(file.read_bytes())
    content[int(len(content) * part)] ^= 1
    file.write_bytes(content)


def _cut(path: Path, name: str, part: float) -> None:
    os.truncate(path / name, int((path / name).stat().st_size * part))


def _all_but_identity(path: Path) -> None:
    for each in path.iterdir():
        if each.name not in ("identity.json", "lock"):
            each.unlink()


def _moved(path: Path) -> None:
    """Exchange two objects under each other's names, as whole groups of the log."""
    content = (path / "log-1").read_bytes()
    (path / "log-1").write_bytes(content.replace(b"\xa2c7", b"\xa2c8"))


@pytest.mark.parametrize(
    ("damage", "words", "lost", "kept_min"),
    [
        pytest.param(
            lambda path: _flip(path, "log-1", 0.1),
            "log-1 is not what was written from byte",
            "lost: bytes",
            COUNT - 2,
            id="a bit flipped at a tenth of the log",
        ),
        pytest.param(
            lambda path: _flip(path, "log-1", 0.999),
            "log-1 is not what was written from byte",
            "lost: bytes",
            COUNT - 2,
            id="a bit flipped in the last write",
        ),
        pytest.param(
            lambda path: _cut(path, "log-1", 0.5),
            "log-1 has lost its end: the last",
            "lost: the last",
            COUNT // 3,
            id="half of the log cut off",
        ),
        pytest.param(
            lambda path: _cut(path, "log-1", 0),
            "log-1 is empty",
            "lost: the last",
            0,
            id="the log emptied",
        ),
        pytest.param(
            lambda path: (path / "log-1").unlink(),
            "log-1 is missing",
            "lost: log-1 is missing",
            0,
            id="the log deleted",
        ),
        pytest.param(
            lambda path: _flip(path, "snapshot-1", 0.5),
            "snapshot-1 is not what was written from byte",
            "lost: bytes",
            COUNT,
            id="a bit flipped in the snapshot",
        ),
        pytest.param(
            lambda path: _cut(path, "snapshot-1", 0),
            "snapshot-1 has lost its end",
            "made anew: Namespace default",
            COUNT,
            id="the snapshot emptied",
        ),
        pytest.param(
            lambda path: (path / "snapshot-1").unlink(),
            "snapshot-1 is missing",
            "lost: snapshot-1 is missing",
            COUNT,
            id="the snapshot deleted",
        ),
        pytest.param(
            lambda path: _flip(path, "mark", 0.5),
            "mark is not what was written",
            "damaged: mark",
            COUNT,
            id="a bit flipped in the mark",
        ),
        pytest.param(
            lambda path: (path / "mark").unlink(),
            "mark is missing",
            "damaged: mark is missing",
            COUNT,
            id="the mark deleted",
        ),
        pytest.param(
            _all_but_identity, "mark is missing", "kept: 0 objects", 0, id="all but the identity"
        ),
        pytest.param(
            _moved, "log-1 is not what was written", "lost: bytes", COUNT - 3, id="another name"
        ),
    ],
)
async def test_damaged_files_are_refused_and_sound_records_salvaged(
    tmp_path, caplog, damage: Callable[[Path], None], words, lost, kept_min
):
    version = await _served(tmp_path)
    damage(tmp_path)
    for _ in range(2):
        refused = Running(tmp_path)
        with pytest.raises(UsageError) as caught:
            await refused.server.start()
        await refused.server.stop()
        assert words in str(caught.value)
        assert f"moorage up --data {tmp_path} --salvage" in str(caught.value)
    caplog.clear()
    salvaged = Running(tmp_path, salvage=True)
    await salvaged.server.start()
    report = [record.getMessage() for record in caplog.records]
    found, _ = await salvaged.names()
    assert kept_min <= len(found) <= COUNT
    assert any(f"salvage: {lost}" in line for line in report), report
    assert await salvaged.create("new") > version, "no version comes twice"
    await salvaged.server.stop()
    again = Running(tmp_path)
    await again.server.start()
    assert (await again.names())[0] == found | {"new"}
    await again.server.stop()
    assert list(tmp_path.glob("damaged-*/report.txt"))


async def test_salvaging_undamaged_files_changes_nothing(tmp_path, caplog):
    version = await _served(tmp_path)
    running = Running(tmp_path, salvage=True)
    await running.server.start()
    assert [record.getMessage() for record in caplog.records] == ["salvage: nothing is damaged"]
    found, _ = await running.names()
    assert len(found) == COUNT
    assert await running.create("new") > version
    await running.server.stop()


async def test_a_server_whose_fsync_fails_ends_and_reads_its_directory_anew(
    tmp_path, monkeypatch, caplog
):
    running = Running(tmp_path)
    await running.server.start()
    told = await running.create("told")
    tasks = TaskOwner(on_failure=lambda _name, _error: None)
    playing = tasks.spawn(running.server.play_nodes(lambda: None), name="nodes")

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ApiError) as caught:
        await running.create("unknown")
    assert caught.value.code == 500
    assert "whether the last writes are kept is not known" in caught.value.message
    with pytest.raises(MoorageError, match="the server ends; start it again"):
        await playing
    await running.server.stop()
    monkeypatch.undo()
    again = Running(tmp_path)
    await again.server.start()
    found, _ = await again.names()
    assert found - {"unknown"} == {"told"}
    assert await again.create("later") > told + 1, "the version of the unknown one is not given out"
    await again.server.stop()
    assert caplog.records


@pytest.mark.slow
async def test_a_killed_process_whose_log_is_damaged_is_salvaged_by_the_command(tmp_path):
    async with server_on(tmp_path) as server, client_of(tmp_path) as client:
        for number in range(40):
            body = {"metadata": {"name": f"c{number}"}, "data": {"x": "y" * 500}}
            await client.create(CONFIG_MAPS, body, namespace="default")
        before, version = await stored(client)
        server.kill()
        await server.process.wait()
    log = tmp_path / "data" / "log-1"
    content = log.read_bytes()
    needle = content.index(b'"name":"c4"')
    log.write_bytes(content[:needle] + b'"nAme"' + content[needle + 6 :])
    arguments = ("--data", "data", "--no-scheduler", "--empty", "-o", "lines")
    with Up(tmp_path, *arguments) as refused:
        assert refused.wait() == 2
        assert "--salvage` keeps what can be read" in "".join(refused.output)
    with Up(tmp_path, *arguments, "--salvage") as salvaged:
        salvaged.until("salvage: lost: bytes")
        assert salvaged.started().stop() == 0
    async with server_on(tmp_path), client_of(tmp_path) as client:
        after, later = await stored(client)
        assert set(before) - set(after) == {"c4"}
        assert later > version
