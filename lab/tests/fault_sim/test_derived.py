"""Tables that were kept by increments: each kind of wrong increment is told.

The whole rule, with the objects of watches, is tried by one run with a mistake.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab.tests.fault_sim.pasts import APART, WEB, a_pod
from lab.tests.fault_sim.test_attempts import SCRIPT
from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.selectors import equality_selector
from moorage.snapshot.pod_columns import CountKey
from moorage.snapshot.table import NodeTable
from moorage_lab.fault_sim.fault_run import play
from moorage_lab.fault_sim.invariants.derived import differences
from moorage_sandbox.testing.builders import node_manifest

WEBS = CountKey(equality_selector(WEB), None, live_only=False)


def a_node(name: str, *, cpu: str = "2", zone: str = "a", version: str = "1") -> Node:
    node = node_manifest(name, cpu=cpu, labels={"zone": zone})
    node["metadata"]["resourceVersion"] = version
    return from_dict(Node, node)


POD = from_dict(Pod, a_pod("p", "n1", labels=WEB, affinity=APART))


def table() -> NodeTable:
    """Return two nodes and a pod, as built afresh; somebody has asked for labels and counts."""
    table = NodeTable()
    table.add_node(a_node("n1"))
    table.add_node(a_node("n2"))
    table.label_column("zone")
    table.pods.counts(WEBS)
    table.add_pod(POD, "n1")
    return table


def pod_forgotten(table: NodeTable) -> None:
    table.remove_pod("p")


def pod_on_another_node(table: NodeTable) -> None:
    table.remove_pod("p")
    table.add_pod(POD, "n2")


def node_missing(table: NodeTable) -> None:
    table.remove_node("n2")


def node_of_another_version(table: NodeTable) -> None:
    table.update_node(a_node("n2", version="0"))


def label_of_before(table: NodeTable) -> None:
    table.update_node(a_node("n2", zone="b"))


def room_of_before(table: NodeTable) -> None:
    table.update_node(a_node("n2", cpu="1"))


def counted_twice(table: NodeTable) -> None:
    table.columns.ensure("pod_count")[0] += 1


def selector_missed(table: NodeTable) -> None:
    table.pods.remove("p")
    table.pods.add("p", 0, "default", {}, live=True)


def term_left(table: NodeTable) -> None:
    table.terms.add(next(iter(table.pods_by_row[0].values())), 0)


@pytest.mark.parametrize(
    ("mistake", "difference"),
    [
        pytest.param(pod_forgotten, "pod_count", id="a pod is missing"),
        pytest.param(pod_on_another_node, "node n2: pods is", id="a pod is on another node"),
        pytest.param(node_missing, "node n2 is in one table", id="a node is missing"),
        pytest.param(node_of_another_version, "version is 0", id="a node has an old version"),
        pytest.param(label_of_before, "label zone is b", id="a label has its old value"),
        pytest.param(room_of_before, "allocatable cpu is 1000", id="room has its old value"),
        pytest.param(counted_twice, "pod_count is 2", id="a pod counts twice"),
        pytest.param(selector_missed, "count of ", id="a selector counts a pod no more"),
        pytest.param(term_left, "affinity terms", id="a term counts twice"),
    ],
)
def test_a_wrong_increment_is_reported(
    mistake: Callable[[NodeTable], None], difference: str
) -> None:
    updated = table()
    assert list(differences(updated, table())) == []
    mistake(updated)
    texts = list(differences(updated, table()))
    assert any(difference in each for each in texts), texts


def test_a_run_tells_of_a_node_whose_change_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeTable, "update_node", lambda *_: None)
    assert "derived" in {breach.invariant for breach in play(SCRIPT).breaches}
