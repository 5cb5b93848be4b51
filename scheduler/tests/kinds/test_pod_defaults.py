"""Scope: what defaulting and admission make of a pod a client sent."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.kinds.pod.admission import qos_class
from moorage.kinds.pod.defaults import image_pull_policy
from moorage.kinds.status import StatusError
from scheduler.tests.kinds.builders import KINDS, World, container, created, named, pod

TOLERATIONS = [
    {
        "key": f"node.kubernetes.io/{what}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    for what in ("not-ready", "unreachable")
]


def test_a_bare_pod_is_stored_with_every_default():
    assert created("pods", pod(labels={"app": "web"})) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "namespace": "default",
            "labels": {"app": "web"},
            "generation": 1,
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "app:1",
                    "imagePullPolicy": "IfNotPresent",
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "resources": {},
                }
            ],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "serviceAccount": "default",
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "tolerations": TOLERATIONS,
        },
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    }


def test_a_rich_container_gets_the_defaults_of_its_parts():
    sent = container(
        image="nginx",
        ports=[{"containerPort": 80}],
        env=[{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        livenessProbe={"httpGet": {"port": 80}},
        readinessProbe={"exec": {"command": ["true"]}, "periodSeconds": 5},
        resources={"limits": {"cpu": 0.5, "memory": "1024Mi"}, "requests": {"cpu": "0.25"}},
    )
    stored = created("pods", pod(hostNetwork=True, containers=[sent]))
    probe = {"timeoutSeconds": 1, "successThreshold": 1, "failureThreshold": 3}
    assert stored["spec"]["containers"] == [
        {
            "name": "main",
            "image": "nginx",
            "imagePullPolicy": "Always",
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
            "env": [
                {
                    "name": "NODE",
                    "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}},
                }
            ],
            "livenessProbe": probe
            | {"periodSeconds": 10, "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}},
            "readinessProbe": probe | {"periodSeconds": 5, "exec": {"command": ["true"]}},
            "resources": {
                "limits": {"cpu": "500m", "memory": "1Gi"},
                "requests": {"cpu": "250m", "memory": "1Gi"},
            },
        }
    ]
    assert stored["status"]["qosClass"] == "Burstable"


@pytest.mark.parametrize(
    ("volume", "stored"),
    [
        pytest.param({}, {"emptyDir": {}}, id="no source means an empty directory"),
        pytest.param(
            {"configMap": {"name": "c"}},
            {"configMap": {"name": "c", "defaultMode": 420}},
            id="files of a config map are readable by all",
        ),
        pytest.param(
            {"hostPath": {"path": "/x"}},
            {"hostPath": {"path": "/x", "type": ""}},
            id="a host path of any type",
        ),
        pytest.param(
            {"emptyDir": {"sizeLimit": "1024Ki"}},
            {"emptyDir": {"sizeLimit": "1Mi"}},
            id="a size limit in canonical form",
        ),
        pytest.param(
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "defaultMode": 420,
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                }
            },
            id="a projected token lives an hour",
        ),
        pytest.param(
            {"ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}},
            {
                "ephemeral": {
                    "volumeClaimTemplate": {
                        "spec": {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}
                    }
                }
            },
            id="an ephemeral claim holds a file system",
        ),
    ],
)
def test_volumes_are_defaulted(volume, stored):
    spec = created("pods", pod(volumes=[{"name": "v", **volume}]))["spec"]
    assert spec["volumes"] == [{"name": "v", **stored}]


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("nginx", "Always", id="no tag"),
        pytest.param("nginx:latest", "Always", id="the tag latest"),
        pytest.param("nginx:1.27", "IfNotPresent", id="a fixed tag"),
        pytest.param("reg.example:5000/nginx", "Always", id="a port is not a tag"),
        pytest.param("nginx@sha256:abc", "IfNotPresent", id="a digest"),
    ],
)
def test_the_image_pull_policy_follows_from_the_tag(image, policy):
    assert image_pull_policy(image) == policy


@pytest.mark.parametrize(
    ("resources", "containers", "expected"),
    [
        pytest.param(
            {"limits": {"cpu": "2", "memory": "1Gi"}},
            [{"requests": {"cpu": "500m"}}, {"requests": {"cpu": "250m"}}],
            {
                "limits": {"cpu": "2", "memory": "1Gi"},
                "requests": {"cpu": "750m", "memory": "1Gi"},
            },
            id="requests come from the containers, then from the limits",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}},
            [{"requests": {"memory": "1Gi"}}],
            {"requests": {"cpu": "1"}},
            id="without limits nothing is added",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}},
            [{"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}],
            {
                "limits": {"hugepages-2Mi": "4Mi"},
                "requests": {"cpu": "1", "hugepages-2Mi": "4Mi"},
            },
            id="limits of huge pages come from the containers",
        ),
    ],
)
def test_pod_level_resources_are_defaulted(resources, containers, expected):
    sent = [container(name=f"c{index}", resources=each) for index, each in enumerate(containers)]
    stored = created("pods", pod(resources=resources, containers=sent))
    assert stored["spec"]["resources"] == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [{}]}, "BestEffort", id="nothing asked for"),
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": "1"}}}]},
            "Burstable",
            id="a request without a limit",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "resources": {
                            "requests": {"cpu": "1", "memory": "1Gi"},
                            "limits": {"cpu": "1000m", "memory": "1024Mi"},
                        }
                    }
                ]
            },
            "Guaranteed",
            id="equal amounts, written differently",
        ),
        pytest.param(
            {
                "containers": [
                    {
                        "resources": {
                            "requests": {"cpu": "1", "memory": "1Gi"},
                            "limits": {"cpu": "1", "memory": "1Gi"},
                        }
                    },
                    {},
                ]
            },
            "Burstable",
            id="one container without limits spoils it",
        ),
        pytest.param(
            {
                "resources": {
                    "requests": {"cpu": "1", "memory": "1Gi"},
                    "limits": {"cpu": "1", "memory": "1Gi"},
                },
                "containers": [{}],
            },
            "Guaranteed",
            id="pod-level resources speak for the whole pod",
        ),
        pytest.param(
            {"containers": [{"resources": {"requests": {"cpu": "0", "example.com/gpu": "1"}}}]},
            "BestEffort",
            id="zero and other resources do not count",
        ),
    ],
)
def test_the_qos_class_follows_from_requests_and_limits(spec, expected):
    assert qos_class(spec) == expected


def priority_class(name: str, value: int, **fields: Any) -> tuple[str, dict[str, Any]]:
    return "priorityclasses", named("priorityclasses", name, value=value, **fields)


@pytest.mark.parametrize(
    ("classes", "spec", "expected"),
    [
        pytest.param([], {}, (None, 0, "PreemptLowerPriority"), id="no class at all"),
        pytest.param(
            [priority_class("high", 1000, preemptionPolicy="Never")],
            {"priorityClassName": "high"},
            ("high", 1000, "Never"),
            id="the class named by the pod",
        ),
        pytest.param(
            [priority_class("usual", 7, globalDefault=True), priority_class("high", 1000)],
            {},
            ("usual", 7, "PreemptLowerPriority"),
            id="the global default",
        ),
        pytest.param(
            [priority_class("high", 1000)],
            {"priorityClassName": "high", "priority": 1000},
            ("high", 1000, "PreemptLowerPriority"),
            id="the right priority given as well",
        ),
    ],
)
def test_the_priority_follows_from_the_priority_class(classes, spec, expected):
    stored = created("pods", pod(**spec), World(*classes))["spec"]
    found = (stored.get("priorityClassName"), stored["priority"], stored["preemptionPolicy"])
    assert found == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"priorityClassName": "none"},
            'pods "web" is forbidden: no PriorityClass with name none was found',
            id="a class that does not exist",
        ),
        pytest.param(
            {"priority": 5},
            'pods "web" is forbidden: the integer value of priority (5) must not be provided in '
            "pod spec; priority admission controller computed 0 from the given PriorityClass name",
            id="a priority of one's own",
        ),
        pytest.param(
            {"preemptionPolicy": "Never"},
            'pods "web" is forbidden: the string value of PreemptionPolicy (Never) must not be '
            "provided in pod spec; priority admission controller computed PreemptLowerPriority "
            "from the given PriorityClass name",
            id="a preemption policy of one's own",
        ),
    ],
)
def test_a_contradictory_priority_is_refused(spec, message):
    with pytest.raises(StatusError) as caught:
        created("pods", pod(**spec))
    assert (caught.value.code, caught.value.message) == (403, message)


def test_a_pods_own_not_ready_toleration_replaces_the_default_one():
    mine = {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}
    stored = created("pods", pod(tolerations=[mine]))
    assert stored["spec"]["tolerations"] == [mine, TOLERATIONS[1]]


def test_a_gated_pod_gets_the_condition_scheduling_gated():
    stored = created("pods", pod(schedulingGates=[{"name": "example.com/quota"}]))
    assert stored["status"] == {
        "phase": "Pending",
        "qosClass": "BestEffort",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "observedGeneration": 1,
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ],
    }


def test_label_keys_are_folded_into_selectors():
    term = {
        "topologyKey": "zone",
        "labelSelector": {},
        "matchLabelKeys": ["app", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    constraint = {
        "topologyKey": "zone",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"x": "y"}},
        "matchLabelKeys": ["app"],
    }
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    labels = {"app": "web", "tenant": "t1"}
    spec = created(
        "pods", pod(labels=labels, affinity=affinity, topologySpreadConstraints=[constraint])
    )["spec"]
    app = {"key": "app", "operator": "In", "values": ["web"]}
    tenant = {"key": "tenant", "operator": "NotIn", "values": ["t1"]}
    required = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required == [term | {"labelSelector": {"matchExpressions": [app, tenant]}}]
    assert spec["topologySpreadConstraints"] == [
        constraint | {"labelSelector": {"matchLabels": {"x": "y"}, "matchExpressions": [app]}}
    ]


def test_nulls_and_unknown_fields_are_dropped():
    sent = pod(nodeName=None, foo=1, containers=[container(imagee="x", command=None)])
    sent["metadata"]["creationTimestamp"] = None
    assert created("pods", sent) == created("pods", pod())


amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]),
    st.sampled_from([1, "1", "0.5", "1500m", "1024Mi", "1e3", "0.0001"]),
    max_size=3,
)


@settings(max_examples=60, deadline=None)
@given(
    requests=amounts,
    limits=amounts,
    host=st.booleans(),
    level=st.one_of(st.none(), amounts),
)
def test_defaulting_is_idempotent(requests, limits, host, level):
    resources = {"requests": requests, "limits": limits}
    obj = pod(hostNetwork=host, containers=[container(resources=resources)])
    if level is not None:
        obj["spec"]["resources"] = {"limits": level}
    KINDS["pods"].default(obj)
    once = copy.deepcopy(obj)
    KINDS["pods"].default(obj)
    assert obj == once
