"""The variable ``authorizer`` in policies and match conditions: decided by the server's roles.

Expected decisions follow kubernetes v1.36 apiserver/pkg/cel/library ``authz.go``.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage_sandbox.apiserver.wire.requests import User
from sandbox.tests.apiserver.harness import CONFIG_MAPS, Cluster, config_map
from sandbox.tests.apiserver.test_admission_policies import BINDINGS, POLICIES, binding, policy
from sandbox.tests.apiserver.webhooks import (
    VALIDATING,
    Programs,
    allow,
    configuration,
    hook,
)

RBAC = "/apis/rbac.authorization.k8s.io/v1"
JANE = User("jane")
RULES = [
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "delete"]},
    {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["*"]},
    {"nonResourceURLs": ["/healthz"], "verbs": ["get"]},
]
SUBJECTS = [
    {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"},
    {"kind": "ServiceAccount", "name": "robot", "namespace": "default"},
]


async def with_roles(cluster: Cluster) -> Cluster:
    await cluster.ok("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "r"}, "rules": RULES})
    role = {"kind": "ClusterRole", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
    bound = {"metadata": {"name": "r"}, "roleRef": role, "subjects": SUBJECTS}
    await cluster.ok("POST", f"{RBAC}/clusterrolebindings", bound)
    return cluster


CORE = "authorizer.group('').resource('%s')"
SCALE = "authorizer.group('apps').resource('deployments').subresource('scale')"
ROBOT = "authorizer.serviceAccount('default', '%s').group('').resource('configmaps')"
HOLDS = [
    "authorizer.requestResource.check('create').allowed()",
    "!authorizer.requestResource.check('update').allowed()",
    f"{CORE % 'configmaps'}.namespace('x').name('y').check('delete').allowed()",
    f"!{CORE % 'pods'}.check('get').allowed()",
    f"{SCALE}.namespace('default').check('patch').allowed()",
    f"{ROBOT % 'robot'}.check('create').allowed()",
    f"!{ROBOT % 'other'}.check('create').allowed()",
    "authorizer.path('/healthz').check('get').allowed()",
    "!authorizer.path('/metrics').check('get').allowed()",
    f"{CORE % 'configmaps'}.labelSelector('a=b').fieldSelector('c=d').check('create').allowed()",
    f"{CORE % 'configmaps'}.check('create').reason().startsWith('RBAC: allowed by')",
    f"!{CORE % 'pods'}.check('get').errored() && {CORE % 'pods'}.check('get').error() == ''",
]


async def refused(cluster: Cluster, user: User = JANE) -> str:
    """Create an object as a user; return the refusal, empty if there is none."""
    status, answer = await cluster.call("POST", CONFIG_MAPS, config_map(), user=user)
    return answer["message"] if status != 201 else ""


@pytest.mark.parametrize("expression", HOLDS)
async def test_a_policy_asks_about_rights(expression: str):
    cluster = await with_roles(Cluster(rbac=True))
    reply = await cluster.reply("POST", POLICIES, policy(expression))
    assert "Warning" not in dict(reply.headers)
    await cluster.ok("POST", BINDINGS, binding())
    assert await refused(cluster) == ""


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (f"{CORE % ''}.check('get').allowed()", "resource must not be empty"),
        ("authorizer.path(' ').check('get').allowed()", "path must not be empty"),
        (
            "authorizer.serviceAccount('Not@', 'a').path('/').check('get').allowed()",
            "Invalid service account namespace",
        ),
        ("authorizer.group('').check('get').allowed()", "no such overload"),
        (f"{CORE % 'pods'}.allowed()", "no such overload"),
        (
            " && ".join(f"!{CORE % 'pods'}.check('{verb}').allowed()" for verb in "abc"),
            "cost limit exceeded",
        ),
    ],
)
async def test_a_check_that_cannot_be_made_refuses_the_write(expression: str, why: str):
    cluster = await with_roles(Cluster(rbac=True))
    await cluster.ok("POST", POLICIES, policy(expression))
    await cluster.ok("POST", BINDINGS, binding())
    assert why in await refused(cluster)


async def test_without_roles_everybody_may_do_everything():
    cluster = Cluster()
    await cluster.ok("POST", POLICIES, policy(f"!{CORE % 'pods'}.check('get').allowed()"))
    await cluster.ok("POST", BINDINGS, binding())
    assert "failed expression" in await refused(cluster)


async def test_a_webhook_is_asked_as_the_rights_of_the_caller_say():
    programs = Programs(a=allow)
    cluster = await with_roles(Cluster(rbac=True))
    cluster.server.use_sender(programs)
    breakglass: Any = {
        "name": "c",
        "expression": "!authorizer.group('example.com').resource('x').check('break').allowed()",
    }
    await cluster.ok("POST", VALIDATING, configuration(hook(matchConditions=[breakglass])))
    admin = User("root", ("system:masters",))
    assert await refused(cluster, admin) == ""
    assert programs.requests == []
    await cluster.ok("DELETE", f"{CONFIG_MAPS}/a", user=admin)
    assert await refused(cluster) == ""
    assert len(programs.requests) == 1
