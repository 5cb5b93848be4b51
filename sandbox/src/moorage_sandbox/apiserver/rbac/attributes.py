"""From a request to its attributes: the verb, and the resource or path.

Mirrors kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go.
"""

from __future__ import annotations

from moorage.api.selectors import parse_field_selector
from moorage_sandbox.apiserver.rbac.rules import Attributes
from moorage_sandbox.apiserver.wire.requests import Query, Request

_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_OF_COLLECTIONS = {"get": "list", "delete": "deletecollection"}
OF_NAMESPACES = frozenset({"status", "finalize"})
"""Subresources of namespaces; any other word there is a resource within the namespace."""


def attributes_of(request: Request) -> Attributes:
    """Return the attributes of a request."""
    parts = [part for part in request.path.split("/") if part]
    if len(parts) >= 3 and parts[0] == "api":
        group, rest = "", parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, rest = parts[1], parts[3:]
    else:
        return Attributes(verb=request.method.lower(), path=request.path)
    verb = _VERBS.get(request.method, request.method.lower())
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in OF_NAMESPACES:
            rest = rest[2:]
    resource, name, subresource = (*rest, "", "", "")[:3]
    if not name:
        verb = _OF_COLLECTIONS.get(verb, verb)
        query = Query(request.query)
        if verb == "list" and query.flag("watch"):
            verb = "watch"
        if verb in ("list", "watch", "deletecollection"):
            name = _selected_name(query.text("fieldSelector"))
    return Attributes(
        verb=verb,
        group=group,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )


def _selected_name(selector: str) -> str:
    """Return the only name that a field selector selects: a rule for that name allows the call."""
    try:
        parsed = parse_field_selector(selector) if selector else []
    except ValueError:
        return ""
    return next((value for path, op, value in parsed if (path, op) == ("metadata.name", "=")), "")
