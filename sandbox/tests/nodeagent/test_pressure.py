"""Nodes under pressure: conditions, refusals, and which pod is evicted first."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base import aio
from moorage_sandbox.nodeagent.pressure import (
    MEMORY,
    PRESSURES,
    eviction_text,
    pressures_of,
    victim_of,
    why_not_admitted,
)
from sandbox.tests.nodeagent.memory_api import MemoryApi
from sandbox.tests.nodeagent.test_agents import phases, play
from sandbox.tests.nodeagent.test_agents import pod as bound_pod

DISK, PID = PRESSURES[1:]
TOLERATION = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}


def node(*annotations: str, value: str = "true") -> Node:
    told = {f"moorage.dev/{each}-pressure": value for each in annotations}
    return from_dict(Node, {"metadata": {"name": "n", "annotations": told}})


def pod(
    name: str = "p", *, priority: int = 0, request: str = "", usage: str = "", **spec: Any
) -> Pod:
    resources = {"requests": {"memory": request}} if request else {}
    annotations = {"moorage.dev/memory-usage": usage} if usage else {}
    return from_dict(
        Pod,
        {
            "metadata": {"namespace": "default", "name": name, "annotations": annotations},
            "spec": {
                "priority": priority,
                "containers": [{"name": "main", "resources": resources}],
                **spec,
            },
        },
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(node(), [], id="none"),
        pytest.param(node("pid", "memory"), [MEMORY, PID], id="memory leads"),
        pytest.param(node("disk", value="false"), [], id="only true counts"),
    ],
)
def test_the_pressures_of_a_node_follow_from_its_use(found, expected):
    assert pressures_of(found) == expected


@pytest.mark.parametrize(
    ("asked", "found", "why"),
    [
        pytest.param(pod(), node(), "", id="no pressure"),
        pytest.param(
            pod(),
            node("memory"),
            "The node had condition: [MemoryPressure]. ",
            id="a best-effort pod under memory pressure",
        ),
        pytest.param(pod(request="1Gi"), node("memory"), "", id="a pod that requests memory"),
        pytest.param(
            pod(tolerations=[TOLERATION]), node("memory"), "", id="a pod that tolerates the taint"
        ),
        pytest.param(
            pod(request="1Gi"),
            node("memory", "disk"),
            "The node had condition: [MemoryPressure, DiskPressure]. ",
            id="any pod under two pressures",
        ),
        pytest.param(
            pod(request="1Gi"),
            node("pid"),
            "The node had condition: [PIDPressure]. ",
            id="any pod under PID pressure",
        ),
        pytest.param(pod(priority=2_000_000_000), node("disk"), "", id="a critical pod"),
    ],
)
def test_pods_are_admitted_under_pressure_by_qos_class_and_tolerations(asked, found, why):
    assert why_not_admitted(asked, found) == why


@pytest.mark.parametrize(
    ("pressure", "pods", "victim"),
    [
        pytest.param(MEMORY, [], None, id="no pod"),
        pytest.param(
            MEMORY,
            [pod("low"), pod("over", priority=9, request="1Gi", usage="2Gi")],
            "over",
            id="a pod above its request goes before one of less priority",
        ),
        pytest.param(
            MEMORY,
            [pod("high", priority=9), pod("low", priority=-1, request="1Gi")],
            "low",
            id="then the lower priority",
        ),
        pytest.param(
            MEMORY,
            [pod("a", request="4Gi", usage="5Gi"), pod("b", request="1Gi", usage="3Gi")],
            "b",
            id="then the larger excess over the request",
        ),
        pytest.param(MEMORY, [pod("b"), pod("a")], "a", id="then the name"),
        pytest.param(
            DISK,
            [pod("a", priority=1, request="1Gi", usage="9Gi"), pod("b")],
            "b",
            id="memory does not count under disk pressure",
        ),
        pytest.param(PID, [pod("a", priority=2_000_000_000)], None, id="no critical pod"),
    ],
)
def test_the_first_evicted_pod_follows_the_kubelets_ranking(pressure, pods, victim):
    found = victim_of(pressure, pods)
    assert (found and found.name) == victim


def test_the_message_names_containers_above_their_request():
    assert eviction_text(MEMORY, pod(request="1Gi", usage="2Gi")) == (
        "The node was low on resource: memory. Container main was using 2Gi, request is 1Gi, "
        "has larger consumption of memory. "
    )
    assert eviction_text(DISK, pod()) == "The node was low on resource: ephemeral-storage. "


def conditions(api: MemoryApi) -> dict[str, str]:
    found = api.get("nodes", "node-01", "")["status"]["conditions"]
    return {each["type"]: each["status"] for each in found}


def annotated(value: str | None) -> dict[str, Any]:
    return {"metadata": {"annotations": {"moorage.dev/memory-pressure": value}}}


def test_a_node_under_pressure_says_so_and_evicts_a_pod_every_ten_seconds():
    async def scene(api: MemoryApi) -> None:
        api.put("pods", bound_pod("calm", requests={"memory": "1Gi"}, priority=7))
        big = {"memory-usage": "2Gi"}
        api.put("pods", bound_pod("big", requests={"memory": "1Gi"}, say=big, priority=9))
        api.put("pods", bound_pod("critical", priority=2_000_000_000))
        api.put("pods", bound_pod("elsewhere", node="node-02"))
        await aio.sleep(5)
        api.change("nodes", "", "node-01", annotated("true"))
        await aio.sleep(9)
        assert conditions(api) == {
            "MemoryPressure": "True",
            "DiskPressure": "False",
            "PIDPressure": "False",
            "Ready": "True",
        }
        assert phases(api, "big")[-1] == "Running"
        await aio.sleep(2)
        assert phases(api, "big")[-1] == "Failed Evicted"
        assert phases(api, "calm")[-1] == "Running"
        await aio.sleep(10)
        assert phases(api, "calm")[-1] == "Failed Evicted"
        await aio.sleep(20)
        api.put("pods", bound_pod("late", requests={}))
        await aio.sleep(1)
        api.change("nodes", "", "node-01", annotated(None))
        await aio.sleep(1)
        assert conditions(api)["MemoryPressure"] == "False"
        api.put("pods", bound_pod("later", requests={}))
        await aio.sleep(60)

    api = play(scene)
    assert {name: phases(api, name)[-1] for name in ("critical", "elsewhere", "late", "later")} == {
        "critical": "Running",
        "elsewhere": "Running",
        "late": "Failed Evicted",
        "later": "Running",
    }
    status = api.get("pods", "big")["status"]
    [target] = [each for each in status["conditions"] if each["type"] == "DisruptionTarget"]
    assert (target["status"], target["reason"]) == ("True", "TerminationByKubelet")
    assert target["message"] == status["message"]
    assert status["message"].startswith("The node was low on resource: memory. Container main was")
    events = [obj for (plural, _, _), obj in api.objects.items() if plural == "events"]
    assert ("Evicted", "Evicting") in {(each["reason"], each["action"]) for each in events}
