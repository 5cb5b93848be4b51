"""The roles and bindings every cluster begins with.

``policy.json`` and ``controllers.json`` next to this module list them. The rules are those of
kubernetes v1.36 plugin/pkg/auth/authorizer/rbac/bootstrappolicy; roles are left out if a cluster of
this server has neither their resources nor their users. Roles named ``moorage:`` are our own. Node
agents create the namespace of leases, which in Kubernetes the API server creates, and write Events
of the newer group. The rules of ``moorage:scheduler-extensions`` are upstream behind feature gates,
or belong to another scheduler. Each node agent plays all nodes, so ``system:node`` is bound to
their group; upstream the Node authorizer limits each node to its own objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

import msgspec

from moorage.api.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from moorage.kinds.kind import Obj
from moorage_sandbox.apiserver.authentication.token_keys import CONFIGURATION_PATH, KEYS_PATH
from moorage_sandbox.apiserver.rbac.rules import EVERYTHING

SCHEDULER_USER = "system:kube-scheduler"
CONTROLLER_USER = "system:kube-controller-manager"
NODES_GROUP = "system:nodes"

_META = {
    "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
}
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_GROUP = "rbac.authorization.k8s.io"
_CONTROLLER = "system:controller:"


class _Policy(msgspec.Struct, frozen=True, rename="camel"):
    """The content of ``policy.json``.

    Parameters
    ----------
    roles
        Name -> rules, each ``groups; resources; verbs; names``. "core" is the group without a name.
    paths
        Name of a role for paths outside of resources -> the paths.
    part_of
        Name of an aggregated role -> the aggregated role that contains it.
    bindings
        Role, and kind and name of the subject that has the role in the whole cluster.
    """

    roles: dict[str, list[str]]
    paths: dict[str, str]
    part_of: dict[str, str]
    bindings: list[tuple[str, str, str]]


class _ControllerRole(msgspec.Struct, frozen=True):
    """The role of a controller in one namespace; rules as in `_Policy`."""

    namespace: str
    name: str
    rules: list[str]


class _ControllerPolicy(msgspec.Struct, frozen=True, rename="camel"):
    """The content of ``controllers.json``.

    Parameters
    ----------
    cluster_roles
        Name of a service account of ``kube-system`` -> the rules of its role, as in `_Policy`.
    roles
        Roles in single namespaces.
    """

    cluster_roles: dict[str, list[str]]
    roles: list[_ControllerRole]


def bootstrap_roles() -> Iterator[Obj]:
    """Yield the roles and bindings of a new cluster."""
    policy = msgspec.json.decode(_read("policy.json"), type=_Policy)
    yield _cluster_role("cluster-admin", [dict(rule) for rule in EVERYTHING])
    for name, paths in policy.paths.items():
        yield _cluster_role(name, [{"nonResourceURLs": paths.split(), "verbs": ["get"]}])
    for name, lines in policy.roles.items():
        role = _cluster_role(name, [_rule(line) for line in lines])
        if name.startswith("system:aggregate-to-"):
            role["metadata"]["labels"][_AGGREGATE + name.rpartition("-")[2]] = "true"
        yield role
    for name, part_of in policy.part_of.items():
        role = _cluster_role(name, [])
        labels = {_AGGREGATE + name: "true"}
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": labels}]}
        if part_of:
            role["metadata"]["labels"][_AGGREGATE + part_of] = "true"
        yield role
    for name, kind, subject in policy.bindings:
        yield _binding(name, name, kind, subject)
    yield _binding("moorage:controllers", "cluster-admin", "User", CONTROLLER_USER)
    yield from _authentication_reader()


def controller_roles() -> Iterator[Obj]:
    """Yield the roles and bindings of kube-controller-manager's service accounts.

    Notes
    -----
    kubernetes v1.36 plugin/pkg/auth/authorizer/rbac/bootstrappolicy (controller_policy.go,
    namespace_policy.go). Roles of feature gates that are off by default are left out.
    """
    policy = msgspec.json.decode(_read("controllers.json"), type=_ControllerPolicy)
    for account, lines in policy.cluster_roles.items():
        name = f"{_CONTROLLER}{account}"
        yield _cluster_role(name, [_rule(line) for line in lines])
        yield _object(CLUSTER_ROLE_BINDINGS.kind, name, _to_account(CLUSTER_ROLES.kind, account))
    for role in policy.roles:
        name, namespace = f"{_CONTROLLER}{role.name}", role.namespace
        rules = [_rule(line) for line in role.rules]
        yield _object(ROLES.kind, name, {"rules": rules}, namespace=namespace)
        body = _to_account(ROLES.kind, role.name)
        yield _object(ROLE_BINDINGS.kind, name, body, namespace=namespace)


def _to_account(kind: str, account: str) -> Obj:
    """Return the body of a binding of a controller's role to its service account."""
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "kube-system"}
    return {"roleRef": _role_ref(kind, f"{_CONTROLLER}{account}"), "subjects": [subject]}


def _read(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()


def issuer_discovery() -> Iterator[Obj]:
    """Yield the role and binding by which service accounts learn how to verify tokens."""
    name = "system:service-account-issuer-discovery"
    paths = [CONFIGURATION_PATH, f"{CONFIGURATION_PATH}/", KEYS_PATH, f"{KEYS_PATH}/"]
    yield _cluster_role(name, [{"nonResourceURLs": paths, "verbs": ["get"]}])
    yield _binding(name, name, "Group", "system:serviceaccounts")


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
