"""The questions that the page asks: what fills the nodes, the last decisions, the plugins.

Not covered: how the answers are carried (`test_pages`).
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from moorage.api.resources import PODS, RESOURCE_CLAIMS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.service.questions.cluster import cluster_question
from moorage.service.questions.decisions import decisions_question
from moorage.service.questions.pages import OPENAPI_PATH, question_pages
from moorage.service.questions.plugins import plugins_question
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.service.questions.openapi_check import check
from scheduler.tests.service.test_reload import config, profile

NODES = [node_manifest(name, cpu="4", memory="8Gi") for name in ("n1", "n2")]


class Asking:
    """Asks the questions of one cluster, and checks each answer against the document."""

    def __init__(self, cluster: VirtualCluster, clock: ManualClock) -> None:
        questions = (cluster_question, decisions_question, plugins_question)
        self.pages = question_pages([each(cluster.scheduler, clock) for each in questions])

    async def ask(self, path: str, **query: str) -> Any:
        document = json.loads((await self.pages[OPENAPI_PATH]({})).body)
        page = await self.pages[f"/moorage/v1{path}"](query)
        body = json.loads(page.body)
        check(body, f"/moorage/v1{path}", document, status=str(page.status))
        return body


def in_cluster(scenario: Any, **cluster_fields: Any) -> None:
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, **{"nodes": NODES, **cluster_fields}) as cluster:
            await scenario(cluster, Asking(cluster, clock))

    run_virtual(main(), clock)


def test_every_node_is_told_with_what_fills_it() -> None:
    async def scenario(cluster: VirtualCluster, asking: Asking) -> None:
        await cluster.create_objects(pod_manifest("web", cpu="500m", memory="1Gi"))
        await cluster.until(lambda: bool(cluster.node_of("web")))
        answer = await asking.ask("/cluster")
        assert answer["whole"] is True
        (pod,) = answer["nodes"][cluster.node_of("web")].pop("pods")
        assert pod.pop("uid")
        assert pod == {
            "namespace": "default",
            "name": "web",
            "requests": {"cpu": 500, "memory": 1024**3},
        }
        assert answer["nodes"] == {
            name: {
                "allocatable": {"cpu": 4000, "memory": 8 * 1024**3, "pods": 110},
                "domains": {"topology.kubernetes.io/region": "sandbox"},
            }
            for name in ("n1", "n2")
        }

    in_cluster(scenario)


@pytest.mark.parametrize("profiles", [("default-scheduler",), ("default-scheduler", "second")])
def test_shares_of_gpus_are_counted_once_and_their_devices_named(profiles: tuple[str, ...]) -> None:
    async def scenario(cluster: VirtualCluster, asking: Asking) -> None:
        since = (await asking.ask("/cluster"))["version"]
        pod = pod_manifest("share")
        pod["metadata"]["annotations"] = {"alibabacloud.com/gpu-milli": "460"}
        await cluster.create_objects(pod)
        await cluster.until(lambda: bool(cluster.node_of("share")))
        (filled,) = (await asking.ask("/cluster", since=since))["nodes"].values()
        assert filled["allocatable"]["nvidia.com/gpu"] == 2
        (pod,) = filled["pods"]
        assert pod["requests"] == {"nvidia.com/gpu": 0.46}
        assert pod["devices"] == {"nvidia.com/gpu": {"0": 460}}

    gpus: dict[str, Any] = {"nvidia.com/gpu": "2"}
    in_cluster(
        scenario,
        nodes=[node_manifest("gpus", **gpus)],
        config=config(
            *(profile(name, multiPoint={"enabled": [{"name": "GpuShare"}]}) for name in profiles)
        ),
    )


def test_a_pods_devices_are_told_again_when_its_claim_changes() -> None:
    """The claim says which devices a pod holds, and its news may come after the pod is bound."""

    async def scenario(cluster: VirtualCluster, asking: Asking) -> None:
        await cluster.create_objects(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": "gpu"},
                "spec": {},
            },
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": "s"},
                "spec": {
                    "driver": "gpu.example",
                    "nodeName": "n1",
                    "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "g0"}, {"name": "g1"}],
                },
            },
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": "c", "namespace": "default"},
                "spec": {
                    "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}
                },
            },
        )
        before = await asking.ask("/cluster")
        await cluster.create_objects(
            pod_manifest("web", resourceClaims=[{"name": "e", "resourceClaimName": "c"}])
        )
        await cluster.until(lambda: bool(cluster.node_of("web")))
        after = await asking.ask("/cluster", since=before["version"])
        (pod,) = after["nodes"]["n1"]["pods"]
        assert pod["devices"] == {"gpu.example/n1": {"g0": 1000}}
        claim: Any = await cluster.client.get(RESOURCE_CLAIMS, "c", namespace="default")
        users = [*claim["status"]["reservedFor"], {"resource": "pods", "name": "x", "uid": "x"}]
        claim["status"]["reservedFor"] = users
        await cluster.client.replace(
            RESOURCE_CLAIMS, claim, name="c", namespace="default", subresource="status"
        )
        await aio.sleep(0.1)
        shared = await asking.ask("/cluster", since=after["version"])
        (pod,) = shared["nodes"]["n1"]["pods"]
        assert pod["devices"] == {"gpu.example/n1": {"g0": 500}}

    in_cluster(scenario)


def test_only_changed_nodes_are_told_since_a_version() -> None:
    async def scenario(cluster: VirtualCluster, asking: Asking) -> None:
        first = await asking.ask("/cluster")
        assert (await asking.ask("/cluster", since=first["version"]))["nodes"] == {}
        await cluster.create_objects(pod_manifest("web", cpu="500m"))
        await cluster.until(lambda: bool(cluster.node_of("web")))
        later = await asking.ask("/cluster", since=first["version"])
        assert (later["whole"], set(later["nodes"])) == (False, {cluster.node_of("web")})

    in_cluster(scenario)


def test_decisions_name_the_owner_of_a_pod_while_it_is_there() -> None:
    async def scenario(cluster: VirtualCluster, asking: Asking) -> None:
        pod = pod_manifest("web-1")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "web", "uid": "u"}
        pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        await cluster.create_objects(pod)
        await cluster.until(lambda: bool(cluster.node_of("web-1")))
        (decision,) = (await asking.ask("/decisions"))["decisions"]
        assert decision["owner"] == "job/web"
        await cluster.client.delete(PODS, "web-1", namespace="default", grace_seconds=0)
        await cluster.until(lambda: not cluster.scheduler.core.store.get("default", "web-1"))
        (decision,) = (await asking.ask("/decisions"))["decisions"]
        assert "owner" not in decision

    in_cluster(scenario)


@pytest.mark.parametrize("since", ["", "nonsense", "1.2.3", "a.b.c.d", "0.0.0.0"])
def test_every_node_is_told_where_a_version_is_not_known(since: str) -> None:
    async def scenario(cluster: VirtualCluster, asking: Asking) -> None:
        del cluster
        answer = await asking.ask("/cluster", since=since)
        assert (answer["whole"], set(answer["nodes"])) == (True, {"n1", "n2"})

    in_cluster(scenario)


def test_plugins_are_told_by_profile_and_point() -> None:
    async def scenario(cluster: VirtualCluster, asking: Asking) -> None:
        del cluster
        answer = await asking.ask("/plugins")
        (profile,) = answer["profiles"]
        assert profile["schedulerName"] == "default-scheduler"
        assert "NodeResourcesFit" in profile["points"]["filter"]
        assert profile["weights"]["TaintToleration"] == 3
        assert "DefaultBinder" in {each["name"] for each in answer["plugins"]}

    in_cluster(scenario)


async def test_a_scheduler_without_records_says_so() -> None:
    core = SimpleNamespace(recorder=None)
    scheduler: Any = SimpleNamespace(core=core, only_watches=False)
    pages = question_pages([decisions_question(scheduler, ManualClock())])
    page = await pages["/moorage/v1/decisions"]({})
    assert (page.status, json.loads(page.body)["message"]) == (
        404,
        "this scheduler keeps no records: it runs with --records-bytes=0",
    )


def test_the_last_decisions_are_told_newest_first() -> None:
    async def scenario(cluster: VirtualCluster, asking: Asking) -> None:
        facts = cluster.scheduler.facts
        await cluster.create_objects(pod_manifest("a", cpu="1"))
        await cluster.until(lambda: facts.bound == 1)
        await cluster.create_objects(pod_manifest("b", cpu="100"))
        await cluster.until(lambda: facts.rejected == 1)
        answer = await asking.ask("/decisions")
        told = [(each["name"], each["outcome"]) for each in answer["decisions"]]
        assert (answer["last"], told) == (2, [("b", "reject"), ("a", "bind")])
        newer = await asking.ask("/decisions", since="1")
        assert [each["name"] for each in newer["decisions"]] == ["b"]
        first = await asking.ask("/decisions", limit="1")
        assert [each["name"] for each in first["decisions"]] == ["b"]

    in_cluster(scenario)
