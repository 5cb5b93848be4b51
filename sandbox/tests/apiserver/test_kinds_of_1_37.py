"""Scope: what a server that plays 1.37 serves besides what 1.36 has: DeviceTaintRule in v1."""

from __future__ import annotations

from typing import Any

import pytest

from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.wire.requests import User
from sandbox.tests.apiserver.harness import Cluster

V1, BETA, ALPHA = (
    f"/apis/resource.k8s.io/{version}/devicetaintrules" for version in ("v1", "v1beta2", "v1alpha3")
)
FULL = "io.k8s.api.resource.v1.DeviceTaint"


def rule(version: str = "v1") -> dict[str, Any]:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"taint": {"key": "k", "effect": "NoSchedule"}},
    }


def test_nothing_else_is_served_that_1_36_lacks() -> None:
    older = {kind.resource for kind in served_kinds()}
    more = [kind.resource for kind in served_kinds(of_1_37=True) if kind.resource not in older]
    assert [(each.api_version, each.kind) for each in more] == [
        ("resource.k8s.io/v1", "DeviceTaintRule")
    ]


async def test_1_36_does_not_serve_v1() -> None:
    assert (await Cluster().call("GET", V1))[0] == 404


@pytest.mark.parametrize("path", [V1, BETA, ALPHA])
async def test_a_rule_is_the_same_object_in_every_version(path: str) -> None:
    cluster = Cluster(of_1_37=True)
    version = path.split("/")[3]
    await cluster.ok("POST", path, rule(version))
    for other in (V1, BETA, ALPHA):
        found = await cluster.ok("GET", f"{other}/r")
        assert found["apiVersion"] == f"resource.k8s.io/{other.split('/')[3]}"
        assert found["metadata"]["generation"] == 1
        assert found["spec"]["taint"].keys() == {"key", "effect", "timeAdded"}


async def test_v1_refuses_what_is_no_rule() -> None:
    odd = rule()
    odd["spec"]["taint"]["effect"] = "Sometimes"
    status, found = await Cluster(of_1_37=True).call("POST", V1, odd)
    assert (status, found["details"]["causes"][0]["field"]) == (422, "spec.taint.effect")


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param(V1, 422, id="v1 asks for a resourceVersion"),
        pytest.param(BETA, 200, id="older versions do not"),
        pytest.param(ALPHA, 200, id="nor does the alpha version"),
    ],
)
async def test_an_update_without_a_version(path: str, code: int) -> None:
    cluster = Cluster(of_1_37=True)
    await cluster.ok("POST", V1, rule())
    changed = rule(path.split("/")[3])
    changed["spec"]["taint"]["value"] = "new"
    assert (await cluster.call("PUT", f"{path}/r", changed))[0] == code


async def test_v1_is_discovered_with_its_status_and_preferred() -> None:
    cluster = Cluster(of_1_37=True)
    found = await cluster.ok("GET", "/apis/resource.k8s.io/v1")
    verbs = {each["name"]: each["verbs"] for each in found["resources"]}
    assert verbs["devicetaintrules/status"] == ["get", "patch", "update"]
    assert verbs["devicetaintrules"] == [
        *("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"),
    ]


async def test_the_schema_of_v1_refers_to_v1_alone() -> None:
    found = await Cluster(of_1_37=True).ok("GET", "/openapi/v3/apis/resource.k8s.io/v1")
    schemas = found["components"]["schemas"]
    names = {name for name in schemas if name.startswith(FULL)}
    assert {f"{FULL}Rule", f"{FULL}RuleList", f"{FULL}RuleSpec", f"{FULL}Selector"} <= names
    assert "v1beta2.DeviceTaint" not in str(schemas)


async def test_the_scheduler_may_read_rules_and_write_none() -> None:
    cluster = Cluster(of_1_37=True, rbac=True)
    scheduler = User("system:kube-scheduler", ())
    assert (await cluster.call("GET", V1, user=scheduler))[0] == 200
    assert (await cluster.call("POST", V1, rule(), user=scheduler))[0] == 403


async def test_every_document_names_1_37() -> None:
    cluster = Cluster(of_1_37=True)
    version = await cluster.ok("GET", "/version")
    named = {version["gitVersion"]}
    for path in ("/openapi/v2", "/openapi/v3/apis/resource.k8s.io/v1"):
        named.add((await cluster.ok("GET", path))["info"]["version"])
    metrics = await cluster.reply("GET", "/metrics")
    assert named == {"v1.37.0+moorage"}
    assert (version["major"], version["minor"]) == ("1", "37")
    assert isinstance(metrics.body, bytes)
    assert b'kubernetes_build_info{git_version="v1.37.0+moorage"} 1.0' in metrics.body
