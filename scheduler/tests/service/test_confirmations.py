"""Bindings that were answered with success: which are looked up, and what becomes of the pods."""

from __future__ import annotations

from typing import Any, cast

import pytest

from moorage.base.aio import TaskOwner
from moorage.base.errors import MoorageError, NotFoundError, NotLeadingError, TransportError
from moorage.service.binding.confirmations import Confirmations
from moorage.state.lifecycle import PodState
from scheduler.tests.client.fakes import _real_sleep, instant_sleep
from scheduler.tests.service.test_binding_cycle import UNDONE, Binding


class Server:
    """Answers looks at the pod, and counts them."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.looks = 0

    async def get(self, resource: Any, name: str, *, namespace: str) -> Any:
        self.looks += 1
        assert (resource.plural, namespace, name) == ("pods", "default", "p")
        if callable(self.answer):
            self.answer()
            return _pod("")
        if isinstance(self.answer, MoorageError):
            raise self.answer
        return self.answer


def _pod(node_name: str, uid: str = "uid-p") -> dict[str, Any]:
    return {"metadata": {"name": "p", "uid": uid}, "spec": {"nodeName": node_name}}


async def _bound(answer: Any) -> tuple[Binding, Server, Confirmations]:
    """Bind a pod, successfully as it seems, to a server that answers looks so."""
    world = Binding()
    server = Server(answer)
    tasks = TaskOwner()
    confirmations = Confirmations(world.cache, cast("Any", server), world.clock, tasks)
    world.binding_cycles._confirmations = confirmations
    await world.bind()
    # The tests look themselves.
    assert len(tasks) == 1
    await tasks.cancel_all()
    world.log.clear()
    return world, server, confirmations


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(_pod(""), id="the pod is on no node"),
        pytest.param(_pod("n1", uid="other"), id="another pod has its name"),
        pytest.param(NotFoundError(404, "NotFound", "gone"), id="there is no such pod"),
        pytest.param(_pod("n2"), id="the pod is on another node"),
    ],
)
async def test_a_binding_that_never_happened_is_undone_and_the_pod_tried_again(answer, caplog):
    world, server, confirmations = await _bound(answer)
    world.clock.advance(29)
    await confirmations.look()
    assert (server.looks, world.log) == (0, []), "the watch has some time"
    world.clock.advance(1)
    await confirmations.look()
    assert world.log[: len(UNDONE)] == UNDONE
    assert world.place("p") == "backoff"
    assert not world.cache.is_assumed("uid-p")
    why = "the binding to n1 was answered with success and did not happen"
    assert world.told == ("SchedulerError", why, "")
    assert why in caplog.text
    world.validate()
    await confirmations.look()
    assert server.looks == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(_pod("n1"), id="the pod is bound, and the watch is late"),
        pytest.param(TransportError("silent"), id="the server does not answer"),
    ],
)
async def test_a_binding_that_may_have_happened_stays(answer):
    world, server, confirmations = await _bound(answer)
    for round_ in range(1, 4):
        world.clock.advance(30)
        await confirmations.look()
        assert server.looks == round_
    assert world.cache.is_assumed("uid-p")
    assert world.log == []
    world.confirm()
    world.clock.advance(30)
    await confirmations.look()
    assert server.looks == 3
    world.validate()


async def test_a_binding_that_the_watch_tells_of_during_the_look_stays():
    world, _, confirmations = await _bound(None)
    confirmations._client.answer = world.confirm  # type: ignore[attr-defined]
    world.clock.advance(30)
    await confirmations.look()
    assert "cache.forget_pod p" not in world.log
    assert world.cache.get_pod("uid-p").spec.node_name == "n1"
    world.validate()


async def test_confirmed_bindings_are_not_kept():
    world, _, confirmations = await _bound(_pod("n1"))
    world.confirm()
    confirmations._drop_confirmed()
    assert not confirmations._expected


async def test_a_pod_that_is_gone_before_its_binding_was_told_has_no_attempt_under_way():
    """A list after an outage shows the pod no more: it was bound and deleted meanwhile."""
    world, server, confirmations = await _bound(_pod("n1"))
    world.cache.forget_pod(world.cache.get_pod("uid-p"))
    assert world.cache.lifecycle.state("uid-p") is PodState.IN_FLIGHT
    await confirmations.look()
    assert world.cache.lifecycle.state("uid-p") is PodState.GONE
    assert (server.looks, confirmations._expected) == (0, {})
    world.validate()


async def test_bindings_held_back_by_a_lost_lease_leave_no_tracebacks(caplog):
    caplog.set_level("INFO")
    world = Binding(bind=NotLeadingError("not sent: a does not hold lease kube-system/x"))
    await world.bind()
    assert world.place("p") == "backoff"
    assert "does not hold lease" in caplog.text
    assert [record.levelname for record in caplog.records if record.exc_info] == []


async def test_the_task_looks_every_ten_seconds_and_ends_when_nothing_is_left():
    world = Binding()
    server, tasks = Server(_pod("")), TaskOwner()
    world.binding_cycles._confirmations = Confirmations(
        world.cache, cast("Any", server), world.clock, tasks
    )
    with instant_sleep(world.clock) as slept:
        await world.bind()
        while len(tasks):
            await _real_sleep(0)
    assert slept == [10, 10, 10]
    assert (server.looks, world.place("p")) == (1, "backoff")
