"""FlowSchemas: the headers that tell a client how its call was classified.

Place in the flow: `server` asks here about each call once clients have stored FlowSchemas. Mirrors
kubernetes v1.36 apiserver pkg/util/flowcontrol: rule.go and apf_filter.go. Calls are served by
`fairness`, whatever their class.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.kinds.kind import Obj
from moorage.kinds.tree import Json, child, number, objects, strings, text
from moorage_sandbox.apiserver.rbac.attributes import attributes_of
from moorage_sandbox.apiserver.rbac.impersonation import ACCOUNT_PREFIX, requested_user
from moorage_sandbox.apiserver.rbac.rules import Attributes, allows
from moorage_sandbox.apiserver.wire.requests import AUTHENTICATED, Request, User
from moorage_sandbox.apiserver.world import World

SCHEMAS: Final = "flowschemas"
LEVELS: Final = "prioritylevelconfigurations"
_SHELF: Final = f"{SCHEMAS}.flowcontrol.apiserver.k8s.io"
_STRANGER: Final = User("system:anonymous", ("system:unauthenticated",))


class FlowSchemas:
    """The stored FlowSchemas.

    Parameters
    ----------
    world
        Holds them, and their priority levels.

    Attributes
    ----------
    stored
        The schemas. Without more than a new cluster has, answers have no such headers.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.stored = world.store.shelf(_SHELF)

    def headers(self, request: Request) -> tuple[tuple[str, str], ...]:
        """Return the headers with the class of a call; none where no schema matches it."""
        user = requested_user(request.headers) or request.user or _STRANGER
        wanted = attributes_of(request)
        schemas = sorted(self._world.stored_objects(SCHEMAS), key=_precedence)
        schema = next((each for each in schemas if _matches(each, user, wanted)), None)
        if schema is None:
            return ()
        name = text(schema, "spec", "priorityLevelConfiguration", "name")
        level = self._world.lookup(LEVELS, None, name)
        return (
            ("X-Kubernetes-PF-FlowSchema-UID", schema["metadata"]["uid"]),
            ("X-Kubernetes-PF-PriorityLevel-UID", level["metadata"]["uid"] if level else ""),
        )


def _precedence(schema: Obj) -> tuple[int, str]:
    return number(schema, "spec", "matchingPrecedence"), schema["metadata"]["name"]


def _matches(schema: Obj, user: User, wanted: Attributes) -> bool:
    return any(
        any(_is_about(subject, user) for subject in objects(rule, "subjects"))
        and any(
            allows(each, wanted) and (wanted.path or _in_scope(each, wanted.namespace))
            for each in objects(rule, "nonResourceRules" if wanted.path else "resourceRules")
        )
        for rule in objects(schema, "spec", "rules")
    )


def _in_scope(rule: Json, namespace: str) -> bool:
    if not namespace:
        return bool(rule.get("clusterScope"))
    return not {"*", namespace}.isdisjoint(strings(rule, "namespaces"))


def _is_about(subject: Json, user: User) -> bool:
    groups: Any = user.groups if user is _STRANGER else (*user.groups, AUTHENTICATED)
    match subject.get("kind"):
        case "User":
            return text(subject, "user", "name") in ("*", user.name)
        case "Group":
            name = text(subject, "group", "name")
            return name == "*" or name in groups
    account = child(subject, "serviceAccount")
    home, name = text(account, "namespace"), text(account, "name")
    if name == "*":
        return user.name.startswith(f"{ACCOUNT_PREFIX}{home}:")
    return user.name == f"{ACCOUNT_PREFIX}{home}:{name}"
