"""Rights on signers: who approves, signs and attests, and for whom nobody does."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.kinds.users import User
from sandbox.tests.apiserver.certificates import signing_request
from sandbox.tests.apiserver.harness import MERGE, Cluster

GROUP = "certificates.k8s.io"
REQUESTS = f"/apis/{GROUP}/v1/certificatesigningrequests"
BUNDLES = f"/apis/{GROUP}/v1beta1/clustertrustbundles"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
JANE = User("jane", ("system:authenticated",))
CLIENT = "kubernetes.io/kube-apiserver-client"
SIGNER = "example.com/signer"
APPROVED = {"type": "Approved", "status": "True", "reason": "x", "message": "y"}


def request(signer: str = SIGNER, *organizations: str) -> dict[str, Any]:
    spec = {
        "request": signing_request(*organizations),
        "signerName": signer,
        "usages": ["client auth"],
    }
    return {"metadata": {"name": "r"}, "spec": spec}


async def with_rights(*signers: str, verb: str) -> Cluster:
    """Return a server where Jane may change all of certificates, and use these signers."""
    cluster = Cluster(rbac=True)
    rules = [
        {
            "apiGroups": [GROUP],
            "resources": [
                "certificatesigningrequests",
                "certificatesigningrequests/approval",
                "certificatesigningrequests/status",
                "clustertrustbundles",
            ],
            "verbs": ["*"],
        }
    ]
    if signers:
        rules.append(
            {
                "apiGroups": [GROUP],
                "resources": ["signers"],
                "resourceNames": list(signers),
                "verbs": [verb],
            }
        )
    await cluster.ok("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "x"}, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "x"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}
    binding = {"metadata": {"name": "x"}, "roleRef": reference, "subjects": [subject]}
    await cluster.ok("POST", f"{RBAC}/clusterrolebindings", binding)
    await cluster.ok("POST", REQUESTS, request())
    return cluster


RIGHTS = [
    pytest.param((), False, id="without a right on the signer"),
    pytest.param(("example.com/other",), False, id="with the right on another signer"),
    pytest.param((SIGNER,), True, id="with the right on the signer"),
    pytest.param(("example.com/*",), True, id="with the right on the domain"),
]


@pytest.mark.parametrize(("signers", "allowed"), RIGHTS)
@pytest.mark.parametrize(
    ("verb", "where", "status"),
    [
        pytest.param("approve", "approval", {"conditions": [APPROVED]}, id="approve"),
        pytest.param("sign", "status", {"certificate": "YQ=="}, id="sign"),
        pytest.param("sign", "status", {"conditions": [APPROVED | {"type": "Failed"}]}, id="fail"),
    ],
)
async def test_a_request_is_approved_and_signed_with_a_right_on_its_signer(
    verb, where, status, signers, allowed
):
    cluster = await with_rights(*signers, verb=verb)
    code, answer = await cluster.call(
        "PATCH", f"{REQUESTS}/r/{where}", {"status": status}, content_type=MERGE, user=JANE
    )
    if allowed:
        assert (code, answer["status"]) == (200, status)
        return
    assert (code, answer["message"]) == (
        403,
        f'certificatesigningrequests.{GROUP} "r" is forbidden: user not permitted to {verb} '
        f'requests with signerName "{SIGNER}"',
    )


@pytest.mark.parametrize(("signers", "allowed"), RIGHTS)
async def test_a_bundle_of_trust_is_attested_with_a_right_on_its_signer(signers, allowed):
    cluster = await with_rights(*signers, verb="attest")
    body = {
        "metadata": {"name": "example.com:signer:x"},
        "spec": {"signerName": SIGNER, "trustBundle": "x"},
    }
    code, answer = await cluster.call("POST", BUNDLES, body, user=JANE)
    if allowed:
        assert code == 201
        return
    assert code == 403
    assert answer["message"].endswith(f'user not permitted to attest for signerName "{SIGNER}"')
    del body["spec"]["signerName"]
    await cluster.ok("POST", BUNDLES, body, user=JANE)


async def test_a_change_beside_the_certificate_needs_no_right_on_the_signer():
    cluster = await with_rights(verb="sign")
    patch = {"metadata": {"labels": {"a": "b"}}}
    await cluster.ok("PATCH", f"{REQUESTS}/r/status", patch, content_type=MERGE, user=JANE)


@pytest.mark.parametrize(
    ("signer", "groups", "code"),
    [
        pytest.param(CLIENT, ("system:masters",), 403, id="an administrator"),
        pytest.param(CLIENT, ("a", "system:masters"), 403, id="an administrator among others"),
        pytest.param(CLIENT, ("developers",), 201, id="a client of the API server"),
        pytest.param(SIGNER, ("system:masters",), 201, id="for a signer of somebody else"),
    ],
)
@pytest.mark.parametrize("rbac", [False, True])
async def test_nobody_asks_for_the_certificate_of_an_administrator(rbac, signer, groups, code):
    found, answer = await Cluster(rbac=rbac).call("POST", REQUESTS, request(signer, *groups))
    assert found == code
    if code == 403:
        assert answer["message"] == (
            f'certificatesigningrequests.{GROUP} "r" is forbidden: use of {CLIENT} signer with '
            "system:masters group is not allowed"
        )
