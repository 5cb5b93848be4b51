"""Groups with sub-groups on small clusters: nodes of one size of room, tried in every way.

What is called placed keeps every minimum and every domain, and nearly all groups that fit are
placed: the parts of a group are tried in a few orders, without going back to an earlier part.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest

from moorage.api.coscheduling import SUB_GROUPS
from moorage.base.clock import ManualClock
from moorage.base.rng import Random, Streams
from moorage.config.feature_gates import feature_gates
from moorage.config.merge import expand_profiles
from moorage.engine.cycle import Cycle
from moorage.engine.extenders.cycle import ExtendedCycle
from moorage.engine.groups.asking import NO_SUB_GROUPS, AskingGroupCycle
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome
from moorage.engine.select_node import smallest_name
from moorage.framework.handle import Handle
from moorage.framework.profile import Profile
from moorage.framework.status import ReasonTable
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.group_labels import LABEL_SOURCE, LabelledGroups, SeveralSources
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.engine.groups.test_asking import Slow
from tests.scenarios.gangs import coscheduling

KEY = GroupKey("default", "g", LABEL_SOURCE)
RACK = "rack"
PREFIX = "pod-group.scheduling.sigs.k8s.io"


class Case:
    """A random cluster, and a random group.

    Attributes
    ----------
    nodes
        (rack, cpu) of each node.
    roles
        (minimum, whether in one rack, cpu of each pod) by name.
    """

    def __init__(self, rng: Random, *, confined: bool) -> None:
        self.nodes = [(f"r{rng.randrange(3)}", rng.randint(1, 4)) for _ in range(rng.randint(2, 5))]
        self.roles: dict[str, tuple[int, bool, list[int]]] = {}
        for role in "abc"[: rng.randint(1, 3)]:
            cpus = [rng.randint(1, 3) for _ in range(rng.randint(1, 3))]
            least = rng.randint(1, len(cpus))
            self.roles[role] = least, confined and rng.random() < 0.6, cpus

    @property
    def least(self) -> int:
        return sum(least for least, _, _ in self.roles.values())

    @property
    def text(self) -> str:
        return "role: " + ", ".join(
            f"{role}={least}{'@' + RACK if bound else ''}"
            for role, (least, bound, _) in self.roles.items()
        )

    def fits(self) -> bool:
        """Whether places exist: every choice of racks, and every place of the smallest pods."""
        racks = sorted({rack for rack, _ in self.nodes})
        bound = [role for role, (_, confined, _) in self.roles.items() if confined]
        for choice in product(racks, repeat=len(bound)):
            only = dict(zip(bound, choice, strict=True))
            pods = [
                (cpu, only.get(role))
                for role, (least, _, cpus) in self.roles.items()
                for cpu in sorted(cpus)[:least]
            ]
            pods.sort(key=lambda each: -each[0])
            if self._places(pods, [cpu for _, cpu in self.nodes]):
                return True
        return False

    def _places(self, pods: Sequence[tuple[int, str | None]], free: list[int]) -> bool:
        if not pods:
            return True
        (cpu, rack), rest = pods[0], pods[1:]
        for at, left in enumerate(free):
            if left >= cpu and rack in {None, self.nodes[at][0]}:
                free[at] -= cpu
                if self._places(rest, free):
                    return True
                free[at] += cpu
        return False

    def objects(self) -> tuple[Snapshot, list[PodInfo]]:
        """Return the cluster, and the pods that wait."""
        snapshot = Snapshot()
        for at, (rack, cpu) in enumerate(self.nodes):
            labels = {RACK: rack, "kubernetes.io/hostname": f"n{at}"}
            snapshot.table.add_node(node(f"n{at}", cpu=str(cpu), memory="8Gi", labels=labels))
        sources = {LABEL_SOURCE: LabelledGroups(snapshot.groups.members)}
        snapshot.groups.source = SeveralSources(sources, {}, snapshot.groups.succeeded)
        pods = [
            self._pod(f"{role}{at}", role, cpu)
            for role, (_, _, cpus) in self.roles.items()
            for at, cpu in enumerate(cpus)
        ]
        for each in pods:
            snapshot.groups.put_pod(each.pod)
        return snapshot, pods

    def decide(self) -> GroupDecision:
        snapshot, pods = self.objects()
        before = snapshot.requested("cpu").tolist()
        found = GroupCycle(_cycle(snapshot)).decide_group(KEY, pods)
        assert snapshot.requested("cpu").tolist() == before
        snapshot.groups.validate()
        return found

    def _pod(self, name: str, role: str, cpu: int) -> PodInfo:
        labels = {"role": role, f"{PREFIX}/name": "g", f"{PREFIX}/min-available": str(self.least)}
        fields: dict[str, Any] = {"labels": labels, "annotations": {SUB_GROUPS: self.text}}
        return PodInfo(pod(name, cpu=str(cpu), **fields))

    def check(self, found: GroupDecision) -> None:
        """Check that enough pods of each role have a place, in one rack where it asks for that."""
        taken: Counter[str] = Counter()
        for role, (least, bound, cpus) in self.roles.items():
            places = [found.places.get(f"uid-default-{role}{at}", "") for at in range(len(cpus))]
            racks = {self.nodes[int(place[1:])][0] for place in places if place}
            assert sum(bool(place) for place in places) >= least
            assert not bound or len(racks) == 1, (racks, self.text)
            for place, cpu in zip(places, cpus, strict=True):
                taken[place] += cpu if place else 0
        for at, (_, cpu) in enumerate(self.nodes):
            assert taken[f"n{at}"] <= cpu


def _cycle(snapshot: Snapshot, kind: type[Cycle] = Cycle) -> Cycle:
    (made,) = expand_profiles(coscheduling().scheduler, in_tree_registry(), gates=feature_gates({}))
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
    )
    return kind(Profile(made, in_tree_registry(), handle), snapshot, smallest_name)


@pytest.mark.parametrize("confined", [False, True])
def test_sub_groups_are_placed_if_they_fit(confined: bool) -> None:
    draw, counts = Streams(43).stream(f"sub-groups {confined}"), Counter[bool]()
    for number in range(400):
        case = Case(draw, confined=confined)
        found = case.decide()
        placed, fits = found.outcome is GroupOutcome.PLACED, case.fits()
        counts[placed] += fits
        assert fits or not placed, (number, case.text, case.nodes)
        if placed:
            case.check(found)
        elif not fits:
            assert found.outcome is GroupOutcome.REJECTED
    assert counts[False] * 12 < counts[True], counts


def test_sub_groups_are_refused_by_name_where_extenders_are_asked() -> None:
    snapshot, pods = Case(Streams(43).stream("extenders"), confined=False).objects()
    cycle = _cycle(snapshot, ExtendedCycle)
    assert isinstance(cycle, ExtendedCycle)
    cycle.profile.extenders = (Slow(snapshot),)

    async def decision() -> GroupDecision:
        asking = AskingGroupCycle(cycle).asking(KEY, pods)
        assert asking is not None
        return await asking

    found = asyncio.run(decision())
    assert (found.outcome, found.status.message) == (GroupOutcome.REJECTED, NO_SUB_GROUPS)
