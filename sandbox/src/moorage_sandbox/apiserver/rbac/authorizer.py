"""Decides whether a user may do something, from the roles and bindings in the store.

Mirrors kubernetes v1.36 plugin/pkg/auth/authorizer/rbac and pkg/registry/rbac/validation/rule.go.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain
from typing import Any

from moorage.api.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
)
from moorage.kinds.status import StatusError
from moorage_sandbox.apiserver.rbac.rules import EVERYTHING, Attributes, Rule, allows
from moorage_sandbox.apiserver.wire.requests import User
from moorage_sandbox.storage.store import Store

MASTERS = "system:masters"
_ACCOUNT = "system:serviceaccount"
# How many pairs of user and namespace are remembered, and how many letters the name and groups of a
# remembered user may have in all. Both are guesses: about 10 MB.
_REMEMBERED = 4096
_REMEMBERED_LETTERS = 2048

Grant = tuple[Rule, str]
"""A rule, and the binding and role that grant it, in words."""


class Authorizer:
    """Reads the roles and bindings of a store.

    Parameters
    ----------
    store
        The store with the roles and bindings.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._shelves = [
            store.shelf(each.qualified)
            for each in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS, CLUSTER_ROLES, ROLES)
        ]
        # (user, groups, namespace) -> the rules that the bindings of the namespace grant; the empty
        # namespace stands for cluster-wide bindings. In the order of use; dropped at any change of
        # RBAC.
        self._known: OrderedDict[tuple[str, tuple[str, ...], str], list[Grant]] = OrderedDict()
        self._seen_version = -1
        self._knowing = threading.Lock()

    def require_right(self, user: User, wanted: Attributes) -> None:
        """Raise for a call that the user may not make.

        Raises
        ------
        StatusError
            403.
        """
        if self.why(user, wanted) is None:
            raise refusal(user, wanted)

    def why(self, user: User, wanted: Attributes) -> str | None:
        """Return why a user may make a call; None when the user may not."""
        if MASTERS in user.groups:
            return ""
        for rule, granted_by in self.grants(user, wanted.namespace):
            if allows(rule, wanted):
                return f"RBAC: allowed by {granted_by}"
        return None

    def rules(self, user: User, namespace: str) -> list[Rule]:
        """Return every rule that holds for a user in a namespace; cluster-wide rules if empty."""
        if MASTERS in user.groups:
            return list(EVERYTHING)
        return [rule for rule, _ in self.grants(user, namespace)]

    def grants(self, user: User, namespace: str) -> list[Grant]:
        """Return every rule granted to a user, with its binding; cluster-wide rules first."""
        # The worker thread asks while the loop answers other calls.
        with self._knowing:
            version = max(shelf.changed_version for shelf in self._shelves)
            if version != self._seen_version:
                self._seen_version = version
                self._known.clear()
            everywhere = self._granted_in(user, "")
            if not namespace:
                return everywhere
            return everywhere + self._granted_in(user, namespace)

    def _granted_in(self, user: User, namespace: str) -> list[Grant]:
        """Return the rules that the bindings of a namespace grant; of the cluster if empty."""
        bindings = ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS
        records = self._store.shelf(bindings.qualified).records(namespace)
        first = next(records, None)
        if first is None:
            # Namespaces without bindings are not remembered, because any caller can name such
            # namespaces.
            return []
        key = (user.name, user.groups, namespace)
        rules = self._known.get(key)
        if rules is None:
            rules = [
                grant
                for record in chain((first,), records)
                for grant in self._granted(user, record.decode(), namespace)
            ]
            # The sender of a review chooses its names, which may be of any length.
            if len(user.name) + sum(map(len, user.groups)) <= _REMEMBERED_LETTERS:
                self._known[key] = rules
        if key in self._known:
            self._known.move_to_end(key)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return rules

    def forget(self) -> None:
        """Read everything again, because versions of writes taken back are given out again."""
        self._seen_version = -1

    def role_rules(self, reference: dict[str, Any], namespace: str) -> list[Rule] | None:
        """Return the rules of the role that a binding refers to; None when it does not exist."""
        clusterwide = reference.get("kind") == CLUSTER_ROLES.kind
        resource = CLUSTER_ROLES if clusterwide else ROLES
        key = ("" if clusterwide else namespace, str(reference.get("name", "")))
        record = self._store.shelf(resource.qualified).get(key)
        return None if record is None else record.decode().get("rules") or []

    def _granted(self, user: User, binding: dict[str, Any], namespace: str) -> Iterator[Grant]:
        subject = next(
            (s for s in binding.get("subjects") or () if _applies(s, user, namespace)), None
        )
        if subject is None:
            return
        role, name = binding["roleRef"], binding["metadata"]["name"]
        place = f"{name}/{namespace}" if namespace else name
        words = (
            f'{"RoleBinding" if namespace else "ClusterRoleBinding"} "{place}" of '
            f'{role["kind"]} "{role["name"]}" to {subject["kind"]} "{_subject_name(subject)}"'
        )
        for rule in self.role_rules(role, namespace) or ():
            yield rule, words


def refusal(user: User, wanted: Attributes) -> StatusError:
    """Return the 403 in the words of kube-apiserver."""
    if wanted.path:
        text = f'forbidden: User "{user.name}" cannot {wanted.verb} path "{wanted.path}"'
        return StatusError(403, "Forbidden", text, details={})
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    what = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    named = f' "{wanted.name}"' if wanted.name else ""
    text = (
        f'{what}{named} is forbidden: User "{user.name}" cannot {wanted.verb} resource '
        f'"{wanted.whole_resource}" in API group "{wanted.group}" {where}'
    )
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    return StatusError(
        403, "Forbidden", text, details={key: value for key, value in details.items() if value}
    )


def _applies(subject: dict[str, Any], user: User, namespace: str) -> bool:
    name = subject.get("name")
    match subject.get("kind"):
        case "User":
            return bool(user.name == name)
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            home = subject.get("namespace") or namespace
            return bool(home) and user.name == f"{_ACCOUNT}:{home}:{name}"
    return False


def _subject_name(subject: dict[str, Any]) -> str:
    home = subject.get("namespace")
    return f"{subject['name']}/{home}" if home else str(subject["name"])
