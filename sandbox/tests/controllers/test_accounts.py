"""Secrets with tokens of service accounts, in a whole cluster under the virtual clock."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from moorage.api.resources import NAMESPACES, SECRETS, SERVICE_ACCOUNTS
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.cluster import play, stored

ACCOUNT = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "robot", "namespace": "default"},
}


def secret(**annotations: str) -> dict[str, Any]:
    named = {"kubernetes.io/service-account.name": "robot"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "t", "namespace": "default", "annotations": named | annotations},
    }


def data_of(cluster: VirtualCluster) -> dict[str, str]:
    found = stored(cluster, SECRETS, "t").get("data") or {}
    return {name: base64.b64decode(text).decode() for name, text in found.items()}


def test_a_secret_gets_a_token_that_is_valid_until_the_account_is_gone():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(ACCOUNT, secret())
        await cluster.until(lambda: "token" in data_of(cluster))
        data = data_of(cluster)
        assert (data["ca.crt"], data["namespace"]) == ("the authority", "default")
        uid = stored(cluster, SERVICE_ACCOUNTS, "robot")["metadata"]["uid"]
        notes = stored(cluster, SECRETS, "t")["metadata"]["annotations"]
        assert notes["kubernetes.io/service-account.uid"] == uid
        user = cluster.server.account_tokens.user(data["token"])
        assert user is not None
        assert user.name == "system:serviceaccount:default:robot"
        await cluster.client.delete(SERVICE_ACCOUNTS, "robot", namespace="default")
        await cluster.until(lambda: not stored(cluster, SECRETS, "t"))
        assert cluster.server.account_tokens.user(data["token"]) is None

    play(scenario, authority="the authority")


def test_a_token_is_invalid_once_its_secret_is_gone():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(ACCOUNT, secret())
        await cluster.until(lambda: "token" in data_of(cluster))
        text = data_of(cluster)["token"]
        await cluster.client.delete(SECRETS, "t", namespace="default")
        assert cluster.server.account_tokens.user(text) is None

    play(scenario)


def test_a_token_that_was_removed_is_made_again():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(ACCOUNT, secret())
        await cluster.until(lambda: "token" in data_of(cluster))
        found = stored(cluster, SECRETS, "t")
        await cluster.client.replace(SECRETS, found | {"data": {}}, name="t", namespace="default")
        await cluster.until(lambda: "token" in data_of(cluster))

    play(scenario)


@pytest.mark.parametrize(
    ("objects", "uid"),
    [
        pytest.param([], "", id="no such account"),
        pytest.param([ACCOUNT], "of-another", id="an account with another uid"),
    ],
)
def test_a_secret_without_its_account_is_deleted(objects: list[Any], uid: str):
    async def scenario(cluster: VirtualCluster) -> None:
        notes = {"kubernetes.io/service-account.uid": uid} if uid else {}
        await cluster.create_objects(*objects, secret(**notes))
        await cluster.until(lambda: not stored(cluster, SECRETS, "t"))

    play(scenario)


def test_the_namespace_of_leases_comes_back_after_its_deletion():
    async def scenario(cluster: VirtualCluster) -> None:
        before = stored(cluster, NAMESPACES, "kube-node-lease")["metadata"]["uid"]
        await cluster.client.delete(NAMESPACES, "kube-node-lease")

        def is_new() -> bool:
            found = stored(cluster, NAMESPACES, "kube-node-lease")
            return bool(found) and found["metadata"]["uid"] != before

        await cluster.until(is_new)
        again = stored(cluster, NAMESPACES, "kube-node-lease")
        assert again["status"]["phase"] == "Active"
        assert again["spec"]["finalizers"] == ["kubernetes"]
        assert again["metadata"]["labels"] == {"kubernetes.io/metadata.name": "kube-node-lease"}

    play(scenario)
