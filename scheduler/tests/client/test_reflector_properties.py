"""No gap and no reorder for a key, whatever a server does to its lists and watches.

A server with a history is driven by a random script: changes happen before and during every
call, streams break in every way. Whatever the handler hears must be a history of each key, and
in the end it must know exactly what the server holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.node import Node
from moorage.api.resources import NODES
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.errors import DecodeError, RefusedError, TransportError
from moorage.base.rng import Streams
from moorage.client.objects import Key
from moorage.client.reflector import Reflector
from moorage.client.transport import Answer, Call, LineStream
from scheduler.tests.client.fakes import failure, instant_sleep

KEYS = ["a", "b", "c"]
END = {"k8s.io/initial-events-end": "true"}

# What one call meets: the changes (key, or key to be deleted) before it and while it streams,
# and how it ends.
Change = tuple[str, bool]
changes = st.lists(st.tuples(st.sampled_from(KEYS), st.booleans()), max_size=4)
ends = st.sampled_from(
    ["eof", "reset", "error 410", "error 500", "error 429", "open 410", "refused", "open 422"]
)
script_of_calls = st.lists(st.tuples(changes, changes, ends, st.booleans()), max_size=12)


class HistoryServer:
    """Keeps every version; answers lists and watches as its script says."""

    def __init__(self, script: list[tuple[list[Change], list[Change], str, bool]]) -> None:
        self.script = list(script)
        self.version = 1
        self.oldest = 1
        self.objects: dict[str, dict[str, Any]] = {}
        self.history: list[tuple[int, str, dict[str, Any]]] = []
        self.quiet = asyncio.Event()

    def apply(self, changes: list[Change]) -> None:
        for name, delete in changes:
            if delete and name not in self.objects:
                continue
            self.version += 1
            old = self.objects.get(name)
            uid = old["metadata"]["uid"] if old else f"{name}-{self.version}"
            obj = {"metadata": {"name": name, "uid": uid, "resourceVersion": str(self.version)}}
            event = "DELETED" if delete else "MODIFIED" if old else "ADDED"
            self.history.append((self.version, event, obj))
            if delete:
                del self.objects[name]
            else:
                self.objects[name] = obj

    async def request(self, call: Call) -> Answer:
        before, _, _, _ = self.script.pop(0) if self.script else ([], [], "", False)
        self.apply(before)
        body = {
            "metadata": {"resourceVersion": str(self.version)},
            "items": [self.objects[name] for name in sorted(self.objects)],
        }
        return Answer(200, {}, msgspec.json.encode(body))

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        last = not self.script
        before, during, end, compact = self.script.pop(0) if self.script else ([], [], "", False)
        self.apply(before)
        if compact:
            self.oldest = self.version
        query = dict(call.query)
        version = int(query.get("resourceVersion") or 0)
        listing = "sendInitialEvents" in query
        if end == "refused":
            raise RefusedError("refused")
        if end == "open 410" or (version < self.oldest and not listing):
            yield _Lines(self._failed(410), 410)
        elif end == "open 422" and listing:
            yield _Lines(self._failed(422), 422)
        else:
            yield _Lines(self._lines(version, during, end, listing=listing, last=last), 200)

    async def close(self) -> None:
        """Nothing to close."""

    async def _failed(self, code: int) -> AsyncIterator[bytes]:
        yield msgspec.json.encode(failure(code))

    async def _lines(
        self, version: int, during: list[Change], end: str, *, listing: bool, last: bool
    ) -> AsyncIterator[bytes]:
        if listing:
            version = self.version
            for name in sorted(self.objects):
                yield _line("ADDED", self.objects[name])
            metadata = {"resourceVersion": str(version), "annotations": END}
            yield _line("BOOKMARK", {"metadata": metadata})
        self.apply(during)
        for number, event, obj in list(self.history):
            if number > version:
                yield _line(event, obj)
        if last:
            self.quiet.set()
            await asyncio.Event().wait()
        if end == "reset":
            raise TransportError("reset")
        if end.startswith("error"):
            yield _line("ERROR", failure(int(end.split()[1])))


class _Lines:
    def __init__(self, lines: AsyncIterator[bytes], status: int) -> None:
        self._lines = lines
        self.status = status
        self.headers: Mapping[str, str] = {}

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._lines


def _line(event: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": event, "object": obj})


class Checker:
    """Believes what it hears and protests when that makes no sense."""

    def __init__(self) -> None:
        self.known: dict[str, Node] = {}
        self.newest: dict[str, int] = {}
        self.synced = 0

    def on_add(self, obj: Node) -> None:
        assert obj.name not in self.known, "added twice"
        self._forward(obj)

    def on_update(self, old: Node, new: Node) -> None:
        assert self.known[new.name] is old, "the old version is not the one told before"
        assert old.metadata.uid == new.metadata.uid, "another object under the same name"
        self._forward(new)

    def on_delete(self, obj: Node, *, missed: bool) -> None:
        known = self.known.pop(obj.name)
        assert known.metadata.uid == obj.metadata.uid
        assert not missed or known is obj, "a missed deletion tells the last version known"

    def on_synced(self) -> None:
        self.synced += 1

    def on_undecodable(self, key: Key, error: DecodeError) -> None:
        raise AssertionError(f"{key}: {error}")

    def _forward(self, obj: Node) -> None:
        version = int(obj.metadata.resource_version)
        assert version >= self.newest.get(obj.name, 0), "an older version after a newer one"
        self.newest[obj.name] = version
        self.known[obj.name] = obj


@settings(max_examples=80, deadline=None)
@given(script_of_calls)
async def test_the_handler_hears_every_change_once_and_in_order(script):
    server, checker, clock = HistoryServer(script), Checker(), ManualClock()
    reflector = Reflector(
        server, NODES, Node, handler=checker, clock=clock, rng=Streams(1).stream("reflector")
    )
    tasks = TaskOwner()
    with instant_sleep(clock):
        task = tasks.spawn(reflector.run(), name="reflector")
        waiting = tasks.spawn(server.quiet.wait(), name="quiet")
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        assert not task.done(), task.exception()
        await tasks.cancel_all()
    known = {name: int(obj.metadata.resource_version) for name, obj in checker.known.items()}
    held = {n: int(obj["metadata"]["resourceVersion"]) for n, obj in server.objects.items()}
    assert known == held
    assert {name for _, name in reflector.known_objects} == set(held)
    assert checker.synced == 1
