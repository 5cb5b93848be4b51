"""The cache: every move on a pod held in every way, nodes that come and go, what the table sees."""

import pytest

from moorage.base.clock import ManualClock
from moorage.base.errors import CacheCorruptedError, CacheError
from moorage.snapshot.table import NodeTable
from moorage.state.cache import TRANSITIONS, Cache, Hold, Move
from moorage.state.cache_records import CacheCounts
from moorage.state.lifecycle import PodState
from scheduler.tests.state.build import Table, node, pod


def make() -> tuple[Cache, Table]:
    table = Table()
    return Cache(table, ManualClock()), table


def prepare(cache: Cache, hold: str) -> None:
    if hold == "assumed":
        cache.assume_pod(pod(), "n1")
    elif hold == "added":
        cache.add_pod(pod(node="n1"))


def held(cache: Cache) -> tuple[str, str] | None:
    dump = cache.dump()
    if "uid-a" not in dump.pods:
        return None
    return ("assumed" if cache.is_assumed("uid-a") else "added", dump.node_of_pod["uid-a"])


ABSENT = None
ASSUMED = ("assumed", "n1")
ADDED = ("added", "n1")
NAME = "uid-a(ns/a)"


@pytest.mark.parametrize(
    ("hold", "move", "args", "after"),
    [
        pytest.param("absent", "assume_pod", [pod(), "n1"], ASSUMED, id="assume a new pod"),
        pytest.param("absent", "forget_pod", [pod()], ABSENT, id="forget a pod not held: no error"),
        pytest.param("absent", "add_pod", [pod(node="n1")], ADDED, id="add a new pod"),
        pytest.param(
            "absent",
            "update_pod",
            [pod(node="n1"), pod(node="n1")],
            f"pod {NAME} is not added to scheduler cache, so cannot be updated",
            id="update a pod not held",
        ),
        pytest.param(
            "absent",
            "remove_pod",
            [pod(node="n1")],
            f"pod {NAME} is not found in scheduler cache, so cannot be removed from it",
            id="remove a pod not held",
        ),
        pytest.param(
            "assumed",
            "assume_pod",
            [pod(), "n2"],
            f"pod {NAME} is in the cache, so can't be assumed",
            id="assume twice",
        ),
        pytest.param("assumed", "forget_pod", [pod()], ABSENT, id="forget without naming the node"),
        pytest.param("assumed", "forget_pod", [pod(node="n1")], ABSENT, id="forget on its node"),
        pytest.param(
            "assumed",
            "forget_pod",
            [pod(node="n2")],
            f"pod {NAME} was assumed on n2 but assigned to n1",
            id="forget on another node",
        ),
        pytest.param("assumed", "add_pod", [pod(node="n1")], ADDED, id="the watch confirms"),
        pytest.param(
            "assumed",
            "add_pod",
            [pod(node="n2")],
            ("added", "n2"),
            id="the watch shows another node: the pod moves there",
        ),
        pytest.param(
            "assumed",
            "update_pod",
            [pod(), pod(node="n1")],
            f"assumed pod {NAME} should not be updated",
            id="update an assumed pod",
        ),
        pytest.param("assumed", "remove_pod", [pod(node="n1")], ABSENT, id="remove when assumed"),
        pytest.param(
            "added",
            "assume_pod",
            [pod(), "n1"],
            f"pod {NAME} is in the cache, so can't be assumed",
            id="assume an added pod",
        ),
        pytest.param(
            "added",
            "forget_pod",
            [pod()],
            f"pod {NAME} wasn't assumed so cannot be forgotten",
            id="forget an added pod",
        ),
        pytest.param(
            "added",
            "add_pod",
            [pod(node="n1")],
            f"pod {NAME} was already in added state",
            id="add twice",
        ),
        pytest.param(
            "added", "update_pod", [pod(node="n1"), pod(node="n1")], ADDED, id="update in place"
        ),
        pytest.param("added", "remove_pod", [pod(node="n1")], ABSENT, id="remove"),
        pytest.param(
            "added", "remove_pod", [pod()], ABSENT, id="remove by a version that had no node yet"
        ),
    ],
)
def test_each_move_on_a_pod_held_in_each_way(hold, move, args, after):
    cache, table = make()
    prepare(cache, hold)
    before = cache.dump()
    if isinstance(after, str):
        with pytest.raises(CacheError) as caught:
            getattr(cache, move)(*args)
        assert str(caught.value) == after
        assert not isinstance(caught.value, CacheCorruptedError)
        assert cache.dump() == before
    else:
        getattr(cache, move)(*args)
        assert held(cache) == after
    cache.validate()
    assert table.placed() == cache.dump().node_of_pod


@pytest.mark.parametrize(
    ("hold", "move", "args"),
    [
        pytest.param(
            "added",
            "update_pod",
            [pod(node="n1"), pod(node="n2")],
            id="an update names another node",
        ),
        pytest.param("added", "remove_pod", [pod(node="n2")], id="a removal names another node"),
        pytest.param(
            "assumed",
            "remove_pod",
            [pod(node="n2")],
            id="a removal of an assumed pod names another node",
        ),
    ],
)
def test_a_pod_on_two_nodes_is_corruption(hold, move, args):
    cache, _ = make()
    prepare(cache, hold)
    before = cache.dump()
    with pytest.raises(CacheCorruptedError, match="ns/a is on n1, the API says n2"):
        getattr(cache, move)(*args)
    assert cache.dump() == before


def test_the_table_of_moves_is_complete():
    assert set(TRANSITIONS) == {(hold, move) for hold in Hold for move in Move}


def test_a_pod_without_uid_is_refused():
    cache, _ = make()
    with pytest.raises(CacheError, match="cannot get cache key for pod with empty UID"):
        cache.add_pod(pod(uid="", node="n1"))


def test_a_held_pod_carries_its_node():
    cache, table = make()
    cache.assume_pod(pod(), "n1")
    assert cache.get_pod("uid-a") == pod(node="n1")
    assert table.pods == {"uid-a": ("n1", pod(node="n1"))}
    cache.add_pod(pod(node="n1", version="2"))
    assert cache.get_pod("uid-a") == pod(node="n1", version="2")
    cache.update_pod(pod(node="n1", version="2"), pod(node="n1", labels={"x": "y"}))
    assert table.pods == {"uid-a": ("n1", pod(node="n1", labels={"x": "y"}))}


def test_a_pod_that_the_cache_does_not_hold_is_not_found():
    cache, _ = make()
    with pytest.raises(CacheError, match="pod uid-a does not exist in scheduler cache"):
        cache.get_pod("uid-a")
    assert not cache.is_assumed("uid-a")


def test_confirmation_elsewhere_is_told(caplog):
    cache, _ = make()
    cache.assume_pod(pod(), "n1")
    cache.add_pod(pod(node="n2"))
    assert "ns/a was assumed on n1 but is bound to n2" in caplog.text


class TestNodes:
    def test_nodes_are_added_updated_and_removed(self):
        cache, table = make()
        cache.add_node(node("n1"))
        cache.update_node(node("n1"), node("n1", zone="z"))
        assert table.nodes == {"n1": node("n1", zone="z")}
        cache.remove_node(node("n1"))
        assert (table.nodes, cache.dump().nodes) == ({}, {})
        cache.validate()

    def test_adding_a_known_node_and_updating_an_unknown_node_are_accepted(self):
        cache, table = make()
        cache.update_node(node("n1"), node("n1"))
        cache.add_node(node("n1", zone="z"))
        assert table.nodes == {"n1": node("n1", zone="z")}

    def test_removing_an_unknown_node_is_an_error(self):
        cache, _ = make()
        with pytest.raises(CacheError, match="node n1 is not found"):
            cache.remove_node(node("n1"))

    def test_pods_of_an_unknown_node_are_kept_without_a_node(self):
        cache, _ = make()
        cache.add_pod(pod("a", node="n1"))
        cache.assume_pod(pod("b"), "n2")
        cache.add_node(node("n2"))
        assert cache.counts() == CacheCounts(nodes=2, pods=2, assumed_pods=1)
        cache.remove_node(node("n2"))
        assert cache.counts() == CacheCounts(nodes=2, pods=2, assumed_pods=1)
        cache.forget_pod(pod("b"))
        assert cache.counts() == CacheCounts(nodes=1, pods=1, assumed_pods=0)
        cache.remove_pod(pod("a"))
        assert cache.counts() == CacheCounts(nodes=0, pods=0, assumed_pods=0)


@pytest.mark.parametrize(
    ("way", "state"),
    [
        pytest.param([], PodState.ASSUMED, id="assumed"),
        pytest.param(["forget"], PodState.IN_FLIGHT, id="forgotten: back in flight"),
        pytest.param(["add"], PodState.BOUND, id="confirmed"),
        pytest.param(["add", "remove"], PodState.GONE, id="confirmed and removed"),
        pytest.param(["remove"], PodState.GONE, id="removed while assumed"),
    ],
)
def test_the_lifecycle_follows_the_moves_of_the_cache(way, state):
    cache, _ = make()
    cache.assume_pod(pod(), "n1")
    for step in way:
        getattr(cache, f"{step}_pod")(pod(node="n1"))
    assert cache.lifecycle.state("uid-a") is state


def test_the_cache_feeds_the_node_table():
    table = NodeTable()
    cache = Cache(table, ManualClock())
    cache.add_pod(pod("early", node="n1"))
    cache.add_node(node("n1"))
    cache.assume_pod(pod(), "n1")
    assert [each.pod.name for each in table.pods_by_row[0].values()] == ["early", "a"]
    cache.add_pod(pod(node="n1"))
    cache.remove_node(node("n1"))
    cache.remove_pod(pod("early", node="n1"))
    cache.add_node(node("n1"))
    assert [each.pod.name for each in table.pods_by_row[0].values()] == ["a"]
    cache.validate()
