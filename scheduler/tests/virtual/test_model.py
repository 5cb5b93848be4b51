"""Time passes in a model as it does in a sandbox."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api.meta import Condition
from moorage.nodeshapes.annotations import STOP_SECONDS
from moorage.virtual.model import ClusterModel
from scheduler.tests.what_if.cluster import bare, inputs_of


@pytest.mark.parametrize(
    ("phase", "pod_ip", "left"),
    [
        pytest.param("Pending", "", True, id="nothing has to stop before the first container"),
        pytest.param("Pending", "10.0.0.1", False, id="init containers stop first"),
        pytest.param("Running", "10.0.0.1", False, id="containers stop first"),
    ],
)
def test_a_deleted_pod_leaves_when_its_containers_have_stopped(
    phase: str, pod_ip: str, left: bool
) -> None:
    """The agent of its node removes a pod at once that has no container yet."""
    manifest = bare("slow", "n1", annotations={STOP_SECONDS: "20"})
    manifest["status"] = {"phase": phase, "podIP": pod_ip}
    model = ClusterModel(inputs_of(manifest))
    model.leave(model.objects.pods["default", "slow"])
    model.settle(within_seconds=5.0)
    assert (("default", "slow") not in model.objects.pods) == left
    model.settle(within_seconds=20.0)
    assert ("default", "slow") not in model.objects.pods


def test_a_victim_says_that_it_is_preempted() -> None:
    """Its preemptor waits for it, and does not preempt again."""
    victim = bare("victim", "n1", cpu="4", priority=-1, annotations={STOP_SECONDS: "20"})
    victim["status"] = {"phase": "Running", "podIP": "10.0.0.1"}
    model = ClusterModel(inputs_of(victim, bare("high", cpu="4"), nodes=1))
    model.settle(within_seconds=1.0)
    conditions = model.objects.pods["default", "victim"].status.conditions
    assert [msgspec.structs.replace(each, last_transition_time=None) for each in conditions] == [
        Condition(
            type="DisruptionTarget",
            status="True",
            reason="PreemptionByScheduler",
            message="default-scheduler: preempting to accommodate a higher priority pod",
        )
    ]
