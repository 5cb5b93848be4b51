"""Unschedulable pods: each is rejected in the reference's words, and other pods go on.

The whole live path in virtual time. What a server refuses to store never gets to a scheduler, so
such pods are in a table of their own.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.errors import ApiError
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

NODES = [node_manifest("n1", labels={"disk": "ssd"}), node_manifest("n2")]
LOOKED_AT_SECONDS = 3.0
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
# DynamicResources, asked after a PreFilter that ended before its own, misses its state; upstream
# shows that in the message, too.
UNSEEN = "not found"
HELPLESS = (
    "no new claims to deallocate, preemption: 0/2 nodes are available: "
    "2 Preemption is not helpful for scheduling."
)
VICTIMLESS = (
    "no new claims to deallocate, preemption: 0/2 nodes are available: "
    "2 No preemption victims found for incoming pod."
)


def claim(name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            **spec,
        },
    }


def using(name: str) -> Manifest:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


def needs(key: str, operator: str, *values: str) -> Manifest:
    return {"key": key, "operator": operator, "values": list(values)}


def on_nodes(*, kind: str = "matchExpressions", of: list[Manifest]) -> Manifest:
    terms = {"nodeSelectorTerms": [{kind: of}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def between_pods(expression: Manifest, *kinds: str) -> Manifest:
    term = {"labelSelector": {"matchExpressions": [expression]}, "topologyKey": "nobody/has"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": dict.fromkeys(kinds, required)}


def spread(**fields: Any) -> Manifest:
    constraint = {"maxSkew": 1, "topologyKey": "nobody/has", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [constraint | fields]}


def live(objects: list[Manifest], spec: Manifest) -> tuple[str, tuple[str, str, str]]:
    """Bring a bad pod, then a good one; return the node of the good, what is said of the bad."""
    clock = ManualClock()
    found: list[tuple[str, tuple[str, str, str]]] = []

    async def scenario() -> None:
        async with VirtualCluster(clock, nodes=NODES) as cluster:
            bad = pod_manifest("bad", labels={"app": "x"})
            bad["spec"] |= spec
            await cluster.create_objects(*objects, bad)
            await aio.sleep(LOOKED_AT_SECONDS)
            await cluster.create_objects(pod_manifest("good"))
            await cluster.until(lambda: cluster.phase_of("good") == "Running")
            assert cluster.node_of("bad") == ""
            found.append((cluster.node_of("good"), cluster.condition_of("bad")))

    run_virtual(scenario(), clock)
    return found[0]


@pytest.mark.parametrize(
    ("objects", "spec", "reasons", "rest"),
    [
        pytest.param(
            [],
            using("gone"),
            'persistentvolumeclaim "gone" not found',
            UNSEEN,
            id="a claim that does not exist",
        ),
        pytest.param(
            [claim("data", volumeName="gone", storageClassName="", annotations=BOUND)],
            using("data"),
            'persistentvolume "gone" not found',
            UNSEEN,
            id="a claim bound to a volume that does not exist",
        ),
        pytest.param(
            [claim("data", storageClassName="")],
            using("data"),
            "pod has unbound immediate PersistentVolumeClaims",
            UNSEEN,
            id="a claim without a class and without a volume",
        ),
        pytest.param(
            [claim("data", storageClassName="gone")],
            using("data"),
            "pod has unbound immediate PersistentVolumeClaims",
            UNSEEN,
            id="a claim of a missing class",
        ),
        pytest.param(
            [],
            on_nodes(of=[needs("disk", "In", "ssd"), needs("disk", "NotIn", "ssd")]),
            "2 node(s) didn't match Pod's node affinity/selector",
            HELPLESS,
            id="In and NotIn with the same value",
        ),
        pytest.param(
            [],
            on_nodes(of=[needs("disk", "Gt", "many")]),
            "2 node(s) didn't match Pod's node affinity/selector",
            HELPLESS,
            id="Gt with a value that is no number",
        ),
        pytest.param(
            [],
            on_nodes(
                kind="matchFields",
                of=[needs("metadata.name", "In", "n1"), needs("metadata.name", "In", "n2")],
            ),
            "pod affinity terms conflict",
            UNSEEN,
            id="two node names at once",
        ),
        pytest.param(
            [],
            between_pods(needs("app", "In", "x"), "podAffinity", "podAntiAffinity"),
            "2 node(s) didn't match pod affinity rules",
            HELPLESS,
            id="affinity and anti-affinity to the same pods, and no node has the key",
        ),
        pytest.param(
            [],
            spread(maxSkew=2_147_483_647, minDomains=2_147_483_647),
            "2 node(s) didn't match pod topology spread constraints (missing required label)",
            HELPLESS,
            id="the greatest maxSkew and minDomains, and no node has the key",
        ),
        pytest.param(
            [],
            {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "9E"}}}]},
            "2 Insufficient cpu",
            HELPLESS,
            id="a cpu request that exceeds 64 bits in millicores",
        ),
    ],
)
def test_an_unschedulable_pod_does_not_hold_up_the_next_pod(
    objects: list[Manifest], spec: Manifest, reasons: str, rest: str
) -> None:
    node, said = live(objects, spec)
    assert node in ("n1", "n2")
    assert said == ("False", "Unschedulable", f"0/2 nodes are available: {reasons}. {rest}")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            on_nodes(of=[needs("disk", "Near", "x")]),
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
            'nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: "Near": not a valid '
            "selector operator",
            id="an unknown operator",
        ),
        pytest.param(
            between_pods(needs("app", "In"), "podAffinity"),
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]."
            "labelSelector.matchExpressions[0].values: Required value: must be specified when "
            "`operator` is 'In' or 'NotIn'",
            id="In without values",
        ),
        pytest.param(
            spread(maxSkew=0),
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: "
            "must be greater than zero",
            id="maxSkew 0",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 100_000,
                                "preference": {"matchExpressions": [needs("disk", "In", "ssd")]},
                            }
                        ]
                    }
                }
            },
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: "
            "Invalid value: 100000: must be in the range 1-100",
            id="a weight out of bounds",
        ),
    ],
)
def test_a_pod_that_the_server_rejects_never_reaches_the_scheduler(
    spec: Manifest, message: str
) -> None:
    with pytest.raises(ApiError) as refused:
        live([], spec)
    assert str(refused.value) == f'Pod "bad" is invalid: {message}'
