"""Keeps in every namespace the service account ``default``, the server's certificate, and tokens.

Rules: kubernetes v1.36 pkg/controller/serviceaccount/serviceaccounts_controller.go and
tokens_controller.go, and pkg/controller/certificates/rootcacertpublisher. The token of a Secret is
asked from the server, for 136 years and bound to its Secret: it is invalid once the Secret or the
account is gone. Upstream signs it in the controller, and such a token never expires.
"""

from __future__ import annotations

import base64
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from moorage.api.resources import CONFIG_MAPS, NAMESPACES, SECRETS, SERVICE_ACCOUNTS
from moorage.base.errors import ConflictError, NotFoundError
from moorage.client.objects import Key
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.controllers.views import View
from moorage.workloads.objects import Json, Whole
from moorage_sandbox.controllers import names

_ACCOUNT: Final = "default"
_CERTIFICATE: Final = "kube-root-ca.crt"
_TOKEN_TYPE: Final = "kubernetes.io/service-account-token"
_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
_TOKEN_SECONDS: Final = 1 << 32  # the longest that a token may be asked for
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


class Secret(Whole, frozen=True, kw_only=True):
    """core/v1 Secret."""

    type: str = ""
    data: dict[str, str] = {}  # noqa: RUF012  (the codec library copies it)


class TokenSecrets(Controller):
    """The controller of Secrets of the type ``kubernetes.io/service-account-token``."""

    def __init__(self, around: ControllerInputs) -> None:
        super().__init__(around, name=names.ACCOUNT_TOKENS, resource=SECRETS)
        self._authority = around.authority
        self._secrets = around.views.view_of(SECRETS, Secret)
        self._accounts = around.views.view_of(SERVICE_ACCOUNTS, Whole)
        self._secrets.tell(self._secret_changed)
        self._accounts.tell(self._account_changed)

    def _secret_changed(self, old: Secret | None, new: Secret | None) -> None:
        if new is not None and new.type == _TOKEN_TYPE:
            self.queue.add((new.namespace, new.name))

    def _account_changed(self, old: Whole | None, new: Whole | None) -> None:
        account = new or old
        assert account is not None, "a view tells of something"
        for secret in self._secrets.in_namespace(account.namespace):
            if secret.type == _TOKEN_TYPE and _account_name(secret) == account.name:
                self.queue.add((secret.namespace, secret.name))

    async def sync(self, key: Key) -> float | None:
        """Fill in what a Secret lacks; delete the Secret of an account that is gone."""
        secret = self._secrets.objects.get(key)
        if secret is None or secret.metadata.deletion_timestamp is not None:
            return None
        wanted = _annotations(secret).get(_ACCOUNT_UID)
        uid = await self._account_uid(secret, wanted)
        if not uid or wanted not in (None, "", uid):
            await self.client.delete(
                SECRETS, secret.name, namespace=secret.namespace, uid=secret.metadata.uid
            )
            return None
        changes = await self._missing_data(secret)
        if changes or not wanted:
            metadata: Json = {"annotations": {_ACCOUNT_UID: uid}}
            await self.patch_object(SECRETS, secret, {"metadata": metadata, "data": changes})
        return None

    async def _account_uid(self, secret: Secret, wanted: str | None) -> str:
        """Return the uid of a Secret's account, "" where there is no such account."""
        name = _account_name(secret)
        seen = self._accounts.objects.get((secret.namespace, name))
        if seen is not None and wanted in (None, "", seen.metadata.uid):
            return seen.metadata.uid
        # The view may be late, and a Secret is not deleted for that.
        try:
            account: Json = await self.client.get(
                SERVICE_ACCOUNTS, name, namespace=secret.namespace
            )
        except NotFoundError:
            return ""
        return str(account["metadata"]["uid"])

    async def _missing_data(self, secret: Secret) -> Json:
        wanted = {"namespace": _encoded(secret.namespace)}
        if self._authority:
            wanted["ca.crt"] = _encoded(self._authority)
        changes: Json = {
            name: value for name, value in wanted.items() if secret.data.get(name) != value
        }
        if not secret.data.get("token"):
            changes["token"] = _encoded(await self._new_token(secret))
        return changes

    async def _new_token(self, secret: Secret) -> str:
        bound = {
            "apiVersion": "v1",
            "kind": "Secret",
            "name": secret.name,
            "uid": secret.metadata.uid,
        }
        answer: Json = await self.client.create(
            SERVICE_ACCOUNTS,
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": _TOKEN_SECONDS, "boundObjectRef": bound},
            },
            namespace=secret.namespace,
            name=_account_name(secret),
            subresource="token",
        )
        return str(answer["status"]["token"])


def _annotations(secret: Secret) -> Mapping[str, str]:
    return secret.metadata.annotations or {}


def _account_name(secret: Secret) -> str:
    return _annotations(secret).get(_ACCOUNT_NAME, "")


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
