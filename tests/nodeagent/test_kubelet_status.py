"""The statuses of a pod with init containers and a sidecar, whole, at each step."""

from __future__ import annotations

from typing import Any

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.nodeagent import kubelet_status
from moorage.nodeagent.kubelet_status import ConditionTimes, PodFacts

POD = from_dict(
    Pod,
    {
        "metadata": {"name": "p", "generation": 3},
        "spec": {
            "initContainers": [
                {"name": "prepare", "image": "i"},
                {"name": "sidecar", "image": "s", "restartPolicy": "Always"},
            ],
            "containers": [{"name": "main", "image": "m"}],
        },
    },
)
FACTS = PodFacts("10.0.0.1", "10.128.0.1", "T0", "T1")


def brief(status: dict[str, Any]) -> dict[str, Any]:
    """Conditions and containers in one line each."""
    return {
        "phase": status["phase"],
        "conditions": {
            c["type"]: (c["status"], c["reason"], c["lastTransitionTime"], c["observedGeneration"])
            for c in status["conditions"]
        },
        "containers": {
            c["name"]: (c["ready"], c["started"], *c["state"])
            for key in ("initContainerStatuses", "containerStatuses")
            for c in status[key]
        },
    }


def test_steps():
    times: ConditionTimes = {}
    assert brief(kubelet_status.creating(POD, FACTS, times)) == {
        "phase": "Pending",
        "conditions": {
            "PodReadyToStartContainers": ("False", None, "T0", 3),
            "Initialized": ("False", "ContainersNotInitialized", "T0", 3),
            "Ready": ("False", "ContainersNotReady", "T0", 3),
            "ContainersReady": ("False", "ContainersNotReady", "T0", 3),
        },
        "containers": {
            "prepare": (False, False, "waiting"),
            "sidecar": (False, False, "waiting"),
            "main": (False, False, "waiting"),
        },
    }
    assert brief(kubelet_status.running(POD, FACTS, times)) == {
        "phase": "Running",
        "conditions": {
            "PodReadyToStartContainers": ("True", None, "T1", 3),
            "Initialized": ("True", None, "T1", 3),
            "Ready": ("True", None, "T1", 3),
            "ContainersReady": ("True", None, "T1", 3),
        },
        "containers": {
            "prepare": (True, False, "terminated"),
            "sidecar": (True, True, "running"),
            "main": (True, True, "running"),
        },
    }
    assert brief(kubelet_status.ended(POD, FACTS, times, exit_code=0, now="T2")) == {
        "phase": "Succeeded",
        "conditions": {
            "PodReadyToStartContainers": ("False", None, "T2", 3),
            "Initialized": ("True", "PodCompleted", "T1", 3),
            "Ready": ("False", "PodCompleted", "T2", 3),
            "ContainersReady": ("False", "PodCompleted", "T2", 3),
        },
        "containers": {
            "prepare": (True, False, "terminated"),
            "sidecar": (False, False, "terminated"),
            "main": (False, False, "terminated"),
        },
    }


def test_a_pod_without_init_containers_is_initialized_from_the_start():
    plain = from_dict(Pod, {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}})
    status: dict[str, Any] = kubelet_status.creating(plain, FACTS, {})
    by_type = {c["type"]: c for c in status["conditions"]}
    assert by_type["Initialized"]["status"] == "True"
    assert by_type["Ready"]["message"] == "containers with unready status: [a b]"
    assert status["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert "initContainerStatuses" not in status


def test_a_refused_pod_keeps_a_kubelets_words():
    assert kubelet_status.refused(POD, reason="OutOfcpu", message="why", now="T0") == {
        "phase": "Failed",
        "reason": "OutOfcpu",
        "message": "Pod was rejected: why",
        "startTime": "T0",
        "qosClass": "BestEffort",
    }
