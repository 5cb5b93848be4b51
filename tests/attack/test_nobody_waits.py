"""Whatever a user sends, ``/readyz`` is answered and a lease renewed within a tenth of a second.

A probe asks for it again and again while a call is answered that once stopped everybody. Two things
are measured. One is the processor time of the loop's own thread during one probe, which no other
program changes. The other is the delay of the probe: the shorter of the time that passed and the
processor time this process used meanwhile. On a busy machine even a thread that gives way all the
time delays the probe. That much is allowed on top, and is measured then and there.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from moorage_sandbox.apiserver.protobuf.envelope import wrap, write_object
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF
from moorage_sandbox.apiserver.worker_thread import _yielding
from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE,
    PODS,
    STRATEGIC,
    config_map,
    namespace,
    pod,
)
from tests.attack.wire import SECRET, Answer, Wire, listening, read_answer, restoring

pytestmark = pytest.mark.slow

YAML = "application/yaml"
JSON = "application/json"
APPLY = "application/apply-patch+yaml"
DELAY_SECONDS_MAX = 0.1
ALLOWANCE_SECONDS_MAX = 0.1
CALIBRATION_SECONDS = 0.5
TRIES_MAX = 20
MAPS = CONFIG_MAPS


def _bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _maps(**meta: Any) -> bytes:
    return _bytes(config_map("a") | {"metadata": {"name": "a", **meta}})


def _filled(unit: bytes, size: int = 3_000_000) -> bytes:
    return unit * (size // len(unit))


def _car(extras: Any) -> bytes:
    return _bytes(car(color="red", extras=extras))


def _message(unit: bytes, kind: str = "Pod") -> bytes:
    """Return an object in protobuf that repeats a field."""
    return wrap("v1", kind, _filled(unit))


def _long(unit: bytes) -> bytes:
    """Return a length and three megabytes, a message within another."""
    content = _filled(unit)
    size = len(content)
    return bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127 | 128, size >> 21]) + (
        content
    )


def _maps_of(value: Any) -> Any:
    """Return an object with JSON within a field of protobuf."""
    managed = {"manager": "m", "fieldsV1": {"f:a": value}}
    return config_map("a") | {"metadata": {"name": "a", "managedFields": [managed]}}


COPIES = [{"op": "add", "path": "/data/k", "value": "x" * 1000}] + [
    {"op": "copy", "from": "/data", "path": f"/metadata/annotations/{n}"} for n in range(12)
]
CALLS: list[Any] = [
    pytest.param("POST", MAPS, YAML, lambda: b"a: 1" + _filled(b":10"), id="base 60"),
    pytest.param("POST", MAPS, YAML, lambda: b"[" + _filled(b"a,") + b"a]", id="a list in YAML"),
    pytest.param("POST", MAPS, YAML, lambda: _filled(b"<<: {a: 1}\n"), id="merges"),
    pytest.param("POST", MAPS, YAML, lambda: _filled(b"[01777777777777777777777]\n"), id="octal"),
    pytest.param("POST", MAPS, YAML, lambda: b"a: 0" + _filled(b"7"), id="a long octal number"),
    pytest.param("POST", MAPS, YAML, lambda: _filled(b"["), id="brackets"),
    pytest.param("POST", MAPS, YAML, lambda: _filled(b"&a "), id="anchors"),
    pytest.param("POST", MAPS, YAML, lambda: _filled(b"#\n"), id="comments"),
    pytest.param("POST", MAPS, YAML, lambda: _filled(b"? "), id="question marks"),
    pytest.param("POST", MAPS, YAML, lambda: _filled(b"%TAG !a! b\n"), id="directives"),
    pytest.param("POST", MAPS, YAML, lambda: b'a: "' + _filled(b"\\x41") + b'"', id="escapes"),
    pytest.param("POST", MAPS, YAML, lambda: b"a: |\n" + _filled(b" b\n"), id="a long block"),
    pytest.param("POST", MAPS, JSON, lambda: b"[" + _filled(b"0,") + b"0]", id="a list in JSON"),
    pytest.param("POST", MAPS, JSON, lambda: _filled(b"[]"), id="lists"),
    pytest.param("POST", MAPS, JSON, lambda: _filled(b'{"":'), id="objects"),
    pytest.param("POST", MAPS, JSON, lambda: b'"' + _filled(b'\\"'), id="a text without an end"),
    pytest.param(
        "POST",
        MAPS,
        JSON,
        lambda: _bytes(config_map("a", **{f"k{n}": "" for n in range(90_000)})),
        id="90,000 keys",
    ),
    pytest.param(
        "POST",
        MAPS,
        JSON,
        lambda: _bytes({**config_map("a"), **{f"k{n}": 0 for n in range(90_000)}}),
        id="90,000 unknown fields",
    ),
    pytest.param(
        "POST", MAPS, JSON, lambda: _maps(labels={f"k{n}": "!" for n in range(90_000)}), id="labels"
    ),
    pytest.param(
        "POST", MAPS, JSON, lambda: _maps(ownerReferences=[{}] * 90_000), id="90,000 owners"
    ),
    pytest.param(
        "POST",
        PODS,
        JSON,
        lambda: _bytes(pod("a") | {"spec": {"containers": [{"name": "c"}] * 40_000}}),
        id="40,000 containers",
    ),
    pytest.param(
        "POST",
        PODS,
        JSON,
        lambda: _bytes(
            pod("a")
            | {
                "spec": {
                    "containers": [{"name": "c", "image": "i"}],
                    "tolerations": [{"key": f"k{n}"} for n in range(40_000)],
                }
            }
        ),
        id="40,000 tolerations",
    ),
    pytest.param("POST", CARS, JSON, lambda: _car([[]] * 90_000), id="a custom resource of lists"),
    pytest.param(
        "POST", CARS, JSON, lambda: _car({str(n): n for n in range(90_000)}), id="and of numbers"
    ),
    pytest.param("POST", CARS, YAML, lambda: _car([[]] * 90_000), id="and in YAML"),
    pytest.param(
        "POST",
        CARS,
        JSON,
        lambda: _bytes(car(color="red", tags=[str(n) for n in range(90_000)])),
        id="a set of 90,000",
    ),
    pytest.param(
        "POST",
        CARS,
        JSON,
        lambda: _bytes(car(color="red", plate="A" * 2_900_000)),
        id="a text for a pattern",
    ),
    pytest.param(
        "PATCH",
        f"{MAPS}/m0",
        APPLY,
        lambda: _bytes(config_map("m0", **{f"k{n}": "" for n in range(90_000)})),
        id="an apply of 90,000 keys",
    ),
    pytest.param(
        "PATCH",
        f"{CARS}/b?force=true",
        APPLY,
        lambda: _bytes(car("b", color="blue", tags=[str(n) for n in range(90_000)])),
        id="an apply of a set",
    ),
    pytest.param(
        "PATCH", f"{MAPS}/m0", APPLY, lambda: b"[" + _filled(b"a,"), id="an apply in YAML"
    ),
    pytest.param(
        "PATCH",
        f"{MAPS}/m0",
        JSON_PATCH,
        lambda: _bytes([{"op": "add", "path": f"/data/k{n}", "value": "v"} for n in range(9_999)]),
        id="a patch of 9,999 operations",
    ),
    pytest.param("PATCH", f"{MAPS}/m0", JSON_PATCH, lambda: _bytes(COPIES), id="copies of copies"),
    pytest.param(
        "PATCH",
        f"{MAPS}/m0",
        JSON_PATCH,
        lambda: _bytes([{"op": "test", "path": "/a" * 90_000, "value": 0}] * 10),
        id="long pointers",
    ),
    pytest.param(
        "PATCH",
        f"{MAPS}/m0",
        MERGE,
        lambda: _bytes({"data": {f"k{n}": "" for n in range(90_000)}}),
        id="a merge of 90,000 keys",
    ),
    pytest.param(
        "PATCH",
        f"{PODS}/p",
        STRATEGIC,
        lambda: _bytes({"spec": {"containers": [{"name": f"c{n}"} for n in range(30_000)]}}),
        id="a strategic merge of 30,000 containers",
    ),
    pytest.param(
        "POST", PODS, PROTOBUF, lambda: _message(b"\x12\x02\x12\x00"), id="empty containers"
    ),
    pytest.param(
        "POST",
        PODS,
        PROTOBUF,
        lambda: wrap("v1", "Pod", b"\x12" + _long(b"\x12\x00")),
        id="within a spec",
    ),
    pytest.param("POST", PODS, PROTOBUF, lambda: _message(b"\xfa\x3f\x00"), id="unknown fields"),
    pytest.param(
        "POST",
        PODS,
        PROTOBUF,
        lambda: wrap("v1", "Pod", b"\x12" + _long(b"\x20\x01")),
        id="numbers",
    ),
    pytest.param(
        "POST", MAPS, PROTOBUF, lambda: _message(b"\x12\x03\x0a\x01k", "ConfigMap"), id="entries"
    ),
    pytest.param(
        "POST",
        MAPS,
        PROTOBUF,
        lambda: write_object(config_map("a", **{f"k{n}": "" for n in range(19_900)})),
        id="19,900 keys in protobuf",
    ),
    pytest.param(
        "POST",
        PODS,
        PROTOBUF,
        lambda: write_object(pod("a") | {"spec": {"containers": [{"name": "c"}] * 9_000}}),
        id="9,000 containers in protobuf",
    ),
    pytest.param(
        "POST",
        MAPS,
        PROTOBUF,
        lambda: write_object(_maps_of([[]] * 1_000_000)),
        id="a million lists within a field of JSON",
    ),
    pytest.param(
        "POST",
        MAPS,
        PROTOBUF,
        lambda: write_object(_maps_of({str(n): {} for n in range(250_000)})),
        id="250,000 fields within a field of JSON",
    ),
    pytest.param("GET", MAPS, PROTOBUF, bytes, id="a list of 3,000 in protobuf"),
    pytest.param(
        "GET",
        MAPS + "?watch=1&timeoutSeconds=1",
        PROTOBUF,
        bytes,
        id="a watch that begins with 3,000 in protobuf",
    ),
    pytest.param("GET", MAPS, YAML, bytes, id="a list of 3,000 in YAML"),
    pytest.param("GET", MAPS, "application/json;as=Table;g=meta.k8s.io;v=v1", bytes, id="a table"),
    pytest.param(
        "GET",
        MAPS + "?labelSelector=" + ",".join(f"!a{n}" for n in range(1000)),
        JSON,
        bytes,
        id="a long selector",
    ),
    pytest.param(
        "GET",
        MAPS + "?fieldSelector=" + ",".join("metadata.name!=a" for _ in range(400)),
        JSON,
        bytes,
        id="a long selector of fields",
    ),
    pytest.param(
        "GET",
        MAPS + "?watch=1&timeoutSeconds=1&labelSelector=" + ",".join(f"!a{n}" for n in range(1000)),
        JSON,
        bytes,
        id="a watch with a long selector",
    ),
    pytest.param("GET", "/openapi/v2", JSON, bytes, id="the description of all kinds"),
    pytest.param("GET", "/openapi/v2", YAML, bytes, id="the same in YAML"),
    pytest.param("DELETE", MAPS, JSON, bytes, id="3,000 deletes"),
    pytest.param("DELETE", "/api/v1/namespaces/default", JSON, bytes, id="a namespace of 3,000"),
]


class Delay(NamedTuple):
    """What one call did to the probes, seconds: to their delay, and to the loop; and its answer."""

    probe: float
    loop: float
    answer: Any


async def _probed(wire: Wire, work: Callable[[], Any]) -> Delay:
    """Probe while work is done; return the longest delay and the most work of the loop."""
    reader, writer = await wire.connect()
    probe = loop = 0.0
    task = asyncio.ensure_future(work())  # noqa: TID251
    while not task.done():
        began, used, worked = time.perf_counter(), time.process_time(), time.thread_time()
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await read_answer(reader)).body == b"ok"
        loop = max(loop, time.thread_time() - worked)
        probe = max(probe, min(time.perf_counter() - began, time.process_time() - used))
    writer.close()
    return Delay(probe, loop, await task)


def _give_way() -> None:
    end = time.perf_counter() + CALIBRATION_SECONDS
    while time.perf_counter() < end:
        pass


async def _delay_while(wire: Wire, work: Callable[[], Any]) -> Delay:
    """Probe while work is done, less what a probe waits beside a thread that gives way."""
    found = await _probed(wire, work)
    if found.probe < DELAY_SECONDS_MAX:
        return found
    beside = await _probed(wire, lambda: asyncio.to_thread(_yielding, _give_way))
    return found._replace(probe=found.probe - min(beside.probe, ALLOWANCE_SECONDS_MAX))


prepared = restoring()


async def _with_maps(wire: Wire) -> None:
    cluster = wire.cluster
    await cluster.ok("POST", DEFINITIONS, definition())
    for n in range(3000):
        labels = {"metadata": {"name": f"m{n}", "labels": {"b": "c"}, "annotations": {"a": "b"}}}
        await cluster.ok("POST", MAPS, config_map(k="v") | labels)
    await cluster.ok("POST", PODS, pod("p"))


async def _least_delay(measure: Callable[[], Awaitable[Delay]]) -> Answer:
    """Hold the least of several delays against the bound, and return the first answer.

    Other programs on the machine only ever add to a delay. A call that holds the loop, or the
    interpreter, does so every time.
    """
    first = await measure()
    probe, loop = first.probe, first.loop
    for _ in range(TRIES_MAX - 1):
        if max(probe, loop) < DELAY_SECONDS_MAX:
            break
        again = await measure()
        probe, loop = min(probe, again.probe), min(loop, again.loop)
    assert loop < DELAY_SECONDS_MAX, "the loop was kept"
    assert probe < DELAY_SECONDS_MAX, "the interpreter was kept"
    answer: Answer = first.answer
    return answer


@pytest.mark.parametrize(("method", "path", "form", "make_body"), CALLS)
async def test_no_call_delays_other_calls(
    method: str, path: str, form: str, make_body: Callable[[], bytes], tmp_path: Path
):
    body = make_body()
    if form == APPLY:
        path += ("&" if "?" in path else "?") + "fieldManager=m"
    headers = [b"Accept: " + (form if not body else JSON).encode()]
    if body:
        headers.append(b"Content-Type: " + form.encode())
    head = f"{method} {path}".encode()

    async def on_a_new_server() -> Delay:
        async with prepared(tmp_path, _with_maps) as wire:
            return await _delay_while(wire, lambda: wire.send(head, SECRET, *headers, body=body))

    answer = await _least_delay(on_a_new_server)
    assert answer.status < 500, answer.body[:300]


LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def _policy(**spec: Any) -> bytes:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    matched = {"resourceRules": [rule | {"resources": ["pods"]}]}
    return _bytes({"metadata": {"name": "p"}, "spec": {"matchConstraints": matched, **spec}})


def _condition(n: int) -> dict[str, Any]:
    return {"name": f"c{n}", "expression": f"object.metadata.name != 'a{n}'"}


def _ports(count: int) -> dict[str, Any]:
    ports = [{"containerPort": 80} for _ in range(count)]
    return {"containers": [{"name": "c", "image": "i", "ports": ports}]}


# The slowest of all lists of all kinds, and of changes of large objects, as of 2026-11-28.
SLOW_WRITES: list[Any] = [
    pytest.param(
        "PATCH",
        f"{MAPS}/many",
        STRATEGIC,
        lambda: _bytes(
            {"metadata": {"$deleteFromPrimitiveList/finalizers": [f"x{n}" for n in range(49_000)]}}
        ),
        id="a strategic merge that deletes 49,000 finalizers of 9,000",
    ),
    pytest.param("DELETE", f"{PODS}?gracePeriodSeconds=0", JSON, bytes, id="5,000 bound pods"),
    pytest.param(
        "POST",
        f"{POLICIES}?dryRun=All",
        JSON,
        lambda: _policy(matchConditions=[_condition(n) for n in range(24_000)]),
        id="a policy with 24,000 conditions",
    ),
    pytest.param(
        "POST",
        f"{POLICIES}?dryRun=All",
        JSON,
        lambda: _policy(
            validations=[{"expression": _condition(n)["expression"]} for n in range(12_000)]
        ),
        id="a policy with 12,000 validations",
    ),
    pytest.param(
        "POST",
        f"{POLICIES}?dryRun=All",
        JSON,
        lambda: _policy(
            validations=[{"expression": "true"}],
            variables=[{"name": f"v{n}", "expression": f"{n}"} for n in range(12_000)],
        ),
        id="a policy with 12,000 variables",
    ),
    pytest.param(
        "POST",
        HOOKS,
        JSON,
        lambda: _bytes(
            {
                "metadata": {"name": "h"},
                "webhooks": [{"matchConditions": [_condition(n) for n in range(12_000)]}],
            }
        ),
        id="a webhook with 12,000 conditions",
    ),
    pytest.param(
        "POST",
        HOOKS,
        JSON,
        lambda: _bytes(
            {"metadata": {"name": "h"}, "webhooks": [{"name": f"h{n}"} for n in range(12_000)]}
        ),
        id="12,000 webhooks",
    ),
    pytest.param(
        "POST",
        DEFINITIONS,
        JSON,
        lambda: _bytes(
            {
                "metadata": {"name": "a"},
                "spec": {"versions": [{"name": f"v{n}"} for n in range(12_000)]},
            }
        ),
        id="a definition of 12,000 versions",
    ),
    pytest.param(
        "POST",
        PODS,
        JSON,
        lambda: _bytes(pod("a") | {"spec": _ports(12_000)}),
        id="a pod with 12,000 equal ports",
    ),
    pytest.param(
        "POST",
        "/api/v1/namespaces/default/resourcequotas",
        JSON,
        lambda: _bytes(
            {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "9", "requests.cpu": "1"}}}
        ),
        id="a quota of a namespace of 5,000 pods",
    ),
    pytest.param("DELETE", "/api/v1/namespaces/x", JSON, bytes, id="a namespace of 3,000"),
]


async def _with_much(wire: Wire) -> None:
    cluster = wire.cluster
    finalizers = [f"example.com/f{n}" for n in range(9_000)]
    many = config_map("many") | {"metadata": {"name": "many", "finalizers": finalizers}}
    await cluster.ok("POST", MAPS, many)
    await cluster.ok("POST", "/api/v1/namespaces", namespace("x"))
    for n in range(3_000):
        await cluster.ok("POST", "/api/v1/namespaces/x/configmaps", config_map(f"m{n}"))
    for n in range(5_000):
        await cluster.ok("POST", PODS, pod(f"p{n}", node="n1"))
    await cluster.ok("POST", LEASES, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})


async def _renewed(wire: Wire, work: Callable[[], Any]) -> Delay:
    """Renew a lease again and again while work is done; return the longest renewal."""
    reader, writer = await wire.connect()
    longest = loop = 0.0
    body = _bytes({"spec": {"holderIdentity": "a", "leaseTransitions": 1}})
    head = b"PATCH " + LEASES.encode() + b"/l HTTP/1.1\r\nHost: x\r\n" + SECRET
    head += b"\r\nContent-Type: application/merge-patch+json\r\nContent-Length: %d\r\n\r\n"
    task = asyncio.ensure_future(work())  # noqa: TID251
    while not task.done():
        began, used, worked = time.perf_counter(), time.process_time(), time.thread_time()
        writer.write(head % len(body) + body)
        assert (await read_answer(reader)).status == 200
        loop = max(loop, time.thread_time() - worked)
        longest = max(longest, min(time.perf_counter() - began, time.process_time() - used))
    writer.close()
    return Delay(longest, loop, await task)


@pytest.mark.parametrize(("method", "path", "form", "make_body"), SLOW_WRITES)
async def test_no_call_delays_the_renewal_of_a_lease(
    method: str, path: str, form: str, make_body: Callable[[], bytes], tmp_path: Path
):
    body = make_body()
    headers = [b"Accept: application/json"]
    if body:
        headers.append(b"Content-Type: " + form.encode())
    head = f"{method} {path}".encode()

    async def on_a_new_server() -> Delay:
        async with prepared(tmp_path, _with_much) as wire:
            found = await _renewed(wire, lambda: wire.send(head, SECRET, *headers, body=body))
            if found.probe < DELAY_SECONDS_MAX:
                return found
            beside = await _renewed(wire, lambda: asyncio.to_thread(_yielding, _give_way))
            return found._replace(probe=found.probe - min(beside.probe, ALLOWANCE_SECONDS_MAX))

    answer = await _least_delay(on_a_new_server)
    assert answer.status < 500, answer.body[:300]


async def test_an_exponential_pattern_takes_linear_time(tmp_path: Path):
    async with listening(tmp_path) as wire:
        evil = definition()
        schema = evil["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["properties"]["plate"] = {
            "type": "string",
            "pattern": "^(a+)+$",
        }
        await wire.cluster.ok("POST", DEFINITIONS, evil)
        body = _bytes(car(color="red", plate="a" * 2_900_000 + "b"))
        head = b"POST " + CARS.encode()
        sent = partial(wire.send, head, SECRET, b"Content-Type: application/json", body=body)
        answer = await _least_delay(lambda: _delay_while(wire, sent))
        assert (answer.status, answer.json["reason"]) == (422, "Invalid")


async def test_a_rule_that_doubles_its_value_many_times_is_refused(
    tmp_path: Path, monkeypatch: Any
):
    monkeypatch.setattr("moorage_sandbox.rules.cel_process.DEADLINE_SECONDS", 0.5)
    async with listening(tmp_path) as wire:
        evil = definition()
        schema = evil["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        doubled = "a20.size() > 0"
        for n in range(20, 0, -1):
            doubled = f"cel.bind(a{n}, a{n - 1} + a{n - 1}, {doubled})"
        rule = f"cel.bind(a0, self.spec.plate, {doubled})"
        schema["x-kubernetes-validations"] = [{"rule": rule, "message": "doubled"}]
        schema["properties"]["spec"]["properties"]["plate"] = {"type": "string"}
        await wire.cluster.ok("POST", DEFINITIONS, evil)
        for size in (2_000, 2_000_000):  # doubled, 2 GB and more: beyond the memory or the time
            head = b"POST " + CARS.encode()
            form = b"Content-Type: application/json"
            sent = partial(
                wire.send, head, SECRET, form, body=_bytes(car(color="red", plate="a" * size))
            )
            answer = await _least_delay(partial(_delay_while, wire, sent))
            assert answer.status == 422
            assert "actual cost limit exceeded" in answer.json["message"]
