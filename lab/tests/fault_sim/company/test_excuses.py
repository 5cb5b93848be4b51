"""The excuses of totals: each is bounded, so a planted excess of its kind is still reported."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lab.tests.fault_sim.company.storm import gang_before_backlog
from moorage_lab.fault_sim.acts import Delete, Join, Patch
from moorage_lab.fault_sim.company import totals
from moorage_lab.fault_sim.company.plan import Plan
from moorage_lab.fault_sim.company.play import CompanyRun, play
from moorage_lab.fault_sim.company.totals import excesses
from moorage_lab.fault_sim.company.world import AnyWorldAct, GroupSize
from moorage_sandbox.testing.builders import node_manifest

COMES = Join(at=0.0, node=node_manifest("late", cpu="1"))
GOES = Delete(at=0.0, kind="Node", name="n2", namespace="")
CLOSES = Patch(
    at=0.0, kind="Node", name="n2", changes={"spec": {"unschedulable": True}}, namespace=""
)
CHANGES = [
    pytest.param(COMES, id="a node comes"),
    pytest.param(GOES, id="a node goes"),
    pytest.param(CLOSES, id="a node is cordoned"),
]


def with_change(change: AnyWorldAct, at: float) -> CompanyRun:
    """Play a gang of six on one node; another node, too small for its pods, changes."""
    world = gang_before_backlog(6)
    acts = sorted([*world.acts, replace(change, at=at)], key=lambda act: act.at)
    small = node_manifest("n2", cpu="100m")
    return play(replace(world, nodes=[*world.nodes, small], acts=acts))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("later", "allowed"),
    [
        pytest.param(0, 4, id="a plan for the moment of the change evicts nothing"),
        pytest.param(1, 5, id="a plan for the moment of the change evicts one pod"),
        pytest.param(2, 6, id="a plan for the moment of the change evicts two pods"),
    ],
)
def test_a_change_of_nodes_excuses_as_many_evictions_as_a_new_plan(
    change: AnyWorldAct, later: int, allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "plan_of", lambda *_args, **_more: Plan(evictions=4))
    monkeypatch.setattr(totals, "later_evictions", lambda *_args: later)
    found = [(each.rule, each.amount, each.allowed) for each in excesses(with_change(change, 20.0))]
    assert found == ([("evictions", 6, allowed)] if allowed < 6 else [])


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("at", "in_vain"),
    [
        pytest.param(1.5, 0, id="right before the bindings"),
        pytest.param(10.0, 0, id="between bindings and evictions"),
        pytest.param(20.0, 6, id="after the evictions"),
    ],
)
def test_a_change_of_nodes_excuses_only_bindings_that_it_may_explain(
    change: AnyWorldAct, at: float, in_vain: int
) -> None:
    """The wave counts as come before the pods that it evicts were bound."""
    run = replace(with_change(change, at), wave_versions={1: 0})
    found = [each.amount for each in excesses(run) if each.rule == "bound-in-vain"]
    assert found == ([in_vain] if in_vain else [])


@pytest.mark.parametrize("change", CHANGES)
def test_a_node_that_no_member_is_nominated_to_excuses_no_half_group(change: AnyWorldAct) -> None:
    run = with_change(change, 15.0)
    run = replace(run, world=replace(run.world, groups=(GroupSize(name="gang", least=7),)))
    assert [(each.rule, each.amount) for each in excesses(run)] == [("half-groups", 6)]
