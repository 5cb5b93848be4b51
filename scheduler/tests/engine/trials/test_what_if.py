"""What a failed search lends to PostFilter plugins: every Filter of the attempt judges a trial.

Trials against a reference are in ``scheduler/tests/plugins/preemption``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from moorage.engine.attempt import WHOLE, Scope
from moorage.engine.cycle import Cycle
from moorage.engine.select_node import smallest_name
from moorage.framework.capabilities import Reads
from moorage.framework.points import PostFilterResult
from moorage.framework.status import Code, Status, unschedulable
from moorage.framework.what_if import WHAT_IF
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.engine.builders import nodes
from scheduler.tests.framework.builders import Fake, profile
from scheduler.tests.snapshot.builders import pod

NO = unschedulable("no")


def test_a_filter_that_reads_the_node_judges_a_trial_though_its_answers_are_never_kept():
    """Score of the plugin reads the cluster, so nothing is known of its Filter beforehand."""
    said: list[Status] = []

    def post_filter(
        state: Any, info: PodInfo, statuses: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status]:
        with state.read(WHAT_IF).on_row(0) as trial:
            said.append(trial.judge())
        return None, unschedulable()

    mixed = Fake(
        "Mixed",
        filter_node=lambda state, info, row: NO,
        filter_reads=Reads.NODE,
        score=lambda state, info, view: np.zeros(len(view), np.int64),
        score_reads=Reads.CLUSTER,
        shape_parts=(),
    )
    kept = Fake(
        "Kept",
        filter=lambda state, info, view: None,
        filter_reads=Reads.NODE,
        shape_parts=(),
    )
    snapshot = nodes("n1")
    made = profile(mixed, kept, Fake("Tries", post_filter=post_filter), snapshot=snapshot)
    cycle = Cycle(made, snapshot, smallest_name)
    for name in ("a", "b"):
        cycle.decide(PodInfo(pod(name)))
    assert [(each.code, each.plugin) for each in said] == [(Code.UNSCHEDULABLE, "Mixed")] * 2


def test_a_trial_stays_within_the_scope_of_the_attempt_where_pre_filter_rejects_the_pod():
    """A member that preempts in another rack would leave the domain of its group."""
    tried: list[list[int]] = []

    def post_filter(
        state: Any, info: PodInfo, statuses: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status]:
        tried.append(state.read(WHAT_IF).rows_with(Code.UNSCHEDULABLE).tolist())
        return None, unschedulable()

    rejects = Fake("Rejects", pre_filter=lambda state, info, snapshot: (None, NO))
    snapshot = nodes("n1", "n2", "n3")
    made = profile(rejects, Fake("Tries", post_filter=post_filter), snapshot=snapshot)
    cycle = Cycle(made, snapshot, smallest_name)
    for scope in (WHOLE, Scope(within=snapshot.rows([0, 2]))):
        cycle.decide(PodInfo(pod("a")), scope)
    assert tried == [[0, 1, 2], [0, 2]]
