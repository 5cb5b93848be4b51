"""Scenarios of gangs, as they happen in the field, on a whole cluster in virtual time.

Server, node agents, scheduler and controllers. The scenarios are told again over HTTPS, all but the
tables of bad input and what is only about when something happens. What single attempts decide is
in ``scheduler/tests/engine/groups/test_cycle.py``, members that wait for each other in
``scheduler/tests/service/test_group_permit.py``.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.resources import CORE_EVENTS
from moorage.base import aio
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.config.own import LoadedConfiguration
from moorage.framework.cycle_state import CycleState
from moorage.framework.group import CARRIED_OUT, GROUP_PHASE
from moorage.framework.registry import PluginEntry
from moorage.framework.status import SUCCESS, Status, error
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import Manifest, pod_manifest
from tests.scenarios.gangs import (
    Cluster,
    Play,
    controllers,
    coscheduling,
    nodes,
    of_labels,
    of_object,
    play,
    pod_group,
)

LOW_AND_HIGH = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
    for name, value in (("low", 1), ("high", 100))
]


def job(name: str, size: int, **fields: Any) -> list[Manifest]:
    """Return the pods of a job that names a PodGroup of its own name."""
    return [of_object(f"{name}{i}", of=name, **fields) for i in range(size)]


def names(name: str, size: int) -> list[str]:
    return [f"{name}{i}" for i in range(size)]


def all_bound(live: Cluster, pods: list[str]) -> bool:
    return live.bound(*pods) == len(pods)


def status(live: Cluster, name: str = "g") -> Any:
    shelf = live.server.store.shelf(COSCHEDULING_POD_GROUPS.qualified)
    record = shelf.get(("default", name))
    return {} if record is None else record.decode().get("status") or {}


def rejections(live: Cluster, name: str = "g") -> list[str]:
    """The messages of the Events FailedScheduling about a pod group."""
    events = [each.decode() for each in live.server.store.shelf(CORE_EVENTS.qualified).records("")]
    return [
        each.get("message") or each["note"]
        for each in events
        if each["reason"] == "FailedScheduling"
        and (each.get("involvedObject") or each["regarding"])["name"] == name
    ]


def test_a_job_of_four_with_room_for_three_waits_and_others_run(anywhere: Play):
    async def scenario(live: Cluster) -> None:
        async with controllers(live):
            await live.create_objects(pod_group(least=4), *job("g", 4))
            # The attempt of the group, not an earlier one that missed members or the PodGroup.
            await live.until(lambda: "nodes are available" in live.message_of("g3"))
            await live.until(lambda: status(live).get("phase") == "Scheduling")
            await live.create_objects(*(pod_manifest(f"other{i}", cpu="1") for i in range(3)))
            await live.until(lambda: live.bound(*names("other", 3)) == 3)
            assert live.bound(*names("g", 4)) == 0
            await live.until(lambda: live.scheduler.core.cache.counts().assumed_pods == 0)
            # The Event is written on its own, after the attempt.
            text = (
                "pod group is unschedulable: 3 of 4 pods tried have a place, default/g3 has none: "
                "0/3 nodes are available: 3 Insufficient cpu."
            )
            await live.until(lambda: any(each.startswith(text) for each in rejections(live)))

    anywhere(scenario, cluster=nodes(3), config=coscheduling())


def two_jobs_for_six(anywhere: Play, config: LoadedConfiguration, *, seconds: float) -> list[int]:
    """Two jobs of four compete for six places, members in turn; return how many of each run."""
    found: list[int] = []

    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group("a", least=4), pod_group("b", least=4))
        for one, other in zip(job("a", 4), job("b", 4), strict=True):
            await live.create_objects(one, other)
        await aio.sleep(seconds)
        found.extend(live.bound(*names(each, 4)) for each in "ab")
        if 4 in found:
            done, waits = ("a", "b") if found[0] == 4 else ("b", "a")
            await live.delete(*names(done, 4))
            await live.until(lambda: live.bound(*names(waits, 4)) == 4, seconds=120)

    anywhere(scenario, cluster=nodes(6), config=config)
    return found


def test_two_jobs_of_four_that_compete_for_six_run_one_after_the_other(anywhere: Play):
    assert sorted(two_jobs_for_six(anywhere, coscheduling(), seconds=30)) == [0, 4]


def test_the_default_scheduler_gives_each_three_and_neither_starts(anywhere: Play):
    assert two_jobs_for_six(anywhere, LoadedConfiguration(), seconds=90) == [3, 3]


def test_nor_do_they_in_ten_minutes():
    assert two_jobs_for_six(play, LoadedConfiguration(), seconds=600) == [3, 3]


def test_a_group_preempts_a_lower_group_that_runs(anywhere: Play):
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*LOW_AND_HIGH)
        await live.create_objects(
            pod_group("low", least=3), *job("low", 3, priorityClassName="low")
        )
        await live.until(lambda: live.bound(*names("low", 3)) == 3)
        await live.create_objects(
            pod_group("high", least=3), *job("high", 3, priorityClassName="high")
        )
        await live.until(lambda: live.bound(*names("high", 3)) == 3, seconds=120)

    anywhere(scenario, cluster=nodes(3), config=coscheduling())


@pytest.mark.parametrize(
    ("config", "left"),
    [
        pytest.param(coscheduling(), 0, id="with the group plugin the whole gang"),
        pytest.param(LoadedConfiguration(), 2, id="by default one pod, as kube-scheduler does"),
    ],
)
def test_the_victims_of_one_pod_of_higher_priority(
    config: LoadedConfiguration, left: int, anywhere: Play
):
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*LOW_AND_HIGH)
        await live.create_objects(
            pod_group("low", least=3), *job("low", 3, priorityClassName="low")
        )
        await live.until(lambda: live.bound(*names("low", 3)) == 3)
        await live.create_objects(pod_manifest("high", cpu="1", priorityClassName="high"))
        await live.until(lambda: live.bound("high") == 1, seconds=120)
        await aio.sleep(60)
        assert live.bound(*names("low", 3)) == left

    anywhere(scenario, cluster=nodes(3), config=config)


def test_with_a_minimum_below_the_size_the_rest_joins_when_there_is_room(anywhere: Play):
    async def scenario(live: Cluster) -> None:
        async with controllers(live):
            await live.create_objects(pod_group(least=3), *job("g", 5))
            await live.until(lambda: live.bound(*names("g", 5)) == 4)
            await live.until(lambda: status(live).get("phase") == "Running")
            (one,) = nodes(1)
            one["metadata"]["name"] = "late"
            await live.play([one])
            await live.until(lambda: live.bound(*names("g", 5)) == 5, seconds=30)
            await live.until(lambda: status(live).get("running") == 5)

    anywhere(scenario, cluster=nodes(4), config=coscheduling())


def test_a_member_deleted_while_the_group_waits_is_missed_until_another_comes(anywhere: Play):
    async def scenario(live: Cluster) -> None:
        async with controllers(live):
            await live.create_objects(pod_group(least=3), *job("g", 3))
            await live.until(lambda: live.condition_of("g2")[0] == "False")
            await live.delete("g1")
            await live.until(lambda: status(live).get("phase") == "Pending")
            text = "current pods number: 2, minMember of group: 3"
            await live.until(lambda: text in live.message_of("g0"), seconds=60)
            (one,) = nodes(1)
            one["metadata"]["name"] = "late"
            await live.play([one])
            await aio.sleep(20)
            assert live.bound("g0", "g2") == 0
            await live.create_objects(of_object("new"))
            await live.until(lambda: live.bound("g0", "g2", "new") == 3)

    anywhere(scenario, cluster=nodes(2), config=coscheduling())


class RefusesOnce:
    """A transport on which the first bindings of one pod fail."""

    def __init__(self, inner: Transport, pod: str, times: int) -> None:
        self._inner = inner
        self._path = f"/pods/{pod}/binding"
        self.left = times

    async def request(self, call: Call) -> Answer:
        if self.left and call.path.endswith(self._path):
            self.left -= 1
            return Answer(403, {}, b'{"kind":"Status","code":403,"message":"not now"}')
        return await self._inner.request(call)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        async with self._inner.stream(call) as lines:
            yield lines

    async def close(self) -> None:
        await self._inner.close()


def test_when_a_members_bind_fails_its_place_is_kept_and_the_group_is_degraded(
    anywhere: Play,
):
    async def scenario(live: Cluster) -> None:
        async with controllers(live):
            await live.create_objects(pod_group(least=3))
            await live.until(lambda: bool(status(live)))  # its watchers have been told of it
            # Another pod of the same priority waits for exactly the room that is freed.
            await live.create_objects(*job("g", 3), pod_manifest("rival", cpu="1"))
            await live.until(lambda: live.bound(*names("g", 3)) == 2)
            await live.until(lambda: status(live).get("phase") == "Degraded", seconds=1)
            running = {name: live.stored_pod(name) for name in ("g0", "g2")}
            await live.until(lambda: live.bound(*names("g", 3)) == 3, seconds=10)
            assert not live.node_of("rival")
            for name, before in running.items():
                now = live.stored_pod(name)
                assert before is not None
                assert now is not None
                assert now["metadata"]["uid"] == before["metadata"]["uid"], "was evicted"
            await live.until(lambda: status(live).get("phase") == "Running", seconds=10)
            (event, *_) = await live.events("g", reason="Degraded")
            # Told when the bind fails: g0 or g2 may be on the way to its node still.
            expected = r"[12] of at least 3 pods have a node, g1 waits for one"
            assert re.search(expected, event["message"]), event

    anywhere(
        scenario,
        cluster=nodes(3),
        config=coscheduling(),
        around=lambda inner: RefusesOnce(inner, "g1", 2),
    )


def test_a_binding_that_always_fails_is_not_repeated_without_backoff():
    """A failed binding gives room back, and so wakes the member that has no node."""
    refusing: list[RefusesOnce] = []

    def around(inner: Transport) -> Transport:
        refusing.append(RefusesOnce(inner, "g0", 10_000))
        return refusing[0]

    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group(least=1), *job("g", 3))
        await live.until(lambda: live.bound(*names("g", 3)) == 1)
        await aio.sleep(60)
        # After 1, 2, 4 and 8 s and each 10 s of g0, and as often of g2, which takes g0 along.
        assert 5 < 10_000 - refusing[0].left < 25

    play(scenario, cluster=nodes(2), config=coscheduling(), around=around)


class RefusesOneReserve:
    """A plugin whose Reserve turns one pod away, for real only, a few times."""

    name = "RefusesOneReserve"
    left = 0

    def __init__(self, args: object, handle: object) -> None:
        del args, handle

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        del node_name
        real = state.find(GROUP_PHASE) == CARRIED_OUT
        if real and pod.name == "g2" and RefusesOneReserve.left:
            RefusesOneReserve.left -= 1
            return error("not this one")
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Nothing was booked."""


def test_when_a_reserve_fails_nothing_of_the_group_is_left_behind(anywhere: Play):
    RefusesOneReserve.left = 3
    registry = in_tree_registry()
    registry.register(PluginEntry("RefusesOneReserve", RefusesOneReserve))

    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group(least=3), *job("g", 3))
        await live.until(lambda: RefusesOneReserve.left == 0, seconds=60)
        assert live.bound(*names("g", 3)) == 0
        await live.until(lambda: live.bound(*names("g", 3)) == 3, seconds=60)

    config = coscheduling(extra="RefusesOneReserve")
    anywhere(scenario, cluster=nodes(3), config=config, registry=registry)


def test_a_reserve_that_always_fails_is_not_repeated_without_backoff():
    """The members that were held at Permit give room back, and so wake the one without a node."""
    RefusesOneReserve.left = 10_000
    registry = in_tree_registry()
    registry.register(PluginEntry("RefusesOneReserve", RefusesOneReserve))

    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group(least=3), *job("g", 4))
        await aio.sleep(60)
        assert 5 < 10_000 - RefusesOneReserve.left < 25
        assert live.bound(*names("g", 4)) == 0

    config = coscheduling(extra="RefusesOneReserve")
    play(scenario, cluster=nodes(3), config=config, registry=registry)


def test_a_large_group_that_cannot_start_does_not_starve_the_rest():
    """It is older and of the same priority, so it would be popped first each time."""

    async def scenario(live: Cluster) -> None:
        await live.create_objects(pod_group("big", least=32), *job("big", 32))
        await live.until(lambda: live.condition_of("big31")[0] == "False")
        waited: list[float] = []
        for i in range(12):
            began = live.seconds
            await live.create_objects(pod_group(f"s{i}x", least=2), *job(f"s{i}x", 2, cpu="100m"))
            small = names(f"s{i}x", 2)
            await live.until(partial(all_bound, live, small), seconds=5)
            waited.append(live.seconds - began)
            await aio.sleep(1)
        assert max(waited) < 1
        facts = live.scheduler.facts.groups
        groups = live.scheduler.core.snapshot.groups.all_groups().keys()
        (longest,) = facts.waits(groups)
        assert longest > 12
        # It is tried again by backoff, once in ten seconds in the end, and not more.
        queue = live.scheduler.core.queue.pending()
        attempts = {each.attempts for each in (*queue.active, *queue.backoff)}
        assert attempts <= set(range(3, 10))

    play(scenario, cluster=nodes(8, cpu="3"), config=coscheduling())


BAD: list[Any] = [
    pytest.param(
        [of_labels("p0", least="many")],
        [],
        {"p0": "n0"},
        ("p0", 'min-available is "many", not a whole number of at least 1'),
        id="min-available that is no number: the pod is on its own, and told so",
    ),
    pytest.param(
        [of_labels("p0", least=3), of_labels("p1", least=3)],
        [],
        {},
        ("p1", "current pods number: 2, minMember of group: 3"),
        id="a minimum above the size",
    ),
    pytest.param(
        [of_labels("p0", least=2), of_labels("p1", least=3)],
        [],
        {},
        ("p1", "PodGroupMinAvailables do not match: p1 has 3, others of group"),
        id="minimums that differ",
    ),
    pytest.param(
        [of_object("p0", priorityClassName="low"), of_object("p1", priorityClassName="high")],
        [pod_group(least=2)],
        {},
        ("g", "Priorities do not match: p1 has 100, p0 of group default/g has"),
        id="priorities that differ, told the group",
    ),
    pytest.param(
        [of_object("p0"), of_object("p1", schedulerName="second")],
        [pod_group(least=2)],
        {},
        (
            "p0",
            'the same .spec.schedulerName set, got: "default-scheduler" and',
        ),
        id="two schedulers of one process",
    ),
    pytest.param(
        [of_object("p0"), of_object("p1", schedulerName="foreign")],
        [pod_group(least=2)],
        {},
        ("g", "pod group default/g lacks pods: 1 exists, minMember is 2"),
        id="a scheduler of another process: its pod is not counted",
    ),
    pytest.param(
        [of_object("p0", of="lost")],
        [],
        {},
        ("p0", "PodGroup default/lost not found"),
        id="no PodGroup of that name",
    ),
    pytest.param(
        [of_object("p1", schedulingGates=[{"name": "wait"}]), of_object("p0")],
        [pod_group(least=2)],
        {},
        ("g", "cannot proceed due to gated pods in the same PodGroup"),
        id="a member that is gated",
    ),
    pytest.param(
        [of_object("p0"), of_object("p1")],
        [pod_group(least=2, minResources={"cpu": "5"})],
        {},
        ("g", "resource gap: map[cpu:2000]"),
        id="more asked of the cluster than there is",
    ),
]


@pytest.mark.parametrize(("pods", "groups", "placed", "told"), BAD)
def test_bad_input_is_told_and_nothing_is_stuck(pods, groups, placed, told):
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*LOW_AND_HIGH, *groups, *pods)
        await aio.sleep(15)
        found = {name: node for name in ("p0", "p1") if (node := live.node_of(name))}
        assert found.keys() == placed.keys()
        about, text = told
        events = await live.events(about)
        assert text in " ".join([live.message_of(about), *(each["message"] for each in events)])
        assert live.scheduler.core.cache.counts().assumed_pods == 0
        await live.create_objects(pod_manifest("other", cpu="1"))
        await live.until(lambda: live.bound("other") == 1)

    config = coscheduling(names=("default-scheduler", "second"))
    play(scenario, cluster=nodes(3), config=config)


CURES: list[Any] = [
    pytest.param(
        [of_object("p0")], [], lambda: [pod_group(least=1)], ["p0"], id="the group is created"
    ),
    pytest.param(
        [of_object("p0")],
        [pod_group(least=2)],
        lambda: [of_object("p1")],
        ["p0", "p1"],
        id="the missing member comes",
    ),
    pytest.param(
        [of_object("p0"), of_object("p1")],
        [pod_group(least=2, minResources={"cpu": "4"})],
        list,
        ["p0", "p1"],
        id="a node brings the resources",
    ),
]


@pytest.mark.parametrize(("pods", "groups", "cure", "start"), CURES)
def test_a_rejected_pod_starts_at_once_when_its_cause_is_mended(pods, groups, cure, start):
    async def scenario(live: Cluster) -> None:
        await live.create_objects(*groups, *pods)
        await aio.sleep(30)
        assert live.bound("p0", "p1") == 0
        made: Callable[[], list[Manifest]] = cure
        if made():
            await live.create_objects(*made())
        else:
            (one,) = nodes(1, cpu="2")
            one["metadata"]["name"] = "late"
            await live.play([one])
        await live.until(lambda: live.bound(*start) == len(start), seconds=2)

    play(scenario, cluster=nodes(3), config=coscheduling())
