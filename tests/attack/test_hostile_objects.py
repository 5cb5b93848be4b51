"""Whatever an API server sends, the scheduler goes on, and places the good pod that comes next.

A whole scheduler in virtual time reads from a server that changes the objects, lists, watch lines
and answers of every kind it reads. Not covered: the wire below the lines (`test_hostile_server`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.entry_points import PACKAGES
from moorage.base.errors import TransportError
from moorage.base.rng import Random, Streams
from moorage.client.transport import Answer, Call
from moorage.config.feature_gates import feature_gates
from moorage.config.own import LoadedConfiguration
from moorage.plugins.in_tree import in_tree_registry
from moorage_sandbox.cluster.schedulers import scheduler_over
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_loop import run_virtual
from tests.attack.fuzz import RUNS, SEED, draws, mutated_bytes, mutated_value
from tests.attack.hostile import HostileServer, Manifest
from tests.attack.hostile_objects import KINDS

PARTS = 4
TOGETHER = 50
"""Runs on one scheduler: what one leaves behind is there for the next."""
TAINT = {"key": "good.example/only", "effect": "NoSchedule"}
ODD_OBJECTS: list[Any] = [
    *(None, [], "x", 7, {}, {"metadata": None}, {"metadata": []}, {"metadata": {"name": None}}),
    {"kind": "Status", "code": 410},
    {"kind": "Status", "code": -1, "details": {"retryAfterSeconds": 1e300}},
    {"kind": "Status", "code": 429, "details": {"retryAfterSeconds": 2**62}},
    {"kind": "Status", "code": "x", "message": {"a": 1}},
]
ODD_LINES: list[bytes] = [
    *(b"", b"{", b"null", b"[]", b"NaN", b'{"type":"ADDED"}', b'{"type":1,"object":{}}', b"\xff"),
    b'{"type":"ADDED","object":{"metadata":{"name":"\xed\xa0\x80"}}}',
    b'{"type":"ADDED","object":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"type":"ADDED","object":{"x":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}}",
    b'{"type":"ADDED","object":{"metadata":{"name":"a","generation":' + b"9" * 5000 + b"}}}",
    b'{"type":"ADDED","object":{"metadata":{"name":"a","generation":NaN}}}',
]
EVENTS = ["ADDED", "ADDED", "MODIFIED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "", "x"]


def good_pod(name: str) -> Manifest:
    wanted = {"key": TAINT["key"], "operator": "Exists"}
    there = {"kubernetes.io/hostname": "good"}
    pod = pod_manifest(name, namespace="good", cpu="1m", tolerations=[wanted], node_selector=there)
    pod["spec"]["schedulerName"] = "default-scheduler"
    return pod


def changed(obj: Any, rng: Random) -> Any:
    """Return an object with one to three places changed."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        obj = mutated_value(obj, rng)
    if isinstance(obj, dict) and isinstance(obj.get("metadata"), dict):
        named = rng.random()
        if named < 0.3:
            obj["metadata"]["name"] = rng.choice(["a", "b", "c"])
        elif named < 0.4:
            obj["metadata"]["uid"] = rng.choice(["uid-hostile", "uid-bound", "uid-plain", ""])
        elif named < 0.5:
            obj["metadata"]["resourceVersion"] = rng.choice(["1", "0", "", "x", "9" * 30])
    return obj


def hostile_line(obj: Any, rng: Random) -> bytes:
    """Return a line of a watch about an object, changed in its values or in its bytes."""
    event, draw = rng.choice(EVENTS), rng.random()
    if draw < 0.05:
        return rng.choice(ODD_LINES)
    if draw < 0.1:
        return _bytes({"type": event, "object": rng.choice(ODD_OBJECTS)})
    if draw < 0.15:
        other = rng.choice(KINDS)[1]
        return _bytes({"type": event, "object": other})
    if draw < 0.25:
        return mutated_bytes(_bytes({"type": event, "object": obj}), rng).replace(b"\n", b" ")
    return _bytes({"type": event, "object": changed(obj, rng)})


def garbled(call: Call, answer: Answer, rng: Random) -> Answer:
    """Return an answer with another status, another body, or none at all."""
    del call
    draw = rng.random()
    if draw < 0.1:
        raise TransportError("cut")
    status = rng.choice([200, 200, 201, 400, 404, 409, 410, 429, 500, 503, 504, 0, 999])
    body = rng.choice([answer.body, *ODD_LINES, *map(_bytes, ODD_OBJECTS)])
    if draw < 0.5:
        body = mutated_bytes(answer.body, rng)
    return Answer(status, {"retry-after": "1"} if draw < 0.2 else {}, body)


def _bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


class Fuzzed:
    """A scheduler with a hostile server, and what became of it."""

    def __init__(self, seed: int) -> None:
        self.server = HostileServer()
        clock = self.clock = ManualClock()
        gates = feature_gates({"GenericWorkload": True, "GangScheduling": True}, "1.36")
        self.scheduler = scheduler_over(
            self.server,
            LoadedConfiguration(gates=gates),
            in_tree_registry(),
            clock=clock,
            streams=Streams(seed),
            host="here",
        )
        self.failures: list[BaseException] = []
        self._tasks = TaskOwner(lambda _name, error: self.failures.append(error))
        node = node_manifest("good", cpu="64", pods="100000", taints=[TAINT])
        self.server.put("nodes", node)

    async def start(self) -> None:
        self._tasks.spawn(self.scheduler.run(), name="scheduler")
        await self.scheduler.ready.wait()

    async def stop(self) -> None:
        await self._tasks.cancel_all()

    async def attack(self, rng: Random) -> Any:
        """Do something hostile, and return what it was."""
        server, (plural, obj) = self.server, rng.choice(KINDS)
        draw = rng.random()
        if draw < 0.1:
            server.garble = lambda call, answer: garbled(call, answer, rng)
            server.cut(plural)
            what: Any = ("garbled answers", plural)
        elif draw < 0.25:
            items = [_bytes(changed(obj, rng)) for _ in range(3)]
            server.list_too(plural, items)
            server.streams = rng.random() < 0.5
            server.cut(plural)
            what = ("list", plural, items)
        else:
            lines = [_bytes({"type": "ADDED", "object": obj})] if rng.random() < 0.5 else []
            lines += [hostile_line(obj, rng) for _ in range(rng.choice([1, 1, 2, 3]))]
            for line in lines:
                server.say(plural, line)
            what = (plural, [line[:2000] for line in lines])
        await aio.sleep(rng.choice([0.1, 2.0]))
        return what

    async def place(self, name: str) -> bool:
        """Let the server be good again, and return whether a new pod is placed."""
        server = self.server
        server.garble, server.streams = lambda _call, answer: answer, True
        for plural, _ in KINDS:
            server.list_too(plural, [])
        server.put("pods", good_pod(name))
        for _ in range(12_000):
            if server.bound.get(name) == "good" or self.failures:
                break
            await aio.sleep(0.05)
        placed = server.bound.get(name) == "good"
        await aio.sleep(1)
        server.remove("pods", "good", name)
        return placed


@pytest.fixture
def tracebacks() -> Iterator[list[logging.LogRecord]]:
    """Every log record with a traceback, as it comes; the others are dropped."""
    found: list[logging.LogRecord] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            record.getMessage()
            if record.exc_info:
                found.append(record)

    handler = Keep()
    loggers = [logging.getLogger(name) for name in (*PACKAGES, "asyncio")]
    for each in loggers:
        each.addHandler(handler)
    yield found
    for each in loggers:
        each.removeHandler(handler)


@pytest.mark.parametrize("part", range(PARTS))
def test_hostile_objects_do_not_keep_valid_pods_from_their_nodes(
    part: int, tracebacks: list[logging.LogRecord]
):
    runs = list(draws(f"hostile {part}", max(1, RUNS // PARTS)))
    for first in range(0, len(runs), TOGETHER):
        _attack_in_turn(part, runs[first : first + TOGETHER], tracebacks)


def _attack_in_turn(
    part: int, runs: list[tuple[int, Random]], tracebacks: list[logging.LogRecord]
) -> None:
    fuzzed = Fuzzed(SEED)

    async def main() -> None:
        await fuzzed.start()
        for run, rng in runs:
            what = await fuzzed.attack(rng)
            where = f"seed {SEED}, part {part}, run {run}: {what!r}"[:6000]
            placed = await fuzzed.place(f"good-{run}")
            assert not fuzzed.failures, (where, fuzzed.failures)
            assert not tracebacks, (where, [(r.getMessage(), r.exc_info) for r in tracebacks])
            assert placed, where
        core = fuzzed.scheduler.core
        core.cache.validate()
        core.queue.validate()
        await fuzzed.stop()

    run_virtual(main(), fuzzed.clock)
