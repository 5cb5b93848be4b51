"""Which API versions are served of each kind, beside those a Kubernetes 1.36 server serves.

Upstream serves by default what v1.36.2 pkg/controlplane/instance.go lists as stable
(genericStableAPIGroupVersionsEnabledByDefault, stableAPIGroupVersionsEnabledByDefault); the alpha
and beta versions it lists are off. The servers of definitions and of API services behind it have
one version each (apiextensions-apiserver and kube-aggregator v1.36 pkg/apiserver). Which kinds a
version has, and which version leads, is in v1.36 api/discovery/aggregated_v2.json.
"""

from __future__ import annotations

from moorage.apiserver.kinds import all_kinds
from moorage.apiserver.rbac.reviews import REVIEWS
from tests.apiserver.harness import Cluster

ENABLED = {
    "": ["v1"],
    "admissionregistration.k8s.io": ["v1"],
    "apiextensions.k8s.io": ["v1"],
    "apiregistration.k8s.io": ["v1"],
    "apps": ["v1"],
    "authentication.k8s.io": ["v1"],
    "authorization.k8s.io": ["v1"],
    "autoscaling": ["v2", "v1"],
    "batch": ["v1"],
    "certificates.k8s.io": ["v1"],
    "coordination.k8s.io": ["v1"],
    "discovery.k8s.io": ["v1"],
    "events.k8s.io": ["v1"],
    "flowcontrol.apiserver.k8s.io": ["v1"],
    "networking.k8s.io": ["v1"],
    "node.k8s.io": ["v1"],
    "policy": ["v1"],
    "rbac.authorization.k8s.io": ["v1"],
    "resource.k8s.io": ["v1"],
    "scheduling.k8s.io": ["v1"],
    "storage.k8s.io": ["v1"],
}
"""Every group of a 1.36 server with the versions it serves by default, the preferred one first."""

KINDS = {
    "": [
        "ConfigMap",
        "Endpoints",
        "Event",
        "LimitRange",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "ReplicationController",
        "ResourceQuota",
        "Secret",
        "Service",
        "ServiceAccount",
    ],
    "admissionregistration.k8s.io": [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ],
    "apiextensions.k8s.io": ["CustomResourceDefinition"],
    "apiregistration.k8s.io": ["APIService"],
    "apps": ["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"],
    "autoscaling": ["HorizontalPodAutoscaler"],
    "batch": ["CronJob", "Job"],
    "coordination.k8s.io": ["Lease"],
    "discovery.k8s.io": ["EndpointSlice"],
    "events.k8s.io": ["Event"],
    "networking.k8s.io": ["Ingress", "IngressClass", "NetworkPolicy"],
    "policy": ["PodDisruptionBudget"],
    "rbac.authorization.k8s.io": ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    "resource.k8s.io": ["DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"],
    "scheduling.k8s.io": ["PriorityClass"],
    "storage.k8s.io": [
        "CSIDriver",
        "CSINode",
        "CSIStorageCapacity",
        "StorageClass",
        "VolumeAttachment",
    ],
}
"""The kinds served here, each in all versions its group has there."""

ASKED = {
    "authentication.k8s.io": ["SelfSubjectReview", "TokenReview"],
    "authorization.k8s.io": [
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
    ],
}
"""The kinds that are answered and never stored."""

# Off by default upstream, and served all the same: a scheduler with the gate GenericWorkload reads
# its pod groups here, and a server that offers the version costs nobody anything.
BESIDES = {("scheduling.k8s.io", "v1alpha2"): ["PodGroup", "Workload"]}


def test_each_kind_is_served_in_the_versions_a_real_server_offers() -> None:
    served: dict[tuple[str, str], list[str]] = {}
    for kind in all_kinds():
        resource = kind.resource
        served.setdefault((resource.group, resource.version), []).append(resource.kind)
    expected = {
        (group, version): kinds for group, kinds in KINDS.items() for version in ENABLED[group]
    }
    assert {key: sorted(kinds) for key, kinds in served.items()} == expected | BESIDES
    answered = {group: [r.kind for r in REVIEWS if r.group == group] for group in ASKED}
    assert answered == ASKED
    assert {(r.group, r.version) for r in REVIEWS} == {(group, "v1") for group in ASKED}


async def test_versions_of_a_group_are_listed_as_a_real_server_lists_them() -> None:
    groups = (await Cluster().ok("GET", "/apis"))["groups"]
    listed = {each["name"]: [v["version"] for v in each["versions"]] for each in groups}
    preferred = {each["name"]: each["preferredVersion"]["version"] for each in groups}
    expected = {group: list(ENABLED[group]) for group in (*KINDS, *ASKED) if group}
    for group, version in BESIDES:
        expected[group].append(version)
    # Shipped with the sandbox as a custom resource.
    expected["scheduling.x-k8s.io"] = ["v1alpha1"]
    assert listed == expected
    assert preferred == {group: versions[0] for group, versions in expected.items()}
