"""Who may do what, told in the words of kube-apiserver.

Expected texts and rules follow kubernetes v1.36 plugin/pkg/auth/authorizer/rbac, its
bootstrappolicy, and pkg/registry/rbac. That the sandbox's scheduler works under its role is in
sandbox/tests/sandbox/test_rbac.py.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage_sandbox.apiserver.rbac.attributes import attributes_of
from moorage_sandbox.apiserver.rbac.rules import Attributes, allows, not_covered
from moorage_sandbox.apiserver.wire.requests import Request, User
from sandbox.tests.apiserver.harness import PODS, Cluster, namespace, pod

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{RBAC}/namespaces/default/roles"
ROLE_BINDINGS = f"{RBAC}/namespaces/default/rolebindings"
REVIEWS = "/apis/authorization.k8s.io/v1"
JANE = User("jane")
SCHEDULER = User("system:kube-scheduler")


def _object(kind: str, name: str, **body: Any) -> dict[str, Any]:
    version = "rbac.authorization.k8s.io/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **body}


def _rule(resources: str, verbs: str, *, group: str = "", **more: Any) -> dict[str, Any]:
    rule = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
    return rule | more


def _binding(name: str, role: str, *users: str, kind: str = "RoleBinding") -> dict[str, Any]:
    role_kind = role.partition("/")[0]
    return _object(
        kind,
        name,
        roleRef={"kind": role_kind, "name": role.partition("/")[2]},
        subjects=[{"kind": "User", "name": user} for user in users],
    )


@pytest.mark.parametrize(
    ("method", "path", "query", "wanted"),
    [
        pytest.param("GET", PODS, {}, ("list", "pods", "default", ""), id="list"),
        pytest.param("GET", PODS, {"watch": "true"}, ("watch", "pods", "default", ""), id="watch"),
        pytest.param(
            "GET",
            PODS,
            {"fieldSelector": "metadata.name=a"},
            ("list", "pods", "default", "a"),
            id="a list of one name is about that name",
        ),
        pytest.param("GET", f"{PODS}/a", {}, ("get", "pods", "default", "a"), id="get"),
        pytest.param("POST", PODS, {}, ("create", "pods", "default", ""), id="create"),
        pytest.param(
            "DELETE", PODS, {}, ("deletecollection", "pods", "default", ""), id="delete all"
        ),
        pytest.param("DELETE", f"{PODS}/a", {}, ("delete", "pods", "default", "a"), id="delete"),
        pytest.param(
            "POST",
            f"{PODS}/a/binding",
            {},
            ("create", "pods/binding", "default", "a"),
            id="a subresource",
        ),
        pytest.param("GET", "/api/v1/pods", {}, ("list", "pods", "", ""), id="all namespaces"),
        pytest.param(
            "GET",
            "/api/v1/namespaces/n",
            {},
            ("get", "namespaces", "n", "n"),
            id="a namespace is in itself",
        ),
        pytest.param(
            "PUT",
            "/api/v1/namespaces/n/status",
            {},
            ("update", "namespaces/status", "n", "n"),
            id="a namespace's status",
        ),
        pytest.param("GET", "/api/v1", {}, None, id="discovery is a path"),
        pytest.param("GET", "/healthz", {}, None, id="health is a path"),
    ],
)
def test_a_call_is_mapped_to_verb_resource_namespace_and_name(method, path, query, wanted):
    found = attributes_of(Request(method=method, path=path, query=tuple(query.items())))
    if wanted is None:
        assert found == Attributes(verb=method.lower(), path=path)
    else:
        shown = (found.verb, found.whole_resource, found.namespace, found.name)
        assert (shown, found.path) == (wanted, "")


def _wants(resource: str, verb: str = "get", *, group: str = "", name: str = "") -> Attributes:
    whole, _, sub = resource.partition("/")
    return Attributes(verb=verb, group=group, resource=whole, subresource=sub, name=name)


@pytest.mark.parametrize(
    ("rule", "wanted", "answer"),
    [
        pytest.param(_rule("pods", "get"), _wants("pods"), True, id="exactly that"),
        pytest.param(_rule("pods", "get"), _wants("pods", "list"), False, id="another verb"),
        pytest.param(_rule("pods", "*"), _wants("pods", "list"), True, id="any verb"),
        pytest.param(_rule("pods", "get"), _wants("pods", group="apps"), False, id="a group"),
        pytest.param(_rule("pods", "get", group="*"), _wants("pods", group="x"), True, id="any"),
        pytest.param(_rule("pods", "get"), _wants("pods/log"), False, id="pods are not pods/log"),
        pytest.param(_rule("*/log", "get"), _wants("pods/log"), True, id="the log of anything"),
        pytest.param(_rule("*/log", "get"), _wants("pods"), False, id="but not the thing itself"),
        pytest.param(_rule("*", "get"), _wants("pods/log"), True, id="any resource"),
        pytest.param(
            _rule("pods", "get", resourceNames=["a"]), _wants("pods", name="a"), True, id="a name"
        ),
        pytest.param(
            _rule("pods", "get", resourceNames=["a"]), _wants("pods", name="b"), False, id="other"
        ),
        pytest.param(
            _rule("pods", "list", resourceNames=["a"]),
            _wants("pods", "list"),
            False,
            id="all names are more than one",
        ),
        pytest.param(
            {"nonResourceURLs": ["/a/*"], "verbs": ["get"]},
            Attributes(verb="get", path="/a/b"),
            True,
            id="a path below",
        ),
        pytest.param(
            {"nonResourceURLs": ["/a/*"], "verbs": ["get"]},
            Attributes(verb="get", path="/b"),
            False,
            id="a path elsewhere",
        ),
        pytest.param(_rule("*", "*", group="*"), Attributes(verb="get", path="/x"), False, id="no"),
    ],
)
def test_a_rule_allows_calls_of_its_verbs_resources_and_names(rule, wanted, answer):
    assert allows(rule, wanted) is answer


_words = st.sampled_from(["*", "a", "b"])
_rules = st.lists(
    st.builds(
        lambda groups, resources, verbs, names: (
            {
                "apiGroups": groups,
                "resources": resources,
                "verbs": verbs,
            }
            | ({"resourceNames": names} if names else {})
        ),
        st.lists(_words, min_size=1, max_size=2),
        st.lists(st.sampled_from(["*", "a", "b", "a/s", "*/s"]), min_size=1, max_size=2),
        st.lists(_words, min_size=1, max_size=2),
        st.lists(st.sampled_from(["n", "m"]), max_size=2),
    ),
    max_size=3,
)


@given(_rules, _rules)
@settings(max_examples=100)
def test_rules_that_cover_other_rules_allow_all_of_their_calls(held, wanted):
    if not_covered(held, wanted):
        return
    for group in ("a", "b", "c"):
        for resource in ("a", "b", "c", "a/s", "c/s"):
            for verb in ("a", "b", "c"):
                for name in ("", "n", "m", "o"):
                    asked = _wants(resource, verb, group=group, name=name)
                    if any(allows(rule, asked) for rule in wanted):
                        assert any(allows(rule, asked) for rule in held)


@given(_rules)
def test_rules_cover_themselves(rules):
    assert not_covered(rules, rules) == []


@pytest.mark.parametrize(
    ("method", "path", "message", "details"),
    [
        pytest.param(
            "GET",
            PODS,
            'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the '
            'namespace "default"',
            {"kind": "pods"},
            id="a list in a namespace",
        ),
        pytest.param(
            "GET",
            "/api/v1/nodes/n",
            'nodes "n" is forbidden: User "jane" cannot get resource "nodes" in API group "" at '
            "the cluster scope",
            {"name": "n", "kind": "nodes"},
            id="one of the cluster",
        ),
        pytest.param(
            "PATCH",
            "/apis/apps/v1/namespaces/x/deployments/web/scale",
            'deployments.apps "web" is forbidden: User "jane" cannot patch resource '
            '"deployments/scale" in API group "apps" in the namespace "x"',
            {"name": "web", "group": "apps", "kind": "deployments"},
            id="a subresource of a group",
        ),
        pytest.param(
            "GET", "/metrics", 'forbidden: User "jane" cannot get path "/metrics"', {}, id="a path"
        ),
    ],
)
async def test_a_refusal_names_user_verb_and_resource(method, path, message, details):
    cluster = Cluster(rbac=True)
    status, body = await cluster.call(method, path, user=JANE)
    assert (status, body["reason"], body["message"]) == (403, "Forbidden", message)
    assert body["details"] == details


async def test_a_role_binding_allows_calls_in_its_namespace_until_deleted():
    cluster = Cluster(rbac=True)
    await cluster.ok("POST", "/api/v1/namespaces", namespace("other"))
    await cluster.ok("POST", ROLES, _object("Role", "reader", rules=[_rule("pods", "get list")]))
    made = await cluster.ok("POST", ROLE_BINDINGS, _binding("b", "Role/reader", "jane"))
    assert made["subjects"][0]["apiGroup"] == "rbac.authorization.k8s.io"

    async def codes() -> tuple[int, ...]:
        calls = (
            ("GET", PODS, JANE),
            ("POST", PODS, JANE),
            ("GET", "/api/v1/namespaces/other/pods", JANE),
            ("GET", "/api/v1/pods", JANE),
            ("GET", PODS, User("joe")),
        )
        return tuple([(await cluster.call(m, p, pod(), user=u))[0] for m, p, u in calls])

    assert await codes() == (200, 403, 403, 403, 403)
    await cluster.ok("DELETE", f"{ROLE_BINDINGS}/b")
    assert await codes() == (403,) * 5


@pytest.mark.parametrize(
    ("method", "form", "query"),
    [
        pytest.param("PUT", "application/json", {}, id="a PUT"),
        pytest.param(
            "PATCH", "application/apply-patch+yaml", {"fieldManager": "me"}, id="an apply"
        ),
    ],
)
async def test_a_call_that_would_create_needs_the_verb_create(method, form, query):
    cluster = Cluster(rbac=True)
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}}
    rules = [_rule("leases", "update patch", group="coordination.k8s.io")]
    await cluster.ok("POST", ROLES, _object("Role", "changer", rules=rules))
    await cluster.ok("POST", ROLE_BINDINGS, _binding("b", "Role/changer", "jane"))

    options = {"query": query, "user": JANE, "content_type": form}
    status, refused = await cluster.call(method, path, lease, **options)
    assert (status, refused["message"]) == (
        403,
        'leases.coordination.k8s.io "a" is forbidden: User "jane" cannot create resource "leases" '
        'in API group "coordination.k8s.io" in the namespace "default"',
    )
    rules[0]["verbs"].append("create")
    await cluster.ok("PUT", f"{ROLES}/changer", _object("Role", "changer", rules=rules))
    assert (await cluster.call(method, path, lease, **options))[0] == 201


@pytest.mark.parametrize(
    ("subject", "user", "answer"),
    [
        pytest.param({"kind": "Group", "name": "dev"}, User("x", ("dev",)), 200, id="a group"),
        pytest.param({"kind": "Group", "name": "dev"}, User("dev"), 403, id="no user of that name"),
        pytest.param(
            {"kind": "Group", "name": "system:authenticated"},
            User("x"),
            200,
            id="the group of all authenticated users",
        ),
        pytest.param(
            {"kind": "ServiceAccount", "name": "s", "namespace": "k"},
            User("system:serviceaccount:k:s"),
            200,
            id="a service account",
        ),
        pytest.param(
            {"kind": "ServiceAccount", "name": "s", "namespace": "k"},
            User("system:serviceaccount:default:s"),
            403,
            id="not its namesake elsewhere",
        ),
    ],
)
async def test_subjects_are_users_groups_and_service_accounts(subject, user, answer):
    cluster = Cluster(rbac=True)
    binding = _binding("b", "ClusterRole/view", kind="ClusterRoleBinding")
    await cluster.ok("POST", f"{RBAC}/clusterrolebindings", binding | {"subjects": [subject]})
    assert (await cluster.call("GET", PODS, user=user))[0] == answer


async def test_an_aggregated_role_follows_the_roles_its_selectors_match():
    cluster = Cluster(rbac=True)
    path = f"{RBAC}/clusterroles"
    rules = {
        name: (await cluster.ok("GET", f"{path}/{name}"))["rules"]
        for name in ("view", "edit", "admin", "system:aggregate-to-view")
    }
    assert rules["view"] == rules["system:aggregate-to-view"]
    assert all(rule in rules["edit"] for rule in rules["view"])
    assert all(rule in rules["admin"] for rule in rules["edit"])
    cars = _object("ClusterRole", "cars", rules=[_rule("cars", "get", group="example.com")])
    cars["metadata"]["labels"] = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    await cluster.ok("POST", path, cars)
    for name in ("view", "edit", "admin"):
        assert cars["rules"][0] in (await cluster.ok("GET", f"{path}/{name}"))["rules"]
    await cluster.ok("DELETE", f"{path}/cars")
    for name in ("view", "edit", "admin"):
        assert (await cluster.ok("GET", f"{path}/{name}"))["rules"] == rules[name]


def _sum(*expressions: dict[str, Any]) -> dict[str, Any]:
    role = _object("ClusterRole", "sum", rules=[])
    return role | {
        "aggregationRule": {"clusterRoleSelectors": [{"matchExpressions": list(expressions)}]}
    }


async def test_an_aggregated_role_selects_by_expressions_too():
    cluster, path = Cluster(rbac=True), f"{RBAC}/clusterroles"
    car = _object("ClusterRole", "car", rules=[_rule("cars", "get", group="example.com")])
    bus = _object("ClusterRole", "bus", rules=[_rule("buses", "get", group="example.com")])
    car["metadata"]["labels"], bus["metadata"]["labels"] = {"wheels": "4"}, {"wheels": "6"}
    for role in (car, bus):
        await cluster.ok("POST", path, role)
    few = {"key": "wheels", "operator": "NotIn", "values": ["6"]}
    await cluster.ok("POST", path, _sum({"key": "wheels", "operator": "Exists"}, few))
    assert (await cluster.ok("GET", f"{path}/sum"))["rules"] == car["rules"]


async def test_selectors_of_an_aggregated_role_are_checked():
    cluster = Cluster(rbac=True)
    wrong = _sum({"key": "wheels", "operator": "Has"})
    code, answer = await cluster.call("POST", f"{RBAC}/clusterroles", wrong)
    place = "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].operator"
    assert (code, answer["message"].partition("is invalid: ")[2]) == (
        422,
        f'{place}: Invalid value: "Has": not a valid selector operator',
    )


async def _jane_writes_roles(cluster: Cluster, *more: dict[str, Any]) -> None:
    rules = [
        _rule("roles rolebindings", "*", group="rbac.authorization.k8s.io"),
        _rule("pods", "get list"),
        *more,
    ]
    await cluster.ok("POST", ROLES, _object("Role", "writer", rules=rules))
    await cluster.ok("POST", ROLE_BINDINGS, _binding("w", "Role/writer", "jane"))


async def test_a_user_cannot_grant_rights_beyond_their_own():
    cluster = Cluster(rbac=True)
    rules = [_rule("roles rolebindings", "create patch update", group="rbac.authorization.k8s.io")]
    rules.append(_rule("pods", "get list"))
    await cluster.ok("POST", ROLES, _object("Role", "writer", rules=rules))
    await cluster.ok("POST", ROLE_BINDINGS, _binding("w", "Role/writer", "jane"))
    fine = _object("Role", "fine", rules=[_rule("pods", "get")])
    await cluster.ok("POST", ROLES, fine, user=JANE)
    more = [_rule("pods secrets", "get")]
    status, body = await cluster.call("POST", ROLES, _object("Role", "x", rules=more), user=JANE)
    expected = (
        'roles.rbac.authorization.k8s.io "x" is forbidden: user "jane" '
        '(groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently '
        'held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    )
    assert (status, body["message"]) == (403, expected)
    patch = {"rules": more}
    merge = "application/merge-patch+json"
    refused = await cluster.call("PATCH", f"{ROLES}/fine", patch, user=JANE, content_type=merge)
    assert (refused[0], 'Resources:["secrets"]' in refused[1]["message"]) == (403, True)
    # The same by a binding; of a role she covers it is fine.
    bad, good = _binding("bad", "ClusterRole/view", "jane"), _binding("good", "Role/fine", "joe")
    assert (await cluster.call("POST", ROLE_BINDINGS, bad, user=JANE))[0] == 403
    await cluster.ok("POST", ROLE_BINDINGS, good, user=JANE)
    missing = _binding("m", "Role/nosuch", "joe")
    assert (await cluster.call("POST", ROLE_BINDINGS, missing, user=JANE))[0] == 404


async def test_escalate_and_bind_are_verbs_that_lift_the_rule():
    cluster = Cluster(rbac=True)
    await _jane_writes_roles(cluster)
    more = _object("Role", "x", rules=[_rule("secrets", "get")])
    await cluster.ok("POST", ROLES, more, user=JANE)
    await cluster.ok("POST", ROLE_BINDINGS, _binding("y", "Role/x", "jane"), user=JANE)


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        pytest.param(
            ROLES,
            _object("Role", "x", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": []}]),
            "rules[0].verbs: Required value: verbs must contain at least one value",
            id="no verb",
        ),
        pytest.param(
            ROLES,
            _object("Role", "x", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}]),
            'rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to '
            "non-resource URLs",
            id="a path in a namespace",
        ),
        pytest.param(
            f"{RBAC}/clusterrolebindings",
            _binding("x", "Role/r", "jane", kind="ClusterRoleBinding"),
            'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
            id="a role of a namespace for the cluster",
        ),
        pytest.param(
            f"{RBAC}/clusterroles",
            _object(
                "ClusterRole",
                "x",
                rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"], "resourceNames": ["a"]}],
            ),
            'rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular '
            "resources and non-resource URLs",
            id="a path and the name of an object",
        ),
        pytest.param(
            ROLE_BINDINGS,
            _binding("x", "Role/r") | {"subjects": [{"kind": "ServiceAccount", "name": "No One"}]},
            'subjects[0].name: Invalid value: "No One": a lowercase RFC 1123 subdomain must',
            id="a service account that cannot exist",
        ),
    ],
)
async def test_faulty_roles_and_bindings_are_refused(path, body, message):
    status, answer = await Cluster().call("POST", path, body)
    assert (status, message in answer["message"]) == (422, True), answer["message"]


async def test_the_role_of_a_binding_never_changes():
    cluster = Cluster()
    path = f"{RBAC}/clusterrolebindings"
    made = await cluster.ok(
        "POST", path, _binding("b", "ClusterRole/view", "x", kind="ClusterRoleBinding")
    )
    made["roleRef"]["name"] = "admin"
    status, answer = await cluster.call("PUT", f"{path}/b", made)
    assert (status, "cannot change roleRef" in answer["message"]) == (422, True)


@pytest.mark.parametrize(
    ("user", "kind", "spec", "status"),
    [
        pytest.param(
            SCHEDULER,
            "SelfSubjectAccessReview",
            {"resourceAttributes": {"verb": "list", "resource": "pods"}},
            {
                "allowed": True,
                "reason": 'RBAC: allowed by ClusterRoleBinding "system:kube-scheduler" of '
                'ClusterRole "system:kube-scheduler" to User "system:kube-scheduler"',
            },
            id="the scheduler lists pods",
        ),
        pytest.param(
            SCHEDULER,
            "SelfSubjectAccessReview",
            {"resourceAttributes": {"verb": "list", "resource": "secrets"}},
            {"allowed": False},
            id="but no secrets",
        ),
        pytest.param(
            User("admin", ("system:masters",)),
            "SubjectAccessReview",
            {
                "user": "system:kube-scheduler",
                "resourceAttributes": {
                    "verb": "create",
                    "resource": "pods",
                    "subresource": "binding",
                    "namespace": "x",
                    "name": "a",
                },
            },
            {
                "allowed": True,
                "reason": 'RBAC: allowed by ClusterRoleBinding "system:kube-scheduler" of '
                'ClusterRole "system:kube-scheduler" to User "system:kube-scheduler"',
            },
            id="a review of another user",
        ),
        pytest.param(
            JANE,
            "SelfSubjectAccessReview",
            {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}},
            {"allowed": False},
            id="a path",
        ),
    ],
)
async def test_access_reviews_answer_like_the_authorizer(user, kind, spec, status):
    cluster = Cluster(rbac=True)
    version = cluster.server.store.version
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    answer = await cluster.ok("POST", f"{REVIEWS}/{kind.lower()}s", body, user=user)
    assert (answer["kind"], answer["spec"], answer["status"]) == (kind, spec, status)
    assert cluster.server.store.version == version


async def test_without_rbac_reviews_say_that_everything_is_allowed():
    body = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}}
    answer = await Cluster().ok("POST", f"{REVIEWS}/selfsubjectaccessreviews", body, user=JANE)
    assert answer["status"] == {"allowed": True}


async def test_a_rules_review_lists_the_rules_of_every_authenticated_user():
    body = {"spec": {"namespace": "default"}}
    path = f"{REVIEWS}/selfsubjectrulesreviews"
    status = (await Cluster(rbac=True).ok("POST", path, body, user=JANE))["status"]
    assert [rule["resources"] for rule in status["resourceRules"]] == [
        ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        ["selfsubjectreviews"],
    ]
    assert "/version" in [p for rule in status["nonResourceRules"] for p in rule["nonResourceURLs"]]


async def test_a_subject_review_names_the_caller():
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = await Cluster(rbac=True).ok("POST", path, {}, user=User("jane", ("dev",)))
    assert answer["status"]["userInfo"] == {
        "username": "jane",
        "groups": ["dev", "system:authenticated"],
    }


async def test_the_scheduler_may_write_only_its_own_leases():
    cluster = Cluster(rbac=True)
    path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
    codes = [
        (await cluster.call("GET", f"{path}/{name}", user=SCHEDULER))[0]
        for name in ("kube-scheduler", "kube-controller-manager")
    ]
    assert codes == [404, 403]


@pytest.mark.parametrize("field", ["allocation", "reservedFor"])
async def test_a_claim_is_allocated_or_reserved_only_with_the_right_to_bind_claims(field):
    group, merge = "resource.k8s.io", "application/merge-patch+json"
    cluster = Cluster(rbac=True)
    path = f"/apis/{group}/v1/namespaces/default/resourceclaims"
    claim = {
        "apiVersion": f"{group}/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}},
    }
    await cluster.ok("POST", path, claim)
    rules = [_rule("resourceclaims resourceclaims/status", "get patch", group=group)]
    await cluster.ok("POST", ROLES, _object("Role", "some", rules=rules))
    await cluster.ok("POST", ROLE_BINDINGS, _binding("some", "Role/some", "jane"))

    async def patched(user: User | None, **status: Any) -> Any:
        options: dict[str, Any] = {"user": user} if user else {}
        return await cluster.call(
            "PATCH", f"{path}/c/status", {"status": status}, content_type=merge, **options
        )

    allocation = {
        "devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "x"}]}
    }
    changed: dict[str, Any] = {"allocation": allocation}
    if field == "reservedFor":
        assert (await patched(None, allocation=allocation))[0] == 200
        changed = {field: [{"resource": "pods", "name": "p", "uid": "1"}]}
    condition = {"type": "Ready", "status": "True", "reason": "R", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    report = {"driver": "d", "pool": "p", "device": "x", "conditions": [condition]}
    # Only allocated devices have reports.
    assert (await patched(JANE, devices=[report] if field == "reservedFor" else []))[0] == 200
    status, body = await patched(JANE, **changed)
    assert status == 403
    assert 'cannot patch resource "resourceclaims/binding"' in body["message"]
    more = [*rules, _rule("resourceclaims/binding", "patch", group=group)]
    await cluster.ok("PUT", f"{ROLES}/some", _object("Role", "some", rules=more))
    assert (await patched(JANE, **changed))[0] == 200
