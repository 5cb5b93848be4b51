"""Documents about the server that a client keeps: tags, and answers without a body.

The documents themselves are the matter of `test_discovery`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage_sandbox.apiserver.wire.negotiate import AGGREGATED
from sandbox.tests.apiserver.harness import Cluster, config_map

APPS = "/openapi/v3/apis/apps/v1"
PUBLIC, FOREVER = "public", "public, max-age=31536000, immutable"


async def _hash(cluster: Cluster) -> str:
    paths = (await cluster.ok("GET", "/openapi/v3"))["paths"]
    url: str = paths["apis/apps/v1"]["serverRelativeURL"]
    path, _, found = url.partition("?hash=")
    assert path == APPS
    return found


async def _get(cluster: Cluster, path: str, **options: Any) -> tuple[int, dict[str, str], bytes]:
    reply = await cluster.reply("GET", path, **options)
    assert isinstance(reply.body, bytes)
    return reply.status, dict(reply.headers), reply.body


async def test_a_document_with_its_hash_in_the_address_is_cacheable_for_ever():
    cluster = Cluster()
    found = await _hash(cluster)
    status, headers, body = await _get(cluster, APPS, query={"hash": found})
    assert (status, headers) == (
        200,
        {"ETag": f'"{found}"', "Vary": "Accept", "Cache-Control": FOREVER},
    )
    assert json.loads(body)["openapi"] == "3.0.0"


async def test_an_outdated_hash_redirects_to_the_current_one():
    cluster = Cluster()
    expected = {"Location": f"{APPS}?hash={await _hash(cluster)}"}
    assert await _get(cluster, APPS, query={"hash": "0A"}) == (301, expected, b"")


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        pytest.param("/openapi/v2", "", id="OpenAPI version 2"),
        pytest.param("/openapi/v3", "", id="the index"),
        pytest.param(APPS, "application/json", id="a group"),
        pytest.param("/apis", AGGREGATED, id="all groups at once"),
        pytest.param("/api", AGGREGATED, id="the core group at once"),
    ],
)
async def test_a_document_with_a_matching_etag_is_not_sent_again(path, accept):
    cluster = Cluster()
    status, headers, body = await _get(cluster, path, accept=accept)
    assert (status, headers["Cache-Control"], bool(body)) == (200, PUBLIC, True)
    for known in (headers["ETag"], f'"x", W/{headers["ETag"]}'):
        again = await _get(cluster, path, accept=accept, if_none_match=known)
        assert again == (304, headers, b"")
    other = await _get(cluster, path, accept=accept, if_none_match='"x"')
    assert other == (200, headers, body)


@pytest.mark.parametrize("path", ["/apis", "/api/v1", "/version", "/api/v1/configmaps"])
async def test_other_documents_have_no_etag(path):
    cluster = Cluster()
    await cluster.ok("POST", "/api/v1/namespaces/default/configmaps", config_map())
    status, headers, _ = await _get(cluster, path)
    assert (status, headers) == (200, {})
