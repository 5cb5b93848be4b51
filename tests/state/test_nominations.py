"""Nominations: who gets one, what keeps it, what others see of it."""

import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.state.nominations import NominatingInfo
from tests.state.build import NODE_ADD, World, pod


def nominations(world: World) -> dict[str, str]:
    world.queue.validate()
    return dict(world.queue.nominator)


BARE = Pod(metadata=ObjectMeta(name="a", namespace="ns", uid="uid-a"))


@pytest.mark.parametrize(
    ("in_api", "given", "info", "expected"),
    [
        pytest.param(
            pod(), pod(nominated="n1"), None, {"uid-a": "n1"}, id="its status names a node"
        ),
        pytest.param(pod(), pod(), None, {}, id="its status names none"),
        pytest.param(pod(), pod(), NominatingInfo("n2"), {"uid-a": "n2"}, id="decided by us"),
        pytest.param(
            pod(),
            pod(nominated="n1"),
            NominatingInfo("n2"),
            {"uid-a": "n2"},
            id="our decision goes before its status",
        ),
        pytest.param(
            pod(), pod(nominated="n1"), NominatingInfo(""), {"uid-a": ""}, id="withdrawn by us"
        ),
        pytest.param(None, pod(nominated="n1"), None, {}, id="a pod that is gone"),
        pytest.param(pod(node="n9"), pod(nominated="n1"), None, {}, id="a pod that is bound"),
    ],
)
def test_add(in_api, given, info, expected):
    world = World()
    if in_api is not None:
        world.api[in_api.key] = in_api
    world.queue.nominator.add(given, info)
    assert nominations(world) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(pod(), pod(labels={"x": "y"}), {"uid-a": "n1"}, id="an update without: kept"),
        pytest.param(None, pod(), {"uid-a": "n1"}, id="a first version without: kept"),
        pytest.param(pod(nominated="n1"), pod(), {}, id="cleared in the status: withdrawn"),
        pytest.param(pod(), pod(nominated="n2"), {"uid-a": "n2"}, id="changed in the status"),
    ],
)
def test_update_of_one_only_we_know_of(old, new, expected):
    world = World()
    world.api["ns", "a"] = new
    world.queue.nominator.add(pod(), NominatingInfo("n1"))
    world.queue.nominator.update(old, new)
    assert nominations(world) == expected


def test_a_new_pod_is_nominated_as_its_status_says():
    world = World()
    world.add(pod(nominated="n1"))
    assert nominations(world) == {"uid-a": "n1"}


@pytest.mark.parametrize("where", ["active", "backoff", "unschedulable"])
def test_an_update_moves_the_nomination_wherever_the_pod_waits(where):
    world = World()
    world.add(pod(nominated="n1"))
    if where != "active":
        world.fail(world.pop(), "Fit")
    if where == "backoff":
        world.queue.move_all(NODE_ADD, None, None)
    assert world.places() == {"a": where}
    world.queue.update(pod(nominated="n1"), pod(nominated="n2"))
    assert nominations(world) == {"uid-a": "n2"}
    world.queue.delete(pod(nominated="n2"))
    assert nominations(world) == {}


def test_others_see_the_queued_version_and_little_of_one_in_flight():
    world = World()
    changed: list[str] = []
    world.queue.nominator.on_change = changed.append
    nominator = world.queue.nominator
    world.add(pod(nominated="n1", priority=5))
    assert nominator.for_node("n1") == [pod(nominated="n1", priority=5)]
    assert nominator.for_node("n2") == []
    changed.clear()
    queued = world.pop()
    assert nominator.for_node("n1") == [BARE]
    assert changed == ["n1"]
    world.fail(queued, "Fit")
    assert nominator.for_node("n1") == [pod(nominated="n1", priority=5)]
    assert changed == ["n1", "n1"]
    world.queue.move_all(NODE_ADD, None, None)
    assert nominator.for_node("n1") == [pod(nominated="n1", priority=5)]


def test_nobody_is_told_of_nominations_to_no_node():
    world = World()
    changed: list[str] = []
    world.queue.nominator.on_change = changed.append
    world.add(pod(nominated="n1"))
    queued = world.pop()
    assert changed == ["n1", "n1"]
    changed.clear()
    world.queue.nominator.add(pod(nominated="n1"), NominatingInfo(""))
    assert changed == ["n1"]
    world.fail(queued, "Fit")
    world.queue.nominator.add(pod(), NominatingInfo(""))
    world.queue.delete(pod())
    assert changed == ["n1"]
    assert nominations(world) == {}


def test_pods_of_a_node_come_in_order_of_nomination():
    world = World()
    for name in "cab":
        world.add(pod(name, nominated="n1"))
    world.queue.nominator.add(pod("c"), NominatingInfo("n1"))
    assert [each.name for each in world.queue.nominator.for_node("n1")] == ["a", "b", "c"]
    world.queue.nominator.delete(pod("b"))
    assert [each.name for each in world.queue.nominator.for_node("n1")] == ["a", "c"]


def test_looking_up_one_nomination():
    world = World()
    world.add(pod(nominated="n1"))
    nominator = world.queue.nominator
    assert (nominator.node_of("uid-a"), nominator.node_of("uid-b")) == ("n1", None)
    assert ("uid-a" in nominator, len(nominator)) == (True, 1)


def test_who_is_the_only_one_nominated_to_a_node():
    world = World()
    world.add(pod(nominated="n1"))
    alone = world.queue.nominator.only_one
    found = [alone(uid, node) for uid in ("uid-a", "uid-b") for node in ("n1", "n2")]
    assert found == [True, False, False, False]
    world.add(pod("b", nominated="n1"))
    assert [alone(uid, "n1") for uid in ("uid-a", "uid-b")] == [False, False]
    world.queue.nominator.delete(pod())
    assert [alone(uid, "n1") for uid in ("uid-a", "uid-b")] == [False, True]


def test_a_pod_of_the_same_name_is_not_taken_for_the_nominated_one():
    world = World()
    world.add(pod(nominated="n1"))
    world.pop()
    world.add(pod(uid="uid-2"))
    assert world.queue.nominator.for_node("n1") == [BARE]
