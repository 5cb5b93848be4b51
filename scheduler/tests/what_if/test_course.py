"""Each change leads to the course that a person would expect, in clusters of three small nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from moorage.base.errors import UsageError
from moorage.config.feature_gates import feature_gates
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.plugins.in_tree import in_tree_registry
from moorage.what_if.change import (
    AddNode,
    AddTaint,
    Apply,
    Change,
    Cordon,
    Delete,
    Drain,
    RemoveNode,
    Scale,
    SetPriority,
)
from moorage.what_if.consequences import ChangeComparison
from moorage.what_if.course import Reconfigure, try_steps
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from scheduler.tests.what_if.cluster import COSCHEDULING, bare, inputs_of, pod_of, replica_set

_NO_CPU = "0/3 nodes are available: 3 Insufficient cpu."


def _said(course: ChangeComparison) -> dict[str, Any]:
    """Return the parts of a course that are not empty; new names without their endings."""
    found: dict[str, list[str]] = {
        "anyway": [f"{each.pod} {each.node}" for each in course.anyway],
        "starts": [f"{_stem(each.pod)} {each.node}" for each in course.starts],
        "moves": [
            f"{each.pod} {each.from_node} {each.to_node} {each.evicted_by}".strip()
            for each in course.moves
        ],
        "lost": [f"{each.pod} {each.node} {each.evicted_by}".strip() for each in course.lost],
        "newly": [f"{each.was} {each.evicted_by}".strip() for each in course.newly_pending],
        "still": [each.pod for each in course.still_pending],
        "ended": [each.pod for each in course.ended],
    }
    return {name: lines for name, lines in found.items() if lines}


def _stem(pod: str) -> str:
    return pod if pod.rpartition("-")[2].isdigit() else pod.rpartition("-")[0] or pod


_WEB = (replica_set("web", 2), pod_of("web", 0, "n1"), pod_of("web", 1, "n2"))
_FULL = (bare("a", "n1", cpu="4"), bare("b", "n2", cpu="4"), bare("c", "n3", cpu="4"))


@pytest.mark.parametrize(
    ("items", "changes", "said"),
    [
        pytest.param((*_WEB,), [], {}, id="nothing changes"),
        pytest.param(
            (*_WEB, bare("new", cpu="3")),
            [],
            {"anyway": ["default/new n3"]},
            id="a pod starts anyway",
        ),
        pytest.param(
            (*_FULL, bare("waits", cpu="3")),
            [AddNode(node_manifest("n9"))],
            {"starts": ["default/waits n9"]},
            id="a new node takes the pod that waits",
        ),
        pytest.param(
            (*_WEB, bare("big", "n3", cpu="4")),
            [Drain("n1")],
            {"moves": ["default/web-0 n1 n2"]},
            id="a drained pod with an owner comes back elsewhere",
        ),
        pytest.param(
            (*_WEB, bare("big", "n3", cpu="4")),
            [Drain("n3")],
            {"lost": ["default/big n3"]},
            id="a drained pod without an owner is lost",
        ),
        pytest.param(
            (*_WEB, bare("big", "n3", cpu="3"), bare("more", "n2", cpu="2")),
            [RemoveNode("n1")],
            {"newly": ["default/web-0 on n1"]},
            id="the node of a pod goes, and no other has room",
        ),
        pytest.param(
            (*_WEB, bare("big", "n3", cpu="3"), bare("more", "n2", cpu="2")),
            [RemoveNode("n1"), AddNode(node_manifest("n9"))],
            {"moves": ["default/web-0 n1 n9"]},
            id="a node is exchanged",
        ),
        pytest.param(
            (*_FULL, bare("waits", cpu="3")),
            [Cordon("n1"), Delete("Pod", "default", "a")],
            {"ended": ["default/a"], "still": ["default/waits"]},
            id="a cordoned node takes no pod",
        ),
        pytest.param(
            (*_WEB,),
            [AddTaint("n1", "broken", "", "NoExecute")],
            {"moves": ["default/web-0 n1 n3"]},
            id="a taint throws a pod out",
        ),
        pytest.param(
            (*_WEB,),
            [AddTaint("n1", "busy", "", "NoSchedule")],
            {},
            id="a taint that throws nothing out",
        ),
        pytest.param(
            (*_FULL,),
            [Scale("ReplicaSet", "default", "web", 1)],
            None,
            id="a ReplicaSet that is not there",
        ),
        pytest.param(
            (*_WEB, bare("big", "n3", cpu="4")),
            [Scale("ReplicaSet", "default", "web", 5)],
            {"starts": ["default/web n2", "default/web n1"], "newly": ["new"]},
            id="two of three more replicas fit",
        ),
        pytest.param(
            (*_WEB,),
            [Scale("ReplicaSet", "default", "web", 0)],
            {"ended": ["default/web-0", "default/web-1"]},
            id="a ReplicaSet goes to zero",
        ),
        pytest.param(
            (*_WEB,),
            [Delete("ReplicaSet", "default", "web")],
            {"ended": ["default/web-0", "default/web-1"]},
            id="a ReplicaSet is deleted with its pods",
        ),
        pytest.param(
            (*_WEB, bare("solo", "n3", cpu="4")),
            [SetPriority("default", "web-0", 5), Apply(pod_manifest("x", cpu="4"))],
            {"newly": ["new"]},
            id="a new pod of no higher priority waits",
        ),
        pytest.param(
            (
                bare("a", "n1", cpu="4"),
                bare("b", "n2", cpu="4", priority=1000),
                bare("c", "n3", cpu="4", priority=1000),
                bare("waits", cpu="4"),
            ),
            [SetPriority("default", "waits", 1000)],
            {"starts": ["default/waits n1"], "lost": ["default/a n1 default/waits"]},
            id="a higher priority evicts a pod, which is lost",
        ),
        pytest.param(
            (
                replica_set("web", 1, "3"),
                pod_of("web", 0, "n1", cpu="3"),
                bare("b", "n2", cpu="4", priority=50),
                bare("c", "n3", cpu="1", priority=50),
                bare("waits", cpu="4"),
            ),
            [SetPriority("default", "waits", 10)],
            {
                "starts": ["default/waits n1"],
                "moves": ["default/web-0 n1 n3 default/waits"],
            },
            id="an evicted pod with an owner comes back elsewhere",
        ),
    ],
)
def test_a_change_leads_to_its_course(
    items: Sequence[Manifest], changes: Sequence[Change], said: dict[str, Any] | None
) -> None:
    """The whole course is compared; a change that cannot be made is refused."""
    if said is None:
        with pytest.raises(UsageError, match="there is no ReplicaSet web"):
            try_steps(inputs_of(*items), changes)
        return
    course = try_steps(inputs_of(*items), changes)
    assert _said(course) == said
    assert course.is_quiet


def test_a_pod_without_a_node_has_its_reason() -> None:
    """The message is the scheduler's."""
    course = try_steps(inputs_of(*_FULL), [Apply(pod_manifest("x", cpu="1"))])
    (waiting,) = course.newly_pending
    assert waiting.pod == "default/x"
    assert waiting.reason.startswith(_NO_CPU)
    assert course.worse == ("1 pod without a node",)


def test_a_world_stays_as_it_is() -> None:
    """The same question has the same answer twice."""
    inputs = inputs_of(*_WEB)
    first = try_steps(inputs, [Drain("n1"), Scale("ReplicaSet", "default", "web", 4)])
    second = try_steps(inputs, [Drain("n1"), Scale("ReplicaSet", "default", "web", 4)])
    assert first == second


def test_another_configuration_decides_about_pods_that_wait() -> None:
    """Without NodeResourcesFit a pod goes to a full node; bound pods stay."""
    config = parse_config(
        """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      disabled: [{name: NodeResourcesFit}]
"""
    )
    inputs = inputs_of(*_FULL, bare("waits", cpu="4"))
    course = try_steps(inputs, [Reconfigure(config, in_tree_registry())])
    assert [each.pod for each in course.starts] == ["default/waits"]
    assert not course.ended
    assert not course.moves


def test_an_object_that_a_server_would_refuse_is_refused() -> None:
    """The rules of admission are those of the API server."""
    pod = pod_manifest("x", priorityClassName="unknown")
    with pytest.raises(UsageError, match="no PriorityClass with name unknown was found"):
        try_steps(inputs_of(), [Apply(pod)])


def test_a_changed_template_is_refused() -> None:
    """A rollout is not played."""
    changed = replica_set("web", 2, cpu="1")
    with pytest.raises(UsageError, match="rollout"):
        try_steps(inputs_of(*_WEB), [Apply(changed)])


def _job(**spec: Any) -> Manifest:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"template": template, **spec},
    }


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        pytest.param({}, 1, id="one pod by default"),
        pytest.param({"parallelism": 5, "completions": 2}, 2, id="no more than completions"),
        pytest.param({"parallelism": 0}, 0, id="a parallelism of zero"),
        pytest.param({"suspend": True}, 0, id="a suspended job"),
        pytest.param({"managedBy": "example.com/queue"}, 0, id="another controller makes the pods"),
    ],
)
def test_a_job_gets_the_pods_that_its_controller_makes(spec: dict[str, Any], count: int) -> None:
    """A suspended job, or one of another controller, gets none."""
    assert len(try_steps(inputs_of(), [Apply(_job(**spec))]).starts) == count


_SET_OF_DEPLOYMENT = replica_set("web", 2)
_SET_OF_DEPLOYMENT["metadata"]["ownerReferences"] = [
    {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop", "uid": "u", "controller": True}
]


@pytest.mark.parametrize(
    "change",
    [
        Scale("ReplicaSet", "default", "web", 4),
        Delete("ReplicaSet", "default", "web"),
        Apply(replica_set("web", 4)),
    ],
)
def test_the_set_of_a_deployment_is_not_sized_by_itself(change: Change) -> None:
    """The controller of the Deployment takes such a change back."""
    with pytest.raises(UsageError, match="Deployment shop, whose controller takes the change back"):
        try_steps(inputs_of(_SET_OF_DEPLOYMENT, pod_of("web", 0, "n1")), [change])


def test_a_namespace_is_deleted_with_everything_in_it() -> None:
    """No owner in it makes pods again, and the room is free for a pod of another namespace."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    inside = [
        {**each, "metadata": {**each["metadata"], "namespace": "shop"}}
        for each in (*_WEB, *_FULL[1:])
    ]
    inputs = inputs_of(namespace, *inside, bare("waits", cpu="4"))
    course = try_steps(inputs, [Delete("Namespace", "", "shop")])
    assert len(course.ended) == 4
    assert [each.pod for each in course.starts] == ["default/waits"]


def test_a_namespace_that_a_server_keeps_is_not_deleted() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
    with pytest.raises(UsageError, match="namespace kube-system may not be deleted"):
        try_steps(inputs_of(namespace), [Delete("Namespace", "", "kube-system")])


def test_an_object_is_deleted_with_the_pods_that_it_owns() -> None:
    """The garbage collector deletes them; an object of a kind that is not read is refused."""
    queue = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "q", "uid": "uid-q"}}
    owned = bare("a", "n1", cpu="4")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Service", "name": "q", "uid": "uid-q"}
    ]
    course = try_steps(inputs_of(queue, owned), [Delete("Service", "default", "q")])
    assert [each.pod for each in course.ended] == ["default/a"]
    with pytest.raises(UsageError, match="no CronJob is read here"):
        try_steps(inputs_of(), [Delete("CronJob", "default", "nightly")])


def test_an_object_whose_controller_is_not_played_is_refused() -> None:
    """A schedule or a measured load would make pods later."""
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": _job()["spec"]}},
    }
    with pytest.raises(UsageError, match="CronJob makes Jobs by its schedule"):
        try_steps(inputs_of(), [Apply(cron_job)])


def test_an_object_that_owns_no_pods_is_put_and_deleted() -> None:
    """A Service changes no pod."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    course = try_steps(inputs_of(*_WEB), [Apply(service), Delete("Service", "default", "s")])
    assert _said(course) == {}
    with pytest.raises(UsageError, match="there is no Service default/s"):
        try_steps(inputs_of(), [Delete("Service", "default", "s")])


def test_a_course_can_be_told_to_programs() -> None:
    """The names are those of the documented JSON."""
    course = try_steps(inputs_of(*_WEB), [Drain("n1")])
    plain = msgspec.to_builtins(course)
    assert plain["moves"][0]["fromNode"] == "n1"
    assert set(plain) == {
        "anyway",
        "starts",
        "moves",
        "lost",
        "newlyPending",
        "stillPending",
        "ended",
        "isQuiet",
        "nodes",
        "zones",
        "notEvicted",
        "drainFlags",
        "orderMatters",
        "volumesAnywhere",
        "jobPods",
    }


def _member(number: int, minimum: int) -> Apply:
    prefix = "pod-group.scheduling.sigs.k8s.io"
    labels = {f"{prefix}/name": "gang", f"{prefix}/min-available": str(minimum)}
    return Apply(pod_manifest(f"gang-{number}", cpu="3", labels=labels))


_AT_PERMIT = f"""{COSCHEDULING}
---
apiVersion: moorage.dev/v1alpha1
kind: MoorageConfiguration
profiles: [{{schedulerName: default-scheduler, groupMode: permit}}]
"""


@pytest.mark.parametrize("config", [COSCHEDULING, _AT_PERMIT], ids=["on trial", "held at Permit"])
@pytest.mark.parametrize(
    ("members", "said"),
    [
        pytest.param(
            3,
            {"starts": ["default/gang-0 n", "default/gang-1 n", "default/gang-2 n"]},
            id="a gang for which there is room",
        ),
        pytest.param(4, {"newly": ["new"] * 4}, id="a gang with one member too many"),
    ],
)
def test_a_gang_starts_as_a_whole_or_not_at_all(
    members: int, said: dict[str, Any], config: str
) -> None:
    """Each node has room for one member."""
    inputs = msgspec.structs.replace(inputs_of(), config=parse_config(config))
    found = _said(try_steps(inputs, [_member(number, members) for number in range(members)]))
    found = {name: [line.rstrip("123") for line in lines] for name, lines in found.items()}
    assert found == said


def _holding_back(seconds: float) -> str:
    return f"""{COSCHEDULING}
---
apiVersion: moorage.dev/v1alpha1
kind: MoorageConfiguration
profiles: [{{schedulerName: default-scheduler, holdBackAfterSeconds: {seconds}}}]
"""


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        pytest.param(
            60,
            "0/3 nodes are available: 3 node(s) held back for pod group default/gang.",
            id="a group that has waited for a minute",
        ),
        pytest.param(3600, None, id="a group that would have to wait for an hour"),
    ],
)
def test_room_is_held_back_for_a_group(seconds: float, said: str | None) -> None:
    """The group needs the nodes of three pods that end after an hour."""
    running = [
        bare(f"old-{number}", f"n{number}", cpu="2", activeDeadlineSeconds=3600)
        for number in (1, 2, 3)
    ]
    for each in running:
        each["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}
    members = [_member(number, 3) for number in range(3)]
    pending = [
        {**each.manifest, "metadata": {**each.manifest["metadata"], "uid": f"uid-{number}"}}
        for number, each in enumerate(members)
    ]
    inputs = inputs_of(*running, *pending)
    inputs = msgspec.structs.replace(inputs, config=parse_config(_holding_back(seconds)))
    course = try_steps(inputs, [Apply(pod_manifest("late", cpu="2"))])
    reasons = [] if said is None else [said]
    assert [each.reason for each in course.newly_pending] == reasons


_GROUPS = {
    "scheduling.x-k8s.io/v1alpha1": {"minMember": 3},
    "scheduling.k8s.io/v1alpha2": {"schedulingPolicy": {"gang": {"minCount": 3}}},
}


def _group(version: str, members: int) -> list[Change]:
    """Return changes that create a PodGroup of three and its members, the members first."""
    group = {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "g"}}
    fields: dict[str, Any] = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}
    if version.startswith("scheduling.k8s.io"):
        fields = {"schedulingGroup": {"podGroupName": "g"}}
    pods = [pod_manifest(f"gang-{number}", cpu="3", **fields) for number in range(members)]
    return [*map(Apply, pods), Apply({**group, "spec": _GROUPS[version]})]


def _gang_config(version: str) -> LoadedConfiguration:
    """Return a configuration under which the scheduler places the groups of an API."""
    if "x-k8s" in version:
        return parse_config(COSCHEDULING)
    gates = feature_gates({"GenericWorkload": True, "GangScheduling": True}, "1.36")
    return msgspec.structs.replace(LoadedConfiguration(), gates=gates)


@pytest.mark.parametrize("version", _GROUPS)
@pytest.mark.parametrize(
    ("members", "said"),
    [
        pytest.param(
            3,
            {"starts": ["default/gang-0 n", "default/gang-1 n", "default/gang-2 n"]},
            id="a whole group",
        ),
        pytest.param(2, {"newly": ["new"] * 2}, id="a group that lacks a member"),
    ],
)
def test_a_pod_group_is_applied_with_its_pods(
    version: str, members: int, said: dict[str, Any]
) -> None:
    inputs = msgspec.structs.replace(inputs_of(), config=_gang_config(version))
    found = _said(try_steps(inputs, _group(version, members)))
    assert {n: [line.rstrip("123") for line in lines] for n, lines in found.items()} == said


def test_members_that_came_early_name_the_members_of_now() -> None:
    """The first member was tried when it was the only one."""
    version = "scheduling.x-k8s.io/v1alpha1"
    inputs = msgspec.structs.replace(inputs_of(), config=_gang_config(version))
    *pods, group = _group(version, 2)
    course = try_steps(inputs, [group, *pods])
    assert [each.reason for each in course.newly_pending] == [
        f"0/3 nodes are available: pre-filter pod gang-{number} cannot find enough sibling pods, "
        "current pods number: 2, minMember of group: 3."
        for number in (0, 1)
    ]


def test_pod_groups_of_two_groups_are_deleted_by_name() -> None:
    """Both kinds are named PodGroup; the one that is there goes."""
    for version in _GROUPS:
        *_pods, group = _group(version, 0)
        gone = Delete("PodGroup", "default", "g")
        assert not try_steps(inputs_of(), [group, gone]).worse
        with pytest.raises(UsageError, match="there is no PodGroup default/g"):
            try_steps(inputs_of(), [group, gone, gone])
