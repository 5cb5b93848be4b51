"""ValidatingAdmissionPolicies: which writes they deny, and in which words.

Does not cover: the CEL runtime itself (`custom_rules`).
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from moorage.base.rng import Streams
from moorage_sandbox.apiserver.audit import AuditLog
from moorage_sandbox.apiserver.policies.noting import FAILURES
from sandbox.tests.apiserver.crd import DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import CONFIG_MAPS, Cluster, config_map, namespace

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
MERGE = "application/merge-patch+json"
EVERY_CONFIG_MAP = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}


def policy(*expressions: Any, constraints: Any = None, **spec: Any) -> dict[str, Any]:
    """Return a policy for config maps; an expression is a text or a whole validation."""
    validations = [{"expression": e} if isinstance(e, str) else e for e in expressions]
    spec = {"matchConstraints": {"resourceRules": [EVERY_CONFIG_MAP], **(constraints or {})}} | spec
    return {"metadata": {"name": "p"}, "spec": {"validations": validations} | spec}


def binding(**spec: Any) -> dict[str, Any]:
    """Return a binding of the policy ``p``."""
    wanted = {"policyName": "p", "validationActions": ["Deny"]} | spec
    return {"metadata": {"name": "b"}, "spec": wanted}


async def cluster_with(wanted: dict[str, Any], bound: dict[str, Any] | None = None) -> Cluster:
    cluster = Cluster()
    await cluster.ok("POST", POLICIES, wanted)
    await cluster.ok("POST", BINDINGS, bound or binding())
    return cluster


async def told(cluster: Cluster, body: dict[str, Any], path: str = CONFIG_MAPS) -> tuple[int, str]:
    """Create an object; return the status, and what a policy says."""
    status, answer = await cluster.call("POST", path, body)
    return status, answer.get("message", "").partition(" denied request: ")[2]


async def test_a_write_that_breaks_a_policy_is_refused():
    cluster = await cluster_with(policy("has(object.data) && object.data.a == 'yes'"))
    await cluster.ok("POST", CONFIG_MAPS, config_map("kept", a="yes"))
    status, answer = await cluster.call("POST", CONFIG_MAPS, config_map("a", a="no"))
    message = (
        "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: "
        "has(object.data) && object.data.a == 'yes'"
    )
    assert (status, answer["reason"]) == (422, "Invalid")
    assert answer["message"] == f'configmaps "a" is forbidden: {message}'
    assert answer["details"]["causes"] == [{"message": message}]

    status, _ = await cluster.call(
        "PATCH", f"{CONFIG_MAPS}/kept", {"data": {"a": "no"}}, content_type=MERGE
    )
    assert status == 422
    assert (await cluster.ok("GET", f"{CONFIG_MAPS}/kept"))["data"] == {"a": "yes"}

    await cluster.ok("DELETE", f"{BINDINGS}/b")
    await cluster.ok("POST", CONFIG_MAPS, config_map("a", a="no"))


@pytest.mark.parametrize(
    ("changes", "denied"),
    [
        pytest.param({"operations": ["UPDATE"]}, False, id="another operation"),
        pytest.param({"operations": ["*"]}, True, id="every operation"),
        pytest.param({"resources": ["pods", "*"]}, True, id="every resource"),
        pytest.param({"resources": ["*/status"]}, False, id="statuses only"),
        pytest.param({"resources": ["configmaps/*"]}, True, id="a resource with subresources"),
        pytest.param({"apiGroups": ["apps"]}, False, id="another group"),
        pytest.param({"apiVersions": ["v2"]}, False, id="another version"),
        pytest.param({"scope": "Cluster"}, False, id="objects without namespace"),
        pytest.param({"scope": "Namespaced"}, True, id="objects with a namespace"),
        pytest.param({"resourceNames": ["b"]}, False, id="another name"),
        pytest.param({"resourceNames": ["a"]}, True, id="this name"),
    ],
)
async def test_a_policy_matches_by_its_rules(changes, denied):
    rule = {"resourceRules": [EVERY_CONFIG_MAP | changes]}
    cluster = await cluster_with(policy("false", constraints=rule))
    assert await told(cluster, config_map()) == (
        (422, "failed expression: false") if denied else (201, "")
    )


@pytest.mark.parametrize(
    ("constraints", "denied"),
    [
        pytest.param({"namespaceSelector": {"matchLabels": {"a": "b"}}}, False, id="namespace"),
        pytest.param(
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}},
            True,
            id="this namespace",
        ),
        pytest.param({"objectSelector": {"matchLabels": {"a": "b"}}}, False, id="object"),
        pytest.param({"excludeResourceRules": [EVERY_CONFIG_MAP]}, False, id="excluded"),
    ],
)
@pytest.mark.parametrize("of_binding", [False, True])
async def test_a_policy_and_its_binding_match_by_selectors(constraints, denied, of_binding):
    cluster = await (
        cluster_with(policy("false"), binding(matchResources=constraints))
        if of_binding
        else cluster_with(policy("false", constraints=constraints))
    )
    assert (await told(cluster, config_map()))[0] == (422 if denied else 201)


@pytest.mark.parametrize(
    ("validation", "expected"),
    [
        pytest.param({"message": " no! "}, (422, "no!"), id="a message"),
        pytest.param(
            {"messageExpression": "'got ' + object.data.a", "message": "no!"},
            (422, "got x"),
            id="a message made of the object",
        ),
        pytest.param(
            {"messageExpression": "'got ' + object.data.b", "message": "no!"},
            (422, "no!"),
            id="a message that cannot be made",
        ),
        pytest.param({"reason": "Forbidden", "message": "no!"}, (403, "no!"), id="a reason"),
    ],
)
async def test_a_validation_says_how_it_denies(validation, expected):
    cluster = await cluster_with(policy({"expression": "false"} | validation))
    assert await told(cluster, config_map(a="x")) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "object.metadata.namespace == 'default'",
        "oldObject == null",
        "request.operation == 'CREATE' && request.resource.resource == 'configmaps'",
        "request.userInfo.username == 'kubernetes-admin' && !request.dryRun",
        "namespaceObject.metadata.name == 'default'",
        "params == null",
        "object.data.all(k, object.data[k].matches('^x'))",
        "variables.doubled == 'xx' && variables.a == 'x'",
        "'variables.nothing' != object.data.a",
    ],
)
async def test_expressions_see_the_write_and_the_variables_of_the_policy(expression):
    variables = [
        {"name": "a", "expression": "object.data.a // the value"},
        {"name": "doubled", "expression": "variables.a + variables.a"},
        {"name": "unused", "expression": "object.nothing"},
    ]
    cluster = await cluster_with(policy(expression, variables=variables))
    assert await told(cluster, config_map(a="x")) == (201, "")
    await cluster.ok("DELETE", f"{POLICIES}/p")
    await cluster.ok("POST", POLICIES, policy(f"!({expression})", variables=variables))
    assert (await told(cluster, config_map("b", a="x")))[0] == 422


@pytest.mark.parametrize(("failure_policy", "status"), [("Fail", 422), ("Ignore", 201)])
async def test_an_evaluation_that_fails_denies_as_the_failure_policy_says(failure_policy, status):
    cluster = await cluster_with(policy("object.data.b == ''", failurePolicy=failure_policy))
    why = "expression 'object.data.b == ''' resulted in error: "
    found, message = await told(cluster, config_map(a="x"))
    assert (found, message.startswith(why)) == (status, status == 422)


async def test_a_binding_that_warns_lets_the_write_through_with_a_warning():
    wanted = policy("object.data.a == 'yes'", {"expression": "false", "message": "never"})
    cluster = await cluster_with(wanted, binding(validationActions=["Warn"]))
    reply = await cluster.reply("POST", CONFIG_MAPS, config_map("a", a="no"))
    head = "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': "
    assert reply.status == 201
    assert reply.headers == (
        ("Warning", f"{head}failed expression: object.data.a == 'yes'\""),
        ("Warning", f'{head}never"'),
    )
    assert (await cluster.reply("GET", f"{CONFIG_MAPS}/a")).headers == ()
    assert (await cluster.reply("DELETE", f"{CONFIG_MAPS}/a")).headers == ()


@pytest.mark.parametrize(
    ("actions", "code"), [(["Audit"], 201), (["Deny", "Audit"], 422), (["Warn", "Audit"], 201)]
)
async def test_a_binding_that_audits_adds_to_the_audit_event(actions, code, tmp_path):
    wanted = policy(
        "object.data.a == 'yes'",
        "true",
        {"expression": "1 == 2", "message": "never"},
        auditAnnotations=[
            {"key": "value", "valueExpression": "'a is ' + object.data.a"},
            {"key": "none", "valueExpression": "''"},
        ],
    )
    cluster = await cluster_with(wanted, binding(validationActions=actions))
    path = tmp_path / "audit.log"
    log = AuditLog(path, clock=cluster.clock, rng=Streams(1).stream("audit"))
    cluster.server.audit_to(log)
    status, _ = await cluster.call("POST", CONFIG_MAPS, config_map("a", a="no"))
    log.close()
    (event,) = map(json.loads, path.read_text().splitlines())
    assert (status, event["annotations"]["p/value"]) == (code, "a is no")
    common = {"policy": "p", "binding": "b", "validationActions": actions}
    assert json.loads(event["annotations"].pop(FAILURES)) == [
        {"message": "failed expression: object.data.a == 'yes'", "expressionIndex": 0, **common},
        {"message": "never", "expressionIndex": 2, **common},
    ]
    assert list(event["annotations"]) == ["p/value"]


async def test_a_policy_about_deletes_sees_the_object_that_goes():
    rule = EVERY_CONFIG_MAP | {"operations": ["DELETE"]}
    expression = (
        "object == null && request.operation == 'DELETE' && request.name == oldObject.metadata.name"
        " && oldObject.data.a != 'kept'"
    )
    cluster = await cluster_with(policy(expression, constraints={"resourceRules": [rule]}))
    for name, value in (("a", "kept"), ("b", "x"), ("c", "x")):
        await cluster.ok("POST", CONFIG_MAPS, config_map(name, a=value))
    for query in ({}, {"dryRun": "All"}):
        status, answer = await cluster.call("DELETE", f"{CONFIG_MAPS}/a", query=query)
        assert (status, answer["reason"]) == (422, "Invalid")
        assert answer["message"].startswith('configmaps "a" is forbidden: ValidatingAdmission')
    stale = {"preconditions": {"uid": "other"}}
    assert (await cluster.call("DELETE", f"{CONFIG_MAPS}/a", stale))[0] == 409
    await cluster.ok("DELETE", f"{CONFIG_MAPS}/b")
    assert (await cluster.call("DELETE", CONFIG_MAPS))[0] == 422
    await cluster.ok("DELETE", f"{BINDINGS}/b")
    await cluster.ok("DELETE", f"{CONFIG_MAPS}/a")


async def test_policies_about_other_writes_let_objects_be_deleted():
    cluster = await cluster_with(policy("object.data.a == 'x'"))
    await cluster.ok("POST", CONFIG_MAPS, config_map("a", a="x"))
    await cluster.ok("DELETE", f"{CONFIG_MAPS}/a")


async def test_match_conditions_decide_whether_a_policy_is_evaluated():
    conditions = [{"name": "c", "expression": "object.metadata.name != 'exempt'"}]
    cluster = await cluster_with(policy("false", matchConditions=conditions))
    assert (await told(cluster, config_map("exempt")))[0] == 201
    assert (await told(cluster, config_map("other")))[0] == 422


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        pytest.param({"name": "limits"}, (422, "at most 2"), id="by name"),
        pytest.param({"selector": {"matchLabels": {"a": "b"}}}, (422, "at most 2"), id="by labels"),
        pytest.param(
            {"name": "none"},
            (422, "no params found for policy binding with `Deny` parameterNotFoundAction"),
            id="not found",
        ),
        pytest.param(
            {"name": "none", "parameterNotFoundAction": "Allow"}, (201, ""), id="not needed"
        ),
    ],
)
async def test_a_policy_has_parameters(ref, expected):
    limits = config_map("limits", most="2")
    limits["metadata"]["labels"] = {"a": "b"}
    validation = {
        "expression": "size(object.data) <= int(params.data.most)",
        "messageExpression": "'at most ' + params.data.most",
    }
    wanted = policy(validation, paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    ref = {"parameterNotFoundAction": "Deny", "namespace": "default"} | ref
    cluster = Cluster()
    await cluster.ok("POST", CONFIG_MAPS, limits)
    await cluster.ok("POST", POLICIES, wanted)
    await cluster.ok("POST", BINDINGS, binding(paramRef=ref))
    assert await told(cluster, config_map(a="", b="", c="")) == expected


async def test_policies_are_about_custom_resources_and_statuses_and_not_about_policies():
    cars = {"apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["cars/status"]}
    everything = {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"]}
    wanted = policy("object.status.phase == 'parked'")
    wanted["spec"]["matchConstraints"]["resourceRules"] = [
        EVERY_CONFIG_MAP | cars,
        EVERY_CONFIG_MAP | everything,
    ]
    cluster = await cluster_with(wanted)
    await cluster.ok("POST", DEFINITIONS, definition())
    path = "/apis/example.com/v1/namespaces/default/cars"
    await cluster.ok("POST", path, car())
    for phase, expected in (("driving", 422), ("parked", 200)):
        body = {"status": {"phase": phase}}
        status, _ = await cluster.call("PATCH", f"{path}/a/status", body, content_type=MERGE)
        assert status == expected
    await cluster.ok("DELETE", f"{POLICIES}/p")


@pytest.mark.parametrize(
    ("resource", "denied"),
    [("pods/ephemeralcontainers", True), ("pods/*", True), ("pods/resize", False), ("pods", False)],
)
async def test_policies_are_about_parts_of_objects(resource, denied):
    rule = {"resourceRules": [EVERY_CONFIG_MAP | {"resources": [resource]}]}
    cluster = Cluster()
    pods = "/api/v1/namespaces/default/pods"
    made = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await cluster.ok("POST", pods, made)
    await cluster.ok("POST", POLICIES, policy("false", constraints=rule))
    await cluster.ok("POST", BINDINGS, binding())
    patch = {"spec": {"ephemeralContainers": [{"name": "d", "image": "i"}]}}
    path = f"{pods}/p/ephemeralcontainers"
    status, _ = await cluster.call("PATCH", path, patch, content_type=MERGE)
    assert status == (422 if denied else 200)


async def test_a_policy_holds_for_every_version_of_a_resource():
    rule = {
        "apiGroups": ["autoscaling"],
        "apiVersions": ["v2"],
        "resources": ["horizontalpodautoscalers"],
    }
    wanted = policy("object.spec.maxReplicas < 5")
    wanted["spec"]["matchConstraints"]["resourceRules"] = [EVERY_CONFIG_MAP | rule]
    cluster = await cluster_with(wanted)
    body = {
        "metadata": {"name": "h"},
        "spec": {"maxReplicas": 7, "scaleTargetRef": {"kind": "Deployment", "name": "d"}},
    }
    path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
    assert (await told(cluster, body, path))[0] == 422


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        pytest.param(policy("object.spec ="), "spec.validations[0].expression", id="syntax"),
        pytest.param(policy("1"), "spec.validations[0].expression", id="type"),
        pytest.param(policy("nothing.a"), "spec.validations[0].expression", id="unknown name"),
        pytest.param(
            policy("variables.a"), "spec.validations[0].expression", id="unknown variable"
        ),
        pytest.param(policy(), "spec.validations", id="no validations"),
        pytest.param(
            policy("true", matchConstraints=None), "spec.matchConstraints", id="no constraints"
        ),
        pytest.param(policy("true", failurePolicy="x"), "spec.failurePolicy", id="failure policy"),
    ],
)
async def test_a_policy_that_cannot_be_evaluated_anywhere_is_refused(wanted, field):
    status, answer = await Cluster().call("POST", POLICIES, wanted)
    assert status == 422
    assert [each["field"] for each in answer["details"]["causes"]] == [field]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"validationActions": ["Deny", "Warn"]}, "spec.validationActions"),
        ({"validationActions": []}, "spec.validationActions"),
        ({"policyName": ""}, "spec.policyName"),
        ({"paramRef": {"parameterNotFoundAction": "Deny"}}, "spec.paramRef"),
    ],
)
async def test_a_faulty_binding_is_refused(changes, field):
    status, answer = await Cluster().call("POST", BINDINGS, binding(**changes))
    assert status == 422
    assert [each["field"] for each in answer["details"]["causes"]] == [field]


async def test_a_policy_with_functions_that_are_missing_here_is_stored_with_a_warning():
    wanted = policy("url('https://a.example.com').getHost() == 'a'", "false")
    cluster = Cluster()
    reply = await cluster.reply("POST", POLICIES, wanted)
    assert reply.status == 201
    assert "stored and not evaluated, with the whole policy" in dict(reply.headers)["Warning"]
    await cluster.ok("POST", BINDINGS, binding())
    assert await told(cluster, config_map()) == (201, "")


async def test_a_field_that_is_null_is_an_absent_field():
    wanted = policy({"expression": "false", "message": None, "reason": None}, variables=None)
    assert await told(await cluster_with(wanted), config_map()) == (
        422,
        "failed expression: false",
    )


async def test_a_policy_that_may_take_long_is_judged_outside_of_the_loop():
    loops = "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != '')))"
    cluster = await cluster_with(policy(f"!{loops}"))
    cluster.server.use_thread()
    try:
        body = config_map(**{f"k{index}": "x" for index in range(15)})
        status, message = await asyncio.wait_for(told(cluster, body), timeout=60)
        assert (status, message) == (422, f"failed expression: !{loops}")
    finally:
        cluster.server.close()


async def test_policies_of_other_namespaces_leave_an_object_alone():
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}
    cluster = await cluster_with(policy("false", constraints=selector))
    await cluster.ok("POST", "/api/v1/namespaces", namespace("other"))
    assert (await told(cluster, config_map()))[0] == 201
    other = CONFIG_MAPS.replace("default", "other")
    assert (await told(cluster, config_map(), other))[0] == 422


def _doubled(times: int) -> str:
    text = f"a{times}.size() > 0"
    for n in range(times, 0, -1):
        text = f"cel.bind(a{n}, a{n - 1} + a{n - 1}, {text})"
    return f"cel.bind(a0, object.data.a, {text})"


OVER = "resulted in error: operation cancelled: actual cost limit exceeded"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            policy(_doubled(24)),
            f"expression '{_doubled(24)}' {OVER}",
            id="a validation",
        ),
        pytest.param(
            policy("true", matchConditions=[{"name": "m", "expression": _doubled(24)}]),
            f"expression '{_doubled(24)}' {OVER}",
            id="a match condition",
        ),
        pytest.param(
            policy(
                "variables.v.size() > 0",
                variables=[{"name": "v", "expression": "object.data.a.replace('', object.data.a)"}],
            ),
            f"expression 'variables.v.size() > 0' {OVER}",
            id="a variable",
        ),
        pytest.param(
            policy(
                {
                    "expression": "false",
                    "messageExpression": "object.data.a.replace('', object.data.a)",
                }
            ),
            "failed expression: false",
            id="a message",
        ),
        pytest.param(
            policy(*["object.data.a.replace('x', 'yy').replace('y', 'z').size() > 0"] * 5),
            "",
            id="validations that are affordable",
        ),
    ],
)
async def test_expressions_that_cost_too_much(spec, message):
    cluster = await cluster_with(spec)
    code, text = await told(cluster, config_map("c", a="x" * 4000))
    assert (code, text) == ((422, message) if message else (201, ""))
