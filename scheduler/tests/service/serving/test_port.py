"""Who may read what on the port, with an API server beside it that knows the callers' roles.

Left out: details of each part, which have files of their own.
"""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from moorage.base import aio
from moorage.base.certificates import Authority, KeyPair
from moorage.base.clock import SystemClock
from moorage.base.errors import UsageError
from sandbox.tests.apiserver.harness import MERGE
from scheduler.tests.service.serving.cluster import (
    AUTHORITY,
    PUBLISHED,
    Port,
    presenting,
    replace,
    running,
)

MASTER = AUTHORITY.client_pair()
VIEWER = AUTHORITY.client_pair("viewer", ())
STRANGER = Authority(SystemClock()).client_pair()


def forbidden(user: str, path: str) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'forbidden: User "{user}" cannot get path "{path}"',
        "reason": "Forbidden",
        "details": {},
        "code": 403,
    }


UNAUTHORIZED = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "Unauthorized",
    "reason": "Unauthorized",
    "code": 401,
}


async def test_without_credentials_only_the_health_paths_are_readable(tmp_path: Path) -> None:
    async with running(tmp_path) as port:
        assert await port.read("/healthz") == (200, "ok")
        for path in ("/metrics", "/configz", "/nosuch", "/healthz/ping", "/"):
            status, body = await port.read(path)
            assert (status, json.loads(body)) == (403, forbidden("system:anonymous", path))


async def test_a_token_reads_the_paths_of_its_role_and_no_others(tmp_path: Path) -> None:
    async with running(tmp_path) as port:
        scraper = await port.account("prometheus", "/metrics")
        nobody = await port.account("nobody")
        assert await port.read("/metrics", token=scraper) == (200, "numbers")
        for token, name, path in (
            (scraper, "prometheus", "/configz"),
            (nobody, "nobody", "/metrics"),
        ):
            status, body = await port.read(path, token=token)
            user = f"system:serviceaccount:default:{name}"
            assert (status, json.loads(body)) == (403, forbidden(user, path))


async def test_a_call_with_an_invalid_token_is_not_authenticated(tmp_path: Path) -> None:
    async with running(tmp_path) as port:
        for path in ("/metrics", "/healthz"):
            status, body = await port.read(path, token="nonsense")
            assert (status, json.loads(body)) == (401, UNAUTHORIZED)


async def test_a_token_is_taken_until_its_kept_review_is_over_and_not_after(tmp_path: Path) -> None:
    async with running(tmp_path) as port:
        token = await port.account("prometheus", "/metrics", seconds=600)
        port.clock.advance(595)
        assert (await port.read("/metrics", token=token))[0] == 200
        port.clock.advance(9)  # the token has expired, the review is nine seconds old
        assert (await port.read("/metrics", token=token))[0] == 200
        port.clock.advance(1)
        assert (await port.read("/metrics", token=token))[0] == 401


async def test_reviews_are_kept_and_counted(tmp_path: Path) -> None:
    async with running(tmp_path) as port:
        token = await port.account("prometheus", "/metrics")
        for _ in range(5):
            await port.read("/metrics", token=token)
        facts = port.facts
        assert facts.token_reviews.answers == {"201": 1}
        assert facts.access_reviews.answers == {"201": 1}
        assert facts.token_cache == {"hit": 4, "miss": 1}
        assert facts.token_fetches == {"ok": 1}
        assert facts.authentications["success"].count == 5
        assert facts.authorizations["allowed"].count == 5


async def test_without_keeping_reviews_a_right_that_is_taken_away_counts_at_once(
    tmp_path: Path,
) -> None:
    flags: dict[str, Any] = {
        "authentication_token_webhook_cache_ttl": "0s",
        "authorization_webhook_cache_authorized_ttl": "0s",
        "authorization_webhook_cache_unauthorized_ttl": "0s",
    }
    async with running(tmp_path, **flags) as port:
        token = await port.account("prometheus", "/metrics")
        assert (await port.read("/metrics", token=token))[0] == 200
        path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/prometheus"
        await port.cluster.ok("DELETE", path)
        assert (await port.read("/metrics", token=token))[0] == 403
        await port.cluster.ok("DELETE", "/api/v1/namespaces/default/serviceaccounts/prometheus")
        assert (await port.read("/metrics", token=token))[0] == 401


async def test_a_server_that_is_gone_lets_nobody_in_but_those_who_need_no_review(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as port:
        token = await port.account("prometheus", "/metrics")
        await port.api_server.stop()
        assert (await port.read("/metrics", token=token))[0] == 401
        status, body = await port.read("/metrics", pair=VIEWER)
        assert status == 500
        assert body.startswith('Internal Server Error: "/metrics": POST https://127.0.0.1:')
        assert (await port.read("/metrics"))[0] == 500
        assert await port.read("/healthz") == (200, "ok")
        assert await port.read("/metrics", pair=MASTER) == (200, "numbers")
        assert list(port.facts.token_reviews.answers) == ["<error>"]
        assert list(port.facts.access_reviews.answers) == ["<error>"]


async def test_a_client_certificate_of_the_published_authority_names_its_user(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as port:
        assert await port.read("/metrics", pair=MASTER) == (200, "numbers")
        status, body = await port.read("/configz", pair=VIEWER)
        assert (status, json.loads(body)) == (403, forbidden("viewer", "/configz"))
        rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
        roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        await port.cluster.ok("POST", roles, {"metadata": {"name": "look"}, "rules": [rule]})
        group = "rbac.authorization.k8s.io"
        await port.bind("look", {"kind": "User", "name": "viewer", "apiGroup": group})
        assert await port.read("/metrics", pair=VIEWER) == (200, "numbers")


async def test_a_client_certificate_of_another_authority_ends_the_connection(
    tmp_path: Path,
) -> None:
    async with running(tmp_path) as port:
        with pytest.raises((aiohttp.ClientError, ssl.SSLError, OSError)):
            await port.read("/healthz", pair=STRANGER)


async def test_a_published_authority_counts_as_soon_as_it_is_published(tmp_path: Path) -> None:
    async with running(tmp_path, published=False) as port:
        with pytest.raises((aiohttp.ClientError, ssl.SSLError, OSError)):
            await port.read("/metrics", pair=MASTER)
        await port.publish(client_ca_file=AUTHORITY.certificate.decode())
        assert await until_read(port, MASTER) == (200, "numbers")


async def until_read(port: Port, pair: KeyPair) -> tuple[int, str]:
    """Read the metrics with a certificate, again until its authority is trusted."""
    while True:  # the test's own limit bounds it
        try:
            return await port.read("/metrics", pair=pair)
        except (aiohttp.ClientError, ssl.SSLError, OSError):
            await aio.sleep(0.01)


async def test_published_authorities_are_followed(tmp_path: Path) -> None:
    renewed = Authority(SystemClock())
    master = renewed.client_pair()
    async with running(tmp_path) as port:
        body = {"data": {"client-ca-file": renewed.certificate.decode()}}
        name = f"{PUBLISHED}/extension-apiserver-authentication"
        await port.cluster.ok("PATCH", name, body, content_type=MERGE)
        assert await until_read(port, master) == (200, "numbers")
        with pytest.raises((aiohttp.ClientError, ssl.SSLError, OSError)):
            await port.read("/metrics", pair=MASTER)


async def test_an_authority_that_is_gone_ends_the_identity_of_open_connections(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(AUTHORITY.certificate)
    async with running(tmp_path, client_ca_file=str(path)) as port:
        connector = aiohttp.TCPConnector(ssl=presenting(MASTER), limit=1)
        async with aiohttp.ClientSession(connector=connector) as session:
            statuses = []
            for certificate in (AUTHORITY.certificate, Authority(SystemClock()).certificate):
                replace(path, certificate)
                async with session.get(f"{port.url}/metrics") as answer:
                    await answer.read()
                    statuses.append(answer.status)
        assert statuses == [200, 401]


async def test_without_the_published_authorities_the_port_does_not_start_if_told_so(
    tmp_path: Path,
) -> None:
    wanted = (
        r"^configmap kube-system/extension-apiserver-authentication cannot be read: .*not found"
    )
    with pytest.raises(UsageError, match=wanted):
        async with running(tmp_path, published=False, authentication_tolerate_lookup_failure=False):
            pass


async def test_without_a_lookup_client_certificates_are_not_asked_for(tmp_path: Path) -> None:
    async with running(tmp_path, authentication_skip_lookup=True) as port:
        for pair in (MASTER, STRANGER):
            assert (await port.read("/metrics", pair=pair))[0] == 403


async def test_a_front_proxy_names_its_user_in_headers_and_nobody_else_may(tmp_path: Path) -> None:
    proxies = Authority(SystemClock())
    names = {
        "requestheader_client_ca_file": proxies.certificate.decode(),
        "requestheader_username_headers": '["X-Remote-User"]',
        "requestheader_group_headers": '["X-Remote-Group"]',
        "requestheader_extra_headers_prefix": '["X-Remote-Extra-"]',
        "requestheader_allowed_names": '["aggregator"]',
    }
    headers = {"X-Remote-User": "jane", "X-Remote-Group": "system:masters"}
    async with running(tmp_path, published=False) as port:
        await port.publish(client_ca_file=AUTHORITY.certificate.decode(), **names)
        await port.start()
        proxy = proxies.client_pair("aggregator", ())
        assert await port.read("/metrics", pair=proxy, headers=headers) == (200, "numbers")
        user = {"X-Remote-User": "jane"}
        status, body = await port.read("/metrics", pair=proxy, headers=user)
        assert (status, json.loads(body)) == (403, forbidden("jane", "/metrics"))
        for other in (proxies.client_pair("somebody", ()), VIEWER):
            assert (await port.read("/metrics", pair=other, headers=headers))[0] in (401, 403)
        assert (await port.read("/metrics", headers=headers))[0] == 403
