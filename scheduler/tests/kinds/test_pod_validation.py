"""Scope: what is refused in new pods, and in changes to pods."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from moorage.kinds.kind import Obj
from scheduler.tests.kinds.builders import container, create_errors, created, pod, update_errors

QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
    "used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def with_resources(**resources: Obj) -> Obj:
    return {"containers": [container(resources=resources)]}


def with_ports(*ports: Obj) -> Obj:
    return {"containers": [container(ports=list(ports))]}


def node_term(**entry: Any) -> Obj:
    selector = {"nodeSelectorTerms": [{"matchExpressions": [entry]}]}
    return {"affinity": {"nodeAffinity": {REQUIRED: selector}}}


def spread(**fields: Any) -> Obj:
    base = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [base | fields]}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="one container"),
        pytest.param({"nodeName": "n1"}, id="bound from the start"),
        pytest.param(
            {
                "initContainers": [
                    {"name": "side", "image": "s", "restartPolicy": "Always"},
                    {"name": "once", "image": "s"},
                ]
            },
            id="a sidecar and an init container",
        ),
        pytest.param(
            with_resources(
                requests={"cpu": "1", "example.com/gpu": "1"}, limits={"example.com/gpu": 1}
            ),
            id="an extended resource with its limit",
        ),
        pytest.param(
            node_term(key="cpus", operator="Gt", values=["4"]), id="a number compared with Gt"
        ),
        pytest.param({"tolerations": [{"operator": "Exists"}]}, id="a toleration of everything"),
    ],
)
def test_valid_pods_are_accepted(spec):
    assert create_errors("pods", pod(**spec)) == []


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        pytest.param({"containers": []}, ["spec.containers: Required value"], id="no container"),
        pytest.param(
            {"containers": [{"name": "A", "image": "x"}]},
            [f'spec.containers[0].name: Invalid value: "A": {LABEL}'],
            id="a container name in capitals",
        ),
        pytest.param(
            {"containers": [container(), container(image="")]},
            [
                'spec.containers[1].name: Duplicate value: "main"',
                "spec.containers[1].image: Required value",
            ],
            id="the same name twice, and no image",
        ),
        pytest.param(
            {"restartPolicy": "Sometimes"},
            [
                'spec.restartPolicy: Unsupported value: "Sometimes": supported values: '
                '"Always", "Never", "OnFailure"'
            ],
            id="an unknown restart policy",
        ),
        pytest.param(
            with_resources(requests={"cpu": "-1"}),
            [
                'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be '
                "greater than or equal to 0"
            ],
            id="a negative request",
        ),
        pytest.param(
            with_resources(requests={"cpu": "2"}, limits={"cpu": "1"}),
            [
                'spec.containers[0].resources.requests: Invalid value: "2": must be less than or '
                "equal to cpu limit of 1"
            ],
            id="a request above its limit",
        ),
        pytest.param(
            with_resources(requests={"gpu": "1"}),
            [
                'spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a '
                "standard resource type or fully qualified",
                'spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a '
                "standard resource for containers",
            ],
            id="a resource nobody knows",
        ),
        pytest.param(
            with_resources(limits={"example.com/gpu": "500m"}),
            [
                f"spec.containers[0].resources.{which}[example.com/gpu]: Invalid value: "
                '"500m": must be an integer'
                for which in ("limits", "requests")
            ],
            id="half of an extended resource",
        ),
        pytest.param(
            with_resources(limits={"hugepages-2Mi": "4Mi"}),
            ["spec.containers[0].resources: Forbidden: HugePages require cpu or memory"],
            id="huge pages alone",
        ),
        pytest.param(
            with_ports({"containerPort": 70000, "protocol": "IP"}),
            [
                "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between "
                "1 and 65535, inclusive",
                'spec.containers[0].ports[0].protocol: Unsupported value: "IP": supported '
                'values: "SCTP", "TCP", "UDP"',
            ],
            id="a port out of range and an unknown protocol",
        ),
        pytest.param(
            with_ports(
                {"containerPort": 1, "hostPort": 80, "name": "web"},
                {"containerPort": 2, "hostPort": 80, "name": "web"},
            ),
            [
                'spec.containers[0].ports[1].name: Duplicate value: "web"',
                'spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//80"',
            ],
            id="a host port and a port name twice",
        ),
        pytest.param(
            {"hostNetwork": True, **with_ports({"containerPort": 80, "hostPort": 81})},
            [
                "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match "
                "`containerPort` when `hostNetwork` is true"
            ],
            id="another host port on the host's network",
        ),
        pytest.param(
            {"containers": [container(volumeMounts=[{"name": "v", "mountPath": "/x"}])]},
            ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
            id="a mount of a volume there is not",
        ),
        pytest.param(
            {"containers": [container(livenessProbe={})]},
            ["spec.containers[0].livenessProbe: Required value: must specify a handler type"],
            id="a probe that does nothing",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
            ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
            id="a volume with two sources",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
            ["spec.volumes[0].persistentVolumeClaim.claimName: Required value"],
            id="a claim without a name",
        ),
        pytest.param(
            {"nodeSelector": {"a b": "c"}},
            [f'spec.nodeSelector: Invalid value: "a b": {QUALIFIED}'],
            id="a bad key in the node selector",
        ),
        pytest.param(
            {"hostname": "db.0", "subdomain": "DB"},
            [
                f'spec.hostname: Invalid value: "db.0": {LABEL}',
                f'spec.subdomain: Invalid value: "DB": {LABEL}',
            ],
            id="names that are no labels",
        ),
        pytest.param(
            {"tolerations": [{"value": "x"}, {"key": "k", "operator": "Exists", "value": "x"}]},
            [
                'spec.tolerations[0].operator: Invalid value: "": operator must be Exists when '
                '`key` is empty, which means "match all values and all keys"',
                'spec.tolerations[1].operator: Invalid value: "x": value must be empty when '
                "`operator` is 'Exists'",
            ],
            id="tolerations that contradict themselves",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "operator": "Gt", "value": "1", "effect": "Never"}]},
            [
                'spec.tolerations[0].operator: Unsupported value: "Gt": supported values: '
                '"Equal", "Exists"',
                'spec.tolerations[0].effect: Unsupported value: "Never": supported values: '
                '"NoExecute", "NoSchedule", "PreferNoSchedule"',
            ],
            id="an operator behind a gate, and an unknown effect",
        ),
        pytest.param(
            {"tolerations": [{"key": "k", "effect": "NoSchedule", "tolerationSeconds": 5}]},
            [
                'spec.tolerations[0].effect: Invalid value: "NoSchedule": effect must be '
                "'NoExecute' when `tolerationSeconds` is set"
            ],
            id="seconds where nobody is evicted",
        ),
        pytest.param(
            node_term(key="zone", operator="In"),
            [
                f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"
                ".values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
            ],
            id="In without values",
        ),
        pytest.param(
            node_term(key="zone", operator="Near", values=["a"]),
            [
                f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"
                '.operator: Invalid value: "Near": not a valid selector operator'
            ],
            id="an unknown operator",
        ),
        pytest.param(
            {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}},
            [
                f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms: Required value: must "
                "have at least one node selector term"
            ],
            id="required node affinity without a term",
        ),
        pytest.param(
            {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 0, "podAffinityTerm": {}}]}}},
            [
                f"spec.affinity.podAntiAffinity.{PREFERRED}[0].weight: Invalid value: 0: must be "
                "in the range 1-100",
                f"spec.affinity.podAntiAffinity.{PREFERRED}[0].podAffinityTerm.topologyKey: "
                "Required value: can not be empty",
                f"spec.affinity.podAntiAffinity.{PREFERRED}[0].podAffinityTerm.topologyKey: "
                'Invalid value: "": name part must be non-empty',
                f"spec.affinity.podAntiAffinity.{PREFERRED}[0].podAffinityTerm.topologyKey: "
                f'Invalid value: "": {QUALIFIED}',
            ],
            id="a weightless preference without a topology",
        ),
        pytest.param(
            spread(maxSkew=0, whenUnsatisfiable="Panic"),
            [
                "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater "
                "than zero",
                "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "
                '"Panic": supported values: "DoNotSchedule", "ScheduleAnyway"',
            ],
            id="a spread of nothing with an unknown reaction",
        ),
        pytest.param(
            spread(whenUnsatisfiable="ScheduleAnyway", minDomains=2, matchLabelKeys=["app"]),
            [
                "spec.topologySpreadConstraints[0].minDomains: Invalid value: 2: can only use "
                "minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway",
                "spec.topologySpreadConstraints[0].matchLabelKeys: Forbidden: must not be "
                "specified when labelSelector is not set",
            ],
            id="domains where the spread is only a wish, label keys without a selector",
        ),
        pytest.param(
            {"topologySpreadConstraints": spread()["topologySpreadConstraints"] * 2},
            [
                "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate "
                'value: "{zone, DoNotSchedule}"'
            ],
            id="the same constraint twice",
        ),
        pytest.param(
            {"schedulingGates": [{"name": "g"}, {"name": "g"}], "nodeName": "n1"},
            [
                'spec.schedulingGates[1]: Duplicate value: "g"',
                "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been "
                "cleared",
            ],
            id="a gate twice, on a node already",
        ),
        pytest.param(
            {
                "resources": {"requests": {"cpu": "1"}},
                **with_resources(requests={"cpu": "2"}),
            },
            [
                'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal '
                "to aggregate container requests of 2"
            ],
            id="the containers ask for more than the pod",
        ),
    ],
)
def test_faulty_pods_are_refused(spec, messages):
    assert create_errors("pods", pod(**spec)) == messages


UPDATE = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
GATED = {"schedulingGates": [{"name": "a"}, {"name": "b"}]}


def changed(old: Obj, **spec: Any) -> Obj:
    new = copy.deepcopy(old)
    new["spec"].update(copy.deepcopy(spec))
    for key in [key for key, value in new["spec"].items() if value is None]:
        del new["spec"][key]
    return new


def toleration(**fields: Any) -> Obj:
    return {"key": "k", "operator": "Exists", "effect": "NoExecute", **fields}


@pytest.mark.parametrize(
    ("before", "change", "messages"),
    [
        pytest.param(
            {}, {"containers": [container(image="app:2")]}, [], id="another image is fine"
        ),
        pytest.param({}, {"activeDeadlineSeconds": 5}, [], id="a deadline may appear"),
        pytest.param(
            {"activeDeadlineSeconds": 5},
            {"activeDeadlineSeconds": 6},
            [
                "spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to "
                "previous value"
            ],
            id="a deadline may not move away",
        ),
        pytest.param({}, {"nodeName": "n1"}, [UPDATE], id="a node is given by binding only"),
        pytest.param({}, {"nodeSelector": {"a": "b"}}, [UPDATE], id="a node selector is fixed"),
        pytest.param(
            {},
            {"containers": [container(), container(name="more")]},
            ["spec.containers: Forbidden: pod updates may not add or remove containers"],
            id="another container",
        ),
        pytest.param({}, {"schedulerName": "other"}, [UPDATE], id="another scheduler"),
        pytest.param(GATED, {"schedulingGates": [{"name": "b"}]}, [], id="a gate may be removed"),
        pytest.param(GATED, {"schedulingGates": None}, [], id="all gates may be removed"),
        pytest.param(
            GATED,
            {"schedulingGates": [{"name": "a"}, {"name": "c"}]},
            [
                "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new "
                "scheduling gate 'c'"
            ],
            id="no gate may be added",
        ),
        pytest.param(GATED, {"nodeSelector": {"a": "b"}}, [], id="a gated pod's selector may grow"),
        pytest.param(
            GATED | {"nodeSelector": {"a": "b"}},
            {"nodeSelector": {"a": "c"}},
            [
                'spec.nodeSelector: Invalid value: {"a":"c"}: only additions to '
                "spec.nodeSelector are allowed (no mutations or deletions)"
            ],
            id="a gated pod's selector may not change",
        ),
        pytest.param(
            GATED,
            node_term(key="zone", operator="Exists"),
            [],
            id="a gated pod may get required node affinity",
        ),
        pytest.param(
            GATED | node_term(key="zone", operator="Exists"),
            node_term(key="rack", operator="Exists"),
            [
                f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]: Invalid value: "
                '{"matchExpressions":[{"key":"rack","operator":"Exists"}]}: only additions are '
                "allowed (no mutations or deletions)"
            ],
            id="a gated pod's affinity may only be tightened",
        ),
    ],
)
def test_only_the_mutable_fields_of_a_pod_may_change(before, change, messages):
    old = created("pods", pod(**before))
    assert update_errors("pods", changed(old, **change), old) == messages


def test_tolerations_may_be_added_and_given_other_seconds():
    old = created("pods", pod(tolerations=[toleration(tolerationSeconds=5)]))
    kept = old["spec"]["tolerations"]
    longer = [kept[0] | {"tolerationSeconds": 9}, *kept[1:], toleration(key="new")]
    assert update_errors("pods", changed(old, tolerations=longer), old) == []
    assert update_errors("pods", changed(old, tolerations=kept[1:]), old) == [
        "spec.tolerations: Forbidden: existing toleration can not be modified except its "
        "tolerationSeconds"
    ]


def test_an_update_may_leave_out_what_admission_adds():
    old = created("pods", pod())
    new = changed(old, tolerations=None, priority=None, preemptionPolicy=None)
    assert update_errors("pods", new, old) == []


def test_the_uid_of_a_pod_is_immutable():
    old = created("pods", pod())
    old["metadata"]["uid"] = "u1"
    new = copy.deepcopy(old)
    new["metadata"]["uid"] = "u2"
    assert update_errors("pods", new, old) == [
        'metadata.uid: Invalid value: "u2": field is immutable'
    ]


@pytest.mark.parametrize(
    ("bound", "before", "after", "messages"),
    [
        pytest.param("", "", "n1", [], id="a pending pod is nominated"),
        pytest.param("n1", "n1", "n1", [], id="a nomination left over after binding"),
        pytest.param(
            "n1",
            "",
            "n2",
            [
                "status.nominatedNodeName: Forbidden: may not be set on pods that are already "
                "bound to a node"
            ],
            id="a bound pod is not nominated",
        ),
    ],
)
def test_the_nominated_node_is_checked_on_status_updates(bound, before, after, messages):
    old = created("pods", pod(nodeName=bound) if bound else pod())
    if before:
        old["status"]["nominatedNodeName"] = before
    new = copy.deepcopy(old)
    new["status"]["nominatedNodeName"] = after
    assert update_errors("pods", new, old, subresource="status") == messages
