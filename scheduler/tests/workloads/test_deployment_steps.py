"""Single rules of deployments: the arithmetic of sizes, and which revision is which."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.workloads.deployment_steps import (
    ChangeSet,
    Sets,
    SetStep,
    limits,
    part_sets,
    resize_steps,
    rolling_steps,
)
from moorage.workloads.objects import Whole

DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"


def deployment(replicas: int, surge: Any = 0, unavailable: Any = 0, **strategy: Any) -> Whole:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    spec = {"replicas": replicas, "strategy": {"rollingUpdate": rolling, **strategy}}
    return from_dict(Whole, {"metadata": {"name": "web"}, "spec": spec})


def replica_set(name: str, size: int, *, available: int | None = None, of: int = 10) -> Whole:
    """Return a replica set whose size was set when the deployment had `of` replicas, 3 more."""
    ready = size if available is None else available
    annotations = {DESIRED: str(of), MAXIMUM: str(of + 3)}
    metadata = {
        "name": name,
        "annotations": annotations,
        "creationTimestamp": f"2026-01-01T00:00:0{len(name)}Z",
    }
    status = {"availableReplicas": ready, "replicas": size}
    spec = {"replicas": size}
    return from_dict(Whole, {"metadata": metadata, "spec": spec, "status": status})


def sizes(steps: list[SetStep]) -> dict[str, int]:
    return {
        step.replica_set.name: step.scaled_to
        for step in steps
        if isinstance(step, ChangeSet) and step.scaled_from is not None
    }


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        pytest.param(10, "25%", "25%", (3, 2), id="surge is rounded up, unavailable down"),
        pytest.param(1, "25%", "25%", (1, 0), id="one replica is replaced after its successor"),
        pytest.param(3, 0, "25%", (0, 1), id="where both come to nothing one may be unavailable"),
        pytest.param(2, 1, 5, (1, 2), id="no more are unavailable than there are"),
    ],
)
def test_surge_and_unavailable_limits_of_a_deployment(replicas, surge, unavailable, expected):
    assert limits(deployment(replicas, surge, unavailable)) == expected


def test_recreating_has_no_limits():
    assert limits(deployment(3, "25%", "25%", type="Recreate")) == (0, 0)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        pytest.param((0, 0), (10, 10), {"new": 3}, id="new ones up to the surge"),
        pytest.param((3, 0), (10, 10), {"old": 8}, id="old ones down to what must be available"),
        pytest.param((3, 0), (8, 8), {"new": 5}, id="then new ones again"),
        pytest.param((5, 0), (8, 8), {}, id="nothing while the new ones are not available"),
        pytest.param((5, 5), (8, 8), {"old": 3}, id="all old ones that may go, at once"),
        pytest.param((3, 0), (10, 6), {"old": 8}, id="old ones that serve nobody go first"),
        pytest.param((10, 10), (2, 2), {"old": 0}, id="the last old ones"),
        pytest.param((12, 12), (0, 0), {"new": 10}, id="too many new ones"),
    ],
)
def test_one_step_of_rolling(new, old, expected):
    found = Sets(
        replica_set("new", new[0], available=new[1]), [replica_set("old", old[0], available=old[1])]
    )
    assert sizes(rolling_steps(deployment(10, 3, 2), found)) == expected


@pytest.mark.parametrize(
    ("replicas", "new", "old", "expected"),
    [
        pytest.param(15, 5, 8, {"new": 7, "old": 11}, id="more, in proportion"),
        pytest.param(5, 5, 8, {"new": 3, "old": 5}, id="fewer, in proportion"),
        pytest.param(0, 5, 8, {"new": 0, "old": 0}, id="none at all"),
        pytest.param(4, 10, 0, {"new": 4}, id="only the one in use"),
        pytest.param(4, 0, 10, {"old": 4}, id="an old one where the new one is empty"),
    ],
)
def test_a_new_size_in_the_midst_of_a_roll_out(replicas, new, old, expected):
    found = Sets(replica_set("new", new, available=0), [replica_set("old", old)])
    assert sizes(resize_steps(deployment(replicas, 3, 2), found)) == expected


def test_the_new_set_is_the_one_of_the_template_whatever_its_hash():
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}
    hashed = {
        "metadata": {"labels": {"app": "web", "pod-template-hash": "x"}},
        "spec": {"containers": []},
    }
    other = {"metadata": {"labels": {"app": "web", "pod-template-hash": "y"}}, "spec": {"a": 1}}
    found = [
        from_dict(Whole, {"metadata": {"name": name}, "spec": {"template": each}})
        for name, each in (("a", other), ("b", hashed))
    ]
    wanted = from_dict(Whole, {"metadata": {"name": "web"}, "spec": {"template": template}})
    sets = part_sets(wanted, found)
    assert sets.new is not None
    assert sets.new.name == "b"
    assert [each.name for each in sets.old] == ["a"]
