"""Webhooks for Events by their other group, to which the objects are converted."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.harness import JSON_PATCH, MERGE
from sandbox.tests.apiserver.webhooks import (
    MUTATING,
    VALIDATING,
    Programs,
    allow,
    cluster_with,
    configuration,
    hook,
    patch,
)

CORE = "/api/v1/namespaces/default/events"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
POD = {"kind": "Pod", "namespace": "default", "name": "a", "apiVersion": "v1"}
CORE_EVENT: dict[str, Any] = {
    "metadata": {"name": "e"},
    "involvedObject": POD,
    "message": "hello",
    "reason": "Testing",
    "type": "Normal",
}
EVENT: dict[str, Any] = {
    "metadata": {"name": "e"},
    "regarding": POD,
    "note": "hello",
    "reason": "Testing",
    "type": "Normal",
    "action": "Test",
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "example.com/test",
    "reportingInstance": "test-1",
}


def rule(group: str) -> dict[str, Any]:
    resources = {"apiGroups": [group], "apiVersions": ["v1"], "resources": ["events"]}
    return resources | {"operations": ["CREATE", "UPDATE", "DELETE"]}


DIRECTIONS = [
    pytest.param(CORE, CORE_EVENT, "events.k8s.io", "note", id="an Event of v1 by events.k8s.io"),
    pytest.param(EVENTS, EVENT, "", "message", id="an Event of events.k8s.io by v1"),
]


@pytest.mark.parametrize(("path", "body", "group", "field"), DIRECTIONS)
async def test_a_webhook_for_events_of_the_other_group_sees_them_converted(
    path: str, body: dict[str, Any], group: str, field: str
):
    programs = Programs(a=allow)
    cluster = cluster_with(programs)
    await cluster.ok("POST", VALIDATING, configuration(hook(rules=[rule(group)])))
    await cluster.ok("POST", path, body)
    await cluster.ok("PATCH", f"{path}/e", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    await cluster.ok("DELETE", f"{path}/e")
    created, updated, deleted = programs.asked("a")
    own = "" if group else "events.k8s.io"
    for request, key in ((created, "object"), (updated, "oldObject"), (deleted, "oldObject")):
        assert (request["kind"]["group"], request["resource"]["group"]) == (group, group)
        assert (request["requestKind"]["group"], request["requestResource"]["group"]) == (own, own)
        api_version = f"{group}/v1" if group else "v1"
        assert (request[key]["apiVersion"], request[key][field]) == (api_version, "hello")
    assert updated["object"]["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize(("path", "body", "group", "field"), DIRECTIONS)
async def test_a_patch_of_an_event_in_the_other_group_changes_the_stored_event(
    path: str, body: dict[str, Any], group: str, field: str
):
    said = patch({"op": "replace", "path": f"/{field}", "value": "changed"})
    cluster = cluster_with(Programs(a=lambda request: said))
    await cluster.ok("POST", MUTATING, configuration(hook(rules=[rule(group)])))
    made = await cluster.ok("POST", path, body)
    assert made["apiVersion"] == ("v1" if group else "events.k8s.io/v1")
    for other, key in ((CORE, "message"), (EVENTS, "note")):
        assert (await cluster.ok("GET", f"{other}/e"))[key] == "changed"


async def test_a_webhook_with_the_policy_exact_is_not_called_for_the_other_group():
    programs = Programs(a=allow)
    cluster = cluster_with(programs)
    await cluster.ok("POST", VALIDATING, configuration(hook(rules=[rule("events.k8s.io")])))
    exact = [{"op": "replace", "path": "/webhooks/0/matchPolicy", "value": "Exact"}]
    await cluster.ok("PATCH", f"{VALIDATING}/hooks", exact, content_type=JSON_PATCH)
    await cluster.ok("POST", CORE, CORE_EVENT)
    await cluster.ok("POST", EVENTS, EVENT | {"metadata": {"name": "f"}})
    assert [request["name"] for request in programs.asked("a")] == ["f"]


async def test_a_rule_for_the_group_of_the_call_comes_first():
    programs = Programs(a=allow)
    cluster = cluster_with(programs)
    rules = [rule("events.k8s.io"), rule("")]
    await cluster.ok("POST", VALIDATING, configuration(hook(rules=rules)))
    await cluster.ok("POST", CORE, CORE_EVENT)
    (request,) = programs.asked("a")
    assert request["kind"]["group"] == ""
