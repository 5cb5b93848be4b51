"""Events and quotas, as a page reads them from the API server.

Left out: the questions that a scheduler answers (``scheduler/tests/service/questions``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from moorage.base.rng import Streams
from moorage.cli.page.objects import WithObjects
from moorage.client.transport import Answer, Call, LineStream
from moorage.client.writes import Client
from moorage.dashboard.source import Answered

FORBIDDEN = {"kind": "Status", "reason": "Forbidden", "message": "events is forbidden", "code": 403}


class Server:
    """Answers lists by the plural of their kind, and notes the queries."""

    def __init__(self, **lists: list[dict[str, Any]]) -> None:
        self._lists = lists
        self.queries: list[dict[str, str]] = []

    async def request(self, call: Call) -> Answer:
        self.queries.append(dict(call.query))
        plural = call.path.rpartition("/")[2]
        if plural == "events" and plural not in self._lists:
            return Answer(403, {}, json.dumps(FORBIDDEN).encode())
        if plural not in self._lists:
            return Answer(404, {}, b"404 page not found\n")
        body = {"kind": "List", "metadata": {}, "items": self._lists[plural]}
        return Answer(200, {}, json.dumps(body).encode())

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        raise NotImplementedError

    async def close(self) -> None:
        return None


class Inner:
    """A scheduler that answers every question with its path."""

    async def ask(self, path: str, query: Mapping[str, str], body: bytes = b"") -> Answered:
        del query, body
        return Answered(path.encode())


def source(server: Server) -> WithObjects:
    return WithObjects(Inner(), Client(server, rng=Streams(1).stream("test")))


def event(reason: str, *, last: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": reason}, "reason": reason, "lastTimestamp": last, **fields}


async def test_events_of_a_pod_are_told_newest_first() -> None:
    series = {"lastObservedTime": "2026-01-01T00:00:09Z", "count": 4}
    server = Server(
        events=[
            event("Old", last="2026-01-01T00:00:01Z", source={"component": "kubelet"}, count=2),
            event("New", last="", series=series, type="Warning", reportingComponent="moorage"),
        ]
    )
    answered = await source(server).ask("/events", {"pod": "default/a"})
    new, old = json.loads(answered.body)["events"]
    assert new == {
        "type": "Warning",
        "reason": "New",
        "message": "",
        "source": "moorage",
        "count": 4,
        "last": "2026-01-01T00:00:09Z",
    }
    assert (old["reason"], old["source"], old["count"]) == ("Old", "kubelet", 2)
    assert server.queries[0]["fieldSelector"] == ("involvedObject.name=a,involvedObject.kind=Pod")


QUOTA = {
    "metadata": {"namespace": "team-a", "name": "q"},
    "spec": {"hard": {"cpu": "4", "pods": "0"}},
    "status": {"hard": {"cpu": "4", "pods": "0"}, "used": {"cpu": "1500m", "pods": "0"}},
}
ELASTIC = {
    "metadata": {"namespace": "team-b", "name": "e"},
    "spec": {"min": {"cpu": "2"}, "max": {"memory": "4Gi"}},
    "status": {"used": {"cpu": "1", "memory": "1Gi"}},
}


def amount(resource: str, used: str, most: str, guaranteed: str, part: float | None) -> Any:
    names = ("resource", "used", "most", "guaranteed", "part")
    return dict(zip(names, (resource, used, most, guaranteed, part), strict=True))


async def test_quotas_are_told_with_what_is_used_of_them() -> None:
    server = Server(resourcequotas=[QUOTA], elasticquotas=[ELASTIC])
    answered = await source(server).ask("/quotas", {})
    first, second = json.loads(answered.body)["quotas"]
    assert (first["kind"], first["namespace"], first["amounts"]) == (
        "ResourceQuota",
        "team-a",
        [amount("cpu", "1500m", "4", "", 0.375), amount("pods", "0", "0", "", 1.0)],
    )
    assert (second["kind"], second["namespace"], second["amounts"]) == (
        "ElasticQuota",
        "team-b",
        [amount("cpu", "1", "", "2", None), amount("memory", "1Gi", "4Gi", "", 0.25)],
    )


async def test_a_server_without_elastic_quotas_tells_the_others() -> None:
    answered = await source(Server(resourcequotas=[QUOTA])).ask("/quotas", {})
    assert [each["name"] for each in json.loads(answered.body)["quotas"]] == ["q"]


@pytest.mark.parametrize(
    ("pod", "status", "message"),
    [
        pytest.param("default/a", 403, "events is forbidden", id="a page without the right"),
        pytest.param("a", 400, "pod: 'a': write NAMESPACE/NAME", id="no namespace"),
        pytest.param("a/b/c", 400, "pod: 'a/b/c': write NAMESPACE/NAME", id="more than a name"),
    ],
)
async def test_events_that_are_not_told_have_a_reason(pod: str, status: int, message: str) -> None:
    answered = await source(Server()).ask("/events", {"pod": pod})
    assert (answered.status, message in answered.message) == (status, True)


async def test_every_other_question_goes_to_the_scheduler() -> None:
    assert await source(Server()).ask("/queue", {}) == Answered(b"/queue")
