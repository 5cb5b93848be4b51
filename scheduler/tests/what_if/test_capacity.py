"""How many more pods fit, what binds, and which nodes would place the pods that wait."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.coscheduling import SUB_GROUPS
from moorage.api.pod import Pod
from moorage.api.resources import POD_GROUPS
from moorage.base.errors import UsageError
from moorage.config.feature_gates import feature_gates
from moorage.config.load import parse_config
from moorage.virtual.deciding_half import ClusterInputs
from moorage.what_if.capacity.count import Kind
from moorage.what_if.change import AddNode
from moorage.what_if.course import try_steps
from moorage_sandbox.testing.builders import Manifest, node, node_manifest, pod
from scheduler.tests.what_if.capacity import nodes_needed, room_for, shapes_of
from scheduler.tests.what_if.cluster import COSCHEDULING, bare, inputs_of


def test_pods_are_counted_until_one_finds_no_node() -> None:
    """Three nodes of four cores, one of them full: four pods of two cores."""
    room = room_for(inputs_of(bare("a", "n1", cpu="4")), [Kind(pod("p", cpu="2"))], most=100)
    assert (room.fit, room.pods, room.reached_most) == (4, 4, False)
    assert room.reasons == {"Insufficient cpu": 3}
    assert room.by_node == {"n2": 2, "n3": 2}
    assert room.message == "0/3 nodes are available: 3 Insufficient cpu."


def test_a_pod_that_waits_takes_its_room_first() -> None:
    """Its node is full when the counting begins."""
    room = room_for(inputs_of(bare("w", cpu="4"), nodes=2), [Kind(pod("p", cpu="2"))], most=100)
    assert room.fit == 2


def test_a_mix_counts_as_a_whole() -> None:
    """The small pods are spread, so a third big pod finds no node with three free cores."""
    mix = [Kind(pod("big", cpu="3")), Kind(pod("small", cpu="500m"), 2)]
    room = room_for(inputs_of(), mix, most=100)
    assert (room.fit, room.pods) == (2, 6)


def test_the_count_ends_at_its_limit() -> None:
    """Nothing binds there."""
    room = room_for(inputs_of(), [Kind(pod("p", cpu="1"))], most=5)
    assert (room.fit, room.pods, room.reached_most, room.message) == (5, 5, True, "")


def test_a_pod_that_no_profile_serves_is_refused() -> None:
    """The scheduler would not decide about it."""
    with pytest.raises(UsageError, match="no profile serves schedulerName other"):
        room_for(inputs_of(), [Kind(pod("p", schedulerName="other"))], most=5)


def test_nodes_are_added_until_no_pod_waits() -> None:
    """Four pods of three cores wait: each needs a node of its own."""
    waiting = [bare(f"w{number}", cpu="3") for number in range(4)]
    inputs = inputs_of(*waiting, bare("a", "n1", cpu="4"), nodes=1)
    (need,) = nodes_needed(inputs, shapes_of(inputs))
    assert (need.like, need.nodes, need.placed, need.left) == ("n1", 4, 4, 0)


def test_a_shape_that_takes_no_pod_says_why() -> None:
    """Twelve cores fit on no such node."""
    inputs = inputs_of(bare("w", cpu="12"), nodes=1)
    (need,) = nodes_needed(inputs, shapes_of(inputs))
    assert (need.nodes, need.placed, need.left) == (0, 0, 1)
    assert need.reason.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_nothing_is_needed_where_no_pod_waits() -> None:
    """There is nothing to place."""
    assert nodes_needed(inputs_of(), shapes_of(inputs_of())) == []


def test_nodes_that_differ_only_by_name_have_one_shape() -> None:
    """The smallest shape comes first."""
    inputs = inputs_of(nodes=2)
    inputs.objects.nodes["big"] = node("big", cpu="64")
    assert [name for name, _manifest in shapes_of(inputs)] == ["n1", "big"]


_PREFIX = "pod-group.scheduling.sigs.k8s.io"


def _grouped(*items: Manifest, nodes: int = 3) -> ClusterInputs:
    config = parse_config(COSCHEDULING)
    return msgspec.structs.replace(inputs_of(*items, nodes=nodes), config=config)


def _member(cpu: str, minimum: int) -> Pod:
    labels = {f"{_PREFIX}/name": "gang", f"{_PREFIX}/min-available": str(minimum)}
    return pod("member", cpu=cpu, labels=labels)


def test_groups_are_counted_whole() -> None:
    """Three nodes take two pods of two cores each: one group of four, and no second one."""
    room = room_for(_grouped(), [Kind(_member("2", 4))], most=100)
    assert (room.fit, room.pods, room.reached_most) == (1, 4, False)
    assert sum(room.by_node.values()) == 4
    assert room.message


def test_groups_with_sub_groups_are_refused_by_name() -> None:
    """Copies of one pod are no whole group: its other sub-groups have other pods."""
    notes = {SUB_GROUPS: "role: prefill=2, decode=2"}
    labels = _member("2", 4).metadata.labels | {"role": "prefill"}
    like = pod("member", cpu="2", labels=labels, annotations=notes)
    with pytest.raises(UsageError, match="the group default/gang of pod member has sub-groups"):
        room_for(_grouped(), [Kind(like)], most=100)


def test_a_mix_may_have_groups_and_pods() -> None:
    """One mix takes three nodes of four cores but for three cores; a second finds no room."""
    mix = [Kind(_member("3", 3)), Kind(pod("small", cpu="1"), 2)]
    room = room_for(_grouped(), mix, most=100)
    assert (room.fit, room.pods) == (1, 5)


def test_no_pod_is_evicted_for_a_group() -> None:
    """The group is of higher priority than the pods that fill the nodes."""
    full = [bare(f"full{number}", f"n{number}", cpu="4", priority=0) for number in (1, 2, 3)]
    like = _member("2", 2)
    like = msgspec.structs.replace(like, spec=msgspec.structs.replace(like.spec, priority=100))
    room = room_for(_grouped(*full), [Kind(like)], most=100)
    assert (room.fit, room.pods) == (0, 0)
    assert "evicted" in room.message or "Insufficient cpu" in room.message


def test_a_group_of_the_api_is_copied_with_its_object() -> None:
    """The group's object says how many members it needs; without it nothing can be counted."""
    group = {
        "apiVersion": POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default", "uid": "g"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 4}}},
    }
    config = parse_config(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    )
    gates = feature_gates({"GenericWorkload": True, "GangScheduling": True}, "1.36")
    config = msgspec.structs.replace(config, gates=gates)
    like = pod("member", cpu="2", schedulingGroup={"podGroupName": "g"})
    found = msgspec.structs.replace(inputs_of(group), config=config)
    assert room_for(found, [Kind(like)], most=100).fit == 1
    with pytest.raises(UsageError, match="the group default/g of pod member does not exist"):
        room_for(msgspec.structs.replace(inputs_of(), config=config), [Kind(like)], most=100)


def test_more_members_than_the_minimum_are_placed_together() -> None:
    """A Deployment of five members with a minimum of two."""
    room = room_for(_grouped(), [Kind(_member("2", 2), 5)], most=100)
    assert (room.fit, room.pods) == (1, 5)


def test_nodes_are_added_until_a_group_fits_that_needs_several() -> None:
    """A pod that fits nowhere waits as well; each member of the group needs a node of its own."""
    labels = {f"{_PREFIX}/name": "gang", f"{_PREFIX}/min-available": "3"}
    members = [bare(f"m{number}", cpu="3", labels=labels) for number in range(3)]
    inputs = _grouped(bare("huge", cpu="64"), *members, bare("a", "n1", cpu="4"), nodes=1)
    (need,) = nodes_needed(inputs, shapes_of(inputs))
    assert (need.nodes, need.placed, need.left) == (3, 3, 1)
    assert "Insufficient cpu" in need.reason


@settings(max_examples=25, deadline=None)
@given(
    waiting=st.lists(st.sampled_from([500, 1000, 2000, 3000]), min_size=1, max_size=12),
    used=st.lists(st.sampled_from([0, 1, 3, 4]), min_size=1, max_size=3),
)
def test_nodes_that_are_needed_suffice_and_one_less_does_not(
    waiting: list[int], used: list[int]
) -> None:
    """The nodes are really added, in one course: then no pod waits."""
    pods = [bare(f"w{number}", cpu=f"{cpu}m") for number, cpu in enumerate(waiting)]
    bound = [bare(f"b{n}", f"n{n}", cpu=str(cpu)) for n, cpu in enumerate(used, start=1) if cpu]
    inputs = inputs_of(*pods, *bound, nodes=len(used))
    found = nodes_needed(inputs, shapes_of(inputs)[:1])
    count = found[0].nodes if found else 0
    course = try_steps(inputs, [AddNode(node_manifest(f"x{number}")) for number in range(count)])
    assert course.still_pending == ()
    if count:
        fewer = [AddNode(node_manifest(f"x{number}")) for number in range(count - 1)]
        assert try_steps(inputs, fewer).still_pending != ()
