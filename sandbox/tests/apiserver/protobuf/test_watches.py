"""Scope: watches in protobuf: frames, bookmarks, errors, metadata, and what watchers share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import patch

import pytest

from moorage_sandbox.apiserver.protobuf import codec, rendering
from moorage_sandbox.apiserver.protobuf.codec import decode
from moorage_sandbox.apiserver.protobuf.envelope import frame, read_object
from moorage_sandbox.apiserver.protobuf.facts import META
from moorage_sandbox.apiserver.protobuf.runtime import message_class
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF
from moorage_sandbox.storage.watch_log import Limits
from sandbox.tests.apiserver.harness import CONFIG_MAPS, Cluster, config_map

STREAM = f"{PROTOBUF};stream=watch"
Event = tuple[str, dict[str, Any]]


def events(chunk: bytes) -> list[Event]:
    """Return (type, object) of each frame of a chunk; a chunk is whole frames."""
    found = []
    while chunk:
        length = int.from_bytes(chunk[:4], "big")
        event: Any = message_class(f"{META}.WatchEvent")()
        event.ParseFromString(chunk[4 : 4 + length])
        assert len(chunk) >= 4 + length
        chunk = chunk[4 + length :]
        found.append((event.type, read_object(event.object.raw, ("", ""))))
    return found


async def opened(cluster: Cluster, accept: str = STREAM, **query: str) -> AsyncIterator[bytes]:
    """Open a watch of the config maps of a namespace."""
    reply = await cluster.reply(
        "GET", CONFIG_MAPS, query={"watch": "true", **query}, accept=f"{accept},application/json"
    )
    assert not isinstance(reply.body, bytes), reply
    assert reply.content_type == STREAM
    return reply.body


async def test_a_watch_in_protobuf_shows_the_events_of_one_in_json():
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map("a", k="1"))
    told = await opened(cluster)
    plain = await cluster.watch(CONFIG_MAPS)
    assert events(await anext(told)) == [_same(await plain.event())]
    changed = {"metadata": {"name": "a"}, "data": {"k": ""}}
    await cluster.ok("PUT", f"{CONFIG_MAPS}/a", changed)
    await cluster.ok("DELETE", f"{CONFIG_MAPS}/a")
    expected = [_same(await plain.event()) for _ in range(2)]
    assert events(await anext(told)) == expected
    assert [each[0] for each in expected] == ["MODIFIED", "DELETED"]


def _same(event: dict[str, Any]) -> Event:
    return event["type"], event["object"]


async def test_initial_events_end_with_a_bookmark():
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map("a"))
    told = await opened(
        cluster,
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    )
    (first,) = events(await anext(told))
    assert (first[0], first[1]["metadata"]["name"]) == ("ADDED", "a")
    ((kind, obj),) = events(await anext(told))
    version = str(cluster.server.store.version)
    assert kind == "BOOKMARK"
    assert obj == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "resourceVersion": version,
            "annotations": {"k8s.io/initial-events-end": "true"},
        },
    }


async def test_an_expired_version_ends_the_watch_with_an_error_frame():
    cluster = Cluster(limits=Limits(changes=1))
    for name in "abc":
        await cluster.ok("POST", CONFIG_MAPS, config_map(name))
    told = await opened(cluster, resourceVersion="1")
    ((kind, obj),) = events(await anext(told))
    assert (kind, obj["kind"], obj["reason"], obj["code"]) == ("ERROR", "Status", "Expired", 410)
    with pytest.raises(StopAsyncIteration):
        await anext(told)


async def test_a_watch_in_protobuf_may_show_metadata_only():
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, config_map("a", k="1"))
    told = await opened(cluster, f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    ((_, obj),) = events(await anext(told))
    assert (obj["apiVersion"], obj["kind"]) == ("meta.k8s.io/v1", "PartialObjectMetadata")
    assert obj["metadata"]["name"] == "a"
    assert "data" not in obj


async def test_an_event_is_written_once_for_all_watchers_and_never_for_those_in_json():
    cluster = Cluster()
    version = str(cluster.server.store.version)
    told = [await opened(cluster, resourceVersion=version) for _ in range(3)]
    plain = [await cluster.watch(CONFIG_MAPS, resourceVersion=version) for _ in range(2)]
    written = []

    def counted(message: str, obj: dict[str, Any]) -> bytes:
        written.append(message)
        return codec.encode(message, obj)

    with patch("moorage_sandbox.apiserver.protobuf.envelope.encode", counted):
        await cluster.ok("POST", CONFIG_MAPS, config_map("a"))
        # A watch is a reader of the log once it has been asked for its first chunk.
        chunks = [await anext(each) for each in told]
        lines = [await each.event() for each in plain]
    assert len({bytes(each) for each in chunks[1:]}) == 1
    assert [event[0] for chunk in chunks for event in events(chunk)] == ["ADDED"] * 3
    assert [line["type"] for line in lines] == ["ADDED"] * 2
    # The first reader was alone with the log, and nobody to share with.
    assert len(written) == 2


async def test_an_object_without_a_protobuf_form_becomes_an_error_event():
    cluster = Cluster()
    told = await opened(cluster)
    with patch.object(rendering, "write_object", _failing):
        await cluster.ok("POST", CONFIG_MAPS, config_map("a"))
        ((kind, obj),) = events(await anext(told))
    assert (kind, obj["code"]) == ("ERROR", 500)


def _failing(obj: dict[str, Any]) -> bytes:
    from moorage_sandbox.apiserver.protobuf.envelope import write_object

    if obj["kind"] != "Status":
        raise codec.ProtobufError("no such form")
    return write_object(obj)


def test_a_frame_is_its_length_and_the_event():
    data = frame("ADDED", b"k8s\0")
    assert data == b"\0\0\0\x0f\x0a\x05ADDED\x12\x06\x0a\x04k8s\0"
    assert decode(f"{META}.WatchEvent", b"\x0a\x05ADDED") == {"type": "ADDED"}
