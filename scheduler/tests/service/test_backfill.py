"""Room held back for a group that waits (``holdBackAfterSeconds``), on a live scheduler.

Single pods that run for 20 s keep coming, so that two nodes are never free at once. That the group
is never delayed is told by ``scheduler/tests/engine/groups/test_reserved_room.py``.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api.resources import NODES
from moorage.base import aio
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.config.own import LoadedConfiguration
from moorage_sandbox.testing.builders import Manifest, pod_manifest
from tests.scenarios.gangs import Cluster, coscheduling, nodes, of_object, play, pod_group
from tests.scenarios.test_preemption import priority

GROUP = ["g0", "g1"]


def holding(after_seconds: float | None) -> LoadedConfiguration:
    config = coscheduling()
    (profile,) = config.own.profiles
    held = msgspec.structs.replace(profile, hold_back_after_seconds=after_seconds)
    return msgspec.structs.replace(config, own=msgspec.structs.replace(config.own, profiles=[held]))


def single(name: str, *, runs: int | None, **fields: Any) -> Manifest:
    annotations = {
        "moorage.dev/run-seconds": str(runs),
        "moorage.dev/start-seconds": "0.1",
        "moorage.dev/stop-seconds": "0.1",
    }
    return pod_manifest(
        name, cpu="1", annotations=annotations if runs else None, restartPolicy="Never", **fields
    )


async def busy(live: Cluster) -> None:
    """Let two pods run that end ten seconds apart, then create a group that needs both nodes."""
    await live.create_objects(single("s0", runs=20))
    await aio.sleep(10)
    await live.create_objects(single("s1", runs=20))
    await live.until(lambda: live.bound("s0", "s1") == 2)
    await live.create_objects(pod_group(least=2), *(of_object(name) for name in GROUP))
    await aio.sleep(5)


async def seconds_until_it_starts(live: Cluster, *, pods: int) -> float | None:
    """Create a pod that runs for 20 s every eight seconds; return when the group starts."""
    began, number = live.seconds, 2
    while number < 2 + pods:
        if (live.seconds - began) // 8 >= number - 2:
            await live.create_objects(single(f"s{number}", runs=20))
            number += 1
        if live.bound(*GROUP) == 2:
            return live.seconds - began
        await aio.sleep(0.5)
    return None


def test_a_group_starts_when_the_pods_that_run_have_ended_although_others_keep_coming():
    async def scenario(live: Cluster) -> None:
        await busy(live)  # the second pod ends 15 seconds later
        waited = await seconds_until_it_starts(live, pods=10)
        assert waited is not None
        assert 14 < waited < 18

    play(scenario, cluster=nodes(2), config=holding(2))


def test_without_the_setting_a_group_waits_as_long_as_others_keep_coming():
    async def scenario(live: Cluster) -> None:
        await busy(live)
        assert await seconds_until_it_starts(live, pods=10) is None

    play(scenario, cluster=nodes(2), config=holding(None))


def test_a_pod_that_ends_too_late_for_backfill_names_the_group_it_waits_for():
    async def scenario(live: Cluster) -> None:
        await busy(live)
        await aio.sleep(7)  # one node is free, and the other will be in eight seconds
        await live.create_objects(single("long", runs=20), single("unknown", runs=None))
        await live.create_objects(single("short", runs=3))
        await live.until(lambda: live.bound("short") == 1, seconds=1)
        text = "2 node(s) held back for pod group default/g"
        await aio.sleep(2)
        assert [text in live.message_of(name) for name in ("long", "unknown")] == [True, True]
        await live.until(lambda: live.bound(*GROUP) == 2, seconds=12)
        assert live.bound("long", "unknown") == 0
        await live.delete(*GROUP)
        await live.until(lambda: live.bound("long", "unknown") == 2, seconds=3)

    play(scenario, cluster=nodes(2), config=holding(2))


def test_earlier_work_and_work_of_higher_priority_is_not_held_back():
    async def scenario(live: Cluster) -> None:
        await live.create_objects(
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "high"},
                "value": 100,
            }
        )
        await busy(live)
        await aio.sleep(7)
        await live.create_objects(single("high", runs=None, priorityClassName="high"))
        await live.until(lambda: live.bound("high") == 1, seconds=1)

    play(scenario, cluster=nodes(2), config=holding(2))


def test_room_is_let_go_when_the_group_lacks_pods():
    async def scenario(live: Cluster) -> None:
        await busy(live)
        await aio.sleep(7)
        await live.create_objects(single("long", runs=20))
        await live.until(lambda: "held back" in live.message_of("long"), seconds=2)
        await live.delete("g0")
        await live.until(lambda: live.bound("long") == 1, seconds=12)

    play(scenario, cluster=nodes(2), config=holding(2))


def test_a_group_that_no_end_helps_does_not_take_the_room_of_the_head():
    """The group of three ranks before the head, and never fits two nodes."""

    async def scenario(live: Cluster) -> None:
        await busy(live)
        large = [of_object(f"h{i}", of="h", priorityClassName="high") for i in range(3)]
        high = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 100,
            "preemptionPolicy": "Never",
        }
        await aio.sleep(7)  # one node is free, and the other will be in eight seconds
        await live.create_objects(single("long", runs=40))
        await live.create_objects(high, pod_group("h", least=3), *large)
        await live.until(lambda: live.bound(*GROUP) == 2, seconds=12)

    play(scenario, cluster=nodes(2), config=holding(2))


@pytest.mark.parametrize(
    "what",
    [
        pytest.param("pod", id="an endless pod of higher priority takes a node"),
        pytest.param("closed", id="a node is closed"),
        pytest.param("gone", id="a node is deleted"),
        pytest.param("smaller", id="a node is replaced by a smaller one"),
        pytest.param("group", id="the group is deleted"),
    ],
)
def test_a_head_that_can_never_start_holds_no_room_back(what: str) -> None:
    """Nodes of one pod each: one is kept by a pod that runs on, the other is free."""

    async def scenario(live: Cluster) -> None:
        await live.create_objects(priority("high", 1000))
        await live.create_objects(single("s0", runs=60))
        await live.until(lambda: live.bound("s0") == 1)
        free = "n1" if live.node_of("s0") == "n0" else "n0"
        await live.create_objects(pod_group(least=2), *(of_object(name) for name in GROUP))
        await aio.sleep(5)
        await live.create_objects(single("small", runs=None))
        await aio.sleep(3)
        assert live.bound("small") == 0  # room is held back
        if what == "pod":
            await live.create_objects(pod_manifest("endless", cpu="500m", priorityClassName="high"))
        elif what == "closed":
            await live.patch_object(NODES, live.node_of("s0"), {"spec": {"unschedulable": True}})
        elif what == "gone":
            await live.delete_node(live.node_of("s0"))
        elif what == "smaller":
            amount = {"status": {"allocatable": {"cpu": "500m"}, "capacity": {"cpu": "500m"}}}
            await live.client.patch(
                NODES, live.node_of("s0"), patch_body(amount),
                content_type=MERGE_PATCH, subresource="status",
            )  # fmt: skip
        else:
            await live.delete(*GROUP)
        if what == "pod":
            await live.delete("small")
            await live.create_objects(single("small", runs=None))
            await live.create_objects(pod_manifest("tiny", cpu="500m"))
            await live.until(lambda: live.bound("tiny") == 1, seconds=15)
            assert live.node_of("tiny") == free
        else:
            await live.until(lambda: live.bound("small") == 1, seconds=15)
            assert live.node_of("small") == free

    play(scenario, cluster=nodes(2), config=holding(2))


def test_a_pod_that_fits_a_reserved_node_beside_the_group_starts() -> None:
    async def scenario(live: Cluster) -> None:
        await live.create_objects(single("s0", runs=60))
        await live.until(lambda: live.bound("s0") == 1)
        await live.create_objects(
            pod_group(least=2), *(of_object(each, cpu="1500m") for each in GROUP)
        )
        await aio.sleep(5)
        await live.create_objects(pod_manifest("small", cpu="500m"))
        await live.until(lambda: live.bound("small") == 1, seconds=5)
        assert live.bound(*GROUP) == 0

    play(scenario, cluster=nodes(2, cpu="2"), config=holding(2))
