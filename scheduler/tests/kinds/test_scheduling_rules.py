"""Scope: the rules that kube-apiserver has for what scheduling reads of pods, nodes and classes.

Devices and volumes have tables of their own. Each row is an object, or a change of one, and the
expected messages.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError
from scheduler.tests.kinds.builders import (
    KINDS,
    World,
    container,
    create_errors,
    created,
    named,
    pod,
    update_errors,
    workload,
)
from scheduler.tests.kinds.test_pod_validation import LABEL, PREFERRED, QUALIFIED, REQUIRED

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
TERM = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"
BOTH = "exists in both matchLabelKeys and labelSelector"
"""The error of a key that is in ``matchLabelKeys`` and in the selector."""


def required_term(**term: Any) -> Obj:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}


def preferred_term(**term: Any) -> Obj:
    return {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": term}]}}}


def friend(**term: Any) -> Obj:
    return {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}}}


def spread(**constraint: Any) -> Obj:
    base = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [base | constraint]}


def with_resources(**resources: Any) -> Obj:
    return {"containers": [container(resources=resources)]}


def with_claims(*names: Obj, known: tuple[str, ...] = ("a",)) -> Obj:
    claims = [{"name": name, "resourceClaimName": "c"} for name in known]
    return {"resourceClaims": claims} | with_resources(claims=list(names))


def field_term(**entry: Any) -> Obj:
    return required_term(matchFields=[{"key": "metadata.name", **entry}])


PODS = [
    pytest.param(
        required_term(matchExpressions=[{"key": "a", "operator": "Gt", "values": ["-5"]}]),
        [f'{TERM}.matchExpressions[0].values[0]: Invalid value: "-5": {VALUE}'],
        id="the value of Gt is the value of a label",
    ),
    pytest.param(
        required_term(matchExpressions=[{"key": "a", "operator": "Lt", "values": ["five"]}]),
        [],
        id="which does not have to be a number",
    ),
    pytest.param(
        preferred_term(matchExpressions=[{"key": "a", "operator": "In", "values": ["b c"]}]),
        [],
        id="preferred terms may have odd values",
    ),
    pytest.param(
        field_term(operator="In", values=["N 1"]),
        [f'{TERM}.matchFields[0].values[0]: Invalid value: "N 1": {SUBDOMAIN}'],
        id="a matchFields name that no node has",
    ),
    pytest.param(
        field_term(operator="NotIn", values=[""]),
        [f'{TERM}.matchFields[0].values[0]: Invalid value: "": {SUBDOMAIN}'],
        id="an empty matchFields name",
    ),
    pytest.param(
        friend(labelSelector={"matchLabels": {"rev": "r1"}}, matchLabelKeys=["rev"]),
        [f'spec.affinity.podAffinity.{REQUIRED}[0][0]: Invalid value: "rev": {BOTH}'],
        id="an affinity key in matchLabelKeys and in the selector",
    ),
    pytest.param(
        friend(labelSelector={"matchLabels": {"a": "b"}}, matchLabelKeys=["rev", "rev"]),
        [f'spec.affinity.podAffinity.{REQUIRED}[0][1]: Invalid value: "rev": {BOTH}'],
        id="an affinity key twice",
    ),
    pytest.param(
        friend(labelSelector={"matchLabels": {"no": "r1"}}, matchLabelKeys=["no"]),
        [],
        id="a key that the pod lacks is not merged",
    ),
    pytest.param(
        friend(labelSelector={"matchLabels": {"rev": "r1"}}, mismatchLabelKeys=["rev"]),
        [],
        id="a mismatch key may be in the selector",
    ),
    pytest.param(
        spread(
            labelSelector={
                "matchExpressions": [{"key": "rev", "operator": "In", "values": ["r1"]}]
            },
            matchLabelKeys=["rev"],
        ),
        [f'spec.topologySpreadConstraints[0][0]: Invalid value: "rev": {BOTH}'],
        id="a spread key in matchLabelKeys and in the selector",
    ),
    pytest.param(
        spread(labelSelector={"matchLabels": {"a": "b"}}, matchLabelKeys=["rev", "rev"]),
        [f'spec.topologySpreadConstraints[0][1]: Invalid value: "rev": {BOTH}'],
        id="a spread key twice",
    ),
    pytest.param(spread(topologyKey="b k"), [], id="a spread topologyKey may be odd"),
    pytest.param(
        spread(topologyKey=""),
        ["spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty"],
        id="but not empty",
    ),
    pytest.param(
        with_resources(limits={"hugepages-2Mi": "3Mi", "cpu": "1"}),
        [
            f'spec.containers[0].resources.{part}[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is '
            "not positive integer multiple of hugepages-2Mi"
            for part in ("limits", "requests")
        ],
        id="half a huge page",
    ),
    pytest.param(
        with_resources(limits={"hugepages-odd": "2Mi", "memory": "2Mi"}),
        [
            f'spec.containers[0].resources.{part}[hugepages-odd]: Invalid value: "2Mi": 2Mi is '
            "not positive integer multiple of hugepages-odd"
            for part in ("limits", "requests")
        ],
        id="huge pages of no size",
    ),
    pytest.param(
        with_resources(limits={"hugepages-2Mi": "4Mi"}),
        ["spec.containers[0].resources: Forbidden: HugePages require cpu or memory"],
        id="huge pages alone",
    ),
    pytest.param(
        with_resources(requests={"kubernetes.io/x": "1"}), [], id="a native name needs no limit"
    ),
    pytest.param(
        with_claims({"name": "a"}, {"name": "a"}),
        ['spec.containers[0].resources.claims[1]: Duplicate value: "a"'],
        id="a container names a claim twice",
    ),
    pytest.param(
        with_claims({"name": "a", "request": "r"}, {"name": "a", "request": "s"}),
        [],
        id="two requests of a claim",
    ),
    pytest.param(
        with_claims({"name": "a", "request": "r"}, {"name": "a", "request": "r"}),
        ['spec.containers[0].resources.claims[1]: Duplicate value: "a/r"'],
        id="a request of a claim twice",
    ),
    pytest.param(
        with_claims({"name": "a", "request": "r"}, {"name": "a"}),
        ['spec.containers[0].resources.claims[1]: Duplicate value: "a"'],
        id="a claim after one of its requests",
    ),
    pytest.param(
        with_claims({"name": "a"}, {"name": "a", "request": "r"}),
        ['spec.containers[0].resources.claims[1]: Duplicate value: "a"'],
        id="a request after its claim",
    ),
    pytest.param(
        with_claims({"name": "z"}, known=("b", "a")),
        [
            'spec.containers[0].resources.claims[0]: Not found: "z": must be one of the names in '
            "pod.spec.resourceClaims: a, b"
        ],
        id="an unknown claim",
    ),
    pytest.param(
        {"resourceClaims": [{"name": "A", "resourceClaimName": "c"}]},
        [f'spec.resourceClaims[0].name: Invalid value: "A": {LABEL}'],
        id="a claim in capitals",
    ),
    pytest.param(
        {"resourceClaims": [{"name": "a", "resourceClaimName": "C"}]},
        [f'spec.resourceClaims[0].resourceClaimName: Invalid value: "C": {SUBDOMAIN}'],
        id="a claim that no object can be",
    ),
    pytest.param(
        {"resourceClaims": [{"name": "a"}]},
        [
            'spec.resourceClaims[0]: Invalid value: {"name":"a"}: must specify one of: '
            "`resourceClaimName`, `resourceClaimTemplateName`"
        ],
        id="a claim of nothing",
    ),
    pytest.param(
        {"readinessGates": [{"conditionType": "a b"}]},
        [f'spec.readinessGates[0].conditionType: Invalid value: "a b": {QUALIFIED}'],
        id="an odd readiness gate",
    ),
    pytest.param(
        {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
        [
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at "
            "least 1 access mode is required",
            "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value",
        ],
        id="an ephemeral volume of no size",
    ),
    pytest.param(
        {"volumes": [{"name": "v", "csi": {"driver": "a b"}}]},
        [f'spec.volumes[0].csi.driver: Invalid value: "a b": {SUBDOMAIN}'],
        id="an odd driver of a volume",
    ),
]


@pytest.mark.parametrize(("spec", "messages"), PODS)
def test_a_pod_gets_the_errors_of_kube_apiserver(spec, messages):
    assert create_errors("pods", pod(labels={"rev": "r1"}, **spec)) == messages


def test_a_pod_template_gets_the_same_errors_below_its_own_path():
    field = field_term(operator="In", values=["N 1"])
    spec = {"containers": [container()], **field}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    where = TERM.replace("spec.", "spec.template.spec.", 1)
    assert create_errors("deployments", workload("deployments", template=template)) == [
        f'{where}.matchFields[0].values[0]: Invalid value: "N 1": {SUBDOMAIN}'
    ]


EXISTS = {"key": "a", "operator": "Exists"}
LONGER = {"key": "b", "operator": "Exists"}
CLOSED = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
FIXED_TERMS = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
PREFERS = preferred_term(matchExpressions=[EXISTS])
REQUIRES = required_term(matchExpressions=[EXISTS])
HAS_FRIEND = friend(labelSelector={"matchLabels": {"a": "b"}})


def joined(*parts: Obj) -> Obj:
    found: Obj = {"affinity": {}}
    for part in parts:
        for key, value in part["affinity"].items():
            found["affinity"][key] = found["affinity"].get(key, {}) | value
    return found


@pytest.mark.parametrize(
    ("before", "after", "messages"),
    [
        pytest.param({}, PREFERS, [], id="a preference is added"),
        pytest.param(
            PREFERS, preferred_term(matchExpressions=[LONGER]), [], id="a preference is changed"
        ),
        pytest.param(PREFERS, {"affinity": None}, [], id="a preference is removed"),
        pytest.param(
            joined(PREFERS, HAS_FRIEND), HAS_FRIEND, [], id="a preference next to pod affinity goes"
        ),
        pytest.param(HAS_FRIEND, joined(PREFERS, HAS_FRIEND), [], id="and comes"),
        pytest.param(
            joined(PREFERS, HAS_FRIEND), {"affinity": None}, [CLOSED], id="pod affinity stays"
        ),
        pytest.param(PREFERS, joined(PREFERS, HAS_FRIEND), [CLOSED], id="pod affinity stays away"),
        pytest.param(REQUIRES, joined(REQUIRES, PREFERS), [], id="a preference next to a rule"),
        pytest.param(
            REQUIRES,
            required_term(matchExpressions=[EXISTS, LONGER]),
            [],
            id="a rule gets longer",
        ),
        pytest.param(
            REQUIRES,
            required_term(matchExpressions=[LONGER]),
            [
                f'{TERM}: Invalid value: {{"matchExpressions":[{{"key":"b","operator":"Exists"}}]}}'
                ": only additions are allowed (no mutations or deletions)"
            ],
            id="a rule is changed",
        ),
        pytest.param(
            REQUIRES,
            PREFERS,
            [f"{TERM.removesuffix('[0]')}: Invalid value: []: {FIXED_TERMS}"],
            id="a rule becomes a preference",
        ),
    ],
)
def test_the_node_affinity_of_a_gated_pod_may_be_tightened(before, after, messages):
    old = created("pods", pod(**{"schedulingGates": [{"name": "g"}], **before}))
    new = copy.deepcopy(old)
    new["spec"].update(copy.deepcopy(after))
    new["spec"] = {key: value for key, value in new["spec"].items() if value is not None}
    assert update_errors("pods", new, old) == messages


def test_the_preferred_affinity_of_a_pod_without_gates_stays():
    old = created("pods", pod())
    new = copy.deepcopy(old)
    new["spec"].update(PREFERS)
    assert update_errors("pods", new, old) == [CLOSED]


def ended(name: str, code: int | None = 0) -> Obj:
    state = {"running": {}} if code is None else {"terminated": {"exitCode": code}}
    return {"name": name, "state": state}


@pytest.mark.parametrize(
    ("spec", "before", "after", "messages"),
    [
        pytest.param(
            {},
            {},
            {"qosClass": "Guaranteed"},
            ['status.qosClass: Invalid value: "Guaranteed": field is immutable'],
            id="another quality of service",
        ),
        pytest.param({}, {}, {"qosClass": None}, [], id="no quality of service keeps the old one"),
        pytest.param(
            {},
            {},
            {"conditions": [{"type": "a b", "status": "True"}]},
            [f'metadata.conditions[0].Type: Invalid value: "a b": {QUALIFIED}'],
            id="an odd condition",
        ),
        pytest.param(
            {"restartPolicy": "Never"},
            {"containerStatuses": [ended("main")]},
            {"containerStatuses": [ended("main", None)]},
            [
                "status.containerStatuses[0].state: Forbidden: may not be transitioned to "
                "non-terminated state"
            ],
            id="a container that ended runs again",
        ),
        pytest.param(
            {"restartPolicy": "OnFailure"},
            {"containerStatuses": [ended("main", 1)]},
            {"containerStatuses": [ended("main", None)]},
            [],
            id="a container that failed runs again",
        ),
        pytest.param(
            {"restartPolicy": "Always"},
            {"containerStatuses": [ended("main")]},
            {"containerStatuses": [ended("main", None)]},
            [],
            id="a container is always started again",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]},
            {},
            {"resourceClaimStatuses": [{"name": "b"}, {"name": "a"}, {"name": "a"}]},
            [
                'status.resourceClaimStatuses[0].name: Invalid value: "b": must match the name of '
                "an entry in `spec.resourceClaims`",
                'status.resourceClaimStatuses[2].name: Duplicate value: "a"',
            ],
            id="claims that the pod does not have",
        ),
    ],
)
def test_the_status_of_a_pod_is_checked(spec, before, after, messages):
    old = created("pods", pod(**spec))
    old["status"] |= before
    new = copy.deepcopy(old)
    new["status"] |= after
    new["status"] = {key: value for key, value in new["status"].items() if value is not None}
    assert update_errors("pods", new, old, subresource="status") == messages


OTHERS = [
    pytest.param(
        named("nodes", status={"capacity": {"pods": "1.5", "a b": "1"}, "allocatable": {}}),
        ['status.capacity.pods: Invalid value: "1500m": must be an integer'],
        id="a node may have odd names of resources, but no half pods",
    ),
    pytest.param(
        named("nodes", spec={"podCIDRs": ["10.0.0.0/24", "10.0.0.0/24", "x"]}),
        [
            'spec.podCIDRs[2]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 '
            "or 2001:db8::/64)",
            'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.0.0/24","x"]: may specify no more '
            "than one CIDR for each IP family",
            'spec.podCIDRs[1]: Duplicate value: "10.0.0.0/24"',
        ],
        id="ranges of addresses",
    ),
    pytest.param(
        named("nodes", spec={"taints": [{"key": "", "value": "b c", "effect": ""}]}),
        [
            'metadata.taints[0].key: Invalid value: "": name part must be non-empty',
            f'metadata.taints[0].key: Invalid value: "": {QUALIFIED}',
            f'metadata.taints[0].value: Invalid value: "b c": {VALUE}',
            "metadata.taints[0].effect: Required value",
        ],
        id="an odd taint",
    ),
    pytest.param(
        named("runtimeclasses", handler="h", overhead={"podFixed": {"cpu": "-1", "gpu": "1"}}),
        [
            'overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            'overhead.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully '
            "qualified",
            'overhead.limits[gpu]: Invalid value: "gpu": must be a standard resource for '
            "containers",
        ],
        id="the overhead of a runtime class",
    ),
    pytest.param(
        named(
            "limitranges",
            spec={
                "limits": [
                    {
                        "type": "Container",
                        "default": {"a.com/x": "1"},
                        "defaultRequest": {"a.com/x": "2"},
                        "max": {"pods": "1"},
                    }
                ]
            },
        ),
        [
            'spec.limits[0].max[pods]: Invalid value: "pods": must be a standard resource for '
            "containers",
            'spec.limits[0].default[pods]: Invalid value: "pods": must be a standard resource for '
            "containers",
            'spec.limits[0].defaultRequest[pods]: Invalid value: "pods": must be a standard '
            "resource for containers",
            'spec.limits[0].defaultRequest[a.com/x]: Invalid value: "2": default request value 2 '
            "is greater than default limit value 1",
            'spec.limits[0].defaultRequest[a.com/x]: Invalid value: "2": default value 1 must '
            "equal to defaultRequest value 2 in a.com/x",
        ],
        id="a limit range",
    ),
    pytest.param(
        named("resourcequotas", spec={"hard": {"storage": "1"}}),
        ['spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota'],
        id="a quota of a standard resource that no quota counts",
    ),
]


@pytest.mark.parametrize(("obj", "messages"), OTHERS)
def test_other_objects_get_the_errors_of_kube_apiserver(obj, messages):
    plural = next(key for key, kind in KINDS.items() if kind.resource.kind == obj["kind"])
    assert create_errors(plural, obj) == messages


@pytest.mark.parametrize(
    ("old", "change", "messages"),
    [
        pytest.param(
            named("nodes", spec={"podCIDR": "10.0.0.0/24"}),
            {"spec": {"podCIDR": "10.1.0.0/24"}},
            [
                "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "
                '"" to valid'
            ],
            id="the range of a node",
        ),
        pytest.param(
            named("nodes"),
            {"spec": {"podCIDRs": ["10.1.0.0/24"]}},
            [],
            id="the first range of a node",
        ),
        pytest.param(
            named("nodes"),
            {"spec": {"externalID": "x"}},
            ["spec.externalID: Forbidden: may not be updated"],
            id="the external id of a node",
        ),
        pytest.param(
            named("nodes"),
            {"status": {"addresses": [{"type": "Hostname", "address": "a"}] * 2}},
            [
                'status.addresses[1]: Duplicate value: {"type":"Hostname","address":"a"}',
            ],
            id="an address of a node twice",
        ),
        pytest.param(
            named("priorityclasses", value=1),
            {"value": 2},
            ["value: Forbidden: may not be changed in an update."],
            id="the value of a priority class",
        ),
        pytest.param(
            named("priorityclasses", value=1),
            {"preemptionPolicy": "Never"},
            ['preemptionPolicy: Invalid value: "Never": field is immutable'],
            id="the policy of a priority class",
        ),
        pytest.param(
            named("runtimeclasses", handler="a"),
            {"handler": "b"},
            ['handler: Invalid value: "b": field is immutable'],
            id="the handler of a runtime class",
        ),
    ],
)
def test_other_changes_get_the_errors_of_kube_apiserver(old, change, messages):
    plural = next(key for key, kind in KINDS.items() if kind.resource.kind == old["kind"])
    stored = created(plural, old)
    subresource = "status" if "status" in change else None
    assert update_errors(plural, stored | change, stored, subresource=subresource) == messages


def test_the_two_fields_of_a_nodes_range_agree():
    for spec in ({"podCIDR": "10.0.0.0/24"}, {"podCIDRs": ["10.0.0.0/24"]}):
        assert created("nodes", named("nodes", spec=spec))["spec"] == {
            "podCIDR": "10.0.0.0/24",
            "podCIDRs": ["10.0.0.0/24"],
        }


def test_a_priority_class_becomes_the_second_default_neither_at_once_nor_later():
    first = named("priorityclasses", "a", value=1, globalDefault=True)
    world = World(("priorityclasses", first))
    text = "PriorityClass a is already marked as default. Only one default can exist"
    second = named("priorityclasses", "b", value=2)
    kind = KINDS["priorityclasses"]
    with pytest.raises(StatusError, match=text):
        created("priorityclasses", second | {"globalDefault": True}, world)
    stored = created("priorityclasses", second, world)
    with pytest.raises(StatusError, match=text):
        kind.prepare_update(stored | {"globalDefault": True}, stored, subresource=None, ctx=world)
    kind.prepare_update(
        copy.deepcopy(first), created("priorityclasses", first), subresource=None, ctx=world
    )
