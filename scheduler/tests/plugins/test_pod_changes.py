"""Changes of pods by node, added up, equal the pods that nodes have.

Left out: the sums that plugins make of them (their own tests).
"""

from __future__ import annotations

from hypothesis import given, settings

from moorage.plugins.pod_changes import PodChanges
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.snapshot.builders import cluster, node, pod
from scheduler.tests.snapshot.histories import World, histories


@settings(max_examples=50)
@given(histories)
def test_changes_through_any_history_add_up_to_the_pods_of_the_nodes(history):
    world = World()
    table = world.snapshot.table
    changes = PodChanges(table)
    by_node: dict[str, dict[str, PodInfo]] = {}
    for event in history:
        world.apply(event)
        for change in changes.read():
            pods = by_node.setdefault(change.node, {})
            for info in change.departures:
                del pods[info.uid]
            for info in change.arrivals:
                assert info.uid not in pods
                pods[info.uid] = info
            pods.update({info.uid: info for info in change.after})
        known = {name: pods for name, pods in by_node.items() if pods}
        assert known == {
            name: pods for name, pods in zip(table.names, table.pods_by_row, strict=True) if pods
        }


def test_a_changed_pod_is_there_in_two_versions_and_neither_arrives_nor_departs():
    table = cluster(node("n")).table
    changes = PodChanges(table)
    table.add_pod(pod("p"), "n")
    (arrival,) = changes.read()
    assert [info.name for info in arrival.arrivals] == ["p"]
    table.update_pod(pod("p", labels={"app": "web"}), "n")
    (change,) = changes.read()
    assert change.before == arrival.after
    assert [info.labels for info in change.after] == [{"app": "web"}]
    assert (change.departures, change.arrivals) == ([], [])
    assert changes.read() == []


def test_every_pod_departs_from_a_deleted_node():
    table = cluster(node("n"), node("other")).table
    changes = PodChanges(table)
    table.add_pod(pod("p"), "n")
    changes.read()
    table.remove_node("n")
    (change,) = changes.read()
    assert change.node == "n"
    assert [info.name for info in change.departures] == ["p"]
    assert changes.read() == []
