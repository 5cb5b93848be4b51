"""The Leases that moorage holds in any namespace, as an answer names them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.base.errors import TransportError
from moorage.client.leaders.address import LeaderAddress
from moorage.client.leaders.finding import other_leases
from moorage.client.transport import Answer, Call, Transport


class _Leases(Transport):
    def __init__(self, answer: Answer | TransportError) -> None:
        self.paths: list[str] = []
        self._answer = answer

    async def request(self, call: Call) -> Answer:
        self.paths.append(call.path)
        if isinstance(self._answer, TransportError):
            raise self._answer
        return self._answer

    def stream(self, call: Call) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        pass


def lease(namespace: str, name: str, *, holder: str, leader: LeaderAddress | None) -> Any:
    """Return a Lease, annotated by a leader."""
    return {
        "metadata": {
            "namespace": namespace,
            "name": name,
            "annotations": {} if leader is None else leader.annotations,
        },
        "spec": {"holderIdentity": holder},
    }


def listed(*leases: Any) -> Answer:
    """Return a list as the API server answers it."""
    return Answer(200, {}, json.dumps({"items": leases}).encode())


LEADER = LeaderAddress(holder="a_1", pod="acme/a", port=10259, certificate="PEM")


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        pytest.param(
            listed(
                lease("b", "late", holder="a_1", leader=LEADER),
                lease("kube-system", "kube-scheduler", holder="k", leader=None),
                lease("a", "taken-over", holder="other", leader=LEADER),
                lease("a", "m", holder="a_1", leader=LEADER),
            ),
            ("a/m", "b/late"),
            id="those whose holder wrote the annotation, sorted",
        ),
        pytest.param(Answer(403, {}, b"{}"), (), id="the caller may not list them"),
        pytest.param(TransportError("away"), (), id="no server answers"),
    ],
)
async def test_leases_that_moorage_holds(
    answer: Answer | TransportError, names: tuple[str, ...]
) -> None:
    server = _Leases(answer)
    assert await other_leases(server) == names
    assert server.paths == ["/apis/coordination.k8s.io/v1/leases"]
