"""Gangs as victims: whole units are judged inside the dry run, and the next candidate is tried.

Covered for all three plugins that preempt, next to Coscheduling. Not covered: victims of plugins
from outside (`scheduler/tests/engine/groups/test_whole_gangs.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.api.policy import PodDisruptionBudget, PriorityClass
from moorage.base.clock import NS_PER_SECOND, ManualClock, rfc3339
from moorage.base.rng import Streams
from moorage.config.merge import expand_profiles
from moorage.config.types import KubeSchedulerConfiguration, PluginRef, Plugins, PluginSet
from moorage.config.types import Profile as Configured
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision
from moorage.engine.select_node import smallest_name
from moorage.framework.handle import Handle
from moorage.framework.profile import Profile
from moorage.framework.status import ReasonTable
from moorage.plugins.in_tree import in_tree_registry
from moorage.plugins.preemption.victim_gangs import GANGS_STAY
from moorage.snapshot.group_labels import LabelledGroups
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.plugins.quotas.builders import quota

CLOCK = ManualClock()
PREFIX = "pod-group.scheduling.sigs.k8s.io"


def resident(
    name: str, *, of: str = "", least: int = 2, age: int = 10, cpu: str = "1", **fields: Any
) -> Pod:
    """Return a running pod that started `age` seconds ago, of a gang where `of` names one."""
    labels = {"app": name[0]}
    if of:
        labels |= {f"{PREFIX}/name": of, f"{PREFIX}/min-available": str(least)}
    made = pod(name, cpu=cpu, labels=labels, **fields)
    status = msgspec.structs.replace(
        made.status, start_time=rfc3339(CLOCK.now_ns() - age * NS_PER_SECOND)
    )
    return msgspec.structs.replace(made, status=status)


def gang(count: int, *, of: str = "g", least: int | None = None, **fields: Any) -> list[Pod]:
    least = count if least is None else least
    return [resident(f"{of}{i}", of=of, least=least, **fields) for i in range(count)]


def cluster(*rows: Sequence[Pod], cpu: str = "") -> Snapshot:
    """Return a cluster of full nodes n0, n1, ...: each has as many cpus as pods, unless given."""
    snapshot = Snapshot()
    snapshot.groups.source = LabelledGroups(snapshot.groups.members)
    for index, pods in enumerate(rows):
        name = f"n{index}"
        snapshot.table.add_node(node(name, cpu=cpu or str(len(pods))))
        for each in pods:
            placed = msgspec.structs.replace(
                each, spec=msgspec.structs.replace(each.spec, node_name=name)
            )
            snapshot.table.add_pod(placed, name)
            snapshot.groups.put_pod(placed)
    return snapshot


def decide(
    snapshot: Snapshot, preemptor: Pod, plugin: str = "DefaultPreemption", *, gangs: bool = True
) -> Decision:
    """Return the decision about a pod in a profile that preempts by a plugin."""
    names = {plugin: None, **({"Coscheduling": None} if gangs else {})}
    without = {"DefaultPreemption"} - {plugin} | ({"PrioritySort"} if gangs else set())
    names.pop("DefaultPreemption", None)
    chosen = PluginSet(
        enabled=[PluginRef(name=name) for name in names],
        disabled=[PluginRef(name=name) for name in sorted(without)],
    )
    configured = Configured(plugins=Plugins(multi_point=chosen))
    registry = in_tree_registry()
    (spec,) = expand_profiles(KubeSchedulerConfiguration(profiles=[configured]), registry)
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=CLOCK,
        streams=Streams(1),
    )
    profile = Profile(spec, registry, handle)
    return Cycle(profile, snapshot, smallest_name).decide(PodInfo(preemptor))


def outcome(decision: Decision) -> tuple[str, list[str]]:
    """Return the nominated node, and the names of the victims."""
    nomination = decision.nomination
    return (
        nomination.node_name if nomination else "",
        sorted(victim.name for victim in decision.victims),
    )


def asking(cpu: str = "1", priority: int = 10, **fields: Any) -> Pod:
    return pod("asking", cpu=cpu, priority=priority, **fields)


SINGLE, OLD = resident("s", age=1), resident("old", age=999)
FIVE = resident("s", priority=5)


@pytest.mark.parametrize(
    ("rows", "preemptor", "expected"),
    [
        pytest.param(
            [[*gang(3), OLD]], asking(), ("n0", ["old"]), id="an older single goes before a gang"
        ),
        pytest.param(
            [gang(8), [OLD]],
            asking(),
            ("n1", ["old"]),
            id="an older single of equal priority goes in place of eight pods on another node",
        ),
        pytest.param(
            [gang(2), [FIVE, *gang(1, of="h")]],
            asking("2"),
            ("n0", ["g0", "g1"]),
            id="two pods of a gang go before one that is more important",
        ),
        pytest.param(
            [[*gang(2, least=3), resident("g2", of="g", least=3, priority=10)], [FIVE]],
            asking(),
            ("n1", ["s"]),
            id="a gang with one member that must stay does not hide a single on the next node",
        ),
        pytest.param(
            [gang(2, least=3), [resident("g2", of="g", least=3, priority=10)]],
            asking(),
            ("", []),
            id="a gang with one member that must stay, and nothing else: nobody goes",
        ),
        pytest.param(
            [gang(4, least=2)],
            asking(),
            ("n0", ["g3"]),
            id="of four members, two of them needed, one goes",
        ),
        pytest.param(
            [gang(4, least=2)], asking("2"), ("n0", ["g2", "g3"]), id="the two beyond the minimum"
        ),
        pytest.param(
            [gang(4, least=2)],
            asking("3"),
            ("n0", ["g0", "g1", "g2", "g3"]),
            id="a third member takes all with it",
        ),
        pytest.param(
            [[resident("g0", of="g", least=2)], [*gang(3, least=2)[1:], OLD]],
            asking("3"),
            ("n1", ["g0", "g1", "g2", "old"]),
            id="members on other nodes go along",
        ),
        pytest.param(
            [[resident("g0", of="g", priority=3), resident("g1", of="g", priority=1), FIVE]],
            asking(),
            ("n0", ["g0", "g1"]),
            id="a gang is as important as its most important member",
        ),
    ],
)
def test_what_goes_for_a_pod(
    rows: list[list[Pod]], preemptor: Pod, expected: tuple[str, list[str]]
):
    decision = decide(cluster(*rows), preemptor)
    assert outcome(decision) == expected
    if not decision.victims:
        assert GANGS_STAY in decision.message


@pytest.mark.parametrize(
    ("placed", "expected"),
    [
        pytest.param(2, ("", []), id="what the gang needs stays"),
        pytest.param(3, ("n0", ["g2"]), id="a less important member beyond the minimum goes"),
    ],
)
def test_a_pod_that_preempts_its_own_gang(placed: int, expected: tuple[str, list[str]]):
    snapshot = cluster(gang(placed, least=2))
    member = resident("m", of="g", priority=10)
    snapshot.groups.put_pod(member)
    assert outcome(decide(snapshot, member)) == expected


def test_a_budget_counts_for_every_member():
    """The single is more important, but the gang has a protected member on another node."""
    snapshot = cluster([resident("g0", of="g")], [resident("p", of="g")], [FIVE])
    budget = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "p"}}},
        "status": {"disruptionsAllowed": 0},
    }
    snapshot.listers.pod_disruption_budgets.put(from_dict(PodDisruptionBudget, budget))
    assert outcome(decide(snapshot, asking())) == ("n2", ["s"])


def test_a_member_that_tolerates_preemption_for_ever_keeps_its_gang():
    snapshot = cluster(
        [resident("g0", of="g")],
        [resident("g1", of="g", priorityClassName="tolerant")],
        [FIVE],
    )
    domain = "preemption-toleration.scheduling.x-k8s.io"
    annotations = {
        f"{domain}/minimum-preemptable-priority": "100",
        f"{domain}/toleration-seconds": "-1",
    }
    tolerant = {"metadata": {"name": "tolerant", "annotations": annotations}, "value": 0}
    snapshot.listers.priority_classes.put(from_dict(PriorityClass, tolerant))
    assert outcome(decide(snapshot, asking(), "PreemptionToleration")) == ("n2", ["s"])


@pytest.mark.parametrize(
    ("rows", "guaranteed", "expected"),
    [
        pytest.param(
            [gang(3, namespace="a"), [resident(f"s{i}", namespace="a") for i in range(3)]],
            (2, 4),
            ("n1", ["s2"]),
            id="a single of a borrowing namespace gives back, not a gang of three",
        ),
        pytest.param(
            [gang(3, namespace="a")],
            (1, 2),
            ("", []),
            id="a gang does not give back more than is borrowed",
        ),
        pytest.param(
            [gang(3, namespace="a")],
            (0, 3),
            ("n0", ["g0", "g1", "g2"]),
            id="a gang that borrowed all goes",
        ),
        pytest.param(
            [gang(6, least=2, namespace="a")],
            (5, 1),
            ("n0", ["g5"]),
            id="one pod beyond the minimum goes for one cpu",
        ),
        pytest.param(
            [gang(6, namespace="a")],
            (5, 1),
            ("", []),
            id="six pods do not go for one cpu that was borrowed",
        ),
    ],
)
def test_quotas_hold_for_all_members(
    rows: list[list[Pod]], guaranteed: tuple[int, int], expected: tuple[str, list[str]]
):
    snapshot = cluster(*rows)
    for namespace, cpus in zip("ab", guaranteed, strict=True):
        snapshot.listers.elastic_quotas.put(quota(namespace, {"cpu": cpus}, {"cpu": 99}))
    decision = decide(snapshot, asking(priority=0, namespace="b"), "CapacityScheduling")
    assert outcome(decision) == expected


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_no_gang_is_left_below_its_minimum(data: st.DataObject):
    """Victims on random clusters; without gangs, decisions are those of a profile without them."""
    count = data.draw(st.integers(1, 3))
    rows: list[list[Pod]] = [
        [
            resident(
                f"p{row}-{index}",
                of=data.draw(st.sampled_from(["", "", "g", "h"])),
                least=2,
                priority=data.draw(st.integers(0, 3)),
                age=data.draw(st.integers(1, 9)),
            )
            for index in range(data.draw(st.integers(1, 4)))
        ]
        for row in range(count)
    ]
    preemptor = asking(str(data.draw(st.integers(1, 3))), data.draw(st.integers(1, 4)))
    decision = decide(cluster(*rows), preemptor)
    victims = {victim.name for victim in decision.victims}
    everybody = [each for row in rows for each in row]
    assert all(each.priority < preemptor.priority for each in everybody if each.name in victims)
    for name in ("g", "h"):
        members = [
            each.name for each in everybody if each.metadata.labels.get(f"{PREFIX}/name") == name
        ]
        left = [each for each in members if each not in victims]
        assert len(left) == len(members) or not left or len(left) >= 2
    if victims:
        node_name = outcome(decision)[0]
        here = [each for each in rows[int(node_name[1:])] if each.name in victims]
        assert here, "a victim is on the node"
    if not any(each.metadata.labels.get(f"{PREFIX}/name") for each in everybody):
        assert outcome(decision) == outcome(decide(cluster(*rows), preemptor, gangs=False))
