"""Nobody grants more than he has, unless he may ``escalate`` or ``bind``.

Mirrors kubernetes v1.36 pkg/registry/rbac: ConfirmNoEscalation, BindingAuthorized.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from moorage.api.resources import CLUSTER_ROLES, ROLES
from moorage.apiserver.kind import Obj
from moorage.apiserver.rbac.authorizer import AUTHENTICATED, Authorizer
from moorage.apiserver.rbac.rules import Attributes, Rule, not_covered
from moorage.apiserver.requests import User
from moorage.apiserver.status import StatusError, forbidden, not_found
from moorage.apiserver.views import Served

RBAC_GROUP = "rbac.authorization.k8s.io"


class Escalation:
    """Checks what is written to roles and bindings.

    Parameters
    ----------
    authorizer
        Says what the caller has.
    """

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._caller: User | None = None

    @contextmanager
    def called_by(self, user: User) -> Iterator[None]:
        """Say who writes inside the context; outside of it the server itself does."""
        self._caller = user
        try:
            yield
        finally:
            self._caller = None

    def check(self, served: Served, new: Obj, old: Obj | None) -> None:
        """Refuse a role or binding that grants what the caller does not have.

        Raises
        ------
        StatusError
            403; 404 for a binding of a role that is not there.
        """
        resource = served.kind.resource
        if self._caller is None or resource.group != RBAC_GROUP:
            return
        if resource in (ROLES, CLUSTER_ROLES):
            if old is None or old.get("rules") != new.get("rules") or new.get("aggregationRule"):
                self._check_role(self._caller, served, new)
        elif old is None or any(old.get(f) != new.get(f) for f in ("roleRef", "subjects")):
            self._check_binding(self._caller, served, new)

    def _check_role(self, user: User, served: Served, role: Obj) -> None:
        if self._may(user, "escalate", served.kind.resource.plural, role):
            return
        wanted = list(role.get("rules") or ())
        if role.get("aggregationRule"):
            wanted.append({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})
        self._check_rules(user, served, role, wanted)

    def _check_binding(self, user: User, served: Served, binding: Obj) -> None:
        namespace = binding["metadata"].get("namespace") or ""
        reference = binding["roleRef"]
        resource = CLUSTER_ROLES if reference.get("kind") == CLUSTER_ROLES.kind else ROLES
        role = {"metadata": {"name": reference.get("name", ""), "namespace": namespace}}
        if self._may(user, "bind", resource.plural, role):
            return
        rules = self._authorizer.role_rules(reference, namespace)
        if rules is None:
            raise not_found(resource, str(reference.get("name", "")))
        self._check_rules(user, served, binding, rules)

    def _check_rules(self, user: User, served: Served, obj: Obj, wanted: list[Rule]) -> None:
        namespace = obj["metadata"].get("namespace") or ""
        missing = not_covered(self._authorizer.rules(user, namespace), wanted)
        if missing:
            groups = ",".join(f'"{g}"' for g in sorted({*user.groups, AUTHENTICATED}))
            lines = "\n".join(_shown(rule) for rule in missing)
            raise _forbidden(
                served,
                obj,
                f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions '
                f"not currently held:\n{lines}",
            )

    def _may(self, user: User, verb: str, plural: str, role: Obj) -> bool:
        meta = role["metadata"]
        wanted = Attributes(
            verb=verb,
            group=RBAC_GROUP,
            resource=plural,
            namespace=meta.get("namespace") or "",
            name=meta.get("name") or "",
        )
        return self._authorizer.why(user, wanted) is not None


def _forbidden(served: Served, obj: Obj, why: str) -> StatusError:
    return forbidden(served.kind.resource, obj["metadata"]["name"], why)


def _shown(rule: Rule) -> str:
    """Return a rule as kube-apiserver shows it: ``{APIGroups:[""], Resources:["pods"], ...}``."""
    fields = (
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("ResourceNames", "resourceNames"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("Verbs", "verbs"),
    )
    shown = [
        f"{name}:{msgspec.json.encode(rule[key]).decode()}" for name, key in fields if rule.get(key)
    ]
    return "{" + ", ".join(shown) + "}"
