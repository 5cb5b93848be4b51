"""Admission webhooks: which are asked, in which order, and what their answers do.

The programs are called without a network here; see `test_webhooks_https` for TLS and bad answers.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from moorage.base import aio
from moorage.base.aio import TaskOwner
from sandbox.tests.apiserver.crd import CARS, DEFINITIONS, car, definition
from sandbox.tests.apiserver.harness import (
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE,
    PODS,
    Cluster,
    binding,
    config_map,
    namespace,
    pod,
    run_virtual,
    unowned,
)
from sandbox.tests.apiserver.webhooks import (
    ANY,
    MUTATING,
    VALIDATING,
    Programs,
    add,
    allow,
    cluster_with,
    configuration,
    hook,
    patch,
)


def deny(request: dict[str, Any]) -> dict[str, Any]:
    return {"allowed": False, "status": {"message": "not today", "code": 403}}


async def test_a_webhook_changes_an_object_before_it_is_stored():
    programs = Programs(a=lambda request: patch(add("b", "2")))
    cluster = cluster_with(programs)
    await cluster.ok("POST", MUTATING, configuration(hook()))
    made = await cluster.ok("POST", CONFIG_MAPS, config_map(a="1"))
    assert made["data"] == {"a": "1", "b": "2"}
    (request,) = programs.asked("a")
    assert request.pop("uid") != made["metadata"]["uid"]
    request["object"] = unowned(request["object"])
    assert request == {
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "a",
        "namespace": "default",
        "operation": "CREATE",
        "userInfo": {
            "username": "kubernetes-admin",
            "groups": ["system:masters", "system:authenticated"],
        },
        "object": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a", "namespace": "default"},
            "data": {"a": "1"},
        },
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }


async def test_a_webhook_refuses_a_write_by_its_own_words():
    cluster = cluster_with(Programs(a=deny))
    await cluster.ok("POST", VALIDATING, configuration(hook()))
    status, answer = await cluster.call("POST", CONFIG_MAPS, config_map())
    assert status == 403
    assert answer["message"] == 'admission webhook "a.example.com" denied the request: not today'
    assert "a" not in await cluster.names(CONFIG_MAPS)


async def test_webhooks_are_asked_by_the_name_of_their_configuration_and_again_if_needed():
    programs = Programs(
        a=lambda request: patch(add("a", "1")),
        b=lambda request: patch(add("b", "1")),
        c=allow,
    )
    cluster = cluster_with(programs)
    again = {"reinvocationPolicy": "IfNeeded"}
    first = configuration(hook("a.example.com", **again), name="1")
    second = configuration(hook("b.example.com"), hook("c.example.com", **again), name="2")
    await cluster.ok("POST", MUTATING, second)
    await cluster.ok("POST", MUTATING, first)
    await cluster.ok("POST", CONFIG_MAPS, config_map(z="1"))
    assert [host[0] for host, _ in programs.requests] == ["a", "b", "c", "a"]
    assert programs.asked("a")[1]["object"]["data"] == {"a": "1", "b": "1", "z": "1"}


WRITES = [
    pytest.param("PUT", "", config_map(a="2"), "UPDATE", "UpdateOptions", id="an update"),
    pytest.param("PATCH", "", {"data": {"a": "2"}}, "UPDATE", "UpdateOptions", id="a patch"),
    pytest.param("DELETE", "", None, "DELETE", "DeleteOptions", id="a delete"),
]


@pytest.mark.parametrize(("method", "part", "body", "operation", "options"), WRITES)
async def test_each_write_is_reviewed(
    method: str, part: str, body: Any, operation: str, options: str
):
    programs = Programs(a=allow, b=allow)
    cluster = cluster_with(programs)
    await cluster.ok("POST", CONFIG_MAPS, config_map(a="1"))
    await cluster.ok("POST", MUTATING, configuration(hook()))
    await cluster.ok("POST", VALIDATING, configuration(hook("b.example.com")))
    form = {"content_type": MERGE} if method == "PATCH" else {}
    await cluster.ok(method, f"{CONFIG_MAPS}/a{part}", body, **form)
    for name in "ab":
        (request,) = programs.asked(name)
        assert (request["operation"], request["options"]["kind"]) == (operation, options)
        assert request["oldObject"]["data"] == {"a": "1"}
        assert (request["object"] or {}).get("data") == (None if body is None else {"a": "2"})


async def test_an_apply_that_creates_is_a_create():
    programs = Programs(a=allow)
    cluster = cluster_with(programs)
    await cluster.ok("POST", VALIDATING, configuration(hook()))
    await cluster.ok(
        "PATCH",
        f"{CONFIG_MAPS}/a",
        config_map(a="1"),
        query={"fieldManager": "me"},
        content_type="application/apply-patch+yaml",
    )
    (request,) = programs.asked("a")
    assert request["operation"] == "CREATE"
    assert request["options"]["fieldManager"] == "me"


async def test_a_new_object_has_its_uid_and_generated_name_only_when_it_is_validated():
    programs = Programs(a=allow, b=allow)
    cluster = cluster_with(programs)
    await cluster.ok("POST", MUTATING, configuration(hook()))
    await cluster.ok("POST", VALIDATING, configuration(hook("b.example.com")))
    body = config_map() | {"metadata": {"generateName": "x-"}}
    made = await cluster.ok("POST", CONFIG_MAPS, body)
    (early,), (late,) = programs.asked("a"), programs.asked("b")
    assert unowned(early["object"])["metadata"] == {"generateName": "x-", "namespace": "default"}
    for field in ("name", "uid", "creationTimestamp"):
        assert late["object"]["metadata"][field] == made["metadata"][field]
    assert "name" not in early
    assert "name" not in late


async def test_a_collection_is_deleted_one_by_one_and_shown_whole():
    programs = Programs(a=allow)
    cluster = cluster_with(programs)
    for name in ("a", "b", "c"):
        labelled = {"metadata": {"name": name, "labels": {"x": "y"}}}
        await cluster.ok("POST", CONFIG_MAPS, config_map(name) | labelled)
    await cluster.ok("POST", VALIDATING, configuration(hook()))
    found = await cluster.ok("DELETE", CONFIG_MAPS, query={"labelSelector": "x=y"})
    assert [item["metadata"]["name"] for item in found["items"]] == ["a", "b", "c"]
    assert [request["name"] for request in programs.asked("a")] == ["a", "b", "c"]


async def test_a_slow_webhook_delays_no_other_call_and_the_object_is_reviewed_anew():
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def wait(request: dict[str, Any]) -> dict[str, Any]:
        begun.set()
        await goes_on.wait()
        return patch({"op": "add", "path": "/data/seen", "value": request["object"]["data"]["a"]})

    programs = Programs(a=wait)
    cluster = cluster_with(programs)
    await cluster.ok("POST", CONFIG_MAPS, config_map(a="1", b="1"))
    labelled = hook(objectSelector={"matchLabels": {"slow": "yes"}})
    await cluster.ok("POST", MUTATING, configuration(labelled))
    change = {"metadata": {"labels": {"slow": "yes"}}, "data": {"b": "2"}}
    patched = cluster.ok("PATCH", f"{CONFIG_MAPS}/a", change, content_type=MERGE)
    slow = TaskOwner().spawn(patched, name="slow")
    await begun.wait()
    # Another write of the same object goes through while the webhook sleeps.
    await cluster.ok("PATCH", f"{CONFIG_MAPS}/a", {"data": {"a": "3"}}, content_type=MERGE)
    assert not slow.done()
    goes_on.set()
    assert (await slow)["data"] == {"a": "3", "b": "2", "seen": "3"}
    assert len(programs.asked("a")) == 2


async def test_an_object_that_always_changes_is_a_conflict():
    cluster: Cluster

    async def meddle(request: dict[str, Any]) -> dict[str, Any]:
        count = len(programs.asked("a"))
        change = {"data": {"count": str(count)}}
        assert (await cluster.call("PATCH", f"{CONFIG_MAPS}/a", change, content_type=MERGE))[
            0
        ] == 200
        return {"allowed": True}

    programs = Programs(a=meddle)
    cluster = cluster_with(programs)
    await cluster.ok("POST", CONFIG_MAPS, config_map(a="1"))
    only = hook(matchConditions=[{"name": "mine", "expression": "has(object.data.mine)"}])
    await cluster.ok("POST", VALIDATING, configuration(only))
    change = {"data": {"mine": "1"}}
    status, _ = await cluster.call("PATCH", f"{CONFIG_MAPS}/a", change, content_type=MERGE)
    assert status == 409
    assert "mine" not in (await cluster.ok("GET", f"{CONFIG_MAPS}/a"))["data"]


def test_a_webhook_that_sleeps_is_given_up_in_its_time_and_the_call_in_its_own():
    async def play() -> None:
        async def sleep(request: dict[str, Any]) -> dict[str, Any]:
            await aio.sleep(20)
            return {"allowed": True}

        cluster = cluster_with(Programs(a=sleep))
        await cluster.ok("POST", VALIDATING, configuration(hook(timeoutSeconds=5)))
        loop = asyncio.get_running_loop()
        began = loop.time()
        status, answer = await cluster.call("POST", CONFIG_MAPS, config_map())
        assert (status, round(loop.time() - began)) == (500, 5)
        assert 'failed calling webhook "a.example.com"' in answer["message"]
        began = loop.time()
        status, _ = await cluster.call("POST", CONFIG_MAPS, config_map(), query={"timeout": "2s"})
        assert (status, round(loop.time() - began)) == (504, 2)

    run_virtual(play())


async def test_a_failure_is_ignored_with_a_warning_where_the_policy_says_so():
    cluster = cluster_with(Programs())
    ignored = hook(failurePolicy="Ignore")
    await cluster.ok("POST", VALIDATING, configuration(ignored))
    reply = await cluster.reply("POST", CONFIG_MAPS, config_map())
    assert reply.status == 201
    (warning,) = [text for name, text in reply.headers if name == "Warning"]
    assert "a.example.com" in warning
    assert reply.annotations == {
        "failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "a.example.com"
    }


async def test_a_service_without_an_address_is_named_and_an_annotation_gives_it_one():
    cluster = cluster_with(Programs())
    client = {"service": {"namespace": "default", "name": "w"}}
    await cluster.ok("POST", VALIDATING, configuration(hook(clientConfig=client)))
    ports = {"spec": {"ports": [{"port": 443}]}}
    status, answer = await cluster.call("POST", CONFIG_MAPS, config_map())
    assert (status, 'service "w" not found' in answer["message"]) == (500, True)
    services = "/api/v1/namespaces/default/services"
    await cluster.ok("POST", services, {"metadata": {"name": "w"}} | ports)
    status, answer = await cluster.call("POST", CONFIG_MAPS, config_map())
    assert status == 500
    assert "moorage.dev/webhook-address=HOST:PORT" in answer["message"]
    note = {"metadata": {"annotations": {"moorage.dev/webhook-address": "a.example.com:9443"}}}
    await cluster.ok("PATCH", "/api/v1/namespaces/default/services/w", note, content_type=MERGE)
    programs = Programs(a=allow)
    cluster.server.use_sender(programs)
    await cluster.ok("POST", CONFIG_MAPS, config_map())
    assert len(programs.asked("a")) == 1


async def test_configurations_of_webhooks_and_policies_are_sent_to_no_webhook():
    cluster = cluster_with(Programs())
    await cluster.ok("POST", VALIDATING, configuration(hook(rules=[ANY])))
    await cluster.ok("POST", MUTATING, configuration(hook(rules=[ANY])))
    status, answer = await cluster.call("POST", "/api/v1/namespaces", namespace("a"))
    assert (status, "a.example.com" in answer["message"]) == (500, True)
    await cluster.ok("DELETE", f"{MUTATING}/hooks")
    await cluster.ok("DELETE", f"{VALIDATING}/hooks")
    await cluster.ok("POST", "/api/v1/namespaces", namespace("a"))


async def test_selectors_scope_and_conditions_choose_the_writes():
    programs = Programs(a=allow)
    cluster = cluster_with(programs)
    await cluster.ok("POST", "/api/v1/namespaces", namespace("other"))
    chosen = hook(
        rules=[ANY | {"scope": "Namespaced", "resources": ["*"]}],
        namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        matchConditions=[{"name": "c", "expression": "request.userInfo.username != 'jane'"}],
    )
    await cluster.ok("POST", VALIDATING, configuration(chosen))
    await cluster.ok("POST", "/api/v1/namespaces", namespace("third"))
    await cluster.ok("POST", "/api/v1/namespaces/other/configmaps", config_map())
    assert programs.requests == []
    await cluster.ok("POST", CONFIG_MAPS, config_map())
    assert len(programs.requests) == 1


async def test_conditions_that_cannot_be_evaluated_are_named_when_stored_and_at_each_write():
    programs = Programs(a=allow)
    cluster = cluster_with(programs)
    asked = "url('https://a.example.com').getHost() == 'a'"
    unknown = [{"name": "c", "expression": asked}]
    for policy, status in (("Ignore", 201), ("Fail", 403)):
        chosen = configuration(hook(matchConditions=unknown, failurePolicy=policy))
        warning = dict((await cluster.reply("POST", VALIDATING, chosen)).headers)["Warning"]
        assert "webhooks[0].matchConditions[0].expression: stored and not evaluated" in warning
        reply = await cluster.reply("POST", CONFIG_MAPS, config_map())
        assert reply.status == status
        if policy == "Ignore":
            warning = dict(reply.headers)["Warning"]
            assert 'hooks: webhook \\"a.example.com\\" was not called' in warning
        await cluster.ok("DELETE", f"{VALIDATING}/hooks")
        await cluster.call("DELETE", f"{CONFIG_MAPS}/settings")
    assert programs.requests == []


async def test_a_condition_that_fails_is_named_where_its_webhook_is_left_out():
    cluster = cluster_with(Programs())
    odd = [{"name": "c", "expression": "object.nope.nope == 1"}]
    chosen = configuration(hook(matchConditions=odd, failurePolicy="Ignore"))
    await cluster.ok("POST", MUTATING, chosen)
    reply = await cluster.reply("POST", CONFIG_MAPS, config_map())
    assert reply.status == 201
    assert "was not called: expression 'object.nope.nope == 1'" in dict(reply.headers)["Warning"]


async def test_an_empty_warning_of_a_webhook_is_no_warning():
    cluster = cluster_with(Programs(a=lambda request: {"allowed": True, "warnings": ["", "one"]}))
    await cluster.ok("POST", VALIDATING, configuration(hook()))
    reply = await cluster.reply("POST", CONFIG_MAPS, config_map())
    assert [value for key, value in reply.headers if key == "Warning"] == ['299 - "one"']


async def test_a_rule_for_another_version_counts_unless_the_match_is_exact():
    two = {"op": "add", "path": "/spec/minReplicas", "value": 2}
    programs = Programs(a=lambda request: patch(two))
    cluster = cluster_with(programs)
    rules = [ANY | {"apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["*"]}]
    await cluster.ok("POST", MUTATING, configuration(hook(rules=rules)))
    path = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    body = {"metadata": {"name": "a"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3}}
    made = await cluster.ok("POST", path, body)
    assert (made["apiVersion"], made["spec"]["minReplicas"]) == ("autoscaling/v2", 2)
    (request,) = programs.asked("a")
    assert request["object"]["apiVersion"] == "autoscaling/v1"
    assert request["kind"]["version"], request["requestKind"]["version"] == ("v1", "v2")
    exact = [{"op": "replace", "path": "/webhooks/0/matchPolicy", "value": "Exact"}]
    await cluster.ok("PATCH", f"{MUTATING}/hooks", exact, content_type=JSON_PATCH)
    await cluster.ok("POST", path, body | {"metadata": {"name": "b"}})
    assert len(programs.asked("a")) == 1


SUBRESOURCES = [
    pytest.param(
        "POST", f"{PODS}/a/binding", binding(), ("CREATE", "Binding", "binding"), id="a binding"
    ),
    pytest.param(
        "POST",
        f"{PODS}/a/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}},
        ("CREATE", "Eviction", "eviction"),
        id="an eviction",
    ),
    pytest.param(
        "PUT",
        f"{PODS}/a/status",
        pod() | {"status": {"phase": "Running"}},
        ("UPDATE", "Pod", "status"),
        id="a status",
    ),
    pytest.param(
        "PUT",
        "/apis/apps/v1/namespaces/default/replicasets/r/scale",
        {"metadata": {"name": "r"}, "spec": {"replicas": 3}},
        ("UPDATE", "Scale", "scale"),
        id="a scale",
    ),
]


@pytest.mark.parametrize(("method", "path", "body", "kind"), SUBRESOURCES)
async def test_a_subresource_is_reviewed_with_its_own_body(
    method: str, path: str, body: Any, kind: tuple[str, str, str]
):
    programs = Programs(a=allow)
    cluster = cluster_with(programs)
    await cluster.ok("POST", PODS, pod())
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    sets = "/apis/apps/v1/namespaces/default/replicasets"
    await cluster.ok("POST", sets, {"metadata": {"name": "r"}, "spec": spec})
    await cluster.ok("POST", VALIDATING, configuration(hook(rules=[ANY])))
    await cluster.ok(method, path, body)
    (request,) = programs.asked("a")
    assert (request["operation"], request["kind"]["kind"], request["subResource"]) == kind
    assert (request["object"]["kind"], request["namespace"]) == (kind[1], "default")


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_connection_is_reviewed_with_its_options(method: str):
    programs = Programs(a=lambda request: {"allowed": request["object"].get("tty", False)})
    cluster = cluster_with(programs)
    await cluster.ok("POST", PODS, pod("web"))
    rules = [ANY | {"operations": ["CONNECT"], "resources": ["pods/*"]}]
    await cluster.ok("POST", VALIDATING, configuration(hook(rules=rules)))
    query = {"command": "sh", "container": "main", "stdin": "true"}
    status, answer = await cluster.call(method, f"{PODS}/web/exec", query=query)
    assert (status, "denied the request" in answer["message"]) == (400, True)
    (request,) = programs.asked("a")
    assert (request["operation"], request["subResource"]) == ("CONNECT", "exec")
    assert (request["name"], request["namespace"]) == ("web", "default")
    assert request["object"] == {
        "kind": "PodExecOptions",
        "apiVersion": "v1",
        "stdin": True,
        "container": "main",
        "command": ["sh"],
    }
    assert request["options"] is None
    # The pod has no node: what the webhook allows is refused for that.
    status, answer = await cluster.call(method, f"{PODS}/web/attach", query={"tty": "true"})
    assert answer["message"] == "pod web does not have a host assigned"


async def test_a_webhook_changes_a_scale():
    two = {"op": "replace", "path": "/spec/replicas", "value": 2}
    programs = Programs(a=lambda request: patch(two))
    cluster = cluster_with(programs)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    sets = "/apis/apps/v1/namespaces/default/replicasets"
    await cluster.ok("POST", sets, {"metadata": {"name": "r"}, "spec": spec})
    rules = [ANY | {"resources": ["*/scale"]}]
    await cluster.ok("POST", MUTATING, configuration(hook(rules=rules)))
    scaled = {"metadata": {"name": "r"}, "spec": {"replicas": 9}}
    assert (await cluster.ok("PUT", f"{sets}/r/scale", scaled))["spec"]["replicas"] == 2


async def test_a_scale_of_another_version_is_reviewed_unless_the_match_is_exact():
    two = {"op": "replace", "path": "/spec/replicas", "value": 2}
    programs = Programs(a=lambda request: patch(two))
    cluster = cluster_with(programs)
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    first = definition(subresources={"scale": scale})
    [version] = first["spec"]["versions"]
    second = version | {"name": "v2", "storage": False}
    await cluster.ok("POST", DEFINITIONS, definition(spec__versions=[version, second]))
    await cluster.ok("POST", CARS, car())
    rules = [ANY | {"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["*/scale"]}]
    await cluster.ok("POST", MUTATING, configuration(hook(rules=rules)))
    path = "/apis/example.com/v2/namespaces/default/cars/a/scale"
    body = {"metadata": {"name": "a"}, "spec": {"replicas": 3}}
    assert (await cluster.ok("PUT", path, body))["spec"] == {"replicas": 2}
    (request,) = programs.asked("a")
    assert (request["resource"]["version"], request["requestResource"]["version"]) == ("v1", "v2")
    assert {request[key]["kind"] for key in ("kind", "requestKind", "object")} == {"Scale"}
    exact = [{"op": "replace", "path": "/webhooks/0/matchPolicy", "value": "Exact"}]
    await cluster.ok("PATCH", f"{MUTATING}/hooks", exact, content_type=JSON_PATCH)
    assert (await cluster.ok("PUT", path, body))["spec"] == {"replicas": 3}


async def test_audit_annotations_and_warnings_of_a_webhook_reach_the_caller_and_the_log():
    said = {"allowed": True, "warnings": ["look out"], "auditAnnotations": {"why": "because"}}
    cluster = cluster_with(Programs(a=lambda request: said | patch(add("x", "1"))))
    await cluster.ok("POST", MUTATING, configuration(hook()))
    reply = await cluster.reply("POST", CONFIG_MAPS, config_map(a="1"))
    assert ("Warning", '299 - "look out"') in reply.headers
    assert reply.annotations == {
        "a.example.com/why": "because",
        "mutation.webhook.admission.k8s.io/round_0_index_0": (
            '{"configuration":"hooks","webhook":"a.example.com","mutated":true}'
        ),
    }


async def test_a_dry_run_is_reviewed_as_one_and_stores_nothing():
    programs = Programs(a=allow)
    cluster = cluster_with(programs)
    await cluster.ok("POST", VALIDATING, configuration(hook(admissionReviewVersions=["v1beta1"])))
    await cluster.ok("POST", CONFIG_MAPS, config_map(), query={"dryRun": "All"})
    assert [request["dryRun"] for request in programs.asked("a")] == [True]
    assert "a" not in await cluster.names(CONFIG_MAPS)
