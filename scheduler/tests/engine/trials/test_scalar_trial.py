"""A row tried out by its sums: whose result counts, beside nominated pods or without them."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from moorage.engine.attempt import Attempt
from moorage.engine.filters.filter_results import PASSES
from moorage.engine.filters.tally import RowResult
from moorage.engine.trials.scalar_trial import ScalarTrial
from moorage.framework.capabilities import Reads
from moorage.framework.cycle_state import CycleState
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shifted import RowSums
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import pod
from scheduler.tests.framework.builders import Fake, answers, profile

BY_SUMS = (1, 3)
PODS_BESIDE = 10
POD = PodInfo(pod("p"))

# Also ones that no sensible Filter gives: that more pods are there and it fails later, or passes.
by_sums = st.sampled_from([PASSES, *((index, 1, reason) for index in BY_SUMS for reason in (1, 2))])
by_node = st.sampled_from([PASSES, (0, 2, 3), (2, 2, 3), (4, 2, 3)])


def filterer(index: int, judge: Callable[[int, int, RowSums], tuple[int, int]]) -> Fake:
    """A Filter that answers for single rows."""

    def filter_row(state: object, pod: object, row: int, more: RowSums) -> tuple[int, int]:
        return judge(index, row, more)

    return Fake(
        f"F{index}",
        filter=answers(None),
        filter_reads=Reads.SUMS,
        shape_parts=(),
        filter_row=filter_row,
    )


@given(by_node=by_node, alone=by_sums, beside=st.none() | by_sums)
def test_the_filter_result_beside_nominated_pods_counts_where_it_fails_as_soon(
    by_node: RowResult, alone: RowResult, beside: RowResult | None
) -> None:
    def judge(index: int, row: int, more: RowSums) -> tuple[int, int]:
        assert row == 7
        found = alone
        if more.pods < PODS_BESIDE:
            assert more.amounts == {"cpu": 2}
        else:
            assert more.amounts == {"cpu": 5, "memory": 1}
            assert beside is not None
            found = beside
        return found[1:] if found[0] == index else (0, 0)

    snapshot = Snapshot()
    made = profile(*(filterer(index, judge) for index in range(5)), snapshot=snapshot)
    attempt = Attempt(made, snapshot, CycleState(), POD)
    nominated = None if beside is None else RowSums({"cpu": 3, "memory": 1}, PODS_BESIDE)
    row = ScalarTrial(attempt, 7, BY_SUMS, by_node=by_node, nominated=nominated)
    row.shift({"cpu": 2}, 1)
    without = min(by_node, alone)
    fails_as_soon = beside is not None and beside is not PASSES and beside[0] <= without[0]
    assert row._result() == (beside if fails_as_soon else without)
