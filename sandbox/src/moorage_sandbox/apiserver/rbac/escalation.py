"""The rights that a write needs because of its content, besides those of its verb and path.

A caller grants no more rights than it has, unless it may ``escalate`` or ``bind``. A write to the
``allocation`` or ``reservedFor`` of a resource claim needs the right to ``resourceclaims/binding``.
To approve or sign a certificate, or to attest a bundle of trust, needs that verb on its signer.

Mirrors kubernetes v1.36 pkg/registry/rbac (ConfirmNoEscalation, BindingAuthorized) and the storage
``policybased`` of each kind: every create and every update is checked, whatever field changes,
because a label alone can give the rules of a role to an aggregated role. About signers:
plugin/pkg/admission/certificates, and IsAuthorizedForSignerName of pkg/registry/certificates.
About claims: the gate DRAResourceClaimGranularStatusAuthorization, on in v1.36;
``resourceclaims/driver``, which asks about nodes as well, is not checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar

import msgspec

from moorage.api.resources import CLUSTER_ROLES, RESOURCE_CLAIMS, ROLES
from moorage.kinds.kind import Obj
from moorage.kinds.status import StatusError, forbidden, not_found
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.rbac.authorizer import Authorizer
from moorage_sandbox.apiserver.rbac.rules import EVERYTHING, Attributes, Rule, not_covered
from moorage_sandbox.apiserver.wire.requests import User

RBAC_GROUP = "rbac.authorization.k8s.io"
_CERTIFICATES = "certificates.k8s.io"
CERTIFICATE_REQUESTS = f"certificatesigningrequests.{_CERTIFICATES}"
TRUST_BUNDLES = f"clustertrustbundles.{_CERTIFICATES}"
_BOUND_FIELDS = ("allocation", "reservedFor")
_SIGNERS_FIELDS = ("certificate", "conditions")
_COLLECTORS_FIELDS = frozenset({"finalizers", "ownerReferences", "managedFields"})


_Call = tuple[User, Attributes]


class _CalledBy:
    """The context of one call."""

    # Every call has one, and a generator costs four times as much.
    __slots__ = ("_call", "_to", "_token")

    def __init__(self, to: ContextVar[_Call | None], call: _Call) -> None:
        self._to = to
        self._call = call

    def __enter__(self) -> None:
        self._token = self._to.set(self._call)

    def __exit__(self, *raised: object) -> None:
        self._to.reset(self._token)


class Escalation:
    """Checks the writes of one call to roles and bindings, and whether its apply may create.

    Parameters
    ----------
    authorizer
        Decides the calls that the caller may make.
    """

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        # The caller and the attributes of its call; None while the server itself writes. Reads are
        # answered in the loop while the worker thread answers a call, so each thread has its own
        # value.
        self._call: ContextVar[_Call | None] = ContextVar("call", default=None)

    def called_by(self, user: User, wanted: Attributes) -> AbstractContextManager[None]:
        """Attribute the writes inside the context to a user; the server writes outside of it."""
        return _CalledBy(self._call, (user, wanted))

    def check_may_create(self) -> None:
        """Raise if a call of another verb would create an object its caller may not create.

        Raises
        ------
        StatusError
            403.

        Notes
        -----
        kubernetes v1.36 apiserver pkg/endpoints/handlers, patch.go and update.go: the attributes
        are those of the call, its name included, with the verb ``create``.
        """
        call = self._call.get()
        if call is not None:
            user, wanted = call
            self._authorizer.require_right(user, msgspec.structs.replace(wanted, verb="create"))

    def check_grants(self, served: Served, new: Obj, old: Obj | None) -> None:
        """Raise if a role or binding grants rights that the caller does not have.

        Parameters
        ----------
        served
            The kind.
        new
            The object to be stored.
        old
            The object before; None for a new one.

        Raises
        ------
        StatusError
            403; 404 for a binding of a missing role.
        """
        resource = served.kind.resource
        call = self._call.get()
        if call is not None and resource.qualified == TRUST_BUNDLES:
            self._check_bundle(call[0], served, new, old)
        if call is None or resource.group != RBAC_GROUP:
            return
        if old is not None and _comparable(old) == _comparable(new):
            return
        if resource in (ROLES, CLUSTER_ROLES):
            self._check_role(*call, served, new, old)
        else:
            self._check_binding(call[0], served, new)

    def check_status(self, served: Served, new: Obj, old: Obj) -> None:
        """Raise if the new status of an object needs a right that the caller does not have.

        Raises
        ------
        StatusError
            403.
        """
        resource, call = served.kind.resource, self._call.get()
        if call is not None and resource.qualified == CERTIFICATE_REQUESTS:
            before, after = (each.get("status") or {} for each in (old, new))
            if any(before.get(field) != after.get(field) for field in _SIGNERS_FIELDS):
                self._check_signer(call[0], "sign", served, old)
        claims = RESOURCE_CLAIMS.group, RESOURCE_CLAIMS.plural
        if call is None or (resource.group, resource.plural) != claims:
            return
        user, wanted = call
        before, after = (each.get("status") or {} for each in (old, new))
        if any(before.get(field) != after.get(field) for field in _BOUND_FIELDS):
            self._authorizer.require_right(
                user, msgspec.structs.replace(wanted, subresource="binding")
            )

    def check_part(self, served: Served, old: Obj, *, subresource: str) -> None:
        """Raise if a write of a part of an object needs a right that the caller does not have.

        Raises
        ------
        StatusError
            403.
        """
        call = self._call.get()
        name = served.kind.resource.qualified
        if call is not None and (name, subresource) == (CERTIFICATE_REQUESTS, "approval"):
            self._check_signer(call[0], "approve", served, old)

    def _check_bundle(self, user: User, served: Served, new: Obj, old: Obj | None) -> None:
        signer = _signer_of(new)
        unchanged = old is not None and old.get("spec") == new.get("spec")
        if signer and not unchanged and not self._may_use(user, "attest", signer):
            why = f'user not permitted to attest for signerName "{signer}"'
            raise _forbidden(served, new, why)

    def _check_signer(self, user: User, verb: str, served: Served, request: Obj) -> None:
        """Check the right to a signer, by the stored object: no write changes its signer."""
        signer = _signer_of(request)
        if not self._may_use(user, verb, signer):
            why = f'user not permitted to {verb} requests with signerName "{signer}"'
            raise _forbidden(served, request, why)

    def _may_use(self, user: User, verb: str, signer: str) -> bool:
        """Whether a user has a right to a signer, or to all signers of its domain."""
        names = (signer, f"{signer.partition('/')[0]}/*")
        wanted = (
            Attributes(verb=verb, group=_CERTIFICATES, resource="signers", name=name)
            for name in names
        )
        return any(self._authorizer.why(user, each) is not None for each in wanted)

    def _check_role(
        self, user: User, wanted: Attributes, served: Served, new: Obj, old: Obj | None
    ) -> None:
        # By the name in the call. A create has no name there, so a rule for names does not allow a
        # create.
        escalate = msgspec.structs.replace(wanted, verb="escalate", subresource="")
        if self._authorizer.why(user, escalate) is not None:
            return
        self._check_rules(user, served, new, new.get("rules") or ())
        collects = _aggregates(new) or (old is not None and _aggregates(old))
        if collects and not_covered(self._authorizer.rules(user, ""), EVERYTHING):
            why = "must have cluster-admin privileges to use the aggregationRule"
            raise _forbidden(served, new, why)

    def _check_binding(self, user: User, served: Served, binding: Obj) -> None:
        namespace = binding["metadata"].get("namespace") or ""
        reference = binding["roleRef"]
        name = str(reference.get("name", ""))
        resource = CLUSTER_ROLES if reference.get("kind") == CLUSTER_ROLES.kind else ROLES
        bind = Attributes(
            verb="bind", group=RBAC_GROUP, resource=resource.plural, namespace=namespace, name=name
        )
        if self._authorizer.why(user, bind) is not None:
            return
        rules = self._authorizer.role_rules(reference, namespace)
        if rules is None:
            raise not_found(resource, name)
        self._check_rules(user, served, binding, rules)

    def _check_rules(self, user: User, served: Served, obj: Obj, wanted: Iterable[Rule]) -> None:
        namespace = obj["metadata"].get("namespace") or ""
        missing = not_covered(self._authorizer.rules(user, namespace), wanted)
        if missing:
            groups = " ".join(msgspec.json.encode(each).decode() for each in user.groups)
            lines = "\n".join(sorted({_shown(rule) for rule in missing}))
            raise _forbidden(
                served,
                obj,
                f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions '
                f"not currently held:\n{lines}",
            )


def _signer_of(obj: Obj) -> str:
    return str((obj.get("spec") or {}).get("signerName") or "")


def _aggregates(role: Obj) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _comparable(obj: Obj) -> Obj:
    """Return an object without the fields that the garbage collector has to write.

    Notes
    -----
    kubernetes v1.36 pkg/registry/rbac/helpers.go (IsOnlyMutatingGCFields): a change of these alone
    grants nothing, whatever the role allows.
    """
    meta = {key: value for key, value in obj["metadata"].items() if key not in _COLLECTORS_FIELDS}
    return obj | {"metadata": meta}


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
