"""The index of pods with volumes: kept by the table, by trials and by copies; and its log.

What the plugins make of it is in scheduler/tests/plugins.
"""

from __future__ import annotations

from typing import Any

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot


def pod(name: str, *volumes: dict[str, Any]) -> PodInfo:
    named = [{"name": f"v{index}", **each} for index, each in enumerate(volumes)]
    metadata = {"name": name, "namespace": "ns", "uid": name}
    return PodInfo(from_dict(Pod, {"metadata": metadata, "spec": {"volumes": named}}))


def claim(name: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": name}}


DISK = {"gcePersistentDisk": {"pdName": "d"}}


def shown(snapshot: Snapshot) -> dict[str, Any]:
    pods = snapshot.volume_pods
    return {
        "nodes": {name: sorted(pods.on_node(name)) for name in pods.nodes()},
        "c": (sorted(pods.nodes_of_claim(("ns", "c"))), pods.is_claimed(("ns", "c"))),
        "own": (pods.nodes_of_claim(("ns", "e-v0")), pods.is_claimed(("ns", "e-v0"))),
        "disk": [(name, info.name) for name, info in pods.with_disk(("gce", "d"))],
    }


NOTHING: dict[str, Any] = {"nodes": {}, "c": ([], False), "own": ([], False), "disk": []}


def cluster(*names: str) -> Snapshot:
    snapshot = Snapshot()
    for name in names:
        snapshot.table.add_node(from_dict(Node, {"metadata": {"name": name}}))
    return snapshot


def test_pods_are_found_by_node_claim_and_disk():
    snapshot = cluster("a", "b")
    table = snapshot.table
    table.add_pod(pod("plain", {"configMap": {"name": "x"}}), "a")
    table.add_pod(pod("one", claim("c"), claim("c")), "a")
    table.add_pod(pod("two", claim("c"), DISK), "b")
    table.add_pod(pod("e", {"ephemeral": {}}), "b")
    expected = {
        "nodes": {"a": ["one"], "b": ["e", "two"]},
        "c": (["a", "b"], True),
        "own": (["b"], False),
        "disk": [("b", "two")],
    }
    assert shown(snapshot) == expected
    with snapshot.trial() as trial:
        trial.remove_pod("one")
        trial.remove_pod("two")
        trial.add_pod(pod("three", DISK), 0)
        assert shown(snapshot)["c"] == ([], False)
        assert shown(snapshot)["disk"] == [("a", "three")]
    assert shown(snapshot)["c"] == (["a", "b"], True)
    for uid in ("plain", "one", "two", "e"):
        table.remove_pod(uid)
    assert shown(snapshot) == NOTHING


def test_pods_of_a_node_that_left_count_again_when_it_returns():
    snapshot = cluster("a", "b")
    snapshot.table.add_pod(pod("one", claim("c")), "a")
    before = shown(snapshot)
    snapshot.table.remove_node("a")
    assert shown(snapshot) == NOTHING
    snapshot.table.add_node(from_dict(Node, {"metadata": {"name": "a"}}))
    assert shown(snapshot) == before


def test_the_log_names_each_node_whose_pods_changed_once():
    snapshot = cluster("a", "b")
    log = snapshot.volume_pods.log
    start = log.position
    snapshot.table.add_pod(pod("one", claim("c")), "a")
    snapshot.table.add_pod(pod("two", claim("c")), "a")
    snapshot.table.add_pod(pod("three"), "b")
    assert log.since(start) == ["a"]
    assert log.since(log.position) == []


def test_a_reader_that_fell_behind_is_told_to_start_afresh():
    log: KeyLog[int] = KeyLog(limit=2)
    for key in range(5):
        log.append(key)
    assert log.since(0) is None
    assert log.since(3) == [3, 4]
    assert log.position == 5
