"""Daemon sets in a whole cluster under the virtual clock: placement, new nodes, roll-outs."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from moorage.base import aio
from moorage.client.requests import patch_body
from moorage_sandbox.testing.builders import node_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import every, play, pods, stored, template, workload

TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}


def daemon(*, image: str = "agent:1", pod_spec: dict[str, Any] | None = None, **spec: Any) -> Any:
    made = workload("DaemonSet", "agent", **spec)
    made["spec"]["template"] = template("agent", image=image, **(pod_spec or {}))
    return made


def placed(cluster: VirtualCluster) -> list[str]:
    """Return the nodes of the pods that run."""
    return sorted(
        each["spec"].get("nodeName", "")
        for each in pods(cluster)
        if each.get("status", {}).get("phase") == "Running"
    )


def image(name: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": name, "resources": {"requests": {"cpu": "10m"}}}]
    return {"template": {"spec": {"containers": containers}}}


async def change(cluster: VirtualCluster, spec: dict[str, Any]) -> None:
    await cluster.patch_object(DAEMON_SETS, "agent", {"spec": spec}, namespace="default")


NODES_GIVEN = [
    node_manifest("n1", labels={"disk": "ssd"}),
    node_manifest("n2", labels={"disk": "hdd"}),
    node_manifest("n3", taints=[TAINT]),
    node_manifest("n4", unschedulable=True),
]


@pytest.mark.parametrize(
    ("pod_spec", "nodes"),
    [
        pytest.param({}, ["n1", "n2", "n4"], id="nodes without taints, cordoned nodes too"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, ["n1"], id="those with the labels"),
        pytest.param(
            {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
            ["n1", "n2", "n3", "n4"],
            id="a tolerated taint keeps nobody away",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
                            ]
                        }
                    }
                }
            },
            ["n1", "n2"],
            id="those its node affinity allows",
        ),
    ],
)
def test_one_pod_on_each_node_it_is_meant_for(pod_spec, nodes):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(daemon(pod_spec=pod_spec))
        await cluster.until(lambda: placed(cluster) == nodes)
        await cluster.until(
            lambda: (
                stored(cluster, DAEMON_SETS, "agent")["status"].get("numberAvailable") == len(nodes)
            )
        )
        status = stored(cluster, DAEMON_SETS, "agent")["status"]
        assert status == {
            "currentNumberScheduled": len(nodes),
            "desiredNumberScheduled": len(nodes),
            "numberAvailable": len(nodes),
            "numberMisscheduled": 0,
            "numberReady": len(nodes),
            "observedGeneration": 1,
            "updatedNumberScheduled": len(nodes),
        }

    play(scenario, nodes=NODES_GIVEN)


def test_nodes_that_come_and_change_get_and_lose_their_pod():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(daemon(pod_spec={"nodeSelector": {"disk": "ssd"}}))
        await cluster.until(lambda: placed(cluster) == ["n1"])
        await cluster.play([node_manifest("n5", labels={"disk": "ssd"})])
        await cluster.until(lambda: placed(cluster) == ["n1", "n5"])
        await cluster.patch_object(NODES, "n2", {"metadata": {"labels": {"disk": "ssd"}}})
        await cluster.until(lambda: placed(cluster) == ["n1", "n2", "n5"])
        await cluster.patch_object(NODES, "n1", {"metadata": {"labels": {"disk": "old"}}})
        await cluster.until(lambda: placed(cluster) == ["n2", "n5"])
        # A taint that only keeps new pods away leaves those that are there.
        await cluster.patch_object(NODES, "n2", {"spec": {"taints": [TAINT]}})
        await cluster.until(
            lambda: stored(cluster, DAEMON_SETS, "agent")["status"]["numberMisscheduled"] == 1
        )
        assert placed(cluster) == ["n2", "n5"]

    play(scenario, nodes=NODES_GIVEN)


@pytest.mark.parametrize(
    ("rolling", "least", "most"),
    [
        pytest.param({"maxUnavailable": 1}, 3, 4, id="one node at a time"),
        pytest.param({"maxUnavailable": "50%"}, 2, 4, id="half of the nodes at a time"),
        pytest.param({"maxUnavailable": 0, "maxSurge": 1}, 4, 5, id="new ones first"),
    ],
)
def test_a_roll_out_replaces_pods_node_by_node(rolling, least, most):
    async def scenario(cluster: VirtualCluster) -> None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        await cluster.create_objects(daemon(updateStrategy=strategy))
        await cluster.until(lambda: len(placed(cluster)) == 4)
        await change(cluster, image("agent:2"))
        seen: list[tuple[int, int]] = []

        def done() -> bool:
            seen.append((len(placed(cluster)), len(pods(cluster))))
            images = {each["spec"]["containers"][0]["image"] for each in pods(cluster)}
            return images == {"agent:2"} and len(placed(cluster)) == 4

        await cluster.until(done, seconds=60)
        assert min(running for running, _ in seen) == least
        assert max(total for _, total in seen) == most
        assert len(every(cluster, CONTROLLER_REVISIONS)) == 2

    play(scenario, nodes=[node_manifest(f"n{i}") for i in range(1, 5)])


def test_with_on_delete_pods_are_replaced_only_once_they_are_deleted():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(daemon(updateStrategy={"type": "OnDelete"}))
        await cluster.until(lambda: len(placed(cluster)) == 3)
        await change(cluster, image("agent:2"))
        await cluster.until(lambda: len(every(cluster, CONTROLLER_REVISIONS)) == 2)
        first = pods(cluster)[0]["metadata"]["name"]
        await cluster.client.delete(PODS, first, namespace="default")

        def images() -> list[str]:
            return sorted(each["spec"]["containers"][0]["image"] for each in pods(cluster))

        await cluster.until(lambda: images() == ["agent:1", "agent:1", "agent:2"])

    play(scenario)


def test_a_pod_that_fails_is_replaced_ever_later():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(daemon())
        while cluster.seconds <= 100:
            for each in pods(cluster):
                if each["status"]["phase"] == "Running":
                    name, failed = each["metadata"]["name"], {"status": {"phase": "Failed"}}
                    await cluster.client.patch(
                        PODS, name, patch_body(failed), namespace="default", subresource="status"
                    )
            await aio.sleep(0.1)
        events = await cluster.events("agent", reason="FailedDaemonPod")
        # Each pod takes a second to start; pauses are 0, 2, 4, 8, 16, 32
        # and, beyond what is waited for here, 64 s.
        assert len(events) == 6

    play(scenario, nodes=[node_manifest("n1")])
