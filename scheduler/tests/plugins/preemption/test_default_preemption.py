"""DefaultPreemption: who may preempt, what it says, the gate, and what it needs of the engine.

Candidates, victims and the choice are held to the reference in test_preemption_against_reference.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError
from moorage.base.rng import Streams
from moorage.config.defaults import default_config
from moorage.config.merge import expand_profiles
from moorage.config.plugin_args import DefaultPreemptionArgs
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision
from moorage.engine.select_node import smallest_name
from moorage.framework.cycle_state import CycleState, StateMissingError
from moorage.framework.handle import Handle
from moorage.framework.preemption import NoEvictions
from moorage.framework.profile import Profile
from moorage.framework.registry import PluginEntry, Registry
from moorage.framework.status import SUCCESS, ReasonTable, Status, unresolvable
from moorage.plugins.in_tree import IN_TREE
from moorage.plugins.preemption.default_preemption import DefaultPreemption
from moorage.plugins.preemption.evaluator import EVICTING
from moorage.snapshot.node_info import NodeInfo
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod

NO_CLAIMS = "no new claims to deallocate, preemption: "


class Evicting(NoEvictions):
    """Evictions are under way for one pod."""

    def running_for(self, uid: str) -> bool:
        return uid == "uid-default-held"


def cluster(*pods: tuple[Pod, str], nodes: int = 1) -> Snapshot:
    snapshot = Snapshot()
    for i in range(nodes):
        snapshot.table.add_node(node(f"n{i}", cpu="4"))
    for each, where in pods:
        snapshot.table.add_pod(each, where)
    return snapshot


def handle_of(snapshot: Snapshot) -> Handle:
    return Handle(
        profile_name="default-scheduler",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
        evictions=Evicting(),
    )


def decide(snapshot: Snapshot, preemptor: Pod, *further: type[Any]) -> Decision:
    """Let the default profile decide, with further Filter plugins at the end."""
    registry = Registry([*IN_TREE, *(PluginEntry(each.name, each) for each in further)])
    (spec,) = expand_profiles(default_config(), registry)
    names = (*spec.points["filter"], *(each.name for each in further))
    spec = msgspec.structs.replace(spec, points={**spec.points, "filter": names})
    profile = Profile(spec, registry, handle_of(snapshot))
    return Cycle(profile, snapshot, smallest_name).decide(PodInfo(preemptor))


def with_status(given: Pod, **status: Any) -> Pod:
    return msgspec.structs.replace(given, status=msgspec.structs.replace(given.status, **status))


def leaving(name: str, *conditions: Condition, priority: int = 0) -> Pod:
    given = with_status(pod(name, cpu="3", priority=priority), conditions=list(conditions))
    metadata = msgspec.structs.replace(given.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return msgspec.structs.replace(given, metadata=metadata)


def evicted(status: str = "True", reason: str = "PreemptionByScheduler") -> Condition:
    return Condition(type="DisruptionTarget", status=status, reason=reason)


def preemptor(nominated: str = "", **fields: Any) -> Pod:
    given = pod("preemptor", cpu="3", priority=10, **fields)
    return with_status(given, nominated_node_name=nominated)


TERMINATING = "not eligible due to a terminating pod on the nominated node."


@pytest.mark.parametrize(
    ("resident", "nominated", "message"),
    [
        pytest.param(leaving("a", evicted()), "n0", TERMINATING, id="a victim is still leaving"),
        pytest.param(leaving("a", evicted()), "", "", id="no node is nominated"),
        pytest.param(leaving("a", evicted()), "gone", "", id="the nominated node is unknown"),
        pytest.param(leaving("a"), "n0", "", id="a pod is leaving for a reason of its own"),
        pytest.param(
            leaving("a", evicted(reason="EvictionByEvictionAPI")),
            "n0",
            "",
            id="a victim of an API eviction",
        ),
        pytest.param(leaving("a", evicted(status="False")), "n0", "", id="the mark was taken back"),
        pytest.param(
            leaving("a", evicted(status="False"), evicted()), "n0", "", id="the first mark counts"
        ),
    ],
)
def test_a_pod_with_a_terminating_victim_does_not_preempt_again(resident, nominated, message):
    decision = decide(cluster((resident, "n0")), preemptor(nominated))
    assert decision.diagnosis is not None
    if message:
        assert decision.diagnosis.post_filter_message == NO_CLAIMS + message
        assert (decision.nomination, decision.victims) == (None, ())
    else:
        assert decision.diagnosis.post_filter_message == ""
        assert [each.metadata.name for each in decision.victims] == ["a"]


def test_a_terminating_pod_of_equal_priority_does_not_prevent_preemption():
    there = (leaving("a", evicted(), priority=10), "n0"), (pod("b", cpu="3"), "n1")
    decision = decide(cluster(*there, nodes=2), preemptor("n0"))
    assert decision.nomination is not None
    assert decision.nomination.node_name == "n1"


def test_no_candidate_clears_the_nomination_and_gives_a_reason_for_every_node():
    there = [(pod("equal", cpu="3", priority=10), "n0"), (pod("low", cpu="1"), "n1")]
    there += [(pod("high", cpu="3", priority=11), "n1")]
    snapshot = cluster(*there, nodes=2)
    snapshot.table.add_node(node("small", cpu="1"))
    decision = decide(snapshot, preemptor("n0"))
    assert decision.nomination is not None
    assert (decision.nomination.node_name, decision.victims) == ("", ())
    assert decision.message == (
        "0/3 nodes are available: 3 Insufficient cpu. " + NO_CLAIMS + "0/3 nodes are available: "
        "1 Insufficient cpu, 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


class Choosy:
    """A Filter that looks at the names of a node's pods, so that each node is tried alone."""

    name = "Choosy"

    def __init__(self, args: object, handle: Handle) -> None:
        del args, handle

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        del state, pod
        names = {each.name for each in node.pods}
        return unresolvable("bad company") if names & {"bad"} else SUCCESS


class Breaking(Choosy):
    """A Filter that breaks as soon as a pod is missing."""

    name = "Breaking"

    def filter_node(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if not list(node.pods):
            raise RuntimeError("nobody here")
        return SUCCESS


def test_a_pod_is_not_put_back_when_any_filter_rejects():
    # Room for the preemptor is there without the large pod; still the bad one has to go as well.
    there = (pod("bad", cpu="100m"), "n0"), (pod("large", cpu="3", priority=5), "n0")
    decision = decide(cluster(*there), preemptor(), Choosy)
    assert [each.metadata.name for each in decision.victims] == ["large", "bad"]


def test_a_filter_error_in_every_dry_run_keeps_the_nomination(caplog):
    decision = decide(cluster((pod("low", cpu="3"), "n0")), preemptor(), Breaking)
    assert (decision.nomination, decision.victims) == (None, ())
    assert decision.diagnosis is not None
    assert decision.diagnosis.post_filter_message == (
        'preemption: running "Breaking" filter plugin: nobody here'
    )
    assert "nobody here" in caplog.text


def test_pre_enqueue_rejects_while_evictions_are_under_way():
    plugin = DefaultPreemption(DefaultPreemptionArgs(), handle_of(cluster()))
    assert plugin.pre_enqueue(pod("held")) == unresolvable(EVICTING)
    assert plugin.pre_enqueue(pod("other")) == SUCCESS
    (registration,) = plugin.events_to_register()
    assert registration.event == ClusterEvent(Resource.POD, Action.DELETE)
    assert registration.hint is not None
    assert registration.hint(pod("held"), pod("victim"), None) is False


def test_post_filter_without_an_engine_raises():
    plugin = DefaultPreemption(DefaultPreemptionArgs(), handle_of(cluster()))
    with pytest.raises(StateMissingError):
        plugin.post_filter(CycleState(), PodInfo(preemptor()), {})


def test_arguments_that_try_no_node_are_invalid():
    args = DefaultPreemptionArgs(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=0)
    with pytest.raises(ConfigError):
        DefaultPreemption(args, handle_of(cluster()))
