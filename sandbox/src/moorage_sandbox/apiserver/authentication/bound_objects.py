"""Objects to which tokens of service accounts are bound: a pod, a node or a Secret.

Place in the flow: `account_tokens` puts the claims of a bound object into a token, and asks whether
the object is still there. Mirrors kubernetes v1.36 pkg/registry/core/serviceaccount/storage
(token.go) and pkg/serviceaccount/claims.go.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.api.resources import NODES, PODS, SECRETS, ResourceType
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.kinds.kind import Obj
from moorage.kinds.status import bad_request, conflict, not_found
from moorage_sandbox.storage.record import Record
from moorage_sandbox.storage.store import Store

# Kind of the object -> its name in the claims, and its resource.
_BOUND: Final = {"Pod": ("pod", PODS), "Node": ("node", NODES), "Secret": ("secret", SECRETS)}
# Upstream's tolerance for an object that is being deleted.
_LEEWAY_NS: Final = 60 * NS_PER_SECOND


def bound_claims(store: Store, reference: Obj, account: tuple[str, str]) -> dict[str, Any]:
    """Return the claims of the object that a TokenRequest names.

    Parameters
    ----------
    store
        Holds the object.
    reference
        ``spec.boundObjectRef``.
    account
        Namespace and name of the service account.

    Raises
    ------
    StatusError
        400: an object of another kind, or a pod of another account. 404: no such object. 409: it
        has another uid.
    """
    kind, name = reference.get("kind") or "", reference.get("name") or ""
    version = reference.get("apiVersion") or ""
    if kind not in _BOUND or version != "v1":
        group, _, number = version.rpartition("/")
        text = f"{group}/{number}, Kind={kind}"
        raise bad_request(f"cannot bind token for object of type {text}")
    claim, resource = _BOUND[kind]
    record = _record(store, resource, account[0], name)
    if record is None:
        raise not_found(resource, name)
    claims = {claim: {"name": name, "uid": record.uid}}
    if kind == "Pod":
        claims |= _pod_claims(store, record, account[1])
    uid = reference.get("uid")
    if uid and uid != record.uid:
        why = (
            f"the UID in the bound object reference ({uid}) does not match the UID in record. The "
            "object might have been deleted and then recreated"
        )
        raise conflict(resource, name, why)
    return claims


def _pod_claims(store: Store, record: Record, account: str) -> dict[str, Any]:
    """Return the claims of a pod's node, after a look at its account."""
    spec = record.decode().get("spec", {})
    if spec.get("serviceAccountName") != account:
        raise bad_request(
            f'cannot bind token for serviceaccount "{account}" to pod running with different '
            "serviceaccount name."
        )
    name = spec.get("nodeName")
    if not name:
        return {}
    node = _record(store, NODES, "", name)
    return {"node": {"name": name} if node is None else {"name": name, "uid": node.uid}}


def still_bound(store: Store, claims: dict[str, Any], now_ns: int) -> bool:
    """Whether the object of a token's claims exists, and was not deleted a minute ago.

    The node of a token that is bound to a pod does not count.
    """
    for kind, (claim, resource) in _BOUND.items():
        if claim not in claims or (kind == "Node" and "pod" in claims):
            continue
        bound = claims[claim]
        record = _record(store, resource, claims["namespace"], bound["name"])
        if record is None or record.uid != bound.get("uid"):
            return False
        deleted = record.decode()["metadata"].get("deletionTimestamp")
        if deleted and parse_rfc3339(deleted) < now_ns - _LEEWAY_NS:
            return False
    return True


def _record(store: Store, resource: ResourceType, namespace: str, name: str) -> Record | None:
    key = ("" if resource is NODES else namespace, name)
    return store.shelf(resource.qualified).get(key)
