"""Scope: what ``kubectl get`` prints for each kind."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.kinds.cells import human_duration
from moorage.kinds.kind import Obj
from moorage_sandbox.apiserver.wire.table import to_table
from scheduler.tests.kinds.builders import KINDS, named, pod

BORN = "2026-01-01T00:00:00Z"
NOW_NS = parse_rfc3339(BORN) + 300 * NS_PER_SECOND
MINUTE, HOUR, DAY = 60, 3600, 86_400


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(-2, "<invalid>", id="far in the future"),
        pytest.param(-1, "0s", id="a little in the future"),
        pytest.param(119, "119s", id="under two minutes"),
        pytest.param(2 * MINUTE, "2m", id="two minutes sharp"),
        pytest.param(9 * MINUTE + 59, "9m59s", id="under ten minutes"),
        pytest.param(10 * MINUTE + 59, "10m", id="over ten minutes"),
        pytest.param(3 * HOUR - 1, "179m", id="under three hours"),
        pytest.param(3 * HOUR + MINUTE, "3h1m", id="over three hours"),
        pytest.param(8 * HOUR + MINUTE, "8h", id="over eight hours"),
        pytest.param(47 * HOUR, "47h", id="under two days"),
        pytest.param(2 * DAY + HOUR, "2d1h", id="over two days"),
        pytest.param(8 * DAY + HOUR, "8d", id="over eight days"),
        pytest.param(729 * DAY, "729d", id="under two years"),
        pytest.param(731 * DAY, "2y1d", id="over two years"),
        pytest.param(9 * 365 * DAY, "9y", id="nine years"),
    ],
)
def test_ages_are_shown_as_kubectl_shows_them(seconds, text):
    assert human_duration(seconds) == text


def row(plural: str, obj: Obj) -> list[Any]:
    obj["metadata"].setdefault("creationTimestamp", BORN)
    return KINDS[plural].row(obj, NOW_NS)


def state(**fields: Any) -> Obj:
    return {"name": "main", "ready": False, "restartCount": 0, **fields}


def with_status(status: Obj, *, deleted: bool = False, **spec: Any) -> Obj:
    obj = pod(**spec)
    obj["status"] = status
    if deleted:
        obj["metadata"]["deletionTimestamp"] = BORN
    return obj


RUNNING = state(ready=True, state={"running": {}})
SIDECAR = {"name": "side", "image": "s", "restartPolicy": "Always"}
ONCE = {"name": "once", "image": "s"}
GATED = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]


@pytest.mark.parametrize(
    ("obj", "ready", "status", "restarts"),
    [
        pytest.param(with_status({"phase": "Pending"}), "0/1", "Pending", "0", id="pending"),
        pytest.param(
            with_status({"phase": "Pending", "conditions": GATED}),
            "0/1",
            "SchedulingGated",
            "0",
            id="gated",
        ),
        pytest.param(
            with_status({"phase": "Running", "containerStatuses": [RUNNING]}),
            "1/1",
            "Running",
            "0",
            id="running",
        ),
        pytest.param(
            with_status({"phase": "Running", "containerStatuses": [RUNNING]}, deleted=True),
            "1/1",
            "Terminating",
            "0",
            id="being deleted",
        ),
        pytest.param(
            with_status({"phase": "Failed", "reason": "OutOfcpu"}),
            "0/1",
            "OutOfcpu",
            "0",
            id="refused by the node",
        ),
        pytest.param(
            with_status(
                {
                    "phase": "Running",
                    "containerStatuses": [
                        state(
                            restartCount=3,
                            state={"waiting": {"reason": "CrashLoopBackOff"}},
                            lastState={"terminated": {"finishedAt": "2026-01-01T00:04:00Z"}},
                        )
                    ],
                }
            ),
            "0/1",
            "CrashLoopBackOff",
            "3 (60s ago)",
            id="crashing",
        ),
        pytest.param(
            with_status(
                {
                    "phase": "Succeeded",
                    "containerStatuses": [
                        state(state={"terminated": {"reason": "Completed", "exitCode": 0}})
                    ],
                }
            ),
            "0/1",
            "Completed",
            "0",
            id="done",
        ),
        pytest.param(
            with_status(
                {
                    "phase": "Failed",
                    "containerStatuses": [state(state={"terminated": {"exitCode": 2}})],
                }
            ),
            "0/1",
            "ExitCode:2",
            "0",
            id="failed without a reason",
        ),
        pytest.param(
            with_status(
                {"phase": "Pending", "initContainerStatuses": [state(name="once")]},
                initContainers=[ONCE, SIDECAR],
            ),
            "0/2",
            "Init:0/2",
            "0",
            id="the first init container",
        ),
        pytest.param(
            with_status(
                {
                    "phase": "Pending",
                    "initContainerStatuses": [
                        state(name="once", state={"terminated": {"exitCode": 1}})
                    ],
                },
                initContainers=[ONCE],
            ),
            "0/1",
            "Init:ExitCode:1",
            "0",
            id="an init container that failed",
        ),
        pytest.param(
            with_status(
                {
                    "phase": "Running",
                    "initContainerStatuses": [state(name="side", ready=True, started=True)],
                    "containerStatuses": [RUNNING],
                },
                initContainers=[SIDECAR],
            ),
            "2/2",
            "Running",
            "0",
            id="a sidecar counts as ready",
        ),
    ],
)
def test_the_table_of_pods_shows_readiness_status_and_restarts(obj, ready, status, restarts):
    assert row("pods", obj) == [
        "web",
        ready,
        status,
        restarts,
        "5m",
        "<none>",
        "<none>",
        "<none>",
        "<none>",
    ]


def test_wide_columns_of_a_pod():
    obj = with_status(
        {
            "phase": "Running",
            "podIPs": [{"ip": "10.0.0.7"}],
            "nominatedNodeName": "n2",
            "conditions": [{"type": "example.com/up", "status": "True"}],
        },
        nodeName="n1",
        readinessGates=[{"conditionType": "example.com/up"}, {"conditionType": "other"}],
    )
    assert row("pods", obj)[5:] == ["10.0.0.7", "n1", "n2", "1/2"]


def workload(plural: str, status: Obj, **spec: Any) -> Obj:
    template = {"spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}]}}
    base = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    return named(plural, spec=base | spec, status=status)


@pytest.mark.parametrize(
    ("plural", "obj", "cells"),
    [
        pytest.param(
            "nodes",
            {
                "metadata": {"name": "n1", "labels": {"node-role.kubernetes.io/control-plane": ""}},
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                    "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "moor"},
                },
            },
            [
                "n1",
                "Ready,SchedulingDisabled",
                "control-plane",
                "5m",
                "v1.36.0",
                "10.0.0.1",
                "<none>",
                "moor",
                "<unknown>",
                "<unknown>",
            ],
            id="a cordoned node",
        ),
        pytest.param(
            "nodes",
            {
                "metadata": {"name": "n1"},
                "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
            },
            ["n1", "NotReady", "<none>", "5m", "", "<none>", "<none>"] + ["<unknown>"] * 3,
            id="a silent node",
        ),
        pytest.param(
            "namespaces",
            {"metadata": {"name": "x"}, "status": {"phase": "Active"}},
            ["x", "Active", "5m"],
            id="a namespace",
        ),
        pytest.param(
            "services",
            named(
                "services",
                spec={
                    "type": "NodePort",
                    "clusterIP": "10.96.0.1",
                    "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}],
                    "selector": {"b": "2", "a": "1"},
                },
            ),
            ["x", "NodePort", "10.96.0.1", "<none>", "80:30080/TCP", "5m", "a=1,b=2"],
            id="a service",
        ),
        pytest.param(
            "deployments",
            workload(
                "deployments",
                {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
                replicas=3,
            ),
            ["x", "1/3", 2, 1, "5m", "a,b", "i,j", "app=web"],
            id="a deployment",
        ),
        pytest.param(
            "replicasets",
            workload("replicasets", {"replicas": 2, "readyReplicas": 1}, replicas=3),
            ["x", 3, 2, 1, "5m", "a,b", "i,j", "app=web"],
            id="a replica set",
        ),
        pytest.param(
            "statefulsets",
            workload("statefulsets", {"readyReplicas": 1}, replicas=3),
            ["x", "1/3", "5m", "a,b", "i,j"],
            id="a stateful set",
        ),
        pytest.param(
            "jobs",
            workload(
                "jobs",
                {
                    "succeeded": 1,
                    "startTime": BORN,
                    "completionTime": "2026-01-01T00:00:30Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                },
                completions=1,
            ),
            ["x", "Complete", "1/1", "30s", "5m", "a,b", "i,j", "app=web"],
            id="a finished job",
        ),
        pytest.param(
            "persistentvolumes",
            named(
                "persistentvolumes",
                spec={
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Retain",
                    "claimRef": {"namespace": "default", "name": "c"},
                    "storageClassName": "fast",
                    "volumeMode": "Filesystem",
                },
                status={"phase": "Bound"},
            ),
            [
                "x",
                "1Gi",
                "RWO,RWX",
                "Retain",
                "Bound",
                "default/c",
                "fast",
                "<unset>",
                "",
                "5m",
                "Filesystem",
            ],
            id="a bound volume",
        ),
        pytest.param(
            "persistentvolumeclaims",
            named("persistentvolumeclaims", spec={}, status={"phase": "Pending"}),
            ["x", "Pending", "", "", "", "", "<unset>", "5m", "<unset>"],
            id="a pending claim",
        ),
        pytest.param(
            "storageclasses",
            {
                "metadata": {
                    "name": "fast",
                    "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                },
                "provisioner": "p",
            },
            ["fast (default)", "p", "Delete", "Immediate", False, "5m"],
            id="the default storage class",
        ),
        pytest.param(
            "poddisruptionbudgets",
            named(
                "poddisruptionbudgets",
                spec={"maxUnavailable": "50%"},
                status={"disruptionsAllowed": 2},
            ),
            ["x", "N/A", "50%", 2, "5m"],
            id="a budget",
        ),
        pytest.param(
            "priorityclasses",
            named("priorityclasses", value=10, preemptionPolicy="Never"),
            ["x", 10, False, "5m", "Never"],
            id="a priority class",
        ),
        pytest.param(
            "leases",
            named("leases", spec={"holderIdentity": "me"}),
            ["x", "me", "5m"],
            id="a lease",
        ),
        pytest.param(
            "events",
            named(
                "events",
                involvedObject={"kind": "Pod", "name": "web"},
                reason="FailedScheduling",
                type="Warning",
                message="0/1 nodes are available\n",
                eventTime="2026-01-01T00:01:00.000000Z",
                series={"count": 4, "lastObservedTime": "2026-01-01T00:04:00.000000Z"},
                reportingComponent="default-scheduler",
            ),
            [
                "60s",
                "Warning",
                "FailedScheduling",
                "pod/web",
                "",
                "default-scheduler",
                "0/1 nodes are available",
                "4m",
                "4",
                "x",
            ],
            id="an Event that repeats",
        ),
        pytest.param(
            "validatingadmissionpolicies",
            named(
                "validatingadmissionpolicies",
                spec={
                    "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
                    "validations": [{"expression": "true"}],
                },
            ),
            ["x", 1, "v1/ConfigMap", "5m"],
            id="a policy with parameters",
        ),
        pytest.param(
            "mutatingadmissionpolicies",
            named("mutatingadmissionpolicies", spec={"mutations": [{}, {}]}),
            ["x", 2, "<unset>", "5m"],
            id="a mutating policy without parameters",
        ),
        pytest.param(
            "validatingadmissionpolicybindings",
            named(
                "validatingadmissionpolicybindings",
                spec={"policyName": "p", "paramRef": {"name": "a"}},
            ),
            ["x", "p", "*/a", "5m"],
            id="a binding with a parameter",
        ),
        pytest.param(
            "flowschemas",
            named(
                "flowschemas",
                spec={
                    "priorityLevelConfiguration": {"name": "exempt"},
                    "matchingPrecedence": 5,
                    "distinguisherMethod": {"type": "ByUser"},
                },
                status={"conditions": [{"type": "Dangling", "status": "False"}]},
            ),
            ["x", "exempt", "5", "ByUser", "5m", "False"],
            id="a flow schema",
        ),
        pytest.param(
            "prioritylevelconfigurations",
            named(
                "prioritylevelconfigurations",
                spec={"type": "Limited", "limited": {"nominalConcurrencyShares": 0}},
            ),
            ["x", "Limited", "0", "<none>", "<none>", "<none>", "5m"],
            id="a priority level without queues",
        ),
        pytest.param(
            "clustertrustbundles",
            named("clustertrustbundles", spec={"signerName": "a.b/c"}),
            ["x", "a.b/c"],
            id="a bundle of certificates",
        ),
        pytest.param(
            "componentstatuses",
            named(
                "componentstatuses",
                conditions=[{"type": "Healthy", "status": "True", "message": "ok"}],
            ),
            ["x", "Healthy", "ok", ""],
            id="a healthy component",
        ),
        pytest.param(
            "componentstatuses",
            named("componentstatuses"),
            ["x", "Unknown", "", ""],
            id="a component without conditions",
        ),
        pytest.param(
            "leasecandidates",
            named(
                "leasecandidates",
                spec={"leaseName": "l", "binaryVersion": "1.36.0", "emulationVersion": "1.35.0"},
            ),
            ["x", "l", "1.36.0", "1.35.0", "5m"],
            id="a candidate of a lease",
        ),
        pytest.param(
            "storageversions",
            named(
                "storageversions",
                status={
                    "storageVersions": [
                        {"apiServerID": f"s{each}", "encodingVersion": "v1"} for each in range(4)
                    ]
                },
            ),
            ["x", "<unset>", "s0=v1,s1=v1,s2=v1 + 1 more...", "5m"],
            id="stored versions of four servers",
        ),
        pytest.param(
            "storageversionmigrations",
            named(
                "storageversionmigrations",
                spec={"resource": {"group": "apps", "resource": "deployments"}},
            ),
            ["x", "deployments.apps"],
            id="a migration",
        ),
        pytest.param(
            "ipaddresses",
            named("ipaddresses", spec={"parentRef": {"resource": "services", "name": "a"}}),
            ["x", "services/a"],
            id="an address",
        ),
        pytest.param(
            "configmaps",
            named("configmaps", data={"a": "b"}, binaryData={"c": ""}),
            ["x", "2", "5m"],
            id="a config map",
        ),
    ],
)
def test_the_table_of_each_kind_shows_its_columns(plural, obj, cells):
    assert row(plural, obj) == cells


def test_a_table_carries_columns_rows_and_metadata():
    obj = with_status({"phase": "Succeeded"})
    table = to_table(KINDS["pods"], [obj], NOW_NS)
    assert [(column["name"], column["priority"]) for column in table.pop("columnDefinitions")] == [
        ("Name", 0),
        ("Ready", 0),
        ("Status", 0),
        ("Restarts", 0),
        ("Age", 0),
        ("IP", 1),
        ("Node", 1),
        ("Nominated Node", 1),
        ("Readiness Gates", 1),
    ]
    assert table == {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "rows": [
            {
                "cells": KINDS["pods"].row(obj, NOW_NS),
                "conditions": [
                    {
                        "type": "Completed",
                        "status": "True",
                        "reason": "Succeeded",
                        "message": "The pod has completed successfully.",
                    }
                ],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": obj["metadata"],
                },
            }
        ],
    }


def test_rows_carry_the_object_by_include_object():
    obj = with_status({"phase": "Pending"})
    none = to_table(KINDS["pods"], [obj], NOW_NS, "None")["rows"]
    whole = to_table(KINDS["pods"], [obj], NOW_NS, "Object")["rows"]
    assert ("object" in none[0], whole[0]["object"]) == (False, obj)
    with pytest.raises(ValueError, match='unrecognized includeObject value: "Some"'):
        to_table(KINDS["pods"], [obj], NOW_NS, "Some")
