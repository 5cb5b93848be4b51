"""The measurement of the page, at a size that takes seconds.

Left out: the figures themselves, which say what the machine does.
"""

from __future__ import annotations

import pytest

from moorage.base.clock import SystemClock
from moorage.base.process import run_loop
from moorage.base.rng import Streams
from moorage_lab.bench.page.run import PagePlan, measure_page

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_the_page_of_a_live_scheduler_is_measured_without_and_with_viewers() -> None:
    plan = PagePlan(nodes=4, pods=40, viewers=(0, 2), arrivals_per_second=20, seconds=3.0)
    found = run_loop(measure_page(plan, clock=SystemClock(), streams=Streams(1)))
    assert (found.nodes, found.pods) == (4, 40)
    assert found.first_bytes > 40 * 100  # each pod has a name and a uid
    assert [(each.viewers, each.arrivals_per_second) for each in found.costs] == [
        *((0, 0), (2, 0)),
        *((0, 20), (2, 20)),
    ]
    none_at_rest, two_at_rest, none, two = (each.bytes_per_second for each in found.costs)
    assert none_at_rest == none == 0
    assert two > two_at_rest  # the changed nodes are told while pods arrive
