"""FlowSchemas: the headers that tell how a call was classified, and the level of a schema.

Does not cover: the order in which calls are answered (`test_fairness`).
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage_sandbox.apiserver.bootstrap import bootstrap
from moorage_sandbox.apiserver.wire.requests import User
from sandbox.tests.apiserver.harness import ADMIN, CONFIG_MAPS, Cluster

GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMAS = f"{GROUP}/flowschemas"
LEVELS = f"{GROUP}/prioritylevelconfigurations"
EVERY_PATH = {"nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}
CONFIG_MAPS_OF_DEFAULT = {
    "resourceRules": [
        {
            "verbs": ["list"],
            "apiGroups": [""],
            "resources": ["configmaps"],
            "namespaces": ["default"],
        }
    ]
}


def level(name: str = "l") -> dict[str, Any]:
    limited = {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}


def schema(name: str = "s", precedence: int = 1000, calls: Any = EVERY_PATH) -> dict[str, Any]:
    """Return a schema for calls of the user ``noxu``."""
    subjects = [{"kind": "User", "user": {"name": "noxu"}}]
    spec = {
        "matchingPrecedence": precedence,
        "priorityLevelConfiguration": {"name": "l"},
        "rules": [{"subjects": subjects, **calls}],
    }
    return {"metadata": {"name": name}, "spec": spec}


@pytest.fixture
def cluster() -> Cluster:
    """A cluster with the objects of one that listens."""
    found = Cluster(bootstrapped=False)
    bootstrap(found.server, authority_certificate=b"PEM")
    return found


async def classified(cluster: Cluster, path: str = "/version", **options: Any) -> tuple[str, str]:
    """Return the names of the schema and of the level that the headers of an answer tell."""
    headers = dict((await cluster.reply("GET", path, **options)).headers)
    if not headers:
        return ("", "")
    told = []
    for name, collection in (("FlowSchema", SCHEMAS), ("PriorityLevel", LEVELS)):
        items = (await cluster.ok("GET", collection))["items"]
        names = {each["metadata"]["uid"]: each["metadata"]["name"] for each in items}
        told.append(names[headers[f"X-Kubernetes-PF-{name}-UID"]])
    return told[0], told[1]


async def test_answers_have_no_headers_until_a_client_stores_a_schema(cluster):
    assert await cluster.names(SCHEMAS) == [
        "catch-all",
        "endpoint-controller",
        "exempt",
        "global-default",
        "kube-controller-manager",
        "kube-scheduler",
        "kube-system-service-accounts",
        "probes",
        "service-accounts",
        "system-leader-election",
        "system-node-high",
        "system-nodes",
        "workload-leader-election",
    ]
    assert await cluster.names(LEVELS) == [
        "catch-all",
        "exempt",
        "global-default",
        "leader-election",
        "node-high",
        "system",
        "workload-high",
        "workload-low",
    ]
    assert await classified(cluster, user=User("noxu", ())) == ("", "")


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param(User("noxu", ()), ("s", "l"), id="the user of the schema"),
        pytest.param(User("foo", ()), ("global-default", "global-default"), id="another user"),
        pytest.param(None, ("global-default", "global-default"), id="nobody"),
        pytest.param(ADMIN, ("exempt", "exempt"), id="an administrator"),
    ],
)
async def test_a_call_is_classified_by_its_user(cluster, user, expected):
    await cluster.ok("POST", LEVELS, level())
    await cluster.ok("POST", SCHEMAS, schema())
    assert await classified(cluster, user=user) == expected


async def test_a_call_is_classified_by_the_user_that_it_acts_as(cluster):
    await cluster.ok("POST", LEVELS, level())
    await cluster.ok("POST", SCHEMAS, schema())
    assert await classified(cluster, impersonate_user="noxu") == ("s", "l")


LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
NODES = ("system:nodes",)
ACCOUNTS = ("system:serviceaccounts",)


@pytest.mark.parametrize(
    ("user", "path", "expected"),
    [
        (User("system:kube-scheduler", ()), CONFIG_MAPS, ("kube-scheduler", "workload-high")),
        (
            User("system:kube-controller-manager", ()),
            CONFIG_MAPS,
            ("kube-controller-manager", "workload-high"),
        ),
        (User("system:node:a", NODES), "/api/v1/nodes", ("system-node-high", "node-high")),
        (User("system:node:a", NODES), LEASES, ("system-node-high", "node-high")),
        (User("system:node:a", NODES), CONFIG_MAPS, ("system-nodes", "system")),
        (
            User("system:serviceaccount:kube-system:a", ACCOUNTS),
            CONFIG_MAPS,
            ("kube-system-service-accounts", "workload-high"),
        ),
        (
            User("system:serviceaccount:default:a", ACCOUNTS),
            CONFIG_MAPS,
            ("service-accounts", "workload-low"),
        ),
        (User("a", ()), "/readyz", ("probes", "exempt")),
    ],
)
async def test_a_new_cluster_classifies_as_kube_apiserver(cluster, user, path, expected):
    await cluster.ok("POST", LEVELS, level())
    await cluster.ok("POST", SCHEMAS, schema())
    assert await classified(cluster, path, user=user) == expected


async def test_the_lowest_precedence_counts_and_then_the_name(cluster):
    await cluster.ok("POST", LEVELS, level())
    for name, precedence in (("c", 900), ("b", 900), ("a", 1000)):
        await cluster.ok("POST", SCHEMAS, schema(name, precedence=precedence))
    assert await classified(cluster, user=User("noxu", ())) == ("b", "l")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (CONFIG_MAPS, "s"),
        (CONFIG_MAPS.replace("default", "kube-system"), "global-default"),
        ("/api/v1/configmaps", "global-default"),
        (f"{CONFIG_MAPS}/a", "global-default"),
        ("/version", "global-default"),
    ],
)
async def test_rules_about_resources_name_verbs_and_namespaces(cluster, path, expected):
    await cluster.ok("POST", LEVELS, level())
    await cluster.ok("POST", SCHEMAS, schema(calls=CONFIG_MAPS_OF_DEFAULT))
    assert (await classified(cluster, path, user=User("noxu", ())))[0] == expected


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ({"kind": "Group", "group": {"name": "g"}}, "s"),
        ({"kind": "Group", "group": {"name": "system:authenticated"}}, "s"),
        ({"kind": "Group", "group": {"name": "h"}}, "global-default"),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "a"}}, "s"),
        ({"kind": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "*"}}, "s"),
        (
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "m", "name": "*"}},
            "global-default",
        ),
    ],
)
async def test_subjects_are_users_groups_and_service_accounts(cluster, subject, expected):
    await cluster.ok("POST", LEVELS, level())
    wanted = schema()
    wanted["spec"]["rules"][0]["subjects"] = [subject]
    await cluster.ok("POST", SCHEMAS, wanted)
    user = User("system:serviceaccount:n:a", ("g",))
    assert (await classified(cluster, user=user))[0] == expected


@pytest.mark.parametrize(
    ("has_level", "status", "reason"), [(True, "False", "Found"), (False, "True", "NotFound")]
)
async def test_a_schema_tells_whether_its_level_exists(cluster, has_level, status, reason):
    if has_level:
        await cluster.ok("POST", LEVELS, level())
    made = await cluster.ok("POST", SCHEMAS, schema())
    (condition,) = made["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "Dangling",
        status,
        reason,
    )
