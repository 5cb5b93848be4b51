"""The names of cluster events in metrics of each version."""

import pytest

from moorage.observe.event_names import event_names


@pytest.mark.parametrize(
    ("label", "since_1_37"),
    [
        pytest.param("UnschedulablePodAdd", "UnscheduledPodAdd", id="a pod without a node"),
        pytest.param("UnschedulablePodDelete", "UnscheduledPodDelete", id="it went"),
        pytest.param("UnschedulablePodUpdate", "TargetPodUpdate", id="the waiting pod changed"),
        pytest.param(
            "UnschedulablePodUpdatePodLabel", "TargetPodUpdatePodLabel", id="a part of it changed"
        ),
        pytest.param("AssignedPodUpdatePodLabel", "AssignedPodUpdatePodLabel", id="with a node"),
        pytest.param("UnschedulableTimeout", "UnschedulableTimeout", id="the flush"),
        pytest.param("NodeAdd", "NodeAdd", id="no pod"),
    ],
)
def test_1_37_has_other_names_of_events_of_pods(label: str, since_1_37: str) -> None:
    assert event_names("1.36")(label) == label
    assert event_names("1.37")(label) == since_1_37
