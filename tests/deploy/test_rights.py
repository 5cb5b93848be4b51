"""The roles of the chart hold exactly the rights that the scheduler uses.

Proved both ways in virtual time, by the authorizer of the embedded API server: with the rights all
works and each is used, and without any one of them something fails. Not covered: the rights about
callers of the secure port, which are roles of Kubernetes (tests/deploy/test_installed.py).
"""

from __future__ import annotations

import pytest

from moorage.base.errors import MoorageError
from tests.deploy.chart import Objects, kept, objects, rendered
from tests.deploy.rights import NAMESPACE, Right, granted, play, without
from tests.deploy.scenarios import FURTHER, SCENARIOS, Scenario

pytestmark = pytest.mark.slow

SECOND = objects(kept("second-scheduler.yaml"))

_LEASES = (NAMESPACE, "coordination.k8s.io", "leases")
_CLAIMS = ("", "resource.k8s.io", "resourceclaims")
_CHECKS: dict[Right, str] = {
    Right(*_LEASES, "create"): "keeps the lease",
    Right(*_LEASES, "get"): "keeps the lease",
    Right(*_LEASES, "update"): "keeps the lease",
    Right(*_LEASES, "watch"): "takes a released lease over at once",
    Right(NAMESPACE, "", "events", "create"): "keeps the lease",
    Right("", "", "pods", "delete"): "evicts a pod for another",
    Right("", "", "pods", "get"): "finds a binding whose answer was lost",
    Right("", "", "pods/binding", "create"): "places a pod and tells of it",
    Right("", "", "pods/status", "patch"): "tells why a pod has no place",
    Right("", "events.k8s.io", "events", "create"): "places a pod and tells of it",
    Right("", "events.k8s.io", "events", "patch"): "tells why a pod has no place",
    Right("", "", "persistentvolumes", "patch"): "binds a volume",
    Right("", "", "persistentvolumeclaims", "patch"): "has a volume made",
    Right("", "metrics.k8s.io", "nodes", "list"): "reads the loads of nodes",
    Right(*_CLAIMS, "create"): "makes the claim of an extended resource",
    Right(*_CLAIMS, "delete"): "takes back a claim that it made",
    Right(*_CLAIMS, "get"): "allocates a device that has changed",
    Right(*_CLAIMS, "patch"): "allocates a device",
    Right("", "resource.k8s.io", "resourceclaims/status", "patch"): "allocates a device",
    Right("", "resource.k8s.io", "resourceclaims/binding", "patch"): "allocates a device",
    Right("", "scheduling.k8s.io", "podgroups/status", "patch"): (
        "tells about PodGroups of Kubernetes"
    ),
    Right("", "scheduling.k8s.io", "compositepodgroups/status", "patch"): (
        "tells about CompositePodGroups"
    ),
    Right("", "", "pods", "patch"): "tells a pod its GPUs",
}


_NEEDED = {
    "jobs": ["coscheduling"],  # room is held back for groups
    "compositePodGroups": ["podGroups"],
}
"""The values that a value needs."""


def check_of(right: Right, scenarios: dict[str, Scenario]) -> str:
    """Return the name of the scenario that needs a right."""
    beginning = {"watch": "sees every change", "list": "sees "}.get(right.verb)
    if beginning is None or right in _CHECKS:
        return _CHECKS[right]
    end = "older server" if right.verb == "list" else "at once"
    (found,) = [n for n in scenarios if n.startswith(beginning) and n.endswith(end)]
    return found


def played(scenario: Scenario, with_rights: Objects) -> set[Right]:
    """Run a scenario; return the rights that were used."""
    return play(
        scenario.run,
        with_rights,
        nodes=scenario.nodes,
        config=scenario.config,
        streams_lists=scenario.streams_lists,
        script=scenario.script(),
    )


def of_chart(*values: str) -> Objects:
    """Return what the chart makes with more rights."""
    words = [word for value in values for word in ("--set", f"rights.{value}=true")]
    return objects(rendered("--namespace", NAMESPACE, *words))


def test_the_second_scheduler_uses_exactly_the_rights_it_has() -> None:
    used: set[Right] = set()
    for scenario in SCENARIOS.values():
        used |= played(scenario, SECOND)
    assert sorted(map(str, used)) == sorted(map(str, granted(SECOND)))


@pytest.mark.parametrize("right", sorted(granted(SECOND)), ids=str)
def test_without_one_right_something_fails(right: Right) -> None:
    scenario = SCENARIOS[check_of(right, SCENARIOS)]
    with pytest.raises((AssertionError, TimeoutError, MoorageError)):
        played(scenario, without(SECOND, right))


@pytest.mark.kubectl
@pytest.mark.parametrize("value", sorted(FURTHER))
def test_a_further_value_gives_exactly_the_rights_that_are_used_then(value: str) -> None:
    others = _NEEDED.get(value, [])
    chart, before = of_chart(value, *others), granted(of_chart(*others))
    further = granted(chart) - before
    used: set[Right] = set()
    for scenario in FURTHER[value].values():
        used |= played(scenario, chart)
    assert sorted(map(str, used - before)) == sorted(map(str, further))
    for right in sorted(further):
        scenario = FURTHER[value][check_of(right, FURTHER[value])]
        with pytest.raises((AssertionError, TimeoutError, MoorageError)):
            played(scenario, without(chart, right))
