"""The endpoints of the service ``kubernetes``: the address of this server.

Mirrors kubernetes v1.36 pkg/controlplane/reconcilers: Endpoints and an EndpointSlice of one name,
written at every start, because the port may be another one.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from moorage.api.resources import ENDPOINT_SLICES, ENDPOINTS, ResourceType
from moorage.base.errors import ConflictError
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.client.writes import Client

_NAME: Final = "kubernetes"
_NAMESPACE: Final = "default"


async def publish_endpoints(client: Client, address: str, port: int) -> None:
    """Write where the server listens; nothing for a host name or for all addresses.

    Raises
    ------
    MoorageError
        The server refused.
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return
    if found.is_unspecified:
        return
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    where = [{"addresses": [address], "conditions": {"ready": True}}]
    await _put(
        client,
        ENDPOINTS,
        {"endpointslice.kubernetes.io/skip-mirror": "true"},
        {"subsets": [{"addresses": [{"ip": address}], "ports": ports}]},
    )
    await _put(
        client,
        ENDPOINT_SLICES,
        {"kubernetes.io/service-name": _NAME},
        {"addressType": f"IPv{found.version}", "endpoints": where, "ports": ports},
    )


async def _put(
    client: Client, resource: ResourceType, labels: dict[str, str], content: dict[str, Any]
) -> None:
    body = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": _NAME, "labels": labels},
        **content,
    }
    try:
        await client.create(resource, body, namespace=_NAMESPACE)
    except ConflictError:
        await client.patch(
            resource,
            _NAME,
            patch_body(content),
            namespace=_NAMESPACE,
            content_type=MERGE_PATCH,
        )
