"""Scope: what is refused in every kind that is not a pod."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from moorage.kinds.kind import Obj
from scheduler.tests.kinds.builders import (
    EVENTS_V1,
    claim,
    container,
    create_errors,
    created,
    named,
    template,
    update_errors,
    workload,
)
from scheduler.tests.kinds.test_pod_validation import LABEL

SELECTOR = {"matchLabels": {"app": "web"}}


def volume(**spec: Any) -> Obj:
    base: Obj = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/x"},
    }
    return named("persistentvolumes", spec=base | spec)


def claims(name: str) -> Obj:
    return {"metadata": {"name": name}, "spec": claim()["spec"]}


DATA = [{"name": "data", "mountPath": "/data"}]
VALID = [
    pytest.param("services", named("services", spec={"ports": [{"port": 80}]}), id="a service"),
    pytest.param("deployments", workload("deployments"), id="a deployment"),
    pytest.param("statefulsets", workload("statefulsets"), id="a stateful set"),
    pytest.param(
        "statefulsets",
        workload(
            "statefulsets",
            template=template(containers=[container(volumeMounts=DATA)]),
            volumeClaimTemplates=[claims("data")],
        ),
        id="a stateful set that mounts its claims",
    ),
    pytest.param("daemonsets", workload("daemonsets"), id="a daemon set"),
    pytest.param("persistentvolumes", volume(), id="a volume"),
    pytest.param("persistentvolumeclaims", claim(), id="a claim"),
    pytest.param("storageclasses", named("storageclasses", provisioner="p"), id="a class"),
    pytest.param("configmaps", named("configmaps", data={"a.b": "c"}), id="a config map"),
    pytest.param(
        "poddisruptionbudgets",
        named("poddisruptionbudgets", spec={"minAvailable": "50%", "selector": SELECTOR}),
        id="a budget",
    ),
    pytest.param(
        "priorityclasses",
        named("priorityclasses", "system-node-critical", value=2_000_001_000),
        id="a class of the system",
    ),
    pytest.param("leases", named("leases", spec={"leaseDurationSeconds": 15}), id="a lease"),
    pytest.param(
        "csistoragecapacities",
        named("csistoragecapacities", storageClassName="s", capacity="1Gi"),
        id="a storage capacity",
    ),
]


@pytest.mark.parametrize(("plural", "obj"), VALID)
def test_valid_objects_are_accepted(plural, obj):
    assert create_errors(plural, obj) == []


@pytest.mark.parametrize(("plural", "obj"), VALID)
def test_an_update_without_a_change_is_accepted(plural, obj):
    old = created(plural, obj)
    assert update_errors(plural, copy.deepcopy(old), old) == []


@pytest.mark.parametrize(
    ("plural", "obj", "messages"),
    [
        pytest.param(
            "nodes",
            named(
                "nodes",
                spec={"taints": [{"key": "k", "effect": "NoSchedule"}] * 2},
                status={"capacity": {"cpu": "-1"}},
            ),
            [
                'metadata.taints[1]: Duplicate value: {"key":"k","effect":"NoSchedule"}: taints '
                "must be unique by key and effect pair",
                'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
                'status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0',
            ],
            id="a taint twice and less than nothing",
        ),
        pytest.param(
            "nodes",
            named("nodes", spec={"taints": [{"key": "k", "effect": "Maybe"}]}),
            [
                'metadata.taints[0].effect: Unsupported value: "Maybe": supported values: '
                '"NoExecute", "NoSchedule", "PreferNoSchedule"'
            ],
            id="a taint with an unknown effect",
        ),
        pytest.param(
            "services",
            named("services", spec={"ports": [{"port": 0}, {"port": 80, "protocol": "IP"}]}),
            [
                "spec.ports[0].name: Required value",
                "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, "
                "inclusive",
                "spec.ports[1].name: Required value",
                'spec.ports[1].protocol: Unsupported value: "IP": supported values: "SCTP", '
                '"TCP", "UDP"',
            ],
            id="ports of a service",
        ),
        pytest.param(
            "statefulsets",
            workload(
                "statefulsets",
                template=template(containers=[container(volumeMounts=DATA)]),
                volumeClaimTemplates=[claims("other")],
            ),
            ['spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"'],
            id="a stateful set that mounts what it does not claim",
        ),
        pytest.param(
            "statefulsets",
            workload("statefulsets", serviceName="web.example"),
            [f'spec.serviceName: Invalid value: "web.example": {LABEL}'],
            id="a stateful set whose pods could not name their service",
        ),
        pytest.param(
            "deployments",
            workload(
                "deployments", template=template(ephemeralContainers=[container(name="debug")])
            ),
            [
                "spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not "
                "allowed in pod template"
            ],
            id="a deployment with ephemeral containers",
        ),
        pytest.param(
            "deployments",
            workload("deployments", replicas=-1, template=template(labels={"app": "other"})),
            [
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                'spec.template.metadata.labels: Invalid value: {"app":"other"}: `selector` does '
                "not match template `labels`",
            ],
            id="a deployment that would not find its pods",
        ),
        pytest.param(
            "deployments",
            workload("deployments", selector={}, template=template(restartPolicy="Never")),
            [
                "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
                'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: '
                '"Always"',
            ],
            id="a deployment without selector whose pods end",
        ),
        pytest.param(
            "jobs",
            named("jobs", spec={"template": template(containers=[container(image="")])}),
            [
                "spec.template.spec.containers[0].image: Required value",
                'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", '
                '"Never"',
                "spec.selector: Required value",
            ],
            id="a job that never ends",
        ),
        pytest.param(
            "poddisruptionbudgets",
            named("poddisruptionbudgets", spec={"minAvailable": 1, "maxUnavailable": "200%"}),
            [
                'spec: Invalid value: {"minAvailable":1,"maxUnavailable":"200%"}: minAvailable '
                "and maxUnavailable cannot be both set",
                'spec.maxUnavailable: Invalid value: "200%": must not be greater than 100%',
            ],
            id="a budget with two limits, one impossible",
        ),
        pytest.param(
            "priorityclasses",
            named("priorityclasses", "system-mine", value=1),
            [
                "metadata.name: Forbidden: priority class names with 'system-' prefix are "
                "reserved for system use only. error: system-mine is not a known system priority "
                "class"
            ],
            id="a reserved name",
        ),
        pytest.param(
            "priorityclasses",
            named("priorityclasses", value=1_000_000_001),
            ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
            id="a priority above all users",
        ),
        pytest.param(
            "persistentvolumes",
            volume(capacity={}, hostPath=None, local={"path": "/x"}),
            [
                "spec.capacity: Required value",
                'spec.capacity: Unsupported value: {}: supported values: "storage"',
                "spec.nodeAffinity: Required value: Local volume requires node affinity",
            ],
            id="a local volume that is nowhere",
        ),
        pytest.param(
            "persistentvolumes",
            volume(nfs={"server": "s", "path": "/"}, accessModes=["Sometimes"]),
            [
                'spec.accessModes: Unsupported value: "Sometimes": supported values: '
                '"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
                "spec.nfs: Forbidden: may not specify more than 1 volume type",
            ],
            id="two sources and an unknown mode",
        ),
        pytest.param(
            "persistentvolumeclaims",
            claim(resources={"requests": {"storage": "0"}}, accessModes=[]),
            [
                "spec.accessModes: Required value: at least 1 access mode is required",
                'spec.resources[storage]: Invalid value: "0": must be greater than zero',
            ],
            id="a claim for nothing",
        ),
        pytest.param(
            "volumeattributesclasses",
            named("volumeattributesclasses"),
            [
                "driverName: Required value",
                "parameters: Required value: must contain at least one key/value pair",
            ],
            id="a class of attributes without any",
        ),
        pytest.param(
            "storageclasses",
            named("storageclasses", volumeBindingMode="Later"),
            [
                "provisioner: Required value",
                'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", '
                '"WaitForFirstConsumer"',
            ],
            id="a storage class nobody serves",
        ),
        pytest.param(
            "deployments",
            workload(
                "deployments", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}
            ),
            [
                'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 '
                "when `maxSurge` is 0"
            ],
            id="a deployment that could never move on",
        ),
        pytest.param(
            "replicationcontrollers",
            named("replicationcontrollers", spec={"selector": {"a": "b"}}),
            ["spec.template: Required value"],
            id="a replication controller without a template",
        ),
        pytest.param(
            "csidrivers",
            named("csidrivers", spec={"fsGroupPolicy": "Any", "volumeLifecycleModes": ["Long"]}),
            [
                'spec.fsGroupPolicy: Unsupported value: "Any": supported values: "File", "None", '
                '"ReadWriteOnceWithFSType"',
                'spec.volumeLifecycleModes: Unsupported value: "Long": supported values: '
                '"Ephemeral", "Persistent"',
            ],
            id="a driver with unknown ways",
        ),
        pytest.param(
            "leases",
            named("leases", spec={"leaseDurationSeconds": 0}),
            ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
            id="a lease of no time",
        ),
        pytest.param(
            "events",
            named("events", involvedObject={"namespace": "other"}),
            ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
            id="an Event far from its object",
        ),
    ],
)
def test_faulty_objects_are_refused(plural, obj, messages):
    assert create_errors(plural, obj) == messages


def test_the_new_events_api_requires_more_fields():
    obj = named("events", regarding={"namespace": "default"}, type="Normal")
    obj["apiVersion"] = "events.k8s.io/v1"
    EVENTS_V1.default(obj)
    found = [each.message for each in EVENTS_V1.validate(obj, None, subresource=None)]
    assert found == [
        f"{field}: Required value"
        for field in ("eventTime", "reportingController", "reportingInstance", "action", "reason")
    ]


@pytest.mark.parametrize(
    ("plural", "obj", "change", "messages"),
    [
        pytest.param(
            "persistentvolumeclaims",
            claim(),
            {"spec": {"volumeName": "v", "storageClassName": "late"}},
            [],
            id="a claim may be bound",
        ),
        pytest.param(
            "persistentvolumeclaims",
            claim(),
            {"spec": {"accessModes": ["ReadWriteMany"]}},
            [
                "spec: Forbidden: spec is immutable after creation except resources.requests and "
                "volumeAttributesClassName for bound claims"
            ],
            id="a claim may not change otherwise",
        ),
        pytest.param(
            "persistentvolumes",
            volume(),
            {"spec": {"hostPath": {"path": "/y"}}},
            [
                "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is "
                "immutable after creation"
            ],
            id="a volume's source stays",
        ),
        pytest.param(
            "priorityclasses",
            named("priorityclasses", value=1),
            {"value": 2},
            ["value: Forbidden: may not be changed in an update."],
            id="a priority stays",
        ),
        pytest.param(
            "deployments",
            workload("deployments"),
            {"spec": {"replicas": 3}},
            [],
            id="a deployment may be scaled",
        ),
        pytest.param(
            "statefulsets",
            workload("statefulsets"),
            {"spec": {"podManagementPolicy": "Parallel"}},
            [
                "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', "
                "'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
                "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
            ],
            id="most of a stateful set stays",
        ),
        pytest.param(
            "statefulsets",
            workload("statefulsets", serviceName="web.example"),
            {"spec": {"replicas": 3}},
            [],
            id="a stateful set that was stored with a bad service name may be scaled",
        ),
        pytest.param(
            "volumeattributesclasses",
            named("volumeattributesclasses", driverName="d", parameters={"a": "b"}),
            {"driverName": "e", "parameters": {"a": "c"}},
            [
                "driverName: Forbidden: updates to driverName are forbidden.",
                "parameters: Forbidden: updates to parameters are forbidden.",
            ],
            id="a class of attributes",
        ),
        pytest.param(
            "storageclasses",
            named("storageclasses", provisioner="p"),
            {"provisioner": "q"},
            ["provisioner: Forbidden: updates to provisioner are forbidden."],
            id="a provisioner stays",
        ),
        pytest.param(
            "configmaps",
            named("configmaps", data={"a": "b"}, immutable=True),
            {"data": {"a": "c"}},
            ["data: Forbidden: field is immutable when `immutable` is set"],
            id="an immutable config map stays",
        ),
    ],
)
def test_only_mutable_fields_may_change(plural, obj, change, messages):
    old = created(plural, obj)
    new = copy.deepcopy(old)
    for key, value in change.items():
        new[key] = new[key] | value if isinstance(value, dict) and key == "spec" else value
    assert update_errors(plural, new, old) == messages


@pytest.mark.parametrize(
    ("metadata", "messages"),
    [
        pytest.param(
            {"name": "a/b"},
            [
                'metadata.name: Invalid value: "a/b": a lowercase RFC 1123 subdomain must '
                "consist of lower case alphanumeric characters, '-' or '.', and must start and "
                "end with an alphanumeric character (e.g. 'example.com', regex used for "
                "validation is "
                r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
            ],
            id="a name with a slash",
        ),
        pytest.param(
            {},
            ["metadata.name: Required value: name or generateName is required"],
            id="no name",
        ),
        pytest.param(
            {"name": "x", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]},
            ['metadata.ownerReferences[0].uid: Invalid value: "": must not be empty'],
            id="an owner without a uid",
        ),
        pytest.param(
            {"name": "x", "labels": {"a": "b" * 64}},
            [f'metadata.labels: Invalid value: "{"b" * 64}": must be no more than 63 characters'],
            id="a long label",
        ),
    ],
)
def test_object_metadata_is_checked(metadata, messages):
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": "default", **metadata},
    }
    assert create_errors("configmaps", obj) == messages


def indexed_job(**spec: Any) -> Obj:
    body = template(restartPolicy=spec.pop("restartPolicy", "Never"))
    meta = {"uid": "u"}
    job = named("jobs", spec={"completionMode": "Indexed", "completions": 3, "template": body})
    job["metadata"] |= meta
    job["spec"] |= spec
    return job


TANDEM = "can only be modified in tandem with spec.parallelism"


@pytest.mark.parametrize(
    ("change", "messages"),
    [
        pytest.param({"completions": 2, "parallelism": 2}, [], id="both together"),
        pytest.param(
            {"completions": 2},
            [f"spec.completions: Invalid value: 2: {TANDEM}"],
            id="completions alone",
        ),
        pytest.param(
            {"managedBy": "example.com/other"},
            ['spec.managedBy: Invalid value: "example.com/other": field is immutable'],
            id="who manages it stays",
        ),
    ],
)
def test_what_changes_of_an_indexed_job(change, messages):
    old = created("jobs", indexed_job(parallelism=3))
    new = copy.deepcopy(old)
    new["spec"] |= change
    assert update_errors("jobs", new, old) == messages


def test_the_completions_of_a_job_without_indexes_stay():
    old = created("jobs", indexed_job(parallelism=3, completionMode="NonIndexed"))
    new = copy.deepcopy(old)
    new["spec"] |= {"completions": 2, "parallelism": 2}
    message = "spec.completions: Invalid value: 2: field is immutable"
    assert update_errors("jobs", new, old) == [message]


@pytest.mark.parametrize(
    ("spec", "messages"),
    [
        pytest.param({"backoffLimitPerIndex": 1, "maxFailedIndexes": 2}, [], id="both limits"),
        pytest.param(
            {"successPolicy": {"rules": [{"succeededIndexes": "0,1-2", "succeededCount": 2}]}},
            [],
            id="a success policy",
        ),
        pytest.param(
            {"maxFailedIndexes": 4},
            [
                "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified",
                "spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to "
                "completions",
            ],
            id="more failed indexes than there are, and no limit",
        ),
        pytest.param(
            {"completionMode": "NonIndexed", "backoffLimitPerIndex": 1},
            ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
            id="a limit for each index without indexes",
        ),
        pytest.param(
            {"backoffLimitPerIndex": 1, "restartPolicy": "OnFailure"},
            [],
            id="containers that restart by themselves",
        ),
        pytest.param(
            {"successPolicy": {"rules": []}},
            [
                "spec.successPolicy.rules: Required value: at least one rules must be specified "
                "when the successPolicy is specified"
            ],
            id="a success policy without rules",
        ),
        pytest.param(
            {"successPolicy": {"rules": [{"succeededIndexes": "2,1"}, {}, {"succeededCount": 4}]}},
            [
                'spec.successPolicy.rules[0].succeededIndexes: Invalid value: "2,1": error '
                "parsing succeededIndexes: non-increasing order, previous: 2, current: 1",
                "spec.successPolicy.rules[1]: Required value: at least one of succeededCount or "
                "succeededIndexes must be specified",
                "spec.successPolicy.rules[2].succeededCount: Invalid value: 4: must be "
                "less than or equal to 3 (the number of specified completions)",
            ],
            id="rules that cannot be met",
        ),
    ],
)
def test_indexed_jobs_are_checked(spec, messages):
    assert create_errors("jobs", indexed_job(**spec)) == messages
