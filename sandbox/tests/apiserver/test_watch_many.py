"""Many watchers of one resource: told together, each of everything, nobody twice. Virtual time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.base.aio import TaskOwner, sleep
from moorage_sandbox.storage.watch_log import Limits
from sandbox.tests.apiserver.harness import CONFIG_MAPS, Cluster, Watch, config_map, run_virtual

MANY = 30
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Reader:
    """Reads a watch in a task of its own, as a client does."""

    def __init__(self, watch: Watch, tasks: TaskOwner) -> None:
        self.chunks: list[list[dict[str, Any]]] = []
        self._watch = watch
        tasks.spawn(self._read(), name="reader")

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for chunk in self.chunks for event in chunk]

    @property
    def versions(self) -> list[int]:
        return [int(event["object"]["metadata"]["resourceVersion"]) for event in self.events]

    async def _read(self) -> None:
        async for chunk in self._watch._chunks:
            self.chunks.append([json.loads(line) for line in chunk.splitlines()])


async def _readers(
    cluster: Cluster, tasks: TaskOwner, count: int, path: str = CONFIG_MAPS, **query: str
) -> list[Reader]:
    version = str(cluster.server.store.version)
    watches = [await cluster.watch(path, resourceVersion=version, **query) for _ in range(count)]
    readers = [Reader(watch, tasks) for watch in watches]
    await sleep(0)
    return readers


async def _put(cluster: Cluster, text: str, name: str = "a") -> int:
    found = await cluster.ok("PUT", f"{CONFIG_MAPS}/{name}", config_map(name, k=text))
    return int(found["metadata"]["resourceVersion"])


def test_each_watcher_sees_every_change_once_and_in_order():
    async def main() -> None:
        cluster, tasks = Cluster(), TaskOwner()
        await cluster.ok("POST", CONFIG_MAPS, config_map("a"))
        readers = await _readers(cluster, tasks, MANY)
        versions = []
        for index in range(40):
            versions.append(await _put(cluster, str(index)))
            # Some come together, some after a while, some after a long time.
            await sleep((0.0, 0.0, 0.001, 0.02)[index % 4])
        await sleep(1)
        assert [reader.versions for reader in readers] == [versions] * MANY
        await tasks.cancel_all()

    run_virtual(main())


@pytest.mark.parametrize(
    ("count", "chunks"),
    [
        pytest.param(4, [1, 1, 1, 1, 1, 1], id="few are told of each change at once"),
        pytest.param(MANY, [1, 5], id="many are told of the first at once and then of the rest"),
    ],
)
def test_changes_are_batched_when_there_are_many_watchers(count, chunks):
    async def main() -> None:
        cluster, tasks = Cluster(), TaskOwner()
        await cluster.ok("POST", CONFIG_MAPS, config_map("a"))
        readers = await _readers(cluster, tasks, count)
        for index in range(6):
            await _put(cluster, str(index))
            await sleep(0.0001)
        await sleep(0.1)
        found = [[len(chunk) for chunk in reader.chunks] for reader in readers]
        assert found == [chunks] * count
        await tasks.cancel_all()

    run_virtual(main())


def test_watches_of_different_selectors_or_forms_do_not_share_bytes():
    async def main() -> None:
        cluster, tasks = Cluster(), TaskOwner()
        for name in ("a", "b"):
            await cluster.ok("POST", CONFIG_MAPS, config_map(name))
        everything = await _readers(cluster, tasks, MANY)
        only_b = await _readers(cluster, tasks, 2, fieldSelector="metadata.name=b")
        everywhere = await _readers(cluster, tasks, 2, "/api/v1/configmaps")
        version = str(cluster.server.store.version)
        tables = [
            Reader(await cluster.watch(CONFIG_MAPS, accept=TABLE, resourceVersion=version), tasks)
            for _ in range(2)
        ]
        await sleep(0)
        first, second = await _put(cluster, "1"), await _put(cluster, "2", "b")
        await sleep(0.1)
        third = await _put(cluster, "3")
        await sleep(0.1)
        assert {tuple(each.versions) for each in everything} == {(first, second, third)}
        assert [each.versions for each in only_b] == [[second]] * 2
        assert [each.versions for each in everywhere] == [[first, second, third]] * 2
        # Each table tells its columns once, though another one has been told them.
        told = [[bool(e["object"]["columnDefinitions"]) for e in each.events] for each in tables]
        assert told == [[True, False, False]] * 2
        await tasks.cancel_all()

    run_virtual(main())


def test_a_watcher_that_does_not_read_is_cut_off_and_the_others_go_on():
    async def main() -> None:
        cluster, tasks = Cluster(limits=Limits(changes=5)), TaskOwner()
        await cluster.ok("POST", CONFIG_MAPS, config_map("a"))
        slow = await cluster.watch(CONFIG_MAPS, resourceVersion=str(cluster.server.store.version))
        readers = await _readers(cluster, tasks, MANY)
        versions = [await _put(cluster, "first")]
        assert await slow.seen(1) == [("MODIFIED", "a")]
        for index in range(8):
            versions.append(await _put(cluster, str(index)))
            await sleep(0.1)
        assert [reader.versions for reader in readers] == [versions] * MANY
        error = await slow.event()
        assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
        assert await slow.ended()
        log = cluster.server.store.shelf("configmaps").log
        assert log.readers == MANY
        await tasks.cancel_all()

    run_virtual(main())


def test_closed_watches_are_no_longer_counted():
    async def main() -> None:
        cluster, tasks = Cluster(), TaskOwner()
        await _readers(cluster, tasks, MANY)
        log = cluster.server.store.shelf("configmaps").log
        assert (log.readers, log.readers_asleep) == (MANY, MANY)
        await tasks.cancel_all()
        assert (log.readers, log.readers_asleep) == (0, 0)

    run_virtual(main())
