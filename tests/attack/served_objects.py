"""An object of each kind that the API server checks closely, with the path of its resource.

Each can be created as it is, so a test that changes one place of it meets the checks of that place.
"""

from __future__ import annotations

from typing import Any

from sandbox.tests.apiserver import test_admission_policies as checks
from sandbox.tests.apiserver import test_mutating_policies as mutations
from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import CONFIG_MAPS, NODES, PODS, config_map, pod
from sandbox.tests.apiserver.test_bad_input import RICH_POD

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}
RULE = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["secrets"]}
REQUEST = {
    "name": "r",
    "exactly": {
        "deviceClassName": "c",
        "allocationMode": "All",
        "selectors": [{"cel": {"expression": "device.driver == 'x'"}}],
    },
}


def _namespaced(group: str, plural: str) -> str:
    return f"/apis/{group}/namespaces/default/{plural}"


OBJECTS: list[tuple[str, dict[str, Any]]] = [
    (PODS, RICH_POD),
    (
        NODES,
        {
            "kind": "Node",
            "metadata": {"name": "a", "labels": {"a": "b"}},
            "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
            "status": {
                "capacity": {"cpu": "1"},
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            },
        },
    ),
    (CONFIG_MAPS, config_map(k="v") | {"binaryData": {"b": "YQ=="}}),
    (
        "/api/v1/namespaces/default/secrets",
        {
            "metadata": {"name": "a"},
            "type": "Opaque",
            "data": {"a": "YQ=="},
            "stringData": {"b": "c"},
        },
    ),
    (
        "/api/v1/namespaces/default/services",
        {
            "metadata": {"name": "a"},
            "spec": {
                "selector": {"a": "b"},
                "ports": [{"name": "x", "port": 80, "targetPort": "http", "protocol": "TCP"}],
            },
        },
    ),
    (
        "/api/v1/namespaces/default/limitranges",
        {
            "metadata": {"name": "a"},
            "spec": {
                "limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]
            },
        },
    ),
    (
        "/api/v1/namespaces/default/resourcequotas",
        {
            "metadata": {"name": "a"},
            "spec": {
                "hard": {"pods": "100", "requests.cpu": "9"},
                "scopeSelector": {
                    "matchExpressions": [
                        {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}
                    ]
                },
            },
        },
    ),
    (
        "/api/v1/namespaces/default/persistentvolumeclaims",
        {
            "metadata": {"name": "a"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "s",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    ),
    (
        "/api/v1/persistentvolumes",
        {
            "metadata": {"name": "a"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "csi": {"driver": "x", "volumeHandle": "y"},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [{"matchExpressions": SELECTOR["matchExpressions"]}]
                    }
                },
            },
        },
    ),
    (
        "/api/v1/namespaces/default/events",
        {
            "metadata": {"name": "a"},
            "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
            "reason": "x",
            "message": "y",
            "type": "Normal",
            "count": 1,
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:00Z",
        },
    ),
    (
        _namespaced("apps/v1", "deployments"),
        {
            "metadata": {"name": "a"},
            "spec": {
                "replicas": 1,
                "selector": SELECTOR,
                "template": TEMPLATE,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
            },
        },
    ),
    (
        _namespaced("apps/v1", "statefulsets"),
        {
            "metadata": {"name": "a"},
            "spec": {
                "serviceName": "s",
                "selector": SELECTOR,
                "template": TEMPLATE,
                "volumeClaimTemplates": [
                    {
                        "metadata": {"name": "v"},
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        },
                    }
                ],
            },
        },
    ),
    (
        _namespaced("batch/v1", "jobs"),
        {
            "metadata": {"name": "a"},
            "spec": {
                "completions": 2,
                "parallelism": 1,
                "template": {"spec": pod()["spec"] | {"restartPolicy": "Never"}},
                "podFailurePolicy": {
                    "rules": [
                        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
                    ]
                },
            },
        },
    ),
    (
        _namespaced("batch/v1", "cronjobs"),
        {
            "metadata": {"name": "a"},
            "spec": {
                "schedule": "*/5 * * * *",
                "timeZone": "UTC",
                "jobTemplate": {
                    "spec": {"template": {"spec": pod()["spec"] | {"restartPolicy": "Never"}}}
                },
            },
        },
    ),
    (
        _namespaced("autoscaling/v2", "horizontalpodautoscalers"),
        {
            "metadata": {"name": "a"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
                "minReplicas": 1,
                "maxReplicas": 3,
                "metrics": [
                    {
                        "type": "Resource",
                        "resource": {
                            "name": "cpu",
                            "target": {"type": "Utilization", "averageUtilization": 50},
                        },
                    }
                ],
                "behavior": {
                    "scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
                },
            },
        },
    ),
    (
        _namespaced("policy/v1", "poddisruptionbudgets"),
        {"metadata": {"name": "a"}, "spec": {"minAvailable": "50%", "selector": SELECTOR}},
    ),
    (
        _namespaced("coordination.k8s.io/v1", "leases"),
        {
            "metadata": {"name": "a"},
            "spec": {
                "holderIdentity": "x",
                "leaseDurationSeconds": 15,
                "renewTime": "2026-01-01T00:00:00.000000Z",
            },
        },
    ),
    (
        _namespaced("networking.k8s.io/v1", "ingresses"),
        {
            "metadata": {"name": "a"},
            "spec": {
                "rules": [
                    {
                        "host": "x.example",
                        "http": {
                            "paths": [
                                {
                                    "path": "/",
                                    "pathType": "Prefix",
                                    "backend": {"service": {"name": "s", "port": {"number": 80}}},
                                }
                            ]
                        },
                    }
                ]
            },
        },
    ),
    (
        _namespaced("resource.k8s.io/v1", "resourceclaims"),
        {
            "metadata": {"name": "a"},
            "spec": {
                "devices": {
                    "requests": [REQUEST],
                    "constraints": [{"requests": ["r"], "matchAttribute": "x.example/a"}],
                }
            },
        },
    ),
    (
        "/apis/resource.k8s.io/v1/resourceslices",
        {
            "metadata": {"name": "a"},
            "spec": {
                "driver": "x.example",
                "nodeName": "a",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {
                        "name": "d",
                        "attributes": {"a": {"string": "b"}},
                        "capacity": {"m": {"value": "1Gi"}},
                    }
                ],
            },
        },
    ),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "a"}, "value": 7}),
    (
        "/apis/storage.k8s.io/v1/storageclasses",
        {"metadata": {"name": "a"}, "provisioner": "x.example", "volumeBindingMode": "Immediate"},
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        {
            "metadata": {"name": "a"},
            "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
        },
    ),
    (
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "metadata": {"name": "a"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "a",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": "default"}],
        },
    ),
    (
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
        {
            "metadata": {"name": "a"},
            "spec": {
                "matchingPrecedence": 9,
                "priorityLevelConfiguration": {"name": "x"},
                "rules": [
                    {
                        "subjects": [{"kind": "User", "user": {"name": "u"}}],
                        "resourceRules": [
                            {
                                "verbs": ["get"],
                                "apiGroups": [""],
                                "resources": ["pods"],
                                "namespaces": ["*"],
                            }
                        ],
                    }
                ],
            },
        },
    ),
    (
        checks.POLICIES,
        checks.policy(
            "has(object.data)",
            constraints={"resourceRules": [RULE]},
            variables=[{"name": "v", "expression": "1"}],
            auditAnnotations=[{"key": "k", "valueExpression": "'x'"}],
            matchConditions=[{"name": "m", "expression": "true"}],
        )
        | {"metadata": {"name": "a"}},
    ),
    (checks.BINDINGS, checks.binding() | {"metadata": {"name": "a"}}),
    (
        mutations.POLICIES,
        mutations.policy(mutations.ANNOTATED, plural="secrets") | {"metadata": {"name": "a"}},
    ),
    (DEFINITIONS, definition(spec__names={"kind": "Van", "plural": "vans"})),
    (CARS, car(doors=[{"name": "d"}], tags=["a"], port=1, limits={"a": 1.5})),
]
