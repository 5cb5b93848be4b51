"""The nodes that join a running cluster: names, zones, shapes and the mark for the agents."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.nodeshapes.new_nodes import highest_number, new_nodes
from moorage.nodeshapes.shapes import parse_shape


@pytest.mark.parametrize(
    ("names", "number"),
    [
        pytest.param([], 0, id="no nodes"),
        pytest.param(["gpu-7", "node-x", "node-3b", "node-"], 0, id="no numbered nodes"),
        pytest.param(["node-2", "node-010", "node-9"], 10, id="by value, not by text"),
    ],
)
def test_the_highest_number_in_node_names_is_found(names: list[str], number: int) -> None:
    assert highest_number(names) == number


def test_names_and_zones_of_new_nodes_continue_after_existing_nodes() -> None:
    made: list[Any] = new_nodes([], 3, first=9)
    zone = "topology.kubernetes.io/zone"
    assert [(each["metadata"]["name"], each["metadata"]["labels"][zone]) for each in made] == [
        ("node-09", "c"),
        ("node-10", "a"),
        ("node-11", "b"),
    ]
    assert {str(each["metadata"]["annotations"]) for each in made} == {
        "{'moorage.dev/played': 'true'}"
    }
    assert made[0]["status"]["allocatable"]["cpu"] == "8"


def test_new_nodes_have_the_given_shapes() -> None:
    shapes = [parse_shape("cpu=4"), parse_shape("g4dn.xlarge,count=1,taint=gpu=yes:NoSchedule")]
    made: list[Any] = new_nodes(shapes, 3, first=1)
    assert [each["status"]["capacity"].get("nvidia.com/gpu") for each in made] == [None, None, "1"]
    assert made[2]["spec"]["taints"] == [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
