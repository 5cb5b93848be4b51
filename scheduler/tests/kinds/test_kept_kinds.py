"""Scope: kinds that are kept without anything acting on them: defaults, rules, warnings, rows."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.kinds.kept import _PROPERTIES
from moorage.kinds.kind import Obj
from moorage.kinds.registry import GROUPS
from scheduler.tests.kinds.builders import KINDS, create_errors, created, named, update_errors
from scheduler.tests.kinds.test_pod_validation import LABEL

PORT = {"port": 8}
SERVICE: Obj = {"service": {"name": "web", "port": {"number": 80}}}


def path(**fields: Any) -> Obj:
    return {"path": "/", "pathType": "Prefix", "backend": SERVICE, **fields}


def ingress(*paths: Obj, **spec: Any) -> Obj:
    rules = [{"host": "shop.example.com", "http": {"paths": list(paths)}}] if paths else []
    return named("ingresses", spec={"rules": rules, **spec})


def webhook(**fields: Any) -> Obj:
    return {
        "name": "check.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": {"name": "hook", "namespace": "default"}},
        **fields,
    }


def condition(name: str, expression: str) -> Obj:
    return {"name": name, "expression": expression}


def webhooks(*found: Obj) -> Obj:
    return named("validatingwebhookconfigurations", webhooks=list(found))


def api_service(**spec: Any) -> Obj:
    fields = {"group": "example.com", "version": "v1"}
    spec = {**fields, "groupPriorityMinimum": 100, "versionPriority": 15, **spec}
    return named("apiservices", "v1.example.com", spec=spec)


def autoscaler(**spec: Any) -> Obj:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "maxReplicas": 3, **spec}
    return named("horizontalpodautoscalers", spec=spec)


def policy(**spec: Any) -> Obj:
    return named("networkpolicies", spec={"podSelector": {}, **spec})


def slice_of(*addresses: str, kind: str = "IPv4", **endpoint: Any) -> Obj:
    endpoints = [{"addresses": list(addresses), **endpoint}]
    return named("endpointslices", addressType=kind, endpoints=endpoints)


@pytest.mark.parametrize(
    ("plural", "obj", "errors"),
    [
        pytest.param("ingresses", ingress(path()), [], id="an ingress"),
        pytest.param("ingresses", ingress(defaultBackend=SERVICE), [], id="a default backend"),
        pytest.param(
            "ingresses",
            ingress(),
            [
                "spec: Invalid value: []: either `defaultBackend` or `rules` must be specified",
            ],
            id="an ingress that says nothing",
        ),
        pytest.param(
            "ingresses",
            ingress(path(path="a", backend={})),
            [
                'spec.rules[0].http.paths[0].path: Invalid value: "a": must be an absolute path',
                'spec.rules[0].http.paths[0].backend: Invalid value: "": '
                "resource or service backend is required",
            ],
            id="a path that is none, to nobody",
        ),
        pytest.param(
            "ingresses",
            ingress(path(path="/a//b/..")),
            [
                'spec.rules[0].http.paths[0].path: Invalid value: "/a//b/..": '
                "must not contain '//'",
                'spec.rules[0].http.paths[0].path: Invalid value: "/a//b/..": '
                "cannot end with '/..'",
            ],
            id="a path that can be read in two ways",
        ),
        pytest.param(
            "ingresses",
            ingress(path(pathType="Glob", backend={"service": {"name": "web"}})),
            [
                'spec.rules[0].http.paths[0].pathType: Unsupported value: "Glob": supported '
                'values: "Exact", "ImplementationSpecific", "Prefix"',
                "spec.rules[0].http.paths[0].backend: Required value: "
                "port name or number is required",
            ],
            id="an unknown kind of path, no port",
        ),
        pytest.param(
            "ingressclasses",
            named("ingressclasses", spec={"parameters": {"kind": "K", "scope": "Namespace"}}),
            [
                "spec.controller: Required value",
                "spec.parameters.name: Required value",
                "spec.parameters.namespace: Required value: "
                "`parameters.scope` is set to 'Namespace'",
            ],
            id="a class of nobody",
        ),
        pytest.param("networkpolicies", policy(), [], id="a policy"),
        pytest.param(
            "networkpolicies",
            policy(
                policyTypes=["Sideways"],
                ingress=[{"from": [{}, {"ipBlock": {"cidr": "ten"}, "podSelector": {}}]}],
                egress=[{"ports": [{"endPort": 9}]}],
            ),
            [
                "spec.ingress[0].from[0]: Required value: must specify a peer",
                "spec.ingress[0].from[1]: Forbidden: may not specify both ipBlock and another peer",
                'spec.ingress[0].from[1].ipBlock.cidr: Invalid value: "ten": '
                "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
                "spec.egress[0].ports[0].endPort: Invalid value: 9: must be specified with `port`",
                'spec.policyTypes[0]: Unsupported value: "Sideways": '
                'supported values: "Egress", "Ingress"',
            ],
            id="a policy about nobody",
        ),
        pytest.param("endpointslices", slice_of("10.0.0.1", hostname="db-0"), [], id="a slice"),
        pytest.param(
            "endpointslices",
            slice_of("10.0.0.1", hostname="db.0"),
            [f'endpoints[0].hostname: Invalid value: "db.0": {LABEL}'],
            id="a hostname that is no label",
        ),
        pytest.param(
            "endpointslices",
            slice_of("10.0.0.1", hostname=""),
            [f'endpoints[0].hostname: Invalid value: "": {LABEL}'],
            id="an empty hostname",
        ),
        pytest.param(
            "endpointslices",
            slice_of("here"),
            [
                'endpoints[0].addresses[0]: Invalid value: "here": '
                "must be a valid IP address, (e.g. 10.9.8.7)"
            ],
            id="an address that is none",
        ),
        pytest.param("horizontalpodautoscalers", autoscaler(), [], id="an autoscaler"),
        pytest.param(
            "horizontalpodautoscalers",
            autoscaler(minReplicas=4, metrics=[{"type": "Pods"}, {"type": "Feelings"}]),
            [
                "spec.maxReplicas: Invalid value: 3: must be greater than or equal to "
                "`minReplicas`",
                "spec.metrics[0].pods: Required value: "
                "must populate information for the given metric source",
                'spec.metrics[1].type: Unsupported value: "Feelings": supported values: '
                '"ContainerResource", "External", "Object", "Pods", "Resource"',
            ],
            id="an autoscaler that cannot work",
        ),
        pytest.param("validatingwebhookconfigurations", webhooks(webhook()), [], id="a webhook"),
        pytest.param(
            "validatingwebhookconfigurations",
            webhooks(
                webhook(name="check", sideEffects="Some", timeoutSeconds=60),
                webhook(name="check", clientConfig={}, admissionReviewVersions=["v7"]),
            ),
            [
                'webhooks[0].name: Invalid value: "check": '
                "should be a domain with at least three segments separated by dots",
                'webhooks[0].sideEffects: Unsupported value: "Some": '
                'supported values: "None", "NoneOnDryRun"',
                "webhooks[0].timeoutSeconds: Invalid value: 60: "
                "the timeout value must be between 1 and 30 seconds",
                'webhooks[1].name: Duplicate value: "check"',
                'webhooks[1].name: Invalid value: "check": '
                "should be a domain with at least three segments separated by dots",
                'webhooks[1].admissionReviewVersions: Invalid value: ["v7"]: '
                "must include at least one of v1, v1beta1",
                "webhooks[1].clientConfig: Required value: "
                "exactly one of url or service is required",
            ],
            id="webhooks nobody could call",
        ),
        pytest.param(
            "validatingwebhookconfigurations",
            webhooks(
                webhook(
                    rules=[
                        {
                            "operations": ["CREATE", "WATCH"],
                            "apiGroups": ["*", "apps"],
                            "apiVersions": ["v1", ""],
                            "resources": ["pods/*", "pods/status", "*", "nodes"],
                            "scope": "All",
                        }
                    ],
                    clientConfig={"url": "http://me@a.example.com/x?y=z#f"},
                ),
                webhook(
                    name="b.example.com",
                    rules=[{}],
                    clientConfig={"service": {"name": "a", "port": 70_000, "path": "a//b"}},
                    objectSelector={"matchExpressions": [{"key": "a", "operator": "Is"}]},
                ),
            ),
            [
                'webhooks[0].rules[0].operations[1]: Unsupported value: "WATCH": supported values: '
                '"*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
                'webhooks[0].rules[0].apiGroups: Invalid value: ["*","apps"]: '
                "if '*' is present, must not specify other API groups",
                "webhooks[0].rules[0].apiVersions[1]: Required value",
                'webhooks[0].rules[0].resources[1]: Invalid value: "pods/status": '
                "if 'pods/*' is present, must not specify pods/status",
                "webhooks[0].rules[0].resources: Invalid value: "
                '["pods/*","pods/status","*","nodes"]: '
                "if '*' is present, must not specify other resources without subresources",
                'webhooks[0].rules[0].scope: Unsupported value: "All": '
                'supported values: "*", "Cluster", "Namespaced"',
                'webhooks[0].clientConfig.url: Invalid value: "http": '
                "'https' is the only allowed URL scheme; desired format: https://host[/path]",
                'webhooks[0].clientConfig.url: Invalid value: "me": '
                "user information is not permitted in the URL",
                'webhooks[0].clientConfig.url: Invalid value: "f": '
                "fragments are not permitted in the URL",
                'webhooks[0].clientConfig.url: Invalid value: "y=z": '
                "query parameters are not permitted in the URL",
                "webhooks[1].rules[0].operations: Required value",
                "webhooks[1].rules[0].apiGroups: Required value",
                "webhooks[1].rules[0].apiVersions: Required value",
                "webhooks[1].rules[0].resources: Required value",
                "webhooks[1].objectSelector.matchExpressions[0].operator: "
                'Invalid value: "Is": not a valid selector operator',
                "webhooks[1].clientConfig.service.namespace: Required value: "
                "service namespace is required",
                "webhooks[1].clientConfig.service.port: Invalid value: 70000: "
                "port is not valid: must be between 1 and 65535, inclusive",
                'webhooks[1].clientConfig.service.path: Invalid value: "a//b": '
                "must start with a '/'",
                'webhooks[1].clientConfig.service.path: Invalid value: "a//b": '
                "segment[0] may not be empty",
                'webhooks[1].clientConfig.service.path: Invalid value: "a//b": '
                "segment[1] may not be empty",
            ],
            id="webhooks whose rules and addresses make no sense",
        ),
        pytest.param(
            "validatingwebhookconfigurations",
            webhooks(webhook(matchConditions=[condition("here", "object.metadata.name != 'x'")])),
            [],
            id="a webhook with a condition",
        ),
        pytest.param("apiservices", api_service(), [], id="an API service"),
        pytest.param(
            "apiservices",
            api_service(version="v2", versionPriority=0, service={"name": "api"}),
            [
                'metadata.name: Invalid value: "v1.example.com": '
                'must be `spec.version+"."+spec.group`: "v2.example.com"',
                "spec.versionPriority: Invalid value: 0: must be positive and less than 1000",
                "spec.service.namespace: Required value",
            ],
            id="an API service of another name",
        ),
        pytest.param(
            "endpoints",
            named("endpoints", subsets=[{"ports": [{"port": 0}]}]),
            [
                "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`",
                "subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, "
                "inclusive",
            ],
            id="endpoints without addresses",
        ),
        pytest.param(
            "endpoints",
            named(
                "endpoints",
                subsets=[
                    {
                        "addresses": [{"ip": "10.0.0.1", "hostname": ""}],
                        "notReadyAddresses": [
                            {"ip": "10.0.0.2", "hostname": "db-0"},
                            {"ip": "10.0.0.3", "hostname": "db.0"},
                        ],
                    }
                ],
            ),
            [f'subsets[0].notReadyAddresses[1].hostname: Invalid value: "db.0": {LABEL}'],
            id="an address whose hostname is no label",
        ),
    ],
)
def test_faulty_objects_of_kept_kinds_are_refused(plural: str, obj: Obj, errors: list[str]) -> None:
    assert create_errors(plural, obj) == errors


def test_immutable_fields_of_kept_kinds_are_refused() -> None:
    old = created("ingressclasses", named("ingressclasses", spec={"controller": "a.com/b"}))
    new = named("ingressclasses", spec={"controller": "a.com/c"})
    assert update_errors("ingressclasses", new, old) == [
        'spec.controller: Invalid value: "a.com/c": field is immutable'
    ]
    old = created("endpointslices", slice_of("10.0.0.1"))
    assert update_errors("endpointslices", slice_of("a.com", kind="FQDN"), old) == [
        'addressType: Invalid value: "FQDN": field is immutable'
    ]


@pytest.mark.parametrize(
    ("plural", "obj", "spec"),
    [
        pytest.param(
            "networkpolicies",
            policy(egress=[{"ports": [{"port": 53}]}]),
            {
                "podSelector": {},
                "egress": [{"ports": [{"port": 53, "protocol": "TCP"}]}],
                "policyTypes": ["Ingress", "Egress"],
            },
            id="a policy is about what it has rules for",
        ),
        pytest.param(
            "horizontalpodautoscalers",
            autoscaler(behavior={"scaleUp": {"selectPolicy": "Disabled"}}),
            {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "minReplicas": 1,
                "maxReplicas": 3,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {
                            "name": "cpu",
                            "target": {"type": "Utilization", "averageUtilization": 80},
                        },
                    }
                ],
                "behavior": {
                    "scaleUp": {
                        "selectPolicy": "Disabled",
                        "stabilizationWindowSeconds": 0,
                        "policies": [
                            {"type": "Pods", "value": 4, "periodSeconds": 15},
                            {"type": "Percent", "value": 100, "periodSeconds": 15},
                        ],
                    },
                    "scaleDown": {
                        "selectPolicy": "Max",
                        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
                    },
                },
            },
            id="an autoscaler aims at 80 % of the cpu",
        ),
    ],
)
def test_objects_of_kept_kinds_are_defaulted(plural: str, obj: Obj, spec: Obj) -> None:
    assert created(plural, obj)["spec"] == spec


def test_conditions_of_webhooks_have_to_compile() -> None:
    told = (("here", "1 +"), ("here", " "), ("not here", "true"), ("", "nope"))
    found = webhook(matchConditions=[condition(*each) for each in told])
    errors = create_errors("mutatingwebhookconfigurations", webhooks(found))
    starts = [
        '[0].expression: Invalid value: "1 +": compilation failed: ERROR: <input>:1:4: Syntax ',
        "[1].expression: Required value",
        '[1].name: Duplicate value: "here"',
        '[2].name: Invalid value: "not here": name part must consist of ',
        '[3].expression: Invalid value: "nope": compilation failed: ERROR: <input>:1:1: undecl',
        "[3].name: Required value",
    ]
    assert len(errors) == len(starts)
    for error, start in zip(errors, starts, strict=True):
        assert error.startswith(f"webhooks[0].matchConditions{start}")


def test_defaults_of_webhooks() -> None:
    sent = webhook(rules=[{"operations": ["CREATE"]}])
    assert created("mutatingwebhookconfigurations", webhooks(sent))["webhooks"] == [
        {
            **webhook(),
            "clientConfig": {"service": {"name": "hook", "namespace": "default", "port": 443}},
            "rules": [{"operations": ["CREATE"], "scope": "*"}],
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "timeoutSeconds": 10,
            "reinvocationPolicy": "Never",
        }
    ]


OF_ANOTHER = {"service": {"name": "api", "namespace": "default"}}


@pytest.mark.parametrize(
    ("plural", "obj", "warnings"),
    [
        pytest.param("mutatingwebhookconfigurations", webhooks(webhook()), [], id="webhooks"),
        pytest.param(
            "apiservices",
            api_service(**OF_ANOTHER),
            [
                "API services of others are stored and not aggregated: their kinds are not served",
            ],
            id="an API server of others",
        ),
        pytest.param("apiservices", api_service(), [], id="this API server"),
    ],
)
def test_objects_that_are_stored_without_effect_cause_a_warning(
    plural: str, obj: Obj, warnings: list[str]
) -> None:
    assert KINDS[plural].warnings(obj, new=True) == warnings


@pytest.mark.parametrize(
    ("plural", "obj", "cells"),
    [
        pytest.param(
            "ingresses",
            ingress(path(), ingressClassName="nginx", tls=[{"secretName": "t"}]),
            ["x", "nginx", "shop.example.com", "", "80, 443"],
            id="an ingress",
        ),
        pytest.param(
            "ingressclasses",
            named(
                "ingressclasses",
                spec={"controller": "a.com/b", "parameters": {"kind": "K", "name": "n"}},
            ),
            ["x", "a.com/b", "K/n"],
            id="a class",
        ),
        pytest.param(
            "networkpolicies",
            policy(podSelector={"matchLabels": {"app": "web"}}),
            ["x", "app=web"],
            id="a policy",
        ),
        pytest.param(
            "endpointslices",
            {**slice_of("1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"), "ports": [{"port": 80}]},
            ["x", "IPv4", "80", "1.1.1.1,2.2.2.2,3.3.3.3 + 1 more..."],
            id="a slice",
        ),
        pytest.param(
            "endpoints",
            named(
                "endpoints", subsets=[{"addresses": [{"ip": "1.1.1.1"}], "ports": [{"port": 8}]}]
            ),
            ["x", "1.1.1.1:8"],
            id="endpoints",
        ),
        pytest.param(
            "horizontalpodautoscalers",
            autoscaler(),
            ["x", "Deployment/web", "cpu: <unknown>/80%", "1", "3", 0],
            id="an autoscaler",
        ),
        pytest.param("validatingwebhookconfigurations", webhooks(webhook()), ["x", 1], id="hooks"),
        pytest.param(
            "apiservices", api_service(), ["v1.example.com", "Local", "True"], id="a local service"
        ),
        pytest.param(
            "apiservices",
            api_service(**OF_ANOTHER),
            ["v1.example.com", "default/api", "False (FailedDiscoveryCheck)"],
            id="a service of others",
        ),
    ],
)
def test_the_tables_of_kept_kinds_show_their_columns(
    plural: str, obj: Obj, cells: list[Any]
) -> None:
    kind = KINDS[plural]
    row = kind.row(created(plural, obj), 0)
    assert row[:-1] == cells
    assert len(row) == len(kind.columns)


def test_only_kinds_without_a_module_have_properties_next_to_the_facts() -> None:
    """A kind that gets a module takes its row along, or loses what the row says."""
    with_module = {kind.resource.plural for group in GROUPS for kind in group}
    assert sorted(with_module & set(_PROPERTIES)) == []
