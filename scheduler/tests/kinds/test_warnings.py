"""Scope: warnings about deprecated versions, and about objects that are valid and hardly meant so.

Texts follow kubernetes v1.36 pkg/api/*/warnings.go and the strategies of pkg/registry.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import resource_path
from moorage_sandbox.apiserver.served_kinds import served_kinds
from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import MERGE, PODS, Cluster
from scheduler.tests.kinds.builders import KINDS

SELECTOR: dict[str, Any] = {"matchLabels": {"a": "b"}}
IF_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
IF_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ARCH = {"key": "beta.kubernetes.io/arch", "operator": "Exists"}
NO_ARCH = 'deprecated since v1.14; use "kubernetes.io/arch" instead'
NULL = "a null labelSelector results in matching no pod"
SPREAD = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
ZONE = "failure-domain.beta.kubernetes.io/zone"
LABEL = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"


def container(**fields: Any) -> dict[str, Any]:
    return {"name": "c", "image": "i", **fields}


def pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"containers": [container()], **spec}}


def noted(**annotations: str) -> dict[str, Any]:
    found = pod()
    found["metadata"]["annotations"] = annotations
    return found


OF_PODS = [
    pytest.param(pod(), [], id="a plain pod"),
    pytest.param(
        pod(nodeSelector={ARCH["key"]: "x", "kubernetes.io/arch": "y"}),
        [f"spec.nodeSelector[beta.kubernetes.io/arch]: {NO_ARCH}"],
        id="a deprecated label in a node selector",
    ),
    pytest.param(
        pod(
            affinity={
                "nodeAffinity": {
                    IF_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [ARCH]}]},
                    IF_PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [ARCH]}}],
                }
            }
        ),
        [
            f"spec.affinity.nodeAffinity.{path}.matchExpressions[0].key: {ARCH['key']} is {NO_ARCH}"
            for path in (
                f"{IF_REQUIRED}.nodeSelectorTerms[0]",
                f"{IF_PREFERRED}[0].preference",
            )
        ],
        id="deprecated labels in node affinity",
    ),
    pytest.param(
        pod(topologySpreadConstraints=[SPREAD | {"topologyKey": ZONE}]),
        [
            f"spec.topologySpreadConstraints[0].topologyKey: {ZONE} is deprecated since v1.17; "
            'use "topology.kubernetes.io/zone" instead',
            f"spec.topologySpreadConstraints[0].labelSelector: {NULL}",
        ],
        id="a deprecated topology, and no selector",
    ),
    pytest.param(
        pod(
            affinity={
                "podAffinity": {IF_REQUIRED: [{"topologyKey": "z", "labelSelector": SELECTOR}]},
                "podAntiAffinity": {
                    IF_REQUIRED: [{"topologyKey": "z"}],
                    IF_PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "z"}}],
                },
            }
        ),
        [
            f"spec.affinity.podAntiAffinity.{IF_REQUIRED}[0].labelSelector: {NULL}",
            f"spec.affinity.podAntiAffinity.{IF_PREFERRED}[0].podAffinityTerm.labelSelector: "
            f"{NULL}",
        ],
        id="terms that match no pod",
    ),
    pytest.param(
        noted(**{"scheduler.alpha.kubernetes.io/critical-pod": ""}),
        [
            "metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in "
            'v1.16+; use the "priorityClassName" field instead'
        ],
        id="an annotation without effect",
    ),
    pytest.param(
        noted(
            **{
                "seccomp.security.alpha.kubernetes.io/pod": "x",
                "container.seccomp.security.alpha.kubernetes.io/c": "x",
                "container.apparmor.security.beta.kubernetes.io/c": "runtime/default",
                "container.apparmor.security.beta.kubernetes.io/other": "runtime/default",
            }
        ),
        [
            "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in "
            'v1.27+; use the "seccompProfile" field instead',
            "metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]: "
            'non-functional in v1.27+; use the "seccompProfile" field instead',
            "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated "
            'since v1.30; use the "appArmorProfile" field instead',
        ],
        id="annotations that are fields now",
    ),
    pytest.param(
        pod(
            volumes=[
                {"name": "v", "gitRepo": {"repository": "r"}},
                {"name": "w", "cephfs": {"monitors": ["m"]}},
                {
                    "name": "x",
                    "ephemeral": {
                        "volumeClaimTemplate": {
                            "spec": {
                                "accessModes": ["ReadWriteOnce"],
                                "resources": {"requests": {"storage": "1.5"}},
                            }
                        }
                    },
                },
            ]
        ),
        [
            "spec.volumes[0].gitRepo: deprecated in v1.11",
            "spec.volumes[1].cephfs: deprecated in v1.28, non-functional in v1.31+",
            "spec.volumes[2].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: "
            'fractional byte value "1500m" is invalid, must be an integer',
        ],
        id="deprecated volumes, and part of a byte",
    ),
    pytest.param(
        pod(
            hostAliases=[{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}],
            imagePullSecrets=[{"name": "s"}, {"name": "s"}, {"name": ""}],
        ),
        [
            'spec.hostAliases[1].ip: duplicate ip "10.0.0.1"',
            'spec.imagePullSecrets[1].name: duplicate name "s"',
            'spec.imagePullSecrets[2].name: invalid empty name ""',
        ],
        id="entries that are there twice",
    ),
    pytest.param(
        pod(
            containers=[
                container(
                    resources={
                        "limits": {"memory": "1Gi", "cpu": "100m"},
                        "requests": {"memory": "512m"},
                    }
                ),
                container(name="b", resources={"requests": {"memory": "5e-1"}}),
                container(name="c", resources={"requests": {"memory": "1e3", "cpu": "5e-1"}}),
            ],
            initContainers=[
                {"name": "i", "image": "i", "resources": {"limits": {"ephemeral-storage": "0.1"}}}
            ],
        ),
        [
            "spec.initContainers[0].resources.limits[ephemeral-storage]: fractional byte value "
            '"100m" is invalid, must be an integer',
            'spec.containers[0].resources.requests[memory]: fractional byte value "512m" is '
            "invalid, must be an integer",
            'spec.containers[1].resources.requests[memory]: fractional byte value "500e-3" is '
            "invalid, must be an integer",
        ],
        id="parts of bytes",
    ),
    pytest.param(
        pod(
            containers=[
                container(
                    env=[
                        {"name": "X", "value": "1"},
                        {"name": "X", "value": "$(X)2"},
                        {"name": "X", "value": "$(X)"},
                        {"name": "X", "value": "3"},
                        {"name": "Y", "value": "4"},
                    ]
                )
            ]
        ),
        [
            f'spec.containers[0].env[{index}]: hides previous definition of "X", which may be '
            "dropped when using apply"
            for index in (2, 3)
        ],
        id="variables that hide each other",
    ),
    pytest.param(
        pod(
            containers=[
                container(
                    ports=[
                        {"containerPort": 80},
                        {"containerPort": 80, "protocol": "UDP"},
                        {"containerPort": 80, "hostPort": 8080},
                        {"containerPort": 81, "hostIP": "10.0.0.1"},
                    ]
                ),
                {"name": "d", "image": "i", "ports": [{"containerPort": 80}]},
            ]
        ),
        [
            "spec.containers[0].ports[2]: overlapping port definition with "
            "spec.containers[0].ports[0]",
            "spec.containers[0].ports[3]: hostIP set without hostPort",
            "spec.containers[1].ports[0]: duplicate port definition with "
            "spec.containers[0].ports[0]",
            "spec.containers[1].ports[0]: overlapping port definition with "
            "spec.containers[0].ports[2]",
        ],
        id="ports that meet",
    ),
    pytest.param(
        pod(
            containers=[
                container(ports=[{"containerPort": 80, "hostPort": 80}]),
                {
                    "name": "d",
                    "image": "i",
                    "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"}],
                },
            ]
        ),
        [
            "spec.containers[1].ports[0]: dangerously ambiguous port definition with "
            "spec.containers[0].ports[0]"
        ],
        id="a port of one address and of all",
    ),
    pytest.param(
        pod(terminationGracePeriodSeconds=-1),
        [
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and "
            "will be treated as 1"
        ],
        id="a negative grace period",
    ),
]


@pytest.mark.parametrize(("body", "expected"), OF_PODS)
def test_warnings_about_a_new_pod(body: Any, expected: list[str]):
    assert KINDS["pods"].warnings(body, new=True) == expected
    assert KINDS["pods"].warnings(body, new=False) == []


def within(kind: str, template: Any) -> Any:
    """An owner of pods with this template, and the template's path."""
    if kind == "podtemplates":
        return {"metadata": {"name": "a"}, "template": template}, "template"
    if kind == "cronjobs":
        spec = {"jobTemplate": {"spec": {"template": template}}}
        return {"metadata": {"name": "a"}, "spec": spec}, "spec.jobTemplate.spec.template"
    return {"metadata": {"name": "a"}, "spec": {"template": template}}, "spec.template"


@pytest.mark.parametrize(
    "kind",
    [
        "cronjobs",
        "daemonsets",
        "deployments",
        "jobs",
        "podtemplates",
        "replicasets",
        "replicationcontrollers",
        "statefulsets",
    ],
)
def test_warnings_about_a_template_have_its_path(kind: str):
    template = noted(**{"security.alpha.kubernetes.io/sysctls": ""})
    template["spec"]["volumes"] = [{"name": "v", "rbd": {"monitors": ["m"], "image": "i"}}]
    body, path = within(kind, template)
    expected = [
        f"{path}.metadata.annotations[security.alpha.kubernetes.io/sysctls]: non-functional in "
        'v1.11+; use the "sysctls" field instead',
        f"{path}.spec.volumes[0].rbd: deprecated in v1.28, non-functional in v1.31+",
    ]
    for new in (True, False):
        assert KINDS[kind].warnings(body, new=new) == expected


@pytest.mark.parametrize(
    ("kind", "used"),
    [
        ("pods", "in the Pod's hostname"),
        *((kind, "in Pod names and hostnames") for kind in ("deployments", "jobs", "cronjobs")),
    ],
)
def test_a_name_with_dots_is_warned_about_once(kind: str, used: str):
    body = {"metadata": {"name": "a.b"}, "spec": {"containers": []}}
    [found] = KINDS[kind].warnings(body, new=True)
    assert found.startswith(
        f"metadata.name: this is used {used}, which can result in surprising behavior; "
        f"a DNS label is recommended: [{LABEL}"
    )
    assert KINDS[kind].warnings(body, new=False) == []


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        pytest.param(
            "persistentvolumes",
            {
                "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "s"}},
                "spec": {
                    "persistentVolumeReclaimPolicy": "Recycle",
                    "rbd": {"image": "i"},
                    "nodeAffinity": {
                        "required": {"nodeSelectorTerms": [{"matchExpressions": [ARCH]}]}
                    },
                },
            },
            [
                "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since "
                'v1.8; use "storageClassName" attribute instead',
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
                "Instead, the recommended approach is to use dynamic provisioning.",
                "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: "
                f"{ARCH['key']} is {NO_ARCH}",
                "spec.rbd: deprecated in v1.28, non-functional in v1.31+",
            ],
            id="a volume",
        ),
        pytest.param(
            "persistentvolumeclaims",
            {"metadata": {}, "spec": {"resources": {"requests": {"storage": "0.5"}}}},
            [
                'spec.resources.requests[storage]: fractional byte value "500m" is invalid, must '
                "be an integer"
            ],
            id="a claim",
        ),
        pytest.param(
            "statefulsets",
            {
                "metadata": {},
                "spec": {
                    "revisionHistoryLimit": -1,
                    "volumeClaimTemplates": [
                        {"spec": {"resources": {"limits": {"storage": "0.5"}}}}
                    ],
                },
            },
            [
                "spec.volumeClaimTemplates[0].spec.resources.limits[storage]: fractional byte "
                'value "500m" is invalid, must be an integer',
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; "
                "a value >= 0 is recommended",
            ],
            id="a stateful set",
        ),
        pytest.param(
            "jobs",
            {
                "metadata": {},
                "spec": {
                    "completionMode": "Indexed",
                    "completions": 100_001,
                    "parallelism": 10_001,
                },
            },
            [
                "spec: In Indexed Jobs with a number of completions higher than 10^5 and a "
                "parallelism higher than 10^4, Kubernetes might not be able to track "
                "completedIndexes when a big number of indexes fail"
            ],
            id="a job of very many pods",
        ),
        pytest.param(
            "storageclasses",
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": ARCH["key"]}]}]},
            [f"allowedTopologies[0].matchLabelExpressions[0]: {NO_ARCH}"],
            id="a storage class",
        ),
        pytest.param(
            "csistoragecapacities",
            {"nodeTopology": {"matchExpressions": [ARCH], "matchLabels": {ARCH["key"]: "x"}}},
            [
                f"nodeTopology.matchExpressions[0].key: {ARCH['key']} is {NO_ARCH}",
                f"nodeTopology.matchLabels.{ARCH['key']}: {NO_ARCH}",
            ],
            id="a storage capacity",
        ),
        pytest.param(
            "runtimeclasses",
            {"scheduling": {"nodeSelector": {"node-role.kubernetes.io/master": ""}}},
            ['scheduling.nodeSelector: use "node-role.kubernetes.io/control-plane" instead'],
            id="a runtime class",
        ),
        pytest.param(
            "nodes",
            {"spec": {"externalID": "x", "configSource": {"configMap": {"name": "c"}}}},
            [
                "spec.configSource: the feature is removed",
                "spec.externalID: this field is deprecated, and is unused by Kubernetes",
            ],
            id="a node",
        ),
        pytest.param(
            "ingresses",
            {"metadata": {"annotations": {"kubernetes.io/ingress.class": "nginx"}}},
            [
                'annotation "kubernetes.io/ingress.class" is deprecated, please use '
                "'spec.ingressClassName' instead"
            ],
            id="an ingress",
        ),
        pytest.param(
            "serviceaccounts",
            {"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}},
            [
                "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in "
                "v1.32+; prefer separate namespaces to isolate access to mounted secrets"
            ],
            id="a service account",
        ),
        pytest.param(
            "services",
            {
                "metadata": {"annotations": {"service.kubernetes.io/topology-aware-hints": "auto"}},
                "spec": {
                    "clusterIP": "None",
                    "loadBalancerIP": "10.0.0.1",
                    "externalIPs": ["10.0.0.2"],
                    "sessionAffinity": "ClientIP",
                    "trafficDistribution": "PreferClose",
                    "externalName": "x",
                },
            },
            [
                "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use "
                "service.kubernetes.io/topology-mode instead",
                "spec.loadBalancerIP is ignored for headless services",
                "spec.externalIPs is ignored for headless services",
                "spec.SessionAffinity is ignored for headless services",
                'spec.externalName is ignored when spec.type is not "ExternalName"',
                'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"',
            ],
            id="a headless service",
        ),
        pytest.param(
            "services",
            {"spec": {"externalIPs": ["10.0.0.2"]}},
            ["spec.externalIPs is deprecated and may no longer be implemented in some clusters"],
            id="external addresses of a service",
        ),
        pytest.param(
            "services",
            {"spec": {"type": "ExternalName", "externalName": "x", "externalIPs": ["10.0.0.2"]}},
            ['spec.externalIPs is ignored when spec.type is "ExternalName"'],
            id="external addresses of a name",
        ),
    ],
)
def test_warnings_about_other_kinds(kind: str, body: Any, expected: list[str]):
    assert KINDS[kind].warnings(body, new=True) == expected


VERSIONS = {
    "certificates.k8s.io/v1alpha1 ClusterTrustBundle": "v1.34+, unavailable in v1.37+",
    "coordination.k8s.io/v1alpha2 LeaseCandidate": "v1.35+",
    "networking.k8s.io/v1beta1 IPAddress": "v1.34+, unavailable in v1.37+",
    "networking.k8s.io/v1beta1 ServiceCIDR": "v1.34+, unavailable in v1.37+",
    "resource.k8s.io/v1alpha3 DeviceTaintRule": "v1.36+",
    "storage.k8s.io/v1beta1 VolumeAttributesClass": "v1.34+, unavailable in v1.37+",
    "v1 ComponentStatus": "v1.19+",
    "v1 Endpoints": "v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    **{
        f"resource.k8s.io/{version} {kind}": lived
        for version, lived in (
            ("v1beta1", "v1.35+, unavailable in v1.38+"),
            ("v1beta2", "v1.36+, unavailable in v1.39+"),
        )
        for kind in ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice")
    },
}


async def test_every_answer_about_a_deprecated_version_says_so():
    cluster, found = Cluster(), {}
    for kind in served_kinds():
        where = "default" if kind.resource.namespaced else None
        reply = await cluster.reply("GET", resource_path(kind.resource, where, None))
        if reply.headers:
            found[f"{kind.resource.api_version} {kind.resource.kind}"] = reply.headers
    assert found == {
        named: (("Warning", f'299 - "{named} is deprecated in {lived}"'),)
        for named, lived in VERSIONS.items()
    }


async def test_a_watch_and_a_write_of_a_deprecated_version_say_so():
    cluster, path = Cluster(), "/api/v1/namespaces/default/endpoints"
    told = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
    watch = await cluster.reply("GET", path, query={"watch": "true"})
    assert watch.headers == (("Warning", told),)
    made = await cluster.reply("POST", path, {"metadata": {"name": "e"}, "odd": 1})
    assert made.headers == (("Warning", told), ("Warning", '299 - "unknown field \\"odd\\""'))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param({}, "example.com/v1 Car is deprecated", id="no words of its own"),
        pytest.param({"deprecationWarning": "Walk!"}, "Walk!", id="words of its own"),
    ],
)
async def test_a_deprecated_version_of_a_definition(said: Any, expected: str):
    cluster = Cluster()
    await cluster.ok("POST", DEFINITIONS, definition(deprecated=True, **said))
    assert (await cluster.reply("POST", CARS, car())).headers == (
        ("Warning", f'299 - "{expected}"'),
    )


async def test_only_the_writer_of_an_object_is_warned():
    cluster = Cluster()
    body = pod(terminationGracePeriodSeconds=-1)
    assert len((await cluster.reply("POST", PODS, body)).headers) == 1
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    spec = {"selector": SELECTOR, "template": pod(terminationGracePeriodSeconds=-1)}
    spec["template"]["metadata"] = {"labels": {"a": "b"}}
    made = await cluster.reply("POST", deployments, {"metadata": {"name": "d"}, "spec": spec})
    assert (made.status, len(made.headers)) == (201, 1)
    for path, patch, count in (
        (f"{deployments}/d", {"spec": {"replicas": 2}}, 1),
        (f"{deployments}/d/status", {"status": {"replicas": 2}}, 0),
        (f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}}, 0),
    ):
        reply = await cluster.reply("PATCH", path, patch, content_type=MERGE)
        assert (reply.status, len(reply.headers)) == (200, count)
