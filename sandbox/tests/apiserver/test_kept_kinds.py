"""Scope: kinds that follow from the facts alone behave as any other kind does in every verb."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import ResourceType, resource_path
from moorage.kinds.built_in import fact_of, stored_resources
from moorage_sandbox.apiserver.served_kinds import GROUPS
from sandbox.tests.apiserver.harness import MERGE, STRATEGIC, Cluster

OWN = {kind.resource for group in GROUPS for kind in group}
# Their rules hold in every version; scheduler/tests/kinds has them.
RULED = {"ipaddresses", "servicecidrs", "volumeattributesclasses"}
KEPT = [
    each
    for each in stored_resources()
    if each not in OWN
    and each.plural not in RULED
    and "post" in (found.verbs if (found := fact_of(each)) else ())
]
APPLY = "application/apply-patch+yaml"
AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def path_of(resource: ResourceType, name: str | None = None) -> str:
    return resource_path(resource, "default" if resource.namespaced else None, name)


def manifest(resource: ResourceType, name: str = "x", **fields: Any) -> dict[str, Any]:
    """The least object that the rules of every kept kind let through."""
    known = {
        "resourceslices": SLICE,
        "devicetaintrules": RULE,
        "resourceclaims": CLAIM,
        "resourceclaimtemplates": TEMPLATE,
        "mutatingadmissionpolicies": POLICY,
        "mutatingadmissionpolicybindings": {"spec": {"policyName": "x"}},
    }
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        **known.get(resource.plural, {}),
        **fields,
    }


POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}
SLICE: dict[str, Any] = {"spec": {"driver": "d.example.com", "nodeName": "n", "pool": POOL}}
# With its defaults: an apply owns the whole of it.
CONSTRAINTS = {
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "resourceRules": [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["*"],
            "resources": ["pods"],
            "scope": "*",
        }
    ],
}
RULE: dict[str, Any] = {"spec": {"taint": {"key": "k", "effect": "None"}}}
CLAIM: dict[str, Any] = {"spec": {}}
TEMPLATE: dict[str, Any] = {"spec": {"spec": {}}}
POLICY: dict[str, Any] = {
    "spec": {
        "matchConstraints": CONSTRAINTS,
        "mutations": [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}
        ],
        "reinvocationPolicy": "Never",
    }
}


@pytest.mark.parametrize("resource", KEPT, ids=lambda each: f"{each.plural}.{each.api_version}")
async def test_a_kept_kind_answers_every_verb(resource):
    cluster = Cluster()
    collection, path = path_of(resource), path_of(resource, "x")
    watch = await cluster.watch(collection)
    made = await cluster.ok("POST", collection, manifest(resource))
    assert (made["apiVersion"], made["kind"]) == (resource.api_version, resource.kind)
    assert await cluster.ok("GET", path) == made
    assert (await cluster.ok("GET", collection))["items"] == [made]
    for form, value in ((MERGE, "merge"), (STRATEGIC, "strategic")):
        patch = {"metadata": {"labels": {"by": value}}}
        found = await cluster.ok("PATCH", path, patch, content_type=form)
        assert found["metadata"]["labels"] == {"by": value}
    applied = manifest(resource)
    applied["metadata"]["annotations"] = {"example.com/by": "apply"}
    query = {"fieldManager": "test"}
    found = await cluster.ok("PATCH", path, applied, content_type=APPLY, query=query)
    assert found["metadata"]["annotations"] == {"example.com/by": "apply"}
    found["metadata"]["labels"] = {"by": "update"}
    found = await cluster.ok("PUT", path, found)
    table = await cluster.ok("GET", collection, accept=AS_TABLE)
    assert table["rows"][0]["cells"][0] == "x"
    await cluster.ok("DELETE", path)
    await cluster.ok("POST", collection, manifest(resource, "y"))
    await cluster.ok("DELETE", collection)
    assert await cluster.names(collection) == []
    kinds = [kind for kind, _ in await watch.seen(7)]
    assert kinds == ["ADDED", *["MODIFIED"] * 4, "DELETED", "ADDED"]


# AllowUnconditionalUpdate is false in kubernetes v1.36 pkg/registry.
VERSION_REQUIRED = frozenset(
    {
        "apiservices",
        "clustertrustbundles",
        "leasecandidates",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "podcertificaterequests",
        "resourcepoolstatusrequests",
        "storageversionmigrations",
        "storageversions",
        "validatingwebhookconfigurations",
    }
)


@pytest.mark.parametrize("resource", KEPT, ids=lambda each: f"{each.plural}.{each.api_version}")
async def test_an_update_without_a_version_is_refused_where_the_kind_says_so(resource):
    cluster, path = Cluster(), path_of(resource, "x")
    await cluster.ok("POST", path_of(resource), manifest(resource))
    status, found = await cluster.call("PUT", path, manifest(resource))
    refused = status == 422 and "must be specified for an update" in found["message"]
    assert (refused, status) == (
        (True, 422) if resource.plural in VERSION_REQUIRED else (False, 200)
    )


@pytest.mark.parametrize("resource", KEPT, ids=lambda each: f"{each.plural}.{each.api_version}")
async def test_the_schema_of_a_kept_kind_is_enforced(resource):
    cluster, collection = Cluster(), path_of(resource)
    strict = {"fieldValidation": "Strict"}
    body = manifest(resource, nosuch=1)
    status, found = await cluster.call("POST", collection, body, query=strict)
    assert (status, 'unknown field "nosuch"' in found["message"]) == (400, True)
    reply = await cluster.reply("POST", collection, body)
    assert ("Warning", '299 - "unknown field \\"nosuch\\""') in reply.headers
    assert "nosuch" not in await cluster.ok("GET", path_of(resource, "x"))
    labels = {"metadata": {"name": "z", "labels": {"a": 1}}}
    status, found = await cluster.call("POST", collection, manifest(resource) | labels)
    assert (status, found["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    "resource",
    [each for each in KEPT if fact_of(each, "status") is not None],
    ids=lambda each: f"{each.plural}.{each.api_version}",
)
async def test_the_status_is_written_on_its_own(resource):
    cluster, path = Cluster(), path_of(resource, "x")
    made = await cluster.ok("POST", path_of(resource), manifest(resource))
    found = await cluster.ok("PATCH", f"{path}/status", {"status": {}}, content_type=MERGE)
    assert found["metadata"]["name"] == "x"
    assert (await cluster.ok("GET", f"{path}/status")).get("spec") == made.get("spec")


async def test_component_statuses_can_only_be_read():
    cluster, path = Cluster(), "/api/v1/componentstatuses"
    assert await cluster.names(path) == []
    for method, where in (("POST", path), ("DELETE", path)):
        body = {"metadata": {"name": "x"}} if method == "POST" else None
        status, found = await cluster.call(method, where, body)
        assert (status, found["reason"]) == (405, "MethodNotAllowed")


class TestVersionsOfOneKind:
    async def test_an_object_is_read_in_the_version_that_is_asked_for(self):
        cluster = Cluster()
        address = {"spec": {"parentRef": {"resource": "services", "name": "web"}}}
        old = "/apis/networking.k8s.io/v1beta1/ipaddresses"
        body = {"metadata": {"name": "10.0.0.1"}, **address}
        await cluster.ok("POST", old, body)
        for version in ("v1", "v1beta1"):
            path = f"/apis/networking.k8s.io/{version}/ipaddresses/10.0.0.1"
            found = await cluster.ok("GET", path)
            assert (found["apiVersion"], found["spec"]) == (
                f"networking.k8s.io/{version}",
                address["spec"],
            )

    async def test_device_requests_of_v1beta1_have_no_exactly_field(self):
        cluster = Cluster()
        old, new = (
            f"/apis/resource.k8s.io/{version}/namespaces/default/resourceclaims"
            for version in ("v1beta1", "v1")
        )
        request = {"name": "gpu", "deviceClassName": "gpu.example.com", "count": 2}
        spec = {"devices": {"requests": [request]}}
        made = await cluster.ok("POST", old, {"metadata": {"name": "c"}, "spec": spec})
        [shown] = made["spec"]["devices"]["requests"]
        assert shown == request | {"allocationMode": "ExactCount"}
        [stored] = (await cluster.ok("GET", f"{new}/c"))["spec"]["devices"]["requests"]
        exact = {key: value for key, value in shown.items() if key != "name"}
        assert stored == {"name": "gpu", "exactly": exact}

    async def test_devices_of_v1beta1_have_a_basic_field(self):
        cluster = Cluster()
        old, new = (
            f"/apis/resource.k8s.io/{version}/resourceslices" for version in ("v1beta1", "v1")
        )
        basic = {"attributes": {"index": {"int": 1}}, "capacity": {"memory": {"value": "1Gi"}}}
        spec = {**SLICE["spec"], "devices": [{"name": "d0", "basic": basic}]}
        await cluster.ok("POST", old, {"metadata": {"name": "s"}, "spec": spec})
        found = await cluster.ok("GET", f"{old}/s")
        assert found["spec"]["devices"] == [{"name": "d0", "basic": basic}]
        stored = await cluster.ok("GET", f"{new}/s")
        assert stored["spec"]["devices"] == [{"name": "d0", **basic}]
