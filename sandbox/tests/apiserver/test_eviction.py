"""The eviction subresource: which budgets it asks, what it answers, and what it writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage_sandbox.apiserver.protobuf.envelope import write_object
from moorage_sandbox.apiserver.wire.negotiate import PROTOBUF
from sandbox.tests.apiserver.harness import MERGE, PODS, Cluster, failure, pod

PATH = f"{PODS}/a/eviction"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
APP = {"app": "a"}
DONE = (
    201,
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201},
)


def eviction(name: str = "a", **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": "default"},
        **fields,
    }


def budget(name: str = "b", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": APP}, **spec},
    }


class Evictions(Cluster):
    """A cluster with a pod that may be evicted."""

    @classmethod
    async def of(cls, *, phase: str = "Running", ready: bool = True) -> Evictions:
        """Start with pod ``a``, labelled ``app=a``, on a node."""
        cluster = cls()
        await cluster.ok("POST", PODS, pod(node="n1", labels=APP))
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        await cluster.change(f"{PODS}/a", phase=phase, conditions=conditions)
        return cluster

    async def change(self, path: str, **status: Any) -> None:
        """Write a status."""
        await self.ok("PATCH", f"{path}/status", {"status": status}, content_type=MERGE)

    async def add_budget(
        self, name: str = "b", *, spec: dict[str, Any] | None = None, **status: Any
    ) -> None:
        """Add a budget with a status that the controller has just written."""
        await self.ok("POST", BUDGETS, budget(name, **(spec or {})))
        status.setdefault("observedGeneration", 1)
        await self.change(f"{BUDGETS}/{name}", **status)


def too_many(cause: str, **details: Any) -> tuple[int, dict[str, Any]]:
    causes = [{"reason": "DisruptionBudget", "message": cause}]
    return failure(429, "TooManyRequests", REFUSED, {"causes": causes, **details})


def forbidden(why: str, cause: str) -> tuple[int, dict[str, Any]]:
    message = f"The disruption budget b does not allow evicting pods currently: {cause}"
    details = {
        "name": "b",
        "group": "policy",
        "kind": "poddisruptionbudget",
        "causes": [{"reason": "DisruptionBudget", "message": message}],
    }
    text = f'poddisruptionbudget.policy "b" is forbidden: {why}'
    return failure(403, "Forbidden", text, details)


async def test_a_pod_without_a_budget_is_marked_and_deleted_with_its_grace_period():
    cluster = await Evictions.of()
    assert await cluster.call("POST", PATH, eviction()) == DONE
    found = await cluster.ok("GET", f"{PODS}/a")
    assert found["metadata"]["deletionGracePeriodSeconds"] == 30
    assert found["status"]["conditions"][-1] == {
        "type": "DisruptionTarget",
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }


async def test_an_eviction_is_recorded_in_the_budgets_status():
    cluster = await Evictions.of()
    other = {"type": "Other", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"}
    other |= {"reason": "Any", "message": ""}
    await cluster.add_budget(
        disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1, expectedPods=2, conditions=[other]
    )
    cluster.clock.advance(5)
    assert await cluster.call("POST", PATH, eviction()) == DONE
    assert (await cluster.ok("GET", f"{BUDGETS}/b"))["status"] == {
        "disruptionsAllowed": 0,
        "currentHealthy": 2,
        "desiredHealthy": 1,
        "expectedPods": 2,
        "observedGeneration": 1,
        "disruptedPods": {"a": "2026-01-01T00:00:05Z"},
        "conditions": [
            other,
            {
                "type": "DisruptionAllowed",
                "status": "False",
                "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:05Z",
                "reason": "InsufficientPods",
                "message": "",
            },
        ],
    }


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        pytest.param(
            {"observedGeneration": 0, "disruptionsAllowed": 5},
            too_many(
                "The disruption budget b is still being processed by the server.",
                retryAfterSeconds=10,
            ),
            id="the controller has not seen the budget yet",
        ),
        pytest.param(
            {"currentHealthy": 1, "desiredHealthy": 1},
            too_many("The disruption budget b needs 1 healthy pods and has 1 currently"),
            id="just enough are healthy",
        ),
        pytest.param(
            {
                "currentHealthy": 1,
                "desiredHealthy": 1,
                "conditions": [
                    {
                        "type": "DisruptionAllowed",
                        "status": "False",
                        "reason": "SyncFailed",
                        "message": "no controller",
                        "lastTransitionTime": "1970-01-01T00:00:00Z",
                    }
                ],
            },
            too_many(
                "The disruption budget b does not allow evicting pods currently because it failed "
                "sync: no controller"
            ),
            id="counts are not to be trusted after a failed sync",
        ),
        pytest.param(
            {"currentHealthy": 2, "desiredHealthy": 1},
            too_many("The disruption budget b does not allow evicting pods currently"),
            id="enough are healthy but nothing is allowed",
        ),
        pytest.param(
            {
                "currentHealthy": 2,
                "desiredHealthy": 1,
                "conditions": [
                    {
                        "type": "DisruptionAllowed",
                        "status": "False",
                        "reason": "Frozen",
                        "message": "not today",
                        "lastTransitionTime": "1970-01-01T00:00:00Z",
                    }
                ],
            },
            too_many(
                "The disruption budget b does not allow evicting pods currently (Frozen): not today"
            ),
            id="a condition says why nothing is allowed",
        ),
        pytest.param(
            {
                "disruptionsAllowed": 3,
                "disruptedPods": {f"p{i}": "1970-01-01T00:00:00Z" for i in range(2001)},
            },
            forbidden(
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
                "too many pending evictions not confirmed by PDB controller",
            ),
            id="too many evictions are outstanding",
        ),
    ],
)
async def test_a_budget_without_allowed_disruptions_refuses_the_eviction(status, answer):
    cluster = await Evictions.of()
    await cluster.add_budget(**status)
    assert await cluster.call("POST", PATH, eviction()) == answer
    found = await cluster.ok("GET", f"{PODS}/a")
    assert "deletionTimestamp" not in found["metadata"]
    assert len(found["status"]["conditions"]) == 1


async def test_a_refused_eviction_carries_retry_after():
    cluster = await Evictions.of()
    await cluster.ok("POST", BUDGETS, budget())
    assert ("Retry-After", "10") in (await cluster.reply("POST", PATH, eviction())).headers


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
async def test_a_pod_that_does_not_run_needs_no_budget(phase):
    cluster = await Evictions.of(phase=phase)
    await cluster.add_budget()
    assert await cluster.call("POST", PATH, eviction()) == DONE


async def test_a_pod_that_is_leaving_needs_no_budget():
    cluster = await Evictions.of()
    await cluster.ok("DELETE", f"{PODS}/a")
    await cluster.add_budget()
    assert await cluster.call("POST", PATH, eviction()) == DONE


async def test_a_pod_covered_by_two_budgets_is_not_evicted():
    cluster = await Evictions.of()
    await cluster.add_budget("b", disruptionsAllowed=1)
    await cluster.add_budget("c", disruptionsAllowed=1)
    status, found = await cluster.call("POST", PATH, eviction())
    assert (status, found) == (
        500,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "This pod has more than one PodDisruptionBudget, which the eviction "
            "subresource does not support.",
            "code": 500,
        },
    )


@pytest.mark.parametrize(
    ("spec", "protects"),
    [
        pytest.param({"selector": {}}, True, id="an empty selector matches every pod"),
        pytest.param({"selector": None}, False, id="no selector matches none"),
        pytest.param({"selector": {"matchLabels": {"app": "z"}}}, False, id="other pods"),
        pytest.param(
            {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
            True,
            id="an expression",
        ),
    ],
)
async def test_a_budget_protects_the_pods_its_selector_matches(spec, protects):
    cluster = await Evictions.of()
    await cluster.add_budget(spec=spec)
    status, _ = await cluster.call("POST", PATH, eviction())
    assert status == (429 if protects else 201)


@pytest.mark.parametrize(
    ("policy", "healthy", "status"),
    [
        pytest.param("AlwaysAllow", (0, 1), 201, id="always allow: goes"),
        pytest.param("IfHealthyBudget", (1, 1), 201, id="enough others are healthy: goes"),
        pytest.param("IfHealthyBudget", (0, 1), 429, id="too few others are healthy: stays"),
        pytest.param("IfHealthyBudget", (0, 0), 429, id="none are wanted healthy: stays"),
        pytest.param(None, (1, 1), 201, id="unset is if-healthy: goes"),
        pytest.param(None, (0, 1), 429, id="unset is if-healthy: stays"),
    ],
)
async def test_an_unready_pod_is_evicted_by_the_policy_of_its_budget(policy, healthy, status):
    cluster = await Evictions.of(ready=False)
    current, desired = healthy
    spec = {"unhealthyPodEvictionPolicy": policy} if policy else {}
    await cluster.add_budget(spec=spec, currentHealthy=current, desiredHealthy=desired)
    assert (await cluster.call("POST", PATH, eviction()))[0] == status
    found = await cluster.ok("GET", f"{BUDGETS}/b")
    assert "disruptedPods" not in found["status"]


@pytest.mark.parametrize(
    ("query", "body"),
    [
        pytest.param({"dryRun": "All"}, {}, id="asked by the call"),
        pytest.param({}, {"deleteOptions": {"dryRun": ["All"]}}, id="asked in the body"),
    ],
)
async def test_a_dry_run_answers_and_writes_nothing(query, body):
    cluster = await Evictions.of()
    await cluster.add_budget(disruptionsAllowed=1)
    before = await cluster.ok("GET", f"{PODS}/a"), await cluster.ok("GET", f"{BUDGETS}/b")
    assert await cluster.call("POST", PATH, eviction(**body), query=query) == DONE
    after = await cluster.ok("GET", f"{PODS}/a"), await cluster.ok("GET", f"{BUDGETS}/b")
    assert before == after


async def test_a_dry_run_is_refused_by_a_budget_too():
    cluster = await Evictions.of()
    await cluster.add_budget()
    assert (await cluster.call("POST", PATH, eviction(), query={"dryRun": "All"}))[0] == 429


@pytest.mark.parametrize("name", ["uid", "resourceVersion"])
async def test_evictions_observe_preconditions(name):
    cluster = await Evictions.of()
    meta = (await cluster.ok("GET", f"{PODS}/a"))["metadata"]
    wrong = eviction(deleteOptions={"preconditions": {name: "0"}})
    status, found = await cluster.call("POST", PATH, wrong)
    assert (status, found["reason"]) == (409, "Conflict")
    assert found["message"].startswith('Operation cannot be fulfilled on Pod "a": the ')
    assert found["details"] == {"name": "a", "kind": "Pod"}
    right = eviction(deleteOptions={"preconditions": {name: meta[name]}})
    assert await cluster.call("POST", PATH, right) == DONE


async def test_an_eviction_may_set_the_grace_period():
    cluster = await Evictions.of()
    await cluster.ok("POST", PATH, eviction(deleteOptions={"gracePeriodSeconds": 7}))
    found = await cluster.ok("GET", f"{PODS}/a")
    assert found["metadata"]["deletionGracePeriodSeconds"] == 7


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            eviction("z"), "name in URL does not match name in Eviction object", id="other name"
        ),
        pytest.param(
            eviction() | {"metadata": {"name": "a", "namespace": "z"}},
            "the namespace of the provided object does not match the namespace sent on the request",
            id="other namespace",
        ),
        pytest.param(
            eviction() | {"kind": "Pod"},
            'Pod in version "policy/v1" cannot be handled as a Eviction: expected kind "Eviction" '
            'of version "policy/v1"',
            id="other kind",
        ),
        pytest.param(
            [],
            "the object provided is unrecognized (must be of type Eviction): couldn't get "
            "version/kind; expected a JSON object, not list",
            id="no object",
        ),
    ],
)
async def test_a_body_that_is_no_eviction_is_refused(body, message):
    cluster = await Evictions.of()
    found = await cluster.call("POST", PATH, json.dumps(body).encode())
    assert found == failure(400, "BadRequest", message)


async def test_other_verbs_and_unknown_pods_are_refused_by_eviction():
    cluster = await Evictions.of()
    assert (await cluster.call("GET", PATH))[0] == 405
    assert (await cluster.call("POST", f"{PODS}/z/eviction", eviction("z")))[0] == 404


async def test_discovery_lists_the_eviction_subresource_for_drain():
    found = await Cluster().ok("GET", "/api/v1")
    (entry,) = [each for each in found["resources"] if each["name"] == "pods/eviction"]
    assert entry == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": ["create"],
    }


async def test_an_eviction_in_protobuf_is_carried_out():
    cluster = await Evictions.of()
    body = write_object(eviction(deleteOptions={"gracePeriodSeconds": 9}))
    assert await cluster.call("POST", PATH, body, content_type=PROTOBUF) == DONE
    found = await cluster.ok("GET", f"{PODS}/a")
    assert found["metadata"]["deletionGracePeriodSeconds"] == 9
