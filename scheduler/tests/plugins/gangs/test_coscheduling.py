"""Coscheduling's queue order and ``minResources``, by hand-made clusters; labels and arguments.

What the plugin does in attempts is told in ``scheduler/tests/service`` and ``tests/scenarios``.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.claims import ClaimUsers
from moorage.api.codec import from_dict
from moorage.api.coscheduling import CoschedulingGroup, minimum_of
from moorage.api.pod import Pod
from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError
from moorage.base.rng import Streams
from moorage.config.plugin_args_optional import CoschedulingArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.status import ReasonTable
from moorage.plugins.gangs.coscheduling import Coscheduling
from moorage.snapshot.group_labels import (
    CUSTOM_SOURCE,
    LABEL_SOURCE,
    CustomGroups,
    LabelledGroups,
    SeveralSources,
)
from moorage.snapshot.pod_groups import GroupSource
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod

SECOND = 10**9


def world(*groups: dict[str, Any], pods: list[Pod] | None = None) -> Snapshot:
    """Return a cluster of two nodes of 4 cpu and 2 pods each, with groups and their pods."""
    snapshot = Snapshot()
    members = snapshot.groups.members
    sources: dict[str, GroupSource] = {
        CUSTOM_SOURCE: CustomGroups(snapshot.listers.coscheduling_groups, members),
        LABEL_SOURCE: LabelledGroups(members),
    }
    snapshot.groups.source = SeveralSources(sources, {}, snapshot.groups.succeeded)
    for name in ("n0", "n1"):
        snapshot.table.add_node(node(name, cpu="4", pods="2"))
    for group in groups:
        snapshot.listers.coscheduling_groups.put(from_dict(CoschedulingGroup, group))
    for each in pods or ():
        snapshot.groups.put_pod(each)
        if each.spec.node_name:
            snapshot.table.add_pod(each, each.spec.node_name)
    return snapshot


def plugin(snapshot: Snapshot, mode: Any = "trial") -> Coscheduling:
    handle = Handle(
        profile_name="mine",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
        group_mode=mode,
    )
    return Coscheduling(CoschedulingArgs(), handle)


def group(name: str, created: int = 0, **spec: Any) -> dict[str, Any]:
    stamp = f"1970-01-01T00:00:{created:02}Z"
    metadata = {"namespace": "default", "name": name, "creationTimestamp": stamp}
    return {"metadata": metadata, "spec": {"minMember": 2, **spec}}


def of(name: str, named: str, **fields: Any) -> Pod:
    return pod(name, labels={"scheduling.x-k8s.io/pod-group": named}, **fields)


def labelled(name: str, named: str, least: str = "2", **fields: Any) -> Pod:
    prefix = "pod-group.scheduling.sigs.k8s.io"
    return pod(name, labels={f"{prefix}/name": named, f"{prefix}/min-available": least}, **fields)


def order(snapshot: Snapshot, queued: list[tuple[Pod, int]], mode: str = "trial") -> list[str]:
    sorting = plugin(snapshot, mode)
    keyed = [(sorting.sort_key(each.priority, at, each), each.name) for each, at in queued]
    return [name for _, name in sorted(keyed)]


def test_queue_order_of_groups_by_creation_time():
    a, b = [of(f"a{i}", "a") for i in range(2)], [of(f"b{i}", "b") for i in range(2)]
    snapshot = world(group("a", 20), group("b", 10), pods=[*a, *b])
    alone, urgent = pod("alone"), pod("urgent", priority=5)
    queued = [(alone, 15), (a[0], 1), (b[1], 2), (a[1], 3), (b[0], 4), (urgent, 50)]
    at = [(each, seconds * SECOND) for each, seconds in queued]
    assert order(snapshot, at) == ["urgent", "b0", "b1", "alone", "a0", "a1"]


def test_queue_order_of_label_groups_by_their_first_pod():
    first, second = labelled("late", "g"), labelled("early", "g")
    snapshot = world(pods=[first, second])
    queued = [(first, 10), (pod("between"), 11), (second, 12)]
    assert order(snapshot, queued) == ["early", "late", "between"]


def test_missing_pods_of_a_started_group_sort_first_in_mode_trial_only():
    runs, missing, other = of("a0", "a", node_name="n0"), of("a1", "a"), of("b0", "b")
    snapshot = world(group("a", 20), group("b", 10), pods=[runs, missing, other])
    queued = [(missing, 0), (other, 0)]
    assert order(snapshot, queued) == ["a1", "b0"]
    assert order(snapshot, queued, "permit") == ["b0", "a1"]


@pytest.mark.parametrize(
    ("asked", "running", "expected"),
    [
        pytest.param({"cpu": "8"}, [], "", id="all there is"),
        pytest.param({"cpu": "9"}, [], "resource gap: map[cpu:1000]", id="more than there is"),
        pytest.param({"cpu": "8"}, [pod("x", cpu="1", node_name="n0")], "map[cpu:1000]", id="used"),
        pytest.param(
            {"cpu": "8"}, [of("a9", "a", cpu="1", node_name="n0")], "", id="by the group itself"
        ),
        pytest.param({"example.com/gpu": "1"}, [], "map[example.com/gpu:1]", id="unheard of"),
        pytest.param(
            {"cpu": "1"},
            [pod(f"x{i}", node_name=f"n{i // 2}") for i in range(3)],
            "map[pods:1]",
            id="places for pods count too",
        ),
    ],
)
def test_min_resources(asked: dict[str, str], running: list[Pod], expected: str):
    pods = [of("a0", "a"), of("a1", "a"), *running]
    snapshot = world(group("a", minResources=asked), pods=pods)
    status = plugin(snapshot).group_ready(pods[0])
    assert status.ok == (not expected)
    assert expected in status.message


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), ("03", 3), ("+2", 2), ("0", None), ("-1", None), ("2.0", None), ("x", None)],
)
def test_min_available(text: str, number: int | None):
    found = labelled("p", "g", least=text)
    assert minimum_of(found) == number
    assert (world().groups.key_of(found) is None) == (number is None)


@pytest.mark.parametrize(
    ("args", "fault"),
    [
        (CoschedulingArgs(permit_waiting_time_seconds=-1), "permitWaitingTimeSeconds"),
        (CoschedulingArgs(pod_group_backoff_seconds=-1), "podGroupBackoffSeconds"),
        (CoschedulingArgs(pod_group_reject_percentage=101), "podGroupRejectPercentage"),
    ],
)
def test_invalid_arguments(args: CoschedulingArgs, fault: str):
    handle = Handle(
        profile_name="mine",
        snapshot=Snapshot(),
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
    )
    with pytest.raises(ConfigError, match=fault):
        Coscheduling(args, handle)


@pytest.mark.parametrize("mode", ["trial", "permit"])
def test_the_pods_of_an_event_are_the_pods_its_hint_queues(mode: str):
    """Incomplete and complete groups of both sources, one that asks for resources, one unknown."""
    pods = [
        *(of(f"whole{i}", "whole") for i in range(2)),
        of("part0", "part"),
        of("rich0", "rich", cpu="1"),
        of("lost0", "lost"),
        *(labelled(f"old{i}", "old") for i in range(2)),
        labelled("new0", "new"),
        pod("alone"),
    ]
    asking = group("rich", minResources={"cpu": "2"})
    snapshot = world(group("whole"), group("part"), asking, pods=pods)
    node_gone = node("n2")
    for registration in plugin(snapshot, mode).events_to_register():
        hint, concerns = registration.hint, registration.concerns
        if hint is None or concerns is None:
            continue
        for new in (*pods, of("whole9", "whole"), pod("alone9"), node_gone, None):
            named = concerns(None, new)
            assert not isinstance(named, ClaimUsers)
            queued = [each.name for each in pods if hint(each, None, new)]
            told = [each.name for each in (pods if named is None else named)]
            assert sorted(told) == sorted(queued), (registration.event, new)


@pytest.mark.parametrize(
    ("mode", "new", "gated", "woken"),
    [
        pytest.param("permit", "p2", [], ["p0", "p1", "p3"], id="the last member that is needed"),
        pytest.param("permit", "p1", [], ["p0", "p2", "p3"], id="a member of several that came"),
        pytest.param("permit", "p3", [], [], id="a further member is tried alone"),
        pytest.param("permit", "p3", ["p1"], ["p0", "p1", "p2"], id="one more, as one is gated"),
        pytest.param("permit", "p2", ["p2"], ["p0", "p1", "p3"], id="the last one is gated"),
        pytest.param("trial", "p3", [], ["p0", "p1", "p2"], id="in mode trial"),
    ],
)
def test_a_new_member_wakes_the_members_of_the_group_it_completes(mode, new, gated, woken):
    gates = [{"name": "example.com/wait"}]
    pods = {
        name: labelled(name, "old", least="3", schedulingGates=gates if name in gated else [])
        for name in ("p0", "p1", "p2", "p3")
    }
    registration = plugin(world(pods=list(pods.values())), mode).events_to_register()[0]
    hint = registration.hint
    assert hint is not None
    others = [each for name, each in pods.items() if name != new]
    assert [each.name for each in others if hint(each, None, pods[new])] == woken


ROOM: list[Any] = [
    pytest.param(pod("x", node_name="n0"), None, ["whole0", "whole1"], id="a pod is deleted"),
    pytest.param(pod("x"), None, [], id="a pod without a node is deleted"),
    pytest.param(of("whole9", "whole", node_name="n0"), None, [], id="the group's own pod"),
    pytest.param(of("part9", "part", node_name="n0"), None, ["whole0", "whole1"], id="another's"),
    pytest.param(None, node("n9"), ["whole0", "whole1"], id="a node is added"),
    pytest.param(node("n1"), node("n1"), ["whole0", "whole1"], id="a node changes"),
]


@pytest.mark.parametrize(("old", "new", "expected"), ROOM)
def test_in_mode_permit_room_wakes_the_members_of_complete_groups(old, new, expected: list[str]):
    waiting = [*(of(f"whole{i}", "whole") for i in range(2)), of("part0", "part")]
    snapshot = world(group("whole"), group("part"), pods=waiting)
    *_, registration = plugin(snapshot, "permit").events_to_register()
    hint = registration.hint
    assert hint is not None
    assert [each.name for each in waiting if hint(each, old, new)] == expected
    *_, registration = plugin(snapshot, "trial").events_to_register()
    hint = registration.hint
    assert hint is not None
    assert [each.name for each in waiting if hint(each, old, new)] == []


def test_in_a_question_post_filter_rejects_no_waiting_member():
    """Outside of a question the group fails, because no other member has a node."""
    waiting = of("a", "g")
    asked = plugin(world(group("g"), pods=[waiting, of("b", "g")]), "permit")
    assert [_post_filter(asked, waiting), _in_question(asked, waiting)] == [
        "PodGroup default/g gets rejected due to Pod a is unschedulable even after PostFilter",
        "",
    ]


def _post_filter(asked: Coscheduling, waiting: Pod) -> str:
    _, status = asked.post_filter(CycleState(), PodInfo(waiting), {})
    return status.message


def _in_question(asked: Coscheduling, waiting: Pod) -> str:
    with asked.question(PodInfo(waiting)):
        return _post_filter(asked, waiting)
