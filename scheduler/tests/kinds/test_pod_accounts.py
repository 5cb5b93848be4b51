"""Scope: the service account of a new pod (kubernetes v1.36 plugin/pkg/admission)."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.apiserver.harness import PODS, Cluster, failure, pod

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
MIRROR = {"annotations": {"kubernetes.io/config.mirror": "x"}}


def pod_with(name: str = "a", **spec: Any) -> dict[str, Any]:
    body = pod(name)
    body["spec"] |= spec
    return body


def made(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}} | more


async def test_a_pod_of_a_missing_account_is_refused():
    cluster = Cluster()
    body = pod_with("p", serviceAccountName="app")
    why = 'error looking up service account default/app: serviceaccount "app" not found'
    refused = failure(
        403, "Forbidden", f'pods "p" is forbidden: {why}', {"name": "p", "kind": "pods"}
    )
    assert await cluster.call("POST", PODS, body) == refused
    await cluster.ok("POST", ACCOUNTS, made("app"))
    spec = (await cluster.ok("POST", PODS, body))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("app", "app")
    await cluster.ok("DELETE", f"{ACCOUNTS}/app")
    other = pod_with("q", serviceAccount="app")
    assert (await cluster.call("POST", PODS, other))[0] == 403


async def test_an_account_of_another_namespace_does_not_count():
    cluster = Cluster()
    await cluster.ok("POST", ACCOUNTS.replace("default", "kube-system"), made("app"))
    assert (await cluster.call("POST", PODS, pod_with(serviceAccountName="app")))[0] == 403


async def test_a_pod_of_the_default_account_does_not_wait_for_it():
    spec = (await Cluster().ok("POST", PODS, pod()))["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param(None, [{"name": "a"}, {"name": "b"}], id="a pod without secrets"),
        pytest.param([{"name": "c"}], [{"name": "c"}], id="a pod with its own"),
    ],
)
async def test_pull_secrets_of_the_account_are_those_of_the_pod(own: Any, expected: Any):
    cluster = Cluster()
    secrets = [{"name": "a"}, {"name": "b"}]
    await cluster.ok("POST", ACCOUNTS, made("default", imagePullSecrets=secrets))
    body = pod_with(imagePullSecrets=own) if own else pod()
    assert (await cluster.ok("POST", PODS, body))["spec"]["imagePullSecrets"] == expected


async def test_a_mirror_pod_has_no_account():
    cluster = Cluster()
    body = pod("p", node="n")
    body["metadata"] |= MIRROR
    assert "serviceAccountName" not in (await cluster.ok("POST", PODS, body))["spec"]
    body["spec"]["serviceAccountName"] = "default"
    body["metadata"]["name"] = "q"
    status, found = await cluster.call("POST", PODS, body)
    why = "a mirror pod may not reference service accounts"
    assert (status, found["message"]) == (403, f'pods "q" is forbidden: {why}')
