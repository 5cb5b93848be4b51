"""Tokens of service accounts that are bound to a pod, a node or a Secret.

Does not cover: tokens that are bound to nothing (`test_impersonation`).
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from sandbox.tests.apiserver.harness import NODES, PODS, Cluster, pod
from sandbox.tests.apiserver.test_impersonation import ACCOUNTS, owner, token

SECRETS = "/api/v1/namespaces/default/secrets"


async def cluster_with_objects(account: str = "robot") -> Cluster:
    cluster = Cluster()
    for name in ("robot", "default"):
        await cluster.ok("POST", ACCOUNTS, {"metadata": {"name": name}})
    await cluster.ok("POST", NODES, {"metadata": {"name": "a"}})
    await cluster.ok("POST", SECRETS, {"metadata": {"name": "a"}})
    body = pod()
    body["spec"] |= {"serviceAccountName": account, "nodeName": "a"}
    await cluster.ok("POST", PODS, body)
    return cluster


def reference(kind: str, **more: str) -> dict[str, str]:
    return {"apiVersion": "v1", "kind": kind, "name": "a", **more}


def claims_of(answer: Any) -> Any:
    text = answer["status"]["token"].split(".")[1]
    return json.loads(base64.urlsafe_b64decode(text + "=="))["kubernetes.io"]


@pytest.mark.parametrize(
    ("kind", "path"), [("Pod", f"{PODS}/a"), ("Node", f"{NODES}/a"), ("Secret", f"{SECRETS}/a")]
)
async def test_a_token_is_refused_once_its_object_is_gone(kind: str, path: str):
    cluster = await cluster_with_objects()
    status, answer = await token(cluster, boundObjectRef=reference(kind))
    assert status == 201
    assert answer["spec"]["boundObjectRef"] == reference(kind)
    uid = (await cluster.ok("GET", path))["metadata"]["uid"]
    assert claims_of(answer)[kind.lower()] == {"name": "a", "uid": uid}
    text = answer["status"]["token"]
    assert owner(cluster, text) is not None
    await cluster.ok("DELETE", path, {"gracePeriodSeconds": 0})
    assert owner(cluster, text) is None


async def test_a_token_of_a_pod_names_its_node_and_outlives_the_node():
    cluster = await cluster_with_objects()
    _, answer = await token(cluster, boundObjectRef=reference("Pod"))
    node = await cluster.ok("GET", f"{NODES}/a")
    assert claims_of(answer)["node"] == {"name": "a", "uid": node["metadata"]["uid"]}
    await cluster.ok("DELETE", f"{NODES}/a")
    assert owner(cluster, answer["status"]["token"]) is not None


async def test_a_token_of_a_pod_that_is_being_deleted_lives_a_minute_longer():
    cluster = await cluster_with_objects()
    text = (await token(cluster, boundObjectRef=reference("Pod")))[1]["status"]["token"]
    await cluster.ok("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 1})
    cluster.clock.advance(61)
    assert owner(cluster, text) is not None
    cluster.clock.advance(1)
    assert owner(cluster, text) is None


async def test_a_token_is_not_bound_to_another_object_of_the_name():
    cluster = await cluster_with_objects()
    status, answer = await token(cluster, boundObjectRef=reference("Secret", uid="other"))
    assert (status, answer["reason"]) == (409, "Conflict")
    assert "the UID in the bound object reference (other) does not match" in answer["message"]


async def test_a_token_is_not_bound_to_a_pod_of_another_account():
    cluster = await cluster_with_objects(account="default")
    status, answer = await token(cluster, boundObjectRef=reference("Pod"))
    assert (status, answer["message"]) == (
        400,
        'cannot bind token for serviceaccount "robot" to pod running with different '
        "serviceaccount name.",
    )
