"""Writes about pods: in order for each pod, never twice the same, and nothing kept for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from moorage.api.meta import Condition
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.errors import TransportError
from moorage.base.rng import Streams
from moorage.client.transport import Answer, Call
from moorage.client.writes import Client
from moorage.service.binding.pod_writes import PodWrites
from scheduler.tests.client.fakes import ScriptedTransport, answer, failure
from scheduler.tests.service.build import pod

OK = answer({})
WHY = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="full")


class Slow:
    """A transport that holds every call until it is let go; what was asked stays readable."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.waiting: list[asyncio.Future[Answer]] = []

    async def request(self, call: Call) -> Answer:
        self.calls.append(
            (call.path.rsplit("/", 2)[1], msgspec.json.decode(call.whole_body or b"{}"))
        )
        self.waiting.append(asyncio.get_running_loop().create_future())
        return await self.waiting[-1]

    def stream(self, call: Call) -> Any:
        raise AssertionError(call)

    async def close(self) -> None: ...


class Writing:
    def __init__(self, transport: Any) -> None:
        self.tasks = TaskOwner()
        client = Client(transport, rng=Streams(1).stream("client"))
        self.writes = PodWrites(client, clock=ManualClock(), tasks=self.tasks)

    async def settle(self) -> None:
        for _ in range(20):
            await aio.sleep(0)

    @property
    def kept(self) -> tuple[int, int]:
        """How many pods it remembers a status of, and how many a running write of."""
        remembered = self.writes._overlay.keys() | self.writes._written.keys()
        return len(remembered), len(self.writes._last)


def nominating(name: str) -> dict[str, Any]:
    return {"status": {"nominatedNodeName": name}}


async def test_writes_about_one_pod_are_serial_and_other_pods_do_not_wait() -> None:
    slow = Slow()
    world = Writing(slow)
    world.writes.report_status(pod("p"), None, nominated="n1")
    world.writes.report_status(pod("p"), None, nominated="n2")
    world.writes.report_status(pod("q"), None, nominated="n3")
    await world.settle()
    assert slow.calls == [("p", nominating("n1")), ("q", nominating("n3"))]
    slow.waiting[0].set_result(OK)
    await world.settle()
    assert slow.calls[2:] == [("p", nominating("n2"))]
    for waiting in slow.waiting[1:]:
        waiting.set_result(OK)
    await world.settle()
    assert world.kept == (2, 0)


async def test_a_condition_under_way_is_not_written_again() -> None:
    slow = Slow()
    world = Writing(slow)
    for _ in range(2):
        world.writes.report_status(pod("p"), WHY, nominated="n1")
    await world.settle()
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "full",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    assert slow.calls == [("p", {"status": {"conditions": [condition], "nominatedNodeName": "n1"}})]
    await world.tasks.cancel_all()


async def test_the_overlay_lasts_until_the_watch_shows_the_pod_after_the_reply() -> None:
    slow = Slow()
    world, one = Writing(slow), pod("p")
    world.writes.report_status(one, None, nominated="n1")
    await world.settle()
    world.writes.pod_shown(one)  # an older version, the write is still on its way
    assert world.writes.status_in_hand(one).nominated_node_name == "n1"
    slow.waiting[0].set_result(OK)
    await world.settle()
    assert world.writes.status_in_hand(one).nominated_node_name == "n1"
    world.writes.pod_shown(one)
    assert world.writes.status_in_hand(one).nominated_node_name == ""
    assert world.kept == (0, 0)


@pytest.mark.parametrize(
    ("versions", "reply", "nominated", "kept"),
    [
        pytest.param(["2"], "2", "", (0, 0), id="the version that the write made"),
        pytest.param(["2", "3"], "2", "", (0, 0), id="that version, and one of somebody else"),
        pytest.param(["2"], "3", "n1", (1, 0), id="another version only"),
        pytest.param([], "2", "n1", (1, 0), id="no version"),
        pytest.param([""], "", "n1", (1, 0), id="a reply without a version"),
    ],
)
async def test_the_overlay_ends_with_the_reply_where_the_watch_was_faster(
    versions: list[str], reply: str, nominated: str, kept: tuple[int, int]
) -> None:
    """Somebody else withdraws the nomination meanwhile, and the watch tells no more."""
    slow = Slow()
    world, one = Writing(slow), pod("p")
    world.writes.report_status(one, None, nominated="n1")
    await world.settle()
    for version in versions:
        world.writes.pod_shown(
            replace(one, metadata=replace(one.metadata, resource_version=version))
        )
    slow.waiting[0].set_result(answer({"metadata": {"resourceVersion": reply}}))
    await world.settle()
    assert world.writes.status_in_hand(one).nominated_node_name == nominated
    assert world.kept == kept
    assert (world.writes._shown, world.writes._versions) == ({}, {})


async def test_a_failed_patch_is_not_confirmed_by_an_earlier_one() -> None:
    slow = Slow()
    world, one = Writing(slow), pod("p")
    world.writes.report_status(one, WHY, nominated="n1")
    world.writes.report_status(one, None, nominated="n2")
    await world.settle()
    slow.waiting[0].set_result(answer({"metadata": {"resourceVersion": "2"}}))
    await world.settle()
    world.writes.pod_shown(replace(one, metadata=replace(one.metadata, resource_version="2")))
    slow.waiting[1].set_exception(TransportError("reset"))
    await world.settle()
    assert world.kept == (1, 0), "the server may have the second patch"


async def test_a_deleted_pod_is_forgotten() -> None:
    world, one = Writing(ScriptedTransport(OK)), pod("p")
    world.writes.report_status(one, None, nominated="n1")
    await world.settle()
    world.writes.gone(one)
    assert world.kept == (0, 0)


@pytest.mark.parametrize(
    ("script", "logged"),
    [
        pytest.param([answer(failure(404, "NotFound"), status=404)], "", id="the pod is gone"),
        pytest.param(
            [answer(failure(403, "Forbidden", "no"), status=403)],
            "status of pod default/p was not written: no",
            id="refused",
        ),
        pytest.param(
            [TransportError("timed out")],
            "status of pod default/p was not written: timed out",
            id="no answer",
        ),
    ],
)
async def test_a_status_that_is_not_taken_is_in_hand_until_the_pod_is_gone(
    script: list[Any], logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    transport = ScriptedTransport(*script)
    world, one = Writing(transport), pod("p")
    world.writes.report_status(one, None, nominated="n1")
    await world.settle()
    assert world.writes.status_in_hand(one).nominated_node_name == ("n1" if logged else "")
    assert world.kept == (1 if logged else 0, 0)
    assert (logged in caplog.text) if logged else (caplog.text == "")
    world.writes.report_status(one, None, nominated="n1" if logged else "")
    await world.settle()
    assert len(transport.calls) == 1, "it is sent again by itself"
    world.writes.gone(one)
    assert (world.kept, world.writes.busy("uid-p")) == ((0, 0), False)
    await world.tasks.cancel_all()


@pytest.mark.parametrize("early", [True, False], ids=["before the answer", "after it"])
@pytest.mark.parametrize(
    ("nominated", "node_name", "again"),
    [
        pytest.param("n1", "", False, id="the server took it"),
        pytest.param("", "n2", False, id="the pod is bound"),
        pytest.param("", "", True, id="the server did not take it"),
    ],
)
async def test_a_patch_without_an_answer_is_sent_again_until_the_watch_shows_its_end(
    nominated: str, node_name: str, again: bool, early: bool
) -> None:
    slow = Slow()
    world, one = Writing(slow), pod("p")
    shown = replace(
        one,
        metadata=replace(one.metadata, resource_version="2"),
        spec=replace(one.spec, node_name=node_name),
        status=replace(one.status, nominated_node_name=nominated),
    )
    world.writes.report_status(one, None, nominated="n1")
    await world.settle()
    if early:
        world.writes.pod_shown(shown)
    slow.waiting[0].set_exception(TransportError("timed out"))
    await world.settle()
    if not early:
        world.writes.pod_shown(shown)
    assert world.writes.busy("uid-p") == again
    assert world.writes.status_in_hand(shown).nominated_node_name == ("n1" if again else nominated)
    await world.tasks.cancel_all()


@pytest.mark.parametrize("lost", [answer(failure(403, "Forbidden"), status=403), None])
async def test_a_patch_does_not_count_on_an_earlier_one_that_failed(lost: Answer | None) -> None:
    """Else a condition without a status is written."""
    slow = Slow()
    world, one = Writing(slow), pod("p")
    first = Condition(type="PodScheduled", status="False", reason="SchedulerError", message="oops")
    world.writes.report_status(one, first, nominated="n1")
    world.writes.report_status(one, WHY, nominated="")
    await world.settle()
    if lost is None:
        slow.waiting[0].set_exception(TransportError("timed out"))
    else:
        slow.waiting[0].set_result(lost)
    await world.settle()
    body = slow.calls[1][1]["status"]
    (condition,) = body["conditions"]
    del condition["lastProbeTime"], condition["lastTransitionTime"]
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "full",
    }
    assert body["nominatedNodeName"] is None
    slow.waiting[1].set_result(OK)
    await world.settle()
    world.writes.pod_shown(one)
    assert world.kept == (0, 0)


async def test_a_second_patch_makes_the_change_of_a_first_one_that_failed() -> None:
    slow = Slow()
    world, one = Writing(slow), pod("p")
    world.writes.report_status(one, WHY, nominated=None)
    world.writes.report_status(one, None, nominated="n1")
    other = msgspec.structs.replace(WHY, message="still full")
    world.writes.report_status(one, other, nominated=None)
    await world.settle()
    for answered in (answer(failure(403, "Forbidden"), status=403), OK):
        slow.waiting[-1].set_result(answered)
        await world.settle()
    second, third = (body for _, body in slow.calls[1:])
    assert second["metadata"] == {"uid": "uid-p"}, "the name may be another pod's by now"
    assert second["status"]["nominatedNodeName"] == "n1"
    (condition,) = second["status"]["conditions"]
    assert (condition["status"], condition["message"]) == ("False", "full")
    assert third == {
        "status": {
            "$setElementOrder/conditions": [{"type": "PodScheduled"}],
            "conditions": [{"type": "PodScheduled", "message": "still full"}],
        }
    }
    await world.tasks.cancel_all()


async def test_settled_waits_for_every_write_so_far() -> None:
    slow = Slow()
    world = Writing(slow)
    await world.writes.settled("uid-p")  # nothing to wait for
    world.writes.report_status(pod("p"), None, nominated="n1")
    world.writes.report_status(pod("p"), None, nominated="n2")
    waiting = world.tasks.spawn(world.writes.settled("uid-p"), name="settled")
    await world.settle()
    slow.waiting[0].set_result(OK)
    await world.settle()
    assert not waiting.done()
    slow.waiting[1].set_result(OK)
    await world.settle()
    assert waiting.done()


@pytest.mark.parametrize("first_is_lost", [False, True])
async def test_reports_end_with_those_that_begin_while_they_end(first_is_lost: bool) -> None:
    slow = Slow()
    world = Writing(slow)
    world.writes.report_status(pod("p"), None, nominated="n1")
    ending = world.tasks.spawn(world.writes.end_reports("uid-p"), name="end reports")
    await world.settle()
    world.writes.report_status(pod("p"), None, nominated="n2")
    if first_is_lost:
        slow.waiting[0].set_exception(TransportError("timed out"))
    else:
        slow.waiting[0].set_result(OK)
    await world.settle()
    assert not ending.done(), "a binding would overtake the second report"
    slow.waiting[1].set_result(OK)
    await world.settle()
    assert ending.done()
    assert not world.writes.busy("uid-p")
    await world.tasks.cancel_all()


async def test_a_write_that_breaks_does_not_stop_the_next_one() -> None:
    broken: list[str] = []
    world = Writing(ScriptedTransport(OK))
    world.tasks = TaskOwner(lambda name, problem: broken.append(f"{name}: {problem}"))
    client = Client(ScriptedTransport(OK), rng=Streams(1).stream("client"))
    world.writes = PodWrites(client, clock=ManualClock(), tasks=world.tasks)
    done: list[str] = []

    async def breaks() -> None:
        raise RuntimeError("oops")

    async def works() -> None:
        done.append("works")

    world.writes.after_earlier("uid-p", breaks, name="first")
    world.writes.after_earlier("uid-p", works, name="second")
    await world.settle()
    assert (broken, done, world.kept) == (["first: oops"], ["works"], (0, 0))
