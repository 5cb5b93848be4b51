"""Webhooks and policies are asked about each object of a namespace that goes."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from moorage.base.aio import sleep
from sandbox.tests.apiserver.crd import DEFINITIONS, definition
from sandbox.tests.apiserver.harness import MERGE, Cluster, config_map, namespace, pod, run_virtual
from sandbox.tests.apiserver.test_admission_policies import BINDINGS, POLICIES
from sandbox.tests.apiserver.webhooks import (
    ANY,
    VALIDATING,
    Programs,
    allow,
    cluster_with,
    configuration,
    hook,
)

TEAM = "/api/v1/namespaces/team"
DELETES = ANY | {"operations": ["DELETE"]}


async def with_team(programs: Programs, **fields: Any) -> Cluster:
    cluster = cluster_with(programs)
    await cluster.ok("POST", "/api/v1/namespaces", namespace("team"))
    await cluster.ok("POST", f"{TEAM}/pods", pod())
    await cluster.ok("POST", f"{TEAM}/configmaps", config_map())
    await cluster.ok("POST", VALIDATING, configuration(hook(**{"rules": [DELETES]} | fields)))
    return cluster


async def gone(cluster: Cluster) -> bool:
    for _ in range(1000):
        if "team" not in await cluster.names("/api/v1/namespaces"):
            return True
        await sleep(0)
    return False


async def content_condition(cluster: Cluster) -> tuple[str, str, str]:
    found = (await cluster.ok("GET", TEAM))["status"]["conditions"]
    (wanted,) = [each for each in found if each["type"] == "NamespaceDeletionContentFailure"]
    return wanted["status"], wanted["reason"], wanted["message"]


def refuse(request: dict[str, Any]) -> dict[str, Any]:
    """Refuse to delete config maps."""
    kept = request["kind"]["kind"] == "ConfigMap"
    return {"allowed": not kept, "status": {"message": "it stays"}}


async def test_a_webhook_reviews_each_object_of_a_namespace_that_goes():
    programs = Programs(a=allow)
    cluster = await with_team(programs)
    await cluster.ok("POST", DEFINITIONS, definition())
    cars = "/apis/example.com/v1/namespaces/team/cars"
    car = {"apiVersion": "example.com/v1", "kind": "Car", "metadata": {"name": "c"}}
    await cluster.ok("POST", cars, car | {"spec": {"color": "red"}})
    await cluster.ok("DELETE", TEAM)
    assert await gone(cluster)
    about = [
        (each["kind"]["kind"], each["oldObject"]["metadata"]["name"], each["operation"])
        for each in programs.asked("a")
    ]
    assert about[0] == ("Namespace", "team", "DELETE")
    assert about[1] == ("Pod", "a", "DELETE"), "pods go first"
    assert {("ConfigMap", "a", "DELETE"), ("Car", "c", "DELETE")} <= {*about}
    user = programs.asked("a")[1]["userInfo"]
    assert user["username"] == "system:serviceaccount:kube-system:namespace-controller"
    assert "system:serviceaccounts:kube-system" in user["groups"]
    assert programs.asked("a")[1]["options"]["propagationPolicy"] == "Background"


def test_a_refused_object_keeps_its_namespace_and_is_tried_again():
    async def play() -> None:
        programs = Programs(a=refuse)
        cluster = await with_team(programs)
        await cluster.ok("POST", f"{TEAM}/secrets", {"metadata": {"name": "s"}})
        await cluster.ok("DELETE", TEAM)
        assert not await gone(cluster)
        assert await cluster.names(f"{TEAM}/secrets") == [], "other kinds are deleted"
        status, reason, message = await content_condition(cluster)
        assert (status, reason) == ("True", "ContentDeletionFailed")
        assert message == (
            "Failed to delete all resource types, 1 remaining: admission webhook "
            '"a.example.com" denied the request: it stays'
        )
        loop, tries = asyncio.get_running_loop(), []
        for _ in range(5):
            asked = len(programs.asked("a"))
            while len(programs.asked("a")) == asked:
                await sleep(0.5)
            tries.append(round(loop.time()))
        waits = [after - before for before, after in pairwise(tries)]
        assert waits == [10, 20, 40, 60]
        programs.replies["a.example.com"] = allow
        await sleep(60)
        assert await gone(cluster)

    run_virtual(play())


def test_a_refused_pod_keeps_all_other_objects():
    async def play() -> None:
        stays = {"allowed": False}
        answer = Programs(a=lambda each: stays if each["kind"]["kind"] == "Pod" else allow(each))
        cluster = await with_team(answer)
        await cluster.ok("DELETE", TEAM)
        assert not await gone(cluster)
        assert "a" in await cluster.names(f"{TEAM}/configmaps")
        await cluster.ok("PATCH", f"{VALIDATING}/hooks", {"webhooks": None}, content_type=MERGE)
        await cluster.ok("DELETE", f"{TEAM}/pods/a")
        assert await gone(cluster), "nobody waits for the next try"
        await cluster.ok("POST", "/api/v1/namespaces", namespace("team"))
        await cluster.ok("POST", f"{TEAM}/configmaps", config_map())
        await sleep(200)
        assert "a" in await cluster.names(f"{TEAM}/configmaps"), "a new namespace of the name stays"

    run_virtual(play())


def test_a_webhook_that_gives_no_answer_keeps_a_namespace_unless_it_may_be_ignored():
    async def play(policy: str) -> bool:
        reviewed = DELETES | {"resources": ["configmaps"]}
        cluster = await with_team(Programs(), rules=[reviewed], failurePolicy=policy)
        await cluster.ok("DELETE", TEAM)
        return await gone(cluster)

    assert run_virtual(play("Ignore"))
    assert not run_virtual(play("Fail"))


async def test_a_policy_reviews_each_object_of_a_namespace_that_goes():
    cluster = Cluster()
    await cluster.ok("POST", "/api/v1/namespaces", namespace("team"))
    await cluster.ok("POST", f"{TEAM}/configmaps", config_map())
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"]}
    rules = [rule | {"resources": ["configmaps"]}]
    validation = {"expression": "request.userInfo.username == 'nobody'", "message": "it stays"}
    spec = {"matchConstraints": {"resourceRules": rules}, "validations": [validation]}
    await cluster.ok("POST", POLICIES, {"metadata": {"name": "p"}, "spec": spec})
    binding = {"policyName": "p", "validationActions": ["Deny"]}
    await cluster.ok("POST", BINDINGS, {"metadata": {"name": "b"}, "spec": binding})
    await cluster.ok("DELETE", TEAM)
    assert not await gone(cluster)
    assert "it stays" in (await content_condition(cluster))[2]
