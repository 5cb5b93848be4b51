"""The status of a ValidatingAdmissionPolicy: expressions that do not fit the types of objects.

Does not cover: which writes a policy denies (`test_admission_policies`).
"""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.crd import DEFINITIONS, definition
from sandbox.tests.apiserver.harness import MERGE, Cluster
from sandbox.tests.apiserver.test_admission_policies import POLICIES, policy

DEPLOYMENT = "apps/v1, Kind=Deployment: "


def rule(group: str, plural: str, version: str = "v1") -> dict[str, Any]:
    """Return a rule about creations of a resource."""
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE"],
        "resources": [plural],
    }


def about(*rules: dict[str, Any], **validation: str) -> dict[str, Any]:
    """Return a policy about resources, with one validation."""
    return policy(validation, constraints={"resourceRules": list(rules)})


async def status_of(wanted: dict[str, Any], *, cars: bool = False) -> dict[str, Any]:
    """Return the status that a policy gets."""
    cluster = Cluster()
    if cars:
        await cluster.ok("POST", DEFINITIONS, definition())
    await cluster.ok("POST", POLICIES, wanted)
    found: dict[str, Any] = (await cluster.ok("GET", f"{POLICIES}/p"))["status"]
    return found


async def test_a_policy_that_fits_has_a_status_without_warnings():
    wanted = about(
        rule("apps", "deployments"),
        expression="object.spec.replicas > 1",
        messageExpression="'wants replicas > 1, got ' + string(object.spec.replicas)",
    )
    assert await status_of(wanted) == {"observedGeneration": 1, "typeChecking": {}}


async def test_each_expression_that_does_not_fit_has_a_warning():
    """Upstream's test/e2e/apimachinery/validatingadmissionpolicy.go, "should type check"."""
    wanted = about(
        rule("apps", "deployments"),
        expression="object.spec.replicas > '1'",
        messageExpression="'wants replicas > 1, got ' + object.spec.replicas",
    )
    overload = "found no matching overload for"
    assert await status_of(wanted) == {
        "observedGeneration": 1,
        "typeChecking": {
            "expressionWarnings": [
                {
                    "fieldRef": "spec.validations[0].expression",
                    "warning": f"{DEPLOYMENT}ERROR: <input>:1:22: {overload} '_>_' applied to "
                    "'(int, string)'\n | object.spec.replicas > '1'\n | .....................^\n",
                },
                {
                    "fieldRef": "spec.validations[0].messageExpression",
                    "warning": f"{DEPLOYMENT}ERROR: <input>:1:28: {overload} '_+_' applied to "
                    "'(string, int)'\n | 'wants replicas > 1, got ' + object.spec.replicas\n"
                    f" | {'.' * 27}^\n",
                },
            ]
        },
    }


FITS = [
    pytest.param("object.metadata.labels['a'] == 'b'", id="a map of texts"),
    pytest.param(
        "object.metadata.creationTimestamp > timestamp('2026-01-01T00:00:00Z')", id="time"
    ),
    pytest.param("object.spec.template.spec.containers.all(c, c.image != '')", id="a list"),
    pytest.param(
        "object.spec.template.spec.containers.all(c, c.ports.all(p, p.containerPort > 80))",
        id="a list in a list",
    ),
    pytest.param("object.spec.strategy.rollingUpdate.maxSurge == '25%'", id="a number or a text"),
    pytest.param("!has(oldObject.spec) || oldObject.spec.paused", id="the object before"),
    pytest.param("object.metadata.namespace == namespaceObject.metadata.name", id="its namespace"),
    pytest.param("request.operation == 'CREATE' && params.anything > 1", id="no known type"),
    pytest.param("url('https://a').getHost() == 'a'", id="what this server lacks"),
    pytest.param("authorizer.group('').resource('pods').check('get').allowed()", id="rights"),
]
DOES_NOT = [
    pytest.param("object.replicas > 1", "undefined field 'replicas'", id="no such field"),
    pytest.param(
        "object.spec.template.spec.containers.all(c, c.imagee != '')",
        "undefined field 'imagee'",
        id="no such field of an element",
    ),
    pytest.param(
        "object.metadata.labels['a'] == 1",
        "found no matching overload for '_==_' applied to '(string, int)'",
        id="a text as a number",
    ),
    pytest.param(
        "namespaceObject.spec.zone == 'a'", "undefined field 'zone'", id="a field of the namespace"
    ),
]


@pytest.mark.parametrize("expression", FITS)
async def test_an_expression_fits_the_types_of_a_built_in_kind(expression):
    status = await status_of(about(rule("apps", "deployments"), expression=expression))
    assert status["typeChecking"] == {}


@pytest.mark.parametrize(("expression", "fault"), DOES_NOT)
async def test_an_expression_does_not_fit_the_types_of_a_built_in_kind(expression, fault):
    status = await status_of(about(rule("apps", "deployments"), expression=expression))
    [found] = status["typeChecking"]["expressionWarnings"]
    assert found["warning"].split("\n")[0].endswith(fault)


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        pytest.param("object.spec.wheels > 3 && object.spec.doors[0].open", "", id="fits"),
        pytest.param("object.spec.extras.x == 1", "", id="fields of any name"),
        pytest.param("object.spec.port == 80 || object.spec.port == 'a'", "", id="int-or-string"),
        pytest.param("object.spec.limits['a'] > 1.5", "", id="a map"),
        pytest.param("object.spec.limits['a'] > 1", "", id="numbers of two types compared"),
        pytest.param(
            "object.spec.limits['a'] == 1", "'_==_' applied to '(double, int)'", id="and equal"
        ),
        pytest.param("object.spec.wheel > 3", "undefined field 'wheel'", id="no such field"),
        pytest.param("object.metadata.nam == ''", "undefined field 'nam'", id="of the metadata"),
        pytest.param("'a' + object.spec.wheels", "overload", id="a number as a text"),
    ],
)
async def test_an_expression_is_checked_by_the_schema_of_a_custom_resource(expression, fault):
    wanted = about(rule("example.com", "cars"), expression=expression)
    if expression.startswith("'a'"):
        wanted = about(rule("example.com", "cars"), expression="true", messageExpression=expression)
    status = await status_of(wanted, cars=True)
    found = status["typeChecking"].get("expressionWarnings", [])
    assert [fault in each["warning"] for each in found] == ([True] if fault else [])


async def test_the_warning_names_each_kind_that_does_not_fit():
    rules = (rule("apps", "deployments"), rule("", "configmaps"), rule("apps", "daemonsets"))
    status = await status_of(about(*rules, expression="object.spec.replicas > 1"))
    [found] = status["typeChecking"]["expressionWarnings"]
    shown = [line for line in found["warning"].split("\n") if "ERROR" in line]
    assert shown == [
        "/v1, Kind=ConfigMap: ERROR: <input>:1:7: undefined field 'spec'",
        "apps/v1, Kind=DaemonSet: ERROR: <input>:1:12: undefined field 'replicas'",
    ]


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(rule("*", "deployments"), id="every group"),
        pytest.param(rule("apps", "deployments", "*"), id="every version"),
        pytest.param(rule("apps", "*"), id="every resource"),
        pytest.param(rule("apps", "deployments/scale"), id="a subresource"),
        pytest.param(rule("example.com", "cars"), id="a kind that is not served"),
    ],
)
async def test_rules_that_name_no_kind_are_not_checked(wanted):
    status = await status_of(about(wanted, expression="object.nothing == 1"))
    assert status["typeChecking"] == {}


async def test_a_changed_policy_is_checked_again():
    cluster = Cluster()
    wanted = about(rule("apps", "deployments"), expression="object.replicas > 1")
    await cluster.ok("POST", POLICIES, wanted)
    change = {"spec": {"validations": [{"expression": "object.spec.replicas > 1"}]}}
    await cluster.ok("PATCH", f"{POLICIES}/p", change, content_type=MERGE)
    found = (await cluster.ok("GET", f"{POLICIES}/p"))["status"]
    assert found == {"observedGeneration": 2, "typeChecking": {}}


async def test_parameters_have_the_type_of_their_kind():
    wanted = about(rule("apps", "deployments"), expression="params.data.replicas > 1")
    wanted["spec"]["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    status = await status_of(wanted)
    [found] = status["typeChecking"]["expressionWarnings"]
    assert "applied to '(string, int)'" in found["warning"]
