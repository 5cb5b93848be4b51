"""Pods of DaemonSets that leave their nodes: one successor, where the set may run."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.what_if.change import AddTaint
from moorage.what_if.course import try_steps
from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.what_if.cluster import inputs_of, pod_of, replica_set


def _daemon_set(*tolerations: Manifest) -> list[Manifest]:
    """Return a DaemonSet and its pods on the three nodes."""
    daemon_set = replica_set("agent", 0, cpu="100m")
    daemon_set["kind"] = "DaemonSet"
    del daemon_set["spec"]["replicas"]
    daemon_set["spec"]["template"]["spec"]["tolerations"] = list(tolerations)
    pods = [_pod(number, list(tolerations)) for number in (1, 2, 3)]
    return [daemon_set, *pods]


def _pod(number: int, tolerations: list[Manifest]) -> Manifest:
    """Return a pod that is pinned to its node, as a DaemonSet makes it."""
    name = f"n{number}"
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    pinned = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    pod = pod_of("agent", number, name, cpu="100m", tolerations=tolerations, affinity=pinned)
    pod["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    return pod


_FOR_A_WHILE: dict[str, Any] = {
    "key": "k",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 8,
}


@pytest.mark.parametrize(
    ("tolerations", "moves", "ends"),
    [
        pytest.param([], [], ["default/agent-1"], id="without a toleration it ends"),
        pytest.param([{"operator": "Exists"}], [], [], id="a toleration lets it stay"),
        pytest.param(
            [_FOR_A_WHILE], ["default/agent-1"], [], id="after its toleration it is made again once"
        ),
    ],
)
def test_a_taint_that_evicts_a_pod_of_a_daemon_set(
    tolerations: list[Manifest], moves: list[str], ends: list[str]
) -> None:
    course = try_steps(
        inputs_of(*_daemon_set(*tolerations)), [AddTaint("n1", "k", "v", "NoExecute")]
    )
    assert [(each.pod, each.to_node) for each in course.moves] == [(name, "n1") for name in moves]
    assert [each.pod for each in course.ended] == ends
    assert course.starts == ()
    assert not course.lost
    assert not course.newly_pending
