"""What is kept for replicas of a preemptor may never change what is decided.

Random histories, the real default profile: one cycle reuses, the other asks everything anew. Pods
are plain, so that nodes are tried together; `scheduler/tests/engine/reuse/test_answers.py` has all
other kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage.plugins.preemption.dry_runs import DryRuns
from moorage.plugins.preemption.known_rows import KnownRows
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import node
from scheduler.tests.plugins.preemption.histories import HistoryWorld
from scheduler.tests.plugins.preemption.reference import Budget, Resident
from scheduler.tests.plugins.preemption.test_against_reference import (
    LABELS,
    budget_of,
    pod_of,
)

NODES = tuple(f"n{i}" for i in range(12))
KINDS = ((2, 1), (3, 1), (3, 2))  # cpu and priority of the preemptors


class World(HistoryWorld):
    """A cluster that is decided about with and without what is kept."""

    def __init__(self, percentage: int, absolute: int) -> None:
        super().__init__(percentage, absolute)
        self.reusing, self.plain = self.cycle(reuse=True), self.cycle(reuse=False)

    def pod(
        self, cpu: int, priority: int, started: int | None = None, label: str = "", uid: str = ""
    ) -> PodInfo:
        self.serial += 1
        at = None if started is None else self.clock.now_ns() + started * NS_PER_SECOND
        labels = {label: "x"} if label else {}
        return pod_of(Resident(uid or f"p{self.serial}", priority, cpu, 0, at, labels))

    def change(self, index: int, started: int, label: str) -> None:
        """Let a pod's start change, and its labels if any are given: no sum shows it."""
        if not self.placed:
            return
        table, uid = self.snapshot.table, self.placed[index % len(self.placed)]
        name, old = table.node_of_pod(uid), table.pod_info(uid)
        assert name is not None
        assert old is not None
        status = msgspec.structs.replace(
            old.pod.status, start_time=rfc3339(self.clock.now_ns() + started * NS_PER_SECOND)
        )
        labels = {label: "x"} if label else old.labels
        metadata = msgspec.structs.replace(old.pod.metadata, labels=labels)
        table.update_pod(msgspec.structs.replace(old.pod, status=status, metadata=metadata), name)

    def resize(self, name: str, cpu: int) -> None:
        table = self.snapshot.table
        if table.has_node(name) and cpu == 0:
            for uid in list(table.pods_by_row[table.row_of(name) or 0]):
                table.remove_pod(uid)
                self.placed.remove(uid)
            table.remove_node(name)
        else:
            table.add_node(node(name, cpu=str(cpu or 4), memory="8", pods="6"))

    def budget(self, index: int, budget: Budget | None) -> None:
        lister = self.snapshot.listers.pod_disruption_budgets
        if budget is None:
            lister.remove(budget_of(index, Budget("a", 0, ())))
        else:
            lister.put(budget_of(index, budget))

    def preempt(self, kind: int, uid: str, *, follow: bool) -> None:
        cpu, priority = KINDS[kind]
        info = self.pod(cpu, priority, uid=uid)
        if info.uid in self.placed:
            return  # a pod that has its node is not decided again
        self.decide_alike(info, (self.plain, self.reusing), follow=follow)


names = st.sampled_from(NODES)
starts = st.one_of(st.none(), st.integers(-3, 2))
preempting = st.tuples(
    st.just("preempt"),
    st.integers(0, 2),
    st.sampled_from(["", "", "", "waiting"]),
    st.booleans(),
)
steps = st.one_of(
    preempting,
    preempting,
    preempting,
    st.tuples(st.just("place"), names, st.integers(1, 3), st.integers(-1, 2), starts),
    st.tuples(st.just("take away"), st.integers(0, 99)),
    st.tuples(st.just("begin leaving"), st.integers(0, 99)),
    st.tuples(
        st.just("change"), st.integers(0, 99), st.integers(-3, 2), st.sampled_from(["", *LABELS])
    ),
    st.tuples(st.just("resize"), names, st.sampled_from([0, 2, 6])),
    st.tuples(st.just("nominate"), names, st.integers(1, 3), st.integers(0, 2)),
    st.tuples(st.just("nominate waiting"), names),
    st.tuples(
        st.just("budget"),
        st.integers(0, 1),
        st.one_of(
            st.none(), st.builds(Budget, st.sampled_from(LABELS), st.integers(0, 2), st.just(()))
        ),
    ),
    st.tuples(st.just("later"), st.integers(1, 3)),
)


def apply(world: World, step: tuple[Any, ...]) -> None:
    what, *args = step
    if what == "preempt":
        kind, uid, follow = args
        world.preempt(kind, uid, follow=follow)
    elif what == "place":
        name, cpu, priority, started = args
        world.place(name, world.pod(cpu, priority, started, LABELS[cpu % 2]))
    elif what == "nominate":
        world.nominate(args[0], world.pod(args[1], args[2]))
    elif what == "nominate waiting":
        world.nominate(args[0], world.pod(2, 1, uid="waiting"))
    elif what == "later":
        world.clock.advance(float(args[0]))
    elif what == "take away":
        world.take_away(*args)
    elif what == "begin leaving":
        world.begin_leaving(*args)
    elif what == "change":
        world.change(*args)
    elif what == "resize":
        world.resize(*args)
    else:
        world.budget(*args)


def full(world: World, *, alike: bool = False) -> World:
    for index, name in enumerate(NODES):
        world.resize(name, 4)
        for step in range(2):
            started = -1 if index % 3 and not alike else None
            world.place(name, world.pod(2, (index + step) % 2 - 1, started, LABELS[step]))
    return world


@settings(max_examples=80, deadline=None)
@given(
    percentage=st.sampled_from([0, 50, 100]),
    absolute=st.sampled_from([1, 3]),
    alike=st.booleans(),
    history=st.lists(steps, max_size=30),
)
def test_kept_outcomes_never_change_a_decision(
    percentage: int, absolute: int, alike: bool, history: list[tuple[Any, ...]]
) -> None:
    world = full(World(percentage, absolute), alike=alike)
    for step in history:
        apply(world, step)


CHANGES = [
    pytest.param(lambda w: w.take_away(0), id="a pod went"),
    pytest.param(lambda w: w.begin_leaving(1), id="a pod is being deleted"),
    pytest.param(lambda w: w.place("n1", w.pod(1, 1)), id="a pod came"),
    pytest.param(lambda w: w.change(1, -9, ""), id="a pod was started earlier"),
    pytest.param(lambda w: w.change(1, 9, ""), id="a pod will have been started"),
    pytest.param(lambda w: w.budget(0, Budget("a", 0)), id="a budget came"),
    pytest.param(lambda w: w.resize("n3", 2), id="a node became too small"),
    pytest.param(lambda w: w.resize("n3", 5), id="a node became larger"),
    pytest.param(lambda w: w.resize("n99", 4), id="a node came"),
    pytest.param(lambda w: w.nominate("n2", w.pod(2, 1)), id="a pod was nominated"),
    pytest.param(lambda w: w.nominate("n2", w.pod(2, 0)), id="a lesser pod was nominated"),
    pytest.param(lambda w: w.nominate("n2", w.pod(3, 1, uid="waiting")), id="it was nominated"),
    pytest.param(lambda w: None, id="nothing"),
]


@pytest.mark.parametrize("alike", [True, False], ids=["filled alike", "filled differently"])
@pytest.mark.parametrize("change", CHANGES)
def test_after_a_change_decisions_equal_a_search_without_kept_outcomes(
    change: Callable[[World], None], alike: bool
) -> None:
    world = full(World(100, 1), alike=alike)
    world.budget(1, Budget("b", 1))
    for step in (None, change, change, None):
        if step is not None:
            step(world)
        for uid in ("", "waiting", ""):
            world.preempt(1, uid, follow=False)


def test_candidates_are_compared_once_their_costs_differ() -> None:
    world = full(World(100, 1), alike=True)
    known = []
    beginning = KnownRows.begin_search

    def noted(self: KnownRows, own: int | None) -> None:
        beginning(self, own)
        known.append(self)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(KnownRows, "begin_search", noted)
        world.preempt(1, "", follow=True)
        world.preempt(1, "", follow=True)
        assert [each.alike for each in known] == [True, True]
        world.take_away(0)
        world.place("n7", world.pod(1, -2))
        world.preempt(1, "", follow=False)
        assert [each.alike for each in known] == [False] * 3


def test_a_replica_tries_only_rows_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[list[int]] = []
    trying = DryRuns._try

    def noted(self: DryRuns, due: Any) -> None:
        tried.append(list(due))
        trying(self, due)

    world = full(World(100, 1))
    monkeypatch.setattr(DryRuns, "_try", noted)
    cycle = world.reusing
    cycle.decide(world.pod(3, 1))
    assert [sorted(rows) for rows in tried] == [list(range(12))]
    tried.clear()
    cycle.decide(world.pod(3, 1))
    assert tried == []
    world.take_away(0)
    world.nominate("n5", world.pod(1, 1))
    world.change(3, -2, "b")
    cycle.decide(world.pod(3, 1))
    assert [sorted(rows) for rows in tried] == [[0, 2, 5]]
