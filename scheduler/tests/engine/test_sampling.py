"""Searching a part of the nodes: kube-scheduler's loop written out, against whole columns.

Not covered: extenders, and the recordings of real runs (``lab/tests/conformance``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Outcome
from moorage.engine.sampling import Rotation, num_to_find, placements_to_find
from moorage.engine.select_node import TieBreak, heap_order, positional, smallest_name
from moorage.framework.capabilities import Reads
from moorage.framework.points import PreFilterResult
from moorage.framework.profile import Profile
from moorage.framework.status import SUCCESS, Status, unschedulable
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.engine.builders import filterer, scorer, told
from scheduler.tests.framework.builders import Fake, profile
from scheduler.tests.snapshot.builders import cluster, node, pod

ZONE = "topology.kubernetes.io/zone"
NO = unschedulable("no")


@pytest.mark.parametrize(
    ("percentage", "n", "expected"),
    [
        pytest.param(0, 99, 99, id="below a hundred nodes all are searched"),
        pytest.param(1, 99, 99, id="below a hundred nodes the percentage has no say"),
        pytest.param(1, 100, 100, id="never fewer than a hundred"),
        pytest.param(0, 190, 100, id="adaptive, below the least number"),
        pytest.param(0, 1000, 420, id="adaptive at 1000 nodes: 42 %"),
        pytest.param(0, 5000, 500, id="adaptive at 5000 nodes: 10 %"),
        pytest.param(0, 6000, 300, id="adaptive at 6000 nodes: at the floor of 5 %"),
        pytest.param(0, 20000, 1000, id="adaptive far beyond the floor: 5 %"),
        pytest.param(33, 1001, 330, id="a share is rounded down"),
        pytest.param(100, 1001, 1001, id="all of them"),
    ],
)
def test_how_many_feasible_nodes_are_enough(percentage, n, expected):
    assert num_to_find(percentage, n) == expected


@pytest.mark.parametrize(
    ("percentage", "nodes", "expected"),
    [
        pytest.param(100, [10] * 7, 7, id="all of them"),
        pytest.param(30, [10] * 500, 150, id="a share"),
        pytest.param(1, [10] * 7, 1, id="never fewer than one"),
        pytest.param(0, [1] * 7, 7, id="adaptive: all in a small cluster"),
        pytest.param(0, [50] * 100, 10, id="adaptive at 5000 nodes: 10 %"),
        pytest.param(0, [500] * 100, 5, id="adaptive far beyond: 5 %"),
    ],
)
def test_how_many_feasible_placements_are_enough(percentage, nodes, expected):
    assert placements_to_find(percentage, nodes) == expected


# -- the loop, written out ---------------------------------------------------------------------


class Plan(msgspec.Struct, frozen=True):
    """What the plugins say of a node, by its number and the pod's."""

    fixed: int = 0
    fresh: int = 0
    broken: int = 0

    def fixed_fails(self, number: int) -> bool:
        return bool(self.fixed) and number % self.fixed == 1

    def fresh_says(self, number: int, pod_number: int) -> Status:
        if self.broken and (number + pod_number) % self.broken == self.broken - 1:
            raise RuntimeError("out of order")
        return NO if self.fresh and (number * 7 + pod_number) % self.fresh == 0 else SUCCESS

    def says(self, number: int, pod_number: int) -> Status:
        return NO if self.fixed_fails(number) else self.fresh_says(number, pod_number)


def number_of(name: str) -> int:
    return int(name.removeprefix("n"))


def score_of(number: int) -> int:
    return number * 11 % 3


class Found(msgspec.Struct):
    """What the loop came to."""

    feasible: list[str] = []
    failed: list[str] = []
    broken: bool = False


def loop(
    names: list[str], start: int, says: Callable[[str], Status], *, percentage: int, scored: bool
) -> Found:
    """Search as kube-scheduler does, with one worker."""
    found = Found()
    wanted = num_to_find(percentage, len(names)) if scored else 1
    for i in range(len(names)):
        name = names[(start + i) % len(names)]
        try:
            status = says(name)
        except RuntimeError:
            found.broken = True
            break
        if not status.ok:
            found.failed.append(name)
        elif len(found.feasible) == wanted:
            break
        else:
            found.feasible.append(name)
    return found


def heap_root(totals: list[int]) -> int:
    """Return which of the numbers ends up at the root: Go's container/heap, written out."""
    heap = list(enumerate(totals))
    for i in reversed(range(len(heap) // 2)):
        at = i
        while (child := 2 * at + 1) < len(heap):
            if child + 1 < len(heap) and heap[child + 1][1] > heap[child][1]:
                child += 1
            if heap[child][1] <= heap[at][1]:
                break
            heap[at], heap[child] = heap[child], heap[at]
            at = child
    return heap[0][0]


@given(totals=st.lists(st.integers(0, 2), min_size=1, max_size=70))
def test_heap_order_finds_the_root(totals):
    best = np.flatnonzero(np.array(totals) == max(totals))
    assert heap_order(best)[0] == heap_root(totals)
    assert sorted(heap_order(best).tolist()) == best.tolist()


# -- cycles ------------------------------------------------------------------------------------


def profile_of(
    snapshot: Snapshot, plan: Plan, *, percentage: int, scored: bool = True, among: Any = None
) -> Profile:
    plugins: list[Any] = [
        filterer(
            "Fixed",
            lambda info, _pod: NO if plan.fixed_fails(number_of(info.name)) else SUCCESS,
        ),
        filterer(
            "Fresh",
            lambda info, asked: plan.fresh_says(number_of(info.name), asked.priority),
            Reads.CLUSTER,
        ),
    ]
    if scored:
        plugins.append(scorer("S", lambda info, _pod: score_of(number_of(info.name))))
    if among is not None:
        result = PreFilterResult(frozenset(among)), SUCCESS
        plugins.append(Fake("Among", pre_filter=lambda *args: result))
    made = profile(*plugins, snapshot=snapshot)
    made.percentage_of_nodes_to_score = percentage
    return made


def nodes_of(n: int, zones: int) -> Snapshot:
    return cluster(
        *(node(f"n{i}", labels={ZONE: f"z{i * i % (zones + 1) % zones}"}) for i in range(n))
    )


def waiting(number: int) -> PodInfo:
    return PodInfo(pod(f"p{number}", priority=number))


def order_of(snapshot: Snapshot, among: Any = None) -> list[str]:
    names = snapshot.table.order.names()
    return [name for name in names if among is None or name in among]


def expected(found: Found, tie_break: TieBreak, *, scored: bool) -> Mapping[str, Any]:
    if found.broken:
        return {"outcome": Outcome.ERROR, "message": 'running "Fresh" filter plugin: out of order'}
    if not found.feasible:
        return {"outcome": Outcome.REJECT, "evaluated": len(found.failed)}
    totals = [score_of(number_of(name)) if scored else 0 for name in found.feasible]
    best = [name for name, t in zip(found.feasible, totals, strict=True) if t == max(totals)]
    chosen = min(best) if tie_break is smallest_name else found.feasible[heap_root(totals)]
    return {
        "outcome": Outcome.BIND,
        "node_name": chosen,
        "feasible": len(found.feasible),
        "evaluated": len(found.feasible) + len(found.failed),
        "ties": len(best),
    }


def facts(decision: Decision, like: Mapping[str, Any]) -> dict[str, Any]:
    return {key: getattr(decision, key) for key in like}


PLANS = st.builds(
    Plan,
    fixed=st.sampled_from([0, 2, 3, 5]),
    fresh=st.sampled_from([0, 2, 4]),
    broken=st.sampled_from([0, 0, 97, 140]),
)


@settings(max_examples=60)
@given(
    size=st.tuples(st.integers(90, 190), st.integers(1, 4)),
    plan=PLANS,
    percentage=st.sampled_from([0, 1, 60, 70, 99]),
    scored=st.sampled_from([True, True, False]),
    narrowed=st.sampled_from([None, None, 101, 7]),
    tie_break=st.sampled_from([smallest_name, positional]),
    start=st.integers(0, 200),
    removed=st.lists(st.integers(0, 89), max_size=3, unique=True),
)
def test_columns_find_what_the_loop_finds(
    size, plan, percentage, scored, narrowed, tie_break, start, removed
):
    n, zones = size
    snapshot = nodes_of(n, zones)
    among = None if narrowed is None else [f"n{i}" for i in range(n) if i * 13 % n < narrowed]
    made = profile_of(snapshot, plan, percentage=percentage, scored=scored, among=among)
    rotations = Rotation(), Rotation()
    cycles = [
        Cycle(made, snapshot, tie_break, reuse=reuse, rotation=rotation)
        for reuse, rotation in zip((True, False), rotations, strict=True)
    ]
    for rotation in rotations:
        rotation.start = start
    for number in range(4):
        names = order_of(snapshot, among)
        found = loop(
            names,
            start,
            lambda name, number=number: plan.says(number_of(name), number),  # type: ignore[misc]
            percentage=percentage,
            scored=scored,
        )
        start = (start + len(found.feasible) + len(found.failed)) % snapshot.num_nodes
        wanted = expected(found, tie_break, scored=scored)
        for cycle, rotation in zip(cycles, rotations, strict=True):
            assert facts(cycle.decide(waiting(number)), wanted) == wanted
            assert rotation.start == start
        if removed:
            snapshot.table.remove_node(f"n{removed.pop()}")


def test_all_cycles_of_a_scheduler_go_on_where_the_last_one_ended():
    snapshot = nodes_of(150, 3)
    rotation = Rotation()
    made = [profile_of(snapshot, Plan(), percentage=percentage) for percentage in (70, 99, 100)]
    few, more, every = (Cycle(each, snapshot, smallest_name, rotation=rotation) for each in made)
    starts = []
    for cycle in (few, more, every, few):
        cycle.decide(waiting(0))
        starts.append(rotation.start)
    assert starts == [105, (105 + 148) % 150, 103, (103 + 105) % 150]


def test_a_nominated_node_that_fits_moves_nothing():
    snapshot = nodes_of(150, 1)
    cycle = Cycle(
        profile_of(snapshot, Plan(), percentage=1), snapshot, smallest_name, rotation=Rotation()
    )
    start = cycle.decide(waiting(0)).evaluated
    nominated = PodInfo(pod("p", priority=1, status={"nominatedNodeName": "n9"}))
    decision = cycle.decide(nominated)
    assert (decision.node_name, decision.evaluated) == ("n9", 1)
    following = cycle.decide(waiting(0))
    assert (start, following.evaluated, following.node_name) == (100, 100, "n1")


def test_a_nominated_node_that_does_not_fit_is_counted_where_it_was_not_looked_at():
    snapshot = nodes_of(150, 1)
    rotation = Rotation()
    made = profile_of(snapshot, Plan(fixed=149), percentage=1)  # n1 and n150, which is not there
    cycle = Cycle(made, snapshot, smallest_name, rotation=rotation)
    rotation.start = 10
    nominated = PodInfo(pod("p", priority=1, status={"nominatedNodeName": "n1"}))
    decision = cycle.decide(nominated)
    assert (decision.feasible, decision.evaluated, rotation.start) == (100, 101, 111)


def test_every_node_scored_means_the_same_with_and_without_a_rotation():
    snapshot = nodes_of(150, 3)
    plan = Plan(fixed=3, fresh=4)
    made = profile_of(snapshot, plan, percentage=100)
    turned = Rotation()
    turned.start = 77
    plain = Cycle(made, snapshot, smallest_name)
    later = Cycle(made, snapshot, smallest_name, rotation=turned)
    for number in range(3):
        info = waiting(number)
        assert told(plain.decide(info)) == told(later.decide(info))
    assert turned.start == 77


def test_the_order_is_kept_as_an_attempt_saw_it_even_where_it_looked_at_every_node():
    snapshot = cluster(*(node(name, labels={ZONE: name[0]}) for name in ("x1", "x2", "y1")))
    made = profile(scorer("S", {}), snapshot=snapshot)
    made.percentage_of_nodes_to_score = 0
    Cycle(made, snapshot, smallest_name).decide(waiting(0))
    snapshot.table.update_node(node("x1", labels={ZONE: "y"}))
    assert order_of(snapshot) == ["x1", "y1", "x2"]


def test_rows_looked_at_are_told_in_ascending_order_and_found_in_theirs():
    snapshot = nodes_of(150, 3)
    made = profile_of(snapshot, Plan(fixed=3), percentage=1, among=None)
    cycle = Cycle(made, snapshot, smallest_name, rotation=Rotation())
    cycle.decide(waiting(0))
    search = cycle.search(cycle.begin(waiting(0)))
    rows = search.view.row_numbers()
    assert rows.tolist() == sorted(rows.tolist())
    feasible = rows[search.filtered.passed]
    found = [snapshot.names[int(row)] for row in cycle.in_order(search, feasible)]
    names = order_of(snapshot)
    every = [name for name in names if number_of(name) % 3 != 1]
    assert len(every) == 100  # so the first search came round to its start
    assert found == every


def test_a_broken_plugin_harms_only_those_who_look_that_far():
    snapshot = nodes_of(200, 1)
    made = profile_of(snapshot, Plan(broken=151), percentage=1)  # n150 for pod 0
    rotation = Rotation()
    cycle = Cycle(made, snapshot, smallest_name, rotation=rotation)
    first, second = cycle.decide(waiting(0)), cycle.decide(waiting(0))
    assert (first.outcome, first.evaluated) == (Outcome.BIND, 100)
    assert (second.outcome, rotation.start) == (Outcome.ERROR, 150)
