"""What the page of a sandbox changes: each act against an API server, and what each refuses.

Left out: the token that an act needs (``scheduler/tests/dashboard/test_guard``), the buttons
(``tests/browser``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moorage.base.clock import NS_PER_SECOND
from moorage.base.errors import MoorageError, UsageError
from moorage.base.rng import Streams
from moorage.base.timeline import Timeline
from moorage.cli.page.acts import acts_of_sandbox
from moorage.client.writes import Client
from moorage_sandbox.cluster.in_process import InProcessTransport
from sandbox.tests.apiserver.harness import PODS, Cluster, pod

NODES = "/api/v1/nodes"
START_NS = 1_767_225_600 * NS_PER_SECOND
BEGIN = "2026-01-01T00:00:00.000000Z"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def perform(cluster: Cluster, act: str, **wanted: Any) -> Any:
    transport = InProcessTransport(cluster.server, latency_seconds=0)
    acts = await acts_of_sandbox(transport, Client(transport, rng=Streams(1).stream("test")))
    assert act in acts.names
    return json.loads((await acts.perform(act, json.dumps(wanted).encode())).body)


async def test_sample_pods_are_created_with_their_requests(cluster: Cluster) -> None:
    made = await perform(cluster, "create-pods", count=2, cpu="2", memory="1Gi", name="tried")
    assert sorted(made["created"]) == sorted(await cluster.names(PODS))
    for name in made["created"]:
        assert name.startswith("tried-")
        spec = (await cluster.ok("GET", f"{PODS}/{name}"))["spec"]
        assert spec["containers"][0]["resources"]["requests"] == {"cpu": "2", "memory": "1Gi"}


async def test_nodes_are_added_and_their_numbers_go_on(cluster: Cluster) -> None:
    first = (await perform(cluster, "add-nodes", count=2))["added"]
    (third,) = (await perform(cluster, "add-nodes", cpu="16", memory="64Gi"))["added"]
    assert await cluster.names(NODES) == [*first, third]
    allocatable = (await cluster.ok("GET", f"{NODES}/{third}"))["status"]["allocatable"]
    assert (allocatable["cpu"], allocatable["memory"]) == ("16", "64Gi")


async def test_a_node_is_cordoned_and_opened_again(cluster: Cluster) -> None:
    (name,) = (await perform(cluster, "add-nodes"))["added"]
    path = f"{NODES}/{name}"
    assert await perform(cluster, "cordon", node=name) == {"node": name, "cordoned": True}
    assert (await cluster.ok("GET", path))["spec"]["unschedulable"] is True
    await perform(cluster, "cordon", node=name, on=False)
    assert "unschedulable" not in (await cluster.ok("GET", path))["spec"]


async def test_a_suggestion_replaces_the_pod_and_does_what_else_it_needs(cluster: Cluster) -> None:
    await cluster.ok("POST", PODS, pod("big"))
    await cluster.ok("POST", PODS, pod("in-the-way"))
    before = (await cluster.ok("GET", f"{PODS}/big"))["metadata"]["uid"]
    patch = [{"op": "add", "path": "/spec/nodeSelector", "value": {"disk": "ssd"}}]
    place = {"name": "new", "namespace": "default"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": place}
    wanted = {"namespace": "default", "name": "big", "text": "wait less", "patch": patch}
    done = await perform(
        cluster, "apply-suggestion", **wanted, delete="default/in-the-way", create=[config]
    )
    assert done == {"done": "wait less"}
    assert await cluster.names(PODS) == ["big"]
    made = await cluster.ok("GET", f"{PODS}/big")
    assert (made["spec"]["nodeSelector"], made["metadata"]["uid"] != before) == (
        {"disk": "ssd"},
        True,
    )
    assert "new" in await cluster.names("/api/v1/namespaces/default/configmaps")


async def test_a_suggestion_uncordons_a_node(cluster: Cluster) -> None:
    (name,) = (await perform(cluster, "add-nodes", count=1))["added"]
    await perform(cluster, "cordon", node=name)
    patch: dict[str, Any] = {"spec": {"unschedulable": None, "taints": []}}
    change = {"apiVersion": "v1", "kind": "Node", "name": name, "patch": patch}
    way = {"namespace": "default", "name": "big", "text": "uncordon it", "changes": [change]}
    assert await perform(cluster, "apply-suggestion", **way) == {"done": "uncordon it"}
    assert "unschedulable" not in (await cluster.ok("GET", f"{NODES}/{name}"))["spec"]


async def test_time_is_stopped_stepped_and_told(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elapsed_ns = [0]
    monkeypatch.setattr(
        "moorage.base.clock.SystemClock.monotonic_ns", staticmethod(lambda: elapsed_ns[0])
    )
    cluster.server.control_time(Timeline.create_file(tmp_path / "time", START_NS))
    assert await perform(cluster, "time", speed=0) == {"now": BEGIN, "speed": 0.0}
    elapsed_ns[0] += 3 * NS_PER_SECOND
    assert (await perform(cluster, "time"))["now"] == BEGIN
    await perform(cluster, "time", speed=20, step=10)
    elapsed_ns[0] += 3 * NS_PER_SECOND
    assert (await perform(cluster, "time"))["now"] == BEGIN.replace(":00.0", ":10.0")


async def test_time_that_cannot_be_changed_is_not_offered(cluster: Cluster) -> None:
    transport = InProcessTransport(cluster.server, latency_seconds=0)
    client = Client(transport, rng=Streams(1).stream("test"))
    acts = await acts_of_sandbox(transport, client)
    assert acts.names == ("create-pods", "cordon", "add-nodes", "apply-suggestion")


@pytest.mark.parametrize(
    ("act", "wanted", "message"),
    [
        pytest.param("create-pods", {"count": 501}, "count: 501: write .* 1 to 500", id="too many"),
        pytest.param("add-nodes", {"count": 0}, "count: 0: write .* 1 to 500", id="none"),
        pytest.param("add-nodes", {"cpu": "many"}, "cpu: ", id="no quantity"),
        pytest.param("create-pods", {"pods": 3}, "unknown field `pods`", id="an unknown field"),
        pytest.param("cordon", {}, "required field `node`", id="no node"),
        pytest.param(
            "apply-suggestion",
            {"namespace": "default", "name": "big", "create": [{"kind": "Car"}]},
            "Car: the page knows no such objects",
            id="an unknown kind",
        ),
    ],
)
async def test_what_cannot_be_done_is_refused(
    cluster: Cluster, act: str, wanted: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        await perform(cluster, act, **wanted)
    assert await cluster.names(PODS) == []
    assert await cluster.names(NODES) == []


async def test_a_patch_that_does_not_fit_leaves_the_pod(cluster: Cluster) -> None:
    await cluster.ok("POST", PODS, pod("big"))
    patch = [{"op": "replace", "path": "/spec/nowhere/else", "value": 1}]
    with pytest.raises(UsageError, match="patch: "):
        await perform(cluster, "apply-suggestion", namespace="default", name="big", patch=patch)
    assert await cluster.names(PODS) == ["big"]


REFUSED = {
    "a value that is invalid": [
        {"op": "add", "path": "/spec/nodeSelector", "value": {"disk": "not valid!"}}
    ],
    "a priority class that does not exist": [
        {"op": "add", "path": "/spec/priorityClassName", "value": "missing"}
    ],
    "no containers": [{"op": "replace", "path": "/spec/containers", "value": []}],
}


@pytest.mark.parametrize("patch", REFUSED.values(), ids=REFUSED.keys())
async def test_a_change_that_the_server_refuses_leaves_everything_as_it_was(
    cluster: Cluster, patch: Any
) -> None:
    await cluster.ok("POST", PODS, pod("big"))
    await cluster.ok("POST", PODS, pod("in-the-way"))
    before = (await cluster.ok("GET", f"{PODS}/big"))["metadata"]["uid"]
    place = {"name": "new", "namespace": "default"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": place}
    wanted = {"namespace": "default", "name": "big", "patch": patch, "create": [config]}
    with pytest.raises(MoorageError):
        await perform(cluster, "apply-suggestion", **wanted, delete="default/in-the-way")
    assert await cluster.names(PODS) == ["big", "in-the-way"]
    assert (await cluster.ok("GET", f"{PODS}/big"))["metadata"]["uid"] == before
    assert "new" not in await cluster.names("/api/v1/namespaces/default/configmaps")


def quota(**hard: str) -> dict[str, Any]:
    return {"metadata": {"name": "few"}, "spec": {"hard": hard}}


NODE_SELECTOR = [{"op": "add", "path": "/spec/nodeSelector", "value": {"disk": "ssd"}}]
CPU = "/spec/containers/0/resources"


async def test_a_pod_is_replaced_where_a_quota_has_room_for_one_of_its_two_forms(
    cluster: Cluster,
) -> None:
    await cluster.ok("POST", "/api/v1/namespaces/default/resourcequotas", quota(pods="1"))
    await cluster.ok("POST", PODS, pod("big"))
    wanted = {"namespace": "default", "name": "big", "patch": NODE_SELECTOR}
    await perform(cluster, "apply-suggestion", **wanted)
    assert (await cluster.ok("GET", f"{PODS}/big"))["spec"]["nodeSelector"] == {"disk": "ssd"}


async def test_a_pod_whose_changed_form_exceeds_a_quota_is_created_again_as_it_was(
    cluster: Cluster,
) -> None:
    hard = {"requests.cpu": "2"}
    await cluster.ok("POST", "/api/v1/namespaces/default/resourcequotas", quota(**hard))
    small = pod("big")
    small["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    await cluster.ok("POST", PODS, small)
    patch = [{"op": "replace", "path": CPU, "value": {"requests": {"cpu": "3"}}}]
    with pytest.raises(UsageError, match=r"exceeded quota.*; it was created again as it was"):
        await perform(cluster, "apply-suggestion", namespace="default", name="big", patch=patch)
    found = await cluster.ok("GET", f"{PODS}/big")
    assert found["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}


async def test_a_pod_that_can_be_created_in_no_form_is_told_as_lost_with_its_manifest(
    cluster: Cluster,
) -> None:
    await cluster.ok("POST", PODS, pod("big"))
    await cluster.ok("POST", "/api/v1/namespaces/default/resourcequotas", quota(pods="0"))
    wanted = {"namespace": "default", "name": "big", "patch": NODE_SELECTOR}
    with pytest.raises(UsageError, match=r"it is lost, .*exceeded quota.*\"name\":\"big\""):
        await perform(cluster, "apply-suggestion", **wanted)


async def test_a_pod_with_finalizers_is_not_deleted(cluster: Cluster) -> None:
    finalized = pod("big")
    finalized["metadata"]["finalizers"] = ["example.com/wait"]
    await cluster.ok("POST", PODS, finalized)
    with pytest.raises(UsageError, match=r"it has finalizers: example\.com/wait"):
        await perform(
            cluster, "apply-suggestion", namespace="default", name="big", patch=NODE_SELECTOR
        )
