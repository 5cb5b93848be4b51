"""The status of coscheduling's pod groups: the phase by what the pods do, and its order."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.pod import Pod
from moorage.api.resources import CORE_EVENTS, PODS
from moorage.controllers.pod_groups import group_of, group_status
from moorage.workloads.objects import Whole
from moorage_sandbox.testing.builders import pod
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import every, play, stored
from tests.scenarios.gangs import of_object, pod_group

NOW_NS = 1_000 * 10**9
RUNS, ENDED, BROKE = ("n", "Running"), ("n", "Succeeded"), ("n", "Failed")
BOUND, WAITS, ERRED = ("n", "Pending"), ("", "Pending"), ("", "error")


def member(index: int, node: str, phase: str) -> Pod:
    conditions = []
    if not node:
        reason = "SchedulerError" if phase == "error" else "Unschedulable"
        conditions = [{"type": "PodScheduled", "status": "False", "reason": reason}]
    status = {"phase": "Pending" if phase == "error" else phase, "conditions": conditions}
    metadata = {"namespace": "default", "name": f"p{index}"}
    return from_dict(Pod, {"metadata": metadata, "spec": {"nodeName": node}, "status": status})


@pytest.mark.parametrize(
    ("before", "pods", "after"),
    [
        pytest.param("", [], "Pending", id="a new group"),
        pytest.param("", [WAITS] * 2, "Pending", id="too few pods"),
        pytest.param("Scheduling", [WAITS] * 2, "Pending", id="too few pods are left"),
        pytest.param("Pending", [WAITS] * 3, "Scheduling", id="enough pods"),
        pytest.param("Scheduling", [BOUND, BOUND, WAITS], "Scheduling", id="while being bound"),
        pytest.param("Scheduling", [BOUND, RUNS, ERRED], "Degraded", id="one could not be bound"),
        pytest.param("Scheduling", [WAITS, WAITS, ERRED], "Scheduling", id="none has a node"),
        pytest.param("Scheduling", [BOUND] * 3, "Scheduling", id="all bound, none runs yet"),
        pytest.param("Scheduling", [RUNS] * 3, "Running", id="enough run"),
        pytest.param("Scheduling", [RUNS] * 3 + [WAITS], "Running", id="more than enough pods"),
        pytest.param("Running", [RUNS, RUNS, WAITS], "Degraded", id="one was replaced"),
        pytest.param("Running", [RUNS, RUNS], "Degraded", id="one is gone"),
        pytest.param("Degraded", [RUNS] * 3, "Running", id="whole again"),
        pytest.param("Degraded", [WAITS] * 3, "Scheduling", id="all were replaced"),
        pytest.param("Running", [ENDED, RUNS, RUNS], "Running", id="one is done"),
        pytest.param("Running", [BROKE, RUNS, RUNS], "Failed", id="one failed"),
        pytest.param("Running", [ENDED] * 3, "Finished", id="enough are done"),
        pytest.param("Running", [ENDED] * 3 + [BROKE], "Finished", id="done, though one failed"),
    ],
)
def test_the_phase_of_a_pod_group(before: str, pods: list[tuple[str, str]], after: str):
    group = from_dict(Whole, {"spec": {"minMember": 3}, "status": {"phase": before}})
    status = group_status(group, [member(i, *each) for i, each in enumerate(pods)], now_ns=NOW_NS)
    assert status["phase"] == after


def test_the_whole_status():
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    group = from_dict(Whole, {"metadata": {"namespace": "default"}, "spec": {"minMember": 2}})
    made = from_dict(
        Pod,
        {
            "metadata": {"namespace": "default", "name": "a", "ownerReferences": [owner]},
            "spec": {"nodeName": "n"},
            "status": {"phase": "Running"},
        },
    )
    others = [member(1, *RUNS), member(2, *WAITS), member(3, *WAITS)]
    assert group_status(group, [made, *others], now_ns=NOW_NS) == {
        "phase": "Running",
        "scheduled": 2,
        "running": 2,
        "succeeded": None,
        "failed": None,
        "scheduleStartTime": "1970-01-01T00:16:40Z",
        "occupiedBy": "default/j",
    }


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"scheduling.x-k8s.io/pod-group": "g"}, "g", id="today's label"),
        pytest.param({"pod-group.scheduling.sigs.k8s.io": "g"}, "g", id="the one before"),
        pytest.param(
            {"scheduling.x-k8s.io/pod-group": "g", "pod-group.scheduling.sigs.k8s.io": "h"},
            "g",
            id="today's comes first",
        ),
    ],
)
def test_the_group_of_a_pod(labels: dict[str, str], expected: str | None):
    assert group_of(pod("p", labels=labels)) == (None if expected is None else ("default", "g"))


def test_the_phases_of_a_group_from_creation_to_its_end():
    """The scheduler of this cluster has no Coscheduling: a status is about pods."""

    def status(cluster: VirtualCluster) -> Any:
        return stored(cluster, COSCHEDULING_POD_GROUPS, "g").get("status") or {}

    def told(cluster: VirtualCluster) -> list[str]:
        events = every(cluster, CORE_EVENTS)
        return [each["message"] for each in events if each["reason"] == "Degraded"]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.client.create(
            COSCHEDULING_POD_GROUPS, pod_group(least=2), namespace="default"
        )
        await cluster.until(lambda: status(cluster).get("phase") == "Pending")
        await cluster.create_objects(of_object("a"), of_object("b"))
        await cluster.until(lambda: status(cluster).get("phase") == "Running")
        await cluster.until(lambda: status(cluster).get("running") == 2)
        await cluster.client.delete(PODS, "a", namespace="default")
        await cluster.until(lambda: status(cluster).get("phase") == "Degraded", seconds=60)
        # The Event is written on its own, after the status.
        await cluster.until(lambda: bool(told(cluster)))
        assert told(cluster) == ["1 of at least 2 pods have a node, others are gone"]
        await cluster.create_objects(of_object("c"))
        await cluster.until(lambda: status(cluster).get("phase") == "Running", seconds=60)

    play(scenario)
