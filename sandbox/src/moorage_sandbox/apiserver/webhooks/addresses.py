"""The address of a webhook: that of its URL, or one that stands for its service.

Place in the flow: `admission` and `conversion` look here before they ask a webhook. The pods of a
sandbox run no programs, so a service needs an address of a program that really listens: the
annotation `ADDRESS` of the Service, or an entry of ``moorage up --webhook``. Mirrors kubernetes
v1.36 apiserver pkg/util/webhook/client.go.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from moorage.kinds.tree import Json, child, number, text
from moorage_sandbox.apiserver.webhooks.answers import Endpoint, HookError
from moorage_sandbox.apiserver.world import World

ADDRESS: Final = "moorage.dev/webhook-address"
"""The annotation of a Service: HOST:PORT of the program that stands for its pods."""
_HTTPS: Final = 443


class HookAddresses:
    """Finds the addresses of webhooks.

    Parameters
    ----------
    world
        Holds the services.

    Attributes
    ----------
    by_service
        HOST:PORT by NAMESPACE/NAME of a service.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.by_service: Mapping[str, str] = {}

    def endpoint(self, client: Json) -> Endpoint:
        """Return where the webhook of a ``clientConfig`` listens.

        Raises
        ------
        HookError
            Its service has no address here, or the configuration cannot be read.
        """
        try:
            authorities = base64.b64decode(text(client, "caBundle"), validate=True).decode("ascii")
        except (binascii.Error, UnicodeDecodeError) as error:
            raise HookError(f"the caBundle cannot be read: {error}") from error
        if service := child(client, "service"):
            return self._of_service(service, authorities)
        parts = urlsplit(text(client, "url"))
        host = parts.hostname or ""
        try:
            port = parts.port or _HTTPS
        except ValueError as error:
            raise HookError(f"the port of the URL cannot be read: {error}") from error
        return Endpoint(
            host=host,
            port=port,
            path=parts.path or "/",
            authority=parts.netloc,
            server_name=host,
            ca_bundle=authorities,
        )

    def _of_service(self, service: Json, authorities: str) -> Endpoint:
        namespace, name = text(service, "namespace"), text(service, "name")
        host, port = self._address(namespace, name)
        server_name = f"{name}.{namespace}.svc"
        path = text(service, "path")
        return Endpoint(
            host=host,
            port=port,
            path=path if path.startswith("/") else f"/{path}",
            authority=f"{server_name}:{number(service, 'port') or _HTTPS}",
            server_name=server_name,
            ca_bundle=authorities,
        )

    def _address(self, namespace: str, name: str) -> tuple[str, int]:
        """Return (host, port) of the program that stands for a service."""
        key = f"{namespace}/{name}"
        address = self.by_service.get(key, "")
        if not address:
            stored = self._world.lookup("services", namespace, name)
            if stored is None:
                raise HookError(f'service "{name}" not found in namespace "{namespace}"')
            address = text(stored, "metadata", "annotations", ADDRESS)
        if not address:
            raise HookError(
                f'no program stands for the service "{key}": annotate it with '
                f"{ADDRESS}=HOST:PORT, or start with --webhook {key}=HOST:PORT"
            )
        return read_address(address)


def read_address(address: str) -> tuple[str, int]:
    """Return (host, port) of a text HOST:PORT.

    Raises
    ------
    HookError
        The text has another form.
    """
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise HookError(f'"{address}" is no address of the form HOST:PORT')
    return host, int(port)
