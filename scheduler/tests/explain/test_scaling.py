"""Suggestions that scale another workload down."""

from __future__ import annotations

import pytest

from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.clusters import bound, explained, waiting
from scheduler.tests.explain.workloads.owned import of, owner, reference

OF_SET = reference("ReplicaSet", "web-1")
OF_STATEFUL = reference("StatefulSet", "db")
FULL = node_manifest("n", cpu="4")


def web(replicas: int, *, above: str = "Deployment") -> Manifest:
    below = reference(above, "web") if above else None
    return owner("ReplicaSet", "web-1", below=below, replicas=replicas)


def pods_of(owners: list[Manifest], *names: str, node: str = "n") -> list[Manifest]:
    return [of(owners, bound(name, node, cpu="2")) for name in names]


COST = "controller.kubernetes.io/pod-deletion-cost"
TEXT = "scale deployment default/web from 2 to 1: pod web-1-a (priority 0) leaves n"


@pytest.mark.parametrize(
    ("manifests", "texts"),
    [
        pytest.param([web(2), *pods_of(OF_SET, "web-1-a", "web-1-b")], [TEXT], id="a Deployment"),
        pytest.param(
            [web(2, above=""), *pods_of(OF_SET, "web-1-a", "web-1-b")],
            [TEXT.replace("deployment default/web", "replicaset default/web-1")],
            id="a ReplicaSet",
        ),
        pytest.param(
            [web(2, above="Rollout"), *pods_of(OF_SET, "web-1-a", "web-1-b")],
            [],
            id="a ReplicaSet that something unknown scales",
        ),
        pytest.param(
            [web(3), *pods_of(OF_SET, "web-1-a", "web-1-b"), of(OF_SET, waiting("q", cpu="2"))],
            [],
            id="a pod without a node would go first",
        ),
        pytest.param(
            [
                web(2),
                owner("ReplicaSet", "web-2", below=reference("Deployment", "web"), replicas=1),
                *pods_of(OF_SET, "web-1-a", "web-1-b"),
            ],
            [],
            id="a Deployment in the middle of a rollout",
        ),
        pytest.param(pods_of(OF_SET, "web-1-a", "web-1-b"), [], id="an owner that nobody knows"),
        pytest.param(
            [owner("StatefulSet", "db", replicas=2), *pods_of(OF_STATEFUL, "db-0", "db-1")],
            ["scale statefulset default/db from 2 to 1: pod db-1 (priority 0) leaves n"],
            id="the last pod of a StatefulSet",
        ),
        pytest.param(
            [
                owner("StatefulSet", "db", replicas=3),
                *pods_of(OF_STATEFUL, "db-0", "db-1"),
                node_manifest("tainted", taints=[{"key": "a", "effect": "NoSchedule"}]),
                *pods_of(OF_STATEFUL, "db-2", node="tainted"),
            ],
            [],
            id="another pod of a StatefulSet stays",
        ),
    ],
)
def test_a_workload_is_scaled_down_where_that_frees_the_room(
    manifests: list[Manifest], texts: list[str]
) -> None:
    found = explained(FULL, *manifests, waiting("p", cpu="2"))
    assert [way.text for way in found.suggestions if way.kind == "scale"] == texts


def test_the_pod_that_has_to_leave_is_the_first_to_be_deleted() -> None:
    found = explained(FULL, web(2), *pods_of(OF_SET, "web-1-a", "web-1-b"), waiting("p", cpu="2"))
    (way,) = [way for way in found.suggestions if way.kind == "scale"]
    assert way.command == (
        f"kubectl -n default annotate pod web-1-a {COST}=-2147483648 --overwrite && "
        "kubectl -n default scale deployment web --replicas=1"
    )
    assert [(each.kind, each.name, each.patch) for each in way.changes] == [
        ("Pod", "web-1-a", {"metadata": {"annotations": {COST: "-2147483648"}}}),
        ("Deployment", "web", {"spec": {"replicas": 1}}),
    ]
    assert way.evicted == ("default/web-1-a",)
