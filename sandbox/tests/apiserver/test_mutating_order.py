"""The order of what changes an object: admission plugins, policies, webhooks, and all once more.

Does not cover: the plugins (tests of kinds), policies (`test_mutating_policies`) and webhooks
(`test_webhooks`) for themselves.
"""

from __future__ import annotations

from typing import Any

from sandbox.tests.apiserver.harness import PODS, Cluster, binding, pod
from sandbox.tests.apiserver.test_mutating_policies import BINDINGS, POLICIES, operations, policy
from sandbox.tests.apiserver.webhooks import (
    ANY,
    MUTATING,
    VALIDATING,
    Programs,
    allow,
    cluster_with,
    configuration,
    hook,
    patch,
)

ABOUT_PODS: dict[str, Any] = {"rules": [ANY | {"apiGroups": [""], "resources": ["pods"]}]}
AGAIN: dict[str, Any] = {"reinvocationPolicy": "IfNeeded"}
LIMITS = "/api/v1/namespaces/default/limitranges"
REQUESTS = {"spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "100m"}}]}}
SIDECAR = {
    "op": "add",
    "path": "/spec/containers/-",
    "value": {"name": "sidecar", "image": "proxy"},
}


def with_label(request: dict[str, Any]) -> dict[str, Any]:
    return patch({"op": "add", "path": "/metadata/labels", "value": {"a": "1"}})


async def with_policy(cluster: Cluster, wanted: Any) -> None:
    await cluster.ok("POST", POLICIES, wanted)
    bound = {"metadata": {"name": "p"}, "spec": {"policyName": "p"}}
    await cluster.ok("POST", BINDINGS, bound)


async def test_webhooks_and_policies_see_what_admission_plugins_have_set():
    programs = Programs(a=allow)
    cluster = cluster_with(programs)
    await cluster.ok("POST", LIMITS, REQUESTS | {"metadata": {"name": "l"}})
    seen = "string(object.spec.priority) + object.spec.serviceAccountName"
    note = f"[JSONPatch{{op: 'add', path: '/metadata/annotations/seen', value: {seen}}}]"
    await with_policy(cluster, policy(operations(note), plural="pods"))
    await cluster.ok("POST", MUTATING, configuration(hook(**ABOUT_PODS)))
    await cluster.ok("POST", PODS, pod("x"))
    (request,) = programs.asked("a")
    meta, spec = request["object"]["metadata"], request["object"]["spec"]
    assert meta["annotations"]["seen"] == "0default"
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert len(spec["tolerations"]) == 2
    assert spec["containers"][0]["resources"]["requests"]["cpu"] == "100m"
    assert "uid" not in meta


async def test_a_container_that_a_webhook_adds_has_defaults_and_limits_of_its_namespace():
    programs = Programs(a=lambda request: patch(SIDECAR), b=allow)
    cluster = cluster_with(programs)
    await cluster.ok("POST", LIMITS, REQUESTS | {"metadata": {"name": "l"}})
    hooks = hook(**ABOUT_PODS), hook("b.example.com", **ABOUT_PODS, **AGAIN)
    await cluster.ok("POST", MUTATING, configuration(*hooks))
    made = await cluster.ok("POST", PODS, pod("x"))
    sidecar = made["spec"]["containers"][1]
    assert sidecar["resources"]["requests"] == {"cpu": "100m"}
    # The webhook after it sees the defaults of the kind, and once more those of the namespace.
    first, second = (each["object"]["spec"]["containers"][1] for each in programs.asked("b"))
    assert (first["imagePullPolicy"], "requests" in first["resources"]) == ("Always", False)
    assert second == sidecar
    assert len(programs.asked("a")) == 1


async def test_a_policy_looks_once_more_at_what_a_webhook_has_changed():
    cluster = cluster_with(Programs(a=lambda request: patch(SIDECAR)))
    count = "[JSONPatch{op: 'add', path: '/metadata/labels/n', value: string(size(%s))}]"
    mutation = operations(count % "object.spec.containers")
    await with_policy(cluster, policy(mutation, plural="pods", **AGAIN))
    await cluster.ok("POST", MUTATING, configuration(hook(**ABOUT_PODS)))
    made = await cluster.ok("POST", PODS, pod("x", labels={"a": "1"}))
    assert made["metadata"]["labels"]["n"] == "2"


async def test_a_webhook_that_is_asked_once_more_was_asked_before():
    programs = Programs(a=allow, b=with_label)
    cluster = cluster_with(programs)
    selector: dict[str, Any] = {"objectSelector": {"matchLabels": {"a": "1"}}}
    hooks = hook(**ABOUT_PODS, **AGAIN, **selector), hook("b.example.com", **ABOUT_PODS)
    await cluster.ok("POST", MUTATING, configuration(*hooks))
    await cluster.ok("POST", PODS, pod("x"))
    assert programs.asked("a") == []


async def test_a_limit_range_refuses_a_pod_before_webhooks_may():
    programs = Programs(a=allow)
    cluster = cluster_with(programs)
    limits = {"limits": [{"type": "Container", "min": {"cpu": "1"}}]}
    await cluster.ok("POST", LIMITS, {"metadata": {"name": "l"}, "spec": limits})
    await cluster.ok("POST", VALIDATING, configuration(hook(**ABOUT_PODS)))
    small = {"resources": {"requests": {"cpu": "500m"}}}
    wanted = pod("x")
    wanted["spec"]["containers"][0] |= small
    status, answer = await cluster.call("POST", PODS, wanted)
    assert (status, "minimum cpu usage" in answer["message"]) == (403, True)
    assert programs.requests == []


async def test_a_webhook_sees_the_zone_of_the_node_in_a_binding():
    programs = Programs(a=allow)
    cluster = cluster_with(programs)
    rule = ANY | {"apiGroups": [""], "resources": ["pods/binding"]}
    zone = {"topology.kubernetes.io/zone": "z"}
    await cluster.ok("POST", "/api/v1/nodes", {"metadata": {"name": "n", "labels": zone}})
    await cluster.ok("POST", PODS, pod("x"))
    await cluster.ok("POST", MUTATING, configuration(hook(rules=[rule])))
    await cluster.ok("POST", f"{PODS}/x/binding", binding("x", "n"))
    (request,) = programs.asked("a")
    assert request["object"]["metadata"]["labels"] == zone
    assert (await cluster.ok("GET", f"{PODS}/x"))["metadata"]["labels"] == zone
