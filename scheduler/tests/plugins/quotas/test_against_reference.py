"""CapacityScheduling against its scalar reference on random clusters, quotas and nominations.

Filters other than NodeResourcesFit are left out, and disruption budgets: those of DefaultPreemption
are shared.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, ManualClock, rfc3339
from moorage.base.rng import Streams
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Outcome
from moorage.engine.evaluation import evaluate
from moorage.engine.select_node import smallest_name
from moorage.framework.handle import Handle
from moorage.framework.status import ReasonTable
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node
from moorage_sandbox.testing.builders import pod as typed_pod
from scheduler.tests.plugins.preemption import reference as reference_preemption
from scheduler.tests.plugins.quotas import reference
from scheduler.tests.plugins.quotas.builders import profile_with, quota
from scheduler.tests.plugins.quotas.reference import Quota, Resident, Room
from scheduler.tests.snapshot.builders import validate

CLOCK = ManualClock()
NOW = CLOCK.now_ns()
DEVICE = "example.com/gpu"
NAMESPACES = ("a", "b", "free", "c")

asks = st.fixed_dictionaries(
    {"cpu": st.sampled_from([1000, 2000, 500, 0])}, optional={DEVICE: st.integers(0, 2)}
)
residents = st.builds(
    Resident,
    name=st.just(""),
    namespace=st.sampled_from(NAMESPACES),
    priority=st.integers(0, 3),
    asks=asks,
    started=st.integers(-1000, -1).map(lambda seconds: NOW + seconds * NS_PER_SECOND),
)
rooms = st.builds(
    Room,
    name=st.just(""),
    offers=st.fixed_dictionaries({"cpu": st.sampled_from([3000, 2000, 4000]), DEVICE: st.just(3)}),
    residents=st.lists(residents, min_size=2, max_size=5),
    nominated=st.lists(residents, max_size=1),
)
minimums = st.fixed_dictionaries(
    {"cpu": st.sampled_from([3000, 1000, 6000, 0]), DEVICE: st.integers(0, 6)}
)
maximums = st.none() | st.fixed_dictionaries(
    {}, optional={"cpu": st.sampled_from([6000, 3000, 1000]), DEVICE: st.integers(0, 4)}
)
bounded_namespaces = st.builds(Quota, minimum=st.none() | minimums, maximum=maximums)
quotas = st.fixed_dictionaries(
    {"a": bounded_namespaces, "b": st.builds(Quota, minimum=minimums, maximum=st.none())},
    optional={"c": bounded_namespaces},
)
preemptors = st.builds(
    Resident,
    name=st.just("preemptor"),
    namespace=st.sampled_from(NAMESPACES),
    priority=st.integers(1, 4),
    asks=asks,
    started=st.just(NOW),
)


def named(nodes: list[Room]) -> list[Room]:
    """Name pods and nodes; make start times distinct, so that importance is a total order.

    The API has start times in whole seconds, so they differ by whole seconds, all before `NOW`.
    """
    seen = 0
    for i, room in enumerate(nodes):
        room.name = f"n{i}"
        for j, each in enumerate(room.residents):
            seen += 1
            ago_ns = (NOW - each.started) * 100 + seen * NS_PER_SECOND
            each.name, each.started = f"n{i}-{j}", NOW - ago_ns
        for j, each in enumerate(room.nominated):
            each.name = f"n{i}-nominated-{j}"
    return nodes


def amounts(given: Mapping[str, int]) -> dict[str, str]:
    """Return amounts as a manifest has them: cpu is in millicores."""
    return {name: f"{each}m" if name == "cpu" else str(each) for name, each in given.items()}


def pod_of(each: Resident) -> Pod:
    main = {"name": "main", "resources": {"requests": amounts(each.asks)}}
    made = typed_pod(each.name, namespace=each.namespace, priority=each.priority, containers=[main])
    status = msgspec.structs.replace(made.status, start_time=rfc3339(each.started))
    return msgspec.structs.replace(made, status=status)


def built(nodes: list[Room], bounded: Mapping[str, Quota]) -> Snapshot:
    snapshot = Snapshot()
    for room in nodes:
        offers = amounts(room.offers)
        made = node(room.name, cpu=offers["cpu"], **{DEVICE: offers[DEVICE]})
        snapshot.table.add_node(made)
        for each in room.residents:
            snapshot.table.add_pod(pod_of(each), room.name)
    snapshot.nominations = {
        room.name: [PodInfo(pod_of(each)) for each in room.nominated]
        for room in nodes
        if room.nominated
    }
    for namespace, bounds in bounded.items():
        lists = [
            None if given is None else amounts(given) for given in (bounds.minimum, bounds.maximum)
        ]
        snapshot.listers.elastic_quotas.put(quota(namespace, *lists))
    return snapshot


def handle_of(snapshot: Snapshot) -> Handle:
    return Handle(
        profile_name="default-scheduler",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=CLOCK,
        streams=Streams(1),
    )


@settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    nodes=st.lists(rooms, min_size=1, max_size=4).map(named),
    bounded=quotas,
    preemptor=preemptors,
)
def test_rejections_victims_and_choice_equal_the_reference(
    nodes: list[Room], bounded: dict[str, Quota], preemptor: Resident
) -> None:
    snapshot, info = built(nodes, bounded), PodInfo(pod_of(preemptor))
    profile = profile_with("CapacityScheduling", handle_of(snapshot))
    found = evaluate(profile, snapshot, info)
    validate(snapshot)
    refused = reference.rejection(preemptor, bounded, nodes)
    status = found.pre_filter.status if found.pre_filter else None
    assert (status.message if status else "") == refused
    if not refused:
        fitting = [r.name for r in nodes if reference.fits(preemptor, r, r.residents)]
        assert list(found.feasible) == fitting
        if fitting:
            event("placed")
            return
    decision = Cycle(profile, snapshot, smallest_name).decide(info)
    validate(snapshot)
    assert decision.outcome is Outcome.REJECT
    assert found.preemption is not None
    potential = [
        room
        for room in nodes
        if refused
        or all(asked <= room.offers.get(name, 0) for name, asked in preemptor.asks.items())
    ]  # a request greater than the node: nothing helps, unless the quota said no before
    outcomes = {room.name: reference.victims(preemptor, room, bounded, nodes) for room in potential}
    expected = {name: (gone, 0) for name, gone in outcomes.items() if not isinstance(gone, str)}
    got = {
        each.node_name: [victim.name for victim in each.victims]
        for each in found.preemption.candidates
    }
    assert got == {name: [each.name for each in gone] for name, (gone, _) in expected.items()}
    reasons = {name: each.message for name, each in found.preemption.rejected.items()}
    said = {name: text for name, text in outcomes.items() if isinstance(text, str)}
    assert reasons.keys() == said.keys()
    assert {
        name: text for name, text in reasons.items() if not text.startswith("Insufficient")
    } == {name: text for name, text in said.items() if text != "does not fit"}
    assert decision.nomination is not None
    if not expected:
        event("nobody may go")
        assert (decision.nomination.node_name, decision.victims) == ("", ())
        return
    event("preempts")
    chosen = reference_preemption.choose(expected, NOW)[0]  # type: ignore[arg-type]
    assert decision.nomination.node_name == chosen
    assert [each.metadata.name for each in decision.victims] == got[chosen]
