"""The extender client: bodies and answers as tables, and a real server that misbehaves.

Not covered: what attempts make of the answers (engine), recorded bodies (conformance).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from moorage.api.codec import encode
from moorage.api.meta import ObjectMeta
from moorage.api.node import Node
from moorage.api.pod import Container, Pod, PodSpec, Resources
from moorage.base.errors import ExtenderError, ExtenderSilentError, NotLeadingError
from moorage.client import extender_wire as wire
from moorage.client.auth import FixedCredentials, ServerAccess
from moorage.client.extender import ExtenderSettings, HttpExtender, OneTryTransport
from moorage.client.guard import WriteGuard
from moorage.client.transport import Answer, Call
from moorage.client.whole import WholeObjects
from scheduler.tests.client.test_http_transport import Handler, hang, serving


def pod(name: str = "p", **resources: Any) -> Pod:
    container = Container(name="c", resources=Resources(**resources))
    meta = ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}")
    return Pod(metadata=meta, spec=PodSpec(containers=[container]))


N1, N2 = (Node(metadata=ObjectMeta(name=name)) for name in ("n1", "n2"))
POD_JSON = json.loads(encode(pod()))
VERBS: dict[str, Any] = {
    "filter_verb": "filter",
    "prioritize_verb": "prioritize",
    "preempt_verb": "preempt",
    "bind_verb": "bind",
}


@asynccontextmanager
async def asking(handler: Handler, **settings: Any) -> AsyncIterator[tuple[HttpExtender, str]]:
    async with serving(handler) as (url, _):
        transport = OneTryTransport(ServerAccess(url, FixedCredentials()))
        made = ExtenderSettings(url=f"{url}/x/", **VERBS, **settings)
        try:
            yield HttpExtender(made, transport, whole=encode), url
        finally:
            await transport.close()


async def asked(extender: HttpExtender, verb: str) -> Any:
    if verb == "filter":
        return await extender.filter(pod(), [N1, N2])
    if verb == "prioritize":
        return await extender.prioritize(pod(), [N1, N2])
    if verb == "bind":
        return await extender.bind(pod(), "n1")
    pods = {"n1": [pod("a"), pod("b")]}
    kept = await extender.preempt(
        pod(), {"n1": ([pod("a")], 1)}, on_node=lambda name: pods.get(name, [])
    )
    return {name: ([each.name for each in victims], n) for name, (victims, n) in kept.items()}


NODES = {"metadata": {}, "items": [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}]}
VICTIM = json.loads(encode(pod("a")))


@pytest.mark.parametrize(
    ("verb", "names_only", "body"),
    [
        pytest.param(
            "filter", False, {"Pod": POD_JSON, "Nodes": NODES, "NodeNames": None}, id="objects"
        ),
        pytest.param(
            "prioritize",
            True,
            {"Pod": POD_JSON, "Nodes": None, "NodeNames": ["n1", "n2"]},
            id="names",
        ),
        pytest.param(
            "preempt",
            False,
            {
                "Pod": POD_JSON,
                "NodeNameToVictims": {"n1": {"Pods": [VICTIM], "NumPDBViolations": 1}},
                "NodeNameToMetaVictims": None,
            },
            id="victims",
        ),
        pytest.param(
            "preempt",
            True,
            {
                "Pod": POD_JSON,
                "NodeNameToVictims": None,
                "NodeNameToMetaVictims": {
                    "n1": {"Pods": [{"UID": "uid-a"}], "NumPDBViolations": 1}
                },
            },
            id="uids of victims",
        ),
        pytest.param(
            "bind",
            False,
            {"PodName": "p", "PodNamespace": "ns", "PodUID": "uid-p", "Node": "n1"},
            id="bind",
        ),
    ],
)
async def test_the_bodies_sent_to_an_extender(verb, names_only, body):
    seen: list[tuple[str, str, str, Any]] = []

    async def keep(request: web.Request) -> web.Response:
        seen.append((request.method, request.path, request.content_type, await request.json()))
        return web.json_response(None)

    async with asking(keep, names_only=names_only) as (extender, _):
        await asked(extender, verb)
    assert seen == [("POST", f"/x/{verb}", "application/json", body)]


def kept(*names: str) -> tuple[list[str], dict[str, str], dict[str, str]]:
    return [*names], {}, {}


@pytest.mark.parametrize(
    ("verb", "answer", "expected"),
    [
        pytest.param("filter", None, kept(), id="null is no node"),
        pytest.param("filter", {}, kept(), id="no nodes"),
        pytest.param("filter", {"NodeNames": ["n2"]}, kept("n2"), id="names"),
        pytest.param(
            "filter",
            {"nodes": {"ITEMS": [{"Metadata": {"Name": "n1"}}]}},
            kept("n1"),
            id="objects, and keys in any letter case",
        ),
        pytest.param(
            "filter",
            {"nodenames": [], "failedNodes": {"n1": "a"}, "FailedAndUnresolvableNodes": {"n2": ""}},
            ([], {"n1": "a"}, {"n2": ""}),
            id="reasons",
        ),
        pytest.param("filter", {"Error": "no licence"}, "no licence", id="error of the extender"),
        pytest.param(
            "filter",
            {"NodeNames": ["ghost"]},
            'extender "URL/x/" claims a filtered node "ghost" which is not found in the input '
            "node list",
            id="a node nobody asked about",
        ),
        pytest.param("filter", [], "the answer is not an object", id="a list"),
        pytest.param("filter", {"NodeNames": [1]}, "NodeNames is not a text", id="a number"),
        pytest.param("filter", {"Nodes": {"items": [3]}}, "a node is not an object", id="no node"),
        pytest.param("prioritize", None, {}, id="no scores"),
        pytest.param(
            "prioritize", [{"Host": "n1", "score": 3}, {"host": "n1", "Score": -1}, {}],
            {"n1": 2, "": 0}, id="scores add up",
        ),
        pytest.param(
            "prioritize", [{"Host": "n1", "Score": 0.5}], "score is not a whole number", id="half"
        ),
        pytest.param(
            "prioritize", [{"Host": "n", "Score": True}], "score is not a whole number", id="true"
        ),
        pytest.param(
            "prioritize", [{"Host": "n1", "Score": 2**63}],
            f"score {2**63} of node 'n1' does not fit in 64 bits", id="too great a score",
        ),
        pytest.param("preempt", {}, {}, id="no node is kept"),
        pytest.param(
            "preempt",
            {"nodeNameToMetaVictims": {"n1": {"pods": [{"uid": "uid-b"}]}}},
            {"n1": (["b"], 0)},
            id="another pod of the node",
        ),
        pytest.param(
            "preempt", {"NodeNameToMetaVictims": {"n1": None}}, {"n1": ([], 0)}, id="no victims"
        ),
        pytest.param(
            "preempt",
            {"NodeNameToMetaVictims": {"n2": {"Pods": [{"UID": "uid-a"}]}}},
            "extender: URL/x/ claims to preempt pod (UID: uid-a) on node: n2, but the pod is not "
            "found on that node",
            id="a pod that is elsewhere",
        ),
        pytest.param("bind", {"Error": ""}, None, id="bound"),
        pytest.param("bind", {"Error": "cannot bind"}, "cannot bind", id="not bound"),
    ],
)  # fmt: skip
async def test_the_meaning_of_an_extenders_answers(verb, answer, expected):
    async def reply(request: web.Request) -> web.Response:
        return web.json_response(answer)

    async with asking(reply, names_only="NodeNames" in str(answer)) as (extender, url):
        try:
            found = await asked(extender, verb)
        except ExtenderError as problem:
            found = str(problem).replace(url, "URL")
    assert found == expected


async def failing(request: web.Request) -> web.Response:
    return web.Response(status=503, headers={"Retry-After": "1"})


async def moved(request: web.Request) -> web.Response:
    return web.Response(status=302, headers={"Location": "/elsewhere"})


async def garbage(request: web.Request) -> web.Response:
    return web.Response(body=b"\xff<html>")


async def nested(request: web.Request) -> web.Response:
    return web.Response(body=b"[" * 100_000)


async def cut(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"{")
    assert request.transport is not None
    request.transport.close()
    return response


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    try:
        while True:
            await response.write(b" " * 65536)
    except (ConnectionError, asyncio.CancelledError):
        return response


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        pytest.param(
            failing, "failed filter with extender at URL URL/x/filter, code 503", id="busy"
        ),
        pytest.param(
            moved, "failed filter with extender at URL URL/x/filter, code 302", id="moved"
        ),
        pytest.param(garbage, "not JSON", id="garbage"),
        pytest.param(nested, "not JSON", id="nested without end"),
        pytest.param(cut, "POST URL/x/filter: ", id="cut off"),
        pytest.param(endless, "POST URL/x/filter: the answer is longer", id="without end"),
        pytest.param(hang, "POST URL/x/filter: silent for 0.3 s", id="silent"),
    ],
)
async def test_a_broken_or_silent_extender_is_an_error_in_time(handler, message):
    limit = 0.3 if handler is hang else 60.0
    async with asking(handler, timeout_seconds=limit) as (extender, url):
        with pytest.raises(ExtenderError) as caught:
            await asked(extender, "filter")
    assert str(caught.value).replace(url, "URL").startswith(message)
    # Without an answer it is not known whether it did what it was asked.
    silent = handler in (cut, endless, hang)
    assert type(caught.value) is (ExtenderSilentError if silent else ExtenderError)


@pytest.mark.parametrize("handler", [failing, garbage, cut, endless, hang, None])
async def test_the_password_of_an_address_is_used_and_stands_in_no_message(handler):
    used: list[str | None] = []

    async def noting(request: web.Request) -> web.StreamResponse:
        used.append(request.headers.get("Authorization"))
        answer: web.StreamResponse = await (handler or failing)(request)
        return answer

    async with serving(noting) as (url, _):
        secret = url.replace("://", "://me:secret@")
        settings = ExtenderSettings(url=secret, **VERBS, timeout_seconds=0.3)
        if handler is None:  # nobody listens
            settings = msgspec.structs.replace(settings, url="http://me:secret@127.0.0.1:1")
            secret = settings.url
        transport = OneTryTransport(ServerAccess(secret, FixedCredentials()))
        extender = HttpExtender(settings, transport, whole=encode)
        with pytest.raises(ExtenderError) as caught:
            await asked(extender, "filter")
        await transport.close()
    assert "secret" not in f"{caught.value} {caught.value.__cause__} {extender.name}"
    assert used == ([] if handler is None else ["Basic bWU6c2VjcmV0"])


async def test_a_call_to_a_closed_port_is_an_error():
    async with asking(failing) as (extender, url):
        pass
    transport = OneTryTransport(ServerAccess(url, FixedCredentials()))
    extender = HttpExtender(ExtenderSettings(url=url, **VERBS), transport, whole=encode)
    with pytest.raises(ExtenderError) as caught:
        await asked(extender, "filter")
    assert str(caught.value) == (
        f"POST {url}/filter: no connection: Connection refused; "
        "is the extender running, and is its urlPrefix right?"
    )
    assert type(caught.value) is ExtenderError  # it was certainly not asked
    await transport.close()


@pytest.mark.parametrize(
    ("managed", "resources", "expected"),
    [
        pytest.param((), {}, True, id="every pod"),
        pytest.param(("a/gpu",), {"requests": {"a/gpu": "1"}}, True, id="requested"),
        pytest.param(("a/gpu",), {"limits": {"a/gpu": "1"}}, True, id="limited"),
        pytest.param(("a/gpu",), {"requests": {"cpu": "1"}}, False, id="something else"),
    ],
)
def test_an_extender_is_interested_in_pods_that_ask_for_its_resources(managed, resources, expected):
    settings = ExtenderSettings(url="http://x", resources=frozenset(managed))
    transport = OneTryTransport(ServerAccess("http://x", FixedCredentials()))
    extender = HttpExtender(settings, transport, whole=encode)
    assert extender.interested(pod(**resources)) is expected


def test_whole_objects():
    raw = b'{"kind":"Pod","metadata":{"name":"p","namespace":"ns","managedFields":[1]},"new":2}'
    objects = WholeObjects(lambda obj: obj.metadata.name != "unwanted")
    objects.keep(pod(), raw)
    objects.keep(pod("unwanted"), raw)
    whole = json.loads(objects.whole(pod()))
    assert whole == {"metadata": {"name": "p", "namespace": "ns"}, "new": 2}
    assert objects.whole(pod()) == objects.whole(pod())  # trimmed once
    assert objects.whole(pod("unwanted")) == encode(pod("unwanted"))
    other = Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="another"))
    assert objects.whole(other) == encode(other)
    objects.drop(("ns", "p"))
    assert (len(objects), objects.whole(pod())) == (0, encode(pod()))


def test_nodes_are_listed_anew_when_one_of_them_changed_and_only_then():
    objects = WholeObjects()
    objects.keep(N1, encode(N1))
    objects.keep(N2, encode(N2))
    both = objects.listed([N1, N2])
    assert json.loads(b"[%b]" % both) == NODES["items"]
    assert objects.listed([N1, N2]) is both
    assert objects.listed([N1]) == encode(N1)
    assert objects.listed([N2, N1]) == encode(N2) + b"," + encode(N1)
    # A newer version is there before the object that was read from it is asked about.
    objects.listed([N1, N2])
    objects.keep(N2, b'{"metadata":{"name":"n2"},"new":1}')
    assert objects.listed([N1, N2]) == encode(N1) + b',{"metadata":{"name":"n2"},"new":1}'
    objects.drop(("", "n2"))
    assert objects.listed([N1, N2]) == both


def test_lists_of_different_nodes_are_remembered_side_by_side_and_not_without_end():
    objects = WholeObjects()
    nodes = [Node(metadata=ObjectMeta(name=f"n{number}")) for number in range(6)]
    for node in nodes:
        objects.keep(node, encode(node))
    both, one = objects.listed(nodes[:2]), objects.listed(nodes[:1])
    assert objects.listed(nodes[:2]) is both
    assert objects.listed(nodes[:1]) is one
    for number in range(2, 6):
        objects.listed([nodes[0], nodes[number]])
    assert objects.listed(nodes[:2]) is not both
    assert objects.listed(nodes[:2]) == both


SENT = [{"metadata": {"name": "n1"}, "spec": {"x": [1]}}, {"metadata": {"name": "n2"}}]
SENT_TEXT = encode(SENT)[1:-1]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b'{"Nodes":{"metadata":{},"items":[%b]},"Error":""}', id="all as sent"),
        pytest.param(b'{"Nodes":{"items":[%b]},"FailedNodes":{"n3":"no"}}', id="a reason as well"),
        pytest.param(b'{"Nodes":{"items":[%b,{"metadata":{"name":"n3"}}]}}', id="one more"),
        pytest.param(b'{"Nodes":{"items":[%b}]}}', id="not JSON"),
        pytest.param(b'{"Nodes":{"items":[%b]},"Nodes":{"items":[]}}', id="said twice"),
        pytest.param(
            b'{"Nodes":{"metadata":{"items":[%b]},"items":[{"metadata":{"name":"n2"}}]}}',
            id="in another place",
        ),
        pytest.param(b'{"Other":{"items":[%b]},"NodeNames":["n1"]}', id="under another name"),
        pytest.param(b'{"Nodes":{"Items":[%b]}}', id="spelled otherwise"),
        pytest.param(b'{"Nodes":{"items":[{"metadata":{"name":"n2"}}]}}', id="one left"),
        pytest.param(b'{"Nodes":{"items":null},"Error":"broken"}', id="none"),
        pytest.param(b'{"Error":"broken"}', id="an error"),
    ],
)
def test_nodes_returned_unchanged_are_not_decoded(answer):
    def read(*known: Any) -> Any:
        try:
            return wire.read_filter(answer.replace(b"%b", SENT_TEXT), *known)
        except ExtenderError as problem:
            return str(problem)

    assert read(wire.NodeList([N1, N2]), SENT_TEXT) == read()


async def test_a_remembered_answer_is_checked_against_the_nodes_asked_about():
    """Read once or anew, it is held against the nodes that were asked about."""
    answers = [{"NodeNames": ["n1"]}, {"NodeNames": ["n1"]}, {"NodeNames": ["n2"]}]

    async def reply(request: web.Request) -> web.Response:
        return web.json_response(answers.pop(0))

    async with asking(reply, names_only=True) as (extender, _):
        assert await extender.filter(pod("a"), [N1, N2]) == kept("n1")
        with pytest.raises(ExtenderError, match='claims a filtered node "n1"'):
            await extender.filter(pod("b"), [N2])
        assert await extender.filter(pod("c"), [N2]) == kept("n2")


async def test_an_extender_is_not_told_to_bind_without_the_lease() -> None:
    class Unreached:
        async def request(self, call: Call) -> Answer:
            raise AssertionError(f"sent: {call}")

        def stream(self, call: Call) -> Any:
            raise AssertionError(f"sent: {call}")

        async def close(self) -> None:
            pass

    def refuse() -> None:
        raise NotLeadingError("not the leader")

    guard = WriteGuard(refuse)
    settings = ExtenderSettings(url="http://x", **VERBS)
    extender = HttpExtender(settings, Unreached(), whole=encode, guard=guard)
    with pytest.raises(ExtenderError, match="not the leader"):
        await extender.bind(pod(), "n1")
