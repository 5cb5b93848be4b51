"""Calls that many users may make: what they leave behind, and what one of them may cost.

Lists that nobody reads on are in sandbox/tests/apiserver/test_read.py.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from moorage_sandbox.apiserver.wire.requests import User
from sandbox.tests.apiserver.harness import CONFIG_MAPS, Cluster
from sandbox.tests.apiserver.test_events import NEW, new_event
from tests.attack.test_rights import CLUSTER_ROLES, RBAC, REVIEWS, binding, role, rule

KIB = 1024


@contextmanager
def growth() -> Iterator[list[int]]:
    """Measure by how many bytes what Python holds has grown; the list gets the number."""
    found: list[int] = []
    tracemalloc.start()
    try:
        yield found
        gc.collect()
        found.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()


@pytest.mark.slow
async def test_denied_calls_with_new_namespaces_do_not_grow_memory():
    cluster = Cluster(rbac=True)
    mallory = User("mallory")
    with growth() as found:
        for number in range(3000):
            path = f"/api/v1/namespaces/n{number}/pods"
            assert (await cluster.call("GET", path, user=mallory))[0] == 403
    assert found[0] < 200 * KIB


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "count"),
    [
        pytest.param("u{number}", 6000, id="many users"),
        pytest.param("u{number}" + "x" * 5000, 500, id="users of long names"),
    ],
)
async def test_access_reviews_of_unknown_users_grow_memory_little(names, count):
    cluster = Cluster(rbac=True)
    attributes = {"verb": "get", "resource": "pods"}
    with growth() as found:
        for number in range(count):
            spec = {"user": names.format(number=number), "resourceAttributes": attributes}
            path = f"{REVIEWS}/subjectaccessreviews"
            answer = await cluster.ok("POST", path, {"spec": spec})
            assert answer["status"] == {"allowed": False}
    assert found[0] < 2048 * KIB


async def test_cached_rights_of_a_user_are_computed_again_after_eviction():
    cluster = Cluster(rbac=True)
    await cluster.ok("POST", CLUSTER_ROLES, role("reads", rule("configmaps", "list")))
    await cluster.ok("POST", f"{RBAC}/clusterrolebindings", binding("b", "reads", "jane"))
    for _ in range(2):
        assert (await cluster.call("GET", CONFIG_MAPS, user=User("jane")))[0] == 200
        for number in range(5000):
            user = User(f"u{number}")
            assert cluster.server._authorizer.rules(user, "default") == []


async def test_a_chain_of_aggregated_roles_is_written_once_for_each_link():
    cluster = Cluster(rbac=True)
    count = 60
    for number in range(count):
        selectors = [{"matchLabels": {"next": f"n{number + 1}"}}]
        link = role(f"r{number}", aggregationRule={"clusterRoleSelectors": selectors})
        link["metadata"]["labels"] = {"next": f"n{number}"}
        await cluster.ok("POST", CLUSTER_ROLES, link)
    end = role("end", rule("cars", "get"), rule("cars", "list"))
    end["metadata"]["labels"] = {"next": f"n{count}"}
    before = cluster.server.store.version
    await cluster.ok("POST", CLUSTER_ROLES, end)
    assert cluster.server.store.version == before + 1 + count
    first = await cluster.ok("GET", f"{CLUSTER_ROLES}/r0")
    assert first["rules"] == end["rules"]
    # A write that concerns none of them costs nothing but itself.
    before = cluster.server.store.version
    await cluster.ok("POST", CLUSTER_ROLES, role("other", rule("boats", "get")))
    assert cluster.server.store.version == before + 1


async def test_a_circle_of_aggregated_roles_keeps_no_rule_that_was_revoked():
    cluster = Cluster(rbac=True)
    names = "abc"
    for name in names:
        following = names[(names.index(name) + 1) % len(names)]
        selectors = [{"matchLabels": {"is": following}}, {"matchLabels": {"to": name}}]
        link = role(name, aggregationRule={"clusterRoleSelectors": selectors})
        link["metadata"]["labels"] = {"is": name}
        await cluster.ok("POST", CLUSTER_ROLES, link)
    plain = role("plain", rule("cars", "get"))
    plain["metadata"]["labels"] = {"to": "b"}
    await cluster.ok("POST", CLUSTER_ROLES, plain)
    for name in names:
        assert (await cluster.ok("GET", f"{CLUSTER_ROLES}/{name}"))["rules"] == plain["rules"]
    await cluster.ok("DELETE", f"{CLUSTER_ROLES}/plain")
    for name in names:
        assert (await cluster.ok("GET", f"{CLUSTER_ROLES}/{name}")).get("rules") == []


async def test_a_stored_event_takes_little_more_than_twice_its_bytes():
    cluster = Cluster()
    await cluster.ok("POST", NEW, new_event("first.1"))  # what every kind makes once
    with growth() as found:
        for number in range(500):
            await cluster.ok("POST", NEW, new_event(f"web-{number:05}.1", about=f"web-{number:05}"))
    assert found[0] / 500 < 2000, "as dictionaries the values of field selectors took 1000 bytes"
