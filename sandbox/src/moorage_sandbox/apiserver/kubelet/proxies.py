"""``pods/proxy``, ``services/proxy`` and ``nodes/proxy``: refused with a message that says why.

Place in the flow: `server` asks here about paths that are not of a served resource. A real server
connects to the address of the pod, the node, or a pod behind the service. Nothing runs there, so
the answer is that of a real server whose backend is dead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.api.resources import NODES, PODS, SERVICES, ResourceType
from moorage.kinds.status import StatusError, not_found
from moorage_sandbox.apiserver.wire.requests import Request
from moorage_sandbox.storage.store import Store

_NAMESPACED: Final[Mapping[str, ResourceType]] = {"pods": PODS, "services": SERVICES}


def refuse_proxy(store: Store, request: Request) -> StatusError | None:
    """Return the error answer of a call to a proxy; None for other calls.

    Notes
    -----
    kubernetes v1.36 apimachinery pkg/util/proxy/upgradeaware.go: a backend that cannot be reached
    is a 503. The name may have a scheme before it and a port behind it (SplitSchemeNamePort).
    """
    match request.path.strip("/").split("/"):
        case [
            "api",
            "v1",
            "namespaces",
            namespace,
            "pods" | "services" as plural,
            node,
            "proxy",
            *_,
        ]:
            resource = _NAMESPACED[plural]
        case ["api", "v1", "nodes", node, "proxy", *_]:
            resource, namespace = NODES, ""
        case _:
            return None
    name = _name(node)
    if store.shelf(resource.qualified).get((namespace, name)) is None:
        return not_found(resource, name)
    text = (
        f"error trying to reach service: nothing listens at the address of {resource.singular} "
        f"{name}; moorage's nodes run no containers"
    )
    return StatusError(503, "ServiceUnavailable", text)


def _name(node: str) -> str:
    """Return the name in ``NAME``, ``NAME:PORT`` or ``SCHEME:NAME:PORT``."""
    parts = node.split(":")
    return parts[1] if len(parts) == 3 else parts[0]
