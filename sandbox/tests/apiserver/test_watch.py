"""Watching: where a stream starts, what it tells, when it ends. Under virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage_sandbox.storage.watch_log import Limits
from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    PODS,
    STRATEGIC,
    Cluster,
    binding,
    config_map,
    failure,
    pod,
    run_virtual,
    virtual_clock,
)


async def _with(*names: str, limits: Limits | None = None) -> Cluster:
    cluster = Cluster(limits=limits)
    for name in names:
        await cluster.ok("POST", CONFIG_MAPS, config_map(name))
    return cluster


def _version(cluster: Cluster) -> str:
    return str(cluster.server.store.version)


async def test_a_watch_from_a_version_shows_every_later_change_in_order():
    cluster = await _with("a")
    version = _version(cluster)
    await cluster.ok("POST", CONFIG_MAPS, config_map("b"))
    watch = await cluster.watch(CONFIG_MAPS, resourceVersion=version)
    await cluster.ok("PUT", f"{CONFIG_MAPS}/a", config_map("a", k="v"))
    await cluster.ok("DELETE", f"{CONFIG_MAPS}/b")
    events = [await watch.event() for _ in range(3)]
    assert [(each["type"], each["object"]["metadata"]["name"]) for each in events] == [
        ("ADDED", "b"),
        ("MODIFIED", "a"),
        ("DELETED", "b"),
    ]
    assert [int(each["object"]["metadata"]["resourceVersion"]) for each in events] == [
        int(version) + 1,
        int(version) + 2,
        int(version) + 3,
    ]
    assert events[1]["object"] == await cluster.ok("GET", f"{CONFIG_MAPS}/a")
    await watch.close()


@pytest.mark.parametrize("version", ["", "0"])
async def test_a_watch_without_a_version_begins_with_existing_objects(version):
    cluster = await _with("a", "b")
    watch = await cluster.watch(CONFIG_MAPS, resourceVersion=version)
    await cluster.ok("POST", CONFIG_MAPS, config_map("c"))
    assert await watch.seen(3) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    await watch.close()


async def test_a_streaming_list_ends_its_first_part_with_a_bookmark():
    cluster = await _with("a")
    version = _version(cluster)
    watch = await cluster.watch(
        CONFIG_MAPS,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
        resourceVersion="",
    )
    await cluster.ok("POST", CONFIG_MAPS, config_map("b"))
    assert await watch.seen(1) == [("ADDED", "a")]
    assert await watch.event() == {
        "type": "BOOKMARK",
        "object": {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {
                "resourceVersion": version,
                "annotations": {"k8s.io/initial-events-end": "true"},
            },
        },
    }
    assert await watch.seen(1) == [("ADDED", "b")]
    await watch.close()


async def test_initial_events_may_be_left_out():
    cluster = await _with("a")
    watch = await cluster.watch(
        CONFIG_MAPS, sendInitialEvents="false", resourceVersionMatch="NotOlderThan"
    )
    await cluster.ok("POST", CONFIG_MAPS, config_map("b"))
    assert await watch.seen(1) == [("ADDED", "b")]
    await watch.close()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param(
            {"resourceVersionMatch": "NotOlderThan"},
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless "
            "sendInitialEvents is provided",
            id="a match without initial events",
        ),
        pytest.param(
            {"sendInitialEvents": "true"},
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting "
            "resourceVersionMatch to NotOlderThan",
            id="initial events without a match",
        ),
    ],
)
async def test_contradictory_watch_options_are_refused(query, message):
    status, body = await Cluster().call("GET", PODS, query={"watch": "1", **query})
    assert (status, body["message"]) == (422, f'ListOptions.meta.k8s.io "" is invalid: {message}')


async def test_a_watch_from_a_future_version_is_refused():
    cluster = Cluster()
    status, body = await cluster.call("GET", PODS, query={"watch": "1", "resourceVersion": "999"})
    assert (status, body["reason"]) == (504, "Timeout")
    assert body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_old_paths_for_watches_are_not_served():
    found = await Cluster().call("GET", "/api/v1/watch/pods")
    assert found == failure(404, "NotFound", "the server could not find the requested resource", {})


class TestSelected:
    """A watcher with a selector sees objects come into its view and leave it."""

    async def test_label_transitions_are_additions_and_deletions(self):
        cluster = Cluster()
        watch = await cluster.watch(PODS, labelSelector="app=web")
        await cluster.ok("POST", PODS, pod("other"))
        await cluster.ok("POST", PODS, pod("a", labels={"app": "web"}))
        for value in ("db", "web"):
            patch = {"metadata": {"labels": {"app": value}}}
            await cluster.ok("PATCH", f"{PODS}/a", patch, content_type=STRATEGIC)
        await cluster.ok("DELETE", f"{PODS}/a")
        assert await watch.seen(4) == [
            ("ADDED", "a"),
            ("DELETED", "a"),
            ("ADDED", "a"),
            ("DELETED", "a"),
        ]
        await watch.close()

    async def test_a_watch_of_unbound_pods_shows_a_binding_as_a_deletion(self):
        cluster = Cluster()
        await cluster.ok("POST", PODS, pod("a"))
        unbound = await cluster.watch(PODS, fieldSelector="spec.nodeName=")
        bound = await cluster.watch(PODS, fieldSelector="spec.nodeName!=")
        assert await unbound.seen(1) == [("ADDED", "a")]
        await cluster.ok("POST", f"{PODS}/a/binding", binding())
        gone, came = await unbound.event(), await bound.event()
        assert (gone["type"], came["type"]) == ("DELETED", "ADDED")
        # The one that left is shown as it last matched, at the version of the change.
        assert "nodeName" not in gone["object"]["spec"]
        assert came["object"]["spec"]["nodeName"] == "n1"
        assert (
            gone["object"]["metadata"]["resourceVersion"]
            == came["object"]["metadata"]["resourceVersion"]
            == _version(cluster)
        )
        await unbound.close()
        await bound.close()

    async def test_a_watch_of_one_name_shows_only_that_object(self):
        cluster = await _with("a", "b")
        watch = await cluster.watch(CONFIG_MAPS, fieldSelector="metadata.name=b")
        await cluster.ok("DELETE", f"{CONFIG_MAPS}/a")
        await cluster.ok("DELETE", f"{CONFIG_MAPS}/b")
        assert await watch.seen(2) == [("ADDED", "b"), ("DELETED", "b")]
        await watch.close()

    async def test_a_watch_of_one_namespace_shows_only_its_objects(self):
        cluster = await _with("a")
        watch = await cluster.watch("/api/v1/namespaces/kube-system/configmaps")
        path = "/api/v1/namespaces/kube-system/configmaps"
        await cluster.ok("POST", CONFIG_MAPS, config_map("b"))
        await cluster.ok("POST", path, config_map("c"))
        assert await watch.seen(1) == [("ADDED", "c")]
        await watch.close()


class TestBounds:
    """Memory is bounded by the log: who is too slow for it is told so."""

    async def test_a_watch_from_an_expired_version_gets_410_in_the_stream(self):
        cluster = await _with("a")
        version = _version(cluster)
        await cluster.ok("POST", CONFIG_MAPS, config_map("b"))
        log = cluster.server.store.shelf("configmaps").log
        log.compact(int(version) + 1)
        watch = await cluster.watch(CONFIG_MAPS, resourceVersion=version)
        assert await watch.event() == {
            "type": "ERROR",
            "object": failure(
                410, "Expired", f"too old resource version: {version} ({int(version) + 1})"
            )[1],
        }
        assert await watch.ended()

    async def test_a_watch_may_start_from_the_last_compacted_version(self):
        cluster = await _with("a", "b")
        cluster.server.store.shelf("configmaps").log.compact(cluster.server.store.version)
        watch = await cluster.watch(CONFIG_MAPS, resourceVersion=_version(cluster))
        await cluster.ok("POST", CONFIG_MAPS, config_map("c"))
        assert await watch.seen(1) == [("ADDED", "c")]
        await watch.close()

    async def test_a_reader_slower_than_the_log_is_cut_off(self):
        cluster = await _with("a", limits=Limits(changes=10))
        watch = await cluster.watch(CONFIG_MAPS)
        assert await watch.seen(1) == [("ADDED", "a")]
        for n in range(11):
            await cluster.ok("PUT", f"{CONFIG_MAPS}/a", config_map("a", n=str(n)))
        assert (await watch.event())["object"]["code"] == 410
        assert await watch.ended()

    async def test_the_size_of_the_log_is_bounded_in_bytes(self):
        cluster = await _with("a", limits=Limits(size_bytes=50_000))
        log = cluster.server.store.shelf("configmaps").log
        for n in range(40):
            body = config_map("a", n=str(n), big="x" * 5_000)
            await cluster.ok("PUT", f"{CONFIG_MAPS}/a", body)
            assert log.size_bytes <= 50_000
        assert len(log) == 9


QUIET = {"allowWatchBookmarks": "true", "timeoutSeconds": "150"}


class TestTime:
    """Bookmarks and ends, under virtual time."""

    def test_a_quiet_watch_gets_a_bookmark_a_minute_and_one_at_its_end(self):
        async def main() -> Any:
            cluster = Cluster(clock=virtual_clock())
            version = _version(cluster)
            watch = await cluster.watch(CONFIG_MAPS, resourceVersion=version, **QUIET)
            times = []
            for _ in range(3):
                event = await watch.event()
                assert event == {
                    "type": "BOOKMARK",
                    "object": {
                        "kind": "ConfigMap",
                        "apiVersion": "v1",
                        "metadata": {"resourceVersion": version},
                    },
                }
                times.append(round(virtual_clock().monotonic_ns() / 1e9))
            assert await watch.ended()
            return times

        assert run_virtual(main()) == [60, 120, 150]

    def test_bookmarks_tell_how_far_other_kinds_have_moved_the_version(self):
        async def main() -> Any:
            cluster = Cluster(clock=virtual_clock())
            watch = await cluster.watch(PODS, **QUIET)
            await cluster.ok("POST", CONFIG_MAPS, config_map("a"))
            event = await watch.event()
            await watch.close()
            return event["object"]["metadata"]["resourceVersion"] == _version(cluster)

        assert run_virtual(main())

    def test_without_bookmarks_a_watch_ends_in_silence(self):
        async def main() -> Any:
            cluster = Cluster(clock=virtual_clock())
            watch = await cluster.watch(PODS, timeoutSeconds="300")
            ended = await watch.ended()
            return ended, round(virtual_clock().monotonic_ns() / 1e9)

        assert run_virtual(main()) == (True, 300)

    def test_without_a_timeout_a_watch_ends_between_half_an_hour_and_an_hour(self):
        async def main() -> Any:
            cluster = Cluster(clock=virtual_clock())
            watch = await cluster.watch(PODS)
            assert await watch.ended()
            return virtual_clock().monotonic_ns() / 1e9

        assert 1800 <= run_virtual(main()) <= 3600

    def test_a_change_wakes_a_sleeping_reader_at_once(self):
        async def main() -> Any:
            cluster = Cluster(clock=virtual_clock())
            watch = await cluster.watch(CONFIG_MAPS)
            reading = asyncio.get_running_loop().create_task(watch.seen(1))
            await asyncio.wait([reading], timeout=10)
            await cluster.ok("POST", CONFIG_MAPS, config_map("a"))
            seen = await reading
            await watch.close()
            return seen, round(virtual_clock().monotonic_ns() / 1e9)

        assert run_virtual(main()) == ([("ADDED", "a")], 10)

    def test_closing_the_server_ends_sleeping_watches_and_opens_no_others(self):
        async def main() -> Any:
            cluster = Cluster(clock=virtual_clock())
            watch = await cluster.watch(PODS)
            reading = asyncio.get_running_loop().create_task(watch.ended())
            await asyncio.wait([reading], timeout=5)
            cluster.server.close()
            late = await cluster.watch(PODS)
            return await reading, await late.ended(), virtual_clock().monotonic_ns() < 6e9

        assert run_virtual(main()) == (True, True, True)


class TestForms:
    """Tables and metadata in streams."""

    async def test_a_watch_of_tables_sends_the_columns_once(self):
        cluster = await _with("a", "b")
        watch = await cluster.watch(
            CONFIG_MAPS, accept="application/json;as=Table;v=v1;g=meta.k8s.io"
        )
        first, second = await watch.event(), await watch.event()
        assert [column["name"] for column in first["object"]["columnDefinitions"]] == [
            "Name",
            "Data",
            "Age",
        ]
        assert second["object"]["columnDefinitions"] is None
        assert second["object"]["rows"][0]["cells"][0] == "b"
        await watch.close()

    async def test_a_watch_may_show_metadata_only(self):
        cluster = await _with("a")
        accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        watch = await cluster.watch(CONFIG_MAPS, accept=accept)
        event = await watch.event()
        assert event["object"]["kind"] == "PartialObjectMetadata"
        assert set(event["object"]) == {"kind", "apiVersion", "metadata"}
        await watch.close()


async def test_many_initial_events_are_sent_in_chunks_of_whole_lines():
    cluster = Cluster()
    for n in range(60):
        await cluster.ok("POST", CONFIG_MAPS, config_map(f"a{n:02}", big="x" * 10_000))
    watch = await cluster.watch(CONFIG_MAPS)
    assert [name for _, name in await watch.seen(60)] == [f"a{n:02}" for n in range(60)]
    await watch.close()
