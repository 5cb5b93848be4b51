"""How many more pods fit, what binds, and which nodes would place the pods that wait."""

from __future__ import annotations

import pytest

from moorage.base.errors import UsageError
from moorage.testing.builders import node, pod
from moorage.what_if.capacity import Kind, nodes_needed, room_for, shapes_of
from tests.what_if.cluster import bare, world_of


def test_pods_are_counted_until_one_finds_no_node() -> None:
    """Three nodes of four cores, one of them full: four pods of two cores."""
    room = room_for(world_of(bare("a", "n1", cpu="4")), [Kind(pod("p", cpu="2"))], most=100)
    assert (room.fit, room.pods, room.reached_most) == (4, 4, False)
    assert room.reasons == {"Insufficient cpu": 3}
    assert room.by_node == {"n2": 2, "n3": 2}
    assert room.message == "0/3 nodes are available: 3 Insufficient cpu."


def test_a_pod_that_waits_takes_its_room_first() -> None:
    """Its node is full when the counting begins."""
    room = room_for(world_of(bare("w", cpu="4"), nodes=2), [Kind(pod("p", cpu="2"))], most=100)
    assert room.fit == 2


def test_a_mix_counts_as_a_whole() -> None:
    """The small pods are spread, so a third big pod finds no node with three free cores."""
    mix = [Kind(pod("big", cpu="3")), Kind(pod("small", cpu="500m"), 2)]
    room = room_for(world_of(), mix, most=100)
    assert (room.fit, room.pods) == (2, 6)


def test_the_count_ends_at_its_limit() -> None:
    """Nothing binds there."""
    room = room_for(world_of(), [Kind(pod("p", cpu="1"))], most=5)
    assert (room.fit, room.pods, room.reached_most, room.message) == (5, 5, True, "")


def test_a_pod_that_no_profile_serves_is_refused() -> None:
    """The scheduler would not decide about it."""
    with pytest.raises(UsageError, match="no profile serves schedulerName other"):
        room_for(world_of(), [Kind(pod("p", schedulerName="other"))], most=5)


def test_nodes_are_added_until_no_pod_waits() -> None:
    """Four pods of three cores wait: each needs a node of its own."""
    waiting = [bare(f"w{number}", cpu="3") for number in range(4)]
    world = world_of(*waiting, bare("a", "n1", cpu="4"), nodes=1)
    (need,) = nodes_needed(world, shapes_of(world.objects))
    assert (need.like, need.nodes, need.placed, need.left) == ("n1", 4, 4, 0)


def test_a_shape_that_takes_no_pod_says_why() -> None:
    """Twelve cores fit on no such node."""
    world = world_of(bare("w", cpu="12"), nodes=1)
    (need,) = nodes_needed(world, shapes_of(world.objects))
    assert (need.nodes, need.placed, need.left) == (0, 0, 1)
    assert need.reason.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_nothing_is_needed_where_no_pod_waits() -> None:
    """There is nothing to place."""
    assert nodes_needed(world_of(), shapes_of(world_of().objects)) == []


def test_nodes_that_differ_only_by_name_have_one_shape() -> None:
    """The smallest shape comes first."""
    world = world_of(nodes=2)
    world.objects.nodes["big"] = node("big", cpu="64")
    assert [name for name, _manifest in shapes_of(world.objects)] == ["n1", "big"]
