"""Changes that kube-scheduler's hints forget: the waiting pod is tried within its backoff.

Server, agents and scheduler in virtual time. A pod has no node, nothing happens for a while, then
one change makes a node fit. kube-scheduler leaves these pods to its flush after five minutes.
The hints one by one are in ``scheduler/tests/plugins``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from moorage.api.meta import ObjectReference
from moorage.api.resources import (
    CSI_DRIVERS,
    CSI_NODES,
    NAMESPACES,
    NODES,
    PODS,
)
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST, ZONE = "kubernetes.io/hostname", "zone"
SOON_SECONDS = 3.0
"""A pod that failed once has a backoff of a second; the rest is the attempt and the binding."""

Change = Callable[[VirtualCluster], Awaitable[None]]


def term(app: str, key: str = HOST, **more: Any) -> Manifest:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def near(*terms: Manifest) -> Manifest:
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def away(*terms: Manifest) -> Manifest:
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def spread(**more: Any) -> Manifest:
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **more}
    return {"topologySpreadConstraints": [{**rule, "labelSelector": {"matchLabels": {"app": "w"}}}]}


def app(name: str, label: str, **fields: Any) -> Manifest:
    return pod_manifest(name, labels={"app": label}, **fields)


def waiting(label: str = "w", **fields: Any) -> Manifest:
    return app("waiting", label, **fields)


def namespace(name: str, **labels: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


IN_TEAM: Manifest = {"namespaceSelector": {"matchLabels": {"team": "x"}}}


def deleted(name: str, namespace: str = "default", grace_seconds: int = 0) -> Change:
    async def change(cluster: VirtualCluster) -> None:
        target = ObjectReference(namespace=namespace, name=name)
        await cluster.client.delete_pod(target, grace_seconds=grace_seconds)

    return change


def relabelled_pod(name: str, label: str) -> Change:
    return lambda cluster: cluster.patch_object(
        PODS, name, {"metadata": {"labels": {"app": label}}}, namespace="default"
    )


def relabelled_node(name: str, **labels: str | None) -> Change:
    return lambda cluster: cluster.patch_object(NODES, name, {"metadata": {"labels": labels}})


def relabelled_namespace(name: str, **labels: str | None) -> Change:
    return lambda cluster: cluster.patch_object(NAMESPACES, name, {"metadata": {"labels": labels}})


class Scene:
    """Nodes by name with their zones, objects that are there, the waiting pod, and the change."""

    def __init__(
        self, nodes: Mapping[str, str], there: list[Manifest], pod: Manifest, change: Change
    ) -> None:
        self.nodes, self.there, self.pod, self.change = nodes, there, pod, change


def on(node: str) -> Manifest:
    return {"node_selector": {HOST: node}}


HATER = app("hater", "h", node_name="n1", **away(term("w", ZONE)))

SCENES = [
    pytest.param(
        Scene(
            {"n1": "a", "n2": "b"},
            [app("peer", "w", node_name="n1")],
            waiting(**near(term("w")), **on("n2")),
            deleted("peer"),
        ),
        id="affinity to its own label: the last peer is deleted",
    ),
    pytest.param(
        Scene(
            {"n1": "a", "n2": "b"},
            [app("peer", "w", node_name="n1")],
            waiting(**near(term("w")), **on("n2")),
            relabelled_pod("peer", "z"),
        ),
        id="affinity to its own label: the last peer is relabelled",
    ),
    pytest.param(
        Scene(
            {"n1": "a"},
            [app("one", "one", node_name="n1")],
            waiting(**away(term("one"), term("two"))),
            deleted("one"),
        ),
        id="two anti-affinity terms: the pod that matches one of them is deleted",
    ),
    pytest.param(
        Scene(
            {"n1": "a"},
            [app("one", "one", node_name="n1")],
            waiting(**away(term("one"), term("two"))),
            relabelled_pod("one", "z"),
        ),
        id="two anti-affinity terms: the pod that matches one of them is relabelled",
    ),
    pytest.param(
        Scene(
            {"n1": "a"},
            [app("one", "one", node_name="n1", **away(term("w"), term("v")))],
            waiting(),
            deleted("one"),
        ),
        id="an existing pod with two anti-affinity terms is deleted",
    ),
    pytest.param(
        Scene(
            {"n1": "a"},
            [namespace("x"), app("there", "t", namespace="x", node_name="n1")],
            waiting(**near(term("t", **IN_TEAM))),
            relabelled_namespace("x", team="x"),
        ),
        id="namespaceSelector: a namespace gets the label",
    ),
    pytest.param(
        Scene(
            {"n1": "a"},
            [namespace("x", team="x"), app("there", "t", namespace="x", node_name="n1")],
            waiting(**away(term("t", **IN_TEAM))),
            relabelled_namespace("x", team=None),
        ),
        id="namespaceSelector: a namespace loses the label",
    ),
    pytest.param(
        Scene(
            {"n1": "a"},
            [namespace("x", team="x"), app("there", "t", namespace="x", node_name="n1")],
            waiting(**away(term("t", **IN_TEAM))),
            deleted("there", "x"),
        ),
        id="namespaceSelector: a blocking pod of a selected namespace is deleted",
    ),
    pytest.param(
        Scene(
            {"n1": "a"},
            [namespace("x", team="x")],
            waiting(**near(term("t", **IN_TEAM))),
            lambda cluster: cluster.create_objects(app("new", "t", namespace="x", node_name="n1")),
        ),
        id="namespaceSelector: a matching pod comes to a selected namespace",
    ),
    pytest.param(
        Scene(
            {"n1": "a"},
            [
                namespace("x"),
                app(
                    "hater",
                    "h",
                    namespace="x",
                    node_name="n1",
                    **away(
                        term(
                            "w",
                            namespaceSelector={
                                "matchLabels": {"kubernetes.io/metadata.name": "default"}
                            },
                        )
                    ),
                ),
            ],
            waiting(),
            deleted("hater", "x"),
        ),
        id="namespaceSelector: an existing pod whose anti-affinity selects the namespace goes",
    ),
    pytest.param(
        Scene(
            {"n1": "a", "n2": "a"}, [HATER], waiting(**on("n2")), relabelled_node("n2", zone="b")
        ),
        id="anti-affinity of a running pod: a node changes its zone",
    ),
    pytest.param(
        Scene(
            {"n1": "a", "n2": "a"}, [HATER], waiting(**on("n2")), relabelled_node("n2", zone=None)
        ),
        id="anti-affinity of a running pod: a node loses its zone",
    ),
    pytest.param(
        Scene(
            {"n1": "a", "n2": "a"}, [HATER], waiting(**on("n2")), relabelled_node("n1", zone="b")
        ),
        id="anti-affinity of a running pod: its node changes its zone",
    ),
    pytest.param(
        Scene(
            {"n1": "a", "n2": "a"},
            [HATER],
            waiting(**on("n2")),
            lambda cluster: cluster.delete_node("n1"),
        ),
        id="anti-affinity of a running pod: its node is deleted",
    ),
    pytest.param(
        Scene(
            {"n1": "a", "n2": "b"},
            [app("counted", "w", node_name="n1")],
            # n2 is too small for this pod, and the empty zone of n2 forbids n1.
            waiting(node_selector={"disk": "ssd"}, cpu="2", **spread()),
            relabelled_node("n2", disk="hdd"),
        ),
        id="spread: a node leaves the pod's node selector",
    ),
    pytest.param(
        Scene(
            {"n1": "a", "n2": "b"},
            [
                app(
                    "counted",
                    "w",
                    node_name="n1",
                    terminationGracePeriodSeconds=600,
                    annotations={"moorage.dev/stop-seconds": "500"},
                )
            ],
            waiting(cpu="2", **spread()),
            deleted("counted", grace_seconds=600),
        ),
        id="spread: a counted pod begins to terminate",
    ),
]


def play(course: Callable[[VirtualCluster], Awaitable[None]], nodes: Mapping[str, str]) -> None:
    clock = ManualClock()
    # The last of several nodes has no room for the pods of the scenes about spread.
    manifests = [
        node_manifest(name, cpu="4" if name == "n1" else "1", labels={ZONE: zone, "disk": "ssd"})
        for name, zone in nodes.items()
    ]

    async def main() -> None:
        async with VirtualCluster(clock, nodes=manifests) as cluster:
            await course(cluster)

    run_virtual(main(), clock)


async def assert_tried_soon(
    cluster: VirtualCluster, change: Change, done: Callable[[], bool]
) -> None:
    """Let the pod wait, make the change, and expect the pod to be placed soon."""
    await cluster.until(lambda: cluster.condition_of("waiting")[0] == "False")
    await aio.sleep(20)
    assert not done()
    await change(cluster)
    await cluster.until(done, seconds=SOON_SECONDS)


@pytest.mark.parametrize("scene", SCENES)
def test_the_pod_is_bound_soon(scene: Scene) -> None:
    async def course(cluster: VirtualCluster) -> None:
        await cluster.create_objects(*scene.there, scene.pod)
        await assert_tried_soon(cluster, scene.change, lambda: bool(cluster.node_of("waiting")))

    play(course, scene.nodes)


# --- volumes ----------------------------------------------------------------------------------

DRIVER = "csi.example"
CLASS: Manifest = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "late"},
    "provisioner": DRIVER,
    "volumeBindingMode": "WaitForFirstConsumer",
}
CSI_DRIVER: Manifest = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSIDriver",
    "metadata": {"name": DRIVER},
    "spec": {"storageCapacity": True},
}


def csi_node(name: str, count: int) -> Manifest:
    driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": count}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }


def claim(name: str, volume: str = "") -> Manifest:
    spec = {
        "storageClassName": "late",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        **({"volumeName": volume} if volume else {}),
    }
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if volume else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", **bound},
        "spec": spec,
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name: str, of: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": "late",
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "claimRef": {"namespace": "default", "name": of},
        },
    }


def using(*claims: str) -> Manifest:
    return {
        "volumes": [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims],
    }


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda cluster: cluster.patch_object(
                CSI_DRIVERS, DRIVER, {"spec": {"storageCapacity": False}}
            ),
            id="the driver stops tracking capacity",
        ),
        pytest.param(
            lambda cluster: cluster.client.delete(CSI_DRIVERS, DRIVER), id="the driver is deleted"
        ),
    ],
)
def test_the_volume_of_a_claim_gets_a_node_soon(change: Change) -> None:
    async def course(cluster: VirtualCluster) -> None:
        await cluster.create_objects(CSI_DRIVER, CLASS, claim("c"), waiting(**using("c")))

        def has_a_node() -> bool:
            record = cluster.server.store.shelf("persistentvolumeclaims").get(("default", "c"))
            assert record is not None
            found: Any = record.decode()["metadata"].get("annotations") or {}
            return "volume.kubernetes.io/selected-node" in found

        await assert_tried_soon(cluster, change, has_a_node)

    play(course, {"n1": "a"})


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda cluster: cluster.patch_object(CSI_NODES, "n1", {"spec": {"drivers": []}}),
            id="the driver leaves the node",
        ),
        pytest.param(
            lambda cluster: cluster.client.delete(CSI_NODES, "n1"), id="the CSINode is deleted"
        ),
        pytest.param(
            lambda cluster: cluster.patch_object(
                CSI_NODES, "n1", {"spec": {"drivers": [{"name": DRIVER, "nodeID": "n1"}]}}
            ),
            id="the driver no longer says a count",
        ),
    ],
)
def test_a_volume_is_attached_soon_after_a_limit_is_gone(change: Change) -> None:
    async def course(cluster: VirtualCluster) -> None:
        bound = [each for n in "ab" for each in (volume(f"v-{n}", n), claim(n, f"v-{n}"))]
        first = app("first", "f", node_name="n1", **using("a"))
        await cluster.create_objects(CLASS, csi_node("n1", 1), *bound, first, waiting(**using("b")))
        await assert_tried_soon(cluster, change, lambda: bool(cluster.node_of("waiting")))

    play(course, {"n1": "a"})
