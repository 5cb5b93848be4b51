"""The resource types of the Kubernetes API that moorage serves or reads, and their REST paths.

One table, used by the client to build paths and by the API server to answer discovery.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Final
from urllib.parse import quote

import msgspec


class ResourceType(msgspec.Struct, frozen=True, dict=True):
    """One resource type: a line of ``kubectl api-resources``."""

    group: str
    """API group, "" for core."""
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()

    @cached_property
    def api_version(self) -> str:
        """``v1`` or ``group/version``, as objects carry it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def qualified(self) -> str:
        """``plural`` or ``plural.group``, as error messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


# `kubectl get api-extensions` lists what extends the API.
_CATEGORIES: Final = dict.fromkeys(
    ("admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io"),
    ("api-extensions",),
)


def _type(
    api_version: str, kind: str, plural: str, *, short: str = "", scope: str = "namespaced"
) -> ResourceType:
    group, _, version = api_version.rpartition("/")
    return ResourceType(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        namespaced=scope != "cluster",
        short_names=tuple(short.split()),
        categories=("all",) if scope == "all" else _CATEGORIES.get(group, ()),
    )


# `scope`: "all" is namespaced and part of `kubectl get all`.
PODS = _type("v1", "Pod", "pods", short="po", scope="all")
NODES = _type("v1", "Node", "nodes", short="no", scope="cluster")
NAMESPACES = _type("v1", "Namespace", "namespaces", short="ns", scope="cluster")
SERVICES = _type("v1", "Service", "services", short="svc", scope="all")
REPLICATION_CONTROLLERS = _type(
    "v1", "ReplicationController", "replicationcontrollers", short="rc", scope="all"
)
PERSISTENT_VOLUMES = _type(
    "v1", "PersistentVolume", "persistentvolumes", short="pv", scope="cluster"
)
PERSISTENT_VOLUME_CLAIMS = _type(
    "v1", "PersistentVolumeClaim", "persistentvolumeclaims", short="pvc"
)
CONFIG_MAPS = _type("v1", "ConfigMap", "configmaps", short="cm")
SECRETS = _type("v1", "Secret", "secrets")
SERVICE_ACCOUNTS = _type("v1", "ServiceAccount", "serviceaccounts", short="sa")
CORE_EVENTS = _type("v1", "Event", "events", short="ev")
ENDPOINTS = _type("v1", "Endpoints", "endpoints", short="ep")
DEPLOYMENTS = _type("apps/v1", "Deployment", "deployments", short="deploy", scope="all")
REPLICA_SETS = _type("apps/v1", "ReplicaSet", "replicasets", short="rs", scope="all")
STATEFUL_SETS = _type("apps/v1", "StatefulSet", "statefulsets", short="sts", scope="all")
DAEMON_SETS = _type("apps/v1", "DaemonSet", "daemonsets", short="ds", scope="all")
CONTROLLER_REVISIONS = _type("apps/v1", "ControllerRevision", "controllerrevisions")
JOBS = _type("batch/v1", "Job", "jobs", scope="all")
CRON_JOBS = _type("batch/v1", "CronJob", "cronjobs", short="cj", scope="all")
HORIZONTAL_POD_AUTOSCALERS = _type(
    "autoscaling/v2",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
    short="hpa",
    scope="all",
)
HORIZONTAL_POD_AUTOSCALERS_V1 = _type(
    "autoscaling/v1",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
    short="hpa",
    scope="all",
)
INGRESSES = _type("networking.k8s.io/v1", "Ingress", "ingresses", short="ing")
INGRESS_CLASSES = _type("networking.k8s.io/v1", "IngressClass", "ingressclasses", scope="cluster")
NETWORK_POLICIES = _type("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", short="netpol")
ENDPOINT_SLICES = _type("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
POD_DISRUPTION_BUDGETS = _type(
    "policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", short="pdb"
)
PRIORITY_CLASSES = _type(
    "scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", short="pc", scope="cluster"
)
POD_GROUPS = _type("scheduling.k8s.io/v1alpha2", "PodGroup", "podgroups")
WORKLOADS = _type("scheduling.k8s.io/v1alpha2", "Workload", "workloads")
STORAGE_CLASSES = _type(
    "storage.k8s.io/v1", "StorageClass", "storageclasses", short="sc", scope="cluster"
)
CSI_NODES = _type("storage.k8s.io/v1", "CSINode", "csinodes", scope="cluster")
CSI_DRIVERS = _type("storage.k8s.io/v1", "CSIDriver", "csidrivers", scope="cluster")
CSI_STORAGE_CAPACITIES = _type("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities")
VOLUME_ATTACHMENTS = _type(
    "storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", scope="cluster"
)
DEVICE_CLASSES = _type("resource.k8s.io/v1", "DeviceClass", "deviceclasses", scope="cluster")
RESOURCE_SLICES = _type("resource.k8s.io/v1", "ResourceSlice", "resourceslices", scope="cluster")
RESOURCE_CLAIMS = _type("resource.k8s.io/v1", "ResourceClaim", "resourceclaims")
RESOURCE_CLAIM_TEMPLATES = _type(
    "resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates"
)
LEASES = _type("coordination.k8s.io/v1", "Lease", "leases")
EVENTS = _type("events.k8s.io/v1", "Event", "events", short="ev")
ROLES = _type("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDINGS = _type("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
CLUSTER_ROLES = _type(
    "rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", scope="cluster"
)
CLUSTER_ROLE_BINDINGS = _type(
    "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", scope="cluster"
)
RESOURCE_QUOTAS = _type("v1", "ResourceQuota", "resourcequotas", short="quota")
LIMIT_RANGES = _type("v1", "LimitRange", "limitranges", short="limits")
CUSTOM_RESOURCE_DEFINITIONS = _type(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    short="crd crds",
    scope="cluster",
)
VALIDATING_WEBHOOK_CONFIGURATIONS = _type(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    scope="cluster",
)
VALIDATING_ADMISSION_POLICIES = _type(
    "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    scope="cluster",
)
VALIDATING_ADMISSION_POLICY_BINDINGS = _type(
    "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    scope="cluster",
)
MUTATING_ADMISSION_POLICIES = _type(
    "admissionregistration.k8s.io/v1",
    "MutatingAdmissionPolicy",
    "mutatingadmissionpolicies",
    scope="cluster",
)
MUTATING_ADMISSION_POLICY_BINDINGS = _type(
    "admissionregistration.k8s.io/v1",
    "MutatingAdmissionPolicyBinding",
    "mutatingadmissionpolicybindings",
    scope="cluster",
)
MUTATING_WEBHOOK_CONFIGURATIONS = _type(
    "admissionregistration.k8s.io/v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    scope="cluster",
)
API_SERVICES = _type("apiregistration.k8s.io/v1", "APIService", "apiservices", scope="cluster")

DEVICE_TAINT_RULES = _type(
    "resource.k8s.io/v1", "DeviceTaintRule", "devicetaintrules", scope="cluster"
)
"""Served by 1.37; 1.36 has v1beta2, so it is not one of `RESOURCES`."""
COMPOSITE_POD_GROUPS = _type(
    "scheduling.k8s.io/v1alpha3", "CompositePodGroup", "compositepodgroups"
)
"""Served by 1.37, as `DEVICE_TAINT_RULES`."""
ELASTIC_QUOTAS = _type("scheduling.x-k8s.io/v1alpha1", "ElasticQuota", "elasticquotas", short="eq")
"""A custom resource, so not one of `RESOURCES`: a server serves it by its definition."""
NODE_RESOURCE_TOPOLOGIES = _type(
    "topology.node.k8s.io/v1alpha2",
    "NodeResourceTopology",
    "noderesourcetopologies",
    scope="cluster",
    short="node-res-topo",
)
"""A custom resource, as `ELASTIC_QUOTAS`."""

RESOURCES: Final[tuple[ResourceType, ...]] = (
    PODS,
    NODES,
    NAMESPACES,
    SERVICES,
    REPLICATION_CONTROLLERS,
    PERSISTENT_VOLUMES,
    PERSISTENT_VOLUME_CLAIMS,
    CONFIG_MAPS,
    SECRETS,
    SERVICE_ACCOUNTS,
    CORE_EVENTS,
    RESOURCE_QUOTAS,
    LIMIT_RANGES,
    ENDPOINTS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    CONTROLLER_REVISIONS,
    JOBS,
    CRON_JOBS,
    HORIZONTAL_POD_AUTOSCALERS,
    HORIZONTAL_POD_AUTOSCALERS_V1,
    INGRESSES,
    INGRESS_CLASSES,
    NETWORK_POLICIES,
    ENDPOINT_SLICES,
    POD_DISRUPTION_BUDGETS,
    PRIORITY_CLASSES,
    POD_GROUPS,
    WORKLOADS,
    STORAGE_CLASSES,
    CSI_NODES,
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    VOLUME_ATTACHMENTS,
    DEVICE_CLASSES,
    RESOURCE_SLICES,
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    LEASES,
    EVENTS,
    ROLES,
    ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
    CUSTOM_RESOURCE_DEFINITIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    API_SERVICES,
)
"""Every type, core first. Where a name is used twice (``events``) the core one comes first, and of
a type in several versions the preferred one."""

_BY_KIND: Final = {(rt.api_version, rt.kind): rt for rt in RESOURCES}
_BY_PLURAL: Final = {(rt.group, rt.plural): rt for rt in reversed(RESOURCES)}


def by_kind(kind: str, api_version: str | None = None) -> ResourceType | None:
    """Find a type by the ``kind`` and, if given, the ``apiVersion`` of an object."""
    if api_version is not None:
        return _BY_KIND.get((api_version, kind))
    return next((rt for rt in RESOURCES if rt.kind == kind), None)


def by_plural(plural: str, group: str | None = None) -> ResourceType | None:
    """Find a type by its plural, as in a URL; without a group the first match counts."""
    if group is not None:
        return _BY_PLURAL.get((group, plural))
    return next((rt for rt in RESOURCES if rt.plural == plural), None)


def by_name(name: str) -> ResourceType | None:
    """Find a type as a person would name it on a command line (`is_named`)."""
    return next((rt for rt in RESOURCES if is_named(rt, name)), None)


def is_named(rt: ResourceType, name: str) -> bool:
    """Whether a person means a type by a name.

    Accepts plural, singular, short name or kind in any case, alone or with ``.group`` or
    ``.version.group`` behind it.
    """
    word = name.lower()
    first, _, rest = word.partition(".")
    names = {rt.plural, rt.singular, *rt.short_names}
    return word in names or (first in names and rest in {rt.group, f"{rt.version}.{rt.group}"})


def group_version_path(group: str, version: str) -> str:
    """Return ``/api/v1`` or ``/apis/<group>/<version>``."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def resource_path(
    rt: ResourceType,
    namespace: str | None = None,
    name: str | None = None,
    subresource: str | None = None,
) -> str:
    """Return the REST path of a collection, an object or a subresource, percent-encoded.

    Parameters
    ----------
    rt
        The type.
    namespace
        None means all namespaces, or none for a cluster-scoped type, which ignores it.
    name, subresource
        None for the collection, and for the object itself.
    """
    path = _collection_path(rt, namespace)
    if name is None:
        return path
    path = f"{path}/{name if _is_plain(name) else quote(name, safe='')}"
    return path if subresource is None else f"{path}/{subresource}"


_is_plain = re.compile(r"[a-z0-9.-]*").fullmatch  # most names, which need no quoting


@lru_cache(maxsize=1024)
def _collection_path(rt: ResourceType, namespace: str | None) -> str:
    parts = [group_version_path(rt.group, rt.version)]
    if rt.namespaced and namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    return "/".join([*parts, rt.plural])
