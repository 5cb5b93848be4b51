"""Claims in a whole cluster under the virtual clock: made, allocated, freed, deleted.

Covers DynamicResources' writes and waiting together with the controllers of claims; single rules of
the plugin are in scheduler/tests/plugins.
"""

from __future__ import annotations

from typing import Any

from moorage.api.resources import PODS, RESOURCE_CLAIMS
from moorage.base import aio
from moorage_sandbox.testing.builders import Manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import play

VERSION = "resource.k8s.io/v1"
ONE = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}


def device_class(**spec: Any) -> Manifest:
    selector = {"cel": {"expression": 'device.driver == "gpu.example"'}}
    body = {"selectors": [selector], **spec}
    return {"apiVersion": VERSION, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": body}


def offered(on: str, *devices: str) -> Manifest:
    spec = {
        "driver": "gpu.example",
        "nodeName": on,
        "pool": {"name": on, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": name} for name in devices],
    }
    return {
        "apiVersion": VERSION,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{on}-gpus"},
        "spec": spec,
    }


def template(name: str = "one") -> Manifest:
    return {
        "apiVersion": VERSION,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"metadata": {"labels": {"made": "yes"}}, "spec": ONE},
    }


def using(name: str, **spec: Any) -> Manifest:
    entry = {"name": "dev", "resourceClaimTemplateName": "one"}
    return pod_manifest(name, resourceClaims=[entry], **spec)


def claims(cluster: VirtualCluster) -> dict[str, Any]:
    """Return every claim by name."""
    shelf = cluster.server.store.shelf("resourceclaims.resource.k8s.io")
    return {each.name: each.decode() for each in shelf.records("")}


def state(claim: Any) -> tuple[list[str], list[str]]:
    """Return devices and the names of the pods a claim is reserved for."""
    status = claim.get("status") or {}
    results = (status.get("allocation") or {}).get("devices", {}).get("results", [])
    reserved = [each["name"] for each in status.get("reservedFor", ())]
    return [each["device"] for each in results], reserved


def test_a_pod_with_a_claim_template_runs_where_the_device_is_and_leaves_it_when_it_ends():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(device_class(), offered("n2", "g0"), using("p"))
        await aio.sleep(1)
        assert (cluster.node_of("p"), claims(cluster)) == ("", {})
        await cluster.create_objects(template())
        await cluster.until(lambda: cluster.phase_of("p") == "Running")
        assert cluster.node_of("p") == "n2"
        ((name, made),) = claims(cluster).items()
        assert name.startswith("p-dev-")
        assert made["metadata"]["labels"] == {"made": "yes"}
        assert state(made) == (["g0"], ["p"])
        pod = cluster.stored_pod("p")
        assert pod is not None
        told = pod["status"]["resourceClaimStatuses"]
        assert told == [{"name": "dev", "resourceClaimName": name}]
        # Another pod wants the only device, and gets it once this one is gone.
        await cluster.create_objects(using("q"))
        await cluster.until(lambda: "cannot allocate all claims" in cluster.condition_of("q")[2])
        await cluster.client.delete(PODS, "p", namespace="default")
        await cluster.until(lambda: cluster.phase_of("q") == "Running", seconds=60)
        ((name, made),) = claims(cluster).items()
        assert name.startswith("q-dev-")
        assert state(made) == (["g0"], ["q"])

    play(scenario)


def test_a_claim_made_by_a_user_is_shared_then_freed_and_kept():
    async def scenario(cluster: VirtualCluster) -> None:
        shared = {
            "apiVersion": VERSION,
            "kind": "ResourceClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": ONE,
        }
        await cluster.create_objects(device_class(), offered("n3", "g0"), shared)
        entry = [{"name": "dev", "resourceClaimName": "c"}]
        for name in ("p", "q"):
            await cluster.create_objects(pod_manifest(name, resourceClaims=entry))
        await cluster.until(lambda: cluster.phase_of("p") == cluster.phase_of("q") == "Running")
        assert cluster.placements() == {"default/p": "n3", "default/q": "n3"}
        assert sorted(state(claims(cluster)["c"])[1]) == ["p", "q"]
        await cluster.client.patch(
            PODS,
            "p",
            b'{"status": {"phase": "Succeeded"}}',
            namespace="default",
            subresource="status",
        )
        await cluster.until(lambda: state(claims(cluster)["c"])[1] == ["q"])
        await cluster.client.delete(PODS, "q", namespace="default")
        await cluster.until(lambda: state(claims(cluster)["c"]) == ([], []), seconds=60)
        await cluster.until(lambda: not claims(cluster)["c"]["metadata"].get("finalizers"))
        await cluster.client.delete(RESOURCE_CLAIMS, "c", namespace="default")
        await cluster.until(lambda: not claims(cluster))

    play(scenario)


def test_an_extended_resource_is_served_by_devices_where_no_node_offers_it():
    async def scenario(cluster: VirtualCluster) -> None:
        gpu = "example.com/gpu"
        await cluster.create_objects(
            device_class(extendedResourceName=gpu), offered("n1", "g0", "g1")
        )
        asking = pod_manifest("p")
        amount = {gpu: "2"}
        asking["spec"]["containers"][0]["resources"] = {"requests": amount, "limits": amount}
        await cluster.create_objects(asking)
        await cluster.until(lambda: cluster.node_of("p") == "n1")
        ((name, made),) = claims(cluster).items()
        assert state(made) == (["g0", "g1"], ["p"])
        await cluster.client.delete(PODS, "p", namespace="default", grace_seconds=0)
        await cluster.until(lambda: not claims(cluster), seconds=60)
        assert name.startswith("p-extended-resources-")

    play(scenario)
