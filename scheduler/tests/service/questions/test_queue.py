"""Where pods wait and until when, as the scheduler answers it; whole answers.

A cluster in virtual time with a pod in each place, and the state alone for groups. Not covered: how
the answer is carried (`test_pages`), how it is printed (``tests/cli/queue``).
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, ManualClock, parse_rfc3339
from moorage.config.defaults import with_defaults
from moorage.config.own import LoadedConfiguration
from moorage.config.types import (
    KubeSchedulerConfiguration,
    PluginRef,
    Plugins,
    PluginSet,
    Profile,
)
from moorage.framework.cycle_state import CycleState
from moorage.framework.registry import PluginEntry
from moorage.framework.status import SUCCESS, Code, Status, error
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.questions.queue import queue_answer
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from tests.scenarios.gangs import Cluster, coscheduling, nodes, of_object, play, pod_group


class Slow:
    """Holds the pod ``held`` at Permit for 30 seconds, and the pod ``slow`` in PreBind for 20."""

    name = "Slow"

    def __init__(self, args: object, handle: object) -> None:
        del args, handle

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        del state, node_name
        return (Status(Code.WAIT), 30.0) if pod.name == "held" else (SUCCESS, 0.0)

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        del state, node_name
        if pod.name == "slow":
            await aio.sleep(20)
        return SUCCESS


def with_plugin(plugin: type[Any]) -> dict[str, Any]:
    registry = in_tree_registry()
    registry.register(PluginEntry(plugin.name, plugin))
    enabled = PluginSet(enabled=[PluginRef(name=plugin.name)])
    profile = Profile(scheduler_name="default-scheduler", plugins=Plugins(multi_point=enabled))
    config = with_defaults(KubeSchedulerConfiguration(profiles=[profile]))
    return {"config": LoadedConfiguration(scheduler=config), "registry": registry}


def told(cluster: VirtualCluster, limit: int = 100) -> Any:
    """The answer as it goes over the wire, without the uids; times as seconds since the start."""
    now_ns = cluster.clock.now_ns()
    answer = queue_answer(cluster.scheduler.core, now_ns=now_ns, limit=limit, scheduling=True)
    found = msgspec.json.decode(msgspec.json.encode(answer))
    for pod in found["pods"]:
        assert pod.pop("uid")
        assert pod.pop("schedulerName") == "default-scheduler"
        assert pod.pop("namespace") == "default"
    return found


def without_times(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            name: value
            for name, value in pod.items()
            if name not in {"since", "until", "firstQueued"}
        }
        for pod in pods
    ]


NO_ROOM = (
    "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
    "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)
FIT_EVENTS = [
    "PodDelete",
    "PodUpdatePodScaleDown",
    "NodeAdd",
    "NodeUpdateNodeAllocatable",
    "NodeUpdateNodeTaint",
]


SIZES = {
    "active": 0,
    "in-flight": 0,
    "backoff": 0,
    "unschedulable": 1,
    "gated": 1,
    "permit": 1,
    "binding": 1,
}


REASONS = ["InsufficientCPU", "SchedulingGated", "RejectedByPlugin", ""]


def test_the_queue_answer_names_what_ends_the_wait_of_each_pod() -> None:
    clock = ManualClock()

    async def main() -> None:
        one = [node_manifest("n1", cpu="4")]
        async with VirtualCluster(clock, nodes=one, **with_plugin(Slow)) as cluster:
            await cluster.create_objects(
                pod_manifest("held", cpu="1"),
                pod_manifest("slow", cpu="1"),
                pod_manifest("gated", schedulingGates=[{"name": "quota"}]),
                pod_manifest("giant", cpu="64"),
            )
            queue = cluster.scheduler.core.queue
            await cluster.until(lambda: len(queue.pending().unschedulable) == 1)
            found = told(cluster)
            assert found["sizes"] == SIZES
            giant, gated, held, slow = without_times(found["pods"])
            assert [each.pop("reason", "") for each in (giant, gated, held, slow)] == REASONS
            events = giant.pop("wokenBy")
            assert [each["plugin"] for each in events] == ["NodeResourcesFit"]
            assert set(FIT_EVENTS) <= set(events[0]["events"])
            assert giant.pop("secondsLeft") == pytest.approx(300, abs=1)
            assert giant == {
                "queue": "unschedulable",
                "name": "giant",
                "attempts": 1,
                "plugins": ["NodeResourcesFit"],
                "message": NO_ROOM,
            }
            assert gated == {
                "queue": "gated",
                "name": "gated",
                "attempts": 0,
                "plugins": ["SchedulingGates"],
                "message": "waiting for scheduling gates: [quota]",
                "wokenBy": [
                    {
                        "plugin": "SchedulingGates",
                        "events": ["PodUpdatePodSchedulingGatesEliminated"],
                    }
                ],
            }
            assert held.pop("secondsLeft") == pytest.approx(30, abs=1)
            assert held == {"queue": "permit", "name": "held", "plugins": ["Slow"], "node": "n1"}
            assert slow == {"queue": "binding", "name": "slow", "node": "n1", "step": "PreBind"}

            # What is told is what happens: both waits end at the moment told.
            await cluster.until(lambda: cluster.node_of("slow") == "n1", seconds=21)
            await cluster.until(lambda: not told(cluster)["sizes"]["permit"], seconds=31)
            retried = [each for each in told(cluster)["pods"] if each["name"] == "held"]
            assert retried[0]["message"] == (
                "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin "
                "Slow."
            )

    run_virtual(main(), clock)


class Broken:
    """Reserve fails for the pod ``errored``: an error, so that the pod backs off."""

    name = "Broken"

    def __init__(self, args: object, handle: object) -> None:
        del args, handle

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        del state, node_name
        return error("the books are gone") if pod.name == "errored" else SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        del state, pod, node_name


def test_a_pod_leaves_backoff_in_the_second_after_the_moment_told() -> None:
    clock = ManualClock()

    async def main() -> None:
        one = [node_manifest("n1", cpu="4")]
        async with VirtualCluster(clock, nodes=one, **with_plugin(Broken)) as cluster:
            queue = cluster.scheduler.core.queue
            await cluster.create_objects(pod_manifest("errored"))
            await cluster.until(lambda: queue.counts().backoff == 1)
            (found,) = told(cluster)["pods"]
            until_ns = parse_rfc3339(found["until"])
            left = found["secondsLeft"]
            assert 0 < left <= 2
            assert without_times([found]) == [
                {
                    "queue": "backoff",
                    "name": "errored",
                    "attempts": 1,
                    "secondsLeft": left,
                    "message": 'running Reserve plugin "Broken": the books are gone',
                    "reason": "SchedulerError",
                }
            ]
            await cluster.until(lambda: told(cluster)["pods"][0].get("attempts") != 1)
            assert 0 <= (clock.now_ns() - until_ns) / NS_PER_SECOND < 1.1

    run_virtual(main(), clock)


def test_members_of_a_group_without_room_say_what_their_group_says() -> None:
    """Members that had a place say why the group has none, whichever of them comes first."""

    async def scenario(live: Cluster) -> None:
        names = ("a", "b", "c", "d")
        await live.create_objects(
            pod_group("g", least=4), *(of_object(name, of="g", cpu="1") for name in names)
        )
        await live.until(lambda: all(live.condition_of(name)[2] for name in names))
        answer = told(live)
        (group,) = answer["groups"]
        texts = [live.condition_of(name)[2] for name in names]
        full = f"pod group is unschedulable: {group['message']}"
        assert group["message"].startswith("3 of 4 pods tried have a place, default/")
        assert {text for text in texts if text.startswith("pod group is")} == {full}
        assert group["reason"] == "GroupUnschedulable"
        waiting = {(each["reason"], each["message"]) for each in answer["pods"]}
        assert waiting == {("GroupUnschedulable", group["message"])}

    play(scenario, cluster=nodes(3), config=coscheduling())


def test_a_group_says_how_many_members_it_has_and_lacks() -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(
            pod_group("g", least=3),
            of_object("a", of="g"),
            of_object("b", of="g"),
            of_object("c", of="g", schedulingGates=[{"name": "quota"}]),
            of_object("lost", of="nowhere"),
        )
        queue = live.scheduler.core.queue
        await live.until(lambda: len(queue.pending().queued_pods()) == 4)
        await live.until(lambda: not queue.pending().active)
        assert told(live)["groups"] == [
            {
                "namespace": "default",
                "name": "g",
                "source": "custom",
                "minimum": 3,
                "succeeded": 0,
                "members": 3,
                "placed": 0,
                "waiting": 3,
                "gated": 1,
                "atPermit": 0,
                "message": "0/3 nodes are available: pre-filter pod a cannot proceed due to gated "
                "pods in the same PodGroup.",
                "reason": "GroupIncomplete",
            },
            {
                "namespace": "default",
                "name": "nowhere",
                "source": "custom",
                "minimum": None,
                "succeeded": 0,
                "members": 1,
                "placed": 0,
                "waiting": 1,
                "gated": 0,
                "atPermit": 0,
                "message": "PodGroup default/nowhere not found",
                "reason": "GroupMissing",
            },
        ]
        assert {each["name"]: each["group"] for each in told(live)["pods"]} == {
            "a": "default/g",
            "b": "default/g",
            "c": "default/g",
            "lost": "default/nowhere",
        }

    play(scenario, cluster=nodes(3), config=coscheduling())
