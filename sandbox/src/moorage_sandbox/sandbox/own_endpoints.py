"""The endpoints of the service ``kubernetes``: the address of this server.

Mirrors kubernetes v1.36 pkg/controlplane/reconcilers: Endpoints and an EndpointSlice of one name,
written at every start, because the port may be another one.
"""

from __future__ import annotations

import ipaddress
import logging
from typing import Any, Final

from moorage.api.resources import ENDPOINT_SLICES, ENDPOINTS, ResourceType
from moorage.base.errors import ConflictError, MoorageError
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.client.writes import Client

_log = logging.getLogger(__name__)

_NAME: Final = "kubernetes"
_NAMESPACE: Final = "default"


async def publish_endpoints(client: Client, address: str, port: int) -> None:
    """Write where the server listens; nothing for a host name or for all addresses.

    Nothing in the cluster needs the objects, so the server starts without them where they are
    refused: the disk is full, or the rules of admission deny them. The log tells it.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return
    if ip.is_unspecified:
        return
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    where = [{"addresses": [address], "conditions": {"ready": True}}]
    subsets = [{"addresses": [{"ip": address}], "ports": ports}]
    family = f"IPv{ip.version}"
    try:
        await _put(
            client,
            ENDPOINTS,
            {"endpointslice.kubernetes.io/skip-mirror": "true"},
            {"subsets": subsets},
        )
        await _put(
            client,
            ENDPOINT_SLICES,
            {"kubernetes.io/service-name": _NAME},
            {"addressType": family, "endpoints": where, "ports": ports},
        )
    except MoorageError as error:
        _log.warning(
            "the endpoints of the service %s/%s do not tell the address of this server: %s",
            _NAMESPACE,
            _NAME,
            error,
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
