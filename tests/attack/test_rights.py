"""Attempts to gain rights: by roles, bindings, applies, impersonation and reviews.

The expected answers follow kubernetes v1.36 pkg/registry/rbac/*/policybased, the filter for
impersonation, and pkg/registry/authorization. Each user here holds only the rules of the test.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from moorage.kinds.status import StatusError
from moorage_sandbox.apiserver.rbac.rules import Attributes
from moorage_sandbox.apiserver.wire.requests import User
from sandbox.tests.apiserver.harness import CONFIG_MAPS, MERGE, Cluster, namespace

GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
CLUSTER_ROLES = f"{RBAC}/clusterroles"
ROLES = f"{RBAC}/namespaces/default/roles"
ROLE_BINDINGS = f"{RBAC}/namespaces/default/rolebindings"
REVIEWS = "/apis/authorization.k8s.io/v1"
MALLORY = User("mallory")
APPLY = "application/apply-patch+yaml"
TO_VIEW = "rbac.authorization.k8s.io/aggregate-to-view"
ONLY_ADMINISTRATORS = "must have cluster-admin privileges to use the aggregationRule"
NOT_HELD = "is attempting to grant RBAC permissions not currently held"


def rule(resources: str, verbs: str, *, group: str = "", **more: Any) -> dict[str, Any]:
    """Return one rule of a role."""
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()} | more


def role(name: str, *rules: dict[str, Any], kind: str = "ClusterRole", **more: Any) -> Any:
    """Return a role."""
    made = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}}
    return made | {"rules": list(rules)} | more


def binding(name: str, role_name: str, user: str, *, kind: str = "ClusterRoleBinding") -> Any:
    """Return a binding of a cluster role to a user."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role_name},
        "subjects": [{"kind": "User", "name": user}],
    }


async def cluster_where(*rules: dict[str, Any], user: str = "mallory") -> Cluster:
    """Return a cluster in which a user holds rules everywhere."""
    cluster = Cluster(rbac=True)
    await cluster.ok("POST", CLUSTER_ROLES, role("held", *rules))
    bindings = f"{RBAC}/clusterrolebindings"
    await cluster.ok("POST", bindings, binding("held", "held", user))
    return cluster


WRITES_ROLES = rule("clusterroles roles", "create get patch update", group=GROUP)
BINDS = rule("rolebindings clusterrolebindings", "create get patch update", group=GROUP)
AGGREGATION = {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]}


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        pytest.param(
            "PATCH",
            f"{CLUSTER_ROLES}/cluster-admin",
            {"metadata": {"labels": {TO_VIEW: "true"}}},
            NOT_HELD,
            id="a label that gives the role to an aggregated one",
        ),
        pytest.param(
            "PATCH",
            f"{CLUSTER_ROLES}/system:node",
            {"metadata": {"annotations": {"x": "y"}}},
            NOT_HELD,
            id="an annotation of a role with more rights",
        ),
        pytest.param(
            "PATCH",
            f"{CLUSTER_ROLES}/view",
            {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]}},
            NOT_HELD,
            id="another rule of aggregation for a role with more rights",
        ),
        pytest.param(
            "POST",
            CLUSTER_ROLES,
            role("new", aggregationRule=AGGREGATION),
            ONLY_ADMINISTRATORS,
            id="a new role that aggregates",
        ),
        pytest.param(
            "PATCH",
            f"{CLUSTER_ROLES}/empty",
            {"aggregationRule": AGGREGATION},
            ONLY_ADMINISTRATORS,
            id="an empty role that begins to aggregate",
        ),
        pytest.param(
            "PATCH",
            f"{CLUSTER_ROLES}/collects",
            {"aggregationRule": None},
            ONLY_ADMINISTRATORS,
            id="a role that ceases to aggregate",
        ),
        pytest.param(
            "PATCH",
            f"{RBAC}/clusterrolebindings/others",
            {"metadata": {"labels": {"x": "y"}}},
            NOT_HELD,
            id="a label of a binding of a role with more rights",
        ),
        pytest.param(
            "PATCH",
            f"{RBAC}/clusterrolebindings/others",
            {"subjects": [{"kind": "User", "name": "mallory", "apiGroup": GROUP}]},
            NOT_HELD,
            id="another subject of a binding",
        ),
    ],
)
async def test_each_write_of_a_role_or_binding_wants_the_rights_it_grants(
    method, path, body, words
):
    cluster = await cluster_where(WRITES_ROLES, BINDS)
    await cluster.ok("POST", CLUSTER_ROLES, role("empty"))
    await cluster.ok("POST", CLUSTER_ROLES, role("collects", aggregationRule=AGGREGATION))
    await cluster.ok(
        "POST", f"{RBAC}/clusterrolebindings", binding("others", "cluster-admin", "root")
    )
    content = {"content_type": MERGE} if method == "PATCH" else {}
    before = cluster.server.store.version
    status, found = await cluster.call(method, path, body, user=MALLORY, **content)
    assert (status, found["reason"], words in found["message"]) == (403, "Forbidden", True), found
    assert cluster.server.store.version == before


async def test_finalizers_and_owners_alone_may_be_changed_without_the_rights():
    cluster = await cluster_where(WRITES_ROLES)
    path = f"{CLUSTER_ROLES}/system:node"
    patch = {"metadata": {"finalizers": ["example.com/x"]}}
    made = await cluster.ok("PATCH", path, patch, user=MALLORY, content_type=MERGE)
    assert made["metadata"]["finalizers"] == ["example.com/x"]


async def test_a_role_whose_rights_are_held_may_be_written_as_often_as_wanted():
    cluster = await cluster_where(WRITES_ROLES, rule("pods", "get list"))
    await cluster.ok("POST", CLUSTER_ROLES, role("mine", rule("pods", "get")), user=MALLORY)
    patch = {"metadata": {"labels": {TO_VIEW: "true"}}}
    path = f"{CLUSTER_ROLES}/mine"
    await cluster.ok("PATCH", path, patch, user=MALLORY, content_type=MERGE)


@pytest.mark.parametrize(
    ("names", "method", "path", "status"),
    [
        pytest.param([], "POST", CLUSTER_ROLES, 201, id="any name, in a create"),
        pytest.param(["new"], "POST", CLUSTER_ROLES, 403, id="a create has no name yet"),
        pytest.param(["new"], "PATCH", f"{CLUSTER_ROLES}/new", 201, id="an apply has one"),
        pytest.param(["other"], "PATCH", f"{CLUSTER_ROLES}/new", 403, id="of another name"),
    ],
)
async def test_the_right_to_escalate_is_checked_for_the_name_in_the_call(
    names, method, path, status
):
    escalate = rule("clusterroles", "escalate", group=GROUP, resourceNames=names)
    cluster = await cluster_where(WRITES_ROLES, escalate)
    content, query = ({}, {})
    if method == "PATCH":
        content, query = {"content_type": APPLY}, {"fieldManager": "m"}
    body = role("new", rule("secrets", "get"))
    found = await cluster.call(method, path, body, query=query, user=MALLORY, **content)
    assert found[0] == status, found


async def test_a_refusal_lists_groups_in_the_format_of_go():
    cluster = await cluster_where(WRITES_ROLES)
    user = User("mallory", ("dev", "ops"))
    body = role("new", rule("secrets", "get"), rule("configmaps", "get"))
    status, found = await cluster.call("POST", CLUSTER_ROLES, body, user=user)
    assert (status, found["message"]) == (
        403,
        'clusterroles.rbac.authorization.k8s.io "new" is forbidden: user "mallory" '
        '(groups=["dev" "ops" "system:authenticated"]) is attempting to grant RBAC permissions '
        'not currently held:\n{APIGroups:[""], Resources:["configmaps"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}',
    )


@pytest.mark.parametrize(
    ("verbs", "there", "status"),
    [
        pytest.param("patch", False, 403, id="a new object with the right to patch alone"),
        pytest.param("patch create", False, 201, id="a new object with the right to create"),
        pytest.param("patch", True, 200, id="an object that is there"),
    ],
)
@pytest.mark.parametrize("query", [{}, {"dryRun": "All"}], ids=["for good", "as a dry run"])
async def test_an_apply_that_creates_wants_the_verb_create(verbs, there, status, query):
    cluster = await cluster_where(rule("configmaps", verbs))
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "y"}}
    if there:
        await cluster.ok("POST", CONFIG_MAPS, body)
    found = await cluster.call(
        "PATCH",
        f"{CONFIG_MAPS}/a",
        body,
        query={"fieldManager": "m"} | query,
        user=MALLORY,
        content_type=APPLY,
    )
    assert found[0] == status, found
    if status == 403:
        assert found[1]["message"] == (
            'configmaps "a" is forbidden: User "mallory" cannot create resource "configmaps" '
            'in API group "" in the namespace "default"'
        )


@pytest.mark.parametrize(
    "name",
    [
        "system:serviceaccount:kube-system",
        "system:serviceaccount:kube-system:",
        "system:serviceaccount::robot",
        "system:serviceaccount:kube-system:robot:x",
        "system:serviceaccount:Kube_System:robot",
        "system:serviceaccount:kube-system:Robot!",
        "system:serviceaccount:",
    ],
)
async def test_an_impersonated_name_that_is_no_service_account_gets_no_account_groups(name):
    cluster = await cluster_where(rule("users", "impersonate", resourceNames=[name]))
    body: dict[str, Any] = {}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    found = await cluster.ok("POST", path, body, user=MALLORY, impersonate_user=name)
    assert found["status"]["userInfo"] == {"username": name, "groups": ["system:authenticated"]}


async def test_the_anonymous_user_is_not_authenticated_by_impersonation():
    cluster = await cluster_where(rule("users", "impersonate"))
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    found = await cluster.call("POST", path, {}, user=MALLORY, impersonate_user="system:anonymous")
    assert found[0] == 403, "only authenticated users may ask who they are"


async def test_a_review_of_a_user_without_groups_omits_the_rights_of_authenticated_users():
    cluster = Cluster(rbac=True)
    spec = {"user": "jane", "nonResourceAttributes": {"verb": "get", "path": "/version"}}
    path = f"{REVIEWS}/subjectaccessreviews"
    alone = await cluster.ok("POST", path, {"spec": spec})
    known = await cluster.ok("POST", path, {"spec": spec | {"groups": ["system:authenticated"]}})
    assert (alone["status"]["allowed"], known["status"]["allowed"]) == (False, True)


LOCAL = f"{REVIEWS}/namespaces/default/localsubjectaccessreviews"
PODS = {"verb": "get", "resource": "pods"}


@pytest.mark.parametrize(
    ("path", "spec", "status", "message"),
    [
        pytest.param(
            LOCAL,
            {"user": "jane", "resourceAttributes": PODS | {"namespace": "other"}},
            422,
            'spec.resourceAttributes.namespace: Invalid value: "other": must match '
            "metadata.namespace",
            id="a local review of another namespace",
        ),
        pytest.param(
            LOCAL,
            {"user": "jane", "resourceAttributes": PODS},
            422,
            'spec.resourceAttributes.namespace: Invalid value: "": must match metadata.namespace',
            id="a local review of the whole cluster",
        ),
        pytest.param(
            LOCAL,
            {"user": "jane", "nonResourceAttributes": {"verb": "get", "path": "/x"}},
            422,
            'spec.nonResourceAttributes: Invalid value: {"verb":"get","path":"/x"}: disallowed on '
            "this kind of request",
            id="a local review of a path",
        ),
        pytest.param(
            f"{REVIEWS}/subjectaccessreviews",
            {"resourceAttributes": PODS},
            422,
            'spec.user: Invalid value: "": at least one of user or group must be specified',
            id="a review of nobody",
        ),
        pytest.param(
            f"{REVIEWS}/subjectaccessreviews",
            {"user": "jane"},
            422,
            "spec.resourceAttributes: Required value: exactly one of nonResourceAttributes or "
            "resourceAttributes must be specified",
            id="a review of nothing",
        ),
        pytest.param(
            f"{REVIEWS}/selfsubjectaccessreviews",
            {"resourceAttributes": PODS, "nonResourceAttributes": {"verb": "get", "path": "/x"}},
            422,
            'spec.nonResourceAttributes: Invalid value: {"verb":"get","path":"/x"}: cannot be '
            "specified in combination with resourceAttributes",
            id="a review of two things",
        ),
        pytest.param(
            f"{REVIEWS}/subjectaccessreviews",
            {"user": "jane", "resourceAttributes": ["x"]},
            400,
            "json: cannot unmarshal array into Go struct field "
            "SubjectAccessReviewSpec.spec.resourceAttributes of type v1.ResourceAttributes",
            id="attributes that are a list",
        ),
        pytest.param(
            f"{REVIEWS}/subjectaccessreviews",
            {"user": {}, "resourceAttributes": PODS},
            400,
            "json: cannot unmarshal object into Go struct field "
            "SubjectAccessReviewSpec.spec.user of type string",
            id="a user that is an object",
        ),
        pytest.param(
            f"{REVIEWS}/subjectaccessreviews",
            [],
            400,
            "json: cannot unmarshal array into Go struct field SubjectAccessReview.spec of type "
            "v1.SubjectAccessReviewSpec",
            id="a spec that is a list",
        ),
        pytest.param(
            f"{REVIEWS}/selfsubjectrulesreviews",
            {"namespace": 5},
            400,
            "json: cannot unmarshal number into Go struct field "
            "SelfSubjectRulesReviewSpec.spec.namespace of type string",
            id="a namespace that is a number",
        ),
    ],
)
async def test_faulty_reviews_are_refused(path, spec, status, message):
    cluster = Cluster(rbac=True)
    await cluster.ok("POST", "/api/v1/namespaces", namespace("other"))
    found = await cluster.call("POST", path, {"spec": spec})
    assert (found[0], message in found[1]["message"]) == (status, True), found


async def test_a_local_review_answers_for_its_namespace():
    cluster = Cluster(rbac=True)
    body = binding("b", "view", "jane", kind="RoleBinding")
    await cluster.ok("POST", ROLE_BINDINGS, body)
    spec = {"user": "jane", "resourceAttributes": PODS | {"namespace": "default"}}
    answer = await cluster.ok("POST", LOCAL, {"spec": spec})
    assert answer["metadata"]["namespace"] == "default"
    assert answer["status"]["allowed"] is True


async def test_the_right_to_get_an_object_is_not_the_right_to_watch_it():
    cluster = await cluster_where(rule("configmaps", "get"))
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    await cluster.ok("POST", CONFIG_MAPS, body)
    query = {"watch": "true"}
    status, found = await cluster.call("GET", f"{CONFIG_MAPS}/a", query=query, user=MALLORY)
    assert (status, found["metadata"]["name"]) == (200, "a"), "kube-apiserver shows the object"


async def test_a_custom_resource_named_as_a_subresource_of_namespaces_is_not_served_by_its_rights():
    cluster = await cluster_where(rule("*/status", "get list", group="example.com"))
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    names = {"plural": "status", "singular": "status", "kind": "Status", "listKind": "StatusList"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    body = {"metadata": {"name": "status.example.com"}, "spec": spec}
    await cluster.ok("POST", path, body)
    secret = "/apis/example.com/v1/namespaces/default/status"
    assert (await cluster.call("GET", secret, user=MALLORY))[0] == 404


def test_a_call_answered_in_a_thread_is_checked_for_its_own_caller():
    """A light call that begins and ends meanwhile does not lift the check of a heavy one."""
    cluster = Cluster(rbac=True)
    escalation = cluster.server._escalation
    served = cluster.server._catalog.find(f"{GROUP}/v1", "clusterroles")
    wanted = Attributes(verb="create", group=GROUP, resource="clusterroles")
    began, ended = threading.Event(), threading.Event()

    def heavy() -> str:
        with escalation.called_by(MALLORY, wanted):
            began.set()
            assert ended.wait(10)
            with pytest.raises(StatusError) as caught:
                escalation.check_grants(served, role("x", rule("secrets", "get")), None)
            return caught.value.message

    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(heavy)
        assert began.wait(10)
        with escalation.called_by(User("root", ("system:masters",)), wanted):
            pass
        ended.set()
        assert NOT_HELD in found.result()
