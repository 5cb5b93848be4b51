"""ResourceQuota: what is used is counted with every write, and what is too much is refused."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    MERGE,
    PODS,
    Cluster,
    config_map,
    failure,
    pod,
)

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
SERVICES = "/api/v1/namespaces/default/services"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


def quota(name: str = "q", *, scopes: list[str] | None = None, **hard: str) -> dict[str, Any]:
    """Return a quota; ``__`` in a name of a resource stands for a dot, ``___`` for a slash."""
    named = {key.replace("___", "/").replace("__", "."): value for key, value in hard.items()}
    spec: dict[str, Any] = {"hard": named}
    if scopes:
        spec["scopes"] = scopes
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name},
        "spec": spec,
    }


def sized(name: str, cpu: str = "", *, limit: str = "", **spec: Any) -> dict[str, Any]:
    """Return a pod that requests so much cpu."""
    found = pod(name)
    resources: dict[str, Any] = {}
    if cpu:
        resources["requests"] = {"cpu": cpu}
    if limit:
        resources["limits"] = {"cpu": limit}
    found["spec"]["containers"][0]["resources"] = resources
    found["spec"] |= spec
    return found


async def used(cluster: Cluster, name: str = "q") -> dict[str, str]:
    found: dict[str, str] = (await cluster.ok("GET", f"{QUOTAS}/{name}"))["status"]["used"]
    return found


async def test_a_new_quota_counts_existing_objects():
    cluster = Cluster()
    await cluster.ok("POST", PODS, sized("a", "500m"))
    await cluster.ok("POST", QUOTAS, quota(requests__cpu="2", pods="5", count___secrets="1"))
    found = await cluster.ok("GET", f"{QUOTAS}/q")
    assert found["status"] == {
        "hard": {"count/secrets": "1", "pods": "5", "requests.cpu": "2"},
        "used": {"count/secrets": "0", "pods": "1", "requests.cpu": "500m"},
    }


async def test_the_count_follows_every_write():
    cluster = Cluster()
    await cluster.ok("POST", QUOTAS, quota(cpu="2", pods="5"))
    await cluster.ok("POST", PODS, sized("a", "500m"))
    await cluster.ok("POST", PODS, sized("b", "250m"))
    assert await used(cluster) == {"cpu": "750m", "pods": "2"}
    done = {"status": {"phase": "Succeeded"}}
    await cluster.ok("PATCH", f"{PODS}/a/status", done, content_type=MERGE)
    assert await used(cluster) == {"cpu": "250m", "pods": "1"}
    await cluster.ok("DELETE", f"{PODS}/b")
    assert await used(cluster) == {"cpu": "0", "pods": "0"}
    await cluster.ok("PATCH", f"{QUOTAS}/q", {"spec": {"hard": {"pods": None}}}, content_type=MERGE)
    assert await used(cluster) == {"cpu": "0"}
    await cluster.ok("DELETE", f"{QUOTAS}/q")
    await cluster.ok("POST", PODS, sized("c", "8"))


async def test_a_write_reads_only_quotas_about_its_resources(monkeypatch: pytest.MonkeyPatch):
    """Thousands of quotas about other things do not make every write of a namespace slow."""
    cluster = Cluster()
    await cluster.ok("POST", QUOTAS, quota("pods", pods="5"))
    for n in range(5):
        await cluster.ok("POST", QUOTAS, quota(f"secrets{n}", count___secrets="1"))
    world, read = cluster.server._world, []
    lookup = world.lookup

    def noted(plural: str, namespace: str | None, name: str) -> Any:
        if plural == "resourcequotas":
            read.append(name)
        return lookup(plural, namespace, name)

    shelf = cluster.server.store.shelf("pods")
    await cluster.ok("POST", PODS, pod("a"))
    record = shelf.get(("default", "a"))
    monkeypatch.setattr(world, "lookup", noted)
    cluster.server._quotas._written(world.catalog.by_plural("pods"), None, record)
    assert read == ["pods"]


async def test_a_pod_beyond_the_quota_is_refused_with_the_resource():
    cluster = Cluster()
    await cluster.ok("POST", QUOTAS, quota(requests__cpu="1", pods="1", requests__memory="1Gi"))
    await cluster.ok("POST", PODS, with_memory("a", "600m", "512Mi"))
    assert await cluster.call("POST", PODS, with_memory("b", "500m", "256Mi")) == failure(
        403,
        "Forbidden",
        'pods "b" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=500m, used: '
        "pods=1,requests.cpu=600m, limited: pods=1,requests.cpu=1",
        {"name": "b", "kind": "pods"},
    )
    assert await used(cluster) == {
        "pods": "1",
        "requests.cpu": "600m",
        "requests.memory": "512Mi",
    }


def with_memory(name: str, cpu: str, memory: str) -> dict[str, Any]:
    found = sized(name, cpu)
    found["spec"]["containers"][0]["resources"]["requests"]["memory"] = memory
    return found


async def test_a_bounded_resource_has_to_be_named_by_every_container():
    cluster = Cluster()
    await cluster.ok(
        "POST", QUOTAS, quota(limits__cpu="1", requests__cpu="1", requests__storage="1")
    )
    status, found = await cluster.call("POST", PODS, pod("a"))
    assert (status, found["message"]) == (
        403,
        'pods "a" is forbidden: failed quota: q: must specify limits.cpu for: c; requests.cpu '
        "for: c",
    )


async def test_no_container_has_to_name_a_resource_where_the_pod_has_amounts_as_a_whole():
    cluster = Cluster()
    await cluster.ok("POST", QUOTAS, quota(requests__cpu="70m"))
    whole = pod("a")
    whole["spec"]["resources"] = {"requests": {"cpu": "30m"}}
    await cluster.ok("POST", PODS, whole)
    assert await used(cluster) == {"requests.cpu": "30m"}


async def test_a_dry_run_is_held_to_the_quota_and_not_counted():
    cluster = Cluster()
    await cluster.ok("POST", QUOTAS, quota(pods="1"))
    dry = {"dryRun": "All"}
    await cluster.ok("POST", PODS, pod("a"), query=dry)
    assert await used(cluster) == {"pods": "0"}
    await cluster.ok("POST", PODS, pod("a"))
    assert (await cluster.call("POST", PODS, pod("b"), query=dry))[0] == 403


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        pytest.param("BestEffort", pod("a"), sized("b", "1"), id="best effort"),
        pytest.param("NotBestEffort", sized("a", "1"), pod("b"), id="not best effort"),
        pytest.param(
            "Terminating",
            sized("a", "1", activeDeadlineSeconds=5),
            sized("b", "1"),
            id="with a deadline",
        ),
        pytest.param(
            "NotTerminating",
            sized("a", "1"),
            sized("b", "1", activeDeadlineSeconds=5),
            id="without a deadline",
        ),
        pytest.param(
            "PriorityClass",
            sized("a", "1", priorityClassName="system-node-critical"),
            sized("b", "1"),
            id="with a priority class",
        ),
    ],
)
async def test_a_quota_counts_only_what_is_in_its_scope(scope, inside, outside):
    cluster = Cluster()
    await cluster.ok("POST", QUOTAS, quota(scopes=[scope], pods="1"))
    await cluster.ok("POST", PODS, outside)
    assert await used(cluster) == {"pods": "0"}
    await cluster.ok("POST", PODS, inside)
    assert await used(cluster) == {"pods": "1"}
    other = inside | {"metadata": {"name": "other"}}
    assert (await cluster.call("POST", PODS, other))[0] == 403


async def test_a_scope_selector_compares_priority_classes():
    sent = quota(pods="1")
    expression = {
        "scopeName": "PriorityClass",
        "operator": "In",
        "values": ["system-node-critical"],
    }
    sent["spec"]["scopeSelector"] = {"matchExpressions": [expression]}
    cluster = Cluster()
    await cluster.ok("POST", QUOTAS, sent)
    for name, chosen in (("a", "system-cluster-critical"), ("b", "system-node-critical")):
        await cluster.ok("POST", PODS, sized(name, "1", priorityClassName=chosen))
    assert await used(cluster) == {"pods": "1"}


async def test_objects_of_any_kind_are_counted_by_their_name():
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition())
    hard: dict[str, Any] = {
        "count___cars__example__com": "1",
        "configmaps": "1",
        "count___configmaps": "5",
    }
    await cluster.ok("POST", QUOTAS, quota(**hard))
    await cluster.ok("POST", CARS, car("a"))
    await cluster.ok("POST", CONFIG_MAPS, config_map("a"))
    assert await used(cluster) == {
        "configmaps": "1",
        "count/cars.example.com": "1",
        "count/configmaps": "1",
    }
    status, found = await cluster.call("POST", CARS, car("b"))
    assert (status, found["message"]) == (
        403,
        'cars.example.com "b" is forbidden: exceeded quota: q, requested: '
        "count/cars.example.com=1, used: count/cars.example.com=1, limited: "
        "count/cars.example.com=1",
    )
    assert (await cluster.call("POST", CONFIG_MAPS, config_map("b")))[0] == 403


async def test_a_service_that_grows_ports_is_held_to_the_quota():
    cluster = Cluster()
    await cluster.ok("POST", QUOTAS, quota(services__nodeports="1", services="2"))
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "a"},
        "spec": {"type": "NodePort", "ports": [{"name": "a", "port": 80}]},
    }
    await cluster.ok("POST", SERVICES, service)
    patch = {"spec": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}}
    status, found = await cluster.call("PATCH", f"{SERVICES}/a", patch, content_type=MERGE)
    assert status == 403
    assert "requested: services.nodeports=1, used: services.nodeports=1" in found["message"]


async def test_a_load_balancer_without_node_ports_needs_none_of_the_quota():
    cluster = Cluster()
    await cluster.ok("POST", QUOTAS, quota(services__nodeports="0", services__loadbalancers="1"))
    service: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "a"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }
    assert (await cluster.call("POST", SERVICES, service))[0] == 403
    service["spec"]["allocateLoadBalancerNodePorts"] = False
    made = await cluster.ok("POST", SERVICES, service)
    assert "nodePort" not in made["spec"]["ports"][0]
    patch = {"metadata": {"labels": {"a": "b"}}}
    changed = await cluster.ok("PATCH", f"{SERVICES}/a", patch, content_type=MERGE)
    assert changed["spec"]["ports"] == made["spec"]["ports"]


async def test_claims_are_counted_by_size_and_by_class():
    cluster = Cluster()
    gold = "gold__storageclass__storage__k8s__io___requests__storage"
    hard: dict[str, Any] = {"requests__storage": "3Gi", gold: "2Gi"}
    await cluster.ok("POST", QUOTAS, quota(**hard))
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "a"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "gold",
            "resources": {"requests": {"storage": "1536Mi"}},
        },
    }
    await cluster.ok("POST", CLAIMS, claim)
    assert await used(cluster) == {
        "gold.storageclass.storage.k8s.io/requests.storage": "1536Mi",
        "requests.storage": "1536Mi",
    }
    assert (await cluster.call("POST", CLAIMS, claim | {"metadata": {"name": "b"}}))[0] == 403


async def test_the_table_of_quotas_shows_used_and_hard_amounts():
    cluster = Cluster()
    await cluster.ok("POST", QUOTAS, quota(limits__cpu="2", requests__cpu="1", pods="3"))
    await cluster.ok("POST", PODS, sized("a", "250m", limit="1"))
    table = await cluster.ok("GET", QUOTAS, accept=TABLE)
    assert [row["cells"] for row in table["rows"]] == [
        ["q", "pods: 1/3, requests.cpu: 250m/1", "limits.cpu: 1/2", "0s"]
    ]


async def test_counts_are_taken_up_again_after_a_restart():
    cluster = Cluster()
    await cluster.ok("POST", QUOTAS, quota(pods="1"))
    await cluster.ok("POST", PODS, pod("a"))
    cluster.server.reload()
    assert await used(cluster) == {"pods": "1"}
    assert (await cluster.call("POST", PODS, pod("b")))[0] == 403


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        pytest.param(
            quota(scopes=["BestEffort", "NotBestEffort"], pods="1"),
            'spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes',
            id="scopes agree",
        ),
        pytest.param(
            quota(pods="-1"),
            'spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0',
            id="amounts are not negative",
        ),
    ],
)
async def test_a_faulty_quota_is_refused(changed, fault):
    status, found = await Cluster().call("POST", QUOTAS, changed)
    assert (status, found["message"]) == (422, f'ResourceQuota "q" is invalid: {fault}')
