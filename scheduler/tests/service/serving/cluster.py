"""A secure port beside a real API server with roles: both behind TLS, on loopback."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from moorage.base import certificates as certs
from moorage.base.clock import ManualClock, SystemClock
from moorage.base.rng import Streams
from moorage.cli.run.access import access_of
from moorage.observe.access import AccessFacts
from moorage.service.process.health import HealthServer, Listening, Page
from moorage_sandbox.apiserver.authentication.credentials import Authenticator
from moorage_sandbox.apiserver.wire.http import HttpServer
from moorage_sandbox.apiserver.wire.requests import User
from sandbox.tests.apiserver.harness import Cluster

AUTHORITY = certs.Authority(SystemClock())
SERVER_PAIR = AUTHORITY.server_pair()
SCHEDULER = User("system:kube-scheduler")
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
PUBLISHED = "/api/v1/namespaces/kube-system/configmaps"


async def page(accept: str) -> Page:
    """Return a page."""
    del accept
    return Page(b"numbers")


class Port:
    """The port of a scheduler, with the API server that it asks.

    Parameters
    ----------
    folder
        For kubeconfig and certificates.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock(start_ns=SystemClock().now_ns())
        """The time of caches and tokens, which moves only when told."""
        self.cluster = Cluster(clock=self.clock, rbac=True)
        self.facts = AccessFacts()
        context = certs.server_context(SERVER_PAIR, AUTHORITY.certificate)
        tokens = Authenticator({"scheduler": SCHEDULER}, self.cluster.server.account_tokens.user)
        self.api_server = HttpServer(self.cluster.server, tokens, context)
        self.port: HealthServer | None = None

    async def start(self, **flags: Any) -> None:
        """Start both; keywords are flags, with underscores for hyphens.

        The port is started anew where it runs already.
        """
        await self.stop()
        number = await self.api_server.start()
        kubeconfig = self.folder / "kubeconfig"
        kubeconfig.write_text(
            certs.kubeconfig(
                f"https://127.0.0.1:{number}",
                authority_certificate=AUTHORITY.certificate,
                token="scheduler",
            )
        )
        given = {
            "authentication-kubeconfig": str(kubeconfig),
            "authorization-kubeconfig": str(kubeconfig),
            **{name.replace("_", "-"): value for name, value in flags.items()},
        }
        access = access_of(given, clock=self.clock, streams=Streams(1), facts=self.facts)
        self.port = HealthServer(
            Listening(address="127.0.0.1", free_port=True),
            access,
            checks={"healthz": [("ping", lambda: True)], "livez": [], "readyz": []},
            pages={"/metrics": page, "/configz": page},
        )
        await self.port.start()

    async def stop(self) -> None:
        """Stop both."""
        if self.port is not None:
            await self.port.close()
        await self.api_server.stop()

    @property
    def url(self) -> str:
        """The address of the port."""
        assert self.port is not None, "the port has been started"
        return self.port.url

    async def publish(self, **data: str) -> None:
        """Publish authorities and headers as kube-apiserver does; hyphens as underscores."""
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "extension-apiserver-authentication"},
            "data": {name.replace("_", "-"): text for name, text in data.items()},
        }
        await self.cluster.ok("POST", PUBLISHED, body)

    async def account(self, name: str, *paths: str, seconds: int = 3600) -> str:
        """Make a service account that may get some paths; return a token."""
        await self.cluster.ok("POST", ACCOUNTS, {"metadata": {"name": name}})
        rule = {"nonResourceURLs": list(paths), "verbs": ["get"]}
        if paths:
            role = {"metadata": {"name": name}, "rules": [rule]}
            await self.cluster.ok("POST", f"{RBAC}/clusterroles", role)
            await self.bind(name, {"kind": "ServiceAccount", "name": name, "namespace": "default"})
        asked = {"spec": {"expirationSeconds": seconds}}
        found = await self.cluster.ok("POST", f"{ACCOUNTS}/{name}/token", asked)
        return str(found["status"]["token"])

    async def bind(self, role: str, subject: dict[str, str]) -> None:
        """Give a cluster role to a subject."""
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
        body = {"metadata": {"name": role}, "roleRef": ref, "subjects": [subject]}
        await self.cluster.ok("POST", f"{RBAC}/clusterrolebindings", body)

    async def read(
        self,
        path: str,
        *,
        token: str = "",
        pair: certs.KeyPair | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        """Read a path on a connection of its own; return status and body."""
        sent = dict(headers or {})
        if token:
            sent["Authorization"] = f"Bearer {token}"
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=presenting(pair))) as session,
            session.get(f"{self.url}{path}", headers=sent) as answer,
        ):
            return answer.status, await answer.text()


def presenting(pair: certs.KeyPair | None) -> ssl.SSLContext:
    """Return the context of a client that presents a certificate, and trusts everybody."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if pair is not None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "client.pem"
            path.write_bytes(pair.key + pair.certificate)
            context.load_cert_chain(path)
    return context


def replace(path: Path, content: bytes) -> None:
    """Replace a file as kubelet and cert-manager do: by another file of that name."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)


@asynccontextmanager
async def running(folder: Path, *, published: bool = True, **flags: Any) -> AsyncIterator[Port]:
    """Start a port; it finds the authority of the cluster published, unless told otherwise."""
    port = Port(folder)
    if published:
        await port.publish(client_ca_file=AUTHORITY.certificate.decode())
    try:
        await port.start(**flags)
        yield port
    finally:
        await port.stop()
