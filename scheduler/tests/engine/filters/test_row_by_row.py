"""A plugin that costs a call for each node is asked only about nodes nobody before it failed."""

from __future__ import annotations

import pytest

from moorage.framework.status import SUCCESS, unschedulable
from moorage_sandbox.testing.builders import node, pod
from moorage_sandbox.testing.plugins import StillCluster

NODES = [
    node("full", cpu="1"),
    node("free", cpu="8"),
    node("picky", cpu="8"),
    node("closed", cpu="8", unschedulable=True),
]


def asking(asked: list[str], *, picky: bool):
    class Picky:
        name = "Picky"

        def __init__(self, args: object, handle: object) -> None:
            del args, handle

        def filter_node(self, state, pod, node):
            asked.append(node.name)
            return unschedulable("too good for it") if picky and node.name == "picky" else SUCCESS

    return Picky


@pytest.mark.parametrize("times", [1, 2], ids=["a new shape", "a known one"])
def test_only_nodes_that_passed_are_asked_about(times):
    asked: list[str] = []
    cluster = StillCluster(NODES, plugins=[asking(asked, picky=True)])
    for number in range(times):
        asked.clear()
        decision = cluster.decide(pod(f"p{number}", cpu="2"))
        assert decision.node_name == "free"
    assert sorted(asked) == ["free", "picky"]


def test_rows_that_were_not_asked_about_keep_their_filter_result():
    asked: list[str] = []
    cluster = StillCluster(NODES[:1] + NODES[2:], plugins=[asking(asked, picky=True)])
    decision = cluster.decide(pod("p", cpu="2"))
    assert decision.message.startswith(
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable, "
        "1 too good for it."
    )


def test_where_every_node_passed_it_is_asked_about_all():
    asked: list[str] = []
    StillCluster(NODES[1:3], plugins=[asking(asked, picky=False)]).decide(pod("p", cpu="1"))
    assert sorted(asked) == ["free", "picky"]


def test_where_no_node_is_left_it_is_not_asked():
    asked: list[str] = []
    StillCluster(NODES[:1], plugins=[asking(asked, picky=False)]).decide(pod("p", cpu="2"))
    assert asked == []
