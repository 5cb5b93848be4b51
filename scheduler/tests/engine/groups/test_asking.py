"""Groups with extenders: who is asked what, nothing on trial while one is asked, a second look.

Not covered: how extenders are spoken to (client), a scheduler that runs (service).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.errors import ExtenderError
from moorage.engine.extenders.cycle import ExtendedCycle
from moorage.engine.groups.asking import AskingGroupCycle
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod_manifest
from scheduler.tests.engine.groups.test_cycle import GATES, KEY, cluster, cycle_for, members, said

Meanwhile = Callable[[Snapshot, str], None]
ZONED: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": "zone"}]}}


class Slow:
    """An extender that leaves the event loop to others before each answer, and keeps a log."""

    name, weight, prioritizes, binds = "slow", 1, True, False
    filters = True

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        rejects: Mapping[str, str] | None = None,
        interested: Sequence[str] | None = None,
        fails: bool = False,
        ignorable: bool = False,
        keeps: str | None = None,
        meanwhile: Meanwhile = lambda snapshot, asked: None,
    ) -> None:
        self.log: list[str] = []
        self.ignorable = ignorable
        self._snapshot = snapshot
        self._rejects = rejects or {}
        self._interested = interested
        self._fails = fails
        # Nodes whose victims may not leave; None where the extender does not judge victims.
        self._keeps = keeps
        self.preempts = keeps is not None
        self._meanwhile = meanwhile

    def interested(self, pod: Pod) -> bool:
        return self._interested is None or pod.name in self._interested

    async def _away(self, asked: str) -> None:
        """Let other code look at the cluster, and change it, while the attempt awaits."""
        self.log.append(asked)

        async def others() -> None:
            on_trial = [each.uid for each in self._pods_on_nodes() if "stranger" not in each.uid]
            assert on_trial == [], "a member is on a node while the attempt awaits"
            assert self._snapshot.groups.members(KEY).placed == 0
            self._meanwhile(self._snapshot, asked)

        await asyncio.gather(others())

    def _pods_on_nodes(self) -> Sequence[PodInfo]:
        rows = range(self._snapshot.num_nodes)
        return [info for row in rows for info in self._snapshot.pods(row)]

    async def filter(
        self, pod: Pod, nodes: Sequence[Node]
    ) -> tuple[Sequence[str], Mapping[str, str], Mapping[str, str]]:
        names = [each.name for each in nodes]
        await self._away(f"{pod.name}: {' '.join(names)}")
        if self._fails:
            raise ExtenderError("out of order")
        bad = {name: "busy" for name in names if name in self._rejects.get(pod.name, "").split()}
        return [name for name in names if name not in bad], bad, {}

    async def prioritize(self, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
        await self._away(f"score {pod.name}")
        return {}

    async def preempt(self, pod: Pod, victims: Any, *, on_node: Any) -> Any:
        await self._away(f"victims {pod.name}: {' '.join(sorted(victims))}")
        kept = (self._keeps or "").split()
        return {name: each for name, each in victims.items() if name not in kept}

    async def bind(self, pod: Pod, node_name: str) -> None:
        raise AssertionError(pod.name)


def asked(
    snapshot: Snapshot,
    pods: Sequence[PodInfo],
    least: int,
    extender: Slow,
    *,
    gates: Sequence[str] = GATES[:2],
    **spec: Any,
) -> GroupDecision:
    cycle = cycle_for(snapshot, pods, least, gates=gates, kind=ExtendedCycle, **spec)
    assert isinstance(cycle, ExtendedCycle)
    cycle.profile.extenders = (extender,)
    asking = AskingGroupCycle(cycle).asking(KEY, pods)
    assert asking is not None

    async def decide() -> GroupDecision:
        return await asking

    found = asyncio.run(decide())
    assert snapshot.groups.members(KEY).placed == 0
    snapshot.groups.validate()
    return found


def places(found: GroupDecision) -> dict[str, str]:
    return {each.decision.pod.name: each.node_name for each in found.members}


@settings(max_examples=60, deadline=None)
@given(
    rooms=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    cpus=st.lists(st.integers(1, 3), min_size=1, max_size=5),
    least=st.integers(1, 5),
    spread=st.booleans(),
    zoned=st.booleans(),
    data=st.data(),
)
def test_an_extender_that_accepts_every_node_changes_no_decision(
    rooms, cpus, least, spread, zoned, data
):
    pods, topology = members(cpus, spread=spread), ZONED if zoned else {}
    plain = cluster(rooms)
    expected = GroupCycle(cycle_for(plain, pods, least, gates=GATES, **topology)).decide_group(
        KEY, pods
    )
    snapshot = cluster(rooms)
    interested = data.draw(st.lists(st.sampled_from([each.name for each in pods]), min_size=1))
    slow = Slow(snapshot, interested=interested)
    found = asked(snapshot, pods, least, slow, gates=GATES, **topology)
    assert (found.outcome, found.status, found.placement) == (
        expected.outcome,
        expected.status,
        expected.placement,
    )
    assert said(found, pods) == said(expected, pods)
    assert snapshot.pod_count.tolist() == [0] * len(rooms)


@pytest.mark.parametrize(
    ("script", "outcome", "log", "expected"),
    [
        pytest.param(
            {},
            GroupOutcome.PLACED,
            ["p0: n0 n1", "score p0", "p1: n1"],
            {"p0": "n0", "p1": "n1"},
            id="the extender is asked about the nodes that are free beside the members before",
        ),
        pytest.param(
            {"rejects": {"p0": "n0"}},
            GroupOutcome.PLACED,
            ["p0: n0 n1", "p1: n0"],
            {"p0": "n1", "p1": "n0"},
            id="a node that the extender rejects is left to the next member",
        ),
        pytest.param(
            {"rejects": {"p1": "n0 n1"}},
            GroupOutcome.REJECTED,
            ["p0: n0 n1", "score p0", "p1: n1"],
            {"p0": "n0", "p1": ""},
            id="a member that the extender rejects keeps the group from being placed",
        ),
        pytest.param(
            {"interested": ["p1"]},
            GroupOutcome.PLACED,
            ["p1: n1"],
            {"p0": "n0", "p1": "n1"},
            id="a member without the extender's resources is placed without asking",
        ),
        pytest.param(
            {"fails": True},
            GroupOutcome.BROKEN,
            ["p0: n0 n1"],
            {"p0": ""},
            id="an extender that fails breaks the attempt",
        ),
        pytest.param(
            {"fails": True, "ignorable": True},
            GroupOutcome.PLACED,
            ["p0: n0 n1", "score p0", "p1: n1"],
            {"p0": "n0", "p1": "n1"},
            id="an ignorable extender that fails is left out",
        ),
    ],
)
def test_the_questions_to_the_extender_about_each_member(script, outcome, log, expected):
    snapshot, pods = cluster([1, 1]), members([1, 1])
    slow = Slow(snapshot, **script)
    found = asked(snapshot, pods, 2, slow)
    assert (found.outcome, slow.log, places(found)) == (outcome, log, expected)


def occupy(snapshot: Snapshot, *names: str, priority: int = 0) -> None:
    for name in names:
        manifest = pod_manifest(f"stranger-{name}", cpu="1", priority=priority)
        manifest["spec"]["nodeName"] = name
        manifest["metadata"]["uid"] = f"stranger-{name}"
        snapshot.table.add_pod(from_dict(Pod, manifest), name)


def once(what: Callable[[Snapshot], None], at: str) -> Meanwhile:
    """Return a change of the cluster that happens once, when the extender is asked about a pod."""
    done: list[str] = []

    def meanwhile(snapshot: Snapshot, asked: str) -> None:
        if asked.startswith(at) and not done:
            done.append(asked)
            what(snapshot)

    return meanwhile


@pytest.mark.parametrize(
    ("what", "outcome", "expected"),
    [
        pytest.param(
            lambda snapshot: occupy(snapshot, "n0"),
            GroupOutcome.PLACED,
            {"p0": "n1", "p1": "n2"},
            id="the node of the first member is taken: all are looked at anew",
        ),
        pytest.param(
            lambda snapshot: snapshot.table.remove_node("n0"),
            GroupOutcome.PLACED,
            {"p0": "n1", "p1": "n2"},
            id="the node of the first member goes: all are looked at anew",
        ),
        pytest.param(
            lambda snapshot: occupy(snapshot, "n0", "n1"),
            GroupOutcome.REJECTED,
            {"p0": "n2", "p1": ""},
            id="too little room is left: no member is placed",
        ),
        pytest.param(
            lambda snapshot: snapshot.table.add_node(
                node("n9", cpu="4", memory="8Gi", labels={"zone": "z9"})
            ),
            GroupOutcome.PLACED,
            {"p0": "n0", "p1": "n1"},
            id="a node comes: the answers still hold",
        ),
    ],
)
def test_the_cluster_changes_while_the_second_member_is_asked_about(what, outcome, expected):
    snapshot, pods = cluster([1, 1, 1]), members([1, 1])
    found = asked(snapshot, pods, 2, Slow(snapshot, meanwhile=once(what, "p1:")))
    assert (found.outcome, places(found)) == (outcome, expected)


def test_a_node_goes_while_members_are_tried_in_one_domain():
    snapshot, pods = cluster([1, 1, 1, 1]), members([1, 1])
    gone = once(lambda found: found.table.remove_node("n0"), "p1:")
    found = asked(snapshot, pods, 2, Slow(snapshot, meanwhile=gone), gates=GATES, **ZONED)
    assert (found.outcome, found.placement) == (GroupOutcome.PLACED, "z1")
    assert places(found) == {"p0": "n1", "p1": "n3"}


def test_a_cluster_that_never_stands_still_is_an_error():
    snapshot, pods = cluster([1] * 12), members([1, 1])
    seen: set[str] = set()

    def counted(found: Snapshot, asked: str) -> None:
        if asked.startswith("p1:"):
            free = [name for name in sorted(found.names) if name not in seen]
            seen.add(free[0])
            occupy(found, free[0])

    found = asked(snapshot, pods, 2, Slow(snapshot, meanwhile=counted))
    assert found.outcome is GroupOutcome.BROKEN
    assert found.status.message == (
        "the nodes changed while extenders were asked about the pod group"
    )


def test_a_profile_whose_extenders_are_not_interested_is_not_asked():
    snapshot, pods = cluster([1, 1]), members([1, 1])
    cycle = cycle_for(snapshot, pods, 2, kind=ExtendedCycle)
    cycle.profile.extenders = (Slow(snapshot, interested=[]),)
    assert isinstance(cycle, ExtendedCycle)
    assert AskingGroupCycle(cycle).asking(KEY, pods) is None


@pytest.mark.parametrize(
    ("occupied", "keeps", "outcome", "log", "expected"),
    [
        pytest.param(
            ["n0"],
            "",
            GroupOutcome.PREEMPTING,
            ["p0: n1", "victims p1: n0"],
            {"p0": "n1", "p1": "n0"},
            id="one node, whose victim may leave",
        ),
        pytest.param(
            ["n0"],
            "n0",
            GroupOutcome.REJECTED,
            ["p0: n1", "victims p1: n0"],
            {"p0": "n1", "p1": ""},
            id="one node, whose victim may not leave: no pod is evicted",
        ),
        pytest.param(
            ["n0", "n1"],
            "",
            GroupOutcome.PREEMPTING,
            ["victims p0: n0 n1", "victims p1: n1"],
            {"p0": "n0", "p1": "n1"},
            id="a node for each member, the second beside the victim of the first",
        ),
        pytest.param(
            ["n0", "n1"],
            "n1",
            GroupOutcome.REJECTED,
            ["victims p0: n0 n1", "victims p1: n1"],
            {"p0": "n0", "p1": ""},
            id="one of two victims may not leave: no pod is evicted",
        ),
    ],
)
def test_the_extender_judges_the_victims_of_each_member(occupied, keeps, outcome, log, expected):
    snapshot, pods = cluster([1, 1]), members([1, 1])
    occupy(snapshot, *occupied, priority=-10)
    slow = Slow(snapshot, keeps=keeps)
    found = asked(snapshot, pods, 2, slow)
    assert (found.outcome, slow.log, places(found)) == (outcome, log, expected)
    assert snapshot.pod_count.tolist() == [int(name in occupied) for name in ("n0", "n1")]


def test_a_victim_that_goes_while_the_extender_judges_it_leaves_its_room_to_the_group():
    def goes(snapshot: Snapshot) -> None:
        snapshot.table.remove_pod("stranger-n0")

    snapshot, pods = cluster([1, 1]), members([1, 1])
    occupy(snapshot, "n0", priority=-10)
    slow = Slow(snapshot, keeps="", meanwhile=once(goes, "victims p1:"))
    found = asked(snapshot, pods, 2, slow)
    evicted = [victim for each in found.members for victim in each.decision.victims]
    assert evicted == [], "a pod that is gone cannot be evicted"
    assert snapshot.pod_count.tolist() == [0, 0]
