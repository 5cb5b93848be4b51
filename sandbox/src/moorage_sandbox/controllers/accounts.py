"""Keeps in every namespace the service account ``default`` and the server's certificate.

Rules: kubernetes v1.36 pkg/controller/serviceaccount/serviceaccounts_controller.go and
pkg/controller/certificates/rootcacertpublisher.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from typing import Final

from moorage.api.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS
from moorage.base.errors import ConflictError
from moorage.client.objects import Key
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.controllers.views import View
from moorage.workloads.objects import Json, Whole

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


class _NamespaceController(Controller):
    """The base of controllers that keep an object in each namespace."""

    def __init__(self, around: ControllerInputs, *, name: str) -> None:
        super().__init__(around, name=name, resource=NAMESPACES)
        self._namespaces = around.views.view_of(NAMESPACES, Whole)
        self.follow(self._namespaces)

    async def sync(self, key: Key) -> float | None:
        """Bring the object of a namespace to its wanted state."""
        namespace = self._namespaces.objects.get(key)
        if namespace is not None and namespace.metadata.deletion_timestamp is None:
            await self._keep_object(namespace.name)
        return None

    @abstractmethod
    async def _keep_object(self, namespace: str) -> None: ...


class DefaultAccounts(_NamespaceController):
    """Creates the service account ``default`` of each namespace, again after a deletion."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="serviceaccount-controller")
        self._accounts = around.views.view_of(SERVICE_ACCOUNTS, Whole)
        self._accounts.tell(self._account_changed)

    def _account_changed(self, old: Whole | None, new: Whole | None) -> None:
        if new is None and old is not None and old.name == _ACCOUNT:
            self.queue.add(("", old.namespace))

    async def _keep_object(self, namespace: str) -> None:
        if (namespace, _ACCOUNT) in self._accounts.objects:
            return
        metadata = {"name": _ACCOUNT, "namespace": namespace}
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        with suppress(ConflictError):
            await self.client.create(SERVICE_ACCOUNTS, body, namespace=namespace)


class CertificatePublisher(_NamespaceController):
    """Keeps the server's certificate in each namespace, if the cluster has one."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name="root-ca-certificate-publisher")
        self._authority = around.authority
        self._maps: View[ConfigMap] | None = None
        if around.authority:
            self._maps = around.views.view_of(CONFIG_MAPS, ConfigMap)
            self._maps.tell(self._map_changed)

    def _map_changed(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        found = new or old
        if old is not None and found is not None and found.name == _CERTIFICATE:
            self.queue.add(("", found.namespace))

    async def _keep_object(self, namespace: str) -> None:
        if self._maps is None:
            return
        data = {"ca.crt": self._authority}
        found = self._maps.objects.get((namespace, _CERTIFICATE))
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
        with suppress(ConflictError):
            await self.client.create(CONFIG_MAPS, body, namespace=namespace)
