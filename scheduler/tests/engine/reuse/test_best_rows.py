"""The best rows of a shape, kept in blocks: equal to a look at every row, whatever changes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.base.rng import Streams
from moorage.engine.cycle import Cycle
from moorage.engine.filters.filter_results import FilterResults
from moorage.engine.filters.tally import PASSED
from moorage.engine.reuse.best_rows import BestRows
from moorage.engine.select_node import seeded
from moorage.framework.caches import ROWS_MOST, Changes
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.engine.builders import told
from scheduler.tests.engine.reuse.test_answers import default_profile

N = 2500
"""Rows enough for three blocks, the last one smaller."""

changed = st.lists(
    st.tuples(
        st.one_of(st.integers(0, N - 1), st.sampled_from([0, 1023, 1024, 2047, 2048, N - 1])),
        st.integers(0, 3),
        st.booleans(),
    ),
    min_size=1,
    max_size=2 * ROWS_MOST,
    unique_by=lambda each: each[0],
)
"""(row, its sum from now on, whether it passes)."""


class Kept:
    """Best rows over a filter result and sums that are changed here."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.filtered = FilterResults(N)
        self.filtered.plugin_n[rng.integers(0, 2, N) == 0] = 3
        self.fixed_n = rng.integers(0, 3, N)
        caches: Any = SimpleNamespace(filtered=self.filtered), SimpleNamespace(fixed_n=self.fixed_n)
        self.best = BestRows(*caches)
        self.best.ask()

    def change(self, rows: list[tuple[int, int, bool]]) -> None:
        for row, total, passes in rows:
            self.fixed_n[row] = total
            self.filtered.plugin_n[row] = PASSED if passes else 7
        found = [row for row, _, _ in rows]
        few = len(found) <= ROWS_MOST
        self.best.follow(Changes(found if few else sorted(found), [], are_few=few))

    def compare(self) -> None:
        passed_n = self.filtered.plugin_n == PASSED
        top = self.fixed_n[passed_n].max()
        tied = ((self.fixed_n == top) & passed_n).nonzero()[0].tolist()
        found = self.best.find()
        assert (found.top, len(found), list(found)) == (top, len(tied), tied)
        for position in {0, len(tied) // 2, len(tied) - 1}:
            assert found[position] == tied[position]
        for row in {0, 1024, N - 1, tied[0], (tied[-1] + 1) % N}:
            assert (row in found) == (row in tied)
        with pytest.raises(IndexError, match=f"there are {len(tied)} rows"):
            found[len(tied)]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.lists(changed, max_size=8))
def test_the_best_rows_equal_a_look_at_every_row(
    seed: int, history: list[list[tuple[int, int, bool]]]
) -> None:
    kept = Kept(seed)
    kept.compare()
    for rows in history:
        kept.change(rows)
        kept.compare()


def test_one_best_row_moves_from_block_to_block() -> None:
    kept = Kept(1)
    for row in (5, 1023, 1024, 2499, 2047, 2048):
        kept.change([(row, 100, True)])
        kept.compare()
        assert list(kept.best.find()) == [row]
        kept.change([(row, 100, False)])
        kept.compare()


def test_rows_in_blocks_leave_the_draw_among_ties_as_it_is() -> None:
    """The decisions of a seed, over several blocks, with reuse and without."""
    snapshot = Snapshot()
    for index in range(1100):
        snapshot.table.add_node(node(f"n{index:04}", cpu="4", memory="8Gi"))
    profile = default_profile(snapshot)
    reusing, plain = (
        Cycle(profile, snapshot, seeded(Streams(7).stream("ties")), reuse=reuse)
        for reuse in (True, False)
    )
    for index in range(30):
        asked = PodInfo(pod(f"p{index}", cpu="1", memory="1Gi"))
        decision = reusing.decide(asked)
        assert told(decision) == told(plain.decide(asked))
        snapshot.table.add_pod(asked, decision.node_name)
    assert reusing.reuse is not None
    assert reusing.reuse.shapes.find(PodInfo(pod("next", cpu="1", memory="1Gi"))).best.known
