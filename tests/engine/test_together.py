"""Several pods of one attempt: each sees those before it; all get a node or none does."""

from __future__ import annotations

from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.own import LoadedConfiguration
from moorage.engine.decision import Outcome
from moorage.engine.select_node import smallest_name
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.core import Core, build_core
from moorage.snapshot.pod_info import PodInfo
from moorage.testing.builders import node, pod


def _core(*nodes: str) -> Core:
    core = build_core(
        LoadedConfiguration(),
        in_tree_registry(),
        clock=ManualClock(),
        streams=Streams(1),
        tie_break=smallest_name,
    )
    for name in nodes:
        core.cache.add_node(node(name, cpu="2"))
    return core


def _members(count: int) -> list[PodInfo]:
    return [PodInfo(pod(f"m{i}", cpu="1")) for i in range(count)]


def test_each_pod_sees_those_before_it_and_nothing_is_held() -> None:
    core = _core("n1", "n2")
    cycle = core.cycles["default-scheduler"]
    decisions = cycle.decide_together(_members(4))
    assert [d.node_name for d in decisions] == ["n1", "n2", "n1", "n2"]
    assert core.snapshot.requested("cpu").tolist() == [0, 0]
    assert cycle.decide_together(_members(4))[-1].node_name == "n2"


def test_it_ends_with_the_first_that_gets_no_node() -> None:
    core = _core("n1")
    decisions = core.cycles["default-scheduler"].decide_together(_members(4))
    assert [d.outcome for d in decisions] == [Outcome.BIND, Outcome.BIND, Outcome.REJECT]
    assert decisions[-1].message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert core.snapshot.pod_count.tolist() == [0]


def test_it_decides_as_one_after_the_other_would() -> None:
    together, alone = _core("a", "b", "c"), _core("a", "b", "c")
    names = [d.node_name for d in together.cycles["default-scheduler"].decide_together(_members(5))]
    for member, name in zip(_members(5), names, strict=True):
        assert alone.cycles["default-scheduler"].decide(member).node_name == name
        alone.cache.assume_pod(member.pod, name)
