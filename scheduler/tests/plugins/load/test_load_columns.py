"""The capacities of nodes follow changes of nodes.

Left out: scores by loads (`test_upstream_trimaran`).
"""

from __future__ import annotations

from moorage.plugins.load.load_columns import CpuCapacities
from scheduler.tests.plugins.builders import cluster, node


def test_capacities_follow_nodes_that_change_come_and_go():
    table = cluster(node("a", capacity={"cpu": "2"}), node("b", capacity={})).table
    capacities = CpuCapacities(table)
    assert capacities.by_row().tolist() == [2000, 0]
    table.update_node(node("b", capacity={"cpu": "500m"}))
    assert capacities.by_row().tolist() == [2000, 500]
    table.add_node(node("c", capacity={"cpu": "1"}))
    assert capacities.by_row().tolist() == [2000, 500, 1000]
    table.remove_node("a")
    by_name = dict(zip(table.names, capacities.by_row().tolist(), strict=True))
    assert by_name == {"b": 500, "c": 1000}
