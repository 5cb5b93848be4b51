"""The roles and bindings every cluster begins with.

The rules are those of kubernetes v1.36 plugin/pkg/auth/authorizer/rbac/bootstrappolicy; roles are
left out if a cluster of this server has neither their resources nor their users. Roles named
``moorage:`` are our own: they allow the further calls of the sandbox's node agents and controllers.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from moorage.apiserver.kind import Obj

SCHEDULER_USER = "system:kube-scheduler"
CONTROLLER_USER = "system:kube-controller-manager"
NODES_GROUP = "system:nodes"

_META = {
    "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
}
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_GROUP = "rbac.authorization.k8s.io"
_READ = "get list watch"
_WRITE = "create delete deletecollection patch update"
_ALL = f"{_WRITE} {_READ}"

# One rule a line: groups; resources; verbs; names. "core" is the group without a name.
_EVENTS = "core events.k8s.io; events; create patch update"
_REVIEWS = (
    "authentication.k8s.io; tokenreviews; create",
    "authorization.k8s.io; subjectaccessreviews; create",
)
_EDIT = (
    "core; pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy; " + _READ,
    "core; serviceaccounts; impersonate",
    "core; pods pods/attach pods/exec pods/portforward pods/proxy; " + _WRITE,
    "core; pods/eviction; create",
    "core; configmaps events persistentvolumeclaims replicationcontrollers "
    "replicationcontrollers/scale secrets serviceaccounts services services/proxy; " + _WRITE,
    "core; serviceaccounts/token; create",
    "apps; daemonsets deployments deployments/rollback deployments/scale replicasets "
    "replicasets/scale statefulsets statefulsets/scale; " + _WRITE,
    "autoscaling; horizontalpodautoscalers; " + _WRITE,
    "batch; cronjobs jobs; " + _WRITE,
    "extensions; daemonsets deployments deployments/rollback deployments/scale ingresses "
    "networkpolicies replicasets replicasets/scale replicationcontrollers/scale; " + _WRITE,
    "policy; poddisruptionbudgets; " + _WRITE,
    "networking.k8s.io; ingresses networkpolicies; " + _WRITE,
    "coordination.k8s.io; leases; " + _ALL,
)
_VIEW = (
    "core; configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
    "replicationcontrollers replicationcontrollers/scale serviceaccounts services "
    "services/status; " + _READ,
    "core; bindings events limitranges namespaces/status pods/log pods/status "
    "replicationcontrollers/status resourcequotas resourcequotas/status; " + _READ,
    "core; namespaces; " + _READ,
    "discovery.k8s.io; endpointslices; " + _READ,
    "apps; controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
    "deployments/status replicasets replicasets/scale replicasets/status statefulsets "
    "statefulsets/scale statefulsets/status; " + _READ,
    "autoscaling; horizontalpodautoscalers horizontalpodautoscalers/status; " + _READ,
    "batch; cronjobs cronjobs/status jobs jobs/status; " + _READ,
    "extensions; daemonsets daemonsets/status deployments deployments/scale deployments/status "
    "ingresses ingresses/status networkpolicies replicasets replicasets/scale replicasets/status "
    "replicationcontrollers/scale; " + _READ,
    "policy; poddisruptionbudgets poddisruptionbudgets/status; " + _READ,
    "networking.k8s.io; ingresses ingresses/status networkpolicies; " + _READ,
)
_SCHEDULER = (
    _EVENTS,
    "coordination.k8s.io; leases; create",
    "coordination.k8s.io; leases; get list update watch; kube-scheduler",
    "coordination.k8s.io; leasecandidates; " + _ALL,
    "core; nodes; " + _READ,
    "core; pods; delete get list watch",
    "core; bindings pods/binding; create",
    "core; pods/status; patch update",
    "core; replicationcontrollers services; " + _READ,
    "apps extensions; replicasets; " + _READ,
    "apps; statefulsets; " + _READ,
    "policy; poddisruptionbudgets; " + _READ,
    "core; persistentvolumeclaims persistentvolumes; " + _READ,
    *_REVIEWS,
    "storage.k8s.io; csinodes; " + _READ,
    "storage.k8s.io; volumeattachments; " + _READ,
    "core; namespaces; " + _READ,
    "storage.k8s.io; csidrivers; " + _READ,
    "storage.k8s.io; csistoragecapacities; " + _READ,
    "resource.k8s.io; deviceclasses; " + _READ,
    "resource.k8s.io; resourceclaims; create delete get list patch update watch",
    "resource.k8s.io; resourceclaims/status; get list patch update watch",
    "resource.k8s.io; resourceclaims/binding; patch update",
    "core; pods/finalizers; get list patch update watch",
    "resource.k8s.io; resourceslices; " + _READ,
)
_VOLUME_SCHEDULER = (
    "core; persistentvolumes; get list patch update watch",
    "storage.k8s.io; storageclasses; " + _READ,
    "core; persistentvolumeclaims; get list patch update watch",
)
_NODE = (
    "authentication.k8s.io; tokenreviews; create",
    "authorization.k8s.io; localsubjectaccessreviews subjectaccessreviews; create",
    "core; services; " + _READ,
    "core; nodes; create get list watch",
    "core; nodes/status; patch update",
    "core; nodes; patch update",
    "core; events; create patch update",
    "core; pods; " + _READ,
    "core; pods; create delete",
    "core; pods/status; patch update",
    "core; pods/eviction; create",
    "core; configmaps secrets; " + _READ,
    "core; persistentvolumeclaims persistentvolumes; get",
    "core; endpoints; get",
    "certificates.k8s.io; certificatesigningrequests; create get list watch",
    "coordination.k8s.io; leases; create delete get patch update",
    "storage.k8s.io; volumeattachments; get",
    "core; serviceaccounts/token; create",
    "core; persistentvolumeclaims/status; get patch update",
    "storage.k8s.io; csidrivers; " + _READ,
    "storage.k8s.io; csinodes; create delete get patch update",
    "node.k8s.io; runtimeclasses; " + _READ,
    "resource.k8s.io; resourceclaims; get",
    "resource.k8s.io; resourceslices; deletecollection",
)
_ROLES: dict[str, tuple[str, ...]] = {
    "system:aggregate-to-admin": (
        "authorization.k8s.io; localsubjectaccessreviews; create",
        f"{_GROUP}; rolebindings roles; {_ALL}",
    ),
    "system:aggregate-to-edit": _EDIT,
    "system:aggregate-to-view": _VIEW,
    "system:auth-delegator": _REVIEWS,
    "system:basic-user": (
        "authorization.k8s.io; selfsubjectaccessreviews selfsubjectrulesreviews; create",
        "authentication.k8s.io; selfsubjectreviews; create",
    ),
    "system:kube-scheduler": _SCHEDULER,
    "system:node": _NODE,
    "system:volume-scheduler": _VOLUME_SCHEDULER,
    # Agents create the namespace of leases, which in Kubernetes the API server creates, and write
    # Events of the newer group.
    "moorage:node-agents": ("core; namespaces; create", "events.k8s.io; events; create patch"),
    # Upstream these are behind feature gates, or belong to another scheduler.
    "moorage:scheduler-extensions": (
        "scheduling.k8s.io; podgroups workloads; " + _READ,
        "scheduling.k8s.io; podgroups/status; patch update",
        "scheduling.x-k8s.io; elasticquotas podgroups; " + _READ,
        "scheduling.x-k8s.io; elasticquotas/status podgroups/status; patch update",
        "scheduling.k8s.io; priorityclasses; " + _READ,
    ),
}
_PATHS: dict[str, str] = {
    "system:discovery": (
        "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"
    ),
    "system:monitoring": (
        "/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"
    ),
    "system:public-info-viewer": "/healthz /livez /readyz /version /version/",
}
_AGGREGATED = {"admin": "", "edit": "admin", "view": "edit"}
# Role -> kind and name of each subject that has the role in the whole cluster.
_BINDINGS: tuple[tuple[str, str, str], ...] = (
    ("cluster-admin", "Group", "system:masters"),
    ("system:basic-user", "Group", "system:authenticated"),
    ("system:discovery", "Group", "system:authenticated"),
    ("system:monitoring", "Group", "system:monitoring"),
    ("system:public-info-viewer", "Group", "system:authenticated"),
    ("system:kube-scheduler", "User", SCHEDULER_USER),
    ("system:volume-scheduler", "User", SCHEDULER_USER),
    ("moorage:scheduler-extensions", "User", SCHEDULER_USER),
    # Upstream the Node authorizer limits each node to its own objects; here one agent plays all
    # nodes.
    ("system:node", "Group", NODES_GROUP),
    ("moorage:node-agents", "Group", NODES_GROUP),
)


def bootstrap_roles() -> Iterator[Obj]:
    """Yield the roles and bindings of a new cluster."""
    yield _cluster_role(
        "cluster-admin",
        [
            {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
            {"nonResourceURLs": ["*"], "verbs": ["*"]},
        ],
    )
    for name, paths in _PATHS.items():
        yield _cluster_role(name, [{"nonResourceURLs": paths.split(), "verbs": ["get"]}])
    for name, lines in _ROLES.items():
        role = _cluster_role(name, [_rule(line) for line in lines])
        if name.startswith("system:aggregate-to-"):
            role["metadata"]["labels"][_AGGREGATE + name.rpartition("-")[2]] = "true"
        yield role
    for name, part_of in _AGGREGATED.items():
        role = _cluster_role(name, [])
        labels = {_AGGREGATE + name: "true"}
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": labels}]}
        if part_of:
            role["metadata"]["labels"][_AGGREGATE + part_of] = "true"
        yield role
    for name, kind, subject in _BINDINGS:
        yield _binding(name, name, kind, subject)
    yield _binding("moorage:controllers", "cluster-admin", "User", CONTROLLER_USER)
    yield from _authentication_reader()


def _authentication_reader() -> Iterator[Obj]:
    """Yield the role and binding by which components read how to authenticate their own callers."""
    name = "extension-apiserver-authentication-reader"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
    rule["resourceNames"] = ["extension-apiserver-authentication"]
    yield _object(ROLES.kind, name, {"rules": [rule]}, namespace="kube-system")
    subjects = [_subject("User", each) for each in (CONTROLLER_USER, SCHEDULER_USER)]
    yield _object(
        ROLE_BINDINGS.kind,
        f"system::{name}",
        {"roleRef": _role_ref(ROLES.kind, name), "subjects": subjects},
        namespace="kube-system",
    )


def _cluster_role(name: str, rules: list[Obj]) -> Obj:
    return _object(CLUSTER_ROLES.kind, name, {"rules": rules})


def _binding(name: str, role: str, kind: str, subject: str) -> Obj:
    body = {"roleRef": _role_ref(CLUSTER_ROLES.kind, role), "subjects": [_subject(kind, subject)]}
    return _object(CLUSTER_ROLE_BINDINGS.kind, name, body)


def _object(kind: str, name: str, body: Obj, *, namespace: str = "") -> Obj:
    meta: Obj = {"name": name} | {key: dict(value) for key, value in _META.items()}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": meta, **body}


def _role_ref(kind: str, name: str) -> Obj:
    return {"apiGroup": _GROUP, "kind": kind, "name": name}


def _subject(kind: str, name: str) -> Obj:
    return {"apiGroup": _GROUP, "kind": kind, "name": name}


def _rule(line: str) -> Obj:
    groups, resources, verbs, *names = [part.split() for part in line.split(";")]
    rule: Obj = {
        "apiGroups": ["" if group == "core" else group for group in groups],
        "resources": resources,
        "verbs": verbs,
    }
    if names:
        rule["resourceNames"] = names[0]
    return rule
