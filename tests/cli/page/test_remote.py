"""The scheduler that a page finds by itself: the holder of a lease, through the API's proxy."""

from __future__ import annotations

import json
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from moorage.base.errors import TransportError
from moorage.cli.page.remote import Remote, by_lease
from moorage.client.transport import Answer, Call, LineStream

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
PROXY = "/api/v1/namespaces/kube-system/pods/https:moorage-0:10259/proxy/moorage/v1"
HELD = json.dumps({"spec": {"holderIdentity": "moorage-0_1f2e"}}).encode()
OURS = b'{"kind":"SchedulingQueue"}'


class Server:
    """Answers paths as a test says, and notes the calls."""

    def __init__(self, **answers: tuple[int, bytes]) -> None:
        self._answers = answers
        self.calls: list[tuple[str, str]] = []

    async def request(self, call: Call) -> Answer:
        self.calls.append((call.method, call.path))
        name = "lease" if call.path == LEASE else "queue"
        if name not in self._answers:
            raise TransportError("connection refused")
        status, body = self._answers[name]
        return Answer(status, {}, body)

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        raise NotImplementedError

    async def close(self) -> None:
        return None


async def test_the_holder_of_the_lease_answers_through_the_proxy() -> None:
    server = Server(lease=(200, HELD), queue=(200, OURS))
    found = await by_lease(server, "kube-system", "kube-scheduler")
    assert found is not None
    source, pod = found
    assert pod == "kube-system/moorage-0"
    answered = await source.ask("/cluster", {"since": "v"})
    assert answered.body == OURS
    assert server.calls == [
        ("GET", LEASE),
        ("GET", f"{PROXY}/queue"),
        ("GET", f"{PROXY}/cluster"),
    ]


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param({}, id="the server is not reached"),
        pytest.param({"lease": (403, b"{}")}, id="the lease may not be read"),
        pytest.param({"lease": (404, b"{}")}, id="there is no lease"),
        pytest.param({"lease": (200, b"{}")}, id="nobody holds the lease"),
        pytest.param({"lease": (200, HELD)}, id="the proxy does not reach the pod"),
        pytest.param({"lease": (200, HELD), "queue": (404, b"")}, id="another scheduler"),
        pytest.param({"lease": (200, HELD), "queue": (200, b"ok")}, id="another program"),
    ],
)
async def test_no_scheduler_is_found_where_none_of_moorage_answers(answers: Any) -> None:
    assert await by_lease(Server(**answers), "kube-system", "kube-scheduler") is None


async def test_changes_to_try_are_posted() -> None:
    server = Server(queue=(200, b"{}"))
    await Remote(server, "/before").ask("/what-if", {}, b'{"changes":[]}')
    assert server.calls == [("POST", "/before/moorage/v1/what-if")]
