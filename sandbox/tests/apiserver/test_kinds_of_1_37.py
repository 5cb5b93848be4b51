"""Scope: what a server that plays 1.37 serves besides what 1.36 has, and in its place.

DeviceTaintRule in v1; PodGroup and Workload in v1beta1 and v1alpha3, not in v1alpha2.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage_sandbox.apiserver.catalog import Catalog
from moorage_sandbox.apiserver.protobuf.envelope import read_object, write_object
from moorage_sandbox.apiserver.served_kinds import served_kinds
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF
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


def served(*, of_1_37: bool) -> set[str]:
    kinds = Catalog(served_kinds(of_1_37=of_1_37)).kinds
    return {f"{kind.resource.api_version} {kind.resource.plural}" for kind in kinds}


def test_what_is_served_that_1_36_lacks_and_what_is_gone() -> None:
    before, now = served(of_1_37=False), served(of_1_37=True)
    assert sorted(now - before) == [
        "resource.k8s.io/v1 devicetaintrules",
        "scheduling.k8s.io/v1alpha3 compositepodgroups",
        "scheduling.k8s.io/v1alpha3 podgroups",
        "scheduling.k8s.io/v1alpha3 workloads",
        "scheduling.k8s.io/v1beta1 podgroups",
        "scheduling.k8s.io/v1beta1 workloads",
    ]
    assert sorted(before - now) == [
        "scheduling.k8s.io/v1alpha2 podgroups",
        "scheduling.k8s.io/v1alpha2 workloads",
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


# -- groups ---------------------------------------------------------------------------------------

GROUPS = {
    version: f"/apis/scheduling.k8s.io/{version}/namespaces/default/podgroups"
    for version in ("v1alpha2", "v1alpha3", "v1beta1")
}
GANG: dict[str, Any] = {"gang": {"minCount": 2}}
REF = {"workloadName": "w", "templateName": "t"}


def group(version: str = "v1beta1", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": GANG, **spec},
    }


def workload(*templates: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "default"},
        "spec": {"podGroupTemplates": list(templates), **spec},
    }


def template(name: str = "t", **spec: Any) -> dict[str, Any]:
    return {"name": name, "schedulingPolicy": GANG, **spec}


@pytest.mark.parametrize("version", ["v1alpha3", "v1beta1"])
async def test_a_group_is_the_same_object_in_both_versions(version: str) -> None:
    cluster = Cluster(of_1_37=True)
    ref = {"workloadName": "w", "templateName": "t"}
    await cluster.ok("POST", GROUPS[version], group(version, workloadRef=ref))
    for other in ("v1alpha3", "v1beta1"):
        found = await cluster.ok("GET", f"{GROUPS[other]}/g")
        assert found["apiVersion"] == f"scheduling.k8s.io/{other}"
        assert found["spec"] == {
            "schedulingPolicy": GANG,
            "workloadRef": ref,
            "disruptionMode": {"single": {}},
        }
        listed = await cluster.ok("GET", GROUPS[other])
        assert [each["spec"] for each in listed["items"]] == [found["spec"]]
    assert (await cluster.call("GET", GROUPS["v1alpha2"]))[0] == 404


@pytest.mark.parametrize("version", ["v1alpha3", "v1beta1"])
async def test_a_group_and_a_rule_may_be_written_and_read_in_protobuf(version: str) -> None:
    cluster = Cluster(of_1_37=True)
    made = group(version, disruptionMode={"all": {}}, priority=5)
    for path, name, obj in ((GROUPS[version], "g", made), (V1, "r", rule())):
        sent = await cluster.reply(
            "POST", path, write_object(obj), content_type=PROTOBUF, accept=PROTOBUF
        )
        assert (sent.status, sent.content_type) == (201, PROTOBUF)
        shown = await cluster.reply("GET", f"{path}/{name}", accept=PROTOBUF)
        listed = await cluster.reply("GET", path, accept=PROTOBUF)
        assert isinstance(sent.body, bytes)
        assert isinstance(shown.body, bytes)
        assert isinstance(listed.body, bytes)
        one, many = read_object(shown.body, ("", "")), read_object(listed.body, ("", ""))
        assert one == read_object(sent.body, ("", ""))
        in_json = await cluster.ok("GET", f"{path}/{name}")
        assert one["spec"] == many["items"][0]["spec"] == in_json["spec"]


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        pytest.param({}, [], id="a gang"),
        pytest.param({"schedulingPolicy": {"basic": {}}}, [], id="a basic group"),
        pytest.param({"schedulingPolicy": {}}, ["spec.schedulingPolicy"], id="no policy"),
        pytest.param(
            {"schedulingPolicy": {"basic": {}, **GANG}},
            ["spec.schedulingPolicy"],
            id="two policies",
        ),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            ["spec.schedulingPolicy.gang.minCount"],
            id="no members",
        ),
        pytest.param({"disruptionMode": {"all": {}}}, [], id="disrupted as a whole"),
        pytest.param({"disruptionMode": {}}, ["spec.disruptionMode"], id="no mode"),
        pytest.param(
            {"disruptionMode": {"all": {}, "single": {}}}, ["spec.disruptionMode"], id="two modes"
        ),
        pytest.param(
            {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            ["spec.schedulingConstraints.topology"],
            id="two topologies",
        ),
        pytest.param({"priority": 1_000_000_001}, ["spec.priority"], id="a system's priority"),
        pytest.param(
            {"resourceClaims": [{"name": f"c{n}", "resourceClaimName": "c"} for n in range(5)]},
            ["spec.resourceClaims"],
            id="five claims",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "c"}]}, ["spec.resourceClaims[0]"], id="a claim of nothing"
        ),
        pytest.param(
            {"preemptionPolicy": "Never"}, ["spec.preemptionPolicy"], id="a field of a gate"
        ),
        pytest.param(
            {"parentCompositePodGroupName": "c", "workloadRef": REF}, [], id="a part of a composite"
        ),
        pytest.param(
            {"parentCompositePodGroupName": "No", "workloadRef": REF},
            ["spec.parentCompositePodGroupName"],
            id="a part of what cannot be named so",
        ),
        pytest.param(
            {"parentCompositePodGroupName": "c"}, ["spec.workloadRef"], id="a part of no workload"
        ),
        pytest.param(
            {"workloadRef": {"workloadName": "w", "templateName": ""}},
            ["spec.workloadRef.templateName"],
            id="a reference to no template",
        ),
    ],
)
async def test_the_spec_of_a_group_is_checked(spec: dict[str, Any], fields: list[str]) -> None:
    status, found = await Cluster(of_1_37=True).call("POST", GROUPS["v1beta1"], group(**spec))
    if not fields:
        assert status == 201
        return
    assert (status, [each["field"] for each in found["details"]["causes"]]) == (422, fields)


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        pytest.param({"schedulingPolicy": {"gang": {"minCount": 5}}}, [], id="another minimum"),
        pytest.param(
            {"schedulingPolicy": {"basic": {}}},
            ["spec.schedulingPolicy.basic", "spec.schedulingPolicy.gang"],
            id="another policy",
        ),
        pytest.param({"disruptionMode": {"all": {}}}, ["spec.disruptionMode"], id="another mode"),
        pytest.param({"priority": 7}, ["spec.priority"], id="another priority"),
    ],
)
async def test_of_a_group_only_the_minimum_may_change(
    spec: dict[str, Any], fields: list[str]
) -> None:
    cluster = Cluster(of_1_37=True)
    made = await cluster.ok("POST", GROUPS["v1beta1"], group())
    made["spec"] |= spec
    status, found = await cluster.call("PUT", f"{GROUPS['v1beta1']}/g", made)
    if not fields:
        assert (status, found["metadata"]["generation"]) == (200, 2)
        return
    assert (status, [each["field"] for each in found["details"]["causes"]]) == (422, fields)


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        pytest.param(workload(template()), [], id="one template"),
        pytest.param(workload(), ["spec"], id="no template"),
        pytest.param(
            workload(*(template(f"t{n}") for n in range(9))),
            ["spec.podGroupTemplates"],
            id="nine templates",
        ),
        pytest.param(
            workload(template("No")), ["spec.podGroupTemplates[0].name"], id="no label as a name"
        ),
        pytest.param(
            workload(template(), compositePodGroupTemplates=[{"name": "c"}]),
            ["spec.compositePodGroupTemplates"],
            id="composite groups",
        ),
    ],
)
async def test_a_workload_is_checked(obj: dict[str, Any], fields: list[str]) -> None:
    path = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads"
    status, found = await Cluster(of_1_37=True).call("POST", path, obj)
    if not fields:
        assert status == 201
        return
    assert (status, [each["field"] for each in found["details"]["causes"]]) == (422, fields)


@pytest.mark.parametrize(
    ("templates", "fields"),
    [
        pytest.param(
            [template(schedulingPolicy={"gang": {"minCount": 9}})], [], id="another minimum"
        ),
        pytest.param(
            [template(), template("u")], ["spec.podGroupTemplates[1]"], id="a template more"
        ),
        pytest.param(
            [template("u")],
            ["spec.podGroupTemplates[0]", "spec.podGroupTemplates"],
            id="another template",
        ),
        pytest.param(
            [template(priority=3)], ["spec.podGroupTemplates[0].priority"], id="another priority"
        ),
    ],
)
async def test_of_a_workload_only_minimums_may_change(
    templates: list[dict[str, Any]], fields: list[str]
) -> None:
    cluster = Cluster(of_1_37=True)
    path = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads"
    made = await cluster.ok("POST", path, workload(template()))
    made["spec"]["podGroupTemplates"] = templates
    status, found = await cluster.call("PUT", f"{path}/w", made)
    if not fields:
        assert status == 200
        return
    assert (status, [each["field"] for each in found["details"]["causes"]]) == (422, fields)


async def test_the_versions_of_groups_are_discovered_and_described() -> None:
    cluster = Cluster(of_1_37=True)
    found = await cluster.ok("GET", "/apis/scheduling.k8s.io")
    assert [each["version"] for each in found["versions"]] == ["v1", "v1beta1", "v1alpha3"]
    names = [
        each["name"]
        for each in (await cluster.ok("GET", "/apis/scheduling.k8s.io/v1beta1"))["resources"]
    ]
    assert names == ["podgroups", "podgroups/status", "workloads"]
    schemas = (await cluster.ok("GET", "/openapi/v3/apis/scheduling.k8s.io/v1beta1"))["components"]
    assert "io.k8s.api.scheduling.v1beta1.DisruptionMode" in schemas["schemas"]
    assert "v1alpha2" not in str(schemas)


async def test_the_status_of_a_group_is_patched() -> None:
    cluster = Cluster(of_1_37=True)
    await cluster.ok("POST", GROUPS["v1beta1"], group())
    condition = {
        "type": "PodGroupInitiallyScheduled",
        "status": "True",
        "reason": "Scheduled",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    body = {"status": {"conditions": [condition]}}
    merging = "application/merge-patch+json"
    await cluster.ok("PATCH", f"{GROUPS['v1alpha3']}/g/status", body, content_type=merging)
    found = await cluster.ok("GET", f"{GROUPS['v1beta1']}/g")
    assert found["status"]["conditions"] == [condition]


# -- groups of groups -----------------------------------------------------------------------------

COMPOSITES = "/apis/scheduling.k8s.io/v1alpha3/namespaces/default/compositepodgroups"


def composite(**spec: Any) -> dict[str, Any]:
    policy = {"gang": {"minGroupCount": 2}}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"schedulingPolicy": policy, "workloadRef": REF, **spec},
    }


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        pytest.param({}, [], id="a gang of groups"),
        pytest.param({"schedulingPolicy": {"basic": {}}}, [], id="groups on their own"),
        pytest.param({"parentCompositePodGroupName": "root"}, [], id="a nested one"),
        pytest.param({"schedulingPolicy": {}}, ["spec.schedulingPolicy"], id="no policy"),
        pytest.param(
            {"schedulingPolicy": {"gang": {"minGroupCount": 0}}},
            ["spec.schedulingPolicy.gang.minGroupCount"],
            id="no groups",
        ),
        pytest.param(
            {"workloadRef": {"workloadName": "w", "templateName": ""}},
            ["spec.workloadRef.templateName"],
            id="no template",
        ),
        pytest.param({"priority": 1_000_000_001}, ["spec.priority"], id="a system's priority"),
        pytest.param(
            {"preemptionPolicy": "Never"}, ["spec.preemptionPolicy"], id="a field of a gate"
        ),
    ],
)
async def test_a_composite_group_is_checked(spec: dict[str, Any], fields: list[str]) -> None:
    status, found = await Cluster(of_1_37=True).call("POST", COMPOSITES, composite(**spec))
    if not fields:
        assert (status, found["spec"]["disruptionMode"]) == (201, {"single": {}})
        return
    assert (status, [each["field"] for each in found["details"]["causes"]]) == (422, fields)


async def test_of_a_composite_group_only_the_minimum_may_change() -> None:
    cluster = Cluster(of_1_37=True)
    made = await cluster.ok("POST", COMPOSITES, composite())
    made["spec"]["schedulingPolicy"]["gang"]["minGroupCount"] = 3
    changed = await cluster.ok("PUT", f"{COMPOSITES}/c", made)
    assert changed["metadata"]["generation"] == 2
    changed["spec"]["parentCompositePodGroupName"] = "root"
    changed["spec"]["schedulingPolicy"] = {"basic": {}}
    status, found = await cluster.call("PUT", f"{COMPOSITES}/c", changed)
    assert (status, sorted(each["field"] for each in found["details"]["causes"])) == (
        422,
        [
            "spec.parentCompositePodGroupName",
            "spec.schedulingPolicy.basic",
            "spec.schedulingPolicy.gang",
        ],
    )


async def test_a_composite_group_has_a_status_and_a_description() -> None:
    cluster = Cluster(of_1_37=True)
    await cluster.ok("POST", COMPOSITES, composite())
    condition = {
        "type": "CompositePodGroupInitiallyScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    body, merging = {"status": {"conditions": [condition]}}, "application/merge-patch+json"
    await cluster.ok("PATCH", f"{COMPOSITES}/c/status", body, content_type=merging)
    assert (await cluster.ok("GET", f"{COMPOSITES}/c"))["status"]["conditions"] == [condition]
    schemas = (await cluster.ok("GET", "/openapi/v3/apis/scheduling.k8s.io/v1alpha3"))["components"]
    assert "io.k8s.api.scheduling.v1alpha3.CompositePodGroupSpec" in schemas["schemas"]
    assert (await Cluster().call("GET", COMPOSITES))[0] == 404
