"""The kinds of the group ``rbac.authorization.k8s.io``.

Place in the flow: one table of `moorage.apiserver.kinds.registry`. `moorage.apiserver.rbac` applies
the stored roles and bindings to calls.
"""

from __future__ import annotations

from typing import Any

from moorage.api import resources
from moorage.apiserver.kind import Column
from moorage.apiserver.kinds import check_rbac
from moorage.apiserver.kinds.cells import AGE, NAME, age, name_of
from moorage.apiserver.kinds.name_rules import path_segment_name
from moorage.apiserver.kinds.served import ServedKind
from moorage.apiserver.kinds.tree import Json, child, objects, text

_ROLE_COLUMNS = (NAME, Column("Created At", description="When the role was made"))
_BINDING_COLUMNS = (
    NAME,
    Column("Role", description="The role that is granted"),
    AGE,
    Column("Users", description="Users it is granted to", priority=1),
    Column("Groups", description="Groups it is granted to", priority=1),
    Column("ServiceAccounts", description="Service accounts it is granted to", priority=1),
)


def _role_cells(obj: Json, now_ns: int) -> list[Any]:
    del now_ns
    return [name_of(obj), text(obj, "metadata", "creationTimestamp")]


def _binding_cells(obj: Json, now_ns: int) -> list[Any]:
    role = child(obj, "roleRef")
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in objects(obj, "subjects"):
        home = text(subject, "namespace")
        name = text(subject, "name")
        named.setdefault(text(subject, "kind"), []).append(f"{home}/{name}" if home else name)
    return [
        name_of(obj),
        f"{text(role, 'kind')}/{text(role, 'name')}",
        age(obj, now_ns),
        *(", ".join(named[kind]) for kind in ("User", "Group", "ServiceAccount")),
    ]


KINDS = (
    ServedKind(
        resource=resources.ROLES,
        acted_on_by="authorization",
        columns=_ROLE_COLUMNS,
        cells=_role_cells,
        name_rule=path_segment_name,
        check=check_rbac.check_role,
    ),
    ServedKind(
        resource=resources.ROLE_BINDINGS,
        acted_on_by="authorization",
        columns=_BINDING_COLUMNS,
        cells=_binding_cells,
        defaults=check_rbac.default_binding,
        name_rule=path_segment_name,
        check=check_rbac.check_role_binding,
    ),
    ServedKind(
        resource=resources.CLUSTER_ROLES,
        acted_on_by="authorization",
        columns=_ROLE_COLUMNS,
        cells=_role_cells,
        name_rule=path_segment_name,
        check=check_rbac.check_cluster_role,
    ),
    ServedKind(
        resource=resources.CLUSTER_ROLE_BINDINGS,
        acted_on_by="authorization",
        columns=_BINDING_COLUMNS,
        cells=_binding_cells,
        defaults=check_rbac.default_binding,
        name_rule=path_segment_name,
        check=check_rbac.check_cluster_role_binding,
    ),
)
