"""Verbs against a scripted server: the call each makes, its retries, its errors."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.meta import ObjectReference
from moorage.api.resources import NODES, PODS
from moorage.base.clock import ManualClock
from moorage.base.errors import (
    ApiError,
    ConflictError,
    DecodeError,
    GoneError,
    NotFoundError,
    RefusedError,
    TooManyRequestsError,
    TransportError,
    UnauthorizedError,
)
from moorage.base.rng import Streams
from moorage.client.requests import MERGE_PATCH, Selection
from moorage.client.transport import Answer
from moorage.client.writes import Client
from scheduler.tests.client.fakes import ScriptedTransport, Stream, answer, failure, instant_sleep

POD = ObjectReference(namespace="ns", name="web", uid="u1")
OK = answer({"kind": "Status", "status": "Success"})


def client(*script: Any) -> tuple[Client, ScriptedTransport]:
    transport = ScriptedTransport(*script)
    return Client(transport, rng=Streams(1).stream("client")), transport


def failed(code: int, reason: str = "", message: str = "") -> Answer:
    return answer(failure(code, reason, message), status=code)


CALLS = [
    pytest.param(
        lambda c: c.bind(POD, node_name="n1"),
        "POST /api/v1/namespaces/ns/pods/web/binding",
        "application/json",
        b'{"apiVersion":"v1","kind":"Binding","metadata":{"name":"web","namespace":"ns",'
        b'"uid":"u1"},"target":{"kind":"Node","name":"n1"}}',
        id="bind names pod, uid and node",
    ),
    pytest.param(
        lambda c: c.patch_pod_status(POD, b'{"status":{}}'),
        "PATCH /api/v1/namespaces/ns/pods/web/status",
        "application/strategic-merge-patch+json",
        b'{"status":{}}',
        id="a pod status is a strategic merge patch",
    ),
    pytest.param(
        lambda c: c.delete_pod(POD),
        "DELETE /api/v1/namespaces/ns/pods/web",
        "application/json",
        b'{"apiVersion":"v1","kind":"DeleteOptions"}',
        id="a deletion leaves the grace to the pod",
    ),
    pytest.param(
        lambda c: c.delete_pod(POD, grace_seconds=0, check_uid=True),
        "DELETE /api/v1/namespaces/ns/pods/web",
        "application/json",
        b'{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0,'
        b'"preconditions":{"uid":"u1"}}',
        id="a final deletion names the uid",
    ),
    pytest.param(lambda c: c.get(NODES, "n1"), "GET /api/v1/nodes/n1", None, None, id="get a node"),
    pytest.param(
        lambda c: c.create(PODS, {"kind": "Pod"}, namespace="ns"),
        "POST /api/v1/namespaces/ns/pods",
        "application/json",
        b'{"kind":"Pod"}',
        id="create",
    ),
    pytest.param(
        lambda c: c.replace(NODES, {"kind": "Node"}, name="n1"),
        "PUT /api/v1/nodes/n1",
        "application/json",
        b'{"kind":"Node"}',
        id="replace",
    ),
    pytest.param(
        lambda c: c.patch(NODES, "n1", b"{}", content_type=MERGE_PATCH, subresource="status"),
        "PATCH /api/v1/nodes/n1/status",
        "application/merge-patch+json",
        b"{}",
        id="patch a subresource",
    ),
    pytest.param(
        lambda c: c.delete(PODS, "web", namespace="ns", propagation="Foreground", uid="u"),
        "DELETE /api/v1/namespaces/ns/pods/web",
        "application/json",
        b'{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u"},'
        b'"propagationPolicy":"Foreground"}',
        id="delete with propagation",
    ),
]


@pytest.mark.parametrize(("verb", "target", "content_type", "body"), CALLS)
async def test_the_call_a_verb_makes(verb, target, content_type, body):
    verbs, transport = client(OK)
    await verb(verbs)
    (call,) = transport.calls
    assert (f"{call.method} {call.target}", call.body) == (target, body)
    assert content_type is None or call.content_type == content_type


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        pytest.param(401, UnauthorizedError, id="401"),
        pytest.param(403, UnauthorizedError, id="403"),
        pytest.param(404, NotFoundError, id="404"),
        pytest.param(409, ConflictError, id="409"),
        pytest.param(410, GoneError, id="410"),
        pytest.param(429, TooManyRequestsError, id="429"),
        pytest.param(422, ApiError, id="422"),
    ],
)
async def test_a_failure_status_is_an_exception(code, kind):
    verbs, _ = client(failed(code, "Because", "the reason why"))
    with pytest.raises(kind, match="the reason why") as caught:
        await verbs.get(NODES, "n1")
    assert (caught.value.code, caught.value.reason) == (code, "Because")


async def test_a_failure_that_is_no_status_keeps_its_text():
    verbs, _ = client(Answer(502, {"retry-after": "7"}, b"<html>bad gateway</html>"))
    with pytest.raises(ApiError, match="<html>bad gateway</html>") as caught:
        await verbs.get(NODES, "n1")
    assert caught.value.retry_after_seconds == 7


async def test_an_answer_that_is_no_object_is_refused():
    verbs, _ = client(answer([1, 2]))
    with pytest.raises(DecodeError, match="not an object"):
        await verbs.get(NODES, "n1")


async def test_deleting_a_pod_that_is_gone_counts_as_deleted():
    verbs, _ = client(failed(404), OK)
    assert [await verbs.delete_pod(POD), await verbs.delete_pod(POD)] == [False, True]


@pytest.mark.parametrize(
    ("script", "outcome", "calls"),
    [
        pytest.param([OK], None, 1, id="success at once"),
        pytest.param([failed(409), failed(503), OK], None, 3, id="409 and 503 are tried again"),
        pytest.param([RefusedError("x"), OK], None, 2, id="a refused connection is tried again"),
        pytest.param([failed(500, "InternalError"), OK], None, 2, id="500 is tried again"),
        pytest.param([failed(409)] * 4, ConflictError, 4, id="four tries are the limit"),
        pytest.param([failed(404)], NotFoundError, 1, id="404 is final"),
        pytest.param([failed(422)], ApiError, 1, id="422 is final"),
        pytest.param([TransportError("x")], TransportError, 1, id="a lost answer is final"),
    ],
)
async def test_status_patches_are_retried(script, outcome, calls):
    verbs, transport = client(*script)
    with instant_sleep(ManualClock()) as slept:
        if outcome is None:
            await verbs.patch_pod_status(POD, b"{}")
        else:
            with pytest.raises(outcome):
                await verbs.patch_pod_status(POD, b"{}")
    assert len(transport.calls) == calls
    for seconds, base in zip(slept, (0.01, 0.05, 0.25), strict=False):
        assert base <= seconds <= base * 1.1


async def test_binding_is_never_retried():
    verbs, transport = client(failed(409), OK)
    with pytest.raises(ConflictError):
        await verbs.bind(POD, node_name="n")
    assert len(transport.calls) == 1


async def test_a_list_is_read_to_its_end():
    pages = [
        answer({"metadata": {"continue": "t1"}, "items": [1]}),
        answer({"metadata": {"continue": "t2"}, "items": [2]}),
        answer({"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [3]}),
    ]
    verbs, transport = client(*pages)
    found = await verbs.list(PODS, Selection(namespace="ns", label_selector="a=b,c in (d)"))
    assert found == {"kind": "PodList", "metadata": {"resourceVersion": "9"}, "items": [1, 2, 3]}
    base = "GET /api/v1/namespaces/ns/pods?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=500"
    assert transport.targets == [base, f"{base}&continue=t1", f"{base}&continue=t2"]


async def test_an_untyped_watch_yields_events_until_an_error_ends_it():
    events = [{"type": "ADDED", "object": {"a": 1}}, {"type": "BOOKMARK", "object": {}}]
    gone = {"type": "ERROR", "object": failure(410, "Expired", "too old")}
    verbs, transport = client(Stream(*events), Stream(*events, gone))
    selection = Selection(namespace="ns", field_selector="metadata.name=a")
    assert [event async for event in verbs.watch(PODS, selection, resource_version="7")] == events
    assert transport.targets == [
        "GET /api/v1/namespaces/ns/pods?fieldSelector=metadata.name%3Da"
        "&watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=300"
    ]
    with pytest.raises(GoneError, match="too old"):
        [event async for event in verbs.watch(PODS)]


async def test_a_refused_watch_is_an_exception():
    verbs, _ = client(Stream(failure(403, "Forbidden", "not you"), status=403))
    with pytest.raises(UnauthorizedError, match="not you"):
        [event async for event in verbs.watch(PODS)]
