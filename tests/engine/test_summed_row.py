"""A row tried out by its sums: whose verdict counts, beside nominated pods or without them."""

from __future__ import annotations

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from moorage.engine.filter_pass import PASSES, RowVerdict
from moorage.engine.summed_row import SummedRow
from moorage.framework.profile import Profile
from moorage.snapshot.shifted import RowSums

NO_PROFILE = cast("Profile", None)  # only statuses are spelled with it
BY_SUMS = (1, 3)
PODS_BESIDE = 10

# Also ones that no sensible Filter gives: that more pods are there and it fails later, or passes.
by_sums = st.sampled_from([PASSES, *((index, 1, reason) for index in BY_SUMS for reason in (1, 2))])
by_node = st.sampled_from([PASSES, (0, 2, 3), (2, 2, 3), (4, 2, 3)])


@given(by_node=by_node, alone=by_sums, beside=st.none() | by_sums)
def test_the_verdict_beside_nominated_pods_counts_where_it_fails_as_soon(
    by_node: RowVerdict, alone: RowVerdict, beside: RowVerdict | None
) -> None:
    def ask(row: int, more: RowSums) -> RowVerdict:
        assert row == 7
        if more.pods < PODS_BESIDE:
            assert more.amounts == {"cpu": 2}
            return alone
        assert more.amounts == {"cpu": 5, "memory": 1}
        assert beside is not None
        return beside

    nominated = None if beside is None else RowSums({"cpu": 3, "memory": 1}, PODS_BESIDE)
    row = SummedRow(NO_PROFILE, 7, ask, soonest=BY_SUMS[0], by_node=by_node, nominated=nominated)
    row.shift({"cpu": 2}, 1)
    without = min(by_node, alone)
    fails_as_soon = beside is not None and beside is not PASSES and beside[0] <= without[0]
    assert row._verdict() == (beside if fails_as_soon else without)
