"""Acting as somebody else, and tokens of service accounts.

Expected texts and rules follow kubernetes v1.36 apiserver pkg/endpoints/filters/impersonation and
pkg/registry/{core/serviceaccount/storage/token.go,authentication/tokenreview}.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from moorage_sandbox.apiserver.authentication.credentials import Authenticator
from moorage_sandbox.apiserver.protobuf.envelope import write_object
from moorage_sandbox.apiserver.rbac.impersonation import joined
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF
from moorage_sandbox.apiserver.wire.requests import User
from sandbox.tests.apiserver.harness import PODS, Cluster

RBAC = "/apis/rbac.authorization.k8s.io/v1"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
JANE = User("jane")
ALL = "system:authenticated"


async def whoami(cluster: Cluster, **headers: Any) -> Any:
    """Return user and groups, or code and message of the refusal."""
    status, found = await cluster.call("POST", WHO, {}, **headers)
    if status != 201:
        return status, found["message"]
    who = found["status"]["userInfo"]
    return who["username"], who["groups"]


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        pytest.param({}, ("kubernetes-admin", ["system:masters", ALL]), id="no impersonation"),
        pytest.param({"impersonate_user": "jane"}, ("jane", [ALL]), id="a user"),
        pytest.param(
            {"impersonate_user": "jane", "impersonate_group": joined(["dev", "ops"])},
            ("jane", ["dev", "ops", ALL]),
            id="a user in groups",
        ),
        pytest.param(
            {"impersonate_user": "system:serviceaccount:default:robot"},
            (
                "system:serviceaccount:default:robot",
                ["system:serviceaccounts", "system:serviceaccounts:default", ALL],
            ),
            id="a service account is in the groups of its like",
        ),
        pytest.param(
            {"impersonate_group": "dev"},
            (400, "requested groups ['dev'] without impersonating a user"),
            id="a group alone",
        ),
        pytest.param(
            {"impersonate_user": "jane", "impersonate_extra_scopes": "view"},
            (400, "impersonate-extra-scopes: only users and groups can be impersonated here"),
            id="impersonated extra fields are refused",
        ),
    ],
)
async def test_a_call_is_answered_as_the_impersonated_user(headers, answer):
    assert await whoami(Cluster(), **headers) == answer


async def allow(cluster: Cluster, *rules: dict[str, Any]) -> None:
    """Grant cluster-wide rules to Jane."""
    version = "rbac.authorization.k8s.io/v1"
    role = {"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": "r"}}
    await cluster.ok("POST", f"{RBAC}/clusterroles", role | {"rules": list(rules)})
    binding = {
        "apiVersion": version,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "b"},
        "roleRef": {"kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "User", "name": "jane"}],
    }
    await cluster.ok("POST", f"{RBAC}/clusterrolebindings", binding)


def may_act_as(resource: str, *names: str) -> dict[str, Any]:
    rule = {"apiGroups": [""], "resources": [resource], "verbs": ["impersonate"]}
    return rule | ({"resourceNames": list(names)} if names else {})


NOT_GROUP = (
    'groups "ops" is forbidden: User "jane" cannot impersonate resource "groups" in API group "" '
    "at the cluster scope"
)
NOT_USER = (
    'users "tim" is forbidden: User "jane" cannot impersonate resource "users" in API group "" '
    "at the cluster scope"
)
NOT_ACCOUNT = (
    'serviceaccounts "robot" is forbidden: User "jane" cannot impersonate resource '
    '"serviceaccounts" in API group "" in the namespace "default"'
)


@pytest.mark.parametrize(
    ("rules", "headers", "answer"),
    [
        pytest.param([], {"impersonate_user": "tim"}, (403, NOT_USER), id="without a rule"),
        pytest.param(
            [may_act_as("users", "tim")],
            {"impersonate_user": "tim"},
            ("tim", [ALL]),
            id="with a rule for that user",
        ),
        pytest.param(
            [may_act_as("users", "ann")],
            {"impersonate_user": "tim"},
            (403, NOT_USER),
            id="with a rule for another user",
        ),
        pytest.param(
            [may_act_as("users")],
            {"impersonate_user": "tim", "impersonate_group": "ops"},
            (403, NOT_GROUP),
            id="each group needs a rule, too",
        ),
        pytest.param(
            [may_act_as("users")],
            {"impersonate_user": "system:serviceaccount:default:robot"},
            (403, NOT_ACCOUNT),
            id="a service account is no user",
        ),
        pytest.param(
            [may_act_as("serviceaccounts")],
            {"impersonate_user": "system:serviceaccount:default:robot", "impersonate_group": ""},
            (
                "system:serviceaccount:default:robot",
                ["system:serviceaccounts", "system:serviceaccounts:default", ALL],
            ),
            id="with a rule for service accounts",
        ),
    ],
)
async def test_impersonation_needs_the_right_to_impersonate(rules, headers, answer):
    cluster = Cluster(rbac=True)
    await allow(cluster, *rules)
    assert await whoami(cluster, user=JANE, **headers) == answer


async def test_an_impersonating_caller_has_only_the_rights_of_the_impersonated_user():
    cluster = Cluster(rbac=True)
    status, found = await cluster.call("GET", PODS, impersonate_user="jane")
    assert (status, found["message"]) == (
        403,
        'pods is forbidden: User "jane" cannot list resource "pods" in API group "" '
        'in the namespace "default"',
    )


async def token(cluster: Cluster, **spec: Any) -> Any:
    await cluster.call("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    body = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec}
    return await cluster.call("POST", f"{ACCOUNTS}/robot/token", body)


def owner(cluster: Cluster, text: str) -> User | None:
    """Return whose token it is, as the server would at a call."""
    known = Authenticator({}, cluster.server.account_tokens.user)
    return known.user({"authorization": f"Bearer {text}"}, None)


ROBOT = User(
    "system:serviceaccount:default:robot",
    ("system:serviceaccounts", "system:serviceaccounts:default"),
)


async def test_a_token_authenticates_its_service_account_until_it_expires():
    cluster = Cluster()
    status, found = await token(cluster)
    text = found["status"]["token"]
    assert (status, found["spec"]["expirationSeconds"]) == (201, 3600)
    claims = json.loads(base64.urlsafe_b64decode(text.split(".")[1] + "=="))
    assert claims["sub"] == ROBOT.name
    assert claims["exp"] - claims["iat"] == 3600
    account = await cluster.ok("GET", f"{ACCOUNTS}/robot")
    robot = User(ROBOT.name, ROBOT.groups, account["metadata"]["uid"])
    assert owner(cluster, text) == robot
    cluster.clock.advance(3599)
    assert owner(cluster, text) == robot
    cluster.clock.advance(1)
    assert owner(cluster, text) is None


async def test_the_uid_of_a_calling_account_is_shown_and_recorded():
    cluster = Cluster()
    robot = owner(cluster, (await token(cluster))[1]["status"]["token"])
    assert robot is not None
    assert robot.uid
    version = "authentication.k8s.io/v1"
    review = {"kind": "SelfSubjectReview", "apiVersion": version}
    path = f"/apis/{version}/selfsubjectreviews"
    answer = await cluster.ok("POST", path, review, user=robot)
    groups = [*robot.groups, "system:authenticated"]
    shown = {"username": robot.name, "uid": robot.uid, "groups": groups}
    assert answer["status"]["userInfo"] == shown


async def test_others_can_verify_a_token_by_the_keys_of_the_server():
    cluster = Cluster()
    text = (await token(cluster))[1]["status"]["token"]
    found = await cluster.ok("GET", "/.well-known/openid-configuration")
    claims = json.loads(base64.urlsafe_b64decode(text.split(".")[1] + "=="))
    assert (found["issuer"], found["id_token_signing_alg_values_supported"]) == (
        claims["iss"],
        ["ES256"],
    )
    reply = await cluster.reply("GET", found["jwks_uri"].removeprefix(found["issuer"]))
    assert reply.content_type == "application/jwk-set+json"
    assert isinstance(reply.body, bytes)
    (key,) = json.loads(reply.body)["keys"]
    head, body, signature = (part.encode() for part in text.split("."))
    assert json.loads(base64.urlsafe_b64decode(head + b"==")) == {"alg": "ES256", "kid": key["kid"]}
    x, y = (int.from_bytes(base64.urlsafe_b64decode(key[name] + "=="), "big") for name in "xy")
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    sent = base64.urlsafe_b64decode(signature + b"==")
    numbers = (int.from_bytes(part, "big") for part in (sent[:32], sent[32:]))
    public.verify(encode_dss_signature(*numbers), head + b"." + body, ec.ECDSA(SHA256()))


@pytest.mark.parametrize("change", [lambda text: text + "x", lambda text: text[:-1], str.lower])
async def test_a_token_with_another_signature_is_not_known(change):
    cluster = Cluster()
    signed, _, signature = (await token(cluster))[1]["status"]["token"].rpartition(".")
    assert owner(cluster, f"{signed}.{signature}") is not None
    assert owner(cluster, f"{signed}.{change(signature)}") is None
    assert owner(cluster, f"x{signed}.{signature}") is None
    assert owner(cluster, f"{signed}.\udcff") is None


async def test_a_token_is_invalid_once_its_account_is_deleted():
    cluster = Cluster()
    text = (await token(cluster))[1]["status"]["token"]
    await cluster.ok("DELETE", f"{ACCOUNTS}/robot")
    assert owner(cluster, text) is None
    # One of the same name is another account.
    await cluster.ok("POST", ACCOUNTS, {"metadata": {"name": "robot"}})
    assert owner(cluster, text) is None


async def test_a_token_without_a_valid_signature_authenticates_no_user():
    cluster = Cluster()
    text = (await token(cluster))[1]["status"]["token"]
    head, claims, signature = text.split(".")
    other = base64.urlsafe_b64encode(b'{"sub": "root"}').decode().rstrip("=")
    for wrong in (f"{head}.{other}.{signature}", f"{head}.{claims}.", "", "x", "\udcff", ".."):
        assert owner(cluster, wrong) is None


ISSUER = "https://kubernetes.default.svc.cluster.local"


@pytest.mark.parametrize(
    ("made_for", "asked_for", "answer"),
    [
        pytest.param([], [], [ISSUER], id="for this server, as nothing else is said"),
        pytest.param(["vault", "shop"], ["shop", "x"], ["shop"], id="for who asks, among others"),
        pytest.param(
            ["vault"],
            [],
            f'token audiences ["vault"] is invalid for the target audiences ["{ISSUER}"]',
            id="for another",
        ),
        pytest.param(
            [],
            ["vault", "x"],
            f'token audiences ["{ISSUER}"] is invalid for the target audiences ["vault" "x"]',
            id="for this server only",
        ),
    ],
)
async def test_a_token_review_names_the_account_and_audiences(made_for, asked_for, answer):
    cluster = Cluster()
    text = (await token(cluster, audiences=made_for))[1]["status"]["token"]
    spec = {"token": text, "audiences": asked_for}
    found = await cluster.ok("POST", TOKENS, {"spec": spec})
    assert (found["kind"], found["apiVersion"]) == ("TokenReview", "authentication.k8s.io/v1")
    if isinstance(answer, str):
        assert found["status"] == {"user": {}, "error": answer}
        return
    account = await cluster.ok("GET", f"{ACCOUNTS}/robot")
    user = {
        "username": ROBOT.name,
        "uid": account["metadata"]["uid"],
        "groups": [*ROBOT.groups, ALL],
    }
    assert found["status"] == {"authenticated": True, "user": user, "audiences": answer}


async def test_a_token_review_is_answered_in_protobuf():
    cluster = Cluster()
    text = (await token(cluster, audiences=["shop"]))[1]["status"]["token"]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    body = write_object(review | {"spec": {"token": text, "audiences": ["shop"]}})
    found = await cluster.ok("POST", TOKENS, body, content_type=PROTOBUF)
    assert found["status"]["audiences"] == ["shop"]


async def test_a_review_of_an_invalid_token_says_so():
    cluster = Cluster()
    text = (await token(cluster))[1]["status"]["token"]
    cluster.clock.advance(3600)
    for each in (text, "x"):
        found = await cluster.ok("POST", TOKENS, {"spec": {"token": each}})
        assert found["status"] == {"user": {}, "error": "invalid bearer token"}


@pytest.mark.parametrize(
    ("method", "body", "answer"),
    [
        pytest.param(
            "POST",
            {"spec": {}},
            (400, "token is required for TokenReview in authentication"),
            id="no token",
        ),
        pytest.param(
            "POST",
            {"spec": {"token": "x", "audiences": "me"}},
            (
                400,
                'TokenReview in version "v1" cannot be handled as a TokenReview: json: cannot '
                "unmarshal string into Go struct field TokenReviewSpec.spec.audiences of type "
                "[]string",
            ),
            id="no list",
        ),
        pytest.param(
            "GET",
            None,
            (405, "the server does not allow this method on the requested resource"),
            id="nothing is kept",
        ),
    ],
)
async def test_a_faulty_token_review_is_refused(method, body, answer):
    status, found = await Cluster().call(method, TOKENS, body)
    assert (status, found["message"]) == answer


async def test_a_token_review_needs_a_role():
    status, _ = await Cluster(rbac=True).call("POST", TOKENS, {"spec": {"token": "x"}}, user=JANE)
    assert status == 403


@pytest.mark.parametrize(
    ("spec", "status", "message"),
    [
        pytest.param(
            {"expirationSeconds": 60},
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
            "Invalid value: 60: may not specify a duration less than 10 minutes",
            id="too short",
        ),
        pytest.param(
            {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}},
            404,
            'pods "p" not found',
            id="bound to a pod that does not exist",
        ),
        pytest.param(
            {"boundObjectRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "p"}},
            400,
            "cannot bind token for object of type /v1, Kind=ConfigMap",
            id="bound to an object of another kind",
        ),
        pytest.param(
            {"audiences": "me"},
            400,
            'TokenRequest in version "v1" cannot be handled as a TokenRequest: json: cannot '
            "unmarshal string into Go struct field TokenRequestSpec.spec.audiences of type "
            "[]string",
            id="audiences that are none",
        ),
    ],
)
async def test_a_faulty_token_request_is_refused(spec, status, message):
    found = await token(Cluster(), **spec)
    assert (found[0], found[1]["message"]) == (status, message)


async def test_a_token_for_another_audience_does_not_authenticate():
    cluster = Cluster()
    text = (await token(cluster, audiences=["vault"]))[1]["status"]["token"]
    assert owner(cluster, text) is None


async def test_a_token_for_an_unknown_account_is_not_found():
    status, found = await Cluster().call("POST", f"{ACCOUNTS}/ghost/token", {"spec": {}})
    assert (status, found["reason"]) == (404, "NotFound")
