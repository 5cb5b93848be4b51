"""The statuses of a pod with init containers and a sidecar, whole, at each step."""

from __future__ import annotations

from typing import Any

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage_sandbox.nodeagent import kubelet_status
from moorage_sandbox.nodeagent.kubelet_status import ConditionTimes, PodFacts
from moorage_sandbox.nodeagent.pod_containers import PodContainers

POD = from_dict(
    Pod,
    {
        "metadata": {
            "name": "p",
            "generation": 3,
            "annotations": {"moorage.dev/run-seconds": "20"},
        },
        "spec": {
            "restartPolicy": "Never",
            "initContainers": [
                {"name": "prepare", "image": "i"},
                {"name": "sidecar", "image": "s", "restartPolicy": "Always"},
            ],
            "containers": [{"name": "main", "image": "m"}],
        },
    },
)
NEW = PodFacts("10.0.0.1", "", "T0")
FACTS = PodFacts("10.0.0.1", "10.128.0.1", "T0")


def at(seconds: int) -> int:
    return (1000 + seconds) * NS_PER_SECOND


def brief(status: dict[str, Any]) -> dict[str, Any]:
    """Conditions and containers in one line each; times as seconds since the first step."""
    second = {rfc3339(at(each)): each for each in range(60)}
    return {
        "phase": status["phase"],
        "conditions": {
            c["type"]: (
                c["status"],
                c["reason"],
                second[c["lastTransitionTime"]],
                c["observedGeneration"],
            )
            for c in status["conditions"]
        },
        "containers": {
            c["name"]: (c["ready"], c["started"], *c["state"])
            for key in ("initContainerStatuses", "containerStatuses")
            for c in status[key]
        },
    }


def test_statuses_of_a_pod_with_init_containers_at_each_step():
    times: ConditionTimes = {}
    containers = PodContainers(POD)
    assert brief(kubelet_status.report(POD, NEW, times, containers, now_ns=at(0))) == {
        "phase": "Pending",
        "conditions": {
            "PodReadyToStartContainers": ("False", None, 0, 3),
            "Initialized": ("False", "ContainersNotInitialized", 0, 3),
            "Ready": ("False", "ContainersNotReady", 0, 3),
            "ContainersReady": ("False", "ContainersNotReady", 0, 3),
        },
        "containers": {
            "prepare": (False, False, "waiting"),
            "sidecar": (False, False, "waiting"),
            "main": (False, False, "waiting"),
        },
    }
    containers.advance(POD, at(1))
    assert brief(kubelet_status.report(POD, FACTS, times, containers, now_ns=at(1))) == {
        "phase": "Running",
        "conditions": {
            "PodReadyToStartContainers": ("True", None, 1, 3),
            "Initialized": ("True", None, 1, 3),
            "Ready": ("True", None, 1, 3),
            "ContainersReady": ("True", None, 1, 3),
        },
        "containers": {
            "prepare": (True, False, "terminated"),
            "sidecar": (True, True, "running"),
            "main": (True, True, "running"),
        },
    }
    containers.advance(POD, at(21))
    containers.stop(POD, at(21))
    assert brief(kubelet_status.report(POD, FACTS, times, containers, now_ns=at(21))) == {
        "phase": "Succeeded",
        "conditions": {
            "PodReadyToStartContainers": ("False", None, 21, 3),
            "Initialized": ("True", "PodCompleted", 1, 3),
            "Ready": ("False", "PodCompleted", 21, 3),
            "ContainersReady": ("False", "PodCompleted", 21, 3),
        },
        "containers": {
            "prepare": (True, False, "terminated"),
            "sidecar": (False, False, "terminated"),
            "main": (False, False, "terminated"),
        },
    }


def test_a_pod_without_init_containers_is_initialized_from_the_start():
    plain = from_dict(Pod, {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}})
    status: dict[str, Any] = kubelet_status.report(
        plain, NEW, {}, PodContainers(plain), now_ns=at(0)
    )
    by_type = {c["type"]: c for c in status["conditions"]}
    assert by_type["Initialized"]["status"] == "True"
    assert by_type["Ready"]["message"] == "containers with unready status: [a b]"
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert "initContainerStatuses" not in status


def test_a_refused_pod_keeps_a_kubelets_words():
    third = from_dict(Pod, {"metadata": {"generation": 3}, "spec": {}})
    assert kubelet_status.refused(third, reason="OutOfcpu", message="why", now="T0") == {
        "observedGeneration": 3,
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": "Pod was rejected: why",
        "startTime": "T0",
        "qosClass": "BestEffort",
    }
