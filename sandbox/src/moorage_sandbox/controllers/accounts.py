"""Keeps in every namespace the service account ``default`` and the server's certificate.

Rules: kubernetes v1.36 pkg/controller/serviceaccount/serviceaccounts_controller.go and
pkg/controller/certificates/rootcacertpublisher.
"""

from __future__ import annotations

from typing import Final

from moorage.api.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS
from moorage.base.errors import ConflictError
from moorage.client.objects import Key
from moorage.workloads.objects import Json, Whole
from moorage_sandbox.controllers.controller import Controller, ControllerInputs
from moorage_sandbox.controllers.views import View

_ACCOUNT: Final = "default"
_CERTIFICATE: Final = "kube-root-ca.crt"
_WHAT: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)


class ConfigMap(Whole, frozen=True, kw_only=True):
    """core/v1 ConfigMap, with its text data only."""

    data: dict[str, str] = {}  # noqa: RUF012  (the codec library copies it)


class NamespaceContents(Controller):
    """Creates the default objects of each namespace, again after a deletion."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="namespace-contents", resource=NAMESPACES)
        self._authority = around.authority
        self._namespaces = around.views.view_of(NAMESPACES, Whole)
        self._accounts = around.views.view_of(SERVICE_ACCOUNTS, Whole)
        self._maps: View[ConfigMap] | None = None
        self.follow(self._namespaces)
        self._accounts.tell(self._gone)
        if around.authority:
            self._maps = around.views.view_of(CONFIG_MAPS, ConfigMap)
            self._maps.tell(self._map_changed)

    def _gone(self, old: Whole | None, new: Whole | None) -> None:
        if new is None and old is not None and old.name == _ACCOUNT:
            self.queue.add(("", old.namespace))

    def _map_changed(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        found = new or old
        if old is not None and found is not None and found.name == _CERTIFICATE:
            self.queue.add(("", found.namespace))

    async def sync(self, key: Key) -> float | None:
        """Create the missing objects of a namespace."""
        namespace = self._namespaces.objects.get(key)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return None
        name = namespace.name
        if (name, _ACCOUNT) not in self._accounts.objects:
            await self._create_account(name)
        if self._maps is not None:
            await self._publish(self._maps, name)
        return None

    async def _create_account(self, namespace: str) -> None:
        metadata = {"name": _ACCOUNT, "namespace": namespace}
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        try:
            await self.client.create(SERVICE_ACCOUNTS, body, namespace=namespace)
        except ConflictError:
            return

    async def _publish(self, maps: View[ConfigMap], namespace: str) -> None:
        data = {"ca.crt": self._authority}
        found = maps.objects.get((namespace, _CERTIFICATE))
        if found is not None:
            if found.data != data:
                await self.patch_object(CONFIG_MAPS, found, {"data": data})
            return
        metadata: Json = {
            "name": _CERTIFICATE,
            "namespace": namespace,
            "annotations": {"kubernetes.io/description": _WHAT},
        }
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        try:
            await self.client.create(CONFIG_MAPS, body, namespace=namespace)
        except ConflictError:
            return
