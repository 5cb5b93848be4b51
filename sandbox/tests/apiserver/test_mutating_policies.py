"""MutatingAdmissionPolicies: how they change objects, and when a write is refused for them.

Does not cover: which writes a policy is about (`test_admission_policies`).
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.policies.object_literals import with_maps
from moorage_sandbox.apiserver.wire.requests import Request
from sandbox.tests.apiserver.crd import DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import (
    ADMIN,
    CONFIG_MAPS,
    MERGE,
    PODS,
    Cluster,
    config_map,
    pod,
)

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{GROUP}/mutatingadmissionpolicies"
BINDINGS = f"{GROUP}/mutatingadmissionpolicybindings"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def configuration(expression: str) -> dict[str, Any]:
    """Return a mutation that lays a configuration over the object."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def operations(expression: str) -> dict[str, Any]:
    """Return a mutation with a JSON patch."""
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def policy(*mutations: Any, group: str = "", plural: str = "configmaps", **spec: Any) -> Any:
    """Return a policy about creations and updates of a resource."""
    rule = {
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural],
    }
    wanted = {
        "matchConstraints": {"resourceRules": [rule]},
        "mutations": list(mutations),
        "reinvocationPolicy": "Never",
    }
    return {"metadata": {"name": "p"}, "spec": wanted | spec}


async def cluster_with(*policies: Any, **bound: Any) -> Cluster:
    cluster = Cluster()
    for index, wanted in enumerate(policies):
        name = f"p{index}"
        await cluster.ok("POST", POLICIES, wanted | {"metadata": {"name": name}})
        spec = {"policyName": name} | bound
        await cluster.ok("POST", BINDINGS, {"metadata": {"name": name}, "spec": spec})
    return cluster


ANNOTATED = configuration(
    """
    Object{
        metadata: Object.metadata{
            annotations: {"mutated-by": "admission-policy"}
        }
    }"""
)


def deployment() -> dict[str, Any]:
    return {
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "d"}},
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": pod()["spec"]},
        },
    }


async def test_a_deployment_is_annotated_when_it_is_created_and_when_it_is_changed():
    cluster = await cluster_with(policy(ANNOTATED, group="apps", plural="deployments"))
    made = await cluster.ok("POST", DEPLOYMENTS, deployment())
    assert made["metadata"]["annotations"] == {"mutated-by": "admission-policy"}
    body = {"metadata": {"annotations": {"mutated-by": None, "own": "x"}}}
    changed = await cluster.ok("PATCH", f"{DEPLOYMENTS}/d", body, content_type=MERGE)
    assert changed["metadata"]["annotations"] == {"mutated-by": "admission-policy", "own": "x"}
    assert changed["metadata"]["uid"] == made["metadata"]["uid"]

    await cluster.ok("DELETE", f"{BINDINGS}/p0")
    left = await cluster.ok("PUT", f"{DEPLOYMENTS}/d", deployment())
    assert "annotations" not in left["metadata"]


async def test_a_field_that_a_policy_sets_in_an_applied_object_has_no_owner():
    """apiserver v1.36 endpoints/handlers/patch.go: managers are recorded before admission."""
    cluster = await cluster_with(policy(configuration("Object{data: {'b': 'y'}}")))
    body = config_map(a="x")
    query = {"fieldManager": "me"}
    path, form = f"{CONFIG_MAPS}/a", "application/apply-patch+yaml"
    for value in ("x", "z"):
        body["data"]["a"] = value
        found = await cluster.ok("PATCH", path, body, content_type=form, query=query)
        assert found["data"] == {"a": value, "b": "y"}
        [manager] = found["metadata"]["managedFields"]
        assert (manager["manager"], manager["fieldsV1"]) == ("me", {"f:data": {"f:a": {}}})


@pytest.mark.parametrize(
    ("method", "form"),
    [
        pytest.param("PUT", "application/json", id="an update"),
        pytest.param("PATCH", MERGE, id="a patch"),
    ],
)
async def test_a_field_that_a_policy_sets_in_a_changed_object_has_no_owner(method, form):
    """apiserver v1.36 endpoints/handlers, update.go and patch.go: as for an apply."""
    cluster = await cluster_with(policy(configuration("Object{data: {'b': object.data.a}}")))
    path, query = f"{CONFIG_MAPS}/a", {"fieldManager": "me"}
    applied = {"content_type": "application/apply-patch+yaml", "query": {"fieldManager": "one"}}
    await cluster.ok("PATCH", path, config_map(a="x", c="x"), **applied)
    body = config_map(a="y", c="x")
    found = await cluster.ok(method, path, body, content_type=form, query=query)
    assert found["data"] == {"a": "y", "b": "y", "c": "x"}
    assert {m["manager"]: m["fieldsV1"] for m in found["metadata"]["managedFields"]} == {
        "one": {"f:data": {"f:c": {}}},
        "me": {"f:data": {"f:a": {}}},
    }


async def test_a_field_that_a_policy_changes_back_belongs_to_the_caller_who_changed_it():
    cluster = await cluster_with(policy(configuration("Object{data: {'a': 'x'}}")))
    path = f"{CONFIG_MAPS}/a"
    applied = {"content_type": "application/apply-patch+yaml", "query": {"fieldManager": "one"}}
    await cluster.ok("PATCH", path, config_map(a="x", c="x"), **applied)
    body, query = {"data": {"a": "y"}}, {"fieldManager": "me"}
    found = await cluster.ok("PATCH", path, body, content_type=MERGE, query=query)
    assert found["data"] == {"a": "x", "c": "x"}
    assert {m["manager"]: m["fieldsV1"] for m in found["metadata"]["managedFields"]} == {
        "one": {"f:data": {"f:c": {}}},
        "me": {"f:data": {"f:a": {}}},
    }


@pytest.mark.parametrize(
    ("mutation", "expected"),
    [
        pytest.param(
            configuration("Object{data: {'a': object.data.a + '!', 'b': 'y'}}"),
            {"a": "x!", "b": "y"},
            id="a configuration keeps other fields",
        ),
        pytest.param(
            configuration("has(object.data.b) ? Object{} : Object{data: {'b': 'y'}}"),
            {"a": "x", "b": "y"},
            id="one of two configurations",
        ),
        pytest.param(
            configuration("Object{data: {?'b': optional.none(), ?'c': optional.of('z')}}"),
            {"a": "x", "c": "z"},
            id="optional entries",
        ),
        pytest.param(
            operations("[JSONPatch{op: 'replace', path: '/data/a', value: variables.new}]"),
            {"a": "XX"},
            id="a patch with a variable of the policy",
        ),
        pytest.param(
            operations(
                "[JSONPatch{op: 'test', path: '/data/a', value: 'x'},"
                " JSONPatch{op: 'add', path: '/data/b', value: jsonpatch.escapeKey('k/v')}]"
            ),
            {"a": "x", "b": "k~1v"},
            id="a patch with a test that holds",
        ),
        pytest.param(
            operations(
                "[JSONPatch{op: 'test', path: '/data/a', value: 'z'},"
                " JSONPatch{op: 'remove', path: '/data/a'}]"
            ),
            {"a": "x"},
            id="a patch with a test that does not hold",
        ),
        pytest.param(operations("[]"), {"a": "x"}, id="an empty patch"),
    ],
)
async def test_a_mutation_changes_the_object(mutation, expected):
    variables = [{"name": "new", "expression": "'X' + 'X'"}]
    cluster = await cluster_with(policy(mutation, variables=variables))
    made = await cluster.ok("POST", CONFIG_MAPS, config_map(a="x"))
    assert made["data"] == expected
    assert (await cluster.ok("GET", f"{CONFIG_MAPS}/a"))["data"] == expected


async def test_containers_are_merged_by_name_and_the_result_has_defaults():
    mutation = configuration(
        """Object{spec: Object.spec{
            initContainers: [Object.spec.initContainers{name: "proxy", image: "proxy:1",
                restartPolicy: "Always"}],
            containers: [Object.spec.containers.item{name: "c", env: [
                Object.spec.containers.env.item{name: "A", value: string(1)}]}]
        }}"""
    )
    cluster = await cluster_with(policy(mutation, plural="pods"))
    spec = (await cluster.ok("POST", PODS, pod()))["spec"]
    assert [(each["name"], each["image"]) for each in spec["containers"]] == [("c", "nginx:1")]
    assert spec["containers"][0]["env"] == [{"name": "A", "value": "1"}]
    assert spec["initContainers"][0]["terminationMessagePolicy"] == "File"


async def test_mutations_see_what_those_before_them_have_changed_and_are_validated():
    cluster = await cluster_with(
        policy(
            configuration("Object{data: {'b': object.data.a}}"),
            configuration("Object{data: {'c': object.data.b}}"),
        ),
        policy(configuration("Object{data: {'d': object.data.c}}")),
    )
    made = await cluster.ok("POST", CONFIG_MAPS, config_map(a="x"))
    assert made["data"] == dict.fromkeys("abcd", "x")
    broken = operations("[JSONPatch{op: 'add', path: '/data/x%y', value: ''}]")
    status, answer = await (await cluster_with(policy(broken))).call(
        "POST", CONFIG_MAPS, config_map(a="x")
    )
    assert (status, answer["details"]["causes"][0]["field"]) == (422, "data[x%y]")


@pytest.mark.parametrize(
    ("again", "expected"), [("Never", {"a": "x", "b": "y"}), ("IfNeeded", {"a": "x", "b": "yy"})]
)
async def test_a_policy_is_asked_again_after_a_later_change_where_it_wants_to(again, expected):
    first = configuration("has(object.data.b) ? Object{data: {'b': 'yy'}} : Object{}")
    cluster = await cluster_with(
        policy(first, reinvocationPolicy=again), policy(configuration("Object{data: {'b': 'y'}}"))
    )
    assert (await cluster.ok("POST", CONFIG_MAPS, config_map(a="x")))["data"] == expected


async def test_match_conditions_and_parameters_hold_for_mutations_too():
    conditions = [{"name": "c", "expression": "object.metadata.name != 'exempt'"}]
    wanted = policy(
        configuration("Object{data: {'b': params.data.text}}"),
        matchConditions=conditions,
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    ref = {"name": "texts", "parameterNotFoundAction": "Deny", "namespace": "default"}
    cluster = await cluster_with(wanted, paramRef=ref)
    status, answer = await cluster.call("POST", CONFIG_MAPS, config_map("texts", text="x"))
    why = "no params found for policy binding with `Deny` parameterNotFoundAction"
    assert (status, answer["message"]) == (
        422,
        f"configmaps \"texts\" is forbidden: policy 'p0' with binding 'p0' denied request: {why}",
    )
    await cluster.ok("DELETE", f"{BINDINGS}/p0")
    await cluster.ok("POST", CONFIG_MAPS, config_map("texts", text="x"))
    spec = {"policyName": "p0", "paramRef": ref}
    await cluster.ok("POST", BINDINGS, {"metadata": {"name": "p0"}, "spec": spec})
    made = await cluster.ok("POST", CONFIG_MAPS, config_map("other", a=""))
    assert made["data"] == {"a": "", "b": "x"}
    assert (await cluster.ok("POST", CONFIG_MAPS, config_map("exempt", a="")))["data"] == {"a": ""}


async def test_custom_resources_and_statuses_are_changed_and_policies_are_not():
    mutation = configuration("Object{metadata: Object.metadata{labels: {'seen': 'yes'}}}")
    wanted = policy(mutation, group="*", plural="*")
    wanted["spec"]["matchConstraints"]["resourceRules"][0]["resources"] = ["*", "cars/status"]
    cluster = await cluster_with(wanted)
    made = await cluster.ok("POST", DEFINITIONS, definition())
    assert made["metadata"]["labels"] == {"seen": "yes"}
    path = "/apis/example.com/v1/namespaces/default/cars"
    assert (await cluster.ok("POST", path, car()))["metadata"]["labels"] == {"seen": "yes"}
    found = await cluster.ok("GET", f"{POLICIES}/p0")
    assert "labels" not in found["metadata"]


@pytest.mark.parametrize(
    ("mutation", "why"),
    [
        pytest.param(
            configuration("Object{spec: Object.spec{selector: Object.spec.selector{}}}"),
            "error applying patch: invalid ApplyConfiguration: "
            "may not mutate atomic arrays, maps or structs: .spec.selector",
            id="a value that is owned as a whole",
        ),
        pytest.param(
            configuration("Object{spec: Object.spec{replicas: 'many'}}"),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of "
            "type int32",
            id="a wrong type",
        ),
        pytest.param(
            configuration("Object{spec: Object.spec{nothing: 1}}"),
            'unknown field "spec.nothing"',
            id="an unknown field",
        ),
        pytest.param(
            configuration("Object{spec: Object.spec{replicas: object.spec.nothing}}"),
            "expression 'Object{spec: Object.spec{replicas: object.spec.nothing}}' resulted in "
            'error: Key not found in map : "nothing"',
            id="a field that is absent",
        ),
        pytest.param(
            operations("[JSONPatch{op: 'remove', path: '/spec/nothing'}]"),
            "JSON patch: can't remove a non-existent object 'nothing'",
            id="a patch that does not fit",
        ),
    ],
)
async def test_a_mutation_that_fails_refuses_the_write_unless_failures_are_ignored(mutation, why):
    wanted = policy(mutation, group="apps", plural="deployments")
    status, answer = await (await cluster_with(wanted)).call("POST", DEPLOYMENTS, deployment())
    message = f"policy 'p0' with binding 'p0' denied request: {why}"
    assert (status, answer["reason"]) == (422, "Invalid")
    assert answer["message"] == f'deployments.apps "d" is forbidden: {message}'
    wanted["spec"]["failurePolicy"] = "Ignore"
    await (await cluster_with(wanted)).ok("POST", DEPLOYMENTS, deployment())


async def test_writes_may_wait_once_there_are_policies():
    call = Request(method="POST", path=CONFIG_MAPS, user=ADMIN)
    assert Cluster().server.answers_at_once(call)
    assert not (await cluster_with(policy(ANNOTATED))).server.answers_at_once(call)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        pytest.param(
            policy(configuration("Object{")),
            "spec.mutations[0].applyConfiguration.expression",
            id="syntax",
        ),
        pytest.param(
            policy(operations("Object{}.a == 1")),
            "spec.mutations[0].jsonPatch.expression",
            id="type",
        ),
        pytest.param(
            policy({"patchType": "JSONPatch", "jsonPatch": None}),
            "spec.mutations[0].jsonPatch",
            id="no expression",
        ),
        pytest.param(
            policy(ANNOTATED | {"patchType": "x"}), "spec.mutations[0].patchType", id="kind"
        ),
        pytest.param(policy(), "spec.mutations", id="no mutations"),
        pytest.param(
            policy(ANNOTATED, reinvocationPolicy="x"), "spec.reinvocationPolicy", id="reinvocation"
        ),
    ],
)
async def test_a_policy_that_cannot_be_evaluated_anywhere_is_refused(wanted, field):
    status, answer = await Cluster().call("POST", POLICIES, wanted)
    assert status == 422
    assert field in [each["field"] for each in answer["details"]["causes"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Object{}", "dyn({})"),
        ("Object{a: Object.a{b : 1}}", 'dyn({"a": dyn({"b" : 1})})'),
        ("Object . a {b: x ? {'c': d} : e}", "dyn({\"b\": x ? {'c': d} : e})"),
        (
            "Object{a: 1, ?b: c.?d, __namespace__: e[f]}",
            'dyn({"a": 1, ?"b": c.?d, "namespace": e[f]})',
        ),
        ("'Object{a: 1}' + \"{b: 1}\"", "'Object{a: 1}' + \"{b: 1}\""),
        ("Object{a: 1, // and\n b: 2}", 'dyn({"a": 1, // and\n "b": 2})'),
        ("variables.Object{a: 1}", "variables.Object{a: 1}"),
        ("[JSONPatch{op: 'add'}].map(x, x)", "[dyn({\"op\": 'add'})].map(x, x)"),
    ],
)
def test_objects_in_expressions_become_maps(text, expected):
    assert with_maps(text) == expected
