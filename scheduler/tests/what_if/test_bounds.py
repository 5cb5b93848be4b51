"""Quotas and limit ranges of namespaces count in what-if and capacity, as in the API server."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from moorage.base.errors import UsageError
from moorage.virtual.model import ClusterModel
from moorage.what_if.answering.answers import capacity_kinds
from moorage.what_if.capacity.count import Kind, room_in
from moorage.what_if.change import Apply, Change, Delete, Drain, Scale
from moorage.what_if.course import scene_of, try_steps
from moorage.what_if.wire import CapacityBody
from moorage_sandbox.testing.builders import Manifest, pod, pod_manifest
from scheduler.tests.what_if.capacity import room_for
from scheduler.tests.what_if.cluster import bare, inputs_of, pod_of, replica_set


def _quota(hard: dict[str, str], **spec: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default", "uid": "q"},
        "spec": {"hard": hard, **spec},
    }


def _limits(**item: Any) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "default", "uid": "l"},
        "spec": {"limits": [{"type": "Container", **item}]},
    }


def _set_of(template_requests: dict[str, str] | None, replicas: int) -> Manifest:
    found = replica_set("web", replicas, "1")
    (container,) = found["spec"]["template"]["spec"]["containers"]
    if template_requests is None:
        del container["resources"]
    else:
        container["resources"] = {"requests": template_requests}
    return found


_TWO = (
    replica_set("web", 2, "1"),
    pod_of("web", 0, "n1", cpu="1"),
    pod_of("web", 1, "n2", cpu="1"),
)
_ONE_CPU = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}


def _with_resources(items: Sequence[Manifest], resources: dict[str, Any]) -> list[Manifest]:
    """Return copies of owners and pods whose containers have these resources."""
    found = copy.deepcopy(list(items))
    for each in found:
        spec = each["spec"].get("template", each)["spec"]
        spec["containers"][0]["resources"] = resources
    return found


_LIMITED = _with_resources(_TWO, _ONE_CPU)
_BEST_EFFORT = _with_resources(_TWO, {})
for _pod in _BEST_EFFORT[1:]:
    _pod["status"] = {"phase": "Running", "qosClass": "BestEffort"}


def _deployment(name: str) -> Apply:
    spec = replica_set(name, 1, "1")["spec"]
    metadata = {"name": name, "namespace": "default"}
    return Apply(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    )


_FOUR = Scale("ReplicaSet", "default", "web", 6)
_PRIORITY = {
    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
}


@pytest.mark.parametrize(
    ("items", "changes", "starts", "refused"),
    [
        pytest.param([*_TWO], [_FOUR], 4, 0, id="without a quota all start"),
        pytest.param([*_TWO, _quota({"pods": "3"})], [_FOUR], 1, 3, id="a number of pods"),
        pytest.param([*_TWO, _quota({"requests.cpu": "4"})], [_FOUR], 2, 2, id="requested cpu"),
        pytest.param(
            [*_TWO, _quota({"pods": "3"}, scopes=["BestEffort"])],
            [_FOUR],
            4,
            0,
            id="a scope that the pods do not have",
        ),
        pytest.param(
            [*_TWO, _quota({"pods": "3"}, scopes=["NotTerminating"])],
            [_FOUR],
            1,
            3,
            id="a scope that the pods have",
        ),
        pytest.param(
            [*_TWO, _quota({"pods": "3"}, scopeSelector=_PRIORITY)],
            [_FOUR],
            4,
            0,
            id="a quota for pods of another priority class",
        ),
        pytest.param(
            [*_TWO, _quota({"limits.cpu": "9"})], [_FOUR], 0, 4, id="a limit that no container has"
        ),
        pytest.param(
            [*_LIMITED, _quota({"limits.cpu": "3"})], [_FOUR], 1, 3, id="the sum of limits"
        ),
        pytest.param(
            [*_TWO, _quota({"pods": "3"})],
            [_FOUR, Delete("ResourceQuota", "default", "q")],
            4,
            0,
            id="the others are made when the quota is gone",
        ),
        pytest.param(
            [*_TWO, _quota({"pods": "3"})],
            [_FOUR, Scale("ReplicaSet", "default", "web", 3)],
            1,
            0,
            id="pods that are not wanted any more are not missed",
        ),
        pytest.param(
            [*_TWO, bare("other", "n3", cpu="1"), _quota({"pods": "4"})],
            [_FOUR, Delete("Pod", "default", "other")],
            2,
            2,
            id="a pod that goes makes room in the quota",
        ),
        pytest.param(
            [*_TWO, _limits(max={"cpu": "500m"})], [_FOUR], 0, 4, id="a limit range that refuses"
        ),
        pytest.param(
            [_set_of(None, 0), _limits(default={"cpu": "3"})],
            [Scale("ReplicaSet", "default", "web", 6)],
            3,
            0,
            id="a limit range whose default fills a node",
        ),
    ],
)
def test_pods_are_made_as_their_namespace_allows(
    items: Sequence[Manifest], changes: Sequence[Change], starts: int, refused: int
) -> None:
    """A refused pod has no node, and the reason is the server's."""
    course = try_steps(inputs_of(*items), changes)
    said = [each for each in course.newly_pending if "refuses the pod" in each.reason]
    assert (len(course.starts), len(said)) == (starts, refused)
    assert course.is_quiet


def test_the_use_of_a_quota_begins_with_its_status() -> None:
    """Objects that are not known here count as well."""
    quota = {**_quota({"pods": "10"}), "status": {"hard": {"pods": "10"}, "used": {"pods": "9"}}}
    course = try_steps(inputs_of(*_TWO, quota), [_FOUR])
    assert len(course.starts) == 1
    assert course.newly_pending[0].reason == (
        "its namespace refuses the pod, so it is not made: "
        "exceeded quota: q, requested: pods=1, used: pods=10, limited: pods=10"
    )


def test_a_pod_that_a_drain_evicts_waits_for_the_old_one() -> None:
    """The quota is full while the old pod stops; then the new one is made, and follows it."""
    course = try_steps(inputs_of(*_TWO, _quota({"pods": "2"})), [Drain("n1")])
    assert [each.pod for each in course.moves] == ["default/web-0"]
    assert not course.newly_pending


@pytest.mark.parametrize(
    ("items", "bounds", "moves", "waits"),
    [
        pytest.param(_TWO, _limits(max={"cpu": "4"}), ["default/web-0"], [], id="a default limit"),
        pytest.param(
            _TWO,
            _limits(max={"cpu": "500m"}),
            [],
            ["default/web-0 on n1"],
            id="a maximum that is younger than the pod",
        ),
        pytest.param(
            _TWO[1:],
            _limits(max={"cpu": "500m"}),
            [],
            ["default/web-0 on n1"],
            id="a maximum, without the owner's template",
        ),
        pytest.param(
            _TWO,
            _limits(default={"cpu": "500m"}),
            [],
            ["default/web-0 on n1"],
            id="a default limit below the request",
        ),
        pytest.param(
            _TWO,
            _quota({"limits.cpu": "9"}),
            [],
            ["default/web-0 on n1"],
            id="a quota of limits, and no limits",
        ),
        pytest.param(
            _LIMITED, _quota({"limits.cpu": "3"}), ["default/web-0"], [], id="a quota of limits"
        ),
        pytest.param(
            _BEST_EFFORT,
            _quota({"pods": "2"}, scopes=["BestEffort"]),
            ["default/web-0"],
            [],
            id="a quota of pods without requests, full until the old pod is gone",
        ),
    ],
)
def test_a_pod_that_is_made_again_is_admitted_anew(
    items: Sequence[Manifest], bounds: Manifest, moves: list[str], waits: list[str]
) -> None:
    course = try_steps(inputs_of(*items, bounds), [Drain("n1")])
    assert [each.pod for each in course.moves] == moves
    assert [each.was for each in course.newly_pending] == waits
    assert not course.lost


def _turns(world_items: Sequence[Manifest], *changes: Change) -> dict[str, int]:
    """Return the numbers of pods that start or move, by owner."""
    course = try_steps(inputs_of(*world_items), changes)
    new = [each.pod for each in course.starts] + [each.successor for each in course.moves]
    return dict(Counter(name.split("/")[1].split("-")[0] for name in new))


def test_room_in_a_quota_goes_to_the_owner_of_the_pod_that_is_gone_first() -> None:
    """Its controller hears of the pod; the other one tries again after its backoff."""
    eager = replica_set("api", 2, "1")
    assert _turns([eager, *_TWO, _quota({"pods": "2"})], Drain("n1")) == {"web": 1}


def test_room_in_a_quota_goes_to_an_owner_that_tries_again_later() -> None:
    eager = replica_set("api", 2, "1")
    change = Scale("ReplicaSet", "default", "web", 0)
    assert _turns([eager, *_TWO, _quota({"pods": "2"})], change) == {"api": 2}


def test_owners_share_the_room_of_pods_that_leave_at_one_moment() -> None:
    """Each makes one pod, and then two: four pods leave, and there is room for three."""
    api = [replica_set("api", 3, "1"), *(pod_of("api", n, "n1", cpu="1") for n in range(3))]
    web = [replica_set("web", 1, "1"), pod_of("web", 0, "n1", cpu="1")]
    quota = {**_quota({"pods": "4"}), "status": {"hard": {"pods": "4"}, "used": {"pods": "5"}}}
    assert _turns([*api, *web, quota], Drain("n1")) == {"api": 2, "web": 1}


def test_several_owners_that_wait_for_room_are_tried_in_several_orders() -> None:
    waiting = [replica_set("api", 1, "1"), replica_set("db", 1, "1"), *_TWO]
    change = Scale("ReplicaSet", "default", "web", 1)
    course = try_steps(inputs_of(*waiting, _quota({"pods": "2"})), [change])
    assert course.order_matters
    assert len(course.starts) == 1


@pytest.mark.parametrize(
    ("hard", "changes"),
    [
        pytest.param("count/deployments.apps", [_deployment("b")], id="Deployments"),
        pytest.param("count/replicasets.apps", [_deployment("b")], id="their ReplicaSets"),
        pytest.param(
            "count/configmaps",
            [Apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}})],
            id="ConfigMaps",
        ),
    ],
)
def test_a_quota_counts_objects(hard: str, changes: list[Change]) -> None:
    with pytest.raises(UsageError, match="exceeded quota: q"):
        try_steps(inputs_of(_quota({hard: "0"})), changes)
    try_steps(inputs_of(_quota({hard: "1"})), changes)


def test_an_object_that_is_deleted_makes_room_in_a_quota() -> None:
    inputs = inputs_of(_quota({"count/deployments.apps": "1", "count/replicasets.apps": "1"}))
    delete = Delete("Deployment", "default", "a")
    assert len(try_steps(inputs, [_deployment("a"), delete, _deployment("b")]).starts) == 1
    with pytest.raises(UsageError, match="exceeded quota: q"):
        try_steps(inputs, [_deployment("a"), _deployment("b")])


def test_a_pod_that_would_be_refused_cannot_be_applied() -> None:
    """As with kubectl."""
    with pytest.raises(UsageError, match="Pod x would be refused: exceeded quota: q"):
        try_steps(inputs_of(*_TWO, _quota({"pods": "2"})), [Apply(pod_manifest("x"))])


@pytest.mark.parametrize(
    ("bounds", "fit", "message"),
    [
        pytest.param(
            _quota({"pods": "5"}),
            3,
            "exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5",
            id="a quota",
        ),
    ],
)
def test_capacity_ends_where_the_namespace_refuses(
    bounds: Manifest, fit: int, message: str
) -> None:
    """Three nodes have room for ten more pods."""
    room = room_for(inputs_of(*_TWO, bounds), [Kind(pod("p", cpu="1"))], most=100)
    assert (room.fit, room.refused, room.message) == (fit, True, message)


def test_capacity_counts_pods_as_a_limit_range_makes_them() -> None:
    """The template requests nothing, and the default takes three of the four cores of a node."""
    inputs = inputs_of(_set_of(None, 0), _limits(default={"cpu": "3"}))
    scene = scene_of(ClusterModel(inputs))
    kinds = capacity_kinds(CapacityBody(like="rs/web"), scene)
    assert room_in(scene, kinds, most=100).fit == 3


@pytest.mark.parametrize(
    ("kind", "spec", "hard", "fit"),
    [
        pytest.param("Job", {"parallelism": 5, "completions": 2}, {}, 3, id="two pods of a Job"),
        pytest.param("Job", {"parallelism": 2}, {"count/jobs.batch": "1"}, 1, id="one Job"),
        pytest.param(
            "Deployment", {}, {"count/replicasets.apps": "2"}, 2, id="a ReplicaSet for each"
        ),
    ],
)
def test_whole_owners_are_counted_as_their_namespace_takes_them(
    kind: str, spec: dict[str, Any], hard: dict[str, str], fit: int
) -> None:
    """Three nodes take six pods of two cores."""
    owner = replica_set("new", 1)
    owner |= {"kind": kind, "apiVersion": "batch/v1" if kind == "Job" else "apps/v1"}
    owner["spec"] |= spec
    if kind == "Job":
        for name in ("replicas", "selector"):
            del owner["spec"][name]
        owner["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default", "uid": "q"},
        "spec": {"hard": hard},
    }
    scene = scene_of(ClusterModel(inputs_of(*([quota] if hard else []))))
    body = CapacityBody(mix=(owner,), whole=True)
    room = room_in(scene, capacity_kinds(body, scene), most=100)
    assert (room.fit, room.refused) == (fit, bool(hard))
