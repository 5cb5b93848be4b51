"""DefaultPreemption against its scalar reference on random clusters, both ways of trying nodes.

Not covered: Filters other than NodeResourcesFit; recordings have them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.api.policy import PodDisruptionBudget
from moorage.base.clock import NS_PER_SECOND, ManualClock, rfc3339
from moorage.base.rng import Streams
from moorage.config.defaults import default_config
from moorage.config.merge import expand_profiles
from moorage.config.plugin_args import DefaultPreemptionArgs
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Outcome
from moorage.engine.evaluation import evaluate
from moorage.engine.select_node import smallest_name
from moorage.framework.handle import Handle
from moorage.framework.preemption import EvictionsUnderWay, NoEvictions
from moorage.framework.profile import Profile
from moorage.framework.status import ReasonTable
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node
from moorage_sandbox.testing.builders import pod as typed_pod
from scheduler.tests.plugins.builders import SUMS, without
from scheduler.tests.plugins.preemption import reference
from scheduler.tests.plugins.preemption.reference import Budget, Resident, Room
from scheduler.tests.snapshot.builders import validate

CLOCK = ManualClock()
NOW = CLOCK.now_ns()
LABELS = ("a", "b")
REGISTRY = in_tree_registry()
SPEC = expand_profiles(default_config(), REGISTRY)[0]

# Some start in the future, as clocks may say: then a pod not started is not the last.
starts = st.one_of(st.none(), st.integers(-3, 3).map(lambda seconds: NOW + seconds * NS_PER_SECOND))
residents = st.builds(
    Resident,
    name=st.just(""),
    priority=st.integers(-2, 3),
    cpu=st.integers(0, 3),
    memory=st.integers(0, 2),
    started=starts,
    labels=st.dictionaries(st.sampled_from(LABELS), st.just("x"), max_size=2),
    leaves=st.sampled_from([False, False, True]),
)
rooms = st.builds(
    Room,
    name=st.just(""),
    cpu=st.integers(1, 6),
    memory=st.integers(1, 6),
    pods=st.integers(1, 6),
    residents=st.lists(residents, max_size=6),
    nominated=st.lists(residents, max_size=1),
)
budgets = st.lists(
    st.builds(
        Budget,
        label=st.sampled_from(LABELS),
        allowed=st.integers(0, 2),
        disrupted=st.sampled_from([(), ("n0-0", "n1-0")]),
    ),
    max_size=2,
)
preemptors = st.builds(
    Resident,
    name=st.just("preemptor"),
    priority=st.integers(0, 4),
    cpu=st.integers(0, 4),
    memory=st.integers(0, 3),
    started=st.none(),
)


def named(nodes: list[Room]) -> list[Room]:
    for i, room in enumerate(nodes):
        room.name = f"n{i}"
        for j, each in enumerate(room.residents):
            each.name = f"n{i}-{j}"
        for j, each in enumerate(room.nominated):
            each.name = f"n{i}-nominated-{j}"
    return nodes


def pod_of(each: Resident) -> PodInfo:
    made = typed_pod(
        each.name,
        cpu=str(each.cpu),
        memory=str(each.memory),
        labels=each.labels,
        priority=each.priority,
    )
    start_time = None if each.started is None else rfc3339(each.started)
    status = msgspec.structs.replace(made.status, start_time=start_time)
    return PodInfo(msgspec.structs.replace(made, status=status))


class Evictions(NoEvictions):
    """Victims of earlier preemptors, which stop slowly."""

    def __init__(self, uids: Iterable[str] = ()) -> None:
        self.requested: Collection[str] = frozenset(uids)

    def will_leave(self, pod: Pod) -> bool:
        return pod.uid in self.requested


def budget_of(index: int, budget: Budget) -> PodDisruptionBudget:
    raw: dict[str, Any] = {
        "metadata": {"name": f"b{index}", "namespace": "default"},
        "spec": {"selector": {"matchExpressions": [{"key": budget.label, "operator": "Exists"}]}},
        "status": {
            "disruptionsAllowed": budget.allowed,
            "disruptedPods": dict.fromkeys(budget.disrupted),
        },
    }
    return from_dict(PodDisruptionBudget, raw)


def built(nodes: list[Room], protecting: list[Budget]) -> Snapshot:
    snapshot = Snapshot()
    for room in nodes:
        made = node(room.name, cpu=str(room.cpu), memory=str(room.memory), pods=str(room.pods))
        snapshot.table.add_node(made)
        for each in room.residents:
            snapshot.table.add_pod(pod_of(each), room.name)
    snapshot.nominations = {
        room.name: [pod_of(each) for each in room.nominated] for room in nodes if room.nominated
    }
    for index, budget in enumerate(protecting):
        snapshot.listers.pod_disruption_budgets.put(budget_of(index, budget))
    return snapshot


def leaving(nodes: Iterable[Room]) -> Evictions:
    return Evictions(pod_of(each).uid for room in nodes for each in room.residents if each.leaves)


def profile_of(
    snapshot: Snapshot, args: DefaultPreemptionArgs, evictions: EvictionsUnderWay
) -> Profile:
    spec = msgspec.structs.replace(
        SPEC, plugin_args={**SPEC.plugin_args, "DefaultPreemption": args}
    )
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=CLOCK,
        streams=Streams(1),
        evictions=evictions,
    )
    return Profile(spec, REGISTRY, handle)


def decided(snapshot: Snapshot, profile: Profile, pod: PodInfo) -> Decision:
    return Cycle(profile, snapshot, smallest_name).decide(pod)


@pytest.mark.parametrize(
    ("together", "room"),
    [
        pytest.param(True, True, id="at once, by room"),
        pytest.param(True, False, id="at once, by filters"),
        pytest.param(False, True, id="one by one"),
    ],
)
@settings(max_examples=80, deadline=None)
@given(
    nodes=st.lists(rooms, min_size=1, max_size=6).map(named),
    protecting=budgets,
    preemptor=preemptors,
    percentage=st.sampled_from([0, 50, 100]),
    absolute=st.sampled_from([1, 2, 100]),
)
def test_candidates_victims_and_choice_equal_the_reference(
    together: bool,
    room: bool,
    nodes: list[Room],
    protecting: list[Budget],
    preemptor: Resident,
    percentage: int,
    absolute: int,
) -> None:
    args = DefaultPreemptionArgs(
        min_candidate_nodes_percentage=percentage, min_candidate_nodes_absolute=absolute
    )
    gone = () if together else SUMS
    with without("NodeResourcesFit", *gone, *(() if room else ("filter_room",))):
        compare(nodes, protecting, preemptor, args)


def compare(
    nodes: list[Room], protecting: list[Budget], preemptor: Resident, args: DefaultPreemptionArgs
) -> None:
    snapshot, info = built(nodes, protecting), pod_of(preemptor)
    profile = profile_of(snapshot, args, leaving(nodes))
    found = evaluate(profile, snapshot, info)
    validate(snapshot)
    feasible = [r.name for r in nodes if reference.fits(preemptor, r, r.residents)]
    assert list(found.feasible) == feasible
    if feasible:
        return
    report = found.preemption
    assert report is not None
    potential = [
        room for room in nodes if preemptor.cpu <= room.cpu and preemptor.memory <= room.memory
    ]  # a request greater than the node: nothing helps
    assert list(report.potential) == [room.name for room in potential]
    tried = [room.name for room in potential]
    outcomes = {
        room.name: reference.victims(preemptor, room, protecting, NOW) for room in potential
    }
    size = len(potential)
    wanted = min(
        size,
        max(
            size * args.min_candidate_nodes_percentage // 100,
            args.min_candidate_nodes_absolute,
        ),
    )
    offset = Streams(1).stream("preemption/offset").randrange(size) if size else 0
    order = [*tried[offset:], *tried[:offset]]
    expected = reference.search([(name, outcomes[name]) for name in order], wanted)
    got = {
        each.node_name: ([victim.name for victim in each.victims], each.violations)
        for each in report.candidates
    }
    assert list(got.items()) == [
        (name, ([each.name for each in gone], count)) for name, (gone, count) in expected.items()
    ]
    profile = profile_of(snapshot, args, leaving(nodes))
    decision = decided(snapshot, profile, info)
    assert decision.outcome is Outcome.REJECT
    assert decision.nomination is not None
    if not expected:
        assert (decision.nomination.node_name, decision.victims) == ("", ())
        return
    ties = reference.choose(expected, NOW)
    assert list(report.ties) == ties
    chosen = reference.take(ties, expected, NOW)
    assert decision.nomination.node_name == chosen
    assert [each.metadata.name for each in decision.victims] == got[chosen][0]


@settings(max_examples=50, deadline=None)
@given(
    nodes=st.lists(rooms, min_size=1, max_size=6).map(named),
    protecting=budgets,
    preemptor=preemptors,
)
def test_batched_and_single_dry_runs_agree(
    nodes: list[Room], protecting: list[Budget], preemptor: Resident
) -> None:
    args = DefaultPreemptionArgs(min_candidate_nodes_percentage=100)
    said = []
    for together in (True, False):
        with without("NodeResourcesFit", *(() if together else SUMS)):
            snapshot = built(nodes, protecting)
            profile = profile_of(snapshot, args, leaving(nodes))
            found = evaluate(profile, snapshot, pod_of(preemptor))
            said.append(
                (
                    {name: str(status) for name, status in found.filter.items()},
                    repr(found.preemption),
                    None if found.post_filter is None else found.post_filter.message,
                )
            )
    assert said[0] == said[1]
