"""The pauses between complete searches while other pods wait."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from moorage.base.clock import ManualClock
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, GroupOutcome, SearchEnd
from moorage.engine.groups.places_search import SearchPauses
from moorage.engine.groups.trying import Steps, take_all_steps
from moorage.framework.status import SUCCESS
from scheduler.tests.engine.groups.test_asking import occupy, places
from scheduler.tests.engine.groups.test_cycle import KEY, cluster, cycle_for, members

MS = 1_000_000
DECISION = GroupDecision(GroupOutcome.REJECTED, SUCCESS)


def search(clock: ManualClock, *milliseconds: int) -> Steps:
    """Return a search whose steps take so long each."""
    for each in milliseconds:
        clock.advance_ns(each * MS)
        yield None
    return DECISION


def test_after_a_search_of_20_ms_none_begins_for_180_ms():
    clock = ManualClock()
    pauses = SearchPauses(clock.monotonic_ns, lambda: True)
    assert pauses.allows()
    for _ in pauses.timed(search(clock, 5, 15)):
        clock.advance_ns(50 * MS)  # the others' turn is no time of the search
    clock.advance_ns(179 * MS)
    assert not pauses.allows()
    clock.advance_ns(1 * MS)
    assert pauses.allows()


def test_a_search_that_is_cancelled_begins_the_pause_too():
    clock = ManualClock()
    pauses = SearchPauses(clock.monotonic_ns, lambda: True)
    steps = pauses.timed(search(clock, 5, 15))
    next(steps)
    steps.close()
    assert not pauses.allows()


def test_without_other_pods_there_is_no_pause():
    clock, waiting = ManualClock(), [False]
    pauses = SearchPauses(clock.monotonic_ns, lambda: bool(waiting[0]))
    assert take_all_steps(pauses.timed(search(clock, 200))) is DECISION
    assert pauses.allows()
    waiting[0] = True
    assert not pauses.allows()


@given(lengths=st.lists(st.integers(1, 200), min_size=1, max_size=30), wait=st.integers(1, 40))
def test_searches_take_a_tenth_of_the_time_at_most(lengths: list[int], wait: int):
    clock = ManualClock()
    pauses = SearchPauses(clock.monotonic_ns, lambda: True)
    began_ns, searched_ns = clock.monotonic_ns(), 0
    for length in lengths:
        while not pauses.allows():
            clock.advance_ns(wait * MS)
        assert searched_ns * 10 <= clock.monotonic_ns() - began_ns
        take_all_steps(pauses.timed(search(clock, length)))
        searched_ns += length * MS


class Paused(SearchPauses):
    def __init__(self) -> None:
        super().__init__(lambda: 0, lambda: True)
        self.refuses = True

    def allows(self) -> bool:
        return not self.refuses


def test_a_search_that_is_postponed_finds_the_places_at_a_later_attempt():
    pods, pauses = members([2, 2, 3]), Paused()
    cycle = GroupCycle(cycle_for(cluster([4, 3]), pods, 3, orders=1), pauses=pauses)
    postponed = cycle.decide_group(KEY, pods)
    assert postponed.outcome is GroupOutcome.REJECTED
    assert postponed.search is not None
    assert postponed.search.end is SearchEnd.POSTPONED
    assert any(places(postponed).values()), "a member with a place comes back by backoff"
    pauses.refuses = False
    assert cycle.decide_group(KEY, pods).outcome is GroupOutcome.PLACED


def test_no_pod_is_evicted_because_a_search_is_postponed():
    pods, snapshot = members([2, 2, 3]), cluster([4, 3, 3])
    occupy(snapshot, "n2", priority=-10)
    cycle = GroupCycle(cycle_for(snapshot, pods, 3, orders=1), pauses=Paused())
    found = cycle.decide_group(KEY, pods)
    assert found.outcome is GroupOutcome.PLACED
    assert not any(each.decision.victims for each in found.members)
