"""Owners of fields after a PUT of an applied object: what it changes, and what it leaves out.

Does not cover: applies (`test_apply`), and what policies change (`test_mutating_policies`).
"""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.harness import MERGE, PODS, Cluster, clear_managers, pod
from sandbox.tests.apiserver.test_apply import applied_ok, managers


async def test_an_update_that_leaves_the_status_out_takes_it_from_nobody():
    """Upstream ignores the fields that the kind's strategy resets, removed ones included."""
    cluster = Cluster()
    await cluster.ok("POST", PODS, pod())
    await cluster.ok(
        "PATCH", f"{PODS}/a/status", {"status": {"phase": "Running"}}, content_type=MERGE
    )
    await clear_managers(cluster, f"{PODS}/a")
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"x": "1"}}}
    made = await applied_ok(cluster, f"{PODS}/a", body, "me")
    owned = managers(made)["before-first-apply", "Update"]["f:status"]
    assert "f:phase" in owned
    new = {key: value for key, value in made.items() if key != "status"}
    new["metadata"]["labels"] = {"x": "2"}
    found = await cluster.ok("PUT", f"{PODS}/a", new, query={"fieldManager": "you"})
    assert managers(found)["before-first-apply", "Update"]["f:status"] == owned
    assert managers(found)["you", "Update"] == {"f:metadata": {"f:labels": {"f:x": {}}}}


async def test_a_write_of_the_status_takes_nothing_else_from_its_managers():
    cluster = Cluster()
    body = pod(labels={"x": "1"}) | {"apiVersion": "v1", "kind": "Pod"}
    made = await applied_ok(cluster, f"{PODS}/a", body, "me")
    only = {"metadata": {"name": "a"}, "spec": {"containers": []}, "status": {"phase": "Running"}}
    found = await cluster.ok("PUT", f"{PODS}/a/status", only, query={"fieldManager": "you"})
    owned = managers(made)["me", "Apply"]
    assert managers(found)["me", "Apply"]["f:spec"] == owned["f:spec"]
    assert "f:phase" in managers(found)["you", "Update"]["f:status"]
    assert set(managers(found)["you", "Update"]) == {"f:status"}


@pytest.mark.parametrize(
    "containers",
    [
        pytest.param([{"image": "i"}], id="an item without its key"),
        pytest.param([{"name": "c", "image": "i"}] * 2, id="a key given twice"),
    ],
)
async def test_an_invalid_update_of_an_applied_object_is_told_as_such(containers: Any):
    cluster = Cluster()
    made = await applied_ok(cluster, f"{PODS}/a", pod() | {"apiVersion": "v1", "kind": "Pod"}, "me")
    made["spec"]["containers"] = containers
    assert (await cluster.call("PUT", f"{PODS}/a", made))[0] == 422
