"""The Leases of any namespace: which leaders are found, and which are schedulers for sure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from moorage.base.errors import MoorageError, TransportError
from moorage.cli.ask import leader_of
from moorage.cli.question_target import QuestionTarget
from moorage.client.leaders.address import LeaderAddress
from moorage.client.leaders.finding import find_leaders, has_leader
from moorage.client.transport import Answer, Call, Transport

LEASES = "/apis/coordination.k8s.io/v1/leases"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
REFUSED = Answer(403, {}, b'{"kind":"Status","code":403,"reason":"Forbidden","message":"no"}')
MISSING = Answer(404, {}, b'{"kind":"Status","code":404,"reason":"NotFound","message":"none"}')


def json_answer(obj: Any, status: int = 200) -> Answer:
    return Answer(status, {}, json.dumps(obj).encode())


class _Server(Transport):
    """A server with some Leases and pods, where some accounts may bind pods."""

    def __init__(
        self, answers: Mapping[str, Answer | TransportError], may_bind: tuple[str, ...] = ()
    ) -> None:
        self._answers = answers
        self._may_bind = may_bind
        self.reviews: list[Any] = []

    async def request(self, call: Call) -> Answer:
        if call.path == REVIEWS and call.path not in self._answers:
            assert isinstance(call.body, bytes)
            self.reviews.append(json.loads(call.body)["spec"])
            allowed = self.reviews[-1]["user"] in self._may_bind
            return json_answer({"status": {"allowed": allowed}}, 201)
        answer = self._answers.get(call.path, MISSING)
        if isinstance(answer, TransportError):
            raise answer
        return answer

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
    return json_answer({"items": leases})


def account(name: str) -> Answer:
    """Return a pod with a service account."""
    return json_answer({"spec": {"serviceAccountName": name}})


LEADER = LeaderAddress(holder="a_1", pod="acme/a", port=10259, certificate="PEM")
OTHER = LeaderAddress(holder="b_1", pod="tenant/b", port=10259, certificate="PEM")
TWO = listed(
    lease("acme", "m", holder="a_1", leader=LEADER),
    lease("tenant", "fake", holder="b_1", leader=OTHER),
)
POD, OTHER_POD = "/api/v1/namespaces/acme/pods/a", "/api/v1/namespaces/tenant/pods/b"
PODS = {POD: account("moorage"), OTHER_POD: account("default")}
SCHEDULER, TENANT = "system:serviceaccount:acme:moorage", "system:serviceaccount:tenant:default"
TO = QuestionTarget()


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
            ["a/m", "b/late"],
            id="those whose holder wrote the annotation, sorted",
        ),
        pytest.param(REFUSED, [], id="the caller may not list them"),
        pytest.param(TransportError("away"), [], id="no server answers"),
    ],
)
async def test_leases_that_moorage_holds(answer: Answer | TransportError, names: list[str]) -> None:
    assert [lease for _, lease in await find_leaders(_Server({LEASES: answer}))] == names


async def test_the_leader_of_any_lease_is_asked_whose_account_may_bind_all_pods() -> None:
    server = _Server({LEASES: TWO, **PODS}, (SCHEDULER,))
    assert await leader_of(TO, server, "here") == (LEADER, "acme/m")
    assert await has_leader(server)
    assert server.reviews[1] == {
        "user": TENANT,
        "groups": [
            "system:serviceaccounts",
            "system:serviceaccounts:tenant",
            "system:authenticated",
        ],
        "resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "binding"},
    }


NOBODY = (
    "no scheduler to ask: no pod of moorage holds the Lease kube-system/kube-scheduler nor "
    "moorage/moorage of here; "
)
HELD = "moorage holds acme/m, tenant/fake: "


@pytest.mark.parametrize(
    ("server", "message"),
    [
        pytest.param(
            _Server({LEASES: TWO, **PODS}, (SCHEDULER, TENANT)),
            f"{NOBODY}{HELD}ask with --lease acme/m",
            id="two schedulers",
        ),
        pytest.param(
            _Server({LEASES: TWO, **PODS}),
            f"{NOBODY}{HELD}if you trust who may write there, ask with --lease acme/m",
            id="no account may bind pods",
        ),
        pytest.param(
            _Server({LEASES: TWO, **PODS, REVIEWS: REFUSED}, (SCHEDULER,)),
            f"{NOBODY}{HELD}if you trust who may write there, ask with --lease acme/m",
            id="the caller may not review accesses",
        ),
        pytest.param(
            _Server({LEASES: TWO, POD: REFUSED, OTHER_POD: MISSING}, (SCHEDULER,)),
            f"{NOBODY}{HELD}if you trust who may write there, ask with --lease acme/m",
            id="the caller may not read the pod, or it is gone",
        ),
    ],
)
async def test_no_leader_is_asked_that_may_be_no_scheduler(server: _Server, message: str) -> None:
    with pytest.raises(MoorageError) as fault:
        await leader_of(TO, server, "here")
    assert str(fault.value) == message
    assert not await has_leader(server)


async def test_no_other_lease_is_asked_than_the_one_that_is_named() -> None:
    server = _Server({LEASES: TWO, **PODS}, (SCHEDULER,))
    to = QuestionTarget(lease="moorage/other")
    with pytest.raises(MoorageError, match="holds the Lease moorage/other of here"):
        await leader_of(to, server, "here")
